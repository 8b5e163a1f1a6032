"""Columns and tables that a user gives beside what was read before: as many entries as there are rows, as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley.arrays import AnyArray, as_column
from localshapley.data.rows import check_size, known_table, numbers_in
from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.io.tables import distinct
from localshapley.notes import Note

REMEDY = "If your model is a pipeline, give what its last step gets: X=pipeline[:-1].fit_transform(X)."
"""What to do with rows that cannot be turned into numbers here."""


def entries_of(name: str, given: Any, n_rows: int) -> AnyArray:
    """Check a column with `n_rows` entries, none of them missing."""
    entries = as_column(given)
    if entries.ndim != 1 or len(entries) != n_rows:
        raise InvalidArgumentError(
            f"{name} must have one entry for each of the {n_rows} rows; got shape {entries.shape}."
        )
    missing = np.flatnonzero(pd.isna(entries))
    if len(missing):
        raise InvalidArgumentError(
            f"{name} is missing (NaN) in {len(missing)} places, first at row {missing[0]}; fill these entries in."
        )
    return entries


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


def table(name: str, given: Any, n_rows: int) -> tuple[Any, list[Note]]:
    """One of `tables`, and what was done to it."""
    (rows,), steps = tables((name, given, n_rows))
    return rows, steps


def tables(*given: tuple[str, Any, int]) -> tuple[list[Any], list[Note]]:
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
    numbers, steps = [_as_numbers(rows) for rows in found], list[Note]()
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


def _prepared(names: list[str], found: list[Any]) -> tuple[list[Any], list[Note]]:
    from localshapley.data.preparing import prepare  # heavy

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
