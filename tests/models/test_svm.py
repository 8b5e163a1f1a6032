"""Compiled support vector machines against plain Python, and against scikit-learn on real data."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from math import exp

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import localshapley as ls
import naive_svm
from doors import door
from localshapley.coalitions.batch import Coalitions
from localshapley.kernels import gram, smo
from localshapley.models import support_vectors
from localshapley.models.estimator import predict
from localshapley.models.support_vectors import SVCTrainer, SVRTrainer
from localshapley.models.task import Task
from localshapley.scoring import SCORES
from localshapley.supports import Given

iris, wine, digits, diabetes, cancer = (
    load(return_X_y=True) for load in (load_iris, load_wine, load_digits, load_diabetes, load_breast_cancer)
)
DATA = {
    "iris": iris,
    "wine": wine,
    "digits": digits,
    "diabetes": diabetes,
    "cancer": cancer,
    "standard cancer": (StandardScaler().fit_transform(cancer[0]), cancer[1]),
}


class Prediction:
    """A score that hands predictions through, to see all of them."""

    def __init__(self, source):
        self.source = source

    def __call__(self, y, prediction):
        return prediction


def make_task(X, y, X_test, source):
    classes, codes = (None, None) if source == "number" else np.unique(y, return_inverse=True)
    return Task(X, np.asarray(y), X_test, np.zeros(X_test.shape[0], dtype=int), classes, codes, Prediction(source))


def make_trainer(model, task, n_jobs=1, **limits):
    return (SVCTrainer if is_classifier(model) else SVRTrainer)(model, task, n_jobs, **limits)


def draw(y, sizes, n, n_tests, seed=0, scored=3):
    """`n` coalitions of each size, each with a few test rows; with two classes or more where `y` has classes."""
    rng = np.random.default_rng(seed)
    coalitions = []
    for size in np.repeat(sizes, n):
        rows = rng.choice(len(y), size, replace=False)
        while y.dtype.kind in "iu" and size > 1 and len(np.unique(y[rows])) < 2:
            rows = rng.choice(len(y), size, replace=False)
        coalitions.append(rows)
    return Coalitions.from_lists(coalitions, [rng.choice(n_tests, scored, replace=False) for _ in coalitions])


def fit_each(model, task, coalitions, columns=False):
    """What scikit-learn predicts, coalition by coalition."""
    out = []
    for c in range(len(coalitions)):
        rows, tests = coalitions.coalition(c), coalitions.tests_of(c)
        X, X_test = task.X[rows], task.X_test[tests]
        if columns:
            X, X_test = X[:, rows], X_test[:, rows]
        out.append(predict(clone(model).fit(X, task.y[rows]), task, X_test))
    return np.concatenate(out)


def lattice(rng, n, n_features, n_values):
    """Rows of few distinct values, so that rows, distances and decisions are often equal; one column is constant."""
    X = rng.integers(n_values, size=(n, n_features)).astype(float)
    X[:, -1] = 1.0
    return X


class TestParts:
    """The small pieces of the kernels."""

    def test_exponentials_are_right_but_for_the_last_bits(self):
        rng = np.random.default_rng(0)
        numbers = np.concatenate([[0.0, -0.0, -1e-300, -700.0], -rng.exponential(1, 5000), -700 * rng.random(5000)])
        found = numbers.copy()
        door(gram.exponentiate)(found, len(found))
        expected = np.array([exp(x) for x in numbers])
        assert np.abs(found / expected - 1).max() <= 4.5e-16
        assert (found[:3] == 1).all()

    def test_exponentials_vanish_where_they_should_and_never_exceed_one(self):
        found = np.array([-746.0, -1e4, -np.inf, 1e-9, 50.0])
        door(gram.exponentiate)(found, len(found))
        assert found.tolist() == [0, 0, 0, 1, 1]

    def test_ranks_order_numbers_of_either_sign(self):
        rng = np.random.default_rng(1)
        numbers = np.concatenate([rng.normal(size=200) * 10.0 ** rng.integers(-300, 300, 200), [-np.inf, 0.0, np.inf]])
        ranks = np.array([door(smo.rank)(x) for x in numbers])
        assert (np.argsort(ranks) == np.argsort(numbers)).all()

    @pytest.mark.parametrize(("n_features", "shift"), [(1, 0.0), (3, 0.1), (30, 1e6), (64, -5.0)])
    def test_exact_variances_have_the_bits_of_numpy(self, n_features, shift):
        rng = np.random.default_rng(2)
        X = rng.normal(size=(300, n_features)) + shift
        coalitions = draw(rng.normal(size=300), [1, 2, 3, 7, 8, 9, 16, 17, 40, 129, 300], 3, 1, scored=1)
        found = gram.exact_variances(coalitions.arrays, np.arange(len(coalitions)), X)
        assert found.tolist() == [X[coalitions.coalition(c)].var() for c in range(len(coalitions))]

    @pytest.mark.parametrize("shift", [0.0, 1e6])
    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
    def test_fast_variances_are_right_where_the_mean_is_far_from_zero(self, shift, kind):
        rng = np.random.default_rng(3)
        X = np.where(rng.random((60, 200)) < 0.3, rng.normal(size=(60, 200)) + shift, 0.0)
        coalitions = draw(rng.normal(size=60), [1, 2, 5, 30], 10, 1, scored=1)
        todo = np.arange(len(coalitions))
        found = np.empty(len(todo))
        gram.fast_variances(coalitions.arrays, todo, *support_vectors._moments(kind(X)), found)
        expected = [X[coalitions.coalition(c)].var() for c in todo]
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    @pytest.mark.parametrize("features", [64, 0])
    def test_no_variance_means_gamma_one(self, features):
        X = np.full((4, 3), 0.25)
        task = make_task(X, np.array([0, 1, 0, 1]), X, "label")
        trainer = make_trainer(SVC(), task, exact_features=features)
        coalitions = Coalitions.from_lists([[0, 1], [0, 1, 2, 3]], [[0], [0]])
        assert trainer._gammas(coalitions, np.arange(2)).tolist() == [1.0, 1.0]

    @pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
    def test_equal_sparse_rows_are_learnt_as_dense_ones(self, kernel):
        # Of these, scikit-learn makes a variance below 0 where they are sparse, and refuses them.
        X, y, X_test = np.full((3, 1), 5.0), np.array([1.0, 2.0, 4.0]), np.array([[2.0]])
        task = make_task(sparse.csr_array(X), y, sparse.csr_array(X_test), "number")
        found = make_trainer(SVR(kernel=kernel), task).evaluate(Coalitions.from_lists([[0, 1, 2]], [[0]]))
        np.testing.assert_allclose(np.ravel(found), SVR(kernel=kernel).fit(X, y).predict(X_test))


TWINS = {
    "rbf": SVC(),
    "rbf, gamma given": SVC(gamma=0.3, C=10),
    "rbf, many at the bound": SVC(C=0.05),
    "linear": SVC(kernel="linear", gamma="auto"),
    "linear, few at the bound": SVC(kernel="linear", C=50),
    "poly": SVC(kernel="poly"),
    "poly, gamma given": SVC(kernel="poly", degree=2, gamma=0.5, coef0=1.0, C=0.3),
    "sigmoid": SVC(kernel="sigmoid"),
    "auto": SVC(gamma="auto", tol=0.2),
    "no shrinking": SVC(shrinking=False, tol=1e-5),
    "regression": SVR(),
    "regression, narrow": SVR(epsilon=0.0, C=20),
    "regression, wide": SVR(epsilon=0.7, kernel="linear"),
    "regression, poly": SVR(kernel="poly", gamma="auto", C=0.5),
    "regression, no shrinking": SVR(C=100, shrinking=False, tol=1e-4),
}


def twin_predictions(model, X, y, coalitions, sources):
    """Predictions of the slow twin in each form."""
    common = {"C": model.C, "tol": model.tol, "shrinking": model.shrinking}
    out = {source: [] for source in sources}
    for c in range(len(coalitions)):
        rows, tests = coalitions.coalition(c), coalitions.tests_of(c)
        setting = (model.kernel, naive_svm.gamma_value(model.gamma, X[rows]), model.degree, model.coef0)
        K = naive_svm.values_between(X[rows], X[rows], *setting)
        K_test = naive_svm.values_between(X[tests], X[rows], *setting)
        if not is_classifier(model):
            out["number"] += naive_svm.svr_predictions(K, y[rows], K_test, epsilon=model.epsilon, **common)
            continue
        classes, decisions = naive_svm.svc_decisions(K, y[rows], K_test, **common)
        for source in sources:
            out[source] += [
                naive_svm.svc_prediction(classes, decisions, t, y.max() + 1, source) for t in range(len(tests))
            ]
    return {source: np.array(predictions) for source, predictions in out.items()}


@pytest.mark.parametrize("case", TWINS)
@pytest.mark.parametrize("n_values", [2, 4], ids=["ties", "fewer ties"])
def test_machines_are_those_of_the_slow_twin(case, n_values):
    model = TWINS[case]
    rng = np.random.default_rng([n_values, len(case)])
    X = lattice(rng, 60, 3, n_values)
    y = rng.integers(3, size=60) if is_classifier(model) else rng.integers(4, size=60) / 2
    sizes = [2, 3, 4, 6, 9, 14] if is_classifier(model) else [1, 2, 3, 5, 8]
    coalitions = draw(y, sizes, 20, 60, seed=n_values)
    sources = ("label", "margin", "proba") if is_classifier(model) else ("number",)
    for source, expected in twin_predictions(model, X, y, coalitions, sources).items():
        found = make_trainer(model, make_task(X, y, X, source)).evaluate(coalitions)
        np.testing.assert_allclose(found, expected, atol=1e-9)
        if source != "label":
            assert len(np.unique(found.round(6))) >= 10


SKLEARN = [
    (SVC(), "standard cancer", [4, 12, 40, 120]),
    (SVC(), "cancer", [2, 5, 60]),
    (SVC(C=100, gamma=0.02), "standard cancer", [4, 30, 80]),
    (SVC(kernel="linear"), "standard cancer", [4, 30, 80]),
    (SVC(kernel="poly"), "standard cancer", [4, 10, 80]),
    (SVC(kernel="poly", degree=2, coef0=0.5), "wine", [3, 8, 30]),
    (SVC(kernel="sigmoid", C=3), "iris", [3, 8, 30]),
    (SVC(), "iris", [2, 3, 10, 50]),
    (SVC(kernel="linear", C=100), "iris", [2, 3, 10, 50]),
    (SVC(C=1000, tol=1e-5), "iris", [3, 10, 50]),
    (SVC(gamma="auto"), "digits", [2, 10, 100]),
    (SVC(), "digits", [2, 10, 40, 100]),
    (SVC(tol=0.5), "wine", [2, 10, 40]),
    (SVR(), "diabetes", [1, 2, 10, 60]),
    (SVR(C=100), "diabetes", [1, 2, 10, 40]),
    (SVR(C=1000, epsilon=5.0), "diabetes", [2, 10, 40]),
    (SVR(kernel="linear", C=1000), "diabetes", [2, 10, 40]),
    (SVR(kernel="poly", gamma=20.0, C=10), "diabetes", [2, 10, 40]),
    (SVR(shrinking=False, epsilon=0), "diabetes", [2, 10, 40]),
]


@pytest.mark.parametrize(("model", "data", "sizes"), SKLEARN, ids=lambda value: str(value))
def test_predictions_are_those_of_scikit_learn(model, data, sizes):
    X, y = DATA[data]
    coalitions = draw(y, sizes, 12, len(y), seed=len(str(model)), scored=5)
    for source in ("label", "margin") if is_classifier(model) else ("number",):
        task = make_task(X, y, X, source)
        found, expected = make_trainer(model, task).evaluate(coalitions), fit_each(model, task, coalitions)
        if source == "label":
            assert (found.argmax(axis=1) == expected.argmax(axis=1)).all()
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)


def test_a_thousand_default_machines_are_those_of_scikit_learn():
    X, y = DATA["standard cancer"]
    coalitions = draw(y, [2, 3, 5, 8, 13, 21, 34, 55], 125, len(y), seed=5, scored=2)
    task = make_task(X, y, X, "margin")
    difference = np.abs(make_trainer(SVC(), task, 2).evaluate(coalitions) - fit_each(SVC(), task, coalitions))
    assert difference.max() < 1e-12


@pytest.mark.parametrize(
    "model", [SVC(), SVC(kernel="linear", C=5), SVC(gamma="auto", C=0.2), SVR(C=30), SVR(epsilon=0)]
)
def test_ties_go_as_in_scikit_learn(model):
    rng = np.random.default_rng(8)
    X = lattice(rng, 80, 3, 3)
    y = rng.integers(3, size=80) if is_classifier(model) else rng.integers(4, size=80).astype(float)
    coalitions = draw(y, [2, 3, 4, 6, 10, 20], 30, 80, seed=9)
    for source in ("label", "margin") if is_classifier(model) else ("number",):
        task = make_task(X, y, X, source)
        found, expected = make_trainer(model, task).evaluate(coalitions), fit_each(model, task, coalitions)
        if source == "label":
            assert (found.argmax(axis=1) == expected.argmax(axis=1)).all()
        else:
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
        if source == "margin":
            best = np.sort(found, axis=1)
            assert (best[:, -1] == best[:, -2]).any()


def test_the_same_row_in_two_classes_is_undecided():
    X, y = np.array([[1.0, 2.0], [1.0, 2.0], [5.0, 5.0]]), np.array([0, 1, 0])
    coalitions = Coalitions.from_lists([[0, 1]], [[0, 1, 2]])
    found = make_trainer(SVC(), make_task(X, y, X, "proba")).evaluate(coalitions)
    np.testing.assert_allclose(found, 0.5, atol=1e-12)
    labels = make_trainer(SVC(), make_task(X, y, X, "label")).evaluate(coalitions).argmax(axis=1)
    assert labels.tolist() == SVC().fit(X[:2], y[:2]).predict(X).tolist()


class TestAbsentClasses:
    X, y = iris[0][::3], iris[1][::3]
    coalitions = draw(iris[1][::3], [2, 2, 3, 4], 20, 50)

    def predictions(self, source):
        return make_trainer(SVC(), make_task(self.X, self.y, self.X, source)).evaluate(self.coalitions)

    def absent(self):
        """Whether a coalition lacks a class, for each class and score."""
        out = []
        for c in range(len(self.coalitions)):
            lacks = ~np.isin(np.arange(3), self.y[self.coalitions.coalition(c)])
            out += [lacks] * len(self.coalitions.tests_of(c))
        return np.array(out)

    def test_they_have_probability_zero(self):
        found, absent = self.predictions("proba"), self.absent()
        assert absent.any()
        assert (found[absent] == 0).all()
        assert (found[~absent] > 0).all()
        np.testing.assert_allclose(found.sum(axis=1), 1)

    def test_they_are_no_better_than_the_worst_that_is_there(self):
        found, absent = self.predictions("margin"), self.absent()
        worst = np.where(absent, np.inf, found).min(axis=1)
        assert (found[absent] == np.broadcast_to(worst[:, None], found.shape)[absent]).all()

    def test_they_are_never_the_label(self):
        labels, absent = self.predictions("label").argmax(axis=1), self.absent()
        assert not absent[np.arange(len(labels)), labels].any()


IRIS = (iris[0][::5], iris[1][::5], iris[0][[1, 57, 108, 133]], iris[1][[1, 57, 108, 133]])
CANCER = (*(part[::12] for part in DATA["standard cancer"]), *(part[[1, 20, 50]] for part in DATA["standard cancer"]))
DIABETES = (diabetes[0][::11], diabetes[1][::11], diabetes[0][1:4], diabetes[1][1:4])


def supports_of(data, n=5, seed=0):
    rng = np.random.default_rng(seed)
    return Given([np.sort(rng.choice(len(data[1]), n, replace=False)) for _ in data[3]])


def half_right(truth, prediction):
    return 1.0 if truth == prediction else 0.25 if abs(truth - prediction) == 1 else 0.0


class TestValues:
    """The whole way, compiled and as it is."""

    def both(self, data, model, score):
        arguments = {"support": supports_of(data), "score": score, "per_test": True}
        compiled = ls.value(*data, model=model, **arguments)
        plain = ls.value(*data, model=ls.models.Estimator(model), **arguments)
        assert "compiled" in compiled.cost.trainer
        assert "compiled" not in plain.cost.trainer
        assert compiled.cost.trivial == plain.cost.trivial
        return compiled.per_test.toarray(), plain.per_test.toarray()

    @pytest.mark.parametrize("score", ["confidence", "accuracy", "margin", "log_loss", half_right])
    @pytest.mark.parametrize("data", [IRIS, CANCER], ids=["three classes", "two classes"])
    def test_classifiers_with_every_score(self, data, score):
        compiled, plain = self.both(data, SVC(C=5), score)
        np.testing.assert_allclose(compiled, plain, atol=1e-10)
        assert np.abs(plain).max() > 0.01

    @pytest.mark.parametrize("score", ["squared_error", "absolute_error", lambda y, p: -(abs(y - p) ** 1.5)])
    def test_regressors_with_every_score(self, score):
        compiled, plain = self.both(DIABETES, SVR(C=50), score)
        np.testing.assert_allclose(compiled, plain, rtol=1e-9, atol=1e-9 * np.abs(plain).max())

    def test_one_decision_for_each_pair_is_taken_where_labels_are_read(self):
        compiled, plain = self.both(IRIS, SVC(decision_function_shape="ovo"), "accuracy")
        np.testing.assert_allclose(compiled, plain, atol=1e-12)

    def test_labels_that_are_text_and_labels_that_no_row_has(self):
        names = np.array(["setosa", "versicolor", "virginica"])
        data = (IRIS[0], names[IRIS[1]], IRIS[2], np.array(["setosa", "versicolor", "unheard-of", "virginica"]))
        with pytest.warns(ls.LocalShapleyWarning, match="unheard-of"):
            compiled, plain = self.both(data, SVC(), "confidence")
        np.testing.assert_allclose(compiled, plain, atol=1e-10)

    def test_the_switch_turns_compiled_training_off(self, monkeypatch):
        monkeypatch.setenv("LOCALSHAPLEY_COMPILED", "0")
        v = ls.value(*IRIS, model=SVC(), support=supports_of(IRIS))
        assert "compiled" not in v.cost.trainer
        monkeypatch.delenv("LOCALSHAPLEY_COMPILED")
        again = ls.value(*IRIS, model=SVC(), support=supports_of(IRIS))
        assert "compiled" in again.cost.trainer
        np.testing.assert_allclose(again.values, v.values, atol=1e-12)

    @pytest.mark.parametrize("n_jobs", [2, 3])
    def test_threads_change_no_bit(self, n_jobs):
        support = supports_of(CANCER, 8)
        one = ls.value(*CANCER, model=SVC(), support=support, score="confidence", n_jobs=1)
        more = ls.value(*CANCER, model=SVC(), support=support, score="confidence", n_jobs=n_jobs)
        assert (one.values == more.values).all()

    def test_a_single_row_is_what_regression_predicts(self):
        _, y, _, y_test = DIABETES
        v = ls.value(*DIABETES, model=SVR(), support=Given([[0], [1], [2]]), per_test=True)
        for t in range(3):
            expected = (y.mean() - y_test[t]) ** 2 - (y[t] - y_test[t]) ** 2
            np.testing.assert_allclose(v.per_test.toarray()[t, t], expected, rtol=1e-12)


class TestBatches:
    X, y = DATA["standard cancer"][0][:150], DATA["standard cancer"][1][:150]
    coalitions = draw(cancer[1][:150], [2, 5, 9, 20, 33], 20, 150, seed=3)

    def trainer(self, model=None, n_jobs=1, **limits):
        return make_trainer(model or SVC(), make_task(self.X, self.y, self.X, "margin"), n_jobs, **limits)

    @pytest.mark.parametrize("model", [SVC(), SVC(gamma=0.01), SVC(kernel="poly")], ids=str)
    def test_rows_that_come_one_by_one_change_no_bit(self, model):
        at_once = self.trainer(model, 2).evaluate(self.coalitions)
        trainer = self.trainer(model)
        cuts = [0, 1, 2, 50, 51, 99, 100]
        parts = [trainer.evaluate(self.coalitions.part(a, b)) for a, b in pairwise(cuts)]
        assert (np.concatenate(parts) == at_once).all()
        order = np.random.default_rng(0).permutation(100)
        mixed = Coalitions.from_lists(
            [self.coalitions.coalition(c) for c in order], [self.coalitions.tests_of(c) for c in order]
        )
        assert (self.trainer(model).evaluate(mixed).reshape(100, 3, 2) == at_once.reshape(100, 3, 2)[order]).all()

    def test_several_callers_at_once_change_no_bit(self):
        at_once = self.trainer().evaluate(self.coalitions)
        trainer = self.trainer()
        with ThreadPoolExecutor(4) as threads:
            parts = list(threads.map(trainer.evaluate, self.coalitions.parts(20)))
        assert (np.concatenate(parts) == at_once).all()

    def test_a_copy_from_another_process_gives_the_same_bits(self):
        trainer = self.trainer()
        expected = trainer.evaluate(self.coalitions)
        message = pickle.dumps(trainer)
        assert len(message) < 3 * self.X.nbytes  # the pairs do not travel
        copy = pickle.loads(message)
        assert (copy.evaluate(self.coalitions) == expected).all()

    @pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid"])
    @pytest.mark.parametrize("gamma", ["scale", 0.02])
    def test_pairs_that_are_not_kept_change_nothing(self, kernel, gamma):
        kept = self.trainer(SVC(kernel=kernel, gamma=gamma)).evaluate(self.coalitions)
        trainer = self.trainer(SVC(kernel=kernel, gamma=gamma), max_pairs=0)
        assert sum(part.nbytes for part in trainer._rows) < 3 * self.X.nbytes
        np.testing.assert_allclose(trainer.evaluate(self.coalitions), kept, atol=1e-12)

    @pytest.mark.parametrize("source", ["label", "margin", "proba"])
    def test_large_coalitions_are_left_to_scikit_learn(self, source, monkeypatch):
        task = make_task(self.X, self.y, self.X, source)
        small = make_trainer(SVC(), task).evaluate(self.coalitions)
        called = []
        monkeypatch.setattr(support_vectors, "clone", lambda model: called.append(1) or clone(model))
        large = make_trainer(SVC(), task, max_rows=10).evaluate(self.coalitions)
        assert len(called) == 40
        if source == "label":
            small, large = small.argmax(axis=1), large.argmax(axis=1)
        np.testing.assert_allclose(large, small, atol=1e-12)

    def test_gamma_from_the_moments_of_rows_is_near_enough(self):
        exact = self.trainer().evaluate(self.coalitions)
        trainer = self.trainer(exact_features=0)
        assert trainer._moments is not None
        np.testing.assert_allclose(trainer.evaluate(self.coalitions), exact, atol=1e-12)


class TestSparse:
    X = np.where(np.random.default_rng(0).random((60, 40)) < 0.2, 1.0 + np.arange(40) % 3, 0.0)
    y = np.random.default_rng(1).integers(3, size=60)

    @pytest.mark.parametrize("model", [SVC(), SVC(gamma=0.1), SVC(kernel="linear"), SVC(kernel="poly", gamma="auto")])
    @pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
    def test_machines_are_those_of_scikit_learn(self, model, kind):
        task = make_task(kind(self.X), self.y, kind(self.X), "margin")
        coalitions = draw(self.y, [2, 5, 12, 40], 8, 60)
        assert SVCTrainer.is_usable_for(model, task)
        found = make_trainer(model, task).evaluate(coalitions)
        np.testing.assert_allclose(found, fit_each(model, task, coalitions), atol=1e-9)

    def test_regression(self):
        model, y = SVR(C=10), self.y + 0.5
        task = make_task(sparse.csr_array(self.X), y, sparse.csr_array(self.X), "number")
        coalitions = draw(y, [1, 5, 12, 40], 8, 60)
        np.testing.assert_allclose(make_trainer(model, task).evaluate(coalitions), fit_each(model, task, coalitions))

    def test_values_are_those_of_dense_rows(self):
        data = self.X, self.y, self.X[:4], self.y[:4]
        support = supports_of(data)
        dense = ls.value(*data, model=SVC(), support=support, score="confidence")
        found = ls.value(
            sparse.csr_array(data[0]), data[1], sparse.csr_array(data[2]), data[3],
            model=SVC(), support=support, score="confidence",
        )  # fmt: skip
        assert "compiled" in found.cost.trainer
        np.testing.assert_allclose(found.values, dense.values, atol=1e-10)

    def test_too_many_sparse_rows_are_left_to_scikit_learn(self):
        task = make_task(sparse.csr_array(self.X), self.y, sparse.csr_array(self.X), "label")
        assert SVCTrainer.is_usable_for(SVC(), task, max_pairs=60 * 119).reason == "a sparse X of 60 rows"
        assert SVCTrainer.is_usable_for(SVC(), task, max_pairs=60 * 120)


class TestPrecomputed:
    def kernels(self, data, n, t):
        X, y = data
        kernel = RBF(3.0) if data is not diabetes else RBF(0.3)
        return kernel(X[:n]), y[:n], kernel(X[n : n + t], X[:n])

    @pytest.mark.parametrize("source", ["label", "margin", "proba"])
    def test_classifiers_select_columns_too(self, source):
        order = np.random.default_rng(0).permutation(150)
        K, y, K_test = self.kernels((iris[0][order], iris[1][order]), 60, 20)
        model, task = SVC(kernel="precomputed", C=3), make_task(K, y, K_test, source)
        coalitions = draw(y, [2, 3, 10, 40], 10, 20)
        assert SVCTrainer.is_usable_for(model, task)
        found, expected = make_trainer(model, task).evaluate(coalitions), fit_each(model, task, coalitions, True)
        if source == "label":
            found, expected = found.argmax(axis=1), expected.argmax(axis=1)
        np.testing.assert_allclose(found, expected, atol=1e-12)

    def test_regressors_select_columns_too(self):
        K, y, K_test = self.kernels(diabetes, 60, 20)
        model, task = SVR(kernel="precomputed", C=300), make_task(K, y, K_test, "number")
        coalitions = draw(y, [1, 2, 10, 40], 10, 20)
        expected = fit_each(model, task, coalitions, True)
        for limits in ({}, {"max_rows": 5}):
            found = make_trainer(model, task, **limits).evaluate(coalitions)
            np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_values_are_those_of_the_rows_behind_the_kernel(self):
        X, y, X_test, y_test = IRIS
        gamma = 0.2
        kernel = RBF(np.sqrt(0.5 / gamma))
        support = supports_of(IRIS)
        by_rows = ls.value(*IRIS, model=SVC(gamma=gamma), support=support, score="confidence")
        arguments = {"support": support, "score": "confidence"}
        for model in (SVC(kernel="precomputed"), ls.models.Estimator(SVC(kernel="precomputed"))):
            found = ls.value(kernel(X), y, kernel(X_test, X), y_test, model=model, **arguments)
            np.testing.assert_allclose(found.values, by_rows.values, atol=1e-6)


@pytest.mark.parametrize("model", [SVC(kernel="poly", gamma=1.0), SVR(kernel="poly", gamma=1.0)])
def test_a_kernel_beyond_single_precision_has_no_answer(model):
    rng = np.random.default_rng(0)
    X, y = np.vstack([rng.normal(size=(6, 3)), 1e15 * rng.normal(size=(6, 3))]), np.array([0, 1] * 6)
    source = "proba" if is_classifier(model) else "number"
    task = make_task(X, y if is_classifier(model) else y + 0.5, X, source)
    coalitions = Coalitions.from_lists([[0, 1, 2, 3], [6, 7, 8, 9]], [[0, 1], [0, 1]])
    trained = make_trainer(model, task).train(coalitions)
    found = trained.scores
    assert (found[2:] == task.score_nothing_learnt(np.array([0, 1], dtype=np.int32))).all()
    assert (found[:2] != found[2:]).all()
    assert trained.counts.silent == 2
    with pytest.raises(ValueError, match="not finite"):
        clone(model).fit(X[6:10], y[6:10])


class TestSettings:
    X, y = iris

    def reason(self, model, score="accuracy", X=None):
        X = self.X if X is None else X
        classes, codes = np.unique(self.y, return_inverse=True) if is_classifier(model) else (None, None)
        task = Task(X, self.y, X, self.y, classes, codes, SCORES[score]())
        kind = SVCTrainer if is_classifier(model) else SVRTrainer
        return kind.is_usable_for(model, task).reason

    @pytest.mark.parametrize(
        "setting",
        [
            {},
            {"C": 7},
            {"C": np.float32(0.5)},
            {"kernel": "linear"},
            {"kernel": "poly", "degree": 5, "coef0": -1},
            {"kernel": "sigmoid"},
            {"kernel": "precomputed"},
            {"gamma": "auto"},
            {"gamma": 0.5},
            {"gamma": np.float64(2)},
            {"tol": 1e-6},
            {"shrinking": False},
            {"cache_size": 5.0, "verbose": True},
        ],
    )
    def test_known(self, setting):
        assert self.reason(SVC(**setting)) == ""
        assert self.reason(SVR(**setting), "squared_error") == ""

    def test_known_to_one_of_them(self):
        assert self.reason(SVC(random_state=3)) == ""
        assert self.reason(SVC(probability=False)) == ""
        assert self.reason(SVC(decision_function_shape="ovo")) == ""
        assert self.reason(SVR(epsilon=0.5), "squared_error") == ""

    @pytest.mark.parametrize(
        ("setting", "reason"),
        [
            ({"class_weight": {0: 2.0}}, "class_weight names some of the classes only"),
            ({"probability": True}, "probability=True"),
            ({"break_ties": True}, "break_ties=True"),
            ({"max_iter": 100}, "max_iter=100"),
            ({"C": np.inf}, "C=inf"),
            ({"tol": np.inf}, "tol=inf"),
        ],
    )
    def test_unknown(self, setting, reason):
        assert self.reason(SVC(**setting)) == reason
        if set(setting) <= {"max_iter", "C", "tol"}:
            assert self.reason(SVR(**setting), "squared_error") == reason

    def test_a_function_as_kernel_is_unknown(self):
        assert self.reason(SVC(kernel=np.dot)).startswith("kernel=")

    def test_decisions_of_pairs_are_not_one_number_a_class(self):
        model = SVC(decision_function_shape="ovo")
        assert self.reason(model, "margin") == self.reason(model, "confidence") == "decision_function_shape='ovo'"

    def test_two_classes_have_one_pair(self):
        X, y = cancer
        task = Task(X, y, X, y, np.array([0, 1]), y, SCORES["margin"]())
        assert SVCTrainer.is_usable_for(SVC(decision_function_shape="ovo"), task)

    def test_missing_values_and_text(self):
        X = self.X.copy()
        X[0, 0] = np.nan
        assert self.reason(SVC(), X=X) == "X has missing values"
        assert self.reason(SVC(), X=self.X.astype(object)) == "X is not an array of numbers"

    def test_the_user_is_told_why_a_model_runs_as_it_is(self):
        v = ls.value(*IRIS, model=SVC(max_iter=100), support=supports_of(IRIS, 4))
        assert any("max_iter=100" in note for note in v.notes)
        assert "compiled" not in v.cost.trainer

    @pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_])
    def test_numbers_of_any_kind(self, dtype):
        X = (self.X - self.X.min(axis=0)).round().astype(dtype)
        coalitions = draw(self.y, [2, 6, 20], 6, 150)
        task = make_task(X, self.y, X, "margin")
        found = make_trainer(SVC(), task).evaluate(coalitions)
        np.testing.assert_allclose(found, fit_each(SVC(), task, coalitions), atol=1e-12)
