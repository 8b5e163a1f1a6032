"""Boosted trees of fixed structure: gradients and hessians are those of the full model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import joblib
import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Ints, Lists, offsets
from localshapley.coalitions.batch import Coalitions
from localshapley.coalitions.games import SupportGraph
from localshapley.coalitions.random_groups import RandomGroups
from localshapley.errors import InvalidArgumentError
from localshapley.models.boosting_losses import LeafRule, margins_of, recipe_of
from localshapley.models.compiled import plain
from localshapley.models.estimator_checks import final_step, has_random_state
from localshapley.models.task import Task
from localshapley.models.trainer import Counts, Trainer, TrainingOutcome
from localshapley.models.tree_leaves import GrownTrees, TreeLeaves, grouped
from localshapley.notes import Note
from localshapley.runtime.threads import threads_for
from localshapley.supports.leaf_numbers import leaf_numbers

SMALL_LEAF = 64
"""Up to this many rows the quadrature over the share of rows that join is exact."""
CLOSE, FAR = 1e-3, 1.0
"""Refilled margins count as those of the model if they differ by no more than this share of their size, and as those of
another model if they differ by more than their size."""


class LeafStatistics(NamedTuple):
    """Of one tree: gradients and hessians of the rows, and what a unit in the leaf of each test row counts for it.

    And of its leaves the ridge, and what is taken off for the square of what they predict.
    """

    gradients: Floats
    hessians: Floats
    effects: Floats
    ridges: Floats
    bends: Floats


@dataclass(frozen=True)
class BoostedTrees(GrownTrees):
    """Boosted trees with the rows in their leaves, and the test rows.

    Attributes
    ----------
    y, y_test : arrays
        Numbers, or class codes; those of test rows are negative where the training rows lack the class.
    """

    y: AnyArray = None  # type: ignore[assignment]
    y_test: AnyArray = None  # type: ignore[assignment]

    @cached_property
    def recipe(self) -> LeafRule:
        """How the leaves are filled."""
        return recipe_of(final_step(self.model), self.y)

    @cached_property
    def starts_with_mean(self) -> bool:
        """Whether boosting starts from the mean of numbers, which is refilled like a leaf of all rows."""
        return self.recipe.loss == "squared" and bool(np.isclose(self.recipe.start[0], self.y.mean()))

    @cached_property
    def numbers(self) -> tuple[Ints, Ints]:
        """Leaves of the rows and of the test rows in each tree, numbered from 0 without gaps; the mean comes first."""
        X, X_test = (leaf_numbers(final_step(self.model), table) for table in self.inputs)
        if self.starts_with_mean:
            X, X_test = (np.insert(leaves, 0, 0, axis=1) for leaves in (X, X_test))
        for tree in range(X.shape[1]):
            known, X[:, tree] = np.unique(X[:, tree], return_inverse=True)
            at = np.minimum(np.searchsorted(known, X_test[:, tree]), len(known) - 1)
            X_test[:, tree] = np.where(known[at] == X_test[:, tree], at, -1)
        return X, X_test

    @cached_property
    def trees(self) -> list[Any]:
        """Numbers of the trees."""
        return list(range(self.numbers[0].shape[1]))

    @cached_property
    def inputs(self) -> tuple[Any, Any]:
        """Rows and test rows as the last step takes them."""
        return self._before(self.X), self._before(self.X_test)

    @cached_property
    def filled(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Gradients and hessians of the rows in each tree, and margins of the test rows after and before each.

        With all rows in the leaves. The third array has the margins after the last tree, one column for each output,
        the fourth those of its output before each tree.
        """
        recipe, (leaves, of_tests) = self.recipe, self.numbers
        n_outputs, n_trees = len(recipe.start), leaves.shape[1]
        raw = np.tile(recipe.start, (len(leaves), 1))
        raw_test = np.tile(recipe.start, (len(of_tests), 1))
        gradients, hessians = np.empty((2, len(leaves), n_trees))
        before = np.empty((len(of_tests), n_trees))
        for first in range(0, n_trees, n_outputs):
            here = slice(first, first + n_outputs)
            gradients[:, here], hessians[:, here] = recipe.derivatives(self.y, raw)
            for tree in range(first, first + n_outputs):
                rate, ridge = self.step(tree)
                is_silent = hessians[:, tree].sum() < recipe.silent_below and not self._is_mean(tree)
                if leaves[:, tree].max() == 0 and is_silent:
                    gradients[:, tree] = 0.0
                g, h = (np.bincount(leaves[:, tree], a[:, tree]) for a in (gradients, hessians))
                predicted = rate * g / (ridge + h)
                raw[:, tree - first] += predicted[leaves[:, tree]]
                before[:, tree], reached = raw_test[:, tree - first], of_tests[:, tree]
                raw_test[:, tree - first] += np.where(reached < 0, 0.0, predicted[reached])
        return gradients, hessians, raw_test, before

    def step(self, tree: int) -> tuple[float, float]:
        """Rate and ridge of a tree; those of the mean are 1 and 0."""
        return (1.0, 0.0) if self._is_mean(tree) else (self.recipe.rate, self.recipe.ridge)

    def _is_mean(self, tree: int) -> bool:
        return self.starts_with_mean and tree == 0

    @cached_property
    def directions(self) -> Floats:
        """How the margin of each test row grows with each output: an array of shape (n_tests, n_outputs).

        It is that of the true class over its rival, the best of the others in the full model.
        """
        start, full = self.recipe.start, self.filled[2]
        if len(start) == 1:
            return np.where(self.y_test < 0, 0.0, 2.0 * self.y_test - 1)[:, None]
        found = np.zeros(full.shape)
        known = np.flatnonzero(self.y_test >= 0)
        others = full[known].copy()
        others[np.arange(len(known)), self.y_test[known]] = -np.inf
        found[known, others.argmax(axis=1)] = -1.0
        found[known, self.y_test[known]] = 1.0
        return found

    @property
    def starts(self) -> Floats:
        """Scores of the test rows without any row."""
        if self.recipe.loss == "squared":
            return -((self.y_test - self.recipe.start[0]) ** 2)  # type: ignore[no-any-return]
        return self.directions @ self.recipe.start

    @property
    def deviation(self) -> float:
        """How far refilled margins are from those of the model, relative to the largest."""
        own, refilled = margins_of(final_step(self.model), self.inputs[1]), self.filled[2]
        if own.shape[1] > 1:
            own, refilled = (m - m.mean(axis=1, keepdims=True) for m in (own, refilled))
        return float(np.abs(own - refilled).max(initial=0) / max(np.abs(own).max(initial=0), 1e-12))

    def leaves_of(self, tree: int) -> tuple[Lists, Lists]:
        """For each leaf of a tree the rows, and the test rows to whose score it counts."""
        leaves, of_tests = (numbers[:, tree] for numbers in self.numbers)
        counts, n_leaves = self._counts(tree), int(leaves.max()) + 1
        return grouped(leaves, self.rows, n_leaves), grouped(of_tests[counts], self.test_numbers[counts], n_leaves)

    def terms_of(self, tree: int) -> LeafStatistics:
        """Of the rows and test rows in the order of `leaves_of`."""
        leaves, of_tests = (numbers[:, tree] for numbers in self.numbers)
        counts, order = self._counts(tree), np.argsort(leaves, kind="stable")
        gradients, hessians, _, _ = self.filled
        by_leaf = np.argsort(of_tests[counts], kind="stable")
        rate, ridge = self.step(tree)
        of_leaves = np.ones(int(leaves.max()) + 1)
        bend = rate * rate if self.recipe.loss == "squared" else 0.0
        effects = self._effects(tree)[counts[by_leaf]]
        return LeafStatistics(
            gradients[order, tree], hessians[order, tree], effects, ridge * of_leaves, bend * of_leaves
        )

    def _effects(self, tree: int) -> Floats:
        """What a unit in the leaf of a tree adds to the score of each test row.

        The squared error is that of the full model up to this tree: `ρ² − (ρ − rate·u)²`, with the error `ρ` before it.
        """
        rate, _ = self.step(tree)
        if self.recipe.loss == "squared":
            return 2 * rate * (self.y_test - self.filled[3][:, tree])
        return rate * self.directions[:, tree % len(self.recipe.start)]

    def _counts(self, tree: int) -> Ints:
        """Test rows to whose score a tree counts."""
        counts = (self._effects(tree) != 0) | (self.recipe.loss == "squared")
        return np.flatnonzero(counts & (self.numbers[1][:, tree] >= 0))


class BoostedTrainer(Trainer):
    """Refills the leaves of boosted trees, or sums up the values of all coalitions, leaf by leaf.

    Parameters
    ----------
    estimator : boosted trees
    task : Task
    growths : list of BoostedTrees
        The fitted trees, those of each fold.
    n_jobs : int, optional
        Threads; by default one per core.
    """

    kernels = ("group", "count_mates", "list_mates", "value_rows_of_leaves", "score_boosted")

    def __init__(self, estimator: Any, task: Task, growths: list[BoostedTrees], n_jobs: int | None = None) -> None:
        self.name = f"{type(final_step(estimator)).__name__} (fixed)"
        self.is_random = has_random_state(estimator)
        self._n_threads = threads_for(n_jobs)
        self.leaves = TreeLeaves(list(growths), task.X.shape[0], task.X_test.shape[0], self._n_threads)
        self.n_parts = self.leaves.n_trees
        self.training_notes = _notes(growths)
        self._starts = np.zeros(task.X_test.shape[0])
        for grown in growths:
            self._starts[grown.test_numbers] = grown.starts
        terms = [grown.terms_of(tree) for grown in growths for tree in grown.trees]
        self._terms = LeafStatistics(*(plain(np.concatenate(parts)) for parts in zip(*terms, strict=True)))
        self._first_leaf = offsets(np.array([len(of_tree.ridges) for of_tree in terms]))
        self._values: tuple[Floats, Floats] | None = None

    def train(self, coalitions: Coalitions) -> TrainingOutcome:
        """Refill the leaves with each coalition, and score it."""
        from localshapley.kernels.boosted_leaf_games import score_boosted

        out, last_in = np.empty(len(coalitions.tests)), np.full(self.leaves.n_rows, -1)
        tests = self.leaves.lists[1][1]
        effects = plain(self._terms.effects[np.argsort(tests, kind="stable")])
        score_boosted(
            coalitions.arrays,
            self.leaves.of_tests,
            effects,
            self.leaves.lists[0],
            self._terms[:2],
            self._terms[3:],
            self._starts,
            last_in,
            out,
        )
        return TrainingOutcome(out, Counts(trivial=int((np.diff(coalitions.indptr) == 0).sum())))

    def parts(self) -> BoostedTrainer:
        """Itself: values are sums over the trees."""
        return self

    def add_up(self) -> Iterator[None]:
        """Compute the values of the rows of all leaves; see `models.trainer.Parts`."""
        found = np.zeros((2, len(self._terms.gradients)))
        parallel = joblib.Parallel(self._n_threads, backend="threading", return_as="generator")
        for _ in parallel(joblib.delayed(self._value)(tree, found) for tree in range(self.n_parts)):
            yield
        self._values = found[0], found[1]

    def _value(self, tree: int, out: Floats) -> None:
        from localshapley.kernels.boosted_leaf_games import value_rows_of_leaves

        indptr = self.leaves.lists[0][0][self._first_leaf[tree] : self._first_leaf[tree + 1] + 1]
        here = slice(indptr[0], indptr[-1])
        gradients, hessians, _, ridges, _ = self._terms
        ridge, sizes = float(ridges[self._first_leaf[tree]]), np.diff(indptr)
        room = np.empty((3, int(sizes.max())))
        places = indptr - indptr[0], gradients[here], hessians[here]
        value_rows_of_leaves(*places, ridge, _rules(sizes), room, out[0, here], out[1, here])

    def values(self) -> Floats:
        """Values, summed over the test rows."""
        return sum(by_leaf.sum(axis=0) @ shares for by_leaf, shares in self._factors())  # type: ignore[no-any-return]

    def by_test(self, graph: SupportGraph) -> sparse.csr_array:
        """Values to each test row."""
        return sparse.csr_array(sum(by_leaf @ shares for by_leaf, shares in self._factors()))

    def by_bundle(self, bundles: RandomGroups) -> Floats:
        """Values to each bundle of test rows."""
        tests = np.arange(self.leaves.n_tests)
        dealt = sparse.csr_array((np.ones(len(tests)), (bundles.of_test, tests)), shape=(bundles.n, len(tests)))
        found: Floats = sum((dealt @ by_leaf) @ shares for by_leaf, shares in self._factors()).toarray()
        return found

    def _factors(self) -> Iterator[tuple[sparse.csc_array, sparse.csr_array]]:
        """Pairs of matrices, test row × leaf and leaf × row: what a leaf counts, and the values of the rows in it."""
        if self._values is None:
            for _ in self.add_up():
                pass
        assert self._values is not None
        (row_indptr, rows), (test_indptr, tests) = self.leaves.lists
        n_leaves, terms = len(row_indptr) - 1, self._terms
        bends = -np.repeat(terms.bends, np.diff(test_indptr))
        for counts, values in zip((terms.effects, bends), self._values, strict=True):
            yield (
                sparse.csc_array((counts, tests, test_indptr), shape=(self.leaves.n_tests, n_leaves)),
                sparse.csr_array((values, rows, row_indptr), shape=(n_leaves, self.leaves.n_rows)),
            )


def _rules(sizes: Ints) -> tuple[Ints, Ints, Floats, Floats]:
    """Nodes and weights over the share of rows that join, for leaves of some sizes.

    The integrand is a polynomial of a lower degree than there are rows. Of many rows almost all of it is near 0, where
    a power brings the nodes closer together.
    """
    number, at = np.unique([_n_nodes(n) for n in sizes.tolist()], axis=0, return_inverse=True)
    ends = np.cumsum(number[:, 0])
    at = at.reshape(-1)
    points, weights = np.concatenate([_rule(n_nodes, power) for n_nodes, power in number.tolist()], axis=1)
    return (ends - number[:, 0])[at], ends[at], plain(points), plain(weights)


@cache
def _rule(n_nodes: int, power: int) -> Floats:
    """Nodes and weights of Gauss and Legendre between 0 and 1, after a substitution by a power."""
    x, weights = np.polynomial.legendre.leggauss(n_nodes)
    x = (x + 1) / 2
    return np.array([x**power, weights / 2 * power * x ** (power - 1)])


def _n_nodes(n_rows: int) -> tuple[int, int]:
    """Nodes for a leaf of so many rows, and the power by which they are drawn to 0."""
    if n_rows <= SMALL_LEAF:
        return max(-(-n_rows // 2), 1), 1
    return 32 + int(np.ceil(8 * np.log2(n_rows / SMALL_LEAF))), 5


def _notes(growths: list[BoostedTrees]) -> tuple[Note, ...]:
    """Where refilled leaves differ from those of the model, and what the score is."""
    found = []
    if growths[0].recipe.loss == "squared":
        text = (
            "the squared error is counted tree by tree, with the trees before it as all rows have filled them, so that "
            "it is a sum over the trees; values add up to what all rows gain."
        )
        found.append(Note("scored-by-tree", text))
    if len(growths[0].recipe.start) > 1:
        text = "the margin is that of the true class over the best of the others in the model of all rows."
        found.append(Note("margin-over-best", text))
    worst = max(grown.deviation for grown in growths)
    if worst > FAR:
        raise InvalidArgumentError(
            f"models.Fixed: leaves that are refilled with all rows give margins that differ by up to {worst:.0%} from "
            "those of the model, so that values would be those of another one. Give the model without Fixed to have "
            "its coalitions trained."
        )
    if worst > CLOSE:
        text = (
            f"leaves that are refilled with all rows give margins that differ by up to {worst:.1%} from those of the "
            "model (subsample, early stopping, weights or constraints can be why)."
        )
        found.append(Note("margins-differ", text, share=worst))
    return tuple(found)
