"""Kernels: the rows whose kernel value with the test row is large."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from localshapley.arrays import Indices
from localshapley.data.moments import Moments
from localshapley.runtime.argument_checks import check_number
from localshapley.supports.base import Space, Support, check_finite
from localshapley.supports.chunked import ChunkedMatrix, rows_within


@dataclass(frozen=True, repr=False)
class Kernel(Support):
    """The training rows with `exp(−γ‖x_z − x_t‖²) ≥ threshold`; there may be none, or half of the data.

    Parameters
    ----------
    threshold : float, default=0.5
        Between 0 and 1.
    gamma : float, "scale" or "auto", optional
        As in `sklearn.svm.SVC`; by default that of the model (None is ``"auto"`` there, as in `KernelRidge`), or
        ``"scale"`` where the model has no such parameter.
    max_size : int, optional
    """

    threshold: float = 0.5
    _: KW_ONLY
    gamma: float | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("Kernel(threshold=...)", self.threshold, above=0, most=1)
        if self.gamma not in (None, "scale", "auto"):
            check_number("Kernel(gamma=...)", self.gamma, above=0)

    @property
    def takes_parts(self) -> bool:
        """Always."""
        return True

    def find(self, space: Space) -> list[Indices]:
        """Find the kernel neighbours of every test row."""
        check_finite(space, "supports.Kernel")
        gamma = self._gamma(space)
        return rows_within(space.X, space.X_test, float(np.sqrt(-np.log(self.threshold) / gamma)))

    def _gamma(self, space: Space) -> float:
        gamma: Any = self.gamma if self.gamma is not None else getattr(space.reference, "gamma", "scale")
        n_features = space.X.shape[1]
        if gamma in (None, "auto"):
            return 1 / int(n_features)
        if gamma == "scale":
            variance = _variance(space.X)
            return 1 / (int(n_features) * variance) if variance > 0 else 1.0
        return float(gamma)

    def larger(self) -> str:
        """A support with a lower threshold."""
        return f"supports.Kernel({self.threshold / 2:.4g})"

    def grown(self) -> Kernel:
        """The same with a lower threshold."""
        return replace(self, threshold=self.threshold / 2)


@dataclass(frozen=True, repr=False)
class CompactKernel(Support):
    """The training rows within the bandwidth of a kernel of compact support: `‖x_z − x_t‖ ≤ h`.

    Parameters
    ----------
    bandwidth : float
    max_size : int, optional
    """

    bandwidth: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("CompactKernel(bandwidth=...)", self.bandwidth, above=0)

    @property
    def takes_parts(self) -> bool:
        """Always."""
        return True

    def find(self, space: Space) -> list[Indices]:
        """Find the rows within the bandwidth of every test row."""
        check_finite(space, "supports.CompactKernel")
        return rows_within(space.X, space.X_test, self.bandwidth)

    def larger(self) -> str:
        """A support with a bandwidth half as large again."""
        return f"supports.CompactKernel({1.5 * self.bandwidth:.4g})"

    def grown(self) -> CompactKernel:
        """The same with a larger bandwidth."""
        return replace(self, bandwidth=1.5 * self.bandwidth)


def _variance(X: Any) -> float:
    """Variance of all entries, as scikit-learn's ``gamma="scale"`` has it."""
    if sparse.issparse(X):
        return float(X.multiply(X).mean() - X.mean() ** 2)
    return (X.moments() if isinstance(X, ChunkedMatrix) else Moments.of(X, X[0])).variance_of_all
