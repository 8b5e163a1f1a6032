"""What do these coalitions score? One object answers, for runs, `select`, `prune`, `locality_gap` and plans.

It alone knows batches, processes, Dask, the store, the clock, Ctrl-C and counts. Batches come back scored in their
order, wherever they were trained.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter, process_time
from typing import Protocol

import numpy as np
from joblib.parallel import get_active_backend

from localshapley.arrays import Floats
from localshapley.coalitions.batch import Batch, Coalitions, Receiver, Schedule
from localshapley.coalitions.games import SupportGraph
from localshapley.engine.backends import Backend, train_here, train_in_processes, train_on_cluster
from localshapley.engine.pieces import BatchSizer, PendingJobs, Piece
from localshapley.errors import InvalidArgumentError, LocalShapleyError, TrainingError
from localshapley.models.trainer import Counts, Trainer, TrainingOutcome, Work
from localshapley.notes import Note
from localshapley.runtime.argument_checks import LARGEST_SCORE
from localshapley.runtime.compiling import Stopwatch
from localshapley.runtime.dask_cluster import PATIENCE, on_cluster
from localshapley.runtime.progress import Progress
from localshapley.stopping import time_over

ATTEMPTS = 3
"""Times in a row that workers may die before the run gives up."""
MAX_READY = 1000
"""Maximum number of batches of other processes that wait for an earlier one."""
WAITING = 5.0
"""How many times as long as they take the processor trainings may last, for those who wait."""
PROBES = 3
"""Times of which the median says how long a training takes."""
INTERRUPTED = Note("interrupted", "interrupted")
"""What ended work that Ctrl-C cut short."""


class ScoreStore(Protocol):
    """What was trained before."""

    @property
    def notes(self) -> list[Note]:
        """What the user should know about it."""

    def look_up(self, coalitions: Coalitions) -> Floats:
        """Scores of coalitions on their test rows, flat; NaN where they are not known."""

    def keep(self, coalitions: Coalitions, trained: TrainingOutcome) -> None:
        """Keep scores, if they are worth it."""


@dataclass(frozen=True)
class Cost:
    """What a valuation took.

    Attributes
    ----------
    trainer : str
        What trained the coalitions.
    trainings : int
        Coalitions trained; 0 where the model has a closed form.
    draws : int
        Coalitions scored, over all test rows (or classes of them, in a closed form); without reuse each would have
        been trained.
    distinct : int
        Distinct coalitions among them.
    reused : int
        Draws that needed no training of their own.
    trivial : int
        Trainings whose outcome was known: no row, or one class.
    seconds : float
    stored : int
        Coalitions that were found in a store, and needed no training.
    compile_seconds : float
        Additional time for compiling, once per machine.
    """

    trainer: str
    trainings: int
    draws: int
    distinct: int
    reused: int
    trivial: int
    seconds: float
    stored: int = 0
    compile_seconds: float = 0.0


@dataclass
class Executor:
    """Scores coalitions within the limits of a run, and counts what that takes.

    Parameters
    ----------
    trainer : Trainer
    store : ScoreStore, optional
        What it holds is not trained again.
    max_seconds : float, optional
        Limit of time, from the moment at which the executor is made.
    before : float
        Seconds of the limit that had gone by then.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does where there is something to return.
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

    Attributes
    ----------
    counts : Counts
        What was done so far.
    watch : Stopwatch
    """

    trainer: Trainer
    store: ScoreStore | None = None
    max_seconds: float | None = None
    before: float = 0.0
    on_interrupt: str = "raise"
    max_batch: int = 2**14
    seconds_here: float = 0.5
    seconds_away: float = 1.0
    patience: float = PATIENCE
    clock: Callable[[], float] = perf_counter
    cpu_clock: Callable[[], float] = process_time
    _pace: float | None = field(default=None, init=False, repr=False)
    _sizers: dict[float, BatchSizer] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.max_seconds is not None:  # batches so small that it is kept to a twentieth of it, or to one training
            self.seconds_here = min(self.seconds_here, self.max_seconds / 20)
            self.seconds_away = min(self.seconds_away, self.max_seconds / 20)
        self.counts, self.watch = Counts(), Stopwatch(self.clock)

    # Scores of coalitions.

    def scores(self, schedule: Schedule) -> Generator[tuple[Batch, TrainingOutcome], None, None]:
        """Have every coalition of a schedule scored; yields them in order, with what each piece of work took.

        Reads ahead: whoever needs scores to know what to ask next asks again.
        """
        is_here = self.trainer.n_jobs == 1 or any(sizer.is_short(schedule.left()) for sizer in self._sizers.values())
        seconds, max_ready = (self.seconds_here, 1) if is_here else (self.seconds_away, MAX_READY)
        if seconds not in self._sizers:
            self._sizers[seconds] = BatchSizer(seconds, self.max_batch, self.trainer.batch_size)
            if self._pace is not None:
                self._sizers[seconds].learn(1, 1, self._pace)
        sizer, backend = self._sizers[seconds], self._backend(is_here)
        pending = PendingJobs(self._pieces(schedule, sizer, is_here), sizer, max_ready)
        failures = 0
        while True:
            yield from pending.known()
            if not pending.sent:
                break
            try:
                with closing(backend(pending.jobs(), self.trainer)) as outcomes:
                    for index, trained in outcomes:
                        failures = 0
                        piece = pending.back(index, trained.counts.trainings)
                        pending.add(index, piece.batch, self._take_in(piece, trained, sizer))
                        yield from pending.ready()
            except Exception as error:
                failures += 1
                if is_here or not _is_lost_worker(error):
                    raise
                if failures == ATTEMPTS:
                    raise _died(error, f" {ATTEMPTS} times in a row") from error
            if pending.trouble:
                raise pending.trouble[0]

    def feed(self, schedule: Schedule, receiver: Receiver) -> Work:
        """Have every coalition of a schedule scored for a receiver; yields after each piece what it took."""
        with closing(self.scores(schedule)) as batches:
            for batch, scored in batches:
                receiver.add(batch, scored.scores)
                yield scored.counts

    def _backend(self, is_here: bool) -> Backend:
        if is_here:
            return partial(train_here, clock=self.clock)
        return partial(train_on_cluster, patience=self.patience) if on_cluster() else train_in_processes

    def _pieces(self, schedule: Schedule, sizer: BatchSizer, is_here: bool) -> Iterator[Piece]:
        """Take batches, look up what is known, and cut them so that each piece is about the right amount of work."""
        all_known = False
        size = sizer.size
        while True:
            # Towards the end pieces grow smaller, so that all processes end at about the same time.
            share = np.inf if is_here else max(schedule.left() / (2 * self.trainer.n_jobs), sizer.least)
            size = min(4 * size, sizer.most) if all_known else max(1, int(min(sizer.size, share)))
            batch = schedule.take(size)
            if batch is None:
                return
            trivial = np.zeros(len(batch), dtype=bool) if sizer.fixed else self.trainer.trivial(batch)
            rest: Piece | None = Piece(batch, None if self.store is None else self.store.look_up(batch), trivial)
            all_known = rest is not None and not len(rest.todo)
            while rest is not None:
                piece, rest = rest, None
                if piece.n_trainings > sizer.trainings:
                    piece, rest = piece.cut(piece.stops(np.array([sizer.trainings]))[0])
                yield piece

    def _take_in(self, piece: Piece, trained: TrainingOutcome, sizer: BatchSizer) -> TrainingOutcome:
        """Learn from what came of a piece, and keep it; returns the scores of its whole batch."""
        sizer.learn(len(piece.todo), piece.n_trainings, trained.counts.seconds)
        _check(trained, piece.todo, self.trainer.name)
        if self.store is not None:
            self.store.keep(piece.todo, trained)
        return piece.scored(trained)

    # Limits and counts.

    def drain(
        self,
        work: Work,
        bar: Progress | None = None,
        *,
        may_stop: Callable[[], bool],
        refuses: bool = False,
        is_enough: Callable[[], bool] = lambda: False,
    ) -> Note | None:
        """Do the work, as far as the limit of time and Ctrl-C allow.

        Parameters
        ----------
        work : Work
        bar : Progress, optional
        may_stop : callable
            Whether there is something to return now; else the work goes on, and Ctrl-C ends all.
        refuses : bool
            Whether it is an error if time is up before there is something to return.
        is_enough : callable, optional
            Another reason to end the work, as when time is up.

        Returns
        -------
        Note or None
            What cut it short; None if nothing did.
        """
        try:
            with closing(work):
                for counts in work:
                    self.counts.add(counts)
                    if bar is not None:
                        bar.advance(counts.progress)
                    if self.is_late or is_enough():
                        if may_stop():
                            return self.time
                        if refuses:
                            raise self._too_short()
        except KeyboardInterrupt:
            if self.on_interrupt == "raise" or not may_stop():
                raise
            return INTERRUPTED
        return None

    @property
    def elapsed(self) -> float:
        """Seconds of a limit that are gone."""
        return self.before + self.watch.elapsed

    @property
    def is_late(self) -> bool:
        """Whether the limit of time is over."""
        return self.max_seconds is not None and self.elapsed > self.max_seconds

    @property
    def time(self) -> Note:
        """What ends work when time is up."""
        return time_over(self.elapsed, self.max_seconds or 0.0)

    def in_time(self, distinct: int) -> float:
        """Trainings that the limit of time surely has room for, at the pace so far; none where they are too few."""
        if self.max_seconds is None or not distinct or self.store is not None:  # a store keeps what is cut
            return np.inf
        room = 0.8 * (self.max_seconds / max(self.elapsed, 1e-9) - 1)  # a round that is cut is lost
        return room * distinct if room >= 0.1 else 0.0

    def cost(self, distinct: int) -> Cost:
        """What was done, as a result reports it."""
        done = self.counts
        return Cost(
            trainer=self.trainer.name if done.draws else "none",
            trainings=done.trainings,
            draws=done.draws,
            distinct=distinct,
            reused=done.reused,
            trivial=done.trivial,
            seconds=self.watch.seconds,
            stored=done.stored,
            compile_seconds=self.watch.compile_seconds,
        )

    def _too_short(self) -> InvalidArgumentError:
        kept = "Give" if self.store is None else "They are in the store, so the same call goes on from there; give"
        return InvalidArgumentError(
            f"max_seconds={self.max_seconds:g} is too short: after {self.counts.trainings:,} trainings there is no "
            f"estimate yet. {kept} more time, fewer test rows or a smaller support."
        )

    # How long trainings take.

    def pace(self, graph: SupportGraph, seed: int, patience: float = 0.5) -> float:
        """Mean seconds of a training, over random coalitions of the supports; measured once, for about `patience`."""
        if self._pace is None:
            self._pace = self.measure(graph, seed, patience)
        return self._pace

    def measure(self, graph: SupportGraph, seed: int, patience: float) -> float:
        """Seconds of a training, over random coalitions of the supports, for about `patience` seconds.

        More are trained each time, and the last times decide, by their median: the first ones have one-off work to do,
        and a time in which the machine did something else does not count. Trainings so slow that there is no patience
        for three times are timed once.
        """
        rng = np.random.default_rng(seed)

        def sample(n: int) -> Coalitions:
            tests = rng.integers(graph.n_tests, size=n)
            coalitions = [np.sort(rng.permutation(s)[: rng.integers(len(s) + 1)]) for s in map(graph.support, tests)]
            return Coalitions.from_lists(coalitions, [graph.tests_holding(c) for c in coalitions])

        everyone = graph.game(graph.n_games - 1)
        self._seconds_of(Coalitions.from_lists([everyone[: len(everyone) // 2]], [[0]]))  # one-off work
        together = self.trainer.batch_size is not None  # a few take as long as many
        growth, largest = (8, 512) if together else (2, 2048)
        paces, spent, n, trained = list[float](), 0.0, 1, 0
        while (
            not paces or (spent < patience and trained < 3 * largest) or (len(paces) < PROBES and spent < 4 * patience)
        ):
            seconds = self._seconds_of(sample(n))
            spent, trained = spent + seconds, trained + n
            paces.append(seconds / n)
            n = min(n * growth, largest)
        last = paces[-PROBES:]
        return max(min(last) if together else float(np.median(last)), 1e-12)

    def _seconds_of(self, coalitions: Coalitions) -> float:
        """Seconds that it takes to train coalitions at once, past the store."""
        n_jobs = self.trainer.n_jobs
        parts = coalitions.parts(4 * n_jobs) if n_jobs > 1 else [coalitions]
        backend = self._backend(n_jobs == 1)
        jobs = ((index, part, [len(part)], np.inf) for index, part in enumerate(parts))
        try:
            with Stopwatch(self.clock) as watch, closing(backend(jobs, self.trainer)) as outcomes:
                for index, trained in outcomes:
                    _check(trained, parts[index], self.trainer.name)
        except Exception as error:
            if n_jobs > 1 and _is_lost_worker(error):
                raise _died(error) from error
            raise
        return watch.seconds

    def alarm(self, seconds: float) -> Callable[[], bool]:
        """Tell from now on whether trainings took longer than `seconds` of the processor, however busy the machine is.

        Work that this process waits for, such as that of others, may take `WAITING` times as long.
        """
        clocks = (self.clock, self.clock if self.trainer.n_jobs > 1 else self.cpu_clock)
        ends = [clock() + limit for clock, limit in zip(clocks, (WAITING * seconds, seconds), strict=True)]
        return lambda: any(clock() > end for clock, end in zip(clocks, ends, strict=True))


def _check(trained: TrainingOutcome, coalitions: Coalitions, name: str) -> None:
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
