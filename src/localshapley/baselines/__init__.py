"""Other people's estimators, for comparison."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from localshapley.baselines.knn import knn_shapley, threshold_knn_shapley
from localshapley.baselines.truncated import TMC

if TYPE_CHECKING:
    from localshapley.baselines.in_run import in_run_nodes, in_run_shapley, in_run_values

__all__ = ["TMC", "in_run_nodes", "in_run_shapley", "in_run_values", "knn_shapley", "threshold_knn_shapley"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("localshapley.baselines.in_run"), name)  # which imports torch
