"""Neighbours: the nearest rows, or all within a radius."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import VALID_METRICS, NearestNeighbors
from sklearn.preprocessing import StandardScaler

from localshapley.arrays import Indices
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.inputs.memory import check_memory
from localshapley.inputs.numbers import check_number, check_whole
from localshapley.supports.base import Space, Support, check_finite

AT_ONCE = 20_000_000
"""Pairs of rows that a search looks at, at a time; whether all that it finds fits into memory is judged each time."""


@dataclass(frozen=True, repr=False)
class Nearest(Support):
    """The `n` training rows nearest to the test row.

    Parameters
    ----------
    n : int, default=20
    metric : str or callable, default="euclidean"
        Any metric of `sklearn.neighbors.NearestNeighbors`.
    metric_params : dict, optional
        Further arguments of the metric; ``p`` of ``"minkowski"`` is one of them.
    standardise : bool, default=False
        Whether features are brought to mean 0 and variance 1 first.
    max_size : int, optional

    Examples
    --------
    >>> Nearest(10)
    Nearest(n=10)
    """

    n: int = 20
    _: KW_ONLY
    metric: Any = "euclidean"
    metric_params: dict[str, Any] | None = None
    standardise: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("Nearest(n=...)", self.n)
        _check_metric("Nearest", self.metric)

    def find(self, space: Space) -> list[Indices]:
        """Find the nearest rows of every test row; all rows where there are fewer than `n`."""
        check_finite(space, "supports.Nearest")
        X, X_test = space.X, space.X_test
        if self.standardise:
            scaler = StandardScaler(with_mean=not sparse.issparse(X)).fit(X)
            X, X_test = scaler.transform(X), scaler.transform(X_test)
        return nearest_rows(X, X_test, self.n, self.metric, self.metric_params)

    def larger(self) -> str:
        """A support twice as large."""
        return f"supports.Nearest({2 * self.n})"


@dataclass(frozen=True, repr=False)
class Radius(Support):
    """The training rows at a distance of at most `r` from the test row; there may be none.

    Parameters
    ----------
    r : float
    metric : str or callable, default="euclidean"
    metric_params : dict, optional
    max_size : int, optional
    """

    r: float
    _: KW_ONLY
    metric: Any = "euclidean"
    metric_params: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("Radius(r=...)", self.r, above=0)
        _check_metric("Radius", self.metric)

    def find(self, space: Space) -> list[Indices]:
        """Find the rows within the radius of every test row."""
        check_finite(space, "supports.Radius")
        return rows_within(space.X, space.X_test, self.r, self.metric, self.metric_params)

    def larger(self) -> str:
        """A support with a radius half as large again."""
        return f"supports.Radius({1.5 * self.r:.4g})"


def _check_metric(owner: str, metric: Any) -> None:
    known = sorted({name for names in VALID_METRICS.values() for name in names} - {"precomputed"})
    if not callable(metric) and metric not in known:
        raise unknown_name(f"{owner}(metric=...)", metric, known)


def nearest_rows(
    X: Any, X_test: Any, n: int, metric: Any = "euclidean", metric_params: dict[str, Any] | None = None
) -> list[Indices]:
    """Rows of `X` nearest to each row of `X_test`, nearest first."""
    check_memory(f"a support of {n} nearest rows", 16 * min(n, X.shape[0]) * X_test.shape[0], "use a smaller one")
    with _named(metric, metric_params):
        search = _search(metric, metric_params).fit(X)
        found = search.kneighbors(X_test, n_neighbors=min(n, X.shape[0]), return_distance=False)
    return list(found.astype(np.int32))


def rows_within(
    X: Any, X_test: Any, radius: float, metric: Any = "euclidean", metric_params: dict[str, Any] | None = None
) -> list[Indices]:
    """Rows of `X` at a distance of at most `radius` from each row of `X_test`."""
    n_tests, n_pairs, found = X_test.shape[0], 0, []
    step = max(AT_ONCE // X.shape[0], 1)
    with _named(metric, metric_params):
        search = _search(metric, metric_params).fit(X)
    for start in range(0, n_tests, step):
        with _named(metric, metric_params):
            some = search.radius_neighbors(X_test[start : start + step], radius, return_distance=False)
        found += [rows.astype(np.int32) for rows in some]
        n_pairs += sum(len(rows) for rows in some)
        # Two copies: the supports, and the games made of them.
        check_memory(f"supports within {radius:.3g}", 8 * n_pairs * n_tests // len(found), "use smaller ones")
    return found


@contextmanager
def _named(metric: Any, metric_params: dict[str, Any] | None) -> Iterator[None]:
    """Make errors of the search name the metric."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(
            f"metric={metric!r} with metric_params={metric_params!r} cannot search these rows: {error}"
        ) from error


def _search(metric: Any, metric_params: dict[str, Any] | None) -> NearestNeighbors:
    params = dict(metric_params or {})
    p = params.pop("p", 2)
    return NearestNeighbors(metric=metric, p=p, metric_params=params or None)
