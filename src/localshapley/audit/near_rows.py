"""Rows that are far nearer to each other than rows are by chance, and rows that are far from all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.data.row_digests import digest_cells
from localshapley.search import nearest_others
from localshapley.search.nearest_rows import TREE_STEP

NEIGHBOURS = 10
"""A row is compared with its nearest rows, of which there are this many,"""
MIDDLE = 5
"""and with this one of them."""
FALSE_ALARMS = 0.01
"""Mean number of pairs, over all rows of a table, that are called near without being copies."""
NEAR = 0.2
"""Rows further apart than this share of the distance to the tenth neighbour are never called near."""
FAR = 3.0
"""Outliers are more than this many times as far from the fifth neighbour as 95 % of the rows are."""
FEW_ROWS = 20
"""Of fewer rows, distances say nothing."""
PAIRS_DRAWN = 10_000
"""Pairs of rows by which it is estimated how far apart rows are in each column."""
MAX_WORK = 2e10
"""Comparisons of two numbers that a search may take unless the user asks for more: some seconds."""


@dataclass(frozen=True)
class NearDuplicates:
    """Which rows are nearly equal, and which are far from all others.

    Attributes
    ----------
    pairs : int array of shape (n_pairs, 2)
    distances : array of shape (n_pairs,)
    outliers : int array
        Most distant first.
    away : array
        Distance of each outlier to its fifth neighbour, as a multiple of the median over all rows.
    """

    pairs: Ints
    distances: Floats
    outliers: Ints
    away: Floats


NOTHING = NearDuplicates(np.empty((0, 2), dtype=np.int64), np.empty(0), np.empty(0, dtype=np.int64), np.empty(0))


def find_near(Z: Any, words: Ints) -> NearDuplicates:
    """Search rows that are nearly equal, and outliers.

    If rows lie in `p` dimensions with a density that hardly changes between neighbours, the distance to one neighbour
    is below `r` times that to the k-th with a probability of about ``(k - 1) * r**p``. Near are those for which that
    happens less than `FALSE_ALARMS` times in the whole table. `p` is estimated from the ratios of the tenth and the
    fifth distance, which copies do not change as long as a row has fewer than five. Where columns take few values, rows
    can be equal in many and differ in one: so near rows must also be rarer than `FALSE_ALARMS` by the differences that
    any two rows have in each column.

    Parameters
    ----------
    Z : array or CSR matrix of shape (n, n_features)
        Standardised numbers of rows that differ.
    words : array of shape (n,)
        What else must be equal, as numbers.
    """
    n = Z.shape[0]
    if n < FEW_ROWS or not Z.shape[1]:
        return NOTHING
    distances, neighbours = nearest_others(Z, NEIGHBOURS)
    limit = _ratio(distances) * distances[:, -1]
    one, two = np.repeat(np.arange(n), NEIGHBOURS), neighbours.ravel()
    near = np.flatnonzero((distances.ravel() < np.minimum(limit[one], limit[two])) & (words[one] == words[two]))
    if len(near) and not sparse.issparse(Z):
        near = near[_pairs_by_chance(Z, one[near], two[near]) < FALSE_ALARMS]
    reach = distances[:, MIDDLE - 1]
    far = np.flatnonzero(reach > FAR * np.quantile(reach, 0.95))
    far = far[np.argsort(-reach[far], kind="stable")]
    typical = float(np.median(reach)) or 1.0
    return NearDuplicates(np.stack([one, two], axis=1)[near], distances.ravel()[near], far, reach[far] / typical)


def takes_long(table: Any) -> bool:
    """Whether a search in all columns takes more than some seconds."""
    n, width = table.shape
    if sparse.issparse(table):
        return bool(n * table.nnz > MAX_WORK)
    return min(float(n * width * n), _work_by_tree(table)) > MAX_WORK


def _work_by_tree(table: Any) -> float:
    n, width = table.shape
    return float(TREE_STEP * n * np.log2(n + 1) * 2.0 ** min(width, 100))


def _ratio(distances: Floats) -> float:
    """Below which share of the distance to the last neighbour another is near."""
    n, k = distances.shape
    last, middle = distances[:, -1], distances[:, MIDDLE - 1]
    grow = np.log(last[middle > 0] / middle[middle > 0])
    if not grow.sum() > 0:
        return NEAR
    p = (1 / np.arange(MIDDLE, k)).sum() / grow.mean()
    return float(min(NEAR, (FALSE_ALARMS / (n * (k - 1))) ** (1 / p)))


def _pairs_by_chance(Z: Floats, one: Ints, two: Ints) -> Floats:
    """For each pair, how many would be as near in every column if columns were independent of each other."""
    n, rng = len(Z), np.random.default_rng(0)
    drawn = rng.integers(n, size=PAIRS_DRAWN)
    others = (drawn + rng.integers(1, n, size=PAIRS_DRAWN)) % n
    expected = np.full(len(one), n * (n - 1) / 2)
    for column in Z.T:
        usual = np.sort(np.abs(column[drawn] - column[others]))
        apart = np.abs(column[one] - column[two])
        expected *= (1 + np.searchsorted(usual, apart, side="right")) / (1 + PAIRS_DRAWN)
    return expected


def standardised(table: Any) -> tuple[Any, Ints]:
    """The numbers of a table (dates too) with mean 0 and deviation 1, and a code of everything else in each row.

    Gaps are filled with the median. Where they are belongs to the code, and so do columns of two values.
    """
    if sparse.issparse(table):
        from sklearn.preprocessing import StandardScaler

        return StandardScaler(with_mean=False).fit_transform(table.astype(np.float64)), np.zeros(table.shape[0], int)
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(table).infer_objects()
    is_number = np.array([_is_number(kind) for kind in frame.dtypes], dtype=bool)
    numbers = np.empty((len(frame), int(is_number.sum())))
    for to, place in enumerate(np.flatnonzero(is_number).tolist()):
        numbers[:, to] = _as_floats(frame.iloc[:, place])
    missing = ~np.isfinite(numbers)
    numbers[missing] = np.nan
    amount = _takes_three_values(numbers)
    rest = [digest_cells(part)[:, 0] for part in (frame.iloc[:, ~is_number], numbers[:, ~amount], missing)]
    code = pd.factorize(np.sum(rest, axis=0))[0].astype(np.int64)
    return _scaled(numbers[:, amount]), code


def _takes_three_values(numbers: Floats) -> AnyArray:
    """Which columns hold at least three different numbers; a column of two, such as 0 and 1, says yes or no."""
    low, high = np.fmin.reduce(numbers, axis=0), np.fmax.reduce(numbers, axis=0)
    between: AnyArray = ((numbers > low) & (numbers < high)).any(axis=0)
    return between


def _is_number(kind: Any) -> bool:
    types = pd.api.types
    return types.is_numeric_dtype(kind) or types.is_datetime64_any_dtype(kind) or types.is_timedelta64_dtype(kind)


def _as_floats(column: pd.Series) -> AnyArray:
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(column.isna(), np.nan, column.astype("int64"))


def _scaled(numbers: Floats) -> Floats:
    """Columns that differ from row to row with mean 0 and deviation 1, gaps filled."""
    numbers = np.where(np.isnan(numbers), np.nanmedian(numbers, axis=0), numbers)
    numbers = numbers / np.abs(numbers).max(axis=0)  # squares stay finite
    numbers = numbers - numbers.mean(axis=0)
    deviation = numbers.std(axis=0)
    return np.ascontiguousarray(numbers[:, deviation > 0] / deviation[deviation > 0])
