"""What the engine asks of a trainer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from joblib.parallel import get_active_backend

from localshapley.arrays import Floats
from localshapley.coalitions.batch import Coalitions
from localshapley.games import SupportGraph
from localshapley.progress import Progress


class Trainer(Protocol):
    """Trains coalitions and scores them on their test rows."""

    name: str

    def evaluate(self, coalitions: Coalitions) -> Floats:
        """Train and score every coalition; returns one number for each of its test rows, flat."""


@dataclass
class Trained:
    """What came of training some coalitions.

    Attributes
    ----------
    scores : array
        One number for each test row of each coalition, flat.
    n_trivial : int
        Coalitions that needed no training: empty, or of one class.
    n_failed : int
        Coalitions that the model refused (too few rows for it); they count as nothing learnt.
    n_silent : int
        Predictions that the model had no answer for; they count as nothing learnt.
    n_skipped : int
        Coalitions whose training raised an error that was to be skipped; they count as nothing learnt.
    first_failure, first_skipped : str
    stand_ins : list of int
        Coalitions with a score that stands for a failure; it is not to be remembered.
    warnings : Counter
        Names of the warnings that fits gave, with their number.
    """

    scores: Floats
    n_trivial: int = 0
    n_failed: int = 0
    n_silent: int = 0
    n_skipped: int = 0
    first_failure: str = ""
    first_skipped: str = ""
    stand_ins: list[int] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)


@runtime_checkable
class Worker(Protocol):
    """A trainer that can be sent to other processes, `n_jobs` of them: it trains there and counts here."""

    n_jobs: int

    def train(self, coalitions: Coalitions) -> Trained:
        """Train and score coalitions in this process."""

    def count(self, trained: Trained) -> None:
        """Add up what happened."""


@runtime_checkable
class Solver(Protocol):
    """A trainer whose coalitions fall into classes of equal scores with known weights: exact without training."""

    name: str

    def count_classes(self, graph: SupportGraph) -> int | None:
        """Number of classes, over all test rows; None where the score does not allow it."""

    def solve(self, graph: SupportGraph, bar: Progress) -> Floats:
        """Exact values of the players of every test row's support, in the order of `graph.N`."""


def on_cluster() -> bool:
    """Whether joblib has been told to work on a Dask cluster."""
    return hasattr(get_active_backend()[0], "data_futures")
