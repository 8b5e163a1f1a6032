"""Class weights of compiled classifiers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.utils.class_weight import compute_class_weight

from localshapley.models import Task
from localshapley.models.linear import RidgeClassifierTrainer
from localshapley.models.weights import class_weights
from localshapley.scores import SCORES


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
