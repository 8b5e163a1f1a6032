"""Boosted trees whose structure is fixed: a leaf predicts `Σg / (λ + Σh)` over its rows in a coalition.

With `1/(λ + H) = ∫ exp(−τ(λ + H)) dτ`, and rows that join with probability `p`, expectations over coalitions are
products over the rows, and a Shapley value is an integral over `p` from 0 to 1 and over `τ` from 0 to ∞
(`docs/concepts/fixed-trees.md`).
"""

from __future__ import annotations

from math import exp, expm1
from typing import TypeAlias

from localshapley.arrays import CoalitionArrays, Floats, Ints, Lists
from localshapley.kernels.jit import kernel, part

Rules: TypeAlias = tuple[Ints, Ints, Floats, Floats]
"""`begins`, `ends`, `points`, `weights`: nodes of the quadrature over `p`, and which of them each leaf uses."""

STEP = 0.32
"""Of the trapezoidal rule in log τ; its error is exp(−π²/STEP), relative to each term."""
NEAR, FAR = 1e-7, 37.0
"""From where the integrand is constant up to its square, to where it is less than 1e-16."""
VANISHED = 50.0
"""The product over the rows is at most exp(−p·Σ(1 − exp(−τh))); beyond this it is nothing. Points are ascending."""


@kernel(error_model="numpy")
def value_rows_of_leaves(
    indptr: Ints,
    gradients: Floats,
    hessians: Floats,
    ridge: float,
    rules: Rules,
    room: Floats,
    out: Floats,
    squares: Floats,
) -> None:
    """Shapley values of the rows of each leaf in the game of what the leaf predicts, and in that of its square.

    Parameters
    ----------
    indptr : where the rows of each leaf begin in the other arrays
    ridge : λ; hessians are positive
    room : of shape (3, most rows of a leaf)
    squares : values of the square; left as they are where the hessians of a leaf differ
    """
    begins, ends, points, weights = rules
    for leaf in range(len(indptr) - 1):
        inside = slice(indptr[leaf], indptr[leaf + 1])
        g, h, values = gradients[inside], hessians[inside], out[inside]
        if len(g) == 0:
            continue
        least = h[0]
        is_equal = True
        total = ridge
        for z in range(len(h)):
            least = min(least, h[z])
            is_equal = is_equal and h[z] == h[0]
            total += h[z]
        if is_equal:
            value_equals(g, least, ridge, values, squares[inside])
        else:
            nodes = slice(begins[leaf], ends[leaf])
            integrate(g, h, (ridge, total, least), points[nodes], weights[nodes], room, values)


@part(error_model="numpy")
def value_equals(g: Floats, h: float, ridge: float, values: Floats, squares: Floats) -> None:
    """Values where all hessians are equal: sums over the sizes of coalitions."""
    n = len(g)
    first = second = 0.0
    own = others = own_square = both = others_square = spread = 0.0
    for s in range(n):
        first += g[s]
        second += g[s] * g[s]
        after = 1 / (ridge + h * (s + 1))
        own += after
        own_square += after * after
        both += 2 * s * after * after
        if s > 0:
            before = 1 / (ridge + h * s)
            others += s * (after - before)
            others_square += s * s * (after * after - before * before)
            spread += s * (n - 1 - s) * (after * after - before * before)
    for z in range(n):
        a = g[z]
        mean = (first - a) / (n - 1) if n > 1 else 0.0
        kappa = ((second - a * a) / (n - 1) - mean * mean) / (n - 2) if n > 2 else 0.0
        values[z] = (a * own + mean * others) / n
        squares[z] = (a * a * own_square + a * mean * both + mean * mean * others_square + kappa * spread) / n


@part(inlined=False, error_model="numpy")
def integrate(
    g: Floats,
    h: Floats,
    scales: tuple[float, float, float],
    points: Floats,
    weights: Floats,
    room: Floats,
    values: Floats,
) -> None:
    """Values by quadrature over `τ` and `p`, exact to about twelve digits.

    `scales` are λ, the sum of λ and the hessians, and the least hessian. At a node, row `j` is in the coalition with
    probability `p` and then weighs `exp(−τ·h_j)`.
    """
    ridge, total, least = scales
    lost, joined, inverse = room
    n = len(g)
    tau = NEAR / total
    growth = exp(STEP)
    for z in range(n):
        values[z] = STEP * tau * g[z] / (growth - 1)  # the nodes below: the integrand is g_z there
    while tau < growth * FAR / (ridge + least):
        scale = STEP * tau * exp(-tau * ridge)
        gone = 0.0
        for z in range(n):
            lost[z] = -expm1(-tau * h[z])
            gone += lost[z]
        for i in range(len(points)):
            p = points[i]
            if p * gone > VANISHED:
                break
            product = 1.0
            drawn = 0.0
            for z in range(n):
                factor = 1 - p * lost[z]
                product *= factor
                inverse[z] = 1 / factor
                joined[z] = g[z] * p * (1 - lost[z]) * inverse[z]
                drawn += joined[z]
            weight = scale * weights[i] * product
            if weight > 0:
                for z in range(n):
                    values[z] += weight * inverse[z] * ((1 - lost[z]) * g[z] - lost[z] * (drawn - joined[z]))
        tau *= growth


@kernel(error_model="numpy")
def score_boosted(
    coalitions: CoalitionArrays,
    leaves_of_tests: Lists,
    effects: Floats,
    rows: Lists,
    derivatives: tuple[Floats, Floats],
    of_leaves: tuple[Floats, Floats],
    start: Floats,
    last_in: Ints,
    out: Floats,
) -> None:
    """Score coalitions: what a test row has without any row, and what its leaves add; `last_in` is −1.

    Parameters
    ----------
    leaves_of_tests, effects : leaves that each test row reaches, and what a unit of their prediction adds
    derivatives : gradients and hessians of the rows in each leaf
    of_leaves : λ of each leaf, and what is taken off for the square of its prediction
    """
    gradients, hessians = derivatives
    ridges, bends = of_leaves
    indptr, players, test_indptr, tests = coalitions
    leaf_indptr, leaves = leaves_of_tests
    row_indptr, members = rows
    for c in range(len(indptr) - 1):
        for i in range(indptr[c], indptr[c + 1]):
            last_in[players[i]] = c
        for s in range(test_indptr[c], test_indptr[c + 1]):
            out[s] = start[tests[s]]
            for j in range(leaf_indptr[tests[s]], leaf_indptr[tests[s] + 1]):
                gradient = 0.0
                hessian = 0.0
                for i in range(row_indptr[leaves[j]], row_indptr[leaves[j] + 1]):
                    if last_in[members[i]] == c:
                        gradient += gradients[i]
                        hessian += hessians[i]
                if hessian > 0:
                    predicted = gradient / (ridges[leaves[j]] + hessian)
                    out[s] += (effects[j] - bends[leaves[j]] * predicted) * predicted
