"""Digests of 128 bits: of rows, by their contents, and of coalitions, as sums over their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from localshapley.arrays import Indices, Ints, Masks
from localshapley.kernels.jit import kernel, part

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


FACTOR = np.uint64(0xD1342543DE82EF95)


def mix(x: Any) -> Any:
    """Spread every bit of a word, or of those of an array, over all of it (the last steps of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


mixed = part()(mix)


@part()
def folded(high: np.uint64, low: np.uint64, word: np.uint64) -> Any:
    """Fold one more word into a digest."""
    high = mixed((high + GOLDEN) ^ word)
    return high, mixed(low * FACTOR + (word ^ high))


def digests_of_few(words: Masks) -> Masks:
    """Digests of the rows of a small table, in NumPy, as `fold_cells` and `fold_words` make them of large ones.

    To compile these takes longer.
    """
    high, low = np.zeros((2, words.shape[1]), dtype=np.uint64)
    for j, column in enumerate(words):
        digest = fold(*fold(high, low, np.uint64(j)), column)
        high, low = (np.where(column == 0, *either) for either in zip((high, low), digest, strict=True))
    high, low = mix(high ^ GOLDEN), mix(low + high)
    high, low = fold(high, low, np.uint64(len(words)))
    return np.stack([mix(high ^ GOLDEN), mix(low + high)], axis=1)


def fold(high: Masks, low: Masks, word: Any) -> tuple[Masks, Masks]:
    """`folded` of many digests."""
    high = mix((high + GOLDEN) ^ word)
    return high, mix(low * FACTOR + (word ^ high))


@kernel()
def fold_words(words: Masks, indptr: Ints, out: Masks) -> None:
    """Fold the words of each row, in their order, into its digest; `out` holds where each starts from."""
    for row in range(len(out)):
        high, low = out[row, 0], out[row, 1]
        for i in range(indptr[row], indptr[row + 1]):
            high, low = folded(high, low, words[i])
        out[row, 0], out[row, 1] = mixed(high ^ GOLDEN), mixed(low + high)


@kernel()
def fold_cells(words: Masks, high: Masks, low: Masks) -> None:
    """Fold the places and words of a table, except those that are 0, into the digests of its rows.

    Words come column by column: rows stand beside each other, and several are folded at a time.
    """
    for j in range(len(words)):
        for row in range(len(high)):
            word, is_zero = words[j, row], words[j, row] == 0
            more, less = folded(high[row], low[row], np.uint64(j))
            more, less = folded(more, less, word)
            high[row] = high[row] if is_zero else more
            low[row] = low[row] if is_zero else less
    for row in range(len(high)):
        high[row], low[row] = mixed(high[row] ^ GOLDEN), mixed(low[row] + high[row])


@kernel()
def add_up(indptr: Ints, players: Indices, digests: Masks, out: Masks) -> None:
    """Digest of each coalition: the sum of its rows', whatever their order."""
    for c in range(len(out)):
        high, low = np.uint64(0), np.uint64(0)
        for i in range(indptr[c], indptr[c + 1]):
            high += digests[players[i], 0]
            low += digests[players[i], 1]
        out[c, 0], out[c, 1] = high, low
