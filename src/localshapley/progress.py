"""A progress bar for runs that take longer than a moment."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from types import TracebackType
from typing import TypeAlias

ProgressSetting: TypeAlias = bool | Callable[[int, int | None], None] | None

PATIENCE = 1.0
"""Seconds before a bar appears by itself."""


def is_wanted(setting: ProgressSetting) -> bool:
    """Whether to write on standard error: where it is asked for, and by default on a terminal."""
    return sys.stderr.isatty() if setting is None else setting is True


class Progress:
    """Shows trainings done on standard error.

    `setting` is None (a bar on a terminal, once the run has taken a second), True (always), False (never) or a
    function that is called with the number done and the total (None where it is not known).
    """

    def __init__(self, setting: ProgressSetting, total: int | None, label: str) -> None:
        self._callback = setting if callable(setting) else None
        self._wanted = is_wanted(setting)
        self._at_once = setting is True
        self._total, self._label, self._done = total, label, 0
        self._started = perf_counter()
        self._bar: object = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()  # type: ignore[attr-defined]

    def advance(self, n: int) -> None:
        """Count `n` more trainings as done."""
        self._done += n
        if self._callback:
            self._callback(self._done, self._total)
        elif self._wanted and (self._at_once or perf_counter() - self._started > PATIENCE):
            self._show()

    def say(self, text: str) -> None:
        """Tell how far the run is, beside the bar."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=f"{self._label}, {text}")  # type: ignore[attr-defined]

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        if self._bar is None:
            bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            bar.add_task(self._label, total=self._total)
            bar.start()
            self._bar = bar
        self._bar.update(self._bar.task_ids[0], completed=self._done)  # type: ignore[attr-defined]
