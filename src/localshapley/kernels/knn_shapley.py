"""Shapley values of nearest-neighbour games over all training rows, in closed form."""

from __future__ import annotations

import numpy as np
from numba import njit

from localshapley.arrays import Floats, Ints, Masks


@njit(cache=True, nogil=True)
def add_knn_values(
    distances: Floats, keys: Masks, mask: int, codes: Ints, truths: Ints, n_neighbors: int, values: Floats
) -> None:
    """Add the values of a block of test rows: Jia's recursion, from the farthest row to the nearest.

    The keys of each test row are sorted: the leading bits of a distance, and under `mask` the index of the row. What
    the bits do not tell apart is put in order here, by distance and then by index.
    """
    n = distances.shape[1]
    low = np.uint64(mask)
    share = 1 / np.maximum(np.arange(1, n + 1), n_neighbors)
    for t in range(len(distances)):
        for i in range(1, n):
            if keys[t, i] | low != keys[t, i - 1] | low:
                continue
            key = keys[t, i]
            d = distances[t, key & low]
            at = i
            while at > 0 and keys[t, at - 1] | low == key | low and distances[t, keys[t, at - 1] & low] > d:
                keys[t, at] = keys[t, at - 1]
                at -= 1
            keys[t, at] = key
        value = 0.0
        right = 0.0
        for i in range(n - 1, -1, -1):
            z = keys[t, i] & low
            own = 1.0 if codes[z] == truths[t] else 0.0
            value += (own - right) * share[i]
            right = own
            values[z] += value


@njit(cache=True, nogil=True)
def add_threshold_values(indptr: Ints, rows: Ints, codes: Ints, truths: Ints, nothing: float, values: Floats) -> None:
    """Add the values of a block of test rows, given the training rows within the radius of each."""
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
            values[rows[i]] += (own - nothing + (own - others) * (harmonic - 1)) / c
