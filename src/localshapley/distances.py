"""Distances between rows, in any metric of scikit-learn's neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import DistanceMetric, pairwise_distances

from localshapley.arrays import Floats

EUCLIDEAN = ("euclidean", "l2", "minkowski")


def metric_of(model: Any) -> tuple[Any, dict[str, Any]]:
    """The metric of a neighbours model and its arguments; Minkowski's of order 1, 2 and ∞ go by their own names.

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> metric_of(KNeighborsClassifier())
    ('euclidean', {})
    """
    params = dict(model.metric_params or {})
    if model.metric != "minkowski":
        return model.metric, params
    p = params.pop("p", model.p)
    simple = {1: "manhattan", 2: "euclidean", np.inf: "chebyshev"}.get(p)
    return (simple, params) if simple and not params else ("minkowski", {"p": p, **params})


def distances(X: Any, Y: Any, metric: Any, params: dict[str, Any]) -> Floats:
    """Distances of each row of `X` to each of `Y`, from the differences themselves: equal rows are 0 apart."""
    if isinstance(metric, str) and metric != "precomputed":
        try:
            known = DistanceMetric.get_metric(metric, **params)
        except ValueError:
            known = None
        if known is not None:
            return np.asarray(known.pairwise(_as_float64(X), _as_float64(Y)))
    return np.asarray(pairwise_distances(X, Y, metric=metric, **params), dtype=np.float64)


def _as_float64(X: Any) -> Any:
    return X.astype(np.float64) if sparse.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
