"""Who is among the worst: simulated errors against what is known by hand."""

import numpy as np
import pytest
from scipy.stats import norm

from localshapley.estimate.ranking import Doubt


def doubt(values, stderr, **columns):
    columns = {"draws": None, "tests": None} | columns
    return Doubt.of(np.asarray(values, dtype=float), np.asarray(stderr, dtype=float), **columns)


def test_two_rows_by_the_normal_distribution():
    found = doubt([0.0, 1.0], [1.0, 1.0]).lowest(1, 0.7)
    expected = norm.cdf(1 / np.sqrt(2))
    assert found.probability == pytest.approx([expected, 1 - expected], abs=0.03)
    assert found.size == 1  # the first row is the worst with 76 %
    assert doubt([0.0, 1.0], [1.0, 1.0]).lowest(1, 0.8).size == 2


def test_exact_values_are_certain():
    found = doubt([3.0, 1.0, 2.0], [0, 0, 0]).lowest(2, 0.95)
    assert found.probability.tolist() == [0, 1, 1]
    assert found.rows.tolist() == [1, 2]
    assert found.expected == 2


def test_errors_that_rows_share_do_not_change_their_order():
    shared = np.ones((3, 64), dtype=np.float32)
    found = doubt([3.0, 1.0, 2.0], [8, 8, 8], draws=shared).lowest(1, 0.95)
    assert found.probability.tolist() == [0, 1, 0]
    assert found.size == 1
