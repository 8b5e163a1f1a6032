"""Names for the array types that pass between the stages, and a few operations on them."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.floating[Any]]  # of 32 bits where precision does not matter, see `singles`
Ints: TypeAlias = NDArray[np.int64]  # offsets, counts
Indices: TypeAlias = NDArray[np.int32]  # players, test rows, games
Masks: TypeAlias = NDArray[np.uint64]
AnyArray: TypeAlias = NDArray[Any]
A = TypeVar("A", bound=AnyArray)

# Arrays that belong together travel as plain tuples: the cache of compiled code holds the classes of named ones, and
# fails where a later version renames one.
Lists: TypeAlias = tuple[Ints, Indices]
"""`indptr` and entries: lists of different lengths in one array; list `i` is `entries[indptr[i]:indptr[i + 1]]`."""
CoalitionArrays: TypeAlias = tuple[Ints, Indices, Ints, Indices]
"""`indptr`, `players`, `test_indptr`, `tests`: the players of each coalition and the test rows that it is scored on."""
SubsetArrays: TypeAlias = tuple[Ints, Indices, Ints, Indices]
"""`indptr`, `players`, `game_indptr`, `games`: the players of each subset and the games that hold it, ascending."""
BatchArrays: TypeAlias = tuple[Ints, Indices, Ints, Indices, Ints, Indices]
"""`indptr`, `players`, `test_indptr`, `tests`, `game_indptr`, `games`: coalitions with their test rows and games."""
GraphArrays: TypeAlias = tuple[Ints, Indices, Ints, Indices]
"""`indptr`, `players`, `where_indptr`, `where`: the players of each game and the games of each player, ascending."""
CollectionArrays: TypeAlias = tuple[Masks, Ints, Masks, Ints, Indices, Indices, Indices]
"""`words`, `table`, `keys`, `indptr`, `players`, `folds`, `last_game`: distinct subsets, one per row.

Two random words for each player; a hash table of the rows, and their keys, which are sums of words; the players of
each row, the folds that drew it (one bit each, negative where it was sure to be drawn), and the game that drew it
last.
"""


LEAST_SINGLE = 1e-15
"""Arrays whose largest number is between this and its inverse can be squared in 32 bits."""


def singles(numbers: AnyArray, order: Literal["K", "C"] = "K") -> Singles:
    """The numbers in 32 bits, or as they are where these have no room for their squares, or nearly none.

    >>> singles(np.array([0.5, 2.0])).dtype, singles(np.array([0.5, 1e40])).dtype, singles(np.array([1e-40])).dtype
    (dtype('float32'), dtype('float64'), dtype('float64'))
    """
    largest = max(float(numbers.max(initial=0.0)), -float(numbers.min(initial=0.0)))
    has_room = largest == 0 or LEAST_SINGLE <= largest <= 1 / LEAST_SINGLE
    return numbers.astype(np.float32 if has_room else np.float64, order=order)


def as_column(given: Any) -> AnyArray:
    """An array with its bytes in the order of this machine, where a table of one column counts as that column."""
    entries = np.asarray(given)
    entries = entries.astype(entries.dtype.newbyteorder("="), copy=False)
    return entries[:, 0] if entries.ndim == 2 and entries.shape[1] == 1 else entries


def rounded(values: Floats) -> Floats:
    """Values as shares of the largest, to nine digits: what ties up to rounding ties."""
    out: Floats = np.round(values / (float(np.abs(values).max(initial=0.0)) or 1.0), 9)
    return out


def offsets(counts: AnyArray) -> Ints:
    """Turn counts into CSR offsets: `[2, 0, 3]` becomes `[0, 2, 2, 5]`."""
    out = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=out[1:])
    return out


def longest(indptr: Ints, which: Ints) -> int:
    """Number of entries of the longest of some lists; 0 if there are none."""
    return int((indptr[which + 1] - indptr[which]).max(initial=0))


def max_by(group: AnyArray, values: Floats, n_groups: int) -> Floats:
    """Largest value of each group; −∞ where there is none."""
    out = np.full(n_groups, -np.inf)
    np.maximum.at(out, group, values)
    return out


def order_by(keys: AnyArray) -> Ints:
    """Where keys come from that are put in order, equal ones as they come; as of `argsort`, for keys from 0 up to 2³².

    NumPy sorts numbers of 16 bits by counting, an order of magnitude faster than longer ones.

    >>> order_by(np.array([70_000, 1, 0, 1]))
    array([2, 1, 3, 0])
    """
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    if keys.max(initial=0) >= 2**16:
        order = order[np.argsort((keys >> 16).astype(np.uint16)[order], kind="stable")]
    return order


def chosen_lists(indptr: Ints, values: AnyArray, which: Ints) -> tuple[Ints, AnyArray]:
    """Some of many lists that lie one after the other.

    >>> chosen_lists(np.array([0, 2, 3, 5]), np.array([7, 8, 9, 5, 6]), np.array([2, 0]))
    (array([0, 2, 4]), array([5, 6, 7, 8]))
    """
    sizes = np.diff(indptr)[which]
    new = offsets(sizes)
    return new, values[np.repeat(indptr[which] - new[:-1], sizes) + np.arange(new[-1])]


def scattered(some: A, where: AnyArray, n: int, axis: int = 0) -> A:
    """Entries for some of `n` places along an axis, with zeros for the others.

    >>> scattered(np.array([5, 7]), np.array([1, 3]), 4)
    array([0, 5, 0, 7])
    """
    shape = list(some.shape)
    shape[axis] = n
    out = np.zeros(shape, dtype=some.dtype)
    out[(slice(None),) * axis + (where,)] = some
    return out  # type: ignore[return-value]


def relative(stderr: AnyArray, values: AnyArray) -> float:
    """`‖stderr‖ / ‖values‖`; 0 without any error."""
    error, size = float(np.linalg.norm(stderr)), float(np.linalg.norm(values))
    return error / size if size > 0 else (np.inf if error > 0 else 0.0)
