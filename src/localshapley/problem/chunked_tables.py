"""Problems of rows that lie in parts: supports are found part by part, and only their rows are gathered and played."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags

from localshapley.arrays import AnyArray, Ints
from localshapley.data.chunked_rows import ChunkedRows
from localshapley.data.row_digests import Digests
from localshapley.data.rows import are_numbers, as_amounts, as_array
from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.models.dispatch import as_model, compiled_trainer_of
from localshapley.models.estimator_checks import final_step, reads_names, seeded, takes_kernel
from localshapley.models.fixed_trees import Fixed
from localshapley.models.input_checks import check
from localshapley.models.pipelines import as_table, flat, names_of_steps, peel, transformed
from localshapley.models.skill import Skill
from localshapley.models.task import Task
from localshapley.models.trainer import Model
from localshapley.notes import Note
from localshapley.problem.assembly import make_problem, make_trainer
from localshapley.problem.base import RowsProblem
from localshapley.problem.dominant_targets import note_of_loud_rows
from localshapley.problem.reference_models import (
    JUDGED_ON_SAMPLE,
    MAX_PREDICTED,
    MAX_REFERENCE,
    skill_of,
    train_on_rows,
    try_out,
)
from localshapley.problem.support_search import FoldRows, FoldSupports, as_rows, chosen, support_for
from localshapley.problem.table_notes import notes_on_copies
from localshapley.question import Question, Table
from localshapley.runtime.dask_cluster import need_workers
from localshapley.runtime.progress import ProgressSetting
from localshapley.supports.base import Space, Support
from localshapley.supports.chunked import ChunkedMatrix

COPIES_OF_PART, COPIES_OF_ROWS, BYTES_OF_PLAYER = 14, 6, 3000
"""Memory that a part takes while it is read and searched (the next ones are read meanwhile), and gathered rows."""
LARGE = "X is larger than memory allows for, or lies in parts"


def build_from_parts(question: Question[Table], parts: ChunkedRows, X_test: Any, y_test: Any) -> RowsProblem:
    """Find supports part by part, gather their rows, and make the problem that is left.

    The players are the rows that are in some support, and the first row of each class, so that there are as many
    classes as in all rows. All other rows are worth 0.
    """
    _refuse_what_needs_all_rows(question.data)
    seed, progress, given = question.limits.seed, question.limits.progress, question.support_given
    labels, first = parts.distinct_labels()
    model, told = as_model(question.model, labels)
    need_workers()
    source, assumed = _check(model, given)
    first = first if is_classifier(model.estimator) else first[:0]
    sample = _sample(parts.n_rows, seed)
    encode, tests = _encoding(model, X_test, parts), as_table_like(X_test, parts)
    space = _space(parts, encode, tests, model, seed, progress)
    found = chosen(given, source, [FoldSupports(space, *source.search(space))], None, assumed)
    rows = np.unique(np.concatenate([*found.of_tests, first])).astype(np.int64)
    together = np.union1d(rows, np.union1d(sample, first))
    X, y = parts.gather(together)

    score, empty = question.score, question.empty
    checked = check(X, y, X_test, y_test, model=model, score=score, empty=empty, seed=seed)
    here = np.searchsorted(together, rows)
    task, of_sample = (
        _only(checked.task, np.searchsorted(together, some)) for some in (rows, np.union1d(sample, first))
    )
    amounts = None if task.classes is not None else as_amounts("y", parts.labels())
    if amounts is not None:
        guesses = np.full(len(task.y_test), amounts.mean())
        task, of_sample = (replace(one, guesses=guesses) for one in (task, of_sample))
    raw, raw_y, ids = _safe_indexing(X, here), y[here], pd.Index(rows, name="row")
    rows_alone = replace(checked, task=task, ids=ids, digests=cache(lambda: Digests.of(raw, raw_y)))
    before, last = model.split()
    if before is not None:
        task, of_sample = transformed(task, before), transformed(of_sample, before)
    if getattr(compiled_trainer_of(last.estimator), "centres", False):
        task = replace(task, centre=space.X.mean())
    judged = [FoldRows(of_sample, None, None)]
    trainer = None if last.may_refuse else make_trainer(question, last, task, judged, checked)
    reference = None
    if trainer is None or trainer.may_refuse:
        reference = train_on_rows(found.source, of_sample, last.estimator, progress)

    @cache
    def judge() -> Skill | None:
        with suppress(LocalShapleyError):  # such as too few rows for its neighbours
            trained = reference or train_on_rows(found.source, of_sample, last.estimator, progress)
            return skill_of([try_out(trained, of_sample, MAX_PREDICTED)], of_sample)
        return None

    trainer = trainer or make_trainer(question, last, task, judged, checked)

    def remarks() -> list[Note]:
        loud = [] if amounts is None else note_of_loud_rows(replace(rows_alone.task, y=amounts), None, folds=False)
        copies = notes_on_copies(rows_alone, raw, X_test, y_test)
        return [*told, *loud, *checked.notes, *copies, *([JUDGED_ON_SAMPLE] if parts.n_rows > MAX_REFERENCE else [])]

    numbered = [np.searchsorted(rows, one).astype(np.int32) for one in found.of_tests]
    return make_problem(
        question,
        rows_alone,
        task,
        judged,
        replace(found, of_tests=numbered),
        trainer,
        last.estimator,
        remarks,
        judge=judge,
        among=parts.n_rows,
        memory=_memory(parts, len(together), len(rows), amounts is not None),
    )


def _refuse_what_needs_all_rows(data: Table) -> None:
    """Refuse functions and arguments that rows in parts do not go with."""
    if not data.in_parts:
        raise InvalidArgumentError(
            f"{LARGE}, which only value() and plan() take; give rows in memory, such as a sample."
        )
    if data.cv is not None:
        raise InvalidArgumentError(f"cv needs all rows in memory, but {LARGE}; give X_test and y_test instead.")
    if data.owners is not None:
        raise InvalidArgumentError(
            f"owners play with all of their rows, but {LARGE}; leave owners out, and add up the values of rows with "
            "tasks.owners."
        )


def _check(model: Model, support: Support | None) -> tuple[Support, list[Note]]:
    """The support to search for; refuses models and supports that need all rows."""
    estimator = model.estimator
    if isinstance(model, Fixed) or takes_kernel(estimator):
        kind = "models.Fixed" if isinstance(model, Fixed) else "a model of a precomputed kernel"
        raise InvalidArgumentError(f"{kind} needs all rows in memory, but {LARGE}; use another model, or fewer rows.")
    before, _ = peel(estimator)
    if before is not None and not all(_is_settled(step) for _, step in flat(before)):
        raise InvalidArgumentError(
            f"the steps before the model, {names_of_steps(before)}, would be fitted on all rows, but {LARGE}; fit them "
            "on a sample, and freeze them: make_pipeline(FrozenEstimator(StandardScaler().fit(sample)), model), with "
            "FrozenEstimator from sklearn.frozen."
        )
    wanted, notes = support_for(estimator, support)
    if not wanted.takes_parts:
        reason = "reads what the model has learnt from all rows" if wanted.reads_model else "needs all rows"
        raise InvalidArgumentError(
            f"support {wanted!r} {reason}, but {LARGE}; give a support that is a search, such as "
            "support=supports.Nearest(20), or fewer rows in memory."
        )
    return wanted, notes


def _is_settled(step: Any) -> bool:
    """Whether a step has nothing to learn."""
    return isinstance(step, FrozenEstimator) or not get_tags(step).requires_fit


@dataclass(frozen=True)
class _Encoding:
    """From a part of the table to its rows in the space of the model."""

    by_names: bool
    steps: Pipeline | None

    def __call__(self, X: Any) -> AnyArray:
        if isinstance(X, pd.DataFrame) and not self.by_names and are_numbers(X):
            X = as_array("X", X)
        rows = as_rows(X if self.steps is None else as_table(self.steps.transform(X)))
        return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


def _encoding(model: Model, X_test: Any, parts: ChunkedRows) -> _Encoding:
    before, _ = peel(model.estimator)
    by_names = reads_names(model.estimator)
    X_test = as_table_like(X_test, parts)
    if before is not None:
        like = X_test if by_names or not isinstance(X_test, pd.DataFrame) else as_array("X_test", X_test)
        before = seeded(before, 0).fit(like)  # nothing is learnt
    return _Encoding(by_names, before)


def as_table_like(X_test: Any, parts: ChunkedRows) -> Any:
    """Test rows in the form of the parts: a frame or an array."""
    n_columns = np.shape(X_test)[1] if np.ndim(X_test) == 2 else -1
    if n_columns != parts.n_columns:
        raise InvalidArgumentError(
            f"X_test has {'no' if n_columns < 0 else n_columns} features, X has {parts.n_columns}; both need the same "
            "columns."
        )
    if parts.names is None:
        return np.asarray(X_test)
    return X_test if isinstance(X_test, pd.DataFrame) else pd.DataFrame(np.asarray(X_test), columns=parts.names)


def _space(
    parts: ChunkedRows, encode: _Encoding, X_test: Any, model: Model, seed: int, progress: ProgressSetting
) -> Space:
    """The space that supports are found in."""
    tests = encode(X_test)
    X = ChunkedMatrix(parts, (parts.n_rows, tests.shape[1]), encode, progress)
    raw = ChunkedMatrix(parts, (parts.n_rows, parts.n_columns), _as_it_is, progress)
    return Space(X, tests, raw, X_test, np.empty(0), final_step(model.estimator), seed)


def _as_it_is(X: Any) -> Any:
    return X


def _sample(n_rows: int, seed: int) -> Ints:
    """Rows on which the model is tried out."""
    if n_rows <= MAX_REFERENCE:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, MAX_REFERENCE, replace=False))


def _only(task: Task, rows: Ints) -> Task:
    codes = None if task.codes is None else task.codes[rows]
    return replace(task, X=_safe_indexing(task.X, rows), y=task.y[rows], codes=codes)


def _memory(parts: ChunkedRows, n_gathered: int, n_players: int, amounts: bool) -> int:
    """Bytes that the run takes at most, beyond what Python and its libraries do, to about a third."""
    row = 8 * parts.n_columns
    of_rows = COPIES_OF_PART * parts.largest * row + COPIES_OF_ROWS * n_gathered * row
    return of_rows + BYTES_OF_PLAYER * n_players + (24 * parts.n_rows if amounts else 0)
