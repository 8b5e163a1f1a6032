"""Games of which some are known: a method plays the rest, and every look shows both together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Singles, singles
from localshapley.coalitions.games import SupportGraph
from localshapley.methods.base import CoalitionScorer, Method, Run
from localshapley.methods.limits import Limits
from localshapley.models.trainer import Work
from localshapley.notes import Note
from localshapley.stopping import Look, RelativeError, Rule


@dataclass(frozen=True)
class Known:
    """What is known of the test rows that are not played.

    Attributes
    ----------
    graph : SupportGraph
        All test rows, with their supports.
    tests : bool array of shape (n_tests,)
        Whether a test row is known.
    by_test : array of shape (n_entries,)
        Values to the test rows, at the places of `graph.N`; 0 where they are to be played.
    apart : array of shape (n_entries,)
        Half the difference between what two halves of the draws say; 0 where they are to be played.
    variance : array of shape (n_players,)
        Variance of the values to all known test rows together that is due to the draws.
    spread : array of shape (n_players, n_columns), or None
        Columns whose products are the covariances, as of `Run.spread`.
    """

    graph: SupportGraph
    tests: AnyArray
    by_test: Floats
    apart: Floats
    variance: Floats
    spread: Singles | None = None

    def rest(self) -> SupportGraph:
        """The games to play: known test rows take part with an empty support, which costs nothing."""
        graph, nobody = self.graph, np.empty(0, dtype=np.int32)
        return graph.with_supports([nobody if known else graph.support(t) for t, known in enumerate(self.tests)])

    def halves(self) -> Floats:
        """Values by two halves of the draws."""
        return np.stack([self.by_test + self.apart, self.by_test - self.apart])


@dataclass(frozen=True)
class Enough(Rule):
    """Stop when the games that are played are as sure as a target needs, or as they were before if that is missed.

    Parameters
    ----------
    known : float
        Sum of the variances that are known.
    before : float
        Sum of the variances of those that are played as they were before, or of as many others.
    tol : float
        Relative error of all values together that is enough.
    """

    known: float
    before: float
    tol: float

    def allowed(self, look: Look) -> float:
        """Sum of the variances that the games which are played may have."""
        aim = (self.tol * float(np.linalg.norm(look.values))) ** 2
        return max(aim - self.known, self.before, 1e-200)

    def holds(self, look: Look) -> bool:
        """Whether they have no more, and rare events could not move the values by more than all errors."""
        allowed = self.allowed(look)
        played = float((look.stderr**2).sum()) - self.known
        return played <= allowed and look.unseen**2 <= self.known + allowed

    def reached(self, look: Look) -> Note:
        """The relative error of all values."""
        error = look.relative_error
        return Note("target-reached", f"relative error {error:.3g} (tol {self.tol:g})", error=error, tol=self.tol)


@dataclass(frozen=True)
class Rest(Method):
    """Plays the games that are not known by another method.

    Parameters
    ----------
    method : Method
    known : Known
    enough : Enough, optional
        The rule that rounds are sized to meet.
    """

    name = "rest"
    leaves_tests_out = False  # which of them are known is known of all
    method: Method
    known: Known
    enough: Enough | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", self.method.kind)

    @property
    def title(self) -> str:
        """What the result calls the other method."""
        return self.method.title

    def start(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> Run:
        """Begin a run of the other method."""
        return RestRun(self.known, self.method.start(self.known.rest(), executor, settings), self.enough)


class RestRun(Run):
    """A run of the rest; values, errors and halves are those of all games."""

    def __init__(self, known: Known, played: Run, enough: Enough | None) -> None:
        self.graph, self._known, self._played, self._enough = known.graph, known, played, enough
        self._own: Look | None = None
        self.title, self.why, self.total, self.counts = played.title, played.why, played.total, played.counts
        self.first_look, self.doing, self.kernels, self.complete = (
            played.first_look,
            played.doing,
            played.kernels,
            played.complete,
        )
        self.samples = played.samples or bool(known.variance.any())
        self.rate, self.least_is_bound = played.rate, played.least_is_bound
        self._is_played = np.repeat(~known.tests, known.graph.support_sizes)

    @property
    def least_look(self) -> int:
        """As of the method."""
        return self._played.least_look

    def begin(self) -> Work:
        """As the method begins."""
        yield from self._played.begin()

    def draw(self, left: float, look: Look | None, rule: Rule | None) -> bool:
        """The next round of the method, sized by the error of what is played."""
        if look is None or self._enough is None or self._own is None:
            return self._played.draw(left, self._own, rule)
        allowed = self._enough.allowed(look)
        share = float(np.sqrt(allowed / max(self._enough.known + allowed, 1e-200)))
        own = replace(self._own, values=look.values, unseen=look.unseen * share)
        return self._played.draw(left, own, RelativeError(float(np.sqrt(allowed)) / look.size))

    def train(self) -> Work:
        """The coalitions of the round."""
        yield from self._played.train()

    def look(self, previous: Look | None, seconds: float) -> Look:
        """What the method found, with what is known."""
        own = self._own = self._played.look(self._own, seconds)
        return replace(
            own,
            values=self.graph.values(self._merged(self._played.by_test())),
            stderr=np.sqrt(own.stderr**2 + self._known.variance),
            halves=own.halves + np.stack([self.graph.values(half) for half in self._known.halves()]),
            previous=None if previous is None else previous.values,
        )

    def _merged(self, played: sparse.csr_array) -> Floats:
        out = self._known.by_test.copy()
        out[self._is_played] = played.data
        return out

    @property
    def distinct(self) -> int:
        """Coalitions scored by the method."""
        return self._played.distinct

    @property
    def planned(self) -> int:
        """And those to be scored."""
        return self._played.planned

    @property
    def ended(self) -> Note | None:
        """Why there is no further round."""
        return self._played.ended

    @property
    def can_look(self) -> bool:
        """As of the method."""
        return self._played.can_look

    def cut_short(self) -> None:
        """Forget the unfinished part of the round."""
        self._played.cut_short()

    def by_test(self) -> sparse.csr_array:
        """Values to all test rows."""
        return self.graph.matrix(self._merged(self._played.by_test()))

    def halves_by_test(self) -> Floats | None:
        """Of what is known as of what is played."""
        played = self._played.halves_by_test()
        if played is None and not self._known.apart.any():
            return None
        out = self._known.halves()
        out[:, self._is_played] = self._played.by_test().data if played is None else played
        return out

    def spread(self, stderr: Floats) -> Singles | None:
        """Both, under random signs, so that their products add up."""
        known, own = self._known.spread, self._own
        played = None if own is None or not own.stderr.any() else self._played.spread(own.stderr)
        if known is None or played is None:
            return played if known is None and not self._known.variance.any() else known
        sign = np.random.default_rng(played.shape[0]).choice([-1.0, 1.0], played.shape[1])
        both = known + sign * played
        norm = np.linalg.norm(both, axis=1)
        return singles((both.T * np.divide(stderr, norm, out=np.zeros_like(stderr), where=norm > 0)).T)

    def by_bundle(self) -> Floats | None:
        """Sums over the test rows of each bundle."""
        graph, bundles = self.graph, self.graph.bundles
        if bundles is None:
            return None
        return np.stack([bundles.sums(graph.N, part, bundles.of_test) for part in self._parts()])

    def squares(self) -> Floats | None:
        """Sums over all test rows, where the method has them."""
        if self._played.squares() is None:
            return None
        parts = self._parts()
        return self.graph.values(parts[0] * parts[-1])

    def _parts(self) -> Floats:
        halves = self.halves_by_test()
        return self._merged(self._played.by_test())[None] if halves is None else halves

    @property
    def notes(self) -> list[Note]:
        """As of the method."""
        return self._played.notes
