"""The supports of the test rows, in the space of the reference model, fold by fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from localshapley.arrays import AnyArray, Indices
from localshapley.data.folds import Fold, order_of_tests
from localshapley.errors import InvalidArgumentError, LocalShapleyError, warn
from localshapley.models.estimator_checks import final_step
from localshapley.models.skill import Skill
from localshapley.models.task import Task
from localshapley.notes import Note
from localshapley.problem.reference_models import (
    JUDGED_ON_SAMPLE,
    MAX_PREDICTED,
    Trial,
    holds_neighbours,
    is_sampled,
    reads_reference,
    skill_of,
    train_on_rows,
    try_out,
    try_out_near,
)
from localshapley.runtime.progress import ProgressSetting, telling
from localshapley.search.scan import showing
from localshapley.supports.base import Space, Support
from localshapley.supports.chunked import ChunkedMatrix
from localshapley.supports.default import default_support
from localshapley.supports.given import Given
from localshapley.supports.nearest import Nearest

NEAREST = Nearest(20)
"""Reaches every test row, wherever it lies."""
MOST_EMPTY = 0.5
"""If more of the supports than this share are empty, the model has no use for the support that belongs to it."""
LARGER = 4
"""Larger supports that are looked at for one that reaches every test row."""
AT_ONCE = 256
"""Test rows that are looked at together, as a larger support may hold nearly all rows for each."""


@dataclass(frozen=True)
class FoldRows:
    """Rows among which the supports of some test rows are searched: all rows, or those outside a fold."""

    task: Task
    raw: Any
    raw_test: Any


@dataclass(frozen=True)
class FoldSupports:
    """What was found in a part: where it was searched, the support of each test row, and what the model predicts there.

    There is no trial of a model that could not predict, and None where it has not been asked yet.
    """

    space: Space
    of_tests: list[Indices]
    notes: Sequence[Note] = ()
    trials: list[Trial] | None = None


@dataclass(frozen=True)
class FoundSupports:
    """The support of every test row, where they come from, and what was found part by part."""

    source: Support
    of_tests: list[Indices]
    parts: Sequence[FoldSupports]
    notes: Sequence[Note]


def find_supports(
    given: Support | None,
    parts: Sequence[FoldRows],
    estimator: Any,
    folds: list[Fold] | None,
    progress: ProgressSetting,
    *,
    train: bool,
) -> FoundSupports:
    """Find the support of every test row, by the support that was given or the one that belongs to the model.

    Reference models are trained where supports read them, and with `train` in any case, so that data which the model
    refuses are refused before any coalition is trained. With folds, test rows come in ascending order.
    """
    if folds is not None and given is not None and given.names_rows:
        raise InvalidArgumentError(
            f"support {type(given).__name__} names rows or vectors for one set of test rows, cv makes several; give "
            "another support, or X_test and y_test instead of cv."
        )
    source, notes = support_for(estimator, given)
    searched, most = list[FoldSupports](), -(-MAX_PREDICTED // len(parts))
    for part in parts:
        searched.append(_search(source, part, estimator, progress, most, train))
    return chosen(given, source, searched, folds, notes)


def _search(
    source: Support, part: FoldRows, estimator: Any, progress: ProgressSetting, n_predicted: int, train: bool
) -> FoldSupports:
    """Find the support of every test row of a part."""
    task, reference, trials = part.task, estimator, None
    if train or reads_reference(source, estimator):
        reference, trials = train_on_rows(source, task, estimator, progress), list[Trial]()
        if not holds_neighbours(source, task, estimator):
            with suppress(InvalidArgumentError):  # such as too few rows for its neighbours; coalitions have conventions
                trials.append(try_out(reference, task, n_predicted))
    space = _space(reference, part)
    where = f", {task.fold}" if task.fold else ""
    doing = f"finding supports of {len(task.y_test):,} test rows among {len(task.y):,} rows{where}"
    with telling(progress, doing), showing(progress):
        found = source.search(space)
    if trials is not None and holds_neighbours(source, task, estimator):
        trials.append(try_out_near(estimator, task, n_predicted, found.of_tests))
    return FoldSupports(space, found.of_tests, found.notes, trials)


def chosen(
    given: Support | None,
    source: Support,
    searched: Sequence[FoldSupports],
    folds: list[Fold] | None,
    notes: Sequence[Note],
) -> FoundSupports:
    """The supports that were found or, if that which belongs to the model leaves most test rows without any row, the
    nearest rows.

    A support that was given is kept. If it finds no row for any test row, all values would be 0, and it is refused;
    lists that say so themselves are taken at their word.
    """
    for part in searched:
        notes = [*notes, *part.notes]
    of_tests = searched[0].of_tests if folds is None else of_all_rows([part.of_tests for part in searched], folds)
    n_tests, n_empty = len(of_tests), list(map(len, of_tests)).count(0)
    found = FoundSupports(source, of_tests, searched, notes)
    if given is not None and n_empty == n_tests and not isinstance(given, Given):
        raise InvalidArgumentError(f"support {given!r} says nothing: {notes_on_empty(found)[0]}")
    if given is not None or n_empty <= MOST_EMPTY * n_tests:
        return replace(found, notes=[*notes, *notes_on_empty(found)]) if n_empty else found
    note = Note(
        "support-replaced",
        f"{n_empty} of {n_tests} test rows have no training row in {source}, the support that belongs to the "
        f"model, so {NEAREST} was used, the nearest rows. locality_gap() estimates what they miss.",
        n_empty=n_empty,
        n_tests=n_tests,
        support=repr(NEAREST),
    )
    warn(note)
    nearest = [replace(part, of_tests=NEAREST(part.space), notes=[]) for part in searched]
    return chosen(NEAREST, NEAREST, nearest, folds, [*notes, note])


def support_for(estimator: Any, given: Support | None) -> tuple[Support, list[Note]]:
    """The support that was given, or the one that belongs to the model."""
    if given is not None:
        return given, []
    name = type(final_step(estimator)).__name__
    support, induced = default_support(final_step(estimator))
    note = Note(
        "locality-assumed",
        f"locality is assumed, not induced: {name} has no support of its own, "
        f"so {support} was used; locality_gap() estimates what that misses.",
        model=name,
        support=repr(support),
    )
    return support, [] if induced else [note]


def judge_of(
    found: FoundSupports, parts: Sequence[FoldRows], task: Task, estimator: Any, progress: ProgressSetting
) -> Callable[[], Skill | None]:
    """What finds out how good reference models are, which are trained then where supports did not need them."""
    if (tried := [part.trials for part in found.parts if part.trials is not None]) and len(tried) == len(parts):
        return cache(lambda: skill_of([trial for trials in tried for trial in trials], task))

    @cache
    def judge() -> Skill | None:
        most, trials = -(-MAX_PREDICTED // len(parts)), list[Trial]()
        for part, searched in zip(parts, found.parts, strict=True):
            with suppress(LocalShapleyError):
                if holds_neighbours(found.source, part.task, estimator):
                    trials.append(try_out_near(estimator, part.task, most, searched.of_tests))
                else:
                    trials.append(try_out(train_on_rows(found.source, part.task, estimator, progress), part.task, most))
        return skill_of(trials, task)

    return judge


def notes_on_samples(found: FoundSupports, parts: Sequence[FoldRows], estimator: Any) -> list[Note]:
    """Whether reference models are trained on samples of the rows."""
    return [JUDGED_ON_SAMPLE] if any(is_sampled(found.source, part.task, estimator) for part in parts) else []


def notes_on_empty(found: FoundSupports) -> list[Note]:
    """How many test rows have an empty support, and a larger one that reaches them all: one that was looked at."""
    n_empty, n_tests = list(map(len, found.of_tests)).count(0), len(found.of_tests)
    if not n_empty:
        return []
    text = f"{n_empty} of {n_tests} test rows have an empty support and add nothing"
    unreached = [_of_tests(part.space, [not len(rows) for rows in part.of_tests]) for part in found.parts]
    in_parts = any(isinstance(space.X, ChunkedMatrix) for space in unreached)  # where each look reads all rows
    larger, looked = None if in_parts else found.source.grown(), 0
    while larger is not None and not all(_reaches(larger, space) for space in unreached):
        looked += 1
        larger = larger.grown() if looked < LARGER else None
    if larger is not None:
        text += f"; a larger support (supports.{larger}) would reach them"
    elif in_parts or all(_reaches(NEAREST, space) for space in unreached):
        text += f"; nearest rows (supports.{NEAREST}) would reach them"
    return [Note("support-empty", f"{text}.", n_empty=n_empty, n_tests=n_tests)]


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
    numbered: list[Indices] = []
    for (train, _), inside in zip(folds, found, strict=True):
        # One array for several test rows stays one array.
        of_array = {id(rows): train[rows].astype(np.int32) for rows in {id(rows): rows for rows in inside}.values()}
        numbered += [of_array[id(rows)] for rows in inside]
    return [numbered[t] for t in order_of_tests(folds)]


def _space(reference: Any, part: FoldRows) -> Space:
    """The space before the last step of a pipeline, else that of the rows."""
    model, X, X_test = reference, part.task.X, part.task.X_test
    while isinstance(model, Pipeline):
        if len(model.steps) > 1:
            X, X_test = model[:-1].transform(X), model[:-1].transform(X_test)
        model = model.steps[-1][1]
    frames = (X, X_test) if isinstance(X, pd.DataFrame) else None
    y, seed = part.task.y, part.task.seed
    return Space(as_rows(X), as_rows(X_test), part.raw, part.raw_test, y, final_step(reference), seed, frames)


def of_folds(task: Task, folds: list[Fold]) -> list[Task]:
    """The tasks of learning from the rows outside each fold, and being tested on those inside."""
    return [
        replace(
            task,
            X=_safe_indexing(task.X, train),
            y=task.y[train],
            X_test=_safe_indexing(task.X, test),
            y_test=task.y[test] if task.codes is None else task.codes[test],
            codes=None if task.codes is None else task.codes[train],
            fold=f"fold {number} of {len(folds)}",
            guesses=None,
        )
        for number, (train, test) in enumerate(folds, 1)
    ]


def as_rows(table: Any) -> Any:
    """Rows as an array or a CSR matrix."""
    if sparse.issparse(table):
        return sparse.csr_matrix(table)
    return table.to_numpy() if isinstance(table, pd.DataFrame) else table
