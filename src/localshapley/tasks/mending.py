"""What it would bring to mend suspected labels: the model trained without them, and with other labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.errors import InvalidArgumentError
from localshapley.inputs.model import predict, takes_kernel, train_reference
from localshapley.problem.checking import check
from localshapley.valuation import Valuation
from localshapley.valuation.columns import ids_of
from localshapley.valuation.matching import rows_and_labels
from localshapley.valuation.skill import NAMES, stderr_of_mean


@dataclass(frozen=True)
class Mending:
    """Held-out scores of the model before and after suspects are mended.

    Attributes
    ----------
    score : {"accuracy", "r2"}
    before : float
        With all rows as they are.
    dropped, relabelled : float
        Without the suspects, and with their suggested labels.
    dropped_stderr, relabelled_stderr : float
        Standard errors of the differences from `before`, over the test rows.
    n_tests : int
    """

    score: str
    before: float
    dropped: float
    dropped_stderr: float
    relabelled: float
    relabelled_stderr: float
    n_tests: int

    def __str__(self) -> str:
        return (
            f"{NAMES[self.score]} {self.before:.3f} as it is, {self.dropped:.3f} without the suspects "
            f"(± {self.dropped_stderr:.3f}), {self.relabelled:.3f} with the suggested labels "
            f"(± {self.relabelled_stderr:.3f})"
        )


def mending(
    valuation: Valuation,
    found: pd.DataFrame,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    model: Any,
    cv: Any = None,
    seed: int = 0,
) -> Mending:
    """Train the model without the suspects, and with their suggested labels, and score both on held-out rows.

    This takes three trainings, or three for each fold. Test rows keep their labels. With `cv` suspects are among them:
    where their labels are wrong, a model that is right there counts as wrong, and the gain is larger than it looks.
    Test rows that the suspects were found with flatter the result a little; use others if you have them.

    Parameters
    ----------
    valuation : Valuation
    found : DataFrame
        From `suspects`.
    X, y, X_test, y_test, model, cv, seed
        As in `value`: the rows that were valued, and rows to score on.

    Returns
    -------
    Mending

    Examples
    --------
    >>> import localshapley as ls
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> y[:20] = (y[:20] + 1) % 3
    >>> v = ls.value(X, y, X_test, y_test, model="tree")
    >>> found = ls.tasks.suspects(v, y, X=X)
    >>> m = ls.tasks.mending(v, found, X, y, X_test, y_test, model="tree")
    >>> m.dropped > m.before
    True
    """
    places = _places(valuation, found)
    X, labels = rows_and_labels(valuation, X, y)
    checked = check(X, labels, X_test, y_test, model=model, cv=cv, seed=seed)
    estimator = checked.model.estimator
    if takes_kernel(estimator):
        raise InvalidArgumentError("model takes a precomputed kernel, which mending does not; give rows of features.")
    mended = labels.astype(np.float64) if checked.task.classes is None else labels.copy()
    known = found["suggested"].notna().to_numpy()
    mended[places[known]] = found["suggested"].to_numpy()[known].astype(mended.dtype)
    left = np.setdiff1d(np.arange(len(labels)), places)
    task, losses = checked.task, []
    for train, X_held, truth in _parts(checked.folds, task.X, labels, (task.X_test, y_test)):
        kept = np.intersect1d(train, left)
        if not len(kept):
            raise InvalidArgumentError("found holds all rows to train on; give the most suspicious ones, n=20.")
        trainings = ((train, labels), (kept, labels), (train, mended))
        predictions = [_predictions(estimator, task.X, y, rows, X_held, seed) for rows, y in trainings]
        losses.append(_losses(truth, predictions, labels[train] if checked.task.classes is None else None))
    return _compared(np.hstack(losses), "r2" if task.classes is None else "accuracy")


def _places(valuation: Valuation, found: pd.DataFrame) -> Ints:
    """Positions of the suspects among the rows."""
    ids = ids_of(valuation)
    places = ids.get_indexer(found.index) if ids.is_unique else np.array([-1])
    if not len(found) or (places < 0).any():
        raise InvalidArgumentError("found must hold rows of the valuation under unique names, and at least one.")
    return np.asarray(places, dtype=np.int64)


def _parts(folds: Any, X: Any, y: AnyArray, tests: tuple[Any, Any]) -> Iterator[tuple[Ints, Any, AnyArray]]:
    """Rows to train on, rows to predict and what is true there."""
    if folds is None:
        yield np.arange(len(y)), tests[0], np.asarray(tests[1])
        return
    for train, test in folds:
        yield train, _safe_indexing(X, test), y[test]


def _predictions(estimator: Any, X: Any, y: AnyArray, rows: Ints, X_held: Any, seed: int) -> AnyArray:
    """What the model predicts after training on some rows; the one class that they have, if they have one."""
    if is_classifier(estimator) and (y[rows] == y[rows][0]).all():
        return np.full(X_held.shape[0], y[rows][0])
    return predict(train_reference(estimator, _safe_indexing(X, rows), y[rows], seed), X_held)


def _losses(truth: AnyArray, predictions: list[AnyArray], numbers: AnyArray | None) -> Floats:
    """Losses of the predictions, and of a constant guess for numbers, as the rows of a matrix."""
    if numbers is None:
        return np.array([predicted != truth for predicted in predictions], dtype=np.float64)
    guess = np.full(len(truth), numbers.mean())
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.array([(truth - predicted) ** 2 for predicted in (*predictions, guess)])
    if not np.isfinite(squares).all():
        raise InvalidArgumentError("y holds numbers, or model predicts some, whose squares are too large to compare.")
    return squares


def _compared(losses: Floats, score: str) -> Mending:
    scale = 1.0 if score == "accuracy" else float(losses[-1].mean()) or 1.0
    before, dropped, relabelled = losses[:3] / scale
    return Mending(
        score=score,
        before=1 - float(before.mean()),
        dropped=1 - float(dropped.mean()),
        dropped_stderr=stderr_of_mean(before - dropped),
        relabelled=1 - float(relabelled.mean()),
        relabelled_stderr=stderr_of_mean(before - relabelled),
        n_tests=len(before),
    )
