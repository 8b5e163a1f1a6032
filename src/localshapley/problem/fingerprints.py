"""Models, scores and settings as texts: equal where they give the same scores, different where they may not."""

from __future__ import annotations

import dis
import inspect
import pickle
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from hashlib import blake2b
from types import CodeType, ModuleType
from typing import Any, get_args

import numpy as np

LONG = 1000
"""Characters from which on a text is folded."""
PLAIN = bool | int | float | complex | str | bytes
HELD: tuple[type, ...] = (*get_args(PLAIN), list, tuple, dict, set, frozenset, np.ndarray, np.generic)
"""Numbers and texts, and what holds them."""


def describe(value: Any) -> str:
    """A text that is equal for equal values and different for different ones, in every process.

    Code counts: an edited function is a different one, and so is one that uses an edited function, class or number;
    likewise a class with its bases. Of packages with a version, the version counts.

    >>> describe([1, 2.5, "a", None])
    "[1, 2.5, 'a', None]"
    >>> describe(lambda x: x + 1) == describe(lambda x: x + 1), describe(lambda x: x + 1) == describe(lambda x: x + 2)
    (True, False)
    """
    return _Description().of(value)


class _Description:
    """What has been described so far, by identity: a function may use itself."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, str]] = {}  # with the thing itself, whose identity is not given anew

    def of(self, value: Any) -> str:
        """The text of a value."""
        if value is None or isinstance(value, PLAIN):
            return repr(value)
        if id(value) not in self._known:
            self._known[id(value)] = value, f"number {len(self._known)}"
            text = self._of(value)
            # A long one is used by many, and each would repeat it.
            self._known[id(value)] = (
                value,
                text if len(text) < LONG else f"{type(value).__name__} {_digest(text.encode())}",
            )
        return self._known[id(value)][1]

    def _of(self, value: Any) -> str:
        if isinstance(value, np.generic):
            return f"{type(value).__name__}({value.item()!r})"
        if isinstance(value, np.ndarray) and value.dtype != object:
            return f"array({value.dtype}, {value.shape}, {_digest(np.ascontiguousarray(value).tobytes())})"
        if hasattr(value, "detach") and hasattr(value, "numpy"):  # a tensor of PyTorch
            return f"tensor({self.of(value.detach().cpu().numpy())})"
        if isinstance(value, dict):
            return "{" + ", ".join(sorted(f"{self.of(k)}: {self.of(v)}" for k, v in value.items())) + "}"
        if isinstance(value, set | frozenset):
            return "{" + ", ".join(sorted(map(self.of, value))) + "}"
        if isinstance(value, list | tuple | np.ndarray):
            return "[" + ", ".join(map(self.of, value)) + "]"
        if isinstance(value, ModuleType):
            return f"{value.__name__} {getattr(value, '__version__', '')}"
        if isinstance(value, type):
            return self._of_class(value)
        if inspect.isroutine(value):
            return self._of_function(value)
        if inspect.iscode(value):
            return f"code({value.co_code.hex()}, {value.co_names}, {self.of(value.co_consts)})"
        if hasattr(value, "get_params"):
            has_others = hasattr(value, "deciding_settings")
            settings = value.deciding_settings() if has_others else value.get_params(deep=False)
            return f"{self.of(type(value))}({self.of(settings)})"
        if isinstance(value, partial):
            return f"partial({self.of([value.func, value.args, value.keywords])})"
        if is_dataclass(value):
            state: Any = {f.name: getattr(value, f.name) for f in fields(value)}
        elif hasattr(value, "__dict__"):
            state = value.__dict__
        else:
            state = _contents(value)
        return f"{self.of(type(value))}({self.of(state)})"

    def _of_function(self, function: Any) -> str:
        function = inspect.unwrap(getattr(function, "__func__", function))
        code = getattr(function, "__code__", None)
        if code is None:  # built in
            name = getattr(function, "__qualname__", type(function).__qualname__)
            return f"{getattr(function, '__module__', None)}.{name} {_version(function)}"
        used: list[Any] = [_use(cell.cell_contents) for cell in function.__closure__ or () if _is_filled(cell)]
        names, known = sorted(set(_names(code))), function.__globals__
        has_version = bool(_version(function))  # what it uses has one, too, but for numbers that can be set
        used += [(n, _use(known[n])) for n in names if n in known and (not has_version or isinstance(known[n], PLAIN))]
        return (
            f"function({self.of(code)}, {self.of([function.__defaults__, function.__kwdefaults__])}, {self.of(used)})"
        )

    def _of_class(self, kind: type) -> str:
        return ", ".join(self._of_own(base) for base in kind.__mro__[:-1]) or kind.__qualname__

    def _of_own(self, kind: type) -> str:
        """A class without its bases: its version, else its source and methods; without a source, what else it holds."""
        name, version = f"{kind.__module__}.{kind.__qualname__}", _version(kind)
        if version:
            return f"{name} {version}"
        try:
            source = inspect.getsource(kind)  # not what it holds, which may change: it may count its calls
        except (OSError, TypeError):
            source = ""
        own = {attribute: _behind(held) for attribute, held in vars(kind).items()}
        counting = {a: held for a, held in own.items() if _is_of(kind, held) or (not source and _is_number(a, held))}
        return f"{name} {_digest((source + self.of(counting)).encode())}"


def _names(code: CodeType) -> Iterator[str]:
    """Names of globals that a code, or one inside it, reads and does not change itself: it may count its calls."""
    steps = [(step.opname, step.argval) for step in dis.get_instructions(code)]
    own = {name for operation, name in steps if operation == "STORE_GLOBAL"}
    yield from (name for operation, name in steps if operation in ("LOAD_GLOBAL", "LOAD_NAME") and name not in own)
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _names(constant)


def _use(value: Any) -> Any:
    """What a function uses, with what decides how; of other packages' tools, such as a logger or a lock, the kind."""
    if hasattr(value, "py_func"):  # compiled by numba
        return value.py_func
    is_code = inspect.isroutine(value) or isinstance(value, type | partial)
    is_model = hasattr(value, "get_params") or hasattr(value, "state_dict")
    if value is None or isinstance(value, (*HELD, ModuleType)) or is_code or is_model or not _version(type(value)):
        return value
    if hasattr(value, "to_numpy"):  # a table or column of pandas or polars
        return type(value), _contents(value)
    text = repr(value)
    return type(value) if text.startswith("<") or " at 0x" in text else (type(value), text)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _behind(held: Any) -> Any:
    """The functions behind a method of any kind, or a property."""
    if isinstance(held, classmethod | staticmethod):
        return held.__func__
    return [held.fget, held.fset] if isinstance(held, property) else held


def _is_of(kind: type, held: Any) -> bool:
    """Whether something is a method that was written in a class, and not put there later."""
    return inspect.isroutine(held) and str(getattr(held, "__qualname__", "")).startswith(f"{kind.__qualname__}.")


def _is_number(attribute: str, held: Any) -> bool:
    """Whether a class holds a number, or several, and not what Python notes there."""
    return (held is None or isinstance(held, HELD)) and not attribute.startswith("__")


def _contents(value: Any) -> bytes | str:
    """What pickle would write of an object of a kind that is unknown here; never read back."""
    try:
        return blake2b(pickle.dumps(value), digest_size=16).digest()
    except Exception:
        return repr(value)


def _digest(contents: bytes) -> str:
    return blake2b(contents, digest_size=16).hexdigest()


def _version(thing: Any) -> str:
    """Version of the package that something is from, if it has one; Python's of what comes with it."""
    name = (getattr(thing, "__module__", None) or "").split(".")[0]
    if name in sys.stdlib_module_names and name != "__main__":
        return "{}.{}".format(*sys.version_info)
    return str(getattr(sys.modules.get(name), "__version__", ""))
