"""Problems of trees that are grown once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from sklearn.utils import _safe_indexing

from localshapley.coalitions.games import SupportGraph
from localshapley.data.folds import order_of_tests, tested_rows, training_rows
from localshapley.errors import InvalidArgumentError
from localshapley.models.estimator_checks import on_one_line, train_reference
from localshapley.models.fixed_trees import Fixed, FixedTrainer, predict_out_of_bag, scores_out_of_bag
from localshapley.models.input_checks import CheckedInput
from localshapley.models.task import Task
from localshapley.models.tree_leaves import GrownTrees, LeafGraph, LeafMates
from localshapley.notes import Note
from localshapley.problem.base import RowsProblem
from localshapley.problem.fingerprints import describe
from localshapley.problem.reference_models import MAX_PREDICTED, Trial, as_trial, sampled, skill_of, try_out
from localshapley.problem.store_keys import ScoreKeys, contents_by_name, contents_of_task
from localshapley.problem.support_search import of_folds
from localshapley.question import Question, TableInput
from localshapley.supports.given import Everything


def build_fixed(
    question: Question[TableInput], checked: CheckedInput, model: Fixed, remarks: Callable[[], list[Note]]
) -> RowsProblem:
    """Grow the trees of each fold once; games need no list of players as long as nobody asks for it."""
    support = question.support_given
    if support not in (None, Everything()):
        raise InvalidArgumentError(
            f"support {support!r} is not for models.Fixed: exactly the leaf mates of a test row matter to it; leave "
            "support out."
        )
    model.check(checked.task.score, oob=checked.oob)
    task, growths, trials, told = (_grow_out_of_bag if checked.oob else _grow_by_folds)(checked, model)
    trainer = model.refilling(task, growths, question.n_jobs)
    source = LeafMates(trainer.leaves) if support is None else support
    sources = None if checked.folds is None else tested_rows(checked.folds)
    graph: SupportGraph = LeafGraph(trainer.leaves, sources)
    if support is not None:
        n_rows, n_tests = task.X.shape[0], task.X_test.shape[0]
        everyone = [np.arange(n_rows)] * n_tests if checked.folds is None else training_rows(checked.folds)
        graph = SupportGraph(everyone, n_rows, sources=sources)

    def contents() -> ScoreKeys:
        # A score depends on all rows, which grew the trees, and equal rows may be in different bags.
        of_task = contents_of_task(task, model.estimator, trainer)
        what = (of_task.fingerprint, of_task.rows, of_task.nothing, checked.folds, checked.oob)
        name = f"{model!r} {blake2b(describe(what).encode(), digest_size=16).hexdigest()}"
        return contents_by_name(name, task.X.shape[0], task.X_test.shape[0])

    return RowsProblem(
        graph=graph,
        trainer=trainer,
        model=f"Fixed({on_one_line(model.estimator)})",
        score=task.score.name,
        support=repr(source),
        contents=contents,
        ids=checked.ids,
        remarks=lambda: [*remarks(), *told, *trainer.training_notes],
        digests=checked.digests,
        judge=cache(lambda: skill_of(trials, task)),
        oob_scores=partial(scores_out_of_bag, trainer, growths[0], checked.task)
        if checked.oob and isinstance(trainer, FixedTrainer)
        else lambda: None,
        task=task,
        source=source,
        estimator=model.estimator,
        folds=checked.folds,
    )


Growing: TypeAlias = tuple[Task, list[GrownTrees], list[Trial], list[Note]]
"""What is tested, the trees of each fold, what these predict, and what the user should know."""


def _grow_by_folds(checked: CheckedInput, model: Fixed) -> Growing:
    """Grow trees on all rows for the test rows, or on the rows outside each fold for those of the fold."""
    task, growths, trials = checked.task, list[GrownTrees](), list[Trial]()
    if checked.folds is None:
        everyone, tests = np.arange(task.X.shape[0]), np.arange(task.X_test.shape[0])
        parts = [(task, everyone, tests)]
    else:
        place = np.argsort(order_of_tests(checked.folds))
        ends = np.cumsum([len(test) for _, test in checked.folds])[:-1]
        trained = [train for train, _ in checked.folds]
        parts = list(zip(of_folds(task, checked.folds), trained, np.split(place, ends), strict=True))
    for part, rows, tests in parts:
        reference = train_reference(model.estimator, part.X, part.y, task.seed, part.fold)
        trials.append(try_out(reference, part, -(-MAX_PREDICTED // len(parts))))
        growths.append(model.grown(reference, part, rows, tests))
    return task, growths, trials, []


def _grow_out_of_bag(checked: CheckedInput, model: Fixed) -> Growing:
    """Grow trees on all rows; test rows are those that some tree has not seen."""
    task, rows = checked.task, np.arange(checked.task.X.shape[0])
    grown = GrownTrees(train_reference(model.estimator, task.X, task.y, task.seed), task.X, rows)
    seen = grown.n_judges == 0
    if seen.all():
        raise InvalidArgumentError(
            "cv='oob' needs rows that are not in the bag of every tree, and there are none; give the forest more trees "
            "(n_estimators), or a smaller max_samples."
        )
    notes = []
    if seen.any():
        text = (
            f"{int(seen.sum())} of {len(rows)} rows are in the bag of every tree and are no test rows; more trees "
            "(n_estimators) would judge them."
        )
        notes.append(Note("rows-in-every-bag", text, n_rows=int(seen.sum()), n_rows_in_all=len(rows)))
        task = replace(task, X_test=_safe_indexing(task.X, np.flatnonzero(~seen)), y_test=task.y_test[~seen])
        task = task if task.guesses is None else replace(task, guesses=task.guesses[~seen])
    tests = sampled(np.flatnonzero(~seen), MAX_PREDICTED, task.seed)
    # R² out of bag, as scikit-learn's `oob_score_`, compares with the mean of all rows.
    trial = as_trial(predict_out_of_bag(grown, tests), replace(checked.task, guesses=None), tests)
    return task, [grown], [trial], notes
