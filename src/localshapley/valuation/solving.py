"""From a problem to a valuation: its games are played, and the result says what was valued and how."""

from __future__ import annotations

from localshapley.engine.executor import Executor
from localshapley.engine.kept_values import KeptValues
from localshapley.engine.loop import play
from localshapley.engine.run_result import RunResult
from localshapley.engine.run_store import StoreSetting, opened
from localshapley.errors import warn
from localshapley.methods import Limits
from localshapley.notes import Note, notes_of
from localshapley.problem.base import Problem
from localshapley.problem.players import Origin
from localshapley.stopping import Rule
from localshapley.valuation.facts import Facts, GameCounts
from localshapley.valuation.intervals import errors_against
from localshapley.valuation.result import Valuation


def solve(
    problem: Problem,
    limits: Limits,
    store: StoreSetting = None,
    origin: Origin | None = None,
    kept: KeptValues | None = None,
) -> Valuation:
    """Play the games of a problem, with a store if there is one, and make the result; kept values are not played."""
    limits.check_room(problem.graph)
    with opened(store, problem.contents) as known:
        executor = Executor(
            problem.trainer,
            known,
            max_seconds=limits.max_seconds,
            before=limits.watch.seconds,
            on_interrupt=limits.on_interrupt,
        )
        found = play(problem.graph, executor, limits, kept)
        return valuation_of(found, problem, limits.rule, [] if known is None else known.notes, origin)


def valuation_of(
    run: RunResult, problem: Problem, rule: Rule | None, notes: list[Note], origin: Origin | None = None
) -> Valuation:
    """Return the result of a run, with the description of the problem."""
    if run.counts.silent >= max(run.cost.draws - run.graph.n_tests, 1):  # all but those without any row
        text = "values say nothing, as the model gave no prediction that can be scored."
        notes = [*notes, Note("no-predictions", text)]
        warn(text)
    errors = errors_against(None if rule is None else rule.aim, run.values, run.stderr, run.estimate.spread_tests)
    return Valuation(
        estimate=run.estimate,
        players=problem.players(),
        counts=GameCounts(run.graph.support_sizes, run.graph.tests_per_player),
        facts=Facts(
            model=problem.model,
            score=problem.score,
            support=problem.support,
            method=run.method,
            chosen=run.chosen,
            is_random=problem.trainer.is_random,
            skill=problem.judge,
        ),
        cost=run.cost,
        stopped=run.stopped,
        notes=notes_of([*problem.notes, *problem.trainer.notes(run.counts), *notes, *run.notes, *errors]),
        history=run.history,
        games=run.graph.listed(),
        origin=_with_errors(origin, run),
    )


def _with_errors(origin: Origin | None, run: RunResult) -> Origin | None:
    """What was valued, with the errors of what was sampled."""
    if origin is None or run.halves is None:
        return origin
    return origin.sampled(run.halves, run.cost.draws / run.graph.n_tests)
