"""What all compiled trainers share: settings that they reproduce, coalitions that need no training, threads."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from joblib import cpu_count, effective_n_jobs
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.inputs.task import Task
from localshapley.models.trainer import Trained, on_cluster

MAX_PREDICTIONS = 2**22
"""Numbers predicted in one go; a batch with more is cut, so that memory stays bounded."""
PARTS_PER_THREAD = 8
UNKNOWN = -2  # outcome of a coalition that must be trained


@dataclass(frozen=True)
class Usable:
    """Whether a compiled trainer can stand in for an estimator; false with a `reason`.

    >>> bool(Usable()), bool(Usable("probability=True"))
    (True, False)
    """

    reason: str = ""

    def __bool__(self) -> bool:
        return not self.reason


class CompiledTrainer(ABC):
    """Trains coalitions in compiled code, on all cores, where the outcome is not known beforehand.

    A trainer reproduces scikit-learn's estimator for the settings that it names, and says which setting is in the
    way where it does not. Every coalition is trained on its own, so that neither threads nor batches change a bit.

    Attributes
    ----------
    name : str
    n_jobs : int
        Processes to spread over; 1 where threads of this one do the work.
    n_trivial : int
        Coalitions so far that needed no training: empty, or of one class.
    n_silent : int
        Predictions so far that are no number; they count as nothing learnt.
    """

    settings: ClassVar[Mapping[str, Callable[[Any], bool]]]
    """Settings other than the default that are reproduced, each with a test of the value."""
    irrelevant: ClassVar[frozenset[str]] = frozenset()
    """Settings that change nothing in the trained model, or nothing beyond the solver's tolerance."""
    takes_sparse: ClassVar[bool] = False

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None) -> None:
        self.name = f"{type(estimator).__name__} (compiled)"
        self.n_trivial = self.n_silent = 0
        self._task = task
        self._codes = np.zeros(len(task.y), dtype=np.int64) if task.codes is None else plain(task.codes, np.int64)
        # Threads here; on a cluster, which joblib then has as its backend, one process for each core.
        self.n_jobs = effective_n_jobs(n_jobs) if on_cluster() else 1
        self._n_threads = 1 if self.n_jobs > 1 else cpu_count() if n_jobs is None else effective_n_jobs(n_jobs)

    @classmethod
    def is_usable_for(cls, estimator: Any, task: Task) -> Usable:
        """Tell whether this trainer gives what the estimator would; a setting that it does not know is a reason."""
        defaults = inspect.signature(type(estimator).__init__).parameters
        for name, value in estimator.get_params(deep=False).items():
            if name in cls.irrelevant:
                continue
            if not (cls.settings[name](value) if name in cls.settings else _same(value, defaults[name].default)):
                return Usable(f"{name}={value!r}")
        for X in (task.X, task.X_test):
            if sparse.issparse(X) and not cls.takes_sparse:
                return Usable("X is sparse")
            if not sparse.issparse(X) and getattr(X, "dtype", np.dtype(object)).kind not in "biuf":
                return Usable("X is not an array of numbers")
            if not np.isfinite(X.data if sparse.issparse(X) else X).all():
                return Usable("X has missing values")
        return Usable()

    def evaluate(self, coalitions: Coalitions) -> Floats:
        """Train and score every coalition; returns one number for each of its test rows, flat."""
        if not len(coalitions.tests):
            return np.empty(0)
        columns = 1 if self._task.classes is None else len(self._task.classes)
        room = MAX_PREDICTIONS // columns
        if len(coalitions.tests) <= room:
            return self._evaluate(coalitions)
        out = np.empty(len(coalitions.tests))
        start = 0
        while start < len(coalitions):
            stop = int(np.searchsorted(coalitions.test_indptr, coalitions.test_indptr[start] + room, side="right")) - 1
            stop = max(stop, start + 1)
            where = slice(coalitions.test_indptr[start], coalitions.test_indptr[stop])
            out[where] = self._evaluate(coalitions.part(start, stop))
            start = stop
        return out

    def train(self, coalitions: Coalitions) -> Trained:
        """Train and score coalitions in this process."""
        before = self.n_trivial, self.n_silent
        trained = Trained(self.evaluate(coalitions))
        trained.n_trivial, trained.n_silent = self.n_trivial - before[0], self.n_silent - before[1]
        self.n_trivial, self.n_silent = before
        return trained

    def count(self, trained: Trained) -> None:
        """Add up what happened."""
        self.n_trivial += trained.n_trivial
        self.n_silent += trained.n_silent

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Arrays that come from another process may be read-only, for which kernels would be compiled anew.
        self.__dict__ = {k: plain(v, v.dtype) if isinstance(v, np.ndarray) else v for k, v in state.items()}

    def _evaluate(self, coalitions: Coalitions) -> Floats:
        from localshapley.kernels.conventions import fill_outcomes

        task, tests = self._task, coalitions.tests
        outcome = self._outcomes(coalitions)
        todo = np.flatnonzero(outcome == UNKNOWN)
        self.n_trivial += len(coalitions) - len(todo)
        prediction: Floats
        if task.classes is None:
            prediction = np.full(len(tests), float(task.y.mean()))
        else:
            prediction = np.empty((len(tests), len(task.classes)))
            fill_outcomes(coalitions.test_indptr, outcome, prediction)
        self._in_threads(lambda part: self._train(coalitions, part, prediction), todo)
        silent = np.flatnonzero(~np.isfinite(prediction).reshape(len(tests), -1).all(axis=1))
        prediction[silent] = 0
        self.n_silent += len(silent)
        nothing = np.repeat(outcome == -1, np.diff(coalitions.test_indptr))
        if task.score.source == "label":
            prediction = _one_hot(prediction)
            prediction[nothing] = 1 / prediction.shape[1]
        scores = task.score(task.y_test[tests], prediction)
        if len(silent):
            scores[silent] = task.score_nothing_learnt(tests[silent])
        if task.empty is not None:
            scores[nothing] = task.empty
        return scores

    def _outcomes(self, coalitions: Coalitions) -> Ints:
        """For each coalition −1 if it is empty, the class if it has one class only, else `UNKNOWN`."""
        from localshapley.kernels.conventions import find_outcomes

        found: Ints = find_outcomes(coalitions.indptr, coalitions.players, self._codes, self._task.classes is not None)
        return found

    @abstractmethod
    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        """Train the coalitions `todo` and write their predictions to the places of their test rows in `out`.

        `out` has a row for each entry of `coalitions.tests`: a number, or one column for each class of the task,
        probabilities or (where the score reads labels) anything that is largest at the predicted class. Called from
        several threads at once, with different coalitions.
        """

    def _in_threads(self, work: Callable[[Ints], None], todo: Ints, least: int = 16) -> None:
        """Call `work` with parts of `todo`, of `least` entries, in threads (kernels let go of the interpreter)."""
        n_parts = min(PARTS_PER_THREAD * self._n_threads, len(todo) // least) if self._n_threads > 1 else 1
        if n_parts <= 1:
            if len(todo):
                work(todo)
            return
        with ThreadPoolExecutor(self._n_threads) as threads:
            list(threads.map(work, np.array_split(todo, n_parts)))


def plain(array: Any, dtype: Any = np.float64) -> AnyArray:
    """A contiguous, writable array of one type: kernels are compiled for no other, and compiled once."""
    return np.require(array, dtype=dtype, requirements=["C", "W", "A"])


def _same(value: Any, default: Any) -> bool:
    """Whether a setting has its default value."""
    return value is default or (type(value) is type(default) and bool(value == default))


def _one_hot(prediction: Floats) -> Floats:
    """One at the largest entry of each row, the first of equals."""
    out = np.zeros_like(prediction)
    out[np.arange(len(out)), prediction.argmax(axis=1)] = 1
    return out
