"""Variances of players, by what the sizes beside a size say.

What decides a player's value may be in a handful of the subsets of a size: those that it is in, of few players, or
those that it is not in, of nearly all. A round draws one or two of them or none, and where it misses what matters, it
misses the variance with it. Right on average, the variance of such a player is then far too small in most runs. So for
each player and size the squared residuals count together with their mean at the nearest sizes that were met, on both
sides; sizes that were taken whole are met, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localshapley.arrays import AnyArray, Floats, Ints, chosen_lists, order_by
from localshapley.sampling.round_sample import RoundSample
from localshapley.sampling.tuning import Tuning

MOST_PLAYERS = 1024
"""Of a game that has a table of players by sizes."""


@dataclass(frozen=True)
class AdditiveResiduals:
    """The residuals of a round, by player and size.

    Parameters
    ----------
    drawn : RoundSample
    row, stratum : arrays of shape (n_pairs,)
        As in `Collection.inner`.
    residual : array of shape (n_pairs,)
        Of what folds drew; of subsets that were sure to be there, the mean over the folds.
    sigma2 : array of shape (n_strata,)
        Variance of the residuals, where no size of a player was met.
    log_pi : array of shape (n_rows,)
        Logarithm of the probability with which each row was drawn.
    """

    drawn: RoundSample
    row: Ints
    stratum: Ints
    residual: Floats
    sigma2: Floats
    log_pi: Floats

    def change(self, tuning: Tuning) -> Floats:
        """What is to be added to the variances of the players, which are sums over the draws.

        Only where a game is alone: elsewhere each is a part of a value, and their errors are not of one kind.
        """
        drawn = self.drawn
        graph, strata, out = drawn.collection.graph, drawn.strata, np.zeros(drawn.collection.graph.n_players)
        games = np.flatnonzero(drawn.has_chance & (graph.sizes <= MOST_PLAYERS)).tolist()
        if graph.n_games > tuning.beside_games or not games:
            return out
        sampled = (self.row >= drawn.before) & (drawn.folds[self.row] > 0)
        met = np.flatnonzero(sampled | drawn.whole[self.stratum])
        met = met[order_by(self.stratum[met])]
        ends = np.searchsorted(self.stratum[met], strata.indptr)
        for game in games:
            out[graph.game(game)] += self._of_game(game, met[ends[game] : ends[game + 1]], tuning.beside_draws)
        return out

    def _of_game(self, game: int, pairs: Ints, prior_draws: float) -> Floats:
        """The same for the players of a game, from its pairs."""
        drawn, collection = self.drawn, self.drawn.collection
        strata, players = drawn.strata, collection.graph.game(game)
        here, n = slice(strata.indptr[game], strata.indptr[game + 1]), len(players)
        size, squared = self.stratum[pairs] - here.start, self.residual[pairs] ** 2
        indptr, members = chosen_lists(collection.indptr, collection.players, self.row[pairs])
        cell = np.searchsorted(players, members) * (n - 1) + np.repeat(size, np.diff(indptr))
        hits = np.bincount(cell, minlength=n * (n - 1)).reshape(n, n - 1)
        sums = np.bincount(cell, np.repeat(squared, np.diff(indptr)), n * (n - 1)).reshape(n, n - 1)
        of_size, total = np.bincount(size, minlength=n - 1), np.bincount(size, squared, n - 1)
        # A draw adds (1 − π)/π² · (residual / (k·C(n,k)))² for its members; for the others with n − k instead of k.
        log_pi = np.minimum(self.log_pi[self.row[pairs]], 0.0)
        amount = -np.expm1(log_pi) * np.exp(-2 * (strata.log_subsets[self.stratum[pairs]] + log_pi))
        unit = np.bincount(size, amount, n - 1) / np.maximum(of_size, 1)
        unit[drawn.whole[here]] = 0.0
        k = strata.k[here]
        change = np.zeros(n)
        for met, found, many in ((hits, sums, k), (of_size - hits, total - sums, n - k)):
            prior = beside(met, found, self.sigma2[here])
            variance = (found + prior_draws * prior) / (met + prior_draws)
            change += ((of_size * many / n * variance - found) * unit / many**2).sum(axis=1)
        return change


def beside(met: AnyArray, found: AnyArray, otherwise: Floats) -> Floats:
    """Mean of what the nearest sizes on both sides say that were met, for each player and size.

    >>> beside(np.array([[1, 0, 2, 1]]), np.array([[4.0, 0.0, 2.0, 3.0]]), np.full(4, 9.0))
    array([[1. , 2.5, 3.5, 1. ]])
    """
    n_players, n_sizes = met.shape
    mean: Floats = found / np.maximum(met, 1)
    size = np.arange(n_sizes)
    edge = np.full((n_players, 1), -1)
    below = np.maximum.accumulate(np.where(met > 0, size, -1), axis=1)
    below = np.hstack([edge, below[:, :-1]])
    above = np.minimum.accumulate(np.where(met > 0, size, n_sizes)[:, ::-1], axis=1)[:, ::-1]
    above = np.hstack([above[:, 1:], edge + 1 + n_sizes])
    has_below, has_above = below >= 0, above < n_sizes
    lower = np.where(has_below, np.take_along_axis(mean, np.maximum(below, 0), axis=1), 0.0)
    upper = np.where(has_above, np.take_along_axis(mean, np.minimum(above, n_sizes - 1), axis=1), 0.0)
    sides = has_below.astype(np.int64) + has_above
    out: Floats = np.where(sides > 0, (lower + upper) / np.maximum(sides, 1), otherwise)
    return out
