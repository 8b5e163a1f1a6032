"""The best cut of a node with weighted rows, as scikit-learn finds it: of all cuts, or of one at random per column.

The weight of a row is how often a bootstrap drew it, times the weight of its class. Rows stay in scikit-learn's order,
in which numbers are summed, on the shorter side of a cut; only sums of whole numbers may be taken in any order.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import Floats, Ints, Singles
from localshapley.kernels.cuts import CLOSE, ENTROPY, SQUARED_ERROR, Slots, impurity_of, next_state, split_members, term
from localshapley.kernels.jit import part, section
from localshapley.kernels.sorting import sort_rows

LARGEST = 0x7FFFFFFF
"""The largest random number."""

Settings: TypeAlias = tuple[int, bool, int, int, Ints, Ints, float, Floats, int, bool, bool]
"""`criterion`, `at_random`, `max_depth`, `max_features`, `min_split`, `min_leaf`, `min_decrease`, `terms`, `short`,
`is_weighted`, `by_tree`.

As for single trees, in `cuts`; with `at_random`, a column has one threshold, drawn between its smallest and its
largest value. `short` is for `sort_rows`. Where classes are weighted there are no `terms`; they are weighted `by_tree`
where balance is that of the rows that a tree drew, not of the coalition.
"""
Sample: TypeAlias = tuple[Singles, Slots, Floats, Floats]
"""`columns`, `classes`, `targets` and class weights of a coalition's rows; columns first."""
Growth: TypeAlias = tuple[Slots, Ints, Slots, Slots, Floats, Floats, Singles, Floats, Floats, Ints]
"""`members`, `scored`, `drawn`, `constant`, `weights`, `products`, `values`, `total`, `left`, `pending`, of a tree.

Rows and places of test rows, both node by node; columns, moved by the draws, and those that are constant from the root
to a node; weight of each row, and weight times target; values of a node's rows in a column; class counts of a node and
of its left part; room for the sort.
"""
Sums: TypeAlias = tuple[float, float, float, float]
"""Weight of a node, sum of its targets and of their squares, sum of its squared class counts."""


@section()
def find_split(
    start: int,
    stop: int,
    n_known: int,
    min_leaf: int,
    state: int,
    of_node: Sums,
    settings: Settings,
    sample: Sample,
    growth: Growth,
) -> tuple[int, int, float, int, int, int]:
    """Draw columns, and keep the first of the best cuts.

    `drawn` begins with the columns that are known to be constant (those met in this node first), then the new ones; the
    others are at its end.

    Returns
    -------
    column : int
        −1 where no column can be cut.
    cut : int
        Position of the first row on the right, once the rows are split.
    threshold : float
    latest : int
        The last column that was read.
    n_constant : int
        Columns in front of `drawn` that are constant.
    state : int
        State of the random numbers.
    """
    criterion, at_random, _, max_features, _, _, _, _, short, is_weighted, _ = settings
    columns = sample[0]
    members, _, drawn, constant, _, _, values, _, _, pending = growth
    best, threshold, column, cut, latest = -np.inf, 0.0, -1, -1, -1
    n_constant, n_new, n_skipped, n_visited, n_free = n_known, 0, 0, 0, len(drawn)
    while n_free > n_constant and (n_visited < max_features or n_visited <= n_new + n_skipped):
        n_visited += 1
        state = next_state(state)
        j = n_skipped + (state & LARGEST) % (n_free - n_new - n_skipped)
        if j < n_known:
            drawn[n_skipped], drawn[j] = drawn[j], drawn[n_skipped]
            n_skipped += 1
            continue
        j += n_new
        latest = drawn[j]
        low, high = read_column(columns[latest], members, start, stop, values)
        is_constant = not high > low + CLOSE
        # Nothing is better than two pure parts, and the order of rows does not matter to sums of whole numbers.
        is_open = is_weighted or criterion == SQUARED_ERROR or (best != 0 and not is_constant)
        if is_open and not at_random:
            sort_rows(values, members, start, stop, short, pending)
        if is_constant:
            drawn[n_constant], drawn[j] = drawn[j], drawn[n_constant]
            n_new += 1
            n_constant += 1
            continue
        n_free -= 1
        drawn[n_free], drawn[j] = drawn[j], drawn[n_free]
        found, at, level = -np.inf, -1, 0.0
        if at_random:
            state = next_state(state)
            level = (float(high) - float(low)) * float(state & LARGEST) / float(LARGEST) + float(low)
            if level == float(high):
                level = float(low)
        if is_open and at_random:
            at = split_members(members, start, stop, columns[latest], level)
            if at - start >= min_leaf and stop - at >= min_leaf:
                found = measure(start, at, stop, of_node, settings, sample, growth)
        elif is_open and criterion == SQUARED_ERROR:
            found, at = scan_squares(start, stop, min_leaf, of_node, growth)
        elif is_open and is_weighted:
            found, at = scan_weights(start, stop, min_leaf, of_node, settings, sample, growth)
        elif is_open:
            found, at = scan_classes(start, stop, min_leaf, of_node, settings, sample, growth)
        if found > best:
            best, column, cut = found, latest, at
            threshold = level if at_random else float(values[at - 1]) / 2 + float(values[at]) / 2
    for j in range(n_known):
        drawn[j] = constant[j]
    for j in range(n_known, n_constant):
        constant[j] = drawn[j]
    return column, cut, threshold, latest, n_constant, state


@part()
def read_column(
    column: Singles, members: Slots, start: int, stop: int, values: Singles
) -> tuple[np.float32, np.float32]:
    """Copy a column's values of a node's rows; returns the smallest and the largest."""
    low = high = values[start] = column[members[start]]
    for i in range(start + 1, stop):
        value = values[i] = column[members[i]]
        if value < low:
            low = value
        elif value > high:
            high = value
    return low, high


@section(error_model="numpy")
def scan_classes(
    start: int, stop: int, min_leaf: int, of_node: Sums, settings: Settings, sample: Sample, growth: Growth
) -> tuple[float, int]:
    """The least impurity of the cuts of a sorted column, weighted and negated, and where; −∞ where there is no cut."""
    criterion, terms = settings[0], settings[7]
    classes = sample[1]
    members, _, _, _, weights, _, values, total, left, _ = growth
    weight, _, _, squares = of_node
    best, cut = -np.inf, -1
    weight_left = squares_left = shared = 0.0
    for k in range(len(total)):
        left[k] = 0.0
    for i in range(start, stop - 1):
        k, more = classes[members[i]], weights[members[i]]
        squares_left += more * (2 * left[k] + more)
        shared += more * total[k]
        left[k] += more
        weight_left += more
        if values[i + 1] > values[i] + CLOSE and i + 1 - start >= min_leaf and stop - i - 1 >= min_leaf:
            parts = squares_left, squares - 2 * shared + squares_left
            found = purity(criterion, weight_left, weight - weight_left, parts, left, total, terms)
            if found > best:
                best, cut = found, i + 1
    return best, cut


@part(inlined=False, error_model="numpy")
def scan_weights(
    start: int, stop: int, min_leaf: int, of_node: Sums, settings: Settings, sample: Sample, growth: Growth
) -> tuple[float, int]:
    """The same where classes are weighted: sums are taken as scikit-learn takes them."""
    criterion, terms = settings[0], settings[7]
    members, _, _, _, weights, _, values, total, left, _ = growth
    weight = of_node[0]
    best, cut, before, weight_left = -np.inf, -1, start, 0.0
    for k in range(len(total)):
        left[k] = 0.0
    for i in range(start + 1, stop):
        if values[i] > values[i - 1] + CLOSE and i - start >= min_leaf and stop - i >= min_leaf:
            if i - before <= stop - i:
                for j in range(before, i):
                    left[sample[1][members[j]]] += weights[members[j]]
                    weight_left += weights[members[j]]
            else:
                weight_left = count_from_right(i, stop, weight, members, sample[1], weights, total, left)
            before = i
            parts = sums_of_squares(left, total)
            found = purity(criterion, weight_left, weight - weight_left, parts, left, total, terms)
            if found > best:
                best, cut = found, i
    return best, cut


@part()
def count_from_right(
    cut: int, stop: int, weight: float, members: Slots, classes: Slots, weights: Floats, total: Floats, left: Floats
) -> float:
    """Class counts left of a cut: those of the node, less what is on its right, from the end on; returns the weight."""
    for k in range(len(total)):
        left[k] = total[k]
    for i in range(stop - 1, cut - 1, -1):
        left[classes[members[i]]] -= weights[members[i]]
        weight -= weights[members[i]]
    return weight


@part(error_model="numpy")
def purity(
    criterion: int,
    weight_left: float,
    weight_right: float,
    squares: tuple[float, float],
    left: Floats,
    total: Floats,
    terms: Floats,
) -> float:
    """Impurity of both parts, weighted and negated; `squares` are the sums of their squared class counts."""
    if criterion == ENTROPY:
        impurity_left = impurity_right = 0.0
        for k in range(len(total)):
            impurity_left -= term(left[k], weight_left, terms)
            impurity_right -= term(total[k] - left[k], weight_right, terms)
    else:
        impurity_left = 1 - squares[0] / (weight_left * weight_left)
        impurity_right = 1 - squares[1] / (weight_right * weight_right)
    return -weight_right * impurity_right - weight_left * impurity_left


@section(error_model="numpy")
def scan_squares(start: int, stop: int, min_leaf: int, of_node: Sums, growth: Growth) -> tuple[float, int]:
    """The same for the squared error: `sum²/weight` of both parts is to be large."""
    members, _, _, _, weights, products, values, _, _, _ = growth
    weight, whole, _, _ = of_node
    best, cut = -np.inf, -1
    left, weight_left, before = 0.0, 0.0, start
    for i in range(start, stop - 1):
        left += products[members[i]]
        weight_left += weights[members[i]]
        n_left, n_right = i + 1 - start, stop - i - 1
        if values[i + 1] > values[i] + CLOSE and n_left >= min_leaf and n_right >= min_leaf:
            if i + 1 - before > n_right:  # sums come from the shorter side
                left = sum_from_right(members, i + 1, stop, products, whole)
            before = i + 1
            right = whole - left
            found = left * left / weight_left + right * right / (weight - weight_left)
            if found > best:
                best, cut = found, i + 1
    return best, cut


@part()
def sum_from_right(members: Slots, cut: int, stop: int, products: Floats, whole: float) -> float:
    """The sum left of a cut: the whole, less what is on its right, from the end on."""
    for i in range(stop - 1, cut - 1, -1):
        whole -= products[members[i]]
    return whole


@section(error_model="numpy")
def measure(
    start: int, cut: int, stop: int, of_node: Sums, settings: Settings, sample: Sample, growth: Growth
) -> float:
    """How good a cut of rows that are already split is: the number that is to be large."""
    criterion, terms = settings[0], settings[7]
    members, _, _, _, weights, products, _, total, left, _ = growth
    weight, whole, _, _ = of_node
    found: float
    if criterion == SQUARED_ERROR:
        weight_left, sum_left = sum_left_part(start, cut, stop, members, weights, products, whole)
        sum_right = whole - sum_left
        found = sum_left * sum_left / weight_left + sum_right * sum_right / (weight - weight_left)
    else:
        weight_left = count_left_part(start, cut, stop, weight, members, sample[1], weights, total, left)
        parts = sums_of_squares(left, total)
        found = purity(criterion, weight_left, weight - weight_left, parts, left, total, terms)
    return found


@part()
def sum_left_part(
    start: int, cut: int, stop: int, members: Slots, weights: Floats, products: Floats, whole: float
) -> tuple[float, float]:
    """Weight and sum of the rows left of a cut, summed from the shorter side."""
    weight, found = 0.0, 0.0
    for i in range(start, cut):
        weight += weights[members[i]]
        found += products[members[i]]
    if cut - start > stop - cut:
        found = sum_from_right(members, cut, stop, products, whole)
    return weight, found


@part(inlined=False)
def count_left_part(
    start: int,
    cut: int,
    stop: int,
    weight: float,
    members: Slots,
    classes: Slots,
    weights: Floats,
    total: Floats,
    left: Floats,
) -> Any:
    """Count the classes left of a cut, from the shorter side; returns their weight."""
    if cut - start <= stop - cut:
        return count_classes(start, cut, members, classes, weights, left)
    return count_from_right(cut, stop, weight, members, classes, weights, total, left)


@part()
def count_classes(start: int, stop: int, members: Slots, classes: Slots, weights: Floats, counts: Floats) -> float:
    """Count the classes of some rows by their weights; returns the weight of all."""
    for k in range(len(counts)):
        counts[k] = 0.0
    weight = 0.0
    for i in range(start, stop):
        counts[classes[members[i]]] += weights[members[i]]
        weight += weights[members[i]]
    return weight


@part()
def sums_of_squares(left: Floats, total: Floats) -> tuple[float, float]:
    """Sums of the squared class counts of both parts."""
    squares_left = squares_right = 0.0
    for k in range(len(total)):
        squares_left += left[k] * left[k]
        squares_right += (total[k] - left[k]) * (total[k] - left[k])
    return squares_left, squares_right


@section()
def sum_up(criterion: int, start: int, stop: int, sample: Sample, growth: Growth) -> Sums:
    """Sums over the rows of a node; its classes are counted in `total`."""
    _, classes, targets, _ = sample
    members, _, _, _, weights, products, _, total, _, _ = growth
    weight = whole = squares = n_squares = 0.0
    if criterion == SQUARED_ERROR:
        for i in range(start, stop):
            weight += weights[members[i]]
            whole += products[members[i]]
            squares += products[members[i]] * targets[members[i]]
    else:
        weight = count_classes(start, stop, members, classes, weights, total)
        for k in range(len(total)):
            n_squares += total[k] * total[k]
    return weight, whole, squares, n_squares


@section(error_model="numpy")
def impurity_of_node(of_node: Sums, settings: Settings, total: Floats) -> float:
    """Impurity of a node whose classes are counted."""
    criterion, terms = settings[0], settings[7]
    weight, whole, squares, _ = of_node
    if criterion == SQUARED_ERROR:
        found = squares / weight - (whole / weight) * (whole / weight)
    else:
        found = impurity_of(total, weight, criterion, terms)
    return found


@section(error_model="numpy")
def impurities_of_parts(
    start: int, cut: int, stop: int, of_node: Sums, settings: Settings, sample: Sample, growth: Growth
) -> tuple[float, float, float]:
    """Weight of the left part of a node, and impurities of both parts."""
    criterion, terms = settings[0], settings[7]
    _, classes, targets, _ = sample
    members, _, _, _, weights, products, _, total, left, _ = growth
    weight, whole, squares, _ = of_node
    if criterion == SQUARED_ERROR:
        weight_left, sum_left = sum_left_part(start, cut, stop, members, weights, products, whole)
        squares_left = 0.0
        for i in range(start, cut):
            squares_left += products[members[i]] * targets[members[i]]
        weight_right = weight - weight_left
        mean_left, mean_right = sum_left / weight_left, (whole - sum_left) / weight_right
        impurity_left = squares_left / weight_left - mean_left * mean_left
        impurity_right = (squares - squares_left) / weight_right - mean_right * mean_right
    else:
        weight_left = count_left_part(start, cut, stop, weight, members, classes, weights, total, left)
        impurity_left = impurity_of(left, weight_left, criterion, terms)
        for k in range(len(total)):
            left[k] = total[k] - left[k]
        impurity_right = impurity_of(left, weight - weight_left, criterion, terms)
    return weight_left, impurity_left, impurity_right
