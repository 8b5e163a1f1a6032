"""Support vector machines of many coalitions: train each, decide on its test rows, write what the score reads."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import CoalitionArrays, Floats, Indices, Ints, longest
from localshapley.kernels import jit
from localshapley.kernels.decisions import LABEL, ClassWeights, weight_of_class, write
from localshapley.kernels.gram import Kernel, Rows, compiled, read_diagonal, read_test
from localshapley.kernels.smo import CoalitionScratch, MachineScratch, Settings, make_scratch, solve

Family: TypeAlias = tuple[Kernel, Floats, Rows]
"""The kernel, gamma for each coalition to train, and the rows."""
RegressorRoom: TypeAlias = tuple[CoalitionScratch, MachineScratch, Indices, Floats]
"""Room for a machine, and its support vectors with their weights."""
ClassifierRoom: TypeAlias = tuple[
    CoalitionScratch, MachineScratch, Indices, Floats, Floats, Floats, Floats, Ints, Ints, Ints
]
"""Room for a machine; support vectors, their weights and offsets in all machines of a coalition, votes and decision
values of its classes; rows of each class in the coalition, classes that it has, and where each begins.

In the machine of classes a < b, the weights of the rows of a are in line b − 1, those of the rows of b in line a.
"""


def train_regressors(
    coalitions: CoalitionArrays, todo: Ints, family: Family, y: Floats, epsilon: float, settings: Settings, out: Floats
) -> None:
    """Train a machine on each coalition and write its predictions, NaN where a kernel value is too large."""
    most = longest(coalitions[0], todo)
    room = *make_scratch(most, 2 * most), np.empty(most, dtype=np.int32), np.empty(most)
    fit_regressors(coalitions, todo, family, y, epsilon, settings, room, out)


@jit.kernel(error_model="numpy")
def fit_regressors(
    coalitions: CoalitionArrays,
    todo: Ints,
    family: Family,
    y: Floats,
    epsilon: float,
    settings: Settings,
    room: RegressorRoom,
    out: Floats,
) -> None:
    """Train and predict, coalition by coalition."""
    indptr, players, test_indptr, tests = coalitions
    kernel, gammas, rows = family
    coalition, machine, vectors, weights = room
    ordered, own, line, has, _ = coalition
    alpha, slope = machine[:2]
    first, C = np.int64(0), settings[0]
    for k in range(len(todo)):
        c = todo[k]
        source = kernel, gammas[k], rows
        members = players[indptr[c] : indptr[c + 1]]
        n = len(members)
        for i in range(n):
            ordered[i] = members[i]
            has[i] = False
        read_diagonal(source, members, own)
        for i in range(n):
            slope[i] = epsilon - y[members[i]]
            slope[n + i] = -(epsilon + y[members[i]])
        offset = solve(source, coalition, n, (first, n, first, n), (C, C), settings, machine)
        n_vectors = 0
        for i in range(n):
            weight = alpha[i] - alpha[n + i]
            if weight != 0:
                vectors[n_vectors] = members[i]
                weights[n_vectors] = weight
                n_vectors += 1
        for t in range(test_indptr[c], test_indptr[c + 1]):
            read_test(source, tests[t], vectors[:n_vectors], line)
            total = 0.0
            for i in range(n_vectors):
                total += weights[i] * line[i]
            out[t] = total - offset


@compiled
def group_by_class(members: Indices, codes: Ints, count: Ints, present: Ints, starts: Ints, players: Indices) -> Any:
    """Write the rows class by class to `players`; returns the number of classes (`present`, from `starts` on)."""
    for code in range(len(count)):
        count[code] = 0
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


def train_classifiers(
    coalitions: CoalitionArrays,
    todo: Ints,
    family: Family,
    codes: Ints,
    weights: ClassWeights,
    settings: Settings,
    form: int,
    out: Floats,
) -> None:
    """Train a machine on each pair of classes of each coalition and write what they predict together.

    A row of `out` has the votes for each class, decision values or probabilities, whichever `form` says; NaN where a
    kernel value is too large.
    """
    n_classes, most = out.shape[1], longest(coalitions[0], todo)
    n = min(most, n_classes)
    room = (
        *make_scratch(most, most),
        np.empty(most, dtype=np.int32),
        np.empty((max(n - 1, 0), most)),
        np.empty(n * (n - 1) // 2),
        *np.empty((2, n)),
        np.empty(n_classes, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n + 1, dtype=np.int64),
    )
    fit_classifiers(coalitions, todo, family, codes, weights, settings, form, room, out)


@jit.kernel(error_model="numpy")
def fit_classifiers(
    coalitions: CoalitionArrays,
    todo: Ints,
    family: Family,
    codes: Ints,
    class_weights: ClassWeights,
    settings: Settings,
    form: int,
    room: ClassifierRoom,
    out: Floats,
) -> None:
    """Train and predict, coalition by coalition."""
    indptr, players, test_indptr, tests = coalitions
    kernel, gammas, rows = family
    coalition, machine, vectors, weights, offsets, votes, decision, count, present, starts = room
    grouped, own, line, has, _ = coalition
    alpha, slope = machine[:2]
    for k in range(len(todo)):
        c = todo[k]
        source = kernel, gammas[k], rows
        members = players[indptr[c] : indptr[c + 1]]
        n = len(members)
        n_present = group_by_class(members, codes, count, present, starts, grouped)
        for i in range(n):
            has[i] = False
        read_diagonal(source, grouped[:n], own)
        pair, too_large = 0, False
        for a in range(n_present):
            n_a = starts[a + 1] - starts[a]
            C_a = settings[0] * weight_of_class(class_weights, present[a], n_a, n, n_present)
            for b in range(a + 1, n_present):
                n_b = starts[b + 1] - starts[b]
                for i in range(n_a + n_b):
                    slope[i] = -1.0 if i < n_a else 1.0
                C_b = settings[0] * weight_of_class(class_weights, present[b], n_b, n, n_present)
                groups = starts[a], n_a, starts[b], n_b
                offset = solve(source, coalition, n, groups, (C_a, C_b), settings, machine)
                offsets[pair] = offset
                too_large |= math.isnan(offset)
                for i in range(n_a):
                    weights[b - 1, starts[a] + i] = alpha[i]
                for i in range(n_b):
                    weights[a, starts[b] + i] = -alpha[n_a + i]
                pair += 1
        if too_large:
            for t in range(test_indptr[c], test_indptr[c + 1]):
                for code in range(out.shape[1]):
                    out[t, code] = np.nan
            continue
        n_vectors = keep_vectors(weights, starts, n_present, grouped, vectors)
        for t in range(test_indptr[c], test_indptr[c + 1]):
            read_test(source, tests[t], vectors[:n_vectors], line)
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
