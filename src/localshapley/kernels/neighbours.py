"""K nearest neighbours: predictions of coalitions, and exact Shapley values without training any.

The prediction for a test row depends on the K nearest members of a coalition alone. All coalitions with the same K
nearest members, the farthest of them at place `l` of the support (sorted by distance), form a class; a row beyond `l`
changes nothing in them, so their weights add up to those of one coalition in a game of the `l + 1` nearest rows:
`+1/(K·C(l+1,K))` for the K members and `−1/((l+1−K)·C(l+1,K))` for the rows between them. Coalitions of fewer than
K rows are classes of their own.

Equally near rows count as nearer in the order of their index. With weights by distance, rows at distance 0 silence
all others, as in scikit-learn.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
from numba import njit

from localshapley.arrays import AnyArray, Floats, Indices, Ints

TINY = 1 / np.finfo(np.float64).max
"""A row so near has no weight that a float could hold, and counts as being at distance 0."""
CONFIDENCE, LOG_LOSS, SQUARED_ERROR, ABSOLUTE_ERROR, LABEL, MARGIN = range(6)


@njit(cache=True, nogil=True)
def euclidean_pairs(X: AnyArray, X_test: AnyArray, indptr: Ints, players: Indices, tests: Ints, out: Floats) -> None:
    """Distances of test rows to the players of their supports."""
    for t in tests:
        for i in range(indptr[t], indptr[t + 1]):
            z = players[i]
            total = 0.0
            for j in range(X.shape[1]):
                difference = np.float64(X[z, j]) - np.float64(X_test[t, j])
                total += difference * difference
            out[i] = np.sqrt(total)


@njit(cache=True, nogil=True)
def predict_neighbours(
    indptr: Ints,
    players: Indices,
    test_indptr: Ints,
    tests: Indices,
    todo: Ints,
    row_of_test: Ints,
    distances: Floats,
    targets: Floats,
    n_neighbors: int,
    by_distance: bool,
    n_classes: int,
    out: Floats,
) -> None:
    """Predict the test rows of coalitions: shares of the votes of each class, or (`n_classes` 0) a mean."""
    nearest = np.empty(n_neighbors, dtype=np.int64)
    for c in todo:
        for s in range(test_indptr[c], test_indptr[c + 1]):
            row = row_of_test[tests[s]]
            found = 0
            for i in range(indptr[c], indptr[c + 1]):
                z = players[i]
                d = distances[row, z]
                if found == n_neighbors:
                    if d >= distances[row, nearest[found - 1]]:
                        continue
                    found -= 1
                at = found
                while at > 0 and distances[row, nearest[at - 1]] > d:
                    nearest[at] = nearest[at - 1]
                    at -= 1
                nearest[at] = z
                found += 1
            silenced = by_distance and distances[row, nearest[0]] < TINY
            total = 0.0
            out[s] = 0
            for i in range(found):
                d = distances[row, nearest[i]]
                weight = 1.0
                if silenced:
                    weight = 1.0 if d < TINY else 0.0
                elif by_distance:
                    weight = 1 / d
                target = targets[nearest[i]]
                if n_classes:
                    out[s, int(target)] += weight
                else:
                    out[s, 0] += weight * target
                total += weight
            out[s] /= total


@njit(cache=True, nogil=True)
def score_average(kind: int, total: float, weight: float, truth: float, floor: float) -> float:
    """Score of a weighted mean: of own votes, or of targets.

    For the log loss `truth` is `log(classes)`.
    """
    mean = total / weight
    if kind == CONFIDENCE:
        return mean
    if kind == LOG_LOSS:
        return log(max(mean, floor)) + truth
    if kind == SQUARED_ERROR:
        return -((truth - mean) * (truth - mean))
    return -abs(truth - mean)


@njit(cache=True, nogil=True)
def leader(kind: int, votes: Floats, own: int) -> int:
    """The class with most votes, the first of equals; for the margin the best of the others (−1: there are none)."""
    best = -1
    for c in range(len(votes)):
        if (kind == LABEL or c != own) and (best < 0 or votes[c] > votes[best]):
            best = c
    return best


@njit(cache=True, nogil=True)
def score_votes(
    kind: int,
    votes: Floats,
    best: int,
    one: int,
    here: float,
    two: int,
    there: float,
    weight: float,
    own: int,
    table: Floats,
) -> Any:
    """Score once the classes `one` and `two` have got `here` and `there` more votes; `best` led before.

    The score is that of the class with most votes, the first of equals, or the margin of `own` (−1: without votes).
    """
    ones, twos = votes[one] + here, votes[two] + there
    if one == two:
        ones = twos = votes[one] + here + there
    if kind == LABEL:
        most = votes[best]
        if ones > most or (ones == most and one < best):
            best, most = one, ones
        if twos > most or (twos == most and two < best):
            best = two
        return table[best]
    other = votes[best] if best >= 0 else 0.0
    mine = votes[own] if own >= 0 else 0.0
    if one == own:
        mine = ones
    elif ones > other:
        other = ones
    if two == own:
        mine = twos
    elif twos > other:
        other = twos
    return (mine - other) / weight


@njit(cache=True, nogil=True)
def add_classes(
    size: int,
    last: int,
    gain: float,
    kind: int,
    weights: Floats,
    n_zero: int,
    targets: Floats,
    codes: Ints,
    own: int,
    truth: float,
    floor: float,
    table: Floats,
    places: Ints,
    weight: Floats,
    total: Floats,
    votes: Floats,
    sums: Floats,
    values: Floats,
) -> float:
    """Score every coalition of `size` rows whose farthest is at place `last`, and return the sum of the scores.

    Each score, times `gain`, is added to the values of its members. The other members run through all places
    before `last`, nearest first; `weight`, `total` and `votes` hold what the members up to each level add up to.
    """
    averages = kind < LABEL
    free = size - 1
    level = 0
    places[0] = 0
    sums[0] = 0
    while True:
        below = 0.0
        if free == 0:
            if averages:
                below = score_average(kind, targets[last], 1.0, truth, floor)
            else:
                best = leader(kind, votes[0], own)
                code = codes[last]
                below = score_votes(kind, votes[0], best, code, 1.0, code, 0.0, 1.0, own, table)
        elif level == free - 1:
            silenced = int(level > 0 and places[0] < n_zero)
            held = votes[level]
            best = -1 if averages else leader(kind, held, own)
            for x in range(places[level], last):
                if level == 0:
                    silenced = int(x < n_zero)
                here, there = weights[silenced, x], weights[silenced, last]
                if averages:
                    score = score_average(
                        kind,
                        total[level] + here * targets[x] + there * targets[last],
                        weight[level] + here + there,
                        truth,
                        floor,
                    )
                else:
                    score = score_votes(
                        kind,
                        held,
                        best,
                        codes[x],
                        here,
                        codes[last],
                        there,
                        weight[level] + here + there,
                        own,
                        table,
                    )
                values[x] += gain * score
                below += score
        elif places[level] + free - level <= last:
            x = places[level]
            here = weights[int(places[0] < n_zero), x]
            weight[level + 1] = weight[level] + here
            total[level + 1] = total[level] + here * targets[x]
            if not averages:
                for c in range(votes.shape[1]):
                    votes[level + 1, c] = votes[level, c]
                votes[level + 1, codes[x]] += here
            level += 1
            places[level] = x + 1
            sums[level] = 0
            continue
        else:
            below = sums[level]
        level -= 1
        if level < 0:
            values[last] += gain * below
            return below
        values[places[level]] += gain * below
        sums[level] += below
        places[level] += 1


@njit(cache=True, nogil=True)
def score_count(
    kind: int, marked: int, size: int, own: int, truth: float, floor: float, table: Floats, votes: Floats
) -> Any:
    """Score of `size` equal votes, `marked` of them for the own class (averages) or for the second of two classes."""
    if kind < LABEL:
        return score_average(kind, float(marked), float(size), truth, floor)
    votes[0], votes[1] = size - marked, marked
    best = leader(kind, votes, own)
    return score_votes(kind, votes, best, 0, 0.0, 0, 0.0, float(size), own, table)


@njit(cache=True, nogil=True)
def mean_score(
    n: int,
    n_marked: int,
    drawn: int,
    before: int,
    size: int,
    kind: int,
    own: int,
    truth: float,
    floor: float,
    table: Floats,
    votes: Floats,
    logs: Floats,
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
        total += chance * score_count(kind, before + h, size, own, truth, floor, table, votes)
    return total


@njit(cache=True, nogil=True)
def count_values(
    marks: Floats,
    n_neighbors: int,
    kind: int,
    own: int,
    truth: float,
    floor: float,
    table: Floats,
    nothing: float,
    logs: Floats,
) -> Floats:
    """Exact values where all votes are equal and the score depends on how many of them are marked.

    Rows come nearest first. The mean score of the coalitions of a class is that of a draw without replacement, so
    the classes with the farthest row at one place, or those of one size, cost as much as one.
    """
    n = len(marks)
    votes = np.zeros(2)
    of_mark = np.zeros(2)  # what every marked or unmarked row gets
    n_marked = int(marks.sum())
    common = nothing / n if n else 0.0
    for size in range(1, min(n_neighbors, n + 1)):
        if size == n:
            common -= score_count(kind, n_marked, n, own, truth, floor, table, votes) / n
            continue
        whole = mean_score(n, n_marked, size, 0, size, kind, own, truth, floor, table, votes, logs)
        for m in range(2):
            if (n_marked if m else n - n_marked) > 0:
                with_it = mean_score(
                    n - 1, n_marked - m, size - 1, m, size, kind, own, truth, floor, table, votes, logs
                )
                of_mark[m] += (with_it - whole) / (n - size)
    values = np.empty(n)
    behind = np.zeros(2)
    for last in range(n - 1, -1, -1):
        mark = int(marks[last])
        n_marked -= mark
        values[last] = of_mark[mark] + behind[mark] - common
        if last < n_neighbors - 1:
            continue
        whole = mean_score(
            last, n_marked, n_neighbors - 1, mark, n_neighbors, kind, own, truth, floor, table, votes, logs
        )
        values[last] += whole / (last + 1)
        between = last + 1 - n_neighbors
        for m in range(2):
            member = 0.0
            if n_neighbors > 1 and (n_marked if m else last - n_marked) > 0:
                member = (n_neighbors - 1) / last * mean_score(
                    last - 1, n_marked - m, n_neighbors - 2, mark + m, n_neighbors,
                    kind, own, truth, floor, table, votes, logs,
                )  # fmt: skip
            behind[m] += member / (last + 1)
            if between:
                behind[m] += (member - whole) * n_neighbors / ((last + 1) * between)
    return values


@njit(cache=True, nogil=True)
def class_values(
    indptr: Ints,
    players: Indices,
    tests: Ints,
    distances: Floats,
    targets: Floats,
    truths: Floats,
    nothing: Floats,
    tables: Floats,
    table_of_test: Ints,
    n_neighbors: int,
    by_distance: bool,
    kind: int,
    n_classes: int,
    floor: float,
    out: Floats,
) -> None:
    """Exact values of the players of each test row's support, by classes of coalitions.

    Parameters
    ----------
    indptr, players : supports of the test rows (CSR); `distances` and `out` have an entry for each player
    tests : the test rows to do
    targets, truths : of training and test rows: class codes, or numbers where `n_classes` is 0
    nothing : score of the empty coalition on each test row
    tables, table_of_test : scores of predicting each class, one row for each distinct label of the test rows
    """
    largest = 0
    for t in tests:
        largest = max(largest, indptr[t + 1] - indptr[t])
    depth = min(n_neighbors, largest) + 1
    places = np.zeros(depth, dtype=np.int64)
    weight, total, sums = np.zeros(depth), np.zeros(depth), np.zeros(depth)
    weights = np.zeros((2, largest))
    codes = np.zeros(largest, dtype=np.int64)
    local = np.zeros(largest)
    logs = np.zeros(largest + 2)  # of the factorials
    for i in range(2, largest + 2):
        logs[i] = logs[i - 1] + log(i)
    for t in tests:
        start, n = indptr[t], indptr[t + 1] - indptr[t]
        order = np.argsort(distances[start : start + n], kind="mergesort")
        n_zero = 0
        for i in range(n):
            d = distances[start + order[i]]
            local[i] = targets[players[start + order[i]]]
            weights[0, i] = 1.0
            weights[1, i] = 0.0
            if by_distance and d < TINY:
                weights[1, i] = 1.0
                n_zero += 1
            elif by_distance:
                weights[0, i] = 1 / d
        truth = truths[t]
        own = -1
        n_local = 0
        table = tables[table_of_test[t]]
        if n_classes:
            codes, own, n_local, table = _number_classes(local, n, truth, n_classes, table, codes)
            for i in range(n):
                local[i] = 1.0 if local[i] == truth else 0.0
            truth = log(n_classes)  # only the log loss reads it
        if not by_distance and (kind <= LOG_LOSS or (kind >= LABEL and n_local <= 2)):
            if kind >= LABEL:  # votes of the second class; there are two
                for i in range(n):
                    local[i] = codes[i]
            values = count_values(local[:n], n_neighbors, kind, own, truth, floor, table, nothing[t], logs)
            for i in range(n):
                out[start + order[i]] = values[i]
            continue
        votes = np.zeros((depth, n_local))
        values = np.zeros(n)
        common = nothing[t] / n if n else 0.0
        choices = 1.0  # C(n, size)
        for size in range(1, min(n_neighbors, n + 1)):
            choices *= (n - size + 1) / size
            loss = 1 / ((n - size) * choices) if size < n else 0.0
            gain = 1 / (size * choices) + loss
            for last in range(size - 1, n):
                common += loss * add_classes(
                    size, last, gain, kind, weights, n_zero, local, codes, own, truth, floor, table,
                    places, weight, total, votes, sums, values,
                )  # fmt: skip
        beyond = 0.0
        if n >= n_neighbors:
            size = n_neighbors
            choices = 1.0  # C(last + 1, size)
            losses = np.zeros(n)
            for last in range(size - 1, n):
                loss = 1 / ((last + 1 - size) * choices) if last + 1 > size else 0.0
                gain = 1 / (size * choices) + loss
                losses[last] = loss * add_classes(
                    size, last, gain, kind, weights, n_zero, local, codes, own, truth, floor, table,
                    places, weight, total, votes, sums, values,
                )  # fmt: skip
                choices *= (last + 2) / (last + 2 - size)
            for i in range(n - 1, -1, -1):
                beyond += losses[i]
                values[i] -= beyond
        for i in range(n):
            out[start + order[i]] = values[i] - common


@njit(cache=True, nogil=True)
def _number_classes(labels: Floats, n: int, truth: float, n_classes: int, table: Floats, codes: Ints) -> Any:
    """Number the classes that a support has, in their order: fewer votes to keep."""
    number = np.full(n_classes, -1)
    for i in range(n):
        number[int(labels[i])] = 0
    scores = np.zeros(n_classes)
    found = 0
    for c in range(n_classes):
        if number[c] == 0:
            number[c] = found
            scores[found] = table[c] if len(table) else 0.0
            found += 1
    for i in range(n):
        codes[i] = number[int(labels[i])]
    own = number[int(truth)] if truth >= 0 else -1
    return codes, own, found, scores[:found]
