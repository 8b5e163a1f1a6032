"""Trees: the rows that share a node or leaves with the test row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances

from localshapley.arrays import Indices
from localshapley.errors import InvalidArgumentError
from localshapley.inputs.numbers import check_whole
from localshapley.supports.base import Space, Support, check_finite


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
                "Use supports.Leaves(n) for a forest, or supports.Nearest(n)."
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


@dataclass(frozen=True, repr=False)
class Leaves(Support):
    """The `n` training rows that most often share a leaf with the test row, over the trees of a forest.

    Rows that never share one are left out; among equals the nearest come first.

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
        if not hasattr(space.reference, "apply") or not hasattr(space.reference, "estimators_"):
            raise InvalidArgumentError(
                f"supports.Leaves needs a forest; the model is a {type(space.reference).__name__}. "
                "Use supports.TreeNode() for a tree, or supports.Nearest(n)."
            )
        check_finite(space, "supports.Leaves")
        shared = _leaf_matrix(space.reference, space.X_test) @ _leaf_matrix(space.reference, space.X).T
        shared = sparse.csr_array(shared)
        found = []
        for t in range(shared.shape[0]):
            at = slice(shared.indptr[t], shared.indptr[t + 1])
            rows, count = shared.indices[at], shared.data[at]
            distance = pairwise_distances(space.X[rows], space.X_test[t : t + 1])[:, 0]
            found.append(rows[np.lexsort((rows, distance, -count))[: self.n]].astype(np.int32))
        return found

    def larger(self) -> str:
        """A support twice as large."""
        return f"supports.Leaves({2 * self.n})"


def _leaf_matrix(forest: Any, X: Any) -> sparse.csr_array:
    """Row × (tree, leaf) matrix with a one where the row reaches the leaf."""
    leaves = np.asarray(forest.apply(X)).reshape(X.shape[0], -1).astype(np.int64)
    nodes = max(tree.tree_.node_count for tree in np.ravel(forest.estimators_))
    columns = (leaves + nodes * np.arange(leaves.shape[1])).ravel()
    indptr = np.arange(0, len(columns) + 1, leaves.shape[1])
    return sparse.csr_array((np.ones(len(columns)), columns, indptr), shape=(X.shape[0], nodes * leaves.shape[1]))
