"""Parts of the exact values of nearest neighbours that a support of a few rows does not show."""

from __future__ import annotations

import numpy as np
import pytest

from localshapley.kernels.knn_closed_form import sort_places


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 31, 32, 33, 48, 100, 1000])
@pytest.mark.parametrize("n_values", [1, 3, 10**6])
def test_rows_are_sorted_by_distance_and_equals_stay_in_their_order(n, n_values):
    rng = np.random.default_rng([n, n_values])
    distances = rng.integers(n_values, size=n + 5).astype(float)
    distances[rng.random(n + 5) < 0.05] = np.nan  # some metrics have no number for some rows
    order, merged = np.empty((2, n), dtype=np.int64)
    sort_places(distances, 5, n, order, merged)
    assert order.tolist() == np.argsort(distances[5:], kind="stable").tolist()
