"""Forests, compiled: random forests, extra trees, and bags of trees."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor
from sklearn.utils import check_random_state

from localshapley.arrays import AnyArray, Floats, Indices, Ints, longest, offsets
from localshapley.coalitions.batch import Coalitions
from localshapley.models.compiled import Usable, are_class_weights, class_weights
from localshapley.models.estimator_checks import seeded
from localshapley.models.task import Task
from localshapley.models.trees import IS_1_9, LARGEST, GrowingTrainer, TreeTrainer, every_row_once

TREES = (DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor)
MAX_COUNTS = 2**22
"""How often trees drew which row is tabulated, and kept, up to about this many numbers."""


class ForestTrainer(GrowingTrainer):
    """Grows the same forests as scikit-learn, bit by bit: bootstraps, columns and thresholds are drawn alike.

    The rows that a tree draws depend on the random state and on the number of rows, so coalitions of one size share
    them.
    """

    settings = GrowingTrainer.settings | {
        "n_estimators": lambda value: True,
        "bootstrap": lambda value: True,
        # Before 1.9, the number of rows to draw was rounded differently, and could be too many for a coalition.
        "max_samples": lambda value: IS_1_9 or is_all(value),
        "class_weight": lambda value: are_class_weights(value) or value == "balanced_subsample",
    }
    irrelevant = frozenset({"n_jobs", "verbose"})
    is_quick = False
    least_at_once = 1
    kernels = ("grow_forests",)

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None) -> None:
        at_random = tree_of(estimator).splitter == "random"
        super().__init__(estimator, self._settings_of(estimator), at_random, task, n_jobs)
        self.is_random = True
        self._bootstrap, self._max_samples = bool(estimator.bootstrap), estimator.max_samples
        state = check_random_state(seeded(estimator, task.seed).random_state)
        self._seeds: Ints = state.randint(LARGEST, size=estimator.n_estimators)
        first = [np.random.RandomState(seed).randint(0, LARGEST) for seed in self._seeds_of_trees()]
        self._states = np.array(first, dtype=np.int64)
        self._kept: dict[int, AnyArray] = {}
        self._by_tree = self._bootstrap and getattr(estimator, "class_weight", None) == "balanced_subsample"
        # Scikit-learn 1.9 draws rows by their weights, and trees then have none.
        self._draws_by_weight = IS_1_9 and self._bootstrap and self._is_weighted and not self._by_tree
        self._weights_of_draws = self._class_weights
        if self._draws_by_weight:
            self._class_weights, self._is_weighted = class_weights(None, task), False

    def _settings_of(self, estimator: Any) -> Any:
        """What has the settings of a tree."""
        return estimator

    def _seeds_of_trees(self) -> Ints:
        """Seeds from which trees draw columns and thresholds: those from which they draw rows, from the start again."""
        return self._seeds

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        if not self._bootstrap:
            self._grow(coalitions, todo, every_row_once(self._states, longest(coalitions.indptr, todo)), out)
            return
        if self._draws_by_weight:
            for at in range(len(todo)):
                codes = self._codes[coalitions.coalition(todo[at])]
                self._grow(coalitions, todo[at : at + 1], self._weighted_draws(codes), out)
            return
        size_of = np.diff(coalitions.indptr)[todo]
        sizes = np.unique(size_of)
        table = np.cumsum(sizes * len(self._seeds)) // MAX_COUNTS
        for t in np.unique(table):
            here = sizes[table == t]
            self._grow(coalitions, todo[np.isin(size_of, here)], self._draws(here), out)

    def _draws(self, sizes: Ints) -> tuple[Ints, Ints, Ints, Indices]:
        """What trees draw on coalitions of some sizes, ascending."""
        counts = [self._counts(size) for size in sizes.tolist()]
        first, stride = np.zeros((2, sizes[-1] + 1), dtype=np.int64)
        first[sizes], stride[sizes] = offsets(np.array([c.size for c in counts]))[:-1], sizes
        return self._states, first, stride, np.concatenate([c.ravel() for c in counts])

    def _counts(self, size: int) -> AnyArray:
        """How often each tree draws each of so many rows."""
        n_draws = number_of_draws(self._max_samples, size)

        def draw(state: np.random.RandomState) -> AnyArray:
            return np.bincount(state.randint(0, size, n_draws), minlength=size)

        return self._by_trees(size, np.dtype(np.int32), draw)

    def _weighted_draws(self, codes: Ints) -> tuple[Ints, Ints, Ints, Indices]:
        """What trees draw on a coalition of these classes, where rows are drawn by their weights."""
        balanced, given = self._weights_of_draws
        count, size, n_trees = np.bincount(codes, minlength=len(given)), len(codes), len(self._seeds)
        of_class = size / (np.count_nonzero(count) * np.maximum(count, 1)) if balanced else given
        weights = of_class[codes]
        n_draws = size if self._max_samples is None else number_of_draws(self._max_samples, weights.sum())
        chances = (weights / np.sum(weights)).cumsum()
        uniform = self._by_trees(n_draws, np.dtype(np.float64), lambda state: state.random_sample(n_draws))
        drawn = (chances / chances[-1]).searchsorted(uniform, side="right") + size * np.arange(n_trees)[:, None]
        first, stride = np.zeros((2, size + 1), dtype=np.int64)
        stride[size] = size
        return self._states, first, stride, np.bincount(drawn.ravel(), minlength=size * n_trees).astype(np.int32)

    def _by_trees(self, size: int, dtype: Any, draw: Callable[[np.random.RandomState], AnyArray]) -> AnyArray:
        """What each tree draws from its seed; kept by `size`, while there is room."""
        found = self._kept.get(size)
        if found is None:
            state = np.random.RandomState(0)
            found = np.empty((len(self._seeds), size), dtype=dtype)
            for of_tree, seed in zip(found, self._seeds, strict=True):
                state.seed(seed)
                of_tree[:] = draw(state)
            if sum(kept.size for kept in list(self._kept.values())) + found.size <= MAX_COUNTS:
                self._kept[size] = found
        return found


class BaggingTrainer(ForestTrainer):
    """Grows the same bags of trees as scikit-learn, bit by bit."""

    settings = {  # noqa: RUF012
        "estimator": lambda value: value is None or type(value) in TREES,
        "random_state": lambda value: True,
        **{name: ForestTrainer.settings[name] for name in ("n_estimators", "bootstrap", "max_samples")},
    }

    @classmethod
    def is_usable_for(cls, estimator: Any, task: Task) -> Usable:
        """Whether the bag can be made, and its trees can be grown, with their settings and on these rows."""
        usable = super().is_usable_for(estimator, task)
        if usable and not estimator.bootstrap and not is_all(estimator.max_samples):
            return Usable(f"bootstrap=False, max_samples={estimator.max_samples!r}")
        weight = getattr(tree_of(estimator), "class_weight", None)
        if usable and weight is not None:
            return Usable(f"class_weight={weight!r}")
        return usable and TreeTrainer.is_usable_for(tree_of(estimator), task)

    def _settings_of(self, estimator: Any) -> Any:
        return tree_of(estimator)

    def _seeds_of_trees(self) -> Ints:
        """Seeds drawn from those of the rows."""
        return np.array([np.random.RandomState(seed).randint(LARGEST) for seed in self._seeds])


def is_all(max_samples: Any) -> bool:
    """Whether a tree draws as many rows as there are."""
    return max_samples is None or (isinstance(max_samples, float) and max_samples == 1)


def number_of_draws(max_samples: Any, size: float) -> int:
    """Number of rows that a tree draws from a coalition; `max_samples` may be a fraction of it."""
    if max_samples is None:
        return int(size)
    return int(max_samples) if isinstance(max_samples, Integral) else max(int(max_samples * size), 1)


def tree_of(forest: Any) -> Any:
    """The tree that a forest or a bag holds many of; the settings of a forest's trees are its own."""
    if forest.estimator is not None:
        return forest.estimator
    return DecisionTreeClassifier() if is_classifier(forest) else DecisionTreeRegressor()
