"""A curve over the scores of a game's surrogate.

Scores are mostly bounded: a test row is right or wrong, a confidence lies between 0 and 1. A sum over players goes past
the bounds and is too flat between them, as a straight line through a step is. So what the sums leave is fitted by
curves of what they say, which are steep in the middle and flat at the ends, with coefficients that are shrunk towards
those of all games. Their Shapley values are means along random orders of the players: the sums make a step of an order
as cheap as an addition, and the steps are small, so that the means are good after few orders. What error they have is
told.

The next round knows the curves when it fits its sums: scores are straightened by them, so that the sums become those
whose curve is near the scores, and not those that are near themselves. That is a step of Gauss–Newton for each round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.polynomial import legendre

from localshapley.arrays import AnyArray, Floats, Ints, Masks
from localshapley.runtime.threads import in_threads, unthreaded_blas
from localshapley.sampling.fit_pairs import FitPairs
from localshapley.sampling.round_sample import RoundSample
from localshapley.sampling.tuning import Tuning

if TYPE_CHECKING:
    from localshapley.kernels.link_curves import Curves
    from localshapley.kernels.surrogate import Pairs

SLOPES = 0.7, 4.0
"""Within which the slope of a sum with its curve counts where it is straightened: flatter, it would stretch noise."""

GameRanges: TypeAlias = list[tuple[int, int]]
"""Games, from a first one up to another, that are worked on together."""


@dataclass(frozen=True)
class LinkCurves:
    """Curves for the games of a round, by fold.

    Parameters
    ----------
    drawn : RoundSample
    ordered : FitPairs
        Its pairs.
    scores : array of shape (n_pairs,)
    lines : array of shape (n_folds, n_strata)
        What scores were centred by, at each size of each game.
    fitted : tuple of arrays
        The surrogates of each fold, as `kernels.surrogate.Fitted` has them.
    tuning : Tuning
    parts : list of tuples
        All games.
    """

    drawn: RoundSample
    ordered: FitPairs
    scores: Floats
    lines: Floats
    fitted: tuple[Floats, Floats]
    tuning: Tuning
    parts: GameRanges

    def subtract(self, left: Floats, games: AnyArray) -> tuple[Floats, Floats, Curves]:
        """Subtract curves from what surrogates left.

        Returns their values by fold, the variance of these values' mean, and the mean of each game's curves, as of one
        fold.

        Parameters
        ----------
        left : array of shape (n_folds, n_pairs)
            Scores less surrogates, which are changed in place where a fold wants them.
        games : array of shape (n_games,)
            Which games may have a curve, as flags.
        """
        from localshapley.kernels.link_curves import bend_games

        chosen, graph = games & self._has_enough(), self.drawn.collection.graph
        if not chosen.any():
            return np.zeros((len(left), len(graph.players))), np.zeros(len(graph.players)), no_curves(graph.n_games)
        curves = self.fit(left, chosen)
        given = self.ordered.pairs, self.ordered.wanted, curves, self.scores, (left, np.empty((len(left), 0)))
        in_threads(lambda part: bend_games(*part, *given), self.parts)
        values, variance = self.values(curves)
        n_folds = np.maximum((curves[1] > 0).sum(axis=0), 1)
        middle, unit, height = (of_folds.sum(axis=0, keepdims=True) for of_folds in curves)
        means = middle / n_folds, unit / n_folds, height / n_folds[:, None, None]
        return values, variance.sum(axis=0) / len(left) ** 2, means

    def _has_enough(self) -> AnyArray:
        """Games that are left to chance, with enough draws for a curve."""
        graph, tuning = self.drawn.collection.graph, self.tuning
        least = np.maximum(tuning.curve_draws * graph.sizes, tuning.curve_least)
        return self.drawn.has_chance & (graph.sizes > 2) & (np.diff(self.ordered.pairs[0]) >= least)

    def fit(self, left: Floats, games: AnyArray) -> Curves:
        """Curves of some games for each fold, each shrunk towards what the fold's have in common."""
        from localshapley.kernels.link_curves import N_CURVES, N_POWERS, add_products

        ordered, shape = self.ordered, (len(left), len(games))
        middle, unit = np.zeros((2, *shape))
        sums = np.zeros((*shape, N_CURVES, N_POWERS + N_CURVES * (2 * N_POWERS - 1)))
        known = ordered.alone, ordered.bends & np.repeat(games, np.diff(ordered.pairs[0]))
        given = ordered.pairs, known, self.scores, left, (middle, unit, sums)
        in_threads(lambda part: add_products(part, *given), self.parts)
        height, ridge = np.zeros((*shape, N_CURVES, N_POWERS)), self.tuning.curve_ridge

        def solve(part: tuple[int, int]) -> None:
            found = np.arange(*part)[unit[:, slice(*part)].any(axis=0)]
            fitted = _ridge_fit(sums[:, found], ridge, common[:, None])
            height[:, found] = unit[:, found, None, None] * fitted.reshape(len(left), len(found), N_CURVES, N_POWERS)

        with unthreaded_blas():  # the same sums, whatever the number of cores
            common = _ridge_fit(sums.sum(axis=1), ridge, 0.0)
            in_threads(solve, self.parts)
        return middle, unit, height

    def values(self, curves: Curves) -> tuple[Floats, Floats]:
        """Shapley values of curves by fold, aligned with the games' players, and their variances.

        Of the straight part they are known. Of the bent parts they are means along orders, which are also gone
        backwards.
        """
        from localshapley.kernels.link_curves import go_along_orders

        graph, strata, (_, effects) = self.drawn.collection.graph, self.drawn.strata, self.fitted
        line, at_sizes = self._at_sizes(curves)
        unit = np.where(curves[1] > 0, curves[1], 1.0)[..., None]
        mean = _sums(effects, graph.indptr) / np.maximum(graph.sizes, 1)[:, None]
        scaled = (effects - np.repeat(mean, graph.sizes, axis=1)) / np.repeat(unit, graph.sizes, axis=1)
        slopes = _sums(np.stack([line, line * strata.position], axis=-1), strata.indptr)
        slopes /= np.maximum(graph.sizes - 1, 1)[:, None]
        values = (np.repeat(slopes, graph.sizes, axis=1) * scaled).sum(axis=-1)
        variance = np.zeros_like(values)
        sizes, has_curve = (graph.indptr, strata.indptr), curves[1] > 0
        given = sizes, has_curve, (at_sizes, scaled), self._orders(), (values, variance)
        in_threads(lambda part: go_along_orders(part, *given), self.parts)
        return values, variance

    def _at_sizes(self, curves: Curves) -> tuple[Floats, Floats]:
        """At each size of each game, the straight part's height, and the rest, as `kernels.link_curves.Way` has it."""
        from localshapley.kernels.link_curves import GENTLE, STEEP

        game, s = self.drawn.strata.game, self.drawn.strata.position
        middle, unit, height = curves
        levels = self.fitted[0]
        cubic = legendre.legvander(s, levels.shape[2] - 1).T
        own = sum(levels[:, game, i] * of_sizes for i, of_sizes in enumerate(cubic))
        x = (self.lines + own - middle[:, game]) / np.where(unit > 0, unit, 1.0)[:, game]
        line, gentle, steep = (
            height[:, game, a, 0] + height[:, game, a, 1] * s + height[:, game, a, 2] * (s * s) for a in range(3)
        )
        bends = sum(tall * n * x / np.sqrt(1 + (n * x) ** 2) for tall, n in ((gentle, GENTLE), (steep, STEEP)))
        return line, np.stack([x, np.broadcast_to(s, x.shape), gentle, steep, bends])

    def _orders(self) -> tuple[Ints, Masks]:
        """How many orders each game goes along, and random numbers for them, which no draw knows."""
        from localshapley.kernels.digests import mix

        collection, n_sizes = self.drawn.collection, np.maximum(self.drawn.collection.graph.sizes - 1, 1)
        n_orders = np.maximum(2 * np.diff(self.ordered.pairs[0]) // n_sizes, max(self.tuning.least_orders, 2))
        return n_orders, mix(mix(collection.streams) + np.uint64(self.drawn.before))


def no_curves(n_games: int) -> Curves:
    """Curves of games that have none."""
    from localshapley.kernels.link_curves import N_CURVES, N_POWERS

    return np.zeros((1, n_games)), np.zeros((1, n_games)), np.zeros((1, n_games, N_CURVES, N_POWERS))


def straightened(
    curves: Curves, pairs: Pairs, sums: Floats, scores: Floats, parts: GameRanges
) -> tuple[Floats, Floats]:
    """What is to be added to scores, and the weights, for sums that are fitted as if there were no curve.

    Parameters
    ----------
    curves : tuple of arrays
        Means over the folds of the round before.
    pairs : tuple of arrays
    sums, scores : arrays of shape (n_pairs,)
        What the surrogates of the round before say, without curves, and what was found.
    parts : list of tuples
    """
    from localshapley.kernels.link_curves import bend_games

    indptr, shift, weight = pairs[0], np.zeros_like(scores), pairs[3].copy()
    if not curves[1].any():
        return shift, weight
    slopes, wanted = np.zeros((1, len(scores))), np.ones(len(scores), dtype=np.int32)

    def straighten(part: tuple[int, int]) -> None:
        here = slice(indptr[part[0]], indptr[part[1]])
        left = scores[here] - sums[here]
        shift[here] = left
        bend_games(*part, pairs, wanted, curves, scores, (shift[None], slopes))
        slope = np.clip(1 + slopes[0, here], *SLOPES)
        shift[here] /= slope
        shift[here] -= left
        weight[here] *= slope * slope

    in_threads(straighten, parts)
    return shift, weight


def _ridge_fit(sums: Floats, ridge: float, prior: Floats | float) -> Floats:
    """Coefficients of curves, as columns, from the sums that `kernels.link_curves.Products` has, and a prior mean."""
    from localshapley.kernels.link_curves import N_CURVES, N_POWERS

    shape, powers, n = sums.shape[:-2], np.arange(N_POWERS), N_CURVES * N_POWERS
    targets = sums[..., :N_POWERS].reshape(*shape, n, 1)
    squares = sums[..., N_POWERS:].reshape(*shape, N_CURVES, N_CURVES, 2 * N_POWERS - 1)
    squares = squares[..., np.add.outer(powers, powers)]
    gram = np.moveaxis(squares, -2, -3).reshape(*shape, n, n)
    return np.asarray(np.linalg.solve(gram + ridge * np.eye(n), targets + ridge * prior), dtype=np.float64)


def _sums(entries: Floats, indptr: Ints) -> Floats:
    """Sums over lists that lie one after the other along the second axis; some may be empty."""
    out = np.zeros((len(entries), len(indptr) - 1, entries.shape[2]))
    some = np.diff(indptr) > 0
    out[:, some] = np.add.reduceat(entries, indptr[:-1][some], axis=1)
    return out
