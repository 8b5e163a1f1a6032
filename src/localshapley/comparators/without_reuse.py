"""The paper's first two levels: every subset is trained again for each test row, and for each player too."""

from __future__ import annotations

from dataclasses import dataclass

from localshapley.coalitions.games import SupportGraph
from localshapley.coalitions.subsets import RetrainingSchedule, count_distinct
from localshapley.methods.base import CoalitionScorer, Method
from localshapley.methods.enumeration import MAX_SUBSETS, Enumeration, refuse_if_too_large
from localshapley.methods.limits import Limits


@dataclass(frozen=True)
class PlayerCentric(Method):
    """Exact values player by player (the paper's Algorithm 1): `Σ n·2^n` trainings, for comparison.

    Parameters
    ----------
    max_subsets : int
        Maximum number of trainings; more are refused.
    """

    name = "baseline"
    kind = "exact"
    max_subsets: int = MAX_SUBSETS

    def start(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> Enumeration:
        """Begin a run."""
        total = sum(int(n) * 2 ** int(n) for n in graph.support_sizes)
        refuse_if_too_large(graph, self.name, total, self.max_subsets, settings.budget)
        apart, (distinct, _) = graph.apart(), count_distinct(graph, n_samples=2000)
        schedule, keeps = RetrainingSchedule(apart, by_player=True), settings.per_test
        return Enumeration(apart, executor, schedule, self.name, total=total, distinct=distinct, per_test=keeps)


@dataclass(frozen=True)
class SubsetCentric(Method):
    """Exact values without reuse between test rows: `Σ 2^n` trainings, for comparison.

    Parameters
    ----------
    max_subsets : int
        Maximum number of trainings; more are refused.
    """

    name = "subset-centric"
    kind = "exact"
    max_subsets: int = MAX_SUBSETS

    def start(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> Enumeration:
        """Begin a run."""
        total = sum(2 ** int(n) for n in graph.support_sizes)
        refuse_if_too_large(graph, self.name, total, self.max_subsets, settings.budget)
        apart, (distinct, _) = graph.apart(), count_distinct(graph, n_samples=2000)
        schedule, keeps = RetrainingSchedule(apart, by_player=False), settings.per_test
        return Enumeration(apart, executor, schedule, self.name, total=total, distinct=distinct, per_test=keeps)
