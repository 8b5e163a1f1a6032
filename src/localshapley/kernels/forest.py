"""Forests as scikit-learn grows them, for many small coalitions.

Rows of a tree stay in scikit-learn's order: a column that is drawn at a node is sorted by its algorithm, and rows are
split by its exchanges. So sums of numbers are rounded alike, and trees are the same even where a rounding error decides
between two splits. A row that a bootstrap drew twice has the weight 2, and one that was not drawn is left out; classes
may have weights too. Each tree starts from the random state that scikit-learn gives it.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from localshapley.arrays import CoalitionArrays, Floats, Indices, Ints, Singles, longest
from localshapley.kernels.cart import (
    DEPTH,
    EPSILON,
    FIRST,
    LAST,
    N_CONSTANT,
    START,
    STOP,
    Stack,
    is_leaf,
    push,
    split_tests,
)
from localshapley.kernels.cuts import SQUARED_ERROR, split_members
from localshapley.kernels.decisions import ClassWeights, weight_of_class
from localshapley.kernels.jit import kernel, part, section
from localshapley.kernels.sorting import MOST_PENDING
from localshapley.kernels.weighted_cuts import (
    Growth,
    Sample,
    Settings,
    Sums,
    find_split,
    impurities_of_parts,
    impurity_of_node,
    sum_up,
)

Rows: TypeAlias = tuple[Singles, Singles, Ints, Floats]
"""`X`, `X_test`, `codes`, `y`: training and test rows, and what is to be predicted, classes or numbers."""
Draws: TypeAlias = tuple[Ints, Ints, Ints, Indices]
"""`states`, `first`, `stride`, `counts`: the state of the random numbers of each tree, and how often it drew each row.

The counts of tree `t`, for a coalition of `n` rows, begin at `first[n] + t·stride[n]`.
"""


def predict_by_forests(
    coalitions: CoalitionArrays,
    todo: Ints,
    rows: Rows,
    class_weights: ClassWeights,
    settings: Settings,
    draws: Draws,
    out: Floats,
) -> None:
    """Grow the forest of each coalition `todo` and write its predictions for its test rows to `out`.

    None of the coalitions is empty. `out` has the shape (n_scores, n_classes), or (n_scores, 1) for regression.
    """
    indptr, _, test_indptr, _ = coalitions
    n_columns, most, most_tests = rows[0].shape[1], longest(indptr, todo), longest(test_indptr, todo)
    sample = np.empty((n_columns, most), dtype=np.float32), np.empty(most, dtype=np.uint32), *np.empty((2, most))
    growth = (
        np.empty(most, dtype=np.uint32),
        np.empty(most_tests, dtype=np.int64),
        *np.empty((2, n_columns), dtype=np.uint32),
        *np.empty((2, most)),
        np.empty(most, dtype=np.float32),
        *np.empty((2, out.shape[1])),
        np.empty((MOST_PENDING, 3), dtype=np.int64),
    )
    stack = np.empty((most + 1, 6), dtype=np.int64), np.empty(most + 1)
    grow_forests(coalitions, todo, rows, class_weights, settings, draws, sample, growth, stack, out)


@kernel(error_model="numpy")
def grow_forests(
    coalitions: CoalitionArrays,
    todo: Ints,
    rows: Rows,
    class_weights: ClassWeights,
    settings: Settings,
    draws: Draws,
    sample: Sample,
    growth: Growth,
    stack: Stack,
    out: Floats,
) -> None:
    """Grow the forests, one coalition after the other, and average over the trees."""
    indptr, players, test_indptr, tests = coalitions
    X_test, states, scored = rows[1], draws[0], growth[1]
    for c in todo:
        size, first_test, n_tests = indptr[c + 1] - indptr[c], test_indptr[c], test_indptr[c + 1] - test_indptr[c]
        load_rows(indptr[c], size, players, rows, sample)
        for i in range(size):
            growth[4][i] = 1.0
        weigh_classes(size, class_weights, sample, growth)
        for t in range(first_test, first_test + n_tests):
            for k in range(out.shape[1]):
                out[t, k] = 0.0
        for tree in range(len(states)):
            for i in range(n_tests):
                scored[i] = first_test + i
            n_drawn = draw_rows(tree, size, draws, class_weights, settings[10], sample, growth)
            grow(size, n_drawn, n_tests, states[tree], settings, sample, growth, stack, (tests, X_test), out)
        for t in range(first_test, first_test + n_tests):
            for k in range(out.shape[1]):
                out[t, k] /= len(states)


@section()
def load_rows(first: int, size: int, players: Indices, rows: Rows, sample: Sample) -> None:
    """Copy what trees need from a coalition's rows."""
    X, _, codes, y = rows
    columns, classes, targets, _ = sample
    for i in range(size):
        row = players[first + i]
        classes[i], targets[i] = codes[row], y[row]
        for f in range(X.shape[1]):
            columns[f, i] = X[row, f]


@part(inlined=False, error_model="numpy")
def weigh_classes(size: int, class_weights: ClassWeights, sample: Sample, growth: Growth) -> None:
    """Write the weight of the class of each row, as often as rows have been drawn (`weights`); 0 for no draw."""
    _, classes, _, own = sample
    weights, counts = growth[4], growth[8]
    n_present, n_draws = 0, 0.0
    for k in range(len(counts)):
        counts[k] = 0.0
    for i in range(size):
        n_present += counts[classes[i]] == 0 and weights[i] > 0
        counts[classes[i]] += weights[i]
        n_draws += weights[i]
    for i in range(size):
        own[i] = 0.0
        if counts[classes[i]] > 0:
            own[i] = weight_of_class(class_weights, classes[i], counts[classes[i]], n_draws, n_present)


@section()
def draw_rows(
    tree: int,
    size: int,
    draws: Draws,
    class_weights: ClassWeights,
    by_tree: bool,
    sample: Sample,
    growth: Growth,
) -> int:
    """Weigh the rows of a tree by how often they were drawn, and take all columns; returns how many rows it has."""
    _, first, stride, counts = draws
    _, _, targets, own = sample
    members, _, drawn, _, weights, products, _, _, _, _ = growth
    n = 0
    for i in range(size):
        weights[i] = counts[first[size] + tree * stride[size] + i]
    if by_tree:
        weigh_classes(size, class_weights, sample, growth)
    for i in range(size):
        weights[i] *= own[i]
        products[i] = weights[i] * targets[i]
        if weights[i]:
            members[n] = i
            n += 1
    for f in range(len(drawn)):
        drawn[f] = f
    return n


@section()
def grow(
    size: int,
    n_drawn: int,
    n_tests: int,
    state: int,
    settings: Settings,
    sample: Sample,
    growth: Growth,
    stack: Stack,
    questions: tuple[Indices, Singles],
    out: Floats,
) -> None:
    """Grow a tree until each test row has reached its leaf, and add what the leaves say."""
    criterion, at_random, max_depth, _, min_split, min_leaf, min_decrease, _, _, _, _ = settings
    members, scored, total = growth[0], growth[1], growth[7]
    nodes, impurities = stack
    nodes[0, START] = nodes[0, FIRST] = nodes[0, DEPTH] = nodes[0, N_CONSTANT] = 0
    nodes[0, STOP], nodes[0, LAST] = n_drawn, n_tests
    height, waiting, weight_of_all = 1, n_tests, 0.0
    while waiting > 0:
        height -= 1
        start, stop, first, last = nodes[height, START], nodes[height, STOP], nodes[height, FIRST], nodes[height, LAST]
        depth, n_constant, impurity = nodes[height, DEPTH], nodes[height, N_CONSTANT], impurities[height]
        of_node = sum_up(criterion, start, stop, sample, growth)
        if depth == 0:
            impurity, weight_of_all = impurity_of_node(of_node, settings, total), of_node[0]
        column, cut, threshold, impurity_left, impurity_right = -1, -1, 0.0, 0.0, 0.0
        if not is_leaf(stop - start, depth, impurity, min_split[size], max_depth):
            column, cut, threshold, latest, n_constant, state = find_split(
                start, stop, n_constant, min_leaf[size], state, of_node, settings, sample, growth
            )
            if column >= 0:
                if latest != column or not at_random:
                    split_members(members, start, stop, sample[0][column], threshold)
                weight_left, impurity_left, impurity_right = impurities_of_parts(
                    start, cut, stop, of_node, settings, sample, growth
                )
                weight, weight_right = of_node[0], of_node[0] - weight_left
                rest = impurity - weight_right / weight * impurity_right - weight_left / weight * impurity_left
                if weight / weight_of_all * rest + EPSILON < min_decrease:
                    column = -1
        if column < 0:
            add_leaf(criterion, first, last, of_node, growth, out)
            waiting -= last - first
            continue
        middle = split_tests(scored, first, last, questions, column, threshold)
        height = push(stack, height, cut, stop, middle, last, depth + 1, n_constant, impurity_right)
        height = push(stack, height, start, cut, first, middle, depth + 1, n_constant, impurity_left)


@section(error_model="numpy")
def add_leaf(criterion: int, first: int, last: int, of_node: Sums, growth: Growth, out: Floats) -> None:
    """Add the class shares, or the mean, of a leaf's rows to the predictions for the test rows in it."""
    scored, total = growth[1], growth[7]
    weight, whole, _, _ = of_node
    for t in range(first, last):
        if criterion == SQUARED_ERROR:
            out[scored[t], 0] += whole / weight
        else:
            for k in range(len(total)):
                out[scored[t], k] += total[k] / weight
