"""What the `model` argument means, and which trainer an estimator gets: compiled where that gives the same models."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from localshapley.arrays import AnyArray
from localshapley.data.rows import are_amounts
from localshapley.errors import unknown_name
from localshapley.models.compiled import CompiledTrainer
from localshapley.models.estimator import Estimator
from localshapley.models.estimator_checks import check_estimator
from localshapley.models.named_models import NAMES, named
from localshapley.models.pipelines import peel
from localshapley.models.task import Task
from localshapley.models.trainer import Model, Trainer
from localshapley.notes import Note

SWITCH = "LOCALSHAPLEY_COMPILED"
"""Environment variable; 0 trains every model with scikit-learn's fit."""

FIXED_FOREST = "fixed-forest"
"""The name of a forest whose trees are grown once."""

# A module is imported when one of its estimators is used. Subclasses may do anything, so only exact classes count.
_HOME = {
    "sklearn.neighbors.KNeighborsClassifier": ("models.nearest_neighbours", "KNNTrainer"),
    "sklearn.neighbors.KNeighborsRegressor": ("models.nearest_neighbours", "KNNTrainer"),
    "sklearn.neighbors.RadiusNeighborsClassifier": ("models.radius_neighbours", "RadiusTrainer"),
    "sklearn.neighbors.RadiusNeighborsRegressor": ("models.radius_neighbours", "RadiusTrainer"),
    "sklearn.tree.DecisionTreeClassifier": ("models.trees", "TreeTrainer"),
    "sklearn.tree.DecisionTreeRegressor": ("models.trees", "TreeTrainer"),
    "sklearn.tree.ExtraTreeClassifier": ("models.trees", "TreeTrainer"),
    "sklearn.tree.ExtraTreeRegressor": ("models.trees", "TreeTrainer"),
    "sklearn.ensemble.RandomForestClassifier": ("models.forests", "ForestTrainer"),
    "sklearn.ensemble.RandomForestRegressor": ("models.forests", "ForestTrainer"),
    "sklearn.ensemble.ExtraTreesClassifier": ("models.forests", "ForestTrainer"),
    "sklearn.ensemble.ExtraTreesRegressor": ("models.forests", "ForestTrainer"),
    "sklearn.ensemble.BaggingClassifier": ("models.forests", "BaggingTrainer"),
    "sklearn.ensemble.BaggingRegressor": ("models.forests", "BaggingTrainer"),
    "sklearn.svm.SVC": ("models.support_vectors", "SVCTrainer"),
    "sklearn.svm.LinearSVC": ("models.linear_models", "LinearSVCTrainer"),
    "sklearn.svm.SVR": ("models.support_vectors", "SVRTrainer"),
    "sklearn.naive_bayes.GaussianNB": ("models.naive_bayes", "BayesTrainer"),
    "sklearn.linear_model.LinearRegression": ("models.linear_models", "LeastSquaresTrainer"),
    "sklearn.linear_model.Lasso": ("models.linear_models", "LassoTrainer"),
    "sklearn.linear_model.ElasticNet": ("models.linear_models", "LassoTrainer"),
    "sklearn.linear_model.RidgeClassifier": ("models.linear_models", "RidgeClassifierTrainer"),
    "sklearn.linear_model.LogisticRegression": ("models.linear_models", "LogisticTrainer"),
    "sklearn.linear_model.Ridge": ("models.linear_models", "RidgeTrainer"),
    "localshapley.torch.Head": ("torch.heads", "HeadTrainer"),
    "localshapley.torch.Network": ("torch.network", "NetworkTrainer"),
}
_REGISTERED: dict[type, type[CompiledTrainer]] = {}


def as_model(model: Any, labels: AnyArray) -> tuple[Model, list[Note]]:
    """The model behind the `model` argument (a name, an estimator or a model), and what the user should know.

    A name stands for a regressor where the labels are amounts.
    """
    notes = list[Note]()
    if isinstance(model, str):
        amounts = are_amounts(labels)
        if amounts and labels.dtype.kind in "iu":
            text = (
                "y holds so many different whole numbers that they are treated as amounts, and predicted by a "
                "regressor; give a classifier instead of a name if they are classes."
            )
            notes.append(Note("labels-are-amounts", text))
        model = find_named(model, regression=amounts or model == "ridge")
    if not isinstance(model, Model) and "torch" in sys.modules:  # else it is no net of skorch
        from localshapley.torch.network import without_skorch

        model, more = without_skorch(model)
        notes += more
    found = model if isinstance(model, Model) else Automatic(model)
    check_estimator(found.estimator)
    return found, notes


def find_named(name: str, *, regression: bool) -> Any:
    """The model or estimator behind a name: one of `NAMES`, or ``"fixed-forest"``."""
    if name == FIXED_FOREST:
        from localshapley.models.fixed_trees import Fixed

        return Fixed(named("forest", regression=regression))
    if name not in NAMES:
        raise unknown_name("model", name, (*NAMES, FIXED_FOREST))
    return named(name, regression=regression)


class Automatic(Model):
    """An estimator that is trained by compiled code where possible, else with scikit-learn's fit.

    Parameters
    ----------
    estimator : estimator object
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def split(self) -> tuple[Any, Model]:
        """The steps of a pipeline before its last one, and that one."""
        before, last = peel(self.estimator)
        return before, Automatic(last)

    @property
    def may_refuse(self) -> bool:
        """Whether it is tried on all rows before a trainer is made: not if a compiled one knows what it refuses."""
        kind = compiled_trainer_of(self.estimator)
        return kind is None or kind.may_refuse

    def trainer(self, task: Task, n_jobs: int | None = None, *, skip_errors: bool = False) -> Trainer:
        """Make the trainer; one that is not compiled says why, if it could have been."""
        kind = compiled_trainer_of(self.estimator)
        if kind is None or os.environ.get(SWITCH, "1").lower() in ("0", "false", "no", "off"):
            return Estimator(self.estimator).trainer(task, n_jobs, skip_errors=skip_errors)
        usable = kind.is_usable_for(self.estimator, task)
        if usable:
            return kind(self.estimator, task, n_jobs)
        asis = Estimator(self.estimator).trainer(task, n_jobs, skip_errors=skip_errors)
        name = type(self.estimator).__name__
        text = f"{name} uses scikit-learn's fit instead of compiled code: {usable.reason}."
        asis.training_notes = (Note("not-compiled", text, model=name, reason=usable.reason),)
        return asis


def compiled_trainer_of(estimator: Any) -> type[CompiledTrainer] | None:
    """The compiled trainer for this class of estimators, if there is one.

    >>> from sklearn.svm import SVC, NuSVC
    >>> compiled_trainer_of(SVC()).__name__, compiled_trainer_of(NuSVC())
    ('SVCTrainer', None)
    """
    kind = type(estimator)
    if kind in _REGISTERED:
        return _REGISTERED[kind]
    package = ".".join(kind.__module__.split(".")[:2])
    home = _HOME.get(f"{package}.{kind.__qualname__}")
    if home is None:
        return None
    found: type[CompiledTrainer] = getattr(import_module(f"localshapley.{home[0]}"), home[1])
    return found


def register(estimator: type, trainer: type[CompiledTrainer]) -> None:
    """Have estimators of a class trained by a compiled trainer, wherever it says that it is usable.

    Parameters
    ----------
    estimator : class
        This exact class; subclasses may do anything and are not included.
    trainer : subclass of `CompiledTrainer`
    """
    _REGISTERED[estimator] = trainer
