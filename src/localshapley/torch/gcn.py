"""Graph convolutional networks: their settings, and a trainer of many graph networks at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from joblib import cpu_count
from scipy import sparse

from localshapley.arrays import Floats, Ints, offsets
from localshapley.coalitions.batch import Coalitions
from localshapley.models.compiled import ALL, CompiledTrainer
from localshapley.models.task import Task
from localshapley.models.trainer import TrainingOutcome
from localshapley.runtime.threads import switching_soon
from localshapley.torch.graph_data import NodeData
from localshapley.torch.graph_models import GraphModel
from localshapley.torch.placement import find_device, one_thread_each, torch_threads

if TYPE_CHECKING:
    from localshapley.torch.batched_gcn import GraphNetworkBatch

GRAPHS = ("induced", "full")
LAUNCHERS = 16
"""Threads that cut out graphs and launch work on a GPU; more would wait for each other."""
LAUNCHERS_APART = 6
"""The same where programs cut out graphs: enough to launch the next and score the last while the GPU computes."""
TAKEN = {"cpu": 1024, "cuda": 2**15}
"""Coalitions that the trainer is given at a time."""
TAKEN_APART = 2**17
"""The same where a program trains each by itself: so fast that it would be left alone too often."""


@dataclass(frozen=True)
class GCN(GraphModel):
    """A graph convolutional network of two layers (Kipf and Welling), `Â relu(Â X W₁ + b₁) W₂ + b₂`.

    `Â = D^-½ (A + I) D^-½` is the propagation of the graph that is seen in training. Initial weights are Glorot's
    (uniform; biases 0) and come from the seed alone. Adam takes `epochs` steps on the cross-entropy, averaged over the
    nodes of the coalition; weight decay is added to the gradient, of all parameters. There is no dropout. Rows of `X`
    are used as they are: scale them yourself if you want them scaled.

    Parameters
    ----------
    hidden : int, default=32
        Hidden units.
    epochs : int, default=20
    lr : float, default=0.01
    weight_decay : float, default=5e-4
    """

    mixing: ClassVar[str] = "symmetric"

    def propagation(self, closed: sparse.csr_array) -> list[sparse.csr_array]:
        """`D^-½ (A + I) D^-½`."""
        root = sparse.diags_array(1 / np.sqrt(np.diff(closed.indptr)))
        return [root @ closed @ root]


class GCNTrainer(CompiledTrainer):
    """Trains coalitions of nodes in batches, each on its receptive field alone.

    A coalition's network sees the coalition and the nodes around it. What it sees is cut out of the graph, cut-outs
    are put below each other as one large sparse matrix, and all networks of a batch take their steps together. Columns
    of `X` that are zero in a cut-out change by weight decay alone, the same in every network; that is computed once.

    Parameters
    ----------
    model : GCN, GraphSAGE or GIN
    task : Task
        Its rows are the training nodes, its test rows the test nodes.
    data : NodeData
        The graph, its features, training nodes and test nodes.
    scored : CSR array of shape (n_tests, len(test))
        Test nodes that each test of the games scores, as a sum; a node is scored once for each coalition.
    graph : {"induced", "full"}
        Graph in training and scoring: the coalition and all test nodes, or all nodes.
    device : {"auto", "cpu", "cuda"}
    batch_size : int, optional
        Networks trained together; by default what suits the device. It changes scores up to floating-point
        rounding.
    """

    least_at_once = ALL  # pieces must not depend on the number of threads

    def __init__(
        self,
        model: GraphModel,
        task: Task,
        data: NodeData,
        scored: sparse.csr_array,
        *,
        graph: str = "induced",
        device: str = "auto",
        batch_size: int | None = None,
    ) -> None:
        super().__init__(model, task, n_jobs=1)
        torch_device = str(find_device(device).type)
        assert task.classes is not None
        cut = _graph(model, data, graph)
        self._networks = _networks(model, cut, len(task.classes), task.seed, torch_device)
        self._nodes, self._tests = data.train.astype(np.int32), data.test.astype(np.int32)
        self._scored = scored.indptr.astype(np.int64), scored.indices.astype(np.int32)
        self.name = f"{type(model).__name__} (batched, {torch_device})"
        launchers = LAUNCHERS_APART if self._networks.apart else LAUNCHERS
        self._n_threads = cpu_count() if torch_device == "cpu" else min(cpu_count(), launchers)
        self._most = batch_size or self._networks.most_together(self._n_threads)
        self.batch_size = TAKEN_APART if self._networks.apart else TAKEN[torch_device]
        self.is_random, self.is_quick = True, self._networks.apart
        self.if_silent = "lower the lr"

    def train(self, coalitions: Coalitions) -> TrainingOutcome:
        """Train and score coalitions in this process."""
        with one_thread_each():
            return self._train_apart(coalitions) if self._networks.apart else self._train_merged(coalitions)

    def _train_apart(self, coalitions: Coalitions) -> TrainingOutcome:
        """Train parts in threads, the largest coalitions first: a GPU would wait long for one that came last."""
        scores = np.empty(len(coalitions.tests))

        def train(piece: Ints) -> TrainingOutcome:
            indptr, rows = _ranges(coalitions.indptr, piece)
            test_indptr, where = _ranges(coalitions.test_indptr, piece)
            part = Coalitions(indptr, coalitions.players[rows], test_indptr, coalitions.tests[where])
            trained = self._train_merged(part)
            scores[where] = trained.scores
            return trained

        pieces = _pieces(coalitions, -(-len(coalitions) // self._most))
        with switching_soon(), torch_threads(self._n_threads) as threads:
            parts = list(threads.map(train, pieces))
        return replace(TrainingOutcome.joined(parts, [len(piece) for piece in pieces]), scores=scores)

    def _train_merged(self, coalitions: Coalitions) -> TrainingOutcome:
        """Train each coalition once for all its test nodes, and sum their scores by test."""
        from localshapley.kernels.receptive import merge_tests, sum_scores

        given = coalitions.test_indptr, coalitions.tests, self._scored, len(self._tests)
        merged = merge_tests(*given)
        trained = super().train(Coalitions(coalitions.indptr, coalitions.players, *merged))
        return replace(trained, scores=sum_scores(*given, *merged, trained.scores))

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        if self._networks.apart:
            self._train_together(coalitions, todo, out)
            return
        # Coalitions of about the same size go together: their last layer is padded to the largest.
        todo = todo[np.argsort(coalitions.indptr[todo + 1] - coalitions.indptr[todo], kind="stable")]
        pieces = np.array_split(todo, -(-len(todo) // self._most))
        with torch_threads(self._n_threads) as threads:
            list(threads.map(lambda piece: self._train_together(coalitions, piece, out), pieces))

    def _train_together(self, coalitions: Coalitions, piece: Ints, out: Floats) -> None:
        """Train a batch; one that does not fit into the device's memory is halved."""
        where: Any = slice(None)
        indptr, players, test_indptr, tests = coalitions.arrays
        if len(piece) < len(coalitions) or not self._networks.apart:
            indptr, rows = _ranges(indptr, piece)
            test_indptr, where = _ranges(test_indptr, piece)
            players, tests = players[rows], tests[where]
        found = self._networks.predict(
            indptr, self._nodes[players], self._codes[players], test_indptr, self._tests[tests]
        )
        if found is not None:
            out[where] = found
            return
        self._most = max(1, min(self._most, len(piece) // 2))
        for half in np.array_split(piece, 2):
            self._train_together(coalitions, half, out)


def _networks(model: GraphModel, graph: Any, n_classes: int, seed: int, device: str) -> GraphNetworkBatch:
    """Networks on a device, trained in the fastest way that there is."""
    import torch

    from localshapley.torch.batched_gcn import GraphNetworkBatch

    on_nvidia = device == "cuda" and torch.version.hip is None
    if isinstance(model, GCN) and on_nvidia and find_spec("triton") is not None:
        from localshapley.torch.fused_gcn import FusedNetworks

        if FusedNetworks.fits(model.hidden, n_classes):
            return FusedNetworks(model, graph, n_classes, seed, device)
    return GraphNetworkBatch(model, graph, n_classes, seed, device)


def _graph(model: GraphModel, data: NodeData, graph: str) -> Any:
    """The graph as the kernel takes it."""
    from localshapley.kernels.receptive import MIXINGS, Csr, PropagationGraph

    n_nodes = data.edges.shape[0]
    closed = sparse.csr_array(data.edges + sparse.eye_array(n_nodes, format="csr"))
    features = _features(model, closed, data.features, graph)
    n_next = np.diff(closed.indptr).astype(np.int64)
    there = np.full(n_nodes, graph == "full")
    there[data.test] = True
    return PropagationGraph(
        closed.indptr.astype(np.int64),
        closed.indices.astype(np.int32),
        there,
        Csr(features.indptr.astype(np.int64), features.indices.astype(np.int32), features.data.astype(np.float32)),
        features.shape[1],
        graph == "full",
        MIXINGS.index(model.mixing),
        model.n_blocks,
        n_next,
        closed.astype(np.int64) @ n_next,
        closed.astype(np.int64) @ there.astype(np.int64),
    )


def _features(model: GraphModel, closed: sparse.csr_array, X: sparse.csr_array, graph: str) -> sparse.csr_array:
    """Features with columns for each block of weights: propagated side by side, or else below each other too."""
    if graph == "full":
        parts, joined = [spread @ X for spread in model.propagation(closed)], sparse.hstack
    else:
        parts, joined = [X] * model.n_blocks, sparse.block_diag
    return sparse.csr_array(parts[0] if len(parts) == 1 else joined(parts, format="csr"))


def _pieces(coalitions: Coalitions, n: int) -> list[Ints]:
    """Coalitions in `n` pieces of about as many players and tests each, the largest coalitions first."""
    sizes, n_tests = np.diff(coalitions.indptr), np.diff(coalitions.test_indptr)
    order = np.argsort(np.minimum(sizes, 2**16 - 1).astype(np.uint16), kind="stable")[::-1]  # two bytes sort faster
    before = offsets((sizes + n_tests)[order])
    return np.split(order, np.searchsorted(before, before[-1] * np.arange(1, n) / n))


def _ranges(indptr: Ints, which: Ints) -> tuple[Ints, Ints]:
    """Offsets and entries of some rows of a CSR matrix."""
    counts = indptr[which + 1] - indptr[which]
    cut = offsets(counts)
    return cut, np.repeat(indptr[which] - cut[:-1], counts) + np.arange(cut[-1])
