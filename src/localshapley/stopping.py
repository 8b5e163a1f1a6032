"""When a sampled run may stop.

Rules look at a run between rounds and combine: ``RelativeError(0.1) | Trainings(50_000)`` stops at whichever comes
first, ``&`` only when both hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from localshapley.arrays import Floats
from localshapley.coalitions.jackknife_blocks import HARDLY
from localshapley.errors import InvalidArgumentError
from localshapley.notes import Note
from localshapley.runtime.argument_checks import check_flag, check_number, check_whole
from localshapley.sampling.estimate import Estimate
from localshapley.sampling.ranking import Doubt

__all__ = ["AmongWorst", "Estimate", "RankStable", "RelativeChange", "RelativeError", "Rule", "Seconds", "Trainings"]


class Rule(ABC):
    """A condition on a run."""

    @abstractmethod
    def holds(self, estimate: Estimate) -> bool:
        """Whether the run may stop."""

    @abstractmethod
    def reached(self, estimate: Estimate) -> Note:
        """What the run reached, in the terms of the rule."""

    @property
    def aim(self) -> float | None:
        """The relative error that the rule waits for, if it does: rounds are sized to meet it."""
        return None

    @property
    def step(self) -> int:
        """Minimum number of draws per game between two looks."""
        return 0

    def __and__(self, other: Rule) -> Rule:
        return _Both(self, _checked(other))

    def __or__(self, other: Rule) -> Rule:
        return _Either(self, _checked(other))


def _checked(other: Any) -> Rule:
    if not isinstance(other, Rule):
        raise InvalidArgumentError(f"stopping rules combine with stopping rules; got {other!r}.")
    return other


@dataclass(frozen=True)
class _Pair(Rule):
    one: Rule
    two: Rule

    @property
    def step(self) -> int:
        return max(self.one.step, self.two.step)

    def _aims(self) -> list[float]:
        return [rule.aim for rule in (self.one, self.two) if rule.aim is not None]


class _Both(_Pair):
    @property
    def aim(self) -> float | None:
        return min(self._aims(), default=None)

    def holds(self, estimate: Estimate) -> bool:
        return self.one.holds(estimate) and self.two.holds(estimate)

    def reached(self, estimate: Estimate) -> Note:
        return _together([self.one.reached(estimate), self.two.reached(estimate)])


class _Either(_Pair):
    @property
    def aim(self) -> float | None:
        return max(self._aims(), default=None)

    def holds(self, estimate: Estimate) -> bool:
        return self.one.holds(estimate) or self.two.holds(estimate)

    def reached(self, estimate: Estimate) -> Note:
        held = [rule.reached(estimate) for rule in (self.one, self.two) if rule.holds(estimate)]
        return held[0] if held else _together([self.one.reached(estimate), self.two.reached(estimate)])


def _together(reached: list[Note]) -> Note:
    return Note("all-reached", " and ".join(reached), reached=reached)


@dataclass(frozen=True)
class RelativeError(Rule):
    """Stop when the standard errors of all values together, `‖stderr‖ / ‖values‖`, are at most `tol`.

    A run does not stop either while an event that is too rare to have been drawn could still move the values by more:
    games that look certain take a few hundred draws.

    Values that are all zero never get there. So a run also stops once they cannot be told from zero (their errors are
    half as large as they are, or larger) and their errors are at most `tol` of a hundredth of the range of scores. It
    then says that values are zero, and a note that the target was not reached.

    Parameters
    ----------
    tol : float, default=0.1
    """

    tol: float = 0.1

    def __post_init__(self) -> None:
        check_number("RelativeError(tol=...)", self.tol, above=0)

    @property
    def aim(self) -> float:
        """The target."""
        return self.tol

    def holds(self, estimate: Estimate) -> bool:
        """Whether the relative error is small enough, or the values are as good as zero."""
        return float(np.hypot(*estimate.relative_parts)) <= self.tol

    def reached(self, estimate: Estimate) -> Note:
        """The relative error against the target, or how near to zero the values are."""
        error = estimate.relative_error
        if error <= self.tol or not self.holds(estimate):
            return Note("target-reached", f"relative error {error:.3g} (tol {self.tol:g})", error=error, tol=self.tol)
        if not estimate.scale:
            return Note("scores-equal", "all scores drawn were the same")
        share = estimate.zero_within
        return Note(
            "values-zero", f"values are zero to within {100 * share:.2g} % of the range of scores", within=share
        )


@dataclass(frozen=True)
class Seconds(Rule):
    """Stop after `seconds`.

    Parameters
    ----------
    seconds : float
    """

    seconds: float

    def __post_init__(self) -> None:
        check_number("Seconds(seconds=...)", self.seconds, above=0)

    def holds(self, estimate: Estimate) -> bool:
        """Whether the time is up."""
        return estimate.seconds >= self.seconds

    def reached(self, estimate: Estimate) -> Note:
        """The time against the limit."""
        return time_over(estimate.seconds, self.seconds)


@dataclass(frozen=True)
class Trainings(Rule):
    """Stop after `trainings`; `budget` does the same and is never exceeded, this rule is checked between rounds.

    Parameters
    ----------
    trainings : int
    """

    trainings: int

    def __post_init__(self) -> None:
        check_whole("Trainings(trainings=...)", self.trainings)

    def holds(self, estimate: Estimate) -> bool:
        """Whether there were that many trainings."""
        return estimate.trainings >= self.trainings

    def reached(self, estimate: Estimate) -> Note:
        """The trainings against the limit."""
        text = f"{estimate.trainings:,} trainings (limit {self.trainings:,})"
        return Note("trainings-reached", text, trainings=estimate.trainings, limit=self.trainings)


@dataclass(frozen=True)
class RelativeChange(Rule):
    """The paper's rule: stop when the values changed by less than `tau` over `every` draws per game.

    The change is the mean over players of `|φ − φ_before| / (|φ| + 1e-12)`. It says nothing about the error: a
    noisy running mean passes it too. It is here to compare with the paper.

    Parameters
    ----------
    tau : float, default=0.05
    every : int, default=100
        Draws per game between two looks; looks closer together do not count.
    """

    tau: float = 0.05
    every: int = 100

    def __post_init__(self) -> None:
        check_number("RelativeChange(tau=...)", self.tau, above=0)
        check_whole("RelativeChange(every=...)", self.every)

    @property
    def step(self) -> int:
        """Draws per game between two looks."""
        return self.every

    def change(self, estimate: Estimate) -> float:
        """The mean relative change since the look before."""
        if estimate.previous is None:
            return np.inf
        return float(np.mean(np.abs(estimate.values - estimate.previous) / (np.abs(estimate.values) + 1e-12)))

    def holds(self, estimate: Estimate) -> bool:
        """Whether the values have settled."""
        # Rounding may leave a game up to one draw short.
        return estimate.draws_since > self.every - 1 and self.change(estimate) < self.tau

    def reached(self, estimate: Estimate) -> Note:
        """The change against the limit."""
        change = self.change(estimate)
        return Note(
            "values-settled", f"mean relative change {change:.3g} (tau {self.tau:g})", change=change, tau=self.tau
        )


@dataclass(frozen=True)
class RankStable(Rule):
    """Stop when two halves of the draws rank the players alike: enough if you only need a ranking.

    Parameters
    ----------
    top : int, optional
        Compare the sets of the `top` best players; by default Spearman's correlation of all players is compared.
    agreement : float, default=0.9
        Minimum share of the set that both halves have in common, or minimum correlation.
    """

    top: int | None = None
    agreement: float = 0.9

    def __post_init__(self) -> None:
        check_number("RankStable(agreement=...)", self.agreement, above=0, most=1)
        check_whole("RankStable(top=...)", self.top, optional=True)

    def shared(self, estimate: Estimate) -> float:
        """How much the halves agree, up to 1."""
        one, two = estimate.halves
        if self.top is not None:
            best = [set(np.argsort(-half, kind="stable")[: self.top].tolist()) for half in (one, two)]
            return len(best[0] & best[1]) / max(len(best[0]), 1)
        return rank_correlation(one, two)

    def holds(self, estimate: Estimate) -> bool:
        """Whether the halves agree."""
        return self.shared(estimate) >= self.agreement

    def reached(self, estimate: Estimate) -> Note:
        """The agreement against the target."""
        what = f"top {self.top} of both halves agree to" if self.top is not None else "rank correlation of both halves"
        shared = self.shared(estimate)
        text = f"{what} {shared:.3g} (wanted {self.agreement:g})"
        return Note("ranking-stable", text, top=self.top, agreement=shared, wanted=self.agreement)


@dataclass(frozen=True)
class AmongWorst(Rule):
    """Stop when more draws would hardly tell better which `k` players are the worst: the test rows leave the rest open.

    Values are also off because other test rows might have been there, which no number of draws changes. So a run waits
    until the draws' error is at most half of that, and the `k` players found to be the worst hold almost as many of the
    true ones as they would with exact values.

    Parameters
    ----------
    k : int, default=20
    slack : float, default=0.05
        Share of the true `k` that more draws might still add.
    best : bool, default=False
        Whether the best are asked for.
    """

    k: int = 20
    slack: float = 0.05
    best: bool = False

    def __post_init__(self) -> None:
        check_whole("AmongWorst(k=...)", self.k)
        check_number("AmongWorst(slack=...)", self.slack, above=0, most=1)
        check_flag("AmongWorst(best=...)", self.best)

    def known(self, estimate: Estimate) -> tuple[float, float]:
        """Expected share of the true `k` in those found so far, and with exact values."""
        tests, n = estimate.spread_tests(), min(self.k, len(estimate.values))
        values = -estimate.values if self.best else estimate.values
        doubts = [
            Doubt.of(values, stderr, draws=None, tests=tests) for stderr in (estimate.stderr, 0 * estimate.stderr)
        ]
        so_far, at_most = (doubt.lowest(n, 0.95).expected / n for doubt in doubts)
        return so_far, at_most

    def holds(self, estimate: Estimate) -> bool:
        """Whether more draws would hardly help."""
        tests = estimate.spread_tests()
        if tests is not None and np.linalg.norm(estimate.stderr) > HARDLY * np.linalg.norm(tests):
            return False
        so_far, at_most = self.known(estimate)
        return so_far >= at_most - self.slack

    def reached(self, estimate: Estimate) -> Note:
        """What is known, and what exact values would tell."""
        so_far, at_most = self.known(estimate)
        which = f"{'best' if self.best else 'worst'} {self.k}"
        text = f"{100 * so_far:.0f} % of the {which} known, with exact values {100 * at_most:.0f} %"
        return Note("extremes-known", text, k=self.k, best=self.best, known=so_far, with_exact_values=at_most)


def time_over(seconds: float, limit: float) -> Note:
    """Why work ends when time is up: how long it took, against the limit."""
    return Note("time-over", f"{seconds:.1f} s (limit {limit:g} s)", seconds=seconds, limit=limit)


def rank_correlation(one: Floats, two: Floats) -> float:
    """Spearman's correlation, ties included; 1 where either has no order."""
    ranks = np.vstack([rankdata(one), rankdata(two)])
    return float(np.corrcoef(ranks)[0, 1]) if (ranks.std(axis=1) > 0).all() else 1.0
