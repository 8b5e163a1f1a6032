"""What it is worth to mend a table: the model trained on it as it is, without suspected rows, with other labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.audit.label_noise_models import filled, noise_scores
from localshapley.data.columns import count_of, table
from localshapley.data.folds import Fold
from localshapley.data.indexes import index_of
from localshapley.data.preparing import labels_of
from localshapley.data.rows import known_table
from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.models.estimator_checks import predict, takes_kernel, train_reference
from localshapley.models.input_checks import CheckedInput, check
from localshapley.models.skill import INTERVAL, NAMES, stderr_of_mean
from localshapley.runtime.argument_checks import check_whole

N_FOLDS = 5
"""Folds that decide where no number of folds is given."""
SAME = "stays the same"
"""What is said of a score where no held-out row is predicted better or worse."""


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
        Standard errors of the differences from `before`, over the held-out rows: what others of them would change. They
        do not include what other training rows would change.
    n_tests : int
        Number of held-out rows.
    apart : bool
        Whether the held-out rows had no part in finding the suspects; if they had, gains look larger than they are.
    unsuspected : Mending or None
        The same on the held-out rows that are not suspected themselves, where some are.
    """

    score: str
    before: float
    dropped: float
    dropped_stderr: float
    relabelled: float
    relabelled_stderr: float
    n_tests: int
    apart: bool = False
    unsuspected: Mending | None = None

    @property
    def gains(self) -> dict[str, tuple[float, float, float]]:
        """How the score changes if suspects are ``"dropped"`` or ``"relabelled"``, and the ends of 95 % intervals."""
        changes = {
            "dropped": (self.dropped - self.before, INTERVAL * self.dropped_stderr),
            "relabelled": (self.relabelled - self.before, INTERVAL * self.relabelled_stderr),
        }
        return {name: (gain, gain - half, gain + half) for name, (gain, half) in changes.items()}

    @property
    def is_measurable(self) -> bool:
        """Whether the interval of one of the changes does not hold 0."""
        return any(low > 0 or high < 0 for _, low, high in self.gains.values())

    @property
    def sentence(self) -> str:
        """What the list is worth, for a reader who decides whether to act on it."""
        drop, relabel = (self._in_words(*gain) for gain in self.gains.values())
        nothing = "" if self.is_measurable else "acting on the list makes no measurable difference: "
        if drop == relabel == SAME:
            changes = f"{SAME} without these rows and with the suggested labels"
        else:
            relabel = relabel.removeprefix("changes ") if drop != SAME else relabel
            changes = f"{drop} without these rows, and {relabel} with the suggested labels"
        rows = f"{self.n_tests:,} held-out rows that had {'no' if self.apart else 'a'} part in finding them"
        return f"{nothing}{NAMES[self.score]} {changes}, on {rows}"

    def _in_words(self, gain: float, low: float, high: float) -> str:
        """A change with its interval, in as many digits as show it: of accuracies in points, a hundredth each."""
        if gain == 0 and low == high:
            return SAME
        scale, decimals, unit = (100, 1, " points") if self.score == "accuracy" else (1, 3, "")
        smallest = scale * min(abs(x) for x in (low, high, high - low) if x)
        decimals = min(max(decimals, int(np.ceil(-np.log10(2 * smallest)))), decimals + 2)
        mean, start, end = (f"{scale * x:+.{decimals}f}" for x in (gain, low, high))
        unsure = ", which holds 0" if self.is_measurable and low <= 0 <= high else ""
        return f"changes by {mean}{unit} (95 % interval {start} to {end}{unsure})"

    def __str__(self) -> str:
        return (
            f"{NAMES[self.score]} {self.before:.3f} as it is, {self.dropped:.3f} without the suspects "
            f"(± {self.dropped_stderr:.3f}), {self.relabelled:.3f} with the suggested labels "
            f"(± {self.relabelled_stderr:.3f}); ± is one standard error of the change"
        )


def mending(
    X: Any,
    y: Any,
    suspects: pd.DataFrame,
    X_test: Any = None,
    y_test: Any = None,
    *,
    model: Any,
    cv: Any = None,
    seed: int = 0,
) -> Mending:
    """Train the model without the suspects, and with their suggested labels, and score both on held-out rows.

    This takes three trainings, or three for each fold. Held-out rows keep their labels: where some are wrong, a right
    prediction counts as an error.

    Rows that the suspects were found with flatter the result: rows are suspected because they disagree with others, and
    a model does better on those others without them, whether they are right or wrong. Give test rows that had no part
    in it, or use `worth_mending`.

    Parameters
    ----------
    X, y : table of shape (n_rows, n_features), and labels
        The rows among which the suspects were found.
    suspects : DataFrame
        The `table` of `label_errors`, or some rows of it: the names of the rows, and the column `suggested`.
    X_test, y_test, model, cv, seed
        As in `value`: rows to score on, or folds, and what to train.

    Returns
    -------
    Mending

    Examples
    --------
    >>> import localshapley as ls
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> y[:12] = (y[:12] + 1) % 3
    >>> found = ls.audit.label_errors(X, y)
    >>> m = ls.audit.mending(X, y, found.table, X_test, y_test, model="tree")
    >>> m.dropped > m.before
    True
    """
    trial = _Trial(check(X, y, X_test, y_test, model=model, cv=cv, seed=seed), y_test)
    places = _places(index_of(known_table(X), y), len(trial.y), suspects)
    splits = trial.splits()
    losses = [trial.losses(train, held, places, suspects["suggested"]) for train, held in splits]
    is_suspected = np.isin(_held(splits), places) & trial.by_folds
    return _compared(np.hstack(losses), trial.score, is_suspected, apart=False)


def worth_mending(
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    model: Any,
    cv: Any = None,
    n: float | None = None,
    features: Any = None,
    seed: int = 0,
) -> Mending:
    """Measure what it is worth to act on a list of suspects, on rows that have no part in finding them.

    Suspects are found as `label_errors` finds them, in the training rows alone; test rows have no part in it. With
    `cv` they are found anew in the rows outside each fold, as if the fold were not there. The model is trained on these
    rows as they are, without the suspects, and with the suggested labels, and scored on the held-out rows: three
    trainings, or three for each fold.

    With `cv` the lists differ a little from the list of all rows, so this measures the way of finding suspects more
    than one list. Held-out rows keep their labels: where some are wrong, a right prediction counts as an error, and
    gains look smaller than they are. On rows that are not suspected (`unsuspected`) they look larger than they are.

    Parameters
    ----------
    X, y, X_test, y_test, model, seed
        As in `value`.
    cv : int or "oob", optional
        As in `value`, in place of test rows; with ``"oob"``, five folds decide.
    n : int or float, optional
        How many suspects to act on (an int), or which share of all rows (a float up to 1.0); by default those that
        `label_errors` lists.
    features : table of shape (n_rows, n_features), optional
        The rows to find suspects by, if these are to be others than `X`, such as ``pipeline[:-1].fit_transform(X)``.
        Tables with words or gaps are prepared as in `label_errors`.

    Returns
    -------
    Mending

    Examples
    --------
    >>> import localshapley as ls
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> y[:25] = (y[:25] + 1) % 3
    >>> worth = ls.audit.worth_mending(X, y, X_test, y_test, model=KNeighborsClassifier(1))
    >>> print(worth.sentence)
    accuracy changes by +22.2 points (95 % interval +9.9 to +34.5) without these rows, and by +26.7 points (95 % \
interval +13.6 to +39.7) with the suggested labels, on 45 held-out rows that had no part in finding them
    """
    if cv is not None and cv != "oob":
        check_whole("cv", cv, least=2)
    trial = _Trial(check(X, y, X_test, y_test, model=model, cv=N_FOLDS if cv == "oob" else cv, seed=seed), y_test)
    given = ("X", X) if features is None else ("features", features)
    numbers = filled(table(*given, len(trial.y))[0])
    share = None if n is None else count_of(n, len(trial.y)) / len(trial.y)
    splits, losses, times_listed = trial.splits(), [], np.zeros(len(trial.y))
    for train, held in splits:
        scores = noise_scores(numbers[train], trial.y[train], regression=not trial.classifies, seed=seed)
        if scores is None:
            raise InvalidArgumentError(
                "there must be at least 20 rows outside each fold, and two classes of five rows, to find suspects in; "
                f"got {len(train)} rows. Use mending with the suspects of all rows."
            )
        listed = scores.listed(None if share is None else round(share * len(train)))
        times_listed[train[listed]] += 1 / max(len(splits) - 1, 1)
        losses.append(trial.losses(train, held, train[listed], pd.Series(scores.suggested[listed])))
    is_suspected = (times_listed[_held(splits)] >= 0.5) if trial.by_folds else np.zeros(len(trial.truth), dtype=bool)
    return _compared(np.hstack(losses), trial.score, is_suspected, apart=True)


def _places(names: pd.Index | None, n_rows: int, suspects: pd.DataFrame) -> Ints:
    """Positions of the suspects among the rows."""
    names = pd.RangeIndex(n_rows) if names is None else names
    places = names.get_indexer(suspects.index) if names.is_unique else np.array([-1])
    if not len(suspects) or (places < 0).any():
        raise InvalidArgumentError("suspects must hold rows of X under unique names, and at least one.")
    return np.asarray(places, dtype=np.int64)


class _Trial:
    """Trains the model on rows as they are, without suspects and with other labels, and scores it on held-out rows."""

    def __init__(self, checked: CheckedInput, y_test: Any) -> None:
        if takes_kernel(checked.model.estimator):
            raise InvalidArgumentError(
                "model takes a precomputed kernel, which mending does not; give rows of features."
            )
        task = checked.task
        self.estimator, self.seed, self.folds = checked.model.estimator, task.seed, checked.folds
        self.X, self.y, self.classifies = task.X, task.y, task.classes is not None
        self.by_folds = checked.folds is not None
        self.X_held, self.truth = (task.X, task.y) if self.by_folds else (task.X_test, np.asarray(y_test).ravel())
        self.score = "accuracy" if self.classifies else "r2"

    def splits(self) -> list[Fold]:
        """Rows to train on and rows to predict: the folds, or all rows and all test rows."""
        return [(np.arange(len(self.y)), np.arange(len(self.truth)))] if self.folds is None else self.folds

    def losses(self, train: Ints, held: Ints, suspected: Ints, suggested: pd.Series) -> Floats:
        """Losses on held-out rows as it is, dropped and relabelled, and of a constant guess for numbers."""
        kept = np.setdiff1d(train, suspected)
        if not len(kept):
            raise InvalidArgumentError("suspects hold all rows to train on; give the most suspicious ones, n=20.")
        mended = self.y.copy() if self.classifies else self.y.astype(np.float64)
        known = suggested.notna().to_numpy()
        mended[suspected[known]] = suggested.to_numpy()[known].astype(mended.dtype)
        trainings = ((train, self.y), (kept, self.y), (train, mended))
        X_held = _safe_indexing(self.X_held, held)
        predictions = [predict_held_out(self.estimator, self.X, y, rows, X_held, self.seed) for rows, y in trainings]
        return losses_of(self.truth[held], predictions, None if self.classifies else float(self.y[train].mean()))


def _held(splits: list[Fold]) -> Ints:
    return np.concatenate([held for _, held in splits])


def _compared(losses: Floats, score: str, is_suspected: AnyArray, *, apart: bool) -> Mending:
    scale = 1.0 if score == "accuracy" else float(losses[-1].mean()) or 1.0
    before, dropped, relabelled = losses[:3] / scale
    some = is_suspected.any() and not is_suspected.all()
    clear = ~is_suspected
    return Mending(
        score=score,
        before=1 - float(before.mean()),
        dropped=1 - float(dropped.mean()),
        dropped_stderr=stderr_of_mean(before - dropped),
        relabelled=1 - float(relabelled.mean()),
        relabelled_stderr=stderr_of_mean(before - relabelled),
        n_tests=len(before),
        apart=apart,
        unsuspected=_compared(losses[:, clear], score, is_suspected[clear], apart=apart) if some else None,
    )


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
