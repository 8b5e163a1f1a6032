"""Ridge regression as a classifier, of many small coalitions: a class is +1, the others are −1.

Rows may be weighted by their class. They are taken less their weighted mean and scaled by the roots of their weights;
the rest is as in ridge regression.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from localshapley.arrays import CoalitionArrays, Floats, Indices, Ints, longest
from localshapley.kernels.decisions import ClassWeights, take_roots, write
from localshapley.kernels.jit import kernel
from localshapley.kernels.matrices import (
    ARITHMETIC,
    ROOM,
    compiled,
    dot,
    factorise,
    own_products,
    pasted,
    substitute_back,
    transpose,
)
from localshapley.kernels.ridge_logistic import Fetched, Rows, combine_rows, encode, fetch_test

Model: TypeAlias = tuple[float, bool, int]
"""`penalty`, `intercept`, and the form in which predictions are written."""
Room: TypeAlias = tuple[Fetched, Floats, Floats, Floats, Floats, Floats, Ints, Ints]
"""What is fetched of a coalition, rows turned into columns, a factor; coefficients of each class; its intercept and
its decision value; six lines of numbers, four of places, and three of classes."""


def train_ridge_classifier(
    coalitions: CoalitionArrays,
    todo: Ints,
    rows: Rows,
    codes: Ints,
    weights: ClassWeights,
    model: Model,
    out: Floats,
) -> None:
    """Ridge classifiers of the coalitions `todo`; what they say of the classes of their test rows goes to `out`."""
    n_classes, p = out.shape[1], rows[0].shape[1]
    size = longest(coalitions[0], todo) + ROOM
    few = size if p == 0 else min(size, p + ROOM)
    room = (
        (np.zeros((size, p)), np.zeros((few, few))),
        np.zeros((few, size)),
        np.zeros((few, few)),
        np.zeros((n_classes, max(size, p))),
        np.zeros((2, n_classes)),
        np.zeros((6, max(size, p))),
        np.zeros((4, size), dtype=np.int64),
        np.zeros((3, n_classes), dtype=np.int64),
    )
    fit_ridge_classifier(coalitions, todo, rows, codes, weights, model, room, out)


@kernel(error_model="numpy", fastmath=ARITHMETIC)
def fit_ridge_classifier(
    coalitions: CoalitionArrays,
    todo: Ints,
    rows: Rows,
    codes: Ints,
    weights: ClassWeights,
    model: Model,
    room: Room,
    out: Floats,
) -> None:
    """Train and predict, coalition by coalition: one factor, and a right side for each class."""
    indptr, players, test_indptr, tests = coalitions
    penalty, intercept, form = model
    p = rows[0].shape[1]
    fetched, turned, factor, coefficients, pairs, lines, places, classes = room
    own, products = fetched
    bias, decision = pairs
    right, answer, mean, line, share, root = lines
    zero, width, start, y = places
    present, place, count = classes
    for c in todo:
        members = players[indptr[c] : indptr[c + 1]]
        k = len(members)
        m = encode(members, codes, place, present, y)
        take_roots(k, m, y, present, count, weights, root)
        share_out(k, root, share)
        by_rows = p == 0 or k <= p
        crossed = by_rows and rows[2].size > 0
        if crossed:
            gather_weighted_products(members, rows[2], intercept, share, root, products, mean)
        else:
            gather_weighted_rows(members, rows[0], intercept, share, root, own, mean)
            if by_rows:
                own_products(own, k, zero, p, products)
            else:
                transpose(own, k, p, turned)
                own_products(turned, p, zero, k, products)
        n = k if by_rows else p
        for i in range(n):
            products[i, i] += penalty
            for a in range(n):
                factor[i, a] = 0.0
        q = factorise(products, n, 0, factor, width, start)
        for j in range(m):
            middle = aim(j, k, intercept, y, share, root, right)
            if not by_rows:
                for a in range(p):
                    answer[a] = dot(turned[a], right, k)
                for a in range(p):
                    right[a] = answer[a]
            for a in range(q):
                right[a] = (right[start[a]] - dot(factor[start[a]], right, a)) / factor[start[a], a]
            substitute_back(factor, 0, q, start, right, n, answer)
            finish(answer, own, (k, p), by_rows, crossed, intercept, share, root, coefficients[j])
            bias[j] = middle - dot(coefficients[j], mean, k if crossed else p)
        for s in range(test_indptr[c], test_indptr[c + 1]):
            fetch_test(tests[s], members, rows, crossed, line)
            for j in range(m):
                decision[j] = bias[j] + dot(coefficients[j], line, k if crossed else p)
            if m == 2:
                decision[0], decision[1] = -decision[1] / 2, decision[1] / 2
            write(decision, present, m, form, s, out)


@pasted
def share_out(k: int, root: Floats, share: Floats) -> None:
    """Write the share of each row in the weight of all."""
    total = dot(root, root, k)
    for i in range(k):
        share[i] = root[i] * root[i] / total


@pasted
def gather_weighted_rows(
    members: Indices, X: Floats, centred: bool, share: Floats, root: Floats, out: Floats, mean: Floats
) -> None:
    """Copy rows, less their weighted mean where `centred`, and scale them; `mean` has what was taken off."""
    k, p = len(members), X.shape[1]
    for a in range(p):
        mean[a] = 0.0
    if centred:
        for i in range(k):
            for a in range(p):
                mean[a] += share[i] * X[members[i], a]
    for i in range(k):
        for a in range(p):
            out[i, a] = root[i] * (X[members[i], a] - mean[a])


@compiled
def gather_weighted_products(
    members: Indices, gram: Floats, centred: bool, share: Floats, root: Floats, out: Floats, mean: Floats
) -> None:
    """Copy inner products (lower triangle) of rows, as those of rows less their mean where `centred`, and scale them.

    `mean` has the product of each row with what was taken off.
    """
    k, total = len(members), 0.0
    for i in range(k):
        mean[i] = 0.0
        if centred:
            for l in range(k):
                mean[i] += share[l] * gram[members[i], members[l]]
            total += share[i] * mean[i]
    for i in range(k):
        for l in range(i + 1):
            out[i, l] = root[i] * root[l] * (gram[members[i], members[l]] + total - mean[i] - mean[l])


@pasted
def aim(j: int, k: int, intercept: bool, y: Ints, share: Floats, root: Floats, right: Floats) -> float:
    """Write what class `j` is to be predicted as, less the mean, which is returned."""
    middle = 0.0
    for i in range(k):
        right[i] = 1.0 if y[i] == j else -1.0
        if intercept:
            middle += share[i] * right[i]
    for i in range(k):
        right[i] = root[i] * (right[i] - middle)
    return middle


@pasted
def finish(
    answer: Floats,
    own: Floats,
    sizes: tuple[int, int],
    by_rows: bool,
    crossed: bool,
    intercept: bool,
    share: Floats,
    root: Floats,
    out: Floats,
) -> None:
    """Write coefficients of features; or, where rows are known by their products alone (`crossed`), of rows.

    Those sum to zero where there is an intercept, as rows less their mean do when they are weighted.
    """
    k, p = sizes
    if by_rows and not crossed:
        combine_rows(answer, own, k, p, out)
    else:
        for i in range(k if crossed else p):
            out[i] = answer[i]
    if crossed:
        total = 0.0
        for i in range(k):
            out[i] *= root[i]
            total += out[i]
        if intercept:
            for i in range(k):
                out[i] -= share[i] * total
