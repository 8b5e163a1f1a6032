"""Random subsets of supports, each distinct one kept once.

A subset is recognised by 128 bits: the sums of two random words for each of its players. The probability that two of a
million different subsets agree is below 1e-26.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import (
    AnyArray,
    CollectionArrays,
    Floats,
    GraphArrays,
    Indices,
    Ints,
    Lists,
    Masks,
    SubsetArrays,
)
from localshapley.kernels.digests import GOLDEN, mixed
from localshapley.kernels.jit import kernel, part, section

Design: TypeAlias = tuple[Ints, Indices, Indices, Floats, Floats]
"""`indptr`, `counts`, `whole`, `unknown`, `n_subsets`: what a round is to draw of every stratum (game and size).

The first stratum of each game; then, by stratum, the subsets to be drawn for each fold, whether all are taken, and how
many were unknown before the round and exist at all.
"""
Order: TypeAlias = tuple[Indices, Indices, AnyArray]
"""`order`, `chosen`, `marked`: a permutation of the places in a support, those that are drawn, and marks, all false."""


def draw_round(graph: GraphArrays, design: Design, streams: Masks, before: int, rows: CollectionArrays) -> int:
    """Draw subsets of every stratum (game and size) without replacement among those not known before the round.

    `counts[s, f]` subsets of stratum `s` go to fold `f` (bit `f` of the row's folds); of a `whole` stratum all go to no
    fold (−1: sure to be drawn). Returns the new number of rows.
    """
    _, counts, whole, unknown, _ = design
    most = np.where(whole, unknown, counts.sum(axis=1)).max(initial=0.0)
    fold = np.empty(int(most), dtype=np.int32)
    return int(draw_games(graph, design, streams, before, rows, *make_room(graph), fold))


def make_room(graph: GraphArrays) -> tuple[Order, Indices]:
    """Arrays to draw subsets in: the places in a support, and the players there."""
    n = int(np.diff(graph[0]).max(initial=0))
    order, chosen, subset = np.empty((3, n), dtype=np.int32)
    return (order, chosen, np.zeros(n, dtype=bool)), subset


@kernel()
def draw_games(
    graph: GraphArrays,
    design: Design,
    streams: Masks,
    before: int,
    rows: CollectionArrays,
    places: Order,
    subset: Indices,
    fold: Indices,
) -> int:
    """Draw the round, game by game and size by size."""
    indptr, players, _, _ = graph
    stratum_indptr, counts, whole, unknown, n_subsets = design
    n_rows = before
    for game in range(len(indptr) - 1):
        support = players[indptr[game] : indptr[game + 1]]
        for i in range(len(support)):
            places[0][i] = i
        for k in range(1, len(support)):
            s = stratum_indptr[game] + k - 1
            wanted = deal(s, counts, whole[s], unknown[s], fold)
            if wanted == 0:
                continue
            # Where most subsets are known or wanted, going through them all beats drawing until a new one comes.
            if n_subsets[s] <= 2.0 * (n_subsets[s] - unknown[s] + wanted) + 64.0:
                n_rows = count_through(
                    streams, game, support, k, int(unknown[s]), fold[:wanted], before, n_rows, rows, (places[1], subset)
                )
            else:
                n_rows = draw_until_new(streams, game, support, k, fold[:wanted], before, n_rows, rows, places, subset)
    return n_rows


@section()
def deal(s: int, counts: Indices, whole: int, unknown: float, fold: Indices) -> int:
    """Write the folds of the subsets that are to be drawn from a stratum, fold by fold; returns how many there are."""
    at = 0
    if whole:
        at = int(unknown)
        for i in range(at):
            fold[i] = -1
    else:
        for f in range(counts.shape[1]):
            for _ in range(counts[s, f]):
                fold[at] = f
                at += 1
    return at


@section()
def count_through(
    streams: Masks,
    game: int,
    support: Indices,
    k: int,
    left: int,
    fold: Indices,
    before: int,
    n_rows: int,
    rows: CollectionArrays,
    room: tuple[Indices, Indices],
) -> int:
    """Draw subsets of a size by going through all of them, of which `left` were unknown before the round.

    Each is taken with the probability that it should have (selection sampling). Returns the new number of rows.
    """
    _, table, keys, _, _, folds, last_game = rows
    chosen, subset = room
    wanted = len(fold)
    for i in range(wanted - 1):  # shuffle, so that folds are random
        j = i + next_below(streams, game, wanted - i)
        fold[i], fold[j] = fold[j], fold[i]
    for i in range(k):
        chosen[i] = i
    taken = 0
    more = True
    while more and taken < wanted:
        for i in range(k):
            subset[i] = support[chosen[i]]
        row = keep(subset, k, n_rows, rows)
        fresh = row == n_rows
        if fresh or row >= before:
            if next_below(streams, game, left) < wanted - taken:
                if fresh:
                    folds[row] = 0
                    last_game[row] = -1
                    n_rows += 1
                folds[row] = with_fold(folds[row], fold[taken])
                taken += 1
            elif fresh:
                table[find(table, keys, keys[row, 0], keys[row, 1])] = -1
            left -= 1
        more = next_combination(chosen, len(support), k)
    return n_rows


@section()
def draw_until_new(
    streams: Masks,
    game: int,
    support: Indices,
    k: int,
    fold: Indices,
    before: int,
    n_rows: int,
    rows: CollectionArrays,
    places: Order,
    subset: Indices,
) -> int:
    """Draw subsets of a size, each until it is one that the game has not drawn and that was unknown before the round.

    Returns the new number of rows.
    """
    chosen = places[1]
    folds, last_game = rows[5], rows[6]
    taken = 0
    while taken < len(fold):
        random_subset(streams, game, len(support), k, places)
        for i in range(k):
            subset[i] = support[chosen[i]]
        row = keep(subset, k, n_rows, rows)
        if row == n_rows:
            folds[row] = 0
            last_game[row] = -1
            n_rows += 1
        elif row < before or last_game[row] == game:
            continue
        folds[row] = with_fold(folds[row], fold[taken])
        last_game[row] = game
        taken += 1
    return n_rows


@part()
def with_fold(folds: int, fold: int) -> int:
    """The folds of a row with one more; −1 once the row is sure to be drawn."""
    return -1 if fold < 0 or folds < 0 else folds | (1 << fold)


@kernel()
def keep(subset: Indices, k: int, n_rows: int, rows: CollectionArrays) -> Any:
    """Row of a subset; a new one (`n_rows`) if it is not there yet."""
    words, table, keys, indptr, players, _, _ = rows
    high, low = np.uint64(0), np.uint64(0)
    for i in range(k):
        high += words[subset[i], 0]
        low += words[subset[i], 1]
    at = find(table, keys, high, low)
    if table[at] < 0:
        table[at] = n_rows
        keys[n_rows, 0] = high
        keys[n_rows, 1] = low
        start = indptr[n_rows]
        for i in range(k):
            players[start + i] = subset[i]
        indptr[n_rows + 1] = start + k
    return table[at]


@kernel()
def rehash(table: Ints, keys: Masks, n: int) -> None:
    """Fill an empty table with the first `n` keys."""
    for row in range(n):
        table[find(table, keys, keys[row, 0], keys[row, 1])] = row


@part()
def find(table: Ints, keys: Masks, high: np.uint64, low: np.uint64) -> Any:
    """Position of a key in the open-addressing table, or the free position for it."""
    last = len(table) - 1
    at = np.int64(low & np.uint64(last))
    while table[at] >= 0 and (keys[table[at], 0] != high or keys[table[at], 1] != low):
        at = (at + 1) & last
    return at


@section()
def random_subset(streams: Masks, game: int, n: int, k: int, places: Order) -> None:
    """Draw `k` of `n` places without replacement; `chosen` gets them ascending."""
    order, chosen, marked = places
    few = min(k, n - k)  # draw the members, or those left out
    for i in range(few):
        j = i + next_below(streams, game, n - i)
        order[i], order[j] = order[j], order[i]
    for i in range(few):
        marked[order[i]] = True
    members = few == k
    at = 0
    for i in range(n):
        if marked[i] == members:
            chosen[at] = i
            at += 1
    for i in range(few):
        marked[order[i]] = False


@part()
def next_below(streams: Masks, game: int, n: int) -> int:
    """A random whole number from 0 to `n − 1`."""
    return int((next_word(streams, game) >> np.uint64(11)) * (2.0**-53) * n)


@part()
def next_word(streams: Masks, game: int) -> Any:
    """The next 64 random bits of a game's stream (splitmix64)."""
    streams[game] += GOLDEN
    return mixed(streams[game])


@section()
def next_combination(chosen: Indices, n: int, k: int) -> bool:
    """Step to the next `k`-subset in lexicographic order; False after the last."""
    i = k - 1
    while i >= 0 and chosen[i] == n - k + i:
        i -= 1
    if i >= 0:
        chosen[i] += 1
        for j in range(i + 1, k):
            chosen[j] = chosen[j - 1] + 1
    return i >= 0


def draw_pivots(
    graph: GraphArrays, masks: Masks, draws: int, streams: Masks, n_rows: int, rows: CollectionArrays, hits: Ints
) -> int:
    """Draw prefixes of random permutations of each game; keep and count those for which it is the first game."""
    holding = np.empty(len(graph[0]) - 1, dtype=np.int32)
    return int(draw_prefixes(graph, masks, draws, streams, n_rows, rows, *make_room(graph), holding, hits))


@kernel()
def draw_prefixes(
    graph: GraphArrays,
    masks: Masks,
    draws: int,
    streams: Masks,
    n_rows: int,
    rows: CollectionArrays,
    places: Order,
    subset: Indices,
    holding: Indices,
    hits: Ints,
) -> int:
    """Draw the prefixes, game by game."""
    indptr, players, _, _ = graph
    order, chosen, _ = places
    for game in range(len(indptr) - 1):
        start = indptr[game]
        n = indptr[game + 1] - start
        for i in range(n):
            order[i] = i
        for draw in range(draws):
            k = next_below(streams, game, n + 1)
            random_subset(streams, game, n, k, places)
            for i in range(k):
                subset[i] = players[start + chosen[i]]
            pivot = 0
            if k > 0:
                games_holding(subset, k, graph, masks, holding)
                pivot = holding[0]
            if pivot == game:
                row = keep(subset, k, n_rows, rows)
                n_rows = max(n_rows, row + 1)
                hits[row, draw & 1] += 1
    return n_rows


@kernel()
def games_holding(subset: Indices, k: int, graph: GraphArrays, masks: Masks, out: Indices) -> int:
    """Write the games whose support holds the subset (k ≥ 1), ascending; returns how many there are.

    `masks` has a bit for each game of a player, in words of 64 games; without lines, players are searched for instead.
    """
    indptr, players, where_indptr, where = graph
    rarest = 0
    for i in range(1, k):
        size = where_indptr[subset[i] + 1] - where_indptr[subset[i]]
        if size < where_indptr[subset[rarest] + 1] - where_indptr[subset[rarest]]:
            rarest = i
    kept = 0
    if len(masks) > 0:
        word, common = -1, np.uint64(0)
        for j in range(where_indptr[subset[rarest]], where_indptr[subset[rarest] + 1]):
            game = where[j]
            if game >> 6 != word:
                word = game >> 6
                common = masks[subset[rarest], word]
                for i in range(k):
                    common &= masks[subset[i], word]
            if common >> np.uint64(game & 63) & np.uint64(1):
                out[kept] = game
                kept += 1
        return kept
    for j in range(where_indptr[subset[rarest]], where_indptr[subset[rarest] + 1]):
        if indptr[where[j] + 1] - indptr[where[j]] >= k:
            out[kept] = where[j]
            kept += 1
    for i in range(k):
        if kept == 1:  # a subset is drawn from a game, so one game always holds it
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


@kernel()
def fill_rows(
    first: int,
    stop: int,
    rows: Lists,
    graph: GraphArrays,
    masks: Masks,
    tests_of_games: Lists,
    out_games: Lists,
    out_tests: Lists,
    holding: Indices,
) -> int:
    """Write the games and test rows of rows `first`, `first + 1`, ... until `stop` or a full output.

    There is room for the games that hold a row.
    """
    row_indptr, row_players = rows
    test_indptr, tests = tests_of_games
    game_indptr_out, games_out = out_games
    test_indptr_out, tests_out = out_tests
    n_games = len(graph[0]) - 1
    for row in range(first, stop):
        i = row - first
        a, b = row_indptr[row], row_indptr[row + 1]
        if b == a:
            n = n_games
            for j in range(n):
                holding[j] = j
        else:
            n = games_holding(row_players[a:b], b - a, graph, masks, holding)
        n_tests = 0
        for j in range(n):
            n_tests += test_indptr[holding[j] + 1] - test_indptr[holding[j]]
        g, t = game_indptr_out[i], test_indptr_out[i]
        if g + n > len(games_out) or t + n_tests > len(tests_out):
            return row
        for j in range(n):
            games_out[g] = holding[j]
            g += 1
            for h in range(test_indptr[holding[j]], test_indptr[holding[j] + 1]):
                tests_out[t] = tests[h]
                t += 1
        game_indptr_out[i + 1] = g
        test_indptr_out[i + 1] = t
    return stop


@kernel()
def add_weighted(
    subsets: SubsetArrays, graph: GraphArrays, scaled: Floats, hits: Ints, sums: Floats, squares: Floats, amount: Floats
) -> None:
    """Add the contribution of each draw to each player, `Σ_games ±scaled/k or /(n−k)`, and its square, times its hits.

    There is room for one number per player, all zero.
    """
    row_indptr, row_players, pair_indptr, games = subsets
    indptr, players, _, _ = graph
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


@kernel()
def list_arrived(
    game_lists: Lists, arrival: Ints, draws: Ints, games: Ints, first: Ints, stop: Ints, out: Indices
) -> None:
    """Write the players of each game, ascending, that arrive in a draw at one of the places `first` to `stop - 1`.

    The games lie one after the other in `arrival`, a line for each draw, as in `game_lists`.
    """
    indptr, players = game_lists
    n = 0
    for c in range(len(draws)):
        for slot in range(indptr[games[c]], indptr[games[c] + 1]):
            if first[c] <= arrival[draws[c], slot] < stop[c]:
                out[n] = players[slot]
                n += 1
