"""How good the model is on rows that it was not trained on, beside a guess that learns nothing."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from localshapley.arrays import AnyArray, Floats

INTERVAL = 1.96
"""Standard errors to each side within which an estimate lies 19 times out of 20."""
STANDARD_ERRORS = 2.0
"""A lead of at most this many standard errors over the guess may be chance."""


@dataclass(frozen=True)
class Skill:
    """Held-out score of the model that is trained on all rows; with `cv`, on the rows outside each fold.

    Attributes
    ----------
    score : {"accuracy", "r2"}
        Share of right predictions, or `R²`, the share of the squared error of `guess` that the model avoids.
    model : float
        What the model scores.
    guess : float
        What the best constant guess scores: the share of the most frequent class (the majority's share), or 0.
    stderr : float
        Standard error of `model - guess`, over the test rows.
    n_tests : int
        Test rows that were predicted; of many, a sample.
    constant : str
        The constant guess: the most frequent class, or ``"the mean"``.

    Examples
    --------
    >>> from localshapley.valuation import Skill
    >>> near = Skill("accuracy", model=0.52, guess=0.5, stderr=0.03, n_tests=300, constant="yes")
    >>> near.is_near_chance
    True
    >>> print(near)
    accuracy 0.520 on 300 test rows; always predicting 'yes' gives 0.500
    """

    score: str
    model: float
    guess: float
    stderr: float
    n_tests: int
    constant: str

    @property
    def is_near_chance(self) -> bool:
        """Whether the model is not better than the guess by more than two standard errors."""
        return self.model - self.guess <= STANDARD_ERRORS * self.stderr

    def __str__(self) -> str:
        name = repr(self.constant) if self.score == "accuracy" else self.constant
        return (
            f"{NAMES[self.score]} {self.model:.3f} on {self.n_tests:,} test rows; always predicting {name} gives "
            f"{self.guess:.3f}"
        )

    @classmethod
    def from_dict(cls, entries: Any) -> Skill | None:
        """Read what `dataclasses.asdict` made, or None."""
        if entries is None:
            return None
        if not isinstance(entries, dict) or entries.keys() != {field.name for field in fields(cls)}:
            raise ValueError("skill has other entries than expected")
        numbers = [entries[name] for name in ("model", "guess", "stderr")]
        if not all(type(x) in (int, float) and np.isfinite(x) for x in numbers) or entries["stderr"] < 0:
            raise ValueError("skill holds something else than finite numbers")
        if type(entries["n_tests"]) is not int or entries["n_tests"] < 1:
            raise ValueError("skill is not about a number of test rows")
        if entries["score"] not in NAMES or not isinstance(entries["constant"], str):
            raise ValueError("skill has an unknown score")
        return cls(**entries)


NAMES = {"accuracy": "accuracy", "r2": "R²"}
"""Scores of a skill, as they are written."""


def classifier_skill(truth: AnyArray, predicted: AnyArray, guessed: AnyArray, constant: str) -> Skill:
    """Compare codes of classes: the true ones, those that the model predicted, and the guesses."""
    right, lucky = (predicted == truth).astype(np.float64), (guessed == truth).astype(np.float64)
    return Skill(
        "accuracy", float(right.mean()), float(lucky.mean()), stderr_of_mean(right - lucky), len(truth), constant
    )


def regressor_skill(truth: Floats, predicted: Floats, guessed: Floats) -> Skill | None:
    """Compare numbers; None where their squares are not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        off, guess_off = (truth - predicted) ** 2, (truth - guessed) ** 2
        scale = float(guess_off.mean()) or 1.0
        saved = (guess_off - off) / scale
        found = Skill("r2", float(saved.mean()), 0.0, stderr_of_mean(saved), len(truth), "the mean")
    return found if np.isfinite([found.model, found.stderr]).all() else None


def stderr_of_mean(differences: Floats) -> float:
    """Standard error of the mean of differences, over test rows."""
    n = len(differences)
    return float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
