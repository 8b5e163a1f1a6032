"""How the parts of kernels are compiled."""

from __future__ import annotations

from typing import Any

from numba import njit


def part(**options: Any) -> Any:
    """Compile a part of a kernel, which is a function of its own for the reader alone: the cut costs nothing.

    It is inlined wherever it is called, since to hand over arrays takes longer than many a loop over them, and it does
    not count references to the arrays that it is handed. So it makes no arrays and returns none.
    """
    compiled: Any = njit  # its stubs know only some of its options
    return compiled(forceinline=True, _nrt=False, **options)
