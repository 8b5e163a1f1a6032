"""Gaussian naive Bayes of many small coalitions: mean and variance of each class in each column."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import CoalitionArrays, Floats, Indices, Ints
from localshapley.kernels.decisions import LABEL
from localshapley.kernels.jit import kernel, part, section

Tables: TypeAlias = tuple[Floats, Floats]
"""Training and test rows."""
Room: TypeAlias = tuple[Floats, Floats, Floats, Floats, Ints]
"""Means and variances by class and column, two lines of columns; for each class what all test rows share of its
likelihood, and its number of rows."""


def train_bayes(
    coalitions: CoalitionArrays,
    todo: Ints,
    tables: Tables,
    codes: Ints,
    smoothing: float,
    form: int,
    out: Floats,
) -> None:
    """Naive Bayes of the coalitions `todo`; probabilities of their test rows' classes, or their label, go to `out`."""
    n_classes, p = out.shape[1], tables[0].shape[1]
    means, variances = np.empty((2, n_classes, p))
    room = means, variances, np.empty((2, p)), np.empty(n_classes), np.empty(n_classes, dtype=np.int64)
    fit_bayes(coalitions, todo, tables, codes, smoothing, form == LABEL, room, out)


@kernel(error_model="numpy")
def fit_bayes(
    coalitions: CoalitionArrays,
    todo: Ints,
    tables: Tables,
    codes: Ints,
    smoothing: float,
    labels: bool,
    room: Room,
    out: Floats,
) -> None:
    """Train and predict, coalition by coalition."""
    indptr, players, test_indptr, tests = coalitions
    X, X_test = tables
    means, variances, lines, base, count = room
    for c in todo:
        members = players[indptr[c] : indptr[c + 1]]
        describe(members, X, codes, means, variances, count)
        floor = smoothing * largest_variance(members, X, lines)
        for j in range(len(count)):
            base[j] = math.log(count[j] / len(members)) if count[j] > 0 else 0.0
            for a in range(X.shape[1]):
                variances[j, a] += floor
                if count[j] > 0:
                    base[j] -= math.log(2 * math.pi * variances[j, a]) / 2
        for s in range(test_indptr[c], test_indptr[c + 1]):
            best = -1
            for j in range(len(count)):
                if count[j] > 0:
                    out[s, j] = base[j] - distance(X_test[tests[s]], means[j], variances[j]) / 2
                    if best < 0 or out[s, j] > out[s, best] or (math.isnan(out[s, j]) and not math.isnan(out[s, best])):
                        best = j
            write_shares(out[s], best, labels, count)


@section()
def write_shares(out: Floats, best: int, labels: bool, count: Ints) -> None:
    """Turn likelihoods of the classes into probabilities, or into a one at the label; NaN counts as the largest."""
    top, total = out[best], 0.0
    for j in range(len(count)):
        if labels:
            out[j] = 1.0 if j == best else 0.0
        else:
            out[j] = math.exp(out[j] - top) if count[j] > 0 else 0.0
            total += out[j]
    if not labels:
        for j in range(len(count)):
            out[j] /= total


@section()
def describe(members: Indices, X: Floats, codes: Ints, means: Floats, variances: Floats, count: Ints) -> None:
    """Write mean and variance of each class in each column."""
    n_classes, p = means.shape
    for j in range(n_classes):
        count[j] = 0
        for a in range(p):
            means[j, a] = variances[j, a] = 0.0
    for z in members:
        count[codes[z]] += 1
        for a in range(p):
            means[codes[z], a] += X[z, a]
    for j in range(n_classes):
        for a in range(p):
            means[j, a] /= max(count[j], 1)
    for z in members:
        for a in range(p):
            away = X[z, a] - means[codes[z], a]
            variances[codes[z], a] += away * away
    for j in range(n_classes):
        for a in range(p):
            variances[j, a] /= max(count[j], 1)


@section()
def largest_variance(members: Indices, X: Floats, lines: Floats) -> float:
    """The largest variance of a column."""
    k, p = len(members), X.shape[1]
    middle, spread = lines
    for a in range(p):
        middle[a] = spread[a] = 0.0
    for z in members:
        for a in range(p):
            middle[a] += X[z, a] / k
    for z in members:
        for a in range(p):
            away = X[z, a] - middle[a]
            spread[a] += away * away / k
    largest = 0.0
    for a in range(p):
        largest = max(largest, spread[a])
    return largest


@part(error_model="numpy")
def distance(x: Floats, means: Floats, variances: Floats) -> Any:
    """Squared distance of a row to the mean of a class, in units of its variances; NaN where one is zero."""
    total = 0.0
    for a in range(len(x)):
        away = x[a] - means[a]
        total += away * away / variances[a]
    return total
