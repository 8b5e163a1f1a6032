"""What two-layer graph networks have in common, and two that mix neighbours in other ways than a GCN."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from localshapley.runtime.argument_checks import check_number, check_whole


@dataclass(frozen=True)
class GraphModel(ABC):
    """Settings of a graph network of two layers, and how a layer mixes what it knows about a node and its neighbours.

    A layer computes `Σ P_k H W_k + b`, a sum over its blocks of weights.

    Attributes
    ----------
    mixing : {"symmetric", "mean", "sum"}
        How neighbours are weighted, as `kernels.receptive` knows it.
    n_blocks : {1, 2}
        Blocks of weights in a layer: one for a node and its neighbours, or one for each.
    """

    hidden: int = 32
    epochs: int = 20
    lr: float = 0.01
    weight_decay: float = 5e-4

    mixing: ClassVar[str]
    n_blocks: ClassVar[int] = 1

    def __post_init__(self) -> None:
        name = type(self).__name__
        check_whole(f"{name}(hidden=...)", self.hidden)
        check_whole(f"{name}(epochs=...)", self.epochs)
        check_number(f"{name}(lr=...)", self.lr, above=0)
        check_number(f"{name}(weight_decay=...)", self.weight_decay, least=0)

    @abstractmethod
    def propagation(self, closed: sparse.csr_array) -> list[sparse.csr_array]:
        """`P_k` of each block in a whole graph, which is given with a loop at every node (`A + I`)."""


@dataclass(frozen=True)
class GraphSAGE(GraphModel):
    """A GraphSAGE network of two layers with the mean aggregator (Hamilton, Ying and Leskovec), without sampling.

    A layer computes `H W + M H V + b`, with relu after the first. `W` holds the weights of the node itself, `V` those
    of its neighbours, and `M = D^-1 A` takes the mean over the neighbours that are seen; it is 0 where there are none.
    All neighbours are used, and hidden units are not normalised. Initial weights and training are those of `GCN`, with
    `W` and `V` drawn apart.

    Parameters
    ----------
    hidden : int, default=32
        Hidden units.
    epochs : int, default=20
    lr : float, default=0.01
    weight_decay : float, default=5e-4

    Examples
    --------
    >>> import localshapley as ls
    >>> path = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
    >>> X, y = [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0], [0, 1]], [0, 1, 0, 1, 0, 1]
    >>> model = ls.models.GraphSAGE(hidden=8)
    >>> v = ls.value_nodes(path, X, y, train=[0, 1, 2, 4], test=[3, 5], model=model, device="cpu")
    >>> v.cost.trainer
    'GraphSAGE (batched, cpu)'
    """

    mixing: ClassVar[str] = "mean"
    n_blocks: ClassVar[int] = 2

    def propagation(self, closed: sparse.csr_array) -> list[sparse.csr_array]:
        """`I` and `D^-1 A`."""
        itself = sparse.eye_array(closed.shape[0], format="csr")
        share = sparse.diags_array(1 / np.maximum(np.diff(closed.indptr) - 1, 1))
        return [itself, sparse.csr_array(share @ (closed - itself))]


@dataclass(frozen=True)
class GIN(GraphModel):
    """A graph isomorphism network of two layers (Xu, Hu, Leskovec and Jegelka), `S relu(S X W₁ + b₁) W₂ + b₂`.

    `S = A + I` adds up a node and the neighbours that are seen (ε = 0, not learnt). The perceptron of a layer is one
    linear map, the paper's "sum, 1-layer". Sums grow with the number of neighbours, so in graphs with nodes of many
    neighbours a smaller `lr` or scaled rows of `X` may be needed. Initial weights and training are those of `GCN`.

    Parameters
    ----------
    hidden : int, default=32
        Hidden units.
    epochs : int, default=20
    lr : float, default=0.01
    weight_decay : float, default=5e-4

    Examples
    --------
    >>> import localshapley as ls
    >>> path = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
    >>> X, y = [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0], [0, 1]], [0, 1, 0, 1, 0, 1]
    >>> model = ls.models.GIN(hidden=8)
    >>> v = ls.value_nodes(path, X, y, train=[0, 1, 2, 4], test=[3, 5], model=model, device="cpu")
    >>> v.cost.trainer
    'GIN (batched, cpu)'
    """

    mixing: ClassVar[str] = "sum"

    def propagation(self, closed: sparse.csr_array) -> list[sparse.csr_array]:
        """`A + I`."""
        return [closed]
