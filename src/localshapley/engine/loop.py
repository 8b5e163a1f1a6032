"""The one place that knows all stages: a method draws coalitions, an executor scores them, rules look at estimates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from localshapley.coalitions.games import SupportGraph
from localshapley.engine.executor import Executor
from localshapley.engine.forecast import how_to_shorten, start
from localshapley.engine.kept_values import KeptValues
from localshapley.engine.run_result import EstimateHistory, RunResult
from localshapley.methods import Limits, Run
from localshapley.notes import Note
from localshapley.runtime.compiling import announcing_compilation, showing_compilation
from localshapley.runtime.progress import Progress
from localshapley.sampling.estimate import Estimate

DOING = {"trainings": "training coalitions", "classes": "scoring classes of coalitions", "parts": "valuing trees"}
"""What the progress bar says, by what a run counts."""


def play(graph: SupportGraph, executor: Executor, limits: Limits, kept: KeptValues | None = None) -> RunResult:
    """Play the games of a graph by the method of the limits, except those of test rows whose values are kept."""
    rule, history = limits.rule, EstimateHistory()
    played: Estimate | None = None
    known: Estimate | None = None  # that of all games, kept or played
    ended: Note | None = None
    with announcing_compilation(limits.progress):
        run, graph, most, notes = start(graph if kept is None else kept.rest(), executor, limits)
        with _shown(run, graph, executor, limits) as bar:
            # All other runs were known beforehand to fit into the limit of time.
            drain = partial(executor.drain, bar=bar, refuses=executor.store is not None or run.least_is_bound)
            drain(run.begin(), may_stop=lambda: False)
            while ended is None:
                left = limits.left(run.planned, most)
                wanted = (known, rule) if kept is None else kept.for_round(played, known, rule)
                if not run.draw(left, *wanted):
                    is_late = left < limits.left(run.planned, np.inf)
                    ended = run.ended or (executor.time if is_late else limits.spent)
                    break
                ended = drain(run.train(), may_stop=lambda: history.is_begun or run.can_look)
                is_cut = ended is not None and run.distinct < run.planned
                if is_cut:
                    run.cut_short()
                    if not run.can_look:
                        break
                played = run.estimate()
                known = history.add(_joined(played, kept, known, executor))
                most = run.planned + executor.in_time(run.distinct)
                if known.exact:
                    ended = run.complete
                elif not is_cut:
                    bar.reached(known.relative_error, None if rule is None else rule.aim)
                    ended = rule.reached(known) if rule is not None and rule.holds(known) else ended
            known = known or _joined(run.estimate(), kept, None, executor)  # `begin` trained all there was
    assert ended is not None
    graph = graph if kept is None else kept.graph
    return RunResult.of(run, graph, known, history, executor, limits, ended, notes)


@contextmanager
def _shown(run: Run, graph: SupportGraph, executor: Executor, limits: Limits) -> Iterator[Progress]:
    """Show how far a run is, and what is compiled."""
    may_be_long = limits.max_seconds is None and run.counts == "trainings"  # other runs may not list their games
    faster = partial(how_to_shorten, run, graph, executor, limits) if may_be_long else None
    bar = Progress(limits.progress, run.total, DOING[run.counts], run.first_look, faster)
    with bar, showing_compilation(bar, {*run.kernels, *executor.trainer.kernels}):
        yield bar


def _joined(played: Estimate, kept: KeptValues | None, before: Estimate | None, executor: Executor) -> Estimate:
    """Return what is known of all games, and when."""
    known = played if kept is None else kept.joined(played)
    return replace(known, previous=None if before is None else before.values, seconds=executor.elapsed)
