"""The default: in closed form or exact where that is cheaper than sampling to the target, sampled elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from localshapley.coalitions.games import SupportGraph
from localshapley.formatting import in_words
from localshapley.methods.base import CoalitionScorer, Method, Run
from localshapley.methods.closed_form import ClosedForm
from localshapley.methods.exact import Exact
from localshapley.methods.limits import Limits
from localshapley.methods.sample import SampleRun
from localshapley.sampling.tuning import TUNED, Tuning


@dataclass(frozen=True)
class Auto(Method):
    """Chooses by cost, game by game and size by size; the result says which way it went and why.

    Parameters
    ----------
    easy : int
        Up to this many distinct subsets are all trained, whatever the target.
    tuning : `localshapley.sampling.tuning.Tuning`, optional
        Settings of the sampler, as of `Sample`.
    """

    name = "auto"
    easy: int = 2048
    tuning: Tuning | None = None

    def start(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> Run:
        """Begin a run of the method that is cheapest."""
        closed = ClosedForm().find(graph, executor, settings)
        if closed is not None:
            return closed
        run, why = self._enumerate(graph, executor, settings)
        if run is None:
            games = graph.apart() if settings.per_test else graph
            run = SampleRun(games, executor, settings, self.title, self.tuning, eager=True)
            why = "sampled: there are too many distinct subsets to train them all"
        run.why = why
        return run

    def _enumerate(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> tuple[Run | None, str]:
        """A run that trains every subset, if that is worthwhile."""
        exact, most = Exact(), self.easy
        if settings.budget is not None:
            most = settings.budget
            why = "exact: the budget allows all {} distinct subsets"
        elif (graph.sizes <= (self.tuning or TUNED).easy_game.bit_length() - 1).all():
            most = exact.max_subsets
            why = "exact: games are so small that all {} distinct subsets are trained faster than sampled"
        else:
            why = "exact: all {} distinct subsets are trained faster than sampled"
        distinct = exact.count_if_within(graph, most)
        if distinct is None or distinct > settings.in_time(graph, executor):
            return None, ""
        return exact.enumerate(graph, executor, settings, distinct), why.format(in_words(distinct))
