"""Many two-layer graph networks on a GPU, each trained from the first step to the last by one Triton program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import triton
from scipy import sparse
from torch import Tensor

from localshapley.arrays import AnyArray, Indices, Ints
from localshapley.kernels.receptive import ClosedGraph
from localshapley.torch.batched_gcn import GraphNetworkBatch
from localshapley.torch.triton_gcn import train_networks

if TYPE_CHECKING:
    from localshapley.torch.gcn import GCN

TOGETHER = 2048
"""Networks that are launched together: enough to make the CPU's part small, few enough to score some meanwhile."""
PROGRAMS = 8
"""Networks that a multiprocessor trains at a time: while one waits for memory, others compute."""
WARPS = 4
REGISTERS = 64
"""Registers of a thread: few, so that all these programs fit."""
TILE = 512
"""Entries of a block of rows times hidden units."""
UNROLLED = 2
"""Rows of a column that are asked for at once."""
LARGEST = 4096
"""Entries of a second layer that stays in registers."""


class FusedNetworks(GraphNetworkBatch):
    """Networks whose steps are all taken by one program each, on a GPU.

    The graph lies on the GPU, and a program cuts out what its network sees. A network's weights, its moments and what
    it computes stay in the memory of its program; nothing but coalitions and probabilities is moved.
    """

    apart = True

    def __init__(self, model: GCN, graph: ClosedGraph, n_classes: int, seed: int, device: str) -> None:
        super().__init__(model, graph, n_classes, seed, device)
        self._n_classes = n_classes
        hidden, width = _padded(model.hidden), _padded(n_classes)
        columns = _by_frequency(graph)
        order = self._tensor(np.argsort(columns))
        self._start, self._end = (_wider(w[order], graph.n_features, hidden) for w in (self._first, self._decayed))
        self._last = _wider(self._second, hidden, width)
        indptr, indices, data = graph.features
        features = indptr.astype(np.int32), columns[indices], data
        neighbours = 2 * graph.nodes + graph.always[graph.nodes]
        self._inputs = [self._tensor(a) for a in (graph.indptr.astype(np.int32), neighbours, *features)]
        self._reach = _reach(graph)
        self._largest = np.array([len(graph.always), 2 * len(graph.nodes), len(indices)])
        self._rates = self._tensor(_rates(model))
        self._streams: SimpleQueue[Any] = SimpleQueue()

    @staticmethod
    def fits(hidden: int, n_classes: int) -> bool:
        """Whether the second layer is small enough."""
        return _padded(hidden) * _padded(n_classes) <= LARGEST

    def most_together(self, n_threads: int) -> int:
        """Networks that each of `n_threads` threads should train together."""
        return TOGETHER

    def _probabilities(self, indptr: Ints, nodes: Indices, codes: Ints, test_indptr: Ints, tests: Indices) -> Tensor:
        n, n_nodes, n_columns = len(indptr) - 1, len(self._graph.always), self._graph.n_features
        hidden, n_wanted = self._start.shape[1], int(np.diff(indptr).max())
        trained, scored = (
            sparse.csr_array((np.ones(len(a), dtype=np.int64), a, begin), shape=(n, n_nodes)) @ self._reach
            for a, begin in ((nodes, indptr), (tests, test_indptr))
        )
        most = (trained + scored * [1, 1, 0]).max(axis=0)  # features are listed by column for training alone
        n_rows, n_links, n_entries = np.minimum(most, self._largest).tolist()
        n_classes = self._last.shape[1]
        # Rows of hidden units, and whole numbers, that a program needs for the largest of these networks.
        room = 3 * n_columns + 2 * n_rows + n_wanted + n_classes + 2 + -(-(n_entries + n_rows) // hidden)
        int_room = 5 * n_columns + n_entries + n_nodes + 5 * n_rows + n_links
        n_programs = self._n_programs(n, 4 * (room * hidden + int_room))
        order = np.argsort(-trained[:, 2])
        batch = np.concatenate([order, indptr, test_indptr, nodes, codes, tests], dtype=np.int32, casting="same_kind")
        with self._stream():
            out = self._empty(len(tests) * self._n_classes)
            train_networks[(n_programs,)](
                *self._inputs, self._start, self._end, self._last, self._rates, self._tensor(batch),
                self._empty(n_programs * room * hidden), self._empty(n_programs * int_room, torch.int32),
                self._empty(1, torch.int32).zero_(), out, n, len(nodes), n_nodes, n_columns, room, int_room, n_rows,
                n_wanted, n_entries, self._model.weight_decay, self._model.epochs,
                n_classes=self._n_classes, shared=bool(self._graph.shared), H=hidden, C=n_classes,
                B=max(1, TILE // hidden), K=max(16, TILE // hidden), W=128 * WARPS, U=UNROLLED,
                num_warps=WARPS, maxnreg=REGISTERS,
            )  # fmt: skip
            return out.view(-1, self._n_classes).cpu()

    def _empty(self, n: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(n, dtype=dtype, device=self._device)

    @contextmanager
    def _stream(self) -> Iterator[None]:
        """A stream that no other thread uses: the last networks of a batch run beside the first of the next."""
        if self._device.type != "cuda":  # Triton's interpreter
            yield
            return
        try:
            stream = self._streams.get_nowait()
        except Empty:
            torch.cuda.synchronize(self._device)  # the weights are there
            stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        with torch.cuda.stream(stream):
            yield
        self._streams.put(stream)

    def _n_programs(self, n: int, n_bytes: int) -> int:
        """Programs to start for `n` networks, if each needs so many bytes."""
        if self._device.type != "cuda":
            return 1
        card = torch.cuda.get_device_properties(self._device)
        return max(1, min(n, PROGRAMS * card.multi_processor_count, card.total_memory // (32 * n_bytes)))


def _padded(n: int) -> int:
    return max(16, int(triton.next_power_of_2(n)))


def _rates(model: GCN) -> AnyArray:
    """Adam's rate and the scale of its second moment in each step."""
    steps = np.arange(1, model.epochs + 1)
    return np.column_stack([model.lr / (1 - 0.9**steps), 1 / np.sqrt(1 - 0.999**steps)]).astype(np.float32)


def _reach(graph: ClosedGraph) -> AnyArray:
    """Most rows, neighbours of rows and entries of features that each wanted node or member brings into a network.

    Neighbours count twice, for a matrix and its transpose. What members see are members, and nodes that are always
    there; the way to one of the latter leads over such nodes alone, or begins anew at another member.
    """
    closed = sparse.csr_array((np.ones_like(graph.nodes, dtype=np.int64), graph.nodes, graph.indptr))
    entries = np.diff(graph.features.indptr)
    if graph.shared:
        return np.column_stack([graph.n_next, 2 * graph.n_next, closed @ entries])
    second, second_entries = (closed @ (graph.always * (closed @ (graph.always * a))) for a in (1, entries))
    links = 2 * (graph.n_always + second + graph.n_next)
    return np.column_stack([1 + second, links, entries + second_entries])


def _by_frequency(graph: ClosedGraph) -> AnyArray:
    """A new number for each column, the most frequent first: columns of similar counts are summed together."""
    counts = np.bincount(graph.features.indices, minlength=graph.n_features)
    columns = np.empty(graph.n_features, dtype=np.int32)
    columns[np.argsort(-counts, kind="stable")] = np.arange(graph.n_features, dtype=np.int32)
    return columns


def _wider(weights: Tensor, n_rows: int, n_columns: int) -> Tensor:
    """Weights with zeros below and beside them; units without weights never get any."""
    out = torch.zeros(n_rows, n_columns, device=weights.device)
    out[: weights.shape[0], : weights.shape[1]] = weights
    return out
