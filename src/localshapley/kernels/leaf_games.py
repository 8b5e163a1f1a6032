"""Trees whose structure is fixed: a coalition refills the leaves, so every leaf is a small game of its own.

A leaf is two lists: the training rows in it and the test rows that reach it. The closed forms are derived in
`docs/concepts/fixed-trees.md`.
"""

from __future__ import annotations

from typing import TypeAlias

from localshapley.arrays import CoalitionArrays, Floats, Indices, Ints, Lists
from localshapley.kernels.jit import kernel, part

FEW_TESTS = 8
"""Up to this many test rows of a leaf are not sorted by bundle: each is counted alone."""
LeafLabels: TypeAlias = tuple[bool, Ints, Ints, Floats, Floats, Floats, Floats]
"""`amounts`, `codes`, `truths`, `targets`, `aims`, `weights`, `nothing`.

Whether numbers are predicted; class codes of training and of test rows (negative where no training row has the class);
numbers of training and of test rows, less what an empty leaf predicts; the weight of each of its leaves to a test row;
its score where the leaf is empty.
"""
Sums: TypeAlias = tuple[float, float, float, float, float]
"""Of the training rows in a leaf: sum of the numbers and of their squares (of classes: sum of the weights of the test
rows that have each row's class). Of the test rows that reach it, weighted: their count, sum of the numbers, and what
they score without a row, negated (of numbers: beyond the squared error of the empty leaf)."""


@kernel()
def group(keys: Indices, entries: Indices, at: Ints, members: Indices) -> None:
    """Put entries into groups, in the order in which they come; `at` says where each group begins, and is moved."""
    for i in range(len(keys)):
        members[at[keys[i]]] = entries[i]
        at[keys[i]] += 1


@kernel()
def add_leaf_values(
    rows: Lists, tests: Lists, labels: LeafLabels, harmonic: Floats, room: Floats, values: Floats, full: Floats
) -> None:
    """Add the values of training rows over the test rows of each leaf, and what these score with all rows in it.

    Parameters
    ----------
    rows, tests : training rows in each leaf, and test rows that reach it
    harmonic : of shape (2, most rows of a leaf + 1); sums of 1/i and of 1/i²
    room : a zero for each class
    """
    row_indptr, members = rows
    test_indptr, reached = tests
    for leaf in range(len(row_indptr) - 1):
        inside = members[row_indptr[leaf] : row_indptr[leaf + 1]]
        outside = reached[test_indptr[leaf] : test_indptr[leaf + 1]]
        if len(inside) == 0 or len(outside) == 0:
            continue
        sums = sum_up(inside, outside, labels, room)
        for z in inside:
            values[z] += value_of(z, len(inside), sums, labels, harmonic, room)
        clear(outside, labels, room)
        add_full_scores(inside, outside, sums, labels, room, full)


@kernel()
def add_bundle_values(
    rows: Lists,
    tests: Lists,
    bundle_of_test: Indices,
    labels: LeafLabels,
    harmonic: Floats,
    room: tuple[Ints, Indices, Floats],
    out: Floats,
) -> None:
    """Add the values of training rows over the test rows of each leaf to `out`, by bundle and by row.

    Parameters
    ----------
    rows, tests, labels, harmonic : as in `add_leaf_values`
    bundle_of_test : of each test row
    room : a number for each bundle and one more, all zero; one for each test row of a leaf; a zero for each class
    """
    row_indptr, members = rows
    test_indptr, reached = tests
    first, dealt, of_class = room
    for leaf in range(len(row_indptr) - 1):
        inside = members[row_indptr[leaf] : row_indptr[leaf + 1]]
        outside = reached[test_indptr[leaf] : test_indptr[leaf + 1]]
        if len(inside) == 0 or len(outside) == 0:
            continue
        if len(outside) <= FEW_TESTS:
            for i in range(len(outside)):
                b = bundle_of_test[outside[i]]
                add_to_bundle(inside, outside[i : i + 1], labels, harmonic, of_class, out[b])
            continue
        for t in outside:
            first[bundle_of_test[t] + 1] += 1
        for b in range(1, len(first)):
            first[b] += first[b - 1]
        for t in outside:
            dealt[first[bundle_of_test[t]]] = t
            first[bundle_of_test[t]] += 1
        start = 0  # a bundle's place has moved to its end
        for b in range(len(first)):
            own = dealt[start : first[b]]
            start, first[b] = first[b], 0
            if len(own) > 0:
                add_to_bundle(inside, own, labels, harmonic, of_class, out[b])


@kernel()
def add_pair_values(
    leaves_of_tests: Lists,
    rows: Lists,
    labels: LeafLabels,
    harmonic: Floats,
    room: Floats,
    pairs: Lists,
    everyone: Indices,
    place: Ints,
    out: Floats,
) -> None:
    """Add the values of training rows to each test row, at the places of its `pairs`.

    Parameters
    ----------
    leaves_of_tests, rows : leaves that each test row reaches, and training rows in each leaf
    pairs : players of each test row; all rows of its leaves are among them
    everyone : the test rows
    place : room for the place of each player
    """
    leaf_indptr, leaves = leaves_of_tests
    row_indptr, members = rows
    pair_indptr, players = pairs
    for t in everyone:
        own = everyone[t : t + 1]
        for i in range(pair_indptr[t], pair_indptr[t + 1]):
            place[players[i]] = i
        for j in range(leaf_indptr[t], leaf_indptr[t + 1]):
            inside = members[row_indptr[leaves[j]] : row_indptr[leaves[j] + 1]]
            sums = sum_up(inside, own, labels, room)
            for z in inside:
                out[place[z]] += value_of(z, len(inside), sums, labels, harmonic, room)
            clear(own, labels, room)


@kernel()
def score_refilled(
    coalitions: CoalitionArrays,
    leaves_of_tests: Lists,
    rows: Lists,
    labels: LeafLabels,
    last_in: Ints,
    out: Floats,
) -> None:
    """Score coalitions, leaf by leaf, on their test rows; `last_in` is −1 for each row."""
    amounts, codes, truths, targets, aims, weights, nothing = labels
    indptr, players, test_indptr, tests = coalitions
    leaf_indptr, leaves = leaves_of_tests
    row_indptr, members = rows
    for c in range(len(indptr) - 1):
        for i in range(indptr[c], indptr[c + 1]):
            last_in[players[i]] = c
        for s in range(test_indptr[c], test_indptr[c + 1]):
            t = tests[s]
            out[s] = 0.0
            for j in range(leaf_indptr[t], leaf_indptr[t + 1]):
                n = 0
                total = 0.0
                for z in members[row_indptr[leaves[j]] : row_indptr[leaves[j] + 1]]:
                    if last_in[z] == c:
                        n += 1
                        total += targets[z] if amounts else (1.0 if codes[z] == truths[t] else 0.0)
                if n == 0:
                    out[s] += weights[t] * nothing[t]
                elif amounts:
                    out[s] -= weights[t] * (aims[t] - total / n) * (aims[t] - total / n)
                else:
                    out[s] += weights[t] * total / n


@kernel()
def count_mates(leaves_of_tests: Lists, rows: Lists, last_with: Ints, sizes: Ints, reach: Ints) -> None:
    """Count the rows that share a leaf with each test row, and the test rows of each; `last_with` is −1 for each."""
    leaf_indptr, leaves = leaves_of_tests
    row_indptr, members = rows
    for t in range(len(leaf_indptr) - 1):
        for j in range(leaf_indptr[t], leaf_indptr[t + 1]):
            for z in members[row_indptr[leaves[j]] : row_indptr[leaves[j] + 1]]:
                if last_with[z] != t:
                    last_with[z] = t
                    sizes[t] += 1
                    reach[z] += 1


@kernel()
def list_mates(leaves_of_tests: Lists, rows: Lists, last_with: Ints, players: Indices) -> None:
    """List the rows that share a leaf with each test row, in the order in which they come."""
    leaf_indptr, leaves = leaves_of_tests
    row_indptr, members = rows
    found = 0
    for t in range(len(leaf_indptr) - 1):
        for j in range(leaf_indptr[t], leaf_indptr[t + 1]):
            for z in members[row_indptr[leaves[j]] : row_indptr[leaves[j] + 1]]:
                if last_with[z] != t:
                    last_with[z] = t
                    players[found] = z
                    found += 1


@part(inlined=False)
def add_to_bundle(
    inside: Indices, own: Indices, labels: LeafLabels, harmonic: Floats, of_class: Floats, out: Floats
) -> None:
    """Add the values of the rows in a leaf to some of its test rows; of classes they are linear in `of_class`."""
    n, h = len(inside), harmonic[0, len(inside)]
    sums = sum_up(inside, own, labels, of_class)
    if labels[0]:
        for z in inside:
            out[z] += value_of(z, n, sums, labels, harmonic, of_class)
        return
    mean = sums[0] / (n - 1) if n > 1 else 0.0
    least = (sums[4] - mean * (h - 1)) / n
    slope = (1 + (h - 1) * n / (n - 1)) / n if n > 1 else 1.0
    for z in inside:
        out[z] += least + slope * of_class[labels[1][z]]
    clear(own, labels, of_class)


@part()
def sum_up(inside: Indices, outside: Indices, labels: LeafLabels, room: Floats) -> Sums:
    """What the values in a leaf depend on; `room` gets the weight of the test rows of each class."""
    amounts, codes, truths, targets, aims, weights, nothing = labels
    weight = aim = empty = 0.0
    for t in outside:
        w = weights[t]
        weight += w
        empty -= w * nothing[t]
        if amounts:
            aim += w * aims[t]
            empty -= w * aims[t] * aims[t]
        elif truths[t] >= 0:
            room[truths[t]] += w
    first = second = 0.0
    for z in inside:
        a = targets[z] if amounts else room[codes[z]]
        first += a
        second += a * a
    return first, second, weight, aim, empty


@part()
def value_of(z: int, n: int, sums: Sums, labels: LeafLabels, harmonic: Floats, room: Floats) -> float:
    """The value of one of the `n` rows in a leaf to the test rows that reach it."""
    amounts, codes, _, targets, _, _, _ = labels
    first, second, weight, aim, empty = sums
    h, h2 = harmonic[0, n], harmonic[1, n]
    a = targets[z] if amounts else room[codes[z]]
    others = n - 1
    mean = (first - a) / others if others > 0 else 0.0
    linear = a + (a - mean) * (h - 1)
    if not amounts:
        return float((linear + empty) / n)
    spread = ((second - a * a) / others - mean * mean) / (others - 1) if others > 1 else 0.0
    square = a * a * h2 + 2 * a * mean * (h - h2) - mean * mean * (2 * h - h2 - 1) - spread * (n * h2 - 2 * h + 1 / n)
    return float((2 * aim * linear - weight * square + empty) / n)


@part()
def clear(outside: Indices, labels: LeafLabels, room: Floats) -> None:
    """Set the weights of classes to 0 again."""
    if not labels[0]:
        for t in outside:
            if labels[2][t] >= 0:
                room[labels[2][t]] = 0.0


@part()
def add_full_scores(
    inside: Indices, outside: Indices, sums: Sums, labels: LeafLabels, room: Floats, full: Floats
) -> None:
    """Add the scores of the test rows with all rows in the leaf; `room` is 0 before and after."""
    amounts, codes, truths, _, aims, weights, _ = labels
    n = len(inside)
    if amounts:
        for t in outside:
            error = aims[t] - sums[0] / n
            full[t] -= weights[t] * error * error
        return
    for z in inside:
        room[codes[z]] += 1.0
    for t in outside:
        if truths[t] >= 0:
            full[t] += weights[t] * room[truths[t]] / n
    for z in inside:
        room[codes[z]] = 0.0
