"""Local-MC: random permutations of the support of each test row, separately."""

from __future__ import annotations

from dataclasses import dataclass

from localshapley.games import SupportGraph
from localshapley.methods.base import CoalitionScorer
from localshapley.methods.rounds import InRounds
from localshapley.methods.walks import Walks


@dataclass(frozen=True)
class LocalMC(InRounds):
    """Marginal gains along permutations of each test row's support; unbiased, and without reuse."""

    name = "local-mc"

    def make_run(self, graph: SupportGraph, executor: CoalitionScorer, seed: int) -> Walks:
        """Every test row is a game of its own."""
        return Walks(graph.apart(), executor, self, seed)
