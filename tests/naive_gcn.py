"""A two-layer graph network trained the plain way: one coalition, all its graph, all columns, autograd."""

from __future__ import annotations

import numpy as np
import torch


def propagation(adjacency):
    """`D^-½ (A + I) D^-½` of a dense symmetric 0/1 matrix."""
    closed = adjacency + np.eye(len(adjacency))
    root = 1 / np.sqrt(closed.sum(axis=1))
    return torch.tensor(root[:, None] * closed * root[None, :], dtype=torch.float32)


def logits(adjacency, X, codes, coalition, test, *, n_classes, graph, weights, epochs, lr, weight_decay):
    """Logits of the test nodes after training on the coalition.

    `adjacency` and `X` are dense and of all nodes, `codes` the class of each node, `weights` the initial ones.
    """
    seen = np.arange(len(X)) if graph == "full" else np.union1d(coalition, test)
    here = {node: i for i, node in enumerate(seen)}
    spread = propagation(adjacency[np.ix_(seen, seen)])
    features = torch.tensor(X[seen], dtype=torch.float32)
    rows = [here[node] for node in coalition]
    target = torch.tensor(codes[coalition])
    first, second = (w.clone().requires_grad_() for w in weights)
    bias, last_bias = torch.zeros(first.shape[1]).requires_grad_(), torch.zeros(n_classes).requires_grad_()
    adam = torch.optim.Adam([first, bias, second, last_bias], lr=lr, weight_decay=weight_decay)

    def forward():
        hidden = torch.relu(spread @ (features @ first) + bias)
        return spread @ (hidden @ second) + last_bias

    for _ in range(epochs):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(forward()[rows], target).backward()
        adam.step()
    with torch.no_grad():
        return forward()[[here[node] for node in test]].numpy()
