"""Slow, obvious twins of the decision tree kernels, in fractions: nothing is rounded, so that a tie is a tie."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import ceil, log2

import numpy as np

EPSILON = np.finfo(np.float64).eps


def close(below, above):
    """Whether two values of a column, ascending, count as equal: 32-bit arithmetic."""
    return bool(np.float32(above) <= np.float32(np.float32(below) + np.float32(1e-7)))


def quality(left, right, criterion):
    """A fraction that is the larger the better a split is."""
    if criterion == "gini":
        return sum(Fraction(sum(c * c for c in Counter(part).values()), len(part)) for part in (left, right))
    if criterion == "squared_error":
        return sum(sum(map(Fraction, part)) ** 2 / len(part) for part in (left, right))
    product = Fraction(1)  # 2 to the power of −n·H is a fraction: Π count^count / n^n
    for part in (left, right):
        for count in Counter(part).values():
            product *= count**count
        product /= len(part) ** len(part)
    return product


def impurity(y, criterion):
    """Gini impurity, entropy or variance."""
    n = len(y)
    if criterion == "squared_error":
        mean = sum(map(Fraction, y)) / n
        return float(sum((Fraction(v) - mean) ** 2 for v in y) / n)
    shares = [count / n for count in Counter(y).values()]
    return 1 - sum(p * p for p in shares) if criterion == "gini" else -sum(p * log2(p) for p in shares)


def cuts(values, y, criterion, min_leaf=1):
    """All cuts of a column, as (quality, number of rows on the left, threshold, rows in order)."""
    order = sorted(range(len(y)), key=lambda i: values[i])
    found = []
    for n_left in range(min_leaf, len(y) - min_leaf + 1):
        below, above = values[order[n_left - 1]], values[order[n_left]]
        if not close(below, above):
            sides = [y[i] for i in order[:n_left]], [y[i] for i in order[n_left:]]
            found.append((quality(*sides, criterion), n_left, float(below) / 2 + float(above) / 2, order))
    return found


def possible_leaves(
    X,
    y,
    x,
    criterion="gini",
    max_depth=None,
    min_samples_split=2,
    min_samples_leaf=1,
    min_impurity_decrease=0.0,
):
    """Rows of the leaf that `x` reaches: one set of rows for each way to choose among equally good splits."""
    X, x, y, n = np.asarray(X, np.float32), np.asarray(x, np.float32), list(y), len(y)
    min_leaf = min_samples_leaf if isinstance(min_samples_leaf, int) else ceil(min_samples_leaf * n)
    min_split = min_samples_split if isinstance(min_samples_split, int) else ceil(min_samples_split * n)
    known = {}

    def leaves(rows, depth):
        if (rows, depth) not in known:
            known[rows, depth] = grow(rows, depth)
        return known[rows, depth]

    def grow(rows, depth):
        labels = [y[i] for i in rows]
        if len(rows) < max(2, min_split, 2 * min_leaf) or impurity(labels, criterion) <= EPSILON:
            return {rows}
        if max_depth is not None and depth >= max_depth:
            return {rows}
        splits = []
        for f in range(X.shape[1]):
            for q, n_left, threshold, order in cuts([X[i, f] for i in rows], labels, criterion, min_leaf):
                sides = [rows[i] for i in order[:n_left]], [rows[i] for i in order[n_left:]]
                splits.append((q, *sides, float(x[f]) <= threshold))
        if not splits:
            return {rows}
        best = max(split[0] for split in splits)
        found = set()
        for q, left, right, goes_left in splits:
            if q == best:
                parts = [len(part) / len(rows) * impurity([y[i] for i in part], criterion) for part in (left, right)]
                if (impurity(labels, criterion) - sum(parts)) * len(rows) / n + 2 * EPSILON < min_impurity_decrease:
                    return {rows}
                found |= leaves(tuple(sorted(left if goes_left else right)), depth + 1)
        return found

    return leaves(tuple(range(n)), 0)


def possible_predictions(X, y, x, n_classes, **settings):
    """Class shares (or the mean, for no classes) of every leaf that `x` may reach."""
    found = []
    for leaf in possible_leaves(X, y, x, **settings):
        labels = [y[i] for i in leaf]
        if n_classes:
            found.append([labels.count(k) / len(labels) for k in range(n_classes)])
        else:
            found.append([float(sum(map(Fraction, labels)) / len(labels))])
    return np.unique(np.array(found), axis=0)


def xorshift(state):
    """The next of 32 random bits, with numbers that overflow."""
    state = np.uint32(state or 1)
    for shift in (13, -17, 5):
        state ^= np.uint32(int(state) << shift & 0xFFFFFFFF if shift > 0 else int(state) >> -shift)
    return int(state)


def next_group(coalitions, todo, start, limit):
    """Rows of the next coalitions, in the order in which they come, while these are few; and where to go on."""
    rows = []
    for at in range(start, len(todo)):
        members = coalitions.coalition(todo[at]).tolist()
        new = [z for z in members if z not in rows]
        if at > start and len(rows) + len(new) > max(limit, 4 * len(members)):
            return at, rows
        rows += new
    return len(todo), rows


def sort_as_scikit_learn(values, rows, start, stop, short):
    """Sort a stretch of values, and rows with them, by scikit-learn's introsort, recursively."""
    _sort_stretch(values, rows, start, stop, short, 2 * int(log2(stop - start)))


def _sort_stretch(values, rows, start, stop, short, limit):
    while stop - start > short:
        if limit <= 0:
            part, order = values[start:stop], rows[start:stop]
            sort_by_heap(part, order)
            values[start:stop], rows[start:stop] = part, order
            return
        limit -= 1
        pivot = sorted([values[start], values[start + (stop - start) // 2], values[stop - 1]])[1]
        i, below, above = start, start, stop
        while i < above:
            if values[i] < pivot:
                _exchange(values, rows, i, below)
                i, below = i + 1, below + 1
            elif values[i] > pivot:
                above -= 1
                _exchange(values, rows, i, above)
            else:
                i += 1
        _sort_stretch(values, rows, start, below, short, limit)
        start = above
    order = sorted(range(start, stop), key=lambda i: values[i])  # insertion keeps the order of equals
    values[start:stop], rows[start:stop] = [values[i] for i in order], [rows[i] for i in order]


def sort_by_heap(values, rows):
    """Sort values, and rows with them, by a heap."""

    def sift(root, end):
        largest = max((i for i in (root, 2 * root + 1, 2 * root + 2) if i < end), key=lambda i: (values[i], -i))
        if largest != root:
            _exchange(values, rows, root, largest)
            sift(largest, end)

    for root in range((len(values) - 2) // 2, -1, -1):
        sift(root, len(values))
    for end in range(len(values) - 1, 0, -1):
        _exchange(values, rows, 0, end)
        sift(0, end)


def _exchange(values, rows, i, j):
    values[i], values[j] = values[j], values[i]
    rows[i], rows[j] = rows[j], rows[i]
