"""What a search finds, and how the findings in parts of the rows become those in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from localshapley.arrays import Floats, Indices, Ints


class Neighbours(NamedTuple):
    """The nearest rows of each query, nearest first, equally near ones by their number.

    Attributes
    ----------
    distances : array of shape (n_queries, k)
    rows : int array of shape (n_queries, k)
    """

    distances: Floats
    rows: Ints


def merge(parts: Sequence[Neighbours], k: int) -> Neighbours:
    """The `k` nearest rows of each query in all parts: the same bits as a search in all rows at once.

    Each part holds its own `k` nearest rows, or all that it has.

    >>> one = Neighbours(np.array([[0.5, 2.0]]), np.array([[3, 0]]))
    >>> two = Neighbours(np.array([[0.5, 1.0]]), np.array([[7, 9]]))
    >>> merge([two, one], 3).rows
    array([[3, 7, 9]])
    """
    distances = np.concatenate([part.distances for part in parts], axis=1)
    rows = np.concatenate([part.rows for part in parts], axis=1)
    order = np.lexsort((rows, distances), axis=1)[:, :k]
    return Neighbours(np.take_along_axis(distances, order, axis=1), np.take_along_axis(rows, order, axis=1))


def join(parts: Sequence[Sequence[Indices]]) -> list[Indices]:
    """The rows that `within` found for each query in all parts, given in the order of their rows."""
    return [np.concatenate(found) for found in zip(*parts, strict=True)]


def best_of(n_queries: int, k: int, query: Ints, row: Ints, distance: Floats) -> Neighbours:
    """The `k` nearest of the rows of each query, given as pairs; every query has at least `k`."""
    order = np.lexsort((row, distance, query))
    first = np.searchsorted(query[order], np.arange(n_queries))
    taken = order[first[:, None] + np.arange(k)]
    return Neighbours(distance[taken], row[taken])
