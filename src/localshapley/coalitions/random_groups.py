"""Random groups (bundles) of test rows, which show how much values depend on which test rows happened to be there.

A value is a sum over the test rows. If these are dealt at random to bundles, the sums of the bundles differ by chance
alone, and how much they differ says how far the value would be off with other test rows, for each training row and for
any two of them together. With few test rows each is a bundle of its own.
"""

from __future__ import annotations

import numpy as np

from localshapley.arrays import Floats, Indices, Ints, Lists, Singles, singles

MOST = 64
"""Bundles: standard errors from so many are known to a tenth."""
FEWEST, MAX_NUMBERS = 8, 2**24
"""Of many players there are fewer bundles, so that there is room for a number for each of both."""
HARDLY = 0.5
"""An error of the draws that is at most half of that of the test rows adds no more than an eighth to it."""


class RandomGroups:
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
    >>> RandomGroups(np.arange(3), n_players=5).share
    array([0.33333333, 0.33333333, 0.33333333])
    """

    def __init__(self, sources: Ints, n_players: int) -> None:
        rows, place = np.unique(sources, return_inverse=True)
        self.n = min(len(rows), MOST, max(FEWEST, MAX_NUMBERS // max(n_players, 1)))
        dealt = np.random.default_rng(len(rows)).permutation(len(rows)) % max(self.n, 1)
        self.n_players, self.has_copies = n_players, len(rows) < len(place)
        self.of_test: Indices = dealt[place].astype(np.int32)
        self.share: Floats = np.bincount(dealt, minlength=self.n) / max(len(rows), 1)

    def sums(self, pairs: Lists, data: Floats, bundle: Indices, n_players: int | None = None) -> Floats:
        """Sum `data`, given at the places of `pairs`, by player and by the bundle of each list of players.

        `n_players` are all, unless `pairs` number some of them.

        Returns
        -------
        array of shape (n_bundles, n_players)
        """
        from localshapley.kernels.accumulate import add_by_bundle

        out = np.zeros((self.n, self.n_players if n_players is None else n_players))
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
        return singles((mean * scale).T, order="C")


def squares(columns: Singles) -> Floats:
    """Squared norms of the rows."""
    found: Floats = (columns.astype(np.float64) ** 2).sum(axis=1)
    return found


def credibility(columns: Singles) -> tuple[float, float]:
    """How far each row's own variance is believed, and what every row has of the mean variance of all rows.

    Few test rows tell little about the variance of one row, and nothing if it has met none of them. Its best linear
    estimate is `weight * own + (1 - weight) * mean` (Bühlmann's credibility, 1967): the weight is the share of the
    differences between rows that is more than chance. Chance is what is left of the squares in the columns without
    the means of rows and of columns, as in an analysis of variance; `n - 2` and not `n - 1`, because the columns of a
    row sum to zero and their squares go together. Three rows are too few to learn from each other (James and Stein).

    Returns
    -------
    weight : float
        Of each row's own variance.
    common : float
        `(1 - weight) * mean`.
    """
    n_rows, n = columns.shape
    each = n * columns.astype(np.float64) ** 2
    own, by_column, mean = each.mean(axis=1), each.mean(axis=0), float(each.mean())
    apart = float(((own - mean) ** 2).sum())
    if n_rows <= 3 or apart <= 0:
        return 1.0, 0.0
    rest = float(np.vdot(each, each) - n * own @ own - n_rows * by_column @ by_column) + n_rows * n * mean**2
    chance = max(rest, 0.0) / (n * (n - 2)) if n > 2 else apart
    weight = max(0.0, 1 - (n_rows - 3) / (n_rows - 1) * chance / apart)
    return weight, (1 - weight) * mean


def missing(columns: Singles) -> Floats:
    """What each row's own variance is short of its best estimate, where it is: for rows that are picked from many.

    Those with few but large differences are picked first, and theirs are not made smaller by those of the others.
    """
    weight, common = credibility(columns)
    lacking: Floats = np.maximum(common - (1 - weight) * squares(columns), 0.0)
    return lacking
