"""Compiled logistic regression and ridge against slow twins and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

import localshapley as ls
import naive_linear
from localshapley.engine.executor import Executor
from localshapley.engine.loop import play
from localshapley.models import Coalitions, Task
from localshapley.models.linear_models import LogisticTrainer, RidgeTrainer
from localshapley.models.trees import IS_1_9
from localshapley.scoring import SCORES
from models.against import assert_same, scores_of_both
from playing import pose, read_limits


class Shares:
    """A score that is no score: the probability of one class, or the prediction itself."""

    name, task = "shares", "classifier"

    def __init__(self, code=0, source="proba"):
        self.code, self.source = code, source

    def __call__(self, y, prediction):
        return prediction[:, self.code].copy() if prediction.ndim == 2 else prediction.copy()


def predictions(model, X, y, X_test, coalitions, n_jobs=1):
    """Probabilities (test row by class) or numbers, for each coalition on all test rows."""
    tests = [range(len(X_test))] * len(coalitions)
    batch = Coalitions.from_lists(coalitions, tests)
    if isinstance(model, Ridge):
        task = Task(X, y, X_test, np.zeros(len(X_test)), None, None, Shares(source="number"))
        return RidgeTrainer(model, task, n_jobs).evaluate(batch).reshape(len(coalitions), -1)
    classes, codes = np.unique(y, return_inverse=True)
    columns = []
    for code in range(len(classes)):
        task = Task(X, y, X_test, np.zeros(len(X_test), dtype=np.int64), classes, codes, Shares(code))
        columns.append(LogisticTrainer(model, task, n_jobs).evaluate(batch))
    return np.stack(columns, axis=-1).reshape(len(coalitions), len(X_test), -1)


def draw(y, sizes, seed=0, n_classes=2):
    """Random coalitions with at least two classes."""
    rng, out = np.random.default_rng(seed), []
    while len(out) < len(sizes):
        rows = np.sort(rng.choice(len(y), size=sizes[len(out)], replace=False))
        if len(set(y[rows].tolist())) >= n_classes:
            out.append(rows)
    return out


def awkward(rng, n, p):
    """Rows with duplicates, a constant column, a repeated column and one that is a sum of others."""
    X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-1, 2, size=p)
    X[: n // 4] = X[n // 2 : n // 2 + n // 4]
    if p > 3:
        X[:, 0], X[:, 1], X[:, 2] = 3.0, X[:, p - 1], X[:, p - 1] + X[:, p - 2]
    return X


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("p", [1, 2, 5, 12])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_logistic_regression_is_its_twin(n_classes, p, intercept):
    rng = np.random.default_rng([n_classes, p])
    X, y, X_test = awkward(rng, 40, p), rng.integers(n_classes, size=40), awkward(rng, 5, p)
    coalitions = draw(y, rng.integers(2, 30, size=10), seed=p)
    for C in (0.01, 1.0, 20.0):
        model = LogisticRegression(C=C, fit_intercept=intercept)
        found = predictions(model, X, y, X_test, coalitions)
        for rows, shares in zip(coalitions, found, strict=True):
            expected = naive_linear.probabilities(X[rows], y[rows], X_test, C, intercept, n_classes)
            np.testing.assert_allclose(shares, expected, atol=2e-6)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("p", [1, 3, 10, 60])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
def test_ridge_is_its_twin(alpha, p, intercept):
    rng = np.random.default_rng(p)
    X, y, X_test = awkward(rng, 50, p), rng.normal(size=50) * 100, awkward(rng, 6, p)
    coalitions = [np.sort(rng.choice(50, size=k, replace=False)) for k in rng.integers(1, 45, size=120)]
    found = predictions(Ridge(alpha=alpha, fit_intercept=intercept), X, y, X_test, coalitions)
    for rows, numbers in zip(coalitions, found, strict=True):
        w, b = naive_linear.ridge(X[rows], y[rows], alpha, intercept)
        np.testing.assert_allclose(numbers, X_test @ w + b, rtol=1e-6, atol=1e-6)


def with_units(X):
    """Test rows from which coefficients can be read: zero, and each unit vector."""
    return np.vstack([np.zeros(X.shape[1]), np.eye(X.shape[1])])


def centred_coefficients(shares):
    """Coefficients up to what all classes share, from probabilities of zero and the unit vectors."""
    logs = np.log(shares)
    logs -= logs.mean(axis=-1, keepdims=True)
    return logs[1:] - logs[0], logs[0]


DATA = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "cancer": load_breast_cancer(return_X_y=True),
    "digits": load_digits(return_X_y=True),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_coefficients_are_those_that_scikit_learn_converges_to(name, C):
    X, y = DATA[name]
    X = X / 16 if name == "digits" else StandardScaler().fit_transform(X)
    n_classes = len(set(y.tolist()))
    sizes = [60, 40, 90] if name == "digits" else [2, 5, 12, 30, 80]
    model = LogisticRegression(C=C, tol=1e-12, max_iter=100_000, solver="newton-cholesky")
    for rows in draw(y, sizes, seed=1):
        found = predictions(model, X, y, with_units(X), [rows])[0]
        fitted = clone(model).fit(X[rows], y[rows])
        present = fitted.classes_
        assert (np.delete(found, present, axis=1) == 0).all()
        w, b = centred_coefficients(found[:, present])
        if len(present) == 2:
            theirs, at_zero = np.column_stack([-fitted.coef_[0], fitted.coef_[0]]) / 2, fitted.intercept_[0] / 2
            at_zero = np.array([-at_zero, at_zero])
        else:
            theirs = fitted.coef_.T - fitted.coef_.mean(axis=0)[:, None]
            at_zero = fitted.intercept_ - fitted.intercept_.mean()
        assert n_classes >= len(present)
        np.testing.assert_allclose(w, theirs, atol=1e-5)
        np.testing.assert_allclose(b, at_zero, atol=1e-5)


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_ridge_coefficients_are_those_of_scikit_learn(alpha):
    X, y = load_diabetes(return_X_y=True)
    rng = np.random.default_rng(0)
    model = Ridge(alpha=alpha)
    for size in (1, 2, 5, 20, 100, 300):
        rows = np.sort(rng.choice(len(y), size=size, replace=False))
        found = predictions(model, X, y, with_units(X), [rows])[0]
        fitted = clone(model).fit(X[rows], y[rows])
        np.testing.assert_allclose(found[1:] - found[0], fitted.coef_, atol=1e-5)
        np.testing.assert_allclose(found[0], fitted.intercept_, atol=1e-5)


class TestHardCases:
    def test_separable_rows_with_hardly_any_penalty(self):
        X = np.array([[-2.0, 0.0], [-1.0, 1.0], [1.0, 0.5], [2.0, -1.0]])
        y = np.array([0, 0, 1, 1])
        for C in (1e4, 1e8):
            found = predictions(LogisticRegression(C=C), X, y, X, [range(4)])[0]
            expected = naive_linear.probabilities(X, y, X, C, True, 2)
            np.testing.assert_allclose(found, expected, atol=1e-6)

    def test_a_large_penalty_leaves_the_shares_of_the_classes(self):
        X, y = DATA["iris"]
        rows = [0, 1, 2, 60, 120]
        found = predictions(LogisticRegression(C=1e-9), X, y, X[:3], [rows])[0]
        np.testing.assert_allclose(found, np.tile([3 / 5, 1 / 5, 1 / 5], (3, 1)), atol=1e-5)

    def test_equal_rows_of_both_classes(self):
        X, y = np.ones((4, 3)), np.array([0, 1, 1, 1])
        found = predictions(LogisticRegression(), X, y, X[:1], [range(4)])[0]
        np.testing.assert_allclose(found, [[0.25, 0.75]], atol=1e-7)

    def test_rows_far_from_the_origin(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(30, 3)) + 1e5, rng.integers(2, size=30)
        found = predictions(LogisticRegression(), X, y, X[:5], [range(30)])[0]
        expected = naive_linear.probabilities(X - 1e5, y, X[:5] - 1e5, 1.0, True, 2)
        np.testing.assert_allclose(found, expected, atol=1e-5)


LOGISTIC = LogisticRegression(tol=1e-10, max_iter=10_000)


class TestRuns:
    data = {  # noqa: RUF012
        LogisticRegression: ls.datasets.load("wine")[:4],
        Ridge: ls.datasets.load("diabetes")[:4],
    }

    @pytest.mark.parametrize(
        ("model", "score"),
        [
            *(
                (LogisticRegression(tol=1e-10, max_iter=10_000), s)
                for s in ("confidence", "accuracy", "margin", "log_loss")
            ),
            (LogisticRegression(tol=1e-10, max_iter=10_000), lambda y, p: 2.0 * (y == p)),
            (Ridge(), "squared_error"),
            (Ridge(), "absolute_error"),
            (Ridge(), lambda y, p: float(abs(y - p) < 30)),
        ],
        ids=lambda value: value if isinstance(value, str) else type(value).__name__,
    )
    def test_values_are_those_of_the_plain_way(self, model, score):
        X, y, X_test, y_test = self.data[type(model)]
        data = X[:60], y[:60], X_test[:4], y_test[:4]
        support = ls.supports.Nearest(6)
        found = ls.value(*data, model=model, support=support, score=score, method="exact")
        plain = ls.value(*data, model=ls.models.Estimator(model), support=support, score=score, method="exact")
        assert "compiled" in found.cost.trainer
        assert "scikit-learn fit" in plain.cost.trainer
        np.testing.assert_allclose(found.values, plain.values, atol=1e-5, rtol=1e-6)
        assert found.cost.trivial == plain.cost.trivial

    @pytest.mark.parametrize("model", [LogisticRegression(), Ridge()], ids=lambda m: type(m).__name__)
    def test_bits_depend_on_neither_threads_nor_batches(self, model):
        X, y, X_test, y_test = self.data[type(model)]
        data = X, y, X_test[:8], y_test[:8]
        runs = [
            ls.value(*data, model=model, support=ls.supports.Nearest(9), method="exact", n_jobs=n).values
            for n in (1, 2)
        ]
        problem = pose(*data, model=model, support=ls.supports.Nearest(9))
        runs.append(play(problem.graph, Executor(problem.trainer, max_batch=7), read_limits("exact")).values)
        assert (runs[0] == runs[1]).all()
        assert (runs[0] == runs[2]).all()

    @pytest.mark.parametrize("model", [LOGISTIC, Ridge()], ids=["logistic", "ridge"])
    def test_sparse_rows(self, model):
        X, y, X_test, y_test = self.data[type(model)]
        X, X_test = (np.where(np.abs(a) < 0.7, 0.0, a) for a in (X[:50], X_test[:4]))
        support = ls.supports.Nearest(6)
        found = ls.value(
            sparse.csr_matrix(X),
            y[:50],
            sparse.csr_matrix(X_test),
            y_test[:4],
            model=model,
            support=support,
            method="exact",
        )
        dense = ls.value(X, y[:50], X_test, y_test[:4], model=model, support=support, method="exact")
        np.testing.assert_allclose(found.values, dense.values, atol=1e-6, rtol=1e-8)


class TestSettings:
    def reason(self, model):
        data = ls.datasets.load("diabetes" if isinstance(model, Ridge) else "iris")
        if isinstance(model, Ridge):
            task = Task(data.X, data.y, data.X_test, data.y_test, None, None, SCORES["squared_error"]())
            return RidgeTrainer.is_usable_for(model, task).reason
        classes, codes = np.unique(data.y, return_inverse=True)
        task = Task(data.X, data.y, data.X_test, data.y_test, classes, codes, SCORES["confidence"]())
        return LogisticTrainer.is_usable_for(model, task).reason

    @pytest.mark.parametrize(
        "model",
        [
            LogisticRegression(C=3, fit_intercept=False, tol=1e-8, max_iter=7, random_state=4),
            *(LogisticRegression(solver=s) for s in ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga")),
            Ridge(alpha=3, fit_intercept=False, copy_X=False, tol=1e-9, max_iter=5),
            *(Ridge(solver=s) for s in ("auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga")),
        ],
        ids=repr,
    )
    def test_reproduced(self, model):
        assert self.reason(model) == ""

    @pytest.mark.parametrize(
        ("model", "reason"),
        [
            (LogisticRegression(solver="liblinear"), "solver='liblinear'"),
            (LogisticRegression(C=np.inf), "C=inf"),
            (LogisticRegression(l1_ratio=0.5, solver="saga"), "l1_ratio=0.5"),
            (LogisticRegression(class_weight={0: 2}), "class_weight names some of the classes only"),
            (Ridge(positive=True), "positive=True"),
            (Ridge(alpha=0), "alpha=0"),
            (Ridge(alpha=np.array([1.0])), "alpha=array([1.])"),
        ],
        ids=lambda value: repr(value),
    )
    def test_not_reproduced(self, model, reason):
        assert self.reason(model) == reason


DIABETES = ls.datasets.load("diabetes")[:4]


class TestLeastSquares:
    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.parametrize("p", [1, 4, 12, 60])
    def test_scores_are_those_of_scikit_learn(self, p, intercept):
        """Also with more columns than rows, and columns that depend on each other."""
        rng = np.random.default_rng(p)
        X = awkward(rng, 60, p)
        data = X, rng.normal(size=60), awkward(rng, 5, p), rng.normal(size=5)
        assert_same(LinearRegression(fit_intercept=intercept), data, tolerance=1e-7)

    @pytest.mark.parametrize("intercept", [True, False])
    def test_independent_columns(self, intercept):
        assert_same(LinearRegression(fit_intercept=intercept), DIABETES, tolerance=1e-7, sizes=(11, 80))

    @pytest.mark.skipif(not IS_1_9, reason="before scikit-learn 1.9, the tolerance was for sparse rows alone")
    def test_singular_values_below_the_tolerance_count_as_zero(self):
        scale = 10.0 ** np.linspace(-6, 6, DIABETES[0].shape[1])
        data = DIABETES[0] * scale, DIABETES[1], DIABETES[2] * scale, DIABETES[3]
        found, expected = scores_of_both(LinearRegression(), data)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        fine, expected = scores_of_both(LinearRegression(tol=1e-9), data)
        np.testing.assert_allclose(fine, expected, rtol=1e-4)
        assert np.abs(found - fine).max() > 1

    def test_rows_with_equal_features_and_different_numbers(self):
        X = np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 1.0], [0.0, 0.0]])
        data = X, np.array([1.0, 5.0, -2.0, 4.0]), X[:3] + 0.5, np.zeros(3)
        assert_same(LinearRegression(), data, sizes=(1, 4))

    def test_columns_that_are_constant_within_a_coalition(self):
        """Their mean rounds otherwise than they do, and what is left must not pass for a column."""
        X = np.array([[0.0], [0.25], [0.0], [0.0], [-0.5]])
        data = X, np.array([-2.3, 0.7, 0.2, -0.4, -0.1]), np.array([[0.25], [3.0]]), np.array([0.5, 1.0])
        assert_same(LinearRegression(), data, sizes=(2, 5), n_tests=2)

    def test_equal_rows_whose_mean_rounds_predict_the_mean(self):
        """Scikit-learn takes the rounding error for a direction in which the rows vary."""
        X = np.repeat([[0.7276371697552417, -2.127788124174075, -0.4816352347442417]], 3, axis=0)
        assert (X - X.mean(axis=0)).any()
        y = np.array([-1.0, -2.5, 0.5])
        trainer = pose(X, y, X[:1] + 1, [2.0], model=LinearRegression(), support=ls.supports.Everything()).trainer
        assert trainer.evaluate(Coalitions.from_lists([[0, 1, 2]], [[0]])) == -9.0


class TestRidgeClassifier:
    @pytest.mark.parametrize("weight", [None, "balanced", {0: 1, 1: 2, 2: 0.3}], ids=str)
    @pytest.mark.parametrize("score", ["accuracy", "confidence", "margin", "log_loss"])
    def test_scores_are_those_of_scikit_learn(self, score, weight):
        assert_same(RidgeClassifier(class_weight=weight), ls.datasets.load("wine")[:4], score)

    @pytest.mark.parametrize("intercept", [True, False])
    def test_with_more_columns_than_rows(self, intercept):
        X, y = DATA["digits"]
        data = X[:200] / 16, y[:200], X[200:210] / 16, y[200:210]
        model = RidgeClassifier(alpha=0.1, class_weight="balanced", fit_intercept=intercept)
        assert_same(model, data, "margin")

    def test_sparse_rows(self):
        X, y = DATA["digits"]
        data = sparse.csr_matrix(X[:200]), y[:200], sparse.csr_matrix(X[200:210]), y[200:210]
        found, expected = scores_of_both(
            RidgeClassifier(class_weight="balanced", tol=1e-12, max_iter=9999), data, "margin"
        )
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
class TestLasso:
    @pytest.mark.parametrize(
        "model",
        [Lasso(), Lasso(20), Lasso(0.3, fit_intercept=False), ElasticNet(), ElasticNet(0.1, l1_ratio=0.9)],
        ids=repr,
    )
    def test_scores_are_those_of_scikit_learn(self, model):
        """With few and with many columns, at the optimum and, after the same steps, short of it."""
        X, y, X_test, y_test = DIABETES
        more = np.random.default_rng(0).normal(size=(len(y) + len(y_test), 50))
        wide = np.hstack([X, more[: len(y)]]), y, np.hstack([X_test, more[len(y) :]]), y_test
        for data in (DIABETES, wide):
            assert_same(clone(model).set_params(tol=1e-10, max_iter=100_000), data, tolerance=1e-5, n=30)
            if IS_1_9:
                assert_same(clone(model).set_params(max_iter=100_000), data, tolerance=1e-6, n=30)
                assert_same(clone(model).set_params(max_iter=2), data, tolerance=1e-6, n=30)

    @pytest.mark.parametrize(
        ("model", "reason"),
        [
            (Lasso(positive=True), "positive=True"),
            (Lasso(selection="random"), "selection='random'"),
            (ElasticNet(l1_ratio=0), "l1_ratio=0"),
            (Lasso(alpha=0), "alpha=0"),
        ],
        ids=repr,
    )
    def test_not_reproduced(self, model, reason):
        assert (
            pose(*DIABETES, model=model, support=ls.supports.Nearest(1))
            .trainer.training_notes[0]
            .endswith(f": {reason}.")
        )


class TestLinearSVC:
    @pytest.mark.parametrize("weight", [None, "balanced", {0: 0.2, 1: 5, 2: 1}], ids=str)
    @pytest.mark.parametrize("settings", [{}, {"C": 10, "intercept_scaling": 3}, {"fit_intercept": False}], ids=str)
    def test_scores_are_those_that_scikit_learn_converges_to(self, settings, weight):
        model = LinearSVC(class_weight=weight, dual=False, tol=1e-10, max_iter=20_000, **settings)
        for name in ("wine", "breast_cancer"):
            X, y, X_test, y_test, _ = ls.datasets.load(name)
            scaler = StandardScaler().fit(X)
            data = scaler.transform(X), y, scaler.transform(X_test), y_test
            assert_same(model, data, "margin", tolerance=1e-5, sizes=(2, 60), n=30)

    def test_labels_are_those_of_a_solver_that_stops_early(self):
        assert_same(LinearSVC(random_state=0), ls.datasets.load("iris")[:4], "accuracy", sizes=(2, 60))

    @pytest.mark.parametrize("model", [LinearSVC(loss="hinge"), LinearSVC(penalty="l1"), LinearSVR()], ids=repr)
    def test_not_reproduced(self, model):
        data = DIABETES if isinstance(model, LinearSVR) else ls.datasets.load("iris")[:4]
        assert "scikit-learn" in pose(*data, model=model, support=ls.supports.Nearest(1)).trainer.name
