"""The task that models are trained and scored on, and what holds where nothing can be trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from localshapley.arrays import AnyArray, Floats, Indices
from localshapley.scores import Score


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

    def score_nothing_learnt(self, tests: Indices) -> Floats:
        """Score of the empty coalition: every class equally likely, or the mean of `y`."""
        if self.empty is not None:
            return np.full(len(tests), float(self.empty))
        if self.classes is None:
            prediction = np.full(len(tests), float(self.y.mean()))
        else:
            prediction = np.full((len(tests), len(self.classes)), 1 / len(self.classes))
        return self.score(self.y_test[tests], prediction)

    def score_one_class(self, code: int, tests: Indices) -> Floats:
        """Score of a coalition with one class: it is predicted with certainty."""
        assert self.classes is not None
        prediction = np.zeros((len(tests), len(self.classes)))
        prediction[:, code] = 1
        return self.score(self.y_test[tests], prediction)
