"""Class weights of compiled classifiers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.utils.class_weight import compute_class_weight

import localshapley as ls
from localshapley.models import Task
from localshapley.models.compiled import class_weights
from localshapley.models.forests import BaggingTrainer
from localshapley.models.linear_models import RidgeClassifierTrainer
from localshapley.models.trees import IS_1_9
from localshapley.scoring import SCORES
from models.against import assert_same, scores_of_both


def task(labels):
    classes, codes = np.unique(labels, return_inverse=True)
    X = np.arange(len(labels), dtype=float)[:, None]
    return Task(X, np.array(labels), X[:1], codes[:1], classes, codes, SCORES["accuracy"]())


@pytest.mark.parametrize("given", [{"a": 2, "b": 3, "c": 0.5}, None], ids=str)
def test_weights_are_those_of_scikit_learn(given):
    labels = ["a", "b", "b", "c"]
    balanced, weights = class_weights(given, task(labels))
    assert not balanced
    expected = compute_class_weight(given, classes=np.unique(labels), y=np.array(labels))
    np.testing.assert_array_equal(weights, expected)


@pytest.mark.parametrize(
    ("labels", "weight", "reason"),
    [
        ("aab", {"b": 2}, ""),
        ("abc", {"b": 2}, "class_weight names some of the classes only"),
        ("abc", {"a": 1, "b": 2, "c": 3, "d": 4}, ""),
        ("ab", {"a": 0, "b": 2}, "class_weight={'a': 0, 'b': 2}"),
        ("ab", "other", "class_weight='other'"),
        ("ab", "balanced", ""),
    ],
)
def test_which_weights_are_reproduced(labels, weight, reason):
    """Scikit-learn refuses a coalition of other classes than those with a weight."""
    found = RidgeClassifierTrainer.is_usable_for(RidgeClassifier(class_weight=weight), task(list(labels)))
    assert found.reason == reason


X, Y, X_TEST, Y_TEST, _ = ls.datasets.load("wine")
WINE = scale(X), Y, scale(X_TEST), Y_TEST
WEIGHTS = ["balanced", {0: 0.2, 1: 5, 2: 1.0}]


@pytest.mark.parametrize("weight", WEIGHTS, ids=str)
@pytest.mark.parametrize("C", [0.1, 100])
def test_support_vector_machines(C, weight):
    """The same steps, so that solutions are the same however far from the optimum they end."""
    assert_same(SVC(C=C, class_weight=weight), WINE, "margin", sizes=(3, 60))
    assert_same(SVC(C=C, class_weight=weight, kernel="linear", tol=0.1), WINE, "accuracy", sizes=(3, 60))


@pytest.mark.parametrize("weight", WEIGHTS, ids=str)
@pytest.mark.parametrize("n_features", [4, 13, 100])
def test_logistic_regression(n_features, weight):
    """By features, by rows, and by inner products that are kept."""
    more = np.random.default_rng(0).normal(size=(len(X) + len(X_TEST), 100))
    table = np.hstack([np.vstack([WINE[0], WINE[2]]), more])[:, :n_features]
    data = table[: len(X)], Y, table[len(X) :], Y_TEST
    model = LogisticRegression(class_weight=weight, tol=1e-10, max_iter=1000, solver="newton-cholesky")
    assert_same(model, data, "confidence", tolerance=1e-5, n=10)


TREES = {
    "gini": DecisionTreeClassifier(random_state=1),
    "entropy": DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2, random_state=2),
    "some columns": DecisionTreeClassifier(max_features=2, max_depth=3, min_impurity_decrease=0.01, random_state=3),
    "extra tree": ExtraTreeClassifier(random_state=4),
    "forest": RandomForestClassifier(4, bootstrap=False, random_state=5),
    "extra trees": ExtraTreesClassifier(4, random_state=6),
}


@pytest.mark.parametrize("weight", WEIGHTS, ids=str)
@pytest.mark.parametrize("model", TREES.values(), ids=TREES)
def test_trees_are_the_same_to_the_last_bit(model, weight):
    """Also between rows of whole numbers, where splits are as good as each other up to rounding."""
    for table, test_table in ((X, X_TEST), (X.round(), X_TEST.round())):
        data = table, Y, test_table, Y_TEST
        found, expected = scores_of_both(clone(model).set_params(class_weight=weight), data, sizes=(2, 60), n=12)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("weight", [*WEIGHTS, "balanced_subsample"], ids=str)
@pytest.mark.parametrize("max_samples", [None, 7, 0.6])
def test_forests_draw_the_same_rows(max_samples, weight):
    """Scikit-learn 1.9 draws rows by their weights."""
    if max_samples is not None and not IS_1_9:
        pytest.skip("draws with max_samples are those of scikit-learn 1.9")
    model = RandomForestClassifier(5, class_weight=weight, max_samples=max_samples, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = scores_of_both(model, WINE, sizes=(2, 40), n=12)
    np.testing.assert_array_equal(found, expected)


def test_bags_of_weighted_trees_use_scikit_learn():
    bag = BaggingClassifier(DecisionTreeClassifier(class_weight="balanced"))
    assert BaggingTrainer.is_usable_for(bag, task(["a", "b"])).reason == "class_weight='balanced'"
