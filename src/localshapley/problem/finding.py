"""The supports of the test rows, in the space of the reference model, fold by fold."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from localshapley.arrays import Indices, Ints
from localshapley.errors import InvalidArgumentError
from localshapley.inputs.folds import Fold, order_of_tests
from localshapley.inputs.model import (
    check_decisions,
    final_step,
)
from localshapley.inputs.task import Task
from localshapley.problem.references import (
    MAX_PREDICTED,
    Trial,
    needs_reference,
    searches_once,
    train_on_rows,
    try_out,
    try_out_near,
)
from localshapley.problem.spread import note_on_spread
from localshapley.progress import ProgressSetting, telling
from localshapley.search.scan import showing
from localshapley.supports.base import Space, Support
from localshapley.supports.default import default_support


def find_supports(
    support: Support | None,
    task: Task,
    estimator: Any,
    raw: Any,
    raw_test: Any,
    notes: list[str],
    trials: list[Trial],
    progress: ProgressSetting,
    where: str = "",
    n_predicted: int = MAX_PREDICTED,
) -> tuple[Support, list[Indices]]:
    """Train the model on all rows, try it out if it is to be tried at all, and find the support of every test row."""
    is_judged = n_predicted > 0
    reference = estimator
    if is_judged or needs_reference(support, estimator):
        reference = train_on_rows(support, task, estimator, notes, progress, where)
    once = searches_once(support, task, estimator)
    if is_judged and not once:
        with suppress(InvalidArgumentError):  # such as too few rows for its neighbours; coalitions have conventions
            trials.append(try_out(reference, task, n_predicted))
    if is_judged and task.score.source in ("proba", "margin"):
        check_decisions(reference, task.score.name)
    support = support_for(reference, support, notes)
    space = _space(reference, task, raw, raw_test)
    n_rows, n_tests = len(task.y), len(task.y_test)
    doing = f"finding supports of {n_tests:,} test rows among {n_rows:,} rows{where}"
    with telling(progress, doing), showing(progress):
        found = support(space)
    notes += [note for note in space.notes if note not in notes]
    notes += note_on_spread(space, support, notes)
    if is_judged and once:
        trials.append(try_out_near(reference, task, n_predicted, found))
    return support, found


def support_for(estimator: Any, support: Support | None, notes: list[str]) -> Support:
    """The support that was given, or the one that belongs to the model."""
    if support is not None:
        return support
    support, induced = default_support(final_step(estimator))
    note = (
        f"locality is assumed, not induced: {type(final_step(estimator)).__name__} has no support of its own, "
        f"so {support} was used; locality_gap() estimates what that misses."
    )
    if not induced and note not in notes:
        notes.append(note)
    return support


def find_by_folds(
    support: Support | None,
    parts: list[Task],
    estimator: Any,
    raw: Any,
    folds: list[Fold],
    notes: list[str],
    trials: list[Trial],
    progress: ProgressSetting,
    n_predicted: int = MAX_PREDICTED,
) -> tuple[Support, list[Indices]]:
    """Find supports fold by fold among the rows outside; test rows come in ascending order."""
    if support is not None and support.names_rows:
        raise InvalidArgumentError(
            f"support {type(support).__name__} names rows or vectors for one set of test rows, cv makes several; give "
            "another support, or X_test and y_test instead of cv."
        )
    found: list[list[Indices]] = []
    chosen = support
    for number, (part, (train, test)) in enumerate(zip(parts, folds, strict=True), 1):
        raw_part, raw_test = _safe_indexing(raw, train), _safe_indexing(raw, test)
        where, most = f", fold {number} of {len(folds)}", -(-n_predicted // len(folds))
        chosen, inside = find_supports(
            support, part, estimator, raw_part, raw_test, notes, trials, progress, where, most
        )
        found.append(inside)
    assert chosen is not None
    return chosen, of_all_rows(found, folds)


def of_all_rows(found: list[list[Indices]], folds: list[Fold]) -> list[Indices]:
    """Supports found fold by fold, by the numbers of all rows, with the test rows in ascending order."""
    numbered = [rows for (train, _), inside in zip(folds, found, strict=True) for rows in _as_numbered(train, inside)]
    return [numbered[t] for t in order_of_tests(folds)]


def of_fold(task: Task, fold: Fold) -> Task:
    """The task of learning from the rows outside a fold, and being tested on those inside."""
    train, test = fold
    return replace(
        task,
        X=_safe_indexing(task.X, train),
        y=task.y[train],
        X_test=_safe_indexing(task.X, test),
        y_test=task.y[test] if task.codes is None else task.codes[test],
        codes=None if task.codes is None else task.codes[train],
    )


def _as_numbered(train: Ints, inside: list[Indices]) -> list[Indices]:
    """Supports among some of the rows, by the numbers of all rows; one array stays one array."""
    of_array = {id(rows): train[rows].astype(np.int32) for rows in {id(rows): rows for rows in inside}.values()}
    return [of_array[id(rows)] for rows in inside]


def _space(reference: Any, task: Task, raw: Any, raw_test: Any) -> Space:
    """The space before the last step of a pipeline, else that of the rows."""
    model, X, X_test = reference, task.X, task.X_test
    while isinstance(model, Pipeline):
        if len(model.steps) > 1:
            X, X_test = model[:-1].transform(X), model[:-1].transform(X_test)
        model = model.steps[-1][1]
    frames = (X, X_test) if isinstance(X, pd.DataFrame) else None
    return Space(as_rows(X), as_rows(X_test), raw, raw_test, task.y, final_step(reference), task.seed, frames)


def as_rows(table: Any) -> Any:
    """Rows as an array or a CSR matrix."""
    if sparse.issparse(table):
        return sparse.csr_matrix(table)
    return table.to_numpy() if isinstance(table, pd.DataFrame) else table
