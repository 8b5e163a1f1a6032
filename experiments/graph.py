"""The graph workload of the experiments, a two-layer GCN on Cora, and the paper's four workloads by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

import localshapley as ls
from common import Workload, svm, tree, wknn
from localshapley.problem.build import build_problem
from localshapley.question import GraphInput, Question

REDUCED, FEW = (300, 150), (80, 40)
"""Training and test nodes where there is no GPU; fewer where every method is to come to its end."""
FEW_AROUND = 100
"""Where the fewer ones are taken: around hubs all nodes would be within two hops of each other."""


def gnn(quick: bool, seed: int = 0, nodes: tuple[int, int] = REDUCED) -> Workload:
    """Values of nodes; the whole of Cora on a GPU, a part of it elsewhere, made-up communities if quick.

    The seed makes other communities, or takes another part; the whole of Cora has one split only.
    """
    import torch

    notes = ["GCN: a game for each test node, among the training nodes within two hops."]
    if quick:
        graph, title, rates = communities(seed=seed), "GCN, made-up communities (quick)", "quick"
    else:
        graph, title, rates = ls.datasets.load("cora"), "GCN, Cora", "GNN, GPU"
        if not torch.cuda.is_available():
            graph, rates = part_of(graph, *nodes, seed), "GNN" if nodes == REDUCED else "GNN, few"
            notes.append(
                f"GCN: {nodes[0]} training and {nodes[1]} test nodes around each other; [the whole of "
                "Cora](gpu/cora.md) needs a GPU."
            )
            title = f"GCN, {sum(nodes)} nodes of Cora"
    adjacency, X, y, train, test = graph[:5]
    model = ls.models.GCN(epochs=10 if quick else 20)

    def value(**settings: Any) -> ls.Valuation:
        settings = {"model": model, "score": "accuracy", "progress": False, **settings}
        return ls.value_nodes(adjacency, X, y, train, test, **settings)

    def accuracies(sets: list[np.ndarray]) -> list[float]:
        return accuracies_of(graph[:5], sets, ls.models.GCN(epochs=10 if quick else 200))

    variants = {"LSMR-A, the paper's games": {"games": "train"}}
    about_variants = [
        "*The paper's games*: one for each training node, so that a test node counts once for every ego network that "
        "it is in."
    ]
    return Workload(
        "GNN", title, value, accuracies, y[train], len(test), notes, graph, model, None, variants, about_variants, rates
    )


WORKLOADS: dict[str, Callable[..., Workload]] = {"WKNN": wknn, "DT": tree, "SVM": svm, "GNN": gnn}


def accuracies_of(nodes: Any, sets: list[np.ndarray], model: Any, graph: str = "induced") -> list[float]:
    """Accuracy on the test nodes of networks trained on some of the training nodes, all of them in one batch."""
    settings = {"support": ls.supports.Everything(), "games": "test", "device": "auto", "score": "accuracy"}
    given = dict(zip(("adjacency", "X", "y", "train", "test"), nodes, strict=True))
    problem = build_problem(Question.of(GraphInput, given, model=model, graph=graph, **settings))
    everyone = range(len(nodes[4]))
    scores = problem.trainer.evaluate(ls.models.Coalitions.from_lists(sets, [everyone] * len(sets)))
    return list(scores.reshape(len(sets), -1).mean(axis=1))


def communities(n: int = 60, seed: int = 0) -> tuple[Any, Any, np.ndarray, np.ndarray, np.ndarray]:
    """A small graph of three communities, with features that tell a little."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    links = rng.random((n, n)) < np.where(y[:, None] == y, 0.18, 0.02)
    links = np.triu(links, 1)
    X = (rng.random((n, 30)) < np.where(np.arange(30) % 3 == y[:, None], 0.3, 0.1)).astype(float)
    nodes = rng.permutation(n)
    return sparse.csr_array(links | links.T).astype(float), X, y, np.sort(nodes[:40]), np.sort(nodes[40:])


def part_of(
    graph: Any, n_train: int, n_test: int, seed: int = 0
) -> tuple[Any, Any, np.ndarray, np.ndarray, np.ndarray]:
    """Nodes around one of many neighbours (the one of most neighbours if the seed is 0), found breadth first."""
    adjacency, X, y, train, test = graph[:5]
    is_train = np.zeros(len(y), dtype=bool)
    is_train[train] = True
    start = int(np.argsort(-np.diff(adjacency.indptr), kind="stable")[seed])
    order = sparse.csgraph.breadth_first_order(adjacency, start, directed=False, return_predecessors=False)
    allowed = np.isin(order, np.concatenate([train, test]))
    order = order[allowed]
    kept = np.sort(np.concatenate([order[is_train[order]][:n_train], order[~is_train[order]][:n_test]]))
    places = np.arange(len(kept))
    inside = is_train[kept]
    return sparse.csr_array(adjacency[kept][:, kept]), X[kept], y[kept], places[inside], places[~inside]
