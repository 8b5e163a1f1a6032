"""A compiled trainer beside the estimator itself, on the same random coalitions."""

from __future__ import annotations

import numpy as np

import localshapley as ls
from localshapley.models import Coalitions, Estimator
from playing import pose


def scores_of_both(model, data, score=None, sizes=(1, 40), n=60, n_tests=3):
    """Scores of random coalitions by the compiled trainer and with scikit-learn's fit."""
    rng = np.random.default_rng(0)
    trainers = [
        pose(*data, model=m, score=score, support=ls.supports.Nearest(1)).trainer for m in (model, Estimator(model))
    ]
    assert "compiled" in trainers[0].name, trainers[0].training_notes
    n_rows, n_all_tests = (table.shape[0] for table in (data[0], data[2]))
    coalitions = [rng.choice(n_rows, rng.integers(*sizes, endpoint=True), replace=False) for _ in range(n)]
    batch = Coalitions.from_lists(coalitions, [rng.choice(n_all_tests, n_tests, replace=False) for _ in coalitions])
    return [trainer.evaluate(batch) for trainer in trainers]


def assert_same(model, data, score=None, tolerance=1e-9, **settings):
    """Scores are the same, up to rounding."""
    found, expected = scores_of_both(model, data, score, **settings)
    assert len(np.unique(expected)) > 2 or score == "accuracy"
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
