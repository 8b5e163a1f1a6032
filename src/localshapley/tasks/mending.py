"""What it would bring to mend suspected labels: the model trained without them, and with other labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing

from localshapley.api import value
from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.errors import InvalidArgumentError, LocalShapleyWarning
from localshapley.inputs.data import known_table
from localshapley.inputs.folds import Fold, make_folds
from localshapley.inputs.model import predict, takes_kernel, train_reference
from localshapley.inputs.numbers import check_whole
from localshapley.problem.checking import Checked, check
from localshapley.tasks.suspects import suspects
from localshapley.valuation import Valuation
from localshapley.valuation.columns import count_of, ids_of
from localshapley.valuation.matching import rows_and_labels
from localshapley.valuation.plots import INTERVAL
from localshapley.valuation.skill import NAMES, stderr_of_mean

N_PARTS = 5
"""Parts of the rows that decide, one after the other, where no number of folds is given."""


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
        return (
            f"{nothing}{NAMES[self.score]} changes by {drop} without these rows, and by {relabel} with the suggested "
            f"labels, on {self.n_tests:,} held-out rows that had {'no' if self.apart else 'a'} part in finding them"
        )

    def _in_words(self, gain: float, low: float, high: float) -> str:
        """A change with its interval: of accuracies in points, a hundredth each."""
        scale, decimals, unit = (100, 1, " points") if self.score == "accuracy" else (1, 3, "")
        mean, start, end = (f"{scale * x:+.{decimals}f}" for x in (gain, low, high))
        unsure = ", which holds 0" if self.is_measurable and low <= 0 <= high else ""
        return f"{mean}{unit} (95 % interval {start} to {end}{unsure})"

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

    This takes three trainings, or three for each fold. Held-out rows keep their labels: where some are wrong, a right
    prediction counts as an error.

    Rows that the suspects were found with flatter the result, and not a little. Rows are suspected because of the harm
    that they do there; so even if all labels are chance, a model does better there without them. Give test rows that
    had no part in it, or use `worth_mending`.

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
    >>> v = ls.value(X, y, cv=5, model="tree")
    >>> found = ls.tasks.suspects(v, y, X=X)
    >>> m = ls.tasks.mending(v, found, X, y, X_test, y_test, model="tree")
    >>> m.dropped > m.before
    True
    """
    places = _places(valuation, found)
    X, labels = rows_and_labels(valuation, X, y)
    trial = _Trial(check(X, labels, X_test, y_test, model=model, cv=cv, seed=seed), y_test)
    splits = trial.splits(n_parts=1)
    losses = [trial.losses(train, held, places, found["suggested"]) for train, held in splits]
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
    **settings: Any,
) -> Mending:
    """Measure what it is worth to act on a list of suspects, on rows that have no part in finding them.

    Suspects are found in the rows outside each fold, as if the fold were not there. The model is trained on these rows
    as they are, without the suspects, and with the suggested labels, and scored on the fold. Test rows, if there are
    any, are divided into five parts: four of them find the suspects, and the fifth decides. This takes five valuations
    of a table that is a fifth smaller, and fifteen trainings.

    The lists of the folds differ a little from the list of all rows, so this measures the way of finding suspects more
    than one list. Held-out rows keep their labels: where some are wrong, a right prediction counts as an error, and
    gains look smaller than they are. On rows that are not suspected (`unsuspected`) they look larger than they are.

    Parameters
    ----------
    X, y, X_test, y_test, model, seed
        As in `value`.
    cv : int or "oob", optional
        As in `value`, in place of test rows; with ``"oob"``, five folds decide.
    n : int or float, optional
        How many suspects to act on, of all rows, or which share; by default those that `suspects` lists.
    features : table of shape (n_rows, n_features), optional
        The rows as numbers, in which `suspects` looks for neighbours, if `X` holds something else.
    **settings
        Other arguments of `value`, such as ``support`` and ``budget``.

    Returns
    -------
    Mending

    Examples
    --------
    >>> import localshapley as ls
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> y[:25] = (y[:25] + 1) % 3
    >>> worth = ls.tasks.worth_mending(X, y, X_test, y_test, model=KNeighborsClassifier(1))
    >>> print(worth.sentence)
    accuracy changes by +8.9 points (95 % interval +0.5 to +17.3) without these rows, and by +15.6 points (95 % \
interval +4.8 to +26.3) with the suggested labels, on 45 held-out rows that had no part in finding them
    """
    if cv is not None and cv != "oob":
        check_whole("cv", cv, least=2)
    X, X_test, numbers = known_table(X), known_table(X_test), known_table(X if features is None else features)
    trial = _Trial(check(X, y, X_test, y_test, model=model, cv=N_PARTS if cv == "oob" else cv, seed=seed), y_test)
    splits, share = trial.splits(N_PARTS), None if n is None else count_of(n, len(trial.y)) / len(trial.y)
    settings |= {"model": model, "cv": cv, "seed": seed, "progress": False}
    losses, times_listed = [], np.zeros(len(trial.y))
    for train, held in splits:
        others = np.setdiff1d(np.arange(len(trial.truth)), held)
        tests = (None, None) if trial.by_folds else (_taken(X_test, others), trial.truth[others])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LocalShapleyWarning)
            valuation = value(_taken(X, train), trial.y[train], *tests, **settings)
            found = suspects(valuation, trial.y[train], X=_taken(numbers, train), n=share)
        places = train[found.index]
        times_listed[places] += 1 / (len(splits) - 1)
        losses.append(trial.losses(train, held, places, found["suggested"]))
    is_suspected = (times_listed[_held(splits)] >= 0.5) if trial.by_folds else np.zeros(len(trial.truth), dtype=bool)
    return _compared(np.hstack(losses), trial.score, is_suspected, apart=True)


def _taken(table: Any, rows: Ints) -> Any:
    """Some rows of a table, numbered anew."""
    part = _safe_indexing(table, rows)
    return part.reset_index(drop=True) if isinstance(part, pd.DataFrame | pd.Series) else part


def _places(valuation: Valuation, found: pd.DataFrame) -> Ints:
    """Positions of the suspects among the rows."""
    ids = ids_of(valuation)
    places = ids.get_indexer(found.index) if ids.is_unique else np.array([-1])
    if not len(found) or (places < 0).any():
        raise InvalidArgumentError("found must hold rows of the valuation under unique names, and at least one.")
    return np.asarray(places, dtype=np.int64)


class _Trial:
    """Trains the model on rows as they are, without suspects and with other labels, and scores it on held-out rows."""

    def __init__(self, checked: Checked, y_test: Any) -> None:
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

    def splits(self, n_parts: int) -> list[Fold]:
        """Rows to train on and rows to predict: the folds, or all rows and each part of the test rows."""
        if self.folds is not None:
            return self.folds
        everything, n_tests = np.arange(len(self.y)), len(self.truth)
        if n_parts == 1 or n_tests == 1:
            return [(everything, np.arange(n_tests))]
        parts = make_folds(min(n_parts, n_tests), self.truth, classifier=False, seed=self.seed)
        return [(everything, part) for _, part in parts]

    def losses(self, train: Ints, held: Ints, suspected: Ints, suggested: pd.Series) -> Floats:
        """Losses on held-out rows as it is, dropped and relabelled, and of a constant guess for numbers."""
        kept = np.setdiff1d(train, suspected)
        if not len(kept):
            raise InvalidArgumentError("found holds all rows to train on; give the most suspicious ones, n=20.")
        mended = self.y.copy() if self.classifies else self.y.astype(np.float64)
        known = suggested.notna().to_numpy()
        mended[suspected[known]] = suggested.to_numpy()[known].astype(mended.dtype)
        trainings = ((train, self.y), (kept, self.y), (train, mended))
        predictions = [self._predictions(rows, y, held) for rows, y in trainings]
        return _losses(self.truth[held], predictions, None if self.classifies else self.y[train])

    def _predictions(self, rows: Ints, y: AnyArray, held: Ints) -> AnyArray:
        """What the model predicts after training on some rows; the one class that they have, if they have one."""
        if self.classifies and (y[rows] == y[rows][0]).all():
            return np.full(len(held), y[rows][0])
        reference = train_reference(self.estimator, _safe_indexing(self.X, rows), y[rows], self.seed)
        return predict(reference, _safe_indexing(self.X_held, held))


def _held(splits: list[Fold]) -> Ints:
    return np.concatenate([held for _, held in splits])


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
