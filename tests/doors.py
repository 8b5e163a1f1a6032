"""Ways from Python to the parts of kernels, which have none of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import njit


@cache
def door(part: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled function that does nothing but call a part of a kernel."""
    return njit(lambda *arguments: part(*arguments))
