"""Numbers so far from the others that they decide almost all of a regressor's score."""

from __future__ import annotations

import numpy as np
import pandas as pd

from localshapley.arrays import Floats, Ints
from localshapley.models.task import Task
from localshapley.notes import Note

POWERS = {"squared_error": 2, "absolute_error": 1}
"""What a score does with the distance between a number and its prediction."""
LOUD_SHARE = 0.9
"""Rows are loud if they hold this share of all distances from the median, to the power of the score,"""
LOUD_ROWS = 0.01
"""though they are at most this share of the rows, or one row."""
MIN_ROWS = 10
MAX_NAMED = 5


def note_of_loud_rows(task: Task, ids: pd.Index | None, *, folds: bool) -> list[Note]:
    """Name the rows that hide what all others do to the score, if there are such rows."""
    power = POWERS.get(task.score.name)
    if task.classes is not None or power is None:
        return []
    named = _named("row", task.y, power, ids)
    named += [] if folds else _named("test row", task.y_test, power, None)
    if not named:
        return []
    gentler = "; if they are right, score='absolute_error' gives them less weight" if power > 1 else ""
    text = (
        f"{', '.join(named)}: so far from the other numbers that almost all of {task.score.name} comes from there, and "
        f"what other rows do to it is hidden. Check these first; if they are wrong, mend or drop them and value again"
        f"{gentler}."
    )
    return [Note("targets-dominate", text, score=task.score.name, targets=named)]


def _named(what: str, y: Floats, power: int, ids: pd.Index | None) -> list[str]:
    rows = _loud(y, power)
    names = [f"{what} {row if ids is None else ids[row]} ({y[row]:.4g})" for row in rows[:MAX_NAMED]]
    return names if len(rows) <= MAX_NAMED else [*names, f"{len(rows) - MAX_NAMED} more"]


def _loud(y: Floats, power: int) -> Ints:
    """Positions of loud rows, loudest first."""
    off = np.abs(y - np.median(y))
    if len(y) < MIN_ROWS or not off.max() > 0:
        return np.empty(0, dtype=np.int64)
    weight = (off / off.max()) ** power
    order = np.argsort(-weight, kind="stable")
    count = 1 + int(np.searchsorted(np.cumsum(weight[order]), LOUD_SHARE * weight.sum()))
    return order[:count] if count <= max(1, LOUD_ROWS * len(y)) else order[:0]
