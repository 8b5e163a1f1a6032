"""Decision trees, compiled."""

from __future__ import annotations

from math import ceil, log
from numbers import Integral, Real
from typing import Any

import numpy as np
import sklearn
from sklearn.utils import check_random_state

from localshapley.arrays import Floats, Indices, Ints, longest
from localshapley.coalitions.batch import Coalitions
from localshapley.models.compiled import CompiledTrainer, Usable, are_class_weights, class_weights, plain
from localshapley.models.estimator_checks import counts_rows, seeded
from localshapley.models.task import Task

CRITERIA = ("gini", "entropy", "log_loss", "squared_error")
MAX_TABLE = 256
"""Logarithms are tabulated for nodes of up to this many rows."""
LARGEST = 2**31 - 1
"""Scikit-learn draws the seeds of estimators, and the first states of trees, below this number."""
IS_1_9 = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
"""Whether scikit-learn is 1.9 or newer."""
SHORT = 15 if IS_1_9 else 1
"""Scikit-learn sorts up to this many rows of a node by insertion, which keeps the order of equal ones."""


class GrowingTrainer(CompiledTrainer):
    """What single trees and forests share: rows in 32 bits, and the settings by which a tree grows.

    Parameters
    ----------
    estimator : estimator object
    tree : estimator object
        What has the settings of a tree; the estimator itself, unless it is a bag of trees.
    at_random : bool
        Whether thresholds are drawn at random.
    task : Task
    n_jobs : int, optional
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
        "class_weight": are_class_weights,
    }

    def __init__(self, estimator: Any, tree: Any, at_random: bool, task: Task, n_jobs: int | None) -> None:
        from localshapley.kernels.cuts import ENTROPY, GINI, SQUARED_ERROR

        super().__init__(estimator, task, n_jobs)
        self._X, self._X_test = plain(task.X, np.float32), plain(task.X_test, np.float32)
        n_rows, n_columns = self._X.shape
        self._y = plain(task.y) if task.classes is None else np.zeros(n_rows)
        self._criterion = {"gini": GINI, "squared_error": SQUARED_ERROR}.get(tree.criterion, ENTROPY)
        self._at_random = at_random
        self._max_depth = n_rows if tree.max_depth is None else int(tree.max_depth)
        self._max_features = _number_of(tree.max_features, n_columns)
        self._min_leaf = _by_size(tree.min_samples_leaf, n_rows)
        self._min_split = np.maximum(_by_size(tree.min_samples_split, n_rows), 2 * self._min_leaf)
        self._min_decrease = float(tree.min_impurity_decrease)
        self._class_weights = class_weights(getattr(tree, "class_weight", None), task)
        self._is_weighted, self._by_tree = getattr(tree, "class_weight", None) is not None, False
        self._terms = _terms(min(n_rows, MAX_TABLE) if self._criterion == ENTROPY else 0)

    @classmethod
    def is_usable_for(cls, estimator: Any, task: Task) -> Usable:
        """Whether the estimator's trees can be grown, with its settings and on these rows."""
        usable = super().is_usable_for(estimator, task)
        if usable and max(np.abs(X).max() for X in (task.X, task.X_test)) > np.finfo(np.float32).max:
            return Usable("X has numbers too large for 32 bits")
        return usable

    def _grow(self, coalitions: Coalitions, todo: Ints, draws: tuple[Ints, Ints, Ints, Indices], out: Floats) -> None:
        """Grow trees from given states of the random numbers, on rows drawn for each, and average over them."""
        from localshapley.kernels.forest import predict_by_forests

        rows = self._X, self._X_test, self._codes, self._y
        settings = (
            self._criterion,
            self._at_random,
            self._max_depth,
            self._max_features,
            self._min_split,
            self._min_leaf,
            self._min_decrease,
            np.empty((0, 0)) if self._is_weighted else self._terms,
            SHORT,
            self._is_weighted,
            self._by_tree,
        )
        predict_by_forests(
            coalitions.arrays, todo, rows, self._class_weights, settings, draws, out.reshape(len(out), -1)
        )


class TreeTrainer(GrowingTrainer):
    """Grows the same trees as scikit-learn, for the same random state, which decides between equally good splits.

    Classifiers are the same to the last bit, and so are regressors with `splitter="random"`. Other regressors are the
    same trees where sums of `y` are not rounded (whole numbers) or no column holds a value twice, and their means agree
    up to rounding. Elsewhere a tie may be resolved the other way: scikit-learn leaves it to the rounding error of a sum
    whose order depends on its sorting algorithm.
    """

    settings = GrowingTrainer.settings | {"splitter": lambda value: value in ("best", "random")}
    kernels = ("grow_trees",)

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None) -> None:
        super().__init__(estimator, estimator, estimator.splitter == "random", task, n_jobs)
        if self._at_random or self._is_weighted:
            self.kernels = ("grow_forests",)
        n_rows, n_columns = self._X.shape
        order = np.argsort(self._X, axis=0, kind="stable")
        self._ranks = np.empty(order.shape, dtype=np.int32)
        np.put_along_axis(self._ranks, order, np.arange(n_rows, dtype=np.int32)[:, None], axis=0)
        self._seed = int(check_random_state(seeded(estimator, task.seed).random_state).randint(0, LARGEST))
        self.is_random = self._at_random or self._max_features < n_columns
        self.reads_order = not counts_rows(estimator)

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        from localshapley.kernels.cart import predict_by_trees

        if self._at_random or self._is_weighted:
            draws = every_row_once(np.array([self._seed]), longest(coalitions.indptr, todo))
            self._grow(coalitions, todo, draws, out)
            return
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


def every_row_once(states: Ints, most: int) -> tuple[Ints, Ints, Ints, Indices]:
    """What trees draw that take all rows of coalitions with at most so many."""
    return states, *np.zeros((2, most + 1), dtype=np.int64), np.ones(most, dtype=np.int32)


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
