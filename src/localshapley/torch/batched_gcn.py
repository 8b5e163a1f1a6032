"""Many two-layer graph networks, trained together in PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from localshapley.arrays import AnyArray, Floats, Indices, Ints
from localshapley.errors import TrainingError
from localshapley.kernels.receptive import ClosedGraph, Csr, Field, learnt_features, seen_features, transpose, walk
from localshapley.runtime.process_settings import caught_warnings

if TYPE_CHECKING:
    from localshapley.torch.graph_models import GraphModel

BATCH = {"cpu": 64, "cuda": 768}
"""Networks that a thread trains together: enough to make calls cheap; on a CPU few enough to stay in the cache."""
COPIES = 8
"""Memory for one network, in copies of its weights: moments, gradient, and what it sees of the graph."""


class GraphNetworkBatch:
    """Networks with the same settings and the same initial weights.

    Parameters
    ----------
    model : GCN, GraphSAGE or GIN
    graph : ClosedGraph
    n_classes : int
    seed : int
        Decides the initial weights; the same on every device.
    device : str

    Attributes
    ----------
    apart : bool
        Whether a network gets the same bits whatever is trained beside it.
    """

    apart = False

    def __init__(self, model: GraphModel, graph: ClosedGraph, n_classes: int, seed: int, device: str) -> None:
        self._model, self._graph, self._device = model, graph, torch.device(device)
        n_features = graph.n_features // graph.n_blocks
        first, second = initial_weights(n_features, model.hidden, n_classes, seed, graph.n_blocks)
        bias = torch.zeros(1, model.hidden)
        self._first, self._second = torch.cat([first, bias]).to(device), second.to(device)
        self._decayed = self._decay()
        with caught_warnings():  # PyTorch warns once that its sparse matrices may change
            torch.sparse_csr_tensor(
                torch.zeros(2, dtype=torch.int32), torch.zeros(0, dtype=torch.int32), torch.zeros(0)
            )

    def most_together(self, n_threads: int) -> int:
        """Networks that each of `n_threads` threads should train together."""
        most = BATCH[self._device.type]
        if self._device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self._device)
            most = int(np.clip(free // (n_threads * COPIES * 4 * self._first.numel()), 1, most))
        return most

    def predict(self, indptr: Ints, nodes: Indices, codes: Ints, test_indptr: Ints, tests: Indices) -> Floats | None:
        """Probabilities of the classes for each test, after training; None if the device is out of memory.

        Parameters
        ----------
        indptr, nodes, codes : arrays
            Nodes of each coalition (CSR), and their classes.
        test_indptr, tests : arrays
            Nodes to score of each coalition (CSR).
        """
        try:
            return self._probabilities(indptr, nodes, codes, test_indptr, tests).cpu().numpy()
        except torch.cuda.OutOfMemoryError as error:
            if len(indptr) == 2:
                raise TrainingError(f"the GPU has too little memory to train one coalition: {error}") from error
        torch.cuda.empty_cache()
        return None

    @torch.no_grad()
    def _probabilities(self, indptr: Ints, nodes: Indices, codes: Ints, test_indptr: Ints, tests: Indices) -> Tensor:
        field = walk(indptr, nodes, indptr, nodes, self._graph)
        scored = walk(indptr, nodes, test_indptr, tests, self._graph)
        features, column_indptr, columns = learnt_features(field, self._graph)
        seen = seen_features(scored, self._graph, column_indptr, columns)
        first, second, bias = self._train(field, features, columns, indptr, codes)
        weights = torch.cat([first, self._decayed])
        return self._logits(scored, seen, test_indptr, weights, second, bias).softmax(1)

    def _logits(
        self, field: Field, features: Csr, test_indptr: Ints, first: Tensor, second: Tensor, bias: Tensor
    ) -> Tensor:
        """Logits of the tests, in float64; all first layers below each other, second ones one by one."""
        hidden = self._sparse(features, len(first)) @ first
        if len(field.near.data):
            hidden = self._sparse(field.near, len(hidden)) @ hidden
        outer, rows = _padded(field.outer, test_indptr, self._graph.n_blocks)
        # Rows of `outer` for one node follow each other: seen as one, they meet its blocks of weights.
        mixed = (self._sparse(outer, len(hidden)) @ hidden.relu_()).view(len(second), -1, second.shape[1])
        out = torch.baddbmm(bias, mixed, second)
        return out.view(-1, out.shape[2])[self._tensor(rows)].double()

    @torch.no_grad()
    def _train(
        self, field: Field, features: Csr, columns: Indices, indptr: Ints, codes: Ints
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Train all networks; gives the first layers below each other, and the second ones with their biases.

        The gradients of so small a network are a few products, written out here.
        """
        n, n_rows = len(indptr) - 1, len(field.rows)
        propagates = len(field.near.data) > 0
        outer_csr, loss_rows = _padded(field.outer, indptr, self._graph.n_blocks)
        words, words_t = self._both_ways(features, len(columns))
        if propagates:
            near, near_t = self._both_ways(field.near, n_rows)
        outer, outer_t = self._both_ways(outer_csr, len(field.near.indptr) - 1 if propagates else n_rows)
        first = self._first[self._tensor(columns)]
        second = self._second.repeat(n, 1, 1)
        bias = torch.zeros(n, 1, second.shape[2], device=self._device)
        n_wanted = (len(outer_csr.indptr) - 1) // self._graph.n_blocks
        wanted, share = self._targets(n_wanted, loss_rows, indptr, codes)
        adam = self._adam(first, second, bias)
        for _ in range(self._model.epochs):
            hidden = words @ first
            if propagates:
                hidden = near @ hidden
            mixed = (outer @ hidden.relu_()).view(n, -1, second.shape[1])
            error = torch.baddbmm(bias, mixed, second).softmax(2).sub_(wanted).mul_(share)
            back = outer_t @ torch.bmm(error, second.transpose(1, 2)).view(-1, first.shape[1])
            back.mul_(hidden > 0)
            if propagates:
                back = near_t @ back
            first.grad, second.grad = words_t @ back, torch.bmm(mixed.transpose(1, 2), error)
            bias.grad = error.sum(1, keepdim=True)
            adam.step()
        return first, second, bias

    def _targets(self, n_rows: int, rows: Ints, indptr: Ints, codes: Ints) -> tuple[Tensor, Tensor]:
        """One-hot classes of the padded loss rows, and the weight of each in its coalition's loss."""
        sizes, n_classes = np.diff(indptr), self._second.shape[1]
        wanted = np.zeros((n_rows, n_classes), dtype=np.float32)
        wanted[rows, codes] = 1
        share = np.zeros((n_rows, 1), dtype=np.float32)
        share[rows, 0] = np.repeat(1 / sizes, sizes)
        return self._tensor(wanted).view(len(sizes), -1, n_classes), self._tensor(share).view(len(sizes), -1, 1)

    def _decay(self) -> Tensor:
        """What the first layer becomes by weight decay alone."""
        weights = self._first.clone()
        adam = self._adam(weights)
        weights.grad = torch.zeros_like(weights)
        for _ in range(self._model.epochs):
            adam.step()
        return weights

    def _adam(self, *weights: Tensor) -> torch.optim.Adam:
        return torch.optim.Adam(weights, lr=self._model.lr, weight_decay=self._model.weight_decay, fused=True)

    def _both_ways(self, matrix: Csr, n_columns: int) -> tuple[Tensor | Bags, Tensor | Bags]:
        """A sparse matrix and its transpose."""
        return self._sparse(matrix, n_columns), self._sparse(transpose(matrix, n_columns), len(matrix.indptr) - 1)

    def _sparse(self, matrix: Csr, n_columns: int) -> Tensor | Bags:
        if self._device.type == "cpu":
            return Bags(matrix)
        return torch.sparse_csr_tensor(
            self._tensor(matrix.indptr.astype(np.int32)),
            self._tensor(matrix.indices.astype(np.int32)),
            self._tensor(matrix.data),
            (len(matrix.indptr) - 1, n_columns),
            check_invariants=False,
        )

    def _tensor(self, array: AnyArray) -> Tensor:
        return torch.from_numpy(array).to(self._device)


class Bags:
    """A sparse matrix to multiply with on a CPU: rows as bags of an embedding, much faster than PyTorch's own."""

    def __init__(self, matrix: Csr) -> None:
        self._starts = torch.from_numpy(matrix.indptr[:-1].astype(np.int32))
        self._indices, self._data = torch.from_numpy(matrix.indices), torch.from_numpy(matrix.data)

    def __matmul__(self, dense: Tensor) -> Tensor:
        return embedding_bag(self._indices, dense, self._starts, mode="sum", per_sample_weights=self._data)


def initial_weights(
    n_features: int, hidden: int, n_classes: int, seed: int, n_blocks: int = 1
) -> tuple[Tensor, Tensor]:
    """Glorot's uniform weights of both layers, their blocks below each other."""
    generator = torch.Generator().manual_seed(seed)

    def layer(a: int, b: int) -> Tensor:
        blocks = [(2 * torch.rand(a, b, generator=generator) - 1) * (6 / (a + b)) ** 0.5 for _ in range(n_blocks)]
        return torch.cat(blocks)

    return layer(n_features, hidden), layer(hidden, n_classes)


def _padded(matrix: Csr, indptr: Ints, n_blocks: int) -> tuple[Csr, Ints]:
    """Add empty rows so that each part of a matrix has as many as the largest; also says where each went.

    What is counted and placed are `n_blocks` rows that belong together.
    """
    counts = np.diff(indptr)
    largest = max(1, int(counts.max()))
    rows = np.arange(indptr[-1]) + np.repeat(np.arange(len(counts)) * largest - indptr[:-1], counts)
    entries = np.zeros(len(counts) * largest * n_blocks + 1, dtype=np.int64)
    entries[1:].reshape(-1, n_blocks)[rows] = np.diff(matrix.indptr).reshape(-1, n_blocks)
    return matrix._replace(indptr=np.cumsum(entries)), rows
