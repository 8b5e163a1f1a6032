"""Walks through permutations for K nearest neighbours: an arrival that is not among the K nearest changes nothing."""

from __future__ import annotations

from math import log
from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import Floats, Indices, Ints
from localshapley.kernels.jit import kernel, section
from localshapley.kernels.neighbours import LABEL, LOG_LOSS, MARGIN, TINY, Labels, Score, Vote, score_average

Games: TypeAlias = tuple[Ints, Ints, Indices]
"""`indptr`, `test_indptr`, `tests`: places of the players, and test rows, of each game."""
Ends: TypeAlias = tuple[Floats, Floats, float, int]
"""`nothing`, `whole`, `tolerance`, `patience`: scores of the empty and the full coalition, in the order of the games'
test rows; and when a test row ends its walk: never, if the tolerance is 0."""
Sums: TypeAlias = tuple[Floats, Ints, Ints]
"""`sums`, `lengths`, `scored`: see `models.trainer.Walker`; and the scores that each permutation needed."""
Room: TypeAlias = tuple[Indices, Floats]
"""The nearest rows, and votes of the classes, all zero."""


def walk_neighbours(
    draws: Ints,
    order: Indices,
    games: Games,
    distances: Floats,
    labels: Labels,
    vote: Vote,
    ends: Ends,
    out: Sums,
) -> None:
    """Score the prefixes of permutations on the test rows of each game.

    Parameters
    ----------
    draws : the permutations to do
    order : players in the order of arrival, game by game, for each permutation
    games, ends : where the walks start and end
    distances : from test rows to training rows
    labels, vote : what is to be predicted, and how
    """
    room = np.empty(vote[0], dtype=np.int32), np.zeros(vote[2])
    walk_games(draws, order, games, distances, labels, vote, ends, room, out)


@kernel()
def walk_games(
    draws: Ints,
    order: Indices,
    games: Games,
    distances: Floats,
    labels: Labels,
    vote: Vote,
    ends: Ends,
    room: Room,
    out: Sums,
) -> None:
    """Walk permutation by permutation, game by game and test row by test row."""
    indptr, test_indptr, tests = games
    _, truths, tables, table_of_test = labels
    nothing, whole, tolerance, patience = ends
    sums, lengths, scored = out
    for draw in draws:
        for g in range(len(indptr) - 1):
            n, base = indptr[g + 1] - indptr[g], indptr[g] + g
            arriving = order[draw, indptr[g] : indptr[g + 1]]
            changes = sums[draw, base : base + n + 1]
            for size in range(1, n + 1):
                changes[size] = 0
            longest = 0
            for s in range(test_indptr[g], test_indptr[g + 1]):
                t = tests[s]
                score = vote[3], truths[t], vote[4], np.int64(-1), tables[table_of_test[t]]
                size, reached = walk(
                    arriving,
                    distances[t],
                    labels[0],
                    vote,
                    score,
                    nothing[s],
                    whole[s],
                    (tolerance, patience),
                    room,
                    changes,
                )
                if size < n:
                    scored[draw] += size
                else:
                    scored[draw] += max(n - 1, 0)
                    if n > 0:
                        changes[n] += whole[s] - reached
                longest = max(longest, min(size, n))
            lengths[draw, g] = longest
            for size in range(1, n + 1):
                changes[size] += changes[size - 1]


@section()
def walk(
    arriving: Indices,
    away: Floats,
    targets: Floats,
    vote: Vote,
    score: Score,
    nothing: float,
    whole: float,
    limits: tuple[float, int],
    room: Room,
    changes: Floats,
) -> tuple[int, float]:
    """Let players arrive one by one; returns the number at which the walk ended, and the score then.

    What each arrival changes in the score is added to `changes`.
    """
    n_neighbors = vote[0]
    tolerance, patience = limits
    nearest = room[0]
    reached = nothing
    found = near = 0
    farthest = np.inf
    size = 1
    while size < len(arriving):
        z = arriving[size - 1]
        d = away[z]
        if d <= farthest and (found < n_neighbors or d < farthest or z < nearest[found - 1]):
            at = found if found < n_neighbors else found - 1
            found = at + 1
            while at > 0 and (away[nearest[at - 1]] > d or (away[nearest[at - 1]] == d and nearest[at - 1] > z)):
                nearest[at] = nearest[at - 1]
                at -= 1
            nearest[at] = z
            if found == n_neighbors:
                farthest = away[nearest[found - 1]]
            after = score_nearest(found, away, targets, vote, score, room)
            changes[size] += after - reached
            reached = after
        if tolerance > 0:
            near = near + 1 if abs(reached - whole) < tolerance else 0
            if near == patience:
                break
        size += 1
    return size, reached


@section()
def score_nearest(found: int, away: Floats, targets: Floats, vote: Vote, score: Score, room: Room) -> Any:
    """Score of a vote, or mean, of the `found` nearest rows, nearest first."""
    _, by_distance, n_classes, kind, floor = vote
    truth, table = score[1], score[4]
    nearest, votes = room
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
        aim = log(n_classes) if kind == LOG_LOSS else truth
        return score_average((kind, aim, floor, score[3], table), total, weight)
    best, most, mine = -1, 0.0, 0.0
    for i in range(found):
        c = int(targets[nearest[i]])
        share = votes[c] / weight
        if kind == MARGIN and c == truth:
            mine = share
        elif share > most or (share == most and (best < 0 or c < best)):
            best, most = c, share
    for i in range(found):
        votes[int(targets[nearest[i]])] = 0.0
    return mine - most if kind == MARGIN else table[best]
