"""Values of the nodes of a graph: makes the games, has networks trained."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley.arrays import AnyArray, Indices, Ints
from localshapley.engine import Settings, play
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.games import SupportGraph
from localshapley.inputs.graphs import read_graph
from localshapley.models.devices import find_device
from localshapley.models.gcn import GCN, GRAPHS, GCNTrainer
from localshapley.progress import ProgressSetting
from localshapley.stopping import Rule
from localshapley.store.contents import describe
from localshapley.store.replay import StoreSetting, opened, replay_of_game
from localshapley.supports.base import Support
from localshapley.supports.given import Everything
from localshapley.supports.hops import Hops, NodeSpace, within
from localshapley.valuation import Valuation

GAMES = ("test", "train")


def value_nodes(
    adjacency: Any,
    X: Any,
    y: Any,
    train: Any,
    test: Any,
    *,
    model: GCN | None = None,
    support: Support | None = None,
    games: str = "test",
    graph: str = "induced",
    device: str = "auto",
    score: Any = None,
    method: str = "auto",
    budget: int | None = None,
    tol: float | None = None,
    stop: Rule | None = None,
    max_seconds: float | None = None,
    empty: float | None = None,
    seed: int = 0,
    progress: ProgressSetting = None,
    per_test: bool = False,
    store: StoreSetting = None,
    on_interrupt: str = "raise",
) -> Valuation:
    """Value every training node of a graph by what it does for the predictions on the test nodes.

    Parameters
    ----------
    adjacency : SciPy sparse matrix, edge list of shape (n_edges, 2), networkx graph or PyTorch Geometric `Data`
        The edges; nodes are numbered as the rows of `X`, from 0. Directions and weights do not count, self-loops and
        repeated edges are merged.
    X : array, DataFrame or SciPy sparse matrix of shape (n_nodes, n_features)
        Features, used as they are; sparse ones train faster.
    y : array of shape (n_nodes,)
        Labels; those of nodes that are neither training nor test nodes are not read.
    train, test : arrays of node numbers, or masks of shape (n_nodes,)
        Nodes that are valued, and nodes on which networks are scored.
    model : `localshapley.models.GCN`, optional
        Settings of the network; ``GCN()`` by default.
    support : `localshapley.supports` object, optional
        Which training nodes can matter to a node; ``supports.Hops(2)`` by default.
    games : {"test", "train"}, default="test"
        One game for each test node, among the training nodes around it; or one for each training node, among the
        training nodes around it, scored on the test nodes around it (the paper's protocol).
    graph : {"induced", "full"}, default="induced"
        What a network sees, in training and scoring: the coalition and all test nodes, with the edges between them;
        or all nodes, of which only the coalition's labels are used.
    device : {"auto", "cpu", "cuda"}, default="auto"
        ``"auto"`` is the GPU if there is one. Values on different devices differ by rounding.
    score, method, budget, tol, stop, max_seconds, empty, seed, progress, per_test, store, on_interrupt
        As in `value`. The seed also decides the initial weights, which all networks share.

    Returns
    -------
    Valuation
        With the values in the order of `train`, and the nodes' numbers as `ids`.

    Examples
    --------
    >>> import localshapley as ls
    >>> path = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
    >>> X, y = [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0], [0, 1]], [0, 1, 0, 1, 0, 1]
    >>> v = ls.value_nodes(path, X, y, train=[0, 1, 2, 4], test=[3, 5], device="cpu")
    >>> v.to_frame().n_tests.to_dict()
    {0: 0, 1: 1, 2: 1, 4: 2}
    """
    settings = Settings(method, budget, tol, stop, max_seconds, seed, progress, per_test, on_interrupt)
    model, support = GCN() if model is None else model, Hops(2) if support is None else support
    if not isinstance(model, GCN):
        raise InvalidArgumentError(f"model must be localshapley.models.GCN(...); got {model!r}.")
    for name, given, known in (("games", games, GAMES), ("graph", graph, GRAPHS)):
        if given not in known:
            raise unknown_name(name, given, known)
    if settings.plays_all:  # as in `value`, whatever the support
        support, games = Everything(), "test"
    find_device(device)
    data = read_graph(adjacency, X, y, train, test)
    checked = data.checked(score=score, empty=empty, seed=seed)
    edges, features, labels, nodes, test_nodes = data
    task, notes = checked.task, checked.notes
    supports, scored = _make_games(games, support, edges, features, nodes, test_nodes, labels, seed, per_test)
    played_graph = SupportGraph(supports, len(nodes))
    trainer = GCNTrainer(model, task, edges, features, nodes, test_nodes, scored, graph=graph, device=device)
    if store is None:
        played = play(played_graph, trainer, settings)
    else:
        what = (
            model,
            graph,
            trainer.name,
            task.score,
            empty,
            seed,
            labels[nodes],
            labels[test_nodes],
            nodes,
            test_nodes,
        )
        what += tuple(part for m in (edges, features, scored) for part in (m.indptr, m.indices, m.data))
        with opened(store) as file:
            name = f"value_nodes {blake2b(describe(what).encode(), digest_size=16).hexdigest()}"
            replay = replay_of_game(file, name, played_graph)
            played = play(played_graph, trainer, settings, replay)
            notes += replay.notes
    if trainer.n_silent:
        notes.append(f"{trainer.n_silent} predictions were no numbers and count as nothing learnt; lower the lr.")
    reach = sparse.csr_array(scored.T @ played_graph.matrix(np.ones(len(played_graph.N[1]))))
    if empty_supports := int((np.diff(reach.indptr) == 0).sum()):
        notes.append(
            f"{empty_supports} of {len(test_nodes)} test nodes have an empty support and add nothing; "
            f"a larger support ({support.larger()}) would reach them."
        )
    valuation = played.valuation(
        model=repr(model),
        score=task.score.name,
        support=f"{support!r} of {games} nodes, {graph} graph",
        notes=notes,
        ids=pd.Index(nodes, name="node"),
        unit="node",
    )
    by_test = valuation.per_test
    return replace(
        valuation,
        support_sizes=np.diff(reach.indptr),
        n_tests=np.bincount(reach.indices, minlength=len(nodes)),
        per_test=None if by_test is None else sparse.csr_array(scored.T @ by_test),
    )


def _make_games(
    games: str,
    support: Any,
    edges: sparse.csr_array,
    features: sparse.csr_array,
    train: Ints,
    test: Ints,
    labels: AnyArray,
    seed: int,
    apart: bool,
) -> tuple[list[Indices], sparse.csr_array]:
    """Players of each test of the games, and the test nodes (by place) that it scores, as a matrix.

    Test nodes of one game are one test, whose score is their sum, unless they are wanted apart.
    """
    if not isinstance(support, Support) or (games == "train" and not isinstance(support, Hops)):
        allowed = "supports.Hops(n)" if games == "train" else "supports.Hops, Given, Random or Everything"
        raise InvalidArgumentError(f"support must be {allowed} for games={games!r}; got {support!r}.")
    centres = test if games == "test" else train
    X, X_test = features[train], features[centres]
    space = NodeSpace(X, X_test, X, X_test, labels[train], None, seed, adjacency=edges, nodes=train, test_nodes=centres)
    found = support(space)
    if games == "test":
        return found, sparse.eye_array(len(test), format="csr")
    assert isinstance(support, Hops)
    scored = within(edges, train, test, support.n)
    if not scored.nnz:
        raise InvalidArgumentError(
            f"no test node is within {support.n} hops of a training node; take a larger support ({support.larger()})."
        )
    if not apart:  # an ego network without a test node is no game
        counts = np.diff(scored.indptr)
        return [rows if n else rows[:0] for rows, n in zip(found, counts, strict=True)], scored.astype(np.float64)
    pairs = scored.tocoo()
    alone = sparse.csr_array((np.ones(pairs.nnz), (np.arange(pairs.nnz), pairs.col)), (pairs.nnz, len(test)))
    return [found[game] for game in pairs.row], alone
