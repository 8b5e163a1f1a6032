"""Decision trees as scikit-learn grows them, for many small coalitions.

Coalitions that follow each other and share rows form a group. Within a group a row has a slot, and every column is
sorted once; a coalition's sorted column is the group's without the slots that the coalition lacks, and likewise for
a node and its parent.

Equally good splits are common on few rows. Scikit-learn takes the first that it meets, and draws a new order of the
columns at every node; the same numbers are drawn here, node by node in the same order, and impurities are
computed by the same operations, so that the trees are the same. Test rows travel down with the training rows, and
growth ends when each has reached its leaf.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from localshapley.arrays import CoalitionArrays, Floats, Indices, Ints, Masks, Singles, longest
from localshapley.kernels.bits import ONE, lowest_bit
from localshapley.kernels.cuts import (
    SQUARED_ERROR,
    Group,
    Settings,
    Slots,
    Tree,
    count_classes,
    find_split,
    impurity_of,
    split_node,
    sum_up,
    sums,
)
from localshapley.kernels.jit import kernel, part, section

EPSILON = 2.0**-52
"""Impurity up to which a node counts as pure."""
GROUP = 64
"""Coalitions form a group while it has at most this many rows, or four times those of the coalition."""
# What the stack holds of a node: its members, its test rows, its depth, its number of constant columns.
START, STOP, FIRST, LAST, DEPTH, N_CONSTANT = range(6)

Rows: TypeAlias = tuple[Singles, Indices, Singles, Ints, Floats]
"""`X`, `ranks`, `X_test`, `codes`, `y`: training and test rows, and what is to be predicted.

`X` and `ranks` have the shape (n_rows, n_columns): values, and their places in the order of the column; no two have the
same place. `codes` are classes, `y` numbers to regress.
"""
Places: TypeAlias = tuple[Indices, Indices, Slots, Masks]
"""`rows`, `slot_of_row`, `slot_of_rank`, `words`: the row of each slot of a group, and the slot of each row (−1: none);
slots by the rank of their row in a column, and a bit for each rank, zero."""
Stack: TypeAlias = tuple[Ints, Floats]
"""Nodes to grow, and their impurities."""


def predict_by_trees(coalitions: CoalitionArrays, todo: Ints, rows: Rows, settings: Settings, out: Floats) -> None:
    """Grow the tree of each coalition `todo` and write its predictions for its test rows to `out`.

    None of the coalitions is empty. `out` has the shape (n_scores, n_classes), or (n_scores, 1) for regression.
    """
    indptr, _, test_indptr, _ = coalitions
    n_rows, n_columns = rows[0].shape
    most, most_tests = longest(indptr, todo), longest(test_indptr, todo)
    n_slots = min(n_rows, max(GROUP, 4 * most))
    columns, counts = np.empty((2, n_columns), dtype=np.uint32), np.empty((2, out.shape[1]), dtype=np.int64)
    places = (
        np.empty(n_slots, dtype=np.int32),
        np.full(n_rows, -1, dtype=np.int32),
        np.empty(n_rows, dtype=np.uint32),
        np.zeros(n_rows // 64 + 1, dtype=np.uint64),
    )
    group = (
        np.empty((n_columns, n_slots), dtype=np.float32),
        np.empty(n_slots, dtype=np.uint32),
        np.empty(n_slots),
        np.empty((3, n_columns, n_slots), dtype=np.uint32),
        np.zeros(n_slots, dtype=np.int64),
    )
    tree = np.empty(most, dtype=np.uint32), np.empty(most_tests, dtype=np.int64), *columns, *counts
    stack = np.empty((most + 1, 6), dtype=np.int64), np.empty(most + 1)
    grow_trees(coalitions, todo, rows, settings, places, group, tree, stack, out)


@kernel(error_model="numpy")
def grow_trees(
    coalitions: CoalitionArrays,
    todo: Ints,
    rows: Rows,
    settings: Settings,
    places: Places,
    group: Group,
    tree: Tree,
    stack: Stack,
    out: Floats,
) -> None:
    """Grow the trees, group by group of coalitions."""
    indptr, players, test_indptr, tests = coalitions
    rows_of_group, slot_of_row, _, _ = places
    members, scored = tree[0], tree[1]
    done = 0
    while done < len(todo):
        begin = done
        done, n_group = form_group(indptr, players, todo, begin, slot_of_row, rows_of_group)
        load_group(n_group, rows, places, group)
        for c in todo[begin:done]:
            size, n_tests = indptr[c + 1] - indptr[c], test_indptr[c + 1] - test_indptr[c]
            for i in range(size):
                members[i] = slot_of_row[players[indptr[c] + i]]
            for i in range(n_tests):
                scored[i] = test_indptr[c] + i
            grow(size, n_tests, n_group, settings, group, tree, stack, (tests, rows[2]), out)
        for slot in range(n_group):
            slot_of_row[rows_of_group[slot]] = -1


@section()
def form_group(
    indptr: Ints, players: Indices, todo: Ints, start: int, slot_of_row: Indices, rows: Indices
) -> tuple[int, int]:
    """Give slots to the rows of the next coalitions, while these are few; returns where to go on, and how many."""
    n_group = 0
    at = start
    while at < len(todo):
        first, last = indptr[todo[at]], indptr[todo[at] + 1]
        n_new = 0
        for i in range(first, last):
            n_new += slot_of_row[players[i]] < 0
        if at > start and n_group + n_new > max(GROUP, 4 * (last - first)):
            break
        for i in range(first, last):
            if slot_of_row[players[i]] < 0:
                slot_of_row[players[i]] = n_group
                rows[n_group] = players[i]
                n_group += 1
        at += 1
    return at, n_group


@section()
def load_group(n: int, rows: Rows, places: Places, group: Group) -> None:
    """Copy what trees need from a group's rows, slot by slot, and sort the columns."""
    X, ranks, _, codes, y = rows
    members, _, slot_of_rank, words = places
    columns, classes, targets, lists, _ = group
    for slot in range(n):
        classes[slot] = codes[members[slot]]
        targets[slot] = y[members[slot]]
    for f in range(X.shape[1]):
        for slot in range(n):
            columns[f, slot] = X[members[slot], f]
        sort_column(f, members, n, ranks, slot_of_rank, words, lists)


@part()
def sort_column(f: int, rows: Indices, n: int, ranks: Indices, slot_of_rank: Slots, words: Masks, lists: Slots) -> None:
    """Sort a group's column: set a bit for the rank of each row, and read the bits in order.

    `words` has a bit for each rank, zero before and after.
    """
    for slot in range(n):
        rank = ranks[rows[slot], f]
        slot_of_rank[rank] = slot
        words[rank >> 6] |= ONE << np.uint64(rank & 63)
    at = 0
    for w in range(len(words)):
        bits = words[w]
        words[w] = 0
        while bits:
            lists[0, f, at] = slot_of_rank[64 * w + lowest_bit(bits)]
            bits &= bits - ONE
            at += 1


@section()
def grow(
    size: int,
    n_tests: int,
    n_group: int,
    settings: Settings,
    group: Group,
    tree: Tree,
    stack: Stack,
    questions: tuple[Indices, Singles],
    out: Floats,
) -> None:
    """Grow the tree of the coalition with `size` members until each of its test rows has reached its leaf."""
    criterion, max_depth, _, min_split, min_leaf, min_decrease, state, terms = settings
    lists, on_left = group[3], group[4]
    members, scored, drawn = tree[0], tree[1], tree[2]
    nodes, impurities = stack
    height, waiting, least = plant(size, n_tests, n_group, settings, group, tree, stack), n_tests, min_split[size]
    if height == 0:
        write_leaf(criterion, nodes[0, START], size, nodes[0, FIRST], n_tests, group, tree, out)
    while height > 0 and waiting > 0:
        height -= 1
        start, stop, first, last = nodes[height, START], nodes[height, STOP], nodes[height, FIRST], nodes[height, LAST]
        depth, n_known, impurity = nodes[height, DEPTH], nodes[height, N_CONSTANT], impurities[height]
        side = 1 + (depth & 1)
        of_node = sum_up(criterion, start, stop, group, tree)
        column, cut, latest, n_constant, state = find_split(
            side, start, stop, n_known, min_leaf[size], state, of_node, settings, group, tree
        )
        threshold = impurity_left = impurity_right = 0.0
        if column >= 0:
            threshold, impurity_left, impurity_right = split_node(
                side, start, cut, stop, column, latest, of_node, (criterion, terms), group, tree
            )
            n, n_left, n_right = stop - start, cut - start, stop - cut
            decrease = n / size * (impurity - n_right / n * impurity_right - n_left / n * impurity_left)
            if decrease + EPSILON < min_decrease:
                column = -1
        if column < 0:
            write_leaf(criterion, start, stop, first, last, group, tree, out)
            waiting -= last - first
            continue
        middle = split_tests(scored, first, last, questions, column, threshold)
        leaf_left = is_leaf(cut - start, depth + 1, impurity_left, least, max_depth)
        leaf_right = is_leaf(stop - cut, depth + 1, impurity_right, least, max_depth)
        if leaf_left:
            write_leaf(criterion, start, cut, first, middle, group, tree, out)
            waiting -= middle - first
        if leaf_right:
            write_leaf(criterion, cut, stop, middle, last, group, tree, out)
            waiting -= last - middle
        if waiting == 0 or (leaf_left and leaf_right):
            continue
        toggle(members, start, cut, on_left)
        for j in range(n_constant, len(drawn)):
            split_list(lists[side, drawn[j]], lists[3 - side, drawn[j]], start, stop, cut, on_left)
        toggle(members, start, cut, on_left)
        if not leaf_right:
            height = push(stack, height, cut, stop, middle, last, depth + 1, n_constant, impurity_right)
        if not leaf_left:  # on top of the stack: it is grown first
            height = push(stack, height, start, cut, first, middle, depth + 1, n_constant, impurity_left)


@section()
def plant(size: int, n_tests: int, n_group: int, settings: Settings, group: Group, tree: Tree, stack: Stack) -> int:
    """Put the root of a tree on the stack; returns the height of the stack, 0 where the root is a leaf."""
    criterion, max_depth, _, min_split, _, _, _, terms = settings
    _, classes, targets, lists, on_left = group
    members, _, drawn, _, total, _ = tree
    nodes, impurities = stack
    nodes[0, START] = nodes[0, FIRST] = nodes[0, DEPTH] = nodes[0, N_CONSTANT] = 0
    nodes[0, STOP], nodes[0, LAST] = size, n_tests
    start = nodes[0, START]
    if criterion == SQUARED_ERROR:
        whole, squares = sums(members, start, size, targets)
        impurities[0] = squares / size - (whole / size) * (whole / size)
    else:
        count_classes(members, start, size, classes, total)
        impurities[0] = impurity_of(total, size, criterion, terms)
    if is_leaf(size, nodes[0, DEPTH], impurities[0], min_split[size], max_depth):
        return 0
    toggle(members, start, size, on_left)
    for f in range(len(drawn)):
        drawn[f] = f
        split_list(lists[0, f], lists[1, f], start, n_group, size, on_left)
    toggle(members, start, size, on_left)
    return 1


@part()
def push(
    stack: Stack,
    height: int,
    start: int,
    stop: int,
    first: int,
    last: int,
    depth: int,
    n_constant: int,
    impurity: float,
) -> int:
    """Put a node on the stack; returns its height."""
    nodes, impurities = stack
    nodes[height, START], nodes[height, STOP] = start, stop
    nodes[height, FIRST], nodes[height, LAST] = first, last
    nodes[height, DEPTH], nodes[height, N_CONSTANT] = depth, n_constant
    impurities[height] = impurity
    return height + 1


@part()
def is_leaf(n: int, depth: int, impurity: float, min_split: int, max_depth: int) -> bool:
    """Whether a node is too small, too deep or too pure to be split."""
    return n < min_split or depth >= max_depth or impurity <= EPSILON


@part(error_model="numpy")
def write_leaf(
    criterion: int, start: int, stop: int, first: int, last: int, group: Group, tree: Tree, out: Floats
) -> None:
    """Predict the class shares, or the mean, of a leaf's rows for the test rows in it."""
    if first == last:
        return
    _, classes, targets, _, _ = group
    members, scored = tree[0], tree[1]
    at = scored[first]
    for k in range(out.shape[1]):
        out[at, k] = 0.0
    for i in range(start, stop):
        if criterion == SQUARED_ERROR:
            out[at, 0] += targets[members[i]]
        else:
            out[at, classes[members[i]]] += 1.0
    for k in range(out.shape[1]):
        out[at, k] /= stop - start
        for t in range(first + 1, last):
            out[scored[t], k] = out[at, k]


@part()
def split_tests(
    scored: Ints, first: int, last: int, questions: tuple[Indices, Singles], column: int, threshold: float
) -> int:
    """Move the test rows up to the threshold to the front; returns where the others begin."""
    tests, X_test = questions
    while first < last:
        if float(X_test[tests[scored[first]], column]) <= threshold:
            first += 1
        else:
            last -= 1
            scored[first], scored[last] = scored[last], scored[first]
    return first


@part()
def toggle(members: Slots, start: int, stop: int, on_left: Ints) -> None:
    """Mark the members of a part, or remove the marks."""
    for i in range(start, stop):
        on_left[members[i]] ^= 1


@section()
def split_list(source: Slots, target: Slots, start: int, stop: int, cut: int, on_left: Ints) -> None:
    """Copy a sorted list, the marked slots to its front and the others from `cut` on, both in their order."""
    at_left, at_right = start, cut
    for i in range(start, stop):
        slot = source[i]
        goes_left = on_left[slot]
        at = at_left if goes_left else at_right
        at_left += goes_left
        at_right += 1 - goes_left
        target[at] = slot
