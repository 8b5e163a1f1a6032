"""Compilation of kernels: it happens once per machine, takes a while, and is timed separately."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import perf_counter
from typing import Any

from numba.core import event

from localshapley.runtime.progress import Progress, ProgressSetting, is_wanted


class _Listener(event.Listener):
    """Adds up the time that this process spends compiling; nested or concurrent compilations count once.

    The garbage collector pauses meanwhile: numba makes millions of small objects, and looking through them again and
    again takes a tenth of the time. What is left of them counts as old afterwards, and is looked through when all is.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._running, self._since, self._spent = 0, 0.0, 0.0
        self.tells, self._told, self._collects = False, False, False
        self.show_on(None, ())

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        with self._lock:
            return self._spent + (perf_counter() - self._since if self._running else 0.0)

    def on_start(self, event: Any) -> None:
        """Numba begins to compile a function."""
        with self._lock:
            if self._running == 0:
                self._since, self._collects = perf_counter(), gc.isenabled()
                gc.disable()
                self._show(event.data["dispatcher"].py_func.__name__)
            self._running += 1
        if self.tells and not self._told:
            self._told = True
            print("localshapley: compiling on first use.", file=sys.stderr)

    def on_end(self, event: Any) -> None:
        """Numba has compiled it, or failed to."""
        with self._lock:
            self._running -= 1
            if self._running == 0:
                self._spent += perf_counter() - self._since
                if self._collects:
                    if gc.get_freeze_count() == 0:
                        gc.freeze()
                        gc.unfreeze()
                    gc.enable()
                if self._bar is not None:
                    self._bar.say("")

    def show_on(self, bar: Progress | None, kernels: Iterable[str]) -> None:
        """Show what is compiled on the bar of a run, which calls these kernels at most."""
        self._bar, self._kernels, self._n_compiled = bar, set(kernels), 0

    def _show(self, name: str) -> None:
        if self._bar is not None:
            self._n_compiled += 1
            total = max(len(self._kernels), self._n_compiled)
            self._bar.say(f"compiling {name}, kernel {self._n_compiled} of up to {total}: only on first use")


_LISTENER = _Listener()
event.register("numba:compile", _LISTENER)  # type: ignore[no-untyped-call]


@contextmanager
def announcing_compilation(progress: ProgressSetting) -> Iterator[None]:
    """Say when compilation starts, once per process, if a progress bar would be shown."""
    before, _LISTENER.tells = _LISTENER.tells, is_wanted(progress)
    try:
        yield
    finally:
        _LISTENER.tells = before


@contextmanager
def showing_compilation(bar: Progress, kernels: Iterable[str]) -> Iterator[None]:
    """Show on a progress bar which of the kernels of a run is compiled."""
    _LISTENER.show_on(bar, kernels)
    try:
        yield
    finally:
        _LISTENER.show_on(None, ())


class Stopwatch:
    """Time since it was made, or that a `with` block took; compiling is counted separately.

    Parameters
    ----------
    clock : callable, optional
        Gives the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._start()

    def _start(self) -> None:
        self._stopped: tuple[float, float] | None = None
        self._started, self._compiled = self._clock(), _LISTENER.seconds

    def __enter__(self) -> Stopwatch:
        self._start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped = self.elapsed, self.compile_seconds

    @property
    def elapsed(self) -> float:
        """Seconds in all."""
        return self._stopped[0] if self._stopped else self._clock() - self._started

    @property
    def compile_seconds(self) -> float:
        """Seconds of compiling in this process."""
        return self._stopped[1] if self._stopped else _LISTENER.seconds - self._compiled

    @property
    def seconds(self) -> float:
        """Seconds without compiling."""
        return max(self.elapsed - self.compile_seconds, 0.0)
