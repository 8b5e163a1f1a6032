"""What the `model` argument stands for: an estimator, and how its coalitions are trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from localshapley.models.task import Task
from localshapley.models.trainer import Trainer


class Model(ABC):
    """A model of `localshapley.models`: a scikit-learn estimator with a way to train coalitions.

    Attributes
    ----------
    estimator : scikit-learn estimator
        Trained once on all rows, as the reference that supports are found with.
    score : str or None
        The score that it has by default, if not that of all others.
    """

    estimator: Any
    score: str | None = None

    def split(self) -> tuple[Any, Model]:
        """The steps that are fitted once, before all coalitions, and the model behind them; None if there are none."""
        return None, self

    @property
    def may_refuse(self) -> bool:
        """Whether it is to be tried on all rows before a trainer is made."""
        return True

    @abstractmethod
    def trainer(self, task: Task, n_jobs: int | None = None, *, skip_errors: bool = False) -> Trainer:
        """Make the trainer of this model for a task."""
