"""Exact Shapley values of K nearest neighbours, without training any coalition.

The prediction for a test row depends on the K nearest members of a coalition alone. All coalitions with the same K
nearest members, the farthest of them at place `l` of the support (sorted by distance), form a class; a row beyond `l`
changes nothing in them, so their weights add up to those of one coalition in a game of the `l + 1` nearest rows:
`+1/(K·C(l+1,K))` for the K members and `−1/((l+1−K)·C(l+1,K))` for the rows between them. Coalitions of fewer than
K rows are classes of their own. Where votes have equal weights, all classes with the farthest row at one place are
summed up at once: by their numbers of votes, or, for the squared error of many, in `knn_squares`.
"""

from __future__ import annotations

from math import log
from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import AnyArray, Floats, Ints, Lists, longest
from localshapley.kernels.jit import kernel, part, section
from localshapley.kernels.neighbours import (
    LABEL,
    LOG_LOSS,
    TINY,
    Labels,
    Score,
    Vote,
    leader,
    score_average,
    score_votes,
)

RUN = 16
"""Rows are sorted in runs of this length, which are then merged."""

Rows: TypeAlias = tuple[Floats, Floats, Ints, int, int]
"""`weights`, `targets`, `codes`, `n_zero`, `n_classes`, of the rows of a support, nearest first.

`weights` has a row for coalitions without a row at distance 0, and one for the others; `n_zero` rows are at distance 0.
Targets are the numbers to be averaged: 1 for an own vote where there are classes, of which `codes` are the numbers.
"""
Levels: TypeAlias = tuple[Ints, Floats, Floats, Floats, Floats]
"""`places`, `weight`, `total`, `sums`, `votes`, by level: the place of a member; the sums of weights, targets and
votes over the members up to it (zero at level 0); and the sum of the scores so far."""
Room: TypeAlias = tuple[Ints, Ints, Floats, Floats, Ints, Floats, Floats, Ints, Floats, Floats, Floats]
"""`order`, `merged`, `weights`, `targets`, `codes`, `values`, `losses`, `number`, `table`, `pairs`, `logs`.

For the rows of a support: places by distance, room to sort them, what `Rows` holds, values and losses; for each class
its number in the support, and for each number its score; room for three pairs of numbers; logarithms of factorials.
"""


def class_values(
    supports: Lists,
    tests: Ints,
    distances: Floats,
    labels: Labels,
    vote: Vote,
    nothing: Floats,
    out: Floats,
) -> None:
    """Exact values of the players of each test row's support, by classes of coalitions.

    Parameters
    ----------
    supports : supports of the test rows; `distances` and `out` have an entry for each player
    tests : the test rows to do
    labels, vote : what is to be predicted, and how
    nothing : score of the empty coalition on each test row
    """
    indptr, n_neighbors, n_classes = supports[0], vote[0], vote[2]
    largest = longest(indptr, tests)
    depth = min(n_neighbors, largest) + 1
    levels = np.empty(depth, dtype=np.int64), *np.zeros((3, depth)), np.zeros((depth, n_classes))
    order, merged, codes = np.empty((3, largest), dtype=np.int64)
    room = (
        order,
        merged,
        np.empty((2, largest)),
        np.empty(largest),
        codes,
        *np.empty((2, largest)),
        np.empty(n_classes, dtype=np.int64),
        np.empty(n_classes),
        np.empty((3, 2)),
        np.zeros(largest + 2),
    )
    if not vote[1]:
        is_done = np.zeros(len(tests), dtype=bool)
        count_supports(supports, tests, distances, labels, vote, nothing, room, out, is_done)
        tests = tests[~is_done]
    if len(tests) > 0:
        enumerate_supports(supports, tests, distances, labels, vote, nothing, levels, room, out)


@kernel()
def count_supports(
    supports: Lists,
    tests: Ints,
    distances: Floats,
    labels: Labels,
    vote: Vote,
    nothing: Floats,
    room: Room,
    out: Floats,
    is_done: AnyArray,
) -> None:
    """Values by counting votes, for the test rows where nothing but their number matters."""
    indptr = supports[0]
    n_neighbors, _, _, kind, _ = vote
    order, values, logs = room[0], room[5], room[10]
    for i in range(2, len(logs)):
        logs[i] = logs[i - 1] + log(i)
    for at in range(len(tests)):
        t = tests[at]
        start, n = indptr[t], indptr[t + 1] - indptr[t]
        sort_places(distances, start, n, order, room[1])
        rows, score = load_rows(t, supports, distances, labels, vote, room)
        if kind <= LOG_LOSS or (kind >= LABEL and rows[4] <= 2):
            is_done[at] = True
            count_values(n, n_neighbors, score, nothing[t], rows, room)
            for i in range(n):
                out[start + order[i]] = values[i]


@kernel()
def enumerate_supports(
    supports: Lists,
    tests: Ints,
    distances: Floats,
    labels: Labels,
    vote: Vote,
    nothing: Floats,
    levels: Levels,
    room: Room,
    out: Floats,
) -> None:
    """Values by scoring all classes of coalitions."""
    indptr = supports[0]
    order, values = room[0], room[5]
    for t in tests:
        start, n = indptr[t], indptr[t + 1] - indptr[t]
        sort_places(distances, start, n, order, room[1])
        rows, score = load_rows(t, supports, distances, labels, vote, room)
        common = enumerate_values(n, vote[0], score, nothing[t], rows, levels, room)
        for i in range(n):
            out[start + order[i]] = values[i] - common


@section()
def sort_places(distances: Floats, start: int, n: int, order: Ints, merged: Ints) -> None:
    """Sort the places of a support by distance, ties in their order: short runs by insertion, then merged."""
    for i in range(n):
        at = i
        while at > i - i % RUN and is_nearer(distances[start + i], distances[start + order[at - 1]]):
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
    width = RUN
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                if j < high and (i == middle or is_nearer(distances[start + order[j]], distances[start + order[i]])):
                    merged[k] = order[j]
                    j += 1
                else:
                    merged[k] = order[i]
                    i += 1
        for k in range(n):
            order[k] = merged[k]
        width *= 2


@part()
def is_nearer(a: float, b: float) -> bool:
    """Whether one distance is less than another; NaN is farthest."""
    return a < b or (a == a and b != b)


@section()
def load_rows(t: int, supports: Lists, distances: Floats, labels: Labels, vote: Vote, room: Room) -> Any:
    """The rows of a support, in their order, as a test row sees them; and how it scores votes."""
    indptr, players = supports
    of_rows, truths, tables, table_of_test = labels
    _, by_distance, n_classes, kind, floor = vote
    order, _, weights, targets, codes, _, _, number, table, _, _ = room
    start, n = indptr[t], indptr[t + 1] - indptr[t]
    n_zero = 0
    for i in range(n):
        d = distances[start + order[i]]
        targets[i] = of_rows[players[start + order[i]]]
        weights[0, i] = 1.0
        weights[1, i] = 0.0
        if by_distance and d < TINY:
            weights[1, i] = 1.0
            n_zero += 1
        elif by_distance:
            weights[0, i] = 1 / d
    truth, own, n_found = truths[t], np.int64(-1), np.int64(0)
    if n_classes:
        n_found = number_classes(targets, n, tables[table_of_test[t]], codes, number, table)
        if truth >= 0:
            own = number[int(truth)]
        for i in range(n):
            targets[i] = 1.0 if targets[i] == truth else 0.0
        truth = log(n_classes)  # only the log loss reads it
    return (weights, targets, codes, n_zero, n_found), (kind, truth, floor, own, table)


@section()
def number_classes(labels: Floats, n: int, scores: Floats, codes: Ints, number: Ints, table: Floats) -> int:
    """Number the classes that a support has, in their order: fewer votes to keep. Returns how many there are."""
    for c in range(len(number)):
        number[c] = -1
    for i in range(n):
        number[int(labels[i])] = 0
    found = 0
    for c in range(len(number)):
        if number[c] == 0:
            number[c] = found
            table[found] = scores[c]
            found += 1
    for i in range(n):
        codes[i] = number[int(labels[i])]
    return found


@section()
def count_values(n: int, n_neighbors: int, score: Score, nothing: float, rows: Rows, room: Room) -> None:
    """Exact values where all votes are equal and the score depends on how many of them are marked.

    Own votes are marked, or those of the second class of two. The mean score of the coalitions of a class is that of a
    draw without replacement, so all classes with the farthest row at one place, or of one size, cost as much as
    one.
    """
    marks, values, pairs, logs = room[3], room[5], room[9], room[10]
    if score[0] >= LABEL:
        for i in range(n):
            marks[i] = rows[2][i]
    votes, of_mark, behind = pairs[0], pairs[1], pairs[2]  # what each marked or unmarked row gets
    n_marked, nobody = np.int64(0), np.int64(0)
    for i in range(n):
        n_marked += int(marks[i])
    of_mark[0] = of_mark[1] = behind[0] = behind[1] = 0.0
    common = nothing / n if n else 0.0
    for size in range(1, min(n_neighbors, n + 1)):
        if size == n:
            common -= score_count(score, n_marked, n, votes) / n
            continue
        whole = mean_score(n, n_marked, size, nobody, size, score, votes, logs)
        for m in range(2):
            if (n_marked if m else n - n_marked) > 0:
                with_it = mean_score(n - 1, n_marked - m, size - 1, m, size, score, votes, logs)
                of_mark[m] += (with_it - whole) / (n - size)
    for last in range(n - 1, -1, -1):
        mark = int(marks[last])
        n_marked -= mark
        values[last] = of_mark[mark] + behind[mark] - common
        if last < n_neighbors - 1:
            continue
        whole = mean_score(last, n_marked, n_neighbors - 1, mark, n_neighbors, score, votes, logs)
        values[last] += whole / (last + 1)
        between = last + 1 - n_neighbors
        for m in range(2):
            member = 0.0
            if n_neighbors > 1 and (n_marked if m else last - n_marked) > 0:
                member = mean_score(last - 1, n_marked - m, n_neighbors - 2, mark + m, n_neighbors, score, votes, logs)
                member = (n_neighbors - 1) / last * member
            behind[m] += member / (last + 1)
            if between:
                behind[m] += (member - whole) * n_neighbors / ((last + 1) * between)


@part()
def mean_score(
    n: int, n_marked: int, drawn: int, before: int, size: int, score: Score, votes: Floats, logs: Floats
) -> float:
    """Mean score if `drawn` of `n` rows, `n_marked` of them marked, join members of which `before` are marked."""
    total = 0.0
    everything = logs[n] - logs[drawn] - logs[n - drawn]
    for h in range(max(0, drawn - n + n_marked), min(n_marked, drawn) + 1):
        chance = np.exp(
            logs[n_marked] - logs[h] - logs[n_marked - h]
            + logs[n - n_marked] - logs[drawn - h] - logs[n - n_marked - drawn + h]
            - everything
        )  # fmt: skip
        total += chance * score_count(score, before + h, size, votes)
    return total


@part()
def score_count(score: Score, marked: int, size: int, votes: Floats) -> Any:
    """Score of `size` equal votes, `marked` of them for the own class (averages) or for the second of two classes."""
    if score[0] < LABEL:
        return score_average(score, float(marked), float(size))
    votes[0], votes[1] = size - marked, marked
    first = np.int64(0)
    return score_votes(score, votes, leader(score, votes, len(votes)), first, 0.0, first, 0.0, float(size))


@section()
def enumerate_values(
    n: int, n_neighbors: int, score: Score, nothing: float, rows: Rows, levels: Levels, room: Room
) -> float:
    """Exact values by scoring all classes of coalitions; returns what is to be subtracted from all of them."""
    values, losses = room[5], room[6]
    for i in range(n):
        values[i] = losses[i] = 0.0
    common = nothing / n if n else 0.0
    choices = 1.0
    for size in range(1, min(n_neighbors, n) + 1):
        is_full = size == n_neighbors
        # C(n, size), or C(last + 1, size) of a game that ends with the farthest row
        choices = 1.0 if is_full else choices * ((n - size + 1) / size)
        for last in range(size - 1, n):
            n_rows = last + 1 if is_full else n
            loss = 1 / ((n_rows - size) * choices) if n_rows > size else 0.0
            gain = 1 / (size * choices) + loss
            found = loss * add_classes(size, last, gain, score, rows, levels, values)
            if is_full:
                losses[last] = found
                choices *= (last + 2) / (last + 2 - size)
            else:
                common += found
    beyond = 0.0
    for i in range(n - 1, -1, -1):
        beyond += losses[i]
        values[i] -= beyond
    return common


@section()
def add_classes(size: int, last: int, gain: float, score: Score, rows: Rows, levels: Levels, values: Floats) -> float:
    """Score every coalition of `size` rows whose farthest is at place `last`, and return the sum of the scores.

    Each score, times `gain`, is added to the values of its members. The other members run through all places
    before `last`, nearest first.
    """
    places, _, _, sums, _ = levels
    free = size - 1
    level = 0
    places[0] = 0
    sums[0] = 0
    below = 0.0
    while level >= 0:
        if free == 0:
            below = score_one(last, score, rows, levels)
        elif level == free - 1:
            below = score_pairs(level, last, gain, score, rows, levels, values)
        elif places[level] + free - level <= last:
            take(level, score, rows, levels)
            level += 1
            continue
        else:
            below = sums[level]
        level -= 1
        if level >= 0:
            values[places[level]] += gain * below
            sums[level] += below
            places[level] += 1
    values[last] += gain * below
    return below


@section()
def score_one(last: int, score: Score, rows: Rows, levels: Levels) -> Any:
    """Score of a row alone."""
    _, targets, codes, _, n_classes = rows
    if score[0] < LABEL:
        return score_average(score, targets[last], 1.0)
    nobody = levels[4][0]
    return score_votes(score, nobody, leader(score, nobody, n_classes), codes[last], 1.0, codes[last], 0.0, 1.0)


@section()
def score_pairs(level: int, last: int, gain: float, score: Score, rows: Rows, levels: Levels, values: Floats) -> float:
    """Sum of the scores of the members so far with the row at place `last` and each of those between."""
    weights, targets, codes, n_zero, n_classes = rows
    places, weight, total, _, votes = levels
    averages = score[0] < LABEL
    silenced = int(level > 0 and places[0] < n_zero)
    held = votes[level]
    best = -1 if averages else leader(score, held, n_classes)
    below = 0.0
    for x in range(places[level], last):
        if level == 0:
            silenced = int(x < n_zero)
        here, there = weights[silenced, x], weights[silenced, last]
        whole = weight[level] + here + there
        if averages:
            found = score_average(score, total[level] + here * targets[x] + there * targets[last], whole)
        else:
            found = score_votes(score, held, best, codes[x], here, codes[last], there, whole)
        values[x] += gain * found
        below += found
    return below


@section()
def take(level: int, score: Score, rows: Rows, levels: Levels) -> None:
    """Add the row at the current place as a member, and begin the next level right after it."""
    weights, targets, codes, n_zero, n_classes = rows
    places, weight, total, sums, votes = levels
    x = places[level]
    here = weights[int(places[0] < n_zero), x]
    weight[level + 1] = weight[level] + here
    total[level + 1] = total[level] + here * targets[x]
    if score[0] >= LABEL:
        for c in range(n_classes):
            votes[level + 1, c] = votes[level, c]
        votes[level + 1, codes[x]] += here
    places[level + 1] = x + 1
    sums[level + 1] = 0
