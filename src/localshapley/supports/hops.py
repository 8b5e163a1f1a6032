"""The training nodes near a node of a graph."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Indices
from localshapley.errors import InvalidArgumentError
from localshapley.runtime.argument_checks import check_whole
from localshapley.supports.base import Space, Support


@dataclass(frozen=True, kw_only=True)
class NodeSpace(Space):
    """A space whose rows are nodes of a graph.

    Attributes
    ----------
    adjacency : CSR array of shape (n_nodes, n_nodes)
        Symmetric.
    nodes, test_nodes : arrays
        Nodes of the training rows, and of the rows that supports are found for.
    """

    adjacency: sparse.csr_array
    nodes: AnyArray
    test_nodes: AnyArray


@dataclass(frozen=True, repr=False)
class Hops(Support):
    """The training nodes that are at most `n` edges away, on paths through any node; for `value_nodes`.

    A node counts as its own neighbour: the support of a training node holds it.

    Parameters
    ----------
    n : int, default=2
        As many as the network has layers.
    max_size : int, optional
        Keep at most this many, those with the nearest features.
    """

    n: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("Hops(n=...)", self.n)

    def find(self, space: Space) -> list[Indices]:
        """Walk from every test node."""
        if not isinstance(space, NodeSpace):
            raise InvalidArgumentError(
                "supports.Hops needs a graph; use it with value_nodes(), or use another support."
            )
        reach = within(space.adjacency, space.test_nodes, space.nodes, self.n)
        return [row.astype(np.int32) for row in np.split(reach.indices, reach.indptr[1:-1])]

    def larger(self) -> str:
        """One hop more."""
        return f"supports.Hops({self.n + 1})"

    def grown(self) -> Hops:
        """The same with one hop more."""
        return replace(self, n=self.n + 1)


def within(adjacency: sparse.csr_array, starts: AnyArray, ends: AnyArray, n: int) -> sparse.csr_array:
    """Which of `ends` (columns) are at most `n` edges away from each of `starts` (rows)."""
    closed = sparse.csr_array(adjacency + sparse.eye_array(adjacency.shape[0], format="csr"), dtype=bool)
    reach = closed[starts]
    for _ in range(n - 1):
        reach = reach @ closed
    found = sparse.csr_array(reach[:, ends])
    found.sort_indices()
    return found
