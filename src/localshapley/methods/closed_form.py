"""Closed form: coalitions that must have equal scores are counted together, and nothing is trained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from localshapley.arrays import Floats, Singles, scattered
from localshapley.coalitions.games import SupportGraph
from localshapley.errors import InvalidArgumentError, TooLargeError
from localshapley.formatting import counted, in_words
from localshapley.methods.base import CoalitionScorer, DeterministicRun, Method
from localshapley.methods.limits import Limits
from localshapley.models.trainer import Counts, Solver, TreeSum, Work
from localshapley.notes import Note
from localshapley.sampling.estimate import FEW_MET, PerTest

CLASSES_PER_SECOND = 1e7
"""A lower bound on how fast classes are scored."""

BYTES_PER_PAIR = 28
"""Memory for each pair of a test row and a player: two values, a distance and a number."""


@dataclass(frozen=True)
class ClosedForm(Method):
    """Exact values without training, by classes of coalitions with equal scores, or tree by tree.

    A K-nearest-neighbour prediction depends only on the K nearest members of a coalition, so all coalitions fall into
    a few classes. The trees of `models.Fixed` have a formula for each leaf. Other models and scores are refused.

    Parameters
    ----------
    max_classes : int
        Up to this many equivalence classes are enumerated exactly: by default about half a minute's worth.
    """

    name = "closed-form"
    kind = "exact"
    max_classes: int = 2**33

    def start(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> DeterministicRun:
        """Begin a run."""
        parts = executor.trainer.parts()
        if parts is not None:
            return EnsembleRun(graph, parts)
        solver = executor.trainer.solver()
        if solver is None:
            raise InvalidArgumentError(
                f"method='closed-form' is not supported by {executor.trainer.name} with this score: its coalitions do "
                "not fall into classes of equal scores. Use method='exact' or 'auto'."
            )
        classes = solver.count_classes(graph)
        if classes > self.max_classes:
            raise TooLargeError(
                f"method='closed-form' would score {in_words(classes)} equivalence classes of coalitions; "
                f"the limit is {self.max_classes:,}. Use method='sample', or a smaller support."
            )
        return ClosedFormRun(graph, solver, classes)

    def find(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> DeterministicRun | None:
        """Begin a run if there is a closed form and it is quick enough."""
        parts = executor.trainer.parts()
        if parts is not None:
            return EnsembleRun(graph, parts)
        solver = executor.trainer.solver()
        if solver is None:
            return None
        seconds = np.inf if settings.max_seconds is None else settings.max_seconds
        classes = solver.count_classes(graph)
        if classes > min(self.max_classes, seconds * CLASSES_PER_SECOND):
            return None
        return ClosedFormRun(graph, solver, classes)


class ClosedFormRun(DeterministicRun):
    """A run in which a solver scores every class once."""

    title = "exact"
    counts = "classes"
    why = "closed form: coalitions with equal scores are counted together, and none is trained"

    def __init__(self, graph: SupportGraph, solver: Solver, classes: int) -> None:
        graph.check_room("the closed form", BYTES_PER_PAIR, "use method='sample', or a smaller support")
        self.graph, self._solver, self.total = graph, solver, classes
        self._by_test = np.empty(len(graph.N[1]))
        subsets = sum(2 ** int(n) for n in graph.support_sizes)
        text = f"{in_words(classes)} equivalence classes cover all {in_words(subsets)} coalitions"
        self.complete = Note("closed-form", text, classes=classes)

    def train(self) -> Work:
        """Nothing is trained: classes are scored."""
        for classes in self._solver.solve(self.graph, self._by_test):
            yield Counts(draws=classes)

    def values(self) -> Floats:
        """Sums over the test rows."""
        return self.graph.values(self._by_test)

    def per_test(self) -> SolvedTests:
        """The values that the solver found."""
        return SolvedTests(self.graph, self._by_test)


@dataclass(frozen=True)
class SolvedTests(PerTest):
    """Values at the places of `graph.N`, as a solver finds them."""

    graph: SupportGraph
    found: Floats

    def matrix(self) -> sparse.csr_array:
        """Return them as they are."""
        return self.graph.matrix(self.found)

    def by_bundle(self) -> Floats | None:
        """Sums over the test rows of each bundle."""
        bundles = self.graph.bundles
        return None if bundles is None else bundles.sums(self.graph.N, self.found, bundles.of_test)[None]

    def squares(self) -> Floats | None:
        """Sums over all test rows."""
        return self.graph.values(self.found**2)

    def spread(self) -> Singles | None:
        """The same columns; where few of many rows are in any support, there is no room made for the others."""
        bundles, (indptr, players), n_players = self.graph.bundles, self.graph.N, self.graph.n_players
        if bundles is None or len(players) >= FEW_MET * n_players:
            return super().spread()
        met, place = np.unique(players, return_inverse=True)
        sums = bundles.sums((indptr, place.astype(np.int32)), self.found, bundles.of_test, len(met))
        squares: Floats = np.bincount(place, weights=self.found**2).astype(np.float64)
        found = bundles.spread(sums[None], squares)
        return None if found is None else scattered(found, met, n_players)


class EnsembleRun(DeterministicRun):
    """A run that sums up values over the parts of a model, each of which has a formula."""

    title = "exact"
    counts = "parts"
    why = "closed form: the trees stay as they are, and a coalition only refills their leaves"

    def __init__(self, graph: SupportGraph, parts: TreeSum) -> None:
        self.graph, self._parts = graph, parts
        self.total = parts.n_parts
        self.complete = Note("closed-form", f"{counted(parts.n_parts, 'tree')} in closed form", trees=parts.n_parts)

    @property
    def distinct(self) -> int:
        """No coalition is scored."""
        return 0

    def train(self) -> Work:
        """Nothing is trained: parts are added up."""
        for _ in self._parts.add_up():
            yield Counts(parts=1)
        _ = self.graph.support_sizes  # while the bar is there

    def values(self) -> Floats:
        """The sums."""
        return self._parts.values()

    def per_test(self) -> PartSums:
        """The same formulas for each test row."""
        return PartSums(self.graph, self._parts)

    @property
    def notes(self) -> list[Note]:
        """Whether anything was not counted."""
        if not self.graph.sizes_are_bounds:
            return []
        text = "leaves are so large that the sizes of supports and the numbers of test rows are upper bounds."
        return [Note("sizes-are-bounds", text)]


@dataclass(frozen=True)
class PartSums(PerTest):
    """Values that the parts of a model have a formula for; computed when they are asked for."""

    graph: SupportGraph
    parts: TreeSum

    def matrix(self) -> sparse.csr_array:
        """Return the same formulas for each test row."""
        return self.parts.by_test(self.graph)

    def by_bundle(self) -> Floats | None:
        """Return the same formulas for the test rows of each bundle."""
        bundles = self.graph.bundles
        return None if bundles is None else self.parts.by_bundle(bundles)[None]
