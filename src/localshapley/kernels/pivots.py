"""Walks over the subsets of all supports, each subset met at its pivot.

A game of up to 64 players is walked depth first. The walk carries the list of games whose support still holds
the current subset; the list only narrows on the way down, so that pivot test (is the first of the list this
game?) and `R_S` (the list itself) cost no more than the scores that the subset will give.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from localshapley.arrays import Indices, Ints, Masks

# What a walk remembers between two batches: the game, the depth, the number of overlapping games and
# whether the present subset still has to be written.
GAME, DEPTH, N_OVERLAPS, PENDING = 0, 1, 2, 3


@njit(cache=True)
def find_overlaps(
    game: int,
    indptr: Ints,
    players: Indices,
    where_indptr: Ints,
    where: Indices,
    scratch: Masks,
    overlaps: Indices,
    masks: Masks,
) -> int:
    """List the games that share a player with `game`, ascending, with `N(game) ∩ N(u)` as a bit mask of words.

    `scratch` (n_games, words) must be zero and is left zero. Returns how many there are.
    """
    found = 0
    start = indptr[game]
    for i in range(start, indptr[game + 1]):
        word = (i - start) >> 6
        bit = np.uint64(1) << np.uint64((i - start) & 63)
        for j in range(where_indptr[players[i]], where_indptr[players[i] + 1]):
            other = where[j]
            seen = False
            for w in range(word + 1):
                seen |= scratch[other, w] != 0
            if not seen:
                overlaps[found] = other
                found += 1
            scratch[other, word] |= bit
    overlaps[:found].sort()
    for i in range(found):
        masks[i] = scratch[overlaps[i]]
        scratch[overlaps[i]] = 0
    return found


@njit(cache=True)
def fill_batch(
    indptr: Ints,
    players: Indices,
    where_indptr: Ints,
    where: Indices,
    tests_indptr: Ints,
    tests: Indices,
    state: Ints,
    position: Ints,
    following: Ints,
    n_holding: Ints,
    holding: Indices,
    overlaps: Indices,
    masks: Masks,
    scratch: Masks,
    out_indptr: Ints,
    out_players: Indices,
    out_game_indptr: Ints,
    out_games: Indices,
    out_test_indptr: Ints,
    out_tests: Indices,
) -> int:
    """Write the next subsets of the walk, each with the games and test rows that it is scored for.

    Stops when an output is full or every game is done (`state[GAME] == n_games`); the next call goes on from
    there. Returns the number of subsets written.
    """
    n_games = len(indptr) - 1
    written = 0
    while state[GAME] < n_games:
        game = state[GAME]
        start = indptr[game]
        n = indptr[game + 1] - start
        if state[N_OVERLAPS] < 0:  # the game is entered
            found = find_overlaps(game, indptr, players, where_indptr, where, scratch, overlaps, masks)
            state[N_OVERLAPS] = found
            state[DEPTH] = 0
            state[PENDING] = game == 0  # ∅ belongs to every game, so to the first
            following[0] = 0
            n_holding[0] = found
            for i in range(found):
                holding[0, i] = i
        while True:
            depth = state[DEPTH]
            if state[PENDING]:
                at_root = depth == 0
                n_pairs = n_games if at_root else n_holding[depth]
                n_tests = 0
                for i in range(n_pairs):
                    u = i if at_root else overlaps[holding[depth, i]]
                    n_tests += tests_indptr[u + 1] - tests_indptr[u]
                if (
                    written + 1 >= len(out_indptr)
                    or out_indptr[written] + depth > len(out_players)
                    or out_game_indptr[written] + n_pairs > len(out_games)
                    or out_test_indptr[written] + n_tests > len(out_tests)
                ):
                    return written
                p = out_indptr[written]
                for d in range(1, depth + 1):
                    out_players[p] = players[start + position[d]]
                    p += 1
                g = out_game_indptr[written]
                t = out_test_indptr[written]
                for i in range(n_pairs):
                    u = i if at_root else overlaps[holding[depth, i]]
                    out_games[g] = u
                    g += 1
                    for j in range(tests_indptr[u], tests_indptr[u + 1]):
                        out_tests[t] = tests[j]
                        t += 1
                written += 1
                out_indptr[written] = p
                out_game_indptr[written] = g
                out_test_indptr[written] = t
                state[PENDING] = 0
            if following[depth] == n:
                if depth == 0:
                    break
                state[DEPTH] = depth - 1
                continue
            new = following[depth]
            following[depth] += 1
            bit = np.uint64(1) << np.uint64(new)
            rest = (~np.uint64(0) << np.uint64(new)) << np.uint64(1)
            if n < 64:
                rest &= (np.uint64(1) << np.uint64(n)) - np.uint64(1)
            kept = 0
            taken = False
            for i in range(n_holding[depth]):
                index = holding[depth, i]
                mask = masks[index, 0]
                if mask & bit:
                    # an earlier game that holds all that can still be added owns the whole branch
                    if overlaps[index] < game and rest & ~mask == 0:
                        taken = True
                        break
                    holding[depth + 1, kept] = index
                    kept += 1
            if taken:
                continue
            depth += 1
            n_holding[depth] = kept
            position[depth] = new
            following[depth] = new + 1
            state[DEPTH] = depth
            state[PENDING] = overlaps[holding[depth, 0]] == game
        state[GAME] = game + 1
        state[N_OVERLAPS] = -1
    return written


@njit(cache=True)
def bits_set(mask: np.uint64) -> int:
    """Count the bits of a 64-bit mask."""
    count = 0
    while mask:
        mask &= mask - np.uint64(1)
        count += 1
    return count


@njit(cache=True)
def drop_contained(masks: Masks, n: int) -> int:
    """Keep the maximal ones of the first `n` masks, in place; returns how many they are."""
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


@njit(cache=True)
def count_new(
    indptr: Ints,
    players: Indices,
    where_indptr: Ints,
    where: Indices,
    max_steps: int,
    out: Ints,
) -> bool:
    """Count, for every game, the subsets that no earlier game holds (games of up to 62 players).

    Returns False, with `out` unfinished, when more than `max_steps` steps would be needed.
    """
    n_games = len(indptr) - 1
    scratch = np.zeros((n_games, 1), dtype=np.uint64)
    overlaps = np.empty(n_games, dtype=np.int32)
    masks = np.empty((n_games, 1), dtype=np.uint64)
    earlier = np.empty(n_games, dtype=np.uint64)
    steps = 0
    for game in range(n_games):
        n = indptr[game + 1] - indptr[game]
        found = find_overlaps(game, indptr, players, where_indptr, where, scratch, overlaps, masks)
        n_earlier = 0
        for i in range(found):
            if overlaps[i] < game:
                earlier[n_earlier] = masks[i, 0]
                n_earlier += 1
        n_earlier = drop_contained(earlier, n_earlier)
        if n_earlier == 0:
            out[game] = (np.int64(1) << n) - (game > 0)
            continue
        full = (np.uint64(1) << np.uint64(n)) - np.uint64(1)
        holding = np.empty((n + 1, n_earlier), dtype=np.uint64)
        n_holding = np.empty(n + 1, dtype=np.int64)
        following = np.zeros(n + 1, dtype=np.int64)
        holding[0] = earlier[:n_earlier]
        n_holding[0] = n_earlier
        depth = 0
        total = np.int64(0)
        while depth >= 0:
            if following[depth] == n:
                depth -= 1
                continue
            steps += 1
            if steps > max_steps:
                return False
            new = following[depth]
            following[depth] += 1
            bit = np.uint64(1) << np.uint64(new)
            rest = full & ~((bit << np.uint64(1)) - np.uint64(1))
            kept = 0
            taken = False
            for i in range(n_holding[depth]):
                mask = holding[depth, i]
                if mask & bit:
                    if rest & ~mask == 0:
                        taken = True
                        break
                    holding[depth + 1, kept] = mask
                    kept += 1
            if taken:
                continue
            left = n - new - 1
            if kept == 0:
                total += np.int64(1) << left
            elif kept == 1:
                total += (np.int64(1) << left) - (np.int64(1) << bits_set(rest & holding[depth + 1, 0]))
            else:
                depth += 1
                n_holding[depth] = kept
                following[depth] = new + 1
        out[game] = total
    return True


@njit(cache=True)
def sample_new(
    indptr: Ints,
    players: Indices,
    where_indptr: Ints,
    where: Indices,
    games: Ints,
    seed: int,
) -> int:
    """For each game of `games` draw one of its subsets uniformly; returns how many no earlier game holds."""
    np.random.seed(seed)
    held = np.zeros(len(indptr) - 1, dtype=np.int64)
    total = 0
    for i in range(len(games)):
        game = games[i]
        size = 0
        new = 1
        subset = np.empty(indptr[game + 1] - indptr[game], dtype=np.int64)
        for j in range(indptr[game], indptr[game + 1]):
            if np.random.random() < 0.5:
                subset[size] = players[j]
                size += 1
        for j in range(size):
            for h in range(where_indptr[subset[j]], where_indptr[subset[j] + 1]):
                held[where[h]] += 1
        if size == 0:
            new = int(game == 0)
        else:
            for h in range(where_indptr[subset[0]], where_indptr[subset[0] + 1]):
                if held[where[h]] == size and where[h] < game:
                    new = 0
        for j in range(size):
            for h in range(where_indptr[subset[j]], where_indptr[subset[j] + 1]):
                held[where[h]] = 0
        total += new
    return total


@njit(cache=True)
def fill_separate(
    support: Indices,
    first: int,
    game: int,
    tests: Indices,
    out_indptr: Ints,
    out_players: Indices,
    out_games: Indices,
    out_test_indptr: Ints,
    out_tests: Indices,
) -> int:
    """Write the subsets of one support with numbers `first`, `first + 1`, ... (their bit masks), no reuse."""
    n = len(support)
    written = 0
    mask = np.uint64(first)
    while mask < np.uint64(1) << np.uint64(n) and written + 1 < len(out_indptr):
        p = out_indptr[written]
        for i in range(n):
            if mask >> np.uint64(i) & np.uint64(1):
                out_players[p] = support[i]
                p += 1
        t = out_test_indptr[written]
        for i in range(len(tests)):
            out_tests[t] = tests[i]
            t += 1
        out_games[written] = game
        written += 1
        out_indptr[written] = p
        out_test_indptr[written] = t
        mask += np.uint64(1)
    return written
