"""What functions note of how a valuation was made, so that a reader can make it again."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np

from localshapley import __version__
from localshapley.methods import find_method
from localshapley.methods.limits import DEFAULT_TOL
from localshapley.models.estimator_checks import on_one_line
from localshapley.valuation.facts import Provenance

if TYPE_CHECKING:
    from localshapley.valuation import Valuation

P = ParamSpec("P")
LIMITS = ("tol", "budget", "stop", "max_seconds")
ALWAYS = ("model", "method", "seed")
"""Arguments that are in every call, given or not."""
UNTOLD = ("progress", "n_jobs", "on_interrupt")
"""Arguments that change no value."""
MAX_TEXT = 200
"""Characters of an argument; of a longer one only the kind is told."""


def recorded(function: Callable[P, Valuation]) -> Callable[P, Valuation]:
    """Have a function keep in its result how it was called."""
    signature = inspect.signature(function)

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Valuation:
        found = function(*args, **kwargs)
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        arguments = given.arguments | _default_target(given.arguments)
        record = Provenance(
            version=__version__,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            call=f"{function.__name__}({', '.join(_words(signature, arguments))})",
            seed=None if arguments.get("seed") is None else int(arguments["seed"]),
            limits={name: _text(name, arguments[name]) for name in LIMITS if arguments.get(name) is not None},
        )
        return replace(found, record=record)

    return wrapper


def _default_target(given: dict[str, Any]) -> dict[str, Any]:
    """The target of a sampled run that was given none."""
    if "tol" not in given or find_method(given["method"]).kind != "sampled":
        return {}
    return {} if any(given[name] is not None for name in ("tol", "budget", "stop")) else {"tol": DEFAULT_TOL}


def _words(signature: inspect.Signature, given: dict[str, Any]) -> list[str]:
    """The arguments of a call as they would be written: data by name, then all that is not as by default."""
    words, by_name = [], False
    for name, parameter in signature.parameters.items():
        changed = given[name] is not parameter.default and name not in UNTOLD
        if not changed and name not in ALWAYS:
            by_name = True  # what is left out moves the others
            continue
        by_name |= parameter.kind is parameter.KEYWORD_ONLY
        text = _text(name, given[name], is_data=parameter.kind is not parameter.KEYWORD_ONLY)
        words.append(f"{name}={text}" if by_name else text)
    return words


def _text(name: str, argument: Any, *, is_data: bool = False) -> str:
    """An argument as one would write it; of data its name, unless it is a number, a path or a function."""
    if isinstance(argument, np.generic):
        argument = argument.item()
    if argument is None or isinstance(argument, bool | int | float | str):
        return repr(argument)
    if isinstance(argument, PathLike):
        return repr(fspath(argument))
    if hasattr(argument, "__name__"):
        return str(argument.__name__)
    if is_data or hasattr(argument, "shape") or isinstance(argument, list | tuple | dict | set):
        return name
    text = on_one_line(argument)
    return text if len(text) <= MAX_TEXT and " at 0x" not in text else f"{type(argument).__name__}(...)"
