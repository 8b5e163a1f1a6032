"""Lasso and elastic net of many small coalitions, by scikit-learn's coordinate descent.

Coefficients change one after the other, always in the same order, until the duality gap is down to the tolerance;
those that the gap proves to be zero are left out. The steps are those of scikit-learn, so that solutions are the same
short of the optimum too.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import CoalitionArrays, Floats, Ints, longest
from localshapley.kernels.jit import kernel
from localshapley.kernels.matrices import ARITHMETIC, compiled, dot, pasted, transpose
from localshapley.kernels.ridge_logistic import gather_rows

Tables: TypeAlias = tuple[Floats, Floats]
"""Training and test rows."""
Penalty: TypeAlias = tuple[float, float, float, int]
"""Penalties per row on absolute values and on squares; tolerance, and most rounds of the descent."""
Room: TypeAlias = tuple[Floats, Floats, Floats, Floats, Ints]
"""Rows of a coalition, its columns; two lines by row, four by column, and the columns in use."""


def train_lasso(
    coalitions: CoalitionArrays, todo: Ints, tables: Tables, y: Floats, penalty: Penalty, intercept: bool, out: Floats
) -> None:
    """Train the coalitions `todo`; predictions for their test rows go to `out`."""
    size, p = longest(coalitions[0], todo), tables[0].shape[1]
    room = (
        np.empty((size, p)),
        np.empty((p, size)),
        np.empty((2, size)),
        np.empty((4, p)),
        np.empty(p, dtype=np.int64),
    )
    fit_lasso(coalitions, todo, tables, y, penalty, intercept, room, out)


@kernel(error_model="numpy", fastmath=ARITHMETIC)
def fit_lasso(
    coalitions: CoalitionArrays,
    todo: Ints,
    tables: Tables,
    y: Floats,
    penalty: Penalty,
    intercept: bool,
    room: Room,
    out: Floats,
) -> None:
    """Train and predict, coalition by coalition."""
    indptr, players, test_indptr, tests = coalitions
    X, X_test = tables
    own, columns, by_row, by_column, _ = room
    target, rest = by_row
    w, _, _, mean = by_column
    p = X.shape[1]
    for c in todo:
        members = players[indptr[c] : indptr[c + 1]]
        k = len(members)
        gather_rows(members, X, intercept, own, mean)
        transpose(own, k, p, columns)
        middle = 0.0
        if intercept:
            for i in range(k):
                middle += y[members[i]] / k
        for i in range(k):
            target[i] = rest[i] = y[members[i]] - middle
        for a in range(p):
            w[a] = 0.0
        descend(k, p, penalty, room)
        bias = middle - dot(w, mean, p)
        for s in range(test_indptr[c], test_indptr[c + 1]):
            out[s] = bias + dot(w, X_test[tests[s]], p)


@pasted
def descend(k: int, p: int, penalty: Penalty, room: Room) -> None:
    """Find the coefficients of a coalition, from zero on."""
    _, columns, by_row, by_column, active = room
    target, rest = by_row
    w, slopes, squares, _ = by_column
    first, second = penalty[0] * k, penalty[1] * k
    enough = penalty[2] * dot(target, target, k)
    n_active = 0
    for a in range(p):
        squares[a] = dot(columns[a], columns[a], k)
        if squares[a] > 0:
            active[n_active] = a
            n_active += 1
    gap, top = duality_gap(k, p, first, second, columns, target, rest, w, slopes)
    for n in range(penalty[3]):
        if n == 0:
            if gap <= enough:
                break
            n_active = screen(k, n_active, gap, top, first, second, columns, rest, by_column, active)
        largest, change = one_round(k, n_active, first, second, columns, rest, w, squares, active)
        if largest == 0 or change / largest <= penalty[2] or n == penalty[3] - 1:
            gap, top = duality_gap(k, p, first, second, columns, target, rest, w, slopes)
            if gap <= enough:
                break
            n_active = screen(k, n_active, gap, top, first, second, columns, rest, by_column, active)


@compiled
def one_round(
    k: int,
    n_active: int,
    first: float,
    second: float,
    columns: Floats,
    rest: Floats,
    w: Floats,
    squares: Floats,
    active: Ints,
) -> Any:
    """Change each coefficient in turn; returns the largest one, and the largest change."""
    largest = change = 0.0
    for at in range(n_active):
        a = active[at]
        old = w[a]
        slope = dot(columns[a], rest, k) + old * squares[a]
        new = math.copysign(max(abs(slope) - first, 0.0), slope) / (squares[a] + second)
        if new != old:
            w[a] = new
            for i in range(k):
                rest[i] += (old - new) * columns[a, i]
        change = max(change, abs(new - old))
        largest = max(largest, abs(new))
    return largest, change


@compiled
def duality_gap(
    k: int,
    p: int,
    first: float,
    second: float,
    columns: Floats,
    target: Floats,
    rest: Floats,
    w: Floats,
    slopes: Floats,
) -> Any:
    """How far the loss is from the least one, at most, and the steepest slope; the slopes go to `slopes`."""
    steepest = total = 0.0
    for a in range(p):
        slopes[a] = dot(columns[a], rest, k) - second * w[a]
        steepest = max(steepest, abs(slopes[a]))
        total += abs(w[a])
    loss = dot(rest, rest, k) + second * dot(w, w, p)
    scale = first / steepest if steepest > first else 1.0
    return 0.5 * loss + first * total + 0.5 * scale * scale * loss - scale * dot(rest, target, k), steepest


@compiled
def screen(
    k: int,
    n_active: int,
    gap: float,
    steepest: float,
    first: float,
    second: float,
    columns: Floats,
    rest: Floats,
    by_column: Floats,
    active: Ints,
) -> Any:
    """Leave out the columns whose coefficients the gap proves to be zero; returns how many are left."""
    w, slopes, squares = by_column[0], by_column[1], by_column[2]
    n_left = 0
    for at in range(n_active):
        a = active[at]
        slack = (1 - abs(slopes[a] / max(first, steepest))) / math.sqrt(squares[a] + second)
        if slack <= math.sqrt(2 * gap) / first:
            active[n_left] = a
            n_left += 1
        elif w[a] != 0:
            for i in range(k):
                rest[i] += w[a] * columns[a, i]
            w[a] = 0.0
    return n_left
