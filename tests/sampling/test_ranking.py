"""Who is among the worst: simulated errors against what is known by hand."""

import numpy as np
import pytest

from localshapley.sampling.ranking import ErrorModel


def doubt(values, stderr, **columns):
    columns = {"draws": None, "tests": None} | columns
    return ErrorModel.of(np.asarray(values, dtype=float), np.asarray(stderr, dtype=float), **columns)


@pytest.mark.parametrize("error", [0.5, 1.0])
def test_probabilities_and_sets_are_right(error):
    """Three hundred rows whose true values are known, estimated with errors, many times."""
    rng, k = np.random.default_rng(0), 15
    expected, found, held = [], [], []
    for _ in range(25):
        truth = rng.normal(size=300)
        ranked = doubt(truth + error * rng.normal(size=300), np.full(300, error)).lowest(k, 0.9)
        worst = set(np.argsort(truth)[:k].tolist())
        expected.append(ranked.expected)
        found.append(len(worst & set(ranked.order[:k].tolist())))
        held.append(worst <= set(ranked.rows.tolist()))
    assert np.mean(found) == pytest.approx(np.mean(expected), abs=0.7)
    assert 0.7 <= np.mean(held) <= 0.99  # wanted: 0.9


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
