"""Values to bundles of test rows, in sampled games that several test rows share.

Such a game is estimated from the sums of its scores. How its value is spread over bundles is only needed to know how
much test rows differ, so a least-squares fit of sums over players is good enough: it takes many columns at once, and
its coefficients are the Shapley values where all subsets are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from localshapley.arrays import Floats, Ints, chosen_lists, offsets, order_by
from localshapley.sampling.round_sample import RoundSample

MOST_PAIRS, LEAST_PAIRS = 4096, 8
"""Of a game with more pairs than this, some are chosen at random; of each size at least so many."""
MOST_FITTED = 512
"""Of games with more players than this the draws are only weighted, and not fitted."""
RIDGE = 0.1


@dataclass(frozen=True)
class SharedGames:
    """A round of sampling, of which games with several test rows are taken apart.

    Attributes
    ----------
    drawn : RoundSample
    inner, row, stratum : arrays of shape (n_pairs,)
        As in `Collection.inner`.
    log_pi : array of shape (n_rows,)
        Logarithm of the probability with which each row was drawn.
    """

    drawn: RoundSample
    inner: Ints
    row: Ints
    stratum: Ints
    log_pi: Floats

    def values(self, game: int, halves: list[Floats]) -> tuple[Ints, Floats]:
        """Values of a game's players to its bundles, by each half of the folds.

        Parameters
        ----------
        game : int
        halves : two arrays of shape (n_players,)
            Values to all test rows of the game.

        Returns
        -------
        bundles : array of shape (n_own,)
            Those that have test rows of the game.
        values : array of shape (2, n_own, n_players)
        """
        collection = self.drawn.collection
        graph, cells = collection.graph, collection.cells
        assert cells is not None
        assert graph.bundles is not None
        own = cells.bundles[cells.indptr[game] : cells.indptr[game + 1]]
        share = np.bincount(graph.bundles.of_test[graph.tests_of(game)], minlength=graph.bundles.n)[own]
        share = share / share.sum()
        nothing, full = cells.of_pairs(np.array([game, self._full[game]]), game)
        gain = _differences(full - nothing, share)
        out = np.stack([share[:, None] * half + gain[:, None] / len(half) for half in halves])
        pairs, weights = self._chosen(game)
        if len(pairs):
            scores = _differences(cells.of_pairs(self.inner[pairs], game), share)
            out += self._fit(game, pairs, weights, scores)
        return own, out

    @cached_property
    def _full(self) -> Ints:
        return self.drawn.full_pairs()

    @cached_property
    def _order(self) -> Ints:
        """Pairs by game and size."""
        return order_by(self.stratum)

    @cached_property
    def _indptr(self) -> Ints:
        return np.searchsorted(self.stratum[self._order], self.drawn.strata.indptr)

    def _chosen(self, game: int) -> tuple[Ints, Floats]:
        """Pairs of a game, by size, and for each half of the folds the number of subsets that each stands for.

        That is `1/π` for what the half drew, and 1 for what was sure to be there. Of sizes with many pairs some are
        chosen at random, others for each half.
        """
        drawn, pairs = self.drawn, self._order[self._indptr[game] : self._indptr[game + 1]]
        strata, most = drawn.strata, max(LEAST_PAIRS, MOST_PAIRS // max(int(drawn.collection.graph.sizes[game]), 1))
        total = np.bincount(self.stratum[pairs] - strata.indptr[game])
        rank = np.random.default_rng(game).permutation(len(pairs))
        pairs = pairs[np.lexsort((rank, self.stratum[pairs]))]
        rank = np.arange(len(pairs)) - np.repeat(offsets(total)[:-1], total)
        pairs, rank, total = pairs[rank < most], rank[rank < most], np.repeat(total, np.minimum(total, most))
        rows, log_pi = self.row[pairs], self.log_pi[self.row[pairs]]
        folds = drawn.folds[rows]
        sampled, thinned = (rows >= drawn.before) & (folds > 0), total > most
        with np.errstate(divide="ignore"):
            log_half = np.log(-np.expm1(0.5 * np.log1p(-np.minimum(np.exp(log_pi), 1.0))))
        log_half = np.where(log_pi > -20, log_half, log_pi - np.log(2))
        stands_for = np.where(sampled, -np.where(thinned, log_pi, log_half), 0.0)
        stands_for += np.where(thinned, np.log(2 * total / most), 0.0) - strata.log_subsets[self.stratum[pairs]]
        even = sum(1 << f for f in range(0, drawn.n_folds, 2))
        missing = [np.where(thinned, rank % 2 == half, sampled & (folds & (even << half) == 0)) for half in (0, 1)]
        return pairs, np.where(missing, 0.0, np.exp(stands_for))

    def _fit(self, game: int, pairs: Ints, weights: Floats, scores: Floats) -> Floats:
        """Values that add up to 0 over the players, of scores with a column for each bundle."""
        collection, k = self.drawn.collection, self.drawn.strata.k[self.stratum[pairs]]
        players, rows = collection.graph.game(game), self.row[pairs]
        n = len(players)
        inside = np.repeat(-(k / n)[:, None], n, axis=1)
        _, members = chosen_lists(collection.indptr, collection.players, rows)
        inside[np.repeat(np.arange(len(rows)), k), np.searchsorted(players, members)] += 1.0
        found = np.empty((2, n, scores.shape[1]))
        for half, weight in enumerate(weights * n / (k * (n - k))):
            weighted = inside.T * weight
            moments = weighted @ (scores - _mean_by_size(k, weight, scores))
            found[half] = moments
            if n <= MOST_FITTED:
                # With all subsets the Gram matrix is that of differences from the mean; what it lacks, the moments add.
                gram = weighted @ inside
                fitted = np.linalg.solve(gram + RIDGE * np.eye(n), moments)
                found[half] += fitted - fitted.mean(axis=0) - gram @ fitted
        return found.transpose(0, 2, 1)


def _differences(scores: Floats, share: Floats) -> Floats:
    """Scores of bundles, less their shares of the whole."""
    found: Floats = scores - share * scores.sum(axis=-1, keepdims=True)
    return found


def _mean_by_size(k: Ints, weight: Floats, scores: Floats) -> Floats:
    """The weighted mean of the scores of each size, for every pair; pairs are ordered by size."""
    starts = np.flatnonzero(np.diff(k, prepend=-1))
    total = np.add.reduceat(weight, starts)[:, None]
    mean = np.add.reduceat(weight[:, None] * scores, starts)
    np.divide(mean, total, out=mean, where=total > 0)
    return np.repeat(mean, np.diff(np.append(starts, len(k))), axis=0)
