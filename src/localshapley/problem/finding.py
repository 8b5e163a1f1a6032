"""The supports of the test rows, in the space of the reference model, fold by fold."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from localshapley.arrays import AnyArray, Indices, Ints
from localshapley.errors import InvalidArgumentError, warn
from localshapley.inputs.folds import Fold, order_of_tests
from localshapley.inputs.model import (
    check_decisions,
    final_step,
)
from localshapley.inputs.task import Task
from localshapley.notes import Note
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
from localshapley.supports.given import Given
from localshapley.supports.nearest import Nearest
from localshapley.supports.parted import PartedRows

NEAREST = Nearest(20)
"""Reaches every test row, wherever it lies."""
MOST_EMPTY = 0.5
"""If more of the supports than this share are empty, the model has no use for the support that belongs to it."""
LARGER = 4
"""Larger supports that are looked at for one that reaches every test row."""
AT_ONCE = 256
"""Test rows that are looked at together, as a larger support may hold nearly all rows for each."""


class Found(NamedTuple):
    """Supports, where they come from, and where they were searched: a space for each fold, with its supports."""

    support: Support
    of_tests: list[Indices]
    searched: list[tuple[Space, list[Indices]]]


def find_supports(
    support: Support | None,
    task: Task,
    estimator: Any,
    raw: Any,
    raw_test: Any,
    notes: list[Note],
    trials: list[Trial],
    progress: ProgressSetting,
    where: str = "",
    n_predicted: int = MAX_PREDICTED,
) -> Found:
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
        found, about = support.search(space)
    notes += about
    notes += note_on_spread(space, support, notes)
    if is_judged and once:
        trials.append(try_out_near(reference, task, n_predicted, found))
    return Found(support, found, [(space, found)])


def support_for(estimator: Any, support: Support | None, notes: list[Note]) -> Support:
    """The support that was given, or the one that belongs to the model."""
    if support is not None:
        return support
    support, induced = default_support(final_step(estimator))
    name = type(final_step(estimator)).__name__
    text = (
        f"locality is assumed, not induced: {name} has no support of its own, so {support} was used; "
        "locality_gap() estimates what that misses."
    )
    if not induced:
        notes.append(Note("locality-assumed", text, model=name, support=repr(support)))
    return support


def find_by_folds(
    support: Support | None,
    parts: list[Task],
    estimator: Any,
    raw: Any,
    folds: list[Fold],
    notes: list[Note],
    trials: list[Trial],
    progress: ProgressSetting,
    n_predicted: int = MAX_PREDICTED,
) -> Found:
    """Find supports fold by fold among the rows outside; test rows come in ascending order."""
    if support is not None and support.names_rows:
        raise InvalidArgumentError(
            f"support {type(support).__name__} names rows or vectors for one set of test rows, cv makes several; give "
            "another support, or X_test and y_test instead of cv."
        )
    searched: list[tuple[Space, list[Indices]]] = []
    chosen = support
    for part, (train, test) in zip(parts, folds, strict=True):
        raw_part, raw_test = _safe_indexing(raw, train), _safe_indexing(raw, test)
        where, most = f", {part.fold}", -(-n_predicted // len(folds))
        chosen, _, inside = find_supports(
            support, part, estimator, raw_part, raw_test, notes, trials, progress, where, most
        )
        searched += inside
    assert chosen is not None
    return Found(chosen, of_all_rows([found for _, found in searched], folds), searched)


def where_mostly_empty(
    given: Support | None, found: Found, notes: list[Note], folds: list[Fold] | None = None
) -> Found:
    """Nearest rows in place of the support that belongs to the model, if that leaves most test rows without any.

    A support that was given is kept. If it finds no row for any test row, all values would be 0, and it is refused;
    lists that say so themselves are taken at their word.
    """
    n_empty, n_tests = sum(not len(rows) for rows in found.of_tests), len(found.of_tests)
    if given is not None:
        if n_empty == n_tests and not isinstance(given, Given):
            raise InvalidArgumentError(f"support {given!r} says nothing: {note_on_empty(found)[0]}")
        return found
    if n_empty <= MOST_EMPTY * n_tests:
        return found
    text = (
        f"{n_empty} of {n_tests} test rows have no training row in {found.support}, the support that belongs to the "
        f"model, so {NEAREST} was used, the nearest rows. locality_gap() estimates what they miss."
    )
    notes.append(Note("support-replaced", text, n_empty=n_empty, n_tests=n_tests, support=repr(NEAREST)))
    warn(text)
    nearest = [NEAREST(space) for space, _ in found.searched]
    of_tests = nearest[0] if folds is None else of_all_rows(nearest, folds)
    return Found(NEAREST, of_tests, [(space, rows) for (space, _), rows in zip(found.searched, nearest, strict=True)])


def note_on_empty(found: Found) -> list[Note]:
    """How many test rows have an empty support, and a larger one that reaches them all: one that was looked at."""
    n_empty, n_tests = sum(not len(rows) for rows in found.of_tests), len(found.of_tests)
    if not n_empty:
        return []
    text = f"{n_empty} of {n_tests} test rows have an empty support and add nothing{_what_would_reach(found)}."
    return [Note("support-empty", text, n_empty=n_empty, n_tests=n_tests)]


def _what_would_reach(found: Found) -> str:
    """A support that has some row for every test row, in words; empty if none of a few has."""
    unreached = [_of_tests(space, [not len(rows) for rows in inside]) for space, inside in found.searched]
    in_parts = any(isinstance(space.X, PartedRows) for space in unreached)  # where each look reads all rows
    larger = None if in_parts else found.support.grown()
    for _ in range(LARGER):
        if larger is None:
            break
        if all(_reaches(larger, space) for space in unreached):
            return f"; a larger support (supports.{larger}) would reach them"
        larger = larger.grown()
    if in_parts or all(_reaches(NEAREST, space) for space in unreached):
        return f"; nearest rows (supports.{NEAREST}) would reach them"
    return ""


def _reaches(support: Support, space: Space) -> bool:
    """Whether a support holds some row for every test row."""
    n = space.X_test.shape[0]
    try:
        return all(
            len(rows)
            for start in range(0, n, AT_ONCE)
            for rows in support(_of_tests(space, np.arange(n) // AT_ONCE == start // AT_ONCE))
        )
    except InvalidArgumentError:  # no distance is defined
        return False


def _of_tests(space: Space, kept: AnyArray | list[bool]) -> Space:
    """The same space with some of the test rows only."""
    tests = np.flatnonzero(kept)
    frames = None if space.frames is None else (space.frames[0], space.frames[1].iloc[tests])
    raw_test = None if space.raw_test is None else _safe_indexing(space.raw_test, tests)
    return replace(space, X_test=space.X_test[tests], raw_test=raw_test, frames=frames)


def of_all_rows(found: list[list[Indices]], folds: list[Fold]) -> list[Indices]:
    """Supports found fold by fold, by the numbers of all rows, with the test rows in ascending order."""
    numbered = [rows for (train, _), inside in zip(folds, found, strict=True) for rows in _as_numbered(train, inside)]
    return [numbered[t] for t in order_of_tests(folds)]


def of_folds(task: Task, folds: list[Fold]) -> list[Task]:
    """The tasks of all folds."""
    return [_of_fold(task, fold, f"fold {number} of {len(folds)}") for number, fold in enumerate(folds, 1)]


def _of_fold(task: Task, fold: Fold, name: str) -> Task:
    """The task of learning from the rows outside a fold, and being tested on those inside."""
    train, test = fold
    return replace(
        task,
        X=_safe_indexing(task.X, train),
        y=task.y[train],
        X_test=_safe_indexing(task.X, test),
        y_test=task.y[test] if task.codes is None else task.codes[test],
        codes=None if task.codes is None else task.codes[train],
        fold=name,
        guesses=None,
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
