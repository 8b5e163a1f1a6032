"""A two-layer graph network trained the plain way: one coalition, all its graph, all columns, autograd."""

from __future__ import annotations

import numpy as np
import torch


def propagation(kind, adjacency):
    """What multiplies each block of weights in a layer, from a dense symmetric 0/1 matrix without loops."""
    itself, degree = np.eye(len(adjacency)), adjacency.sum(axis=1)
    if kind == "GCN":  # D^-½ (A + I) D^-½
        root = 1 / np.sqrt(degree + 1)
        found = [root[:, None] * (adjacency + itself) * root[None, :]]
    elif kind == "GIN":  # x + the sum of the neighbours
        found = [adjacency + itself]
    else:  # GraphSAGE: x, and the mean of the neighbours
        mean = np.zeros_like(itself)
        for i in np.flatnonzero(degree):
            mean[i] = adjacency[i] / degree[i]
        found = [itself, mean]
    return [torch.tensor(p, dtype=torch.float32) for p in found]


def logits(adjacency, X, codes, coalition, test, *, kind="GCN", n_classes, graph, weights, epochs, lr, weight_decay):
    """Logits of the test nodes after training on the coalition.

    `adjacency` and `X` are dense and of all nodes, `codes` the class of each node, `weights` the initial ones, with
    blocks of a layer below each other.
    """
    seen = np.arange(len(X)) if graph == "full" else np.union1d(coalition, test)
    here = {node: i for i, node in enumerate(seen)}
    spread = propagation(kind, adjacency[np.ix_(seen, seen)])
    features = torch.tensor(X[seen], dtype=torch.float32)
    rows = [here[node] for node in coalition]
    target = torch.tensor(codes[coalition])
    first, second = ([w.clone().requires_grad_() for w in layer.chunk(len(spread))] for layer in weights)
    bias, last_bias = torch.zeros(first[0].shape[1]).requires_grad_(), torch.zeros(n_classes).requires_grad_()
    adam = torch.optim.Adam([*first, bias, *second, last_bias], lr=lr, weight_decay=weight_decay)

    def layer(inputs, blocks):
        return sum(p @ (inputs @ w) for p, w in zip(spread, blocks, strict=True))

    def forward():
        return layer(torch.relu(layer(features, first) + bias), second) + last_bias

    for _ in range(epochs):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(forward()[rows], target).backward()
        adam.step()
    with torch.no_grad():
        return forward()[[here[node] for node in test]].numpy()
