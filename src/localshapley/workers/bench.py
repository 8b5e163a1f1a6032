"""From the schedule to the trainer and back: batches come back scored, in order, wherever they were trained."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter, process_time
from typing import Protocol

import joblib
import numpy as np
from joblib.parallel import get_active_backend

from localshapley.arrays import Floats
from localshapley.coalitions.batch import Batch, Coalitions
from localshapley.compiling import Stopwatch
from localshapley.errors import LocalShapleyError, TrainingError
from localshapley.games import SupportGraph
from localshapley.inputs.numbers import LARGEST_SCORE
from localshapley.models.cluster import PATIENCE, on_cluster
from localshapley.models.trainer import Trained, Trainer
from localshapley.workers.away import Away
from localshapley.workers.cluster import train_on_cluster
from localshapley.workers.pieces import BatchSizer, Outcome, Piece, Scored, Work
from localshapley.workers.processes import train_in_processes

ATTEMPTS = 3
"""Times in a row that workers may die before the run gives up."""
WAITING = 5.0
"""How many times as long as they take the processor trainings may last, for those who wait."""
PROBES = 3
"""Times of which the median says how long a training takes."""


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
    patience : float
        Seconds to wait for workers if a cluster has none left.
    clock, cpu_clock : callable
        Give the time in seconds, and that which the processor spent on this process.
    """

    trainer: Trainer
    memory: Memory | None = None
    max_batch: int = 2**14
    seconds_here: float = 0.5
    seconds_away: float = 1.0
    patience: float = PATIENCE
    clock: Callable[[], float] = perf_counter
    cpu_clock: Callable[[], float] = process_time
    _paces: list[float] = field(default_factory=list, repr=False)
    _sizers: dict[float, BatchSizer] = field(default_factory=dict, repr=False)

    def within(self, seconds: float | None) -> Bench:
        """The same with batches so small that a limit of time is kept to a twentieth of it, or to one training."""
        if seconds is None:
            return self
        here, away = min(self.seconds_here, seconds / 20), min(self.seconds_away, seconds / 20)
        return replace(self, seconds_here=here, seconds_away=away)

    def alarm(self, seconds: float) -> Callable[[], bool]:
        """Tell from now on whether trainings took longer than `seconds` of the processor, however busy the machine is.

        Work that this process waits for, such as that of others, may take `WAITING` times as long.
        """
        clocks = (self.clock, self.clock if self.trainer.n_jobs > 1 else self.cpu_clock)
        ends = [clock() + limit for clock, limit in zip(clocks, (WAITING * seconds, seconds), strict=True)]
        return lambda: any(clock() > end for clock, end in zip(clocks, ends, strict=True))

    def sizer(self, seconds: float) -> BatchSizer:
        """Sizes of batches that take so long, by what was learnt so far."""
        if seconds not in self._sizers:
            self._sizers[seconds] = sizer = BatchSizer(seconds, self.max_batch, self.trainer.batch_size)
            for pace in self._paces:
                sizer.learn(1, 1, pace)
        return self._sizers[seconds]

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
            return _checked(self.trainer.train(coalitions), coalitions, self.trainer.name)
        parts = coalitions.parts(4 * n_jobs)
        try:
            found = joblib.Parallel(n_jobs)(joblib.delayed(self.trainer.train)(part) for part in parts)
        except Exception as error:
            if _is_lost_worker(error):
                raise _died(error) from error
            raise
        return _checked(Trained.joined(found, [len(part) for part in parts]), coalitions, self.trainer.name)

    def pace(self, graph: SupportGraph, seed: int, patience: float = 0.5) -> float:
        """Mean seconds of a training, over random coalitions of the supports; measured once, for about `patience`."""
        if not self._paces:
            self._paces.append(time_trainings(self, graph, seed, patience))
        return self._paces[0]


def time_trainings(bench: Bench, graph: SupportGraph, seed: int, patience: float) -> float:
    """Seconds of a training, over random coalitions of the supports, for about `patience` seconds.

    More are trained each time, and the last times decide, by their median: the first ones have one-off work to do,
    and a time in which the machine did something else does not count. Trainings so slow that there is no patience for
    three times are timed once.
    """
    rng = np.random.default_rng(seed)

    def sample(n: int) -> Coalitions:
        tests = rng.integers(graph.n_tests, size=n)
        coalitions = [np.sort(rng.permutation(s)[: rng.integers(len(s) + 1)]) for s in map(graph.support, tests)]
        return Coalitions.from_lists(coalitions, [graph.tests_holding(c) for c in coalitions])

    everyone = graph.game(graph.n_games - 1)
    bench.train(Coalitions.from_lists([everyone[: len(everyone) // 2]], [[0]]))  # one-off work
    together = bench.trainer.batch_size is not None  # a few take as long as many
    growth, largest = (8, 512) if together else (2, 2048)
    paces, spent, n, trained = list[float](), 0.0, 1, 0
    while not paces or (spent < patience and trained < 3 * largest) or (len(paces) < PROBES and spent < 4 * patience):
        coalitions = sample(n)
        with Stopwatch(bench.clock) as watch:
            bench.train(coalitions)
        spent, trained = spent + watch.seconds, trained + n
        paces.append(watch.seconds / n)
        n = min(n * growth, largest)
    last = paces[-PROBES:]
    return max(min(last) if together else float(np.median(last)), 1e-12)


def _in_process(schedule: Schedule, bench: Bench) -> Iterator[Scored]:
    sizer = bench.sizer(bench.seconds_here)
    for piece in _pieces(schedule, bench, sizer):
        left: Piece | None = piece
        while left is not None:
            if len(left.todo):
                outcome = sizer.job(left).do(bench.trainer, bench.clock)
                done, left = left.cut(outcome.n)
                yield _take_in(done, outcome, bench, sizer)
            else:
                yield left.scored(None)
                left = None


def _pieces(schedule: Schedule, bench: Bench, sizer: BatchSizer) -> Iterator[Piece]:
    """Take batches, look up what is known, and cut them so that each piece is about the right amount of work."""
    trainer, memory, n_jobs = bench.trainer, bench.memory, bench.trainer.n_jobs
    all_known = False
    size = sizer.size
    while True:
        # Towards the end pieces grow smaller, so that all processes end at about the same time.
        share = max(schedule.left() / (2 * n_jobs), sizer.least) if n_jobs > 1 else np.inf
        size = min(4 * size, sizer.most) if all_known else max(1, int(min(sizer.size, share)))
        batch = schedule.take(size)
        if batch is None:
            return
        trivial = np.zeros(len(batch), dtype=bool) if sizer.fixed else trainer.trivial(batch)
        left: Piece | None = Piece(batch, None if memory is None else memory.lookup(batch), trivial)
        all_known = left is not None and not len(left.todo)
        while left is not None:
            piece, left = left.cut(left.stops(np.array([sizer.trainings]))[0])
            yield piece


def _take_in(piece: Piece, outcome: Outcome, bench: Bench, sizer: BatchSizer) -> Scored:
    """Learn from what came of a piece, and keep it."""
    sizer.learn(outcome.n, piece.n_trainings, outcome.seconds)
    _checked(outcome.trained, piece.todo, bench.trainer.name)
    if bench.memory is not None:
        bench.memory.keep(piece.todo, outcome.trained, outcome.seconds)
    return piece.scored(outcome.trained)


def _checked(trained: Trained, coalitions: Coalitions, name: str) -> Trained:
    """Refuse scores that are NaN, or too large for sums of their powers."""
    wrong = np.flatnonzero(~(np.abs(trained.scores) <= LARGEST_SCORE))
    if len(wrong):
        c = int(np.searchsorted(coalitions.test_indptr, wrong[0], side="right")) - 1
        raise TrainingError(
            f"{name} gives a score of {trained.scores[wrong[0]]:.3g} to a coalition of "
            f"{len(coalitions.coalition(c))} players on test row {coalitions.tests[wrong[0]]}, and scores beyond "
            f"{LARGEST_SCORE:g} are too large to compute with; divide scores, or y, by a large number, or use another "
            "score."
        )
    return trained


def _in_workers(schedule: Schedule, bench: Bench) -> Iterator[Scored]:
    """Train in other processes: on this machine or on a cluster."""
    sizer = bench.sizer(bench.seconds_away)
    away = Away(_pieces(schedule, bench, sizer), sizer)
    train = partial(train_on_cluster, patience=bench.patience) if on_cluster() else train_in_processes
    failures = 0
    while True:
        yield from away.known()
        if not away.sent:
            return
        try:
            with closing(train(away.jobs(), bench.trainer)) as outcomes:
                for index, outcome in outcomes:
                    failures = 0
                    done = away.back(index, outcome)
                    away.ready.add(index, _take_in(done, outcome, bench, sizer), is_last=index not in away.sent)
                    yield from away.ready.take()
        except Exception as error:
            failures += 1
            if not _is_lost_worker(error):
                raise
            if failures == ATTEMPTS:
                raise _died(error, f" {ATTEMPTS} times in a row") from error
        if away.trouble:
            raise away.trouble[0]


def _is_lost_worker(error: Exception) -> bool:
    """Whether an error says that workers died, or lost the data that they were given, or that a cluster is gone."""
    lost = ("KilledWorker", "FutureCancelledError", "FuturesCancelledError", "CancelledError", "CommClosedError")
    if isinstance(error, BrokenExecutor) or type(error).__name__ in lost:
        return True
    is_own = isinstance(error, LocalShapleyError)
    return not is_own and on_cluster() and get_active_backend()[0].client.status != "running"


def _died(error: Exception, times: str = "") -> TrainingError:
    who, fewer = "worker processes", "Use fewer (n_jobs)"
    if on_cluster():
        who, fewer = "workers of the Dask cluster", "Start fewer on each machine"
    return TrainingError(
        f"{who} died{times} ({type(error).__name__}); out of memory? {fewer}, or give them more memory."
    )
