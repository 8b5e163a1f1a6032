"""Ways to compute values: one file each, behind one protocol, known by the names that `value(method=...)` takes."""

from __future__ import annotations

from typing import Any

from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.methods.auto import Auto
from localshapley.methods.base import Method, Run
from localshapley.methods.baseline import Baseline
from localshapley.methods.closed_form import ClosedForm
from localshapley.methods.complementary import Complementary
from localshapley.methods.exact import Exact
from localshapley.methods.global_mc import GlobalMC
from localshapley.methods.local_mc import LocalMC
from localshapley.methods.loo import LeaveOneOut
from localshapley.methods.pivot import Pivot
from localshapley.methods.pivot_printed import PivotPrinted
from localshapley.methods.random import Random
from localshapley.methods.sample import Sample
from localshapley.methods.settings import Settings
from localshapley.methods.subset_centric import SubsetCentric
from localshapley.methods.tmc import TMC

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Auto,
        ClosedForm,
        Exact,
        SubsetCentric,
        Baseline,
        Sample,
        Pivot,
        PivotPrinted,
        LocalMC,
        GlobalMC,
        TMC,
        Complementary,
        LeaveOneOut,
        Random,
    )
}
"""Every method by its name."""


def find_method(method: str | Method) -> Method:
    """The method behind the `method` argument: a name, or a method with settings of its own."""
    if isinstance(method, Method):
        return method
    if isinstance(method, type) and issubclass(method, Method):
        raise InvalidArgumentError(f"method is a class; give an instance of it: {method.__name__}().")
    if not isinstance(method, str) or method not in METHODS:
        raise unknown_name("method", method, METHODS)
    return METHODS[method]()


def read_settings(method: str | Method, *arguments: Any, **named: Any) -> Settings:
    """Check how to play; the arguments are those of `Settings`."""
    return Settings(find_method(method), *arguments, **named)


__all__ = [
    "METHODS",
    "TMC",
    "Auto",
    "Baseline",
    "ClosedForm",
    "Complementary",
    "Exact",
    "GlobalMC",
    "LeaveOneOut",
    "LocalMC",
    "Method",
    "Pivot",
    "PivotPrinted",
    "Random",
    "Run",
    "Sample",
    "Settings",
    "SubsetCentric",
    "find_method",
    "read_settings",
]
