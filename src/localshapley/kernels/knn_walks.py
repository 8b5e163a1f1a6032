"""Walks through permutations for K nearest neighbours: an arrival that is not among the K nearest changes nothing."""

from __future__ import annotations

from math import log

import numpy as np
from numba import njit

from localshapley.arrays import Floats, Indices, Ints
from localshapley.kernels.neighbours import LABEL, LOG_LOSS, MARGIN, TINY, score_average


@njit(cache=True, nogil=True)
def score_nearest(
    nearest: Indices,
    found: int,
    away: Floats,
    targets: Floats,
    truth: float,
    by_distance: bool,
    kind: int,
    n_classes: int,
    floor: float,
    table: Floats,
    votes: Floats,
) -> float:
    """Score of a vote, or mean, of the `found` nearest rows, nearest first; `votes` are all 0 and stay so."""
    silenced = by_distance and away[nearest[0]] < TINY
    total = weight = 0.0
    for i in range(found):
        z = nearest[i]
        share = 1.0
        if silenced:
            share = 1.0 if away[z] < TINY else 0.0
        elif by_distance:
            share = 1 / away[z]
        weight += share
        if n_classes == 0:
            total += share * targets[z]
        elif kind < LABEL:
            total += share if targets[z] == truth else 0.0
        else:
            votes[int(targets[z])] += share
    if kind < LABEL:
        return score_average(kind, total, weight, log(n_classes) if kind == LOG_LOSS else truth, floor)
    best, most, mine = -1, 0.0, 0.0
    for i in range(found):
        c = int(targets[nearest[i]])
        part = votes[c] / weight
        if kind == MARGIN and c == truth:
            mine = part
        elif part > most or (part == most and (best < 0 or c < best)):
            best, most = c, part
    for i in range(found):
        votes[int(targets[nearest[i]])] = 0.0
    return mine - most if kind == MARGIN else table[best]


@njit(cache=True, nogil=True)
def walk_neighbours(
    draws: Ints,
    order: Indices,
    indptr: Ints,
    test_indptr: Ints,
    tests: Indices,
    distances: Floats,
    targets: Floats,
    truths: Floats,
    nothing: Floats,
    whole: Floats,
    tables: Floats,
    table_of_test: Ints,
    n_neighbors: int,
    by_distance: bool,
    kind: int,
    n_classes: int,
    floor: float,
    tolerance: float,
    patience: int,
    sums: Floats,
    lengths: Ints,
    scored: Ints,
) -> None:
    """Score the prefixes of permutations on the test rows of each game.

    Parameters
    ----------
    draws : the permutations to do
    order : players in the order of arrival, game by game, for each permutation
    indptr, test_indptr, tests : places of the players, and test rows, of each game
    nothing, whole : scores of the empty and the full coalition, in the order of `tests`
    tables, table_of_test : scores of predicting each class, one row for each distinct label of the test rows
    tolerance, patience : when a test row ends its walk; never, if the tolerance is 0
    sums, lengths : see `baselines.walks.Walker`
    scored : gets the scores that each permutation needed
    """
    nearest = np.empty(n_neighbors, dtype=np.int32)
    votes = np.zeros(n_classes)
    for draw in draws:
        for g in range(len(indptr) - 1):
            n, base = indptr[g + 1] - indptr[g], indptr[g] + g
            arriving = order[draw, indptr[g] : indptr[g + 1]]
            changes = sums[draw, base : base + n + 1]
            changes[1:] = 0
            longest = 0
            for s in range(test_indptr[g], test_indptr[g + 1]):
                t = tests[s]
                away, table = distances[t], tables[table_of_test[t]]
                score = nothing[s]
                found = near = 0
                farthest = np.inf
                size = 1
                while size < n:
                    z = arriving[size - 1]
                    d = away[z]
                    if d <= farthest and (found < n_neighbors or d < farthest or z < nearest[found - 1]):
                        at = found if found < n_neighbors else found - 1
                        found = at + 1
                        while at > 0 and (
                            away[nearest[at - 1]] > d or (away[nearest[at - 1]] == d and nearest[at - 1] > z)
                        ):
                            nearest[at] = nearest[at - 1]
                            at -= 1
                        nearest[at] = z
                        if found == n_neighbors:
                            farthest = away[nearest[found - 1]]
                        after = score_nearest(
                            nearest, found, away, targets, truths[t], by_distance, kind, n_classes, floor, table, votes
                        )  # fmt: skip
                        changes[size] += after - score
                        score = after
                    if tolerance > 0:
                        near = near + 1 if abs(score - whole[s]) < tolerance else 0
                        if near == patience:
                            break
                    size += 1
                if size < n:
                    scored[draw] += size
                else:
                    scored[draw] += max(n - 1, 0)
                    if n > 0:
                        changes[n] += whole[s] - score
                longest = max(longest, min(size, n))
            lengths[draw, g] = longest
            for size in range(1, n + 1):
                changes[size] += changes[size - 1]
