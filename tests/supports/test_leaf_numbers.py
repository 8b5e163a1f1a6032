"""Leaves of boosted trees: numbers of leaves against what the trees predict, and the supports that they give."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.models.estimator_checks import final_step, train_reference
from localshapley.supports.default import default_support
from localshapley.supports.leaf_numbers import has_leaves, leaf_numbers
from playing import pose


def rows(n_rows=60, n_tests=7, seed=0):
    rng = np.random.default_rng(seed)
    X, X_test = rng.normal(size=(n_rows, 3)), rng.normal(size=(n_tests, 3))
    return X, np.digitize(X[:, 0], [-0.5, 0.5]), X_test, np.digitize(X_test[:, 0], [-0.5, 0.5])


def of_library(library, name, **settings):
    found = pytest.importorskip(library, reason=f"{library} is not installed")
    return getattr(found, name)(n_estimators=3, **settings)


MODELS = {
    "forest": lambda: RandomForestClassifier(3),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=3),
    "boosted numbers": lambda: GradientBoostingRegressor(n_estimators=3),
    "histograms": lambda: HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3),
    "histograms of numbers": lambda: HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3),
    "xgboost": lambda: of_library("xgboost", "XGBClassifier"),
    "lightgbm": lambda: of_library("lightgbm", "LGBMClassifier", min_child_samples=3),
    "catboost": lambda: of_library("catboost", "CatBoostClassifier", depth=2),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_rows_that_share_most_leaves_come_first(name):
    X, y, X_test, y_test = rows()
    model = MODELS[name]()
    assert default_support(model) == (ls.supports.Leaves(), True)
    reference = final_step(train_reference(model, X, y, 0))
    leaves, of_tests = leaf_numbers(reference, X), leaf_numbers(reference, X_test)
    problem = pose(X, y, X_test, y_test, model=model, support=ls.supports.Leaves(8))
    N = problem.graph.N
    for t in range(len(X_test)):
        shared = [int(np.sum(leaves[z] == of_tests[t])) for z in range(len(X))]
        distance = np.linalg.norm(X - X_test[t], axis=1)
        best = sorted((z for z in range(len(X)) if shared[z]), key=lambda z: (-shared[z], distance[z], z))[:8]
        assert sorted(N[1][N[0][t] : N[0][t + 1]].tolist()) == sorted(best)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "catboost"])
def test_rows_of_equal_leaves_get_equal_predictions_and_leaves_differ(name):
    X, y, _, _ = rows()
    reference = final_step(train_reference(MODELS[name](), X, y, 0))
    leaves = leaf_numbers(reference, X)
    assert leaves.shape == (60, 9 if name in ("boosting", "histograms", "xgboost", "lightgbm") else 3)
    assert (leaves >= 0).all()
    predicted = reference.predict_proba(X) if hasattr(reference, "predict_proba") else reference.predict(X)
    for one in np.unique(leaves, axis=0):
        alike = predicted[(leaves == one).all(axis=1)]
        np.testing.assert_allclose(alike, np.broadcast_to(alike[:1], alike.shape))
    assert len(np.unique(leaves, axis=0)) >= 3


def histogram_leaf(nodes, x):
    """The leaf of a row, by the nodes of a tree of numbers."""
    at = 0
    while not nodes[at]["is_leaf"]:
        node = nodes[at]
        value = x[node["feature_idx"]]
        left = bool(node["missing_go_to_left"]) if np.isnan(value) else value <= node["num_threshold"]
        at = int(node["left"] if left else node["right"])
    return at


def test_leaves_of_histograms_against_the_nodes():
    X, y, X_test, _ = rows()
    X[::5, 0] = X_test[0, 1] = np.nan
    model = HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=3).fit(X, y)
    before = model.predict_proba(X_test)
    found = leaf_numbers(model, X_test)
    trees = [tree.nodes for of_round in model._predictors for tree in of_round]
    assert found.tolist() == [[histogram_leaf(nodes, x) for nodes in trees] for x in X_test]
    np.testing.assert_array_equal(model.predict_proba(X_test), before)  # the model's own trees are left as they were


def test_categories_and_missing_values():
    """A frame with categories; distances are not defined, and ties are broken by the order of the rows."""
    X, y, X_test, y_test = rows(80)
    kinds = pd.CategoricalDtype(["low", "mid", "high"])
    frames = []
    for table in (X, X_test):
        frame = pd.DataFrame(table, columns=["a", "b", "c"])
        frame["kind"] = pd.Categorical.from_codes(np.digitize(table[:, 0], [-0.5, 0.5]), dtype=kinds)
        frame.loc[::4, "b"] = np.nan
        frames.append(frame)
    model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3, categorical_features="from_dtype")
    v = ls.value(frames[0], y, frames[1], y_test, model=model, support=ls.supports.Leaves(5))
    assert set(v.support_sizes) == {5}
    assert v.values.any()


def test_changed_internals_are_refused_clearly():
    X, y, _, _ = rows()
    model = HistGradientBoostingClassifier(max_iter=2).fit(X, y)
    del model._predictors
    with pytest.raises(ls.InvalidArgumentError, match=r"cannot be read with this version of scikit-learn.*Nearest"):
        leaf_numbers(model, X)


def test_models_without_leaves():
    assert not has_leaves(LogisticRegression())
    X, y, X_test, y_test = rows()
    for model in (LogisticRegression(), DecisionTreeClassifier()):
        with pytest.raises(ls.InvalidArgumentError, match="needs a forest or boosted trees"):
            ls.value(X, y, X_test, y_test, model=model, support=ls.supports.Leaves(3))


def test_linear_boosting_has_no_leaves():
    model = of_library("xgboost", "XGBClassifier", booster="gblinear")
    assert default_support(model) == (ls.supports.Nearest(20, standardise=True), False)
