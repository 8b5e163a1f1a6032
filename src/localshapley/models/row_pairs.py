"""What trainers that read pairs of rows share: pairs are computed once, when both rows have occurred in coalitions."""

from __future__ import annotations

from abc import abstractmethod
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from localshapley.arrays import Indices, Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.models.compiled import CompiledTrainer, Usable
from localshapley.models.task import Task
from localshapley.models.trainer import Trained

MAX_PAIRS = 2**27
"""1 GiB of pairs."""


class PairTrainer(CompiledTrainer):
    """A trainer that keeps a number for every pair of rows: an inner product, a distance or a kernel value.

    Parameters
    ----------
    estimator, task, n_jobs
    max_pairs : int
        Up to this many pairs are kept; beyond that, those of a coalition are computed when it is trained.
    """

    takes_sparse = True

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None, *, max_pairs: int = MAX_PAIRS) -> None:
        super().__init__(estimator, task, n_jobs)
        self._estimator = estimator
        self._keeps_pairs = pairs_fit(task, max_pairs)
        self._is_known = np.full(task.X.shape[0], True)  # rows whose pairs need not be computed (again)
        self._learning = Lock()

    @classmethod
    def is_usable_for(cls, estimator: Any, task: Task, max_pairs: int = MAX_PAIRS) -> Usable:
        """Whether this trainer gives what the estimator would; a setting that it does not know is a reason not to."""
        usable = super().is_usable_for(estimator, task)
        if usable and sparse.issparse(task.X) and not pairs_fit(task, max_pairs):
            return Usable(f"a sparse X of {task.X.shape[0]} rows")
        return usable

    def __reduce__(self) -> Any:
        return type(self), (self._estimator, self._task, self._n_threads)  # a copy learns the pairs that it needs

    def train(self, coalitions: Coalitions) -> Trained:
        """Train and score coalitions in this process."""
        with self._learning:
            self._learn(coalitions.players)
        return super().train(coalitions)

    def _learn(self, players: Indices) -> None:
        """Compute the pairs of new rows with each other and with known ones."""
        occurs = np.full(len(self._is_known), False)
        occurs[players] = True
        new = np.flatnonzero(occurs & ~self._is_known)
        if len(new) == 0:
            return
        known = np.flatnonzero(self._is_known)
        rows = np.concatenate([known, new]).astype(np.int32)
        self._in_threads(lambda part: self._learn_pairs(rows, part), np.arange(len(known), len(rows)))
        self._is_known[new] = True

    @abstractmethod
    def _learn_pairs(self, rows: Indices, part: Ints) -> None:
        """Compute the pairs of the rows at the places `part` with those before them, and with all test rows."""


def pairs_fit(task: Task, max_pairs: int = MAX_PAIRS) -> bool:
    """Whether all pairs of training rows with each other and with test rows may be kept."""
    n_rows = int(task.X.shape[0])
    return n_rows * (n_rows + int(task.X_test.shape[0])) <= max_pairs
