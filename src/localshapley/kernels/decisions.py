"""What classifiers write for a test row: votes, margins or probabilities of the classes, whichever the score reads."""

from __future__ import annotations

import math
from typing import TypeAlias

from localshapley.arrays import Floats, Ints
from localshapley.kernels.jit import part

LABEL, MARGIN, PROBABILITY = range(3)

ClassWeights: TypeAlias = tuple[bool, Floats]
"""`balanced`, `given`: whether classes weigh by how rare they are in a coalition; else the weight of each class."""


def form_of(source: str) -> int:
    """The form that a score reads."""
    return {"label": LABEL, "margin": MARGIN}.get(source, PROBABILITY)


@part(inlined=False, error_model="numpy")
def write(decision: Floats, present: Ints, n_present: int, form: int, t: int, out: Floats) -> None:
    """Write a prediction: a class that the coalition lacks has less than all, the least decision value, probability 0.

    Where a label is read, the decision values themselves do not matter, only which is largest.
    """
    largest = least = decision[0]
    for a in range(n_present):
        largest = max(largest, decision[a])
        least = min(least, decision[a])
    for code in range(out.shape[1]):
        out[t, code] = least if form == MARGIN else 0.0
    total = 0.0
    for a in range(n_present):
        value = decision[a]
        if form == PROBABILITY:
            value = math.exp(value - largest)
        elif form == LABEL:
            value += 1 - least
        out[t, present[a]] = value
        total += value
    if form == PROBABILITY:
        for a in range(n_present):
            out[t, present[a]] /= total


@part(inlined=False, error_model="numpy")
def take_roots(k: int, m: int, y: Ints, present: Ints, count: Ints, weights: ClassWeights, roots: Floats) -> None:
    """Write the root of the weight of each of `k` rows, of `m` classes `y`; `present` are the numbers of these."""
    for j in range(m):
        count[j] = 0
    for i in range(k):
        count[y[i]] += 1
    for i in range(k):
        roots[i] = math.sqrt(weight_of_class(weights, present[y[i]], count[y[i]], k, m))


@part()
def weight_of_class(weights: ClassWeights, code: int, count: float, n_rows: float, n_classes: int) -> float:
    """Weight of a class with `count` of the rows of a coalition, which has so many classes."""
    balanced, given = weights
    return n_rows / (n_classes * count) if balanced else given[code]
