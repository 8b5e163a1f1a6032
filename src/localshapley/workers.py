"""From the schedule to the trainer and back: batches come back scored, in order, wherever they were trained."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, TypeAlias

import joblib
import numpy as np
from joblib.parallel import get_active_backend

from localshapley.arrays import AnyArray, Floats
from localshapley.coalitions.batch import Batch, Coalitions
from localshapley.compiling import Stopwatch
from localshapley.errors import TrainingError
from localshapley.games import SupportGraph
from localshapley.models.trainer import Counts, Trained, Trainer, on_cluster

ATTEMPTS = 3
"""Times in a row that workers may die before the run gives up."""
MAX_READY = 1000
"""Maximum number of batches that wait for an earlier one; then nothing new is sent until that one is back."""


class Schedule(Protocol):
    """Gives out coalitions, batch by batch."""

    def take(self, size: int) -> Batch | None: ...

    def left(self) -> float: ...


class Receiver(Protocol):
    """Takes in scores."""

    def add(self, batch: Batch, scores: Floats) -> None: ...


class Memory(Protocol):
    """Remembers the scores of coalitions."""

    @property
    def notes(self) -> list[str]: ...

    def lookup(self, coalitions: Coalitions) -> Floats: ...

    def keep(self, coalitions: Coalitions, trained: Trained, seconds: float) -> None: ...


@dataclass
class Done:
    """What a piece of work took.

    Attributes
    ----------
    trainings : int
        Coalitions trained.
    draws : int
        Coalitions scored, over all test rows, or classes of them.
    reused : int
        Draws that needed no training of their own.
    stored : int
        Coalitions that were remembered.
    parts : int
        Parts of a model that were valued by a formula, without any coalition.
    counts : Counts
    """

    trainings: int = 0
    draws: int = 0
    reused: int = 0
    stored: int = 0
    counts: Counts = field(default_factory=Counts)
    parts: int = 0

    def add(self, other: Done) -> None:
        """Add another piece of work."""
        self.trainings += other.trainings
        self.draws += other.draws
        self.reused += other.reused
        self.stored += other.stored
        self.parts += other.parts
        self.counts.add(other.counts)

    @property
    def progress(self) -> int:
        """Coalitions, classes of them, or parts of the model that are done with."""
        return self.draws - self.reused + self.parts


Work: TypeAlias = Generator[Done, None, None]
"""Work that is under way: yields after each piece what it took."""


@dataclass(frozen=True)
class Bench:
    """Where coalitions are trained.

    Attributes
    ----------
    trainer : Trainer
    memory : Memory, optional
        What it holds is not trained again.
    max_batch : int
        Maximum number of coalitions in a batch.
    seconds_here : float
        Work of a batch that is trained in this process; time limits and interruptions are checked between batches.
    seconds_away : float
        Work that is sent to another process at a time.
    clock : callable
        Gives the time in seconds.
    """

    trainer: Trainer
    memory: Memory | None = None
    max_batch: int = 2**14
    seconds_here: float = 0.5
    seconds_away: float = 1.0
    clock: Callable[[], float] = perf_counter
    _paces: list[float] = field(default_factory=list, repr=False)

    def within(self, seconds: float | None) -> Bench:
        """The same with batches so small that a limit of time is kept to a twentieth of it, or to one training."""
        if seconds is None:
            return self
        here, away = min(self.seconds_here, seconds / 20), min(self.seconds_away, seconds / 20)
        return replace(self, seconds_here=here, seconds_away=away)

    def sizer(self, seconds: float) -> BatchSizer:
        """Sizes of batches that take so long, from the measured pace on, if there is one."""
        sizer = BatchSizer(seconds, self.max_batch, self.trainer.batch_size)
        for pace in self._paces:
            sizer.learn(1, pace)
        return sizer

    def work_off(self, schedule: Schedule, receiver: Receiver) -> Work:
        """Have every coalition of the schedule trained and scored; yields after each batch what it took."""
        with closing(self.score(schedule)) as batches:
            for scored in batches:
                receiver.add(scored.batch, scored.scores)
                yield scored.done

    def score(self, schedule: Schedule) -> Generator[Scored, None, None]:
        """Have every batch of the schedule trained and scored; batches come back in their order."""
        yield from _in_workers(schedule, self) if self.trainer.n_jobs > 1 else _in_process(schedule, self)

    def train(self, coalitions: Coalitions) -> Trained:
        """Have coalitions trained, all of them at once."""
        n_jobs = self.trainer.n_jobs
        if n_jobs == 1:
            return self.trainer.train(coalitions)
        parts = coalitions.parts(4 * n_jobs)
        found = joblib.Parallel(n_jobs)(joblib.delayed(self.trainer.train)(part) for part in parts)
        return Trained.joined(found, [len(part) for part in parts])

    def pace(self, graph: SupportGraph, seed: int, patience: float = 0.5) -> float:
        """Mean seconds of a training, over random coalitions of the supports; measured once, for about `patience`."""
        if not self._paces:
            self._paces.append(_time_trainings(self, graph, seed, patience))
        return self._paces[0]


def _time_trainings(bench: Bench, graph: SupportGraph, seed: int, patience: float) -> float:
    rng = np.random.default_rng(seed)

    def sample(n: int) -> Coalitions:
        tests = rng.integers(graph.n_tests, size=n)
        coalitions = [np.sort(rng.permutation(s)[: rng.integers(len(s) + 1)]) for s in map(graph.support, tests)]
        return Coalitions.from_lists(coalitions, [graph.tests_holding(c) for c in coalitions])

    everyone = graph.game(graph.n_games - 1)
    bench.train(Coalitions.from_lists([everyone[: len(everyone) // 2]], [[0]]))  # one-off work
    trained, spent, n = 0, 0.0, 1
    while spent < patience and trained < 5000:
        coalitions = sample(n)
        with Stopwatch(bench.clock) as watch:
            bench.train(coalitions)
        spent += watch.seconds
        trained += n
        n *= 2
    return max(spent / trained, 1e-12)


@dataclass
class Scored:
    """A batch with its scores, and what they took."""

    batch: Batch
    scores: Floats
    done: Done


@dataclass
class Piece:
    """Part of a batch, with the scores that are known already; `todo` is what remains to be trained."""

    batch: Batch
    scores: Floats
    unknown: AnyArray | None
    todo: Coalitions

    def scored(self, trained: Trained | None) -> Scored:
        """Merge the trained scores with the known ones."""
        trainings, counts = 0, Counts()
        if trained is not None:
            trainings, counts = len(self.todo), trained.counts
            if self.unknown is None:
                self.scores = trained.scores
            else:
                self.scores[self.unknown] = trained.scores
        n, draws = len(self.batch), len(self.scores)
        return Scored(self.batch, self.scores, Done(trainings, draws, draws - n, n - trainings, counts))


class BatchSizer:
    """How many coalitions make `seconds` of work; grows from a few, at most fourfold at a time.

    Parameters
    ----------
    seconds : float
    most : int
        Largest batch.
    fixed : int, optional
        Size of all batches, however long they take.
    """

    def __init__(self, seconds: float, most: int, fixed: int | None = None) -> None:
        self.most = most
        self._target = seconds
        self._seconds = self._trained = 0.0
        self._fixed = fixed
        self.size = fixed or 16

    def learn(self, n: int, seconds: float) -> None:
        """Learn that `n` coalitions took `seconds`."""
        if self._fixed:
            return
        # Old measurements fade: coalitions of one kind often come together.
        self._seconds, self._trained = 0.5 * self._seconds + seconds, 0.5 * self._trained + n
        fitting = self._target * self._trained / max(self._seconds, 1e-9)
        self.size = int(np.clip(fitting, 1, min(4 * self.size, self.most)))


def _in_process(schedule: Schedule, bench: Bench) -> Iterator[Scored]:
    trainer, memory = bench.trainer, bench.memory
    sizer = bench.sizer(bench.seconds_here)
    for piece in _pieces(schedule, memory, sizer, 1):
        if not len(piece.todo):
            yield piece.scored(None)
            continue
        with Stopwatch(bench.clock) as watch:
            trained = trainer.train(piece.todo)
        sizer.learn(len(piece.todo), watch.seconds)
        if memory is not None:
            memory.keep(piece.todo, trained, watch.seconds)
        yield piece.scored(trained)


def _pieces(schedule: Schedule, memory: Memory | None, sizer: BatchSizer, n_jobs: int) -> Iterator[Piece]:
    """Take batches, look up what is known, and cut them so that each piece is about the right amount of work."""
    all_known = False
    size = sizer.size
    while True:
        # Towards the end pieces grow smaller, so that all processes end at about the same time.
        share = schedule.left() / (2 * n_jobs) if n_jobs > 1 else np.inf
        size = min(4 * size, sizer.most) if all_known else max(1, int(min(sizer.size, share)))
        batch = schedule.take(size)
        if batch is None:
            return
        if memory is None:
            yield Piece(batch, np.empty(0), None, batch)
            continue
        known = memory.lookup(batch)
        missing = _coalitions_with(np.isnan(known), batch)
        all_known = not missing.any()
        cuts = np.searchsorted(np.cumsum(missing), np.arange(sizer.size, missing.sum(), sizer.size)) + 1
        for start, stop in zip([0, *cuts], [*cuts, len(batch)], strict=True):
            part = batch.part(start, stop)
            scores = known[batch.test_indptr[start] : batch.test_indptr[stop]]
            unknown = np.isnan(scores)
            yield Piece(part, scores, unknown, part.only(unknown))


def _coalitions_with(marked: AnyArray, batch: Coalitions) -> AnyArray:
    """Which coalitions have a marked test row."""
    before = np.concatenate([[0], np.cumsum(marked)])
    return before[batch.test_indptr[1:]] > before[batch.test_indptr[:-1]]


def _in_workers(schedule: Schedule, bench: Bench) -> Iterator[Scored]:
    """Train in other processes, which joblib provides: on this machine or on a cluster."""
    trainer, memory = bench.trainer, bench.memory
    sizer = bench.sizer(bench.seconds_away)
    source = enumerate(_pieces(schedule, memory, sizer, trainer.n_jobs))
    sent: dict[int, Piece] = {}
    ready = InOrder()
    trouble: list[BaseException] = []
    failures = 0

    def jobs(shared: Any) -> Iterator[Any]:
        # joblib pulls from here in a thread of its own, where an error would be lost.
        try:
            for index in sorted(sent):
                yield joblib.delayed(_train)(shared, index, sent[index].todo)
            while len(ready) < MAX_READY and (item := next(source, None)) is not None:
                index, piece = item
                if len(piece.todo):
                    sent[index] = piece
                    yield joblib.delayed(_train)(shared, index, piece.todo)
                else:
                    ready[index] = piece.scored(None)
        except GeneratorExit:  # joblib has given up, and says why elsewhere
            raise
        except BaseException as error:
            trouble.append(error)

    while True:
        while not sent and (item := next(source, None)) is not None:  # what is known needs no worker
            index, piece = item
            if len(piece.todo):
                sent[index] = piece
            else:
                ready[index] = piece.scored(None)
                yield from ready.take()
        if not sent:
            return
        try:
            with _shared(trainer) as shared:
                parallel = joblib.Parallel(
                    trainer.n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs", batch_size=1
                )
                with closing(parallel(jobs(shared))) as results:
                    for index, trained, seconds in results:
                        failures = 0
                        piece = sent.pop(index)
                        sizer.learn(len(piece.todo), seconds)
                        if memory is not None:
                            memory.keep(piece.todo, trained, seconds)
                        ready[index] = piece.scored(trained)
                        yield from ready.take()
        except Exception as error:
            failures += 1
            if not _is_lost_worker(error):
                raise
            if failures == ATTEMPTS:
                raise TrainingError(
                    f"worker processes died {ATTEMPTS} times in a row ({type(error).__name__}); out of memory? Use "
                    "fewer (n_jobs), or give them more memory."
                ) from error
        if trouble:
            raise trouble[0]


class InOrder(dict[int, Scored]):
    """Batches by their number, to be taken in that order."""

    following = 0

    def take(self) -> Iterator[Scored]:
        """Those whose turn it is."""
        while self.following in self:
            yield self.pop(self.following)
            self.following += 1


def _is_lost_worker(error: Exception) -> bool:
    """Whether an error says that workers died, or lost the data that they were given."""
    lost = ("KilledWorker", "FutureCancelledError", "CancelledError", "CommClosedError")
    return isinstance(error, BrokenExecutor) or type(error).__name__ in lost


def _train(shared: Any, index: int, coalitions: Coalitions) -> tuple[int, Trained, float]:
    """In a worker: train and score a piece."""
    trainer = _load(shared) if isinstance(shared, Path) else shared
    with Stopwatch() as watch:
        trained = trainer.train(coalitions)
    return index, trained, watch.seconds


@contextmanager
def _shared(trainer: Any) -> Iterator[Any]:
    """What workers are given for the trainer, so that its data travels to each of them once."""
    backend, _ = get_active_backend()
    if on_cluster():  # the backend replaces the trainer with what was scattered
        backend.data_futures[id(trainer)] = backend.client.scatter(trainer, broadcast=True, hash=False)
        try:
            yield trainer
        finally:
            del backend.data_futures[id(trainer)]
    elif getattr(backend, "supports_sharedmem", False):
        yield trainer
    else:  # processes of this machine read it from a file, each once
        with tempfile.TemporaryDirectory(prefix="localshapley-") as folder:
            path = Path(folder) / "trainer"
            path.write_bytes(pickle.dumps(joblib.wrap_non_picklable_objects(trainer, keep_wrapper=False)))
            yield path


@lru_cache(maxsize=1)
def _load(path: Path) -> Any:
    return pickle.loads(path.read_bytes())
