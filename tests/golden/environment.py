"""What the last bit of a result may depend on besides the code."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import scipy.linalg  # noqa: F401  loads its linear algebra
from threadpoolctl import threadpool_info

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch")


def environment() -> dict[str, object]:
    """Versions, what the processor can do, and which kernels the linear algebra picked for it."""
    features = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    kernels = {
        f"{lib['prefix']} {lib['version']} {lib.get('architecture')}"
        for lib in threadpool_info()
        if lib["user_api"] == "blas"
    }
    versions = {name: _version(name) for name in PACKAGES}
    return {"machine": platform.machine(), "simd": features, "blas": sorted(kernels), **versions}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
