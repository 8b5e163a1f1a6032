"""Folds whose rows look different to the model: each has a trainer of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from localshapley.arrays import AnyArray, Floats, Ints, chosen_lists, offsets
from localshapley.coalitions.batch import Coalitions
from localshapley.coalitions.games import SupportGraph
from localshapley.data.folds import Fold
from localshapley.models.task import Task
from localshapley.models.trainer import Solver, Trainer, TrainingOutcome


class FoldCoalitions:
    """Coalitions cut so that each is scored on test rows of one fold.

    Parameters
    ----------
    coalitions : Coalitions
    fold_of_test : int array of shape (n_tests,)

    Attributes
    ----------
    which, fold : arrays
        Of each coalition after the cut: its number before it, and its fold.
    coalitions : Coalitions
    """

    def __init__(self, coalitions: Coalitions, fold_of_test: Ints) -> None:
        coalition = np.repeat(np.arange(len(coalitions)), np.diff(coalitions.test_indptr))
        fold = fold_of_test[coalitions.tests]
        self._order = np.lexsort((fold, coalition))
        pairs, counts = np.unique(np.stack([coalition, fold])[:, self._order], axis=1, return_counts=True)
        self.which, self.fold = pairs
        members = chosen_lists(coalitions.indptr, coalitions.players, self.which)
        self.coalitions = Coalitions(*members, offsets(counts), coalitions.tests[self._order])

    def together(self, trained: TrainingOutcome) -> TrainingOutcome:
        """Scores in the order before the cut."""
        scores = np.empty(len(self._order))
        scores[self._order] = trained.scores
        return TrainingOutcome(scores, trained.counts, np.unique(self.which[trained.stand_ins]).tolist())


class FoldsTrainer(Trainer):
    """Trains a coalition once for each fold that has a test row of it, with the trainer of that fold.

    Parameters
    ----------
    trainers : sequence of Trainer
        Of each fold, for its training rows and test rows alone.
    folds : sequence of folds
    order : int array
        Positions that bring the test rows of all folds, one fold after the other, into the order of the task.
    task : Task
        All rows.
    """

    def __init__(self, trainers: Sequence[Trainer], folds: Sequence[Fold], order: Ints, task: Task) -> None:
        first = trainers[0]
        self.name, self.n_jobs, self.batch_size = first.name, first.n_jobs, first.batch_size
        self.training_notes = first.training_notes
        self.is_random, self.if_silent, self.kernels = first.is_random, first.if_silent, first.kernels
        self.faster, self.is_quick, self.reads_order = first.faster, first.is_quick, first.reads_order
        self.may_refuse = first.may_refuse
        self._trainers, self._task = trainers, task
        self._place = np.full((len(folds), len(task.y)), -1, dtype=np.int32)
        for place, (train, _) in zip(self._place, folds, strict=True):
            place[train] = np.arange(len(train))
        sizes = [len(test) for _, test in folds]
        self.fold_of_test: Ints = np.repeat(np.arange(len(folds)), sizes)[order]
        self._place_of_test = np.concatenate([np.arange(size) for size in sizes])[order].astype(np.int32)

    def trivial(self, coalitions: Coalitions) -> AnyArray:
        """Which coalitions are empty, or of one class."""
        return self._task.is_known(coalitions.indptr, coalitions.players)

    def train(self, coalitions: Coalitions) -> TrainingOutcome:
        """Train and score coalitions in this process."""
        cut = FoldCoalitions(coalitions, self.fold_of_test)
        scores = np.empty(len(coalitions.tests))
        out = TrainingOutcome(scores)
        of_test = np.repeat(cut.fold, np.diff(cut.coalitions.test_indptr))
        for fold, trainer in enumerate(self._trainers):
            mine = np.flatnonzero(cut.fold == fold)
            if len(mine):
                found = trainer.train(self._within(cut.coalitions, mine, fold))
                scores[of_test == fold] = found.scores
                out.counts.add(found.counts)
                out.stand_ins += mine[found.stand_ins].tolist()
        out.counts.trivial = int(self.trivial(coalitions).sum())
        return cut.together(out)

    def _within(self, coalitions: Coalitions, which: Ints, fold: int) -> Coalitions:
        """Some of the coalitions, with the rows of a fold by their places in it."""
        indptr, players = chosen_lists(coalitions.indptr, coalitions.players, which)
        test_indptr, tests = chosen_lists(coalitions.test_indptr, coalitions.tests, which)
        return Coalitions(indptr, self._place[fold][players], test_indptr, self._place_of_test[tests])

    def solver(self) -> Solver | None:
        """Solves fold by fold, if that can be done."""
        solvers = [trainer.solver() for trainer in self._trainers]
        known = [solver for solver in solvers if solver is not None]
        if len(known) < len(solvers):
            return None
        return FoldsSolver(known, self._place, self.fold_of_test, self._place_of_test)


class FoldsSolver:
    """Exact values, fold by fold.

    Parameters
    ----------
    solvers : sequence of Solver
    place : int array of shape (n_folds, n_rows)
        Places of the rows among the training rows of each fold.
    fold_of_test, place_of_test : int arrays of shape (n_tests,)
    """

    def __init__(self, solvers: Sequence[Solver], place: AnyArray, fold_of_test: Ints, place_of_test: AnyArray) -> None:
        self.name = solvers[0].name
        self._solvers, self._place = solvers, place
        self._fold_of_test, self._place_of_test = fold_of_test, place_of_test

    def count_classes(self, graph: SupportGraph) -> int:
        """Number of classes, over all test rows."""
        return sum(solver.count_classes(part) for solver, part, _ in self._parts(graph))

    def solve(self, graph: SupportGraph, out: Floats) -> Iterator[int]:
        """Write the values of the players of every test row's support to `out`, in the order of `graph.N`."""
        indptr, _ = graph.N
        for solver, part, tests in self._parts(graph):
            own, (starts, _) = np.empty(part.n_entries), part.N
            yield from solver.solve(part, own)
            for place, t in tests:
                out[indptr[t] : indptr[t + 1]] = own[starts[place] : starts[place + 1]]

    def _parts(self, graph: SupportGraph) -> Iterator[tuple[Solver, SupportGraph, list[tuple[int, int]]]]:
        """The games of each fold, and its test rows by their places in it."""
        for fold, (solver, place) in enumerate(zip(self._solvers, self._place, strict=True)):
            tests = np.flatnonzero(self._fold_of_test == fold)
            supports = [np.empty(0, dtype=np.int32)] * (int(self._place_of_test[tests].max(initial=-1)) + 1)
            for t in tests:
                supports[self._place_of_test[t]] = place[graph.support(int(t))]
            part = SupportGraph(supports, int(place.max()) + 1)
            yield solver, part, [(int(self._place_of_test[t]), int(t)) for t in tests]
