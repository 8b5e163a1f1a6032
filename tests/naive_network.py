"""Networks trained as anyone would in PyTorch: one at a time, in a plain loop."""

from __future__ import annotations

import copy

import numpy as np
import torch


def train(module, X, targets, *, epochs, lr, batch, seed, optimizer=torch.optim.Adam, shuffle=True, loss=None, **more):
    """A copy of the module with weights drawn from the seed, trained on rows; `targets` are codes, or numbers."""
    module = copy.deepcopy(module)
    torch.manual_seed(seed)
    for layer in module.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    dtype = next(module.parameters()).dtype
    rows, targets = torch.tensor(X, dtype=dtype), torch.as_tensor(targets)
    loss = loss or torch.nn.functional.cross_entropy
    steps = optimizer(module.parameters(), lr=lr, **more)
    for epoch in range(epochs):
        keys = np.random.default_rng([seed, epoch]).random(len(rows))
        order = np.argsort(keys) if shuffle else np.arange(len(rows))
        for start in range(0, len(rows), batch):
            chosen = order[start : start + batch].copy()
            steps.zero_grad()
            loss(module(rows[chosen]), targets[chosen]).backward()
            steps.step()
    return module


@torch.no_grad()
def outputs(module, X):
    """What a trained module gives for rows."""
    dtype = next(module.parameters()).dtype
    return module.eval()(torch.tensor(X, dtype=dtype)).double().numpy()
