"""Distances of pairs of rows: what decides which rows are nearest."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from localshapley.arrays import Floats, Ints, order_by
from localshapley.distances import distances

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
