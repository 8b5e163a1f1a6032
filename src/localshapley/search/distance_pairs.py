"""Distances of pairs of rows: what decides which rows are nearest."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Ints, order_by
from localshapley.search.distances import distances
from localshapley.search.results import Neighbours

AT_ONCE = 2**18
"""Numbers that are measured at a time; they stay in the cache of a core."""


def measure(X: Any, queries: Any, row: Ints, query: Ints, metric: Any, params: dict[str, Any]) -> Floats:
    """Distances of pairs of a row and a query, each from these two alone.

    In whatever parts, order or block a pair is met, and on whatever device it was found, it has the same distance to
    the last bit; that of two dense rows is the one that `kernels.neighbours.euclidean_pairs` computes.
    """
    if metric == "euclidean" and not params and not sparse.issparse(X):
        return _euclidean(X, queries, row, query)
    out = np.empty(len(row))
    order = order_by(query)
    for one in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
        if len(one):
            t = query[one[0]]
            out[one] = distances(queries[t : t + 1], X[row[one]], metric, params)[0]
    return out


def nearest_of_few(X: AnyArray, queries: AnyArray, k: int) -> Neighbours:
    """The `k` nearest of a few dense rows, all of which are measured, as `measure` does."""
    rows, points = (np.ascontiguousarray(table.T, dtype=np.float64) for table in (X, queries))
    away = np.zeros((len(queries), len(X)))
    room = np.empty_like(away)
    for of_row, of_point in zip(rows, points, strict=True):
        np.subtract(of_row, of_point[:, None], out=room)
        room *= room
        away += room
    np.sqrt(away, out=away)
    nearest = np.argsort(away, axis=1, kind="stable")[:, :k]
    return Neighbours(np.take_along_axis(away, nearest, axis=1), nearest)


def _euclidean(X: Any, queries: Any, row: Ints, query: Ints) -> Floats:
    """Squares of differences, added one feature after the other: no order of summation is left to chance."""
    out = np.zeros(len(row))
    step = max(AT_ONCE // max(X.shape[1], 1), 1)
    for start in range(0, len(row), step):
        some = slice(start, start + step)
        difference = X[row[some]].astype(np.float64).T - queries[query[some]].astype(np.float64).T
        difference = np.ascontiguousarray(difference)
        difference *= difference
        for of_feature in difference:
            out[some] += of_feature
    return np.sqrt(out, out=out)
