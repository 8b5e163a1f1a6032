"""Many two-layer graph networks on a GPU, each trained from the first step to the last by one Triton program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import triton
from torch import Tensor

from localshapley.arrays import AnyArray, Ints
from localshapley.kernels.receptive import Field, Graph, transpose
from localshapley.models.gcn_networks import Networks
from localshapley.models.gcn_programs import HEADER, train_networks

if TYPE_CHECKING:
    from localshapley.models.gcn import GCN

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


class FusedNetworks(Networks):
    """Networks whose steps are all taken by one program each, on a GPU.

    A network's weights, its moments and what it computes stay in the memory of its program, small enough for the
    cache; nothing but the graphs that were cut out and the probabilities is moved.
    """

    apart = True

    def __init__(self, model: GCN, graph: Graph, n_classes: int, seed: int, device: str) -> None:
        super().__init__(model, graph, n_classes, seed, device)
        self._n_classes = n_classes
        hidden, width = _padded(model.hidden), _padded(n_classes)
        columns = _by_frequency(graph)
        order = self._tensor(np.argsort(columns))
        self._start, self._end = (_wider(w[order], graph.n_features, hidden) for w in (self._first, self._decayed))
        self._last = _wider(self._second, hidden, width)
        indptr, indices, data = graph.features
        self._features = [self._tensor(a) for a in (indptr.astype(np.int32), columns[indices], data)]
        self._rates = self._tensor(_rates(model))
        self._streams: SimpleQueue[Any] = SimpleQueue()

    @staticmethod
    def fits(hidden: int, n_classes: int) -> bool:
        """Whether the second layer is small enough."""
        return _padded(hidden) * _padded(n_classes) <= LARGEST

    def _probabilities(self, field: Field, scored: Field, indptr: Ints, codes: Ints, test_indptr: Ints) -> Tensor:
        (n_rows, n_wanted, n_entries), ints, floats = _pack(self._graph, field, scored, indptr, codes, test_indptr)
        n, n_columns, hidden = len(indptr) - 1, self._graph.n_features, self._start.shape[1]
        room = 3 * n_columns + 2 * n_rows + n_wanted + -(-n_entries // hidden)  # rows of hidden units
        int_room = 5 * n_columns + n_entries
        n_programs = self._n_programs(n, 4 * (room * hidden + int_room))
        with self._stream():
            out = self._empty(int(test_indptr[-1]) * self._n_classes)
            train_networks[(n_programs,)](
                *self._features, self._start, self._end, self._last, self._rates,
                self._tensor(ints), self._tensor(floats), self._empty(n_programs * room * hidden),
                self._empty(n_programs * int_room, torch.int32), self._empty(1, torch.int32).zero_(), out,
                n, n_columns, room, int_room, n_rows, n_wanted, self._model.weight_decay, self._model.epochs,
                n_classes=self._n_classes, shared=bool(self._graph.shared), H=hidden, C=self._last.shape[1],
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


def _pack(
    graph: Graph, field: Field, seen: Field, indptr: Ints, codes: Ints, test_indptr: Ints
) -> tuple[tuple[int, int, int], AnyArray, AnyArray]:
    """Everything about a batch as one array of whole numbers, which begins with its header, and one of floats.

    Also the largest numbers of rows, of wanted nodes and of feature entries of one network.
    """
    entries = np.diff(graph.features.indptr)
    n_entries = np.zeros(len(indptr), dtype=np.int64)
    n_entries[1:] = np.cumsum(np.where(field.rows >= 0, entries[field.rows], 0))[field.row_indptr[1:] - 1]
    cost = np.diff(n_entries)
    n_hidden, n_rows = field.hidden_indptr[-1], len(field.rows)
    near_t = transpose(field.near, n_rows) if len(field.near.data) else field.near
    outer_t = transpose(field.outer, n_hidden)
    matrices = (field.near, near_t, field.outer, outer_t, seen.near, seen.outer)
    arrays = [part for m in matrices for part in (m.indptr, m.indices)]
    arrays += [field.row_indptr, field.hidden_indptr, indptr, field.rows, codes]
    arrays += [seen.row_indptr, seen.hidden_indptr, test_indptr, seen.rows, np.argsort(-cost, kind="stable")]
    at = HEADER + np.concatenate([[0], np.cumsum([len(a) for a in arrays])])
    data_at = np.concatenate([[0], np.cumsum([len(m.data) for m in matrices])])
    ints = np.empty(at[-1], dtype=np.int32)
    ints[:18] = np.column_stack([at[0:12:2], at[1:12:2], data_at[:-1]]).ravel()
    ints[18:HEADER] = at[12:-1]
    np.concatenate(arrays, out=ints[HEADER:], casting="same_kind")
    floats = np.concatenate([m.data for m in matrices])
    largest = max(np.diff(f.row_indptr).max() for f in (field, seen))
    largest = max(largest, *(np.diff(f.hidden_indptr).max() for f in (field, seen)))
    return (int(largest), int(np.diff(indptr).max()), int(cost.max())), ints, floats


def _by_frequency(graph: Graph) -> AnyArray:
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
