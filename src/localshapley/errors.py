"""The error family: every error of this package is a `LocalShapleyError`."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

MOST_NAMES = 24
"""Maximum number of names that a message lists."""


class LocalShapleyError(Exception):
    """Base of every error that this package raises."""


class InvalidArgumentError(LocalShapleyError, ValueError):
    """An argument is wrong; the message says which one, what it was and what to do."""


class RefusedByModelError(InvalidArgumentError):
    """The model cannot be trained on the data, even on all of it."""


class TooLargeError(LocalShapleyError, ValueError):
    """A run would need more trainings than are allowed, or more memory than there is; nothing was started."""


class TrainingError(LocalShapleyError, RuntimeError):
    """Training or scoring a coalition failed in a way that no convention covers."""


class LocalShapleyWarning(UserWarning):
    """Base of every warning that this package gives."""


def unknown_name(argument: str, got: object, known: Iterable[str]) -> InvalidArgumentError:
    """Make the error for a name that is not one of `known`, with the nearest match."""
    names = sorted(known)
    close = difflib.get_close_matches(str(got), names, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    listed = ", ".join(map(repr, names[:MOST_NAMES]))
    if len(names) > MOST_NAMES:
        listed += f" and {len(names) - MOST_NAMES} more"
    return InvalidArgumentError(f"{argument} must be one of {listed}; got {got!r}.{hint}")


def warn(message: str) -> None:
    """Warn the caller of the package, at the line of their own code."""
    package, level = str(Path(__file__).parent), 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((package, "<frozen importlib")):
        level += frame.f_code.co_filename.startswith(package)  # Python does not count its own imports
        frame = frame.f_back
    warnings.warn(message, LocalShapleyWarning, stacklevel=level)
