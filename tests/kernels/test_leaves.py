"""Kernels of refilled leaves, on leaves that no tree has grown: any bags, any labels, leaves of one row or none."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localshapley.arrays import offsets
from localshapley.coalitions.batch import Coalitions
from localshapley.kernels import leaf_games as kernels
from localshapley.models.tree_leaves import grouped
from naive import shapley_of_one, subsets

N_ROWS, N_TESTS, N_CLASSES = 6, 4, 3


def as_lists(lists):
    entries = [np.array(sorted(one), dtype=np.int32) for one in lists]
    return offsets(np.array([len(one) for one in entries])), np.concatenate([np.empty(0, dtype=np.int32), *entries])


@st.composite
def forests(draw):
    """Rows in the leaves of some trees, and the test rows that reach them; each tree has bags and judges of its own."""
    rows, tests = [], []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 3))
        leaf_of_row = draw(st.lists(st.integers(-1, n - 1), min_size=N_ROWS, max_size=N_ROWS))  # −1: not in the bag
        leaf_of_test = draw(st.lists(st.integers(-1, n - 1), min_size=N_TESTS, max_size=N_TESTS))
        rows += [{z for z in range(N_ROWS) if leaf_of_row[z] == leaf} for leaf in range(n)]
        tests += [{t for t in range(N_TESTS) if leaf_of_test[t] == leaf} for leaf in range(n)]
    return rows, tests


@st.composite
def labels(draw):
    """Classes or numbers, weights of the test rows, and scores of empty leaves."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights, nothing = rng.random(N_TESTS), rng.normal(size=N_TESTS)
    codes, truths = rng.integers(N_CLASSES, size=N_ROWS), rng.integers(-1, N_CLASSES, size=N_TESTS)
    numbers, aims = rng.normal(size=N_ROWS), rng.normal(size=N_TESTS)
    if draw(st.booleans()):
        return True, codes[:0], truths[:0], numbers, aims, weights, nothing
    return False, codes, truths, numbers[:0], aims[:0], weights, nothing


def score(coalition, t, rows, tests, labels):
    """By the definition: the leaves that a test row reaches, one after the other."""
    amounts, codes, truths, numbers, aims, weights, nothing = labels
    total = 0.0
    for inside, reaching in zip(rows, tests, strict=True):
        if t in reaching:
            there = [z for z in coalition if z in inside]
            if not there:
                total += nothing[t]
            elif amounts:
                total -= (aims[t] - np.mean(numbers[there])) ** 2
            else:
                total += np.mean(codes[there] == truths[t])
    return weights[t] * total


HARMONIC = np.array([np.cumsum([0.0, *(1 / i**power for i in range(1, N_ROWS + 1))]) for power in (1, 2)])


@given(forests(), labels())
@pytest.mark.slow
def test_values_and_scores_are_those_of_the_definition(forest, labels):
    rows, tests = forest
    row_lists, test_lists = as_lists(rows), as_lists(tests)
    expected = np.zeros((N_TESTS, N_ROWS))
    for t in range(N_TESTS):
        found = shapley_of_one(range(N_ROWS), lambda s, t=t: score(s, t, rows, tests, labels))
        expected[t] = list(found.values())
    values, full, room = np.zeros(N_ROWS), np.zeros(N_TESTS), np.zeros(N_CLASSES)
    kernels.add_leaf_values(row_lists, test_lists, labels, HARMONIC, room, values, full)
    np.testing.assert_allclose(values, expected.sum(axis=0), atol=1e-10)
    assert not room.any()

    leaf = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(test_lists[0]))
    of_tests = grouped(test_lists[1], leaf, N_TESTS)
    everyone = np.arange(N_TESTS, dtype=np.int32)
    pairs = as_lists([range(N_ROWS)] * N_TESTS)
    out, place = np.zeros(N_TESTS * N_ROWS), np.zeros(N_ROWS, dtype=np.int64)
    kernels.add_pair_values(of_tests, row_lists, labels, HARMONIC, room, pairs, everyone, place, out)
    np.testing.assert_allclose(out.reshape(N_TESTS, N_ROWS), expected, atol=1e-10)
    assert not room.any()

    coalitions = Coalitions.from_lists(subsets(range(N_ROWS)), [everyone] * 2**N_ROWS)
    scores = np.empty(2**N_ROWS * N_TESTS)
    kernels.score_refilled(coalitions.arrays, of_tests, row_lists, labels, np.full(N_ROWS, -1), scores)
    by_hand = [score(s, t, rows, tests, labels) for s in subsets(range(N_ROWS)) for t in everyone]
    np.testing.assert_allclose(scores, by_hand, atol=1e-12)
    gains = scores.reshape(-1, N_TESTS)[-1] - scores.reshape(-1, N_TESTS)[0]
    np.testing.assert_allclose(expected.sum(axis=1), gains, atol=1e-10)
    if all(rows):  # an empty leaf is not scored
        np.testing.assert_allclose(full, scores.reshape(-1, N_TESTS)[-1], atol=1e-12)


@given(forests())
def test_leaf_mates_are_counted_and_listed_once(forest):
    rows, tests = forest
    test_lists = as_lists(tests)
    leaf = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(test_lists[0]))
    of_tests = grouped(test_lists[1], leaf, N_TESTS)
    mates = [
        set().union(*(inside for inside, reaching in zip(rows, tests, strict=True) if t in reaching))
        for t in range(N_TESTS)
    ]
    sizes, reach = np.zeros(N_TESTS, dtype=np.int64), np.zeros(N_ROWS, dtype=np.int64)
    kernels.count_mates(of_tests, as_lists(rows), np.full(N_ROWS, -1), sizes, reach)
    assert sizes.tolist() == [len(found) for found in mates]
    assert reach.tolist() == [sum(z in found for found in mates) for z in range(N_ROWS)]
    players = np.empty(sizes.sum(), dtype=np.int32)
    kernels.list_mates(of_tests, as_lists(rows), np.full(N_ROWS, -1), players)
    assert [set(part.tolist()) for part in np.split(players, np.cumsum(sizes)[:-1])] == mates


@pytest.mark.parametrize("n", [0, 1, 50])
def test_groups_keep_the_order_of_their_entries(n):
    rng = np.random.default_rng(n)
    keys, entries = rng.integers(4, size=n), rng.integers(100, size=n)
    indptr, members = grouped(keys, entries, 6)
    assert [members[a:b].tolist() for a, b in pairwise(indptr)] == [entries[keys == k].tolist() for k in range(6)]
