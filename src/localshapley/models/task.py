"""The task that models are trained and scored on, and the conventions for what is not trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from localshapley import scoring
from localshapley.arrays import AnyArray, Floats, Indices, Ints
from localshapley.data.rows import Data, as_amounts, encode
from localshapley.errors import InvalidArgumentError, warn
from localshapley.notes import Note
from localshapley.runtime.argument_checks import LARGEST_SCORE, check_number
from localshapley.scoring import Score

NOTHING, UNKNOWN = -1, -2
"""Outcomes of coalitions: nothing learnt (no rows), and unknown until trained. Other outcomes are classes."""


@dataclass(frozen=True)
class Task:
    """Training rows, test rows and the score between them.

    Attributes
    ----------
    X, X_test : array, CSR matrix or DataFrame of shape (n_rows, n_features)
    y : array of shape (n_rows,)
        Labels or numbers as the user gave them.
    y_test : array of shape (n_tests,)
        Class codes into `classes` (negative where `y` does not have the class), or numbers.
    classes : array or None
        Sorted classes of `y`; None for regression.
    codes : array of shape (n_rows,) or None
        Class codes of `y`; None for regression.
    score : Score
    empty : float or None
        Score of the empty coalition on every test row; None follows the convention.
    seed : int
        Seed for estimators that leave their `random_state` open.
    is_sure_alone : bool
        Whether a model that has learnt one class predicts it with certainty; else it is asked.
    guesses : array of shape (n_tests,) or None
        What a regressor predicts for each test row that has learnt nothing, if not the mean of `y`.
    centre : array of shape (n_features,) or None
        Mean of `X` over all rows, where these are only some of them and the model subtracts it.
    fold : str
        Where these are the rows outside a fold: which fold it is, such as ``"fold 2 of 5"``.
    """

    X: Any
    y: AnyArray
    X_test: Any
    y_test: AnyArray
    classes: AnyArray | None
    codes: AnyArray | None
    score: Score
    empty: float | None = None
    seed: int = 0
    is_sure_alone: bool = True
    guesses: Floats | None = None
    centre: Floats | None = None
    fold: str = ""

    def guess(self, tests: Indices | Ints) -> Floats:
        """What a regressor predicts for test rows that has learnt nothing."""
        return np.full(len(tests), self.y.mean()) if self.guesses is None else self.guesses[tests]

    @property
    def n_outputs(self) -> int:
        """Columns of a prediction: one per class, or one number."""
        return 1 if self.classes is None else len(self.classes)

    def room_for(self, n: int) -> Floats:
        """An array for `n` predictions."""
        return np.empty(n if self.classes is None else (n, len(self.classes)))

    # Three conventions hold for every model. Nothing learnt (no row): every class is equally likely, a number is
    # predicted by the mean of `y` (over the training rows of the test row's fold, if there are folds), or the score is
    # `empty`. One class learnt: it is predicted with certainty, unless a model may have no answer where no row is near.
    # No answer (a prediction that is NaN or infinite, or whose score is too large to be computed with): as if nothing
    # had been learnt.

    def outcomes(self, indptr: Ints, players: Indices) -> Ints:
        """What each coalition is known to learn: `NOTHING`, its class if it has only one, else `UNKNOWN`."""
        sizes = np.diff(indptr)
        out = np.where(sizes == 0, NOTHING, UNKNOWN)
        some = np.flatnonzero(sizes)
        if self.codes is not None and self.is_sure_alone and len(some):
            codes = self.codes[players]
            lowest, highest = (extreme.reduceat(codes, indptr[some]) for extreme in (np.minimum, np.maximum))
            out[some] = np.where(lowest == highest, lowest, UNKNOWN)
        return out

    def is_known(self, indptr: Ints, players: Indices) -> AnyArray:
        """Which coalitions need no training: they are empty, or of one class."""
        known: AnyArray = self.outcomes(indptr, players) != UNKNOWN
        return known

    def score_predictions(self, tests: Indices, prediction: Floats, outcome: Ints) -> tuple[Floats, AnyArray]:
        """Score predictions; those of coalitions with a known outcome are scored by the conventions.

        Parameters
        ----------
        tests : array of shape (n,)
        prediction : array of shape (n, n_classes) or, for regression, (n,)
            Changed in place; rows whose outcome is known are ignored. Where the score reads labels,
            the largest entry is the predicted class.
        outcome : array of shape (n,)
            Outcome of the coalition behind each prediction.

        Returns
        -------
        scores : array of shape (n,)
        silent : array of bool of shape (n,)
            Where the model had no answer.
        """
        finite = np.isfinite(prediction)
        answered: AnyArray = finite if finite.ndim == 1 else np.all(finite, axis=1)
        silent = ~answered & (outcome == UNKNOWN)
        nothing = silent | (outcome == NOTHING)
        if self.classes is None:
            prediction[nothing] = self.guess(tests[nothing])
        else:
            prediction[nothing] = 0
            if self.score.source == "label":
                prediction = one_hot(prediction.argmax(axis=1), len(self.classes))
            prediction[nothing] = 1 / len(self.classes)
            alone = np.flatnonzero(outcome >= 0)
            prediction[alone] = 0
            prediction[alone, outcome[alone]] = 1
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.score(self.y_test[tests], prediction)
        if self.empty is not None:
            found[nothing] = self.empty
        can_be_used = np.abs(found) <= LARGEST_SCORE
        beyond = ~(can_be_used if found.ndim == 1 else can_be_used.all(axis=1)) & (outcome == UNKNOWN)
        if beyond.any():
            found[beyond] = self.score_nothing_learnt(tests[beyond])
        return found, silent | beyond

    def score_nothing_learnt(self, tests: Indices) -> Floats:
        """Score of the empty coalition."""
        return self.score_predictions(tests, self.room_for(len(tests)), np.full(len(tests), NOTHING))[0]


def one_hot(codes: AnyArray, n_classes: int) -> Floats:
    """A one in the column of each code."""
    out = np.zeros((len(codes), n_classes))
    out[np.arange(len(codes)), codes] = 1
    return out


def _check_kinds(label: Any, unseen: Any) -> None:
    """Refuse text where the labels of `y` are numbers, and the reverse; given one label of each, none is in both."""
    if isinstance(label, str) == isinstance(unseen, str):
        return
    kinds = [type(one).__name__ for one in (label, unseen)]
    raise InvalidArgumentError(
        f"no label of y_test occurs in y: y holds {kinds[0]} such as {label!r}, y_test holds {kinds[1]} such as "
        f"{unseen!r}; make them one kind, such as y_test.astype({kinds[0]})."
    )


def make_task(
    data: Data,
    *,
    classifies: bool,
    has_proba: bool,
    score: Any = None,
    empty: float | None = None,
    seed: int = 0,
    is_sure_alone: bool = True,
    least_classes: int = 2,
) -> tuple[Task, list[Note]]:
    """Put data and score together; returns the task and what the user should know."""
    check_number("empty", empty, optional=True)
    if not classifies:
        y, y_test = as_amounts("y", data.y), as_amounts("y_test", data.y_test)
        chosen = scoring.resolve(score, "regressor", None, has_proba)
        return Task(data.X, y, data.X_test, y_test, None, None, chosen, empty, seed), []
    try:
        if data.y.dtype.kind in "iu":  # which need not be sorted
            codes, classes = pd.factorize(data.y, sort=True)
        else:
            classes, codes = np.unique(data.y, return_inverse=True)
    except TypeError:
        raise InvalidArgumentError(
            "y mixes labels of different kinds, such as text and numbers; make them one kind, y.astype(str)."
        ) from None
    if len(classes) < least_classes:
        raise InvalidArgumentError(
            f"y holds one class only ({classes.tolist()[0]!r}); a classifier's rows are worth something only with "
            "two or more. Check the column, or use a regressor for numbers."
        )
    if classes.dtype.kind == "f" and (classes % 1 != 0).any():
        fraction = classes[classes % 1 != 0].tolist()[0]
        raise InvalidArgumentError(
            f"y holds fractions such as {fraction!r}, which are amounts and no classes; use a regressor instead of the "
            "classifier."
        )
    y_test, unseen = encode(data.y_test, classes)
    notes = []
    if len(unseen):
        if none := bool((y_test < 0).all()):
            _check_kinds(classes.tolist()[0], unseen.tolist()[0])
        names = ", ".join(map(repr, unseen.tolist()[:5])) + ", and no others" * none
        text = f"y_test holds labels that y does not have ({names}); they count as wrong whatever is learnt."
        notes.append(Note("labels-unseen", text, n_labels=len(unseen), labels=unseen[:5]))
        warn(text)
    chosen = scoring.resolve(score, "classifier", (classes, unseen), has_proba)
    return Task(data.X, data.y, data.X_test, y_test, classes, codes, chosen, empty, seed, is_sure_alone), notes
