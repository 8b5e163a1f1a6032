"""Neighbours within a radius against scikit-learn, and their closed form against all coalitions."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import RadiusNeighborsClassifier, RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import localshapley as ls
from localshapley.coalitions.batch import Coalitions
from localshapley.models.radius_neighbours import RadiusTrainer
from localshapley.models.task import Task
from models.against import assert_same
from playing import pose

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

    def test_what_has_no_answer_is_told_of_blocks_of_test_rows_too(self):
        X, y, X_test, y_test = DIABETES
        task = Task(X, y, X_test[:9], y_test[:9], None, None, ls.scoring.SquaredError())
        coalitions = Coalitions.from_lists([[0, 1, 2], range(len(y)), [5]], [range(9), [0, 8], [3]])
        whole, blocks = (RadiusTrainer(REGRESSOR, task, max_distances=most).train(coalitions) for most in (2**27, 1))
        assert blocks.counts.silent == whole.counts.silent > 0
        assert sorted({*blocks.stand_ins}) == whole.stand_ins != []


@pytest.mark.filterwarnings("ignore")
class TestClosedForm:
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("model", [CLASSIFIER, REGRESSOR], ids=["classes", "numbers"])
    def test_values_are_those_of_all_coalitions(self, model, seed):
        """Of rows near and far."""
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


def by_definition(X, y, X_test, y_test, radius):
    """Shapley values if scikit-learn predicts, and nothing is learnt where it says that nobody is near."""
    n, classes, values = len(y), np.unique(y), np.zeros(len(y))

    def score(coalition):
        out = np.full(len(y_test), 1 / len(classes))
        if coalition:
            model = RadiusNeighborsClassifier(radius).fit(X[coalition], y[coalition])
            for t, x in enumerate(X_test):
                try:
                    found = dict(zip(model.classes_.tolist(), model.predict_proba([x])[0].tolist(), strict=True))
                    out[t] = found.get(y_test[t], 0.0)
                except ValueError:  # no neighbours found
                    continue
        return out.sum()

    known = {c: score(list(c)) for k in range(n + 1) for c in combinations(range(n), k)}
    for c, v in known.items():
        for z in range(n):
            if z not in c:
                values[z] += (known[tuple(sorted((*c, z)))] - v) / (n * comb(n - 1, len(c)))
    return values


@pytest.mark.filterwarnings("ignore")
class TestOneClassFarAway:
    """Rows of one class predict it where they are near; where nobody is, nothing is known, as with rows of several."""

    X, Y = np.array([[0.0], [0.4], [0.5], [1.3], [3.0], [3.1], [9.0]]), np.array([0, 0, 1, 1, 0, 0, 1])
    X_TEST, Y_TEST = np.array([[0.1], [2.5], [6.0]]), np.array([0, 0, 1])
    DATA, MODEL = (X, Y, X_TEST, Y_TEST), RadiusNeighborsClassifier(1.0)
    WAYS = (MODEL, ls.models.Estimator(MODEL), make_pipeline(FunctionTransformer(), MODEL))

    def test_values_are_those_by_definition(self):
        expected = by_definition(*self.DATA, 1.0)
        assert np.abs(expected).max() > 0.1
        np.testing.assert_allclose(ls.comparators.threshold_knn_shapley(*self.DATA, radius=1.0).values, expected)
        everyone = ls.supports.Everything()
        for model in self.WAYS:
            for method in ("exact", "auto"):
                found = ls.value(*self.DATA, model=model, support=everyone, method=method)
                np.testing.assert_allclose(found.values, expected, atol=1e-12)
        np.testing.assert_allclose(ls.value(*self.DATA, model=self.MODEL).values, expected, atol=1e-12)  # within 1.0

    def test_there_is_no_gap(self):
        for model in self.WAYS[:2]:
            gap = ls.locality_gap(*self.DATA, model=model, support=ls.supports.Radius(1.0), budget=200)
            assert gap.gap == 0
            assert np.abs(gap.global_).max() > 0.1

    def test_another_label_for_outliers_is_asked_too(self):
        model = RadiusNeighborsClassifier(1.0, outlier_label=1)
        v = ls.value(*self.DATA, model=model, support=ls.supports.Everything(), method="exact", per_test=True)
        assert v.per_test.toarray()[2].sum() == pytest.approx(1 - 1 / 2)  # nobody is near: scikit-learn says 1, rightly


def test_other_settings_use_scikit_learn():
    trainer = pose(*IRIS, model=RadiusNeighborsClassifier(outlier_label=0), support=ls.supports.Nearest(3)).trainer
    assert trainer.training_notes[0].endswith("outlier_label=0.")
