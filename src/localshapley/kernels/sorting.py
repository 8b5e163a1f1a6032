"""Scikit-learn's sort of a column: rows with equal values come out in its order.

Introsort: quicksort in three ways (below, equal, above) around a median of three, insertion sort for short stretches,
heapsort for stretches that were divided too often. How long a short stretch is depends on the version of scikit-learn.
"""

from __future__ import annotations

from localshapley.arrays import Ints, Singles
from localshapley.kernels.cuts import Slots
from localshapley.kernels.jit import part

MOST_PENDING = 128
"""No more stretches wait: each has been divided once more than the one before, at most `2·log₂(n)` times."""


@part(inlined=False)
def sort_rows(values: Singles, members: Slots, start: int, stop: int, short: int, pending: Ints) -> None:
    """Sort a stretch of values, and the rows with them.

    Up to `short` values are sorted by insertion. `pending` is room of shape (MOST_PENDING, 3).
    """
    limit, rest = 0, stop - start
    while rest > 1:
        rest >>= 1
        limit += 2
    height = 0
    while True:
        while stop - start > short and limit > 0:
            limit -= 1
            below, above = divide(values, members, start, stop)
            pending[height, 0], pending[height, 1], pending[height, 2] = start, below, limit
            height += 1
            start = above
        if stop - start > short:
            sort_by_heap(values, members, start, stop)
        else:
            sort_by_insertion(values, members, start, stop)
        if height == 0:
            return
        height -= 1
        start, stop, limit = pending[height, 0], pending[height, 1], pending[height, 2]


@part()
def divide(values: Singles, members: Slots, start: int, stop: int) -> tuple[int, int]:
    """Move values below the median of three to the front, those above it to the end; returns where its equals are."""
    pivot = median_of_three(values[start], values[start + (stop - start) // 2], values[stop - 1])
    i, below, above = start, start, stop
    while i < above:
        if values[i] < pivot:
            exchange(values, members, i, below)
            i += 1
            below += 1
        elif values[i] > pivot:
            above -= 1
            exchange(values, members, i, above)
        else:
            i += 1
    return below, above


@part()
def median_of_three(a: float, b: float, c: float) -> float:
    """The median of three numbers."""
    return max(min(a, b), min(max(a, b), c))


@part()
def exchange(values: Singles, members: Slots, i: int, j: int) -> None:
    """Exchange two places."""
    values[i], values[j] = values[j], values[i]
    members[i], members[j] = members[j], members[i]


@part()
def sort_by_insertion(values: Singles, members: Slots, start: int, stop: int) -> None:
    """Insert one value after the other into those before it."""
    for i in range(start + 1, stop):
        value, row = values[i], members[i]
        j = i
        while j > start and values[j - 1] > value:
            values[j], members[j] = values[j - 1], members[j - 1]
            j -= 1
        values[j], members[j] = value, row


@part(inlined=False)
def sort_by_heap(values: Singles, members: Slots, start: int, stop: int) -> None:
    """Make a heap, and take the largest from it until it is empty."""
    n = stop - start
    root = n // 2
    while root > 0:
        root -= 1
        sift_down(values, members, start, root, n)
    for end in range(n - 1, 0, -1):
        exchange(values, members, start, start + end)
        sift_down(values, members, start, root, end)


@part()
def sift_down(values: Singles, members: Slots, start: int, root: int, end: int) -> None:
    """Let a value sink below the larger of its children until it is larger than both."""
    while True:
        child = 2 * root + 1
        largest = root
        if child < end and values[start + largest] < values[start + child]:
            largest = child
        if child + 1 < end and values[start + largest] < values[start + child + 1]:
            largest = child + 1
        if largest == root:
            return
        exchange(values, members, start + root, start + largest)
        root = largest
