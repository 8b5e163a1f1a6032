"""Trees: the rows that share a node or leaves with the test row."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances

from localshapley.arrays import Indices, Ints
from localshapley.errors import InvalidArgumentError
from localshapley.runtime.argument_checks import check_whole
from localshapley.supports.base import Space, Support, are_finite
from localshapley.supports.leaf_numbers import has_leaves, leaf_numbers


@dataclass(frozen=True, repr=False)
class TreeNode(Support):
    """The training rows that pass through the node `levels` above the leaf that the test row reaches.

    Parameters
    ----------
    levels : int, default=1
        0 is the leaf itself, 1 its parent; it stops at the root.
    max_size : int, optional
    """

    reads_model = True

    levels: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("TreeNode(levels=...)", self.levels, least=0)

    def find(self, space: Space) -> list[Indices]:
        """Find the rows through the node of every test row."""
        tree = getattr(space.reference, "tree_", None)
        if tree is None:
            raise InvalidArgumentError(
                f"supports.TreeNode needs a decision tree; the model is a {type(space.reference).__name__}. "
                "Use supports.Leaves(n) for a forest or boosted trees, or supports.Nearest(n)."
            )
        parent = np.zeros(tree.node_count, dtype=np.int64)  # the root is its own parent
        for children in (tree.children_left, tree.children_right):
            inner = np.flatnonzero(children >= 0)
            parent[children[inner]] = inner
        node = space.reference.apply(space.X_test)
        for _ in range(self.levels):
            node = parent[node]
        passing = space.reference.decision_path(space.X).tocsc()
        rows = {n: passing.indices[passing.indptr[n] : passing.indptr[n + 1]].astype(np.int32) for n in set(node)}
        return [rows[n] for n in node]

    def larger(self) -> str:
        """A node one level nearer to the root."""
        return f"supports.TreeNode(levels={self.levels + 1})"

    def grown(self) -> TreeNode:
        """The same one level nearer to the root."""
        return replace(self, levels=self.levels + 1)


@dataclass(frozen=True, repr=False)
class Leaves(Support):
    """The `n` training rows that most often share a leaf with the test row, over the trees of a forest or of boosting.

    Rows that never share one are left out; among equals the nearest come first (where values are missing, or are no
    numbers, those that come first in the table).

    Parameters
    ----------
    n : int, default=20
    max_size : int, optional
    """

    reads_model = True

    n: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("Leaves(n=...)", self.n)

    def find(self, space: Space) -> list[Indices]:
        """Find the rows that share leaves with every test row."""
        if not has_leaves(space.reference) or hasattr(space.reference, "tree_"):
            raise InvalidArgumentError(
                "supports.Leaves needs a forest or boosted trees; the model is a "
                f"{type(space.reference).__name__}. Use supports.TreeNode() for a tree, or supports.Nearest(n)."
            )
        shared = _shared_leaves(*(leaf_numbers(space.reference, X) for X in space.tables))
        ranks_by_distance = are_finite(space)
        found = []
        for t in range(shared.shape[0]):
            at = slice(shared.indptr[t], shared.indptr[t + 1])
            rows, count = shared.indices[at], shared.data[at]
            distance = np.zeros(len(rows))
            if ranks_by_distance and len(rows):
                distance = pairwise_distances(space.X[rows], space.X_test[t : t + 1])[:, 0]
            found.append(rows[np.lexsort((rows, distance, -count))[: self.n]].astype(np.int32))
        return found

    def larger(self) -> str:
        """A support twice as large."""
        return f"supports.Leaves({2 * self.n})"

    def grown(self) -> Leaves:
        """The same with twice as many rows."""
        return replace(self, n=2 * self.n)


def _shared_leaves(leaves: Ints, leaves_of_tests: Ints) -> sparse.csr_array:
    """Test row × training row matrix of the number of trees in which they reach the same leaf."""
    n_numbers = 1 + max(leaves.max(initial=0), leaves_of_tests.max(initial=0))
    in_leaf, of_tests = (_leaf_matrix(numbers, int(n_numbers)) for numbers in (leaves, leaves_of_tests))
    return sparse.csr_array(of_tests @ in_leaf.T)


def _leaf_matrix(leaves: Ints, n_numbers: int) -> sparse.csr_array:
    """Row × (tree, leaf) matrix with a one where the row reaches the leaf."""
    n_rows, n_trees = leaves.shape
    columns = (leaves + n_numbers * np.arange(n_trees)).ravel()
    indptr = np.arange(0, len(columns) + 1, n_trees) if n_trees else np.zeros(n_rows + 1, dtype=np.int64)
    return sparse.csr_array((np.ones(len(columns)), columns, indptr), shape=(n_rows, n_numbers * n_trees))
