"""Names for the array types that pass between the stages."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]  # what needs no precision
Ints: TypeAlias = NDArray[np.int64]  # offsets, counts
Indices: TypeAlias = NDArray[np.int32]  # players, test rows, games
Masks: TypeAlias = NDArray[np.uint64]
AnyArray: TypeAlias = NDArray[Any]


def offsets(counts: AnyArray) -> Ints:
    """Turn counts into CSR offsets: `[2, 0, 3]` becomes `[0, 2, 2, 5]`."""
    out = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=out[1:])
    return out
