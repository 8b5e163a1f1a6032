"""Which trainer an estimator gets: a compiled one where it gives the same models, else the estimator as it is."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from localshapley.inputs.task import Task
from localshapley.models.compiled import CompiledTrainer
from localshapley.models.estimator import Estimator, EstimatorTrainer, final_step

SWITCH = "LOCALSHAPLEY_COMPILED"
"""Environment variable; 0 trains every model the plain way."""

# A module is imported when an estimator of it is met. Subclasses may do anything, so only these very classes count.
_HOME = {
    "sklearn.neighbors.KNeighborsClassifier": ("knn", "KNNTrainer"),
    "sklearn.neighbors.KNeighborsRegressor": ("knn", "KNNTrainer"),
    "sklearn.tree.DecisionTreeClassifier": ("tree", "TreeTrainer"),
    "sklearn.tree.DecisionTreeRegressor": ("tree", "TreeTrainer"),
    "sklearn.svm.SVC": ("svm", "SVCTrainer"),
    "sklearn.svm.SVR": ("svm", "SVRTrainer"),
    "sklearn.linear_model.LogisticRegression": ("linear", "LogisticTrainer"),
    "sklearn.linear_model.Ridge": ("linear", "RidgeTrainer"),
    "localshapley.models.Head": ("head", "HeadTrainer"),
}


def compiled_trainer_of(estimator: Any) -> type[CompiledTrainer] | None:
    """The compiled trainer for this class of estimators, if there is one.

    >>> from sklearn.svm import SVC, NuSVC
    >>> compiled_trainer_of(SVC()).__name__, compiled_trainer_of(NuSVC())
    ('SVCTrainer', None)
    """
    kind = type(estimator)
    package = ".".join(kind.__module__.split(".")[:2])
    home = _HOME.get(f"{package}.{kind.__qualname__}")
    if home is None:
        return None
    found: type[CompiledTrainer] = getattr(import_module(f"localshapley.models.{home[0]}"), home[1])
    return found


def choose_trainer(
    model: Any, task: Task, n_jobs: int | None, *, skip_errors: bool = False
) -> tuple[CompiledTrainer | EstimatorTrainer, str]:
    """Make the trainer for a model.

    Returns
    -------
    trainer
    note : str
        Why a model that has a compiled trainer runs as it is, where that is not what the user asked for.
    """
    if isinstance(model, Estimator):
        return model.trainer(task, n_jobs, skip_errors=skip_errors), ""
    asis = Estimator(model).trainer(task, n_jobs, skip_errors=skip_errors)
    final = final_step(model)
    kind = compiled_trainer_of(final)
    if kind is None or os.environ.get(SWITCH, "1").lower() in ("0", "false", "no", "off"):
        return asis, ""
    if final is not model:
        return asis, (
            f"the Pipeline is refitted on every coalition, so {type(final).__name__} runs as it is; transform X and "
            "X_test beforehand and give the model alone to train it compiled."
        )
    usable = kind.is_usable_for(model, task)
    if not usable:
        return asis, f"{type(model).__name__} runs as it is, not compiled: {usable.reason}."
    return kind(model, task, n_jobs), ""
