"""Decision trees as scikit-learn grows them, for many small coalitions.

Coalitions that follow each other and share rows form a group. Within a group a row has a slot, and every column is
sorted once; a coalition's sorted column is what remains of the group's without the slots that it does not have, and
a node's what remains of its parent's.

Equally good splits are common on few rows. Scikit-learn takes the first that it meets, and draws the order of the
columns anew at every node; the same numbers are drawn here, node by node in the same order, and impurities are
computed by the same operations, so that the trees are the same. Test rows travel down with the training rows, and
growth ends when each has reached its leaf.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from localshapley.arrays import Floats, Indices, Ints, Masks
from localshapley.kernels.bits import ONE, lowest_bit

GINI, ENTROPY, SQUARED_ERROR = 0, 1, 2
CLOSE = np.float32(1e-7)
"""Neighbours in a column that differ by less, in 32-bit arithmetic, are not separated."""
EPSILON = 2.0**-52
"""Impurity that counts as none."""
GROUP = 64
"""Coalitions form a group while it has up to so many rows, or four times those of the coalition."""

Singles: TypeAlias = NDArray[np.float32]
Slots: TypeAlias = NDArray[np.uint32]


@njit(cache=True, nogil=True, error_model="numpy")
def predict_by_trees(
    indptr: Ints,
    players: Indices,
    test_indptr: Ints,
    tests: Indices,
    todo: Ints,
    X: Singles,
    ranks: Indices,
    X_test: Singles,
    codes: Ints,
    y: Floats,
    criterion: int,
    max_depth: int,
    max_features: int,
    min_split: Ints,
    min_leaf: Ints,
    min_decrease: float,
    seed: int,
    terms: Floats,
    out: Floats,
) -> None:
    """Grow the tree of each coalition `todo` and write its predictions for its test rows to `out`.

    Parameters
    ----------
    indptr, players, test_indptr, tests : coalitions as CSR arrays
    todo : array of coalitions, none of them empty
    X, ranks : arrays of shape (n_rows, n_columns)
        Values, and their places in the order of the column; no two have the same place.
    X_test : array of shape (n_tests, n_columns)
    codes, y : arrays of shape (n_rows,)
        Class codes, or numbers to regress.
    criterion : GINI, ENTROPY or SQUARED_ERROR
    max_depth, max_features : int
    min_split, min_leaf : arrays of shape (n_rows + 1,)
        Least number of rows of a node to split, and of a leaf, by the size of the coalition.
    min_decrease : float
        Least decrease of the impurity by a split, times the node's share of the coalition.
    seed : int
        First state of the random numbers of every tree.
    terms : square array
        `p·log₂(p)` of the share p of `column` in `row` rows, as far as it is worth a table.
    out : array of shape (n_scores, n_classes), or (n_scores, 1) for regression
    """
    n_rows, n_columns = X.shape
    widest = most_tests = 0
    for c in todo:
        widest = max(widest, indptr[c + 1] - indptr[c])
        most_tests = max(most_tests, test_indptr[c + 1] - test_indptr[c])
    room = min(n_rows, max(GROUP, 4 * widest))
    # Of a group, by slot: rows, values, what is to be predicted, marks.
    rows = np.empty(room, dtype=np.int32)
    slot_of_row = np.full(n_rows, -1, dtype=np.int32)
    columns = np.empty((n_columns, room), dtype=np.float32)
    classes = np.empty(room, dtype=np.uint32)
    targets = np.empty(room)
    on_left = np.zeros(room, dtype=np.int64)
    # Slots in the order of each column: of the group, of nodes at even and of nodes at odd depth.
    lists = np.empty((3, n_columns, room), dtype=np.uint32)
    slot_of_rank = np.empty(n_rows, dtype=np.uint32)
    words = np.zeros(n_rows // 64 + 1, dtype=np.uint64)
    # Of a tree: slots and places of test rows, both node by node; nodes to grow, with their impurity.
    members = np.empty(widest, dtype=np.uint32)
    scored = np.empty(most_tests, dtype=np.int64)
    stack = np.empty((widest + 1, 6), dtype=np.int64)
    impurities = np.empty(widest + 1)
    # Columns, moved by the draws, and those that are constant from the root to a node; class counts.
    drawn = np.empty(n_columns, dtype=np.uint32)
    constant = np.empty(n_columns, dtype=np.uint32)
    total = np.zeros(out.shape[1], dtype=np.int64)
    part = np.zeros(out.shape[1], dtype=np.int64)
    done = 0
    while done < len(todo):
        begin = done
        done, n_group = form_group(indptr, players, todo, begin, slot_of_row, rows)
        for slot in range(n_group):
            classes[slot] = codes[rows[slot]]
            targets[slot] = y[rows[slot]]
        for f in range(n_columns):
            for slot in range(n_group):
                columns[f, slot] = X[rows[slot], f]
            sort_column(f, rows, n_group, ranks, slot_of_rank, words, lists)
        for c in todo[begin:done]:
            size = indptr[c + 1] - indptr[c]
            waiting = test_indptr[c + 1] - test_indptr[c]
            least, least_in_leaf = min_split[size], min_leaf[size]
            for i in range(size):
                members[i] = slot_of_row[players[indptr[c] + i]]
            for i in range(waiting):
                scored[i] = test_indptr[c] + i
            if criterion == SQUARED_ERROR:
                whole, squares = sums(members, 0, size, targets)
                impurity = squares / size - (whole / size) * (whole / size)
            else:
                count_classes(members, 0, size, classes, total)
                impurity = impurity_of(total, size, criterion, terms)
            if is_leaf(size, 0, impurity, least, max_depth):
                write_leaf(members, 0, size, scored, 0, waiting, classes, targets, criterion, out)
                continue
            mark(members, 0, size, on_left, 1)
            for f in range(n_columns):
                drawn[f] = f
                split_list(f, 0, 1, 0, n_group, size, lists, on_left)
            mark(members, 0, size, on_left, 0)
            state = seed
            height = push(stack, impurities, 0, 0, size, 0, waiting, 0, 0, impurity)
            while height > 0 and waiting > 0:
                height -= 1
                start, stop = stack[height, 0], stack[height, 1]
                first, last = stack[height, 2], stack[height, 3]
                depth, n_known, impurity = stack[height, 4], stack[height, 5], impurities[height]
                n = stop - start
                side = 1 + (depth & 1)
                whole = squares = 0.0
                n_squares = 0
                if criterion == SQUARED_ERROR:
                    whole, squares = sums(members, start, stop, targets)
                else:
                    n_squares = count_classes(members, start, stop, classes, total)
                # Draw columns, and keep the first of the best cuts. In front of `drawn` stand the columns that are
                # known to be constant (those met in this node first), then the new ones; at its end the others.
                best, column, cut, latest = -np.inf, -1, -1, -1
                n_constant, n_new, n_skipped, n_visited, n_free = n_known, 0, 0, 0, n_columns
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
                    if not separable(columns, f, lists[side, f, start], lists[side, f, stop - 1]):
                        drawn[n_constant], drawn[j] = drawn[j], drawn[n_constant]
                        n_new += 1
                        n_constant += 1
                        continue
                    latest = f
                    n_free -= 1
                    drawn[n_free], drawn[j] = drawn[j], drawn[n_free]
                    if criterion == SQUARED_ERROR:
                        found, at = scan_squares(
                            side, f, start, stop, lists, columns, targets, whole, least_in_leaf, best
                        )
                    elif best == 0:
                        continue  # both parts are pure: nothing is better
                    elif criterion == GINI:
                        found, at = scan_gini(
                            side, f, start, stop, lists, columns, classes, total, n_squares, part, least_in_leaf, best
                        )
                    else:
                        found, at = scan_entropy(
                            side, f, start, stop, lists, columns, classes, total, terms, part, least_in_leaf, best
                        )
                    if at >= 0:
                        best, column, cut = found, f, at
                for j in range(n_known):
                    drawn[j] = constant[j]
                for j in range(n_known, n_constant):
                    constant[j] = drawn[j]
                if column < 0:
                    write_leaf(members, start, stop, scored, first, last, classes, targets, criterion, out)
                    waiting -= last - first
                    continue
                # Split the members, each side in the order in which scikit-learn adds up numbers.
                n_left, n_right = cut - start, stop - cut
                below, above = lists[side, column, cut - 1], lists[side, column, cut]
                threshold = float(columns[column, below]) / 2 + float(columns[column, above]) / 2
                if criterion == SQUARED_ERROR:
                    for i in range(start, stop):
                        members[i] = lists[side, latest, i]
                    split_members(members, start, stop, columns, column, threshold)
                    impurity_left, impurity_right = variances(members, start, cut, stop, targets, whole, squares)
                else:
                    for i in range(start, stop):
                        members[i] = lists[side, column, i]
                    count_classes(members, start, cut, classes, part)
                    impurity_left = impurity_of(part, n_left, criterion, terms)
                    count_classes(members, cut, stop, classes, part)
                    impurity_right = impurity_of(part, n_right, criterion, terms)
                decrease = n / size * (impurity - n_right / n * impurity_right - n_left / n * impurity_left)
                if decrease + EPSILON < min_decrease:
                    write_leaf(members, start, stop, scored, first, last, classes, targets, criterion, out)
                    waiting -= last - first
                    continue
                # Split the test rows, settle the leaves and leave the other parts to be grown.
                middle = split_tests(scored, first, last, tests, X_test, column, threshold)
                leaf_left = is_leaf(n_left, depth + 1, impurity_left, least, max_depth)
                leaf_right = is_leaf(n_right, depth + 1, impurity_right, least, max_depth)
                if leaf_left:
                    write_leaf(members, start, cut, scored, first, middle, classes, targets, criterion, out)
                    waiting -= middle - first
                if leaf_right:
                    write_leaf(members, cut, stop, scored, middle, last, classes, targets, criterion, out)
                    waiting -= last - middle
                if waiting == 0 or (leaf_left and leaf_right):
                    continue
                mark(members, start, cut, on_left, 1)
                for j in range(n_constant, n_columns):
                    split_list(drawn[j], side, 3 - side, start, stop, cut, lists, on_left)
                mark(members, start, cut, on_left, 0)
                if not leaf_right:
                    height = push(
                        stack, impurities, height, cut, stop, middle, last, depth + 1, n_constant, impurity_right
                    )
                if not leaf_left:  # on top: it is grown first
                    height = push(
                        stack, impurities, height, start, cut, first, middle, depth + 1, n_constant, impurity_left
                    )
        for slot in range(n_group):
            slot_of_row[rows[slot]] = -1


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def push(
    stack: Ints,
    impurities: Floats,
    height: int,
    start: int,
    stop: int,
    first: int,
    last: int,
    depth: int,
    n_constant: int,
    impurity: float,
) -> int:
    """Put a node on the stack: members, test rows, depth, number of constant columns, impurity; returns its height."""
    stack[height, 0], stack[height, 1] = start, stop
    stack[height, 2], stack[height, 3] = first, last
    stack[height, 4], stack[height, 5] = depth, n_constant
    impurities[height] = impurity
    return height + 1


@njit(cache=True, nogil=True)
def next_state(state: int) -> int:
    """The next 32 random bits (xorshift)."""
    if state == 0:
        state = 1
    state ^= (state << 13) & 0xFFFFFFFF
    state ^= state >> 17
    return state ^ ((state << 5) & 0xFFFFFFFF)


@njit(cache=True, nogil=True, error_model="numpy")
def scan_gini(
    side: int,
    f: int,
    start: int,
    stop: int,
    lists: Slots,
    columns: Singles,
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
    side, f, start, stop : list of the column's slots, and the node's stretch of it
    total, squares : class counts of the node, and the sum of their squares
    left : room for the class counts on the left
    min_leaf : least number of rows on either side
    best : weighted impurity, negated, of the best split so far

    Returns
    -------
    best : float
    cut : int
        Place of the first slot on the right; −1 where nothing is better.
    """
    squares_left = shared = 0
    for k in range(len(total)):
        left[k] = 0
    cut = -1
    for i in range(start, stop - 1):
        k = classes[lists[side, f, i]]
        squares_left += 2 * left[k] + 1
        shared += total[k]
        left[k] += 1
        n_left, n_right = i + 1 - start, stop - i - 1
        squares_right = squares - 2 * shared + squares_left
        found = -n_right * (1 - squares_right / (n_right * n_right)) - n_left * (1 - squares_left / (n_left * n_left))
        if (
            found > best
            and n_left >= min_leaf
            and n_right >= min_leaf
            and separable(columns, f, lists[side, f, i], lists[side, f, i + 1])
        ):
            best, cut = found, i + 1
    return best, cut


@njit(cache=True, nogil=True, error_model="numpy")
def scan_entropy(
    side: int,
    f: int,
    start: int,
    stop: int,
    lists: Slots,
    columns: Singles,
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
        left[classes[lists[side, f, i]]] += 1
        n_left, n_right = i + 1 - start, stop - i - 1
        if (
            n_left < min_leaf
            or n_right < min_leaf
            or not separable(columns, f, lists[side, f, i], lists[side, f, i + 1])
        ):
            continue
        entropy_left = entropy_right = 0.0
        for k in range(len(total)):
            entropy_left -= term(left[k], n_left, terms)
            entropy_right -= term(total[k] - left[k], n_right, terms)
        found = -n_right * entropy_right - n_left * entropy_left
        if found > best:
            best, cut = found, i + 1
    return best, cut


@njit(cache=True, nogil=True, error_model="numpy")
def scan_squares(
    side: int,
    f: int,
    start: int,
    stop: int,
    lists: Slots,
    columns: Singles,
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
        left += targets[lists[side, f, i]]
        n_left, n_right = i + 1 - start, stop - i - 1
        if (
            n_left < min_leaf
            or n_right < min_leaf
            or not separable(columns, f, lists[side, f, i], lists[side, f, i + 1])
        ):
            continue
        if i + 1 - before > n_right:  # sums come from the shorter side
            left = whole
            for j in range(stop - 1, i, -1):
                left -= targets[lists[side, f, j]]
        before = i + 1
        right = whole - left
        found = left * left / n_left + right * right / n_right
        if found > best:
            best, cut = found, i + 1
    return best, cut


@njit(cache=True, nogil=True)
def separable(columns: Singles, f: int, below: Any, above: Any) -> bool:
    """Whether the values of two slots are far enough apart to lie on different sides of a threshold."""
    return bool(columns[f, above] > columns[f, below] + CLOSE)


@njit(cache=True, nogil=True)
def mark(members: Slots, start: int, stop: int, on_left: Ints, value: int) -> None:
    """Mark the members of a part, or take the marks away."""
    for i in range(start, stop):
        on_left[members[i]] = value


@njit(cache=True, nogil=True)
def split_list(f: int, source: int, target: int, start: int, stop: int, cut: int, lists: Slots, on_left: Ints) -> None:
    """Copy a sorted list, the marked slots to its front and the others from `cut` on, both in their order."""
    at_left, at_right = start, cut
    for i in range(start, stop):
        slot = lists[source, f, i]
        goes_left = on_left[slot]
        at = at_left if goes_left else at_right
        at_left += goes_left
        at_right += 1 - goes_left
        lists[target, f, at] = slot


@njit(cache=True, nogil=True)
def split_tests(
    scored: Ints, first: int, last: int, tests: Indices, X_test: Singles, column: int, threshold: float
) -> int:
    """Bring the test rows up to the threshold to the front; returns where the others begin."""
    while first < last:
        if float(X_test[tests[scored[first]], column]) <= threshold:
            first += 1
        else:
            last -= 1
            scored[first], scored[last] = scored[last], scored[first]
    return first


@njit(cache=True, nogil=True)
def is_leaf(n: int, depth: int, impurity: float, min_split: int, max_depth: int) -> bool:
    """Whether a node is too small, too deep or too pure to be split."""
    return n < min_split or depth >= max_depth or impurity <= EPSILON


@njit(cache=True, nogil=True, error_model="numpy")
def write_leaf(
    members: Slots,
    start: int,
    stop: int,
    scored: Ints,
    first: int,
    last: int,
    classes: Slots,
    targets: Floats,
    criterion: int,
    out: Floats,
) -> None:
    """Predict the class shares, or the mean, of a leaf's rows for the test rows in it."""
    if first == last:
        return
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def split_members(members: Slots, start: int, stop: int, columns: Singles, f: int, threshold: float) -> None:
    """Bring the members up to a threshold to the front, each of the others to the end of the rest.

    The order is scikit-learn's, and sums of numbers follow it.
    """
    while start < stop:
        if float(columns[f, members[start]]) <= threshold:
            start += 1
        else:
            stop -= 1
            members[start], members[stop] = members[stop], members[start]


@njit(cache=True, nogil=True)
def sums(members: Slots, start: int, stop: int, targets: Floats) -> tuple[float, float]:
    """Sum of targets and sum of their squares."""
    whole = squares = 0.0
    for i in range(start, stop):
        whole += targets[members[i]]
        squares += targets[members[i]] * targets[members[i]]
    return whole, squares


@njit(cache=True, nogil=True, error_model="numpy")
def variances(
    members: Slots, start: int, cut: int, stop: int, targets: Floats, whole: float, squares: float
) -> tuple[float, float]:
    """Variance of the targets on the left and on the right of a cut."""
    n_left, n_right = cut - start, stop - cut
    left, squares_left = sums(members, start, cut, targets)
    if n_left > n_right:  # sums come from the shorter side
        left = whole
        for i in range(stop - 1, cut - 1, -1):
            left -= targets[members[i]]
    right, squares_right = whole - left, squares - squares_left
    mean_left, mean_right = left / n_left, right / n_right
    return squares_left / n_left - mean_left * mean_left, squares_right / n_right - mean_right * mean_right


@njit(cache=True, nogil=True, error_model="numpy")
def impurity_of(counts: Ints, n: int, criterion: int, terms: Floats) -> float:
    """Gini impurity or entropy of `n` rows with these class counts."""
    squares, entropy = 0, 0.0
    for k in range(len(counts)):
        squares += counts[k] * counts[k]
        if criterion == ENTROPY:
            entropy -= term(counts[k], n, terms)
    return entropy if criterion == ENTROPY else 1 - squares / (n * n)


@njit(cache=True, nogil=True, error_model="numpy")
def term(count: int, n: int, terms: Floats) -> float:
    """`p·log₂(p)` of a share `p = count/n`, read from the table as far as it goes."""
    if n < len(terms):
        return float(terms[n, count])
    return float(count / n * (np.log(count / n) / np.log(2.0))) if count else 0.0
