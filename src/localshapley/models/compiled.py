"""What all compiled trainers share: settings that they reproduce, coalitions that need no training, threads."""

from __future__ import annotations

import inspect
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Indices, Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.data.rows import extremes, numbers_in
from localshapley.models.task import UNKNOWN, Task
from localshapley.models.trainer import Counts, Trainer, TrainingOutcome
from localshapley.runtime.dask_cluster import n_processes, on_cluster
from localshapley.runtime.threads import in_threads, threads_for


def are_class_weights(value: Any) -> bool:
    """Whether class weights are reproduced: none, balanced, or positive numbers by class."""
    if isinstance(value, Mapping):
        return all(isinstance(weight, Real) and 0 < float(weight) < np.inf for weight in value.values())
    return value is None or (isinstance(value, str) and value == "balanced")


def cover_coalitions(value: Mapping[Any, float], task: Task) -> bool:
    """Whether class weights are enough for every coalition.

    Scikit-learn refuses rows that have none of the classes with a weight and others besides. Coalitions that are
    trained have two classes at least, so that cannot happen where there are only two, or all have a weight.
    """
    if task.classes is None:
        return True
    classes = task.classes.tolist()
    named = len(classes) == 2 and all(label in classes for label in value)
    return named or all(label in value for label in classes)


def class_weights(value: Any, task: Task) -> tuple[bool, Floats]:
    """Whether weights are balanced, and the weight of each class, for kernels; numbers to predict are one class."""
    classes = [None] if task.classes is None else task.classes.tolist()
    given = value if isinstance(value, Mapping) else {}
    return isinstance(value, str), np.array([float(given.get(label, 1)) for label in classes])


PARTS_PER_THREAD = 8
ALL = sys.maxsize
MAX_DENSE = 2**25
"""Maximum number of entries of sparse rows that are made dense."""
SPARSE_AS_DENSE = frozenset(
    {
        "DecisionTreeClassifier",
        "DecisionTreeRegressor",
        "ExtraTreeClassifier",
        "ExtraTreeRegressor",
        "RandomForestClassifier",
        "RandomForestRegressor",
        "ExtraTreesClassifier",
        "ExtraTreesRegressor",
        "BaggingClassifier",
        "BaggingRegressor",
        "Lasso",
        "ElasticNet",
        "LinearRegression",
        "LinearSVC",
    }
)
"""Estimators that learn the same from sparse rows as from dense ones."""


@dataclass(frozen=True)
class Usable:
    """Whether a compiled trainer can stand in for an estimator; false with a `reason`.

    >>> bool(Usable()), bool(Usable("probability=True"))
    (True, False)
    """

    reason: str = ""

    def __bool__(self) -> bool:
        return not self.reason


class CompiledTrainer(Trainer):
    """Trains coalitions in compiled code, on all cores, where the outcome is not known beforehand.

    A trainer reproduces scikit-learn's estimator for the settings that it lists, and otherwise says which setting
    prevents it. Every coalition is trained on its own, so neither threads nor batches change the result.

    Attributes
    ----------
    max_predictions : int
        Maximum number of predictions at once; a batch with more is cut, so that memory stays bounded.
    """

    is_quick = True
    may_refuse = False  # what an estimator refuses, `is_usable_for` leaves to it
    max_predictions: int = 2**22
    settings: ClassVar[Mapping[str, Callable[[Any], bool]]]
    """Settings other than the default that are reproduced, each with a test of the value."""
    irrelevant: ClassVar[frozenset[str]] = frozenset()
    """Settings that do not change the trained model, or not beyond the solver's tolerance."""
    takes_sparse: ClassVar[bool] = False
    least_at_once: ClassVar[int] = 16
    """Trainings that are worth the way to another thread; `ALL` where `_train` has threads of its own."""
    centres: ClassVar[bool] = False
    """Whether it subtracts the mean of all rows, which `Task.centre` gives where only some of them are there."""

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None) -> None:
        self.name = f"{type(estimator).__name__} (compiled)"
        self._task = task
        self._codes = np.zeros(len(task.y), dtype=np.int64) if task.codes is None else plain(task.codes, np.int64)
        # Threads here; on a cluster (joblib's backend is then Dask) one process for each core.
        self.n_jobs = n_processes(n_jobs) if on_cluster() else 1
        self._n_threads = 1 if self.n_jobs > 1 else threads_for(n_jobs)

    @classmethod
    def is_usable_for(cls, estimator: Any, task: Task) -> Usable:
        """Whether this trainer gives what the estimator would; a setting that it does not know is a reason not to."""
        defaults = inspect.signature(type(estimator).__init__).parameters
        for name, value in estimator.get_params(deep=False).items():
            if name in cls.irrelevant:
                continue
            if not (cls.settings[name](value) if name in cls.settings else _same(value, defaults[name].default)):
                return Usable(f"{name}={value!r}")
        weights = getattr(estimator, "class_weight", None)
        if isinstance(weights, Mapping) and not cover_coalitions(weights, task):
            return Usable("class_weight names some of the classes only")
        for X in (task.X, task.X_test):
            if sparse.issparse(X) and not cls.takes_sparse:
                if type(estimator).__name__ not in SPARSE_AS_DENSE:
                    return Usable("X is sparse")
                if X.shape[0] * X.shape[1] > MAX_DENSE:
                    return Usable(f"X is sparse, and dense it would have {X.shape[0] * X.shape[1]:,} entries")
            if not sparse.issparse(X) and getattr(X, "dtype", np.dtype(object)).kind not in "biuf":
                return Usable("X is not an array of numbers")
            if not np.isfinite(extremes(numbers_in(X))).all():
                return Usable("X has missing values")
        return Usable()

    def train(self, coalitions: Coalitions) -> TrainingOutcome:
        """Train and score coalitions in this process."""
        parts = coalitions.bounded(self.max_predictions // self._task.n_outputs)
        return TrainingOutcome.joined([self._train_part(part) for part in parts], [len(part) for part in parts])

    def trivial(self, coalitions: Coalitions) -> AnyArray:
        """Which coalitions are empty, or of one class."""
        return self._task.is_known(coalitions.indptr, coalitions.players)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Arrays from another process may be read-only, and kernels would be compiled again for these.
        self.__dict__ = {name: _writable(value) for name, value in state.items()}

    def _train_part(self, coalitions: Coalitions) -> TrainingOutcome:
        task = self._task
        outcome = task.outcomes(coalitions.indptr, coalitions.players)
        todo = np.flatnonzero(outcome == UNKNOWN)
        prediction = task.room_for(len(coalitions.tests))
        if len(prediction):
            self._in_threads(lambda part: self._train(coalitions, part, prediction), todo)
        of_tests = np.repeat(outcome, np.diff(coalitions.test_indptr))
        scores, silent = task.score_predictions(coalitions.tests, prediction, of_tests)
        counts = Counts(trivial=len(coalitions) - len(todo), silent=int(silent.sum()))
        # A regressor without an answer is scored by the mean of all rows, which are others in the next run or fold.
        coalition = np.repeat(np.arange(len(coalitions)), np.diff(coalitions.test_indptr))
        return TrainingOutcome(scores, counts, np.unique(coalition[silent & (task.classes is None)]).tolist())

    @abstractmethod
    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        """Train the coalitions `todo` and write their predictions to the places of their test rows in `out`.

        `out` has a row for each entry of `coalitions.tests`: a number, or one column for each class of the task,
        probabilities or (where the score reads labels) anything that is largest at the predicted class. Called from
        several threads at once, with different coalitions.
        """

    def _in_threads(self, work: Callable[[Ints], None], todo: Ints, least: int | None = None) -> None:
        """Call `work` with parts of `todo`, of `least` entries, in threads (kernels release the GIL)."""
        most = PARTS_PER_THREAD * self._n_threads if self._n_threads > 1 else 1
        n_parts = min(most, len(todo) // (least or self.least_at_once))
        if n_parts <= 1:
            if len(todo):
                work(todo)
            return
        self._in_own_threads(work, np.array_split(todo, n_parts))

    def _in_own_threads(self, work: Callable[[Ints], None], parts: list[Ints]) -> None:
        in_threads(work, parts, self._n_threads)


def plain(array: Any, dtype: Any = np.float64) -> AnyArray:
    """A contiguous, writable array of one type: kernels are compiled for no other, and compiled once."""
    if sparse.issparse(array):
        array = array.astype(dtype).toarray()
    return np.require(array, dtype=dtype, requirements=["C", "W", "A"])


def _writable(value: Any) -> Any:
    """An array that can be written, or a tuple of such; anything else as it is."""
    if isinstance(value, tuple):
        return tuple(_writable(entry) for entry in value)
    return plain(value, value.dtype) if isinstance(value, np.ndarray) else value


def _same(value: Any, default: Any) -> bool:
    """Whether a setting has its default value."""
    return value is default or (type(value) is type(default) and bool(value == default))


MAX_PAIRS = 2**27
"""1 GiB of pairs."""


class PairwiseTrainer(CompiledTrainer):
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

    def train(self, coalitions: Coalitions) -> TrainingOutcome:
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
