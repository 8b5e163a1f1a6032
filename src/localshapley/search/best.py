"""The nearest rows by products of matrices: a running bound lets few rows pass, and these are measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.search.bounds import SAMPLE, WHOLE_STEP, Arithmetic, UndecidedError, arithmetics, sample_of
from localshapley.search.distances import measure
from localshapley.search.results import Neighbours, best_of
from localshapley.search.scan import QUERIES, at_least, chunks_of, multiplied, passing, scan

EUCLIDEAN: tuple[str, dict[str, Any]] = ("euclidean", {})
IN_SAMPLE = 32
"""The first bounds come from so many times as many rows as are looked for, or more."""
CROWD = 64
"""If so many times as many rows as are looked for cannot be told apart, another arithmetic is tried."""


def nearest_by_products(X: AnyArray, queries: AnyArray, k: int) -> Neighbours:
    """The `k` nearest of dense rows."""
    out = Neighbours(np.empty((len(queries), k)), np.empty((len(queries), k), dtype=np.int64))
    open_: Ints = np.arange(len(queries))
    ways = arithmetics(X)
    for way in ways:
        if not len(open_):
            return out
        try:
            chunks = _search(X, queries[open_], k, way, last=way is ways[-1])
        except UndecidedError:  # a row is out of this arithmetic's range
            continue
        undecided = [chunk.where for chunk in chunks if chunk.undecided]
        for chunk in chunks:
            if not chunk.undecided:
                distances, rows = chunk.result()
                out.distances[open_[chunk.where]], out.rows[open_[chunk.where]] = distances, rows
        open_ = np.concatenate([open_[where] for where in undecided]) if undecided else open_[:0]
    for t in open_.tolist():
        every = np.arange(len(X))
        away = measure(X, queries, every, np.full(len(X), t), *EUCLIDEAN)
        out.distances[t], out.rows[t] = (part[0] for part in best_of(1, k, 0 * every, every, away))
    return out


def _search(X: AnyArray, queries: AnyArray, k: int, way: Arithmetic, *, last: bool) -> list[NearestQueries]:
    sample = way.rows(X[sample_of(len(X), max(SAMPLE, IN_SAMPLE * k))])
    most = int(np.clip(QUERIES * SAMPLE * 8 // len(sample[0]), 1, QUERIES))
    chunks = [NearestQueries(X, queries[where], k, way, where, last=last) for where in chunks_of(len(queries), most)]
    for chunk in chunks:
        chunk.bound_by(*sample)
    scan(X, chunks, way, len(queries))
    return chunks


class NearestQueries:
    """Some queries, and the rows that may be among their `k` nearest.

    A row passes if its product is at most the limit of the query. The limit is the `k`-th smallest upper bound so far,
    and sinks as rows pass.
    """

    def __init__(self, X: AnyArray, queries: AnyArray, k: int, way: Arithmetic, where: slice, *, last: bool) -> None:
        self.where, self.undecided = where, False
        self._X, self._raw, self._k, self._way, self._last = X, queries, k, way, last
        self._queries, self._errors = way.queries(queries)
        self._limit = np.full(len(queries), np.inf, dtype=way.dtype)
        none: Ints = np.empty(0, dtype=np.int64)
        self._found = [(none, none, np.empty(0, dtype=way.dtype), np.empty(0))]  # query, row, product, upper bound
        self._n_new = 0

    def bound_by(self, rows: AnyArray, widths: Floats) -> None:
        """Take the first limits from a sample of the rows."""
        upper = multiplied(self._queries, rows).astype(np.float64) + widths
        self._sink(np.arange(len(upper)), np.partition(upper, self._k - 1, axis=1)[:, self._k - 1])

    def scan(self, rows: AnyArray, widths: Floats, start: int) -> None:
        """Let rows of a block pass."""
        if self.undecided:
            return
        products = multiplied(self._queries, rows)
        query, column = passing(products, self._limit)
        if len(query):
            product = products[query, column]
            self._found.append((query, column + start, product, product + widths[column]))
            self._n_new += len(query)
            if self._n_new > 2 * self._k * len(self._queries):
                self._tighten()

    def _tighten(self) -> None:
        """Sink the limits to what has been found, and drop what does not pass them any more."""
        query, row, product, upper = (np.concatenate(parts) for parts in zip(*self._found, strict=True))
        order = np.lexsort((row, upper, query))
        query, row, product, upper = query[order], row[order], product[order], upper[order]
        first = np.searchsorted(query, np.arange(len(self._queries) + 1))
        enough = np.flatnonzero(np.diff(first) >= self._k)
        kth = upper[first[enough] + self._k - 1]
        self._sink(enough, kth - WHOLE_STEP if self._way.exact else kth)  # later rows as near have larger numbers
        keep = np.arange(len(query)) - first[query] < self._k if self._way.exact else product <= self._limit[query]
        self._found = [(query[keep], row[keep], product[keep], upper[keep])]
        self._n_new = 0
        if keep.sum() > CROWD * self._k * len(self._queries):
            self._thin_out()

    def _sink(self, which: Ints, upper: Floats) -> None:
        limit = upper if self._way.exact else at_least(upper + 2 * self._errors[which], self._way.dtype)
        self._limit[which] = np.minimum(self._limit[which], limit)

    def _thin_out(self) -> None:
        """Measure the rows that cannot be told apart, or leave them to a finer arithmetic."""
        if not self._last:
            self.undecided = True
            return
        query, row, product, upper = self._found[0]
        away = measure(self._X, self._raw, row, query, *EUCLIDEAN)
        order = np.lexsort((row, away, query))
        first = np.searchsorted(query, np.arange(len(self._queries)))
        keep = order[np.arange(len(query)) - first[query[order]] < self._k]
        self._found = [(query[keep], row[keep], product[keep], upper[keep])]

    def result(self) -> Neighbours:
        """Measure what is left, and take the nearest."""
        self._tighten()
        query, row, _, _ = self._found[0]
        away = measure(self._X, self._raw, row, query, *EUCLIDEAN)
        return best_of(len(self._queries), self._k, query, row, away)
