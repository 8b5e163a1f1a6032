"""Means and variances that do not depend on how the rows lie."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from localshapley.data.moments import Moments


@pytest.mark.parametrize("seed", range(20))
def test_any_order_layout_and_parts_give_the_same_bits(seed):
    rng = np.random.default_rng(seed)
    X = 10.0 ** rng.integers(-3, 4, size=5) * (rng.normal(size=(700, 5)) + 100 * rng.normal(size=5))
    whole, order = Moments.of(X, X[0]), rng.permutation(700)
    parts = [Moments.of(np.asfortranarray(part), X[0]) for part in np.array_split(X[order], rng.integers(2, 9))]
    together = parts[-1]
    for part in parts[:-1]:
        together = part + together
    assert np.array_equal(together.mean, whole.mean)
    assert np.array_equal(together.variance, whole.variance)
    assert together.variance_of_all == whole.variance_of_all


def test_they_are_what_numpy_and_scikit_learn_compute():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(5, 2, size=3001), np.full(3001, 7.1), rng.integers(4, size=3001)])
    found, scaler = Moments.of(X, X[0]), StandardScaler().fit(X)
    assert np.allclose(found.mean, X.mean(axis=0), rtol=1e-14)
    assert np.allclose(found.variance, X.var(axis=0), rtol=1e-12)
    assert np.isclose(found.variance_of_all, X.var(), rtol=1e-12)
    assert found.scale[1] == 1  # a column of one number
    assert np.allclose(found.standardised(X), scaler.transform(X), atol=1e-12)


def test_a_mean_is_rounded_once():
    big, small = 1e16, 1.0
    X = np.array([[0.0], [big], [small], [-big]])  # one after the other the small number is lost
    assert Moments.of(X, X[0]).mean[0] == 0.25
