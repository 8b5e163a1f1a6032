"""Random values: the floor that a method must beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localshapley.arrays import Floats
from localshapley.coalitions.games import SupportGraph
from localshapley.methods.base import CoalitionScorer, DeterministicRun, Method
from localshapley.methods.limits import Limits
from localshapley.models.trainer import Work
from localshapley.notes import Note


@dataclass(frozen=True)
class RandomValues(Method):
    """Random numbers in place of values; nothing is trained."""

    name = "random"
    kind = "no estimate"
    plays_all = True
    keeps_tests = False

    def start(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> RandomRun:
        """Begin a run."""
        return RandomRun(graph, settings.seed)


class RandomRun(DeterministicRun):
    """Draws a number for each player."""

    title, complete = "random", Note("at-once", "at once")

    def __init__(self, graph: SupportGraph, seed: int) -> None:
        self.graph = graph
        self._values = np.random.default_rng(seed).normal(size=graph.n_players)

    def train(self) -> Work:
        """Nothing."""
        yield from ()

    def values(self) -> Floats:
        """The numbers."""
        return self._values

    @property
    def notes(self) -> list[Note]:
        """A warning that these are not values."""
        text = "values are random numbers, the floor that any method must beat; they have no standard error."
        return [Note("values-random", text)]
