"""What mending a table does to a model: its score before and after, on rows that stayed the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.data.preparing import labels_of
from localshapley.data.rows import known_table
from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.models.estimator_checks import predict, takes_kernel, train_reference
from localshapley.models.input_checks import check
from localshapley.models.skill import NAMES, stderr_of_mean


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
    own_before, own_after : float
        Each on all rows of its own table, with the labels there. Rows that are hard to predict, and got the label that
        a model suggests or were dropped, make the second higher, whether that was right or not.
    """

    score: str
    before: float
    after: float
    stderr: float
    n_tests: int
    own_before: float
    own_after: float

    def __str__(self) -> str:
        gain = f"{self.after - self.before:+.3f} (standard error {self.stderr:.3f})"
        if self.after == self.before and self.stderr == 0:
            gain = "the same on every row"
        return "\n".join(
            [
                f"held-out {NAMES[self.score]} before and after: {self._in_words()}",
                f"  on the {self.n_tests:,} rows that did not change: {self.before:.3f}, {self.after:.3f}: {gain}",
                f"  on all rows of each table: {self.own_before:.3f}, {self.own_after:.3f} (higher in any case, if new "
                "labels are what a model suggests)",
            ]
        )

    def _in_words(self) -> str:
        gain = self.after - self.before
        if abs(gain) <= 2 * self.stderr:
            return "no difference beyond two standard errors"
        return "better" if gain > 0 else "worse"


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
    numbers = task.classes is None
    fair, was, now = list[Floats](), list[Floats](), list[Floats]()
    for train, test in checked.folds:
        held, left = _safe_indexing(task.X, test), train[is_left[train]]
        if not len(left):
            raise LocalShapleyError("the decisions leave no row of a fold to train on; drop fewer rows.")
        before, after = (
            predict_held_out(estimator, task.X, y, rows, held, seed) for rows, y in ((train, old), (left, new))
        )
        same, stays = is_same[test], is_left[test]
        guess = old[train].mean() if numbers else None
        fair.append(losses_of(old[test][same], [before[same], after[same]], guess))
        was.append(losses_of(old[test], [before], guess))
        now.append(losses_of(new[test][stays], [after[stays]], new[left].mean() if numbers else None))
    if not is_same.any():
        raise LocalShapleyError("every row was changed; none is left to score the model on.")
    (one, two), (first,), (second,) = (_in_shares(np.hstack(losses), numbers) for losses in (fair, was, now))
    return ScoreChange(
        score="r2" if numbers else "accuracy",
        before=1 - float(one.mean()),
        after=1 - float(two.mean()),
        stderr=stderr_of_mean(one - two),
        n_tests=len(one),
        own_before=1 - float(first.mean()),
        own_after=1 - float(second.mean()),
    )


def _both(labels: pd.Series, mended: pd.Series) -> tuple[AnyArray, AnyArray]:
    """Old and new labels of one type."""
    found, _ = labels_of(pd.concat([labels.astype(object), mended.astype(object)], ignore_index=True).infer_objects())
    return found[: len(labels)], found[len(labels) :]


def predict_held_out(estimator: Any, X: Any, y: AnyArray, rows: Ints, held: Any, seed: int) -> AnyArray:
    """What the model predicts after training on some rows; the one class that they have, if they have one."""
    if is_classifier(estimator) and (y[rows] == y[rows][0]).all():
        return np.full(held.shape[0], y[rows][0])
    return predict(train_reference(estimator, _safe_indexing(X, rows), y[rows], seed), held)


def losses_of(truth: AnyArray, predictions: list[AnyArray], guess: float | None) -> Floats:
    """Losses of the predictions, and of a constant guess for numbers, as the rows of a matrix."""
    if guess is None:
        return np.array([predicted != truth for predicted in predictions], dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.array([(truth - predicted) ** 2 for predicted in (*predictions, np.full(len(truth), guess))])
    if not np.isfinite(squares).all():
        raise InvalidArgumentError("y holds numbers, or model predicts some, whose squares are too large to compare.")
    return squares


def _in_shares(losses: Floats, numbers: bool) -> Floats:
    """Losses of predictions; squared errors as shares of the mean of those of the guess, which is the last row."""
    return losses[:-1] / (float(losses[-1].mean()) or 1.0) if numbers else losses
