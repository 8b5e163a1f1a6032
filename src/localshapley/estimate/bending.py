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

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.polynomial import legendre
from threadpoolctl import threadpool_limits

from localshapley.arrays import AnyArray, Floats, Indices, Ints
from localshapley.estimate.drawn import Drawn
from localshapley.estimate.tuning import Tuning
from localshapley.inputs.threads import in_threads

STEEPNESS = 2.0, 6.0
"""Of the curves, where scores run from −1 to 1."""
N_CURVES, N_POWERS = 4, 3
"""The score itself, both curves and 1, each times powers of the size, from 0."""
SLOPES = 0.7, 4.0
"""Within which the slope of a sum with its curve counts where it is straightened: flatter, it would stretch noise."""


@dataclass(frozen=True)
class Bending:
    """Curves for the games of a round, by fold.

    Parameters
    ----------
    drawn : Drawn
    pairs : tuple of arrays
        As `kernels.surrogate.Pairs` has them.
    alone : array of shape (n_pairs,)
        The fold that alone drew a pair's row, as a bit, or 0: the fold's curve must not know it.
    scores : array of shape (n_pairs,)
    lines : array of shape (n_folds, n_strata)
        What scores were centred by, at each size of each game.
    fitted : tuple of arrays
        The surrogates of each fold, as `kernels.surrogate.Fitted` has them.
    tuning : Tuning
    """

    drawn: Drawn
    pairs: tuple[Ints, Ints, Floats, Floats, Floats]
    alone: Indices
    scores: Floats
    lines: Floats
    fitted: tuple[Floats, Floats]
    tuning: Tuning

    def subtract(self, left: Floats, games: AnyArray) -> tuple[Floats, Floats, list[Curve]]:
        """Subtract curves from what surrogates left.

        Returns their values by fold, the variance of these values' mean, and the mean of each game's curves.

        Parameters
        ----------
        left : array of shape (n_folds, n_pairs)
            Scores less surrogates, which are changed in place.
        games : array of shape (n_games,)
            Which games may have a curve, as flags.
        """
        values, variance = np.zeros((2, len(left), len(self.drawn.collection.graph.players)))
        chosen = np.flatnonzero(games & self._has_enough())

        def bend(f: int) -> list[Curve]:
            curves = self._fit(f, left[f], chosen)
            for curve in curves:
                here = slice(*self.pairs[0][curve.game : curve.game + 2])
                left[f, here] -= curve.at(self.scores[here] - left[f, here], self.pairs[2][here])[0]
                self._add_values(f, curve, values[f], variance[f])
            return curves

        # One thread for each product: the same sums, whatever the number of cores.
        with threadpool_limits(1) if len(chosen) else nullcontext():
            curves = in_threads(bend, range(len(left)))
        return values, variance.sum(axis=0) / len(left) ** 2, Curve.means(curves)

    def _has_enough(self) -> AnyArray:
        """Games that are left to chance, with enough draws for a curve; none where there are many games."""
        graph, tuning = self.drawn.collection.graph, self.tuning
        if graph.n_games > tuning.curve_games:
            return np.zeros(graph.n_games, dtype=bool)
        least = np.maximum(tuning.curve_draws * graph.sizes, tuning.curve_least)
        return self.drawn.has_chance & (graph.sizes > 2) & (np.diff(self.pairs[0]) >= least)

    def _fit(self, f: int, left: Floats, games: Ints) -> list[Curve]:
        """Curves of the games for a fold, each shrunk towards what they have in common."""
        indptr, _, position, weight, _ = self.pairs
        found, grams = [], []
        for game in games.tolist():
            here = slice(indptr[game], indptr[game + 1])
            seen = self.alone[here] != 1 << f
            known, total = self.scores[here][seen], weight[here][seen].sum()
            if total <= 0 or known.min() == known.max():  # there is nothing to fit
                continue
            low, high = known.min(), known.max()
            curve = Curve(game, (low + high) / 2, (high - low) / 2, np.zeros((N_CURVES, N_POWERS)))
            columns = curve.columns(self.scores[here] - left[here], position[here])
            weighted = columns * np.where(seen, weight[here], 0.0)
            weighted *= len(known) / total
            found.append(curve)
            grams.append(weighted @ np.vstack([columns, left[here] / curve.unit]).T)
        if not found:
            return []
        ridge = self.tuning.curve_ridge
        stacked, penalty = np.stack(grams), ridge * np.eye(N_CURVES * N_POWERS)
        of_all = stacked.sum(axis=0)
        common = np.linalg.solve(of_all[:, :-1] + penalty, of_all[:, -1])
        heights = np.linalg.solve(stacked[:, :, :-1] + penalty, (stacked[:, :, -1] + ridge * common)[..., None])
        return [
            replace(curve, height=curve.unit * height.reshape(N_CURVES, N_POWERS))
            for curve, height in zip(found, heights, strict=True)
        ]

    def _add_values(self, f: int, curve: Curve, values: Floats, variance: Floats) -> None:
        graph, strata, game = self.drawn.collection.graph, self.drawn.strata, curve.game
        sizes = slice(strata.indptr[game], strata.indptr[game + 1])
        slots = slice(graph.indptr[game], graph.indptr[game + 1])
        position, (levels, effects) = strata.position[sizes], self.fitted
        middle = self.lines[f, sizes] + legendre.legval(position, levels[f, game])
        n_pairs = int(self.pairs[0][game + 1] - self.pairs[0][game])
        n_orders = max(self.tuning.least_orders, 2 * n_pairs // len(middle))  # as many steps as it has pairs, twice
        random = np.random.default_rng([self.drawn.collection.streams[game], self.drawn.before, f])
        values[slots], variance[slots] = curve.values(effects[f, slots], middle, position, n_orders, random)


@dataclass(frozen=True)
class Curve:
    """What is added to the score of a game's surrogate, as a function of it and of the size.

    Attributes
    ----------
    game : int
    middle, unit : float
        The middle of the scores, and half their range.
    height : array of shape (N_CURVES, N_POWERS)
    """

    game: int
    middle: float
    unit: float
    height: Floats

    @classmethod
    def means(cls, by_fold: Iterable[list[Curve]]) -> list[Curve]:
        """The mean of each game's curves."""
        by_game: dict[int, list[Curve]] = {}
        for curve in chain.from_iterable(by_fold):
            by_game.setdefault(curve.game, []).append(curve)
        return [
            cls(
                game,
                float(np.mean([curve.middle for curve in curves])),
                float(np.mean([curve.unit for curve in curves])),
                np.mean([curve.height for curve in curves], axis=0),
            )
            for game, curves in by_game.items()
        ]

    def columns(self, scores: Floats, position: Floats) -> Floats:
        """The score on a scale from −1 to 1, the curves of it and 1, each times powers of the size."""
        x = (scores - self.middle) / self.unit
        curves = np.stack([x, *(bent(steepness * x) for steepness in STEEPNESS), np.ones_like(x)])
        return (curves[:, None] * powers(position)).reshape(N_CURVES * N_POWERS, -1)

    def at(self, scores: Floats, position: Floats) -> tuple[Floats, Floats]:
        """What is added to each score, and the slope of that."""
        x = (scores - self.middle) / self.unit
        slope, *heights, level = self.height @ powers(position)
        added = slope * x + level
        for steepness, height in zip(STEEPNESS, heights, strict=True):
            z = steepness * x
            cosine = 1 / np.sqrt(1 + z * z)
            added += height * z * cosine
            slope += steepness * height * cosine**3
        return added, slope / self.unit

    def values(
        self, effects: Floats, middle: Floats, position: Floats, n_orders: int, random: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Centred Shapley values, and their variances.

        Parameters
        ----------
        effects : array of shape (n_players, 2)
            Of each player, and its slope over the sizes.
        middle, position : arrays of shape (n_players - 1,)
            At each size: the surrogate without its players, and the size on the scale from −1 to 1.
        n_orders : int
            Random orders, each of which is also gone backwards.
        random : Generator
        """
        effects = effects - effects.mean(axis=0)
        line, *heights = self.height[:-1] @ powers(position)
        exact = (line.mean() * effects[:, 0] + (line * position).mean() * effects[:, 1]) / self.unit
        order = random.permuted(np.tile(np.arange(len(effects)), (n_orders, 1)), axis=1)
        effect, slope = (np.cumsum(of_players[order], axis=1)[:, :-1] for of_players in effects.T)
        there = self._along(middle, position, heights, effect, slope)
        # Those that are not there yet make up the sets of the way back, with the opposite sums.
        back = self._along(middle[::-1], position[::-1], [h[::-1] for h in heights], -effect, -slope)
        gains = np.empty_like(there)
        np.put_along_axis(gains, order, (there - back) / 2, axis=1)
        return exact + gains.mean(axis=0), gains.var(axis=0, ddof=1) / n_orders

    def _along(self, middle: Floats, position: Floats, heights: list[Floats], effect: Floats, slope: Floats) -> Floats:
        """Differences of the curves along the way, from 0 to 0."""
        scores = middle - self.middle + (effect + position * slope)
        heights_there = np.zeros((len(scores), scores.shape[1] + 2))
        for steepness, height in zip(STEEPNESS, heights, strict=True):
            factor = steepness / self.unit
            heights_there[:, 1:-1] += height * (bent(factor * scores) - bent(factor * (middle - self.middle)))
        return np.diff(heights_there, axis=1)


def straightened(
    curves: list[Curve], pairs: tuple[Ints, Ints, Floats, Floats, Floats], sums: Floats, scores: Floats
) -> tuple[Floats, Floats]:
    """What is to be added to scores, and the weights, for sums that are fitted as if there were no curve.

    Parameters
    ----------
    curves : list of Curve
        Those of the round before.
    pairs : tuple of arrays
        As `kernels.surrogate.Pairs` has them.
    sums, scores : arrays of shape (n_pairs,)
        What the surrogates of the round before say, without curves, and what was found.
    """
    indptr, _, position, weight, _ = pairs
    shift, weight = np.zeros_like(scores), weight.copy()

    def straighten(curve: Curve) -> None:
        here = slice(indptr[curve.game], indptr[curve.game + 1])
        added, rise = curve.at(sums[here], position[here])
        slope = np.clip(1 + rise, *SLOPES)
        left = scores[here] - sums[here]
        shift[here] = (left - added) / slope - left
        weight[here] *= slope * slope

    with threadpool_limits(1) if curves else nullcontext():
        in_threads(straighten, curves)
    return shift, weight


def powers(position: Floats) -> Floats:
    """Of the size, from 0, one row for each."""
    return np.stack([np.ones_like(position), position, position * position])


def bent(x: Floats) -> Floats:
    """From −1 to 1, steep at 0."""
    out: Floats = x / np.sqrt(1 + x * x)
    return out
