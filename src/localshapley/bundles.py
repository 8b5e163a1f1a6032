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
HARDLY = 0.5
"""An error of the draws that is at most half of that of the test rows adds no more than an eighth to it."""
UNMET = 0.5
"""Test rows of the typical kind that every row might have met and has not; see `unmet`."""
FEW = 45
"""Of fewer bundles than this a smaller part of that is added: what is typical of them is seen too large."""


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
    has_copies : bool
        Whether any test row is a copy of another.

    Examples
    --------
    >>> Bundles(np.arange(3), n_players=5).share
    array([0.33333333, 0.33333333, 0.33333333])
    """

    def __init__(self, sources: Ints, n_players: int) -> None:
        rows, place = np.unique(sources, return_inverse=True)
        self.n = min(len(rows), MOST, max(FEWEST, MAX_NUMBERS // max(n_players, 1)))
        dealt = np.random.default_rng(len(rows)).permutation(len(rows)) % max(self.n, 1)
        self.n_players, self.has_copies = n_players, len(rows) < len(place)
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

    def spread(self, sums: Floats, squares: Floats | None = None, by_draws: Floats | None = None) -> Singles | None:
        """Columns, one row per player, whose products are the covariances of the values over sets of test rows.

        Parameters
        ----------
        sums : array of shape (1 or 2, n_bundles, n_players)
            Values to each bundle, exact or from two halves of the draws: what these differ in is the error of the
            draws, which is no difference between test rows and is taken out.
        squares : array of shape (n_players,), optional
            Sums over all test rows of the squared values to each, where they are known: then variances are exact, and
            bundles are for covariances alone. With halves, the products of both.
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
        if squares is not None and not self.has_copies:
            n_tests = len(self.of_test)
            known = (squares - sums[0].sum(axis=0) * sums[-1].sum(axis=0) / n_tests) * n_tests / (n_tests - 1)
        else:
            noise = (((apart[0] - apart[-1]) / 2) ** 2).sum(axis=0) if by_draws is None else by_draws
            known = (seen - noise) / (1 - (self.share**2).sum())
        scale = np.sqrt(np.divide(np.maximum(known, 0.0), seen, out=np.zeros_like(seen), where=seen > 0))
        columns: Singles = (mean * scale).T.astype(np.float32, order="C")
        return columns


def squares(columns: Singles) -> Floats:
    """Squared norms of the rows."""
    found: Floats = (columns.astype(np.float64) ** 2).sum(axis=1)
    return found


def unmet(columns: Singles) -> float:
    """Variance, for every row, from test rows that it might have met and has not.

    A row that matters to few test rows, or to none of these, shows little or no difference between them; it may still
    be worth something to others. So half a test row of the kind that makes most of the differences is added to what
    each row has met. The square of its value is the ratio of the fourth to the second cumulant, over all rows: for
    rows that have the value `a` to a few test rows and 0 to the others, it is `a²`. Few test rows show the few that
    matter most as typical, and Student's distribution allows for much there: less is added.
    """
    second = squares(columns)
    fourth = (columns.astype(np.float64) ** 4).sum(axis=1) - 3 * second**2 / columns.shape[1]
    total = float(second.sum())
    added = UNMET * min(1.0, columns.shape[1] / FEW)
    return added * float(np.maximum(fourth, 0.0).sum()) / total if total > 0 else 0.0
