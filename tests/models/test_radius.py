"""Neighbours within a radius against scikit-learn, and their closed form against all coalitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import RadiusNeighborsClassifier, RadiusNeighborsRegressor

import localshapley as ls
from localshapley.problem.posing import pose
from models.against import assert_same

IRIS, DIABETES = (ls.datasets.load(name)[:4] for name in ("iris", "diabetes"))
CLASSIFIER, REGRESSOR = RadiusNeighborsClassifier(0.8), RadiusNeighborsRegressor(3)


@pytest.mark.filterwarnings("ignore")
class TestScores:
    @pytest.mark.parametrize("weights", ["uniform", "distance"])
    @pytest.mark.parametrize("score", ["accuracy", "confidence", "margin", "log_loss"])
    def test_of_classifiers(self, score, weights):
        """Where no row is near enough, nothing has been learnt."""
        assert_same(RadiusNeighborsClassifier(0.8, weights=weights), IRIS, score)

    @pytest.mark.parametrize("weights", ["uniform", "distance"])
    def test_of_regressors(self, weights):
        assert_same(RadiusNeighborsRegressor(3, weights=weights), DIABETES)

    def test_by_another_metric_and_of_sparse_rows(self):
        assert_same(RadiusNeighborsClassifier(1.5, metric="manhattan"), IRIS)
        X, y, X_test, y_test = IRIS
        assert_same(CLASSIFIER, (sparse.csr_matrix(X), y, sparse.csr_matrix(X_test), y_test))

    def test_rows_at_distance_zero_take_all_the_weight(self):
        X, y = np.repeat(np.arange(6.0), 3)[:, None], np.arange(18) % 3
        assert_same(RadiusNeighborsClassifier(2, weights="distance"), (X, y, X[::4], y[::4]), sizes=(2, 12))


@pytest.mark.filterwarnings("ignore")
class TestClosedForm:
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("model", [CLASSIFIER, REGRESSOR], ids=["classes", "numbers"])
    def test_values_are_those_of_all_coalitions(self, model, seed):
        """Of rows near and far: far rows of one class predict it, by the convention for one class."""
        X, y, X_test, y_test = IRIS if model is CLASSIFIER else DIABETES
        rows = np.random.default_rng(seed).choice(len(y), 8, replace=False)
        data = X[rows], y[rows], X_test[seed : seed + 4], y_test[seed : seed + 4]
        everyone = ls.supports.Everything()
        found = ls.value(*data, model=model, support=everyone, method="closed-form", per_test=True)
        expected = ls.value(*data, model=model, support=everyone, method="subset-centric", per_test=True)
        assert expected.cost.trainings > 0
        np.testing.assert_allclose(found.per_test.toarray(), expected.per_test.toarray(), rtol=1e-9, atol=1e-9)
        assert np.abs(found.values).max() > 0.01

    @pytest.mark.parametrize("model", [CLASSIFIER, REGRESSOR], ids=["classes", "numbers"])
    def test_all_rows_at_once(self, model):
        """Values of hundreds of rows add up to what all of them gain."""
        data = IRIS if model is CLASSIFIER else DIABETES
        v = ls.value(*data, model=model, support=ls.supports.Everything())
        problem = pose(*data, model=model, support=ls.supports.Everything())
        ends = ls.models.Coalitions.from_lists([[], range(len(data[1]))], [range(len(data[3]))] * 2)
        nothing, everything = problem.trainer.evaluate(ends).reshape(2, -1).sum(axis=1)
        assert v.cost.trainings == 0
        assert v.values.sum() == pytest.approx(everything - nothing)

    def test_where_there_is_none(self):
        settings = {"support": ls.supports.Nearest(4), "method": "closed-form"}
        for model, score in ((CLASSIFIER, "accuracy"), (RadiusNeighborsClassifier(weights="distance"), "confidence")):
            with pytest.raises(ls.InvalidArgumentError, match="closed-form"):
                ls.value(*IRIS, model=model, score=score, **settings)


def test_other_settings_use_scikit_learn():
    trainer = pose(*IRIS, model=RadiusNeighborsClassifier(outlier_label=0), support=ls.supports.Nearest(3)).trainer
    assert trainer.note.endswith("outlier_label=0.")
