"""A game given as a function instead of data and a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import Floats, Indices
from localshapley.coalitions.batch import Coalitions
from localshapley.errors import InvalidArgumentError
from localshapley.models.trainer import Trainer, TrainingOutcome
from localshapley.runtime.dask_cluster import n_processes

Utility: TypeAlias = Callable[[Indices, Indices], Floats]


def as_trainer(utility: Any, n_jobs: int | None = None) -> Trainer:
    """The trainer behind the `utility` argument: a trainer, an object that scores many coalitions, or a function."""
    if isinstance(utility, Trainer):
        return utility
    if callable(getattr(utility, "evaluate", None)):
        return BatchUtilityTrainer(utility)
    if callable(utility):
        return UtilityTrainer(utility, n_jobs)
    raise InvalidArgumentError(f"utility must be a function (coalition, tests) -> scores; got {utility!r}.")


class BatchUtilityTrainer(Trainer):
    """Lets an object with `evaluate(coalitions) -> scores` score many coalitions in one call, in this process."""

    def __init__(self, utility: Any) -> None:
        self.name = getattr(utility, "name", type(utility).__name__)
        self._utility = utility

    def train(self, coalitions: Coalitions) -> TrainingOutcome:
        """Score coalitions in this process, and check what comes back."""
        scores = _numbers(f"{self.name}.evaluate", self._utility.evaluate(coalitions))
        if scores.shape != coalitions.tests.shape:
            raise InvalidArgumentError(
                f"{self.name}.evaluate must return one number for each of the {len(coalitions.tests)} test rows of the "
                f"coalitions it is given, one coalition after the other; it returned an array of shape {scores.shape}."
            )
        wrong = np.flatnonzero(~np.isfinite(scores))
        if len(wrong):
            coalition = int(np.searchsorted(coalitions.test_indptr, wrong[0], side="right")) - 1
            raise _not_finite(f"{self.name}.evaluate", coalitions.coalition(coalition), coalitions.tests[wrong[0]])
        return TrainingOutcome(np.ascontiguousarray(scores))


class UtilityTrainer(Trainer):
    """Calls `utility(coalition, tests)` for each coalition and checks what it returns."""

    def __init__(self, utility: Utility, n_jobs: int | None = None) -> None:
        self.name = getattr(utility, "__name__", type(utility).__name__)
        self._utility = utility
        self.n_jobs = n_processes(n_jobs)

    def train(self, coalitions: Coalitions) -> TrainingOutcome:
        """Score coalitions in this process."""
        return TrainingOutcome(_call(self._utility, coalitions))


def _call(utility: Utility, coalitions: Coalitions) -> Floats:
    out = np.empty(len(coalitions.tests))
    for c in range(len(coalitions)):
        coalition, tests = coalitions.coalition(c), coalitions.tests_of(c)
        scores = _numbers("utility", utility(coalition.astype(np.intp), tests.astype(np.intp)))
        if scores.shape != tests.shape:
            raise InvalidArgumentError(
                f"utility must return one number for each of the {len(tests)} test rows it is given; for coalition "
                f"{_short(coalition)} it returned an array of shape {scores.shape}."
            )
        if not np.isfinite(scores).all():
            raise _not_finite("utility", coalition, tests[~np.isfinite(scores)][0])
        out[coalitions.test_indptr[c] : coalitions.test_indptr[c + 1]] = scores
    return out


def _numbers(name: str, found: Any) -> Floats:
    """What a utility returns, as numbers."""
    try:
        if np.asarray(found).dtype.kind not in "UScmM":
            return np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):  # lists of different lengths, say
        pass
    shown = repr(found)
    raise InvalidArgumentError(
        f"{name} must return one number for each test row that it is given; it returned "
        f"{shown if len(shown) <= 60 else shown[:57] + '...'}."
    )


def _not_finite(name: str, coalition: Indices, test: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{name} returned NaN or infinity for coalition {_short(coalition)} on test row {test}; "
        "return a finite number for every coalition, the empty one included."
    )


def _short(coalition: Indices) -> str:
    shown = ", ".join(map(str, coalition[:8]))
    return f"[{shown}{', ...' if len(coalition) > 8 else ''}] ({len(coalition)} players)"
