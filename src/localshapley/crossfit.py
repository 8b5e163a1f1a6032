"""Rounds of cross-fitted sampling: what to draw, and what the draws say.

In a round each game and size draws subsets without replacement among those not known yet, and deals them to folds.
Given everything but fold `j`, its draws are again such a sample, so that Horvitz–Thompson weights are exact, and a
surrogate fitted to everything but fold `j` is a constant: each fold's estimate is unbiased, whatever the surrogate.
Nothing is lost, because every draw corrects the surrogates that did not see it and helps to fit the others.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from joblib import cpu_count
from numpy.polynomial import legendre
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Indices, Ints, Singles
from localshapley.coalitions.sampled import Collection, Strata
from localshapley.errors import InvalidArgumentError
from localshapley.games import SupportGraph
from localshapley.stopping import Look, Rule

N_LEVELS = 4  # terms of a curve over sizes: a cubic
# docs/decisions/0006-sampling.md has the measurements behind these.
FIRST_DRAWS = 6  # of each game in the first round, where a target is to be reached
LEAST_DRAWS = 5  # of each game in the first round, where a budget is to be spent
EASY_GAME = 64  # subsets: cheaper to train them all than to sample them to any target worth having
MAX_GROWTH = 2.0  # of a round over all before, on the way to a target
N_FOLDS = 4
FEW_FOLDS = 2  # where games have fewer than eight draws
POOLED_RIDGE = 0.1  # of the curve over sizes that all games share
LEVEL_RIDGE = 0.05  # of a game's own curve over sizes
PLAYER_RIDGE = 0.075  # of players and slopes, times the number of players
MAX_STEPS = 4  # of conjugate gradients in a fit
PRECISION = 1e-6  # of a fit, at which they end before
LEAST_WEIGHT = 0.05  # in the fit, of subsets that are sure to be drawn
N_BINS = 8  # of the sizes, in the variance model
PRIOR_DRAWS = 1.0  # at the pooled variance, for each factor of the variance model
INFLATION = 0.3  # of the variance, times 1 / (effective number of draws)
SMOOTHING = 0.2  # share of the variance model in a residual's variance
N_SPREAD = 64  # columns that stand for the covariances: one bit of a word each
MAX_SPREAD = 2**18  # rows up to which they are kept

Sample: TypeAlias = tuple[Ints, Indices, Ints, Indices, Floats, Floats, Floats, int, Indices]
"""The draws of a round and what the surrogate left over of them, as kernels take them."""


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
        needed = self.collection.n_rows + int(self._needed(self._unknown_at_first(), FEW_FOLDS))
        if budget < needed:
            raise InvalidArgumentError(
                f"budget is too small: the empty coalition, the full supports of {self.graph.n_games} games and a few "
                f"draws for each take {needed:,} trainings, it is {budget:,}. Give more, or value fewer test rows."
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
        return self.draw_round(min(draws, left), left)

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
        self._known = np.bincount(self._pairs()[2], minlength=len(strata.k)).astype(np.float64)
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
        while needed <= min(draws, most):
            self._m, whole = self._design(min(draws, float(most)))
            self._counts = self._round_off(np.where(whole, 0.0, self._m))
            n_new = int(self._counts.sum() + self._u[whole].sum())
            n_players = int((self._counts.sum(axis=1) * strata.k).sum() + (self._u[whole] * strata.k[whole]).sum())
            collection.reserve(n_new + 1, n_players + int(self.graph.sizes.max(initial=0)))
            self._draw(whole)
            if collection.n_rows - self._before <= most:
                return collection.n_rows > self._before
            collection.truncate(self._before)
            draws = 0.9 * min(draws, float(most))
        return False

    def _pairs(self) -> tuple[Ints, Ints, Ints]:
        """Pairs of a row and a game that is larger than it: place among all pairs, row and stratum."""
        collection = self.collection
        collection.gather()
        row = np.repeat(np.arange(len(collection.pair_indptr) - 1), np.diff(collection.pair_indptr))
        k = collection.sizes[row]
        inner = np.flatnonzero((k > 0) & (k < self.graph.sizes[collection.games]))
        return inner, row[inner], self.strata.indptr[collection.games[inner]] + k[inner] - 1

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
            values=self._by_player(self.by_game()),
            stderr=np.sqrt(variance),
            halves=np.stack(
                [self._by_player(sum(w * h[i] for w, h in zip(weight, by_fold, strict=True))) for i in (0, 1)]
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

    def _by_player(self, by_game: Floats) -> Floats:
        return np.bincount(self.graph.players, weights=by_game, minlength=self.graph.n_players).astype(np.float64)

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
        from localshapley.kernels.surrogate import estimate_games

        graph, collection, strata = self.graph, self.collection, self.strata
        before, n_folds = self._before, self._n_folds
        inner, row, stratum = self._pairs()
        game = strata.game[stratum]
        folds = collection.folds[: collection.n_rows]
        nothing = collection.scores[: graph.n_games]  # the empty coalition is row 0 and belongs to every game
        gain = self._full_scores() - nothing
        position = strata.position[stratum]
        y = collection.scores[inner] - nothing[game] - gain[game] * (position + 1) / 2

        log_share = np.log(np.maximum(self._m, 1e-300)) - strata.log_without(self._known)
        log_share[self._m == self._u] = 0.0
        log_pi = _log_union(row, log_share[stratum], collection.n_rows)
        log_pi[(np.arange(len(folds)) >= before) & (folds < 0)] = 0.0
        log_own = self._log_own_inclusion(row, stratum, folds)
        # Weights of the fit: what a subset's residual adds to the variance, over its chance to be in the fit.
        log_weight = (
            -log_pi[row] - strata.log_subsets[stratum] - 0.5 * np.log(strata.k * (strata.n - strata.k))[stratum]
        )
        log_weight += np.log(np.maximum(-np.expm1(np.minimum(log_pi[row], 0.0)), LEAST_WEIGHT))
        typical = -np.log(np.maximum(self._m, 1e-300)) - 0.5 * np.log(strata.k * (strata.n - strata.k))
        drawn = self._m > 0
        largest = _max_by(strata.game[drawn], typical[drawn], graph.n_games)
        weight = np.exp(log_weight - np.where(np.isfinite(largest), largest, 0.0)[game])

        by_game = np.argsort(stratum, kind="stable")
        alone = np.where((row >= before) & (folds[row] > 0) & (folds[row] & (folds[row] - 1) == 0), folds[row], 0)
        targets = _without_pooled_level(y, gain[game], position, weight, alone, n_folds)
        values = np.zeros((n_folds, len(graph.players)))
        residual = np.zeros(len(inner))
        arguments = (
            graph.indptr,
            graph.players,
            graph.n_players,
            np.searchsorted(game[by_game], np.arange(graph.n_games + 1)),
            row[by_game],
            targets[:, by_game],
            position[by_game],
            weight[by_game],
            -strata.log_subsets[stratum][by_game],
            log_own,
            folds,
            before,
            n_folds,
            collection.indptr,
            collection.players,
            LEVEL_RIDGE,
            PLAYER_RIDGE,
            MAX_STEPS,
            PRECISION,
            values,
            residual,
        )
        # Games do not touch each other's results, so that threads change no bit.
        cuts = np.unique(np.linspace(0, graph.n_games, 8 * cpu_count() + 1).astype(int))
        with ThreadPoolExecutor(cpu_count()) as threads:
            list(threads.map(lambda cut: estimate_games(cut[0], cut[1], *arguments), pairwise(cuts.tolist())))
        residual[by_game] = residual.copy()
        values += np.repeat(gain / np.maximum(graph.sizes, 1), graph.sizes)

        sample: Sample = (
            collection.indptr,
            collection.players,
            np.searchsorted(row, np.arange(collection.n_rows + 1)),
            game.astype(np.int32),
            residual,
            -strata.log_subsets[stratum],
            log_pi,
            before,
            folds,
        )
        self._add_spread(sample)
        return Round(
            draws=int(self._counts.sum() + self._u[self._m == self._u].sum()),
            weight=float(self._m[self._m < self._u].sum()),
            folds=values,
            variance=self._variance(sample, row, stratum, residual, y, gain, log_share),
            exact=bool((self._m == self._u).all()),
        )

    def _variance(
        self,
        sample: Sample,
        row: Ints,
        stratum: Ints,
        residual: Floats,
        y: Floats,
        gain: Floats,
        log_share: Floats,
    ) -> Floats:
        """Variance of the values: `Σ (1−π)/π²·y_S(z)²` over the draws, mixed with what the variance model expects.

        The model's part is never 0 where something was left to chance, however the draws fell.
        """
        from localshapley.kernels.surrogate import add_variances

        graph, collection, strata = self.graph, self.collection, self.strata
        folds = collection.folds[: collection.n_rows]
        sampled = (row >= self._before) & (folds[row] > 0)
        surprise = max(float(np.mean(gain**2)), float(np.mean(y**2)) if len(y) else 0.0)
        surprise = surprise or collection.scale**2  # scores that were all the same
        self._sigma2 = _variance_model(residual[sampled], stratum[sampled], strata, surprise)
        by_player, by_game = np.zeros((2, graph.n_players)), np.zeros((2, graph.n_games))
        add_variances(graph.indptr, graph.players, *sample, by_player, by_game)
        first, second = (
            p + self._by_player(np.repeat(g, graph.sizes)) for p, g in zip(by_player, by_game, strict=True)
        )
        first = np.maximum(first, 0.0)
        # Few draws of uneven weight know their own variance badly: 1 + 1/(effective number of draws).
        seen = first + INFLATION * np.divide(second, first, out=np.zeros_like(first), where=first > 0)
        # A stratum's U·(1−p)/p subsets of weight 1/(k·C) or 1/((n−k)·C), spread evenly over the players.
        rest = -np.expm1(np.minimum(log_share, 0.0)) * np.exp(
            strata.log_without(self._known) - log_share - 2 * strata.log_subsets
        )
        each = self._sigma2 * np.where(self._m < self._u, rest, 0.0) / (strata.k * (strata.n - strata.k))
        expected = np.bincount(strata.game, weights=each, minlength=graph.n_games)
        return (1 - SMOOTHING) * seen + SMOOTHING * self._by_player(np.repeat(expected, graph.sizes))

    def _add_spread(self, sample: Sample) -> None:
        """Add the round to the columns of the spread, with its weight; the first round counts while it is alone."""
        from localshapley.kernels.surrogate import add_spread

        graph = self.graph
        if graph.n_players > MAX_SPREAD:
            return
        by_player, by_game = np.zeros((graph.n_players, N_SPREAD)), np.zeros((graph.n_games, N_SPREAD))
        add_spread(graph.indptr, *sample, by_player, by_game)
        holds = sparse.csr_array(
            (np.ones(len(graph.where)), graph.where, graph.where_indptr), shape=(graph.n_players, graph.n_games)
        )
        by_player += holds @ by_game
        by_player *= float(self._m[self._m < self._u].sum())
        if self._spread is None or len(self.rounds) == 1:
            self._spread = by_player
        else:
            self._spread += by_player

    def _full_scores(self) -> Floats:
        """`v(N)` of every game."""
        collection = self.collection
        out = np.empty(self.graph.n_games)
        for game, row in enumerate(self._full):
            start, stop = collection.pair_indptr[row], collection.pair_indptr[row + 1]
            out[game] = collection.scores[start + np.searchsorted(collection.games[start:stop], game)]
        return out

    def _log_own_inclusion(self, row: Ints, stratum: Ints, folds: Indices) -> Floats:
        """For rows that a single fold drew: logarithm of the chance that it did, given all the other folds."""
        drawn = self._counts.sum(axis=1)
        out = np.zeros(len(folds))
        for f in range(self._n_folds):
            pairs = np.flatnonzero((row >= self._before) & (folds[row] == 1 << f))
            others = self._known + (drawn - self._counts[:, f])
            log_share = np.log(np.maximum(self._m / self._n_folds, 1e-300)) - self.strata.log_without(others)
            log_share[self._m == self._u] = 0.0
            union = _log_union(row[pairs], log_share[stratum[pairs]], len(folds))
            out[row[pairs]] = union[row[pairs]]
        return out


def _log_union(row: Ints, log_share: Floats, n_rows: int) -> Floats:
    """`log(1 − Π(1 − p))` over the pairs of each row, from the logarithms of the `p`."""
    top = _max_by(row, log_share, n_rows)
    top = np.where(np.isfinite(top), top, 0.0)
    total = np.bincount(row, weights=np.exp(log_share - top[row]), minlength=n_rows)
    with np.errstate(divide="ignore"):
        out: Floats = np.log(total) + top  # p so small that they add up
        missed = np.bincount(row, weights=np.log1p(-np.minimum(np.exp(log_share), 1.0)), minlength=n_rows)
        out = np.where(out > -20, np.log(-np.expm1(missed)), out)
    return out


def _max_by(group: Ints, values: Floats, n_groups: int) -> Floats:
    out = np.full(n_groups, -np.inf)
    np.maximum.at(out, group, values)
    return out


def _without_pooled_level(
    y: Floats, gain: Floats, position: Floats, weight: Floats, alone: Indices, n_folds: int
) -> Floats:
    """`y` less a cubic in the size (and one times the game's gain) that all games share; one row per fold.

    Each fold's cubic is fitted without the rows that it alone drew.
    """
    columns = np.empty((len(y), 2 * N_LEVELS))
    columns[:, :N_LEVELS] = legendre.legvander(position, N_LEVELS - 1)
    columns[:, N_LEVELS:] = columns[:, :N_LEVELS] * gain[:, None]
    grams = np.zeros((n_folds + 1, columns.shape[1], columns.shape[1] + 1))
    for f in range(n_folds + 1):
        part = np.flatnonzero(alone == (1 << f if f < n_folds else 0))
        weighted = columns[part] * weight[part, None]
        grams[f] = weighted.T @ np.column_stack([columns[part], y[part]])
    out = np.empty((n_folds, len(y)))
    for f in range(n_folds):
        known = grams.sum(axis=0) - grams[f]
        ridge = POOLED_RIDGE * np.eye(2 * N_LEVELS)
        out[f] = y - columns @ np.linalg.solve(known[:, :-1] + ridge, known[:, -1])
    return out


def _variance_model(residual: Floats, stratum: Ints, strata: Strata, surprise: float) -> Floats:
    """Variance of the residuals of each stratum: a factor of the game times a factor of the size.

    Both are drawn towards the pooled variance, so that a game without a surprise so far is not taken for certain;
    and that to one `surprise`, the square of a score, among all draws.
    """
    n_games = len(strata.indptr) - 1
    bin_of = np.minimum(((strata.position + 1) / 2 * N_BINS).astype(np.int64), N_BINS - 1)
    game, size, squared = strata.game[stratum], bin_of[stratum], residual**2
    pooled = (float(squared.sum()) + surprise) / (len(squared) + 1)
    of_game, of_size = np.full(n_games, pooled), np.ones(N_BINS)
    n_game, n_size = np.bincount(game, minlength=n_games), np.bincount(size, minlength=N_BINS)
    for _ in range(3):
        relative = np.bincount(size, weights=squared / of_game[game], minlength=N_BINS)
        of_size = (relative + PRIOR_DRAWS) / (n_size + PRIOR_DRAWS)
        relative = np.bincount(game, weights=squared / of_size[size], minlength=n_games)
        of_game = (relative + PRIOR_DRAWS * pooled) / (n_game + PRIOR_DRAWS)
    model: Floats = of_game[strata.game] * of_size[bin_of]
    return model
