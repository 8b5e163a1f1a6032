"""What the engine asks of a trainer."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from localshapley.arrays import Floats
from localshapley.coalitions.batch import Coalitions
from localshapley.games import SupportGraph
from localshapley.progress import Progress


class Trainer(Protocol):
    """Trains coalitions and scores them on their test rows."""

    name: str

    def evaluate(self, coalitions: Coalitions) -> Floats:
        """Train and score every coalition; returns one number for each of its test rows, flat."""


@runtime_checkable
class Solver(Protocol):
    """A trainer whose coalitions fall into classes of equal scores with known weights: exact without training."""

    name: str

    def count_classes(self, graph: SupportGraph) -> int | None:
        """Number of classes, over all test rows; None where the score does not allow it."""

    def solve(self, graph: SupportGraph, bar: Progress) -> Floats:
        """Exact values of the players of every test row's support, in the order of `graph.N`."""
