"""Rows in Dask arrays and DataFrames: functions go to the parts, and only what they find comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from localshapley.arrays import AnyArray, Ints, offsets
from localshapley.errors import InvalidArgumentError
from localshapley.inputs.parts import Part, Parts, column_of, distinct_in, first_of_all, given_labels


class DaskParts(Parts):
    """The partitions of a Dask DataFrame, or the chunks of rows of a Dask array.

    On a cluster functions are sent to the parts, which Dask leaves with the worker that has them unless another has
    nothing to do; without one, one part is looked at after the other here.

    Parameters
    ----------
    X : Dask array or DataFrame
    y : str, Dask array or Series with the same parts, or array
    """

    def __init__(self, X: Any, y: Any) -> None:
        is_table, self._label = hasattr(X, "columns"), y if isinstance(y, str) else None
        if not is_table and X.ndim != 2:
            raise InvalidArgumentError(f"X must have two dimensions (rows, features); got {X.ndim}.")
        if self._label is not None and not is_table:
            raise InvalidArgumentError(f"y names the column {y!r}, but X is an array; give the labels.")
        if is_table:
            names = [str(name) for name in X.columns]
            self.names = names if self._label is None else column_of(self._label, names)
        self._X = _delayed(X if is_table else X.rechunk({1: -1}))
        self._y = self._labels_of(X, y)
        counted = list(self._each(_count, [*zip(self._X, self._y or self._X, strict=True)], self._label, in_order=True))
        sizes = np.array([n for n, _ in counted], dtype=np.int64)
        self._starts = offsets(sizes)
        self.n_rows, self.largest = int(sizes.sum()), int(sizes.max(initial=0))
        self.n_columns = int(X.shape[1]) if self.names is None else len(self.names)
        if not self.n_rows or not self.n_columns:
            raise InvalidArgumentError(f"X is empty: it has {self.n_rows} rows and {self.n_columns} columns.")
        self._known: Any = None
        if self._y is None and self._label is None:
            labels = given_labels(y, self.n_rows)
            self._y = [labels[a:b] for a, b in zip(self._starts[:-1], self._starts[1:], strict=True)]
        else:
            starts = self._starts.tolist()
            self._known = first_of_all((found, starts[i] + at) for i, (_, (found, at)) in enumerate(counted))

    def _labels_of(self, X: Any, y: Any) -> list[Any] | None:
        """The labels of each part, where Dask has them apart from the rows."""
        if not hasattr(y, "to_delayed"):
            return None
        if hasattr(y, "rechunk") and hasattr(X, "chunks") and y.shape[0] == X.shape[0]:
            y = y.rechunk({0: X.chunks[0]})
        found = _delayed(y)
        if len(found) != len(self._X):
            raise _other_parts()
        return found

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
        inside = labels and self._label is not None
        parts = [
            (start, X if rows or inside else None, self._y[i] if labels and self._y is not None else None)
            for i, (start, X) in enumerate(zip(self._starts.tolist(), self._X, strict=False))
        ]
        yield from self._each(_applied, parts, function, rows, self._label if labels else None, self.names, *shared)

    def fold(self, function: Callable[..., Any], *shared: Any) -> Any:
        """One part after the other, each by a worker that Dask chooses."""
        from dask.delayed import delayed

        carried: Any = None
        for start, X in zip(self._starts.tolist(), self._X, strict=False):
            carried = delayed(_folded, pure=False)(function, start, X, self.names, carried, *shared)
        return carried.compute()

    def _each(
        self, function: Callable[..., Any], parts: list[Any], *shared: Any, in_order: bool = False
    ) -> Iterator[Any]:
        """`function(*part, *shared)` of each part; on a cluster as workers finish, unless the order matters."""
        from dask.delayed import delayed

        client = _client()
        given = shared if client is None else client.scatter(list(shared), broadcast=True, hash=False)
        jobs = [delayed(function, pure=False)(*part, *given) for part in parts]
        if client is None:
            yield from (job.compute() for job in jobs)
            return
        from distributed import as_completed

        futures = client.compute(jobs)
        try:
            for future in futures if in_order else as_completed(futures):  # type: ignore[no-untyped-call]
                yield future.result()
                future.release()
        finally:
            client.cancel(futures)


def _delayed(table: Any) -> list[Any]:
    """The parts of a table, as they are: Dask would join those of few columns."""
    found = table.to_delayed() if hasattr(table, "chunks") else table.to_delayed(optimize_graph=False)
    parts: list[Any] = np.ravel(found).tolist()
    return parts


def _client() -> Any:
    """The client of a cluster, if there is one."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


def _other_parts() -> InvalidArgumentError:
    return InvalidArgumentError(
        "y has other parts than X; give both from one DataFrame, or the name of the column: y='label'."
    )


# What follows runs on workers.


def _count(X: Any, y: Any, label: str | None) -> tuple[int, tuple[AnyArray, Ints]]:
    """Rows of a part, and the first row of it that has each label."""
    if label is not None:
        y = X[label]
    elif y is X:  # labels are elsewhere
        return len(X), (np.empty(0), np.empty(0, dtype=np.int64))
    if len(y) != len(X):
        raise _other_parts()
    return len(X), distinct_in(Part(0, None, np.asarray(y)))


def _applied(
    start: int, X: Any, y: Any, function: Callable[..., Any], rows: bool, label: str | None, names: Any, *shared: Any
) -> Any:
    """What a function makes of a part."""
    y = X[label] if label is not None else y
    X = (X if names is None else X[names]) if rows else None
    return function(Part(start, X, None if y is None else np.asarray(y)), *shared)


def _folded(function: Callable[..., Any], start: int, X: Any, names: Any, carried: Any, *shared: Any) -> Any:
    """What a function makes of a part, and of what came of those before."""
    return function(Part(start, X if names is None else X[names], None), carried, *shared)
