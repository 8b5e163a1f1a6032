"""Reads a graph and its nodes in any of the forms that they come in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Ints
from localshapley.data.indexes import check_order
from localshapley.data.rows import check_size, read_data
from localshapley.errors import InvalidArgumentError
from localshapley.models.task import Task, make_task
from localshapley.notes import Note

HELD = {
    "X": ("x", "feat"),
    "y": ("y", "label"),
    "train": ("train_mask", "train_mask"),
    "test": ("test_mask", "test_mask"),
}
"""What graphs hold besides their edges: attributes of PyTorch Geometric's `Data`, and names in DGL's `ndata`."""


class NodeData(NamedTuple):
    """A graph whose nodes have features and labels, some of them training nodes and some test nodes.

    Attributes
    ----------
    edges : CSR array of shape (n_nodes, n_nodes)
        True where two nodes are joined, either way; no self-loops.
    features : CSR array of shape (n_nodes, n_features)
    labels : array of shape (n_nodes,)
        As they were given; those of nodes that are neither in `train` nor in `test` may be anything.
    train, test : arrays
        Node numbers; no node is in both.
    notes : tuple of Note
        What the user should know about the tables.
    """

    edges: sparse.csr_array
    features: sparse.csr_array
    labels: AnyArray
    train: Ints
    test: Ints
    notes: tuple[Note, ...] = ()

    def task(self, *, score: Any = None, empty: float | None = None, seed: int = 0) -> tuple[Task, list[Note]]:
        """The task of a classifier with probabilities, and what the user should know."""
        X, y = self.features, self.labels
        data = read_data(X[self.train], y[self.train], X[self.test], y[self.test])
        task, notes = make_task(data, classifies=True, has_proba=True, score=score, empty=empty, seed=seed)
        return task, [*notes, *self.notes]


def read_graph(adjacency: Any, X: Any, y: Any, train: Any, test: Any) -> NodeData:
    """Read the first arguments of `value_nodes`; those that are None come with the graph."""
    X, y, train, test = (_given(name, given, adjacency) for name, given in zip(HELD, (X, y, train, test), strict=True))
    notes = check_order("y", y, "X", X)
    features = read_features(X)
    n_nodes = features.shape[0]
    edges = read_edges(adjacency, n_nodes)
    labels = np.asarray(y)
    if labels.shape != (n_nodes,):
        raise InvalidArgumentError(f"y has shape {labels.shape}, X has {n_nodes} rows; give a label for each.")
    nodes, test_nodes = (read_nodes(name, given, n_nodes) for name, given in (("train", train), ("test", test)))
    if (both := np.intersect1d(nodes, test_nodes)).size:
        raise InvalidArgumentError(
            f"train and test share {len(both)} nodes, first {both[0]}; a node is either valued or scored."
        )
    return NodeData(edges, features, labels, nodes, test_nodes, tuple(notes))


def _given(name: str, given: Any, graph: Any) -> Any:
    """An argument as it was given or, if it was not, as a graph of PyTorch Geometric or DGL holds it."""
    if given is not None:
        return _in_memory(given)
    for names, holds in zip(HELD[name], (graph, getattr(graph, "ndata", None)), strict=True):
        found = holds.get(names) if isinstance(holds, Mapping) else getattr(holds, names, None)
        if found is not None:
            return _in_memory(found)
    geometric, dgl = HELD[name]
    raise InvalidArgumentError(
        f"{name} is missing: give it, or as adjacency a PyTorch Geometric Data with {geometric} or a DGL graph with "
        f"ndata[{dgl!r}]; got {type(graph).__name__}."
    )


def _in_memory(given: Any) -> Any:
    """A tensor that may lie on a GPU as one that NumPy can read; anything else as it is."""
    return given.detach().cpu() if hasattr(given, "detach") else given


def read_edges(adjacency: Any, n_nodes: int) -> sparse.csr_array:
    """Read a graph as a symmetric matrix of ones, without self-loops."""
    if sparse.issparse(adjacency):
        given = max(adjacency.shape)
        pairs = np.stack(adjacency.nonzero(), axis=1)
    elif hasattr(adjacency, "edge_index"):
        pairs = np.asarray(_in_memory(adjacency.edge_index)).T
        given = int(adjacency.num_nodes)
    elif hasattr(adjacency, "ndata"):
        pairs = np.stack([np.asarray(_in_memory(ends)) for ends in adjacency.edges()], axis=1)
        given = int(adjacency.num_nodes())
    elif hasattr(adjacency, "nodes") and hasattr(adjacency, "edges"):
        names = np.asarray(list(adjacency.nodes))
        if names.size and (names.dtype.kind not in "iu" or names.min() < 0 or names.max() >= n_nodes):
            raise InvalidArgumentError(
                f"adjacency is a networkx graph whose nodes must be row numbers of X, 0 to {n_nodes - 1}; got "
                f"{names.tolist()[:5]} ({len(names)} nodes). Use networkx.convert_node_labels_to_integers(graph)."
            )
        pairs, given = np.asarray(list(adjacency.edges()), dtype=np.int64).reshape(-1, 2), n_nodes
    else:
        pairs, given = np.asarray(_in_memory(adjacency)), 0
        pairs = pairs.T if pairs.ndim == 2 and pairs.shape[0] == 2 != pairs.shape[1] else pairs
        pairs = pairs.reshape(-1, 2).astype(np.int64) if pairs.size == 0 else pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidArgumentError(
            "adjacency must be a SciPy sparse matrix, edges of shape (n_edges, 2) or (2, n_edges) with whole numbers, "
            f"a networkx graph, a PyTorch Geometric Data or a DGL graph; got {type(adjacency).__name__} of shape "
            f"{pairs.shape} and type {pairs.dtype}. Wrap a dense matrix with scipy.sparse.csr_array(matrix)."
        )
    if pairs.size and pairs.min() < 0:
        raise InvalidArgumentError(f"adjacency names node {pairs.min()}; nodes are numbered from 0.")
    given = max(given, int(pairs.max(initial=-1)) + 1)
    if given > n_nodes:
        raise InvalidArgumentError(
            f"adjacency has {given} nodes, X has {n_nodes} rows; give a row of features for each node."
        )
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    edges = sparse.csr_array((np.ones(len(pairs), dtype=bool), pairs.T.astype(np.int32)), shape=(n_nodes, n_nodes))
    both = sparse.csr_array(edges + edges.T)
    both.sum_duplicates()
    return both


def read_features(X: Any) -> sparse.csr_array:
    """Read features as a new matrix, without explicit zeros."""
    try:
        table = X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
        features = sparse.csr_array(table, dtype=np.float64, copy=True)  # changed in place below
    except (TypeError, ValueError):
        raise InvalidArgumentError("X must be a matrix of numbers with one row for each node.") from None
    if features.ndim != 2:
        raise InvalidArgumentError(f"X must have two dimensions (nodes, features); got {features.ndim}.")
    if not np.isfinite(features.data).all():
        raise InvalidArgumentError("X holds missing values (NaN) or infinity; fill or clip these entries.")
    check_size("X", features.data)
    features.sum_duplicates()
    features.eliminate_zeros()
    return features


def read_nodes(name: str, given: Any, n_nodes: int) -> Ints:
    """Read node numbers or a mask as node numbers, each once."""
    nodes = np.asarray(given)
    if nodes.dtype == bool and nodes.shape == (n_nodes,):
        nodes = np.flatnonzero(nodes)
    if nodes.ndim != 1 or nodes.dtype.kind not in "iu" or not len(nodes):
        raise InvalidArgumentError(
            f"{name} must be a list of node numbers or a mask of shape ({n_nodes},), with at least one node; got "
            f"{type(given).__name__} of shape {nodes.shape} and type {nodes.dtype}."
        )
    outside = nodes[(nodes < 0) | (nodes >= n_nodes)]
    if outside.size:
        raise InvalidArgumentError(f"{name} names node {outside[0]}, but the nodes are 0 to {n_nodes - 1}.")
    if len(np.unique(nodes)) < len(nodes):
        raise InvalidArgumentError(f"{name} names a node more than once; give each once.")
    return nodes.astype(np.int64)
