"""Threads of one process, for work that lets go of the interpreter: NumPy, kernels, a GPU.

Threads are kept: to start some takes longer than much of the work that they are given.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, TypeVar

from joblib import cpu_count, effective_n_jobs
from threadpoolctl import ThreadpoolController

from localshapley.runtime.process_settings import SharedSetting

SOON = 5e-4
"""Seconds after which a thread hands the interpreter over, if others wait for it; Python lets them wait ten times that.
"""
NAME = "localshapley"

A = TypeVar("A")
B = TypeVar("B")


@cache
def cores() -> int:
    """Cores that this process may use, asked for once: to find out takes a while."""
    return int(cpu_count())


def threads_for(n_jobs: int | None) -> int:
    """Threads for `n_jobs`, as scikit-learn has it; as many as there are cores where it is not given."""
    return cores() if n_jobs is None else int(effective_n_jobs(n_jobs))


def in_threads(work: Callable[[A], B], parts: Iterable[A], n_threads: int | None = None) -> list[B]:
    """What `work` makes of each part, as many at a time as there are cores, or `n_threads`.

    One after the other where the caller is such a thread itself. Everything has ended when this returns or raises.

    >>> in_threads(abs, [-2, 1])
    [2, 1]
    """
    if threading.current_thread().name.startswith(NAME):
        return [work(part) for part in parts]
    with switching_soon():
        under_way = [_threads(n_threads or cores()).submit(work, part) for part in parts]
        try:
            return [one.result() for one in under_way]
        finally:
            for one in under_way:
                one.cancel()
            wait(under_way)


def beside(work: Callable[..., B], *arguments: Any) -> Future[B]:
    """Work that is done by another thread, while the caller goes on."""
    return _threads(cores()).submit(work, *arguments)


@cache
def _threads(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix=NAME)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)  # a forked process has none of its parent's threads


def unthreaded_blas() -> AbstractContextManager[None]:
    """While products are computed in several threads, or must not depend on their number, BLAS uses no further ones.

    It counts for libraries that are there when this is called for the first time, NumPy's and SciPy's among them.
    """
    return _unthreaded_blas


@cache
def _libraries() -> ThreadpoolController:
    """The libraries with threads of their own; to look for them takes a few milliseconds."""
    return ThreadpoolController()


_unthreaded_blas = SharedSetting(lambda: _libraries().limit(limits=1, user_api="blas"))


def switching_soon() -> AbstractContextManager[None]:
    """While many threads do short work, none waits long for the interpreter in between."""
    return _switching_soon


@contextmanager
def _switch_soon() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SOON))
    yield
    sys.setswitchinterval(before)


_switching_soon = SharedSetting(_switch_soon)
