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

from typing import Any, TypeAlias

import numpy as np
from numba import types
from numba.extending import intrinsic

from localshapley.arrays import AnyArray, Floats, Indices, Ints
from localshapley.kernels.gram import LANES, LARGEST, Source, compiled, padded, read_row

PERIOD = 1000
"""Variables are set aside after so many steps, or as many as there are variables."""
LEAST_CURVATURE = 1e-12

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
Groups: TypeAlias = tuple[int, int, int, int]
"""`first`, `n_first`, `second`, `n_second`: the variables are the rows of the coalition from `first` on, `n_first` of
them, then those from `second` on."""
Bounds: TypeAlias = tuple[float, float]
"""`C` for the variables of sign +1 and for those of sign −1: classes may have weights."""
Settings: TypeAlias = tuple[float, float, bool]
"""`C`, `tol` and `shrinking`, as scikit-learn has them."""


def make_scratch(n_rows: int, n_variables: int) -> tuple[CoalitionScratch, MachineScratch]:
    """Room for coalitions of up to `n_rows` rows and machines of up to `n_variables` variables."""
    stride, width = (-(-n // LANES) * LANES for n in (n_rows, n_variables))
    coalition = (
        np.empty(n_rows, dtype=np.int32),
        *np.empty((2, n_rows)),
        np.empty(n_rows, dtype=np.bool_),
        np.empty(n_rows * stride, dtype=np.float32),
    )
    machine = (
        np.empty(n_variables),
        *np.empty((6, width)),
        *np.empty((2, width), dtype=np.int64),
        np.empty(n_variables, dtype=np.int64),
        np.empty(n_variables, dtype=np.bool_),
        np.empty(n_variables * width, dtype=np.float32),
    )
    return coalition, machine


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


@compiled
def fill_row(source: Source, coalition: CoalitionScratch, r: int) -> Any:
    """Fill a row of a coalition's kernel values; false if one is too large for single precision."""
    players, _, line, _, values = coalition
    read_row(source, players[r], players, line)
    largest = bits(0.0)
    for i in range(len(players)):
        largest = max(largest, bits(abs(line[i])))
        values[r, i] = line[i]
    for i in range(len(players), values.shape[1]):
        values[r, i] = 0.0
    return largest <= bits(LARGEST)


@compiled
def fetch(
    source: Source,
    coalition: CoalitionScratch,
    groups: Groups,
    v: int,
    ready: AnyArray,
    matrix: AnyArray,
    takes_all: bool,
) -> Any:
    """Have the row of a variable in the machine's matrix; false if a value is too large for single precision."""
    _, _, _, has, values = coalition
    first, n_first, second, n_second = groups
    r = first + v if v < n_first else second + v - n_first
    if not has[r] and not fill_row(source, coalition, r):
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
def bound_of(v: int, n_first: int, bounds: Bounds) -> Any:
    """The bound of a variable."""
    return bounds[0] if v < n_first else bounds[1]


@compiled
def release(v: int, n_first: int, bounds: Bounds, alpha: Floats, up: Floats, down: Floats) -> None:
    """Say which way a variable may go."""
    grow = 0.0 if alpha[v] < bound_of(v, n_first, bounds) else -np.inf
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
def bounded(old_i: float, old_j: float, i: float, j: float, opposite: bool, C_i: float, C_j: float) -> Any:
    """Two variables after a move, brought back between 0 and their bounds along the line of the move."""
    if opposite:
        difference = old_i - old_j
        if difference > 0:
            if j < 0:
                i, j = difference, 0.0
        elif i < 0:
            i, j = 0.0, -difference
        if difference > C_i - C_j:
            if i > C_i:
                i, j = C_i, C_i - difference
        elif j > C_j:
            i, j = C_j + difference, C_j
    else:
        total = old_i + old_j
        if total > C_i:
            if i > C_i:
                i, j = C_i, total - C_i
        elif j < 0:
            i, j = total, 0.0
        if total > C_j:
            if j > C_j:
                i, j = total - C_j, C_j
        elif i < 0:
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
def take_back(n: int, n_active: int, n_first: int, bounds: Bounds, matrix: AnyArray, machine: MachineScratch) -> None:
    """Take the variables that were set aside back in; their slopes are summed anew, for the same last bits."""
    alpha, slope, first_slope, bound_slope, up, down, _, _, _, order, _, _ = machine
    for p in range(n_active, n):
        w = order[p]
        slope[w] = bound_slope[w] + first_slope[w]
        for q in range(n_active):
            v = order[q]
            if 0 < alpha[v] < bound_of(v, n_first, bounds):
                slope[w] += (alpha[v] if v < n_first else -alpha[v]) * matrix[v, w]
        release(w, n_first, bounds, alpha, up, down)


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
    source: Source,
    coalition: CoalitionScratch,
    n_rows: int,
    groups: Groups,
    bounds: Bounds,
    settings: Settings,
    machine: MachineScratch,
) -> Any:
    """Train a machine; returns its offset, NaN if a kernel value is too large, and leaves its variables.

    The slopes in `machine` are those where all variables are 0.
    """
    first, n_first, second, n_second = groups
    _, tol, shrinking = settings
    n = n_first + n_second
    width = padded(n)
    players, own, line, has, all_values = coalition
    values = all_values[: n_rows * padded(n_rows)].reshape(n_rows, padded(n_rows))
    rows = players[:n_rows], own, line, has, values
    alpha, slope, first_slope, bound_slope, up, down, diagonal, key, place, order, is_ready, room = machine
    takes_all = n == n_rows and second == n_first
    matrix = values if takes_all else room[: n * width].reshape(n, width)
    ready = has if takes_all else is_ready
    for v in range(n):
        alpha[v] = 0.0
        diagonal[v] = own[first + v if v < n_first else second + v - n_first]
        place[v] = order[v] = v
        ready[v] = False
        release(v, n_first, bounds, alpha, up, down)
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
                take_back(n, n_active, n_first, bounds, matrix, machine)
                n_active = n
            n_active = set_aside(n, n_active, most_up, most_down, slope, up, down, place, order)
            best = rank_rises(width, slope, up, key)
        i = j = -1
        while j < 0:
            if best > rank(-np.inf):
                i = find(best, width, key, place, order)
                if not ready[i] and not fetch(source, rows, groups, i, ready, matrix, takes_all):
                    return np.nan
                j = find_partner(width, i, tol, matrix, diagonal, slope, down, key, place, order)
            if j < 0:
                if n_active == n:
                    return offset_of(n, slope, up, down, order)
                take_back(n, n_active, n_first, bounds, matrix, machine)
                n_active, until = n, 1
                best = rank_rises(width, slope, up, key)
        if not ready[j] and not fetch(source, rows, groups, j, ready, matrix, takes_all):
            return np.nan
        sign_i, sign_j = 1.0 if i < n_first else -1.0, 1.0 if j < n_first else -1.0
        curvature = diagonal[i] + diagonal[j] - 2.0 * matrix[i, j]
        step = (slope[j] - slope[i]) / (curvature if curvature > 0 else LEAST_CURVATURE)
        old_i, old_j = alpha[i], alpha[j]
        C_i, C_j = bound_of(i, n_first, bounds), bound_of(j, n_first, bounds)
        new_i, new_j = old_i + sign_i * step, old_j - sign_j * step
        alpha[i], alpha[j] = bounded(old_i, old_j, new_i, new_j, sign_i != sign_j, C_i, C_j)
        release(i, n_first, bounds, alpha, up, down)
        release(j, n_first, bounds, alpha, up, down)
        if shrinking:
            add_bound(width, i, sign_i, old_i, alpha[i], C_i, matrix, bound_slope)
            add_bound(width, j, sign_j, old_j, alpha[j], C_j, matrix, bound_slope)
        by_i, by_j = sign_i * (alpha[i] - old_i), sign_j * (alpha[j] - old_j)
        best = follow(width, i, j, by_i, by_j, matrix, slope, up, key)
