"""How boosting libraries fill their leaves: losses, gradients and hessians, rates and penalties."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.errors import InvalidArgumentError
from localshapley.runtime.boosting_libraries import library_of

LEAST_HESSIAN = 1e-16
_FAMILIES = {
    GradientBoostingClassifier: "scikit-learn",
    GradientBoostingRegressor: "scikit-learn",
    HistGradientBoostingClassifier: "histograms",
    HistGradientBoostingRegressor: "histograms",
}


def family_of(model: Any) -> str:
    """Whose boosting a model is, if its leaves can be refilled; else empty."""
    family = _FAMILIES.get(type(model), library_of(model))
    return "" if family == "catboost" else family


@dataclass(frozen=True)
class LeafRule:
    """What a leaf predicts: `rate · Σg / (ridge + Σh)` over its rows, for the loss at what the trees before it predict.

    Attributes
    ----------
    loss : "squared", "logistic", "exponential" or "softmax"
    start : array of shape (n_outputs,)
        What is predicted without any tree.
    rate, ridge : float
    gradient_scale, hessian_scale : float
        Factors that libraries put before those of the loss, for several classes.
    silent_below : float
        A tree that was not split predicts nothing if the hessians of all rows add up to less than this.
    """

    loss: str
    start: Floats
    rate: float
    ridge: float = 0.0
    gradient_scale: float = 1.0
    hessian_scale: float = 1.0
    silent_below: float = 0.0

    def derivatives(self, y: AnyArray, raw: Floats) -> tuple[Floats, Floats]:
        """Negative gradients, and hessians, of the loss: arrays of shape (n_rows, n_outputs).

        Parameters
        ----------
        y : numbers, or class codes
        raw : array of shape (n_rows, n_outputs)
        """
        if self.loss == "squared":
            return y[:, None] - raw, np.ones(raw.shape)
        if self.loss == "exponential":
            sign = 2.0 * y[:, None] - 1
            h = np.exp(-sign * raw)
            return sign * h, np.maximum(h, LEAST_HESSIAN)
        if self.loss == "logistic":
            p = 1 / (1 + np.exp(-raw))
            g = y[:, None] - p
        else:
            p = np.exp(raw - raw.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            g = (y[:, None] == np.arange(raw.shape[1])) - p
        return self.gradient_scale * g, np.maximum(self.hessian_scale * p * (1 - p), LEAST_HESSIAN)


def recipe_of(model: Any, y: AnyArray) -> LeafRule:
    """How a fitted model fills its leaves.

    Parameters
    ----------
    model : boosted trees
    y : numbers, or class codes 0, 1, ... without gaps
    """
    reader = {
        "scikit-learn": _of_scikit_learn,
        "histograms": _of_histograms,
        "xgboost": _of_xgboost,
        "lightgbm": _of_lightgbm,
    }
    return reader[family_of(model)](model, y)


def margins_of(model: Any, X: Any) -> Floats:
    """What a fitted model predicts before it turns margins into probabilities, one column for each output."""
    family = family_of(model)
    if family == "xgboost":
        found = model.predict(X, output_margin=True)
    elif family == "lightgbm":
        found = model.predict(X, raw_score=True)
    else:
        found = model.decision_function(X) if is_classifier(model) else model.predict(X)
    return np.asarray(found, dtype=np.float64).reshape(X.shape[0], -1)


def _of_scikit_learn(model: Any, y: AnyArray) -> LeafRule:
    losses = {"squared_error": "squared", "log_loss": _by_classes(y), "exponential": "exponential"}
    loss = _known(model, "loss", losses)
    start = _average(loss, y)
    if model.init == "zero":
        start = np.zeros_like(start)
    elif model.init is not None:
        raise _refused(model, f"init={model.init!r}", "init=None")
    n_outputs = len(start)
    scale = (n_outputs - 1) / n_outputs if loss == "softmax" else 1.0
    return LeafRule(loss, start, float(model.learning_rate), gradient_scale=scale)


def _of_histograms(model: Any, y: AnyArray) -> LeafRule:
    loss = _known(model, "loss", {"squared_error": "squared", "log_loss": _by_classes(y)})
    rate, ridge = float(model.learning_rate), float(model.l2_regularization)
    return LeafRule(loss, _average(loss, y), rate, ridge, silent_below=np.inf)


def _of_xgboost(model: Any, y: AnyArray) -> LeafRule:
    try:
        learner = json.loads(model.get_booster().save_config())["learner"]
        return _of_learner(model, learner, y)
    except KeyError as error:
        raise _refused(model, f"this version of XGBoost, whose settings lack {error}", "version 3.2") from error


def _of_learner(model: Any, learner: Any, y: AnyArray) -> LeafRule:
    """From what XGBoost writes of its settings."""
    booster, settings = learner["gradient_booster"], learner["gradient_booster"].get("tree_train_param", {})
    given = model.get_xgb_params()
    _check(model, {"booster": booster["name"]}, booster="gbtree")
    _check(model, given, num_parallel_tree=1, scale_pos_weight=1)
    _check(
        model, {name: float(settings[name]) for name in ("reg_alpha", "max_delta_step")}, reg_alpha=0, max_delta_step=0
    )
    losses = {"reg:squarederror": "squared", "binary:logistic": "logistic", "multi:softprob": "softmax"}
    loss = _one_of(model, "objective", learner["objective"]["name"], losses)
    start = np.array(json.loads(f"[{learner['learner_model_param']['base_score'].strip('[]')}]"), dtype=np.float64)
    if loss == "logistic":
        start = np.log(start / (1 - start))
    if loss == "softmax":
        start = np.broadcast_to(start, y.max() + 1)
    rate, ridge = float(settings["learning_rate"]), float(settings["reg_lambda"])
    scale, least = 2.0 if loss == "softmax" else 1.0, float(settings["min_child_weight"])
    return LeafRule(loss, start, rate, ridge, hessian_scale=scale, silent_below=least)


def _of_lightgbm(model: Any, y: AnyArray) -> LeafRule:
    given = model.get_params()
    if model.boosting_type != "gbrt":  # which is another name for it
        _check(model, given, boosting_type="gbdt")
    _check(model, given, class_weight=None, scale_pos_weight=1, is_unbalance=False)
    _check(model, given, reg_alpha=0, lambda_l1=0, max_delta_step=0, path_smooth=0, linear_tree=False)
    losses = {"regression": "squared", "binary": "logistic", "multiclass": "softmax"}
    loss = _one_of(model, "objective", model.objective_, losses)
    start = _average(loss, y)
    scale = len(start) / (len(start) - 1) if loss == "softmax" else 1.0
    rate, ridge = float(model.learning_rate), float(model.reg_lambda)
    return LeafRule(loss, start, rate, ridge, hessian_scale=scale, silent_below=np.inf)


def _by_classes(y: AnyArray) -> str:
    return "softmax" if y.max() > 1 else "logistic"


def _average(loss: str, y: AnyArray) -> Floats:
    """The constant with the least loss."""
    if loss == "squared":
        return np.array([y.mean()])
    counts: Ints = np.bincount(y.astype(np.int64))
    logs = np.log(counts / len(y))
    if loss == "softmax":
        return logs
    odds = logs[1:] - logs[:1]
    return odds / 2 if loss == "exponential" else odds


def _known(model: Any, setting: str, losses: dict[str, str]) -> str:
    return _one_of(model, setting, getattr(model, setting), losses)


def _one_of(model: Any, setting: str, value: Any, losses: dict[str, str]) -> str:
    if value not in losses:
        raise _refused(model, f"{setting}={value!r}", f"one of {', '.join(losses)}")
    return losses[value]


def _check(model: Any, given: dict[str, Any], **wanted: Any) -> None:
    """Refuse a setting that would have leaves filled otherwise; one that is not given, or None, is as it should be."""
    for name, value in wanted.items():
        if given.get(name) is not None and given[name] != value:
            raise _refused(model, f"{name}={given[name]!r}", f"{name}={value!r}")


def _refused(model: Any, what: str, instead: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"models.Fixed cannot refill the leaves of {type(model).__name__} with {what}; it can with {instead}. Give the "
        "model without Fixed to have its coalitions trained."
    )
