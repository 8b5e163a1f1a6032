"""From the schedule to the trainer and back: batches come out scored, in their order, wherever they were trained."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Generator, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import joblib
import numpy as np
from joblib.parallel import get_active_backend

from localshapley.arrays import AnyArray, Floats
from localshapley.coalitions.batch import Batch, Coalitions
from localshapley.errors import TrainingError
from localshapley.models.trainer import Trained, Trainer, Worker, on_cluster

MAX_BATCH = 2**14
SECONDS_HERE = 0.5
"""Work of a batch that is trained in this process; between batches time limits and interruptions are looked at."""
SECONDS_AWAY = 1.0
"""Work that is sent to another process at a time."""
ATTEMPTS = 3
"""So often in a row workers may die before the run gives up."""
MAX_READY = 1000
"""Batches that wait for their turn; beyond, nothing new is sent until the one that they wait for is back."""


class Schedule(Protocol):
    """Gives out coalitions, batch by batch."""

    def take(self, size: int) -> Batch | None: ...

    def left(self) -> float: ...


class Memory(Protocol):
    """Remembers the scores of coalitions."""

    def lookup(self, coalitions: Coalitions) -> Floats: ...

    def keep(self, coalitions: Coalitions, trained: Trained, seconds: float) -> None: ...


@dataclass
class Scored:
    """A batch with its scores, and how many of its coalitions were trained for it."""

    batch: Batch
    scores: Floats
    trainings: int


@dataclass
class Piece:
    """Part of a batch, with the scores that are known already; `todo` is what remains to be trained."""

    batch: Batch
    scores: Floats
    unknown: AnyArray | None
    todo: Coalitions

    def done(self, trained: Trained | None) -> Scored:
        """Put the trained scores to the known ones."""
        if trained is not None:
            if self.unknown is None:
                self.scores = trained.scores
            else:
                self.scores[self.unknown] = trained.scores
        return Scored(self.batch, self.scores, len(self.todo) if trained is not None else 0)


class Pace:
    """How many coalitions make so many seconds of work; grows from few, at most fourfold at a time.

    A trainer whose scores depend on what is trained together, in their last digits, has a fixed `batch_size`, so that
    they do not depend on the time.
    """

    def __init__(self, seconds: float, fixed: int | None = None) -> None:
        self._target = seconds
        self._seconds = self._trained = 0.0
        self._fixed = fixed
        self.size = fixed or 16

    def learn(self, n: int, seconds: float) -> None:
        """Take in that `n` coalitions took so long."""
        if self._fixed:
            return
        # Old measurements fade: coalitions of one kind often come together.
        self._seconds, self._trained = 0.5 * self._seconds + seconds, 0.5 * self._trained + n
        fitting = self._target * self._trained / max(self._seconds, 1e-9)
        self.size = int(np.clip(fitting, 1, min(4 * self.size, MAX_BATCH)))


def score_batches(schedule: Schedule, trainer: Trainer, memory: Memory | None = None) -> Generator[Scored, None, None]:
    """Have every batch of the schedule trained and scored; batches come back in their order."""
    if isinstance(trainer, Worker) and trainer.n_jobs > 1:
        yield from _away(schedule, trainer, memory)
    else:
        yield from _here(schedule, trainer, memory)


def _here(schedule: Schedule, trainer: Trainer, memory: Memory | None) -> Iterator[Scored]:
    pace = Pace(SECONDS_HERE, getattr(trainer, "batch_size", None))
    for piece in _pieces(schedule, memory, pace, 1):
        if not len(piece.todo):
            yield piece.done(None)
            continue
        started = perf_counter()
        if isinstance(trainer, Worker):
            trained = trainer.train(piece.todo)
            trainer.count(trained)
        else:
            trained = Trained(trainer.evaluate(piece.todo))
        seconds = perf_counter() - started
        pace.learn(len(piece.todo), seconds)
        if memory is not None:
            memory.keep(piece.todo, trained, seconds)
        yield piece.done(trained)


def _pieces(schedule: Schedule, memory: Memory | None, pace: Pace, n_jobs: int) -> Iterator[Piece]:
    """Take batches, look up what is known, and cut them so that each piece is about the right amount of work."""
    all_known = False
    size = pace.size
    while True:
        # Towards the end pieces grow smaller, so that all processes end at about the same time.
        share = schedule.left() / (2 * n_jobs) if n_jobs > 1 else np.inf
        size = min(4 * size, MAX_BATCH) if all_known else max(1, int(min(pace.size, share)))
        batch = schedule.take(size)
        if batch is None:
            return
        if memory is None:
            yield Piece(batch, np.empty(0), None, batch)
            continue
        known = memory.lookup(batch)
        missing = _coalitions_with(np.isnan(known), batch)
        all_known = not missing.any()
        cuts = np.searchsorted(np.cumsum(missing), np.arange(pace.size, missing.sum(), pace.size)) + 1
        for start, stop in zip([0, *cuts], [*cuts, len(batch)], strict=True):
            part = batch.part(start, stop)
            scores = known[batch.test_indptr[start] : batch.test_indptr[stop]]
            unknown = np.isnan(scores)
            yield Piece(part, scores, unknown, part.only(unknown))


def _coalitions_with(marked: AnyArray, batch: Coalitions) -> AnyArray:
    """Which coalitions have a marked test row."""
    before = np.concatenate([[0], np.cumsum(marked)])
    return before[batch.test_indptr[1:]] > before[batch.test_indptr[:-1]]


def _away(schedule: Schedule, trainer: Any, memory: Memory | None) -> Iterator[Scored]:
    """Train in other processes, which joblib provides: on this machine or on a cluster."""
    pace = Pace(SECONDS_AWAY)
    source = enumerate(_pieces(schedule, memory, pace, trainer.n_jobs))
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
                    ready[index] = piece.done(None)
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
                ready[index] = piece.done(None)
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
                        trainer.count(trained)
                        pace.learn(len(piece.todo), seconds)
                        if memory is not None:
                            memory.keep(piece.todo, trained, seconds)
                        ready[index] = piece.done(trained)
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
    started = perf_counter()
    trained = trainer.train(coalitions)
    return index, trained, perf_counter() - started


@contextmanager
def _shared(trainer: Any) -> Iterator[Any]:
    """What workers are given for the trainer, so that its data travels to each of them once."""
    backend, _ = get_active_backend()
    if on_cluster():  # the backend replaces the trainer by what has been spread
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
