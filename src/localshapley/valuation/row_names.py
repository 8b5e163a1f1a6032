"""What belongs to the rows of a valuation: their names, the user's columns, the values to one test row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Floats, Ints, rounded
from localshapley.data.indexes import check_order, index_of, places_of
from localshapley.data.side_columns import entries_of
from localshapley.errors import InvalidArgumentError, warn

if TYPE_CHECKING:
    from localshapley.valuation import Valuation


def ids_of(valuation: Valuation) -> pd.Index:
    """The names of the rows: the index of the user's table, else their numbers."""
    check_valuation(valuation)
    return valuation.to_frame().index


def check_valuation(valuation: Any) -> None:
    """Refuse anything else in the place of a valuation: its values, say."""
    if not hasattr(valuation, "support_sizes"):
        kind = type(valuation).__name__
        raise InvalidArgumentError(f"valuation must be what value() returned, or load() read; got {kind}.")


def by_index(name: str, given: Any, valuation: Valuation) -> Any:
    """A table or column in the order of the valuation: by its index where that holds the names of the rows."""
    ids, index = ids_of(valuation), index_of(given)
    if index is None or len(index) != len(ids) or index.equals(ids):
        return given
    if ids.is_unique and index.is_unique:
        places = places_of(ids, index)
        if (places >= 0).all():
            return given.iloc[places]
    digests = valuation.digests
    joined = "rows were joined by position" if digests is None or digests.is_joined else "the index was not used"
    for note in check_order(name, given, "the valuation", ids, joined):
        warn(note)
    return given


def column(name: str, given: Any, valuation: Valuation) -> AnyArray:
    """Check a column with one entry for each row of the valuation, and put it into their order."""
    return entries_of(name, by_index(name, given, valuation), len(valuation.values))


def by_value(valuation: Valuation, *, best_first: bool) -> Ints:
    """Rows in the order of their values, and where these tie up to rounding in an order that a shuffle leaves alone."""
    values, digests = rounded(valuation.values), valuation.digests
    if best_first:
        values = -values
    order: Ints = np.argsort(values, kind="stable")
    if digests is not None:
        same = np.diff(values[order]) == 0
        tied = np.r_[same, False] | np.r_[False, same]
        rows = order[tied]
        order[tied] = rows[np.lexsort((digests.labels[rows], *digests.rows[rows].T, values[rows]))]
    return order


def influences(valuation: Valuation, test_row: Any) -> tuple[Ints, Floats]:
    """Training rows of a test row's support, by position, and their values to it, most influential first."""
    by_test = valuation.per_test
    if by_test is None:
        raise InvalidArgumentError(
            "valuation lacks the values to each test row; make it with value(..., per_test=True)."
        )
    n_tests = by_test.shape[0]
    if not isinstance(test_row, int | np.integer) or not 0 <= test_row < n_tests:
        raise InvalidArgumentError(f"test_row must be a whole number from 0 to {n_tests - 1}; got {test_row!r}.")
    where = slice(by_test.indptr[test_row], by_test.indptr[test_row + 1])
    order = np.argsort(-np.abs(by_test.data[where]), kind="stable")
    return by_test.indices[where][order], by_test.data[where][order]


def companions(valuation: Valuation, n: int, rows: Ints) -> list[Ints]:
    """The rows that share most supports with each of some rows: supports that hold both over those that hold either."""
    supports = valuation.per_test
    found = [np.empty(0, dtype=np.int64)] * len(rows)
    if supports is None:
        return found
    by_row = supports.tocsc()
    n_tests = np.diff(by_row.indptr)
    for i in np.flatnonzero(n_tests[rows]).tolist():  # all others share no support
        z = rows[i]
        tests = by_row.indices[by_row.indptr[z] : by_row.indptr[z + 1]]
        others, both = np.unique(supports[tests].indices, return_counts=True)
        share = both / (n_tests[z] + n_tests[others] - both)
        share[others == z] = -1
        found[i] = others[np.argsort(-share, kind="stable")[: min(n, len(others) - 1)]].astype(np.int64)
    return found
