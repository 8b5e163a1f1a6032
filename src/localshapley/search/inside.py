"""The rows within a radius by products of matrices: most are surely inside or outside, and the others are measured."""

from __future__ import annotations

import numpy as np

from localshapley.arrays import AnyArray, Floats, Indices, Ints, order_by
from localshapley.runtime.memory import check_memory
from localshapley.search.best import EUCLIDEAN
from localshapley.search.bounds import Arithmetic, UndecidedError, arithmetics
from localshapley.search.distances import measure
from localshapley.search.scan import at_least, chunks_of, multiplied, passing, scan

CROWD = 1 / 16
"""If so large a share of the pairs is too close to the radius to tell, another arithmetic is tried."""


def within_by_products(X: AnyArray, queries: AnyArray, radius: float) -> list[Indices]:
    """The rows of a dense table that are within the radius."""
    out: list[Indices] = [np.empty(0, dtype=np.int32)] * len(queries)
    open_: Ints = np.arange(len(queries))
    ways = arithmetics(X)
    for way in ways:
        here = chunks_of(len(open_)) if len(open_) else []
        try:
            chunks = [RadiusQueries(X, queries[open_[where]], radius, way, last=way is ways[-1]) for where in here]
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


class RadiusQueries:
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
        products = multiplied(self._queries, rows)
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
        check_room(self._radius, self._n_found * self._X.shape[0] // (start + len(rows)))

    def result(self) -> list[Indices]:
        """The rows within the radius of each query, in the order of their numbers."""
        return by_query(len(self._queries), self._found)


def by_query(n_queries: int, found: list[tuple[Ints, Ints]]) -> list[Indices]:
    """Pairs of a query and a row, in parts whose rows ascend, as the rows of each query."""
    if not found:
        return [np.empty(0, dtype=np.int32)] * n_queries
    query, row = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = order_by(query)
    return np.split(row[order], np.searchsorted(query[order], np.arange(1, n_queries)))


def check_room(radius: float, n_pairs: int) -> None:
    """Refuse more supports than fit into memory."""
    # Two copies: the supports, and the games made of them.
    check_memory(f"supports within {radius:.3g}", 8 * n_pairs, "use smaller ones")
