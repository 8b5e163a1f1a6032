"""In-Run Data Shapley for the nodes of a graph, with a graph convolution network of two layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from torch import Tensor

from localshapley.arrays import Ints
from localshapley.comparators.in_run import Params, log_losses, value_run
from localshapley.runtime.argument_checks import check_whole
from localshapley.runtime.process_settings import caught_warnings
from localshapley.runtime.progress import ProgressSetting
from localshapley.torch.graph_data import read_graph
from localshapley.torch.placement import find_device
from localshapley.valuation import Digests, Players, Valuation
from localshapley.valuation.provenance import recorded


@recorded
def in_run_nodes(
    adjacency: Any,
    X: Any,
    y: Any,
    train: Any,
    test: Any,
    *,
    hidden: int = 16,
    order: int = 1,
    epochs: int = 200,
    batch_size: int = 64,
    lr: float = 0.01,
    seed: int = 0,
    device: str = "auto",
    progress: ProgressSetting = None,
) -> Valuation:
    """Values of training nodes along one run of gradient descent on a graph convolution network of two layers.

    A node's loss is that of its own label; the whole graph, with the features of all nodes, is used throughout.

    Parameters
    ----------
    adjacency, X, y, train, test
        As in `value_nodes`, in the same forms. Directions and weights of edges are ignored, self-loops and repeated
        edges are merged; features are used as they are.
    hidden : int, default=16
        Units of the hidden layer.
    order, epochs, batch_size, lr, progress
        As in `in_run_values`.
    seed : int, default=0
        Seed of the initial weights and of the batches.
    device : str, default="auto"
        As in `in_run_shapley`.

    Returns
    -------
    Valuation
        With the values in the order of `train`, in units of log loss summed over the test nodes, and the nodes' numbers
        as `ids`.
    """
    check_whole("hidden", hidden)
    data = read_graph(adjacency, X, y, train, test)
    _, notes = data.task(score="log_loss")
    edges, features, labels, train, test, _ = data
    where = find_device(device)
    spread = _normalised(edges)
    mixed = SparseProduct.of(spread @ features, where)  # the first convolution needs no weights
    mix = SparseProduct.of(spread, where)
    both = np.concatenate([train, test])
    codes, classes = pd.factorize(labels[both], sort=True)
    truth = torch.zeros(len(labels), dtype=torch.int64, device=where)
    truth[both] = torch.as_tensor(codes, device=where)

    def losses(p: Params, nodes: Ints) -> Tensor:
        units = torch.relu(mixed @ p["first"] + p["first_bias"])
        outputs = mix @ (units @ p["second"]) + p["second_bias"]
        return log_losses(outputs[nodes], truth[nodes])

    digests = Digests.of(features[train], labels[train])
    return value_run(
        "in_run_nodes",
        _first_weights(features.shape[1], hidden, len(classes), seed, where),
        lambda p, batch: losses(p, train[batch]),
        lambda p: losses(p, test).sum(),
        (len(train), len(test)),
        f"graph convolution network of two layers, {hidden} units",
        Players(pd.Index(train, name="node"), "node", digests=digests),
        order=order,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        seed=seed,
        progress=progress,
        notes=notes,
    )


def _normalised(edges: sparse.csr_array) -> sparse.csr_array:
    """The matrix that a graph convolution multiplies by: `D^(−1/2) (A + I) D^(−1/2)` with the degrees D of `A + I`."""
    looped = edges + sparse.eye_array(edges.shape[0], format="csr")
    scale = sparse.diags_array(1 / np.sqrt(np.diff(looped.indptr)))
    return sparse.csr_array(scale @ looped @ scale)


class SparseProduct:
    """A fixed sparse matrix times tensors, differentiable forwards and backwards, any number of times."""

    def __init__(self, matrix: Tensor, transposed: Tensor) -> None:
        self.matrix, self.transposed = matrix, transposed

    @classmethod
    def of(cls, matrix: sparse.csr_array, device: torch.device) -> SparseProduct:
        """Put a SciPy matrix on a device."""
        return cls(_as_tensor(matrix, device), _as_tensor(matrix.T, device))

    def __matmul__(self, dense: Tensor) -> Tensor:
        product: Tensor = _Product.apply(self, dense)  # type: ignore[no-untyped-call]
        return product

    @property
    def T(self) -> SparseProduct:  # noqa: N802 - as arrays have it
        """The transpose."""
        return SparseProduct(self.transposed, self.matrix)


class _Product(torch.autograd.Function):
    """Torch cannot differentiate products with a sparse matrix forwards, though they are linear."""

    @staticmethod
    def forward(left: SparseProduct, right: Tensor) -> Tensor:
        return left.matrix @ right

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.left = inputs[0]

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[None, Tensor]:
        return None, ctx.left.T @ slope

    @staticmethod
    def jvp(ctx: Any, _: None, change: Tensor) -> Tensor:
        product: Tensor = ctx.left @ change
        return product


def _as_tensor(matrix: sparse.csr_array, device: torch.device) -> Tensor:
    matrix = sparse.csr_array(matrix, dtype=np.float32)
    starts, columns, entries = (torch.as_tensor(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    with caught_warnings():  # torch warns that sparse matrices are in beta
        return torch.sparse_csr_tensor(starts, columns, entries, matrix.shape, device=device)


def _first_weights(n_features: int, hidden: int, n_classes: int, seed: int, device: torch.device) -> Params:
    """Glorot's random weights, and biases of zero."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(n_in: int, n_out: int) -> Tensor:
        bound = float(np.sqrt(6 / (n_in + n_out)))
        return torch.empty(n_in, n_out).uniform_(-bound, bound, generator=generator).to(device)

    return {
        "first": drawn(n_features, hidden),
        "first_bias": torch.zeros(hidden, device=device),
        "second": drawn(hidden, n_classes),
        "second_bias": torch.zeros(n_classes, device=device),
    }
