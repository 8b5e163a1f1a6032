"""From checked rows and their supports to a problem: games and a trainer."""

from __future__ import annotations

from functools import partial
from typing import Any

from localshapley.arrays import Indices
from localshapley.games import SupportGraph
from localshapley.inputs.boosting import note_on_splits
from localshapley.inputs.folds import Fold, order_of_tests, tested_rows
from localshapley.inputs.model import final_step, on_one_line
from localshapley.inputs.task import Task
from localshapley.models.checking import Checked
from localshapley.models.folds import FoldsTrainer
from localshapley.models.model import Model
from localshapley.notes import notes_of
from localshapley.problem.base import RowsProblem
from localshapley.problem.contents import contents_of_folds, contents_of_task
from localshapley.problem.finding import Found, note_on_empty
from localshapley.problem.references import Trial, skill_of


def games_of(found: list[Indices], n_rows: int, folds: list[Fold] | None, among: int | None = None) -> SupportGraph:
    """The games of supports; with folds, test rows are training rows themselves."""
    return SupportGraph(found, n_rows, sources=None if folds is None else tested_rows(folds), among=among)


def make_problem(
    checked: Checked,
    task: Task,
    parts: list[Task],
    last: Model,
    found: Found,
    trials: list[Trial],
    *,
    n_jobs: int | None,
    on_error: str,
    **more: Any,
) -> RowsProblem:
    """Put games and trainer together.

    Parameters
    ----------
    checked : Checked
    task : Task
        Behind the steps that are fitted once, if there are no folds.
    parts : list of Task
        The tasks of the folds, behind these steps.
    last : Model
        What coalitions train.
    found : Found
        The support of each test row, and where it came from.
    trials : list of Trial
        What reference models predict.
    more
        Further fields of the problem.
    """
    estimator, folds, notes = checked.model.estimator, checked.folds, checked.notes
    graph = games_of(found.of_tests, task.X.shape[0], folds, among=more.get("among"))
    notes += note_on_empty(found)
    notes += [note] if (note := note_on_splits(final_step(last.estimator), graph.support_sizes)) else []
    make_trainer = partial(last.trainer, n_jobs=n_jobs, skip_errors=on_error == "skip")
    if checked.model.split()[0] is None or folds is None:
        trainer, contents = make_trainer(task), lambda: contents_of_task(task, estimator, trainer)
    else:
        order = order_of_tests(folds)
        trainer = FoldsTrainer([make_trainer(part) for part in parts], folds, order, task)
        contents = partial(contents_of_folds, parts, folds, order, task, estimator, trainer)
    notes += trainer.training_notes
    described: dict[str, Any] = {
        "ids": checked.ids,
        "digests": checked.digests,
        "skill": skill_of(trials, task),
        **more,
    }
    return RowsProblem(
        graph=graph,
        trainer=trainer,
        model=on_one_line(estimator),
        score=task.score.name,
        support=repr(found.support),
        contents=contents,
        notes=notes_of(notes),
        task=task,
        source=found.support,
        estimator=estimator,
        folds=folds,
        **described,
    )
