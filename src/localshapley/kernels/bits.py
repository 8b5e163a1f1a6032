"""Bits of 64-bit words."""

from __future__ import annotations

from typing import Any

import numpy as np

from localshapley.kernels.jit import part

ONE = np.uint64(1)

_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACES = np.zeros(64, dtype=np.int64)
_PLACES[[((1 << place) * int(_DE_BRUIJN) % 2**64) >> 58 for place in range(64)]] = np.arange(64)


@part()
def lowest_bit(bits: Any) -> Any:
    """Place of the lowest bit that is set."""
    return _PLACES[((bits & (~bits + ONE)) * _DE_BRUIJN) >> np.uint64(58)]


@part()
def bits_set(mask: Any) -> int:
    """Count the bits of a word."""
    count = 0
    while mask:
        mask &= mask - ONE
        count += 1
    return count


@part()
def bits_between(place: int, n: int) -> Any:
    """A word with the bits after `place` set, up to the one before `n`."""
    after = (~np.uint64(0) << np.uint64(place)) << ONE
    return after & ((ONE << np.uint64(n)) - ONE) if n < 64 else after
