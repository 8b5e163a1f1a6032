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
    for two classes (then `y` is 0 or 1), else one for each class.
    """
    n_rows, n_outputs = len(y), len(start)
    raw = [[float(s) for s in start] for _ in range(n_rows)]
    terms = []  # per tree: gradients and hessians
    for first in range(0, np.shape(leaves)[1], n_outputs):
        of_round = []
        for k in range(n_outputs):
            g, h = [], []
            for z in range(n_rows):
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


def margin_of(margins: Callable, y_test, everyone: tuple[int, ...]) -> Callable:
    """`v(coalition, t)`: the margin over the rival in the full model."""

    def v(coalition: tuple[int, ...], t: int) -> float:
        here, full = margins(coalition, t), margins(everyone, t)
        if len(here) == 1:
            return here[0] if y_test[t] == 1 else -here[0]
        rival = max((k for k in range(len(full)) if k != y_test[t]), key=lambda k: full[k])
        return here[y_test[t]] - here[rival]

    return v


def squared_error_of(leaves, of_tests, y, y_test, rate: float, ridge: float) -> Callable:
    """`v(coalition, t)`: by how much the mean and each tree lower the error that the full model leaves before it."""
    n_rows, n_trees = np.shape(leaves)
    everyone, mean = range(n_rows), float(np.mean(y))
    residual = [float(y[z]) - mean for z in everyone]
    left = [float(a) - mean for a in y_test]
    steps = [(1.0, 0.0, [0] * n_rows, [0] * len(y_test), list(residual), list(left))]  # the mean: one leaf
    for tree in range(n_trees):
        at, reached = [row[tree] for row in leaves], [row[tree] for row in of_tests]
        steps.append((rate, ridge, at, reached, list(residual), list(left)))
        taken = {
            leaf: rate * newton(residual, [1.0] * n_rows, ridge, [z for z in everyone if at[z] == leaf])
            for leaf in set(at)
        }
        residual = [residual[z] - taken[at[z]] for z in everyone]
        left = [left[t] - taken[reached[t]] for t in range(len(left))]

    def v(coalition: tuple[int, ...], t: int) -> float:
        total = -((y_test[t] - mean) ** 2)
        for step, penalty, at, reached, gradients, error in steps:
            inside = [z for z in coalition if at[z] == reached[t]]
            predicted = step * newton(gradients, [1.0] * n_rows, penalty, inside)
            total += error[t] ** 2 - (error[t] - predicted) ** 2
        return total

    return v
