"""The estimator behind the `model` argument: checks, and what is known about it without training coalitions."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from inspect import isroutine
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import StackingClassifier, StackingRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import BaseDecisionTree, DecisionTreeClassifier
from sklearn.utils import get_tags

from localshapley.arrays import AnyArray
from localshapley.data.rows import Data, are_numbers, as_array, check_size, extremes, numbers_in
from localshapley.errors import InvalidArgumentError, RefusedByModelError, TrainingError
from localshapley.runtime.boosting_libraries import REFUSALS, LabelCoder, library_of, open_states, tamed
from localshapley.runtime.process_settings import caught_warnings

FEW_ROWS = 2000
"""Boosting libraries train fewer rows than these on one thread, if the number of threads is open."""

STACKED = StackingClassifier, StackingRegressor
UNKNOWABLE = ColumnTransformer, FeatureUnion, FunctionTransformer
"""Steps that may fill missing values, or leave out the columns that hold them."""


def check_estimator(estimator: Any) -> None:
    """Refuse anything but a classifier or regressor of scikit-learn's kind that takes rows of features."""
    if isinstance(estimator, type):
        raise InvalidArgumentError(f"model is a class; give an instance of it: {estimator.__name__}().")
    if isroutine(estimator) or isinstance(estimator, partial):
        name = getattr(estimator, "__name__", "it")
        name = "it" if name == "<lambda>" else name
        raise InvalidArgumentError(f"model is a function; if it makes the model, call it: model={name}().")
    # Some can predict only once they are fitted: scikit-learn's stacking.
    predicts = hasattr(estimator, "predict") or isinstance(final_step(estimator), STACKED)
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params") and predicts):
        is_module = any(kind.__module__.startswith("torch.nn") for kind in type(final_step(estimator)).__mro__)
        remedy = " A PyTorch module goes into models.Network(module)." if is_module else ""
        raise InvalidArgumentError(
            "model must be a scikit-learn estimator, a name or a localshapley.models object; got "
            f"{estimator!r}.{remedy}"
        )
    if not (is_classifier(estimator) or is_regressor(estimator)):
        raise InvalidArgumentError(
            f"model must be a classifier or a regressor; {type(final_step(estimator)).__name__} is neither."
        )
    if type(final_step(estimator)).__name__ == "FrozenEstimator":  # of scikit-learn
        raise InvalidArgumentError("model is a FrozenEstimator, which learns nothing; give the model inside it.")
    if getattr(final_step(estimator), "metric", None) == "precomputed":
        raise InvalidArgumentError("model has metric='precomputed'; give feature rows and a metric instead.")


def fitting(data: Data, estimator: Any) -> Data:
    """The data in the form that an estimator takes: frames where it may read columns by name, else arrays.

    NaN is let through only where the estimator says that it accepts it.
    """
    if takes_kernel(estimator) and data.X.shape[0] != data.X.shape[1]:
        raise InvalidArgumentError(
            "model takes a precomputed kernel: X must be the square matrix between the training rows, X_test that of "
            f"test rows by training rows; X has shape {data.X.shape}."
        )
    if isinstance(data.X, pd.DataFrame) and are_numbers(data.X) and not reads_names(estimator):
        data = replace(data, X=as_array("X", data.X), X_test=as_array("X_test", data.X_test))
    for name, table in (("X", data.X), ("X_test", data.X_test)):
        values = numbers_in(table)
        bounds = extremes(values)
        finite = bool(np.isfinite(bounds).all())
        if not finite and np.isinf(values).any():
            raise InvalidArgumentError(f"{name} holds infinity; drop or clip these entries.")
        check_size(name, values, bounds, may_vanish=name == "X_test")  # few test rows may all be near 0
        if not finite and not takes_missing(estimator):
            raise InvalidArgumentError(
                f"{name} holds {int(np.isnan(values).sum())} missing values (NaN), which "
                f"{type(final_step(estimator)).__name__} does not accept; drop these rows, or put SimpleImputer() "
                "before the model in a Pipeline."
            )
    return data


def takes_kernel(estimator: Any) -> bool:
    """Whether an estimator takes a matrix between rows instead of the rows."""
    return bool(get_tags(estimator).input_tags.pairwise)


def takes_missing(estimator: Any) -> bool:
    """Whether missing values may be filled, or are accepted by every step that they reach."""
    if not isinstance(estimator, Pipeline):
        # What other estimators inside it do will show when it is fitted.
        return bool(get_tags(estimator).input_tags.allow_nan) or reads_names(estimator)
    *transformers, model = _flat(estimator)
    for step in transformers:
        if not hasattr(step, "fit"):
            continue
        module = type(step).__module__
        if module.startswith("sklearn.impute") or not module.startswith("sklearn.") or isinstance(step, UNKNOWABLE):
            return True  # it fills them, or there is no way to know
        if not takes_missing(step):
            return False
    return takes_missing(model)


def _flat(pipeline: Pipeline) -> list[Any]:
    """All steps, those of pipelines within it one by one."""
    return [one for _, step in pipeline.steps for one in (_flat(step) if isinstance(step, Pipeline) else [step])]


def reads_names(estimator: Any) -> bool:
    """Whether there are other estimators inside, which may read columns by name; trees do not."""
    if type(estimator) is Pipeline and len(estimator.steps) == 1:
        return reads_names(estimator.steps[0][1])
    settings = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    inside = [value for value in settings if hasattr(value, "get_params")]
    return not all(isinstance(value, BaseDecisionTree) for value in inside)


def final_step(estimator: Any) -> Any:
    """The estimator itself, or the last step of a pipeline."""
    if isinstance(estimator, LabelCoder):
        return getattr(estimator, "estimator_", estimator.estimator)
    return final_step(estimator.steps[-1][1]) if isinstance(estimator, Pipeline) else estimator


def gives_probabilities(estimator: Any) -> bool:
    """Whether an estimator will have `predict_proba` once it is fitted."""
    last = final_step(estimator)
    # Before, stacking does not say, and its final estimator may be left to it.
    by_default = isinstance(last, StackingClassifier) and last.final_estimator is None
    return by_default or hasattr(estimator, "predict_proba")


def seeded(estimator: Any, seed: int) -> Any:
    """A clone whose open random states are set, so that a coalition always gives the same model."""
    model = clone(estimator)
    model.set_params(**{name: seed for name, value in _random_states(model).items() if value is None})
    return model


def unseeded(model: Any) -> Any:
    """A copy of a model whose random states are open, so that the seed of a run decides."""
    if isinstance(model, str):
        return model
    if not hasattr(model, "get_params"):  # of `localshapley.models`
        changed = copy(model)
        changed.estimator = unseeded(model.estimator)
        return changed
    found = clone(model)
    found.set_params(**dict.fromkeys(_random_states(found)))
    return found


def prepared(estimator: Any, seed: int, *, alone: bool = False) -> Any:
    """A clone to be trained on some of the rows: seeded, silent, and ready for coalitions that lack classes.

    Parameters
    ----------
    estimator : estimator object
    seed : int
    alone : bool, default=False
        Whether boosting libraries shall use one thread where the number is open: for a few rows.
    """
    return tamed(seeded(estimator, seed), alone=alone)


def refuses(error: Exception) -> bool:
    """Whether an error is how a model says that it cannot learn from the rows."""
    return isinstance(error, ValueError) or type(error).__name__ in REFUSALS


def has_random_state(estimator: Any) -> bool:
    """Whether an estimator, or a part of it, can be given a random state."""
    return bool(_random_states(estimator))


def draws_to_predict(estimator: Any) -> bool:
    """Whether an estimator, or a part of it, draws random numbers for each row that it predicts."""
    return any(
        (isinstance(one, DummyClassifier) and one.strategy in ("stratified", "uniform"))
        or (type(one).__name__ == "IterativeImputer" and one.sample_posterior)
        for one in [estimator, *estimator.get_params(deep=True).values()]
    )


def counts_rows(estimator: Any) -> bool:
    """Whether all that a model learns are numbers of rows, which are exact in whatever order these come."""
    return isinstance(estimator, DecisionTreeClassifier) and estimator.class_weight is None


def _random_states(estimator: Any) -> dict[str, Any]:
    parameters = estimator.get_params(deep=True).items()
    named = {name: value for name, value in parameters if name == "random_state" or name.endswith("__random_state")}
    return named | open_states(estimator)


def train_reference(estimator: Any, X: Any, y: AnyArray, seed: int, fold: str = "") -> Any:
    """Train the model on all rows, so that data it refuses is refused before any coalition is trained.

    `fold` says which fold they are the rows outside of, if they are.
    """
    try:
        with caught_warnings():
            return prepared(estimator, seed, alone=len(y) < FEW_ROWS).fit(X, y)
    except Exception as error:
        what = f"model {on_one_line(estimator)} cannot be trained on {rows_in_words(fold)}:"
        if not (refuses(error) or isinstance(error, TypeError)):
            raise TrainingError(f"{what} {type(error).__name__}: {error}") from error
        if fold and is_classifier(estimator) and len(np.unique(y)) == 1:
            raise RefusedByModelError(
                f"{what} they hold a single class, {y[0]}. Give folds that leave several classes to train on, such as "
                "cv=StratifiedKFold(shuffle=True)."
            ) from error
        raise RefusedByModelError(f"{what} {error}{about_columns(X)}") from error


def rows_in_words(fold: str) -> str:
    """What the rows are called that a model is trained on."""
    return f"the rows outside {fold}" if fold else "all of X and y"


def about_columns(X: Any) -> str:
    """Names the first column that holds no numbers, as a reason for a refusal; empty if all do."""
    if not isinstance(X, pd.DataFrame) or are_numbers(X):
        return ""
    name, kind = next((name, kind) for name, kind in X.dtypes.items() if not pd.api.types.is_numeric_dtype(kind))
    if kind.kind in "mM":
        return f" (column {name!r} holds dates or times; give numbers, such as days since a date, or leave it out)"
    return f" (column {name!r} holds no numbers; leave it out, or encode it in a Pipeline, with OneHotEncoder)"


def predict(reference: Any, X: Any) -> AnyArray:
    """What a trained model predicts for rows."""
    try:
        with caught_warnings():
            return np.asarray(reference.predict(X)).ravel()
    except Exception as error:
        name = on_one_line(reference)
        raise InvalidArgumentError(f"model {name} cannot predict, though it could be trained: {error}") from error


def check_decisions(reference: Any, score: str) -> None:
    """Refuse a classifier without probabilities whose decisions are not one number per class."""
    name = type(final_step(reference)).__name__
    if hasattr(reference, "predict_proba"):
        return
    if not hasattr(reference, "decision_function"):
        raise InvalidArgumentError(
            f"score {score!r} needs predict_proba or decision_function, which {name} does not have; "
            "use score='accuracy'."
        )
    n_classes = len(reference.classes_)
    if n_classes > 2 and getattr(final_step(reference), "decision_function_shape", "ovr") == "ovo":
        raise InvalidArgumentError(
            f"score {score!r} needs one decision value for each of the {n_classes} classes, {name} gives one for each "
            "pair; set decision_function_shape='ovr', or use score='accuracy'."
        )


def on_one_line(estimator: Any) -> str:
    """An estimator's settings on one line; of those of XGBoost, which lists all, the ones that are not open."""
    if library_of(estimator) == "xgboost":
        given = {name: value for name, value in estimator.get_params(deep=False).items() if not _is_open(value)}
        return f"{type(estimator).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"
    if type(estimator) is Pipeline and library_of(final_step(estimator)) == "xgboost":
        steps = (f"({name!r}, {on_one_line(step)})" for name, step in estimator.steps)
        return f"Pipeline(steps=[{', '.join(steps)}])"
    return " ".join(repr(estimator).split())


def _is_open(value: Any) -> bool:
    return value is None or (isinstance(value, float) and bool(np.isnan(value)))
