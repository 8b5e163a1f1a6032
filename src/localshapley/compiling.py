"""Tells the user that code is being compiled: it happens once on a machine and takes a while."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

from localshapley.progress import ProgressSetting, is_wanted


class _Teller(event.Listener):
    told = False

    def on_start(self, event: Any) -> None:
        if not _Teller.told:
            _Teller.told = True
            print("localshapley: compiling for the first use; later runs start at once.", file=sys.stderr)

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def told_of_compiling(progress: ProgressSetting) -> Iterator[None]:
    """Tell when compilation starts, once in a process, where a progress bar would be shown."""
    if not is_wanted(progress):
        yield
        return
    teller = _Teller()
    event.register("numba:compile", teller)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        event.unregister("numba:compile", teller)  # type: ignore[no-untyped-call]
