"""Tasks, coalitions and predictions that show whether trees and forests are scikit-learn's."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

from localshapley.coalitions.batch import Coalitions
from localshapley.models.dispatch import compiled_trainer_of
from localshapley.models.estimator_checks import seeded
from localshapley.models.task import Task
from localshapley.scoring import SCORES

LOADERS = {
    "iris": load_iris,
    "wine": load_wine,
    "cancer": load_breast_cancer,
    "digits": load_digits,
    "diabetes": load_diabetes,
}


def task_of(X, y, X_test, y_test=None, score=None, seed=0, regression=False):
    X, y, X_test = np.asarray(X), np.asarray(y), np.asarray(X_test)
    y_test = y[: len(X_test)] if y_test is None else np.asarray(y_test)
    if regression:
        return Task(X, y.astype(float), X_test, y_test.astype(float), None, None, score or SCORES["squared_error"]())
    classes, codes = np.unique(y, return_inverse=True)
    codes_test = np.searchsorted(classes, y_test)
    return Task(X, y, X_test, codes_test, classes, codes, score or SCORES["confidence"](), seed=seed)


def real(name, n_rows=105, n_tests=45, **options):
    """Rows of a data set that scikit-learn brings along."""
    X, y = LOADERS[name](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:n_rows], order[n_rows : n_rows + n_tests]
    return task_of(X[train], y[train], X[test], y[test], regression=name == "diabetes", **options)


def made_up(kind, rng, n_rows=60, n_columns=5, n_classes=4, y=None):
    """Random rows with what makes trees differ: repeated and nearly equal values, constant columns, equal rows."""
    X, X_test = rng.normal(size=(n_rows, n_columns)), rng.normal(size=(20, n_columns))
    if kind == "whole numbers":
        X, X_test = np.round(1.5 * X), np.round(1.5 * X_test)
    elif kind == "nearly equal":
        centre = np.array([0.0, 1.0, -2.0, 1e-6, 0.5])
        X, X_test = centre + 3e-7 * X, centre + 3e-7 * X_test
    elif kind == "constant columns":
        X[:, 1], X[:, 3], X[:, 0] = 3.0, rng.random(n_rows) < 0.1, rng.random(n_rows) < 0.5
    elif kind == "equal rows":
        X = X[rng.integers(12, size=n_rows)]
    elif kind == "few in 32 bits":
        X, X_test = 2.0**24 + 3 * X, 2.0**24 + 3 * X_test
    else:
        assert kind == "continuous"
    if y is not None:
        return task_of(X, y, X_test, regression=True)
    return task_of(X, rng.permutation(np.arange(n_rows) % n_classes), X_test)


KINDS = ["continuous", "whole numbers", "nearly equal", "constant columns", "equal rows", "few in 32 bits"]


def some_coalitions(task, n, sizes, seed=0, most_tests=6):
    rng = np.random.default_rng(seed)
    members = [rng.permutation(len(task.X))[: rng.integers(sizes[0], sizes[1] + 1)] for _ in range(n)]
    tests = [rng.permutation(len(task.X_test))[: rng.integers(1, most_tests + 1)] for _ in range(n)]
    return Coalitions.from_lists(members, tests)


def compiled_predictions(model, task, coalitions):
    """What the kernel predicts, of every coalition, without the conventions."""
    trainer = compiled_trainer_of(model)
    assert trainer.is_usable_for(model, task)
    shape = len(coalitions.tests) if task.classes is None else (len(coalitions.tests), len(task.classes))
    out = np.full(shape, np.nan)
    trainer(model, task, 1)._train(coalitions, np.arange(len(coalitions)), out)
    return out.reshape(len(out), -1)


def plain_predictions(model, task, coalitions):
    """Clone, fit, predict."""
    out = np.zeros((len(coalitions.tests), 1 if task.classes is None else len(task.classes)))
    model = seeded(model, task.seed)
    for c in range(len(coalitions)):
        where = slice(coalitions.test_indptr[c], coalitions.test_indptr[c + 1])
        rows, tests = coalitions.coalition(c), task.X_test[coalitions.tests_of(c)]
        fitted = clone(model).fit(task.X[rows], task.y[rows])
        if task.classes is None:
            out[where, 0] = fitted.predict(tests)
        else:
            out[where, np.searchsorted(task.classes, fitted.classes_)] = fitted.predict_proba(tests)
    return out
