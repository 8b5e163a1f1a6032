"""Estimates from the draws of a round: values by each fold, their variances and covariances.

In a round each game and size draws subsets without replacement among those not known yet, and deals them to folds.
Given everything but fold `j`, its draws are again such a sample, so that Horvitz–Thompson weights are exact, and a
surrogate fitted to everything but fold `j` is a constant: each fold's estimate is unbiased, whatever the surrogate.
Nothing is lost, because every draw corrects the surrogates that did not see it and helps to fit the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from localshapley.arrays import Floats, Ints, SubsetArrays
from localshapley.coalitions.random_groups import RandomGroups
from localshapley.coalitions.sampled import Strata
from localshapley.runtime.threads import beside, cores, in_threads, unthreaded_blas
from localshapley.sampling.fit_pairs import FitPairs, pooled_levels
from localshapley.sampling.group_values import GroupValues
from localshapley.sampling.link_fits import LinkCurves, no_curves, straightened
from localshapley.sampling.round_sample import RoundSample
from localshapley.sampling.subset_process import subtract_nearness
from localshapley.sampling.tuning import TUNED, Tuning
from localshapley.sampling.variance_pooling import PooledVariance

if TYPE_CHECKING:
    from localshapley.kernels import surrogate
    from localshapley.kernels.link_curves import Curves

N_BINS = 8  # of the sizes, in the variance model
ROWS, MOST_PARTS = 2**15, 16
"""Rows whose variances are added together, and the most parts: the same ones whatever the number of cores."""
N_SPREAD = 64  # columns that represent the covariances: one bit of a word each
PART = 2**18  # players of the pairs of games that are worked on together, about; fewer are not worth a thread


@dataclass(frozen=True)
class WarmStart:
    """What a round leaves for the fits of the next: means over its folds.

    All of it is known before the next round draws, whose estimates it cannot bias.

    Attributes
    ----------
    pooled : array of shape (8,)
        Coefficients of the curve over sizes that all games share.
    fitted : tuple of arrays
        Surrogates, as `kernels.surrogate.fit_surrogates` starts from them.
    curves : tuple of arrays
        Of each game, as `kernels.link_curves.Curves` has them for one fold.
    """

    pooled: Floats
    fitted: tuple[Floats, Floats]
    curves: Curves


class CrossFit:
    """Surrogates fitted to a round, each without one of its folds, and the values after correction by that fold.

    Parameters
    ----------
    drawn : RoundSample
        The round, with all of its draws scored.
    tuning : Tuning, optional
    before : WarmStart, optional
        What the round before learnt: its surrogates are where these fits start, and its curves straighten the scores.

    Attributes
    ----------
    learnt : WarmStart
    values : array of shape (n_folds, total size of the games)
        Values by each fold, aligned with the games' players.
    sigma2 : array of shape (n_strata,)
        Variance of the residuals of each stratum, by the variance model.
    known : array of shape (n_strata,)
        Subsets of each stratum that have been trained by now.
    """

    def __init__(self, drawn: RoundSample, tuning: Tuning = TUNED, before: WarmStart | None = None) -> None:
        collection, strata = drawn.collection, drawn.strata
        self._drawn, self._tuning = drawn, tuning
        self._graph = graph = collection.graph
        collection.gather()
        self._inner, self._row, self._stratum = collection.inner
        self._game = strata.game[self._stratum]
        self.known = np.bincount(self._stratum, minlength=len(strata.k)).astype(np.float64)
        self._log_pi = drawn.log_inclusion(self._row, self._stratum)
        nothing = collection.scores[: graph.n_games]  # the empty coalition is row 0 and belongs to every game
        gain = collection.scores[drawn.full_pairs()] - nothing
        rise = gain[self._game] * (strata.position[self._stratum] + 1) / 2
        y = collection.scores[self._inner] - nothing[self._game] - rise
        self.values, residual, sure, self.learnt = self._fit(y, gain, nothing, before)
        self.sigma2 = self._variance_of(residual, y, gain)
        sampled = (self._row >= drawn.before) & (drawn.folds[self._row] > 0)
        self._beside = PooledVariance(
            drawn, self._row, self._stratum, np.where(sampled, residual, sure), self.sigma2, self._log_pi
        )
        self._left_over = self._by_row(residual)

    def variance(self) -> Floats:
        """Variance of the values: `Σ (1−π)/π²·y_S(z)²` over the draws, mixed with what the variance model expects.

        Where a game is alone, what a player's sizes say is mixed with what those beside them say. The model's part is
        never 0 where anything was sampled, whatever the draws were.
        """
        from localshapley.kernels.surrogate import add_variances

        graph, drawn, strata = self._graph, self._drawn, self._drawn.strata
        (indptr, players, pair_indptr, games), *left, (log_pi, folds, before) = self._left_over

        def add(rows: tuple[int, int]) -> tuple[Floats, Floats]:
            sums = np.zeros((2, graph.n_players)), np.zeros((2, graph.n_games))
            subsets, here = (indptr, players, pair_indptr[: rows[1] + 1], games), (log_pi, folds, rows[0])
            add_variances(graph.arrays, subsets, *left, here, *sums, np.zeros(graph.n_players))
            return sums

        n_parts = np.clip(-(-(len(folds) - before) // ROWS), 1, MOST_PARTS)
        cuts = np.linspace(before, len(folds), n_parts + 1).astype(int).tolist()
        of_player, of_game = (sum(parts) for parts in zip(*in_threads(add, pairwise(cuts)), strict=True))
        first, second = (
            p + graph.by_player(np.repeat(g, graph.sizes)) for p, g in zip(of_player, of_game, strict=True)
        )
        first = np.maximum(first + self._beside.change(self._tuning), 0.0)
        # A few draws of uneven weight estimate their own variance badly: 1 + 1/(effective number of draws).
        seen = first + self._tuning.inflation * np.divide(second, first, out=np.zeros_like(first), where=first > 0)
        # A stratum's U·(1−p)/p subsets of weight 1/(k·C) or 1/((n−k)·C), spread evenly over the players.
        log_share = drawn.log_share()
        rest = -np.expm1(np.minimum(log_share, 0.0)) * np.exp(
            strata.log_without(drawn.known) - log_share - 2 * strata.log_subsets
        )
        each = self.sigma2 * np.where(drawn.expected < drawn.unknown, rest, 0.0) / (strata.k * (strata.n - strata.k))
        expected = np.bincount(strata.game, weights=each, minlength=graph.n_games)
        smoothing = self._tuning.smoothing
        variance: Floats = (1 - smoothing) * seen + smoothing * graph.by_player(np.repeat(expected, graph.sizes))
        return variance + graph.by_player(self._wandering)

    def spread(self) -> Floats:
        """Columns, one row for each player, whose products have the covariances of the values as mean."""
        from localshapley.kernels.surrogate import add_spread

        graph = self._graph
        of_player, of_game = np.zeros((graph.n_players, N_SPREAD)), np.zeros((graph.n_games, N_SPREAD))
        add_spread(graph.arrays, *self._left_over, of_player, of_game, np.empty(N_SPREAD))
        holds = sparse.csr_array(
            (np.ones(len(graph.where)), graph.where, graph.where_indptr), shape=(graph.n_players, graph.n_games)
        )
        of_player += holds @ of_game
        return of_player

    def by_bundle(self, bundles: RandomGroups, halves: Sequence[Floats] | Floats) -> Floats:
        """Values to each bundle of test rows, by each half of the folds, shape (2, n_bundles, n_players).

        Parameters
        ----------
        bundles : RandomGroups
        halves : two arrays
            Values by each half of the folds, aligned with the games' players.
        """
        graph = self._graph
        alone, pairs = graph.tests_per_game == 1, (graph.indptr, graph.players)
        bundle = bundles.of_test[graph.tests[graph.test_indptr[:-1]]]
        known = np.repeat(alone, graph.sizes)
        out = np.stack([bundles.sums(pairs, np.where(known, half, 0.0), bundle) for half in halves])
        shared = np.flatnonzero(~alone & (graph.sizes > 0)).tolist()
        merged = GroupValues(self._drawn, self._inner, self._row, self._stratum, self._log_pi)
        with unthreaded_blas():  # the same sums, whatever the number of cores
            for game in shared:
                here = slice(graph.indptr[game], graph.indptr[game + 1])
                own, found = merged.values(game, [half[here] for half in halves])
                out[:, own[:, None], graph.players[here]] += found
        return out

    def _by_row(self, residual: Floats) -> tuple[SubsetArrays, Floats, Floats, surrogate.Drawn]:
        """The draws of the round and their residuals, as kernels take them."""
        collection = self._drawn.collection
        pair_indptr = np.searchsorted(self._row, np.arange(collection.n_rows + 1))
        subsets = collection.indptr, collection.players, pair_indptr, self._game.astype(np.int32)
        log_weight = -self._drawn.strata.log_subsets[self._stratum]
        return subsets, residual, log_weight, (self._log_pi, self._drawn.folds, self._drawn.before)

    def _fit(
        self, y: Floats, gain: Floats, nothing: Floats, before: WarmStart | None
    ) -> tuple[Floats, Floats, Floats, WarmStart]:
        """Values by each fold, residuals of the pairs by the folds that drew them and by all, and what was learnt.

        All of it from scores `y` less the line from `v(∅)` to `v(N)`.
        """
        from localshapley.kernels.surrogate import N_LEVELS, correct_values, fit_surrogates, leave_surrogates

        graph, drawn, tuning = self._graph, self._drawn, self._tuning
        collection, strata = drawn.collection, drawn.strata
        of_strata = pooled_levels(strata, gain)
        log_own = beside(drawn.log_own_inclusion, self._row, self._stratum)
        ordered = FitPairs.of(drawn, (self._row, self._stratum), self._log_pi, y, of_strata, tuning)
        pairs, where, stratum = ordered.pairs, ordered.where, ordered.stratum
        if before is None:
            start = np.zeros((graph.n_games, N_LEVELS)), np.zeros((len(graph.players), 2))
            before = WarmStart(np.zeros_like(ordered.pooled[0]), start, no_curves(graph.n_games))
        common = np.vstack([ordered.pooled, before.pooled]) @ of_strata.T
        lines = nothing[strata.game] + gain[strata.game] * (strata.position + 1) / 2 + common
        scores = collection.scores[self._inner[where]]
        targets = np.empty((drawn.n_folds, len(scores)))
        in_threads(lambda f: np.subtract(scores, lines[f].take(stratum), out=targets[f]), range(drawn.n_folds))
        values, residual, sure = np.zeros((drawn.n_folds, len(graph.players))), np.zeros(len(y)), np.zeros(len(y))
        fitted = np.zeros((drawn.n_folds, graph.n_games, N_LEVELS)), np.zeros((*values.shape, 2))
        settings = tuning.level_ridge, tuning.player_ridge, tuning.max_steps, tuning.precision
        near, has_process = subtract_nearness(drawn, pairs, ordered.alone, targets, tuning)
        given = graph.arrays, (collection.indptr, collection.players)
        own = log_own.result(), drawn.folds, drawn.before
        parts = self._parts(pairs[0])

        def each(work: Callable[..., None], *arguments: Any) -> None:
            """Work on all games, a part of them at a time."""
            in_threads(lambda part: work(*part, *given, *arguments), parts)

        shift = np.zeros((1, len(scores)))
        starts = tuple(of_games[None] for of_games in before.fitted)
        each(leave_surrogates, pairs, np.ones(len(scores), dtype=np.int32), starts, shift)
        said = lines[-1].take(stratum) - shift[0]
        middle, unit, height = before.curves
        known = middle, np.where(has_process, 0.0, unit), height
        bent, weight = straightened(known, pairs, said, scores, parts)
        straight = *pairs[:3], weight, pairs[4]
        begun = targets, shift[0] + bent, before.fitted
        each(fit_surrogates, straight, ordered.alone, begun, settings, self._most_places(), (*fitted, values))
        each(leave_surrogates, pairs, ordered.wanted, fitted, targets)
        bending = LinkCurves(drawn, ordered, scores, lines[:-1], fitted, tuning, parts)
        curved, self._wandering, curves = bending.subtract(targets, ~has_process)
        each(correct_values, pairs, ordered.wanted, targets, own, values, residual)
        residual[where], sure[where] = residual.copy(), targets.mean(axis=0)
        values += near
        values += curved
        values += np.repeat(gain / np.maximum(graph.sizes, 1), graph.sizes)
        levels, effects = (of_folds.mean(axis=0) for of_folds in fitted)
        return values, residual, sure, WarmStart(ordered.pooled.mean(axis=0), (levels, effects), curves)

    def _parts(self, pair_indptr: Ints) -> list[tuple[int, int]]:
        """Games, cut into parts of about the same work."""
        work = np.cumsum(np.diff(pair_indptr) * self._graph.sizes, dtype=np.float64)
        n_parts = int(np.clip(work[-1] / PART, 1, 8 * cores()))
        cuts = np.searchsorted(work, np.linspace(0, work[-1], n_parts + 1)[1:-1])
        return list(pairwise(np.unique([0, *cuts, self._graph.n_games]).tolist()))

    def _most_places(self) -> int:
        """The most places in a game's support that are listed: of each subset's players, or of those missing."""
        strata = self._drawn.strata
        listed = np.bincount(strata.game, self.known * np.minimum(strata.k, strata.n - strata.k))
        return int(listed.max(initial=0))

    def _variance_of(self, residual: Floats, y: Floats, gain: Floats) -> Floats:
        """The variance model of the draws outside strata that are taken whole."""
        drawn = self._drawn
        sampled = (self._row >= drawn.before) & (drawn.folds[self._row] > 0)
        surprise = max(float(np.mean(gain**2)), float(np.mean(y**2)) if len(y) else 0.0)
        surprise = surprise or 1.0  # scores that were all the same
        prior = self._tuning.prior_draws
        return _variance_model(residual[sampled], self._stratum[sampled], drawn.strata, surprise, prior)


def _variance_model(residual: Floats, stratum: Ints, strata: Strata, surprise: float, prior: float) -> Floats:
    """Variance of the residuals of each stratum: a factor of the game times a factor of the size.

    Both are shrunk towards the pooled variance, so that a game without a surprise so far does not count as certain;
    and that towards one `surprise`, the square of a score, among all draws.
    """
    n_games = len(strata.indptr) - 1
    bin_of = np.minimum(((strata.position + 1) / 2 * N_BINS).astype(np.int64), N_BINS - 1)
    game, size, squared = strata.game[stratum], bin_of[stratum], residual**2
    pooled = (float(squared.sum()) + surprise) / (len(squared) + 1)
    of_game, of_size = np.full(n_games, pooled), np.ones(N_BINS)
    n_game, n_size = np.bincount(game, minlength=n_games), np.bincount(size, minlength=N_BINS)
    for _ in range(3):
        relative = np.bincount(size, weights=squared / of_game[game], minlength=N_BINS)
        of_size = (relative + prior) / (n_size + prior)
        relative = np.bincount(game, weights=squared / of_size[size], minlength=n_games)
        of_game = (relative + prior * pooled) / (n_game + prior)
    model: Floats = of_game[strata.game] * of_size[bin_of]
    return model
