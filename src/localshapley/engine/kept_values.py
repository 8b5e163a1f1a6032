"""Values that an update keeps: they join each estimate of the games that are played again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Singles, singles
from localshapley.coalitions.games import SupportGraph
from localshapley.notes import Note
from localshapley.sampling.estimate import Estimate, PerTest
from localshapley.stopping import RelativeError, Rule


@dataclass(frozen=True)
class KeptValues:
    """Values of the test rows that are not played.

    Attributes
    ----------
    graph : SupportGraph
        All test rows, with their supports.
    tests : bool array of shape (n_tests,)
        Whether a test row is kept.
    by_test : array of shape (n_entries,)
        Values to the test rows, at the places of `graph.N`; 0 where they are to be played.
    apart : array of shape (n_entries,)
        Half the difference between what two halves of the draws say; 0 where they are to be played.
    variance : array of shape (n_players,)
        Variance of the values to all kept test rows together that is due to the draws.
    spread : array of shape (n_players, n_columns), or None
        Columns whose products are the covariances, as of `Estimate.covariance`.
    enough : EnoughPlayed, optional
        The rule that rounds are sized to meet.
    """

    graph: SupportGraph
    tests: AnyArray
    by_test: Floats
    apart: Floats
    variance: Floats
    spread: Singles | None = None
    enough: EnoughPlayed | None = None

    def rest(self) -> SupportGraph:
        """Return the games to play: kept test rows take part with an empty support, which costs nothing."""
        graph, nobody = self.graph, np.empty(0, dtype=np.int32)
        return graph.with_supports([nobody if kept else graph.support(t) for t, kept in enumerate(self.tests)])

    def joined(self, played: Estimate) -> Estimate:
        """Return the estimate of all test rows, from that of those that are played."""
        assert played.per_test is not None
        per_test = JoinedTests(self, played.per_test)
        stderr = np.sqrt(played.stderr**2 + self.variance)
        return replace(
            played,
            values=self.graph.values(per_test.entries()),
            stderr=stderr,
            halves=played.halves + np.stack([self.graph.values(half) for half in self.halves()]),
            per_test=per_test,
            covariance=partial(self._covariance, played, stderr),
        )

    def for_round(
        self, played: Estimate | None, joined: Estimate | None, rule: Rule | None
    ) -> tuple[Estimate | None, Rule | None]:
        """Return what sizes the next round: what is known of the games that are played, and what is to be reached."""
        if played is None or joined is None or self.enough is None:
            return played, rule
        return self.enough.for_round(played, joined)

    def halves(self) -> Floats:
        """Return the values by two halves of the draws."""
        return np.stack([self.by_test + self.apart, self.by_test - self.apart])

    def _covariance(self, played: Estimate, stderr: Floats) -> Singles | None:
        """Return the columns of both under random signs, so that their products add up."""
        of_played = played.covariance() if played.stderr.any() else None
        if self.spread is None or of_played is None:
            return of_played if self.spread is None and not self.variance.any() else self.spread
        sign = np.random.default_rng(of_played.shape[0]).choice([-1.0, 1.0], of_played.shape[1])
        both = self.spread + sign * of_played
        norm = np.linalg.norm(both, axis=1)
        return singles((both.T * np.divide(stderr, norm, out=np.zeros_like(stderr), where=norm > 0)).T)


class JoinedTests(PerTest):
    """Values to each test row, kept or played."""

    def __init__(self, kept: KeptValues, played: PerTest) -> None:
        self.graph, self._kept, self._played = kept.graph, kept, played
        self._is_played = np.repeat(~kept.tests, kept.graph.support_sizes)

    def entries(self) -> Floats:
        """Return the values at the places of `graph.N`."""
        out = self._kept.by_test.copy()
        out[self._is_played] = self._played.matrix().data
        return out

    def matrix(self) -> sparse.csr_array:
        """Return the values to all test rows."""
        return self.graph.matrix(self.entries())

    def halves(self) -> Floats | None:
        """Return those of what is kept and of what is played."""
        played = self._played.halves()
        if played is None and not self._kept.apart.any():
            return None
        out = self._kept.halves()
        out[:, self._is_played] = self._played.matrix().data if played is None else played
        return out

    def by_bundle(self) -> Floats | None:
        """Return sums over the test rows of each bundle."""
        graph, bundles = self.graph, self.graph.bundles
        if bundles is None:
            return None
        return np.stack([bundles.sums(graph.N, part, bundles.of_test) for part in self._parts()])

    def squares(self) -> Floats | None:
        """Return sums over all test rows, where the method has them."""
        if self._played.squares() is None:
            return None
        parts = self._parts()
        return self.graph.values(parts[0] * parts[-1])

    def _parts(self) -> Floats:
        halves = self.halves()
        return self.entries()[None] if halves is None else halves


@dataclass(frozen=True)
class EnoughPlayed(Rule):
    """Stop when the games that are played are as sure as a target needs, or as they were before if that is missed.

    Parameters
    ----------
    kept : float
        Sum of the variances of what is kept.
    before : float
        Sum of the variances of those that are played as they were before, or of as many others.
    tol : float
        Relative error of all values together that is enough.
    """

    kept: float
    before: float
    tol: float

    def allowed(self, estimate: Estimate) -> float:
        """Return the sum of the variances that the games which are played may have."""
        aim = (self.tol * float(np.linalg.norm(estimate.values))) ** 2
        return max(aim - self.kept, self.before, 1e-200)

    def holds(self, estimate: Estimate) -> bool:
        """Whether they have no more, and rare events could not move the values by more than all errors."""
        allowed = self.allowed(estimate)
        played = float((estimate.stderr**2).sum()) - self.kept
        return played <= allowed and estimate.unseen**2 <= self.kept + allowed

    def reached(self, estimate: Estimate) -> Note:
        """The relative error of all values."""
        error = estimate.relative_error
        return Note("target-reached", f"relative error {error:.3g} (tol {self.tol:g})", error=error, tol=self.tol)

    def for_round(self, played: Estimate, joined: Estimate) -> tuple[Estimate, Rule]:
        """Return what sizes the next round of what is played: its own errors beside all values, and their target."""
        allowed = self.allowed(joined)
        share = float(np.sqrt(allowed / max(self.kept + allowed, 1e-200)))
        beside_all = replace(played, values=joined.values, unseen=joined.unseen * share)
        return beside_all, RelativeError(float(np.sqrt(allowed)) / joined.size)
