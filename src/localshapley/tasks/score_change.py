"""What mending a table does to a model: its score before and after, on rows that stayed the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.inputs.data import known_table
from localshapley.inputs.model import predict, takes_kernel, train_reference
from localshapley.inputs.preparing import labels_of
from localshapley.problem.checking import check
from localshapley.valuation.skill import NAMES, stderr_of_mean


@dataclass(frozen=True)
class ScoreChange:
    """Held-out scores of a model with a table as it was, and as it is mended.

    Attributes
    ----------
    score : {"accuracy", "r2"}
    before, after : float
        Trained on the rows as they were, and on the mended rows.
    stderr : float
        Standard error of their difference, over the test rows.
    n_tests : int
        Rows that both were scored on: those that the decisions left as they were.
    """

    score: str
    before: float
    after: float
    stderr: float
    n_tests: int

    def __str__(self) -> str:
        return (
            f"{NAMES[self.score]} {self.before:.3f} before, {self.after:.3f} after: {self.after - self.before:+.3f} "
            f"(standard error {self.stderr:.3f}), on the {self.n_tests:,} rows that did not change, held out in turn"
        )


def score_change(X: Any, labels: pd.Series, mended: pd.Series, *, model: Any, cv: Any, seed: int) -> ScoreChange:
    """Train on both labels and score on the same held-out rows: those whose label is the same in both.

    Parameters
    ----------
    X : table
        What the model gets of each row, or of each row that has a label.
    labels : Series
        As they were; rows without a label are left out.
    mended : Series
        As they are now, missing where a row was dropped.
    model, cv, seed
        As in `value`.
    """
    X, there = known_table(X), np.flatnonzero(labels.notna())
    if X.shape[0] == len(labels):
        X = _safe_indexing(X, there)
    if X.shape[0] != len(there):
        raise InvalidArgumentError(
            f"X has {X.shape[0]} rows, but the table had {len(labels)}; give those of the table as it was."
        )
    is_left = mended.iloc[there].notna().to_numpy()
    old, new = _both(labels.iloc[there], mended.iloc[there].where(is_left, labels.iloc[there]))
    is_same = is_left & (old == new)
    checked = check(X, old, None, None, model=model, cv=cv, seed=seed)
    estimator, task = checked.model.estimator, checked.task
    if takes_kernel(estimator) or checked.folds is None:
        raise InvalidArgumentError("check needs a model of features and a number of folds, such as cv=5.")
    losses = []
    for train, test in checked.folds:
        same = test[is_same[test]]
        if len(same):
            held, ways = _safe_indexing(task.X, same), ((train, old), (train[is_left[train]], new))
            predictions = [_predictions(estimator, task.X, y, rows, held, seed) for rows, y in ways]
            losses.append(_losses(old[same], predictions, None if task.classes is not None else old[train]))
    if not losses:
        raise LocalShapleyError("every row was changed; none is left to score the model on.")
    return _compared(np.hstack(losses), "r2" if task.classes is None else "accuracy")


def _both(labels: pd.Series, mended: pd.Series) -> tuple[AnyArray, AnyArray]:
    """Old and new labels of one type."""
    found, _ = labels_of(pd.concat([labels.astype(object), mended.astype(object)], ignore_index=True).infer_objects())
    return found[: len(labels)], found[len(labels) :]


def _predictions(estimator: Any, X: Any, y: AnyArray, rows: Ints, held: Any, seed: int) -> AnyArray:
    """What the model predicts after training on some rows; the one class that they have, if they have one."""
    if not len(rows):
        raise LocalShapleyError("the decisions leave no row of a fold to train on; drop fewer rows.")
    if is_classifier(estimator) and (y[rows] == y[rows][0]).all():
        return np.full(held.shape[0], y[rows][0])
    return predict(train_reference(estimator, _safe_indexing(X, rows), y[rows], seed), held)


def _losses(truth: AnyArray, predictions: list[AnyArray], numbers: AnyArray | None) -> Floats:
    """Losses of the predictions, and of a constant guess for numbers, as the rows of a matrix."""
    if numbers is None:
        return np.array([predicted != truth for predicted in predictions], dtype=np.float64)
    return np.array([(truth - predicted) ** 2 for predicted in (*predictions, np.full(len(truth), numbers.mean()))])


def _compared(losses: Floats, score: str) -> ScoreChange:
    scale = 1.0 if score == "accuracy" else float(losses[-1].mean()) or 1.0
    before, after = losses[:2] / scale
    difference = stderr_of_mean(before - after)
    return ScoreChange(score, 1 - float(before.mean()), 1 - float(after.mean()), difference, len(before))
