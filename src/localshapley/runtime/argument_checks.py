"""Checks of numbers that a user gives, with errors in the same words."""

from __future__ import annotations

from typing import Any

import numpy as np

from localshapley.arrays import Floats
from localshapley.errors import InvalidArgumentError

LARGEST_SCORE = 1e62
"""Errors need sums of fourth powers of sums of scores, which must be finite."""


def check_whole(name: str, value: Any, *, least: int = 1, optional: bool = False) -> None:
    """Refuse anything but a whole number of at least `least` (or None, where it is `optional`).

    >>> check_whole("n_seeds", 0)
    Traceback (most recent call last):
    localshapley.errors.InvalidArgumentError: n_seeds must be a whole number of at least 1; got 0.
    """
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        hint = f"; write {int(value)}" if isinstance(value, float) and value.is_integer() and value >= least else ""
        raise InvalidArgumentError(f"{name} must be a whole number of at least {least}; got {value!r}{hint}.")


def check_number(
    name: str, value: Any, *, above: float | None = None, least: float | None = None, most: float = np.inf,
    optional: bool = False,
) -> None:  # fmt: skip
    """Refuse anything but a finite number above, or of at least, one bound and of at most another.

    >>> check_number("tol", "small", above=0)
    Traceback (most recent call last):
    localshapley.errors.InvalidArgumentError: tol must be a number above 0; got 'small'.
    """
    if optional and value is None:
        return
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(np.isfinite(value))
    inside = is_number and (above is None or value > above) and (least is None or value >= least) and value <= most
    if not inside:
        bounds = [f"above {above:g}"] if above is not None else []
        bounds += [f"of at least {least:g}"] if least is not None else []
        bounds += [f"at most {most:g}"] if most < np.inf else []
        kind = f"a number {' and '.join(bounds)}" if bounds else "a finite number"
        raise InvalidArgumentError(f"{name} must be {kind}; got {value!r}.")


def check_flag(name: str, value: Any) -> None:
    """Refuse anything but True and False.

    >>> check_flag("per_test", "yes")
    Traceback (most recent call last):
    localshapley.errors.InvalidArgumentError: per_test must be True or False; got 'yes'.
    """
    if not isinstance(value, bool | np.bool_):
        raise InvalidArgumentError(f"{name} must be True or False; got {value!r}.")


def as_numbers(name: str, given: Any) -> Floats:
    """An array of finite numbers with one dimension; refuses anything else.

    >>> as_numbers("stderr", [0, float("nan")])
    Traceback (most recent call last):
    localshapley.errors.InvalidArgumentError: stderr must be a list of finite numbers; got [0, nan].
    """
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        shown = repr(given)
        raise InvalidArgumentError(
            f"{name} must be a list of finite numbers; got {shown if len(shown) <= 60 else shown[:57] + '...'}."
        )
    return numbers


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse anything but None and a whole number other than 0."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0):
        raise InvalidArgumentError(f"n_jobs must be None, a number of processes, or -1 for all cores; got {n_jobs!r}.")
