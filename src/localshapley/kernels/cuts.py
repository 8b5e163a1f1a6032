"""The best cut of a node of a decision tree, as scikit-learn finds it.

Columns are drawn in a random order, and the first of the best cuts is kept. Numbers are summed in scikit-learn's
order, on the shorter side of a cut.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from localshapley.arrays import AnyArray, Floats, Ints, Singles
from localshapley.kernels.jit import part, section

GINI, ENTROPY, SQUARED_ERROR = 0, 1, 2
CLOSE = np.float32(1e-7)
"""Neighbours in a column that differ by less, in 32-bit arithmetic, are not separated."""

Slots: TypeAlias = NDArray[np.uint32]
Settings: TypeAlias = tuple[int, int, int, Ints, Ints, float, int, Floats]
"""`criterion`, `max_depth`, `max_features`, `min_split`, `min_leaf`, `min_decrease`, `seed`, `terms`.

The criterion is GINI, ENTROPY or SQUARED_ERROR. Minimum numbers of rows of a node to split, and of a leaf, are by size
of the coalition. A split decreases the impurity, times the node's share of the coalition, by at least `min_decrease`.
The seed is the first state of the random numbers of every tree. `terms` is a table of `p·log₂(p)` for the share p of
`column` in `row` rows, up to a limit.
"""
Group: TypeAlias = tuple[Singles, Slots, Floats, Slots, Ints]
"""`columns`, `classes`, `targets`, `lists`, `on_left`: values, what is to be predicted, and marks, by slot.

`lists` are the slots in the order of each column: of the group, of nodes at even depth and of nodes at odd depth.
"""
Tree: TypeAlias = tuple[Slots, Ints, Slots, Slots, Ints, Ints]
"""`members`, `scored`, `drawn`, `constant`, `total`, `share`, of a tree.

Slots and places of test rows, both node by node; columns, moved by the draws, and those that are constant from the root
to a node; class counts of a node, and of a part of it.
"""


@section()
def find_split(
    side: int,
    start: int,
    stop: int,
    n_known: int,
    min_leaf: int,
    state: int,
    of_node: tuple[float, float, int],
    settings: Settings,
    group: Group,
    tree: Tree,
) -> tuple[int, int, int, int, int]:
    """Draw columns, and keep the first of the best cuts.

    `drawn` begins with the columns that are known to be constant (those met in this node first), then the new ones; the
    others are at its end.

    Returns
    -------
    column : int
        −1 where no column can be cut.
    cut : int
        Position of the first slot on the right.
    latest : int
        The last column that was scanned.
    n_constant : int
        Columns in front of `drawn` that are constant.
    state : int
        State of the random numbers.
    """
    criterion, _, max_features, _, _, _, _, terms = settings
    columns, classes, targets, lists, _ = group
    _, _, drawn, constant, total, share = tree
    whole, _, n_squares = of_node
    best, column, cut, latest = -np.inf, -1, -1, -1
    n_constant, n_new, n_skipped, n_visited, n_free = n_known, 0, 0, 0, len(drawn)
    while n_free > n_constant and (n_visited < max_features or n_visited <= n_new + n_skipped):
        n_visited += 1
        state = next_state(state)
        j = n_skipped + (state & 0x7FFFFFFF) % (n_free - n_new - n_skipped)
        if j < n_known:
            drawn[n_skipped], drawn[j] = drawn[j], drawn[n_skipped]
            n_skipped += 1
            continue
        j += n_new
        f = drawn[j]
        slots, values = lists[side, f], columns[f]
        if not separable(values, slots[start], slots[stop - 1]):
            drawn[n_constant], drawn[j] = drawn[j], drawn[n_constant]
            n_new += 1
            n_constant += 1
            continue
        latest = f
        n_free -= 1
        drawn[n_free], drawn[j] = drawn[j], drawn[n_free]
        if criterion == SQUARED_ERROR:
            found, at = scan_squares(start, stop, slots, values, targets, whole, min_leaf, best)
        elif best == 0:
            continue  # both parts are pure: nothing is better
        elif criterion == GINI:
            found, at = scan_gini(start, stop, slots, values, classes, total, n_squares, share, min_leaf, best)
        else:
            found, at = scan_entropy(start, stop, slots, values, classes, total, terms, share, min_leaf, best)
        if at >= 0:
            best, column, cut = found, f, at
    for j in range(n_known):
        drawn[j] = constant[j]
    for j in range(n_known, n_constant):
        constant[j] = drawn[j]
    return column, cut, latest, n_constant, state


@part()
def next_state(state: int) -> int:
    """The next 32 random bits (xorshift)."""
    if state == 0:
        state = 1
    state ^= (state << 13) & 0xFFFFFFFF
    state ^= state >> 17
    return state ^ ((state << 5) & 0xFFFFFFFF)


@part(error_model="numpy")
def scan_gini(
    start: int,
    stop: int,
    slots: Slots,
    values: Singles,
    classes: Slots,
    total: Ints,
    squares: int,
    left: Ints,
    min_leaf: int,
    best: float,
) -> tuple[float, int]:
    """Find the first best cut of a column, if it is better than `best`: the least impurity, weighted by rows.

    Parameters
    ----------
    start, stop, slots : the node's stretch of the column's slots in their order
    values, classes : by slot
    total, squares : class counts of the node, and the sum of their squares
    left : room for the class counts on the left
    min_leaf : minimum number of rows on either side
    best : weighted impurity, negated, of the best split so far

    Returns
    -------
    best : float
    cut : int
        Position of the first slot on the right; −1 where nothing is better.
    """
    squares_left = shared = 0
    for k in range(len(total)):
        left[k] = 0
    cut = -1
    for i in range(start, stop - 1):
        k = classes[slots[i]]
        squares_left += 2 * left[k] + 1
        shared += total[k]
        left[k] += 1
        n_left, n_right = i + 1 - start, stop - i - 1
        squares_right = squares - 2 * shared + squares_left
        found = -n_right * (1 - squares_right / (n_right * n_right)) - n_left * (1 - squares_left / (n_left * n_left))
        if found > best and n_left >= min_leaf and n_right >= min_leaf and separable(values, slots[i], slots[i + 1]):
            best, cut = found, i + 1
    return best, cut


@part(error_model="numpy")
def scan_entropy(
    start: int,
    stop: int,
    slots: Slots,
    values: Singles,
    classes: Slots,
    total: Ints,
    terms: Floats,
    left: Ints,
    min_leaf: int,
    best: float,
) -> tuple[float, int]:
    """The same for the entropy, with the table of `term`."""
    for k in range(len(total)):
        left[k] = 0
    cut = -1
    for i in range(start, stop - 1):
        left[classes[slots[i]]] += 1
        n_left, n_right = i + 1 - start, stop - i - 1
        if n_left < min_leaf or n_right < min_leaf or not separable(values, slots[i], slots[i + 1]):
            continue
        entropy_left = entropy_right = 0.0
        for k in range(len(total)):
            entropy_left -= term(left[k], n_left, terms)
            entropy_right -= term(total[k] - left[k], n_right, terms)
        found = -n_right * entropy_right - n_left * entropy_left
        if found > best:
            best, cut = found, i + 1
    return best, cut


@part(error_model="numpy")
def scan_squares(
    start: int,
    stop: int,
    slots: Slots,
    values: Singles,
    targets: Floats,
    whole: float,
    min_leaf: int,
    best: float,
) -> tuple[float, int]:
    """The same for the squared error: `sum²/n` of both parts, which add up to `whole`, is to be large."""
    left = 0.0
    cut = -1
    before = start
    for i in range(start, stop - 1):
        left += targets[slots[i]]
        n_left, n_right = i + 1 - start, stop - i - 1
        if n_left < min_leaf or n_right < min_leaf or not separable(values, slots[i], slots[i + 1]):
            continue
        if i + 1 - before > n_right:  # sums come from the shorter side
            left = whole
            for j in range(stop - 1, i, -1):
                left -= targets[slots[j]]
        before = i + 1
        right = whole - left
        found = left * left / n_left + right * right / n_right
        if found > best:
            best, cut = found, i + 1
    return best, cut


@part()
def separable(values: Singles, below: Any, above: Any) -> bool:
    """Whether the values of two slots are far enough apart to lie on different sides of a threshold."""
    return bool(values[above] > values[below] + CLOSE)


@section()
def split_node(
    side: int,
    start: int,
    cut: int,
    stop: int,
    column: int,
    latest: int,
    of_node: tuple[float, float, int],
    measure: tuple[int, Floats],
    group: Group,
    tree: Tree,
) -> tuple[float, float, float]:
    """Split the members of a node, each side in the order in which scikit-learn adds up numbers.

    Returns the threshold, and the impurities of both sides by a `measure` (the criterion, and the table of `term`).
    """
    criterion, terms = measure
    columns, classes, targets, lists, _ = group
    members, share = tree[0], tree[5]
    below, above = lists[side, column, cut - 1], lists[side, column, cut]
    threshold = float(columns[column, below]) / 2 + float(columns[column, above]) / 2
    if criterion == SQUARED_ERROR:
        for i in range(start, stop):
            members[i] = lists[side, latest, i]
        split_members(members, start, stop, columns[column], threshold)
        impurity_left, impurity_right = variances(members, start, cut, stop, targets, of_node)
    else:
        for i in range(start, stop):
            members[i] = lists[side, column, i]
        count_classes(members, start, cut, classes, share)
        impurity_left = impurity_of(share, cut - start, criterion, terms)
        count_classes(members, cut, stop, classes, share)
        impurity_right = impurity_of(share, stop - cut, criterion, terms)
    return threshold, impurity_left, impurity_right


@part()
def split_members(members: Slots, start: int, stop: int, values: Singles, threshold: float) -> int:
    """Move the members up to a threshold to the front, each of the others to the end of the rest.

    The order is scikit-learn's, and sums of numbers follow it. Returns where the others begin.
    """
    while start < stop:
        if float(values[members[start]]) <= threshold:
            start += 1
        else:
            stop -= 1
            members[start], members[stop] = members[stop], members[start]
    return start


@part(error_model="numpy")
def variances(
    members: Slots, start: int, cut: int, stop: int, targets: Floats, of_node: tuple[float, float, int]
) -> tuple[float, float]:
    """Variance of the targets on the left and on the right of a cut."""
    whole, squares, _ = of_node
    n_left, n_right = cut - start, stop - cut
    left, squares_left = sums(members, start, cut, targets)
    if n_left > n_right:  # sums come from the shorter side
        left = whole
        for i in range(stop - 1, cut - 1, -1):
            left -= targets[members[i]]
    right, squares_right = whole - left, squares - squares_left
    mean_left, mean_right = left / n_left, right / n_right
    return squares_left / n_left - mean_left * mean_left, squares_right / n_right - mean_right * mean_right


@section()
def sum_up(criterion: int, start: int, stop: int, group: Group, tree: Tree) -> tuple[float, float, int]:
    """Sum of a node's targets and of their squares; or count its classes, with the sum of their squares."""
    whole, squares, n_squares = 0.0, 0.0, 0
    if criterion == SQUARED_ERROR:
        whole, squares = sums(tree[0], start, stop, group[2])
    else:
        n_squares = count_classes(tree[0], start, stop, group[1], tree[4])
    return whole, squares, n_squares


@part()
def sums(members: Slots, start: int, stop: int, targets: Floats) -> tuple[float, float]:
    """Sum of targets and sum of their squares."""
    whole = squares = 0.0
    for i in range(start, stop):
        whole += targets[members[i]]
        squares += targets[members[i]] * targets[members[i]]
    return whole, squares


@part()
def count_classes(slots: Slots, start: int, stop: int, classes: Slots, counts: Ints) -> int:
    """Count the classes of some slots; returns the sum of the squared counts."""
    for k in range(len(counts)):
        counts[k] = 0
    for i in range(start, stop):
        counts[classes[slots[i]]] += 1
    squares = 0
    for k in range(len(counts)):
        squares += counts[k] * counts[k]
    return squares


@part(error_model="numpy")
def impurity_of(counts: AnyArray, n: float, criterion: int, terms: Floats) -> float:
    """Gini impurity or entropy of `n` rows with these class counts."""
    squares, entropy = 0, 0.0
    for k in range(len(counts)):
        squares += counts[k] * counts[k]
        if criterion == ENTROPY:
            entropy -= term(counts[k], n, terms)
    return entropy if criterion == ENTROPY else 1 - squares / (n * n)


@part(error_model="numpy")
def term(count: float, n: float, terms: Floats) -> float:
    """`p·log₂(p)` of a share `p = count/n`, read from the table as far as it goes."""
    if n < len(terms):
        return float(terms[int(n), int(count)])
    return float(count / n * (np.log(count / n) / np.log(2.0))) if count > 0 else 0.0
