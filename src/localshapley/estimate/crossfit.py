"""Estimates from the draws of a round: values by each fold, their variances and covariances.

In a round each game and size draws subsets without replacement among those not known yet, and deals them to folds.
Given everything but fold `j`, its draws are again such a sample, so that Horvitz–Thompson weights are exact, and a
surrogate fitted to everything but fold `j` is a constant: each fold's estimate is unbiased, whatever the surrogate.
Nothing is lost, because every draw corrects the surrogates that did not see it and helps to fit the others.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from joblib import cpu_count
from numpy.polynomial import legendre
from scipy import sparse
from threadpoolctl import threadpool_limits

from localshapley.arrays import Floats, Indices, Ints, SubsetArrays, max_by
from localshapley.bundles import Bundles
from localshapley.coalitions.sampled import Strata
from localshapley.estimate.bending import Bending, Curve, straightened
from localshapley.estimate.drawn import Drawn, inner_pairs
from localshapley.estimate.merged import Merged
from localshapley.estimate.nearness import subtract_nearness
from localshapley.estimate.tuning import TUNED, Tuning

if TYPE_CHECKING:
    from localshapley.kernels import surrogate

N_BINS = 8  # of the sizes, in the variance model
_Ordered: TypeAlias = tuple[
    Ints, tuple[Ints, Ints, Floats, Floats, Floats], Indices, Floats, Floats, tuple[Floats, Indices, int]
]
N_SPREAD = 64  # columns that represent the covariances: one bit of a word each


@dataclass(frozen=True)
class Learnt:
    """What a round leaves for the fits of the next: means over its folds.

    All of it is known before the next round draws, whose estimates it cannot bias.

    Attributes
    ----------
    pooled : array of shape (8,)
        Coefficients of the curve over sizes that all games share.
    fitted : tuple of arrays
        Surrogates, as `kernels.surrogate.fit_surrogates` starts from them.
    curves : list of Curve
    """

    pooled: Floats
    fitted: tuple[Floats, Floats]
    curves: list[Curve]


class CrossFit:
    """Surrogates fitted to a round, each without one of its folds, and the values after correction by that fold.

    Parameters
    ----------
    drawn : Drawn
        The round, with all of its draws scored.
    tuning : Tuning, optional
    before : Learnt, optional
        What the round before learnt: its surrogates are where these fits start, and its curves straighten the scores.

    Attributes
    ----------
    learnt : Learnt
    values : array of shape (n_folds, total size of the games)
        Values by each fold, aligned with the games' players.
    sigma2 : array of shape (n_strata,)
        Variance of the residuals of each stratum, by the variance model.
    known : array of shape (n_strata,)
        Subsets of each stratum that have been trained by now.
    """

    def __init__(self, drawn: Drawn, tuning: Tuning = TUNED, before: Learnt | None = None) -> None:
        collection, strata = drawn.collection, drawn.strata
        self._drawn, self._tuning = drawn, tuning
        self._graph = graph = collection.graph
        self._inner, self._row, self._stratum = inner_pairs(collection, strata)
        self._game = strata.game[self._stratum]
        self.known = np.bincount(self._stratum, minlength=len(strata.k)).astype(np.float64)
        self._log_pi = drawn.log_inclusion(self._row, self._stratum)
        nothing = collection.scores[: graph.n_games]  # the empty coalition is row 0 and belongs to every game
        gain = collection.scores[drawn.full_pairs()] - nothing
        rise = gain[self._game] * (strata.position[self._stratum] + 1) / 2
        y = collection.scores[self._inner] - nothing[self._game] - rise
        self.values, residual, self.learnt = self._fit(y, gain, nothing, before)
        self.sigma2 = self._variance_of(residual, y, gain)
        self._left_over = self._by_row(residual)

    def variance(self) -> Floats:
        """Variance of the values: `Σ (1−π)/π²·y_S(z)²` over the draws, mixed with what the variance model expects.

        The model's part is never 0 where anything was sampled, whatever the draws were.
        """
        from localshapley.kernels.surrogate import add_variances

        graph, drawn, strata = self._graph, self._drawn, self._drawn.strata
        of_player, of_game = np.zeros((2, graph.n_players)), np.zeros((2, graph.n_games))
        add_variances(graph.arrays, *self._left_over, of_player, of_game, np.zeros(graph.n_players))
        first, second = (
            p + graph.by_player(np.repeat(g, graph.sizes)) for p, g in zip(of_player, of_game, strict=True)
        )
        first = np.maximum(first, 0.0)
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

    def by_bundle(self, bundles: Bundles, halves: list[Floats]) -> Floats:
        """Values to each bundle of test rows, by each half of the folds, shape (2, n_bundles, n_players).

        Parameters
        ----------
        bundles : Bundles
        halves : two arrays
            Values by each half of the folds, aligned with the games' players.
        """
        graph = self._graph
        alone, pairs = graph.tests_per_game == 1, (graph.indptr, graph.players)
        bundle = bundles.of_test[graph.tests[graph.test_indptr[:-1]]]
        known = np.repeat(alone, graph.sizes)
        out = np.stack([bundles.sums(pairs, np.where(known, half, 0.0), bundle) for half in halves])
        shared = np.flatnonzero(~alone & (graph.sizes > 0)).tolist()
        merged = Merged(self._drawn, self._inner, self._row, self._stratum, self._log_pi)
        with threadpool_limits(1) if shared else nullcontext():  # the same sums, whatever the number of cores
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

    def _fit(self, y: Floats, gain: Floats, nothing: Floats, before: Learnt | None) -> tuple[Floats, Floats, Learnt]:
        """Values by each fold, residuals of the pairs and what was learnt.

        All of it from scores `y` less the line from `v(∅)` to `v(N)`.
        """
        from localshapley.kernels.surrogate import N_LEVELS, correct_values, fit_surrogates, leave_surrogates

        graph, drawn, tuning = self._graph, self._drawn, self._tuning
        collection, strata = drawn.collection, drawn.strata
        of_strata = _pooled_levels(strata, gain)
        by_game, pairs, alone, targets, pooled, own = self._ordered(y, of_strata)
        if before is None:
            start = np.zeros((graph.n_games, N_LEVELS)), np.zeros((len(graph.players), 2))
            before = Learnt(np.zeros_like(pooled[0]), start, [])
        lines = nothing[strata.game] + gain[strata.game] * (strata.position + 1) / 2
        lines = lines + np.vstack([pooled, before.pooled]) @ of_strata.T
        scores = collection.scores[self._inner][by_game]
        values, residual = np.zeros((drawn.n_folds, len(graph.players))), np.zeros(len(y))
        fitted = np.zeros((drawn.n_folds, graph.n_games, N_LEVELS)), np.zeros((*values.shape, 2))
        settings = tuning.level_ridge, tuning.player_ridge, tuning.max_steps, tuning.precision
        near, has_process = subtract_nearness(drawn, pairs, alone, targets, tuning)
        given = graph.arrays, (collection.indptr, collection.players)
        parts = self._parts(pairs[0])
        with ThreadPoolExecutor(cpu_count()) as threads:

            def each(work: Callable[..., None], *arguments: Any) -> None:
                """Work on all games, a part of them at a time."""
                list(threads.map(lambda part: work(*part, *given, *arguments), parts))

            said = targets[0].copy()
            each(leave_surrogates, pairs, targets, before.fitted)
            said += lines[-1][self._stratum[by_game]] - targets[0]
            curves = [curve for curve in before.curves if not has_process[curve.game]]
            shift, weight = straightened(curves, pairs, said, scores)
            straight = *pairs[:3], weight, pairs[4]
            each(fit_surrogates, straight, (targets, shift, before.fitted), own, settings, (*fitted, values))
            bending = Bending(drawn, pairs, alone, scores, lines[:-1], fitted, tuning)
            curved, self._wandering, curves = bending.subtract(targets, ~has_process)
            each(correct_values, pairs, targets, own, values, residual)
        residual[by_game] = residual.copy()
        values += near
        values += curved
        values += np.repeat(gain / np.maximum(graph.sizes, 1), graph.sizes)
        levels, effects = (of_folds.mean(axis=0) for of_folds in fitted)
        return values, residual, Learnt(pooled.mean(axis=0), (levels, effects), curves)

    def _ordered(self, y: Floats, of_strata: Floats) -> _Ordered:
        """The pairs by game and size, and `y` by fold, less what all games have in common."""
        drawn, row, stratum = self._drawn, self._row, self._stratum
        strata, folds = drawn.strata, drawn.folds
        with ThreadPoolExecutor(cpu_count()) as threads:  # they do not depend on each other
            order = threads.submit(np.argsort, stratum, kind="stable")
            log_own = threads.submit(drawn.log_own_inclusion, row, stratum)
            levels = threads.submit(of_strata.take, stratum, axis=0)
            weight = self._weights()
            fold = folds[row]
            alone = np.where((row >= drawn.before) & (fold > 0) & (fold & (fold - 1) == 0), fold, 0)
            targets, pooled = _without_pooled_level(
                y, levels.result(), weight, alone, drawn.n_folds, self._tuning.pooled_ridge, threads
            )
            by_game = order.result()
            of_pairs = row, strata.position[stratum], weight, -strata.log_subsets[stratum]
            ordered = threads.map(lambda of_pair: of_pair[by_game], (*of_pairs, *targets))
            indptr = np.searchsorted(self._game[by_game], np.arange(self._graph.n_games + 1))
            pairs = indptr, *islice(ordered, 4)
            own = log_own.result(), folds, drawn.before
            return by_game, pairs, alone[by_game], np.stack(list(ordered)), pooled, own

    def _parts(self, pair_indptr: Ints) -> list[tuple[int, int]]:
        """Games, cut into parts of about the same work."""
        work = np.cumsum(np.diff(pair_indptr) * self._graph.sizes, dtype=np.float64)
        cuts = np.searchsorted(work, np.linspace(0, work[-1], 8 * cpu_count() + 1)[1:-1])
        return list(pairwise(np.unique([0, *cuts, self._graph.n_games]).tolist()))

    def _weights(self) -> Floats:
        """Weights of the fit: what a subset's residual adds to the variance, over its probability in the fit."""
        drawn, strata, stratum = self._drawn, self._drawn.strata, self._stratum
        log_pi = self._log_pi[self._row]
        log_root = 0.5 * np.log(strata.k * (strata.n - strata.k))
        log_weight = -log_pi - strata.log_subsets[stratum] - log_root[stratum]
        log_weight += np.log(np.maximum(-np.expm1(np.minimum(log_pi, 0.0)), self._tuning.least_weight))
        typical = -np.log(np.maximum(drawn.expected, 1e-300)) - log_root
        some = drawn.expected > 0
        largest = max_by(strata.game[some], typical[some], self._graph.n_games)
        weight: Floats = np.exp(log_weight - np.where(np.isfinite(largest), largest, 0.0)[self._game])
        return weight

    def _variance_of(self, residual: Floats, y: Floats, gain: Floats) -> Floats:
        """The variance model of the draws outside strata that are taken whole."""
        drawn = self._drawn
        sampled = (self._row >= drawn.before) & (drawn.folds[self._row] > 0)
        surprise = max(float(np.mean(gain**2)), float(np.mean(y**2)) if len(y) else 0.0)
        surprise = surprise or drawn.collection.scale**2  # scores that were all the same
        prior = self._tuning.prior_draws
        return _variance_model(residual[sampled], self._stratum[sampled], drawn.strata, surprise, prior)


def _pooled_levels(strata: Strata, gain: Floats) -> Floats:
    """A cubic in the size, and one times the game's gain, at each stratum; shape (n_strata, 8)."""
    from localshapley.kernels.surrogate import N_LEVELS

    levels = legendre.legvander(strata.position, N_LEVELS - 1)
    return np.hstack([levels, levels * gain[strata.game][:, None]])


def _without_pooled_level(
    y: Floats, levels: Floats, weight: Floats, alone: Indices, n_folds: int, ridge: float, threads: ThreadPoolExecutor
) -> tuple[Floats, Floats]:
    """`y` less a combination of the columns of `levels` that all games share; one row per fold.

    Each fold's is fitted without the rows that it alone drew. Also the coefficients, one row per fold.
    """
    n_columns = levels.shape[1]
    out, coefficients = np.empty((n_folds, len(y))), np.empty((n_folds, n_columns))

    def gram(f: int) -> Floats:
        part = np.flatnonzero(alone == (1 << f if f < n_folds else 0))
        known = np.empty((len(part), n_columns + 1))
        known[:, :-1], known[:, -1] = levels.take(part, axis=0), y[part]
        product: Floats = (known[:, :-1] * weight[part, None]).T @ known
        return product

    def subtract(f: int) -> None:
        known = grams.sum(axis=0) - grams[f]
        coefficients[f] = np.linalg.solve(known[:, :-1] + ridge * np.eye(n_columns), known[:, -1])
        np.matmul(levels, coefficients[f], out=out[f])
        np.subtract(y, out[f], out=out[f])

    grams = np.stack(list(threads.map(gram, range(n_folds + 1))))
    list(threads.map(subtract, range(n_folds)))
    return out, coefficients


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
