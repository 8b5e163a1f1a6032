"""What the last bit of a result may depend on besides the code."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import llvmlite.binding
import numpy as np
import scipy.linalg  # noqa: F401  loads its linear algebra
from numba import config
from threadpoolctl import threadpool_info

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch")


def environment() -> dict[str, object]:
    """Versions, what the processor can do, and what numba and the linear algebra make of it."""
    features = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    kernels = {
        f"{lib['prefix']} {lib['version']} {lib.get('architecture')}"
        for lib in threadpool_info()
        if lib["user_api"] == "blas"
    }
    versions = {name: _version(name) for name in PACKAGES}
    compiled_for = config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    return {
        "machine": platform.machine(),
        "simd": features,
        "compiled for": compiled_for,
        "blas": sorted(kernels),
        **versions,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
