"""The one place that knows all stages: a method draws coalitions, a trainer trains them, rules look at the values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from localshapley.coalitions.games import SupportGraph
from localshapley.engine.executor import Executor
from localshapley.engine.forecast import how_to_shorten, start
from localshapley.engine.run_result import EstimateHistory, RunResult
from localshapley.methods import Limits
from localshapley.notes import Note
from localshapley.runtime.compiling import announcing_compilation, showing_compilation
from localshapley.runtime.progress import Progress


def play(graph: SupportGraph, executor: Executor, limits: Limits) -> RunResult:
    """Play the games of a graph by the method of the limits."""
    rule, looks = limits.rule, EstimateHistory()
    stopped: Note | None = None
    with announcing_compilation(limits.progress):
        run, graph, at_first, notes = start(graph, executor, limits)
        refuses = executor.store is not None or run.least_is_bound  # others were known beforehand to fit into the limit
        may_be_long = limits.max_seconds is None and run.counts == "trainings"  # other runs may not list their games
        faster = how_to_shorten(run, graph, executor, limits) if may_be_long else ""
        bar = Progress(limits.progress, run.total, run.doing, run.first_look, faster)
        with bar, showing_compilation(bar, {*run.kernels, *executor.trainer.kernels}):
            executor.drain(run.begin(), bar, may_stop=lambda: False, refuses=refuses)
            while stopped is None:
                most = run.planned + executor.in_time(run.distinct) if looks.last else at_first
                left = limits.left(run.planned, most)
                if not run.draw(left, looks.last, rule):
                    is_late = left < limits.left(run.planned, np.inf)
                    stopped = run.ended or (executor.time if is_late else limits.spent)
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
    return RunResult.of(run, graph, look, looks, executor, limits, stopped, notes)
