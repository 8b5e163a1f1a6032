"""Threads of one process, for work that lets go of the interpreter: NumPy, kernels, a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from joblib import cpu_count

SOON = 5e-4
"""Seconds after which a thread hands the interpreter over, if others wait for it; Python lets them wait ten times that.
"""

A = TypeVar("A")
B = TypeVar("B")


def in_threads(work: Callable[[A], B], parts: Iterable[A]) -> list[B]:
    """What `work` makes of each part, as many at a time as there are cores.

    >>> in_threads(abs, [-2, 1])
    [2, 1]
    """
    with switching_soon(), ThreadPoolExecutor(cpu_count()) as threads:
        return list(threads.map(work, parts))


@contextmanager
def switching_soon() -> Iterator[None]:
    """While many threads do short work, none waits long for the interpreter in between."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SOON))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
