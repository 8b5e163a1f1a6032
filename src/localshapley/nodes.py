"""Values of the nodes of a graph, and how far they are from global ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from localshapley.engine.run_store import StoreSetting
from localshapley.errors import InvalidArgumentError
from localshapley.locality.gap import LocalityGap, measure_gap
from localshapley.locality.growing import grow_support
from localshapley.methods import Method
from localshapley.parameter_docs import documented
from localshapley.problem.build import build_problem
from localshapley.problem.graph_nodes import NodesProblem
from localshapley.question import AUTO, GraphInput, Question
from localshapley.runtime.progress import ProgressSetting
from localshapley.stopping import Rule
from localshapley.supports.base import Support
from localshapley.torch.graph_models import GraphModel
from localshapley.valuation import Valuation
from localshapley.valuation.provenance import recorded
from localshapley.valuation.solving import solve


@recorded
@documented
def value_nodes(
    adjacency: Any,
    X: Any = None,
    y: Any = None,
    train: Any = None,
    test: Any = None,
    *,
    model: GraphModel | None = None,
    support: Support | str | None = None,
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
    adjacency : SciPy sparse matrix, edges of shape (n_edges, 2) or (2, n_edges), or graph of a library
        The edges; nodes are numbered as the rows of `X`, from 0. Directions and weights are ignored, self-loops and
        repeated edges are merged. Graphs of networkx, PyTorch Geometric and DGL are taken; the last two also hold `X`,
        `y`, `train` and `test`, which can then be left out: `x`, `y`, `train_mask` and `test_mask`, or `ndata` of the
        names ``"feat"``, ``"label"`` and these masks.
    X : array, DataFrame or SciPy sparse matrix of shape (n_nodes, n_features)
        Features, used as they are; sparse ones train faster.
    y : array of shape (n_nodes,)
        Labels; those of nodes that are neither training nor test nodes are not read.
    train, test : arrays of node numbers, or masks of shape (n_nodes,)
        Nodes that are valued, and nodes on which networks are scored.
    model : `localshapley.models.GCN`, `GraphSAGE` or `GIN`, optional
        Settings of the network; ``GCN()`` by default.
    support : `localshapley.supports` object or "auto", optional
        Which training nodes can matter to a node; ``supports.Hops(2)`` by default. With ``"auto"`` hops are added until
        the values are nearly global, as in `locality_gap_nodes`, or `budget` or `max_seconds` allows no more: a note
        says what gap remains. It needs ``games="test"``.
    games : {"test", "train"}, default="test"
        One game for each test node, among the training nodes around it; or one for each training node, among the
        training nodes around it, scored on the test nodes around it (the paper's protocol).
    graph : {"induced", "full"}, default="induced"
        What a network sees, in training and scoring: the coalition and all test nodes, with the edges between them;
        or all nodes, of which only the coalition's labels are used.
    device : {"auto", "cpu", "cuda"}, default="auto"
        ``"auto"`` is the GPU if there is one. Values on different devices differ by rounding.
    seed : int, default=0
        The same arguments and seed give the same values, bit for bit. It also decides the initial weights, which all
        networks share.

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
    if support == AUTO and games != "test":
        raise InvalidArgumentError(
            f"support='auto' needs games='test', got games={games!r}: there more hops would also be more test nodes in "
            "each game. Give supports.Hops(n)."
        )
    question = Question.of(GraphInput, locals())
    problem, limits = grow_support(question) if support == AUTO else (build_problem(question), question.limits)
    assert isinstance(problem, NodesProblem)
    found, reach = solve(problem, limits, store), problem.reach
    by_test = None if found.per_test is None else sparse.csr_array(problem.scored.T @ found.per_test)
    n_tests = np.bincount(reach.indices, minlength=reach.shape[1])
    return replace(
        found,
        estimate=replace(found.estimate, per_test=by_test),
        counts=replace(found.counts, support_sizes=np.diff(reach.indptr), n_tests=n_tests),
    )


@documented
def locality_gap_nodes(
    adjacency: Any,
    X: Any = None,
    y: Any = None,
    train: Any = None,
    test: Any = None,
    *,
    model: GraphModel | None = None,
    support: Support | None = None,
    games: str = "test",
    graph: str = "induced",
    device: str = "auto",
    score: Any = None,
    empty: float | None = None,
    n_tests: int = 20,
    budget: int = 20_000,
    seed: int = 0,
    progress: ProgressSetting = None,
    max_seconds: float | None = None,
    store: StoreSetting = None,
    on_interrupt: str = "raise",
) -> LocalityGap:
    """Estimate how far the local values of nodes are from the global ones, on a sample of test nodes.

    As `locality_gap`: random permutations of all training nodes give the global marginal of every node, and the same
    permutation without the nodes outside the support its local one.

    Parameters
    ----------
    adjacency, X, y, train, test, model, games, graph, device
        As in `value_nodes`. With ``games="train"`` games of training nodes are sampled, and a global value is that of
        the same scores when all training nodes play in each of them.
    support : `localshapley.supports` object, optional
        Which training nodes can matter to a node; ``supports.Hops(2)`` by default.
    n_tests : int, default=20
        Test nodes to sample.
    budget : int, default=20000
        Maximum number of trainings. A permutation takes one for each training node and one for each node of a sampled
        support; at least two permutations are needed.
    max_seconds : float, optional
        Walk no more permutations after this time; two are finished in any case.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does: end the run, or return what the permutations so far show, if there are two.

    Returns
    -------
    LocalityGap

    Examples
    --------
    >>> import localshapley as ls
    >>> path = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
    >>> X, y = [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0], [0, 1]], [0, 1, 0, 1, 0, 1]
    >>> ls.locality_gap_nodes(path, X, y, train=[0, 1, 2, 4], test=[3, 5], device="cpu", budget=100).permutations
    12
    """
    return measure_gap(Question.of(GraphInput, locals()), n_tests, budget)
