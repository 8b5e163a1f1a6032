"""Distances of pairs of rows: what decides which rows are nearest."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import DistanceMetric, pairwise_distances
from sklearn.preprocessing import normalize

from localshapley.arrays import AnyArray, Floats, Ints, order_by
from localshapley.errors import InvalidArgumentError
from localshapley.search.results import Neighbours


def metric_of(model: Any) -> tuple[Any, dict[str, Any]]:
    """The metric of a neighbours model and its arguments; Minkowski metrics of order 1, 2 and ∞ get their own names.

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> metric_of(KNeighborsClassifier())
    ('euclidean', {})
    """
    order = {"p": model.p} if isinstance(model.metric, str) and model.metric == "minkowski" else {}
    return plain_metric(model.metric, {**order, **(model.metric_params or {})})


def plain_metric(metric: Any, params: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """A metric and its arguments; Minkowski metrics of order 1, 2 and ∞ get their own names.

    >>> plain_metric("minkowski", {"p": 1})
    ('manhattan', {})
    """
    params = dict(params or {})
    if isinstance(metric, str) and metric == "l2":
        return "euclidean", params
    if not (isinstance(metric, str) and metric == "minkowski"):
        return metric, params
    p = params.pop("p", 2)
    simple = {1: "manhattan", 2: "euclidean", np.inf: "chebyshev"}.get(p)
    return (simple, params) if simple and not params else ("minkowski", {"p": p, **params})


def distances(X: Any, Y: Any, metric: Any, params: dict[str, Any]) -> Floats:
    """Distances of each row of `X` to each of `Y`.

    Each is computed from its two rows alone, by their differences where the metric allows it: equal rows are 0 apart,
    and the same two rows are equally far apart in every call.
    """
    X, Y = _as_float64(X), _as_float64(Y)
    if metric == "cosine" and not params:
        return _cosine(X, Y)
    if isinstance(metric, str):
        try:
            known = DistanceMetric.get_metric(metric, **params)
        except ValueError:
            known = None
        if known is not None:
            return np.asarray(known.pairwise(X, Y))
    return np.asarray(pairwise_distances(X, Y, metric=metric, **params), dtype=np.float64)


def _cosine(X: Any, Y: Any) -> Floats:
    """`1 − cos`, which for rows of length 1 is half their squared distance; a row of zeros is 1 away from every row."""
    X, Y = normalize(X), normalize(Y)
    away: Floats = np.asarray(DistanceMetric.get_metric("euclidean").pairwise(X, Y)) ** 2 / 2
    zero_x, zero_y = (np.asarray(abs(rows).sum(axis=1)).ravel() == 0 for rows in (X, Y))
    away[zero_x] = 1
    away[:, zero_y] = 1
    return away


def check_metric(X: Any, metric: Any, params: dict[str, Any]) -> None:
    """Refuse a metric that cannot measure these rows."""
    try:
        if metric == "minkowski" and not params["p"] > 0:
            raise ValueError("p must be positive")
        distances(X[:1], X[:2], metric, params)
    except Exception as error:
        raise InvalidArgumentError(
            f"metric={metric!r} with metric_params={params or None!r} cannot measure these rows: {error}"
        ) from error


def in_order(X: Any) -> Any:
    """A CSR matrix with the columns of each row in order, which scikit-learn's metrics take for granted."""
    X = X.tocsr()
    return X if X.has_sorted_indices else X.sorted_indices()


def _as_float64(X: Any) -> Any:
    return in_order(X.astype(np.float64)) if sparse.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)


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
