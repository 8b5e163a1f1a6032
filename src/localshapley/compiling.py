"""Tells the user that code is being compiled: it happens once on a machine and takes a while."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from numba.core import event


class _Teller(event.Listener):
    told = False

    def on_start(self, event: Any) -> None:
        if not _Teller.told:
            _Teller.told = True
            print("localshapley: compiling for the first use; later runs start at once.", file=sys.stderr)

    def on_end(self, event: Any) -> None:
        pass


def watch() -> Callable[[], None]:
    """Tell, once in a process, when compilation starts; returns a function that ends the watch."""
    teller = _Teller()
    event.register("numba:compile", teller)  # type: ignore[no-untyped-call]
    return lambda: event.unregister("numba:compile", teller)  # type: ignore[no-untyped-call]
