"""A slow, obvious twin of boosted trees whose structure is fixed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np


def newton(g, h, ridge: float, rows) -> float:
    """What a leaf predicts from some of its rows."""
    return sum(g[z] for z in rows) / (ridge + sum(h[z] for z in rows)) if rows else 0.0


def boosted_margins(leaves, of_tests, y, start, rate, ridge=0.0, scales=(1.0, 1.0)) -> Callable:
    """`F(coalition, t)`: decision values of a test row, with gradients at what all rows taught the trees before.

    `leaves` and `of_tests` are numbers of leaves, of the rows and of the test rows in each tree; `start` is one number
    for two classes (then `y` is 0 or 1) or for amounts (then `y` has fractions), else one for each class.
    """
    n_rows, n_outputs = len(y), len(start)
    amounts = np.asarray(y).dtype.kind == "f"
    raw = [[float(s) for s in start] for _ in range(n_rows)]
    terms = []  # per tree: gradients and hessians
    for first in range(0, np.shape(leaves)[1], n_outputs):
        of_round = []
        for k in range(n_outputs):
            g, h = [], []
            for z in range(n_rows):
                if amounts:
                    g.append(y[z] - raw[z][0])
                    h.append(1.0)
                    continue
                if n_outputs == 1:
                    p, hit = 1 / (1 + np.exp(-raw[z][0])), y[z] == 1
                else:
                    p, hit = np.exp(raw[z][k]) / sum(np.exp(raw[z])), y[z] == k
                g.append(scales[0] * (hit - p))
                h.append(scales[1] * p * (1 - p))
            of_round.append((g, h))
        terms += of_round
        for k, (g, h) in enumerate(of_round):
            for z in range(n_rows):
                mates = [i for i in range(n_rows) if leaves[i][first + k] == leaves[z][first + k]]
                raw[z][k] += rate * newton(g, h, ridge, mates)

    @cache
    def margins(coalition: tuple[int, ...], t: int) -> tuple[float, ...]:
        out = [float(s) for s in start]
        for tree, (g, h) in enumerate(terms):
            inside = [z for z in coalition if leaves[z][tree] == of_tests[t][tree]]
            out[tree % n_outputs] += rate * newton(g, h, ridge, inside)
        return tuple(out)

    return margins


def score_of(margins: Callable, y, y_test, everyone: tuple[int, ...]) -> Callable:
    """`v(coalition, t)`: the margin over the rival in the full model, or the squared error along its secant."""
    amounts = np.asarray(y).dtype.kind == "f"

    def v(coalition: tuple[int, ...], t: int) -> float:
        here, none, full = (margins(rows, t) for rows in (coalition, (), everyone))
        if amounts:
            slope = 2 * y_test[t] - none[0] - full[0]
            return -((y_test[t] - none[0]) ** 2) + slope * (here[0] - none[0])
        if len(here) == 1:
            return here[0] if y_test[t] == 1 else -here[0]
        rival = max((k for k in range(len(full)) if k != y_test[t]), key=lambda k: full[k])
        return here[y_test[t]] - here[rival]

    return v
