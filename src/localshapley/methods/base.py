"""What a method is: a way to compute values, which the engine drives without knowing which one it is.

A `Method` holds settings and says what it can do; `start` begins a `Run` of it on the games of a problem. The engine
has a run draw coalitions, has them trained and looks at the values, round by round, until the run or a rule ends it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, ClassVar

from scipy import sparse

from localshapley.arrays import Floats, Singles
from localshapley.games import SupportGraph
from localshapley.stopping import Look, Rule
from localshapley.supports.base import Support
from localshapley.supports.given import Everything
from localshapley.workers import Bench, Work

if TYPE_CHECKING:
    from localshapley.methods.settings import Settings


GLOBAL_NOTE = "the game is global: all rows play for every test row."


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
    def start(self, graph: SupportGraph, bench: Bench, settings: Settings) -> Run:
        """Begin a run; refuses what would be too large before anything is trained.

        Parameters
        ----------
        graph : SupportGraph
            The games of the problem.
        bench : Bench
            Where coalitions are trained; its trainer may know short cuts (`solver`, `walker`).
        settings : Settings
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
    """One run of a method.

    Attributes
    ----------
    graph : SupportGraph
        The games that are played.
    title : str
        What the result calls the method.
    why : str
        Why this way was taken, where there was a choice.
    samples : bool
        Whether anything is left to chance.
    total : int or None
        Trainings in all, where that is known before.
    counts_classes : bool
        Whether `total` counts classes of coalitions instead, and nothing is trained.
    first_look : int
        Trainings until values are first known, with an error where they are sampled; at most.
    doing : str
        What the progress bar says.
    complete : str
        What ended the run when nothing was left to chance.
    """

    graph: SupportGraph
    title: str
    why: str = ""
    samples: bool = True
    total: int | None = None
    counts_classes: bool = False
    first_look: int = 0
    doing: str = "training coalitions"
    complete: str = "every subset trained"

    def begin(self) -> Work:
        """Have trained what is needed before anything is drawn."""
        yield from ()

    @abstractmethod
    def draw(self, left: float, look: Look | None, rule: Rule | None) -> bool:
        """Draw the next round, at most `left` new coalitions; False if there is none, see `ended`."""

    @abstractmethod
    def train(self) -> Work:
        """Have the coalitions of the round trained; tells after each piece of work what it took."""

    @abstractmethod
    def look(self, previous: Look | None, seconds: float) -> Look:
        """What all rounds so far say."""

    @property
    @abstractmethod
    def distinct(self) -> int:
        """Distinct coalitions scored so far."""

    @property
    def planned(self) -> int:
        """Coalitions scored, and to be scored for the round: what counts against a budget."""
        return self.distinct

    @property
    def ended(self) -> str:
        """Why there is no further round; empty if it is for the budget."""
        return ""

    @property
    def can_look(self) -> bool:
        """Whether what is finished of a round that was cut short can be used by itself."""
        return False

    def cut_short(self) -> None:
        """Forget what is not finished of the round."""
        raise NotImplementedError

    def by_test(self) -> sparse.csr_array:
        """`φ_z(v_t)` at the last look, as a matrix of test rows and players; for methods that keep test rows."""
        raise NotImplementedError

    def spread(self, stderr: Floats) -> Singles | None:
        """Columns, one row per player, whose products are the covariances of the values, where they are known."""
        return None

    @property
    def notes(self) -> list[str]:
        """What a reader of the values should know."""
        return []


class Certain(Run):
    """A run that leaves nothing to chance: it has one round, and what that says is the answer."""

    samples = False
    _is_drawn = False

    def draw(self, left: float, look: Look | None, rule: Rule | None) -> bool:
        """Once."""
        is_first, self._is_drawn = not self._is_drawn, True
        return is_first

    @property
    def distinct(self) -> int:
        """Coalitions in all, if nothing else is said."""
        return self.total or 0

    @abstractmethod
    def values(self) -> Floats:
        """The value of each player."""

    def look(self, previous: Look | None, seconds: float) -> Look:
        """The answer."""
        return Look.certain(self.values(), self.distinct, seconds)
