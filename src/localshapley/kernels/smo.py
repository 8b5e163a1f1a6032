"""Support vector machines, trained one small coalition after the other.

The steps are those of libsvm (Fan, Chen and Lin, 2005): the pair of variables that promises most is moved until no
pair promises more than the tolerance, variables that seem settled are set aside meanwhile, and kernel values are
rounded to single precision. The same pairs are moved in the same order, so that the machine is the one that libsvm
finds, and not merely one within the tolerance of it.

A machine has two groups of variables, the first of sign +1, the second of sign −1: the rows of two classes, or, for
regression, every row twice. `slope` is the gradient times the sign. `up` is 0 where a variable times its sign may
rise and −∞ where it may not, `down` likewise where it may fall.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from localshapley.arrays import AnyArray, Floats, Indices, Ints

LINEAR, POLYNOMIAL, RBF, SIGMOID = range(4)
LABEL, MARGIN, PROBABILITY = range(3)
LANES = 16
"""Lines are filled up to a multiple of this length, so that loops over them leave no remainder."""
PERIOD = 1000
"""Variables are set aside after so many steps, or as many as there are variables."""
LEAST_CURVATURE = 1e-12
LARGEST = float(np.finfo(np.float32).max)

# exp(x) = 2**−a · 2**(−b / 32) · exp(r) with whole a and b, and a remainder r so small that seven terms will do.
STEPS = 32
STEPS_PER_UNIT = STEPS / math.log(2)
STEP_HIGH, STEP_LOW = 0.021660849393811077, -1.312785960212839e-12  # log(2) / 32, in two parts
WHOLE = np.ldexp(1.0, -np.arange(1078))
PART = 0.5 ** (np.arange(STEPS) / STEPS)
VANISHES = -746.0

compiled = njit(cache=True, nogil=True, error_model="numpy")

# Plain tuples: the cache of compiled code holds the classes of named ones, and fails where a later version renames one.
Kernel: TypeAlias = tuple[int, int, float, bool]
"""Kind, degree, constant term; and whether the pairs of rows hold kernel values rather than what they come from."""
Rows: TypeAlias = tuple[Floats, Floats, Floats, Floats, Floats]
"""`X`, `X_test`, `gram`, `cross` and `norms`: training and test rows, and what is kept of their pairs.

`gram` holds inner products of training rows, `cross` those of test rows with training rows (squared distances for the
RBF kernel), or kernel values. Both are empty where there would be too many; `X` and `X_test` are read then. `norms` are
the inner products of training rows with themselves.
"""
CoalitionScratch: TypeAlias = tuple[Indices, Floats, Floats, AnyArray, AnyArray]
"""`players`, `own`, `line`, `has` and `values`: rows of a coalition, their kernel values with themselves, a line to
compute in, and kernel values in single precision, row by row as they are needed (`has` tells which are there)."""
MachineScratch: TypeAlias = tuple[
    Floats, Floats, Floats, Floats, Floats, Floats, Floats, Ints, Ints, Ints, AnyArray, AnyArray
]
"""`alpha`, `slope`, `first_slope`, `bound_slope`, `up`, `down`, `diagonal`, `key`, `place`, `order`, `ready`, `matrix`.

The variables; their slopes, those at the start and those that the variables at the bound make; where they may go; the
diagonal of the kernel matrix; what is searched for the best; places in the order of variables and its reverse; and the
rows of the kernel matrix as the machine has them (`ready` tells which are there).
"""


@compiled
def make_scratch(n_rows: int, n_variables: int) -> Any:
    """Room for coalitions of up to `n_rows` rows and machines of up to `n_variables` variables."""
    width = padded(n_variables)
    coalition = (
        np.empty(n_rows, dtype=np.int32),
        np.empty(n_rows),
        np.empty(n_rows),
        np.empty(n_rows, dtype=np.bool_),
        np.empty(n_rows * padded(n_rows), dtype=np.float32),
    )
    machine = (
        np.empty(n_variables),
        np.empty(width),
        np.empty(width),
        np.empty(width),
        np.empty(width),
        np.empty(width),
        np.empty(width),
        np.empty(width, dtype=np.int64),
        np.empty(width, dtype=np.int64),
        np.empty(n_variables, dtype=np.int64),
        np.empty(n_variables, dtype=np.bool_),
        np.empty(n_variables * width, dtype=np.float32),
    )
    return coalition, machine


@compiled
def padded(n: int) -> Any:
    """The next multiple of `LANES`."""
    return (n + LANES - 1) // LANES * LANES


def _bits(typing_context: Any, number: Any) -> Any:
    """The bits of a number as an integer, which orders positive numbers as they are."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


bits: Any = intrinsic(_bits)


@compiled
def rank(number: float) -> Any:
    """An integer that orders numbers as they are: the largest integer is found many at a time, numbers are not."""
    b = bits(number)
    return b ^ ((b >> 63) & 0x7FFFFFFFFFFFFFFF)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def exponentiate(line: Floats, n: int) -> None:
    """Exponentials of the first `n` numbers, none of them positive, in place: right but for the last bits, and fast."""
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
def largest_coalition(indptr: Ints, todo: Ints) -> Any:
    """Number of rows of the largest coalition."""
    most = 0
    for c in todo:
        most = max(most, indptr[c + 1] - indptr[c])
    return most


@compiled
def sum_by_halves(line: Floats, n: int, sizes: Ints, sums: Floats) -> Any:
    """Sum of the first `n` numbers to the last bit as NumPy has it.

    Halves are cut into halves until they are blocks of up to 128 numbers, of which eight sums are made side by side.
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


@compiled
def exact_variances(indptr: Ints, players: Indices, todo: Ints, X: Floats) -> Floats:
    """Variance of all entries of each coalition's rows, to the last bit as NumPy has it."""
    out = np.empty(len(todo))
    n_features = X.shape[1]
    entries = np.empty(largest_coalition(indptr, todo) * n_features)
    sizes, sums = np.empty(128, dtype=np.int64), np.empty(128)
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
    return out


@compiled
def fast_variances(indptr: Ints, players: Indices, todo: Ints, means: Floats, spreads: Floats) -> Floats:
    """Variance of all entries of each coalition's rows, from the mean and the variance of each row."""
    out = np.empty(len(todo))
    for k in range(len(todo)):
        start, stop = indptr[todo[k]], indptr[todo[k] + 1]
        mean = total = 0.0
        for i in range(start, stop):
            mean += means[players[i]] / (stop - start)
        for i in range(start, stop):
            total += spreads[players[i]] + (means[players[i]] - mean) ** 2
        out[k] = total / (stop - start)
    return out


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def inner_product(X: Floats, i: int, Z: Floats, j: int) -> Any:
    """Inner product of two rows."""
    total = 0.0
    for c in range(X.shape[1]):
        total += X[i, c] * Z[j, c]
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def squared_distance(X: Floats, i: int, Z: Floats, j: int) -> Any:
    """Squared distance of two rows."""
    total = 0.0
    for c in range(X.shape[1]):
        total += (X[i, c] - Z[j, c]) ** 2
    return total


@compiled
def squared_norms(kind: int, X: Floats) -> Floats:
    """Inner product of each row with itself.

    Where they are not subtracted from those of pairs (RBF), they are computed by the routine that libsvm calls: single
    precision hides the last bit of all other kernel values, but not of these.
    """
    out = np.empty(len(X))
    for z in range(len(X)):
        out[z] = inner_product(X, z, X, z) if kind == RBF else np.dot(X[z], X[z])
    return out


@compiled
def finish_row(kernel: Kernel, gamma: float, norms: Floats, z: int, players: Indices, line: Floats) -> None:
    """Turn inner products of a training row with others into kernel values, by libsvm's formula.

    They are rounded to single precision later, which hides what a fast exponential makes of the last bits.
    """
    kind = kernel[0]
    if kind == RBF:
        for i in range(len(players)):
            line[i] = -gamma * (norms[z] + norms[players[i]] - 2.0 * line[i])
        exponentiate(line, len(players))
    else:
        apply_kernel(kernel, gamma, line, len(players))


@compiled
def read_row(
    kernel: Kernel, gamma: float, X: Floats, gram: Floats, norms: Floats, z: int, players: Indices, line: Floats
) -> None:
    """Kernel values of a training row with others."""
    finished = kernel[3]
    for i in range(len(players)):
        line[i] = gram[z, players[i]] if len(gram) > 0 else inner_product(X, z, X, players[i])
    if not finished:
        finish_row(kernel, gamma, norms, z, players, line)


@compiled
def read_diagonal(kernel: Kernel, gamma: float, gram: Floats, norms: Floats, players: Indices, line: Floats) -> None:
    """Kernel value of each row with itself."""
    kind, _, _, finished = kernel
    for i in range(len(players)):
        z = players[i]
        line[i] = gram[z, z] if finished else 0.0 if kind == RBF else norms[z]
    if not finished:
        apply_kernel(kernel, gamma, line, len(players))


@compiled
def read_test(
    kernel: Kernel, gamma: float, X: Floats, X_test: Floats, cross: Floats, t: int, players: Indices, line: Floats
) -> None:
    """Kernel values of a test row with training rows."""
    kind, _, _, finished = kernel
    for i in range(len(players)):
        z = players[i]
        if len(cross) > 0:
            line[i] = cross[t, z]
        else:
            line[i] = squared_distance(X_test, t, X, z) if kind == RBF else inner_product(X_test, t, X, z)
    if not finished:
        apply_kernel(kernel, gamma, line, len(players))


@compiled
def learn_pairs(kernel: Kernel, gamma: float, rows: Rows, players: Indices, todo: Ints) -> None:
    """Fill the pairs of `players[todo]` with the players before them, and with all test rows."""
    kind, _, _, finished = kernel
    X, X_test, gram, cross, norms = rows
    line = np.empty(max(len(players), len(X_test)))
    for last in todo:
        z = players[last]
        for i in range(last):
            line[i] = inner_product(X, z, X, players[i])
        line[last] = norms[z]
        if finished:
            finish_row(kernel, gamma, norms, z, players[: last + 1], line)
        for i in range(last + 1):
            gram[z, players[i]] = gram[players[i], z] = line[i]
        for t in range(len(X_test)):
            line[t] = squared_distance(X_test, t, X, z) if kind == RBF else inner_product(X_test, t, X, z)
        if finished:
            apply_kernel(kernel, gamma, line, len(X_test))
        for t in range(len(X_test)):
            cross[t, z] = line[t]


@compiled
def fill_row(
    kernel: Kernel,
    gamma: float,
    X: Floats,
    gram: Floats,
    norms: Floats,
    players: Indices,
    r: int,
    line: Floats,
    values: AnyArray,
) -> Any:
    """Fill a row of a coalition's kernel values; false if one is too large for single precision."""
    read_row(kernel, gamma, X, gram, norms, players[r], players, line)
    largest = bits(0.0)
    for i in range(len(players)):
        largest = max(largest, bits(abs(line[i])))
        values[r, i] = line[i]
    for i in range(len(players), values.shape[1]):
        values[r, i] = 0.0
    return largest <= bits(LARGEST)


@compiled
def fetch(
    kernel: Kernel,
    gamma: float,
    X: Floats,
    gram: Floats,
    norms: Floats,
    players: Indices,
    line: Floats,
    has: AnyArray,
    values: AnyArray,
    first: int,
    n_first: int,
    second: int,
    n_second: int,
    v: int,
    ready: AnyArray,
    matrix: AnyArray,
    takes_all: bool,
) -> Any:
    """Have the row of a variable in the machine's matrix; false if a value is too large for single precision."""
    r = first + v if v < n_first else second + v - n_first
    if not has[r] and not fill_row(kernel, gamma, X, gram, norms, players, r, line, values):
        return False
    if not takes_all:
        for i in range(n_first):
            matrix[v, i] = values[r, first + i]
        for i in range(n_second):
            matrix[v, n_first + i] = values[r, second + i]
        for i in range(n_first + n_second, matrix.shape[1]):
            matrix[v, i] = 0.0
    has[r] = ready[v] = True
    return True


@compiled
def release(v: int, n_first: int, C: float, alpha: Floats, up: Floats, down: Floats) -> None:
    """Say which way a variable may go."""
    grow = 0.0 if alpha[v] < C else -np.inf
    shrink = 0.0 if alpha[v] > 0 else -np.inf
    up[v], down[v] = (grow, shrink) if v < n_first else (shrink, grow)


@compiled
def rank_rises(width: int, slope: Floats, up: Floats, key: Ints) -> Any:
    """Rank of the gain of each variable by rising, and the best."""
    best = rank(-np.inf)
    for v in range(width):
        key[v] = rank(up[v] - slope[v])
        best = max(best, key[v])
    return best


@compiled
def follow(
    width: int,
    i: int,
    j: int,
    by_i: float,
    by_j: float,
    matrix: AnyArray,
    slope: Floats,
    up: Floats,
    key: Ints,
) -> Any:
    """Change the slopes as two variables have moved; then as `rank_rises`."""
    best = rank(-np.inf)
    for v in range(width):
        new = slope[v] + (matrix[i, v] * by_i + matrix[j, v] * by_j)
        rise = rank(up[v] - new)
        slope[v] = new
        key[v] = rise
        best = max(best, rise)
    return best


@compiled
def find(best: int, width: int, key: Ints, place: Ints, order: Ints) -> Any:
    """The variable with the best key, the last in order of equals."""
    last = -1
    for v in range(width):
        last = max(last, place[v] if key[v] == best else -1)
    return order[last]


@compiled
def find_partner(
    width: int,
    i: int,
    tol: float,
    matrix: AnyArray,
    diagonal: Floats,
    slope: Floats,
    down: Floats,
    key: Ints,
    place: Ints,
    order: Ints,
) -> Any:
    """The variable whose fall promises most while `i` rises; −1 if no pair promises more than the tolerance."""
    top, own = -slope[i], diagonal[i]
    best = bits(-1.0)
    for v in range(width):
        drop = top + slope[v] + down[v]
        curvature = own + diagonal[v] - 2.0 * matrix[i, v]
        curvature = curvature if curvature > 0 else LEAST_CURVATURE
        promise = bits((drop * drop if drop > 0 else -1.0) / curvature)
        key[v] = promise
        best = max(best, promise)
    if best < 0:
        return -1
    j = find(best, width, key, place, order)
    if top + slope[j] < tol:
        most = rank(-np.inf)
        for v in range(width):
            most = max(most, rank(top + slope[v] + down[v]))
        if most < rank(tol):
            return -1
    return j


@compiled
def bounded(old_i: float, old_j: float, i: float, j: float, opposite: bool, C: float) -> Any:
    """Two variables after a move, brought back between 0 and `C` along the line of the move."""
    if opposite:
        difference = old_i - old_j
        if difference > 0:
            if j < 0:
                i, j = difference, 0.0
            if i > C:
                i, j = C, C - difference
        else:
            if i < 0:
                i, j = 0.0, -difference
            if j > C:
                i, j = C + difference, C
    else:
        total = old_i + old_j
        if total > C:
            if i > C:
                i, j = C, total - C
            if j > C:
                i, j = total - C, C
        else:
            if j < 0:
                i, j = total, 0.0
            if i < 0:
                i, j = 0.0, total
    return i, j


@compiled
def is_settled(v: int, most_up: float, most_down: float, slope: Floats, up: Floats, down: Floats) -> Any:
    """Whether a variable is pushed against a bound by more than any that may move is pushed."""
    if up[v] < 0:
        return -slope[v] > most_up
    return down[v] < 0 and slope[v] > most_down


@compiled
def set_aside(
    n: int,
    n_active: int,
    most_up: float,
    most_down: float,
    slope: Floats,
    up: Floats,
    down: Floats,
    place: Ints,
    order: Ints,
) -> Any:
    """Set settled variables aside, behind the active ones in order; returns the number of those."""
    p = 0
    while p < n_active:
        if is_settled(order[p], most_up, most_down, slope, up, down):
            n_active -= 1
            while n_active > p and is_settled(order[n_active], most_up, most_down, slope, up, down):
                n_active -= 1
            order[p], order[n_active] = order[n_active], order[p]
        p += 1
    for p in range(n):
        v = order[p]
        place[v] = p
        if p >= n_active:
            up[v] = down[v] = -np.inf
    return n_active


@compiled
def add_bound(
    width: int, v: int, sign: float, old: float, new: float, C: float, matrix: AnyArray, bound_slope: Floats
) -> None:
    """Keep the slopes that the variables at the bound `C` make, where one of them comes or goes."""
    if (old >= C) != (new >= C):
        by = sign * C if new >= C else -sign * C
        for w in range(width):
            bound_slope[w] += by * matrix[v, w]


@compiled
def take_back(
    n: int,
    n_active: int,
    n_first: int,
    C: float,
    matrix: AnyArray,
    alpha: Floats,
    slope: Floats,
    first_slope: Floats,
    bound_slope: Floats,
    up: Floats,
    down: Floats,
    order: Ints,
) -> None:
    """Take the variables that were set aside back in; their slopes are summed anew, for the same last bits."""
    for p in range(n_active, n):
        w = order[p]
        slope[w] = bound_slope[w] + first_slope[w]
        for q in range(n_active):
            v = order[q]
            if 0 < alpha[v] < C:
                slope[w] += (alpha[v] if v < n_first else -alpha[v]) * matrix[v, w]
        release(w, n_first, C, alpha, up, down)


@compiled
def offset_of(n: int, slope: Floats, up: Floats, down: Floats, order: Ints) -> Any:
    """The mean slope of the variables between their bounds, else the middle of where it may be."""
    low, high, total, n_free = -np.inf, np.inf, 0.0, 0
    for p in range(n):
        v = order[p]
        if up[v] == down[v]:
            total += slope[v]
            n_free += 1
        elif up[v] < 0:
            low = max(low, slope[v])
        else:
            high = min(high, slope[v])
    return total / n_free if n_free > 0 else (low + high) / 2


@compiled
def solve(
    kernel: Kernel,
    gamma: float,
    X: Floats,
    gram: Floats,
    norms: Floats,
    coalition: CoalitionScratch,
    n_rows: int,
    first: int,
    n_first: int,
    second: int,
    n_second: int,
    C: float,
    tol: float,
    shrinking: bool,
    machine: MachineScratch,
) -> Any:
    """Train a machine; returns its offset, NaN if a kernel value is too large, and leaves its variables.

    The variables are the rows of the coalition from `first` on, `n_first` of them, then those from `second` on.
    The slopes in `machine` are those where all variables are 0.
    """
    n = n_first + n_second
    width = padded(n)
    all_players, own, line, has, all_values = coalition
    players = all_players[:n_rows]
    values = all_values[: n_rows * padded(n_rows)].reshape(n_rows, padded(n_rows))
    alpha, slope, first_slope, bound_slope, up, down, diagonal, key, place, order, is_ready, room = machine
    takes_all = n == n_rows and second == n_first
    matrix = values if takes_all else room[: n * width].reshape(n, width)
    ready = has if takes_all else is_ready
    for v in range(n):
        alpha[v] = 0.0
        diagonal[v] = own[first + v if v < n_first else second + v - n_first]
        place[v] = order[v] = v
        ready[v] = False
        release(v, n_first, C, alpha, up, down)
    for v in range(n, width):
        slope[v] = diagonal[v] = 0.0
        up[v] = down[v] = -np.inf
        place[v] = -1
    for v in range(width):
        first_slope[v] = slope[v]
        bound_slope[v] = 0.0
    n_active, widened = n, False
    until = min(n, PERIOD) + 1
    best = rank_rises(width, slope, up, key)
    while True:
        until -= 1
        if shrinking and until == 0:
            until = min(n, PERIOD)
            most_up = most_down = -np.inf
            for v in range(n):
                most_up = max(most_up, up[v] - slope[v])
                most_down = max(most_down, down[v] + slope[v])
            if not widened and most_up + most_down <= 10 * tol:
                widened = True
                take_back(n, n_active, n_first, C, matrix, alpha, slope, first_slope, bound_slope, up, down, order)
                n_active = n
            n_active = set_aside(n, n_active, most_up, most_down, slope, up, down, place, order)
            best = rank_rises(width, slope, up, key)
        i = j = -1
        while j < 0:
            if best > rank(-np.inf):
                i = find(best, width, key, place, order)
                if not ready[i] and not fetch(
                    kernel, gamma, X, gram, norms, players, line, has, values,
                    first, n_first, second, n_second, i, ready, matrix, takes_all,
                ):  # fmt: skip
                    return np.nan
                j = find_partner(width, i, tol, matrix, diagonal, slope, down, key, place, order)
            if j < 0:
                if n_active == n:
                    return offset_of(n, slope, up, down, order)
                take_back(n, n_active, n_first, C, matrix, alpha, slope, first_slope, bound_slope, up, down, order)
                n_active, until = n, 1
                best = rank_rises(width, slope, up, key)
        if not ready[j] and not fetch(
            kernel, gamma, X, gram, norms, players, line, has, values,
            first, n_first, second, n_second, j, ready, matrix, takes_all,
        ):  # fmt: skip
            return np.nan
        sign_i, sign_j = 1.0 if i < n_first else -1.0, 1.0 if j < n_first else -1.0
        curvature = diagonal[i] + diagonal[j] - 2.0 * matrix[i, j]
        step = (slope[j] - slope[i]) / (curvature if curvature > 0 else LEAST_CURVATURE)
        old_i, old_j = alpha[i], alpha[j]
        alpha[i], alpha[j] = bounded(old_i, old_j, old_i + sign_i * step, old_j - sign_j * step, sign_i != sign_j, C)
        release(i, n_first, C, alpha, up, down)
        release(j, n_first, C, alpha, up, down)
        if shrinking:
            add_bound(width, i, sign_i, old_i, alpha[i], C, matrix, bound_slope)
            add_bound(width, j, sign_j, old_j, alpha[j], C, matrix, bound_slope)
        by_i, by_j = sign_i * (alpha[i] - old_i), sign_j * (alpha[j] - old_j)
        best = follow(width, i, j, by_i, by_j, matrix, slope, up, key)


@compiled
def train_regressors(
    indptr: Ints,
    players: Indices,
    test_indptr: Ints,
    tests: Indices,
    todo: Ints,
    kernel: Kernel,
    gammas: Floats,
    rows: Rows,
    y: Floats,
    C: float,
    epsilon: float,
    tol: float,
    shrinking: bool,
    out: Floats,
) -> None:
    """Train a machine on each coalition and write its predictions, NaN where a kernel value is too large."""
    X, X_test, gram, cross, norms = rows
    most = largest_coalition(indptr, todo)
    coalition, machine = make_scratch(most, 2 * most)
    vectors = np.empty(most, dtype=np.int32)
    weights = np.empty(most)
    ordered, own, line, has, _ = coalition
    alpha, slope = machine[:2]
    starts = np.zeros(2, dtype=np.int64)
    for k in range(len(todo)):
        c, gamma = todo[k], gammas[k]
        members = players[indptr[c] : indptr[c + 1]]
        n = len(members)
        ordered[:n] = members
        has[:n] = False
        read_diagonal(kernel, gamma, gram, norms, members, own)
        for i in range(n):
            slope[i] = epsilon - y[members[i]]
            slope[n + i] = -(epsilon + y[members[i]])
        offset = solve(
            kernel, gamma, X, gram, norms, coalition, n, starts[0], n, starts[1], n, C, tol, shrinking, machine
        )
        n_vectors = 0
        for i in range(n):
            weight = alpha[i] - alpha[n + i]
            if weight != 0:
                vectors[n_vectors] = members[i]
                weights[n_vectors] = weight
                n_vectors += 1
        for t in range(test_indptr[c], test_indptr[c + 1]):
            read_test(kernel, gamma, X, X_test, cross, tests[t], vectors[:n_vectors], line)
            total = 0.0
            for i in range(n_vectors):
                total += weights[i] * line[i]
            out[t] = total - offset


@compiled
def group_by_class(members: Indices, codes: Ints, count: Ints, present: Ints, starts: Ints, players: Indices) -> Any:
    """Write the rows class by class to `players`; returns the number of classes (`present`, from `starts` on)."""
    count[:] = 0
    for z in members:
        count[codes[z]] += 1
    n_present, start = 0, 0
    for code in range(len(count)):
        if count[code] > 0:
            present[n_present] = code
            starts[n_present] = start
            start += count[code]
            count[code] = starts[n_present]
            n_present += 1
    starts[n_present] = start
    for z in members:
        players[count[codes[z]]] = z
        count[codes[z]] += 1
    return n_present


@compiled
def train_classifiers(
    indptr: Ints,
    players: Indices,
    test_indptr: Ints,
    tests: Indices,
    todo: Ints,
    kernel: Kernel,
    gammas: Floats,
    rows: Rows,
    codes: Ints,
    C: float,
    tol: float,
    shrinking: bool,
    form: int,
    out: Floats,
) -> None:
    """Train a machine on each pair of classes of each coalition and write what they predict together.

    A row of `out` has the votes for each class, decision values or probabilities, whichever `form` says; NaN where a
    kernel value is too large.
    """
    X, X_test, gram, cross, norms = rows
    n_classes = out.shape[1]
    most = largest_coalition(indptr, todo)
    most_classes = min(most, n_classes)
    coalition, machine = make_scratch(most, most)
    count = np.empty(n_classes, dtype=np.int64)
    present = np.empty(most_classes, dtype=np.int64)
    starts = np.empty(most_classes + 1, dtype=np.int64)
    # In the machine of classes a < b, the weights of the rows of a are in line b − 1, those of the rows of b in line a.
    weights = np.empty((most_classes - 1, most))
    offsets = np.empty(most_classes * (most_classes - 1) // 2)
    vectors = np.empty(most, dtype=np.int32)
    votes = np.empty(most_classes)
    decision = np.empty(most_classes)
    grouped, own, line, has, _ = coalition
    alpha, slope = machine[:2]
    for k in range(len(todo)):
        c, gamma = todo[k], gammas[k]
        members = players[indptr[c] : indptr[c + 1]]
        n = len(members)
        n_present = group_by_class(members, codes, count, present, starts, grouped)
        has[:n] = False
        read_diagonal(kernel, gamma, gram, norms, grouped[:n], own)
        pair = 0
        for a in range(n_present):
            n_a = starts[a + 1] - starts[a]
            for b in range(a + 1, n_present):
                n_b = starts[b + 1] - starts[b]
                slope[:n_a] = -1.0
                slope[n_a : n_a + n_b] = 1.0
                offsets[pair] = solve(
                    kernel,
                    gamma,
                    X,
                    gram,
                    norms,
                    coalition,
                    n,
                    starts[a],
                    n_a,
                    starts[b],
                    n_b,
                    C,
                    tol,
                    shrinking,
                    machine,
                )
                for i in range(n_a):
                    weights[b - 1, starts[a] + i] = alpha[i]
                for i in range(n_b):
                    weights[a, starts[b] + i] = -alpha[n_a + i]
                pair += 1
        if math.isnan(offsets[:pair].sum()):
            out[test_indptr[c] : test_indptr[c + 1]] = np.nan
            continue
        n_vectors = keep_vectors(weights, starts, n_present, grouped, vectors)
        for t in range(test_indptr[c], test_indptr[c + 1]):
            read_test(kernel, gamma, X, X_test, cross, tests[t], vectors[:n_vectors], line)
            decide(line, weights, offsets, starts, form, n_present, votes, decision)
            write(decision, present, n_present, form, t, out)


@compiled
def keep_vectors(weights: Floats, starts: Ints, n_present: int, grouped: Indices, vectors: Indices) -> Any:
    """Drop the rows that have no weight in any machine; returns the number of those that are left."""
    n_vectors, start = 0, 0
    for a in range(n_present):
        stop = starts[a + 1]
        starts[a] = n_vectors
        for i in range(start, stop):
            counts = False
            for b in range(n_present - 1):
                counts |= weights[b, i] != 0
            if counts:
                vectors[n_vectors] = grouped[i]
                for b in range(n_present - 1):
                    weights[b, n_vectors] = weights[b, i]
                n_vectors += 1
        start = stop
    starts[n_present] = n_vectors
    return n_vectors


@compiled
def decide(
    line: Floats,
    weights: Floats,
    offsets: Floats,
    starts: Ints,
    form: int,
    n_present: int,
    votes: Floats,
    decision: Floats,
) -> None:
    """Votes of the machines for the classes of a coalition, or decision values as scikit-learn makes them."""
    for a in range(n_present):
        votes[a] = decision[a] = 0.0
    pair = 0
    for a in range(n_present):
        for b in range(a + 1, n_present):
            total = 0.0
            for i in range(starts[a], starts[a + 1]):
                total += weights[b - 1, i] * line[i]
            for i in range(starts[b], starts[b + 1]):
                total += weights[a, i] * line[i]
            total -= offsets[pair]
            # Where a machine is undecided, libsvm's label goes to the second class, scikit-learn's vote to the first.
            votes[a if total > 0 or (total == 0 and form != LABEL) else b] += 1.0
            decision[a] += total
            decision[b] -= total
            pair += 1
    for a in range(n_present):
        if form == LABEL:
            decision[a] = votes[a]
        elif n_present == 2:
            decision[a] /= 2
        else:
            decision[a] = votes[a] + decision[a] / (3 * (abs(decision[a]) + 1))


@compiled
def write(decision: Floats, present: Ints, n_present: int, form: int, t: int, out: Floats) -> None:
    """Write a prediction: a class that the coalition lacks has no votes, the least decision value, probability 0."""
    largest = least = decision[0]
    for a in range(n_present):
        largest = max(largest, decision[a])
        least = min(least, decision[a])
    out[t] = least if form == MARGIN else 0.0
    total = 0.0
    for a in range(n_present):
        value = math.exp(decision[a] - largest) if form == PROBABILITY else decision[a]
        out[t, present[a]] = value
        total += value
    if form == PROBABILITY:
        for a in range(n_present):
            out[t, present[a]] /= total
