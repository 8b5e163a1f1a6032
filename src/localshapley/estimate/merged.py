"""Values to bundles of test rows, in sampled games that several test rows share.

Such a game is estimated from the sums of its scores. How its value is spread over bundles is only needed to know how
much test rows differ, so a least-squares fit of sums over players is good enough: it takes many columns at once, and
its coefficients are the Shapley values where all subsets are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from localshapley.arrays import Floats, Ints
from localshapley.estimate.drawn import Drawn

CHUNK = 4096
"""Pairs that are written out at a time, one column for each player."""
MOST_FITTED = 1024
"""Of games with more players than this the draws are only weighted, and not fitted."""
RIDGE = 0.1


@dataclass(frozen=True)
class Merged:
    """A round of sampling, of which games with several test rows are taken apart.

    Attributes
    ----------
    drawn : Drawn
    inner, row, stratum : arrays of shape (n_pairs,)
        As from `inner_pairs`.
    log_pi : array of shape (n_rows,)
        Logarithm of the probability with which each row was drawn.
    """

    drawn: Drawn
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
        pairs = self._order[self._indptr[game] : self._indptr[game + 1]]
        if len(pairs):
            scores = _differences(cells.of_pairs(self.inner[pairs], game), share)
            out += self._fit(game, pairs, scores)
        return own, out

    @cached_property
    def _full(self) -> Ints:
        return self.drawn.full_pairs()

    @cached_property
    def _order(self) -> Ints:
        """Pairs by game and size."""
        order: Ints = np.argsort(self.stratum, kind="stable")
        return order

    @cached_property
    def _indptr(self) -> Ints:
        return np.searchsorted(self.stratum[self._order], self.drawn.strata.indptr)

    def _fit(self, game: int, pairs: Ints, scores: Floats) -> Floats:
        """Values that add up to 0 over the players, of scores with a column for each bundle."""
        collection, strata = self.drawn.collection, self.drawn.strata
        players, k = collection.graph.game(game), strata.k[self.stratum[pairs]]
        n, rows = len(players), self.row[pairs]
        weights = self._weights(pairs) * n / (k * (n - k))
        gram, moments = np.zeros((2, n, n)), np.zeros((2, n, scores.shape[1]))
        fits = n <= MOST_FITTED
        centred = [scores - _mean_by_size(k, w, scores) for w in weights]
        place = np.zeros(collection.graph.n_players, dtype=np.int64)
        place[players] = np.arange(n)
        for start in range(0, len(pairs), CHUNK):
            part = slice(start, start + CHUNK)
            inside = np.repeat(-(k[part] / n)[:, None], n, axis=1)
            begin, end = collection.indptr[rows[part]], collection.indptr[rows[part] + 1]
            member = np.repeat(begin - np.concatenate([[0], np.cumsum(end - begin)[:-1]]), end - begin)
            member += np.arange(len(member))
            inside[np.repeat(np.arange(len(begin)), end - begin), place[collection.players[member]]] += 1.0
            for half, w in enumerate(weights):
                weighted = inside * w[part, None]
                moments[half] += weighted.T @ centred[half][part]
                if fits:
                    gram[half] += weighted.T @ inside
        if not fits:
            return moments.transpose(0, 2, 1)
        # With all subsets the Gram matrix is that of differences from the mean. What it lacks is left to the moments.
        fitted = np.linalg.solve(gram + RIDGE * np.eye(n), moments)
        found: Floats = fitted - fitted.mean(axis=1, keepdims=True) + moments - gram @ fitted
        return found.transpose(0, 2, 1)

    def _weights(self, pairs: Ints) -> Floats:
        """For each half of the folds `1/(π·C(n,k))` of what it drew, and `1/C(n,k)` of what was sure to be there."""
        drawn, rows = self.drawn, self.row[pairs]
        folds = drawn.folds[rows]
        sampled = (rows >= drawn.before) & (folds > 0)
        log_pi = self.log_pi[rows]
        with np.errstate(divide="ignore"):
            log_half = np.log(-np.expm1(0.5 * np.log1p(-np.minimum(np.exp(log_pi), 1.0))))
        log_half = np.where(log_pi > -20, log_half, log_pi - np.log(2))
        log_weight = -drawn.strata.log_subsets[self.stratum[pairs]]
        weight = np.exp(log_weight - np.where(sampled, log_half, 0.0))
        even = sum(1 << f for f in range(0, drawn.n_folds, 2))
        return np.stack([np.where(sampled & (folds & which == 0), 0.0, weight) for which in (even, even << 1)])


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
