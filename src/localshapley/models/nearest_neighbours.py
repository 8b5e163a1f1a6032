"""K nearest neighbours: distances once, votes for every coalition, exact values by classes of coalitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from localshapley import scoring
from localshapley.arrays import AnyArray, Floats, Indices, Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.coalitions.games import SupportGraph
from localshapley.models.compiled import CompiledTrainer, plain
from localshapley.models.task import UNKNOWN, Task
from localshapley.models.trainer import Counts, TrainingOutcome
from localshapley.search.distances import distances, metric_of

if TYPE_CHECKING:
    from localshapley.kernels.neighbours import Labels, Vote

FEW_CLASSES = 2**12
"""Up to so many classes of coalitions, a squared error is scored class by class."""


class NeighboursTrainer(CompiledTrainer):
    """What all neighbours models share: distances, and how rows are weighted by them.

    Parameters
    ----------
    estimator : estimator object
    task : Task
    n_jobs : int, optional
    max_distances : int
        Up to this many distances are kept; beyond that, those of a few test rows at a time are computed again.
    """

    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        "weights": lambda w: w is None or (isinstance(w, str) and w in ("uniform", "distance")),
        "metric": lambda m: m != "precomputed",
        "p": lambda p: True,
        "metric_params": lambda p: True,
    }
    irrelevant = frozenset({"algorithm", "leaf_size", "n_jobs"})
    takes_sparse = True

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None, *, max_distances: int = 2**27) -> None:
        super().__init__(estimator, task, n_jobs)
        self._by_distance = estimator.weights == "distance"
        self._metric = metric_of(estimator)
        self._n_classes = 0 if task.classes is None else len(task.classes)
        self._targets = plain(task.y if task.codes is None else task.codes)
        n_rows, n_tests = task.X.shape[0], task.X_test.shape[0]
        self._block = n_tests if n_rows * n_tests <= max_distances else max(1, max_distances // n_rows)
        self._distances: Floats = np.empty((0, n_rows))  # of the test rows at hand
        self._row_of_test: Ints = np.full(n_tests, -1)

    def train(self, coalitions: Coalitions) -> TrainingOutcome:
        """Score coalitions in this process."""
        n_tests = self._task.X_test.shape[0]
        if self._block == n_tests:
            if not len(self._distances):
                self._measure(np.arange(n_tests))
            return super().train(coalitions)
        outcome = self._task.outcomes(coalitions.indptr, coalitions.players)
        out = TrainingOutcome(np.empty(len(coalitions.tests)), Counts(trivial=int((outcome != UNKNOWN).sum())))
        needed = np.unique(coalitions.tests)
        for start in range(0, len(needed), self._block):
            self._measure(needed[start : start + self._block])
            here = self._row_of_test[coalitions.tests] >= 0
            part = super().train(coalitions.only(here))
            out.scores[here] = part.scores
            out.counts.silent += part.counts.silent
            out.stand_ins += part.stand_ins
        return out

    def _measure(self, tests: AnyArray) -> None:
        """Compute the distances of some test rows to all training rows, and keep them."""
        self._distances = plain(distances(self._task.X_test[tests], self._task.X, *self._metric))
        self._row_of_test[:] = -1
        self._row_of_test[tests] = np.arange(len(tests))

    def _distances_within(self, indptr: Ints, players: Any) -> Floats:
        """Distances of each test row to the rows of its support."""
        from localshapley.kernels.neighbours import euclidean_pairs

        X, X_test = self._task.X, self._task.X_test
        out = np.empty(len(players))
        if self._metric == ("euclidean", {}) and not sparse.issparse(X):
            dtype = np.float32 if X.dtype == X_test.dtype == np.float32 else np.float64
            arrays = plain(X, dtype), plain(X_test, dtype)
            self._in_threads(
                lambda tests: euclidean_pairs(*arrays, indptr, players, tests, out), np.arange(len(indptr) - 1)
            )
            return out
        for t in range(len(indptr) - 1):
            where = slice(indptr[t], indptr[t + 1])
            if where.stop > where.start:
                out[where] = distances(X_test[t : t + 1], X[players[where]], *self._metric)[0]
        return out


class KNNTrainer(NeighboursTrainer):
    """K nearest neighbours, classifier or regressor, with equal weights or weights by distance.

    Equally near rows count as nearer in the order of their index; scikit-learn leaves that to its search.

    Parameters
    ----------
    estimator : KNeighborsClassifier or KNeighborsRegressor
    task, n_jobs, max_distances
    """

    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        **NeighboursTrainer.settings,
        "n_neighbors": lambda k: True,
    }
    kernels = (
        "euclidean_pairs", "predict_neighbours", "count_supports", "enumerate_supports", "square_supports",
        "walk_games",
    )  # fmt: skip

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None, *, max_distances: int = 2**27) -> None:
        super().__init__(estimator, task, n_jobs, max_distances=max_distances)
        self._n_neighbors = min(int(estimator.n_neighbors), task.X.shape[0])

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        from localshapley.kernels.neighbours import predict_neighbours

        nearest = np.empty(self._n_neighbors, dtype=np.int64)
        predict_neighbours(
            coalitions.arrays,
            todo,
            self._row_of_test,
            self._distances,
            self._targets,
            self._vote(),
            nearest,
            out.reshape(len(out), -1),
        )

    def _vote(self) -> Vote:
        """Model and score, as kernels take them; scores that cannot be read from votes have no kind."""
        kind, floor = _kind(self._task.score), float(getattr(self._task.score, "floor", 0.0))
        return self._n_neighbors, self._by_distance, self._n_classes, -1 if kind is None else kind, floor

    def solver(self) -> KNNTrainer | None:
        """Itself, where the score can be read from votes."""
        return self if _kind(self._task.score) is not None else None

    def count_classes(self, graph: SupportGraph) -> int:
        """Number of classes of coalitions, over all test rows."""
        return sum(self._classes_by_test(graph))

    def _classes_by_test(self, graph: SupportGraph) -> list[int]:
        """Classes of coalitions to score for each test row: all of up to K rows, or fewer where votes are counted."""
        K = self._n_neighbors
        counted = np.zeros(graph.n_tests, dtype=bool)
        if not self._by_distance and self._n_classes:
            counted[:] = self._task.score.source == "proba"
            ones, shape = np.ones(len(graph.players)), (graph.n_games, self._n_classes)
            voted = sparse.csr_array((ones, self._codes[graph.players], graph.indptr.copy()), shape)
            voted.sum_duplicates()
            counted |= (np.diff(voted.indptr) <= 2)[graph.game_of_test]

        @lru_cache
        def classes(n: int, counted: bool) -> int:
            return min(n * (K + 1), 2**n) if counted or self._sums_up(n) else _n_subsets(n, K)

        return [classes(n, c) for n, c in zip(graph.support_sizes.tolist(), counted.tolist(), strict=True)]

    def _sums_up(self, n: int) -> bool:
        """Whether the squared errors of all coalitions of `n` rows are summed up, and not scored class by class."""
        sums_up = not self._by_distance and type(self._task.score) is scoring.SquaredError
        return sums_up and _n_subsets(n, self._n_neighbors) > FEW_CLASSES

    def solve(self, graph: SupportGraph, out: Floats) -> Iterator[int]:
        """Write exact values; see `models.trainer.Solver`."""
        from localshapley.kernels.knn_closed_form import class_values
        from localshapley.kernels.knn_squares import squared_values

        assert _kind(self._task.score) is not None, "solver() is to be asked first"
        labels, vote = self._labels(), self._vote()
        away = self._distances_within(*graph.N)
        nothing = plain(self._task.score_nothing_learnt(np.arange(graph.n_tests, dtype=np.int32)))

        summed = np.array([self._sums_up(n) for n in graph.support_sizes.tolist()], dtype=bool)

        def work(tests: Ints) -> None:
            many = summed[tests]
            if many.any():
                squared_values(graph.N, tests[many], away, labels, self._n_neighbors, nothing, out)
            if not many.all():
                class_values(graph.N, tests[~many], away, labels, vote, nothing, out)

        classes = np.array(self._classes_by_test(graph), dtype=np.float64)
        for tests in np.array_split(np.arange(graph.n_tests), max(1, min(graph.n_tests, int(classes.sum() // 2**26)))):
            self._in_threads(work, tests, least=1)
            yield int(classes[tests].sum())

    def _labels(self) -> Labels:
        """What is to be predicted, and the scores of predicting each class, as kernels take them."""
        truths = plain(self._task.y_test)
        labels, of_test = np.unique(truths, return_inverse=True)
        tables = np.zeros((len(labels), self._n_classes))
        if self._task.score.source == "label":
            certain = np.eye(self._n_classes)
            for i, label in enumerate(labels):
                tables[i] = self._task.score(np.full(self._n_classes, int(label)), certain)
        return self._targets, truths, tables, plain(of_test, np.int64)

    def walker(self) -> KNNTrainer | None:
        """Itself, where the score can be read from votes and all distances are at hand."""
        if _kind(self._task.score) is None or self._block < self._task.X_test.shape[0]:
            return None
        if not len(self._distances):
            self._measure(np.arange(self._task.X_test.shape[0]))
        return self if np.isfinite(self._distances).all() else None

    def walk(
        self,
        graph: SupportGraph,
        order: Indices,
        ends: tuple[Floats, Floats],
        limits: tuple[float, int],
        sums: Floats,
    ) -> tuple[Ints, int]:
        """Score the prefixes of permutations; see `models.trainer.Walker`."""
        from localshapley.kernels.knn_walks import walk_neighbours

        assert _kind(self._task.score) is not None, "walker() is to be asked first"
        labels, vote = self._labels(), self._vote()
        games = (graph.indptr, *graph.tests_of_games)
        lengths, scored = np.empty((len(order), graph.n_games), dtype=np.int64), np.zeros(len(order), dtype=np.int64)

        def work(draws: Ints) -> None:
            walk_neighbours(
                draws, order, games, self._distances, labels, vote, (*ends, *limits), (sums, lengths, scored)
            )

        self._in_threads(work, np.arange(len(order)), least=1)
        return lengths, int(scored.sum())


@lru_cache
def _n_subsets(n: int, most: int) -> int:
    """Number of subsets of `n` rows with at most so many of them."""
    return sum(comb(n, size) for size in range(min(most, n) + 1))


def _kind(score: scoring.Score) -> int | None:
    """The kernel's name for a score that can be read from votes; None for any other."""
    from localshapley.kernels import neighbours as kernel

    if score.source == "label":
        return kernel.LABEL
    kinds: dict[type[scoring.Score], int] = {
        scoring.Confidence: kernel.CONFIDENCE,
        scoring.LogLoss: kernel.LOG_LOSS,
        scoring.Margin: kernel.MARGIN,
        scoring.SquaredError: kernel.SQUARED_ERROR,
        scoring.AbsoluteError: kernel.ABSOLUTE_ERROR,
    }
    return kinds.get(type(score))
