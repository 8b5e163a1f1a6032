"""Kernel values of support vector machines: between rows, computed once and read by every coalition."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import CoalitionArrays, Floats, Indices, Ints, longest
from localshapley.kernels import jit

LINEAR, POLYNOMIAL, RBF, SIGMOID = range(4)
LANES = 16
"""Lines are padded to a multiple of this length, so that loops over them leave no remainder."""
LARGEST = float(np.finfo(np.float32).max)

# exp(x) = 2**−a · 2**(−b / 32) · exp(r) with whole a and b, and a remainder r so small that seven terms will do.
STEPS = 32
STEPS_PER_UNIT = STEPS / math.log(2)
STEP_HIGH, STEP_LOW = 0.021660849393811077, -1.312785960212839e-12  # log(2) / 32, in two parts
WHOLE = np.ldexp(1.0, -np.arange(1078))
PART = 0.5 ** (np.arange(STEPS) / STEPS)
VANISHES = -746.0

compiled = jit.part(inlined=False, error_model="numpy")
summed = jit.part(inlined=False, error_model="numpy", fastmath={"reassoc", "contract"})

# Plain tuples: the cache of compiled code holds the classes of named ones, and fails where a later version renames one.
Kernel: TypeAlias = tuple[int, int, float, bool]
"""Kind, degree, constant term; and whether the pairs of rows hold kernel values rather than products or distances."""
Rows: TypeAlias = tuple[Floats, Floats, Floats, Floats, Floats]
"""`X`, `X_test`, `gram`, `cross` and `norms`: training and test rows, and what is kept of their pairs.

`gram` holds inner products of training rows, `cross` those of test rows with training rows (squared distances for the
RBF kernel), or kernel values. Both are empty where there would be too many; `X` and `X_test` are read then. `norms` are
the inner products of training rows with themselves.
"""
Source: TypeAlias = tuple[Kernel, float, Rows]
"""What kernel values are read from: the kernel, gamma and the rows."""


@compiled
def padded(n: int) -> Any:
    """The next multiple of `LANES`."""
    return (n + LANES - 1) // LANES * LANES


@jit.part(inlined=False, error_model="numpy", fastmath={"contract"})
def exponentiate(line: Floats, n: int) -> None:
    """Exponentials of the first `n` numbers, none of them positive, in place: fast, and right but for the last bits."""
    for i in range(n):
        x = line[i] if line[i] < 0.0 else 0.0
        x = x if x > VANISHES else VANISHES
        step = np.int32(0.5 - x * STEPS_PER_UNIT)
        r = x + step * STEP_HIGH + step * STEP_LOW
        power = PART[np.uint32(step & (STEPS - 1))] * WHOLE[np.uint32(step // STEPS)]
        tail = 1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720))))
        line[i] = power + power * (r + r * r * tail)


@compiled
def apply_kernel(kernel: Kernel, gamma: float, line: Floats, n: int) -> None:
    """Turn inner products (squared distances for RBF) into kernel values, in place."""
    kind, degree, coef0, _ = kernel
    if kind == RBF:
        for i in range(n):
            line[i] = math.exp(-gamma * line[i])
    elif kind == POLYNOMIAL:
        for i in range(n):
            base, power = gamma * line[i] + coef0, 1.0
            left = degree
            while left > 0:
                if left % 2 == 1:
                    power *= base
                base *= base
                left //= 2
            line[i] = power
    elif kind == SIGMOID:
        for i in range(n):
            line[i] = math.tanh(gamma * line[i] + coef0)


@compiled
def sum_by_halves(line: Floats, n: int, sizes: Ints, sums: Floats) -> Any:
    """Sum of the first `n` numbers, equal to NumPy's to the last bit.

    Halves are cut into halves until they are blocks of up to 128 numbers, which are summed in eight lanes.
    `sizes` holds what is still to be summed, −1 for two halves that are to be added.
    """
    depth, n_sums, start = 0, 0, 0
    sizes[0] = n
    while depth >= 0:
        size = sizes[depth]
        if size < 0:
            n_sums -= 1
            sums[n_sums - 1] += sums[n_sums]
            depth -= 1
        elif size > 128:
            half = size // 2 - size // 2 % 8
            sizes[depth], sizes[depth + 1], sizes[depth + 2] = -1, size - half, half
            depth += 2
        else:
            total, stop = 0.0, start + size
            if size >= 8:
                a = b = c = d = e = f = g = h = 0.0
                while start + 8 <= stop:
                    a += line[start]
                    b += line[start + 1]
                    c += line[start + 2]
                    d += line[start + 3]
                    e += line[start + 4]
                    f += line[start + 5]
                    g += line[start + 6]
                    h += line[start + 7]
                    start += 8
                total = ((a + b) + (c + d)) + ((e + f) + (g + h))
            while start < stop:
                total += line[start]
                start += 1
            sums[n_sums] = total
            n_sums += 1
            depth -= 1
    return sums[0]


def exact_variances(coalitions: CoalitionArrays, todo: Ints, X: Floats) -> Floats:
    """Variance of all entries of each coalition's rows, equal to NumPy's to the last bit."""
    out = np.empty(len(todo))
    entries = np.empty(longest(coalitions[0], todo) * X.shape[1])
    sum_squares(coalitions, todo, X, entries, np.empty(128, dtype=np.int64), np.empty(128), out)
    return out


@jit.kernel(error_model="numpy")
def sum_squares(
    coalitions: CoalitionArrays, todo: Ints, X: Floats, entries: Floats, sizes: Ints, sums: Floats, out: Floats
) -> None:
    """Write the exact variances; `entries`, `sizes` and `sums` are room to work in."""
    indptr, players, _, _ = coalitions
    n_features = X.shape[1]
    for k in range(len(todo)):
        members = players[indptr[todo[k]] : indptr[todo[k] + 1]]
        n = len(members) * n_features
        for i in range(len(members)):
            for c in range(n_features):
                entries[i * n_features + c] = X[members[i], c]
        mean = sum_by_halves(entries, n, sizes, sums) / n
        for i in range(n):
            entries[i] = (entries[i] - mean) * (entries[i] - mean)
        out[k] = sum_by_halves(entries, n, sizes, sums) / n


@jit.kernel(error_model="numpy")
def fast_variances(coalitions: CoalitionArrays, todo: Ints, means: Floats, spreads: Floats, out: Floats) -> None:
    """Write the variance of all entries of each coalition's rows, from the mean and the variance of each row."""
    indptr, players, _, _ = coalitions
    for k in range(len(todo)):
        start, stop = indptr[todo[k]], indptr[todo[k] + 1]
        mean = total = 0.0
        for i in range(start, stop):
            mean += means[players[i]] / (stop - start)
        for i in range(start, stop):
            total += spreads[players[i]] + (means[players[i]] - mean) * (means[players[i]] - mean)
        out[k] = total / (stop - start)


@summed
def inner_product(X: Floats, i: int, Z: Floats, j: int) -> Any:
    """Inner product of two rows."""
    total = 0.0
    for c in range(X.shape[1]):
        total += X[i, c] * Z[j, c]
    return total


@summed
def squared_distance(X: Floats, i: int, Z: Floats, j: int) -> Any:
    """Squared distance of two rows."""
    total = 0.0
    for c in range(X.shape[1]):
        difference = X[i, c] - Z[j, c]
        total += difference * difference
    return total


@jit.kernel(error_model="numpy")
def sum_own(X: Floats, out: Floats) -> None:
    """Write the inner product of each row with itself."""
    for z in range(len(X)):
        out[z] = inner_product(X, z, X, z)


@compiled
def finish_row(source: Source, z: int, players: Indices, line: Floats) -> None:
    """Turn inner products of a training row with others into kernel values, by libsvm's formula.

    They are rounded to single precision later, which hides the fast exponential's errors in the last bits.
    """
    kernel, gamma, rows = source
    norms = rows[4]
    if kernel[0] == RBF:
        for i in range(len(players)):
            line[i] = -gamma * (norms[z] + norms[players[i]] - 2.0 * line[i])
        exponentiate(line, len(players))
    else:
        apply_kernel(kernel, gamma, line, len(players))


@compiled
def read_row(source: Source, z: int, players: Indices, line: Floats) -> None:
    """Kernel values of a training row with others."""
    kernel, _, rows = source
    X, _, gram, _, _ = rows
    for i in range(len(players)):
        line[i] = gram[z, players[i]] if len(gram) > 0 else inner_product(X, z, X, players[i])
    if not kernel[3]:
        finish_row(source, z, players, line)


@compiled
def read_diagonal(source: Source, players: Indices, line: Floats) -> None:
    """Kernel value of each row with itself."""
    kernel, gamma, rows = source
    kind, _, _, finished = kernel
    _, _, gram, _, norms = rows
    for i in range(len(players)):
        z = players[i]
        line[i] = gram[z, z] if finished else 0.0 if kind == RBF else norms[z]
    if not finished:
        apply_kernel(kernel, gamma, line, len(players))


@compiled
def read_test(source: Source, t: int, players: Indices, line: Floats) -> None:
    """Kernel values of a test row with training rows."""
    kernel, gamma, rows = source
    kind, _, _, finished = kernel
    X, X_test, _, cross, _ = rows
    for i in range(len(players)):
        z = players[i]
        if len(cross) > 0:
            line[i] = cross[t, z]
        else:
            line[i] = squared_distance(X_test, t, X, z) if kind == RBF else inner_product(X_test, t, X, z)
    if not finished:
        apply_kernel(kernel, gamma, line, len(players))


@jit.kernel(error_model="numpy")
def learn_pairs(source: Source, players: Indices, todo: Ints, line: Floats) -> None:
    """Fill the pairs of `players[todo]` with the players before them, and with all test rows; `line` is room for it."""
    kernel, gamma, rows = source
    kind, _, _, finished = kernel
    X, X_test, gram, cross, norms = rows
    for last in todo:
        z = players[last]
        for i in range(last):
            line[i] = inner_product(X, z, X, players[i])
        line[last] = norms[z]
        if finished:
            finish_row(source, z, players[: last + 1], line)
        for i in range(last + 1):
            gram[z, players[i]] = gram[players[i], z] = line[i]
        for t in range(len(X_test)):
            line[t] = squared_distance(X_test, t, X, z) if kind == RBF else inner_product(X_test, t, X, z)
        if finished:
            apply_kernel(kernel, gamma, line, len(X_test))
        for t in range(len(X_test)):
            cross[t, z] = line[t]
