"""Neighbours within a radius: predictions of coalitions, and exact values of all coalitions in closed form.

A coalition predicts with its rows within the radius of a test row, as if these were a leaf of a tree that it refills.
So the values are those of a leaf, and rows beyond the radius are worth nothing.
"""

from __future__ import annotations

import numpy as np

from localshapley.arrays import CoalitionArrays, Floats, Indices, Ints, Lists, longest
from localshapley.kernels.jit import kernel
from localshapley.kernels.leaf_games import LeafLabels, clear, sum_up, value_of
from localshapley.kernels.neighbours import TINY


@kernel(error_model="numpy")
def predict_within(
    coalitions: CoalitionArrays,
    todo: Ints,
    row_of_test: Ints,
    distances: Floats,
    targets: Floats,
    radius: float,
    by_distance: bool,
    n_classes: int,
    out: Floats,
) -> None:
    """Predict the test rows of coalitions: shares of the votes of each class, or (`n_classes` 0) a mean.

    NaN where no row is within the radius.
    """
    indptr, players, test_indptr, tests = coalitions
    for c in todo:
        for s in range(test_indptr[c], test_indptr[c + 1]):
            row = row_of_test[tests[s]]
            silenced = False
            for i in range(indptr[c], indptr[c + 1]):
                silenced |= by_distance and distances[row, players[i]] < TINY
            total = 0.0
            for k in range(out.shape[1]):
                out[s, k] = 0.0
            for i in range(indptr[c], indptr[c + 1]):
                d, target = distances[row, players[i]], targets[players[i]]
                if d > radius:
                    continue
                weight = 1.0
                if silenced:
                    weight = 1.0 if d < TINY else 0.0
                elif by_distance:
                    weight = 1 / d
                out[s, int(target) if n_classes else 0] += weight if n_classes else weight * target
                total += weight
            for k in range(out.shape[1]):
                out[s, k] /= total


def radius_values(
    supports: Lists,
    tests: Indices,
    distances: Floats,
    radius: float,
    labels: LeafLabels,
    harmonic: Floats,
    n_classes: int,
    out: Floats,
) -> None:
    """Exact values of the players of each test row's support; `distances` and `out` have an entry for each player."""
    inside = np.empty(longest(supports[0], tests.astype(np.int64)), dtype=np.int32)
    room = inside, np.zeros(n_classes)
    add_radius_values(supports, tests, distances, radius, labels, harmonic, room, out)


@kernel(error_model="numpy")
def add_radius_values(
    supports: Lists,
    tests: Indices,
    distances: Floats,
    radius: float,
    labels: LeafLabels,
    harmonic: Floats,
    room: tuple[Indices, Floats],
    out: Floats,
) -> None:
    """Write the values: those of the leaf of each test row."""
    indptr, players = supports
    inside, by_class = room
    for at in range(len(tests)):
        t = tests[at]
        n = 0
        for i in range(indptr[t], indptr[t + 1]):
            if distances[i] <= radius:
                inside[n] = players[i]
                n += 1
        own = tests[at : at + 1]
        sums = sum_up(inside[:n], own, labels, by_class)
        for i in range(indptr[t], indptr[t + 1]):
            near = distances[i] <= radius
            out[i] = value_of(players[i], n, sums, labels, harmonic, by_class) if near else 0.0
        clear(own, labels, by_class)
