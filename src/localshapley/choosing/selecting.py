"""Choosing rows by what they teach together: one more at a time, or one less."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Floats, Indices, Ints
from localshapley.choosing.climbing import Descent
from localshapley.choosing.close import Close
from localshapley.choosing.comparing import Question
from localshapley.choosing.harm import harmless
from localshapley.choosing.result import Chosen, Pruning, Selection
from localshapley.choosing.walking import Walk
from localshapley.engine.executor import Executor
from localshapley.engine.run_store import StoreSetting, opened
from localshapley.errors import InvalidArgumentError
from localshapley.games import SupportGraph
from localshapley.inputs.columns import count_of, n_rows_of
from localshapley.methods import read_settings
from localshapley.models.dispatch import FIXED_FOREST
from localshapley.models.fixed import Fixed
from localshapley.models.graph_model import GraphModel
from localshapley.notes import Note
from localshapley.problem.base import RowsProblem
from localshapley.problem.finding import of_all_rows
from localshapley.problem.making import games_of
from localshapley.problem.posing import pose
from localshapley.progress import ProgressSetting, telling
from localshapley.search.scan import showing
from localshapley.supports.base import Support
from localshapley.wording import counted


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
    probably wrong, as in `tasks.suspects`, or could be (``p_wrong > 0.2``) and that alone make the test rows near them
    worse than no row at all. Where numbers are predicted, or `X` holds anything but numbers, the last decides alone: of
    numbers, a row does harm that stands out from the others by it.

    Gains are exact for the test rows that are there; nothing is drawn. Other test rows would find other gains: each
    has its standard error over the test rows, and `n_sure` counts those that are sure. Rows are taken whether their
    gain is sure or not, as each is still the best guess; `Selection.curve` tells what that is worth on other rows.

    Parameters
    ----------
    X, y, X_test, y_test, model, cv, score, empty, seed, n_jobs, store, on_error
        As in `value`.
    n : int or float, optional
        How many rows, or which share of them, such as 0.2 (1 is one row, 1.0 are all); by default all rows are put in
        order.
    support : `localshapley.supports` object, optional
        Which rows can stand for a test row; by default its 15 nearest rows, down to 8 where there are fewer than 400
        rows, and 20 where numbers are predicted; of a tree, the nearest ones in its node. With classes, four times as
        many rows choose as long as fewer than one of them is taken on average, then twice as many.
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
    asked = Asked(
        X, y, X_test, y_test, model=model, n=n, cv=cv, support=support, score=score, budget=budget,
        max_seconds=max_seconds, empty=empty, seed=seed, n_jobs=n_jobs, progress=progress, store=store,
        on_error=on_error, on_interrupt=on_interrupt,
    )  # fmt: skip
    return _select(asked)


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
    X, y, X_test, y_test, model, cv, score, empty, seed, n_jobs, store, on_error
        As in `value`.
    n : int or float, optional
        How many rows shall go (an int), or which share of them (a float up to 1.0); by default all are put in order.
    support, budget, max_seconds, progress, on_interrupt
        As in `select`. Measuring takes at most a training for each pair of a test row and a row of its support, and is
        always finished.

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
    asked = Asked(
        X, y, X_test, y_test, model=model, n=n, cv=cv, support=support, score=score, budget=budget,
        max_seconds=max_seconds, empty=empty, seed=seed, n_jobs=n_jobs, progress=progress, store=store,
        on_error=on_error, on_interrupt=on_interrupt,
    )  # fmt: skip
    return _prune(asked)


@dataclass(frozen=True)
class Asked:
    """The arguments of `select` and `prune`."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    _: KW_ONLY
    model: Any
    n: float | None
    cv: Any
    support: Support | None
    score: Any
    budget: int | None
    max_seconds: float | None
    empty: float | None
    seed: int
    n_jobs: int | None
    progress: ProgressSetting
    store: StoreSetting
    on_error: str
    on_interrupt: str

    @contextmanager
    def begin(self) -> Iterator[tuple[Walk, int]]:
        """Check the arguments and find the games; gives a walk that has not moved, and the number of rows wanted."""
        limits = {"budget": self.budget, "max_seconds": self.max_seconds}
        settings = read_settings(
            "auto", seed=self.seed, progress=self.progress, on_interrupt=self.on_interrupt, **limits
        )
        if isinstance(self.model, Fixed) or (isinstance(self.model, str) and self.model == FIXED_FOREST):
            raise InvalidArgumentError(
                "model is grown once, on all rows, so it cannot tell how few rows do; give the forest itself, such as "
                "model='forest', or choose by value: tasks.select."
            )
        if isinstance(self.model, GraphModel):
            raise InvalidArgumentError(
                "model is for the nodes of a graph, which are chosen by value: tasks.select(value_nodes(...), n)."
            )
        if isinstance(self.cv, str):
            raise InvalidArgumentError(
                f"cv must be a number of folds, a splitter or pairs of row numbers; got {self.cv!r}. Try cv=5."
            )
        if self.n is not None:
            count_of(self.n, n_rows_of(self.X))
        close = Close()
        problem, wider = self._pose(close if self.support is None else self.support), []
        if self.support is None and problem.task.codes is not None:
            with telling(self.progress, "finding wider supports"), showing(self.progress):
                wider = [_graph_of(problem, found) for found in close.wider()]
        close.spaces.clear()  # the problem keeps its support, and need not keep the rows of all folds
        n_rows = problem.graph.n_players
        count = n_rows if self.n is None else count_of(self.n, n_rows)
        with opened(self.store, problem.contents) as known:
            executor = Executor(
                problem.trainer, known, max_seconds=self.max_seconds, on_interrupt=settings.on_interrupt
            )
            yield Walk(problem, settings, executor, wider), count

    def _pose(self, support: Support) -> RowsProblem:
        return pose(
            self.X,
            self.y,
            self.X_test,
            self.y_test,
            model=self.model,
            cv=self.cv,
            support=support,
            score=self.score,
            empty=self.empty,
            seed=self.seed,
            n_jobs=self.n_jobs,
            on_error=self.on_error,
            progress=self.progress,
        )

    def question(self, walk: Walk, answer: Callable[[Asked], Chosen], *, removed: bool) -> Question:
        """The same question, to be asked of parts of the data."""
        folds = walk.problem.folds
        cv = self.cv if folds is None or hasattr(self.cv, "split") else len(folds)

        def choose(*data: Any, **more: Any) -> Ints:
            named = dict(zip(("X", "y", "X_test", "y_test"), data, strict=True))
            return answer(replace(self, **named, **more, progress=False, store=None)).order

        return Question(self.X, self.y, self.X_test, self.y_test, self.model, cv, choose, removed)


def _graph_of(problem: RowsProblem, found: list[list[Indices]]) -> SupportGraph:
    """The games of a problem with other supports, which were found fold by fold."""
    folds = problem.folds
    return games_of(found[0] if folds is None else of_all_rows(found, folds), problem.graph.n_players, folds)


def _select(asked: Asked) -> Selection:
    """Rows by gain, then the others."""
    with asked.begin() as (walk, count):
        worth, start, others = _climbed(walk, count, asked.seed)
    order = np.append(walk.order, others[: count - len(walk.order)]).astype(np.int64)
    unknown = np.full(len(order) - len(walk.order), np.nan)
    gains, stderr = np.append(walk.gains, unknown), np.append(walk.stderrs, unknown)
    compare = asked.question(walk, _select, removed=False).compare
    return Selection(**_described(walk, worth), order=order, gains=gains, stderr=stderr, start=start, compare=compare)


def _prune(asked: Asked) -> Pruning:
    """The same backwards, with what changes as rows go."""
    with asked.begin() as (walk, count):
        graph = walk.problem.graph
        later = len(graph.players) + graph.n_games
        worth, _, others = _climbed(walk, graph.n_players, asked.seed, later)
        order = np.append(walk.order, others).astype(np.int64)[::-1][:count]
        descent = Descent(graph, order)
        start, gains = descent.changes(walk.scores_of(descent.wanted))
    compare = asked.question(walk, _prune, removed=True).compare
    if not walk.is_cut:
        walk.stopped = Note("rows-in-order", f"{counted(count, 'row')} in order", n_rows=count)
    return Pruning(**_described(walk, worth), order=order, gains=gains, start=start / graph.n_tests, compare=compare)


def _climbed(walk: Walk, n: int, seed: int, later: int = 0) -> tuple[Floats, float, Ints]:
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


def _described(walk: Walk, worth: Floats) -> dict[str, Any]:
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
