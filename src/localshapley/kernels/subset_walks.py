"""Walks over the subsets of all supports, each subset met at its pivot.

A game of up to 64 players is walked depth first. The walk carries the list of games whose support still holds
the current subset; the list only narrows on the way down, so that pivot test (is the first of the list this
game?) and `R_S` (the list itself) cost no more than the scores that the subset will give.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import BatchArrays, GraphArrays, Indices, Ints, Lists, Masks
from localshapley.kernels.bits import ONE, bits_between, bits_set, lowest_bit
from localshapley.kernels.jit import kernel, section

# What a walk remembers between two batches: the game, the depth, the number of overlapping games and
# whether the current subset still has to be written.
GAME, DEPTH, N_OVERLAPS, PENDING = 0, 1, 2, 3

Stack: TypeAlias = tuple[Ints, Ints, Ints, Indices]
"""`position`, `following`, `n_holding`, `holding`, of every depth of a walk: the place of the last player, the next one
to be tried, and the games that hold the subset, as places among the overlaps."""
Overlaps: TypeAlias = tuple[Indices, Masks]
"""`games`, `masks`: games that share a player with a game, ascending, and `N(game) ∩ N(u)` as bit masks of words."""
Room: TypeAlias = tuple[Masks, Masks]
"""A mask and a bit for each game, all zero between two uses."""
Holding: TypeAlias = tuple[Masks, Ints, Ints]
"""Masks that hold the subset, their number, and the next player to be tried, of every depth of a count."""


@kernel()
def fill_batch(
    graph: GraphArrays,
    tests_of_games: Lists,
    state: Ints,
    stack: Stack,
    overlaps: Overlaps,
    room: Room,
    out: BatchArrays,
) -> int:
    """Write the next subsets of the walk, each with the games and test rows that it is scored for.

    Stops when an output is full or every game is done (`state[GAME] == n_games`); the next call goes on from
    there. Returns the number of subsets written.
    """
    indptr = graph[0]
    position, following, n_holding, holding = stack
    games = overlaps[0]
    written = 0
    while state[GAME] < len(indptr) - 1:
        game = state[GAME]
        n = indptr[game + 1] - indptr[game]
        if state[N_OVERLAPS] < 0:
            enter(game, graph, state, stack, overlaps, room)
        while True:
            depth = state[DEPTH]
            if state[PENDING]:
                if not write_subset(written, graph, tests_of_games, depth, game, stack, games, out):
                    return written
                written += 1
                state[PENDING] = 0
            if following[depth] == n:
                if depth == 0:
                    break
                state[DEPTH] = depth - 1
                continue
            new = following[depth]
            following[depth] += 1
            kept = narrow(depth, new, n, game, n_holding[depth], holding, overlaps)
            if kept == 0:
                continue
            depth += 1
            n_holding[depth] = kept
            position[depth] = new
            following[depth] = new + 1
            state[DEPTH] = depth
            state[PENDING] = games[holding[depth, 0]] == game
        state[GAME] = game + 1
        state[N_OVERLAPS] = -1
    return written


@section()
def enter(game: int, graph: GraphArrays, state: Ints, stack: Stack, overlaps: Overlaps, room: Room) -> None:
    """Begin the walk of a game, at the empty subset."""
    _, following, n_holding, holding = stack
    found = find_overlaps(game, graph, room, overlaps)
    state[N_OVERLAPS] = found
    state[DEPTH] = 0
    state[PENDING] = game == 0  # ∅ belongs to every game, so to the first
    following[0] = 0
    n_holding[0] = found
    for i in range(found):
        holding[0, i] = i


@kernel()
def find_overlaps(game: int, graph: GraphArrays, room: Room, overlaps: Overlaps) -> int:
    """Find the games that share a player with `game`, itself among them; returns how many there are."""
    indptr, players, where_indptr, where = graph
    mask_of_game, met = room
    games, masks = overlaps
    start = indptr[game]
    for i in range(start, indptr[game + 1]):
        word = (i - start) >> 6
        bit = ONE << np.uint64((i - start) & 63)
        for j in range(where_indptr[players[i]], where_indptr[players[i] + 1]):
            other = where[j]
            mask_of_game[other, word] |= bit
            met[other >> 6] |= ONE << np.uint64(other & 63)
    found = 0
    for w in range(len(met)):
        bits = met[w]
        met[w] = 0
        while bits:
            other = 64 * w + lowest_bit(bits)
            bits &= bits - ONE
            games[found] = other
            for word in range(masks.shape[1]):
                masks[found, word] = mask_of_game[other, word]
                mask_of_game[other, word] = 0
            found += 1
    return found


@section()
def narrow(depth: int, new: int, n: int, game: int, n_holding: int, holding: Indices, overlaps: Overlaps) -> int:
    """Write the games that hold the subset with a new player too, one deeper; returns how many there are.

    There are none if the whole branch belongs to an earlier game, one that holds the subset and all that can still be
    added.
    """
    games, masks = overlaps
    bit, rest = ONE << np.uint64(new), bits_between(new, n)
    kept = 0
    for i in range(n_holding):
        index = holding[depth, i]
        mask = masks[index, 0]
        if mask & bit:
            if games[index] < game and rest & ~mask == 0:
                kept = 0
                break
            holding[depth + 1, kept] = index
            kept += 1
    return kept


@section()
def write_subset(
    at: int,
    graph: GraphArrays,
    tests_of_games: Lists,
    depth: int,
    game: int,
    stack: Stack,
    overlapping: Indices,
    out: BatchArrays,
) -> bool:
    """Write the current subset of a walk with its games and their test rows; false if there is no room for it."""
    indptr, players, _, _ = graph
    tests_indptr, tests = tests_of_games
    position, _, n_holding, holding = stack
    out_indptr, out_players, out_test_indptr, out_tests, out_game_indptr, out_games = out
    at_root = depth == 0
    n_pairs = len(indptr) - 1 if at_root else n_holding[depth]
    n_tests = 0
    for i in range(n_pairs):
        u = i if at_root else overlapping[holding[depth, i]]
        n_tests += tests_indptr[u + 1] - tests_indptr[u]
    p, g, t = out_indptr[at], out_game_indptr[at], out_test_indptr[at]
    fits = (
        at + 1 < len(out_indptr)
        and p + depth <= len(out_players)
        and g + n_pairs <= len(out_games)
        and t + n_tests <= len(out_tests)
    )
    if fits:
        for d in range(1, depth + 1):
            out_players[p] = players[indptr[game] + position[d]]
            p += 1
        for i in range(n_pairs):
            u = i if at_root else overlapping[holding[depth, i]]
            out_games[g] = u
            g += 1
            for j in range(tests_indptr[u], tests_indptr[u + 1]):
                out_tests[t] = tests[j]
                t += 1
        out_indptr[at + 1], out_game_indptr[at + 1], out_test_indptr[at + 1] = p, g, t
    return fits


def count_new(graph: GraphArrays, max_steps: int, out: Ints) -> bool:
    """Count, for every game, the subsets that no earlier game holds (games of up to 62 players).

    Returns False, with `out` unfinished, when more than `max_steps` steps would be needed.
    """
    n_games, depth = len(out), int(np.diff(graph[0]).max(initial=0)) + 1
    overlaps, room = make_room(n_games)
    holding = np.empty((depth, n_games), dtype=np.uint64), *np.empty((2, depth), dtype=np.int64)
    return bool(count_by_game(graph, max_steps, overlaps, room, holding, out))


def make_room(n_games: int) -> tuple[Overlaps, Room]:
    """Arrays to find overlaps in, of games of up to 64 players."""
    overlaps = np.empty(n_games, dtype=np.int32), np.empty((n_games, 1), dtype=np.uint64)
    return overlaps, (np.zeros((n_games, 1), dtype=np.uint64), np.zeros(n_games // 64 + 1, dtype=np.uint64))


@kernel()
def count_by_game(
    graph: GraphArrays, max_steps: int, overlaps: Overlaps, room: Room, holding: Holding, out: Ints
) -> bool:
    """Count what is new, game by game; false when the steps do not suffice."""
    indptr, earlier = graph[0], holding[0][0]
    left = max_steps
    for game in range(len(out)):
        n = indptr[game + 1] - indptr[game]
        found = find_overlaps(game, graph, room, overlaps)
        n_earlier = drop_contained(earlier, masks_before(game, found, overlaps, earlier))
        if n_earlier == 0:
            out[game] = (np.int64(1) << n) - (game > 0)
        else:
            out[game], left = count_outside(n_earlier, n, left, holding)
            if left < 0:
                break
    return left >= 0


@section()
def masks_before(game: int, found: int, overlaps: Overlaps, out: Masks) -> int:
    """Write the masks of the overlaps with earlier games; returns how many there are."""
    games, masks = overlaps
    n = 0
    while n < found and games[n] < game:
        out[n] = masks[n, 0]
        n += 1
    return n


@section()
def drop_contained(masks: Masks, n: int) -> int:
    """Keep the maximal ones of the first `n` masks, in place; returns how many there are."""
    kept = 0
    for i in range(n):
        contained = False
        for j in range(n):
            if i != j and masks[i] & ~masks[j] == 0 and (masks[i] != masks[j] or j < i):
                contained = True
                break
        if not contained:
            masks[kept], masks[i] = masks[i], masks[kept]
            kept += 1
    return kept


@section()
def count_outside(n_masks: int, n: int, left: int, stack: Holding) -> Any:
    """Count the subsets of `n` players that no mask holds, in up to `left` steps; returns also how many are left.

    The masks are those at depth 0. The number is unfinished where the steps do not suffice, and what is left negative.
    A branch that no mask holds, or one mask alone, is counted at once.
    """
    holding, n_holding, following = stack
    n_holding[0] = n_masks
    following[0] = 0
    depth = 0
    total = np.int64(0)
    while depth >= 0:
        if following[depth] == n:
            depth -= 1
            continue
        left -= 1
        if left < 0:
            break
        new = following[depth]
        following[depth] += 1
        bit, rest = ONE << np.uint64(new), bits_between(new, n)
        kept = 0
        for i in range(n_holding[depth]):
            mask = holding[depth, i]
            if mask & bit:
                if rest & ~mask == 0:
                    kept = -1
                    break
                holding[depth + 1, kept] = mask
                kept += 1
        n_after = n - new - 1
        if kept == 0:
            total += np.int64(1) << n_after
        elif kept == 1:
            total += (np.int64(1) << n_after) - (np.int64(1) << bits_set(rest & holding[depth + 1, 0]))
        elif kept > 1:
            depth += 1
            n_holding[depth] = kept
            following[depth] = new + 1
    return total, left


@kernel()
def sample_new(graph: GraphArrays, games: Ints, seed: int, held: Ints, subset: Ints) -> int:
    """For each game of `games` draw one of its subsets uniformly; returns how many no earlier game holds.

    There is room for a count per game, all zero, and for a subset.
    """
    indptr, players, where_indptr, where = graph
    np.random.seed(seed)
    total = 0
    for i in range(len(games)):
        game = games[i]
        size = 0
        for j in range(indptr[game], indptr[game + 1]):
            if np.random.random() < 0.5:
                subset[size] = players[j]
                size += 1
        looked = 0  # players whose earlier games were looked at: as many as it takes until none holds all of them
        n_holding = 1 if size else game
        while looked < size and n_holding:
            n_holding = 0
            for h in range(where_indptr[subset[looked]], where_indptr[subset[looked] + 1]):
                if where[h] >= game:
                    break
                if held[where[h]] == looked:
                    held[where[h]] += 1
                    n_holding += 1
            looked += 1
        for j in range(looked):
            for h in range(where_indptr[subset[j]], where_indptr[subset[j] + 1]):
                if where[h] >= game:
                    break
                held[where[h]] = 0
        total += n_holding == 0
    return total


@kernel()
def fill_separate(support: Indices, first: int, game: int, tests: Indices, out: BatchArrays) -> int:
    """Write the subsets of one support with numbers `first`, `first + 1`, ... (their bit masks), no reuse."""
    out_indptr, out_players, out_test_indptr, out_tests, out_game_indptr, out_games = out
    n = len(support)
    written = 0
    mask = np.uint64(first)
    while mask < ONE << np.uint64(n) and written + 1 < len(out_indptr):
        p = out_indptr[written]
        for i in range(n):
            if mask >> np.uint64(i) & ONE:
                out_players[p] = support[i]
                p += 1
        t = out_test_indptr[written]
        for i in range(len(tests)):
            out_tests[t] = tests[i]
            t += 1
        out_games[written] = game
        written += 1
        out_indptr[written], out_game_indptr[written], out_test_indptr[written] = p, written, t
        mask += ONE
    return written
