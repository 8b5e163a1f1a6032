"""What a method is: a way to compute values, which the engine drives without knowing which one it is.

A `Method` holds settings and says what it can do; `start` begins a `Run` of it on the games of a problem. Round by
round the engine has the run draw coalitions, has them trained and asks for an `Estimate`, until the run or a rule ends
it. A run draws and takes in scores; all that is known of values and errors is in its estimates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from localshapley.arrays import Floats
from localshapley.coalitions.batch import Batch, Receiver, Schedule
from localshapley.coalitions.games import SupportGraph
from localshapley.coalitions.sampled import Collection
from localshapley.models.trainer import Trainer, TrainingOutcome, Work
from localshapley.notes import Note
from localshapley.sampling.estimate import Estimate, PerTest
from localshapley.stopping import Rule
from localshapley.supports.base import Support
from localshapley.supports.given import Everything

if TYPE_CHECKING:
    from localshapley.methods.limits import Limits


GLOBAL_NOTE = Note("game-global", "the game is global: all rows play for every test row.")
EVERY_SUBSET = Note("exact", "every subset trained")
"""What ends a run that has nothing left to train."""


class CoalitionScorer(Protocol):
    """Whom a run asks for scores: the executor, with processes, the store, the clock and counts behind it."""

    trainer: Trainer

    def scores(self, schedule: Schedule) -> Generator[tuple[Batch, TrainingOutcome], None, None]:
        """Score the coalitions of a schedule, in order; counts say what each piece took."""

    def feed(self, schedule: Schedule, receiver: Receiver) -> Work:
        """Score the coalitions of a schedule for a receiver; yields after each piece what it took."""

    def pace(self, graph: SupportGraph, seed: int, patience: float = 0.5) -> float:
        """Mean seconds of a training."""


class Method(ABC):
    """A way to compute values.

    Attributes
    ----------
    name : str
        What `value(method=...)` calls it.
    kind : {"sampled", "exact", "no estimate"}
        Only a sampled method takes `tol`, `stop` and `max_seconds`.
    plays_all : bool
        Whether all rows play for every test row, whatever the supports.
    keeps_tests : bool
        Whether it can keep the values to each test row (`per_test=True`).
    """

    name: ClassVar[str]
    kind: ClassVar[str] = "sampled"
    plays_all: ClassVar[bool] = False
    keeps_tests: ClassVar[bool] = True

    @abstractmethod
    def start(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> Run:
        """Begin a run; refuses what would be too large before anything is trained.

        Parameters
        ----------
        graph : SupportGraph
            The games of the problem.
        executor : CoalitionScorer
            Scores coalitions; its trainer may know short cuts (`solver`, `walker`).
        settings : Limits
            Seed, budget, stopping rule, and whether the values to each test row are to be kept.
        """

    def support(self, given: Support | None) -> Support | None:
        """The support to play with: all rows, or the one that is given."""
        return Everything() if self.plays_all else given

    @property
    def title(self) -> str:
        """What a result calls it: its name, or its settings where they are not the default ones."""
        changed = is_dataclass(self) and any(getattr(self, f.name) != f.default for f in fields(self))
        return repr(self) if changed else self.name


class Run(ABC):
    """Draws coalitions, has them trained, and takes in their scores.

    Attributes
    ----------
    graph : SupportGraph
        The games that are played.
    title : str
        What the result calls the method.
    why : str
        Why this way was taken, where there was a choice.
    samples : bool
        Whether anything is sampled.
    rate : float
        The power of the draws with which its errors shrink, for forecasts.
    total : int or None
        Trainings in all, where that is known beforehand.
    counts : {"trainings", "classes", "parts"}
        What `total` counts: trainings or, where nothing is trained, classes of coalitions or parts of the model.
    first_look : int
        Maximum number of trainings until values are first known, with an error if they are sampled.
    least_is_bound : bool
        Whether values may be known before `least_look` trainings; then the run goes on until the limit of time.
    kernels : tuple of str
        The kernels that it calls, at most: what there is to compile before its first use on a machine.
    complete : Note
        What ended the run, if nothing was sampled.
    """

    graph: SupportGraph
    title: str
    why: str = ""
    samples: bool = True
    rate: float = 0.5
    total: int | None = None
    counts: str = "trainings"
    first_look: int = 0
    least_is_bound: bool = False
    kernels: tuple[str, ...] = ()
    complete: Note = EVERY_SUBSET

    @property
    def least_look(self) -> int:
        """Minimum number of trainings until values are first known, if there is no time for more."""
        return self.first_look

    def begin(self) -> Work:
        """Train what is needed before anything is drawn."""
        yield from ()

    @abstractmethod
    def draw(self, left: float, estimate: Estimate | None, rule: Rule | None) -> bool:
        """Draw the next round, at most `left` new coalitions; False if there is none, see `ended`."""

    @abstractmethod
    def train(self) -> Work:
        """Have the coalitions of the round trained; yields after each piece of work what it took."""

    @abstractmethod
    def estimate(self) -> Estimate:
        """Return what is known from all rounds so far; asked for once after each of them."""

    @property
    @abstractmethod
    def distinct(self) -> int:
        """Distinct coalitions scored so far."""

    @property
    def planned(self) -> int:
        """Coalitions scored, and to be scored for the round: what counts against a budget."""
        return self.distinct

    @property
    def ended(self) -> Note | None:
        """Why there is no further round; None if the budget is the reason."""
        return None

    @property
    def can_look(self) -> bool:
        """Whether the finished part of a round that was cut short can be used by itself."""
        return False

    def cut_short(self) -> None:
        """Forget the unfinished part of the round."""
        raise NotImplementedError

    @property
    def notes(self) -> list[Note]:
        """What a reader of the values should know."""
        return []


class DeterministicRun(Run):
    """A run without sampling: it has one round, which gives the answer."""

    samples = False
    _is_drawn = False

    def draw(self, left: float, estimate: Estimate | None, rule: Rule | None) -> bool:
        """Once."""
        is_first, self._is_drawn = not self._is_drawn, True
        return is_first

    @property
    def distinct(self) -> int:
        """All coalitions, unless a subclass says otherwise."""
        return self.total or 0

    @abstractmethod
    def values(self) -> Floats:
        """The value of each player."""

    def per_test(self) -> PerTest | None:
        """The values to each test row, if the method tells test rows apart."""
        return None

    def estimate(self) -> Estimate:
        """Return the answer."""
        return Estimate.certain(self.values(), self.distinct, self.per_test())


class Collecting(Run):
    """A run that draws distinct subsets of all games: each is kept and trained once.

    Attributes
    ----------
    collection : Collection
        All subsets drawn so far, with their scores.
    """

    collection: Collection
    _executor: CoalitionScorer

    def train(self) -> Work:
        """The subsets that are drawn and not trained yet."""
        return self._executor.feed(self.collection, self.collection)

    @property
    def distinct(self) -> int:
        """Subsets trained."""
        return self.collection.n_scored

    @property
    def planned(self) -> int:
        """Subsets drawn."""
        return self.collection.n_rows

    def cut_short(self) -> None:
        """Forget subsets that are not trained; an unfinished round would be biased."""
        self.collection.truncate(self.collection.n_scored)
