"""All rows within a radius of each query."""

from __future__ import annotations

from typing import Any

import numpy as np

from localshapley.arrays import AnyArray, Indices
from localshapley.search.distances import measure
from localshapley.search.nearest_rows import (
    DOUBT,
    as_rows,
    device_for,
    index_of,
    is_euclidean,
    metric_for,
    naming,
    pays_tree,
)
from localshapley.search.radius_scan import check_room, within_by_products

AT_ONCE = 20_000_000
"""Pairs of rows that a search looks at, at a time; whether all that it finds fits into memory is judged each time."""


def within(
    X: Any,
    queries: Any,
    radius: float,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    device: Any = None,
    offset: int = 0,
) -> list[Indices]:
    """The rows of `X` at a distance of at most `radius` from each query, in the order of their numbers.

    Exact as `nearest` is; `join` puts the findings in parts of the rows together.

    Parameters
    ----------
    X, queries, metric, metric_params, device, offset
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
        found = _by_products(X, queries, radius, device)
    else:
        with naming(metric, metric_params):
            found = _by_index(X, queries, radius, name, params)
    return [rows + np.int32(offset) for rows in found] if offset else found


def _by_products(X: AnyArray, queries: AnyArray, radius: float, device: Any) -> list[Indices]:
    there = device_for(device, X.size * len(queries))
    if there is None:
        return within_by_products(X, queries, radius)
    from localshapley.search.on_device import within_on_device

    return within_on_device(X, queries, radius, there)


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
        check_room(radius, n_pairs * n_queries // len(found))
    return found
