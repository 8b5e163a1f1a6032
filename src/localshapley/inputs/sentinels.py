"""Numbers such as -999 that stand for a gap, and that models take for measurements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley.arrays import Floats
from localshapley.wording import counted

CODES = (-1, -9, -99, -999, -9999, -99999, 99, 999, 9999, 99999)
"""Numbers by which gaps are written."""
SURE_ALONE = 999
"""A number of this size in a single cell is a code, too; smaller ones come at least twice."""
MIN_OTHERS = 10
"""Numbers that tell what is usual in a column, at least."""


def notes_on_sentinels(X: Any) -> list[str]:
    """Name columns in which a number that usually stands for a gap is far from all others: its distance from the
    nearest is larger than that between the smallest and the largest of them.
    """
    return [f"{line}; if it stands for a gap, write NaN in its place." for line, _ in find_sentinels(X)]


def find_sentinels(X: Any) -> list[tuple[str, int]]:
    """What to say of each such column of an array or DataFrame, and the number; nothing of sparse ones.

    >>> find_sentinels(np.array([*range(1, 20), -999.0])[:, None])
    [('column 0 holds -999 in 1 row, far from all other numbers there (1 to 19)', -999)]
    """
    if sparse.issparse(X):
        return []
    if not isinstance(X, pd.DataFrame):
        X = np.asarray(X)
        if X.dtype.kind not in "iuf" or not len(X):
            return []
        ends = np.array([np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)])
        columns: list[tuple[Any, Any]] = [(i, X[:, i]) for i in np.flatnonzero(np.isin(ends, CODES).any(axis=0))]
    else:
        columns = [(repr(name), X.iloc[:, i]) for i, name in enumerate(X.columns)]
        columns = [(name, cells) for name, cells in columns if _holds_numbers(cells)]
    return [
        (
            f"column {name} holds {code} in {counted(n, 'row')}, far from all other numbers there "
            f"({low:.6g} to {high:.6g})",
            code,
        )
        for name, cells in columns
        for code, n, low, high in _codes_in(np.asarray(pd.Series(cells).to_numpy(dtype=np.float64, na_value=np.nan)))
    ]


def _holds_numbers(column: pd.Series) -> bool:
    is_number = pd.api.types.is_any_real_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    return bool(is_number) and (column.min() in CODES or column.max() in CODES)


def _codes_in(numbers: Floats) -> list[tuple[int, int, float, float]]:
    """Codes among numbers: each with how often it is there, and the smallest and largest of the others."""
    numbers = numbers[np.isfinite(numbers)]
    others = numbers[~np.isin(numbers, CODES)]
    if len(others) < MIN_OTHERS:
        return []
    low, high = float(others.min()), float(others.max())
    found = [(code, int((numbers == code).sum())) for code in CODES]
    return [
        (code, n, low, high)
        for code, n in found
        if n >= (1 if abs(code) >= SURE_ALONE else 2) and max(low - code, code - high) > high - low > 0
    ]
