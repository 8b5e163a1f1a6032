"""How kernels are compiled.

A kernel is called from Python. It is cut into sections and parts for the reader alone: both are inlined, since to hand
over arrays takes longer than many a loop over them. A section stands in one place, or holds a loop that is worth to be
compiled for each of its places; its code is pasted into the kernel. A part is small and called from several places; it
is compiled once. What is handed over to parts has the type of a variable: a literal number would have them compiled for
that number alone.

None of them makes an array. Room to work in comes from NumPy, which needs no compiling for it, and references to the
arrays are not counted.
"""

from __future__ import annotations

from typing import Any

from numba import njit

_compile: Any = njit  # its stubs know only some of its options


def kernel(**options: Any) -> Any:
    """Compile a kernel, and keep the code for the next process."""
    return _compile(cache=True, nogil=True, _nrt=False, **options)


def section(**options: Any) -> Any:
    """Paste the code of a function into the kernel that calls it, with the options of the kernel."""
    return _compile(inline="always", **options)


def part(**options: Any) -> Any:
    """Inline a function wherever kernels call it; Python cannot."""
    return _compile(forceinline=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
