"""Forests, compiled: random forests, extra trees, and bags of trees."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor
from sklearn.utils import check_random_state

from localshapley.arrays import Floats, Indices, Ints, longest, offsets
from localshapley.coalitions.batch import Coalitions
from localshapley.inputs.model import seeded
from localshapley.inputs.task import Task
from localshapley.models.compiled import Usable
from localshapley.models.tree import IS_1_9, LARGEST, GrowingTrainer, TreeTrainer, every_row_once

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
    }
    irrelevant = frozenset({"n_jobs", "verbose"})
    kernels = ("grow_forests",)

    @classmethod
    def is_usable_for(cls, estimator: Any, task: Task) -> Usable:
        """Whether the forest can be grown, with its settings and on these rows."""
        usable = super().is_usable_for(estimator, task)
        weight = getattr(estimator, "class_weight", None)
        if usable and estimator.bootstrap and weight is not None:
            # Which rows are drawn then depends on all labels of a coalition, and on the version of scikit-learn.
            return Usable(f"bootstrap=True, class_weight={weight!r}")
        return usable

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None) -> None:
        at_random = tree_of(estimator).splitter == "random"
        super().__init__(estimator, self._settings_of(estimator), at_random, task, n_jobs)
        self.is_random = True
        self._bootstrap, self._max_samples = bool(estimator.bootstrap), estimator.max_samples
        state = check_random_state(seeded(estimator, task.seed).random_state)
        self._seeds: Ints = state.randint(LARGEST, size=estimator.n_estimators)
        first = [np.random.RandomState(seed).randint(0, LARGEST) for seed in self._seeds_of_trees()]
        self._states = np.array(first, dtype=np.int64)
        self._kept: dict[int, Indices] = {}

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

    def _counts(self, size: int) -> Indices:
        """How often each tree draws each of so many rows."""
        found = self._kept.get(size)
        if found is None:
            state, n_draws = np.random.RandomState(0), number_of_draws(self._max_samples, size)
            found = np.empty((len(self._seeds), size), dtype=np.int32)
            for of_tree, seed in zip(found, self._seeds, strict=True):
                state.seed(seed)
                of_tree[:] = np.bincount(state.randint(0, size, n_draws), minlength=size)
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


def number_of_draws(max_samples: Any, size: int) -> int:
    """Number of rows that a tree draws from a coalition; `max_samples` may be a fraction of it."""
    if max_samples is None:
        return size
    return int(max_samples) if isinstance(max_samples, Integral) else max(int(max_samples * size), 1)


def tree_of(forest: Any) -> Any:
    """The tree that a forest or a bag holds many of; the settings of a forest's trees are its own."""
    if forest.estimator is not None:
        return forest.estimator
    return DecisionTreeClassifier() if is_classifier(forest) else DecisionTreeRegressor()
