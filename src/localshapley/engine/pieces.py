"""Batches in pieces: how large they are, what remains to be trained of each, and in what order they come back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TypeAlias

import numpy as np

from localshapley.arrays import AnyArray, Floats
from localshapley.coalitions.batch import Batch, Coalitions
from localshapley.models.trainer import Trainer, TrainingOutcome
from localshapley.runtime.compiling import Stopwatch

PARTS = 4
"""Number of parts that a piece of work is trained in; the time is checked after each."""
LEAST_SECONDS = 0.03
"""Work that is worth a way to another process and back."""
LATE = 2.0
"""How many times as long as planned a piece of work may take; then it is cut."""

Job: TypeAlias = tuple[int, Coalitions, list[int], float]
"""What is sent of a piece: its number, the coalitions to train, and the stops and seconds of `train_in_parts`."""


def train_in_parts(
    trainer: Trainer,
    coalitions: Coalitions,
    stops: list[int],
    seconds: float,
    clock: Callable[[], float] = perf_counter,
) -> TrainingOutcome:
    """Train coalitions up to each of the `stops` in turn, until `seconds` are over; its counts say how many."""
    parts, sizes, done = [], [], 0
    with Stopwatch(clock) as watch:
        for stop in stops:
            parts.append(trainer.train(coalitions.part(done, stop)))
            sizes.append(stop - done)
            done = stop
            if watch.seconds > seconds:
                break
    trained = TrainingOutcome.joined(parts, sizes)
    trained.counts.trainings, trained.counts.seconds = done, watch.seconds
    return trained


class Piece:
    """Part of a batch, with the scores that are known already.

    Parameters
    ----------
    batch : Batch
    known : array, optional
        The scores, NaN where they are not known; None if none is.
    trivial : bool array of shape (n_coalitions,)
        Which coalitions need no training.

    Attributes
    ----------
    todo : Coalitions
        What remains to be trained, or scored without.
    n_trainings : int
        Coalitions among these that really have to be trained.
    """

    def __init__(self, batch: Batch, known: Floats | None, trivial: AnyArray) -> None:
        self.batch, self._known, self._trivial = batch, known, trivial
        self.todo: Coalitions = batch
        self._places = np.arange(len(batch))
        if known is not None:
            self._unknown = np.isnan(known)
            self._places = np.flatnonzero(_coalitions_with(self._unknown, batch))
            self.todo = batch.only(self._unknown)
        self._n_until = np.cumsum(~trivial[self._places])  # trainings up to each coalition of `todo`, with it
        self.n_trainings = int(self._n_until[-1]) if len(self._places) else 0

    def stops(self, marks: AnyArray) -> list[int]:
        """How many coalitions of `todo` to take for these numbers of trainings, ascending, and for all."""
        inside = marks[marks < self.n_trainings]
        return [*(np.searchsorted(self._n_until, inside) + 1).tolist(), len(self.todo)]

    def cut(self, n: int) -> tuple[Piece, Piece | None]:
        """The piece with the first `n` coalitions of `todo`, and the rest."""
        if n >= len(self.todo):
            return self, None
        place = int(self._places[n - 1]) + 1
        return self._part(0, place), self._part(place, len(self.batch))

    def _part(self, start: int, stop: int) -> Piece:
        known, of_tests = self._known, self.batch.test_indptr
        scores = None if known is None else known[of_tests[start] : of_tests[stop]]
        return Piece(self.batch.part(start, stop), scores, self._trivial[start:stop])

    def scored(self, trained: TrainingOutcome | None) -> TrainingOutcome:
        """The scores of the whole batch, where those that were not known have been trained; and what it took."""
        trained = TrainingOutcome(np.empty(0)) if trained is None else trained
        scores, counts = trained.scores, trained.counts
        if self._known is not None:
            scores = self._known
            scores[self._unknown] = trained.scores
        n, counts.trainings, counts.draws = len(self.batch), len(self.todo), len(scores)
        counts.reused, counts.stored = counts.draws - n, n - counts.trainings
        return TrainingOutcome(scores, counts)


def _coalitions_with(marked: AnyArray, batch: Coalitions) -> AnyArray:
    """Which coalitions have a marked test row."""
    before = np.concatenate([[0], np.cumsum(marked)])
    return before[batch.test_indptr[1:]] > before[batch.test_indptr[:-1]]


class WorkSizer:
    """How many coalitions make `seconds` of work; grows from a few, at most fourfold at a time.

    Parameters
    ----------
    seconds : float
    most : int
        Largest number.
    """

    def __init__(self, seconds: float, most: int) -> None:
        self._target, self._most = seconds, most
        self._seconds = self._trained = 0.0
        self.size = 16
        self.fitting = float(self.size)  # the number itself, however large
        self.is_known = False

    def learn(self, n: int, seconds: float) -> None:
        """Learn that `n` coalitions took `seconds`."""
        self.is_known = True
        # Old measurements fade: coalitions of one kind often come together.
        self._seconds, self._trained = 0.5 * self._seconds + seconds, 0.5 * self._trained + n
        self.fitting = self._target * self._trained / max(self._seconds, 1e-9)
        self.size = int(np.clip(self.fitting, 1, min(4 * self.size, self._most)))


class BatchSizer:
    """How many coalitions to take from the schedule, and how many trainings to do, for `seconds` of work.

    Coalitions of one class need no training. Often thousands of them come first, so the time that they take says
    nothing about a training.

    Parameters
    ----------
    seconds : float
    most : int
        Largest batch.
    fixed : int, optional
        Size of all batches, however long they take.

    Attributes
    ----------
    size : int
        Coalitions in a batch.
    trainings : int
        Trainings in a piece of a batch.
    """

    def __init__(self, seconds: float, most: int, fixed: int | None = None) -> None:
        self.seconds, self.most, self.fixed = seconds, most, fixed
        self._coalitions, self._trainings = WorkSizer(seconds, most), WorkSizer(seconds, most)
        self.size, self.trainings = fixed or self._coalitions.size, fixed or self._trainings.size

    @property
    def least(self) -> int:
        """Coalitions that are worth sending to another process."""
        return int(self._coalitions.fitting * LEAST_SECONDS / self.seconds) if self._coalitions.is_known else 1

    def learn(self, n: int, n_trainings: int, seconds: float) -> None:
        """Learn that `n` coalitions, of which `n_trainings` had to be trained, took `seconds`."""
        self._coalitions.learn(n, seconds)
        if n_trainings:
            self._trainings.learn(n_trainings, seconds)
        if not self.fixed:
            self.size, self.trainings = self._coalitions.size, self._trainings.size

    def job(self, index: int, piece: Piece) -> Job:
        """A piece as it is to be trained: in parts, so that it can be cut if it turns out slow."""
        marks: AnyArray = np.empty(0)
        if self._trainings.is_known and not self.fixed:
            at_once = max(1, int(self._trainings.fitting / PARTS))
            marks = np.arange(at_once, piece.n_trainings, at_once)
        elif not self.fixed:
            marks = 2 ** np.arange(1, PARTS) - 1  # 1, 2, 4, ... at a time
        return index, piece.todo, piece.stops(marks), LATE * self.seconds

    def is_short(self, n: float) -> bool:
        """Whether so many trainings are known to take less time than a batch."""
        return self._trainings.is_known and n <= self._trainings.fitting


class PendingJobs:
    """Pieces that are sent to be trained, come back in any order, maybe in parts, and are passed on in their order.

    Parameters
    ----------
    pieces : iterator of Piece
    sizer : BatchSizer
    max_ready : int
        Maximum number of batches that wait for an earlier one; then nothing new is sent until that one is back.

    Attributes
    ----------
    sent : dict of Piece
        What is not back yet, by number.
    trouble : list of exceptions
        What went wrong while jobs were asked for.
    """

    def __init__(self, pieces: Iterator[Piece], sizer: BatchSizer, max_ready: int) -> None:
        self._new, self._sizer, self._max_ready = enumerate(pieces), sizer, max_ready
        self._to_send: deque[int] = deque()
        self.sent: dict[int, Piece] = {}
        self.trouble: list[BaseException] = []
        self._ready: dict[int, list[tuple[Batch, TrainingOutcome]]] = {}  # the parts of each that are back
        self._whole: set[int] = set()  # those of which all parts are
        self._following = 0

    def known(self) -> Iterator[tuple[Batch, TrainingOutcome]]:
        """What needs no training, up to the next piece that does."""
        yield from self.ready()
        while not self.sent and (self._take_new(1) or self._ready):
            yield from self.ready()

    def jobs(self) -> Iterator[Job]:
        """What to send: first what was lost, or came back unfinished."""
        # joblib pulls from here in a thread of its own, where an error would be lost.
        try:
            self._to_send = deque(sorted(self.sent))
            while self._to_send or self._take_new(self._max_ready):
                index = self._to_send.popleft()
                yield self._sizer.job(index, self.sent[index])
        except GeneratorExit:  # joblib has given up, and says why elsewhere
            raise
        except BaseException as error:
            self.trouble.append(error)

    def back(self, index: int, n: int) -> Piece:
        """Take back the first `n` coalitions of a piece; the rest is sent again."""
        done, left = self.sent[index].cut(n)
        if left is None:
            del self.sent[index]
        else:
            self.sent[index] = left
            self._to_send.append(index)
        return done

    def add(self, index: int, batch: Batch, scored: TrainingOutcome) -> None:
        """Add what is scored of a piece."""
        if index not in self.sent:
            self._whole.add(index)
        self._ready[index] = [*self._ready.get(index, []), (batch, scored)]  # at once: another thread may be taking

    def ready(self) -> Iterator[tuple[Batch, TrainingOutcome]]:
        """What is scored and next in order."""
        while self._following in self._ready:
            yield from self._ready.pop(self._following)
            if self._following not in self._whole:
                return
            self._whole.remove(self._following)
            self._following += 1

    def _take_new(self, max_ready: int) -> bool:
        """Take new pieces, up to one that is to be sent; False if there is none, or so many wait for an earlier one."""
        while len(self._ready) < max_ready:
            index, piece = next(self._new, (-1, None))
            if piece is None:
                return False
            if len(piece.todo):
                self.sent[index] = piece
                self._to_send.append(index)
                return True
            self.add(index, piece.batch, piece.scored(None))
        return False
