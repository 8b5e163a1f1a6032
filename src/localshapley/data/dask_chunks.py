"""Rows in Dask arrays and DataFrames: functions go to the parts, and only what they find comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from localshapley.arrays import AnyArray, Ints, offsets
from localshapley.data.chunked_rows import ChunkedRows, RowChunk, column_of, distinct_in, first_of_all, given_labels
from localshapley.data.dask_jobs import Job, do_jobs, origin_of
from localshapley.errors import InvalidArgumentError


class DaskRows(ChunkedRows):
    """The partitions of a Dask DataFrame, or the chunks of rows of a Dask array.

    On a cluster functions are sent to the workers that have the parts; without one, one part is looked at after the
    other here.

    Parameters
    ----------
    X : Dask array or DataFrame
    y : str, Dask array or Series with the same parts, or array
    """

    def __init__(self, X: Any, y: Any) -> None:
        rows, labels = self._columns(X, y)
        self._origins: dict[Any, Any] = {}
        self._X = self._parts(rows)
        self._y: list[Any] | None = None if labels is None else self._parts(labels)
        if self._y is not None and len(self._y) != len(self._X):
            raise _other_parts()
        if isinstance(y, str):  # labels of the same table: they are as many
            counting: list[Any] = [None] * len(self._X)
        else:
            counting = self._X if self.names is None else self._parts(rows[self.names[:1]])
        counted = sorted(self._each(_count, enumerate(counting), self._y), key=lambda part: part[0])
        sizes = np.array([n for _, n, _ in counted], dtype=np.int64)
        self._starts = offsets(sizes).tolist()
        self.n_rows, self.largest = int(sizes.sum()), int(sizes.max(initial=0))
        self.n_columns = int(X.shape[1]) if self.names is None else len(self.names)
        if not self.n_rows or not self.n_columns:
            raise InvalidArgumentError(f"X is empty: it has {self.n_rows} rows and {self.n_columns} columns.")
        self._known: Any = None
        if self._y is not None:
            self._known = first_of_all((found, self._starts[i] + at) for i, _, (found, at) in counted)
        else:
            given = given_labels(y, self.n_rows)
            self._y = [given[a:b] for a, b in zip(self._starts[:-1], self._starts[1:], strict=True)]

    def _columns(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Rows without labels, and labels where Dask has them."""
        is_table = hasattr(X, "columns")
        labels: Any = y if hasattr(y, "to_delayed") else None
        if not is_table and X.ndim != 2:
            raise InvalidArgumentError(f"X must have two dimensions (rows, features); got {X.ndim}.")
        if is_table:
            self.names = [str(name) for name in X.columns]
            if not isinstance(y, str):
                return X, labels
            self.names = column_of(y, self.names)
            return X[self.names], X[y]
        if isinstance(y, str):
            raise InvalidArgumentError(f"y names the column {y!r}, but X is an array; give the labels.")
        if hasattr(labels, "rechunk") and labels.shape[0] == X.shape[0]:
            labels = labels.rechunk({0: X.chunks[0]})
        return X.rechunk({1: -1}), labels

    def _parts(self, table: Any) -> list[Any]:
        """The parts of a table, as they are; of columns in files, only these are read."""
        if hasattr(table, "simplify"):
            table = table.simplify()
            found = table.to_delayed(optimize_graph=False)  # or Dask would join parts of few columns
        else:
            found = table.to_delayed()
        graph = table.__dask_graph__()
        parts: list[Any] = np.ravel(found).tolist()
        self._origins |= {part.key: origin_of(part, graph) for part in parts}
        return parts

    def distinct_labels(self) -> tuple[AnyArray, Ints]:
        """The different labels, and the first row that has each; found when the rows were counted."""
        if self._known is None:
            self._known = super().distinct_labels()
        labels, first = self._known
        return labels, first

    def scan(
        self, function: Callable[..., Any], *shared: Any, rows: bool = True, labels: bool = False
    ) -> Iterator[Any]:
        """What workers find in their parts, as it comes."""
        starts = zip(self._starts, self._X if rows else [None] * len(self._X), strict=False)
        yield from self._each(_applied, starts, self._y if labels else None, function, *shared)

    def fold(self, function: Callable[..., Any], *shared: Any) -> Any:
        """One part after the other, each where it lies."""
        carried: Any = None
        for part in zip(self._starts, self._X, strict=False):
            (carried,) = self._each(_folded, [part], None, function, carried, *shared)
        return carried

    def _each(self, function: Callable[..., Any], rows: Any, labels: list[Any] | None, *shared: Any) -> Iterator[Any]:
        """`function(number, rows, labels, *shared)` of each part."""
        jobs = []
        for i, (number, X) in enumerate(rows):
            y = None if labels is None else labels[i]
            jobs.append(Job((number, X, y), self._origins.get(getattr(y if X is None else X, "key", None))))
        yield from do_jobs(function, jobs, *shared)


def _other_parts() -> InvalidArgumentError:
    return InvalidArgumentError(
        "y has other parts than X; give both from one DataFrame, or the name of the column: y='label'."
    )


# What follows runs on workers.


def _count(number: int, X: Any, y: Any) -> tuple[int, int, Any]:
    """Rows of a part, and the first row of it that has each label."""
    if y is None:  # labels are elsewhere
        return number, len(X), None
    if X is not None and len(y) != len(X):
        raise _other_parts()
    return number, len(y), distinct_in(RowChunk(0, None, np.asarray(y)))


def _applied(start: int, X: Any, y: Any, function: Callable[..., Any], *shared: Any) -> Any:
    """What a function makes of a part."""
    return function(RowChunk(start, X, None if y is None else np.asarray(y)), *shared)


def _folded(start: int, X: Any, y: Any, function: Callable[..., Any], carried: Any, *shared: Any) -> Any:
    """What a function makes of a part, and of what came of those before."""
    return function(RowChunk(start, X, None), carried, *shared)
