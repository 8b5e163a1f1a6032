"""All rows within a radius of each query."""

from __future__ import annotations

from typing import Any

import numpy as np

from localshapley.arrays import AnyArray, Floats, Indices, Ints
from localshapley.inputs.memory import check_memory
from localshapley.search.best import EUCLIDEAN
from localshapley.search.bounds import Arithmetic, UndecidedError, arithmetics
from localshapley.search.neighbours import DOUBT, as_rows, index_of, is_euclidean, metric_for, naming, pays_tree
from localshapley.search.pairs import measure
from localshapley.search.scan import at_least, chunks_of, passing, scan

AT_ONCE = 20_000_000
"""Pairs of rows that a search looks at, at a time; whether all that it finds fits into memory is judged each time."""
CROWD = 1 / 16
"""If so large a share of the pairs is too close to the radius to tell, another arithmetic is tried."""


def within(
    X: Any,
    queries: Any,
    radius: float,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    offset: int = 0,
) -> list[Indices]:
    """The rows of `X` at a distance of at most `radius` from each query, in the order of their numbers.

    Exact as `nearest` is; `join` puts the findings in parts of the rows together.

    Parameters
    ----------
    X, queries, metric, metric_params, offset
        As in `nearest`.
    radius : float

    Examples
    --------
    >>> within(np.array([[0.0], [1.0], [5.0]]), np.array([[0.5], [9.0]]), 0.5)
    [array([0, 1], dtype=int32), array([], dtype=int32)]
    """
    name, params = metric_for(metric, metric_params)
    X, queries = as_rows(X), as_rows(queries)
    if not X.shape[0] or not queries.shape[0]:
        found = [np.empty(0, dtype=np.int32)] * queries.shape[0]
    elif is_euclidean(X, name, params) and not pays_tree(X, queries):
        found = _by_products(X, queries, radius)
    else:
        with naming(metric, metric_params):
            found = _by_index(X, queries, radius, name, params)
    return [rows + np.int32(offset) for rows in found] if offset else found


def _by_products(X: AnyArray, queries: AnyArray, radius: float) -> list[Indices]:
    out: list[Indices] = [np.empty(0, dtype=np.int32)] * len(queries)
    open_: Ints = np.arange(len(queries))
    ways = arithmetics(X)
    for way in ways:
        here = chunks_of(len(open_)) if len(open_) else []
        try:
            chunks = [Inside(X, queries[open_[where]], radius, way, last=way is ways[-1]) for where in here]
            scan(X, chunks, way, len(open_))
        except UndecidedError:  # a row is out of this arithmetic's range
            continue
        for where, chunk in zip(here, chunks, strict=True):
            if not chunk.undecided:
                for t, rows in zip(open_[where].tolist(), chunk.result(), strict=True):
                    out[t] = rows
        undecided = [open_[where] for where, chunk in zip(here, chunks, strict=True) if chunk.undecided]
        open_ = np.concatenate(undecided) if undecided else open_[:0]
    for t in open_.tolist():
        away = measure(X, queries, np.arange(len(X)), np.full(len(X), t), *EUCLIDEAN)
        out[t] = np.flatnonzero(away <= radius).astype(np.int32)
    return out


class Inside:
    """Some queries, and the rows within the radius so far: those that surely are, and of the others the measured."""

    def __init__(self, X: AnyArray, queries: AnyArray, radius: float, way: Arithmetic, *, last: bool) -> None:
        self.undecided = False
        self._X, self._raw, self._radius, self._last = X, queries, radius, last
        self._queries, errors = way.queries(queries)
        reach, slack = way.nearness_at(queries, radius)
        self._limit, self._sure = at_least(reach + errors + slack, way.dtype), reach - errors - slack
        self._found: list[tuple[Ints, Ints]] = []
        self._n_found = 0

    def scan(self, rows: AnyArray, widths: Floats, start: int) -> None:
        """Take the rows of a block that are within the radius."""
        if self.undecided:
            return
        products = self._queries @ rows.T
        query, column = passing(products, self._limit)
        if not len(query):
            return
        inside = products[query, column] + widths[column] <= self._sure[query]
        doubtful = np.flatnonzero(~inside)
        if len(doubtful) > CROWD * products.size and not self._last:
            self.undecided = True
            return
        row = column + start
        inside[doubtful] = measure(self._X, self._raw, row[doubtful], query[doubtful], *EUCLIDEAN) <= self._radius
        self._found.append((query[inside], row[inside].astype(np.int32)))
        self._n_found += int(inside.sum())
        _check_room(self._radius, self._n_found * self._X.shape[0] // (start + len(rows)))

    def result(self) -> list[Indices]:
        """The rows within the radius of each query, in the order of their numbers."""
        if not self._found:
            return [np.empty(0, dtype=np.int32)] * len(self._queries)
        query, row = (np.concatenate(parts) for parts in zip(*self._found, strict=True))
        order = np.argsort(query, kind="stable")
        ends = np.searchsorted(query[order], np.arange(1, len(self._queries)))
        return np.split(row[order], ends)


def _by_index(X: Any, queries: Any, radius: float, metric: Any, params: dict[str, Any]) -> list[Indices]:
    """Rows from an index, a few more than it finds within the radius, as far as they measure so."""
    found: list[Indices] = []
    n, n_queries, n_pairs = X.shape[0], queries.shape[0], 0
    step = max(AT_ONCE // n, 1)
    index = index_of(X, metric, params)
    for start in range(0, n_queries, step):
        some = queries[start : start + step]
        near = index.radius_neighbors(some, radius * (1 + DOUBT), return_distance=False)
        row, query = np.concatenate(near), np.repeat(np.arange(len(near)), [len(rows) for rows in near])
        inside = measure(X, some, row, query, metric, params) <= radius
        order = np.lexsort((row[inside], query[inside]))
        ends = np.searchsorted(query[inside][order], np.arange(1, len(near)))
        found += np.split(row[inside][order].astype(np.int32), ends)
        n_pairs += int(inside.sum())
        _check_room(radius, n_pairs * n_queries // len(found))
    return found


def _check_room(radius: float, n_pairs: int) -> None:
    # Two copies: the supports, and the games made of them.
    check_memory(f"supports within {radius:.3g}", 8 * n_pairs, "use smaller ones")
