"""Models as people have them: wrapped, stacked, with gaps that something inside fills."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)
GAPS = np.where((np.arange(40) % 4 == 0)[:, None] & [False, True, False], np.nan, X)
FILLED = make_pipeline(SimpleImputer(), LogisticRegression())
FEW = ls.supports.Random(4)


def valued(X, y, model, **settings):
    return ls.value(X[:30], y[:30], X[30:], y[30:], model=model, support=FEW, **settings)


@pytest.mark.parametrize(
    "model",
    [
        GridSearchCV(FILLED, {"logisticregression__C": [1.0, 2.0]}, cv=2),
        VotingClassifier([("filled", FILLED)]),
        StackingClassifier([("filled", FILLED)], cv=2),
        CalibratedClassifierCV(FILLED, cv=2),
        BaggingClassifier(FILLED, n_estimators=2, random_state=0),
        GridSearchCV(HistGradientBoostingClassifier(max_iter=2), {"learning_rate": [0.1]}, cv=2),
        make_pipeline(FunctionTransformer(np.nan_to_num), SVC()),
        make_pipeline(FeatureUnion([("filled", SimpleImputer())]), SVC()),
    ],
    ids=["search", "voting", "stacking", "calibrated", "bagging", "search over boosting", "function", "union"],
)
def test_gaps_are_left_to_what_is_inside(model):
    v = valued(GAPS, Y, model)
    assert np.isfinite(v.values).all()


def test_gaps_of_a_regressor_whose_target_is_transformed():
    v = valued(GAPS, X[:, 0], TransformedTargetRegressor(make_pipeline(SimpleImputer(), Ridge())))
    assert np.isfinite(v.values).all()


@pytest.mark.parametrize("model", [SVC(), make_pipeline(StandardScaler(), SVC())], ids=["bare", "scaled"])
def test_gaps_that_nothing_fills_are_refused(model):
    with pytest.raises(ls.InvalidArgumentError, match=r"missing values.*which SVC does not accept"):
        valued(GAPS, Y, model)
    with pytest.raises(ls.InvalidArgumentError, match="cannot be trained on all of X and y"):
        valued(GAPS, Y, GridSearchCV(model, {}, cv=2))


@pytest.mark.parametrize("kind", ["Int64", "Float64", "int64[pyarrow]"])
def test_gaps_of_columns_that_know_them(kind):
    filled = make_pipeline(SimpleImputer(), SVC())
    table = pd.DataFrame({"a": X[:, 0], "n": pd.array([None, *range(39)], dtype=kind)})
    floats = table.astype("float64")
    np.testing.assert_array_equal(valued(table, Y, filled).values, valued(floats, Y, filled).values)


def test_a_span_of_time_that_a_model_does_not_read():
    table = pd.DataFrame({"a": X[:, 0], "t": pd.to_timedelta(np.arange(40), unit="D")})
    model = make_pipeline(make_column_transformer((StandardScaler(), ["a"])), SVC())
    assert valued(table, Y, model).values.any()


def test_stacking_says_what_it_can_once_it_is_fitted():
    stacked = StackingClassifier([("linear", LogisticRegression())], cv=2)
    v = valued(X, Y, stacked)
    assert v.score == "confidence"
    assert valued(X, Y, make_pipeline(StandardScaler(), stacked)).score == "confidence"


def test_a_frozen_model_learns_nothing():
    with pytest.raises(ls.InvalidArgumentError, match="FrozenEstimator, which learns nothing; give the model inside"):
        valued(X, Y, FrozenEstimator(DecisionTreeClassifier().fit(X, Y)))


class Broken(DecisionTreeClassifier):
    """Fails in one way or the other."""

    def __init__(self, how="fit"):
        super().__init__()
        self.how = how

    def fit(self, X, y):
        if self.how == "fit":
            raise RuntimeError("out of order")
        return super().fit(X, y)

    def predict_proba(self, X):
        return super().predict_proba(X)[:, :1]


def test_any_error_on_all_rows_is_told_as_the_models():
    with pytest.raises(ls.TrainingError, match="on all of X and y: RuntimeError: out of order"):
        valued(X, Y, Broken())


def test_probabilities_need_a_column_for_each_class():
    with pytest.raises(ls.TrainingError, match=r"predict_proba of Broken must give a column for each of the 2 classes"):
        valued(X, Y, Broken("proba"))


def test_groups_are_given_by_splits():
    with pytest.raises(ls.InvalidArgumentError, match=r"got GroupKFold.*=GroupKFold\(\.\.\.\)\.split\(X, y, groups\)"):
        ls.value(X, Y, model="knn", cv=GroupKFold(3))


def test_complex_numbers_are_refused_without_showing_them():
    with pytest.raises(ls.InvalidArgumentError, match="X holds complex numbers"):
        valued(X + 1j, Y, SVC())


def test_the_seeds_of_a_run_share_its_budget_and_its_target():
    model = DecisionTreeClassifier(splitter="random")
    ends = {"seeds": 2, "budget": 800, "tol": 1e-3, "support": ls.supports.Nearest(20)}
    v = ls.value(X[:30], Y[:30], X[30:], Y[30:], model=model, **ends)
    assert v.stopped == "budget of 400 trainings, for each of 2 seeds"
    assert any(note.startswith("the run ended before its target: the draws are off by") for note in v.notes)
    with pytest.raises(ls.InvalidArgumentError, match="budget=1 is too small: 2 seeds share it"):
        ls.value(X[:30], Y[:30], X[30:], Y[30:], model=model, seeds=2, budget=1)


def test_a_test_row_with_an_empty_support_has_nothing_to_explain():
    far = np.vstack([X[:30], X[30:-1] + 1e3, X[-1:]])
    support = ls.supports.Radius(5.0)
    v = ls.value(far[:30], Y[:30], far[30:], Y[30:], model="svm", support=support, per_test=True)
    found = ls.tasks.explain(v, 0, X=far[:30], X_test=far[30:], y=Y[:30])
    assert found.empty
    assert list(found.columns) == ["value", "effect", "label", "distance"]
