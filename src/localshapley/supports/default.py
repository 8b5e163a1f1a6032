"""The support that belongs to a model."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR
from sklearn.tree import BaseDecisionTree

from localshapley.runtime.boosting_libraries import library_of
from localshapley.supports.base import Support
from localshapley.supports.dual import Dual
from localshapley.supports.embedding import Embedding
from localshapley.supports.kernel import Kernel
from localshapley.supports.leaf_numbers import has_leaves
from localshapley.supports.nearest import Nearest, Radius
from localshapley.supports.tree_nodes import Leaves, TreeNode

FORESTS = (
    RandomForestClassifier,
    RandomForestRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)


def default_support(model: Any) -> tuple[Support, bool]:
    """Choose the support for an estimator (the last step of a pipeline).

    Returns
    -------
    support : Support
    induced : bool
        False if the model belongs to no family with a locality of its own, so that locality is only assumed.
    """
    if isinstance(model, KNeighborsClassifier | KNeighborsRegressor):
        return Nearest(2 * model.n_neighbors, **_metric(model)), True
    if isinstance(model, RadiusNeighborsClassifier | RadiusNeighborsRegressor):
        return Radius(model.radius, **_metric(model)), True
    if isinstance(model, SVC | SVR | NuSVC | NuSVR):
        return (Kernel(0.5) if model.kernel == "rbf" else Dual()), True
    if isinstance(model, LinearSVC | LinearSVR):
        return Dual(), True
    if isinstance(model, BaseDecisionTree):
        return TreeNode(), True
    if isinstance(model, FORESTS) or (library_of(model) and has_leaves(model)):
        return Leaves(), True
    if callable(getattr(model, "encoder", None)):  # a head on frozen embeddings
        return Embedding(model.encoder), False
    if hasattr(model, "embed"):  # a network
        return Embedding(), False
    return Nearest(20, standardise=True), False


def _metric(model: Any) -> dict[str, Any]:
    """The metric of a neighbours model, as arguments of a support."""
    if model.metric == "minkowski" and model.p == 2 and not model.metric_params:
        return {}
    return {"metric": model.metric, "metric_params": {"p": model.p, **(model.metric_params or {})}}
