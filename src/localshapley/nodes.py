"""Values of the nodes of a graph: makes the games, and has networks trained."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley.arrays import Indices
from localshapley.engine import solve
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.games import SupportGraph
from localshapley.inputs.graphs import NodeData, read_graph
from localshapley.inputs.task import Task
from localshapley.methods import Method, read_settings
from localshapley.models.devices import find_device
from localshapley.models.gcn import GCN, GRAPHS, GCNTrainer
from localshapley.problem.base import Problem
from localshapley.progress import ProgressSetting
from localshapley.stopping import Rule
from localshapley.store.contents import Contents, contents_by_name, describe
from localshapley.store.replay import StoreSetting
from localshapley.supports.base import Support
from localshapley.supports.hops import Hops, NodeSpace, within
from localshapley.valuation import Digests, Valuation

GAMES = ("test", "train")


def value_nodes(
    adjacency: Any,
    X: Any = None,
    y: Any = None,
    train: Any = None,
    test: Any = None,
    *,
    model: GCN | None = None,
    support: Support | None = None,
    games: str = "test",
    graph: str = "induced",
    device: str = "auto",
    score: Any = None,
    method: str | Method = "auto",
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
    adjacency : SciPy sparse matrix, edge list of shape (n_edges, 2), graph of networkx, PyTorch Geometric or DGL
        The edges; nodes are numbered as the rows of `X`, from 0. Directions and weights are ignored, self-loops and
        repeated edges are merged. The last two also hold `X`, `y`, `train` and `test`, which can then be left out:
        `x`, `y`, `train_mask` and `test_mask`, or `ndata` of the names ``"feat"``, ``"label"`` and these masks.
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
    settings = read_settings(method, budget, tol, stop, max_seconds, seed, progress, per_test, on_interrupt)
    model, support = GCN() if model is None else model, settings.method.support(support) or Hops(2)
    if not isinstance(model, GCN):
        raise InvalidArgumentError(f"model must be localshapley.models.GCN(...); got {model!r}.")
    for name, given, known in (("games", games, GAMES), ("graph", graph, GRAPHS)):
        if given not in known:
            raise unknown_name(name, given, known)
    if settings.method.plays_all:
        games = "test"
    if find_device(device).type not in ("cpu", "cuda"):
        raise InvalidArgumentError(f"device {device!r} cannot train graph networks; give 'auto', 'cpu' or 'cuda'.")
    data = read_graph(adjacency, X, y, train, test)
    task, notes = data.task(score=score, empty=empty, seed=seed)
    supports, scored = _make_games(games, support, data, seed, apart=per_test)
    one_by_one = games == "test" or per_test  # else a test is all test nodes of a game, and these are in several games
    played = SupportGraph(supports, len(data.train), sources=scored.indices if one_by_one else None)
    if not one_by_one:
        played.bundles = None
    played.check_room("value_nodes()", 20, "use a smaller support, or fewer test nodes")
    trainer = GCNTrainer(model, task, data, scored, graph=graph, device=device)
    reach = sparse.csr_array(scored.T @ played.matrix(np.ones(len(played.N[1]))))
    if empty_supports := int((np.diff(reach.indptr) == 0).sum()):
        notes.append(
            f"{empty_supports} of {len(data.test)} test nodes have an empty support and add nothing; "
            f"a larger support ({support.larger()}) would reach them."
        )
    problem = Problem(
        graph=played,
        trainer=trainer,
        model=repr(model),
        score=task.score.name,
        support=f"{support!r} of {games} nodes, {graph} graph",
        contents=lambda: _contents(data, task, scored, (model, graph, trainer.name), played),
        ids=pd.Index(data.train, name="node"),
        unit="node",
        notes=notes,
        digests=lambda: Digests.of(data.features[data.train], data.labels[data.train]),
    )
    found = solve(problem, settings, store)
    return replace(
        found,
        support_sizes=np.diff(reach.indptr),
        n_tests=np.bincount(reach.indices, minlength=len(data.train)),
        per_test=None if found.per_test is None else sparse.csr_array(scored.T @ found.per_test),
    )


def _contents(data: NodeData, task: Task, scored: sparse.csr_array, model: Any, played: SupportGraph) -> Contents:
    """What scores depend on, named by all of it."""
    edges, features, labels, train, test, _ = data
    what = (*model, task.score, task.empty, task.seed, labels[train], labels[test], train, test)
    what += tuple(part for m in (edges, features, scored) for part in (m.indptr, m.indices, m.data))
    name = f"value_nodes {blake2b(describe(what).encode(), digest_size=16).hexdigest()}"
    return contents_by_name(name, played.n_players, played.n_tests)


def _make_games(
    games: str, support: Support, data: NodeData, seed: int, *, apart: bool
) -> tuple[list[Indices], sparse.csr_array]:
    """Players of each test of the games, and the test nodes (by position) that it scores, as a matrix.

    Test nodes of one game are one test, whose score is their sum, unless they are to be kept apart.
    """
    if not isinstance(support, Support) or (games == "train" and not isinstance(support, Hops)):
        allowed = "supports.Hops(n)" if games == "train" else "supports.Hops, Given, Random or Everything"
        raise InvalidArgumentError(f"support must be {allowed} for games={games!r}; got {support!r}.")
    edges, features, labels, train, test, _ = data
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
    if not apart:  # an ego network without a test node is not a game
        counts = np.diff(scored.indptr)
        return [rows if n else rows[:0] for rows, n in zip(found, counts, strict=True)], scored.astype(np.float64)
    pairs = scored.tocoo()
    alone = sparse.csr_array((np.ones(pairs.nnz), (np.arange(pairs.nnz), pairs.col)), (pairs.nnz, len(test)))
    return [found[game] for game in pairs.row], alone
