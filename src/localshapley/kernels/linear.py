"""Ridge and logistic regression of many small coalitions.

Rows are taken less the mean of their coalition, so that the intercept stands apart. A coalition with more rows than
features is trained by its features. Else it is trained by its rows: every model that they can teach is a combination
of them, and their inner products are all that it takes to find it.

Logistic regression is softmax regression of the classes that are present, by Newton's method. The coordinates of the
unknowns are chosen so that the second derivatives at the start are the unit matrix; conjugate gradients then need few
iterations to solve for a step. Coefficients of the classes sum to zero, all along.

Arrays to work in have `ROOM` beyond their largest use: four dot products are taken at a time, also where fewer are
left. What lies there is some finite number and enters no result.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numba import njit

from localshapley.arrays import Floats, Indices, Ints

ROOM = 8
DEPENDENT = 1e-13
"""Share of its squared length that a row must have apart from the rows before it, else it depends on them."""
MAX_STEPS = 100
MAX_ITERATIONS = 500
MANY_ITERATIONS = 24
"""Where a step took more than this, other coordinates are tried for the next one."""
PRECISION = 1e-13
"""Squared distance to the least loss, in units of the loss, times C where that is above one, at which training ends."""

Rows: TypeAlias = tuple[Floats, Floats, Floats, Floats]
"""`X`, `X_test`, `gram` and `cross`: training and test rows, inner products of training rows with each other and of
test rows with training rows. Where there is no `gram`, inner products are computed; where there is no `X` (it has no
columns), all coalitions are trained by rows."""
Limits: TypeAlias = tuple[Ints, Ints, Ints, Ints]
"""`zero`, `width`, `start`, `whole`: row `i` of the coordinates is zero outside `zero[i]` to `width[i]`, and column `a`
outside `start[a]` to `whole[a]`."""
Coordinates: TypeAlias = tuple[Floats, Floats, Floats, Floats, Floats, Floats]
"""`C`, its transpose `CT`, `H = CᵀC` (lower triangle); `U`, `Q` and its transpose `QT` as `whiten` makes them."""

# Sums may be taken in any order, always the same one: that is what makes loops over products fast.
compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
inlined = njit(inline="always", error_model="numpy", fastmath={"contract", "reassoc", "nsz"})


@inlined
def four_dots(M: Floats, l: int, R: Floats, j: int, start: int, stop: int) -> Any:
    """Dot products of row `j` of `R` with rows `l` to `l + 3` of `M`, over the columns from `start` up to `stop`."""
    r, first, second = R[j, start:stop], M[l, start:stop], M[l + 1, start:stop]
    third, fourth = M[l + 2, start:stop], M[l + 3, start:stop]
    a = b = c = d = 0.0
    for i in range(len(r)):
        a += first[i] * r[i]
        b += second[i] * r[i]
        c += third[i] * r[i]
        d += fourth[i] * r[i]
    return a, b, c, d


@compiled
def dot(a: Floats, b: Floats, n: int) -> Any:
    """Dot product of the first `n` entries."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@compiled
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


@compiled
def gather_rows(members: Indices, X: Floats, centred: bool, out: Floats, mean: Floats) -> None:
    """Copy rows, less their mean where `centred`; `mean` has what was taken off."""
    k, p = len(members), X.shape[1]
    mean[:p] = 0.0
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
    for i in range(k):
        for a in range(p):
            out[i, a] -= mean[a]


@compiled
def gather_products(members: Indices, gram: Floats, centred: bool, out: Floats, mean: Floats) -> None:
    """Copy inner products of rows (lower triangle), as those of rows less their mean where `centred`.

    `mean` has the product of each row with what was taken off.
    """
    k = len(members)
    mean[:k] = 0.0
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
def own_products(M: Floats, n: int, start: Ints, stop: int, out: Floats) -> None:
    """Write `M Mᵀ` (lower triangle) for `n` rows; row `i` of `M` is zero outside `start[i]` to `stop`."""
    for i in range(n):
        for l in range(0, i + 1, 4):
            out[i, l], out[i, l + 1], out[i, l + 2], out[i, l + 3] = four_dots(M, l, M, i, start[i], stop)


@compiled
def prepare(
    members: Indices, rows: Rows, centred: bool, by_rows: bool, zero: Ints, own: Floats, products: Floats, mean: Floats
) -> None:
    """Fetch a coalition: inner products of its rows if it is trained `by_rows`, else the rows (in `own`)."""
    X, _, gram, _ = rows
    if by_rows and gram.size > 0:
        gather_products(members, gram, centred, products, mean)
        return
    gather_rows(members, X, centred, own, mean)
    if by_rows:
        own_products(own, len(members), zero, X.shape[1], products)


@compiled
def factorise(S: Floats, n: int, first: int, L: Floats, width: Ints, start: Ints) -> Any:
    """Cholesky factor of inner products (lower triangle); rows that depend on those before them add no column.

    `L` comes with zeros and gets the factor from column `first` on. `width` gets the columns in use up to each row,
    `start` the row where each column begins. Returns the number of columns in use, `first` included.
    """
    q = first
    for j in range(n):
        rest = S[j, j] - dot(L[j, first:], L[j, first:], q - first)
        if rest > DEPENDENT * S[j, j]:
            root = math.sqrt(rest)
            for i in range(j + 1, n, 4):
                a, b, c, d = four_dots(L, i, L, j, first, q)
                L[i, q] = (S[i, j] - a) / root
                L[i + 1, q] = (S[i + 1, j] - b) / root
                L[i + 2, q] = (S[i + 2, j] - c) / root
                L[i + 3, q] = (S[i + 3, j] - d) / root
            L[j, q] = root
            start[q] = j
            q += 1
        width[j] = q
    return q


@compiled
def substitute_back(L: Floats, first: int, q: int, start: Ints, b: Floats, n: int, out: Floats) -> None:
    """Solve `Lᵀx = b` for a factor of `n` rows; those that depend on others get zero. Overwrites `b`."""
    out[:n] = 0.0
    for a in range(q - 1, first - 1, -1):
        i = start[a]
        out[i] = b[a] / L[i, a]
        for c in range(first, a):
            b[c] -= L[i, c] * out[i]


@compiled
def solve(S: Floats, n: int, b: Floats, L: Floats, width: Ints, start: Ints, out: Floats) -> None:
    """Solve `Sx = b` for a positive definite matrix (lower triangle). Overwrites `b`."""
    L[:n, :n] = 0.0
    q = factorise(S, n, 0, L, width, start)
    for a in range(q):
        b[a] = (b[start[a]] - dot(L[start[a]], b, a)) / L[start[a], a]
    substitute_back(L, 0, q, start, b, n, out)


@compiled
def transpose(M: Floats, n: int, p: int, out: Floats) -> None:
    """Write the transpose of `n` rows of `p` columns."""
    for i in range(n):
        for a in range(p):
            out[a, i] = M[i, a]


@compiled
def balance(A: Floats, m: int, n: int) -> None:
    """Make `m` rows of `n` columns sum to zero: the last one follows from the others."""
    for i in range(n):
        A[m - 1, i] = 0.0
    for j in range(m - 1):
        for i in range(n):
            A[m - 1, i] -= A[j, i]


@inlined
def eight_dots(M: Floats, l: int, R: Floats, j: int, start: int, stop: int) -> Any:
    """Dot products of rows `j` and `j + 1` of `R` with rows `l` to `l + 3` of `M`, from `start` up to `stop`."""
    r, s, first, second = R[j, start:stop], R[j + 1, start:stop], M[l, start:stop], M[l + 1, start:stop]
    third, fourth = M[l + 2, start:stop], M[l + 3, start:stop]
    a = b = c = d = e = f = g = h = 0.0
    for i in range(len(r)):
        a += first[i] * r[i]
        b += second[i] * r[i]
        c += third[i] * r[i]
        d += fourth[i] * r[i]
        e += first[i] * s[i]
        f += second[i] * s[i]
        g += third[i] * s[i]
        h += fourth[i] * s[i]
    return a, b, c, d, e, f, g, h


@compiled
def multiply(M: Floats, n: int, start: Ints, stop: Ints, R: Floats, m: int, out: Floats) -> None:
    """Write `R Mᵀ` for `n` rows of `M`, zero outside `start` to `stop`, and `m` rows of `R` that sum to zero."""
    for l in range(0, n, 4):
        first, last = start[l], stop[min(l + 3, n - 1)]  # neither falls from row to row
        for j in range(0, m - 1, 2):
            a, b, c, d, e, f, g, h = eight_dots(M, l, R, j, first, last)
            out[j, l], out[j, l + 1], out[j, l + 2], out[j, l + 3] = a, b, c, d
            out[j + 1, l], out[j + 1, l + 1], out[j + 1, l + 2], out[j + 1, l + 3] = e, f, g, h
    balance(out, m, n)


@compiled
def dot_rows(A: Floats, B: Floats, m: int, n: int) -> Any:
    """Dot product of `m` rows of `n` columns, as one vector."""
    total = 0.0
    for j in range(m):
        for i in range(n):
            total += A[j, i] * B[j, i]
    return total


@compiled
def add_rows(A: Floats, factor: float, B: Floats, m: int, n: int, out: Floats) -> None:
    """Write `A + factor·B` for `m` rows of `n` columns."""
    for j in range(m):
        for i in range(n):
            out[j, i] = A[j, i] + factor * B[j, i]


@compiled
def whiten(coordinates: Coordinates, k: int, q: int, width: Ints, weight: float, penalty: float, first: int) -> None:
    """Change coordinates so that `weight·CᵀC + penalty` becomes the unit matrix; columns before `first` go without.

    The matrix is `U Uᵀ` with an upper triangle `U`, and the rows have the new coordinates `Q = C U⁻ᵀ`, which are zero
    where those in `C` are.
    """
    C, _, H, U, Q, QT = coordinates
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


@compiled
def softmax(F: Floats, y: Ints, m: int, k: int, P: Floats, top: Floats, total: Floats) -> Any:
    """Write the probabilities of `m` classes for `k` rows; returns the log loss."""
    for i in range(k):
        top[i] = F[0, i]
        total[i] = 0.0
    for j in range(1, m):
        for i in range(k):
            top[i] = max(top[i], F[j, i])
    for j in range(m):
        for i in range(k):
            P[j, i] = math.exp(F[j, i] - top[i])
        for i in range(k):
            total[i] += P[j, i]
    loss = 0.0
    for i in range(k):
        loss += math.log(total[i]) + top[i] - F[y[i], i]
        total[i] = 1 / total[i]
    for j in range(m):
        for i in range(k):
            P[j, i] *= total[i]
    return loss


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
def newton_step(
    Q: Floats,
    QT: Floats,
    limits: Limits,
    k: int,
    q: int,
    m: int,
    P: Floats,
    weight: float,
    goal: float,
    by_row: Floats,
    by_column: Floats,
) -> Any:
    """Solve Newton's equations by conjugate gradients, until the squared length of what is left is down to `goal`.

    `by_column[0]` has the gradient, negated. The step goes to `by_column[1]`, what it adds to the rows' scores to
    `by_row[0]`.

    Returns
    -------
    promise : float
        What the step saves, twice, if the loss is quadratic.
    iterations : int
    """
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
def minimise(
    coordinates: Coordinates,
    limits: Limits,
    k: int,
    q: int,
    m: int,
    y: Ints,
    penalty: float,
    first: int,
    by_row: Floats,
    by_column: Floats,
    W: Floats,
) -> None:
    """Softmax regression of `m` classes on the coordinates `C`; `W` gets a row of coefficients for each class.

    A step is halved until the loss falls by enough. Training ends near the least loss, as far as rounding lets it; or
    after `MAX_STEPS`, with the least loss so far.
    """
    C, CT, H, U, Q, QT = coordinates
    _, width, start, whole = limits
    gain, top, total, F, P, trial = by_row[0], by_row[3, 0], by_row[3, 1], by_row[4], by_row[5], by_row[6]
    left, step, V = by_column[0], by_column[1], by_column[4]
    transpose(C, k, q, CT)
    own_products(CT, q, start, k, H)
    weight = 1 / m  # with equal probabilities, the second derivative of the loss is this multiple of the unit matrix
    whiten(coordinates, k, q, width, weight, penalty, first)
    for j in range(m):
        for i in range(k):
            F[j, i] = 0.0
            P[j, i] = 1 / m
        for a in range(q):
            V[j, a] = 0.0
    loss = k * math.log(m)
    enough = PRECISION * min(1.0, penalty)
    last, ratio, n = np.inf, 1.0, 0
    for _ in range(MAX_STEPS):
        now = (k - dot_rows(P, P, m, k)) / (k * (m - 1))
        if now < weight / (2 if n > MANY_ITERATIONS else 8):
            weight = now
            to_plain(U, m, q, V, W)
            whiten(coordinates, k, q, width, weight, penalty, first)
            to_white(U, m, q, W, V)
        add_rows(P, -weight, F, m, k, trial)
        for i in range(k):
            trial[y[i], i] -= 1.0
        multiply(QT, q, start, whole, trial, m, left)
        add_rows(left, 1.0, V, m, q, left)
        for j in range(m):
            for a in range(q):
                left[j, a] = -left[j, a]
        squared, size = dot_rows(left, left, m, q), dot_rows(V, V, m, q)
        if ratio * squared <= enough or (squared > last / 4 and squared < 1e-22 * (k + size)):
            break
        last = squared
        goal = max(squared * min(0.01, squared), 0.05 * enough / ratio)
        promise, n = newton_step(Q, QT, limits, k, q, m, P, weight, goal, by_row, by_column)
        ratio = promise / squared
        # The penalty on coefficients v with scores f is |v|² − weight·|f|².
        mixed = dot_rows(V, step, m, q) - weight * dot_rows(F, gain, m, k)
        new = dot_rows(step, step, m, q) - weight * dot_rows(gain, gain, m, k)
        length, value = 2.0, np.inf
        while value + length * (mixed + length * new / 2) > loss - 1e-4 * length * promise + 1e-13 * (1 + loss):
            length /= 2
            add_rows(F, length, gain, m, k, trial)
            value = softmax(trial, y, m, k, P, top, total)
        loss = value
        add_rows(F, length, gain, m, k, F)
        add_rows(V, length, step, m, q, V)
        balance(V, m, q)
    to_plain(U, m, q, V, W)


@compiled
def combine_rows(A: Floats, own: Floats, k: int, p: int, out: Floats) -> None:
    """Coefficients of `p` features from those of `k` rows."""
    out[:p] = 0.0
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
        out[: X_test.shape[1]] = X_test[t]


@compiled
def largest(indptr: Ints, todo: Ints) -> Any:
    """Rows of the largest coalition."""
    out = 0
    for c in todo:
        out = max(out, indptr[c + 1] - indptr[c])
    return out


@compiled
def train_ridge(
    indptr: Ints,
    players: Indices,
    test_indptr: Ints,
    tests: Indices,
    todo: Ints,
    rows: Rows,
    y: Floats,
    penalty: float,
    intercept: bool,
    out: Floats,
) -> None:
    """Ridge regression of the coalitions `todo`; predictions for their test rows go to `out`."""
    p = rows[0].shape[1]
    size = largest(indptr, todo) + ROOM
    few = size if p == 0 else min(size, p + ROOM)
    own, turned = np.zeros((size, p)), np.zeros((few, size))
    products, factor = np.zeros((few, few)), np.zeros((few, few))
    right, answer, coefficients, mean, line = np.zeros((5, max(size, p)))
    zero, width, start = np.zeros((3, few), dtype=np.int64)
    for c in todo:
        members = players[indptr[c] : indptr[c + 1]]
        k = len(members)
        by_rows = p == 0 or k <= p
        crossed = by_rows and rows[2].size > 0
        prepare(members, rows, intercept, by_rows, zero, own, products, mean)
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
            right[:p] = answer[:p]
        for i in range(n):
            products[i, i] += penalty
        solve(products, n, right, factor, width, start, answer)
        if by_rows and not crossed:
            combine_rows(answer, own, k, p, coefficients)
            n = p
        else:
            coefficients[:n] = answer[:n]
            if crossed and intercept:
                centre(coefficients, n)
        bias = middle - dot(coefficients, mean, n)
        for s in range(test_indptr[c], test_indptr[c + 1]):
            fetch_test(tests[s], members, rows, crossed, line)
            out[s] = bias + dot(coefficients, line, n)


@compiled
def train_logistic(
    indptr: Ints,
    players: Indices,
    test_indptr: Ints,
    tests: Indices,
    todo: Ints,
    rows: Rows,
    codes: Ints,
    penalty: float,
    penalty_of_two: float,
    intercept: bool,
    out: Floats,
) -> None:
    """Logistic regression of the coalitions `todo`; probabilities of their test rows' classes go to `out`.

    `penalty_of_two` holds where two classes are present.
    """
    n_classes, p = out.shape[1], rows[0].shape[1]
    size = largest(indptr, todo) + ROOM
    few = size if p == 0 else min(size, 3 * p // 2 + 1 + ROOM)
    own, products = np.zeros((size, p)), np.zeros((few, few))
    C, CT, Q, QT = np.zeros((size, few)), np.zeros((few, size)), np.zeros((size, few)), np.zeros((few, size))
    coordinates = C, CT, np.zeros((few, few)), np.zeros((few, few)), Q, QT
    by_row, by_column = np.zeros((7, n_classes, size)), np.zeros((5, n_classes, few))
    W, coefficients, bias = np.zeros((n_classes, few)), np.zeros((n_classes, max(size, p))), np.zeros(n_classes)
    answer, mean, line = np.zeros((3, max(size, p, n_classes)))
    zero, width, start, whole, y = np.zeros((5, size), dtype=np.int64)
    present, place = np.zeros((2, n_classes), dtype=np.int64)
    first = 1 if intercept else 0
    for c in todo:
        members = players[indptr[c] : indptr[c + 1]]
        k = len(members)
        m = 0
        place[:] = -1
        for i in range(k):
            place[codes[members[i]]] = 0
        for code in range(n_classes):
            if place[code] == 0:
                place[code], present[m] = m, code
                m += 1
        for i in range(k):
            y[i] = place[codes[members[i]]]
        by_rows = p == 0 or 2 * k <= 3 * p
        crossed = by_rows and rows[2].size > 0
        prepare(members, rows, intercept, by_rows, zero, own, products, mean)
        start[:], whole[:] = 0, k
        if by_rows:
            C[:k] = 0.0
            q = factorise(products, k, first, C, width, start)
        else:
            q = p + first
            C[:k, first:q] = own[:k]
            width[:] = q
        if intercept:
            C[:k, 0] = 1.0
        minimise(
            coordinates,
            (zero, width, start, whole),
            k,
            q,
            m,
            y,
            penalty_of_two if m == 2 else penalty,
            first,
            by_row,
            by_column,
            W,
        )
        n = k if crossed else p
        for j in range(m):
            bias[j] = W[j, 0] if intercept else 0.0
            if crossed:
                substitute_back(C, first, q, start, W[j], k, coefficients[j])
                if intercept:
                    centre(coefficients[j], k)
            elif by_rows:
                substitute_back(C, first, q, start, W[j], k, answer)
                combine_rows(answer, own, k, p, coefficients[j])
            else:
                coefficients[j, :p] = W[j, first:q]
            bias[j] -= dot(coefficients[j], mean, n)
        for s in range(test_indptr[c], test_indptr[c + 1]):
            fetch_test(tests[s], members, rows, crossed, line)
            top, total = -np.inf, 0.0
            for j in range(m):
                answer[j] = bias[j] + dot(coefficients[j], line, n)
                top = max(top, answer[j])
            for j in range(m):
                answer[j] = math.exp(answer[j] - top)
                total += answer[j]
            out[s] = 0.0
            for j in range(m):
                out[s, present[j]] = answer[j] / total
