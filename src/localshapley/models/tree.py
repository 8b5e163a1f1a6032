"""Decision trees, compiled."""

from __future__ import annotations

from math import ceil, log
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from localshapley.arrays import Floats, Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.inputs.model import seeded
from localshapley.inputs.task import Task
from localshapley.models.compiled import CompiledTrainer, Usable, plain

CRITERIA = ("gini", "entropy", "log_loss", "squared_error")
MAX_TABLE = 256
"""Logarithms are tabulated for nodes of up to this many rows."""


class TreeTrainer(CompiledTrainer):
    """Grows the same trees as scikit-learn, for the same random state, which decides between equally good splits.

    Classifiers are the same to the last bit. Regressors are the same trees where sums of `y` are not rounded (whole
    numbers) or no column holds a value twice, and their means agree up to rounding. Elsewhere a tie may be resolved
    the other way: scikit-learn leaves it to the rounding error of a sum whose order depends on its sorting algorithm.
    """

    settings = {  # noqa: RUF012
        "criterion": lambda value: isinstance(value, str) and value in CRITERIA,
        "max_depth": lambda value: True,
        "max_features": lambda value: True,
        "min_samples_split": lambda value: True,
        "min_samples_leaf": lambda value: True,
        "min_impurity_decrease": lambda value: True,
        "min_weight_fraction_leaf": lambda value: value == 0,
        "ccp_alpha": lambda value: value == 0,
        "random_state": lambda value: True,
    }
    kernels = ("grow_trees",)

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None) -> None:
        from localshapley.kernels.cuts import ENTROPY, GINI, SQUARED_ERROR

        super().__init__(estimator, task, n_jobs)
        self._X, self._X_test = plain(task.X, np.float32), plain(task.X_test, np.float32)
        n_rows, n_columns = self._X.shape
        order = np.argsort(self._X, axis=0, kind="stable")
        self._ranks = np.empty(order.shape, dtype=np.int32)
        np.put_along_axis(self._ranks, order, np.arange(n_rows, dtype=np.int32)[:, None], axis=0)
        self._y = plain(task.y) if task.classes is None else np.zeros(n_rows)
        self._criterion = {"gini": GINI, "squared_error": SQUARED_ERROR}.get(estimator.criterion, ENTROPY)
        self._max_depth = n_rows if estimator.max_depth is None else int(estimator.max_depth)
        self._max_features = _number_of(estimator.max_features, n_columns)
        self._min_leaf = _by_size(estimator.min_samples_leaf, n_rows)
        self._min_split = np.maximum(_by_size(estimator.min_samples_split, n_rows), 2 * self._min_leaf)
        self._min_decrease = float(estimator.min_impurity_decrease)
        self._seed = int(check_random_state(seeded(estimator, task.seed).random_state).randint(0, 2**31 - 1))
        self.is_random = self._max_features < n_columns
        self._terms = _terms(min(n_rows, MAX_TABLE) if self._criterion == ENTROPY else 0)

    @classmethod
    def is_usable_for(cls, estimator: Any, task: Task) -> Usable:
        """Whether the estimator's trees can be grown, with its settings and on these rows."""
        usable = super().is_usable_for(estimator, task)
        if usable and max(np.abs(X).max() for X in (task.X, task.X_test)) > np.finfo(np.float32).max:
            return Usable("X has numbers too large for 32 bits")
        return usable

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        from localshapley.kernels.cart import predict_by_trees

        rows = self._X, self._ranks, self._X_test, self._codes, self._y
        settings = (
            self._criterion,
            self._max_depth,
            self._max_features,
            self._min_split,
            self._min_leaf,
            self._min_decrease,
            self._seed,
            self._terms,
        )
        predict_by_trees(coalitions.arrays, todo, rows, settings, out.reshape(len(out), -1))


def _number_of(max_features: Any, n_columns: int) -> int:
    """Number of columns that are considered for a split."""
    if max_features is None:
        return n_columns
    if isinstance(max_features, Integral):
        return int(max_features)
    if isinstance(max_features, Real):
        return max(1, int(float(max_features) * n_columns))
    return max(1, int({"sqrt": np.sqrt, "log2": np.log2}[max_features](n_columns)))


def _by_size(least: Any, n_rows: int) -> Ints:
    """Minimum number of rows for every size of a coalition; `least` may be a fraction of it."""
    if isinstance(least, Integral):
        return np.full(n_rows + 1, int(least))
    return np.array([ceil(least * size) for size in range(n_rows + 1)])


def _terms(n: int) -> Floats:
    """`p·log₂(p)` of the share p of `column` in `row` rows, up to `n` of both."""
    out = np.zeros((n + 1, n + 1))
    for row in range(1, n + 1):
        out[row, 1 : row + 1] = [count / row * (log(count / row) / log(2.0)) for count in range(1, row + 1)]
    return out
