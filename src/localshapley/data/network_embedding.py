"""Embeds rows with a network that is already trained."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from localshapley.arrays import Floats

ENCODED_AT_ONCE = 256
"""Number of rows that an encoder takes at a time."""


def encode(module: Any, X: Any) -> Floats:
    """Embed rows with a torch module: in evaluation mode, some at a time, on the module's device.

    Parameters
    ----------
    module : torch.nn.Module
    X : array, DataFrame or SciPy sparse matrix
        Rows in the form that the module takes; they become numbers of the type that it computes with.

    Returns
    -------
    array of shape (n_rows, n_units)
    """
    import torch

    rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
    like = next((p for p in module.parameters() if p.is_floating_point()), torch.empty(0))
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            parts = [
                module(torch.tensor(rows[start : start + ENCODED_AT_ONCE], dtype=like.dtype, device=like.device))
                for start in range(0, len(rows), ENCODED_AT_ONCE)
            ]
    finally:
        module.train(was_training)
    embedded: Floats = torch.cat(parts).reshape(len(rows), -1).cpu().double().numpy()
    return embedded
