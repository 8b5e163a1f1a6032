"""Forests, compiled: random forests, extra trees, and bags of trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor
from sklearn.utils import check_random_state

from localshapley.arrays import Floats, Indices, Ints, longest, offsets
from localshapley.coalitions.batch import Coalitions
from localshapley.inputs.model import seeded
from localshapley.inputs.task import Task
from localshapley.models.compiled import Usable
from localshapley.models.tree import LARGEST, GrowingTrainer, TreeTrainer, every_row_once

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
        "max_samples": lambda value: value is None or (isinstance(value, float) and value == 1),
    }
    irrelevant = frozenset({"n_jobs", "verbose"})
    kernels = ("grow_forests",)

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None) -> None:
        at_random = isinstance(estimator, ExtraTreesClassifier | ExtraTreesRegressor)
        self._plant(estimator, estimator, at_random, task, n_jobs)
        # A tree draws its rows and its columns from the same seed, each from the start.
        self._states = first_states(self._seeds)

    def _plant(self, estimator: Any, tree: Any, at_random: bool, task: Task, n_jobs: int | None) -> None:
        """Read the settings, and draw a seed for each tree."""
        super().__init__(estimator, tree, at_random, task, n_jobs)
        self.is_random = True
        self._bootstrap = bool(estimator.bootstrap)
        state = check_random_state(seeded(estimator, task.seed).random_state)
        self._seeds = state.randint(LARGEST, size=estimator.n_estimators)
        self._kept: dict[int, Indices] = {}

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
            state = np.random.RandomState(0)
            found = np.empty((len(self._seeds), size), dtype=np.int32)
            for of_tree, seed in zip(found, self._seeds, strict=True):
                state.seed(seed)
                of_tree[:] = np.bincount(state.randint(0, size, size), minlength=size)
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

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None) -> None:
        tree = tree_of(estimator)
        self._plant(estimator, tree, tree.splitter == "random", task, n_jobs)
        # A tree draws its rows from a seed of the bag, and its columns from a seed drawn from this one.
        self._states = first_states(np.array([np.random.RandomState(seed).randint(LARGEST) for seed in self._seeds]))

    @classmethod
    def is_usable_for(cls, estimator: Any, task: Task) -> Usable:
        """Whether the bag can be made, and its trees can be grown, with their settings and on these rows."""
        usable = super().is_usable_for(estimator, task)
        return usable and TreeTrainer.is_usable_for(tree_of(estimator), task)


def first_states(seeds: Ints) -> Ints:
    """State of the random numbers with which trees of these seeds begin."""
    return np.array([np.random.RandomState(seed).randint(0, LARGEST) for seed in seeds], dtype=np.int64)


def tree_of(bag: Any) -> Any:
    """The tree of which a bag holds many."""
    if bag.estimator is not None:
        return bag.estimator
    return DecisionTreeClassifier() if is_classifier(bag) else DecisionTreeRegressor()
