"""Least squares without a penalty, of many small coalitions: of all best solutions, the one of least length.

Rows or columns, whichever are fewer, are written as combinations of orthonormal vectors, and these are rotated until
the combinations are orthogonal too: a singular value decomposition. As in scikit-learn, singular values that are small
beside the largest one count as zero. Where none can be, columns need not be rotated: the combinations are triangular.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import CoalitionArrays, Floats, Ints, longest
from localshapley.kernels.jit import kernel
from localshapley.kernels.matrices import ARITHMETIC, compiled, dot, pasted, transpose
from localshapley.kernels.ridge_logistic import gather_rows

NOISE = 1e-13
"""Length, beside that of the longest vector, up to which what is left of a vector counts as a rounding error."""
ORTHOGONAL = 1e-14
"""Cosine up to which vectors count as orthogonal."""
MAX_SWEEPS = 30
SAFELY = 1000.0
"""What is left of the last column, beside the first, is an estimate of the least singular value beside the largest; it
is trusted where it is so many times as large as those that count as zero."""

Tables: TypeAlias = tuple[Floats, Floats]
"""Training and test rows."""
Room: TypeAlias = tuple[Floats, Floats, Floats, Floats, Ints]
"""Rows of a coalition, vectors, and what they are combined from; four lines of numbers, and a line of places."""


def train_least_squares(
    coalitions: CoalitionArrays, todo: Ints, tables: Tables, y: Floats, least: float, intercept: bool, out: Floats
) -> None:
    """Least squares of the coalitions `todo`; predictions for their test rows go to `out`.

    Singular values up to `least` times the largest one count as zero.
    """
    size, p = longest(coalitions[0], todo), tables[0].shape[1]
    few, many = min(size, p), max(size, p)
    vectors, parts, lines = np.empty((few, many)), np.empty((few, few)), np.empty((4, many))
    room = np.empty((size, p)), vectors, parts, lines, np.empty(few, dtype=np.int64)
    fit_least_squares(coalitions, todo, tables, y, least, intercept, room, out)


@kernel(error_model="numpy", fastmath=ARITHMETIC)
def fit_least_squares(
    coalitions: CoalitionArrays,
    todo: Ints,
    tables: Tables,
    y: Floats,
    least: float,
    intercept: bool,
    room: Room,
    out: Floats,
) -> None:
    """Train and predict, coalition by coalition."""
    indptr, players, test_indptr, tests = coalitions
    X, X_test = tables
    own, vectors, parts, lines, order = room
    right, coefficients, mean, lengths = lines
    p = X.shape[1]
    for c in todo:
        members = players[indptr[c] : indptr[c + 1]]
        k = len(members)
        gather_rows(members, X, intercept, own, mean)
        middle = 0.0
        if intercept:
            for i in range(k):
                middle += y[members[i]] / k
        for i in range(k):
            right[i] = y[members[i]] - middle
        by_rows = k <= p
        n, d = (k, p) if by_rows else (p, k)
        if by_rows:
            for i in range(k):
                for a in range(p):
                    vectors[i, a] = own[i, a]
        else:
            transpose(own, k, p, vectors)
        r = orthogonalise(vectors, n, d, order, lengths, parts)
        if not by_rows and r == p and parts[p - 1, order[p - 1]] > SAFELY * least * parts[0, order[0]]:
            substitute(parts, vectors, p, k, order, right, coefficients)
        else:
            rotate(parts, vectors, r, n, d, lengths)
            combine(parts, vectors, (r, n, d), by_rows, least, right, coefficients)
        bias = middle - dot(coefficients, mean, p)
        for s in range(test_indptr[c], test_indptr[c + 1]):
            out[s] = bias + dot(coefficients, X_test[tests[s]], p)


@pasted
def orthogonalise(V: Floats, n: int, d: int, order: Ints, squares: Floats, R: Floats) -> Any:
    """Write `n` vectors of length `d` as combinations of orthonormal ones, which take their place; the longest first.

    Vector `i` is the sum of `R[a, i]` times vector `a`. Returns the number of orthonormal vectors.
    """
    most = 0.0
    for i in range(n):
        order[i] = i
        squares[i] = dot(V[i], V[i], d)
        most = max(most, squares[i])
    r = 0
    while r < n:
        longest = r
        for i in range(r + 1, n):
            if squares[i] > squares[longest]:
                longest = i
        if squares[longest] <= NOISE * NOISE * most:
            break
        order[r], order[longest] = order[longest], order[r]
        squares[longest] = squares[r]
        for l in range(d):
            V[r, l], V[longest, l] = V[longest, l], V[r, l]
        for i in range(n):
            R[r, i] = 0.0
        for b in range(r):  # once more: what rounding left along the others
            R[b, order[r]] += take_off(V[b], V[r], d)
        length = math.sqrt(dot(V[r], V[r], d))
        R[r, order[r]] = length
        for l in range(d):
            V[r, l] /= length
        for i in range(r + 1, n):
            R[r, order[i]] = take_off(V[r], V[i], d)
            squares[i] = dot(V[i], V[i], d)
        r += 1
    return r


@pasted
def substitute(R: Floats, V: Floats, p: int, k: int, order: Ints, right: Floats, out: Floats) -> None:
    """Write the coefficients of `p` independent columns `Rᵀ V`, the last one in order first."""
    for b in range(p - 1, -1, -1):
        rest = dot(V[b], right, k)
        for a in range(b + 1, p):
            rest -= R[b, order[a]] * out[order[a]]
        out[order[b]] = rest / R[b, order[b]]


@compiled
def take_off(unit: Floats, vector: Floats, d: int) -> Any:
    """Take off what a vector has along a unit vector; returns how much that is."""
    along = dot(unit, vector, d)
    for l in range(d):
        vector[l] -= along * unit[l]
    return along


@pasted
def rotate(R: Floats, V: Floats, r: int, n: int, d: int, squares: Floats) -> None:
    """Rotate pairs of rows of `R` (length `n`), until all are orthogonal, and rows of `V` (length `d`) with them."""
    for _ in range(MAX_SWEEPS):
        is_done = True
        for a in range(r):
            squares[a] = dot(R[a], R[a], n)
        for a in range(r - 1):
            for b in range(a + 1, r):
                both = dot(R[a], R[b], n)
                if both * both > ORTHOGONAL * ORTHOGONAL * squares[a] * squares[b]:
                    is_done = False
                    slope = (squares[b] - squares[a]) / (2 * both)
                    tangent = math.copysign(1 / (abs(slope) + math.sqrt(1 + slope * slope)), slope)
                    cosine = 1 / math.sqrt(1 + tangent * tangent)
                    turn(R[a], R[b], cosine, cosine * tangent, n)
                    turn(V[a], V[b], cosine, cosine * tangent, d)
                    squares[a], squares[b] = dot(R[a], R[a], n), dot(R[b], R[b], n)
        if is_done:
            break


@compiled
def turn(a: Floats, b: Floats, cosine: float, sine: float, n: int) -> None:
    """Rotate two vectors in the plane that they span."""
    for i in range(n):
        x = a[i]
        a[i] = cosine * x - sine * b[i]
        b[i] = sine * x + cosine * b[i]


@pasted
def combine(
    R: Floats, V: Floats, sizes: tuple[int, int, int], by_rows: bool, least: float, right: Floats, out: Floats
) -> None:
    """Write the coefficients: with rows `Rᵀ V`, or columns, for each of the singular vectors its share of `right`."""
    r, n, d = sizes
    most = 0.0
    for a in range(r):
        most = max(most, dot(R[a], R[a], n))
    for l in range(d if by_rows else n):
        out[l] = 0.0
    for a in range(r):
        square = dot(R[a], R[a], n)
        if square <= least * least * most:
            continue
        if by_rows:
            share = dot(R[a], right, n) / square
            for l in range(d):
                out[l] += share * V[a, l]
        else:
            share = dot(V[a], right, d) / square
            for l in range(n):
                out[l] += share * R[a, l]
