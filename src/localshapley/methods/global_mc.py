"""Global-MC: random permutations of all rows, for all test rows at once."""

from __future__ import annotations

from dataclasses import dataclass

from localshapley.games import SupportGraph
from localshapley.methods.base import CoalitionScorer
from localshapley.methods.rounds import InRounds
from localshapley.methods.walks import Walks


@dataclass(frozen=True)
class GlobalMC(InRounds):
    """Marginal gains along permutations of all rows (Data Shapley without truncation); unbiased."""

    name = "global-mc"
    plays_all = True
    keeps_tests = False

    def make_run(self, graph: SupportGraph, executor: CoalitionScorer, seed: int) -> Walks:
        """The run of this method."""
        return Walks(graph, executor, self, seed)
