"""Ridge and logistic regression of many small coalitions.

Rows are taken less the mean of their coalition, so that the intercept stands apart. A coalition with more rows than
features is trained by its features. Else it is trained by its rows: every model that they can teach is a combination
of them, and their inner products are all that it takes to find it.

Logistic regression is softmax regression of the classes that are present. Where these have weights, rows are scaled by
the roots of theirs.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import CoalitionArrays, Floats, Indices, Ints, longest
from localshapley.kernels.decisions import ClassWeights, take_roots
from localshapley.kernels.jit import kernel
from localshapley.kernels.matrices import (
    ARITHMETIC,
    ROOM,
    compiled,
    dot,
    factorise,
    own_products,
    pasted,
    solve,
    substitute_back,
    transpose,
)
from localshapley.kernels.softmax import Coordinates, Work, minimise

Rows: TypeAlias = tuple[Floats, Floats, Floats, Floats]
"""`X`, `X_test`, `gram` and `cross`: training and test rows, inner products of training rows with each other and of
test rows with training rows. Where there is no `gram`, inner products are computed; where there is no `X` (it has no
columns), all coalitions are trained by rows."""
Fetched: TypeAlias = tuple[Floats, Floats]
"""`own`, `products`: the rows of a coalition, and their inner products (lower triangle)."""
RidgeRoom: TypeAlias = tuple[Fetched, Floats, Floats, Floats, Ints]
"""What is fetched of a coalition, rows turned into columns, a factor; five lines of numbers and three of places."""
LogisticRoom: TypeAlias = tuple[Fetched, Coordinates, Work, Floats, Floats, Floats, Floats, Floats, Ints, Ints]
"""What is fetched of a coalition, coordinates, room for softmax regression; coefficients of each class (by coordinate,
and by row or feature), its intercept and its score; four lines of numbers, five of places, and three of classes."""


def train_ridge(
    coalitions: CoalitionArrays, todo: Ints, rows: Rows, y: Floats, penalty: float, intercept: bool, out: Floats
) -> None:
    """Ridge regression of the coalitions `todo`; predictions for their test rows go to `out`."""
    p = rows[0].shape[1]
    size = longest(coalitions[0], todo) + ROOM
    few = size if p == 0 else min(size, p + ROOM)
    fetched = np.zeros((size, p)), np.zeros((few, few))
    lines, places = np.zeros((5, max(size, p))), np.zeros((3, few), dtype=np.int64)
    room = fetched, np.zeros((few, size)), np.zeros((few, few)), lines, places
    fit_ridge(coalitions, todo, rows, y, penalty, intercept, room, out)


@kernel(error_model="numpy", fastmath=ARITHMETIC)
def fit_ridge(
    coalitions: CoalitionArrays,
    todo: Ints,
    rows: Rows,
    y: Floats,
    penalty: float,
    intercept: bool,
    room: RidgeRoom,
    out: Floats,
) -> None:
    """Train and predict, coalition by coalition."""
    indptr, players, test_indptr, tests = coalitions
    p = rows[0].shape[1]
    fetched, turned, factor, lines, places = room
    own, products = fetched
    right, answer, coefficients, mean, line = lines
    zero, width, start = places
    for c in todo:
        members = players[indptr[c] : indptr[c + 1]]
        k = len(members)
        by_rows = p == 0 or k <= p
        crossed = by_rows and rows[2].size > 0
        prepare(members, rows, intercept, by_rows, zero, fetched, mean)
        middle = 0.0
        if intercept:
            for i in range(k):
                middle += y[members[i]] / k
        for i in range(k):
            right[i] = y[members[i]] - middle
        n = k if by_rows else p
        if not by_rows:
            transpose(own, k, p, turned)
            own_products(turned, p, zero, k, products)
            for a in range(p):
                answer[a] = dot(turned[a], right, k)
            for a in range(p):
                right[a] = answer[a]
        for i in range(n):
            products[i, i] += penalty
        solve(products, n, right, factor, width, start, answer)
        if by_rows and not crossed:
            combine_rows(answer, own, k, p, coefficients)
            n = p
        else:
            for i in range(n):
                coefficients[i] = answer[i]
            if crossed and intercept:
                centre(coefficients, n)
        bias = middle - dot(coefficients, mean, n)
        for s in range(test_indptr[c], test_indptr[c + 1]):
            fetch_test(tests[s], members, rows, crossed, line)
            out[s] = bias + dot(coefficients, line, n)


def train_logistic(
    coalitions: CoalitionArrays,
    todo: Ints,
    rows: Rows,
    codes: Ints,
    weights: ClassWeights,
    penalties: tuple[float, float],
    intercept: bool,
    out: Floats,
) -> None:
    """Logistic regression of the coalitions `todo`; probabilities of their test rows' classes go to `out`.

    The second penalty holds where two classes are present.
    """
    n_classes, p = out.shape[1], rows[0].shape[1]
    size = longest(coalitions[0], todo) + ROOM
    few = size if p == 0 else min(size, 3 * p // 2 + 1 + ROOM)
    tall, wide, square = (size, few), (few, size), (few, few)
    room = (
        (np.zeros((size, p)), np.zeros(square)),
        tuple(np.zeros(shape) for shape in (tall, wide, square, square, tall, wide)),
        (np.zeros((7, n_classes, size)), np.zeros((5, n_classes, few))),
        np.zeros((n_classes, few)),
        np.zeros((n_classes, max(size, p))),
        *np.zeros((2, n_classes)),
        np.zeros((4, max(size, p))),
        np.zeros((5, size), dtype=np.int64),
        np.zeros((3, n_classes), dtype=np.int64),
    )
    fit_logistic(coalitions, todo, rows, codes, weights, penalties, intercept, room, out)


@kernel(error_model="numpy", fastmath=ARITHMETIC)
def fit_logistic(
    coalitions: CoalitionArrays,
    todo: Ints,
    rows: Rows,
    codes: Ints,
    weights: ClassWeights,
    penalties: tuple[float, float],
    intercept: bool,
    room: LogisticRoom,
    out: Floats,
) -> None:
    """Train and predict, coalition by coalition: encode the classes, fit, combine, predict."""
    indptr, players, test_indptr, tests = coalitions
    p = rows[0].shape[1]
    fetched, coordinates, work, W, coefficients, bias, scores, lines, places, classes = room
    answer, mean, line, roots = lines
    zero, width, start, whole, y = places
    present, place, count = classes
    first = 1 if intercept else 0
    for c in todo:
        members = players[indptr[c] : indptr[c + 1]]
        k = len(members)
        m = encode(members, codes, place, present, y)
        by_rows = p == 0 or 2 * k <= 3 * p
        crossed = by_rows and rows[2].size > 0
        prepare(members, rows, intercept, by_rows, zero, fetched, mean)
        for i in range(len(start)):
            start[i], whole[i] = 0, k
        q = lay_out(k, p, first, by_rows, fetched, coordinates[0], width, start)
        take_roots(k, m, y, present, count, weights, roots)
        scale_rows(coordinates[0], roots, k)
        sizes = k, q, m, first
        minimise(coordinates, (zero, width, start, whole), sizes, y, roots, penalties[1 if m == 2 else 0], work, W)
        n = k if crossed else p
        for j in range(m):
            bias[j] = W[j, 0] if intercept else 0.0
            if crossed:
                substitute_back(coordinates[0], first, q, start, W[j], k, coefficients[j])
                scale(coefficients[j], roots, k)
                if intercept:
                    centre(coefficients[j], k)
            elif by_rows:
                substitute_back(coordinates[0], first, q, start, W[j], k, answer)
                scale(answer, roots, k)
                combine_rows(answer, fetched[0], k, p, coefficients[j])
            else:
                for a in range(p):
                    coefficients[j, a] = W[j, first + a]
            bias[j] -= dot(coefficients[j], mean, n)
        for s in range(test_indptr[c], test_indptr[c + 1]):
            fetch_test(tests[s], members, rows, crossed, line)
            for j in range(m):
                scores[j] = bias[j] + dot(coefficients[j], line, n)
            write_shares(scores, m, present, s, out)


@pasted
def encode(members: Indices, codes: Ints, place: Ints, present: Ints, y: Ints) -> Any:
    """Number the classes of a coalition in their order (`present`), and write those of its rows; returns how many."""
    m = np.int64(0)
    for code in range(len(place)):
        place[code] = -1
    for i in range(len(members)):
        place[codes[members[i]]] = 0
    for code in range(len(place)):
        if place[code] == 0:
            place[code], present[m] = m, code
            m += 1
    for i in range(len(members)):
        y[i] = place[codes[members[i]]]
    return m


@pasted
def lay_out(k: int, p: int, first: int, by_rows: bool, fetched: Fetched, C: Floats, width: Ints, start: Ints) -> Any:
    """Write the coordinates of the rows: those of a factor of their products, or their features; returns how many."""
    own, products = fetched
    q = np.int64(p + first)
    if by_rows:
        for i in range(k):
            for a in range(C.shape[1]):
                C[i, a] = 0.0
        q = factorise(products, k, first, C, width, start)
    else:
        for i in range(k):
            for a in range(p):
                C[i, first + a] = own[i, a]
        for i in range(len(width)):
            width[i] = q
    if first:
        for i in range(k):
            C[i, 0] = 1.0
    return q


@compiled
def scale_rows(M: Floats, factors: Floats, n: int) -> None:
    """Multiply each of `n` rows by a factor."""
    for i in range(n):
        for a in range(M.shape[1]):
            M[i, a] *= factors[i]


@compiled
def scale(a: Floats, factors: Floats, n: int) -> None:
    """Multiply each of `n` numbers by a factor."""
    for i in range(n):
        a[i] *= factors[i]


@pasted
def write_shares(scores: Floats, m: int, present: Ints, s: int, out: Floats) -> None:
    """Write the probabilities of the classes that are present from their scores; the others have none."""
    top, total = -np.inf, 0.0
    for j in range(m):
        top = max(top, scores[j])
    for j in range(m):
        scores[j] = math.exp(scores[j] - top)
        total += scores[j]
    for j in range(out.shape[1]):
        out[s, j] = 0.0
    for j in range(m):
        out[s, present[j]] = scores[j] / total


@pasted
def prepare(
    members: Indices, rows: Rows, centred: bool, by_rows: bool, zero: Ints, fetched: Fetched, mean: Floats
) -> None:
    """Fetch a coalition: inner products of its rows if it is trained `by_rows`, else the rows."""
    X, _, gram, _ = rows
    own, products = fetched
    if by_rows and gram.size > 0:
        gather_products(members, gram, centred, products, mean)
        return
    gather_rows(members, X, centred, own, mean)
    if by_rows:
        own_products(own, len(members), zero, X.shape[1], products)


@pasted
def gather_rows(members: Indices, X: Floats, centred: bool, out: Floats, mean: Floats) -> None:
    """Copy rows, less their mean where `centred`; `mean` has what was taken off."""
    k, p = len(members), X.shape[1]
    for a in range(p):
        mean[a] = 0.0
    for i in range(k):
        for a in range(p):
            out[i, a] = X[members[i], a]
    if not centred:
        return
    for i in range(k):
        for a in range(p):
            mean[a] += out[i, a]
    for a in range(p):
        mean[a] /= k
        # The mean of equal numbers is exact: what rounding leaves of them would be the whole of a column to a solver.
        i = 1
        while i < k and out[i, a] == out[0, a]:
            i += 1
        if i == k:
            mean[a] = out[0, a]
    for i in range(k):
        for a in range(p):
            out[i, a] -= mean[a]


@compiled
def gather_products(members: Indices, gram: Floats, centred: bool, out: Floats, mean: Floats) -> None:
    """Copy inner products of rows (lower triangle), as those of rows less their mean where `centred`.

    `mean` has the product of each row with what was taken off.
    """
    k = len(members)
    for i in range(k):
        mean[i] = 0.0
    for i in range(k):
        for l in range(i + 1):
            out[i, l] = gram[members[i], members[l]]
    if not centred:
        return
    for i in range(k):
        total = out[i, i]
        for l in range(i):
            total += out[i, l]
            mean[l] += out[i, l]
        mean[i] += total
    total = 0.0
    for i in range(k):
        mean[i] /= k
        total += mean[i]
    for i in range(k):
        for l in range(i + 1):
            out[i, l] += total / k - mean[i] - mean[l]


@compiled
def combine_rows(A: Floats, own: Floats, k: int, p: int, out: Floats) -> None:
    """Coefficients of `p` features from those of `k` rows."""
    for a in range(p):
        out[a] = 0.0
    for i in range(k):
        for a in range(p):
            out[a] += A[i] * own[i, a]


@compiled
def centre(a: Floats, n: int) -> None:
    """Take the mean off coefficients of rows: that changes no model, as rows less their mean sum to zero."""
    mean = 0.0
    for i in range(n):
        mean += a[i] / n
    for i in range(n):
        a[i] -= mean


@compiled
def fetch_test(t: int, members: Indices, rows: Rows, crossed: bool, out: Floats) -> None:
    """Copy what coefficients are multiplied with: products of a test row with rows if `crossed`, else its features."""
    _, X_test, _, cross = rows
    if crossed:
        for i in range(len(members)):
            out[i] = cross[t, members[i]]
    else:
        for a in range(X_test.shape[1]):
            out[a] = X_test[t, a]


@kernel(error_model="numpy", fastmath=ARITHMETIC)
def learn_products(rows: Rows, known: Indices, new: Ints) -> None:
    """Fill in the inner products of the rows `known[new]` with those before them, with themselves and all test rows."""
    X, X_test, gram, cross = rows
    p = X.shape[1]
    for at in new:
        i = known[at]
        for l in known[: at + 1]:
            gram[i, l] = gram[l, i] = dot(X[i], X[l], p)
        for t in range(len(X_test)):
            cross[t, i] = dot(X_test[t], X[i], p)
