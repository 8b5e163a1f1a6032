"""The nearest rows of each query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from localshapley.arrays import Ints
from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.runtime.devices import find_device, find_gpu
from localshapley.search.distances import distances, in_order, measure, nearest_of_few, plain_metric
from localshapley.search.product_scan import nearest_by_products
from localshapley.search.results import Neighbours, best_of

TREE_STEP = 500
"""What a step of a search by a tree costs, in comparisons of two numbers."""
FEW_PRODUCTS = 10**7
"""Up to so many products of two numbers, all distances are measured: bounds would take longer."""
MANY_PRODUCTS = 10**10
"""From so many products of two numbers on, a GPU is used if there is one: a core takes some tenths of a second."""
DEVICE: ContextVar[Any] = ContextVar("DEVICE", default="auto")
"""Where searches compute that are not told where."""
DOUBT = 1e-9
"""Neighbours of an index whose distances differ by less than this share are settled by a search of all rows."""


def nearest(
    X: Any,
    queries: Any,
    k: int,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    device: Any = None,
    offset: int = 0,
) -> Neighbours:
    """The `k` rows of `X` nearest to each query, nearest first; all rows where there are fewer.

    The result is exact: distances are those of float64 arithmetic on each pair of rows, and of equally near rows that
    with the smaller number is nearer. So searches in parts of the rows, each with the `offset` of its first row, give
    the same bits as a search in all of them once `merge` has put them together.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
    queries : array or CSR matrix of shape (n_queries, n_features)
    k : int
    metric, metric_params
        As in `sklearn.neighbors.NearestNeighbors`.
    device : {"auto", "cpu", "cuda", "mps"} or torch device, optional
        Where Euclidean distances of dense rows are computed; ``"auto"`` is a CUDA GPU if there is one and much to do.
        The result does not depend on it. By default what `DEVICE` is set to.
    offset : int, default=0
        Number of the first row.

    Examples
    --------
    >>> nearest(np.array([[0.0], [1.0], [5.0]]), np.array([[0.5]]), 2).rows
    array([[0, 1]])
    """
    k = min(k, X.shape[0])
    name, params = metric_for(metric, metric_params)
    X, queries = as_rows(X), as_rows(queries)
    if not queries.shape[0] or not k:
        found = Neighbours(np.empty((queries.shape[0], k)), np.empty((queries.shape[0], k), dtype=np.int64))
    elif is_euclidean(X, name, params) and (X.size * len(queries) <= FEW_PRODUCTS or not pays_tree(X, queries)):
        found = by_products(X, queries, k, device)
    else:
        with naming(metric, metric_params):
            found = _by_index(X, queries, k, name, params)
    return Neighbours(found.distances, found.rows + offset)


def by_products(X: Any, queries: Any, k: int, device: Any) -> Neighbours:
    """The nearest of dense rows, by products of matrices on the device; of a few, by all distances."""
    n_products = X.size * len(queries)
    there = device_for(device, n_products)
    if there is None:
        return nearest_of_few(X, queries, k) if n_products <= FEW_PRODUCTS else nearest_by_products(X, queries, k)
    from localshapley.search.on_device import nearest_on_device

    return nearest_on_device(X, queries, k, there)


def device_for(device: Any, n_products: int) -> Any:
    """The torch device that so many products of two numbers are left to; None for numpy."""
    device = DEVICE.get() if device is None else device
    if isinstance(device, str) and device == "auto":
        return find_gpu() if n_products >= MANY_PRODUCTS else None
    if isinstance(device, str) and device == "cpu":
        return None  # without PyTorch
    there = find_device(device)
    return None if there.type == "cpu" else there


def nearest_others(X: Any, k: int, *, rows: Ints | None = None, device: Any = None) -> Neighbours:
    """The `k` other rows nearest to each row, nearest first; all others where there are fewer.

    Parameters
    ----------
    X, k, device
        As in `nearest`.
    rows : int array, optional
        The rows whose neighbours are looked for, among all; by default every row.
    """
    X = as_rows(X)
    own: Ints = np.arange(X.shape[0]) if rows is None else rows
    distances, found = nearest(X, X if rows is None else X[rows], k + 1, device=device)
    itself = found == own[:, None]
    itself[~itself.any(axis=1), -1] = True  # it comes after so many copies of it
    shape = len(own), max(found.shape[1] - 1, 0)
    return Neighbours(distances[~itself].reshape(shape), found[~itself].reshape(shape))


def metric_for(metric: Any, params: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """The metric and its arguments; like scikit-learn's search, metrics without an order ignore `p`."""
    name, params = plain_metric(metric, params)
    if not (isinstance(name, str) and name == "minkowski"):
        params.pop("p", None)
    return name, params


def is_euclidean(X: Any, metric: Any, params: dict[str, Any]) -> bool:
    """Whether products of matrices give the order of distances."""
    return isinstance(metric, str) and metric == "euclidean" and not params and not sparse.issparse(X)


def pays_tree(X: Any, queries: Any) -> bool:
    """Whether a tree searches dense rows faster than products of matrices do: in many rows of few features."""
    n, width = X.shape
    per_query = TREE_STEP * np.log2(n + 1) * 2.0 ** min(width, 100)
    return bool(queries.shape[0] > 100 and per_query < n * width)


def as_rows(X: Any) -> Any:
    """Rows as an array, or as a CSR matrix with sorted columns."""
    return in_order(X) if sparse.issparse(X) else np.asarray(X)


def index_of(X: Any, metric: Any, params: dict[str, Any]) -> NearestNeighbors:
    """Scikit-learn's index of the rows."""
    extra = {name: value for name, value in params.items() if name != "p"}
    return NearestNeighbors(metric=metric, p=params.get("p", 2), metric_params=extra or None).fit(X)


@contextmanager
def naming(metric: Any, params: dict[str, Any] | None) -> Iterator[None]:
    """Make errors of a search name the metric."""
    try:
        yield
    except LocalShapleyError:
        raise
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(
            f"metric={metric!r} with metric_params={params!r} cannot search these rows: {error}"
        ) from error


def _by_index(X: Any, queries: Any, k: int, metric: Any, params: dict[str, Any]) -> Neighbours:
    """Take one row more than is looked for from an index; where the last two are as near, look at all rows."""
    n, n_queries = X.shape[0], queries.shape[0]
    n_taken = min(k + 1, n)
    row: Ints = index_of(X, metric, params).kneighbors(queries, n_taken, return_distance=False).ravel()
    query = np.repeat(np.arange(n_queries), n_taken)
    away = measure(X, queries, row, query, metric, params)
    found = best_of(n_queries, n_taken, query, row, away)
    out = Neighbours(found.distances[:, :k].copy(), found.rows[:, :k].copy())
    if n_taken == k:
        return out
    apart = found.distances[:, k] - found.distances[:, k - 1]
    doubtful = np.flatnonzero(~(apart > DOUBT * np.abs(found.distances[:, k])))
    if not len(doubtful):
        return out
    if is_euclidean(X, metric, params):
        out.distances[doubtful], out.rows[doubtful] = nearest_by_products(X, queries[doubtful], k)
        return out
    every = np.arange(n)
    for t in doubtful.tolist():
        away = distances(queries[t : t + 1], X, metric, params)[0]
        taken = np.lexsort((every, away))[:k]
        out.distances[t], out.rows[t] = away[taken], taken
    return out
