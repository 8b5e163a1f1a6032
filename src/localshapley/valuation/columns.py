"""What belongs to the rows of a valuation: their names, the user's columns, the values to one test row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Ints, as_column
from localshapley.errors import InvalidArgumentError, warn
from localshapley.inputs.data import known_table, numbers_in
from localshapley.inputs.indexes import check_order, index_of, same_labels
from localshapley.inputs.numbers import check_size

if TYPE_CHECKING:
    from localshapley.valuation import Valuation


def ids_of(valuation: Valuation) -> pd.Index:
    """The names of the rows: the index of the user's table, else their numbers."""
    return valuation.to_frame().index


def by_index(name: str, given: Any, valuation: Valuation) -> Any:
    """A table or column in the order of the valuation: by its index where that holds the names of the rows."""
    ids, index = ids_of(valuation), index_of(given)
    if index is None or len(index) != len(ids) or index.equals(ids):
        return given
    if ids.is_unique and same_labels(index, ids):
        return given.iloc[index.get_indexer(ids)]
    joined = "rows were joined by position" if valuation.digests is None else "the index was not used"
    for note in check_order(name, given, "the valuation", ids, joined):
        warn(note)
    return given


def column(name: str, given: Any, valuation: Valuation) -> AnyArray:
    """Check a column with one entry for each row of the valuation, and put it into their order."""
    return entries_of(name, by_index(name, given, valuation), len(valuation.values))


def entries_of(name: str, given: Any, n_rows: int) -> AnyArray:
    """Check a column with `n_rows` entries, none of them missing."""
    entries = as_column(given)
    if entries.ndim != 1 or len(entries) != n_rows:
        raise InvalidArgumentError(
            f"{name} must have one entry for each of the {n_rows} rows of the valuation; got shape {entries.shape}."
        )
    missing = np.flatnonzero(pd.isna(entries))
    if len(missing):
        raise InvalidArgumentError(
            f"{name} is missing (NaN) in {len(missing)} places, first at row {missing[0]}; fill these entries in."
        )
    return entries


def count_of(n: float, n_rows: int) -> int:
    """The number of rows that `n` stands for."""
    number = isinstance(n, int | float | np.number) and not isinstance(n, bool)
    if number and 0 < n < 1:
        return max(1, round(n * n_rows))
    if not number or n != int(n) or not 1 <= n <= n_rows:
        raise InvalidArgumentError(
            f"n must be a number of rows from 1 to {n_rows}, or a share between 0 and 1; got {n!r}."
        )
    return int(n)


def n_rows_of(table: Any) -> int:
    """The number of rows of what a user may give as a table."""
    found = known_table(table)
    return int(found.shape[0] if hasattr(found, "shape") else len(found))


def table(name: str, given: Any, n_rows: int) -> Any:
    """Check a table of numbers with `n_rows` rows, between which distances can be measured."""
    given = known_table(given)
    try:
        rows = sparse.csr_matrix(given, dtype=np.float64) if sparse.issparse(given) else np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"{name} must hold numbers, as distances are measured in it; encode its other columns first."
        ) from None
    if rows.ndim != 2 or rows.shape[0] != n_rows:
        raise InvalidArgumentError(f"{name} must have {n_rows} rows of features; got shape {rows.shape}.")
    if not np.isfinite(rows.data if sparse.issparse(rows) else rows).all():
        raise InvalidArgumentError(f"{name} holds missing values (NaN) or infinity; fill or drop them first.")
    check_size(name, numbers_in(rows))
    return rows


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
