"""From the arguments of `value` to games and a trainer for their coalitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from localshapley.errors import InvalidArgumentError, unknown_name, warn
from localshapley.inputs.data import known_table
from localshapley.inputs.folds import order_of_tests
from localshapley.inputs.indexes import check_order, index_of
from localshapley.inputs.loud import note_of_loud_rows
from localshapley.inputs.lying import parts_of, tests_in_memory
from localshapley.inputs.numbers import check_n_jobs
from localshapley.inputs.task import Task
from localshapley.models.checking import check
from localshapley.models.cluster import need_workers
from localshapley.models.fixed import Fixed
from localshapley.models.owners import Owners, OwnersTrainer
from localshapley.models.pipelines import (
    note_on_steps,
    transformed,
    warning_on_labels,
)
from localshapley.notes import Note
from localshapley.problem.base import RowsProblem
from localshapley.problem.contents import Contents
from localshapley.problem.copies import notes_on_copies
from localshapley.problem.finding import find_by_folds, find_supports, of_folds, where_mostly_empty
from localshapley.problem.fixed import pose_fixed
from localshapley.problem.making import make_problem
from localshapley.problem.parts import pose_parts, refuse_what_needs_all_rows
from localshapley.problem.references import MAX_PREDICTED, Trial
from localshapley.progress import ProgressSetting
from localshapley.supports.base import Support


def pose(
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    model: Any,
    cv: Any = None,
    support: Support | None = None,
    score: Any = None,
    empty: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    on_error: str = "raise",
    rare: str = "raise",
    owners: Any = None,
    progress: ProgressSetting = False,
    judge: bool = True,
    in_parts: bool = False,
) -> RowsProblem:
    """Check the arguments of `value`, train the reference models and find the games.

    Without `judge`, reference models are trained only where supports need them, and their skill is not known. With
    `in_parts` the players may be some of the rows only, where these lie in parts.
    """
    check_n_jobs(n_jobs)
    if on_error not in ("raise", "skip"):
        raise unknown_name("on_error", on_error, ("raise", "skip"))
    if support is not None and not isinstance(support, Support):
        raise InvalidArgumentError(
            "support must be one of localshapley.supports, such as supports.Nearest(10), or None (value() and plan() "
            f"also take 'auto'); got {support!r}."
        )
    lying = parts_of(X, y)
    if lying is not None:
        X_test, y_test = tests_in_memory(X_test, y_test, lying)
        if not lying.is_small:
            settings = {"score": score, "empty": empty, "seed": seed, "n_jobs": n_jobs, "on_error": on_error}
            refuse_what_needs_all_rows(cv=cv, owners=owners, in_parts=in_parts)
            return pose_parts(lying, X_test, y_test, model, support, progress=progress, **settings)
        X, y = lying.whole()
    raw, raw_test = known_table(X), known_table(X_test)
    checked = check(raw, y, raw_test, y_test, model=model, cv=cv, score=score, empty=empty, seed=seed, rare=rare)
    if checked.kept is not None:
        raw, y = _safe_indexing(raw, checked.kept), _safe_indexing(y, checked.kept)
        owners = None if owners is None else _safe_indexing(owners, checked.kept)
    task, estimator, notes = checked.task, checked.model.estimator, checked.notes
    notes += notes_on_copies(checked, raw, raw_test, y_test)
    notes += note_of_loud_rows(task, checked.ids, folds=checked.folds is not None or checked.oob)
    held = None
    if owners is not None:
        held = Owners(owners, task.X.shape[0])
        notes += check_order("owners", owners, "X" if index_of(raw) is not None else "y", index_of(raw, y))
    need_workers()  # scikit-learn asks joblib how many there are, too
    if isinstance(checked.model, Fixed):
        fixed = pose_fixed(checked, checked.model, support, n_jobs)
        return fixed if held is None else _of_owners(fixed, held)
    before, last = checked.model.split()
    if before is not None:
        notes.append(note_on_steps(before, estimator, folds=checked.folds is not None))
        if warning := warning_on_labels(before, task):
            notes.append(warning)
            warn(warning)
    trials: list[Trial] = []
    n_predicted = MAX_PREDICTED if judge else 0
    parts: list[Task] = []
    if checked.folds is None:
        task = task if before is None else transformed(task, before)
        found = find_supports(support, task, last.estimator, raw, raw_test, notes, trials, progress, "", n_predicted)
    else:
        parts = of_folds(task, checked.folds)
        parts = parts if before is None else [transformed(part, before) for part in parts]
        found = find_by_folds(support, parts, last.estimator, raw, checked.folds, notes, trials, progress, n_predicted)
    found = where_mostly_empty(support, found, notes, checked.folds)
    problem = make_problem(checked, task, parts, last, found, trials, n_jobs=n_jobs, on_error=on_error)
    return problem if held is None else _of_owners(problem, held)


def _of_owners(problem: RowsProblem, owners: Owners) -> RowsProblem:
    """The same problem with owners as the players."""
    folds = problem.folds
    allowed = fold_of_test = None
    text = "an owner joins a coalition with all of its rows."
    if folds is not None:
        allowed = np.array([np.isin(np.arange(len(owners.of_row)), train) for train, _ in folds])
        fold_of_test = np.repeat(np.arange(len(folds)), [len(test) for _, test in folds])[order_of_tests(folds)]
        text = "an owner joins a coalition with all of its rows that are outside the test row's fold."

    def contents() -> Contents:
        found = problem.contents()._replace(rows_of=owners.rows_of)
        return found if folds is None else found.with_folds(folds, order_of_tests(folds))

    return replace(
        problem,
        graph=owners.graph(problem.graph),
        trainer=OwnersTrainer(problem.trainer, owners, allowed, fold_of_test),
        contents=contents,
        ids=owners.names,
        unit="owner",
        notes=[*problem.notes, Note("owners-play", text, in_folds=folds is not None)],
        digests=lambda: None,
        oob_scores=lambda: None,
        owners=owners,
    )
