"""Small matrices: products, Cholesky factors and what is solved with them.

Arrays to work in have `ROOM` beyond their largest use: four dot products are taken at a time, also where fewer are
left. What lies there is some finite number and enters no result.
"""

from __future__ import annotations

import math
from typing import Any

from localshapley.arrays import Floats, Ints
from localshapley.kernels.jit import part, section

ROOM = 8
DEPENDENT = 1e-13
"""Share of its squared length that a row must have apart from the rows before it, else it depends on them."""

# Sums may be taken in any order, always the same one: that is what makes loops over products fast. The order is chosen
# when a function is compiled; so it is compiled by itself and not with each kernel that calls it.
ARITHMETIC = {"contract", "reassoc", "nsz"}
compiled = part(inlined=False, error_model="numpy", fastmath=ARITHMETIC)
pasted = section(error_model="numpy", fastmath=ARITHMETIC)


@compiled
def dot(a: Floats, b: Floats, n: int) -> Any:
    """Dot product of the first `n` entries."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@compiled
def own_products(M: Floats, n: int, start: Ints, stop: int, out: Floats) -> None:
    """Write `M Mᵀ` (lower triangle) for `n` rows; row `i` of `M` is zero outside `start[i]` to `stop`."""
    for i in range(n):
        for l in range(0, i + 1, 4):
            out[i, l], out[i, l + 1], out[i, l + 2], out[i, l + 3] = four_dots(M, l, M, i, start[i], stop)


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


@pasted
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


@pasted
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
def balance(A: Floats, m: int, n: int) -> None:
    """Make `m` rows of `n` columns sum to zero: the last one follows from the others."""
    for i in range(n):
        A[m - 1, i] = 0.0
    for j in range(m - 1):
        for i in range(n):
            A[m - 1, i] -= A[j, i]


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
def transpose(M: Floats, n: int, p: int, out: Floats) -> None:
    """Write the transpose of `n` rows of `p` columns."""
    for i in range(n):
        for a in range(p):
            out[a, i] = M[i, a]


@compiled
def solve(S: Floats, n: int, b: Floats, L: Floats, width: Ints, start: Ints, out: Floats) -> None:
    """Solve `Sx = b` for a positive definite matrix (lower triangle). Overwrites `b`."""
    for i in range(n):
        for a in range(n):
            L[i, a] = 0.0
    q = factorise(S, n, 0, L, width, start)
    for a in range(q):
        b[a] = (b[start[a]] - dot(L[start[a]], b, a)) / L[start[a], a]
    substitute_back(L, 0, q, start, b, n, out)


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
    for i in range(n):
        out[i] = 0.0
    for a in range(q - 1, first - 1, -1):
        i = start[a]
        out[i] = b[a] / L[i, a]
        for c in range(first, a):
            b[c] -= L[i, c] * out[i]
