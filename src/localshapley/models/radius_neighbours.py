"""Neighbours within a radius: distances once, votes for every coalition, exact values in closed form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from localshapley import scoring
from localshapley.arrays import Floats, Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.coalitions.games import SupportGraph
from localshapley.models.fixed_trees import harmonic_sums, leaf_labels
from localshapley.models.nearest_neighbours import NeighboursTrainer
from localshapley.models.task import Task


class RadiusTrainer(NeighboursTrainer):
    """All neighbours within a radius, classifier or regressor, with equal weights or weights by distance.

    Where a coalition has no row within the radius, it has no answer, as if nothing had been learnt.

    Parameters
    ----------
    estimator : RadiusNeighborsClassifier or RadiusNeighborsRegressor
    task, n_jobs, max_distances
    """

    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        **NeighboursTrainer.settings,
        "radius": lambda radius: True,
    }
    kernels = ("euclidean_pairs", "predict_within", "add_radius_values")

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None, *, max_distances: int = 2**27) -> None:
        super().__init__(estimator, task, n_jobs, max_distances=max_distances)
        self._radius = float(estimator.radius)

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        from localshapley.kernels.radius import predict_within

        predict_within(
            coalitions.arrays,
            todo,
            self._row_of_test,
            self._distances,
            self._targets,
            self._radius,
            self._by_distance,
            self._n_classes,
            out.reshape(len(out), -1),
        )

    def solver(self) -> RadiusTrainer | None:
        """Itself, where all votes count the same and the score is linear in them, or quadratic in numbers."""
        has_formula = type(self._task.score) in (scoring.Confidence, scoring.SquaredError)
        return self if has_formula and not self._by_distance else None

    def count_classes(self, graph: SupportGraph) -> int:
        """Number of sizes that coalitions can have, over all test rows: those of a size are summed up at once."""
        return int(graph.support_sizes.sum()) + graph.n_tests

    def solve(self, graph: SupportGraph, out: Floats) -> Iterator[int]:
        """Write exact values; see `models.trainer.Solver`."""
        from localshapley.kernels.radius import radius_values

        away, labels = self._distances_within(*graph.N), leaf_labels(self._task, np.ones(graph.n_tests))
        harmonic = harmonic_sums(int(graph.support_sizes.max(initial=0)))

        def work(tests: Ints) -> None:
            some = tests.astype(np.int32)
            radius_values(graph.N, some, away, self._radius, labels, harmonic, self._n_classes, out)

        self._in_threads(work, np.arange(graph.n_tests))
        yield self.count_classes(graph)
