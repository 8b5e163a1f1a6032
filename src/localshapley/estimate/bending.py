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

from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial import legendre

from localshapley.arrays import AnyArray, Floats, Ints, Singles
from localshapley.estimate.drawn import Drawn
from localshapley.estimate.ordered import Ordered
from localshapley.estimate.tuning import Tuning
from localshapley.inputs.threads import unthreaded_blas

STEEPNESS = 2.0, 6.0
"""Of the curves, where scores run from −1 to 1."""
N_CURVES, N_POWERS = 4, 3
"""The score itself, both curves and 1, each times powers of the size, from 0."""
SLOPES = 0.7, 4.0
"""Within which the slope of a sum with its curve counts where it is straightened: flatter, it would stretch noise."""
STEPS = 2**20
"""Of orders that are gone along at a time, which bounds the memory."""


@dataclass(frozen=True)
class Bending:
    """Curves for the games of a round, by fold.

    Parameters
    ----------
    drawn : Drawn
    ordered : Ordered
        Its pairs.
    scores : array of shape (n_pairs,)
    lines : array of shape (n_folds, n_strata)
        What scores were centred by, at each size of each game.
    fitted : tuple of arrays
        The surrogates of each fold, as `kernels.surrogate.Fitted` has them.
    tuning : Tuning
    """

    drawn: Drawn
    ordered: Ordered
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
            Scores less surrogates, which are changed in place where a fold wants them.
        games : array of shape (n_games,)
            Which games may have a curve, as flags.
        """
        values, variance = np.zeros((2, len(left), len(self.drawn.collection.graph.players)))
        chosen = np.flatnonzero(games & self._has_enough())
        if not len(chosen):
            return values, variance.sum(axis=0), []
        by_game: dict[int, dict[int, Curve]] = {}

        # Without threads, which would mostly wait for each other; and none in products: the same sums everywhere.
        with unthreaded_blas():
            for f in range(len(left)):
                for curve in self._fit(f, left[f], chosen):
                    by_game.setdefault(curve.game, {})[f] = curve
            for game, of_folds in by_game.items():
                for f, curve in of_folds.items():
                    here = self._of_game(game)
                    here = here[self.ordered.wanted[here] >> f & 1 == 1]
                    left[f, here] -= curve.at(self.scores[here] - left[f, here], self.ordered.pairs[2][here])
                self._add_values(of_folds, values, variance)
        means = [Curve.mean(list(curves.values())) for curves in by_game.values()]
        return values, variance.sum(axis=0) / len(left) ** 2, means

    def _has_enough(self) -> AnyArray:
        """Games that are left to chance, with enough draws for a curve; none where there are many games."""
        graph, tuning = self.drawn.collection.graph, self.tuning
        if graph.n_games > tuning.curve_games:
            return np.zeros(graph.n_games, dtype=bool)
        least = np.maximum(tuning.curve_draws * graph.sizes, tuning.curve_least)
        return self.drawn.has_chance & (graph.sizes > 2) & (np.diff(self.ordered.pairs[0]) >= least)

    def _of_game(self, game: int) -> Ints:
        """The pairs of a game."""
        return np.arange(*self.ordered.pairs[0][game : game + 2])

    def _fit(self, f: int, left: Floats, games: Ints) -> list[Curve]:
        """Curves of the games for a fold, each shrunk towards what they have in common."""
        _, _, position, weight, _ = self.ordered.pairs
        found, grams = [], []
        known = self.ordered.bends & (self.ordered.alone != 1 << f)
        for game in games.tolist():
            here = self._of_game(game)
            here = here[known[here]]
            scores, weights = self.scores[here], weight[here]
            if weights.sum() <= 0 or scores.min() == scores.max():  # there is nothing to fit
                continue
            low, high = scores.min(), scores.max()
            curve = Curve(game, (low + high) / 2, (high - low) / 2, np.zeros((N_CURVES, N_POWERS)))
            columns = curve.columns(scores - left[here], position[here])
            weighted = columns * (weights * (len(here) / weights.sum()))
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

    def _add_values(self, curves: dict[int, Curve], values: Floats, variance: Floats) -> None:
        """Write the values of a game's curves, and their variances, for those folds that have one."""
        graph, strata, folds = self.drawn.collection.graph, self.drawn.strata, list(curves)
        game = curves[folds[0]].game
        sizes = slice(strata.indptr[game], strata.indptr[game + 1])
        slots = slice(graph.indptr[game], graph.indptr[game + 1])
        position, (levels, effects) = strata.position[sizes], self.fitted
        middle = self.lines[folds, sizes] + legendre.legval(position, levels[folds, game].T)
        n_steps = 2 * len(self._of_game(game))  # twice as many as pairs
        n_orders = max(self.tuning.least_orders, n_steps // len(position))
        random = np.random.default_rng([self.drawn.collection.streams[game], self.drawn.before])
        found = along_orders(list(curves.values()), effects[folds, slots], middle, position, n_orders, random)
        values[folds, slots], variance[folds, slots] = found


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
    def mean(cls, curves: list[Curve]) -> Curve:
        """The mean of a game's curves."""
        middle, unit = np.mean([(curve.middle, curve.unit) for curve in curves], axis=0).tolist()
        return cls(curves[0].game, middle, unit, np.mean([curve.height for curve in curves], axis=0))

    def columns(self, scores: Floats, position: Floats) -> Floats:
        """The score on a scale from −1 to 1, the curves of it and 1, each times powers of the size."""
        x = (scores - self.middle) / self.unit
        curves = np.stack([x, *(bent(steepness * x) for steepness in STEEPNESS), np.ones_like(x)])
        return (curves[:, None] * powers(position)).reshape(N_CURVES * N_POWERS, -1)

    def at(self, scores: Floats, position: Floats) -> Floats:
        """What is added to each score."""
        x = (scores - self.middle) / self.unit
        slope, *heights, level = self.height @ powers(position)
        added: Floats = slope * x + level
        for steepness, height in zip(STEEPNESS, heights, strict=True):
            added += height * bent(steepness * x)
        return added

    def slope(self, scores: Floats, position: Floats) -> Floats:
        """The slope of what is added to each score."""
        x = (scores - self.middle) / self.unit
        slope, *heights, _ = self.height @ powers(position)
        for steepness, height in zip(STEEPNESS, heights, strict=True):
            cosine = 1 / np.sqrt(1 + (steepness * x) ** 2)
            slope += steepness * height * (cosine * cosine * cosine)
        out: Floats = slope / self.unit
        return out


def along_orders(
    curves: list[Curve], effects: Floats, middle: Floats, position: Floats, n_orders: int, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Centred Shapley values of the curves of a game, one for each fold, and their variances: means along orders.

    All folds go along the same orders, in each of which other players stand for the numbers: so the errors of two folds
    are uncorrelated, as if each had orders of its own.

    Parameters
    ----------
    curves : list of Curve
    effects : array of shape (n_folds, n_players, 2)
        Of each player, and its slope over the sizes.
    middle : array of shape (n_folds, n_players - 1)
        At each size: the surrogate without its players.
    position : array of shape (n_players - 1,)
        The sizes on the scale from −1 to 1.
    n_orders : int
        Random orders, each of which is also gone backwards.
    random : Generator
    """
    n_folds, n = effects.shape[:2]
    unit = np.array([curve.unit for curve in curves])[:, None]
    effects = (effects - effects.mean(axis=1, keepdims=True)) / unit[..., None]
    middle = (middle - np.array([curve.middle for curve in curves])[:, None]) / unit
    line, *heights = np.moveaxis(np.stack([curve.height[:-1] @ powers(position) for curve in curves]), 1, 0)
    exact = np.stack([line, line * position], axis=2).mean(axis=1)[:, None] @ effects.transpose(0, 2, 1)
    stands_for = random.permuted(np.tile(np.arange(n), (n_folds, 1)), axis=1)
    of_number = np.take_along_axis(effects, stands_for[..., None], axis=1).transpose(0, 2, 1).astype(np.float32)
    walk = Walk(*(a.astype(np.float32)[..., None] for a in (middle, position, *heights)))
    sums, squares = np.zeros((2, n_folds, n))
    for first in range(0, n_orders, most := max(1, STEPS // (n_folds * n))):
        n_here = min(most, n_orders - first)
        orders = random.permuted(np.tile(np.arange(n), (n_here, 1)), axis=1).T
        gains, by_player = walk.gains(of_number.take(orders, axis=2)), np.empty((n, n_here), dtype=np.float32)
        place = (orders * n_here + np.arange(n_here)).ravel()
        for f in range(n_folds):
            by_player.ravel()[place] = gains[f].ravel()
            sums[f] += by_player.sum(axis=1, dtype=np.float64)
            squares[f] += np.square(by_player, out=by_player).sum(axis=1, dtype=np.float64)
    means = sums / n_orders
    variance = np.maximum(squares / n_orders - means**2, 0.0) / (n_orders - 1)
    values, variances = np.empty((2, n_folds, n))
    np.put_along_axis(values, stands_for, means - means.mean(axis=1, keepdims=True), axis=1)
    np.put_along_axis(variances, stands_for, variance, axis=1)
    return exact[:, 0] + values, variances


class Walk:
    """What players gain along orders by the bent parts of curves, in single precision.

    Parameters
    ----------
    middle : array of shape (n_folds, n_sizes, 1)
        The score without players, on the scale from −1 to 1.
    position : array of shape (n_sizes, 1)
    heights : arrays of shape (n_folds, n_sizes, 1)
        Of the curve of each steepness.
    """

    def __init__(self, middle: Singles, position: Singles, *heights: Singles) -> None:
        self.middle, self.position = middle, position
        self.curves = list(zip(STEEPNESS, heights, strict=True))
        self.level: Singles = np.sum([height * bent(steepness * middle) for steepness, height in self.curves], axis=0)

    def gains(self, steps: Singles) -> Singles:
        """Gains of each step, there and back.

        Parameters
        ----------
        steps : array of shape (n_folds, 2, n_players, n_orders)
            Effect and slope of the player that comes.
        """
        for j in range(1, steps.shape[2]):  # a cumulated sum, over all orders at once
            steps[:, :, j] += steps[:, :, j - 1]
        effect, slope = steps[:, 0, :-1], steps[:, 1, :-1]
        out = np.zeros_like(steps[:, 0])
        risen = out[:, :-1]
        scores, room = slope * self.position, np.empty_like(risen)
        scores += effect
        scores += self.middle
        for steepness, height in self.curves:
            risen += bent_by(scores, steepness, height, room)
        # Those that are not there yet make up the sets of the way back, with the opposite sums.
        np.multiply(slope, -self.position[::-1], out=scores)
        scores -= effect
        scores += self.middle[:, ::-1]
        for steepness, height in self.curves:
            risen -= bent_by(scores, steepness, height[:, ::-1], room)
        risen -= self.level - self.level[:, ::-1]
        out[:, 1:] -= risen.copy()
        out /= 2
        return out


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

    with unthreaded_blas():
        for curve in curves:
            here = slice(indptr[curve.game], indptr[curve.game + 1])
            slope = np.clip(1 + curve.slope(sums[here], position[here]), *SLOPES)
            left = scores[here] - sums[here]
            shift[here] = (left - curve.at(sums[here], position[here])) / slope - left
            weight[here] *= slope * slope
    return shift, weight


def powers(position: Floats) -> Floats:
    """Of the size, from 0, one row for each."""
    return np.stack([np.ones_like(position), position, position * position])


def bent_by(x: Singles, steepness: float, height: Singles, room: Singles) -> Singles:
    """`height · bent(steepness · x)`, in the room that is given."""
    np.multiply(x, x, out=room)
    room *= steepness * steepness
    room += 1
    np.sqrt(room, out=room)
    np.divide(x, room, out=room)
    room *= steepness * height
    return room


def bent(x: AnyArray) -> AnyArray:
    """From −1 to 1, steep at 0."""
    root: AnyArray = x * x
    root += 1
    np.sqrt(root, out=root)
    return np.divide(x, root, out=root)
