"""Settings that all threads of a process share: made for the first that wants one, taken back after the last.

If each thread put back what it found, threads that overlap would leave the settings of one another behind.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


class SharedSetting(AbstractContextManager[None]):
    """A setting of the process, as a context that any number of threads may be in at the same time.

    Parameters
    ----------
    make : callable
        Gives a context that makes the setting.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self._make, self._lock, self._n = make, threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if self._n == 0:
                self._made = self._make()
                self._made.__enter__()
            self._n += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._n -= 1
            if self._n == 0:
                self._made.__exit__(None, None, None)


class _Caught(threading.local):
    """The warnings of a thread that catches them: a list for each context that it is in."""

    def __init__(self) -> None:
        self.lists: list[list[type[Warning]]] = []


_caught = _Caught()


@contextmanager
def _catching() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        show = warnings.showwarning

        def keep_or_show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if _caught.lists:
                _caught.lists[-1].append(category)
            else:
                show(message, category, *place, **more)

        warnings.showwarning = keep_or_show
        yield


_shared_catching = SharedSetting(_catching)


@contextmanager
def caught_warnings() -> Iterator[list[type[Warning]]]:
    """The kinds of the warnings of this thread, which are not shown; other threads show theirs."""
    caught: list[type[Warning]] = []
    with _shared_catching:
        _caught.lists.append(caught)
        try:
            yield caught
        finally:
            _caught.lists.pop()
