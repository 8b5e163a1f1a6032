"""Problems of the nodes of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley.arrays import AnyArray, Indices, Ints
from localshapley.coalitions.games import SupportGraph
from localshapley.data.row_digests import Digests
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.models.task import Task
from localshapley.notes import Note
from localshapley.problem.base import LocalProblem
from localshapley.problem.fingerprints import describe
from localshapley.problem.store_keys import ScoreKeys, contents_by_name
from localshapley.problem.support_search import LARGER
from localshapley.question import GraphInput, Question
from localshapley.supports.base import Support
from localshapley.supports.hops import Hops, NodeSpace, within
from localshapley.torch.gcn import GCN, GRAPHS, GCNTrainer
from localshapley.torch.graph_data import NodeData, read_graph
from localshapley.torch.graph_models import GraphModel
from localshapley.torch.placement import find_device

TESTED = {"test": "test nodes", "train": "games of training nodes"}
"""What the tests of the games are, by who has the games."""


@dataclass(frozen=True, kw_only=True)
class NodesProblem(LocalProblem):
    """A problem of `value_nodes`.

    Attributes
    ----------
    scored : CSR array of shape (n_tests, number of test nodes)
        Test nodes that each test of the games scores.
    reach : CSR array of shape (number of test nodes, n_players)
        Training nodes that play for each test node.
    """

    scored: sparse.csr_array
    reach: sparse.csr_array


def build_nodes(question: Question[GraphInput]) -> NodesProblem:
    """Make the problem of nodes of a graph; with values to each test node, each is a test of its own."""
    given, limits = question.data, question.limits
    model, support = question.model or GCN(), question.support_given or Hops(2)
    _check_names(model, given.games, given.graph, given.device)
    games = "test" if limits.method.plays_all else given.games
    data = read_graph(given.adjacency, given.X, given.y, given.train, given.test)
    task, notes = data.task(score=question.score, empty=question.empty, seed=limits.seed)
    supports, scored = _make_games(games, support, data, limits.seed, apart=limits.per_test)
    one_by_one = games == "test" or limits.per_test  # else a test is all test nodes of a game, in several games each
    played = SupportGraph(supports, len(data.train), sources=scored.indices if one_by_one else None)
    if not one_by_one:
        played.bundles = None
    played.check_room("value_nodes()", 20, "use a smaller support, or fewer test nodes")
    trainer = GCNTrainer(model, task, data, scored, graph=given.graph, device=given.device)
    reach = sparse.csr_array(scored.T @ played.matrix(np.ones(len(played.N[1]))))
    notes += _note_on_empty(support, games, data, np.flatnonzero(np.diff(reach.indptr) == 0))
    return NodesProblem(
        graph=played,
        trainer=trainer,
        model=repr(model),
        score=task.score.name,
        support=f"{support!r} of {games} nodes, {given.graph} graph",
        contents=lambda: _contents(data, task, scored, (model, given.graph, trainer.name), played),
        ids=pd.Index(data.train, name="node"),
        unit="node",
        remarks=lambda: notes,
        digests=lambda: Digests.of(data.features[data.train], data.labels[data.train]),
        source=support,
        tested=TESTED[games],
        scored=scored,
        reach=reach,
    )


def _check_names(model: Any, games: str, graph: str, device: str) -> None:
    if not isinstance(model, GraphModel):
        raise InvalidArgumentError(
            f"model must be localshapley.models.GCN(...), GraphSAGE(...) or GIN(...); got {model!r}."
        )
    for name, given, known in (("games", games, tuple(TESTED)), ("graph", graph, GRAPHS)):
        if given not in known:
            raise unknown_name(name, given, known)
    if find_device(device).type not in ("cpu", "cuda"):
        raise InvalidArgumentError(f"device {device!r} cannot train graph networks; give 'auto', 'cpu' or 'cuda'.")


def _contents(data: NodeData, task: Task, scored: sparse.csr_array, model: Any, played: SupportGraph) -> ScoreKeys:
    """What scores depend on, named by all of it."""
    edges, features, labels, train, test, _ = data
    what = (*model, task.score, task.empty, task.seed, labels[train], labels[test], train, test)
    what += tuple(part for m in (edges, features, scored) for part in (m.indptr, m.indices, m.data))
    name = f"value_nodes {blake2b(describe(what).encode(), digest_size=16).hexdigest()}"
    return contents_by_name(name, played.n_players, played.n_tests)


def _note_on_empty(support: Any, games: str, data: NodeData, empty: AnyArray) -> list[Note]:
    """How many test nodes have an empty support, and a larger one that reaches them all: one that was looked at."""
    if not len(empty):
        return []
    text = f"{len(empty)} of {len(data.test)} test nodes have an empty support and add nothing"
    if isinstance(support, Hops) and (n := _hops_to(data, data.test[empty], support.n)):
        text += f"; a larger support (supports.Hops({n})) would reach them"
    elif games == "test":
        text += "; supports.Everything() would reach them"
    return [Note("support-empty", f"{text}.", n_empty=len(empty), n_tests=len(data.test))]


def _hops_to(data: NodeData, tests: Ints, n: int) -> int:
    """More than `n` hops that lead from each of some test nodes to a training node; 0 if the next few do not."""
    for more in range(n + 1, n + 1 + LARGER):
        if (np.diff(within(data.edges, tests, data.train, more).indptr) > 0).all():
            return more
    return 0


def _make_games(
    games: str, support: Any, data: NodeData, seed: int, *, apart: bool
) -> tuple[list[Indices], sparse.csr_array]:
    """Players of each test of the games, and the test nodes (by position) that it scores, as a matrix.

    Test nodes of one game are one test, whose score is their sum, unless they are to be kept apart.
    """
    if not isinstance(support, Support) or (games == "train" and not isinstance(support, Hops)):
        allowed = (
            "supports.Hops(n)"
            if games == "train"
            else "supports.Hops, Given, Random or Everything (value_nodes also takes 'auto')"
        )
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
        n = _hops_to(data, test, support.n)
        remedy = (
            f"take a larger support (supports.Hops({n}))" if n else "give test nodes in the same parts of the graph"
        )
        raise InvalidArgumentError(f"no test node is within {support.n} hops of a training node; {remedy}.")
    if not apart:  # an ego network without a test node is not a game
        counts = np.diff(scored.indptr)
        return [rows if n else rows[:0] for rows, n in zip(found, counts, strict=True)], scored.astype(np.float64)
    pairs = scored.tocoo()
    alone = sparse.csr_array((np.ones(pairs.nnz), (np.arange(pairs.nnz), pairs.col)), (pairs.nnz, len(test)))
    return [found[game] for game in pairs.row], alone
