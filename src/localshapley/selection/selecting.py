"""Choosing rows by what they teach together: one more at a time, or one less."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Floats, Indices, Ints
from localshapley.coalitions.games import SupportGraph
from localshapley.data.folds import tested_rows
from localshapley.data.side_columns import count_of, n_rows_of
from localshapley.engine.executor import Executor
from localshapley.engine.run_store import StoreSetting, opened
from localshapley.errors import InvalidArgumentError
from localshapley.formatting import counted
from localshapley.models.dispatch import FIXED_FOREST
from localshapley.models.fixed_trees import Fixed
from localshapley.notes import Note
from localshapley.parameter_docs import documented
from localshapley.problem.base import RowsProblem
from localshapley.problem.build import build_problem
from localshapley.problem.support_search import of_all_rows
from localshapley.question import Question, TableInput
from localshapley.runtime.progress import ProgressSetting, telling
from localshapley.search.scan import showing
from localshapley.selection.chosen_rows import Pruning, RowOrder, Selection
from localshapley.selection.chosen_support import WIDER, SelectionSupport
from localshapley.selection.comparing import Comparison, compare
from localshapley.selection.greedy import RemovalPath
from localshapley.selection.greedy_limits import GreedyRun
from localshapley.selection.harmful_rows import harmless
from localshapley.supports.base import Support
from localshapley.torch.graph_models import GraphModel


@documented
def select(
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    model: Any,
    n: float | None = None,
    cv: Any = None,
    support: Support | None = None,
    score: Any = None,
    budget: int | None = None,
    max_seconds: float | None = None,
    empty: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: ProgressSetting = None,
    store: StoreSetting = None,
    on_error: str = "raise",
    on_interrupt: str = "raise",
) -> Selection:
    """Choose the rows that teach the model most together.

    What a set of rows teaches is the summed score of the test rows, each predicted from those rows of the set that are
    in its support. Rows are taken one by one: the classes take turns, so that they keep their shares, and of a class
    the row is taken that adds most; of several such rows the one that is worth most alone, then the first. A class in
    which nothing is gained is passed over, but has one row in any case. The first rows are chosen with larger supports,
    until the smaller ones hold some of them. Where nothing more is gained the others follow in random order, with the
    classes in their shares. Rows that do harm come last, and do not count in these shares: those whose label is
    probably wrong, as in `audit.label_errors`, or could be (``p_wrong > 0.2``) and that alone make the test rows near
    them worse than no row at all. Where numbers are predicted, or `X` holds anything but numbers, the last decides
    alone: of numbers, a row does harm that stands out from the others by it.

    Gains are exact for the test rows that are there; nothing is drawn. Other test rows would find other gains: each
    has its standard error over the test rows, and `n_sure` counts those that are sure. Rows are taken whether their
    gain is sure or not, as each is still the best guess; `Selection.curve` tells what that is worth on other rows.

    Parameters
    ----------
    n : int or float, optional
        How many rows, or which share of them, such as 0.2 (1 is one row, 1.0 are all); by default all rows are put in
        order.
    support : `localshapley.supports` object, optional
        Which rows can stand for a test row; by default its 15 nearest rows, down to 8 where there are fewer than 400
        rows, and 20 where numbers are predicted; of a tree, the nearest ones in its node. With classes, four times as
        many rows choose as long as fewer than one of them is taken on average, then twice as many.
    cv : int, splitter of scikit-learn or pairs (training rows, test rows), optional
        In place of test rows, as in `value`.
    budget : int, optional
        Maximum number of trainings, more than there are rows; by default supports three times as many. What it leaves
        out is not taken by gain.
    max_seconds : float, optional
        Take no more rows by gain after this time; each row is tried once in any case.
    progress : bool or callable, optional
        As in `value`; a function is called with the number of rows taken by gain, and `n`.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does: end the run, or return the rows taken so far with the others behind them.

    Returns
    -------
    Selection

    Examples
    --------
    >>> import localshapley as ls
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> chosen = ls.select(X, y, X_test, y_test, model="tree", n=12)
    >>> len(chosen.index), chosen.n_gained <= 12
    (12, True)
    """
    return _select(Question.of(TableInput, locals()), n)


@documented
def prune(
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    model: Any,
    n: float | None = None,
    cv: Any = None,
    support: Support | None = None,
    score: Any = None,
    budget: int | None = None,
    max_seconds: float | None = None,
    empty: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: ProgressSetting = None,
    store: StoreSetting = None,
    on_error: str = "raise",
    on_interrupt: str = "raise",
) -> Pruning:
    """Find the rows that can go first, without a loss or with a gain.

    Rows go in the reverse of the order in which `select` takes them: first those that do harm, the most harmful one
    first, then those that add nothing to the others, last those that teach most. What changes as they go is measured:
    the summed score of the test rows, each predicted from those rows of its support that are left.

    Parameters
    ----------
    n : int or float, optional
        How many rows shall go (an int), or which share of them (a float up to 1.0); by default all are put in order.
    support, budget, max_seconds, progress, on_interrupt
        As in `select`. Measuring takes at most a training for each pair of a test row and a row of its support, and is
        always finished.
    cv : int, splitter of scikit-learn or pairs (training rows, test rows), optional
        In place of test rows, as in `value`.

    Returns
    -------
    Pruning

    Examples
    --------
    >>> import localshapley as ls
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> y[:5] = (y[:5] + 1) % 3
    >>> pruned = ls.prune(X, y, X_test, y_test, model="knn")
    >>> pruned.n_free >= pruned.n_best > 0
    True
    """
    return _prune(Question.of(TableInput, locals()), n)


@contextmanager
def _begun(question: Question[TableInput], n: float | None) -> Iterator[tuple[GreedyRun, int]]:
    """Check the arguments and find the games; gives a walk that has not moved, and the number of rows wanted."""
    data, limits, model = question.data, question.limits, question.model
    if isinstance(model, Fixed) or (isinstance(model, str) and model == FIXED_FOREST):
        raise InvalidArgumentError(
            "model is grown once, on all rows, so it cannot tell how few rows do; give the forest itself, such as "
            "model='forest', or choose by value: tasks.select."
        )
    if isinstance(model, GraphModel):
        raise InvalidArgumentError(
            "model is for the nodes of a graph, which are chosen by value: tasks.select(value_nodes(...), n)."
        )
    if isinstance(data.cv, str):
        raise InvalidArgumentError(
            f"cv must be a number of folds, a splitter or pairs of row numbers; got {data.cv!r}. Try cv=5."
        )
    if n is not None:
        count_of(n, n_rows_of(data.X))
    is_open = question.support is None
    problem, wider = (
        build_problem(replace(question, support=SelectionSupport()) if is_open else question),
        list[SupportGraph](),
    )
    if is_open and problem.task.codes is not None:
        with telling(limits.progress, "finding wider supports"), showing(limits.progress):
            wider = [
                _graph_of(problem, [SelectionSupport(times)(space) for space in problem.spaces]) for times in WIDER
            ]
    n_rows = problem.graph.n_players
    with opened(question.store, problem.contents) as known:
        executor = Executor(problem.trainer, known, max_seconds=limits.max_seconds, on_interrupt=limits.on_interrupt)
        # The problem keeps its supports, and need not keep the rows of all folds.
        yield (
            GreedyRun(replace(problem, spaces=()), limits, executor, wider),
            n_rows if n is None else count_of(n, n_rows),
        )


def _comparison(
    question: Question[TableInput],
    walk: GreedyRun,
    answer: Callable[[Question[TableInput], float | None], RowOrder],
    *,
    removed: bool,
) -> Callable[..., Comparison]:
    """What compares the answer to a question, asked of parts of its data, with random rows."""
    data, folds = question.data, walk.problem.folds
    cv = data.cv if folds is None or hasattr(data.cv, "split") else len(folds)

    def choose(X: Any, y: Any, X_test: Any, y_test: Any, cv: Any, n: float | None) -> Ints:
        part = TableInput(X=X, y=y, X_test=X_test, y_test=y_test, cv=cv)
        quiet = replace(question.limits, progress=False)
        return answer(replace(question, data=part, limits=quiet, store=None), n).order

    return partial(compare, replace(data, cv=cv), question.model, choose, removed)


def _graph_of(problem: RowsProblem, found: list[list[Indices]]) -> SupportGraph:
    """The games of a problem with other supports, which were found fold by fold."""
    folds, n_rows = problem.folds, problem.graph.n_players
    if folds is None:
        return SupportGraph(found[0], n_rows)
    return SupportGraph(of_all_rows(found, folds), n_rows, sources=tested_rows(folds))


def _select(question: Question[TableInput], n: float | None) -> Selection:
    """Rows by gain, then the others."""
    with _begun(question, n) as (walk, count):
        worth, start, others = _climbed(walk, count, question.limits.seed)
    order = np.append(walk.order, others[: count - len(walk.order)]).astype(np.int64)
    unknown = np.full(len(order) - len(walk.order), np.nan)
    gains, stderr = np.append(walk.gains, unknown), np.append(walk.stderrs, unknown)
    by = _comparison(question, walk, _select, removed=False)
    return Selection(**_described(walk, worth), order=order, gains=gains, stderr=stderr, start=start, compare=by)


def _prune(question: Question[TableInput], n: float | None) -> Pruning:
    """The same backwards, with what changes as rows go."""
    with _begun(question, n) as (walk, count):
        graph = walk.problem.graph
        later = len(graph.players) + graph.n_games
        worth, _, others = _climbed(walk, graph.n_players, question.limits.seed, later)
        order = np.append(walk.order, others).astype(np.int64)[::-1][:count]
        descent = RemovalPath(graph, order)
        start, gains = descent.changes(walk.scores_of(descent.wanted))
    by = _comparison(question, walk, _prune, removed=True)
    if not walk.is_cut:
        walk.stopped = Note("rows-in-order", f"{counted(count, 'row')} in order", n_rows=count)
    return Pruning(**_described(walk, worth), order=order, gains=gains, start=start / graph.n_tests, compare=by)


def _climbed(walk: GreedyRun, n: int, seed: int, later: int = 0) -> tuple[Floats, float, Ints]:
    """Take rows by gain; returns what each row is worth alone, the mean score at the start, and the other rows."""
    codes, climbs = walk.problem.task.codes, walk.begin(later)
    climb = climbs[-1]
    worth = climb.gains.copy()
    good = harmless(worth, walk.problem, seed, walk.settings.progress)
    if codes is None:
        climb.lower_start()
    start = climb.utility / walk.problem.graph.n_tests
    walk.go_on(climbs, n, good, later)
    return worth, start, _in_balance(walk.order, worth, good, codes, seed)


def _in_balance(taken: list[int], worth: Floats, harmless: AnyArray, codes: AnyArray | None, seed: int) -> Ints:
    """The rows that are not taken: harmless ones at random, so that classes keep their shares, then by worth."""
    rest = np.random.default_rng(seed).permutation(len(worth))
    rest = rest[~np.isin(rest, taken)]
    good, bad = rest[harmless[rest]], np.sort(rest[~harmless[rest]])
    if codes is not None:
        there = np.bincount(codes[harmless], minlength=codes.max() + 1)
        place = pd.Series(codes[good]).groupby(codes[good]).cumcount().to_numpy()
        so_far = np.bincount(codes[taken], minlength=len(there))[codes[good]] + place
        good = good[np.argsort((so_far + 0.5) / there[codes[good]], kind="stable")]
    return np.concatenate([good, bad[np.argsort(-worth[bad], kind="stable")]])


def _described(walk: GreedyRun, worth: Floats) -> dict[str, Any]:
    """What both results have in common."""
    problem, graph, task = walk.problem, walk.problem.graph, walk.problem.task
    of_store = [] if walk.executor.store is None else walk.executor.store.notes
    return {
        "worth": worth,
        "n_rows": graph.n_players,
        "n_tests": graph.n_tests,
        "cost": walk.cost(),
        "stopped": walk.stopped,
        "model": problem.model,
        "score": problem.score,
        "support": problem.support,
        "support_sizes": graph.support_sizes,
        "ids": pd.RangeIndex(graph.n_players, name="row") if problem.ids is None else problem.ids,
        "labels": None if task.codes is None else task.y,
        "notes": [
            *problem.notes,
            *problem.trainer.notes(walk.executor.counts),
            *of_store,
        ],
    }
