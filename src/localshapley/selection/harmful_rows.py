"""Which rows do harm: those whose labels look wrong to other rows or label-noise models, and outliers among numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Floats
from localshapley.audit.label_noise_models import score_labels
from localshapley.models.task import Task
from localshapley.problem.base import RowsProblem
from localshapley.runtime.progress import ProgressSetting, telling
from localshapley.selection.greedy_limits import TINY

FAR_OUT = 3.0
"""Standard deviations below the median at which a row, judged by its worth per test row, is an outlier."""
WRONG = 0.5
"""A label that is more probably wrong than this does harm in any case,"""
DOUBTED = 0.2
"""and one that is more probably wrong than this, if the row alone makes the test rows near it worse than no row."""


def harmless(worth: Floats, problem: RowsProblem, seed: int, progress: ProgressSetting) -> AnyArray:
    """Which rows do no harm.

    A row at the border between classes makes most test rows near it worse, as a row with a wrong label does: the
    label-noise models tell the two apart. Without them, what each row is worth alone decides.
    """
    if problem.task.codes is None:
        return _near_others(worth / np.maximum(problem.graph.tests_per_player, 1))
    helps: AnyArray = worth >= -TINY * np.abs(worth).max()  # a tie may miss 0 by rounding
    p_wrong = _p_wrong(problem.task, seed, progress)
    return helps if p_wrong is None else p_wrong <= np.where(helps, WRONG, DOUBTED)


def _near_others(worth: Floats) -> AnyArray:
    """Which numbers teach hardly less than others do."""
    middle = np.median(worth)
    near: AnyArray = worth >= middle - FAR_OUT * 1.4826 * np.median(np.abs(worth - middle))
    return near


def _p_wrong(task: Task, seed: int, progress: ProgressSetting) -> Floats | None:
    """How probably each label is wrong; None if the rows are not numbers, or the label-noise models learn nothing."""
    X = _numbers(task.X)
    if X is None or task.codes is None:
        return None
    with telling(progress, "looking for wrong labels"):
        scores = score_labels(X, task.codes, seed=seed)
    return None if scores is None or np.isnan(scores.p_wrong).any() else scores.p_wrong


def _numbers(X: Any) -> Any:
    """The rows as a table of finite numbers, if they are one."""
    if not sparse.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        return None
    return X.astype(np.float64) if np.isfinite(X.data if sparse.issparse(X) else X).all() else None
