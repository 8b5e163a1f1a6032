"""From a question to a problem: read the data, find the supports, make games of them and a trainer for coalitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, overload

import numpy as np
from sklearn.utils import _safe_indexing

from localshapley.coalitions.games import SupportGraph
from localshapley.data.folds import order_of_tests
from localshapley.data.indexes import check_order, index_of
from localshapley.data.row_sources import parts_of, tests_in_memory
from localshapley.data.rows import known_table
from localshapley.errors import InvalidArgumentError, warn
from localshapley.models.fixed_trees import Fixed
from localshapley.models.input_checks import check
from localshapley.models.owner_players import Owners, OwnersTrainer
from localshapley.models.pipelines import note_on_steps, transformed, warning_on_labels
from localshapley.models.utility import as_trainer
from localshapley.notes import Note
from localshapley.problem.assembly import make_problem, make_trainer
from localshapley.problem.base import Problem, RowsProblem
from localshapley.problem.chunked_tables import build_from_parts
from localshapley.problem.dominant_targets import note_of_loud_rows
from localshapley.problem.fixed_structure import build_fixed
from localshapley.problem.graph_nodes import NodesProblem, build_nodes
from localshapley.problem.store_keys import ScoreKeys, contents_by_name
from localshapley.problem.support_search import FoldRows, find_supports, of_folds
from localshapley.problem.table_notes import notes_on_copies
from localshapley.question import GraphInput, Question, TableInput, UtilityGame
from localshapley.runtime.dask_cluster import need_workers
from localshapley.supports.base import Support


@overload
def build_problem(question: Question[TableInput]) -> RowsProblem: ...
@overload
def build_problem(question: Question[GraphInput]) -> NodesProblem: ...
@overload
def build_problem(question: Question[UtilityGame]) -> Problem: ...
def build_problem(question: Question[Any]) -> Problem:
    """Make the problem of a question; the functions below know the steps in between, and nobody else does."""
    if isinstance(question.data, UtilityGame):
        return build_game(question)
    return build_nodes(question) if isinstance(question.data, GraphInput) else build_rows(question)


def build_rows(question: Question[TableInput]) -> RowsProblem:
    """Make the problem of rows of a table."""
    data, limits, support = question.data, question.limits, question.support_given
    X, y, X_test, y_test = data.X, data.y, data.X_test, data.y_test
    if support is not None and not isinstance(support, Support):
        raise InvalidArgumentError(
            "support must be one of localshapley.supports, such as supports.Nearest(10), or None (value() and plan() "
            f"also take 'auto'); got {support!r}."
        )
    lying = parts_of(X, y)
    if lying is not None:
        X_test, y_test = tests_in_memory(X_test, y_test, lying)
        if not lying.is_small:
            return build_from_parts(question, lying, X_test, y_test)
        X, y = lying.whole()
    X, X_test, owners, held = known_table(X), known_table(X_test), data.owners, None
    checked = check(
        X, y, X_test, y_test,
        model=question.model, cv=data.cv, score=question.score, empty=question.empty, seed=limits.seed, rare=data.rare,
    )  # fmt: skip
    task, folds, told = checked.task, checked.folds, list[Note]()
    if checked.kept is not None:
        X, y = _safe_indexing(X, checked.kept), _safe_indexing(y, checked.kept)
        owners = None if owners is None else _safe_indexing(owners, checked.kept)
    if owners is not None:
        held = Owners(owners, task.X.shape[0])
        told += check_order("owners", owners, "X" if index_of(X) is not None else "y", index_of(X, y))
    need_workers()  # scikit-learn asks joblib how many there are, too

    def remarks() -> list[Note]:
        loud = note_of_loud_rows(task, checked.ids, folds=folds is not None or checked.oob)
        return [*checked.notes, *notes_on_copies(checked, X, X_test, y_test), *loud, *told]

    if isinstance(checked.model, Fixed):
        problem = build_fixed(question, checked, checked.model, remarks)
        return problem if held is None else _of_owners(problem, held)
    before, last = checked.model.split()
    tasks = [task] if folds is None else of_folds(task, folds)
    if before is not None:
        told.append(note_on_steps(before, checked.model.estimator, folds=folds is not None))
        if warning := warning_on_labels(before, task):
            told.append(warning)
            warn(warning)
        tasks = [transformed(part, before) for part in tasks]
    if folds is None:
        task, parts = tasks[0], [FoldRows(tasks[0], X, X_test)]
    else:
        pairs = zip(tasks, folds, strict=True)
        parts = [FoldRows(part, *(_safe_indexing(X, rows) for rows in fold)) for part, fold in pairs]
    # A model that has to be trained on all rows shows what it refuses before it gets a trainer.
    trainer = None if last.may_refuse else make_trainer(question, last, task, parts, checked)
    train = trainer is None or trainer.may_refuse or folds is not None
    found = find_supports(support, parts, last.estimator, folds, limits.progress, train=train)
    trainer = trainer or make_trainer(question, last, task, parts, checked)
    problem = make_problem(question, checked, task, parts, found, trainer, last.estimator, remarks)
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

    def contents() -> ScoreKeys:
        found = problem.contents()._replace(rows_of=owners.rows_of)
        return found if folds is None else found.with_folds(folds, order_of_tests(folds))

    return replace(
        problem,
        graph=owners.graph(problem.graph),
        trainer=OwnersTrainer(problem.trainer, owners, allowed, fold_of_test),
        contents=contents,
        ids=owners.names,
        unit="owner",
        remarks=lambda: [*problem.notes, Note("owners-play", text, in_folds=folds is not None)],
        digests=lambda: None,
        oob_scores=lambda: None,
        owners=owners,
    )


def build_game(question: Question[UtilityGame]) -> Problem:
    """Make the problem of a game of the user's own."""
    data, plays_all = question.data, question.limits.method.plays_all
    graph = SupportGraph(data.supports, data.n_players)
    if graph.n_tests == 0:
        raise InvalidArgumentError("supports is empty; give the players of at least one test row.")

    def contents() -> ScoreKeys:
        if not data.name:
            raise InvalidArgumentError("store needs the name of the game: name='my game, version 1'.")
        return contents_by_name(data.name, graph.n_players, graph.n_tests)

    trainer = as_trainer(data.utility, question.n_jobs)
    return Problem(
        graph=graph.of_everyone() if plays_all else graph,
        trainer=trainer,
        model="a game",
        score=trainer.name,
        support="Everything()" if plays_all else "given",
        contents=contents,
    )
