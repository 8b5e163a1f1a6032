"""Support vector machines of many coalitions: train each, decide on its test rows, write what the score reads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from localshapley.arrays import Floats, Indices, Ints
from localshapley.kernels.gram import Kernel, Rows, compiled, largest_coalition, read_diagonal, read_test
from localshapley.kernels.smo import make_scratch, solve

LABEL, MARGIN, PROBABILITY = range(3)


@compiled
def train_regressors(
    indptr: Ints,
    players: Indices,
    test_indptr: Ints,
    tests: Indices,
    todo: Ints,
    kernel: Kernel,
    gammas: Floats,
    rows: Rows,
    y: Floats,
    C: float,
    epsilon: float,
    tol: float,
    shrinking: bool,
    out: Floats,
) -> None:
    """Train a machine on each coalition and write its predictions, NaN where a kernel value is too large."""
    X, X_test, gram, cross, norms = rows
    most = largest_coalition(indptr, todo)
    coalition, machine = make_scratch(most, 2 * most)
    vectors = np.empty(most, dtype=np.int32)
    weights = np.empty(most)
    ordered, own, line, has, _ = coalition
    alpha, slope = machine[:2]
    starts = np.zeros(2, dtype=np.int64)
    for k in range(len(todo)):
        c, gamma = todo[k], gammas[k]
        members = players[indptr[c] : indptr[c + 1]]
        n = len(members)
        ordered[:n] = members
        has[:n] = False
        read_diagonal(kernel, gamma, gram, norms, members, own)
        for i in range(n):
            slope[i] = epsilon - y[members[i]]
            slope[n + i] = -(epsilon + y[members[i]])
        offset = solve(
            kernel, gamma, X, gram, norms, coalition, n, starts[0], n, starts[1], n, C, tol, shrinking, machine
        )
        n_vectors = 0
        for i in range(n):
            weight = alpha[i] - alpha[n + i]
            if weight != 0:
                vectors[n_vectors] = members[i]
                weights[n_vectors] = weight
                n_vectors += 1
        for t in range(test_indptr[c], test_indptr[c + 1]):
            read_test(kernel, gamma, X, X_test, cross, tests[t], vectors[:n_vectors], line)
            total = 0.0
            for i in range(n_vectors):
                total += weights[i] * line[i]
            out[t] = total - offset


@compiled
def group_by_class(members: Indices, codes: Ints, count: Ints, present: Ints, starts: Ints, players: Indices) -> Any:
    """Write the rows class by class to `players`; returns the number of classes (`present`, from `starts` on)."""
    count[:] = 0
    for z in members:
        count[codes[z]] += 1
    n_present, start = 0, 0
    for code in range(len(count)):
        if count[code] > 0:
            present[n_present] = code
            starts[n_present] = start
            start += count[code]
            count[code] = starts[n_present]
            n_present += 1
    starts[n_present] = start
    for z in members:
        players[count[codes[z]]] = z
        count[codes[z]] += 1
    return n_present


@compiled
def train_classifiers(
    indptr: Ints,
    players: Indices,
    test_indptr: Ints,
    tests: Indices,
    todo: Ints,
    kernel: Kernel,
    gammas: Floats,
    rows: Rows,
    codes: Ints,
    C: float,
    tol: float,
    shrinking: bool,
    form: int,
    out: Floats,
) -> None:
    """Train a machine on each pair of classes of each coalition and write what they predict together.

    A row of `out` has the votes for each class, decision values or probabilities, whichever `form` says; NaN where a
    kernel value is too large.
    """
    X, X_test, gram, cross, norms = rows
    n_classes = out.shape[1]
    most = largest_coalition(indptr, todo)
    most_classes = min(most, n_classes)
    coalition, machine = make_scratch(most, most)
    count = np.empty(n_classes, dtype=np.int64)
    present = np.empty(most_classes, dtype=np.int64)
    starts = np.empty(most_classes + 1, dtype=np.int64)
    # In the machine of classes a < b, the weights of the rows of a are in line b − 1, those of the rows of b in line a.
    weights = np.empty((most_classes - 1, most))
    offsets = np.empty(most_classes * (most_classes - 1) // 2)
    vectors = np.empty(most, dtype=np.int32)
    votes = np.empty(most_classes)
    decision = np.empty(most_classes)
    grouped, own, line, has, _ = coalition
    alpha, slope = machine[:2]
    for k in range(len(todo)):
        c, gamma = todo[k], gammas[k]
        members = players[indptr[c] : indptr[c + 1]]
        n = len(members)
        n_present = group_by_class(members, codes, count, present, starts, grouped)
        has[:n] = False
        read_diagonal(kernel, gamma, gram, norms, grouped[:n], own)
        pair = 0
        for a in range(n_present):
            n_a = starts[a + 1] - starts[a]
            for b in range(a + 1, n_present):
                n_b = starts[b + 1] - starts[b]
                slope[:n_a] = -1.0
                slope[n_a : n_a + n_b] = 1.0
                offsets[pair] = solve(
                    kernel,
                    gamma,
                    X,
                    gram,
                    norms,
                    coalition,
                    n,
                    starts[a],
                    n_a,
                    starts[b],
                    n_b,
                    C,
                    tol,
                    shrinking,
                    machine,
                )
                for i in range(n_a):
                    weights[b - 1, starts[a] + i] = alpha[i]
                for i in range(n_b):
                    weights[a, starts[b] + i] = -alpha[n_a + i]
                pair += 1
        if math.isnan(offsets[:pair].sum()):
            out[test_indptr[c] : test_indptr[c + 1]] = np.nan
            continue
        n_vectors = keep_vectors(weights, starts, n_present, grouped, vectors)
        for t in range(test_indptr[c], test_indptr[c + 1]):
            read_test(kernel, gamma, X, X_test, cross, tests[t], vectors[:n_vectors], line)
            decide(line, weights, offsets, starts, form, n_present, votes, decision)
            write(decision, present, n_present, form, t, out)


@compiled
def keep_vectors(weights: Floats, starts: Ints, n_present: int, grouped: Indices, vectors: Indices) -> Any:
    """Drop the rows that have no weight in any machine; returns the number of those that are left."""
    n_vectors, start = 0, 0
    for a in range(n_present):
        stop = starts[a + 1]
        starts[a] = n_vectors
        for i in range(start, stop):
            counts = False
            for b in range(n_present - 1):
                counts |= weights[b, i] != 0
            if counts:
                vectors[n_vectors] = grouped[i]
                for b in range(n_present - 1):
                    weights[b, n_vectors] = weights[b, i]
                n_vectors += 1
        start = stop
    starts[n_present] = n_vectors
    return n_vectors


@compiled
def decide(
    line: Floats,
    weights: Floats,
    offsets: Floats,
    starts: Ints,
    form: int,
    n_present: int,
    votes: Floats,
    decision: Floats,
) -> None:
    """Votes of the machines for the classes of a coalition, or decision values as scikit-learn makes them."""
    for a in range(n_present):
        votes[a] = decision[a] = 0.0
    pair = 0
    for a in range(n_present):
        for b in range(a + 1, n_present):
            total = 0.0
            for i in range(starts[a], starts[a + 1]):
                total += weights[b - 1, i] * line[i]
            for i in range(starts[b], starts[b + 1]):
                total += weights[a, i] * line[i]
            total -= offsets[pair]
            # Where a machine is undecided, libsvm's label goes to the second class, scikit-learn's vote to the first.
            votes[a if total > 0 or (total == 0 and form != LABEL) else b] += 1.0
            decision[a] += total
            decision[b] -= total
            pair += 1
    for a in range(n_present):
        if form == LABEL:
            decision[a] = votes[a]
        elif n_present == 2:
            decision[a] /= 2
        else:
            decision[a] = votes[a] + decision[a] / (3 * (abs(decision[a]) + 1))


@compiled
def write(decision: Floats, present: Ints, n_present: int, form: int, t: int, out: Floats) -> None:
    """Write a prediction: a class that the coalition lacks has no votes, the least decision value, probability 0."""
    largest = least = decision[0]
    for a in range(n_present):
        largest = max(largest, decision[a])
        least = min(least, decision[a])
    out[t] = least if form == MARGIN else 0.0
    total = 0.0
    for a in range(n_present):
        value = math.exp(decision[a] - largest) if form == PROBABILITY else decision[a]
        out[t, present[a]] = value
        total += value
    if form == PROBABILITY:
        for a in range(n_present):
            out[t, present[a]] /= total
