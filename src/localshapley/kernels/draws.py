"""Random subsets of supports, each distinct one kept once.

A subset is recognised by 128 bits: the sums of two random words for each of its players. The chance that two of a
million different subsets agree is below 1e-26.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from localshapley.arrays import Floats, Indices, Ints, Masks


@njit(cache=True)
def next_word(stream: Masks, game: int) -> Any:
    """The next 64 random bits of a game's stream (splitmix64)."""
    stream[game] += np.uint64(0x9E3779B97F4A7C15)
    x = stream[game]
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True)
def next_below(stream: Masks, game: int, n: int) -> int:
    """A random whole number from 0 to `n − 1`."""
    return int((next_word(stream, game) >> np.uint64(11)) * (2.0**-53) * n)


@njit(cache=True)
def find(table: Ints, keys: Masks, high: np.uint64, low: np.uint64) -> Any:
    """Place of a key in the open-addressing table: where it stands, or the free place for it."""
    last = len(table) - 1
    at = np.int64(low & np.uint64(last))
    while table[at] >= 0 and (keys[table[at], 0] != high or keys[table[at], 1] != low):
        at = (at + 1) & last
    return at


@njit(cache=True)
def rehash(table: Ints, keys: Masks, n: int) -> None:
    """Fill an empty table with the first `n` keys."""
    for row in range(n):
        table[find(table, keys, keys[row, 0], keys[row, 1])] = row


@njit(cache=True)
def random_subset(stream: Masks, game: int, n: int, k: int, order: Indices, chosen: Indices) -> None:
    """Draw `k` of `n` positions without replacement; `chosen` gets them ascending. `order` is any permutation."""
    few = min(k, n - k)  # draw the members, or those left out
    for i in range(few):
        j = i + next_below(stream, game, n - i)
        order[i], order[j] = order[j], order[i]
    marked = np.zeros(n, dtype=np.bool_)
    for i in range(few):
        marked[order[i]] = True
    members = few == k
    at = 0
    for i in range(n):
        if marked[i] == members:
            chosen[at] = i
            at += 1


@njit(cache=True)
def next_combination(chosen: Indices, n: int, k: int) -> bool:
    """Step to the next `k`-subset in lexicographic order; False after the last."""
    i = k - 1
    while i >= 0 and chosen[i] == n - k + i:
        i -= 1
    if i < 0:
        return False
    chosen[i] += 1
    for j in range(i + 1, k):
        chosen[j] = chosen[j - 1] + 1
    return True


@njit(cache=True)
def games_holding(
    subset: Indices,
    k: int,
    indptr: Ints,
    players: Indices,
    where_indptr: Ints,
    where: Indices,
    out: Indices,
) -> int:
    """Write the games whose support holds the subset (k ≥ 1), ascending; returns how many there are."""
    rarest = 0
    for i in range(1, k):
        size = where_indptr[subset[i] + 1] - where_indptr[subset[i]]
        if size < where_indptr[subset[rarest] + 1] - where_indptr[subset[rarest]]:
            rarest = i
    kept = 0
    for j in range(where_indptr[subset[rarest]], where_indptr[subset[rarest] + 1]):
        if indptr[where[j] + 1] - indptr[where[j]] >= k:
            out[kept] = where[j]
            kept += 1
    for i in range(k):
        if kept == 1:  # a subset is drawn from a game, so that one always holds it
            break
        before, kept = kept, 0
        for j in range(before):
            game = out[j]
            low, high = indptr[game], indptr[game + 1]
            while low < high:
                middle = (low + high) >> 1
                if players[middle] < subset[i]:
                    low = middle + 1
                else:
                    high = middle
            if low < indptr[game + 1] and players[low] == subset[i]:
                out[kept] = game
                kept += 1
    return kept


@njit(cache=True)
def keep(
    subset: Indices,
    k: int,
    words: Masks,
    n_rows: int,
    table: Ints,
    keys: Masks,
    row_indptr: Ints,
    row_players: Indices,
) -> Any:
    """Row of a subset, a new one (`n_rows`) if it was not there yet."""
    high, low = np.uint64(0), np.uint64(0)
    for i in range(k):
        high += words[subset[i], 0]
        low += words[subset[i], 1]
    at = find(table, keys, high, low)
    if table[at] >= 0:
        return table[at]
    table[at] = n_rows
    keys[n_rows, 0] = high
    keys[n_rows, 1] = low
    start = row_indptr[n_rows]
    row_players[start : start + k] = subset[:k]
    row_indptr[n_rows + 1] = start + k
    return n_rows


@njit(cache=True)
def draw_round(
    indptr: Ints,
    players: Indices,
    stratum_indptr: Ints,
    counts: Indices,
    whole: Indices,
    unknown: Floats,
    n_subsets: Floats,
    stream: Masks,
    words: Masks,
    before: int,
    table: Ints,
    keys: Masks,
    row_indptr: Ints,
    row_players: Indices,
    folds: Indices,
    last_game: Indices,
) -> int:
    """Draw subsets of every stratum (game and size) without replacement among those not known before the round.

    `counts[s, f]` subsets of stratum `s` go to fold `f` (bit `f` of `folds`); of a `whole` stratum all go to no
    fold (−1: sure to be drawn). Returns the new number of rows.
    """
    n_rows = before
    n_folds = counts.shape[1]
    for game in range(len(indptr) - 1):
        start = indptr[game]
        n = indptr[game + 1] - start
        order = np.arange(n).astype(np.int32)
        chosen = np.empty(n, dtype=np.int32)
        subset = np.empty(n, dtype=np.int32)
        for k in range(1, n):
            s = stratum_indptr[game] + k - 1
            wanted = 0
            for f in range(n_folds):
                wanted += counts[s, f]
            if whole[s]:
                wanted = int(unknown[s])
            if wanted == 0:
                continue
            fold = np.empty(wanted, dtype=np.int32)
            if whole[s]:
                fold[:] = -1
            else:
                at = 0
                for f in range(n_folds):
                    fold[at : at + counts[s, f]] = f
                    at += counts[s, f]
            # Where most subsets are known or wanted, counting them through beats drawing until a new one comes.
            if n_subsets[s] <= 2.0 * (n_subsets[s] - unknown[s] + wanted) + 64.0:
                left = int(unknown[s])
                for i in range(wanted - 1):  # the order of the drawn is random, so folds are too
                    j = i + next_below(stream, game, wanted - i)
                    fold[i], fold[j] = fold[j], fold[i]
                chosen[:k] = np.arange(k)
                taken = 0
                more = True
                while more and taken < wanted:
                    for i in range(k):
                        subset[i] = players[start + chosen[i]]
                    row = keep(subset, k, words, n_rows, table, keys, row_indptr, row_players)
                    fresh = row == n_rows
                    if fresh or row >= before:
                        # selection sampling: each of the `left` unknown ones is taken with the chance it should have
                        if next_below(stream, game, left) < wanted - taken:
                            if fresh:
                                folds[row] = 0
                                last_game[row] = -1
                                n_rows += 1
                            folds[row] = -1 if fold[taken] < 0 or folds[row] < 0 else folds[row] | (1 << fold[taken])
                            taken += 1
                        elif fresh:
                            high, low = keys[row, 0], keys[row, 1]
                            table[find(table, keys, high, low)] = -1
                        left -= 1
                    more = next_combination(chosen, n, k)
                continue
            taken = 0
            while taken < wanted:
                random_subset(stream, game, n, k, order, chosen)
                for i in range(k):
                    subset[i] = players[start + chosen[i]]
                row = keep(subset, k, words, n_rows, table, keys, row_indptr, row_players)
                if row == n_rows:
                    folds[row] = 0
                    last_game[row] = -1
                    n_rows += 1
                elif row < before or last_game[row] == game:
                    continue
                folds[row] = -1 if folds[row] < 0 else folds[row] | (1 << fold[taken])
                last_game[row] = game
                taken += 1
    return n_rows


@njit(cache=True)
def fill_rows(
    first: int,
    stop: int,
    row_indptr: Ints,
    row_players: Indices,
    indptr: Ints,
    players: Indices,
    where_indptr: Ints,
    where: Indices,
    test_indptr: Ints,
    tests: Indices,
    out_game_indptr: Ints,
    out_games: Indices,
    out_test_indptr: Ints,
    out_tests: Indices,
) -> int:
    """Write the games and test rows of rows `first`, `first + 1`, ... until `stop` or a full output."""
    holding = np.empty(len(indptr) - 1, dtype=np.int32)
    for row in range(first, stop):
        i = row - first
        a, b = row_indptr[row], row_indptr[row + 1]
        if b == a:
            n = len(indptr) - 1
            holding[:] = np.arange(n)
        else:
            n = games_holding(row_players[a:b], b - a, indptr, players, where_indptr, where, holding)
        n_tests = 0
        for j in range(n):
            n_tests += test_indptr[holding[j] + 1] - test_indptr[holding[j]]
        g, t = out_game_indptr[i], out_test_indptr[i]
        if g + n > len(out_games) or t + n_tests > len(out_tests):
            return row
        for j in range(n):
            out_games[g] = holding[j]
            g += 1
            for h in range(test_indptr[holding[j]], test_indptr[holding[j] + 1]):
                out_tests[t] = tests[h]
                t += 1
        out_game_indptr[i + 1] = g
        out_test_indptr[i + 1] = t
    return stop


@njit(cache=True)
def draw_pivots(
    indptr: Ints,
    players: Indices,
    where_indptr: Ints,
    where: Indices,
    draws: int,
    stream: Masks,
    words: Masks,
    n_rows: int,
    table: Ints,
    keys: Masks,
    row_indptr: Ints,
    row_players: Indices,
    hits: Ints,
) -> int:
    """Draw prefixes of random permutations of each game; keep and count those whose first game it is."""
    holding = np.empty(len(indptr) - 1, dtype=np.int32)
    for game in range(len(indptr) - 1):
        start = indptr[game]
        n = indptr[game + 1] - start
        order = np.arange(n).astype(np.int32)
        chosen = np.empty(n, dtype=np.int32)
        subset = np.empty(n, dtype=np.int32)
        for draw in range(draws):
            k = next_below(stream, game, n + 1)
            random_subset(stream, game, n, k, order, chosen)
            for i in range(k):
                subset[i] = players[start + chosen[i]]
            pivot = 0
            if k > 0:
                games_holding(subset, k, indptr, players, where_indptr, where, holding)
                pivot = holding[0]
            if pivot == game:
                row = keep(subset, k, words, n_rows, table, keys, row_indptr, row_players)
                n_rows = max(n_rows, row + 1)
                hits[row, draw & 1] += 1
    return n_rows


@njit(cache=True)
def add_weighted(
    row_indptr: Ints,
    row_players: Indices,
    pair_indptr: Ints,
    games: Indices,
    indptr: Ints,
    players: Indices,
    scaled: Floats,
    hits: Ints,
    sums: Floats,
    squares: Floats,
) -> None:
    """Add what each draw says of each player, `Σ_games ±scaled/k or /(n−k)`, and its square, times its hits."""
    amount = np.zeros(len(squares))
    for row in range(len(pair_indptr) - 1):
        a, b = row_indptr[row], row_indptr[row + 1]
        k = b - a
        member = 0.0
        for i in range(pair_indptr[row], pair_indptr[row + 1]):
            n = indptr[games[i] + 1] - indptr[games[i]]
            if k > 0:
                member += scaled[i] / k
            if k < n:
                for j in range(indptr[games[i]], indptr[games[i] + 1]):
                    amount[players[j]] -= scaled[i] / (n - k)
        for j in range(a, b):
            amount[row_players[j]] = member
        for i in range(pair_indptr[row], pair_indptr[row + 1]):
            for j in range(indptr[games[i]], indptr[games[i] + 1]):
                z = players[j]
                if amount[z] != 0.0:
                    sums[0, z] += hits[row, 0] * amount[z]
                    sums[1, z] += hits[row, 1] * amount[z]
                    squares[z] += (hits[row, 0] + hits[row, 1]) * amount[z] * amount[z]
                    amount[z] = 0.0
