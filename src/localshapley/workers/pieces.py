"""Pieces of batches: how large they are, what remains to be trained, and what it took."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple, TypeAlias

import numpy as np

from localshapley.arrays import AnyArray, Floats
from localshapley.coalitions.batch import Batch, Coalitions
from localshapley.compiling import Stopwatch
from localshapley.models.trainer import Counts, Trained, Trainer

PARTS = 4
"""Number of parts that a piece of work is trained in; the time is checked after each."""
LEAST_SECONDS = 0.03
"""Work that is worth a way to another process and back."""
LATE = 2.0
"""How many times as long as planned a piece of work may take; then it is cut."""


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


@dataclass
class Scored:
    """A batch with its scores, and what they took."""

    batch: Batch
    scores: Floats
    done: Done


class Outcome(NamedTuple):
    """What came of a job: the first `n` of its coalitions are trained, which took `seconds`."""

    trained: Trained
    n: int
    seconds: float


@dataclass(frozen=True)
class Job:
    """Coalitions to train, up to each of the `stops` in turn, until `seconds` are over."""

    coalitions: Coalitions
    stops: list[int]
    seconds: float

    def do(self, trainer: Trainer, clock: Callable[[], float] = perf_counter) -> Outcome:
        """Train all of them, or up to the first stop that is late."""
        parts, sizes, done = [], [], 0
        with Stopwatch(clock) as watch:
            for stop in self.stops:
                parts.append(trainer.train(self.coalitions.part(done, stop)))
                sizes.append(stop - done)
                done = stop
                if watch.seconds > self.seconds:
                    break
        return Outcome(Trained.joined(parts, sizes), done, watch.seconds)


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

    @property
    def n_trainings(self) -> int:
        """Coalitions that really have to be trained."""
        return int(self._n_until[-1]) if len(self.todo) else 0

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

    def scored(self, trained: Trained | None) -> Scored:
        """Merge the trained scores with the known ones."""
        trainings, counts, scores = 0, Counts(), self._known
        if trained is not None:
            trainings, counts = len(self.todo), trained.counts
            if scores is None:
                scores = trained.scores
            else:
                scores[self._unknown] = trained.scores
        assert scores is not None
        n, draws = len(self.batch), len(scores)
        return Scored(self.batch, scores, Done(trainings, draws, draws - n, n - trainings, counts))


def _coalitions_with(marked: AnyArray, batch: Coalitions) -> AnyArray:
    """Which coalitions have a marked test row."""
    before = np.concatenate([[0], np.cumsum(marked)])
    return before[batch.test_indptr[1:]] > before[batch.test_indptr[:-1]]


class Pace:
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
    """

    def __init__(self, seconds: float, most: int, fixed: int | None = None) -> None:
        self.seconds, self.most, self.fixed = seconds, most, fixed
        self._coalitions, self._trainings = Pace(seconds, most), Pace(seconds, most)

    @property
    def size(self) -> int:
        """Coalitions in a batch."""
        return self.fixed or self._coalitions.size

    @property
    def least(self) -> int:
        """Coalitions that are worth sending to another process."""
        return int(self._coalitions.fitting * LEAST_SECONDS / self.seconds) if self._coalitions.is_known else 1

    @property
    def trainings(self) -> int:
        """Trainings in a piece of a batch."""
        return self.fixed or self._trainings.size

    def learn(self, n: int, n_trainings: int, seconds: float) -> None:
        """Learn that `n` coalitions, of which `n_trainings` had to be trained, took `seconds`."""
        self._coalitions.learn(n, seconds)
        if n_trainings:
            self._trainings.learn(n_trainings, seconds)

    def job(self, piece: Piece) -> Job:
        """A piece as it is to be trained: in parts, so that it can be cut if it turns out slow."""
        marks: AnyArray = np.empty(0)
        if self._trainings.is_known and not self.fixed:
            at_once = max(1, int(self._trainings.fitting / PARTS))
            marks = np.arange(at_once, piece.n_trainings, at_once)
        elif not self.fixed:
            marks = 2 ** np.arange(1, PARTS) - 1  # 1, 2, 4, ... at a time
        return Job(piece.todo, piece.stops(marks), LATE * self.seconds)
