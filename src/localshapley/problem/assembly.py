"""From checked rows and their supports to a problem: games and a trainer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from localshapley.coalitions.games import SupportGraph
from localshapley.data.folds import order_of_tests, tested_rows
from localshapley.models.estimator_checks import final_step, on_one_line
from localshapley.models.fold_trainers import FoldsTrainer
from localshapley.models.input_checks import CheckedInput
from localshapley.models.task import Task
from localshapley.models.trainer import Model, Trainer
from localshapley.notes import Note
from localshapley.problem.base import RowsProblem
from localshapley.problem.store_keys import ScoreKeys, contents_of_folds, contents_of_task
from localshapley.problem.support_search import FoldRows, FoundSupports, judge_of, notes_on_samples
from localshapley.problem.table_notes import notes_on_spread
from localshapley.question import Question, TableInput
from localshapley.runtime.boosting_libraries import note_on_splits


def make_trainer(
    question: Question[TableInput], model: Model, task: Task, parts: Sequence[FoldRows], checked: CheckedInput
) -> Trainer:
    """Make the trainer of coalitions; where steps before the model are fitted fold by fold, one for each fold."""
    make = partial(model.trainer, n_jobs=question.n_jobs, skip_errors=question.on_error == "skip")
    if checked.folds is None or checked.model.split()[0] is None:
        return make(task)
    return FoldsTrainer([make(part.task) for part in parts], checked.folds, order_of_tests(checked.folds), task)


def make_problem(
    question: Question[TableInput],
    checked: CheckedInput,
    task: Task,
    parts: Sequence[FoldRows],
    found: FoundSupports,
    trainer: Trainer,
    estimator: Any,
    remarks: Callable[[], list[Note]],
    **more: Any,
) -> RowsProblem:
    """Put games and trainer together.

    Parameters
    ----------
    question : Question
    checked : CheckedInput
    task : Task
        Behind the steps that are fitted once, if there are no folds.
    parts : sequence of FoldRows
        Where supports were searched, and the model is judged.
    found : FoundSupports
    trainer : Trainer
    estimator : estimator object
        What coalitions train: the last step.
    remarks : callable
        Gives what the user should know about the rows.
    more
        Further fields of the problem.
    """
    whole, folds = checked.model.estimator, checked.folds
    sources = None if folds is None else tested_rows(folds)
    graph = SupportGraph(found.of_tests, task.X.shape[0], sources=sources, among=more.get("among"))

    def contents() -> ScoreKeys:
        if not isinstance(trainer, FoldsTrainer):
            return contents_of_task(task, whole, trainer)
        assert folds is not None
        return contents_of_folds([part.task for part in parts], folds, order_of_tests(folds), task, whole, trainer)

    def all_remarks() -> Iterator[Note]:
        yield from remarks()
        yield from notes_on_samples(found, parts, estimator)
        yield from found.notes
        yield from notes_on_spread([part.space for part in found.parts], found.source)
        if (note := note_on_splits(final_step(estimator), graph.support_sizes)) is not None:
            yield note
        yield from trainer.training_notes

    judge = more.pop("judge", None) or judge_of(found, parts, task, estimator, question.limits.progress)
    return RowsProblem(
        graph=graph,
        trainer=trainer,
        model=on_one_line(whole),
        score=task.score.name,
        support=repr(found.source),
        contents=contents,
        ids=checked.ids,
        remarks=all_remarks,
        digests=checked.digests,
        task=task,
        source=found.source,
        estimator=whole,
        folds=folds,
        spaces=[part.space for part in found.parts],
        judge=judge,
        **more,
    )
