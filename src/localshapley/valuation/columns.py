"""What belongs to the rows of a valuation: their names, the user's columns, the values to one test row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Ints, as_column, rounded
from localshapley.errors import InvalidArgumentError, LocalShapleyError, warn
from localshapley.inputs.data import known_table, numbers_in
from localshapley.inputs.indexes import check_order, index_of, places_of
from localshapley.inputs.numbers import check_size
from localshapley.inputs.tables import distinct

if TYPE_CHECKING:
    from localshapley.valuation import Valuation

REMEDY = "If your model is a pipeline, give what its last step gets: X=pipeline[:-1].fit_transform(X)."
"""What to do with rows that cannot be turned into numbers here."""


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


def count_of(n: float, n_rows: int) -> int:
    """The number of rows that `n` stands for: 1 is one row, and 1.0 the share of all rows."""
    number = isinstance(n, int | float | np.number) and not isinstance(n, bool)
    if number and (0 < n < 1 or (n == 1 and not isinstance(n, int | np.integer))):
        return max(1, round(n * n_rows))
    if not number or not 1 <= n <= n_rows or n != int(n):
        raise InvalidArgumentError(
            f"n must be a number of rows from 1 to {n_rows}, or a share of them, above 0 and up to 1.0; got {n!r}."
        )
    return int(n)


def n_rows_of(table: Any) -> int:
    """The number of rows of what a user may give as a table."""
    found = known_table(table)
    return int(found.shape[0] if hasattr(found, "shape") else len(found))


def table(name: str, given: Any, n_rows: int) -> tuple[Any, list[str]]:
    """One of `tables`, and what was done to it."""
    (rows,), steps = tables((name, given, n_rows))
    return rows, steps


def tables(*given: tuple[str, Any, int]) -> tuple[list[Any], list[str]]:
    """Tables of numbers, between which distances can be measured, and what was done to get them.

    Tables with words or gaps are prepared as the command line does it, by what is in the first.

    Parameters
    ----------
    *given : tuples of name, table and number of rows
    """
    found = [known_table(rows) for _, rows, _ in given]
    for (name, _, n_rows), rows in zip(given, found, strict=True):
        shape = rows.shape if hasattr(rows, "shape") else np.asarray(rows, dtype=object).shape
        if len(shape) != 2 or shape[0] != n_rows:
            remedy = "" if len(shape) == 2 else f" {REMEDY}"
            raise InvalidArgumentError(f"{name} must have {n_rows} rows of features; got shape {shape}.{remedy}")
    numbers, steps = [_as_numbers(rows) for rows in found], list[str]()
    if any(rows is None for rows in numbers):
        numbers, steps = _prepared([name for name, _, _ in given], found)
    for (name, _, _), rows in zip(given, numbers, strict=True):
        check_size(name, numbers_in(rows))
    return numbers, steps


def _as_numbers(rows: Any) -> Any:
    """An array or a sparse matrix; None if there are words or gaps."""
    try:
        numbers = sparse.csr_matrix(rows, dtype=np.float64) if sparse.issparse(rows) else np.asarray(rows, np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if np.isfinite(numbers_in(numbers)).all() else None


def _prepared(names: list[str], found: list[Any]) -> tuple[list[Any], list[str]]:
    from localshapley.inputs.preparing import prepare  # heavy

    if any(sparse.issparse(rows) for rows in found):
        raise InvalidArgumentError(
            f"{' and '.join(names)} must not be sparse where there are missing values (NaN), infinity or words; fill "
            "them in first."
        )
    frames = [rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows).infer_objects() for rows in found]
    if any(not frame.columns.equals(frames[0].columns) for frame in frames):
        raise InvalidArgumentError(f"{' and '.join(names)} must have the same columns.")
    columns = distinct([str(column) for column in frames[0].columns])
    try:
        train, *test = (frame.set_axis(columns, axis=1) for frame in frames)
        prepared = prepare(train, test[0] if test else None)
    except (LocalShapleyError, TypeError) as error:
        why = str(error).rstrip(".")
        raise InvalidArgumentError(f"{names[0]} cannot be turned into numbers: {why}. {REMEDY}") from None
    return [prepared.X, prepared.X_test][: len(found)], prepared.steps


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
