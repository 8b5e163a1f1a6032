"""K nearest neighbours: distances, predictions of coalitions, and scores of votes.

Equally near rows count as nearer in the order of their index. With weights by distance, rows at distance 0 take
all the weight, as in scikit-learn.
"""

from __future__ import annotations

from math import log
from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import AnyArray, CoalitionArrays, Floats, Indices, Ints
from localshapley.kernels.jit import kernel, part

TINY = 1 / np.finfo(np.float64).max
"""The weight of a row nearer than this would overflow a float; it counts as being at distance 0."""
CONFIDENCE, LOG_LOSS, SQUARED_ERROR, ABSOLUTE_ERROR, LABEL, MARGIN = range(6)

Vote: TypeAlias = tuple[int, bool, int, int, float]
"""`n_neighbors`, `by_distance`, `n_classes` (0: a mean), `kind` of score, and `floor` of the log loss."""
Labels: TypeAlias = tuple[Floats, Floats, Floats, Ints]
"""`targets`, `truths`, `tables`, `table_of_test`: of training and test rows class codes, or numbers where there are no
classes; and the scores of predicting each class, one row for each distinct label of the test rows."""
Score: TypeAlias = tuple[int, float, float, int, Floats]
"""`kind`, `truth`, `floor`, `own`, `table`: how the votes for one test row are scored.

`truth` is the number to be predicted; for the log loss it is `log(classes)`. `own` is the row's class (−1: without
votes), and the table has the score of predicting each class.
"""


@kernel()
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


@kernel()
def predict_neighbours(
    coalitions: CoalitionArrays,
    todo: Ints,
    row_of_test: Ints,
    distances: Floats,
    targets: Floats,
    vote: Vote,
    nearest: Ints,
    out: Floats,
) -> None:
    """Predict the test rows of coalitions: shares of the votes of each class, or (`n_classes` 0) a mean.

    There is room for the nearest rows.
    """
    indptr, players, test_indptr, tests = coalitions
    n_neighbors, by_distance, n_classes, _, _ = vote
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
            for k in range(out.shape[1]):
                out[s, k] = 0.0
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
            for k in range(out.shape[1]):
                out[s, k] /= total


@part()
def score_average(score: Score, total: float, weight: float) -> float:
    """Score of a weighted mean: of own votes, or of targets."""
    kind, truth, floor, _, _ = score
    mean = total / weight
    if kind == CONFIDENCE:
        return mean
    if kind == LOG_LOSS:
        return log(max(mean, floor)) + truth
    if kind == SQUARED_ERROR:
        return -((truth - mean) * (truth - mean))
    return -abs(truth - mean)


@part()
def leader(score: Score, votes: Floats, n_classes: int) -> int:
    """The class with the most votes, the first of equals; for the margin the best of the others (−1 for none)."""
    kind, _, _, own, _ = score
    best = -1
    for c in range(n_classes):
        if (kind == LABEL or c != own) and (best < 0 or votes[c] > votes[best]):
            best = c
    return best


@part()
def score_votes(
    score: Score, votes: Floats, best: int, one: int, here: float, two: int, there: float, weight: float
) -> Any:
    """Score once the classes `one` and `two` have got `here` and `there` more votes; `best` led before.

    The score is that of the class with the most votes, the first of equals, or the margin of the own class.
    """
    kind, _, _, own, table = score
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
