"""Sums of weighted scores into values.

The weight of a subset of size `k` in a game of `n` players is `+1/(k·C(n,k))` for a member and
`−1/((n−k)·C(n,k))` for the others. Adding `loss = 1/((n−k)·C(n,k))` to both leaves nothing for the others: a
subset then touches its own members (`gain = 1/(k·C) + 1/((n−k)·C)`) and one common number per game.

A million terms lose digits of their sum. So what each addition rounds off is summed up beside it (Neumaier, 1974).
"""

from __future__ import annotations

from typing import TypeAlias

from localshapley.arrays import Floats, GraphArrays, Indices, Ints, Lists, SubsetArrays
from localshapley.kernels.jit import kernel, part

Weights: TypeAlias = tuple[Ints, Floats, Floats]
"""`row`, `gain`, `loss`: the row of a game in the two tables, and what they have for each size of a subset."""


@part()
def add(sums: Floats, i: int, term: float) -> None:
    """Add a term to the sum `sums[0, i]`, and what is rounded off to `sums[1, i]`."""
    old = sums[0, i]
    new = old + term
    sums[1, i] += (old - new) + term if abs(old) >= abs(term) else (term - new) + old
    sums[0, i] = new


@kernel()
def add_scores(
    subsets: SubsetArrays, n_tests: Ints, scores: Floats, weights: Weights, members: Floats, common: Floats
) -> None:
    """Add the scores of a batch to `members` (two numbers per player, see `add`) and `common` (per game)."""
    indptr, players, game_indptr, games = subsets
    row, gain, loss = weights
    s = 0
    for c in range(len(indptr) - 1):
        k = indptr[c + 1] - indptr[c]
        total = 0.0
        for j in range(game_indptr[c], game_indptr[c + 1]):
            game = games[j]
            score = 0.0
            for _ in range(n_tests[game]):
                score += scores[s]
                s += 1
            total += score * gain[row[game], k]
            add(common, game, -(score * loss[row[game], k]))
        for i in range(indptr[c], indptr[c + 1]):
            add(members, players[i], total)


@kernel()
def add_scores_per_test(
    subsets: SubsetArrays,
    graph: GraphArrays,
    tests_of_games: Lists,
    scores: Floats,
    weights: Weights,
    matrix_indptr: Ints,
    matrix: Floats,
) -> None:
    """Add the scores of a batch to the CSR data of the test × player matrix (players as in the supports).

    The data has two numbers for each entry, see `add`.
    """
    indptr, players, game_indptr, games = subsets
    support_indptr, support, _, _ = graph
    test_indptr, tests = tests_of_games
    row, gain, loss = weights
    s = 0
    for c in range(len(indptr) - 1):
        k = indptr[c + 1] - indptr[c]
        for j in range(game_indptr[c], game_indptr[c + 1]):
            game = games[j]
            up = gain[row[game], k]
            down = loss[row[game], k]
            for t in range(test_indptr[game], test_indptr[game + 1]):
                at = matrix_indptr[tests[t]]
                i = indptr[c]
                for z in range(support_indptr[game], support_indptr[game + 1]):
                    add(matrix, at, -(scores[s] * down))
                    if i < indptr[c + 1] and players[i] == support[z]:
                        add(matrix, at, scores[s] * up)
                        i += 1
                    at += 1
                s += 1


@kernel()
def add_scores_by_bundle(
    subsets: SubsetArrays,
    tests_of_games: Lists,
    bundle_of_test: Indices,
    scores: Floats,
    weights: Weights,
    room: tuple[Floats, Ints, Ints],
    members: Floats,
    common: Floats,
) -> None:
    """Add the scores of a batch to `members` (one row per player, a column per bundle) and `common` (per test row).

    There is room for a sum of each bundle, whether it has one, all zero, and the numbers of those that have.
    """
    indptr, players, game_indptr, games = subsets
    test_indptr, tests = tests_of_games
    row, gain, loss = weights
    sums, is_met, met = room
    s = 0
    for c in range(len(indptr) - 1):
        k = indptr[c + 1] - indptr[c]
        n = 0
        for j in range(game_indptr[c], game_indptr[c + 1]):
            game = games[j]
            up = gain[row[game], k]
            down = loss[row[game], k]
            for i in range(test_indptr[game], test_indptr[game + 1]):
                common[tests[i]] -= scores[s] * down
                b = bundle_of_test[tests[i]]
                if not is_met[b]:
                    is_met[b] = 1
                    met[n] = b
                    n += 1
                sums[b] += scores[s] * up
                s += 1
        for i in range(indptr[c], indptr[c + 1]):
            for m in range(n):
                members[players[i], met[m]] += sums[met[m]]
        for m in range(n):
            sums[met[m]] = 0.0
            is_met[met[m]] = 0


@kernel()
def add_by_bundle(pairs: Lists, bundle: Indices, data: Floats, out: Floats) -> None:
    """Add `data`, given at the places of lists of players, to `out` by the bundle of each list and by player."""
    indptr, players = pairs
    for i in range(len(indptr) - 1):
        for j in range(indptr[i], indptr[i + 1]):
            out[bundle[i], players[j]] += data[j]


@kernel()
def add_scores_to_one(
    subsets: SubsetArrays,
    scores: Floats,
    weights: Weights,
    player: int,
    test_slot: int,
    members: Floats,
    matrix: Floats,
) -> None:
    """Add the scores of a batch (one game with one test row) to the value of one player only; see `add`."""
    indptr, players, _, games = subsets
    row, gain, loss = weights
    for c in range(len(indptr) - 1):
        k = indptr[c + 1] - indptr[c]
        weight = -loss[row[games[c]], k]
        for i in range(indptr[c], indptr[c + 1]):
            if players[i] == player:
                weight += gain[row[games[c]], k]
        add(members, player, weight * scores[c])
        if test_slot >= 0:
            add(matrix, test_slot, weight * scores[c])
