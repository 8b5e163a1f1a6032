"""Boosted trees of fixed structure against the definition, and against the libraries' own margins."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import localshapley as ls
from localshapley.models.boosted_trees import BoostedTrainer, _rules
from localshapley.models.boosting_losses import margins_of
from localshapley.models.estimator_checks import final_step, train_reference
from localshapley.models.fixed_trees import Fixed
from localshapley.supports.leaf_numbers import leaf_numbers
from naive import shapley_of_one
from naive_boosted import boosted_margins, margin_of, newton, squared_error_of
from naive_fixed import fixed_values
from playing import pose


def rows(seed, n_rows=8, n_tests=4, *, amounts=False, n_classes=3):
    """A few rows with labels that are nearly noise, so that leaves are mixed."""
    rng = np.random.default_rng(seed)
    X, X_test = rng.normal(size=(n_rows, 2)), rng.normal(size=(n_tests, 2))
    if amounts:
        return X, 10 + X[:, 0] + rng.normal(size=n_rows), X_test, 10 + X_test[:, 0] + rng.normal(size=n_tests)
    y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes)])
    return X, y, X_test, rng.integers(n_classes, size=n_tests)


def of_library(library, name, **settings):
    found = pytest.importorskip(library, reason=f"{library} is not installed")
    return getattr(found, name)(n_estimators=3, **settings)


def logs(y):
    """Log shares of the classes; of two the log odds."""
    shares = np.log(np.bincount(y) / len(y))
    return shares if len(shares) > 2 else shares[1:] - shares[:1]


def naive_score(fitted, X, y, X_test, y_test, rate, ridge=0.0):
    """The score of coalitions by hand, from the leaves of a library."""
    leaves, of_tests = leaf_numbers(fitted, X), leaf_numbers(fitted, X_test)
    if y.dtype.kind == "f":
        return squared_error_of(leaves, of_tests, y, y_test, rate, ridge)
    start = logs(y)
    scales = (2 / 3, 1.0) if len(start) > 1 else (1.0, 1.0)  # those of GradientBoostingClassifier
    return margin_of(boosted_margins(leaves, of_tests, y, start, rate, ridge, scales), y_test, tuple(range(len(y))))


CASES = {
    "two classes": (lambda: GradientBoostingClassifier(n_estimators=3, max_depth=1), 2, 0.1, 0.0),
    "three classes": (lambda: GradientBoostingClassifier(n_estimators=2, max_depth=1, learning_rate=0.5), 3, 0.5, 0.0),
    "numbers": (lambda: GradientBoostingRegressor(n_estimators=3, max_depth=1), 0, 0.1, 0.0),
    "histograms": (
        lambda: HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2, max_depth=1, l2_regularization=0.5),
        2,
        0.1,
        0.5,
    ),
    "histograms of numbers": (
        lambda: HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=2, max_depth=1, l2_regularization=2.0),
        0,
        0.1,
        2.0,
    ),
    "lightgbm": (
        lambda: of_library("lightgbm", "LGBMClassifier", min_child_samples=2, min_data_in_bin=1, reg_lambda=0.3),
        2,
        0.1,
        0.3,
    ),
}


class TestByTheDefinition:
    @pytest.mark.parametrize("name", CASES)
    def test_values(self, name):
        """All rows play for every test row; gradients are computed by hand, leaves are those of the library."""
        make, n_classes, rate, ridge = CASES[name]
        amounts = n_classes == 0
        X, y, X_test, y_test = rows(1, amounts=amounts, n_classes=n_classes)
        v = ls.value(X, y, X_test, y_test, model=Fixed(make()), per_test=True)
        fitted = final_step(train_reference(make(), X, y, 0))
        score = naive_score(fitted, X, y, X_test, y_test, rate, ridge)
        expected = fixed_values(score, range(8), 4)
        np.testing.assert_allclose(v.per_test.toarray(), expected, atol=1e-9)
        np.testing.assert_allclose(v.values, expected.sum(axis=0), atol=1e-9)
        assert v.score == ("squared_error" if amounts else "margin")
        assert np.abs(v.values).max() > 0.05
        assert v.cost.trainings == 0

    @pytest.mark.parametrize("name", ["three classes", "numbers", "histograms"])
    def test_coalitions_are_scored_alike(self, name):
        """Left one out, which refills the leaves; the formula is not used."""
        make, n_classes, rate, ridge = CASES[name]
        amounts = n_classes == 0
        X, y, X_test, y_test = rows(2, amounts=amounts, n_classes=n_classes)
        v = ls.value(X, y, X_test, y_test, model=Fixed(make()), method="loo")
        fitted = train_reference(make(), X, y, 0)
        score = naive_score(fitted, X, y, X_test, y_test, rate, ridge)
        everyone = tuple(range(8))
        left_out = [tuple(i for i in everyone if i != z) for z in everyone]
        expected = [sum(score(everyone, t) - score(rest, t) for t in range(4)) for rest in left_out]
        np.testing.assert_allclose(v.values, expected, atol=1e-9)

    def test_folds_that_lack_a_class(self):
        X, y, _, _ = rows(3, n_rows=12)
        y[:] = [0, 1, 0, 1, 0, 1, 2, 2, 0, 1, 2, 0]
        folds = [(np.arange(6), np.arange(6, 9)), (np.arange(3, 12), np.arange(3))]
        model = GradientBoostingClassifier(n_estimators=2, max_depth=1)
        v = ls.value(X, y, model=Fixed(model), cv=folds, per_test=True)
        train, test = folds[1]
        alone = ls.value(X[train], y[train], X[test], y[test], model=Fixed(model), per_test=True)
        found = v.per_test.toarray()
        np.testing.assert_allclose(found[:3][:, train], alone.per_test.toarray(), atol=1e-12)
        assert not found[3:5].any()  # class 2 is unknown in the first fold
        assert found[5].any()

    def test_owners(self):
        X, y, X_test, y_test = rows(4, n_classes=2)
        owners = np.array(list("aabbccdd"))
        model = Fixed(GradientBoostingClassifier(n_estimators=3, max_depth=1))
        v = ls.value(X, y, X_test, y_test, model=model, owners=owners, method="exact")
        fitted = train_reference(model.estimator, X, y, 0)
        score = naive_score(fitted, X, y, X_test, y_test, 0.1)
        held = [[i for i in range(8) if owners[i] == o] for o in "abcd"]
        expected = np.zeros(4)
        for t in range(4):
            found = shapley_of_one(range(4), lambda s, t=t: score(tuple(sorted(i for o in s for i in held[o])), t))
            expected += [found[o] for o in range(4)]
        np.testing.assert_allclose(v.values, expected, atol=1e-9)


def values_of_leaf(g, h, ridge, of_squares=False):
    """Values of the rows of one leaf, from the kernel."""
    from localshapley.kernels.boosted_leaf_games import value_rows_of_leaves

    out, squares = np.zeros((2, len(g)))
    indptr = np.array([0, len(g)])
    value_rows_of_leaves(indptr, g, h, ridge, _rules(np.array([len(g)])), np.empty((3, len(g))), out, squares)
    return (out, squares) if of_squares else out


class TestLeaves:
    @pytest.mark.parametrize("ridge", [0.0, 1.0])
    @pytest.mark.parametrize("spread", [0.0, 1.0, 12.0])
    @pytest.mark.parametrize("n", [1, 2, 3, 7])
    def test_against_enumeration(self, n, spread, ridge):
        """Hessians between which there are five orders of magnitude, too."""
        rng = np.random.default_rng(n)
        h = 0.25 * np.exp(-spread * rng.random(n))
        g = rng.normal(size=n) * h
        expected = shapley_of_one(range(n), lambda s: newton(g, h, ridge, s))
        found = values_of_leaf(g, h, ridge)
        np.testing.assert_allclose(found, [expected[z] for z in range(n)], rtol=0, atol=1e-11 * np.abs(found).max())

    @pytest.mark.parametrize("ridge", [0.0, 3.0])
    @pytest.mark.parametrize("n", [64, 65, 300, 3000])
    def test_large_leaves(self, n, ridge):
        """Against the formula for equal hessians, from which these differ by no more than rounding; and efficiency."""
        rng = np.random.default_rng(0)
        g, equal = rng.normal(size=n), np.full(n, 0.2)
        nearly = equal.copy()
        nearly[0] = np.nextafter(0.2, 1)
        expected = values_of_leaf(g, equal, ridge)
        np.testing.assert_allclose(values_of_leaf(g, nearly, ridge), expected, atol=1e-9 * np.abs(expected).max())
        h = rng.uniform(0.001, 0.25, size=n)
        full = g.sum() / (ridge + h.sum())
        np.testing.assert_allclose(values_of_leaf(g, h, ridge).sum(), full, atol=1e-9 * np.abs(expected).sum())

    @pytest.mark.parametrize("ridge", [0.0, 1.5])
    @pytest.mark.parametrize("n", [1, 2, 3, 7])
    def test_squares_against_enumeration(self, n, ridge):
        """Where hessians are equal, as with squared error."""
        g, h = np.random.default_rng(n).normal(size=n), np.full(n, 0.7)
        expected = shapley_of_one(range(n), lambda s: newton(g, h, ridge, s) ** 2)
        found = values_of_leaf(g, h, ridge, of_squares=True)[1]
        np.testing.assert_allclose(found, [expected[z] for z in range(n)], atol=1e-12)

    def test_equal_rows_have_equal_values(self):
        g, h = np.array([0.3, -0.2, 0.3, 0.1]), np.array([0.1, 0.2, 0.1, 0.05])
        found = values_of_leaf(g, h, 0.0)
        assert found[0] == found[2]


LIBRARIES = {
    "scikit-learn": lambda **k: GradientBoostingClassifier(**k),
    "exponential": lambda **k: GradientBoostingClassifier(loss="exponential", **k),
    "from zero": lambda **k: GradientBoostingClassifier(init="zero", **k),
    "histograms": lambda n_estimators: HistGradientBoostingClassifier(max_iter=n_estimators),
    "xgboost": lambda n_estimators: of_library("xgboost", "XGBClassifier").set_params(n_estimators=n_estimators),
    "lightgbm": lambda n_estimators: of_library("lightgbm", "LGBMClassifier").set_params(n_estimators=n_estimators),
}
OF_NUMBERS = {
    "scikit-learn": lambda: GradientBoostingRegressor(n_estimators=10),
    "histograms": lambda: HistGradientBoostingRegressor(max_iter=10, l2_regularization=1.0),
    "xgboost": lambda: of_library("xgboost", "XGBRegressor"),
    "lightgbm": lambda: of_library("lightgbm", "LGBMRegressor"),
}


class TestMargins:
    """Leaves that are refilled with all rows give the margins of the library, so no formula of it is misread."""

    @pytest.mark.parametrize(
        ("name", "n_classes"), [(name, n) for name in LIBRARIES for n in (2, 3) if (name, n) != ("exponential", 3)]
    )
    def test_classifiers(self, name, n_classes):
        X, y, X_test, y_test = rows(0, 120, 20, n_classes=n_classes)
        model = LIBRARIES[name](n_estimators=60)
        problem = pose(X, y, X_test, y_test, model=Fixed(model))
        assert isinstance(problem.trainer, BoostedTrainer)
        assert not any("differ" in note for note in problem.trainer.training_notes)
        v = ls.value(X, y, X_test, y_test, model=Fixed(model), per_test=True)
        own = margins_of(final_step(train_reference(model, X, y, 0)), X_test)
        own = np.column_stack([-own / 2, own / 2]) if own.shape[1] == 1 else own
        others = own.copy()
        others[np.arange(20), y_test] = -np.inf
        full = own[np.arange(20), y_test] - others.max(axis=1)
        np.testing.assert_allclose(v.per_test.sum(axis=1) + problem.trainer._starts, full, atol=2e-5)

    @pytest.mark.parametrize("name", OF_NUMBERS)
    def test_regressors(self, name):
        X, y, X_test, y_test = rows(0, 120, 20, amounts=True)
        model = OF_NUMBERS[name]()
        v = ls.value(X, y, X_test, y_test, model=Fixed(model), per_test=True)
        predicted = train_reference(model, X, y, 0).predict(X_test)
        gain = (y_test - y.mean()) ** 2 - (y_test - predicted) ** 2
        np.testing.assert_allclose(v.per_test.sum(axis=1), gain, atol=2e-4)
        assert any("tree by tree" in note for note in v.notes)

    def test_a_model_that_leaves_do_not_explain_is_told(self):
        X, y, X_test, y_test = rows(0, 120, 20)
        model = GradientBoostingClassifier(n_estimators=5, subsample=0.5)
        assert any("differ by up to" in n for n in ls.value(X, y, X_test, y_test, model=Fixed(model)).notes)


class TestUse:
    def test_pipelines(self):
        X, y, X_test, y_test = rows(0, 40, 5, n_classes=2)
        boosting = GradientBoostingClassifier(n_estimators=3)
        scaler = StandardScaler().fit(X)
        inside = ls.value(X, y, X_test, y_test, model=Fixed(make_pipeline(StandardScaler(), boosting)))
        outside = ls.value(scaler.transform(X), y, scaler.transform(X_test), y_test, model=Fixed(boosting))
        np.testing.assert_array_equal(inside.values, outside.values)

    def test_the_support_can_be_everything(self):
        X, y, X_test, y_test = rows(0, 30, 5)
        model = Fixed(GradientBoostingClassifier(n_estimators=3))
        everything = ls.value(X, y, X_test, y_test, model=model, support=ls.supports.Everything(), per_test=True)
        np.testing.assert_array_equal(everything.values, ls.value(X, y, X_test, y_test, model=model).values)

    def test_threads_do_not_matter(self):
        X, y, X_test, y_test = rows(0, 40, 5)
        model = Fixed(GradientBoostingClassifier(n_estimators=3))
        one, two = (ls.value(X, y, X_test, y_test, model=model, n_jobs=n).values for n in (1, 2))
        np.testing.assert_array_equal(one, two)

    @pytest.mark.parametrize(
        ("model", "arguments", "said"),
        [
            (GradientBoostingRegressor(loss="huber"), {}, "loss='huber'.*squared_error"),
            (HistGradientBoostingRegressor(loss="poisson"), {}, "loss='poisson'.*squared_error"),
            (GradientBoostingRegressor(init=GradientBoostingRegressor()), {}, "init=.*init=None"),
            (GradientBoostingRegressor(), {"empty": 0.0}, "empty=0.0.*leave empty out"),
            (GradientBoostingRegressor(), {"score": "absolute_error"}, "use score='squared_error'"),
        ],
        ids=str,
    )
    def test_what_cannot_be_refilled_is_refused(self, model, arguments, said):
        X, y, X_test, y_test = rows(0, 30, 5, amounts=True)
        with pytest.raises(ls.InvalidArgumentError, match=said):
            ls.value(X, y, X_test, y_test, model=Fixed(model), **arguments)

    def test_classifiers_have_the_margin(self):
        X, y, X_test, y_test = rows(0, 30, 5)
        for score in ("confidence", "accuracy"):
            with pytest.raises(ls.InvalidArgumentError, match="use score='margin'"):
                ls.value(X, y, X_test, y_test, model=Fixed(GradientBoostingClassifier()), score=score)
        with pytest.raises(ls.InvalidArgumentError, match="cv=5"):
            ls.value(X, y, model=Fixed(GradientBoostingClassifier()), cv="oob")

    @pytest.mark.parametrize(
        ("library", "name", "settings", "said"),
        [
            ("xgboost", "XGBRegressor", {"reg_alpha": 1}, "reg_alpha"),
            ("xgboost", "XGBRegressor", {"objective": "reg:absoluteerror"}, "absoluteerror"),
            ("lightgbm", "LGBMRegressor", {"objective": "mae"}, "objective"),
            ("lightgbm", "LGBMRegressor", {"reg_alpha": 1.0}, "reg_alpha"),
        ],
    )
    def test_settings_of_libraries_that_are_refused(self, library, name, settings, said):
        X, y, X_test, y_test = rows(0, 60, 5, amounts=True)
        with pytest.raises(ls.InvalidArgumentError, match=said):
            ls.value(X, y, X_test, y_test, model=Fixed(of_library(library, name, **settings)))

    def test_update_is_refused(self):
        X, y, X_test, y_test = rows(0, 30, 5)
        model = Fixed(GradientBoostingClassifier(n_estimators=2))
        v = ls.value(X, y, X_test, y_test, model=model, per_test=True)
        with pytest.raises(ls.InvalidArgumentError, match="changed rows grow other trees"):
            ls.update(v, X[1:], y[1:], X_test, y_test, model=model)


@pytest.mark.parametrize(
    ("library", "name", "settings", "what"),
    [
        ("xgboost", "XGBRFClassifier", {"n_estimators": 5}, "num_parallel_tree=5; it can with num_parallel_tree=1"),
        ("xgboost", "XGBClassifier", {"booster": "gblinear"}, "booster='gblinear' has no trees"),
        ("xgboost", "XGBClassifier", {"scale_pos_weight": 2}, "scale_pos_weight=2"),
        ("lightgbm", "LGBMClassifier", {"max_delta_step": 0.1}, "max_delta_step=0.1; it can with max_delta_step=0"),
        ("lightgbm", "LGBMClassifier", {"linear_tree": True}, "linear_tree=True"),
        ("lightgbm", "LGBMClassifier", {"boosting_type": "dart"}, "'dart'; it can with boosting_type='gbdt'"),
        ("lightgbm", "LGBMClassifier", {"class_weight": "balanced"}, "it can with class_weight=None"),
    ],
)  # fmt: skip
def test_settings_that_fill_leaves_otherwise_are_refused(library, name, settings, what):
    module = pytest.importorskip(library, reason="boosting libraries are an extra")
    more = {"verbose": -1} if library == "lightgbm" else {}
    data = ls.datasets.load("breast_cancer")
    model = getattr(module, name)(**{"n_estimators": 3} | settings, **more)
    with pytest.raises(ls.InvalidArgumentError, match=re.escape(what)):
        ls.value(data.X, data.y, data.X_test, data.y_test, model=ls.models.Fixed(model))
