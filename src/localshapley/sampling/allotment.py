"""How many subsets of each game and size a round of sampling draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localshapley.arrays import AnyArray, Floats, Indices
from localshapley.coalitions.sampled import Strata


@dataclass(frozen=True)
class Allotment:
    """A plan for a round.

    Attributes
    ----------
    strata : Strata
    unknown : array of shape (n_strata,)
        Subsets that are not trained yet.
    n_folds, few_folds : int
        Folds to which the draws are dealt, and the fewest that there are.
    at_once : array of bool of shape (n_strata,)
        Strata that are taken whole, whatever the number of draws.
    fullness : float
        Share of its unknown subsets at which a stratum is taken whole.
    sigma2 : array of shape (n_strata,) or None
        Variance of the residuals of each stratum, where there are any yet.
    floor : array of shape (n_games,), optional
        Draws that each game needs at least, as far as there are so many.
    """

    strata: Strata
    unknown: Floats
    n_folds: int
    few_folds: int
    at_once: AnyArray
    fullness: float
    sigma2: Floats | None
    floor: Floats | None = None

    @property
    def least(self) -> float:
        """Draws needed so that no stratum is left almost undrawn."""
        return least_draws(self.strata, self.unknown, self.n_folds, self.few_folds)

    def expected(self, draws: float) -> tuple[Floats, AnyArray]:
        """Expected draws of each stratum, in proportion to what its residuals add to the error (Neyman).

        Strata that would be nearly used up are taken whole, as the second array says. Before there are residuals, a
        game gets draws in proportion to its players.
        """
        strata, n_games = self.strata, len(self.strata.indptr) - 1
        spread = 1 / np.sqrt(strata.k * (strata.n - strata.k))
        total = np.bincount(strata.game, weights=spread, minlength=n_games)
        share = strata.n * spread / total[strata.game]
        if self.sigma2 is not None:
            share = share * np.sqrt(self.sigma2)
        with np.errstate(invalid="ignore"):
            share *= np.sqrt(np.where(np.isinf(self.unknown), 1.0, self.unknown / strata.n_subsets))
        floor = np.zeros_like(share)
        if self.floor is not None and self.floor.any():
            floor = self.floor[strata.game] * spread / total[strata.game]
            floor *= min(1.0, 0.9 * draws / floor.sum())
        low, high = -50.0, 50.0
        for _ in range(60):
            if self._at_rate(share / share.sum() * draws, np.exp((low + high) / 2), floor)[0].sum() > draws:
                high = (low + high) / 2
            else:
                low = (low + high) / 2
        return self._at_rate(share / share.sum() * draws, np.exp(low), floor)

    def _at_rate(self, share: Floats, rate: float, floor: Floats) -> tuple[Floats, AnyArray]:
        m = np.minimum(np.maximum(rate * share, floor), self.unknown)
        used_up = self.n_folds * np.ceil(m / self.n_folds) >= self.unknown
        whole = self.at_once | used_up | (m >= self.fullness * self.unknown)
        return np.where(whole, self.unknown, m), whole

    def rounded(self, expected: Floats, seed: list[int]) -> Indices:
        """Whole numbers of draws with mean `expected / n_folds`, for each stratum and fold; games are off by < 1."""
        strata = self.strata
        start = np.random.default_rng(seed).random((len(strata.indptr) - 1, self.n_folds))
        reached = np.cumsum(expected / self.n_folds)
        first = strata.indptr[strata.game]
        reached -= np.where(first > 0, reached[first - 1], 0.0)
        previous = np.where(np.arange(len(expected)) == first, 0.0, np.roll(reached, 1))
        random = start[strata.game]
        return (np.floor(reached[:, None] + random) - np.floor(previous[:, None] + random)).astype(np.int32)


def least_draws(strata: Strata, unknown: Floats, n_folds: int, few_folds: int) -> float:
    """Draws needed so that a round leaves no stratum almost undrawn, in which case its error would be missed, too.

    Strata with fewer subsets than folds must be taken whole; games with others need a draw for each fold.
    """
    forced = unknown <= n_folds
    return float(unknown[forced].sum()) + few_folds * len(np.unique(strata.game[~forced]))
