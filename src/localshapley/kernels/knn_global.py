"""Shapley values of nearest-neighbour games over all training rows, in closed form."""

from __future__ import annotations

import numpy as np

from localshapley.arrays import Floats, Indices, Ints, Masks
from localshapley.kernels.jit import kernel, part, section


@kernel()
def add_knn_values(
    away: Floats,
    keys: Masks,
    mask: int,
    doubt: float,
    rows: tuple[Floats, Floats],
    labels: tuple[Ints, Ints],
    share: Floats,
    exact: Floats,
    bundle: Ints,
    sums: Floats,
) -> None:
    """Add the values of a block of test rows: Jia's recursion, from the farthest row to the nearest.

    Parameters
    ----------
    away : distances of test rows to training rows
    keys : the leading bits of a distance, and under `mask` the index of the row; sorted, for each test row
    doubt : distances that differ by less are measured again
    rows, labels : features and class codes, of training and of test rows
    share : `1 / max(i, K)` for the `i`-th nearest row
    exact : room for a distance of each row
    bundle : of each test row
    sums : of the values, of their squares, and of the values to each bundle
    """
    codes, truths = labels
    n = away.shape[1]
    low = np.uint64(mask)
    for t in range(len(away)):
        sort_exactly(away[t], keys[t], low, doubt, rows[0], rows[1][t], exact)
        value = 0.0
        right = 0.0
        for i in range(n - 1, -1, -1):
            z = keys[t, i] & low
            own = 1.0 if codes[z] == truths[t] else 0.0
            value += (own - right) * share[i]
            right = own
            sums[0, z] += value
            sums[1, z] += value * value
            sums[2 + bundle[t], z] += value


@section()
def sort_exactly(
    away: Floats, keys: Masks, low: np.uint64, doubt: float, rows: Floats, test_row: Floats, exact: Floats
) -> None:
    """Put roughly sorted keys into the order of distance, then index.

    Where two distances differ by less than `doubt` they are measured again (`exact` holds what was measured).
    """
    n = len(keys)
    for i in range(n):
        exact[i] = -1.0
    for i in range(1, n):
        key = keys[i]
        z = key & low
        at = i
        while at > 0:
            other = keys[at - 1] & low
            d, e = away[z], away[other]
            if e < d - doubt:
                break
            if doubt > 0:
                for row in (z, other):
                    if exact[row] < 0:
                        exact[row] = squared_distance(rows[row], test_row)
                d, e = exact[z], exact[other]
            if e < d or (e == d and other < z):
                break
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key


@part()
def squared_distance(x: Floats, y: Floats) -> float:
    """Squared Euclidean distance of two rows."""
    total = 0.0
    for j in range(len(x)):
        total += (x[j] - y[j]) * (x[j] - y[j])
    return total


@kernel()
def add_threshold_values(
    indptr: Ints, rows: Indices, codes: Ints, truths: Ints, nothing: float, bundle: Ints, sums: Floats
) -> None:
    """Add the values of a block of test rows to `sums`, as above, given the training rows within the radius of each."""
    for t in range(len(truths)):
        c = indptr[t + 1] - indptr[t]
        if c == 0:
            continue
        right = 0
        harmonic = 0.0
        for i in range(indptr[t], indptr[t + 1]):
            right += codes[rows[i]] == truths[t]
            harmonic += 1 / (i - indptr[t] + 1)
        for i in range(indptr[t], indptr[t + 1]):
            own = 1.0 if codes[rows[i]] == truths[t] else 0.0
            others = (right - own) / (c - 1) if c > 1 else 0.0
            value = (own - nothing + (own - others) * (harmonic - 1)) / c
            sums[0, rows[i]] += value
            sums[1, rows[i]] += value * value
            sums[2 + bundle[t], rows[i]] += value
