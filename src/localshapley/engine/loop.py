"""The one place that knows all stages: a method draws coalitions, a trainer trains them, rules look at the values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from localshapley.arrays import Floats
from localshapley.compiling import announcing_compilation, showing_compilation
from localshapley.engine.executor import Executor
from localshapley.engine.forecast import how_to_shorten, start
from localshapley.engine.run_store import StoreSetting, opened
from localshapley.errors import warn
from localshapley.games import SupportGraph
from localshapley.methods import Run, Settings
from localshapley.models.trainer import Counts
from localshapley.notes import Note, notes_of
from localshapley.problem.base import Problem
from localshapley.progress import Progress
from localshapley.stopping import Look
from localshapley.valuation import Cost, Facts, FinalEstimate, GameCounts, History, Origin, Valuation
from localshapley.valuation.errors import errors_of_run
from localshapley.valuation.looks import Looks


def play(graph: SupportGraph, executor: Executor, settings: Settings) -> RunResult:
    """Play the games of a graph by the method of the settings."""
    rule, looks = settings.rule, Looks()
    stopped: Note | None = None
    with announcing_compilation(settings.progress):
        run, graph, at_first, notes = start(graph, executor, settings)
        refuses = executor.store is not None or run.least_is_bound  # others were known beforehand to fit into the limit
        may_be_long = settings.max_seconds is None and run.counts == "trainings"  # other runs may not list their games
        faster = how_to_shorten(run, graph, executor, settings) if may_be_long else ""
        bar = Progress(settings.progress, run.total, run.doing, run.first_look, faster)
        with bar, showing_compilation(bar, {*run.kernels, *executor.trainer.kernels}):
            executor.drain(run.begin(), bar, may_stop=lambda: False, refuses=refuses)
            while stopped is None:
                most = run.planned + executor.in_time(run.distinct) if looks.last else at_first
                left = settings.left(run.planned, most)
                if not run.draw(left, looks.last, rule):
                    is_late = left < settings.left(run.planned, np.inf)
                    stopped = run.ended or (executor.time if is_late else settings.spent)
                    break
                stopped = executor.drain(
                    run.train(), bar, may_stop=lambda: looks.last is not None or run.can_look, refuses=refuses
                )
                is_cut = stopped is not None and run.distinct < run.planned
                if is_cut:
                    run.cut_short()
                    if not run.can_look:
                        break
                look = looks.add(replace(run.look(looks.last, executor.elapsed), spread_tests=run.spread_tests))
                if look.exact:
                    stopped = run.complete
                elif not is_cut:
                    bar.reached(look.relative_error, None if rule is None else rule.aim)
                    if rule is not None and rule.holds(look):
                        stopped = rule.reached(look)
            look = looks.last or run.look(None, executor.elapsed)  # `begin` trained all there was
    assert stopped is not None
    return RunResult.of(run, graph, look, looks, executor, settings, stopped, notes)


@dataclass(frozen=True)
class RunResult:
    """Games that have been played to their end."""

    graph: SupportGraph
    estimate: FinalEstimate
    halves: Floats | None
    history: History | None
    cost: Cost
    counts: Counts
    method: str
    chosen: str
    stopped: Note
    notes: list[Note]

    @classmethod
    def of(
        cls,
        run: Run,
        graph: SupportGraph,
        look: Look,
        looks: Looks,
        executor: Executor,
        settings: Settings,
        stopped: Note,
        notes: list[Note],
    ) -> RunResult:
        """The outcome of a run on the games of a graph."""
        spread_tests = run.spread_tests()
        return cls(
            graph=graph,
            estimate=FinalEstimate(
                look.values,
                look.stderr,
                per_test=run.by_test() if settings.per_test else None,
                spread=run.spread(look.stderr) if look.stderr.any() else None,
                spread_tests=spread_tests,
            ),
            halves=run.halves_by_test() if settings.per_test and look.stderr.any() else None,
            history=looks.history() if run.samples else None,
            cost=executor.cost(run.distinct),
            counts=executor.counts,
            method=run.title,
            chosen=run.why,
            stopped=stopped,
            notes=[*notes, *run.notes, *errors_of_run(look, settings.rule, spread_tests)],
        )

    @property
    def values(self) -> Floats:
        """The value of each player."""
        return self.estimate.values

    @property
    def stderr(self) -> Floats:
        """Its standard error."""
        return self.estimate.stderr

    def valuation(self, problem: Problem, notes: list[Note], origin: Origin | None = None) -> Valuation:
        """The result, with the description of the problem."""
        if self.counts.silent >= max(self.cost.draws - self.graph.n_tests, 1):  # all but those without any row
            text = "values say nothing, as the model gave no prediction that can be scored."
            notes = [*notes, Note("no-predictions", text)]
            warn(text)
        return Valuation(
            estimate=self.estimate,
            players=problem.players(),
            counts=GameCounts(self.graph.support_sizes, self.graph.tests_per_player),
            facts=Facts(
                model=problem.model,
                score=problem.score,
                support=problem.support,
                method=self.method,
                chosen=self.chosen,
                is_random=problem.trainer.is_random,
                skill=problem.judge,
            ),
            cost=self.cost,
            stopped=self.stopped,
            notes=notes_of([*problem.notes, *problem.trainer.notes(self.counts), *notes, *self.notes]),
            history=self.history,
            games=self.graph.listed(),
            origin=self._described(origin),
        )

    def _described(self, origin: Origin | None) -> Origin | None:
        """What was valued, with the errors of what was sampled."""
        if origin is None or self.halves is None:
            return origin
        return origin.sampled(self.halves, self.cost.draws / self.graph.n_tests)


def solve(problem: Problem, settings: Settings, store: StoreSetting = None, origin: Origin | None = None) -> Valuation:
    """Play the games of a problem, with a store if there is one, and make the result."""
    settings.check_room(problem.graph)
    with opened(store, problem.contents) as known:
        executor = Executor(
            problem.trainer,
            known,
            max_seconds=settings.max_seconds,
            before=settings.watch.seconds,
            on_interrupt=settings.on_interrupt,
        )
        found = play(problem.graph, executor, settings)
        return found.valuation(problem, [] if known is None else known.notes, origin)
