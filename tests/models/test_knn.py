"""The compiled nearest-neighbour trainer against enumeration by the definition, and against scikit-learn."""

from __future__ import annotations

import sys
import warnings
from fractions import Fraction
from math import comb, log

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import localshapley as ls
import naive
import naive_knn
from localshapley import scoring
from localshapley.engine.executor import Executor
from localshapley.engine.loop import play
from localshapley.kernels import neighbours as kernels
from localshapley.kernels.knn_closed_form import count_supports, enumerate_supports
from localshapley.kernels.knn_squares import square_supports
from localshapley.models import Coalitions, Estimator, Task, nearest_neighbours
from localshapley.models.nearest_neighbours import KNNTrainer
from localshapley.supports import Everything, Given, Nearest, Radius
from playing import pose, read_limits

BY_CLASSES = "equivalence classes cover"


def cost_of_confusion(truth, prediction):
    """A custom score of labels: not symmetric, not 0/1."""
    return [[2.0, -1.0, 0.5], [0.25, 1.0, -3.0], [-0.5, 0.0, 4.0]][truth % 3][prediction]


def cut_error(truth, prediction):
    """A custom score of numbers."""
    return -min(abs(truth - prediction), 1.5)


LABEL_SCORES = ["confidence", "accuracy", "margin", "log_loss", cost_of_confusion]
NUMBER_SCORES = ["squared_error", "absolute_error", cut_error]
WEIGHTS = ["uniform", "distance"]


def name_of(score):
    return score if isinstance(score, str) else score.__name__


def quietly(function, *args, **kwargs):
    """Call a function for data with labels that only the test rows have, which it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LocalShapleyWarning)
        return function(*args, **kwargs)


def lattice(seed, n_rows=14, n_tests=36, n_features=2, side=4):
    """Rows on a small lattice: equal distances, duplicates and distances of 0 all over; supports of 0 to 6 rows."""
    rng = np.random.default_rng([seed, n_rows])
    X = rng.integers(side, size=(n_rows, n_features)).astype(float)
    X_test = rng.integers(side, size=(n_tests, n_features)).astype(float)
    supports = [rng.choice(n_rows, size=rng.integers(0, 7), replace=False).tolist() for _ in range(n_tests)]
    return X, X_test, supports, rng


def labelled(seed, n_classes=3, unseen=False, **settings):
    X, X_test, supports, rng = lattice(seed, **settings)
    y = rng.integers(n_classes, size=len(X))
    y[:n_classes] = range(n_classes)
    return (X, y, X_test, rng.integers(n_classes + 2 * unseen, size=len(X_test))), supports


def measured(seed, **settings):
    X, X_test, supports, rng = lattice(seed, **settings)
    return (X, rng.normal(size=len(X)).round(1), X_test, rng.normal(size=len(X_test)).round(1)), supports


def by_definition(data, supports, K, weights, score, empty=None):
    X, y, X_test, y_test = data
    distances = naive_knn.distance_matrix(X, X_test)
    game = naive_knn.regressor_game if y.dtype.kind == "f" else naive_knn.classifier_game
    return naive.shapley_matrix(
        supports, game(distances, y.tolist(), y_test.tolist(), K, weights, score, empty), len(y)
    )


class TestValuesByTheDefinition:
    """Every game is enumerated in plain Python; solving by classes and training every subset must both agree."""

    def check(self, model, data, supports, score, K, weights, empty=None):
        expected = by_definition(data, supports, K, weights, score, empty)
        arguments = {"model": model, "support": Given(supports), "score": score, "empty": empty, "per_test": True}
        solved = quietly(ls.value, *data, **arguments, method="exact")
        trained = quietly(ls.value, *data, **arguments, method="subset-centric")
        assert (BY_CLASSES in solved.stopped) == (score is not cut_error)
        assert "compiled" in solved.cost.trainer
        assert "compiled" in trained.cost.trainer
        for found in (solved, trained):
            np.testing.assert_allclose(found.per_test.toarray(), expected, atol=1e-11)
            np.testing.assert_allclose(found.values, expected.sum(axis=0), atol=1e-10)

    @pytest.mark.parametrize("score", LABEL_SCORES, ids=name_of)
    @pytest.mark.parametrize("weights", WEIGHTS)
    def test_classifier(self, weights, score):
        for K in (1, 2, 3, 4, 5, 6, 7, 40):
            data, supports = labelled(K, n_classes=2 + K % 3, unseen=K % 4 == 2)
            if score is cost_of_confusion and K % 3 == 2:
                data, supports = labelled(K, n_classes=3)
            model = KNeighborsClassifier(K, weights=weights)
            self.check(model, data, supports, score, K, weights, empty=[None, 0.25, -1.0][K % 3])

    @pytest.mark.parametrize("score", NUMBER_SCORES, ids=name_of)
    @pytest.mark.parametrize("weights", WEIGHTS)
    def test_regressor(self, weights, score):
        for K in (1, 2, 3, 4, 5, 6, 7, 40):
            data, supports = measured(K)
            model = KNeighborsRegressor(K, weights=weights)
            self.check(model, data, supports, score, K, weights, empty=[None, 0.25, -1.0][K % 3])

    @given(st.data())
    def test_any_little_game(self, data):
        """Hypothesis looks for the smallest game that is wrong: rows on a line, all in the support."""
        n = data.draw(st.integers(2, 6))
        n_classes = data.draw(st.integers(2, 3))
        places = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
        labels = data.draw(
            st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n).filter(lambda y: len({*y}) > 1)
        )
        K = data.draw(st.integers(1, n + 1))
        weights = data.draw(st.sampled_from(WEIGHTS))
        score = data.draw(st.sampled_from(LABEL_SCORES))
        truth = data.draw(st.integers(0, n_classes))
        X, y = np.array(places, dtype=float)[:, None], np.array(labels)
        rows = X, y, np.array([[1.0]]), np.array([truth])
        found = quietly(
            ls.value, *rows, model=KNeighborsClassifier(K, weights=weights), support=Everything(), score=score
        )
        expected = by_definition(rows, [range(n)], K, weights, score)[0]
        np.testing.assert_allclose(found.values, expected, atol=1e-11)
        assert BY_CLASSES in found.stopped

    @pytest.mark.parametrize("score", ["accuracy", "margin", cost_of_confusion], ids=name_of)
    @pytest.mark.parametrize("weights", WEIGHTS)
    def test_supports_of_eleven_rows_with_three_classes(self, weights, score):
        (X, y, X_test, y_test), _ = labelled(9, n_classes=3, n_rows=15, n_tests=3)
        rng = np.random.default_rng(1)
        supports = [sorted(rng.choice(15, size=11, replace=False).tolist()) for _ in range(3)]
        model = KNeighborsClassifier(5, weights=weights)
        found = ls.value(X, y, X_test, y_test, model=model, support=Given(supports), score=score, per_test=True)
        distances = naive_knn.distance_matrix(X, X_test)
        v = naive_knn.classifier_game(distances, y.tolist(), y_test.tolist(), 5, weights, score)
        for t, support in enumerate(supports):
            expected = naive_knn.shapley_by_masks(support, lambda s, t=t: v(s, t))
            np.testing.assert_allclose(found.per_test.toarray()[t, support], [expected[z] for z in support], atol=1e-11)

    @pytest.mark.parametrize("score", NUMBER_SCORES[:2])
    @pytest.mark.parametrize("weights", WEIGHTS)
    def test_a_regressors_supports_of_eleven_rows(self, weights, score):
        X, y, X_test, y_test = measured(3, n_tests=2)[0]
        supports = [list(range(11)), list(range(3, 14))]
        model = KNeighborsRegressor(6, weights=weights)
        found = ls.value(X, y, X_test, y_test, model=model, support=Given(supports), score=score, per_test=True)
        distances = naive_knn.distance_matrix(X, X_test)
        v = naive_knn.regressor_game(distances, y.tolist(), y_test.tolist(), 6, weights, score)
        for t, support in enumerate(supports):
            expected = naive_knn.shapley_by_masks(support, lambda s, t=t: v(s, t))
            np.testing.assert_allclose(found.per_test.toarray()[t, support], [expected[z] for z in support], atol=1e-10)

    def test_a_test_row_that_is_a_training_row_silences_the_others(self):
        X, y = np.array([[0.0], [0.0], [1.0], [2.0]]), np.array(["a", "b", "b", "b"])
        v = ls.value(X, y, [[0.0]], ["b"], model=KNeighborsClassifier(4, weights="distance"), support=Everything())
        # Once a zero-distance row is in, only rows 0 and 1 count: rows 2 and 3 matter without them alone.
        full = ls.value(X[:2], y[:2], [[0.0]], ["b"], model=KNeighborsClassifier(4), support=Everything())
        assert v.values.sum() == pytest.approx(1 / 2 - 1 / 2)
        assert full.values.sum() == pytest.approx(0)
        assert v.values[2] == pytest.approx(v.values[3])
        # Row 2 gains 1/2 joining nothing (once in 4 places) and nothing joining any other coalition.
        assert v.values[2] == pytest.approx(1 / 2 * 1 / 4)

    def test_values_by_hand(self):
        X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 0])
        v = ls.value(X, y, [[-1.0]], [0], model=KNeighborsClassifier(1), support=Everything())
        # Order of nearness 0, 1, 2; scores: nothing 1/2, else 1 where the nearest is 0 or 2, 0 where it is 1.
        expected = [
            (1 / 2) / 3 + (1 + 0) / 6 + 1 / 3,
            (-1 / 2) / 3 + (0 - 1) / 6 + 0,
            (1 / 2) / 3 + 0 + 0,
        ]
        np.testing.assert_allclose(v.values, expected, atol=1e-15)
        assert v.values.sum() == pytest.approx(1 / 2)

    def test_a_support_with_one_class_or_one_row_or_none(self):
        X, y = np.arange(5.0)[:, None], np.array([0, 0, 0, 1, 2])
        supports = [[0, 1, 2], [3], [], [4], [3, 4]]
        X_test, y_test = np.full((5, 1), 0.4), np.array([0, 0, 0, 2, 0])
        for score in LABEL_SCORES:
            for weights in WEIGHTS:
                model = KNeighborsClassifier(2, weights=weights)
                v = ls.value(X, y, X_test, y_test, model=model, support=Given(supports), score=score, per_test=True)
                expected = by_definition((X, y, X_test, y_test), supports, 2, weights, score)
                np.testing.assert_allclose(v.per_test.toarray(), expected, atol=1e-12)
                assert any("1 of 5 test rows have an empty support" in note for note in v.notes)

    def test_only_empty_supports(self):
        X, y = np.arange(4.0)[:, None], np.array([0, 0, 1, 1])
        with pytest.raises(ls.InvalidArgumentError, match="says nothing: 1 of 1 test rows"):
            ls.value(X, y, [[50.0]], [1], model=KNeighborsClassifier(2), support=Radius(1.0))
        v = ls.value(X, y, [[50.0]], [1], model=KNeighborsClassifier(2), support=Given([[]]), per_test=True)
        assert v.values.tolist() == [0, 0, 0, 0]
        assert v.per_test.nnz == 0

    def test_text_labels_and_those_that_only_test_rows_have(self):
        X, y = np.arange(5.0)[:, None], np.array(["pear", "fig", "fig", "pear", "fig"])
        with pytest.warns(ls.LocalShapleyWarning, match="plum"):
            v = ls.value(X, y, [[0.0]], ["plum"], model=KNeighborsClassifier(2), support=Everything(), score="margin")
        codes = (X, (y == "pear").astype(int), np.array([[0.0]]), np.array([7]))
        np.testing.assert_allclose(v.values, by_definition(codes, [range(5)], 2, "uniform", "margin")[0], atol=1e-12)

    def test_a_floor_of_the_log_loss_is_kept(self):
        data, supports = labelled(2)
        found = ls.value(*data, model=KNeighborsClassifier(2), support=Given(supports), score=scoring.LogLoss(0.3))
        asis = ls.value(*data, model=KNeighborsClassifier(2), support=Given(supports), score=scoring.LogLoss(0.3),
                        method="subset-centric")  # fmt: skip
        other = ls.value(*data, model=KNeighborsClassifier(2), support=Given(supports), score="log_loss")
        np.testing.assert_allclose(found.values, asis.values, atol=1e-11)
        assert np.abs(found.values - other.values).max() > 0.1

    def test_a_score_of_ones_own_is_trained_where_it_reads_probabilities_and_solved_where_it_reads_labels(self):
        class Half(scoring.Score):
            name, task, source = "half", "classifier", "proba"

            def __call__(self, y, prediction):
                return 0.5 * scoring.Confidence()(y, prediction)

        class HalfLabel(Half):
            source = "label"

        data, supports = labelled(5)
        for score, twin, solved in ((Half(), "confidence", False), (HalfLabel(), "accuracy", True)):
            found = ls.value(*data, model=KNeighborsClassifier(2), support=Given(supports), score=score)
            whole = ls.value(*data, model=KNeighborsClassifier(2), support=Given(supports), score=twin)
            np.testing.assert_allclose(found.values, whole.values / 2, atol=1e-12)
            assert (BY_CLASSES in found.stopped) == solved


def line(n, n_classes=2, seed=0):
    """Rows on a line at increasing distances from the one test row, in random order of their index."""
    rng = np.random.default_rng([seed, n])
    X = rng.permutation(np.cumsum(rng.uniform(0.1, 1, size=n)))[:, None]
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = range(n_classes)
    return X, y, np.zeros((1, 1)), np.array([1])


class TestLargeSupports:
    """Too many coalitions to enumerate: counting in exact fractions, two paths that must meet, and efficiency."""

    @pytest.mark.parametrize("score", ["confidence", "log_loss", "accuracy", "margin", cost_of_confusion], ids=name_of)
    @pytest.mark.parametrize(("n", "K"), [(30, 1), (30, 7), (45, 10), (60, 3), (20, 20), (20, 19), (20, 30), (2, 1)])
    def test_counted_votes_of_two_classes(self, n, K, score):
        X, y, X_test, y_test = line(n)
        v = ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(K), support=Everything(), score=score)
        table = {
            "confidence": (lambda h, k: Fraction(h, k), Fraction(1, 2)),
            "log_loss": (lambda h, k: log(max(h / k, 1e-6) * 2), 0.0),
            "accuracy": (lambda h, k: int(2 * h > k), Fraction(1, 2)),
            "margin": (lambda h, k: Fraction(2 * h - k, k), 0),
            cost_of_confusion: (lambda h, k: cost_of_confusion(1, int(2 * h > k)), (0.25 + 1.0) / 2),
        }
        f, nothing = table[score]
        order = np.argsort(X[:, 0])
        expected = np.empty(n)
        expected[order] = naive_knn.values_by_counting(y[order].tolist(), K, f, nothing)
        np.testing.assert_allclose(v.values, expected, atol=1e-12, rtol=1e-11)
        assert BY_CLASSES in v.stopped

    @pytest.mark.parametrize(("n", "K"), [(30, 5), (60, 10)])
    def test_counted_votes_of_own_class_among_five(self, n, K):
        X, y, X_test, y_test = line(n, n_classes=5)
        order = np.argsort(X[:, 0])
        for score, f, nothing in (
            ("confidence", lambda h, k: Fraction(h, k), Fraction(1, 5)),
            ("log_loss", lambda h, k: log(max(h / k, 1e-6) * 5), 0.0),
        ):
            v = ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(K), support=Everything(), score=score)
            expected = np.empty(n)
            expected[order] = naive_knn.values_by_counting((y[order] == 1).astype(int).tolist(), K, f, nothing)
            np.testing.assert_allclose(v.values, expected, atol=1e-12, rtol=1e-11)

    @pytest.mark.parametrize(("n", "K"), [(30, 4), (40, 3), (60, 3), (22, 10), (24, 1)])
    def test_enumerated_classes_give_what_counted_ones_give(self, n, K):
        """`−|1 − mean|` of 0/1 targets is the share of ones less 1: a regressor enumerates, a classifier counts."""
        X, y, X_test, y_test = line(n)
        counted = ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(K), support=Everything(), empty=0.5)
        enumerated = ls.value(
            X, y.astype(float), X_test, y_test.astype(float), model=KNeighborsRegressor(K), support=Everything(),
            score="absolute_error", empty=-0.5,
        )  # fmt: skip
        np.testing.assert_allclose(enumerated.values, counted.values, atol=1e-12)
        assert counted.cost.draws == n * (K + 1)
        assert enumerated.cost.draws == sum(comb(n, k) for k in range(K + 1))

    @pytest.mark.parametrize("score", LABEL_SCORES, ids=name_of)
    def test_weights_by_distance_on_a_circle_are_equal_weights(self, score):
        """All rows are equally far, so that only their index tells them apart."""
        angle = np.random.default_rng(0).integers(4, size=30) * np.pi / 2
        X, y = np.column_stack([np.cos(angle), np.sin(angle)]).round(), np.arange(30) % 2
        rows = X, y, np.zeros((1, 2)), np.array([1])
        equal, weighted = (
            ls.value(*rows, model=KNeighborsClassifier(4, weights=weights), support=Everything(), score=score)
            for weights in WEIGHTS
        )
        np.testing.assert_allclose(weighted.values, equal.values, atol=1e-12)
        assert weighted.cost.draws > 100 * equal.cost.draws

    @pytest.mark.parametrize(
        ("model", "score", "size"),
        [
            (KNeighborsClassifier(10), "confidence", 60),
            (KNeighborsClassifier(10), "log_loss", 45),
            (KNeighborsClassifier(3), "accuracy", 40),
            (KNeighborsClassifier(4), "margin", 30),
            (KNeighborsClassifier(4, weights="distance"), "confidence", 30),
            (KNeighborsClassifier(3, weights="distance"), "log_loss", 60),
            (KNeighborsClassifier(3, weights="distance"), "accuracy", 40),
            (KNeighborsClassifier(3, weights="distance"), "margin", 40),
        ],
        ids=repr,
    )
    def test_values_add_up_to_what_the_support_gains_for_every_test_row(self, model, score, size):
        X, y = load_digits(return_X_y=True)
        data = X[:200], y[:200], X[200:206], y[200:206]
        v = ls.value(*data, model=model, support=Nearest(size), score=score, per_test=True)
        trainer = pose(*data, model=model, score=score).trainer
        supports = [v.per_test[[t]].indices for t in range(6)]
        full = trainer.evaluate(Coalitions.from_lists(supports, [[t] for t in range(6)]))
        nothing = trainer.evaluate(Coalitions.from_lists([[]] * 6, [[t] for t in range(6)]))
        np.testing.assert_allclose(v.per_test.sum(axis=1), full - nothing, atol=1e-11)
        assert np.abs(full - nothing).max() > 0.1

    @pytest.mark.parametrize("K", [1, 2, 3, 9, 20])
    @pytest.mark.parametrize("n", [1, 6, 11])
    def test_the_squared_error_needs_no_classes(self, n, K, monkeypatch):
        """Summed up by places, and class by class."""
        rng = np.random.default_rng([n, K])
        data = rng.normal(size=(n, 2)), rng.normal(size=n), rng.normal(size=(3, 2)), rng.normal(size=3)
        settings = {"model": KNeighborsRegressor(K), "support": Everything(), "method": "closed-form", "per_test": True}
        one_by_one = ls.value(*data, **settings).per_test.toarray()
        monkeypatch.setattr("localshapley.models.nearest_neighbours.FEW_CLASSES", 0)
        np.testing.assert_allclose(ls.value(*data, **settings).per_test.toarray(), one_by_one, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("K", [1, 15, 400])
    def test_a_regressor_on_the_whole_training_set(self, K):
        X, y, X_test, y_test, _ = ls.datasets.load("diabetes")
        v = ls.value(X, y, X_test, y_test, model=KNeighborsRegressor(K), support=Everything())
        full = KNeighborsRegressor(min(K, len(y))).fit(X, y).predict(X_test)
        gain = ((y_test - y.mean()) ** 2).sum() - ((y_test - full) ** 2).sum()
        assert v.cost.trainings == 0
        assert v.values.sum() == pytest.approx(gain, abs=1e-6)

    def test_regression_adds_up_too(self):
        X, y = load_diabetes(return_X_y=True)
        data = X[:200], y[:200], X[200:206], y[200:206]
        for weights in WEIGHTS:
            model = KNeighborsRegressor(3, weights=weights)
            v = ls.value(*data, model=model, support=Nearest(40), per_test=True)
            fitted = model.fit(X[:200], y[:200]).predict(X[200:206])
            gains = (y[:200].mean() - y[200:206]) ** 2 - (fitted - y[200:206]) ** 2
            np.testing.assert_allclose(v.per_test.sum(axis=1), gains, rtol=1e-9)

    def test_two_thousand_rows(self):
        """Logarithms of large factorials keep ten digits."""
        X, y, X_test, y_test = line(2000, n_classes=3)
        for K in (1, 25, 2500):
            v = ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(K), support=Everything())
            near = np.argsort(X[:, 0])[:K]
            assert v.values.sum() == pytest.approx((y[near] == 1).mean() - 1 / 3, abs=1e-9)
            assert (v.values[y == 1] > 0).all()

    def test_a_row_is_worth_no_more_than_a_nearer_one_of_its_class(self):
        X, y, X_test, y_test = line(40)
        v = ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(5), support=Everything())
        order = np.argsort(X[:, 0])
        own, others = order[y[order] == 1], order[y[order] == 0]
        assert (np.diff(v.values[own]) <= 1e-15).all()
        assert (np.diff(v.values[others]) >= -1e-15).all()
        assert v.values[own[0]] > v.values[own[-1]] + 0.01


def task_of(data, score):
    X, y, X_test, y_test = data
    if y.dtype.kind == "f":
        return Task(X, y, X_test, y_test, None, None, scoring.resolve(score, "regressor", None, False))
    classes, codes = np.unique(y, return_inverse=True)
    truths = np.array([np.flatnonzero(classes == label)[0] if label in classes else -1 for label in y_test])
    unseen = np.setdiff1d(y_test, classes)
    return Task(X, y, X_test, truths, classes, codes, scoring.resolve(score, "classifier", (classes, unseen), True))


def random_coalitions(rng, n_rows, n_tests, n=400):
    coalitions = [rng.choice(n_rows, size=rng.integers(n_rows + 1), replace=False).tolist() for _ in range(n)]
    return coalitions, [rng.choice(n_tests, size=rng.integers(1, 4), replace=False).tolist() for _ in coalitions]


class TestCoalitions:
    """Scores of single coalitions, as samplers ask for them."""

    @pytest.mark.parametrize("score", LABEL_SCORES + NUMBER_SCORES, ids=name_of)
    @pytest.mark.parametrize("weights", WEIGHTS)
    def test_scores_are_those_of_the_twin(self, weights, score):
        regression = score in NUMBER_SCORES
        compared = 0
        for K in (1, 3, 5, 30):
            data = measured(K)[0] if regression else labelled(K, unseen=score == "margin")[0]
            kind, game = (
                (KNeighborsRegressor, naive_knn.regressor_game)
                if regression
                else (KNeighborsClassifier, naive_knn.classifier_game)
            )
            trainer = KNNTrainer(kind(K, weights=weights), task_of(data, score))
            X, y, X_test, y_test = data
            coalitions, tests = random_coalitions(np.random.default_rng(K), len(y), len(y_test))
            found = trainer.evaluate(Coalitions.from_lists(coalitions, tests))
            v = game(naive_knn.distance_matrix(X, X_test), y.tolist(), y_test.tolist(), K, weights, score)
            expected = [v(tuple(sorted(c)), t) for c, ts in zip(coalitions, tests, strict=True) for t in ts]
            np.testing.assert_allclose(found, expected, atol=1e-13)
            compared += len(expected)
        assert compared > 2000

    def test_those_that_need_no_training_are_counted(self):
        data, _ = labelled(1)
        trainer = KNNTrainer(KNeighborsClassifier(3), task_of(data, "confidence"))
        coalitions, tests = random_coalitions(np.random.default_rng(0), 14, 36)
        trained = trainer.train(Coalitions.from_lists(coalitions, tests))
        assert trained.counts.trivial == sum(len(set(data[1][c].tolist())) < 2 for c in coalitions) > 0

    def test_no_coalitions_at_all(self):
        trainer = KNNTrainer(KNeighborsClassifier(3), task_of(labelled(1)[0], "confidence"))
        assert len(trainer.evaluate(Coalitions.from_lists([], []))) == 0
        assert len(trainer.evaluate(Coalitions.from_lists([[0, 1, 2]], [[]]))) == 0

    @pytest.mark.parametrize("make", [labelled, measured])
    @pytest.mark.parametrize("n_jobs", [1, 2, 5])
    def test_neither_threads_nor_batches_nor_blocks_change_a_bit(self, make, n_jobs):
        data = make(4, n_rows=40, n_tests=30)[0]
        kind, score = (KNeighborsRegressor, "squared_error") if make is measured else (KNeighborsClassifier, "margin")
        task, model = task_of(data, score), kind(3, weights="distance")
        coalitions, tests = random_coalitions(np.random.default_rng(0), 40, 30, n=300)
        batch = Coalitions.from_lists(coalitions, tests)
        expected = KNNTrainer(model, task, n_jobs=1).evaluate(batch)
        assert (KNNTrainer(model, task, n_jobs=n_jobs).evaluate(batch) == expected).all()
        one_by_one = KNNTrainer(model, task, n_jobs=n_jobs)
        assert (np.concatenate([one_by_one.evaluate(part) for part in batch.parts(300)]) == expected).all()
        for most in (1, 79, 80, 1199, 1200, 2**27):
            trainer = KNNTrainer(model, task, n_jobs=n_jobs, max_distances=most)
            trainer.max_predictions = 50
            assert (trainer.evaluate(batch) == expected).all()

    def test_distances_are_measured_once_where_they_fit_and_in_blocks_where_not(self, monkeypatch):
        data = labelled(4, n_rows=20, n_tests=12)[0]
        asked = []
        measure = nearest_neighbours.distances

        def counting(X, Y, *metric):
            asked.append((X.shape[0], Y.shape[0]))
            return measure(X, Y, *metric)

        monkeypatch.setattr(nearest_neighbours, "distances", counting)
        batch = Coalitions.from_lists([[0, 1, 2, 3], [4, 5, 6]], [[1, 2, 3], [1, 7, 8, 11]])
        trainer = KNNTrainer(KNeighborsClassifier(3), task_of(data, "margin"), n_jobs=1)
        trainer.evaluate(batch)
        trainer.evaluate(batch)
        assert asked == [(12, 20)]
        asked.clear()
        KNNTrainer(KNeighborsClassifier(3), task_of(data, "margin"), n_jobs=1, max_distances=60).evaluate(batch)
        assert asked == [(3, 20), (3, 20)]


def check_against_scikit_learn(data, model, score=None, tolerance=1e-10, n=25):
    """Random coalitions as scikit-learn scores them; and the same values solved by classes as trained one by one."""
    _, y, _, y_test = data
    compiled, asis = (
        pose(*data, model=m, score=score, support=Given([[]] * len(y_test))).trainer for m in (model, Estimator(model))
    )
    assert isinstance(compiled, KNNTrainer)
    rng = np.random.default_rng(n)
    members = [rng.choice(len(y), size=rng.integers(1, 12), replace=False) for _ in range(n)]
    coalitions = Coalitions.from_lists(members, [range(len(y_test))] * n)
    trained = asis.train(coalitions)
    expected = trained.scores
    np.testing.assert_allclose(compiled.evaluate(coalitions), expected, atol=tolerance, rtol=tolerance)
    assert trained.counts.failed == trained.counts.silent == 0
    assert np.ptp(expected) > 0.1
    supports = Given([rng.choice(len(y), size=7, replace=False) for _ in y_test])
    solved, trained = (
        ls.value(*data, model=model, score=score, support=supports, method=method)
        for method in ("exact", "subset-centric")
    )
    np.testing.assert_allclose(solved.values, trained.values, atol=tolerance, rtol=tolerance)


def some_rows(seed=0, n=40, n_tests=4, n_features=3):
    """Rows without equal distances, and supports of 8 rows that overlap."""
    rng = np.random.default_rng(seed)
    X, X_test = rng.normal(size=(n, n_features)), rng.normal(size=(n_tests, n_features))
    support = Given([rng.choice(n, size=8, replace=False) for _ in range(n_tests)])
    return (X, rng.integers(3, size=n), X_test, rng.integers(3, size=n_tests)), support


def scaled_sum(a, b, factor=2.0):
    """A callable metric with an argument."""
    return factor * np.abs(a - b).sum() + np.abs(a - b).max()


COVARIANCE = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 0.4]])
METRICS = {
    "euclidean": {"metric": "euclidean"},
    "l2": {"metric": "l2"},
    "manhattan": {"metric": "manhattan"},
    "cityblock": {"metric": "cityblock"},
    "chebyshev": {"metric": "chebyshev"},
    "infinity": {"metric": "infinity"},
    "p=1": {"p": 1},
    "p=1.5": {"p": 1.5},
    "p=3": {"p": 3},
    "p=inf": {"p": np.inf},
    "p=0.5": {"p": 0.5, "algorithm": "brute"},
    "p among the metric's": {"metric_params": {"p": 1}},
    "weighted euclidean": {"metric_params": {"w": np.array([1.0, 5.0, 0.1])}},
    "weighted p=1": {"p": 1, "metric_params": {"w": np.array([1.0, 5.0, 0.1])}},
    "p that its metric does not read": {"metric": "euclidean", "p": 1},
    "weighted p=3": {"p": 3, "metric_params": {"w": np.array([1.0, 5.0, 0.1])}},
    "mahalanobis": {"metric": "mahalanobis", "metric_params": {"VI": np.linalg.inv(COVARIANCE)}},
    "seuclidean": {"metric": "seuclidean", "metric_params": {"V": np.array([1.0, 4.0, 0.2])}},
    "sqeuclidean": {"metric": "sqeuclidean", "algorithm": "brute"},
    "cosine": {"metric": "cosine"},
    "correlation": {"metric": "correlation", "algorithm": "brute"},
    "canberra": {"metric": "canberra"},
    "braycurtis": {"metric": "braycurtis", "algorithm": "brute"},
    "callable": {"metric": scaled_sum},
    "callable with an argument": {"metric": scaled_sum, "metric_params": {"factor": 0.3}},
}


class TestScikitLearn:
    """Where no two rows are equally near, scikit-learn leaves nothing open: values are its own."""

    @pytest.mark.parametrize("settings", METRICS.values(), ids=METRICS)
    @pytest.mark.parametrize("weights", WEIGHTS)
    def test_every_metric(self, settings, weights):
        (X, y, X_test, y_test), _ = some_rows()
        if settings.get("metric") in ("canberra", "braycurtis"):  # of amounts, which are not negative
            X, X_test = np.exp(X), np.exp(X_test)
        data = X, y, X_test, y_test
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # p among the metric's arguments wins over p
            check_against_scikit_learn(data, KNeighborsClassifier(3, weights=weights, **settings))

    def test_a_covariance_counts_although_scikit_learn_cannot_predict_from_a_few_rows_with_it(self):
        """Its search by brute force asks for the inverse, and takes over where there are few rows."""
        data, support = some_rows()
        V = {"V": COVARIANCE}
        VI = {"VI": np.linalg.inv(COVARIANCE)}
        by_V, by_VI = (
            ls.value(*data, model=KNeighborsClassifier(3, metric="mahalanobis", metric_params=p), support=support)
            for p in (V, VI)
        )
        np.testing.assert_allclose(by_V.values, by_VI.values, atol=1e-12)

    def test_metrics_are_not_all_the_same(self):
        data, support = some_rows()
        values = [
            ls.value(*data, model=KNeighborsClassifier(3, **METRICS[name]), support=support).values.tobytes()
            for name in ("euclidean", "manhattan", "chebyshev", "weighted p=3", "seuclidean", "cosine", "callable")
        ]
        assert len(set(values)) == 7

    def test_haversine_on_a_globe(self):
        check_against_scikit_learn(some_rows(n_features=2)[0], KNeighborsClassifier(3, metric="haversine"))

    @pytest.mark.parametrize("metric", ["hamming", "jaccard", "dice", "rogerstanimoto"])
    @pytest.mark.parametrize("kind", [bool, int, float])
    def test_metrics_of_yes_and_no(self, metric, kind):
        """Each training row differs from the test row in another number of places, so that there are no ties."""
        rng = np.random.default_rng(0)
        X_test = np.arange(40)[None] % 2
        X = np.array([np.where(np.arange(40) < 2 + 3 * i, 1 - X_test[0], X_test[0]) for i in rng.permutation(12)])
        data = X.astype(kind), np.arange(12) % 3, X_test.astype(kind), np.array([1])
        check_against_scikit_learn(data, KNeighborsClassifier(3, metric=metric))

    @pytest.mark.parametrize("score", LABEL_SCORES, ids=name_of)
    @pytest.mark.parametrize("weights", WEIGHTS)
    def test_every_score_of_labels(self, score, weights):
        for K in (1, 4, 20):
            check_against_scikit_learn(some_rows(K)[0], KNeighborsClassifier(K, weights=weights), score)

    @pytest.mark.parametrize("score", NUMBER_SCORES, ids=name_of)
    @pytest.mark.parametrize("weights", WEIGHTS)
    def test_every_score_of_numbers(self, score, weights):
        (X, _, X_test, _), _ = some_rows(2)
        data = X, X[:, 0] - X[:, 1] ** 2, X_test, X_test[:, 0]
        for K in (1, 4, 20):
            check_against_scikit_learn(data, KNeighborsRegressor(K, weights=weights, p=1), score)

    @pytest.mark.parametrize(
        "load", [load_iris, load_wine, load_breast_cancer, load_digits, load_diabetes], ids=lambda f: f.__name__
    )
    @pytest.mark.parametrize("weights", WEIGHTS)
    def test_real_rows(self, load, weights):
        X, y = load(return_X_y=True)
        X = X + np.random.RandomState(0).normal(scale=1e-3, size=X.shape)  # no equal distances
        step = len(y) // 60
        data = X[::step], y[::step], X[1 : 5 * step : step], y[1 : 5 * step : step]
        kind = KNeighborsRegressor if load is load_diabetes else KNeighborsClassifier
        check_against_scikit_learn(data, kind(4, weights=weights), tolerance=1e-8)

    @pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
    def test_values_from_end_to_end(self, kind):
        (X, y, X_test, y_test), _ = some_rows(6)
        data = (X, y, X_test, y_test) if kind is KNeighborsClassifier else (X, X[:, 0], X_test, X_test[:, 1])
        for weights in WEIGHTS:
            model = kind(3, weights=weights)
            compiled, asis = (
                ls.value(*data, model=m, support=Nearest(5), per_test=True) for m in (model, Estimator(model))
            )
            assert "compiled" in compiled.cost.trainer
            assert "scikit-learn fit" in asis.cost.trainer
            np.testing.assert_allclose(compiled.values, asis.values, atol=1e-10)
            np.testing.assert_allclose(compiled.per_test.toarray(), asis.per_test.toarray(), atol=1e-10)


def thinned(table):
    """A table of mostly zeros."""
    return np.where(np.abs(table) > 0.7, table, 0.0)


class TestKindsOfRows:
    """The same rows in any form."""

    def check_same(self, form, model, tolerance=1e-12):
        """Values of rows in another form are those of the rows in a plain array."""
        (X, y, X_test, y_test), support = some_rows(n_features=12)
        X, X_test = thinned(X), thinned(X_test)
        expected = ls.value(X, y, X_test, y_test, model=model, support=support).values
        for method in ("exact", "subset-centric"):
            found = ls.value(form(X), y, form(X_test), y_test, model=model, support=support, method=method)
            assert "compiled" in found.cost.trainer
            np.testing.assert_allclose(found.values, expected, atol=tolerance)

    @pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
    @pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.coo_matrix])
    def test_sparse_rows(self, form, metric):
        self.check_same(form, KNeighborsClassifier(3, metric=metric, weights="distance"), tolerance=1e-10)

    def test_sparse_rows_are_valued_as_by_scikit_learn(self):
        (X, y, X_test, y_test), _ = some_rows(n_features=12)
        data = sparse.csr_matrix(thinned(X)), y, sparse.csr_matrix(thinned(X_test)), y_test
        check_against_scikit_learn(data, KNeighborsClassifier(3))

    @pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
    def test_sparse_rows_with_indices_in_any_order(self, metric):
        def reversed_csr(table):
            rows = [np.flatnonzero(row)[::-1] for row in table]
            data = np.concatenate([row[i] for row, i in zip(table, rows, strict=True)])
            indptr = np.cumsum([0] + [len(i) for i in rows])
            return sparse.csr_matrix((data, np.concatenate(rows), indptr), shape=table.shape)

        assert not reversed_csr(some_rows()[0][0]).has_sorted_indices
        self.check_same(reversed_csr, KNeighborsClassifier(3, metric=metric))

    def test_sparse_rows_with_entries_in_parts(self):
        """An entry given twice is the sum of both."""

        def in_two_parts(table):
            n, m = table.shape
            data = np.repeat(table.ravel() / 2, 2)
            return sparse.csr_matrix((data, np.repeat(np.tile(range(m), n), 2), 2 * m * np.arange(n + 1)), (n, m))

        assert (in_two_parts(np.eye(3)).toarray() == np.eye(3)).all()
        self.check_same(in_two_parts, KNeighborsClassifier(3))

    def test_sparse_rows_with_long_indices_and_zeros_that_are_kept(self):
        def long_csr(table):
            n, m = table.shape
            out = sparse.csr_matrix((table.ravel(), np.tile(range(m), n), m * np.arange(n + 1)), (n, m))
            out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
            return out

        self.check_same(long_csr, KNeighborsClassifier(3))

    @pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i1", "u1", "i4", "i8", "u8"])
    @pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
    def test_numbers_of_any_kind(self, kind, metric):
        rng = np.random.default_rng(3)
        X, X_test = rng.integers(1, 100, size=(30, 5)), rng.integers(1, 100, size=(4, 5))
        y, y_test = rng.integers(3, size=30), rng.integers(3, size=4)
        support = Given([rng.choice(30, size=7, replace=False) for _ in range(4)])
        model = KNeighborsClassifier(3, metric=metric, weights="distance")
        expected = ls.value(X.astype("f8"), y, X_test.astype("f8"), y_test, model=model, support=support).values
        for method in ("exact", "subset-centric"):
            rows = X.astype(kind), y, X_test.astype(kind), y_test
            found = ls.value(*rows, model=model, support=support, method=method)
            np.testing.assert_allclose(found.values, expected, atol=1e-12)
            assert "compiled" in found.cost.trainer

    def test_single_precision_is_measured_in_double(self):
        """Differences that vanish in single precision put the rows in order."""
        X = np.array([[1.0], [1.0 + 2e-7], [1.0 + 4e-7], [3.0]], dtype=np.float32)
        assert len(np.unique(X)) == 4
        y = np.array([0, 1, 0, 1])
        single = X, y, np.array([[1e4]], dtype=np.float32), np.array([1])
        double = X.astype(float), y, np.array([[1e4]]), np.array([1])
        expected = by_definition(double, [range(4)], 1, "uniform", "confidence")[0]
        for data in (single, double):
            for method in ("exact", "subset-centric"):
                v = ls.value(*data, model=KNeighborsClassifier(1), support=Everything(), method=method)
                np.testing.assert_allclose(v.values, expected, atol=1e-14)

    def test_rows_far_from_the_origin(self):
        (X, y, X_test, y_test), support = some_rows()
        X, X_test = (np.round(table * 2**10) / 2**10 for table in (X, X_test))  # the sums below are exact
        near = ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(3), support=support)
        for method in ("exact", "subset-centric"):
            rows = X + 2.0**30, y, X_test + 2.0**30, y_test
            far = ls.value(*rows, model=KNeighborsClassifier(3), support=support, method=method)
            np.testing.assert_allclose(far.values, near.values, atol=1e-12)

    def test_frames_lists_and_arrays_of_any_layout(self):
        columns = [f"f{i}" for i in range(12)]
        forms = [
            lambda table: pd.DataFrame(table, columns=columns),
            lambda table: pd.DataFrame(table, columns=columns).astype({"f3": "float32", "f5": "Float64"}),
            np.ndarray.tolist,
            np.asfortranarray,
            lambda table: np.hstack([table, table])[:, :12],
            lambda table: np.repeat(table, 2, axis=0)[::2],
            lambda table: table.astype(">f8"),
        ]
        for form in forms:
            self.check_same(form, KNeighborsClassifier(3), tolerance=1e-6 if form is forms[1] else 1e-12)

    def test_the_index_of_a_frame_is_kept(self):
        (X, y, X_test, y_test), support = some_rows()
        index = [f"row {i}" for i in range(40)]
        v = ls.value(pd.DataFrame(X, index=index), y, X_test, y_test, model=KNeighborsClassifier(3), support=support)
        assert v.to_frame().index.tolist() == index

    def test_read_only_rows(self):
        (X, y, X_test, y_test), support = some_rows()
        expected = ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(3), support=support).values
        for array in (X, y, X_test, y_test):
            array.setflags(write=False)
        found = ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(3), support=support)
        assert (found.values == expected).all()

    def test_distances_too_small_to_have_an_inverse_count_as_zero(self):
        """As in scikit-learn: a row whose weight would be infinite silences the others."""
        X, y = np.array([[0.0], [1e-310], [1.0], [2.0]]), np.array([0, 1, 1, 0])
        model = KNeighborsClassifier(3, weights="distance", metric="manhattan")
        values = [
            ls.value(X, y, [[2e-310]], [1], model=m, support=Everything(), method=method).values
            for m, method in ((Estimator(model), "exact"), (model, "exact"), (model, "subset-centric"))
        ]
        np.testing.assert_allclose(values[1], values[0], atol=1e-12)
        np.testing.assert_allclose(values[2], values[0], atol=1e-12)

    @pytest.mark.parametrize("K", [10**6, 10**12, sys.maxsize])
    def test_all_rows_vote_where_k_is_beyond_any_number_of_rows(self, K):
        data, support = some_rows()
        expected = ls.value(*data, model=KNeighborsClassifier(8), support=support).values
        for method in ("exact", "subset-centric"):
            found = ls.value(*data, model=KNeighborsClassifier(K), support=support, method=method)
            np.testing.assert_allclose(found.values, expected, atol=1e-12)


class TestTies:
    def test_equally_near_rows_count_in_the_order_of_their_index(self):
        X, y = np.array([[1.0], [-1.0], [1.0], [5.0]]), np.array([0, 1, 1, 1])
        v = ls.value(X, y, [[0.0]], [0], model=KNeighborsClassifier(1), support=Everything())
        assert v.values[0] > 0.4
        turned = ls.value(X[[1, 0, 2, 3]], y[[1, 0, 2, 3]], [[0.0]], [0], model=KNeighborsClassifier(1),
                          support=Everything())  # fmt: skip
        assert turned.values[1] < v.values[0]
        np.testing.assert_allclose(
            turned.values, by_definition((X[[1, 0, 2, 3]], y[[1, 0, 2, 3]], np.zeros((1, 1)), np.array([0])),
                                         [range(4)], 1, "uniform", "confidence")[0], atol=1e-12,
        )  # fmt: skip

    def test_equal_rows_are_worth_the_same_to_the_last_place_only_where_all_vote(self):
        """With fewer votes than rows, the first of two equal rows is asked first."""
        X, y = np.array([[1.0], [1.0], [2.0]]), np.array([0, 0, 1])
        all_vote = ls.value(X, y, [[0.0]], [0], model=KNeighborsClassifier(3), support=Everything()).values
        one_votes = ls.value(X, y, [[0.0]], [0], model=KNeighborsClassifier(1), support=Everything()).values
        assert all_vote[0] == pytest.approx(all_vote[1], abs=1e-15)
        assert one_votes[0] == pytest.approx(one_votes[1], abs=1e-15)  # same label: either says the same

    @pytest.mark.parametrize("metric", ["euclidean", "manhattan", "sqeuclidean", "cosine", "correlation", "canberra"])
    @pytest.mark.parametrize("weights", WEIGHTS)
    def test_equal_rows_are_equally_near_whatever_is_measured_with_them(self, metric, weights):
        """Sixty different rows, each several times; the test rows are among them."""
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(60, 64))
        data = rows[rng.integers(60, size=300)], rng.integers(3, size=300), rows[:40], rng.integers(3, size=40)
        model = KNeighborsClassifier(3, metric=metric, weights=weights)
        solved, trained = (
            ls.value(*data, model=model, support=Nearest(8), method=method) for method in ("exact", "subset-centric")
        )
        np.testing.assert_allclose(solved.values, trained.values, atol=1e-11)

    def test_equal_votes_go_to_the_first_class(self):
        X, y = np.array([[1.0], [2.0]]), np.array(["b", "a"])
        rows = X, y, [[0.0]], ["a"]
        v = ls.value(*rows, model=KNeighborsClassifier(2), support=Everything(), score="accuracy")
        # Nothing 1/2, {b} 0, {a} 1, both: one vote each, "a" comes first.
        np.testing.assert_allclose(v.values, [(-1 / 2 + 0) / 2, (1 / 2 + 1) / 2], atol=1e-15)

    def test_sampled_runs_break_ties_as_exact_ones_do(self):
        """Digits without noise, at integer distances: a budget for every subset gives the exact values."""
        X, y = load_digits(return_X_y=True)
        X = (X[:60] > 8).astype(int)[:, 18:30]
        data = X[:50], y[:50], X[50:], y[50:60]
        arguments = {"model": KNeighborsClassifier(3, weights="distance"), "support": Nearest(9), "score": "accuracy"}
        exact = ls.value(*data, **arguments)
        trained = ls.value(*data, **arguments, method="sample", budget=10**6)
        assert trained.stopped == "every subset trained"
        np.testing.assert_allclose(trained.values, exact.values, atol=1e-12)


class TestRuns:
    X, y = load_digits(return_X_y=True)
    data = X[:150], y[:150], X[150:170], y[150:170]
    model = KNeighborsClassifier(5)

    def test_sampled_values_are_near_the_exact_ones(self):
        exact = ls.value(*self.data, model=self.model, support=Nearest(25))
        v = ls.value(*self.data, model=self.model, support=Nearest(25), method="sample", tol=0.05)
        assert "compiled" in v.cost.trainer
        assert v.relative_error <= 0.05
        assert np.linalg.norm(v.values - exact.values) / np.linalg.norm(exact.values) < 0.12
        assert (exact.stderr == 0).all()
        inside = np.abs(v.values - exact.values) <= 3 * v.stderr + 1e-12
        assert inside.mean() > 0.95

    @pytest.mark.parametrize("method", ["auto", "exact", "sample", "pivot", "subset-centric", "baseline"])
    def test_the_same_bits_for_any_number_of_threads(self, method):
        size, settings = (6, {}) if method in ("subset-centric", "baseline") else (20, {})
        if method in ("sample", "pivot"):
            settings = {"budget": 3000}
        model = KNeighborsClassifier(3, weights="distance")
        runs = [
            ls.value(*self.data, model=model, support=Nearest(size), method=method, n_jobs=n_jobs, seed=3, **settings)
            for n_jobs in (1, 2, 3, None, -1)
        ]
        for run in runs[1:]:
            assert (run.values == runs[0].values).all()
            assert (run.stderr == runs[0].stderr).all()
            assert run.cost.trainings == runs[0].cost.trainings

    def test_the_same_values_in_blocks(self):
        problem, settings = pose(*self.data, model=self.model, support=Nearest(20)), read_limits("sample", 2000)
        blocked = KNNTrainer(self.model, problem.task, max_distances=400)
        one, two = (play(problem.graph, Executor(trainer), settings) for trainer in (problem.trainer, blocked))
        assert (one.values == two.values).all()

    @pytest.mark.parametrize("method", ["sample", "subset-centric", "baseline"])
    def test_a_trained_run_is_that_of_scikit_learn(self, method):
        rng = np.random.RandomState(0)
        data = (self.X[:60] + rng.normal(scale=1e-3, size=(60, 64)), self.y[:60], self.X[60:64], self.y[60:64])
        settings = {"support": Nearest(5), "method": method, **({"budget": 40} if method == "sample" else {})}
        compiled = ls.value(*data, model=KNeighborsClassifier(3), **settings)
        asis = ls.value(*data, model=Estimator(KNeighborsClassifier(3)), **settings)
        np.testing.assert_allclose(compiled.values, asis.values, atol=1e-9)
        assert compiled.cost.trainings == asis.cost.trainings
        assert compiled.cost.trivial == asis.cost.trivial
        assert (compiled.method, compiled.stopped) == (asis.method, asis.stopped)

    def test_the_way_back_to_scikit_learn_by_environment(self, monkeypatch):
        rng = np.random.RandomState(0)
        data = (self.X[:60] + rng.normal(scale=1e-3, size=(60, 64)), self.y[:60], self.X[60:62], self.y[60:62])
        compiled = ls.value(*data, model=KNeighborsClassifier(3), support=Nearest(6))
        monkeypatch.setenv("LOCALSHAPLEY_COMPILED", "0")
        asis = ls.value(*data, model=KNeighborsClassifier(3), support=Nearest(6))
        assert "scikit-learn fit" in asis.cost.trainer
        np.testing.assert_allclose(compiled.values, asis.values, atol=1e-9)

    def test_nothing_is_left_to_chance_whatever_the_tolerance(self):
        v = ls.value(*self.data, model=self.model, support=Nearest(60), tol=0.5)
        assert v.method == "exact"
        assert (v.stderr == 0).all()
        assert BY_CLASSES in v.stopped

    def test_the_cost_is_the_number_of_classes_and_no_budget_is_touched(self):
        model = KNeighborsClassifier(3, weights="distance")
        arguments = {"model": model, "support": Nearest(16)}
        v = ls.value(*self.data, **arguments)
        classes = 20 * sum(comb(16, k) for k in range(4))
        assert v.cost.draws == v.cost.distinct == classes
        assert v.cost.reused == 0
        assert v.cost.trainings == 0
        for method in ("auto", "exact"):
            same = ls.value(*self.data, **arguments, method=method, budget=1)
            assert (same.values == v.values).all()

    def test_a_budget_at_the_number_of_distinct_subsets_is_exact_too(self):
        """Tiny supports have fewer subsets than there are classes by the count; no budget may be wasted on that."""
        arguments = {"model": self.model, "support": Nearest(2)}
        exact = ls.value(*self.data, **arguments)
        distinct = ls.plan(*self.data, **arguments).levels.lsmr
        assert exact.cost.draws <= 20 * 2**2
        again = ls.value(*self.data, **arguments, budget=distinct)
        np.testing.assert_allclose(again.values, exact.values, atol=1e-12)
        assert (again.stderr == 0).all()

    def test_a_closed_form_that_would_take_longer_than_a_time_limit_is_not_taken(self):
        """7e8 classes may take more than 20 s, by their number alone."""
        X, y = load_diabetes(return_X_y=True)
        data = X[:200], y[:200], X[200:205], y[200:205]
        model = KNeighborsRegressor(6, weights="distance")
        assert ls.plan(*data, model=model, support=Nearest(70)).classes > 7e8
        v = ls.value(*data, model=model, support=Nearest(70), max_seconds=20, budget=2000)
        assert v.chosen.startswith("sampled")

    def test_a_score_that_no_class_shares_is_refused_where_there_are_too_many_subsets(self):
        (X, _, X_test, _), _ = some_rows()
        data = X, X[:, 0], X_test, X_test[:, 0]
        with pytest.raises(ls.TooLargeError, match="method='exact' would train"):
            ls.value(*data, model=KNeighborsRegressor(3), support=Everything(), score=cut_error, method="exact")

    def test_progress_counts_classes(self):
        seen = []
        v = ls.value(
            *self.data, model=self.model, support=Nearest(30), progress=lambda done, total: seen.append((done, total))
        )
        assert seen[-1] == (v.cost.draws, v.cost.draws)

    def test_the_result_says_how_it_was_found(self):
        v = ls.value(*self.data, model=self.model, support=Nearest(30))
        assert v.cost.trainer == "KNeighborsClassifier (compiled)"
        assert v.stopped == "3,600 equivalence classes cover all 2.1e10 coalitions"
        assert v.notes == []
        assert (v.support_sizes == 30).all()
        assert v.n_tests.sum() == 600

    def test_per_test_values_have_the_places_of_the_supports(self):
        v = ls.value(*self.data, model=self.model, support=Nearest(12), per_test=True)
        assert v.per_test.shape == (20, 150)
        np.testing.assert_allclose(v.per_test.sum(axis=0), v.values, atol=1e-13)
        alone = ls.value(*self.data[:2], self.X[[153]], self.y[[153]], model=self.model, support=Nearest(12))
        assert (alone.values == v.per_test.toarray()[3]).all()

    def test_the_plan_tells_what_the_run_takes(self):
        arguments = {"model": self.model, "support": Nearest(30)}
        p, v = ls.plan(*self.data, **arguments), ls.value(*self.data, **arguments)
        assert p.trainer == v.cost.trainer
        assert p.support_sizes.tolist() == v.support_sizes.tolist()
        assert p.levels.subset_centric == 20 * 2**30
        assert p.seconds_per_training > 0
        assert v.cost.draws < p.levels.lsmr / 1000
        assert f"{v.cost.draws:,}" in repr(p)

    def test_other_arrays_and_settings_need_no_other_code(self):
        """Compiling takes many seconds: every kernel has one signature (distances: two), whatever the user gives."""

        class Hit(scoring.Score):
            name, task, source = "hit", "classifier", "label"

            def __call__(self, y, prediction):
                return (scoring.Accuracy()(y, prediction) > 0.5).astype(int)

        X, y, X_test, y_test = self.data
        csr = sparse.csr_matrix(X), y, sparse.csr_matrix(X_test), y_test
        single = X.astype(np.float32), y.astype(np.int8), np.asfortranarray(X_test, dtype=np.float32), y_test
        for data in (csr, single):
            for model in (KNeighborsClassifier(np.int32(3)), KNeighborsRegressor(2, weights="distance", p=1)):
                for method in ("exact", "subset-centric"):
                    ls.value(*data, model=model, support=Nearest(5), method=method, empty=0)
        ls.value(
            *single, model=KNeighborsClassifier(2), support=Nearest(5), score=scoring.LogLoss(floor=np.float32(0.1))
        )
        ls.value(*single, model=KNeighborsClassifier(2), support=Nearest(5), score=Hit())
        for data in (csr, single):
            ls.value(*data, model=KNeighborsRegressor(9), support=Nearest(20), method="exact")
        assert len(square_supports.signatures) == 1
        assert len(count_supports.signatures) == len(enumerate_supports.signatures) == 1
        assert len(kernels.predict_neighbours.signatures) == 1
        assert len(kernels.euclidean_pairs.signatures) <= 2

    def test_supports_that_overlap_in_nothing_and_in_everything(self):
        everything = ls.value(*self.data, model=self.model, support=Everything(), per_test=True)
        given = ls.value(*self.data, model=self.model, support=Given([range(150)] * 20))
        assert (everything.values == given.values).all()
        full = self.model.fit(*self.data[:2]).predict_proba(self.data[2])[range(20), self.data[3]]
        np.testing.assert_allclose(everything.per_test.sum(axis=1), full - 1 / 10, atol=1e-9)

    def test_the_locality_of_all_rows_has_no_gap(self):
        gap = ls.locality_gap(*self.data, model=self.model, support=Everything(), n_tests=2, budget=4000)
        assert gap.gap == 0
        some = ls.locality_gap(*self.data, model=self.model, support=Nearest(6), n_tests=5, budget=4000)
        assert some.gap > 0
