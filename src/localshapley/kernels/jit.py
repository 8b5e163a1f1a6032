"""How kernels are compiled.

A kernel is called from Python. It is cut into sections and parts for the reader. The code of a section is pasted into
the kernel: for what is called from one place, or for a loop that is worth compiling for each of its callers. A part is
compiled once; it is inlined where it is small (passing arrays takes longer than many loops over them) and left to LLVM
where it is long. Parts are called with variables: a literal number would have them compiled for that number alone.

None of them allocates an array. Room to work in comes from NumPy, which needs no compiling for it, and references to
the arrays are not counted.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

from numba import njit

from localshapley.errors import warn
from localshapley.kernels.compiler import KernelCompiler, PartCompiler

_compile: Any = njit  # its stubs know only some of its options
OF_ANOTHER_VERSION = AttributeError, ImportError
"""What numba raises on kept code whose arguments have types that an update of the package renamed or moved: it reads
their names before it sees that the code is old."""


def kernel(**options: Any) -> Any:
    """Compile a kernel, and keep the code for the next process if there is a folder and room for it."""
    options = {"nogil": True, "_nrt": False, "no_cfunc_wrapper": True, "pipeline_class": KernelCompiler} | options

    def compiled(function: Any) -> Any:
        try:
            return _kept_where_possible(_compile(cache=True, **options)(function))
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            _say_that_nothing_is_kept()
            return _compile(**options)(function)

    return compiled


def _kept_where_possible(compiled: Any) -> Any:
    """The same kernel, which is not kept where the disk is full, nor looked for where nobody can read it."""
    kept = getattr(compiled, "_cache", None)  # there is none where numba is told not to compile
    if kept is not None:
        save, load = kept.save_overload, kept.load_overload

        def save_if_possible(*overload: Any) -> None:
            with suppress(OSError, *OF_ANOTHER_VERSION):
                save(*overload)

        def load_if_possible(*overload: Any) -> Any:
            try:
                return load(*overload)
            except OF_ANOTHER_VERSION:
                with suppress(OSError):
                    kept.flush()
            return None

        kept.save_overload, kept.load_overload = save_if_possible, load_if_possible
    return compiled


@cache
def _say_that_nothing_is_kept() -> None:
    warn(
        "compiled code cannot be kept, and every process compiles it again: neither the folder of the package nor the "
        "home folder can be written. Set the environment variable NUMBA_CACHE_DIR to a folder that can."
    )


def section(**options: Any) -> Any:
    """Paste the code of a function into the kernel that calls it, with the options of the kernel."""
    return _compile(inline="always", **options)


def part(*, inlined: bool = True, **options: Any) -> Any:
    """Compile a function once, and inline it wherever kernels call it or, else, where LLVM decides to."""
    options = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True} | options
    return _compile(forceinline=inlined, pipeline_class=PartCompiler, **options)
