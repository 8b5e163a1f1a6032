"""Checks of numbers that a user gives, with errors in the same words."""

from __future__ import annotations

from typing import Any

import numpy as np

from localshapley.arrays import AnyArray, Floats
from localshapley.errors import InvalidArgumentError
from localshapley.runtime.threads import in_threads

LARGEST = 1e150
"""Sums of squares of numbers up to this are finite, however many there are."""
LARGEST_AMOUNT, LARGEST_SCORE = 1e30, 1e62
"""Of what a regressor predicts, and of scores: errors need sums of fourth powers of sums of scores."""


AT_ONCE = 2**22
"""Numbers that a thread looks at, at a time."""


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


def check_size(
    name: str,
    numbers: AnyArray,
    bounds: tuple[float, float] | None = None,
    *,
    may_vanish: bool = False,
    most: float = LARGEST,
    powers: str = "squared, as distances and errors are",
) -> None:
    """Refuse numbers whose powers are too large, or all too small, for floating point: nothing could be measured.

    `bounds` are their `extremes`, where they are known.

    >>> check_size("X", np.array([1e300, 2.0]))
    Traceback (most recent call last):
    localshapley.errors.InvalidArgumentError: X holds 1e+300, and numbers beyond 1e+150 overflow when they are \
squared, as distances and errors are; divide it by a large number, or drop what is not a measurement.
    """
    low, high = bounds or extremes(numbers)
    if not np.isfinite([low, high]).all():
        finite = np.isfinite(numbers)
        low, high = (float(f(initial=0.0, where=finite)) for f in (numbers.min, numbers.max))
    largest = max(high, -low)
    if largest > most:
        raise InvalidArgumentError(
            f"{name} holds {largest:.3g}, and numbers beyond {most:g} overflow when they are {powers}; divide it by a "
            "large number, or drop what is not a measurement."
        )
    if not may_vanish and 0 < largest < 1 / most:
        raise InvalidArgumentError(
            f"{name} holds nothing larger than {largest:.3g}, and numbers below {1 / most:g} vanish when they are "
            f"{powers}; multiply it by a large number."
        )


def extremes(numbers: AnyArray) -> tuple[float, float]:
    """The smallest and the largest number, or 0; where both are finite all are, which needs no further array.

    >>> extremes(np.array([2.0, np.nan]))
    (nan, nan)
    """
    if numbers.size <= AT_ONCE or not numbers.flags.c_contiguous:
        return float(numbers.min(initial=0.0)), float(numbers.max(initial=0.0))
    flat = numbers.reshape(-1)
    found = in_threads(lambda start: extremes(flat[start : start + AT_ONCE]), range(0, len(flat), AT_ONCE))
    low, high = np.array(found).T
    return float(low.min()), float(high.max())


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse anything but None and a whole number other than 0."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0):
        raise InvalidArgumentError(f"n_jobs must be None, a number of processes, or -1 for all cores; got {n_jobs!r}.")
