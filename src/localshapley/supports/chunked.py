"""Searches for rows near test rows; those that lie in parts are searched where they lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from localshapley.arrays import AnyArray, Floats, Indices
from localshapley.data.chunked_rows import ChunkedRows, RowChunk
from localshapley.data.moments import Moments
from localshapley.errors import InvalidArgumentError
from localshapley.runtime.memory import check_memory
from localshapley.runtime.progress import Progress, ProgressSetting
from localshapley.search import Neighbours, join, merge, nearest, within


@dataclass(frozen=True)
class ChunkedMatrix:
    """Rows in the space of the model, in parts.

    Attributes
    ----------
    parts : ChunkedRows
    shape : (n_rows, n_features)
    encode : callable
        From a part of the table to an array of its rows in that space.
    progress : bool or callable, optional
    """

    parts: ChunkedRows
    shape: tuple[int, int]
    encode: Callable[[Any], AnyArray]
    progress: ProgressSetting = False

    def scan(self, doing: str, function: Callable[..., Any], *shared: Any) -> Iterator[Any]:
        """What `function(start, rows, *shared)` makes of each part, in any order."""
        with Progress(self.progress, self.shape[0], doing) as bar:
            for n_rows, found in self.parts.scan(_in_space, self.encode, function, *shared):
                bar.advance(n_rows)
                yield found

    def moments(self) -> Moments:
        """Means and variances of the columns."""
        first = self.gather(np.zeros(1, dtype=np.int64))[0]
        found: Moments = reduce(add, self.scan("rows averaged", _moments, first))
        return found

    def mean(self) -> Floats:
        """Mean of each column, to the last bit that of NumPy over all rows."""
        if self.shape[1] == 1:  # which NumPy sums in another order
            found: Floats = np.ascontiguousarray(self.encode(self.parts.whole()[0]), dtype=np.float64).mean(axis=0)
            return found
        total: Floats = self.parts.fold(_add_rows, self.encode)
        return total / self.shape[0]

    def gather(self, rows: AnyArray) -> AnyArray:
        """Some rows, by ascending row numbers."""
        return self.encode(self.parts.gather(rows)[0])

    def encoded(self, encode: Callable[[AnyArray], AnyArray], n_features: int) -> ChunkedMatrix:
        """The same rows in another space, which is reached from this one."""
        return ChunkedMatrix(self.parts, (self.shape[0], n_features), _Then(self.encode, encode), self.progress)


@dataclass(frozen=True)
class _Then:
    """One function after another."""

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def __call__(self, X: Any) -> Any:
        return self.second(self.first(X))


def _in_space(part: RowChunk, encode: Callable[[Any], AnyArray], function: Callable[..., Any], *shared: Any) -> Any:
    """On whoever has the part: apply a function to its rows, as they are in the space of the model."""
    rows = encode(part.X)
    if len(rows) != part.X.shape[0]:
        raise InvalidArgumentError(
            f"{part.X.shape[0]} rows became {len(rows)} on the way to the space of the model; steps and encoders must "
            "give one vector per row, in the same order."
        )
    if rows.dtype.kind not in "biuf" or not np.isfinite(rows).all():
        raise InvalidArgumentError(
            f"X has missing (NaN) or non-numeric values in rows {part.start} to {part.start + len(rows) - 1}, in the "
            "space of the model, where distances are measured; fill or encode them, in the data or by frozen steps "
            "before the model in a Pipeline."
        )
    return len(rows), function(part.start, rows, *shared)


def _add_rows(part: RowChunk, total: Floats | None, encode: Callable[[Any], AnyArray]) -> Floats:
    """The sum of the rows so far, one after the other."""
    rows = np.ascontiguousarray(encode(part.X), dtype=np.float64)
    together: Floats = np.add.reduce(rows if total is None else np.concatenate([total[None], rows]), axis=0)
    return together


def _moments(start: int, rows: AnyArray, shift: AnyArray) -> Moments:
    return Moments.of(rows, shift)


def nearest_rows(
    X: Any, X_test: Any, n: int, metric: Any = "euclidean", metric_params: dict[str, Any] | None = None
) -> list[Indices]:
    """Rows of `X` nearest to each test row, nearest first; of rows that are as near, the first ones."""
    check_memory(f"a support of {n} nearest rows", 16 * min(n, X.shape[0]) * X_test.shape[0], "use a smaller one")
    check_numbers(X.shape[0])
    if not isinstance(X, ChunkedMatrix):
        return list(nearest(X, X_test, n, metric=metric, metric_params=metric_params).rows.astype(np.int32))
    best: Neighbours | None = None
    for found in X.scan("rows searched", _nearest, X_test, n, metric, metric_params):
        best = found if best is None else merge([best, found], n)
    assert best is not None
    return list(best.rows.astype(np.int32))


def rows_within(
    X: Any, X_test: Any, radius: float, metric: Any = "euclidean", metric_params: dict[str, Any] | None = None
) -> list[Indices]:
    """Rows of `X` at a distance of at most `radius` from each test row, ascending."""
    check_numbers(X.shape[0])
    if not isinstance(X, ChunkedMatrix):
        return within(X, X_test, radius, metric=metric, metric_params=metric_params)
    found: dict[int, list[Indices]] = {}
    n_pairs = n_searched = 0
    for start, n_rows, inside in X.scan("rows searched", _within, X_test, radius, metric, metric_params):
        found[start] = inside
        n_pairs, n_searched = n_pairs + sum(map(len, inside)), n_searched + n_rows
        # The supports, the games made of them, and the rows themselves, of which supports may share many.
        expected = n_pairs * X.shape[0] // n_searched * (12 + 8 * X.shape[1] // len(inside))
        check_memory(f"supports within {radius:.3g}", expected, "use smaller ones")
    return join([found[start] for start in sorted(found)])


def check_numbers(n_rows: int) -> None:
    """Refuse more rows than can be numbered."""
    most = np.iinfo(np.int32).max
    if n_rows > most:
        raise InvalidArgumentError(f"X has {n_rows:,} rows; at most {most:,} can be numbered. Value them in two runs.")


def _nearest(start: int, rows: AnyArray, X_test: AnyArray, n: int, metric: Any, params: Any) -> Neighbours:
    return nearest(rows, X_test, n, metric=metric, metric_params=params, offset=start)


def _within(
    start: int, rows: AnyArray, X_test: AnyArray, radius: float, metric: Any, params: Any
) -> tuple[int, int, list[Indices]]:
    return start, len(rows), within(rows, X_test, radius, metric=metric, metric_params=params, offset=start)
