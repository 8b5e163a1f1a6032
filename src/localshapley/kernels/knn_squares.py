"""Exact values of K neighbours with equal weights under the squared error, for any K and support.

The squared error of a mean is a sum over pairs of members. Its mean over the coalitions of a class follows from the sum
and the sum of squares of the rows that are drawn from, so all classes with the farthest row at one place, or of one
size, cost as much as one. What such classes give to a row is a polynomial of degree two in the row's own error.
"""

from __future__ import annotations

import numpy as np

from localshapley.arrays import Floats, Ints, Lists, longest
from localshapley.kernels.jit import kernel, part, section
from localshapley.kernels.knn_closed_form import sort_places
from localshapley.kernels.neighbours import Labels


def squared_values(
    supports: Lists, tests: Ints, distances: Floats, labels: Labels, n_neighbors: int, nothing: Floats, out: Floats
) -> None:
    """Exact values of the players of each test row's support; see `knn_classes.class_values`."""
    largest = longest(supports[0], tests)
    room = np.empty((2, largest), dtype=np.int64), np.empty((2, largest))
    square_supports(supports, tests, distances, labels, n_neighbors, nothing, room, out)


@kernel()
def square_supports(
    supports: Lists,
    tests: Ints,
    distances: Floats,
    labels: Labels,
    n_neighbors: int,
    nothing: Floats,
    room: tuple[Ints, Floats],
    out: Floats,
) -> None:
    """Values, test row by test row."""
    indptr, players = supports
    of_rows, truths, _, _ = labels
    places, numbers = room
    order, merged = places
    errors, values = numbers
    for t in tests:
        start, n = indptr[t], indptr[t + 1] - indptr[t]
        sort_places(distances, start, n, order, merged)
        for i in range(n):
            errors[i] = of_rows[players[start + order[i]]] - truths[t]
        square_values(n, n_neighbors, nothing[t], errors, values)
        for i in range(n):
            out[start + order[i]] = values[i]


@section()
def square_values(n: int, n_neighbors: int, nothing: float, errors: Floats, values: Floats) -> None:
    """Write the values of `n` rows, nearest first, from their errors."""
    first = second = 0.0
    for i in range(n):
        first += errors[i]
        second += errors[i] * errors[i]
    constant, linear, square, none = 0.0, 0.0, 0.0, 0.0
    common = nothing / n if n else 0.0
    for size in range(1, min(n_neighbors, n + 1)):
        if size == n:
            common += first * first / (n * n) / n
            continue
        whole = mean_square(none, n, size, first, second)
        a, b, c = square_with(none, n - 1, size - 1, first, second)
        scale = 1 / (size * size * (n - size))
        constant -= (a - whole) * scale
        linear -= b * scale
        square -= c * scale
    per_score = 1 / (n_neighbors * n_neighbors)
    for last in range(n - 1, -1, -1):
        error = errors[last]
        values[last] = constant + error * (linear + error * square) - common
        if last < n_neighbors - 1:
            continue
        first -= error
        second -= error * error
        whole = mean_square(error, last, n_neighbors - 1, first, second) * per_score
        values[last] -= whole / (last + 1)
        between = last + 1 - n_neighbors
        if n_neighbors > 1:
            # A row nearer than the last one is drawn with this chance; it gains if it is, and loses if it is not.
            weight = 1 / (last + 1) + (n_neighbors / ((last + 1) * between) if between else 0.0)
            weight *= (n_neighbors - 1) / last * per_score
            a, b, c = square_with(error, last - 1, n_neighbors - 2, first, second)
            constant -= weight * a
            linear -= weight * b
            square -= weight * c
        if between:
            constant += whole * n_neighbors / ((last + 1) * between)


@part(error_model="numpy")
def mean_square(b: float, n: int, drawn: int, first: float, second: float) -> float:
    """Mean of `(b + sum)²` over draws of `drawn` of `n` numbers with this sum and this sum of squares."""
    share = drawn / n if drawn > 0 else 0.0
    pairs = share * (drawn - 1) / (n - 1) if drawn > 1 else 0.0
    return b * b + share * (2 * b * first + second) + pairs * (first * first - second)


@part(error_model="numpy")
def square_with(b: float, n: int, drawn: int, first: float, second: float) -> tuple[float, float, float]:
    """The mean of `(a + b + sum)²` over draws of `drawn` of the `n` others: its coefficients of 1, `a` and `a²`.

    The sums are those of all `n + 1` numbers, `a` included.
    """
    share = drawn / n if drawn > 0 else 0.0
    pairs = share * (drawn - 1) / (n - 1) if drawn > 1 else 0.0
    constant = b * b + share * (2 * b * first + second) + pairs * (first * first - second)
    return constant, 2 * (b + share * (first - b) - pairs * first), 1 - 3 * share + 2 * pairs
