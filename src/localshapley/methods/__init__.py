"""Ways to compute values: one file each, behind one protocol, known by the names that `value(method=...)` takes."""

from __future__ import annotations

from importlib import import_module

from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.methods.auto import Auto
from localshapley.methods.base import Method, Run
from localshapley.methods.closed_form import ClosedForm
from localshapley.methods.exact import Exact
from localshapley.methods.limits import Limits
from localshapley.methods.loo import LeaveOneOut
from localshapley.methods.permutation import GlobalMC, LocalMC
from localshapley.methods.sample import Sample

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (Auto, ClosedForm, Exact, Sample, LocalMC, GlobalMC, LeaveOneOut)
}
"""The methods of this folder by their names."""
COMPARATORS = {
    "subset-centric": "SubsetCentric",
    "baseline": "PlayerCentric",
    "pivot": "Pivot",
    "pivot-printed": "PivotPrinted",
    "tmc": "TMC",
    "complementary": "Complementary",
    "random": "RandomValues",
}
"""Classes of `localshapley.comparators` by the names of their methods; imported only when one of them is asked for."""


def find_method(method: str | Method) -> Method:
    """Return the method behind the `method` argument: a name, or a method with settings of its own."""
    if isinstance(method, Method):
        return method
    if isinstance(method, type) and issubclass(method, Method):
        raise InvalidArgumentError(f"method is a class; give an instance of it: {method.__name__}().")
    if isinstance(method, str) and method in COMPARATORS:
        found: Method = getattr(import_module("localshapley.comparators"), COMPARATORS[method])()
        return found
    if not isinstance(method, str) or method not in METHODS:
        raise unknown_name("method", method, [*METHODS, *COMPARATORS])
    return METHODS[method]()


__all__ = [
    "COMPARATORS",
    "METHODS",
    "Auto",
    "ClosedForm",
    "Exact",
    "GlobalMC",
    "LeaveOneOut",
    "Limits",
    "LocalMC",
    "Method",
    "Run",
    "Sample",
    "find_method",
]
