"""Numbers such as -999 that stand for a gap, and that models take for measurements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley.arrays import Floats
from localshapley.formatting import counted
from localshapley.notes import Note

CODES = (-1, -9, -99, -999, -9999, -99999, 99, 999, 9999, 99999)
"""Numbers by which gaps are written."""
SURE_ALONE = 999
"""A number of this size in a single cell is a code, too; smaller ones come at least twice."""
MIN_OTHERS = 10
"""Numbers that tell what is usual in a column, at least."""


def notes_on_sentinels(X: Any, X_test: Any = None) -> list[Note]:
    """Name columns in which a number that usually stands for a gap is far from all others, among training or test rows:
    its distance from the nearest is larger than that between the smallest and the largest of them.
    """
    return [
        Note("gap-code", f"{line}; if it stands for a gap, write NaN in its place.", number=code)
        for line, code in find_sentinels(X, X_test)
    ]


def find_sentinels(X: Any, X_test: Any = None) -> list[tuple[str, int]]:
    """What to say of each such column of arrays or DataFrames, and the number; nothing of sparse ones.

    >>> find_sentinels(np.array([*range(1, 20), -999.0])[:, None])
    [('column 0 holds -999 in 1 row, far from all other numbers there (1 to 19)', -999)]
    """
    if sparse.issparse(X):
        return []
    tables = [X] if X_test is None else [X, X_test]
    if not isinstance(X, pd.DataFrame):
        tables = [np.asarray(table) for table in tables]
        if any(table.dtype.kind not in "iuf" or not len(table) for table in tables):
            return []
        ends = np.array([end.reduce(table, axis=0) for table in tables for end in (np.fmin, np.fmax)])
        columns: list[tuple[Any, list[Any]]] = [
            (i, [table[:, i] for table in tables]) for i in np.flatnonzero(np.isin(ends, CODES).any(axis=0))
        ]
    else:
        columns = [
            (repr(name), [table.iloc[:, i].infer_objects() for table in tables]) for i, name in enumerate(X.columns)
        ]
        columns = [(name, parts) for name, parts in columns if all(map(_are_numbers, parts)) and _may_hold_codes(parts)]
    return [
        (f"column {name} holds {code} in {rows}, far from all other numbers there ({low:.6g} to {high:.6g})", code)
        for name, parts in columns
        for code, rows, low, high in _codes_in(
            [np.asarray(pd.Series(cells).to_numpy(dtype=np.float64, na_value=np.nan)) for cells in parts]
        )
    ]


def _are_numbers(column: pd.Series) -> bool:
    return bool(pd.api.types.is_any_real_numeric_dtype(column)) and not pd.api.types.is_bool_dtype(column)


def _may_hold_codes(parts: list[pd.Series]) -> bool:
    return any(end in CODES for column in parts for end in (column.min(), column.max()))


def _codes_in(parts: list[Floats]) -> list[tuple[int, str, float, float]]:
    """Codes among the numbers of a column: each with where it is, and the smallest and largest of the others."""
    numbers = np.concatenate(parts)
    others = numbers[np.isfinite(numbers) & ~np.isin(numbers, CODES)]
    if len(others) < MIN_OTHERS:
        return []
    low, high = float(others.min()), float(others.max())
    found = [(code, [int((part == code).sum()) for part in parts]) for code in CODES]
    return [
        (code, " and ".join(counted(n, ("row", "test row")[i]) for i, n in enumerate(counts) if n), low, high)
        for code, counts in found
        if sum(counts) >= (1 if abs(code) >= SURE_ALONE else 2) and max(low - code, code - high) > high - low > 0
    ]
