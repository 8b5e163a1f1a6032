"""What the last bit of a result may depend on besides the code."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import numpy as np

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch")


def environment() -> dict[str, object]:
    """Versions, and what the processor can do."""
    features = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    return {"machine": platform.machine(), "simd": features, **{name: _version(name) for name in PACKAGES}}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
