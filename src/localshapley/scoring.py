"""Scores `g_t`: how good a model's prediction for one test row is; more is better.

A classifier's prediction is a matrix of one column per class: probabilities, or, for `accuracy`, a one at the
predicted class. A model that has learnt nothing predicts the same in every column, and one that has learnt a single
class a one in its column, so these conventions need no special cases.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from localshapley.arrays import AnyArray, Floats
from localshapley.errors import InvalidArgumentError, TrainingError, unknown_name

__all__ = ["AbsoluteError", "Accuracy", "Confidence", "Custom", "LogLoss", "Margin", "Score", "SquaredError"]

Source: TypeAlias = Literal["label", "proba", "margin", "number"]
"""What a score reads: one-hot predicted labels, probabilities, margins per class, or a regressor's number."""


class Score(ABC):
    """A score of predictions for test rows."""

    name: ClassVar[str]
    task: ClassVar[str]  # "classifier" or "regressor"
    source: ClassVar[Source]

    @abstractmethod
    def __call__(self, y: AnyArray, prediction: Floats) -> Floats:
        """Score each test row.

        Parameters
        ----------
        y : array of shape (n,)
            Class codes (negative for a class that no training row has) or, for regression, numbers.
        prediction : array of shape (n, n_classes) or, for regression, (n,)
        """


def _of_true_class(y: AnyArray, prediction: Floats) -> Floats:
    found: Floats = np.where(y >= 0, prediction[np.arange(len(y)), np.maximum(y, 0)], 0.0)
    return found


class Confidence(Score):
    """Probability of the true class; 1/classes for the empty coalition."""

    name, task, source = "confidence", "classifier", "proba"

    def __call__(self, y: AnyArray, prediction: Floats) -> Floats:
        return _of_true_class(y, prediction)


class Accuracy(Score):
    """1 where the predicted class is the true one, else 0; 1/classes for the empty coalition."""

    name, task, source = "accuracy", "classifier", "label"

    def __call__(self, y: AnyArray, prediction: Floats) -> Floats:
        return _of_true_class(y, prediction)


class Margin(Score):
    """Score of the true class less the best of the others, from −1 to 1 for probabilities.

    Read from `predict_proba`, or from `decision_function` where there are no probabilities: a class that the
    coalition lacks then counts as the worst of those that it has, and one class alone as ±1.
    """

    name, task, source = "margin", "classifier", "margin"

    def __call__(self, y: AnyArray, prediction: Floats) -> Floats:
        others = prediction.copy()
        known = np.flatnonzero(y >= 0)
        others[known, y[known]] = -np.inf
        # A class that no row has is no better than the worst class, and no better than 0.
        own = np.where(y >= 0, _of_true_class(y, prediction), np.minimum(prediction.min(axis=1), 0.0))
        result: Floats = own - others.max(axis=1)
        return result


@dataclass(frozen=True)
class LogLoss(Score):
    """Reduction of the log loss against the empty model: `log p(true class) − log(1/classes)`.

    Probabilities are raised to at least `floor`; otherwise one confident error would outweigh everything else.
    """

    floor: float = 1e-6
    name, task, source = "log_loss", "classifier", "proba"

    def __call__(self, y: AnyArray, prediction: Floats) -> Floats:
        own = _of_true_class(y, prediction)
        reduction: Floats = np.log(np.maximum(own, self.floor)) + np.log(prediction.shape[1])
        return reduction


class SquaredError(Score):
    """Squared error, negated."""

    name, task, source = "squared_error", "regressor", "number"

    def __call__(self, y: AnyArray, prediction: Floats) -> Floats:
        error: Floats = -((y - prediction) ** 2)
        return error


class AbsoluteError(Score):
    """Absolute error, negated."""

    name, task, source = "absolute_error", "regressor", "number"

    def __call__(self, y: AnyArray, prediction: Floats) -> Floats:
        error: Floats = -np.abs(y - prediction)
        return error


class Custom(Score):
    """A user's function `(y_true, prediction) -> float` of one label (or number) and its prediction.

    A classifier that has learnt nothing predicts each class equally often: the score is then the mean over
    the classes.

    Parameters
    ----------
    function : callable
    labels : tuple of arrays, optional
        The classes (codes 0, 1, ...) and the unseen labels (codes −1, −2, ...); None for regression.
    """

    def __init__(self, function: Callable[[Any, Any], float], labels: tuple[AnyArray, AnyArray] | None) -> None:
        self._function, self._labels = function, labels
        self.name = getattr(function, "__name__", type(function).__name__)  # type: ignore[misc]
        self.task = "regressor" if labels is None else "classifier"  # type: ignore[misc]
        self.source = "number" if labels is None else "label"  # type: ignore[misc]

    def __call__(self, y: AnyArray, prediction: Floats) -> Floats:
        if self._labels is None:
            return np.array([self._one(a, b) for a, b in zip(y, prediction, strict=True)], dtype=np.float64)
        classes, unseen = self._labels
        out = np.zeros(len(y))
        for i, code in enumerate(y):
            label = classes[code] if code >= 0 else unseen[-1 - code]
            for c in np.flatnonzero(prediction[i]):
                out[i] += prediction[i, c] * self._one(label, classes[c])
        return out

    def _one(self, truth: Any, prediction: Any) -> float:
        try:
            score = float(self._function(truth, prediction))
        except Exception as error:
            raise TrainingError(
                f"score function {self.name} failed for y_true={truth!r}, prediction={prediction!r}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not np.isfinite(score):
            raise TrainingError(
                f"score function {self.name} gave {score} for y_true={truth!r}, prediction={prediction!r}; "
                "it must return a finite number."
            )
        return score


SCORES: dict[str, type[Score]] = {
    kind.name: kind for kind in (Accuracy, Confidence, Margin, LogLoss, SquaredError, AbsoluteError)
}


ONE_ROW = "A score sees one test row at a time, so that scores of many rows, such as F1 and AUC, cannot work."


def resolve(
    score: str | Score | Callable[[Any, Any], float] | None,
    task: str,
    labels: tuple[AnyArray, AnyArray] | None,
    has_proba: bool,
) -> Score:
    """Turn the `score` argument into a score that fits the task.

    Parameters
    ----------
    score : the user's argument; None takes the default of the task
    task : "classifier" or "regressor"
    labels : classes and unseen labels of a classification task
    has_proba : whether the estimator gives probabilities
    """
    if score is None:
        score = "squared_error" if task == "regressor" else "confidence" if has_proba else "accuracy"
    if isinstance(score, str):
        if score not in SCORES:
            from sklearn.metrics import get_scorer_names  # heavy

            error = unknown_name("score", score, SCORES)
            raise InvalidArgumentError(f"{error} {ONE_ROW}") if score in get_scorer_names() else error
        chosen: Score = SCORES[score]()
    elif isinstance(score, Score):
        chosen = score
    elif str(getattr(score, "__module__", "")).startswith("sklearn.metrics"):
        name = getattr(score, "__name__", repr(score))
        raise InvalidArgumentError(f"score {name} is a score of many rows. {ONE_ROW} Use one of {', '.join(SCORES)}.")
    elif callable(score) and not isinstance(score, type):
        chosen = Custom(score, labels)
    else:
        raise InvalidArgumentError(
            f"score must be a name, a function (y_true, prediction) -> float or a Score; got {score!r}."
        )
    if chosen.task != task:
        fitting = sorted(name for name, kind in SCORES.items() if kind.task == task)
        raise InvalidArgumentError(
            f"score {chosen.name!r} is for a {chosen.task}, but the model is a {task}; use one of {fitting}."
        )
    return chosen
