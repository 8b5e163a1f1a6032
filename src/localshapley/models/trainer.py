"""What trains coalitions: one primitive, and what a trainer may know beyond it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Indices, Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.coalitions.games import SupportGraph
from localshapley.coalitions.random_groups import RandomGroups
from localshapley.formatting import counted
from localshapley.models.task import Task
from localshapley.notes import Note


class Model(ABC):
    """A model of `localshapley.models`: a scikit-learn estimator with a way to train coalitions.

    Attributes
    ----------
    estimator : scikit-learn estimator
        Trained once on all rows, as the reference that supports are found with.
    score : str or None
        The score that it has by default, if not that of all others.
    """

    estimator: Any
    score: str | None = None

    def split(self) -> tuple[Any, Model]:
        """The steps that are fitted once, before all coalitions, and the model behind them; None if there are none."""
        return None, self

    @property
    def may_refuse(self) -> bool:
        """Whether it is to be tried on all rows before a trainer is made."""
        return True

    @abstractmethod
    def trainer(self, task: Task, n_jobs: int | None = None, *, skip_errors: bool = False) -> Trainer:
        """Make the trainer of this model for a task."""


@dataclass
class Counts:
    """What a piece of work took, or a whole run, and what happened in it.

    Attributes
    ----------
    trainings : int
        Coalitions trained.
    draws : int
        Coalitions scored, over all test rows, or classes of them.
    reused : int
        Draws that needed no training of their own.
    stored : int
        Coalitions that were found in a store.
    parts : int
        Parts of a model that were valued by a formula, without any coalition.
    seconds : float
        How long trainings took, over all processes.
    trivial : int
        Coalitions that needed no training: empty, or of one class.
    failed : int
        Coalitions that the model refused (too few rows for it).
    skipped : int
        Coalitions whose training raised an error that was to be skipped.
    silent : int
        Predictions that were NaN, infinite or too large to be scored, or that the model refused to make.
    first_failure, first_skipped : str
    warnings : Counter
        Names of the warnings that fits gave, with their counts.
    """

    trainings: int = 0
    draws: int = 0
    reused: int = 0
    stored: int = 0
    parts: int = 0
    seconds: float = 0.0
    trivial: int = 0
    failed: int = 0
    skipped: int = 0
    silent: int = 0
    first_failure: str = ""
    first_skipped: str = ""
    warnings: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Add what happened elsewhere, or later."""
        self.trainings += other.trainings
        self.draws += other.draws
        self.reused += other.reused
        self.stored += other.stored
        self.parts += other.parts
        self.seconds += other.seconds
        self.trivial += other.trivial
        self.failed += other.failed
        self.skipped += other.skipped
        self.silent += other.silent
        self.first_failure = self.first_failure or other.first_failure
        self.first_skipped = self.first_skipped or other.first_skipped
        self.warnings.update(other.warnings)

    @property
    def progress(self) -> int:
        """Coalitions, classes of them, or parts of a model that are done with."""
        return self.draws - self.reused + self.parts


Work: TypeAlias = Generator[Counts, None, None]
"""Work that is under way: yields after each piece what it took."""


@dataclass
class TrainingOutcome:
    """The outcome of training some coalitions.

    Attributes
    ----------
    scores : array
        One number for each test row of each coalition, flat.
    counts : Counts
    stand_ins : list of int
        Coalitions with a score that stands in for a failure; it must not be stored.
    """

    scores: Floats
    counts: Counts = field(default_factory=Counts)
    stand_ins: list[int] = field(default_factory=list)

    @classmethod
    def joined(cls, parts: Sequence[TrainingOutcome], sizes: Sequence[int]) -> TrainingOutcome:
        """Join the outcomes of parts of the given numbers of coalitions."""
        out = cls(np.concatenate([part.scores for part in parts]) if parts else np.empty(0))
        first = 0
        for part, size in zip(parts, sizes, strict=True):
            out.counts.add(part.counts)
            out.stand_ins += [first + c for c in part.stand_ins]
            first += size
        return out


class Trainer(ABC):
    """Trains coalitions and scores them on their test rows.

    The same coalition always gets the same score, whatever else is in the batch, and in any process.

    Attributes
    ----------
    name : str
    n_jobs : int
        Processes to spread coalitions over; 1 trains in this one.
    batch_size : int or None
        Coalitions per call, for a trainer whose scores depend on what is trained together, up to floating-point
        rounding; None lets the time that trainings take decide.
    is_random : bool
        Whether the model draws random numbers, so that another seed gives other scores.
    reads_order : bool
        Whether scores may depend on the order of the rows, be it in their last bits: sums do.
    is_quick : bool
        Whether a training takes so little time that a sampled run had better train more than compute more.
    may_refuse : bool
        Whether the model may refuse rows for other reasons than their number, so that it is tried on all of them first.
    training_notes : tuple of Note
        What the user should know about how coalitions are trained.
    if_silent : str
        What to do about predictions that are NaN or infinite, where something can be done.
    faster : str
        What would train faster, if anything would.
    kernels : tuple of str
        The kernels that it calls, at most: what there is to compile before its first use on a machine.
    """

    name: str
    n_jobs: int = 1
    batch_size: int | None = None
    is_random: bool = False
    reads_order: bool = True
    is_quick: bool = False
    may_refuse: bool = True
    training_notes: tuple[Note, ...] = ()
    if_silent: str = ""
    faster: str = ""
    kernels: tuple[str, ...] = ()

    @abstractmethod
    def train(self, coalitions: Coalitions) -> TrainingOutcome:
        """Train and score coalitions in this process."""

    def trivial(self, coalitions: Coalitions) -> AnyArray:
        """Which coalitions need no training, as one flag each; they take no time worth counting."""
        return np.zeros(len(coalitions), dtype=bool)

    def evaluate(self, coalitions: Coalitions) -> Floats:
        """Scores alone: one number for each test row of each coalition, flat."""
        return self.train(coalitions).scores

    def solver(self) -> Solver | None:
        """A solver that gives exact values without training, if the model and the score allow it."""
        return None

    def parts(self) -> TreeSum | None:
        """The parts that exact values are sums over, if the model has such parts and the score allows it."""
        return None

    def walker(self) -> Walker | None:
        """A walker that scores each prefix of a permutation from the one before, if model and score allow it."""
        return None

    def notes(self, counts: Counts) -> list[Note]:
        """What a reader of the values should know about the training."""
        found = []
        if counts.failed:
            text = (
                f"{counted(counts.failed, 'coalition')} {'was' if counts.failed == 1 else 'were'} too small for the "
                f"model and {'is' if counts.failed == 1 else 'are'} scored like the empty coalition "
                f"(first: {counts.first_failure})."
            )
            found.append(Note("coalitions-too-small", text, n_coalitions=counts.failed, first=counts.first_failure))
        if counts.skipped:
            text = (
                f"{counted(counts.skipped, 'coalition')} failed to train and {'is' if counts.skipped == 1 else 'are'} "
                f"scored like the empty coalition: the values are biased (first: {counts.first_skipped})."
            )
            found.append(Note("fits-failed", text, n_coalitions=counts.skipped, first=counts.first_skipped))
        if counts.silent:
            remedy = f"; {self.if_silent}" if self.if_silent else ""
            text = (
                f"{counted(counts.silent, 'prediction')} {'was' if counts.silent == 1 else 'were'} missing, NaN, "
                f"infinite or too large to be scored, and {'is' if counts.silent == 1 else 'are'} scored like the "
                f"empty coalition{remedy}."
            )
            found.append(Note("predictions-missing", text, n_predictions=counts.silent))
        return found + [
            Note("fits-warned", f"{counted(count, 'fit')} gave a {name}.", n_fits=count, warning=name)
            for name, count in sorted(counts.warnings.items())
        ]


class Solver(Protocol):
    """Exact values by classes of coalitions that have equal scores and known weights."""

    name: str

    def count_classes(self, graph: SupportGraph) -> int:
        """Number of classes, over all test rows."""

    def solve(self, graph: SupportGraph, out: Floats) -> Iterator[int]:
        """Write the values of the players of every test row's support to `out`, in the order of `graph.N`.

        Yields the number of classes scored, some at a time.
        """


class TreeSum(Protocol):
    """Exact values as sums over the parts of a model, such as the trees of a forest.

    They are summed over the test rows at once, so that nobody needs to list the players of each game.

    Attributes
    ----------
    n_parts : int
    """

    n_parts: int

    def add_up(self) -> Iterator[None]:
        """Compute the values; yields after each part."""

    def values(self) -> Floats:
        """The value of each player, summed over the test rows."""

    def by_test(self, graph: SupportGraph) -> sparse.csr_array:
        """Values to each test row, as a matrix of test rows and players."""

    def by_bundle(self, bundles: RandomGroups) -> Floats:
        """Values to each bundle of test rows, shape (n_bundles, n_players)."""


class Walker(Protocol):
    """Scores of the prefixes of permutations, each from the one before."""

    def walk(
        self,
        graph: SupportGraph,
        order: Indices,
        ends: tuple[Floats, Floats],
        limits: tuple[float, int],
        sums: Floats,
    ) -> tuple[Ints, int]:
        """Score the prefixes of permutations.

        Parameters
        ----------
        graph : SupportGraph
        order : array of shape (n_draws, n_slots)
            Players of each game in the order of their arrival.
        ends : two arrays of shape (n_tests,)
            Scores of the empty and of the full coalition, in the order of `graph.tests`.
        limits : tolerance and patience
            When a test row ends its walk, as in `TMC`; never, if the tolerance is 0.
        sums : array of shape (n_draws, n_slots + n_games)
            Gets the score of each prefix, summed over the test rows of the game, at the position of its size; those of
            game `g` start at ``graph.indptr[g] + g``, and its first one, for the empty prefix, is given.

        Returns
        -------
        lengths : array of shape (n_draws, n_games)
            Size of the last prefix that a test row needed.
        n_scores : int
            Scores needed.
        """
