"""A progress bar for runs that take longer than a moment, on a terminal and in notebooks; elsewhere plain lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from threading import Timer
from time import perf_counter
from types import TracebackType
from typing import TypeAlias

import numpy as np

from localshapley.formatting import duration

ProgressSetting: TypeAlias = bool | Callable[[int, int | None], None] | None

PATIENCE = 1.0
"""Seconds before a bar appears by itself."""
BETWEEN_LINES = 5.0
"""Seconds between two lines where no bar can be drawn."""
QUIET = 10.0
"""Seconds after which a log gets a line, where neither a terminal nor a notebook shows how far a run is,"""
BETWEEN_QUIET_LINES = 60.0
"""and seconds between two of these."""
LONG = 60.0
"""Seconds left from which a run says how to take fewer."""
BETWEEN_PICTURES = 0.2
"""Seconds between two pictures of the bar in a notebook."""


def is_wanted(setting: ProgressSetting) -> bool:
    """Whether to say how a run goes: where it is asked for, and by default on a terminal and in a notebook."""
    return has_terminal() or in_notebook() if setting is None else setting is True and sys.stderr is not None


def is_told(setting: ProgressSetting) -> bool:
    """Whether to say what takes very long: by default also where nobody seems to look, as there may be a log."""
    return is_wanted(setting) or (setting is None and sys.stderr is not None)


def has_terminal() -> bool:
    """Whether standard error is a terminal; a service may have none."""
    return sys.stderr is not None and sys.stderr.isatty()


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, which shows pictures and has no terminal."""
    return hasattr(sys.modules["IPython"].get_ipython(), "kernel") if "IPython" in sys.modules else False


@contextmanager
def telling(setting: ProgressSetting, doing: str, patience: float = PATIENCE) -> Iterator[None]:
    """Say on standard error what is being done, once it has taken a moment; in a log, once it has taken long."""
    timer = Timer(
        patience if is_wanted(setting) else max(patience, QUIET),
        lambda: print(f"localshapley: {doing} …", file=sys.stderr, flush=True),
    )
    timer.daemon = True
    if is_told(setting):
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Progress:
    """Shows trainings done, their rate, how good the values are and the time left.

    `setting` is None (a bar on a terminal and in a notebook, once the run has taken a second, elsewhere a line on
    standard error now and then, once it has taken ten), True (always a bar there, elsewhere a line every few seconds),
    False (never) or a function that is called with the number done and the total (None if it is unknown). Until it is
    known how good the values are, the time left is that to the first `first` trainings, if there is no total. What
    `faster` gives is said once, if the values will take long to be as good as wanted.
    """

    def __init__(
        self,
        setting: ProgressSetting,
        total: int | None,
        label: str,
        first: int = 0,
        faster: Callable[[], str] | None = None,
    ) -> None:
        self._callback = setting if callable(setting) else None
        self._wanted, is_quiet = is_told(setting), not is_wanted(setting)
        self._draws = has_terminal() or in_notebook()
        self._patience = QUIET if is_quiet else 0.0 if setting is True and self._draws else PATIENCE
        self._between, self._faster = BETWEEN_QUIET_LINES if is_quiet else BETWEEN_LINES, faster
        self._total, self._label, self._done = total, label, 0
        self._expected: float | None = total or first or None
        self._text = self._said = ""
        self._said_at = self._silent = 0.0  # since when, and seconds in which, something else was said
        self._started = perf_counter()
        self._last_line = -np.inf if is_quiet else self._started
        self._bar: _TerminalBar | _NotebookBar | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, n: int) -> None:
        """Count `n` more trainings as done."""
        self._done += n
        if self._callback:
            self._callback(self._done, self._total)
        elif self._wanted and perf_counter() - self._started > self._patience:
            self._say_what_is_faster()
            self._show()

    def say(self, text: str) -> None:
        """Say beside the bar what else takes time now, until the text is empty; that time does not enter the rate."""
        now = perf_counter()
        if self._said:
            self._silent += now - self._said_at
        self._said, self._said_at = text, now
        if self._wanted and self._draws and (text or self._bar is not None):
            self._show()

    def _say_what_is_faster(self) -> None:
        """Once, if the time left is long; on a terminal that until the first estimate was told before."""
        left, until = self._seconds_left, "" if self._text or self._total else " until the first estimate"
        told = self._draws and until
        if self._faster and not told and left > LONG and perf_counter() - self._started > QUIET:
            print(f"localshapley: about {duration(left)} left{until}; {self._faster()}.", file=sys.stderr, flush=True)
            self._faster = None

    def reached(self, relative_error: float, aim: float | None) -> None:
        """Note how good the values are; errors shrink with the root of the trainings, which gives the time left."""
        self._text = f"relative error {relative_error:.2g}" + (f" (target {aim:g})" if aim else "")
        if aim:
            needed = self._done * max(relative_error / aim, 1.0) ** 2
            self._expected = needed if self._total is None else min(needed, self._total)

    def _show(self) -> None:
        if self._draws:
            self._bar = self._bar or (_TerminalBar if has_terminal() else _NotebookBar)(self._label)
            status = ", ".join([*self._left(), *self._status()])  # 80 columns cut off the end
            self._bar.show(self._done, self._expected, status, at_once=bool(self._said))
        elif perf_counter() - self._last_line > self._between:
            self._last_line = perf_counter()
            print(f"{self._label}: {', '.join([*self._status(), *self._left()])}", file=sys.stderr, flush=True)

    def _status(self) -> list[str]:
        """What to say: trainings, rate, relative error."""
        if self._said:
            return [self._said]
        about = "" if self._expected == self._total else "about "
        of = f" of {about}{self._expected:,.0f}" if self._expected is not None else ""
        of += " until the first estimate" if about and not self._text else ""
        parts = [f"{self._done:,}{of}", f"{self._done / max(self._seconds, 1e-9):,.0f}/s"]
        return [*parts, self._text] if self._text else parts

    def _left(self) -> list[str]:
        """The time left, if it is known."""
        left = self._seconds_left
        about = "" if self._expected == self._total else "about "
        return [f"{about}{duration(left)} left"] if left > 0 else []

    @property
    def _seconds_left(self) -> float:
        """The same in seconds; 0 where it is not known."""
        if self._said or self._expected is None or not self._done:
            return 0.0
        return self._seconds * max(self._expected / self._done - 1, 0.0)

    @property
    def _seconds(self) -> float:
        """How long trainings have taken."""
        return perf_counter() - self._started - self._silent


class _TerminalBar:
    """A line on standard error that goes away at the end."""

    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[status]}")
        self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(label, total=None, status="")
        self._bar.start()

    def show(self, done: float, total: float | None, status: str, *, at_once: bool) -> None:
        """Draw the bar, several times a second at most."""
        self._bar.update(self._task, completed=done, total=total, status=status)

    def stop(self) -> None:
        """Take the bar away."""
        self._bar.stop()


class _NotebookBar:
    """The same as an output of the cell, which is replaced as the run goes on and empty at the end."""

    def __init__(self, label: str) -> None:
        display = import_module("IPython.display").display  # which has no types

        self._label, self._last = label, -BETWEEN_PICTURES
        self._output = display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, done: float, total: float | None, status: str, *, at_once: bool) -> None:
        """Draw the bar, several times a second at most."""
        if not at_once and perf_counter() - self._last < BETWEEN_PICTURES:
            return
        self._last = perf_counter()
        text = f"{self._label}: {status}"
        size = "" if total is None else f' value="{min(done / total, 1.0):.3f}"'
        self._update({"text/plain": text, "text/html": f"<progress{size}></progress> {escape(text)}"})

    def stop(self) -> None:
        """Take the bar away."""
        self._update({"text/plain": "", "text/html": ""})

    def _update(self, looks: dict[str, str]) -> None:
        self._output.update(looks, raw=True)
