"""A slow, obvious twin of trees whose structure is fixed: leaves are refilled with the rows of a coalition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from naive import shapley_of_one


def bags_of(forest, n_rows: int) -> list[set[int]]:
    """The rows in the bag of each tree, each once."""
    if not getattr(forest, "bootstrap", False):
        return [set(range(n_rows))] * len(trees_of(forest))
    return [{int(z) for z in drawn} for drawn in forest.estimators_samples_]


def trees_of(forest) -> list:
    return list(getattr(forest, "estimators_", [forest]))


def refilled(forest, X, y, tests, judges: Sequence[Sequence[int]] | None = None, nothing=None, middle=None) -> Callable:
    """The score `v(coalition, t)` of a fitted forest, tree by tree: confidence of texts or whole numbers, squared error
    of fractions.

    `tests` are a table and its labels, `judges` the trees that each test row is judged by (all, if not given), and
    `nothing` is the score where a leaf is empty; by default an empty leaf predicts the mean of `y`, or for each test
    row what `middle` says.
    """
    X_test, y_test = tests
    trees, bags = trees_of(forest), bags_of(forest, len(y))
    at = [tree.apply(np.asarray(X, np.float32)) for tree in trees]
    reached = [tree.apply(np.asarray(X_test, np.float32)) for tree in trees]
    amounts, labels = np.asarray(y).dtype.kind == "f", sorted(set(np.asarray(y).tolist()))

    def in_leaf(rows: list[int], t: int) -> float:
        if not rows and nothing is not None:
            return nothing
        if amounts:
            predicted = np.mean([y[z] for z in rows]) if rows else (np.mean(y) if middle is None else middle[t])
            return -float((y_test[t] - predicted) ** 2)
        if not rows:
            return 1 / len(labels) if y_test[t] in labels else 0.0
        return sum(y[z] == y_test[t] for z in rows) / len(rows)

    @cache
    def v(coalition: tuple[int, ...], t: int) -> float:
        judging = range(len(trees)) if judges is None else judges[t]
        each = [in_leaf([z for z in coalition if z in bags[b] and at[b][z] == reached[b][t]], t) for b in judging]
        return float(np.mean(each))

    return v


def fixed_values(v: Callable, players: Sequence[int], n_tests: int) -> np.ndarray:
    """Values of all players to each test row, by the definition."""
    out = np.zeros((n_tests, len(players)))
    for t in range(n_tests):
        found = shapley_of_one(players, lambda s, t=t: v(s, t))
        out[t] = [found[z] for z in players]
    return out
