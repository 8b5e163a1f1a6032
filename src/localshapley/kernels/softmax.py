"""Softmax regression by Newton's method, on a few coordinates of the rows.

Rows may have weights: the loss of a row counts so many times. Its coordinates, and with them its scores, are then
scaled by the root of its weight, so that the second derivatives have the form that they have without weights.

The coordinates of the unknowns are chosen so that the second derivatives at the start are the unit matrix; conjugate
gradients then need few iterations to solve for a step. Coefficients of the classes sum to zero, all along.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import Floats, Ints
from localshapley.kernels.matrices import (
    add_rows,
    balance,
    compiled,
    dot,
    dot_rows,
    four_dots,
    multiply,
    own_products,
    pasted,
    transpose,
)

MAX_STEPS = 100
MAX_ITERATIONS = 500
MANY_ITERATIONS = 24
"""Where a step took more than this, other coordinates are tried for the next one."""
PRECISION = 1e-13
"""Squared distance to the least loss, in units of the loss, times C where that is above one, at which training ends."""

Sizes: TypeAlias = tuple[int, int, int, int]
"""`k`, `q`, `m`, `first`: rows, columns and classes, and the first column whose coefficients are penalised."""
Limits: TypeAlias = tuple[Ints, Ints, Ints, Ints]
"""`zero`, `width`, `start`, `whole`: row `i` of the coordinates is zero outside `zero[i]` to `width[i]`, and column `a`
outside `start[a]` to `whole[a]`."""
Coordinates: TypeAlias = tuple[Floats, Floats, Floats, Floats, Floats, Floats]
"""`C`, its transpose `CT`, `H = CᵀC` (lower triangle); `U`, `Q` and its transpose `QT` as `whiten` makes them."""
Work: TypeAlias = tuple[Floats, Floats]
"""`by_row` (7, m, k) and `by_column` (5, m, q): room for numbers of each class and row, or column.

By row: what a step adds to the scores, the scores and slopes along a direction, lines; scores, probabilities and those
on trial. By column: the gradient, negated, a step, a direction, what the second derivatives turn it into; and the
coefficients, in the coordinates `Q`.
"""


@pasted
def minimise(
    coordinates: Coordinates,
    limits: Limits,
    sizes: Sizes,
    y: Ints,
    roots: Floats,
    penalty: float,
    work: Work,
    W: Floats,
) -> None:
    """Softmax regression of `m` classes on the coordinates `C`; `W` gets a row of coefficients for each class.

    The coordinates of a row are scaled by the root of its weight, as `roots` has them.

    A step is halved until the loss falls by enough. Training ends near the least loss, as far as rounding lets it; or
    after `MAX_STEPS`, with the least loss so far.
    """
    k, q, m, _ = sizes
    by_row, by_column = work
    gain, F, P = by_row[0], by_row[4], by_row[5]
    left, step, V, U = by_column[0], by_column[1], by_column[4], coordinates[3]
    weight = 1 / m  # with equal probabilities, the second derivative of the loss is this multiple of the unit matrix
    begin(coordinates, limits, sizes, weight, penalty, work)
    loss = dot(roots, roots, k) * math.log(m)
    enough = PRECISION * min(1.0, penalty)
    last, ratio, n = np.inf, 1.0, 0
    for _ in range(MAX_STEPS):
        now = (k - dot_rows(P, P, m, k)) / (k * (m - 1))
        if now < weight / (2 if n > MANY_ITERATIONS else 8):
            weight = now
            to_plain(U, m, q, V, W)
            whiten(coordinates, sizes, limits[1], weight, penalty)
            to_white(U, m, q, W, V)
        descend(coordinates[5], limits, sizes, y, roots, weight, work)
        squared, size = dot_rows(left, left, m, q), dot_rows(V, V, m, q)
        if ratio * squared <= enough or (squared > last / 4 and squared < 1e-22 * (k + size)):
            break
        last = squared
        goal = max(squared * min(0.01, squared), 0.05 * enough / ratio)
        promise, n = newton_step(coordinates, limits, sizes, weight, goal, work)
        ratio = promise / squared
        length, loss = search(sizes, y, roots, weight, promise, loss, work)
        add_rows(F, length, gain, m, k, F)
        add_rows(V, length, step, m, q, V)
        balance(V, m, q)
    to_plain(U, m, q, V, W)


@pasted
def begin(coordinates: Coordinates, limits: Limits, sizes: Sizes, weight: float, penalty: float, work: Work) -> None:
    """Choose coordinates, and begin where all classes are equally likely."""
    C, CT, H, _, _, _ = coordinates
    k, q, m, _ = sizes
    F, P, V = work[0][4], work[0][5], work[1][4]
    transpose(C, k, q, CT)
    own_products(CT, q, limits[2], k, H)
    whiten(coordinates, sizes, limits[1], weight, penalty)
    for j in range(m):
        for i in range(k):
            F[j, i] = 0.0
            P[j, i] = 1 / m
        for a in range(q):
            V[j, a] = 0.0


@pasted
def descend(QT: Floats, limits: Limits, sizes: Sizes, y: Ints, roots: Floats, weight: float, work: Work) -> None:
    """Write the gradient of the loss, negated, at the present coefficients."""
    _, _, start, whole = limits
    k, q, m, _ = sizes
    by_row, by_column = work
    F, P, trial, left, V = by_row[4], by_row[5], by_row[6], by_column[0], by_column[4]
    for j in range(m):
        for i in range(k):
            trial[j, i] = roots[i] * P[j, i]
    add_rows(trial, -weight, F, m, k, trial)
    for i in range(k):
        trial[y[i], i] -= roots[i]
    multiply(QT, q, start, whole, trial, m, left)
    add_rows(left, 1.0, V, m, q, left)
    for j in range(m):
        for a in range(q):
            left[j, a] = -left[j, a]


@pasted
def search(
    sizes: Sizes, y: Ints, roots: Floats, weight: float, promise: float, loss: float, work: Work
) -> tuple[float, float]:
    """Halve a step until the loss falls by enough; returns its length, and the loss there."""
    k, q, m, _ = sizes
    by_row, by_column = work
    gain, top, total, F, P, trial = by_row[0], by_row[3, 0], by_row[3, 1], by_row[4], by_row[5], by_row[6]
    step, V = by_column[1], by_column[4]
    # The penalty on coefficients v with scores f is |v|² − weight·|f|².
    mixed = dot_rows(V, step, m, q) - weight * dot_rows(F, gain, m, k)
    new = dot_rows(step, step, m, q) - weight * dot_rows(gain, gain, m, k)
    length, value = 2.0, np.inf
    while value + length * (mixed + length * new / 2) > loss - 1e-4 * length * promise + 1e-13 * (1 + loss):
        length /= 2
        add_rows(F, length, gain, m, k, trial)
        value = softmax(trial, y, roots, m, k, P, top, total)
    return length, value


@compiled
def whiten(coordinates: Coordinates, sizes: Sizes, width: Ints, weight: float, penalty: float) -> None:
    """Change coordinates so that `weight·CᵀC + penalty` becomes the unit matrix; columns before `first` go without.

    The matrix is `U Uᵀ` with an upper triangle `U`, and the rows have the new coordinates `Q = C U⁻ᵀ`, which are zero
    where those in `C` are.
    """
    C, _, H, U, Q, QT = coordinates
    k, q, _, first = sizes
    for a in range(q - 1, -1, -1):
        for c in range(0, a + 1, 4):
            s, t, u, v = four_dots(U, c, U, a, a + 1, q)
            U[c, a] = weight * H[a, c] - s
            U[c + 1, a] = weight * H[a, c + 1] - t
            U[c + 2, a] = weight * H[a, c + 2] - u
            U[c + 3, a] = weight * H[a, c + 3] - v
        root = math.sqrt(U[a, a] + (penalty if a >= first else 0.0))
        for c in range(a):
            U[c, a] /= root
        U[a, a] = root
    for i in range(0, k, 4):
        last = width[min(i + 3, k - 1)]
        for a in range(last - 1, -1, -1):
            s, t, u, v = four_dots(Q, i, U, a, a + 1, last)
            Q[i, a] = (C[i, a] - s) / U[a, a]
            Q[i + 1, a] = (C[i + 1, a] - t) / U[a, a]
            Q[i + 2, a] = (C[i + 2, a] - u) / U[a, a]
            Q[i + 3, a] = (C[i + 3, a] - v) / U[a, a]
        for t in range(i, min(i + 4, k)):
            for a in range(last):
                QT[a, t] = Q[t, a]
            for a in range(last, last + 4):
                QT[a, t] = 0.0


@compiled
def to_plain(U: Floats, m: int, q: int, V: Floats, out: Floats) -> None:
    """Coefficients in the coordinates `C` from those in `Q`: solve `Uᵀw = v` for `m` rows."""
    for j in range(m):
        for a in range(q):
            out[j, a] = V[j, a]
        for b in range(q):
            w = out[j, b] / U[b, b]
            out[j, b] = w
            for a in range(b + 1, q):
                out[j, a] -= U[b, a] * w


@compiled
def to_white(U: Floats, m: int, q: int, W: Floats, out: Floats) -> None:
    """Coefficients in the coordinates `Q` from those in `C`: `Uᵀw` for `m` rows."""
    for j in range(m):
        for a in range(q):
            out[j, a] = 0.0
        for b in range(q):
            for a in range(b, q):
                out[j, a] += U[b, a] * W[j, b]


@pasted
def newton_step(coordinates: Coordinates, limits: Limits, sizes: Sizes, weight: float, goal: float, work: Work) -> Any:
    """Solve Newton's equations by conjugate gradients, until the squared length of what is left is down to `goal`.

    `by_column[0]` has the gradient, negated. The step goes to `by_column[1]`, what it adds to the rows' scores to
    `by_row[0]`.

    Returns
    -------
    promise : float
        What the step saves, twice, if the loss is quadratic.
    iterations : int
    """
    k, q, m, _ = sizes
    by_row, by_column = work
    P, Q, QT = by_row[5], coordinates[4], coordinates[5]
    left, step, direction, turned = by_column[0], by_column[1], by_column[2], by_column[3]
    gain, scores, slope, total = by_row[0], by_row[1], by_row[2], by_row[3, 0]
    zero, width, start, whole = limits
    for j in range(m):
        for a in range(q):
            step[j, a] = 0.0
            direction[j, a] = left[j, a]
        for i in range(k):
            gain[j, i] = 0.0
    squared = dot_rows(left, left, m, q)
    promise = 0.0
    n = 0
    while n < MAX_ITERATIONS:
        n += 1
        multiply(Q, k, zero, width, direction, m, scores)
        bend(P, scores, weight, m, k, total, slope)
        multiply(QT, q, start, whole, slope, m, turned)
        add_rows(turned, 1.0, direction, m, q, turned)
        curvature = dot_rows(turned, direction, m, q)
        if not curvature > 0.0:
            break
        length = squared / curvature
        add_rows(step, length, direction, m, q, step)
        add_rows(gain, length, scores, m, k, gain)
        add_rows(left, -length, turned, m, q, left)
        balance(left, m, q)  # nothing else keeps rounding errors in the sum over classes from growing
        promise += length * squared
        before, squared = squared, dot_rows(left, left, m, q)
        if squared <= goal:
            break
        add_rows(left, squared / before, direction, m, q, direction)
        balance(direction, m, q)
    return promise, n


@compiled
def bend(P: Floats, D: Floats, weight: float, m: int, k: int, total: Floats, out: Floats) -> None:
    """Write the second derivative of the log loss along `D`, less `weight·D`."""
    for i in range(k):
        total[i] = 0.0
    for j in range(m):
        for i in range(k):
            total[i] += P[j, i] * D[j, i]
    for j in range(m):
        for i in range(k):
            out[j, i] = P[j, i] * (D[j, i] - total[i]) - weight * D[j, i]


@compiled
def softmax(F: Floats, y: Ints, roots: Floats, m: int, k: int, P: Floats, top: Floats, total: Floats) -> Any:
    """Write the probabilities of `m` classes for `k` rows, whose scores are scaled; returns the log loss."""
    for i in range(k):
        top[i] = F[0, i]
        total[i] = 0.0
    for j in range(1, m):
        for i in range(k):
            top[i] = max(top[i], F[j, i])
    for j in range(m):
        for i in range(k):
            P[j, i] = math.exp((F[j, i] - top[i]) / roots[i])
        for i in range(k):
            total[i] += P[j, i]
    loss = 0.0
    for i in range(k):
        loss += roots[i] * (roots[i] * math.log(total[i]) + top[i] - F[y[i], i])
        total[i] = 1 / total[i]
    for j in range(m):
        for i in range(k):
            P[j, i] *= total[i]
    return loss
