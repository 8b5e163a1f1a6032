"""Bundles of test rows, which show how much values depend on which test rows happened to be there.

A value is a sum over the test rows. If these are dealt at random to bundles, the sums of the bundles differ by chance
alone, and how much they differ says how far the value would be off with other test rows, for each training row and for
any two of them together. With few test rows each is a bundle of its own.
"""

from __future__ import annotations

import numpy as np

from localshapley.arrays import Floats, Indices, Ints, Lists, Singles

MOST = 64
"""Bundles: standard errors from so many are known to a tenth."""
FEWEST, MAX_NUMBERS = 8, 2**24
"""Of many players there are fewer bundles, so that there is room for a number for each of both."""


class Bundles:
    """Test rows, dealt at random to bundles of about the same size.

    Parameters
    ----------
    sources : int array of shape (n_tests,)
        The row that each test row is a copy of: copies share a bundle.
    n_players : int

    Attributes
    ----------
    of_test : array of shape (n_tests,)
        The bundle of each test row.
    share : array of shape (n_bundles,)
        Share of the test rows in each bundle, copies counted once.

    Examples
    --------
    >>> Bundles(np.arange(3), n_players=5).share
    array([0.33333333, 0.33333333, 0.33333333])
    """

    def __init__(self, sources: Ints, n_players: int) -> None:
        rows, place = np.unique(sources, return_inverse=True)
        self.n = min(len(rows), MOST, max(FEWEST, MAX_NUMBERS // max(n_players, 1)))
        dealt = np.random.default_rng(len(rows)).permutation(len(rows)) % max(self.n, 1)
        self.n_players = n_players
        self.of_test: Indices = dealt[place].astype(np.int32)
        self.share: Floats = np.bincount(dealt, minlength=self.n) / max(len(rows), 1)

    def sums(self, pairs: Lists, data: Floats, bundle: Indices) -> Floats:
        """Sum `data`, given at the places of `pairs`, by player and by the bundle of each list of players.

        Returns
        -------
        array of shape (n_bundles, n_players)
        """
        from localshapley.kernels.accumulate import add_by_bundle

        out = np.zeros((self.n, self.n_players))
        add_by_bundle(pairs, bundle, data, out)
        return out

    def spread(self, sums: Floats, by_draws: Floats | None = None) -> Singles | None:
        """Columns, one row per player, whose products are the covariances of the values over sets of test rows.

        Parameters
        ----------
        sums : array of shape (1 or 2, n_bundles, n_players)
            Values to each bundle, exact or from two halves of the draws: what these differ in is the error of the
            draws, which is no difference between test rows and is taken out.
        by_draws : array of shape (n_players,), optional
            Variance that is due to the draws, where there are no halves.

        Returns
        -------
        array of shape (n_players, n_bundles), or None if one test row is all there is
        """
        if self.n < 2:
            return None
        apart = sums - self.share[:, None] * sums.sum(axis=1, keepdims=True)
        mean = apart.mean(axis=0)
        seen = (mean**2).sum(axis=0)
        if by_draws is None:
            by_draws = (((apart[0] - apart[-1]) / 2) ** 2).sum(axis=0)
        known = np.maximum(seen - by_draws, 0.0) / (1 - (self.share**2).sum())
        scale = np.sqrt(np.divide(known, seen, out=np.zeros_like(seen), where=seen > 0))
        columns: Singles = (mean * scale).T.astype(np.float32, order="C")
        return columns
