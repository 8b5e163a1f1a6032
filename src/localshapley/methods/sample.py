"""Rounds of sampling: what to draw, round by round, and the rounds put together.

How a round is drawn is described by `drawn.Drawn`; what it says is worked out in `crossfit`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localshapley.arrays import AnyArray, Floats, Indices, Singles
from localshapley.coalitions.sampled import Collection, Strata
from localshapley.errors import InvalidArgumentError
from localshapley.estimate.crossfit import N_SPREAD, CrossFit, by_player
from localshapley.estimate.drawn import Drawn, inner_pairs
from localshapley.games import SupportGraph
from localshapley.stopping import Look, Rule

# docs/decisions/0006-sampling.md has the measurements behind these.
FIRST_DRAWS = 6  # of each game in the first round, where a target is to be reached
LEAST_DRAWS = 5  # of each game in the first round, where a budget is to be spent
EASY_GAME = 64  # subsets: cheaper to train them all than to sample them to any target worth having
MAX_GROWTH = 2.0  # of a round over all before, on the way to a target
N_FOLDS = 4
FEW_FOLDS = 2  # where games have fewer than eight draws
MAX_SPREAD = 2**18  # rows up to which the columns that stand for the covariances are kept


@dataclass(frozen=True)
class Round:
    """What one round says.

    Attributes
    ----------
    draws : int
        Subsets drawn, over all games.
    weight : float
        Expected number of them that were left to chance.
    folds : array of shape (n_folds, total size of the games)
        Values by each fold, aligned with the games' players.
    variance : array of shape (n_players,)
        Variance of the values.
    exact : bool
        Whether nothing was left to chance.
    """

    draws: int
    weight: float
    folds: Floats
    variance: Floats
    exact: bool


class RoundSampler:
    """Draws rounds of subsets, estimates the values from each round, and puts the rounds together.

    The empty coalition and every full support are trained first, always.

    Parameters
    ----------
    graph : SupportGraph
    seed : int
    eager : bool
        Whether to take small games whole at once, and a game's size as soon as half of its subsets would be drawn.
    """

    def __init__(self, graph: SupportGraph, seed: int, *, eager: bool = False) -> None:
        self.graph = graph
        self.strata = Strata(graph)
        self.collection = Collection(graph, seed)
        self.rounds: list[Round] = []
        self._seed = seed
        self._eager = eager
        self._fullness = 0.5 if eager else 1.0
        self._learns = False
        self._sigma2: Floats | None = None
        self._u: Floats = np.zeros(0)
        self._spread: Floats | None = None
        everyone = [graph.game(g) for g in range(graph.n_games)]
        self._full = self.collection.add_sure([np.empty(0, dtype=np.int32), *everyone])[1:]

    def check(self, budget: int) -> None:
        """Refuse a budget that is too small for one round."""
        if budget < self.collection.n_rows + int(self._needed(self._unknown_at_first(), FEW_FOLDS)):
            raise self._too_small(budget)

    def _too_small(self, budget: float) -> InvalidArgumentError:
        """Asks for a budget with which a first round can be had however its numbers of draws are rounded."""
        unknown = self._unknown_at_first()
        rounding = FEW_FOLDS * len(np.unique(self.strata.game[unknown > FEW_FOLDS]))
        enough = self.collection.n_rows + int(self._needed(unknown, FEW_FOLDS)) + rounding
        return InvalidArgumentError(
            f"budget is too small: the empty coalition, the full supports of {self.graph.n_games} games and a few "
            f"draws for each take {enough:,} trainings, it is {budget:,.0f}. Give more, or value fewer test rows."
        )

    def _unknown_at_first(self) -> Floats:
        """Subsets of each stratum that are no other game's full support."""
        from localshapley.kernels.draws import games_holding

        graph, strata = self.graph, self.strata
        left = strata.n_subsets.copy()
        holding = np.empty(graph.n_games, dtype=np.int32)
        for row in np.unique(self._full[graph.sizes > 0]):
            start, stop = self.collection.indptr[row], self.collection.indptr[row + 1]
            players, k = self.collection.players[start:stop], int(stop - start)
            n = games_holding(players, k, graph.indptr, graph.players, graph.where_indptr, graph.where, holding)
            larger = holding[:n][graph.sizes[holding[:n]] > k]
            left[strata.indptr[larger] + k - 1] -= 1
        return left

    def _needed(self, unknown: Floats, n_folds: int) -> float:
        """Draws without which a round would leave a stratum next to no chance: its error would be missed, too.

        Strata with fewer subsets than folds must be taken whole; games with others need a draw for each fold.
        """
        forced = unknown <= n_folds
        return float(unknown[forced].sum()) + FEW_FOLDS * len(np.unique(self.strata.game[~forced]))

    def _least(self) -> int:
        """Draws without which a round is not worth it."""
        return FEW_FOLDS * int((self.graph.sizes > 1).sum())

    @property
    def ended(self) -> str:
        """Why there is no further round; empty if it is for the budget."""
        return "" if (self._u > 0.5).any() else "every subset trained"

    def draw(self, left: float, look: Look | None, rule: Rule | None) -> bool:
        """Draw the next round, at most `left` new subsets; False if that is not worth it."""
        least = self._least()
        n_games = max(least // FEW_FOLDS, 1)
        if rule is None:
            draws = self._share_of(left, n_games)
        elif look is None:
            draws = n_games * max(FIRST_DRAWS, rule.step)
        else:
            drawn = sum(r.draws for r in self.rounds)
            counted = drawn - self.rounds[0].draws  # the first round will not count any more
            wanted = 1.0 if rule.aim is None else 1.05 * (look.relative_error / rule.aim) ** 2
            wanted = wanted * (counted or drawn) - counted
            draws = max(float(np.clip(wanted, drawn / 3, MAX_GROWTH * drawn)), n_games * max(FEW_FOLDS, rule.step))
        if look is not None and min(draws, left) < least:
            return False
        drew = self.draw_round(min(draws, left), left)
        if not drew and look is None and (self._u > 0.5).any():
            raise self._too_small(self.collection.n_rows + left)
        return drew

    def _share_of(self, left: float, n_games: int) -> float:
        """Draws of the next round where a budget is to be spent: an eighth to learn from, then the rest."""
        if not self.rounds:
            self._learns = left >= 3 * LEAST_DRAWS * n_games
            return max(left / 8, LEAST_DRAWS * n_games) if self._learns else left
        # What reuse leaves over at the end is too little for a good round.
        return left if self._learns and len(self.rounds) == 1 else 0.0

    def draw_round(self, draws: float, most: float) -> bool:
        """Draw about so many subsets, at most `most` new ones; False if there is none to draw."""
        collection, strata = self.collection, self.strata
        self._before = collection.n_rows
        self._known = np.bincount(inner_pairs(collection, strata)[2], minlength=len(strata.k)).astype(np.float64)
        self._u = np.maximum(strata.n_subsets - self._known, 0.0)
        self._m, self._n_folds = self._u, FEW_FOLDS
        self._counts = np.zeros((len(self._u), FEW_FOLDS), dtype=np.int32)
        if draws < 1 or not (self._u > 0.5).any():
            return False
        of_game = np.bincount(strata.game, weights=self._u, minlength=self.graph.n_games)
        self._easy = (of_game <= EASY_GAME)[strata.game] if self._eager else np.zeros(len(self._u), dtype=bool)
        easy = self._u[self._easy].sum()
        if easy > most / 2:
            self._easy[:] = False
            easy = 0.0
        elif not self.rounds:
            draws += easy
        few = self._u[self._u <= N_FOLDS].sum()  # strata that must be taken whole, for want of one subset a fold
        self._n_folds = N_FOLDS if draws >= 2 * max(N_FOLDS * self.graph.n_games, few) else FEW_FOLDS
        needed = self._needed(self._u, self._n_folds)
        draws = max(draws, needed + easy)
        while needed <= most:
            self._m, whole = self._design(min(draws, float(most)))
            self._counts = self._round_off(np.where(whole, 0.0, self._m))
            n_new = int(self._counts.sum() + self._u[whole].sum())
            n_players = int((self._counts.sum(axis=1) * strata.k).sum() + (self._u[whole] * strata.k[whole]).sum())
            collection.reserve(n_new + 1, n_players + int(self.graph.sizes.max(initial=0)))
            self._draw(whole)
            if collection.n_rows - self._before <= most:
                return collection.n_rows > self._before
            collection.truncate(self._before)
            if draws <= needed:
                break
            draws = max(0.9 * min(draws, float(most)), needed)
        return False

    def _design(self, draws: float) -> tuple[Floats, AnyArray]:
        """Expected draws of each stratum, in proportion to what its residuals add to the error (Neyman).

        Strata that would be nearly used up are taken whole. Without residuals yet a game gets draws in
        proportion to its players.
        """
        strata, unknown = self.strata, self._u
        spread = 1 / np.sqrt(strata.k * (strata.n - strata.k))
        total = np.bincount(strata.game, weights=spread, minlength=self.graph.n_games)
        share = strata.n * spread / total[strata.game]
        if self._sigma2 is not None:
            share = share * np.sqrt(self._sigma2)
        with np.errstate(invalid="ignore"):
            share *= np.sqrt(np.where(np.isinf(unknown), 1.0, unknown / strata.n_subsets))
        low, high = -50.0, 50.0
        for _ in range(60):
            if self._at_rate(share / share.sum() * draws, np.exp((low + high) / 2))[0].sum() > draws:
                high = (low + high) / 2
            else:
                low = (low + high) / 2
        return self._at_rate(share / share.sum() * draws, np.exp(low))

    def _at_rate(self, share: Floats, rate: float) -> tuple[Floats, AnyArray]:
        m = np.minimum(rate * share, self._u)
        whole = self._easy | (self._n_folds * np.ceil(m / self._n_folds) >= self._u) | (m >= self._fullness * self._u)
        return np.where(whole, self._u, m), whole

    def _round_off(self, m: Floats) -> Indices:
        """Whole numbers of draws with mean `m / n_folds`, for each stratum and fold; a game's total is off by < 1."""
        strata = self.strata
        start = np.random.default_rng([self._seed, len(self.rounds)]).random((self.graph.n_games, self._n_folds))
        reached = np.cumsum(m / self._n_folds)
        first = strata.indptr[strata.game]
        reached -= np.where(first > 0, reached[first - 1], 0.0)
        previous = np.where(np.arange(len(m)) == first, 0.0, np.roll(reached, 1))
        random = start[strata.game]
        return (np.floor(reached[:, None] + random) - np.floor(previous[:, None] + random)).astype(np.int32)

    def _draw(self, whole: AnyArray) -> None:
        from localshapley.kernels.draws import draw_round

        graph, collection, strata = self.graph, self.collection, self.strata
        collection.n_rows = draw_round(
            graph.indptr,
            graph.players,
            strata.indptr,
            self._counts,
            whole.astype(np.int32),
            self._u,
            strata.n_subsets,
            collection.streams,
            collection.words,
            self._before,
            collection.table,
            collection.keys,
            collection.indptr,
            collection.players,
            collection.folds,
            collection.last_game,
        )

    def look(self, previous: Look | None, seconds: float) -> Look:
        """Estimate the values from the last round, and put them together with those of the rounds before."""
        self.rounds.append(self.estimate())
        weight = self._weights()
        by_fold = [np.stack([r.folds[half::2].mean(axis=0) for half in (0, 1)]) for r in self.rounds]
        variance = sum(w**2 * r.variance for w, r in zip(weight, self.rounds, strict=True))
        drawn = [r.draws for r in self.rounds]
        return Look(
            values=by_player(self.graph, self.by_game()),
            stderr=np.sqrt(variance),
            halves=np.stack(
                [by_player(self.graph, sum(w * h[i] for w, h in zip(weight, by_fold, strict=True))) for i in (0, 1)]
            ),
            previous=None if previous is None else previous.values,
            draws_per_game=sum(drawn) / self.graph.n_games,
            draws_since=drawn[-1] / self.graph.n_games,
            trainings=self.collection.n_rows,
            seconds=seconds,
            scale=self.collection.scale,
            exact=self.rounds[-1].exact,
        )

    def by_game(self) -> Floats:
        """Values by game, aligned with the games' players."""
        total: Floats = np.sum(
            [w * r.folds.mean(axis=0) for w, r in zip(self._weights(), self.rounds, strict=True)], axis=0
        )
        return total

    def spread(self, stderr: Floats) -> Singles | None:
        """Columns whose products have the covariances of the estimates as mean, and their variances exactly."""
        if self._spread is None:
            return None
        out = self._spread
        norm = np.linalg.norm(out, axis=1)
        # A row without surprises so far is uncertain on its own account.
        lonely = np.flatnonzero((norm == 0) & (stderr > 0))
        out[lonely] = np.random.default_rng([self._seed, len(self.rounds)]).choice([-1.0, 1.0], (len(lonely), N_SPREAD))
        norm[lonely] = np.sqrt(N_SPREAD)
        out *= np.divide(stderr, norm, out=np.zeros_like(norm), where=norm > 0)[:, None]
        return out.astype(np.float32)

    def _weights(self) -> Floats:
        """Weights of the rounds, from expected numbers of draws alone.

        The first round has the poorest fit and an allocation that knew nothing: it counts only while it is the
        only one. A round that left nothing to chance is the answer.
        """
        weight = np.array([r.weight for r in self.rounds])
        if self.rounds[-1].exact:
            weight[:-1], weight[-1] = 0.0, 1.0
        elif len(weight) > 1:
            weight[0] = 0.0
        share: Floats = weight / weight.sum()
        return share

    def estimate(self) -> Round:
        """Values and variances from the draws of the last round, all of which must be scored by now."""
        drawn = Drawn(
            self.strata, self.collection, self._full, self._before, self._known, self._u, self._m, self._counts
        )
        fit = CrossFit(drawn)
        self._sigma2 = fit.sigma2
        if self.graph.n_players <= MAX_SPREAD:
            self._add_spread(fit.spread(), drawn.left_to_chance)
        return Round(
            draws=drawn.n_draws,
            weight=drawn.left_to_chance,
            folds=fit.values,
            variance=fit.variance(),
            exact=bool(drawn.whole.all()),
        )

    def _add_spread(self, columns: Floats, weight: float) -> None:
        """Add the columns of a round, with its weight; the first round counts while it is alone."""
        columns *= weight
        if self._spread is None or len(self.rounds) == 1:
            self._spread = columns
        else:
            self._spread += columns
