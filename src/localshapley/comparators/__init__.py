"""The paper's other methods and other people's estimators, for comparison; nothing else in the package needs them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from localshapley.comparators.complementary import Complementary
from localshapley.comparators.knn_formulas import knn_shapley, threshold_knn_shapley
from localshapley.comparators.pivot_sampling import Pivot, PivotPrinted
from localshapley.comparators.random_values import RandomValues
from localshapley.comparators.tmc import TMC
from localshapley.comparators.without_reuse import PlayerCentric, SubsetCentric
from localshapley.errors import InvalidArgumentError

if TYPE_CHECKING:
    from localshapley.comparators.in_run import in_run_shapley, in_run_values
    from localshapley.comparators.in_run_graph import in_run_nodes

__all__ = [
    "TMC",
    "Complementary",
    "Pivot",
    "PivotPrinted",
    "PlayerCentric",
    "RandomValues",
    "SubsetCentric",
    "in_run_nodes",
    "in_run_shapley",
    "in_run_values",
    "knn_shapley",
    "threshold_knn_shapley",
]

# Where names that need PyTorch live; it is imported when one of them is first used.
_HOME = {"in_run_nodes": "in_run_graph", "in_run_shapley": "in_run", "in_run_values": "in_run"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"localshapley.comparators.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise InvalidArgumentError(f"comparators.{name} needs PyTorch: pip install 'localshapley[torch]'.") from None
