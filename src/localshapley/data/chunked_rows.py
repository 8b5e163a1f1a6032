"""Rows that lie in parts: on disk, in a memory map or on a cluster; only some of them are ever in memory here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Ints, as_column
from localshapley.errors import InvalidArgumentError

PART_BYTES = 2**26
"""Size of a part where we choose it; data that fit into one are read as a whole, and treated like any other."""


class RowChunk(NamedTuple):
    """Rows that lie together, from row number `start` on; what nobody asked for is None."""

    start: int
    X: Any
    y: AnyArray | None


class ChunkedRows(ABC):
    """Rows and their labels, in parts.

    Attributes
    ----------
    n_rows, n_columns : int
    names : list of str or None
        Of the columns, where they have names: then parts are DataFrames, else arrays.
    largest : int
        Rows of the largest part.
    """

    n_rows: int
    n_columns: int
    names: list[str] | None = None
    largest: int

    @abstractmethod
    def scan(
        self, function: Callable[..., Any], *shared: Any, rows: bool = True, labels: bool = False
    ) -> Iterator[Any]:
        """What `function(part, *shared)` makes of each part, where the part lies; in any order."""

    def fold(self, function: Callable[..., Any], *shared: Any) -> Any:
        """What becomes of `carried = function(part, carried, *shared)` over all parts, in their order, from None on."""
        carried = None

        def step(part: RowChunk) -> None:
            nonlocal carried
            carried = function(part, carried, *shared)

        for _ in self.scan(step):
            pass
        return carried

    @property
    def n_bytes(self) -> int:
        """Size of all rows as float64."""
        return 8 * self.n_rows * self.n_columns

    @property
    def is_small(self) -> bool:
        """Whether all rows together are no larger than a part."""
        return self.n_bytes <= PART_BYTES

    def whole(self) -> tuple[Any, AnyArray]:
        """All rows and labels, in memory."""
        return _joined(self.scan(_as_it_is, labels=True))

    def gather(self, rows: Ints) -> tuple[Any, AnyArray]:
        """Some rows and their labels, by ascending row numbers."""
        return _joined(self.scan(_chosen, rows, labels=True))

    def labels(self) -> AnyArray:
        """The labels of all rows."""
        found = sorted(self.scan(_labels, rows=False, labels=True), key=lambda part: part[0])
        return np.concatenate([labels for _, labels in found])

    def distinct_labels(self) -> tuple[AnyArray, Ints]:
        """The different labels, and the first row that has each."""
        return first_of_all(self.scan(distinct_in, rows=False, labels=True))


def first_of_all(found: Iterable[tuple[AnyArray, Ints]]) -> tuple[AnyArray, Ints]:
    """The different labels of several parts, and the first row that has each."""
    first: dict[Any, int] = {}
    kinds: list[AnyArray] = []
    for labels, rows in found:
        kinds.append(labels)
        for label, row in zip(labels.tolist(), rows.tolist(), strict=True):
            first[label] = min(row, first.get(label, row))
    together = pd.unique(np.concatenate(kinds))
    return together, np.array([first[label] for label in together.tolist()], dtype=np.int64)


class MappedRows(ChunkedRows):
    """An array on disk, of which the system reads what is looked at."""

    def __init__(self, X: AnyArray, y: Any) -> None:
        self.n_rows, self.n_columns = X.shape
        self._X, self._y = X, given_labels(y, self.n_rows)
        self.largest = rows_of_part(self.n_columns)

    def scan(
        self, function: Callable[..., Any], *shared: Any, rows: bool = True, labels: bool = False
    ) -> Iterator[Any]:
        """One part after the other."""
        for start in range(0, self.n_rows, self.largest):
            stop = start + self.largest
            X = np.array(self._X[start:stop]) if rows else None
            yield function(RowChunk(start, X, self._y[start:stop] if labels else None), *shared)


def rows_of_part(n_columns: int) -> int:
    """Rows that make a part of the size that we choose."""
    return max(1, PART_BYTES // (8 * max(n_columns, 1)))


def given_labels(y: Any, n_rows: int) -> AnyArray:
    """Labels in memory, one for each row."""
    labels = as_column(y)
    if labels.ndim != 1 or len(labels) != n_rows:
        raise InvalidArgumentError(
            f"y must have one label for each of the {n_rows:,} rows of X, or be the name of a column of X; got "
            f"{f'shape {labels.shape}' if labels.ndim else repr(y)}."
        )
    return labels


def column_of(y: str, names: list[str]) -> list[str]:
    """The columns without that of the labels, which must be among them."""
    if y not in names:
        raise InvalidArgumentError(f"y names the column {y!r}, which X does not have; it has {', '.join(names[:20])}.")
    return [name for name in names if name != y]


def _as_it_is(part: RowChunk) -> RowChunk:
    return part


def _chosen(part: RowChunk, rows: Ints) -> RowChunk | None:
    n = part.X.shape[0]
    inside = rows[np.searchsorted(rows, part.start) : np.searchsorted(rows, part.start + n)] - part.start
    if not len(inside):
        return None
    assert part.y is not None
    return RowChunk(
        part.start, part.X.iloc[inside] if isinstance(part.X, pd.DataFrame) else part.X[inside], part.y[inside]
    )


def _labels(part: RowChunk) -> tuple[int, AnyArray]:
    assert part.y is not None
    return part.start, part.y


def distinct_in(part: RowChunk) -> tuple[AnyArray, Ints]:
    """The different labels of a part, and the first row that has each."""
    assert part.y is not None
    missing = np.flatnonzero(pd.isna(part.y))
    if len(missing):
        raise InvalidArgumentError(
            f"y is missing (NaN) in row {part.start + missing[0]} and perhaps others; drop or fill these rows."
        )
    first = ~pd.Series(part.y).duplicated().to_numpy()
    return part.y[first], part.start + np.flatnonzero(first)


def _joined(found: Iterator[RowChunk | None]) -> tuple[Any, AnyArray]:
    parts = sorted((part for part in found if part is not None), key=lambda part: part.start)
    tables = [part.X for part in parts]
    if isinstance(tables[0], pd.DataFrame):
        X: Any = pd.concat(tables, ignore_index=True)
    else:
        X = np.concatenate(tables)
    return X, np.concatenate([part.y for part in parts if part.y is not None])
