"""Coalitions whose model is known without training it."""

from __future__ import annotations

from localshapley.arrays import Floats, Indices, Ints
from localshapley.kernels.jit import kernel


@kernel()
def find_outcomes(indptr: Ints, players: Indices, codes: Ints, classifies: bool, out: Ints) -> None:
    """Write for each coalition −1 if it is empty, the class if it has one class only, else −2."""
    for c in range(len(out)):
        start, stop = indptr[c], indptr[c + 1]
        out[c] = -2
        if start == stop:
            out[c] = -1
        elif classifies:
            code = codes[players[start]]
            i = start + 1
            while i < stop and codes[players[i]] == code:
                i += 1
            if i == stop:
                out[c] = code


@kernel()
def fill_outcomes(test_indptr: Ints, outcome: Ints, prediction: Floats) -> None:
    """Write the predictions of coalitions with a known outcome: certainty, or every class equally likely."""
    n_classes = prediction.shape[1]
    for c in range(len(outcome)):
        if outcome[c] == -2:
            continue
        nothing = outcome[c] == -1
        for i in range(test_indptr[c], test_indptr[c + 1]):
            for code in range(n_classes):
                prediction[i, code] = 1 / n_classes if nothing else 0.0
            if not nothing:
                prediction[i, outcome[c]] = 1.0
