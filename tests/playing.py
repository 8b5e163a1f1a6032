"""Plays a game below the public functions, where limits and the clock are parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import localshapley as ls
from localshapley.engine.executor import Executor
from localshapley.engine.loop import play as play_games
from localshapley.engine.run_result import RunResult
from localshapley.methods import Limits, find_method
from localshapley.models.utility import as_trainer
from localshapley.problem.base import RowsProblem
from localshapley.problem.build import build_problem
from localshapley.question import Question


def pose(X: Any, y: Any, X_test: Any = None, y_test: Any = None, **given: Any) -> RowsProblem:
    """The problem of rows of a table, by the arguments of `ls.value`."""
    return build_problem(Question.of_rows(X, y, X_test, y_test, **given))


def read_limits(method: Any, *arguments: Any, **named: Any) -> Limits:
    """The limits of a run, with a method by its name; the arguments are those of `Limits`."""
    return Limits(find_method(method), *arguments, **named)


LIMITS = ("max_batch", "seconds_here", "seconds_away", "store", "clock")


def play(
    supports: Iterable[Iterable[int]],
    utility: Any,
    n_players: int | None = None,
    *,
    method: Any = "exact",
    n_jobs: int | None = None,
    **more: Any,
) -> RunResult:
    """`ls.shapley` with limits of the executor, and a clock, of one's own (`LIMITS`)."""
    limits = {name: more.pop(name) for name in LIMITS if name in more}
    settings = read_limits(method, **more)
    graph = ls.SupportGraph(supports, n_players)
    graph = graph.of_everyone() if settings.method.plays_all else graph
    executor = Executor(
        as_trainer(utility, n_jobs), max_seconds=settings.max_seconds, on_interrupt=settings.on_interrupt, **limits
    )
    return play_games(graph, executor, settings)


class Timed:
    """A utility whose trainings take so many seconds each by a clock that nothing else moves.

    After `quick` trainings they take three times as long.
    """

    def __init__(self, utility: Any, seconds: float, quick: float = float("inf")) -> None:
        self.utility, self.seconds, self.quick, self.now = utility, seconds, quick, 0.0

    def __call__(self, coalition: Any, tests: Any) -> Any:
        self.quick -= 1
        self.now += self.seconds if self.quick >= 0 else 3 * self.seconds
        return self.utility(coalition, tests)

    def clock(self) -> float:
        """The time."""
        return self.now
