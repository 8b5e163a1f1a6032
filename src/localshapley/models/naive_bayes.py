"""Gaussian naive Bayes, compiled."""

from __future__ import annotations

from typing import Any

from localshapley.arrays import Floats, Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.models.compiled import CompiledTrainer, plain
from localshapley.models.task import Task


class BayesTrainer(CompiledTrainer):
    """Gaussian naive Bayes, with the shares of the classes in the coalition as their probabilities beforehand."""

    settings = {"var_smoothing": lambda value: True}  # noqa: RUF012
    kernels = ("fit_bayes",)

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None) -> None:
        super().__init__(estimator, task, n_jobs)
        self._smoothing = float(estimator.var_smoothing)
        self._tables = plain(task.X), plain(task.X_test)

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        from localshapley.kernels.bayes import train_bayes
        from localshapley.kernels.decisions import form_of

        form = form_of(self._task.score.source)
        train_bayes(coalitions.arrays, todo, self._tables, self._codes, self._smoothing, form, out)
