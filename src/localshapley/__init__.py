"""What each row of your training data is worth to your model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from localshapley import (
        audit,
        comparators,
        datasets,
        methods,
        models,
        report,
        scoring,
        stopping,
        supports,
        tasks,
        theory,
    )
    from localshapley.api import shapley, value
    from localshapley.clean import CleanClassifier, CleanRegressor
    from localshapley.coalitions.games import SupportGraph
    from localshapley.engine.score_store import Store
    from localshapley.engine.store_file import StoreError
    from localshapley.errors import (
        InvalidArgumentError,
        LocalShapleyError,
        LocalShapleyWarning,
        TooLargeError,
        TrainingError,
    )
    from localshapley.locality import LocalityGap, locality_gap
    from localshapley.nodes import locality_gap_nodes, value_nodes
    from localshapley.planning import Plan, plan
    from localshapley.selection import Pruning, Selection, prune, select
    from localshapley.updating import update
    from localshapley.valuation import Cost, History, Valuation, load
    from localshapley.warming import warm_up

# Where each public name lives; a module is imported when a name of it is first used, which keeps
# `import localshapley` and the command line quick.
_HOME = {
    "CleanClassifier": "clean",
    "CleanRegressor": "clean",
    "Cost": "valuation",
    "History": "valuation",
    "InvalidArgumentError": "errors",
    "LocalShapleyError": "errors",
    "LocalShapleyWarning": "errors",
    "LocalityGap": "locality",
    "Plan": "planning",
    "Pruning": "selection",
    "Selection": "selection",
    "Store": "engine.score_store",
    "StoreError": "engine.store_file",
    "SupportGraph": "coalitions.games",
    "TooLargeError": "errors",
    "TrainingError": "errors",
    "Valuation": "valuation",
    "load": "valuation",
    "locality_gap": "locality",
    "locality_gap_nodes": "nodes",
    "plan": "planning",
    "prune": "selection",
    "select": "selection",
    "shapley": "api",
    "update": "updating",
    "value": "api",
    "value_nodes": "nodes",
    "warm_up": "warming",
}
_MODULES = (
    "audit",
    "comparators",
    "datasets",
    "methods",
    "models",
    "report",
    "scoring",
    "stopping",
    "supports",
    "tasks",
    "theory",
)

__all__ = [
    "CleanClassifier",
    "CleanRegressor",
    "Cost",
    "History",
    "InvalidArgumentError",
    "LocalShapleyError",
    "LocalShapleyWarning",
    "LocalityGap",
    "Plan",
    "Pruning",
    "Selection",
    "Store",
    "StoreError",
    "SupportGraph",
    "TooLargeError",
    "TrainingError",
    "Valuation",
    "audit",
    "comparators",
    "datasets",
    "load",
    "locality_gap",
    "locality_gap_nodes",
    "methods",
    "models",
    "plan",
    "prune",
    "report",
    "scoring",
    "select",
    "shapley",
    "stopping",
    "supports",
    "tasks",
    "theory",
    "update",
    "value",
    "value_nodes",
    "warm_up",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"localshapley.{_HOME[name]}"), name)
    if name in _MODULES:
        return import_module(f"localshapley.{name}")
    raise AttributeError(f"module 'localshapley' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
