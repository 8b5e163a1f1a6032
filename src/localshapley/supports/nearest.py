"""Neighbours: the nearest rows, or all within a radius."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from scipy import sparse
from sklearn.neighbors import VALID_METRICS
from sklearn.preprocessing import StandardScaler

from localshapley.arrays import Indices
from localshapley.data.moments import Moments
from localshapley.errors import unknown_name
from localshapley.runtime.argument_checks import check_number, check_whole
from localshapley.search.approximate import roughly_nearest_rows
from localshapley.supports.base import Space, Support, Supports, check_finite
from localshapley.supports.chunked import ChunkedMatrix, nearest_rows, rows_within


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
    approximate : bool, default=False
        Whether to miss some of the nearest rows for a faster search of very many rows with very many test rows, by
        Euclidean distance in dense rows. A note of the result says how many were found, measured on some test rows. It
        needs faiss: ``pip install 'localshapley[approximate]'``.
    max_size : int, optional
    device : str, default="auto"
        As in all supports: where exact searches compute, with the same result on ``"cpu"``, ``"cuda"`` and ``"mps"``.

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
    approximate: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("Nearest(n=...)", self.n)
        _check_metric("Nearest", self.metric)

    @property
    def takes_parts(self) -> bool:
        """Unless the search is approximate, which takes an index of all rows."""
        return not self.approximate

    def find(self, space: Space) -> list[Indices] | Supports:
        """Find the nearest rows of every test row; all rows where there are fewer than `n`."""
        check_finite(space, "supports.Nearest")
        X, X_test = space.X, space.X_test
        if self.standardise:
            X, X_test = _standardised(X, X_test)
        if self.approximate:
            return Supports(*roughly_nearest_rows(X, X_test, self.n, self.metric, self.metric_params))
        return nearest_rows(X, X_test, self.n, self.metric, self.metric_params)

    def larger(self) -> str:
        """A support twice as large."""
        return f"supports.Nearest({2 * self.n})"

    def grown(self) -> Nearest:
        """The same with twice as many rows."""
        return replace(self, n=2 * self.n)


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

    @property
    def takes_parts(self) -> bool:
        """Always."""
        return True

    def find(self, space: Space) -> list[Indices]:
        """Find the rows within the radius of every test row."""
        check_finite(space, "supports.Radius")
        return rows_within(space.X, space.X_test, self.r, self.metric, self.metric_params)

    def larger(self) -> str:
        """A support with a radius half as large again."""
        return f"supports.Radius({1.5 * self.r:.4g})"

    def grown(self) -> Radius:
        """The same within a larger radius."""
        return replace(self, r=1.5 * self.r)


def _check_metric(owner: str, metric: Any) -> None:
    known = sorted({name for names in VALID_METRICS.values() for name in names} - {"precomputed"})
    if not callable(metric) and metric not in known:
        raise unknown_name(f"{owner}(metric=...)", metric, known)


def _standardised(X: Any, X_test: Any) -> tuple[Any, Any]:
    """Rows and test rows with the columns of `X` brought to mean 0 and variance 1; sparse ones keep their means."""
    if sparse.issparse(X):
        scaler = StandardScaler(with_mean=False).fit(X)
        return scaler.transform(X), scaler.transform(X_test)
    if isinstance(X, ChunkedMatrix):
        moments = X.moments()
        return X.encoded(moments.standardised, X.shape[1]), moments.standardised(X_test)
    moments = Moments.of(X, X[0])
    return moments.standardised(X), moments.standardised(X_test)
