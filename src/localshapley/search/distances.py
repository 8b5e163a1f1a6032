"""Distances between rows, in any metric of scikit-learn's neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import DistanceMetric, pairwise_distances
from sklearn.preprocessing import normalize

from localshapley.arrays import Floats
from localshapley.errors import InvalidArgumentError


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
