"""LSMR: each distinct subset of all supports is trained once, at its pivot, and scored on all its test rows."""

from __future__ import annotations

from dataclasses import dataclass

from localshapley.coalitions.games import SupportGraph
from localshapley.coalitions.subsets import PivotSchedule, count_distinct
from localshapley.methods.base import CoalitionScorer, Method, Run
from localshapley.methods.closed_form import ClosedForm
from localshapley.methods.enumeration import MAX_SUBSETS, Enumeration, refuse_if_too_large
from localshapley.methods.limits import Limits


@dataclass(frozen=True)
class Exact(Method):
    """Exact values: in closed form where the model has one, else by training each distinct subset once (LSMR).

    Parameters
    ----------
    max_subsets : int
        Maximum number of distinct subsets; more are refused.
    """

    name = "exact"
    kind = "exact"
    max_subsets: int = MAX_SUBSETS

    def start(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> Run:
        """Begin a run."""
        closed = ClosedForm().find(graph, executor, settings)
        if closed is not None:
            return closed
        distinct, _ = count_distinct(graph, n_samples=2000)
        refuse_if_too_large(graph, self.name, distinct, self.max_subsets, settings.budget)
        return self.enumerate(graph, executor, settings, distinct)

    def enumerate(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits, distinct: int) -> Enumeration:
        """Begin a run that trains all subsets, of which there are `distinct`."""
        schedule, keeps = PivotSchedule(graph, distinct), settings.per_test
        return Enumeration(graph, executor, schedule, self.name, total=distinct, distinct=distinct, per_test=keeps)

    def count_if_within(self, graph: SupportGraph, most: int) -> int | None:
        """Number of distinct subsets, if there are surely no more than `most`."""
        most = min(most, self.max_subsets)
        if 2 ** int(graph.sizes.max(initial=0)) > most:  # the largest game alone has more
            return None
        distinct, error = count_distinct(graph, n_samples=2000)
        return distinct if distinct + 5 * error <= most else None
