"""Linear support vector machines with the squared hinge loss, of many small coalitions: one class against the others.

The loss is quadratic as long as the same rows are within the margin. Newton's method solves for these rows, by rows or
by features, whichever are fewer, and a step is halved until the loss falls by enough. The intercept is the coefficient
of one more feature, which is the same for all rows, and is penalised like the others, as in liblinear.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import CoalitionArrays, Floats, Ints, longest
from localshapley.kernels.decisions import ClassWeights, weight_of_class, write
from localshapley.kernels.jit import kernel
from localshapley.kernels.matrices import ARITHMETIC, ROOM, compiled, dot, own_products, pasted, solve, transpose
from localshapley.kernels.ridge_logistic import combine_rows, encode

MAX_STEPS = 200
PRECISION = 1e-14
"""What a step promises to save, beside the loss, at which training ends: no more than rounding errors."""

Tables: TypeAlias = tuple[Floats, Floats]
"""Training and test rows, with a column for the intercept."""
Room: TypeAlias = tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats, Ints, Ints]
"""Rows within the margin, scaled, and as columns; products and a factor; coefficients of each class, and decision
values; seven lines of numbers, four of places, and three of classes."""


def train_squared_hinge(
    coalitions: CoalitionArrays,
    todo: Ints,
    tables: Tables,
    codes: Ints,
    weights: ClassWeights,
    C: float,
    form: int,
    out: Floats,
) -> None:
    """Train the coalitions `todo`; what they say of the classes of their test rows goes to `out`."""
    n_classes, p = out.shape[1], tables[0].shape[1]
    size = longest(coalitions[0], todo) + ROOM
    few, most = min(size, p + ROOM), max(size, p)
    room = (
        np.zeros((size, p)),
        np.zeros((p + ROOM if size > p else 0, size)),
        np.zeros((few, few)),
        np.zeros((few, few)),
        np.zeros((n_classes, p)),
        np.zeros(n_classes),
        np.zeros((7, most)),
        np.zeros((4, most), dtype=np.int64),
        np.zeros((3, n_classes), dtype=np.int64),
    )
    fit_squared_hinge(coalitions, todo, tables, codes, weights, C, form, room, out)


@kernel(error_model="numpy", fastmath=ARITHMETIC)
def fit_squared_hinge(
    coalitions: CoalitionArrays,
    todo: Ints,
    tables: Tables,
    codes: Ints,
    weights: ClassWeights,
    C: float,
    form: int,
    room: Room,
    out: Floats,
) -> None:
    """Train and predict, coalition by coalition; two classes have one machine."""
    indptr, players, test_indptr, tests = coalitions
    X, X_test = tables
    _, _, _, _, coefficients, decision, lines, places, classes = room
    sign, cost = lines[0], lines[1]
    y = places[3]
    present, place, count = classes
    p = X.shape[1]
    for c in todo:
        members = players[indptr[c] : indptr[c + 1]]
        k = len(members)
        m = encode(members, codes, place, present, y)
        for j in range(m):
            count[j] = 0
        for i in range(k):
            count[y[i]] += 1
        for j in range(1 if m == 2 else 0, m):
            for i in range(k):
                sign[i] = 1.0 if y[i] == j else -1.0
                cost[i] = C
                if y[i] == j or m == 2:  # of more classes, liblinear weighs the one alone, and not the others
                    cost[i] *= weight_of_class(weights, present[y[i]], count[y[i]], k, m)
            minimise(members, X, room, coefficients[j])
        for s in range(test_indptr[c], test_indptr[c + 1]):
            for j in range(m):
                decision[j] = dot(coefficients[j], X_test[tests[s]], p)
            if m == 2:
                decision[0], decision[1] = -decision[1] / 2, decision[1] / 2
            write(decision, present, m, form, s, out)


@pasted
def minimise(members: Any, X: Floats, room: Room, w: Floats) -> None:
    """Find the coefficients of one machine, from zero on; signs and costs of the rows are in the first two lines."""
    lines = room[6]
    sign, cost, scores, gain, step = lines[0], lines[1], lines[2], lines[3], lines[4]
    k, p = len(members), X.shape[1]
    for a in range(p):
        w[a] = 0.0
    for i in range(k):
        scores[i] = 0.0
    for _ in range(MAX_STEPS):
        solve_within(members, X, room, step)
        promise = 0.0
        for a in range(p):
            step[a] -= w[a]
            promise -= step[a] * w[a]
        for i in range(k):
            gain[i] = dot(X[members[i]], step, p)
            slack = 1 - sign[i] * scores[i]
            if slack > 0:
                promise += 2 * cost[i] * slack * sign[i] * gain[i]
        before, length = loss_at(w, step, 0.0, p, k, lines), 1.0
        while length > 1e-6 and loss_at(w, step, length, p, k, lines) > before - 1e-4 * length * promise:
            length /= 2
        for a in range(p):
            w[a] += length * step[a]
        n_moved = 0
        for i in range(k):
            old, scores[i] = scores[i], dot(X[members[i]], w, p)
            n_moved += (sign[i] * old < 1) != (sign[i] * scores[i] < 1)
        if promise <= PRECISION * before or (length == 1 and n_moved == 0):
            break


@compiled
def loss_at(w: Floats, step: Floats, length: float, p: int, k: int, lines: Floats) -> Any:
    """The loss after a part of a step."""
    sign, cost, scores, gain = lines[0], lines[1], lines[2], lines[3]
    total = 0.0
    for a in range(p):
        total += (w[a] + length * step[a]) * (w[a] + length * step[a]) / 2
    for i in range(k):
        slack = 1 - sign[i] * (scores[i] + length * gain[i])
        if slack > 0:
            total += cost[i] * slack * slack
    return total


@pasted
def solve_within(members: Any, X: Floats, room: Room, out: Floats) -> None:
    """Coefficients that are best as long as the rows within the margin stay the same: ridge regression of these."""
    rows, columns, products, factor, _, _, lines, places, _ = room
    sign, cost, scores, right, answer = lines[0], lines[1], lines[2], lines[5], lines[6]
    zero, width, start = places[0], places[1], places[2]
    p, n_within = X.shape[1], 0
    for i in range(len(members)):
        if sign[i] * scores[i] < 1:
            root = math.sqrt(2 * cost[i])
            right[n_within] = root * sign[i]
            for a in range(p):
                rows[n_within, a] = root * X[members[i], a]
            n_within += 1
    by_rows = n_within <= p
    n = n_within if by_rows else p
    if by_rows:
        own_products(rows, n, zero, p, products)
    else:
        transpose(rows, n_within, p, columns)
        own_products(columns, p, zero, n_within, products)
        for a in range(p):
            answer[a] = dot(columns[a], right, n_within)
        for a in range(p):
            right[a] = answer[a]
    for i in range(n):
        products[i, i] += 1.0
    solve(products, n, right, factor, width, start, answer)
    if by_rows:
        combine_rows(answer, rows, n, p, out)
    else:
        for a in range(p):
            out[a] = answer[a]
