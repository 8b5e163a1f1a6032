"""Kernels that draw subsets, against their naive twins and the chances they should have."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localshapley as ls
import naive
from doors import door
from localshapley.coalitions.sampled import Collection, Strata
from localshapley.kernels.draws import (
    add_weighted,
    draw_pivots,
    draw_round,
    games_holding,
    keep,
    list_arrived,
    next_below,
    next_combination,
    random_subset,
)

any_supports = st.lists(st.lists(st.integers(0, 9), unique=True, min_size=1, max_size=7), min_size=1, max_size=7)


def stream_of(seed):
    return np.random.default_rng(seed).integers(2**64, size=1, dtype=np.uint64)


def places_of(n):
    """A permutation of the places in a support, room for those that are drawn, and marks."""
    return np.arange(n, dtype=np.int32), np.empty(n, dtype=np.int32), np.zeros(n, dtype=bool)


def assert_chi_square(observed, expected, lost=1):
    """Refuse counts over five standard deviations of the chi-square distribution away from what is expected."""
    observed, expected = np.asarray(observed, dtype=float), np.asarray(expected, dtype=float)
    assert expected.min() >= 5
    freedom = len(observed) - lost
    assert ((observed - expected) ** 2 / expected).sum() < freedom + 5 * np.sqrt(2 * freedom)


def assert_even_inclusion(times, repeats, share):
    """Counts of `repeats` samples without replacement, each of the same `share` of the population."""
    size = len(times)
    statistic = ((times - repeats * share) ** 2).sum() / (repeats * share * (1 - share)) * (size - 1) / size
    assert abs(statistic - (size - 1)) < 5 * np.sqrt(2 * (size - 1))


def test_random_whole_numbers_are_even_and_below_their_limit():
    stream = stream_of(1)
    drawn = np.array([door(next_below)(stream, 0, 7) for _ in range(14_000)])
    assert_chi_square(np.bincount(drawn, minlength=7), np.full(7, 2000))
    assert {door(next_below)(stream, 0, 1) for _ in range(100)} == {0}


@pytest.mark.parametrize(
    ("n", "k"), [(1, 0), (1, 1), (4, 1), (4, 2), (4, 3), (4, 4), (5, 0), (6, 3), (7, 2), (7, 5), (8, 4)]
)
def test_every_subset_of_a_size_is_drawn_equally_often(n, k):
    stream, places = stream_of(n * 10 + k), places_of(n)
    order, chosen, marked = places
    seen = Counter()
    for _ in range(100 * comb(n, k)):
        random_subset(stream, 0, n, k, places)
        seen[tuple(chosen[:k].tolist())] += 1
    assert sorted(order.tolist()) == list(range(n))
    assert not marked.any()
    assert set(seen) == set(combinations(range(n), k))  # ascending members, nothing else
    if len(seen) > 1:
        assert_chi_square(list(seen.values()), np.full(len(seen), 100))


def test_draws_that_follow_each_other_are_independent():
    stream, places = stream_of(3), places_of(5)
    subsets = {s: i for i, s in enumerate(combinations(range(5), 2))}
    drawn = []
    for _ in range(10_001):
        random_subset(stream, 0, 5, 2, places)
        drawn.append(subsets[tuple(places[1][:2].tolist())])
    pairs = np.zeros((10, 10))
    np.add.at(pairs, (drawn[:-1], drawn[1:]), 1)
    assert_chi_square(pairs.ravel(), np.full(100, 100))


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 1), (5, 5), (7, 3), (9, 6)])
def test_combinations_are_counted_through_in_order(n, k):
    chosen = np.arange(k, dtype=np.int32)
    seen = [tuple(chosen.tolist())]
    while next_combination(chosen, n, k):
        seen.append(tuple(chosen.tolist()))
    assert seen == list(combinations(range(n), k))


def ordered(supports):
    """The distinct supports as the graph orders its games, and the graph."""
    graph = ls.SupportGraph(supports)
    return [graph.game(g).tolist() for g in range(graph.n_games)], graph


@given(any_supports)
def test_the_games_that_hold_a_subset_are_those_of_the_definition(supports):
    games, graph = ordered(supports)
    out = np.empty(graph.n_games, dtype=np.int32)
    for subset in naive.distinct_subsets(games) - {()}:
        members = np.array(subset, dtype=np.int32)
        for masks in (graph.masks, graph.masks[:0]):  # by their bits, and by a search
            found = games_holding(members, len(members), graph.arrays, masks, out)
            assert out[:found].tolist() == naive.holding(games, subset)


def test_games_of_many_words_and_of_too_many(monkeypatch):
    supports = [[i % 7, 7 + i % 11, 18 + i] for i in range(150)]
    graph, out = ls.SupportGraph(supports), np.empty(150, dtype=np.int32)
    assert graph.masks.shape == (168, 3)
    expected = [g for g in range(150) if {3, 9} <= set(graph.game(g).tolist())]
    for masks in (graph.masks, graph.masks[:0]):
        found = games_holding(np.array([3, 9], dtype=np.int32), 2, graph.arrays, masks, out)
        assert out[:found].tolist() == expected
    monkeypatch.setattr("localshapley.coalitions.games.MOST_WORDS", 503)
    assert ls.SupportGraph(supports).masks.shape == (0, 3)


@given(any_supports, st.integers(1, 9))
def test_batches_carry_every_game_and_test_row_of_their_subsets(supports, size):
    graph = ls.SupportGraph(supports)
    collection = Collection(graph, 0)
    subsets = sorted(naive.distinct_subsets(supports))
    collection.add_sure([np.array(s, dtype=np.int32) for s in subsets])
    given_out = []
    while (batch := collection.take(size)) is not None:
        for c in range(len(batch)):
            subset = tuple(batch.coalition(c).tolist())
            given_out.append(subset)
            assert sorted(batch.tests_of(c).tolist()) == naive.holding(supports, subset)
        collection.add(batch, np.zeros(len(batch.tests)))
    assert given_out == subsets


def kept(collection, subset):
    """Row of a subset; the collection grows by it if it is new."""
    collection.reserve(1, len(subset))
    row = keep(np.array(subset, dtype=np.int32), len(subset), collection.n_rows, collection.arrays)
    collection.n_rows = max(collection.n_rows, int(row) + 1)
    return int(row)


@pytest.mark.slow
def test_a_subset_is_known_again_whenever_it_comes_and_in_whatever_order_its_members_are():
    rng = np.random.default_rng(0)
    collection = Collection(ls.SupportGraph([range(200)]), 0)
    # All subsets of 16 players are as alike in their sums as subsets can be; the others come from far and wide.
    pool = [
        *naive.subsets(range(16)),
        *(tuple(rng.choice(200, size=rng.integers(1, 30), replace=False)) for _ in range(35_000)),
    ]
    rows = {}
    for i in rng.integers(len(pool), size=150_000):
        members = np.array(pool[i], dtype=np.int32)
        row = kept(collection, rng.permuted(members) if i % 4 == 0 else members)
        assert rows.setdefault(frozenset(members.tolist()), row) == row
    assert len(rows) > 60_000
    assert sorted(rows.values()) == list(range(len(rows))) == list(range(collection.n_rows))
    for subset, row in list(rows.items())[::50]:
        assert set(collection.players[collection.indptr[row] : collection.indptr[row + 1]].tolist()) == subset


def test_a_hundred_thousand_different_subsets_are_a_hundred_thousand_rows():
    collection = Collection(ls.SupportGraph([range(17)]), 5)
    subsets = naive.subsets(range(17))[:100_000]
    assert [kept(collection, s) for s in subsets] == list(range(100_000))
    assert [kept(collection, s) for s in subsets[::-97]] == list(range(100_000))[::-97]


def test_forgotten_rows_are_new_again_and_the_others_are_still_known():
    collection = Collection(ls.SupportGraph([range(12)]), 2)
    subsets = naive.subsets(range(12))
    for s in subsets[:3000]:
        kept(collection, s)
    collection.truncate(1000)
    assert collection.n_rows == 1000
    assert [kept(collection, s) for s in subsets[:1000]] == list(range(1000))
    assert [kept(collection, s) for s in reversed(subsets[1000:3000])] == list(range(1000, 3000))


def play_round(supports, counts, whole=(), known=(), seed=0, n_folds=2):
    """One round of the kernel, in the twin's terms: fold bits by drawn subset."""
    games, graph = ordered(supports)
    assert games == [sorted(s) for s in supports]  # the caller's games are the graph's
    collection, strata = Collection(graph, seed), Strata(graph)
    collection.add_sure([np.array(s, dtype=np.int32) for s in known])
    wanted = np.zeros((len(strata.k), n_folds), dtype=np.int32)
    for (game, k), of_folds in counts.items():
        wanted[strata.indptr[game] + k - 1] = of_folds
    all_of = np.array([(g, k) in whole for g, k in zip(strata.game, strata.k, strict=True)], dtype=np.int32)
    unknown = strata.n_subsets.copy()
    for s in known:
        for game in naive.holding(games, s):
            if 0 < len(s) < len(games[game]):
                unknown[strata.indptr[game] + len(s) - 1] -= 1
    before = collection.n_rows
    n_new = int(wanted.sum() + unknown[all_of == 1].sum())
    collection.reserve(n_new + 1, (n_new + 1) * int(graph.sizes.max()))
    design = strata.indptr, wanted, all_of, unknown, strata.n_subsets
    collection.n_rows = draw_round(graph.arrays, design, collection.streams, before, collection.arrays)
    rows = [
        tuple(collection.players[collection.indptr[r] : collection.indptr[r + 1]].tolist())
        for r in range(collection.n_rows)
    ]
    assert rows[:before] == list(known)
    assert len(set(rows)) == len(rows)
    assert [kept(collection, row) for row in rows] == list(range(len(rows)))  # the table is whole
    return dict(zip(rows[before:], collection.folds[before : collection.n_rows].tolist(), strict=True))


def counts_through(n, k, n_known, wanted):
    """Whether the kernel counts the subsets of a size through, instead of drawing until a new one comes."""
    return comb(n, k) <= 2 * (n_known + wanted) + 64


SIZES = [
    # n, k, known, draws of the folds, and the path that these force
    (6, 3, 0, [4, 3], True),
    (7, 2, 9, [5, 5], True),
    (12, 4, 160, [40, 20], True),
    (12, 4, 150, [30, 28], False),
    (14, 5, 0, [10, 7], False),
    (9, 4, 0, [16, 14], False),
]


@pytest.mark.parametrize(("n", "k", "n_known", "folds", "through"), SIZES)
def test_a_size_is_drawn_without_replacement_from_the_unknown_as_often_as_asked(n, k, n_known, folds, through):
    assert counts_through(n, k, n_known, sum(folds)) == through
    everything = list(combinations(range(n), k))
    known = [everything[i] for i in np.random.default_rng(9).permutation(len(everything))[:n_known]]
    for seed in range(20):
        drawn = play_round([range(n)], {(0, k): folds}, known=known, seed=seed)
        assert len(drawn) == sum(folds)
        assert set(drawn) <= set(everything) - set(known)
        assert Counter(drawn.values()) == {1: folds[0], 2: folds[1]}


@pytest.mark.parametrize(("n", "k", "n_known", "folds", "through"), SIZES)
def test_every_unknown_subset_has_the_same_chance_to_be_drawn_and_to_go_to_a_fold(n, k, n_known, folds, through):
    everything = list(combinations(range(n), k))
    known = [everything[i] for i in np.random.default_rng(9).permutation(len(everything))[:n_known]]
    unknown = sorted(set(everything) - set(known))
    place = {s: i for i, s in enumerate(unknown)}
    repeats = 600
    times = np.zeros((2, len(unknown)))
    for seed in range(repeats):
        for s, code in play_round([range(n)], {(0, k): folds}, known=known, seed=seed).items():
            times[code - 1, place[s]] += 1
    assert_even_inclusion(times.sum(axis=0), repeats, sum(folds) / len(unknown))
    for fold in range(2):
        assert_even_inclusion(times[fold], repeats, folds[fold] / len(unknown))


@given(
    st.lists(st.lists(st.integers(0, 8), unique=True, min_size=2, max_size=7), min_size=1, max_size=4),
    st.integers(0, 1000),
)
def test_a_round_of_any_games_keeps_to_its_counts(supports, seed):
    games, _ = ordered(supports)
    rng = np.random.default_rng(seed)
    known = [s for s in sorted(naive.distinct_subsets(games)) if rng.random() < 0.3]
    counts, whole = {}, set()
    for game, support in enumerate(games):
        for k in range(1, len(support)):
            unknown = sum(s not in known for s in combinations(support, k))
            if rng.random() < 0.2:
                whole.add((game, k))
            else:
                first = int(rng.integers(unknown + 1))
                counts[game, k] = [first, int(rng.integers(unknown - first + 1))]
    drawn = play_round(games, counts, whole, known, seed)
    twin = naive.draw_round(games, counts, whole, set(known), rng)
    sure = {s for s, code in twin.items() if code < 0}
    assert {s for s, code in drawn.items() if code < 0} == sure  # whole sizes, completely, and nothing else
    assert not set(drawn) & set(known)
    for game, support in enumerate(games):
        for k in range(1, len(support)):
            ours = [s for s in drawn if len(s) == k and set(s) <= set(support)]
            for fold in range(2):
                marked = sum(drawn[s] < 0 or drawn[s] >> fold & 1 for s in ours)
                assert marked >= counts.get((game, k), [0, 0])[fold]
    for k in range(1, 8):
        asked = sum(sum(counts.get((game, k), [])) for game in range(len(games)))
        assert sum(len(s) == k and code > 0 for s, code in drawn.items()) <= asked


@pytest.mark.parametrize(
    ("one", "two", "k", "counts"),
    [
        (6, 7, 2, [[3, 2], [4, 4]]),  # both counted through
        (11, 12, 3, [[16, 12], [30, 20]]),  # 165 and 220 subsets: both drawn until a new one comes
        (7, 13, 3, [[9, 6], [25, 20]]),  # one of either
    ],
)
def test_subsets_of_two_games_come_and_are_dealt_with_the_chances_of_independent_draws(one, two, k, counts):
    supports = [range(one), range(two)]  # the first lies within the second
    shared, repeats = set(combinations(range(one), k)), 1500
    kernel, twin = Counter(), Counter()
    rng = np.random.default_rng(0)
    wanted = {(0, k): counts[0], (1, k): counts[1]}
    for seed in range(repeats):
        drawn = play_round(supports, wanted, seed=seed)
        kernel.update(drawn.get(s, 0) for s in shared)
        if seed < 300:
            dealt = naive.draw_round(supports, wanted, set(), set(), rng)
            twin.update(dealt.get(s, 0) for s in shared)
        outside = [s for s in drawn if s not in shared]
        assert all(drawn[s] in (1, 2) for s in outside)
    expected = Counter()
    for a in range(3):
        for b in range(3):
            share = 1.0
            for fold, n, of in ((a, one, counts[0]), (b, two, counts[1])):
                share *= (of[fold - 1] if fold else comb(n, k) - sum(of)) / comb(n, k)
            expected[a | b] += share
    for found, times in ((kernel, repeats), (twin, 300)):
        for code in range(4):
            share = found[code] / (times * len(shared))
            # subsets of one round hold each other back, so that a binomial error is on the safe side
            stderr = np.sqrt(expected[code] * (1 - expected[code]) / (times * len(shared)))
            assert abs(share - expected[code]) < 4.5 * stderr


def test_a_size_taken_whole_makes_its_subsets_sure_for_the_other_games_too():
    drawn = play_round([range(5), range(20)], {(1, 2): [60, 60]}, whole={(0, 2)}, seed=1)
    assert {s for s, code in drawn.items() if code < 0} == set(combinations(range(5), 2))
    assert sum(code > 0 for code in drawn.values()) >= 110


def test_a_size_with_more_subsets_than_a_float_can_count_is_drawn_from():
    drawn = play_round([range(1200)], {(0, 600): [3, 2], (0, 1): [1, 0]}, seed=1)
    assert sorted(map(len, drawn)) == [1, 600, 600, 600, 600, 600]


PIVOT_SUPPORTS = [[1, 2], [0, 1, 3], [1, 2, 3, 4], [0, 1, 2, 3, 5]]


def draw_pivot_hits(supports, draws, seed):
    _, graph = ordered(supports)
    collection = Collection(graph, seed)
    collection.reserve(draws * graph.n_games + 1, draws * int(graph.sizes.sum()) + int(graph.sizes.max()))
    hits = np.zeros((len(collection.keys), 2), dtype=np.int64)
    n_rows = draw_pivots(graph.arrays, graph.masks, draws, collection.streams, 0, collection.arrays, hits)
    assert hits[n_rows:].sum() == 0
    return {
        tuple(collection.players[collection.indptr[r] : collection.indptr[r + 1]].tolist()): hits[r].tolist()
        for r in range(n_rows)
    }


def test_pivot_draws_are_kept_by_the_first_game_alone_with_the_papers_chance():
    draws = 12_000
    hits = draw_pivot_hits(PIVOT_SUPPORTS, draws, seed=0)
    twin = naive.draw_pivots(PIVOT_SUPPORTS, draws, np.random.default_rng(0))
    subsets = sorted(naive.distinct_subsets(PIVOT_SUPPORTS))
    assert set(hits) == set(twin) == set(subsets)
    for found in (hits, twin):
        for game, support in enumerate(PIVOT_SUPPORTS):
            own = [s for s in subsets if naive.pivot(PIVOT_SUPPORTS, s) == game]
            n = len(support)
            expected = [draws / ((n + 1) * comb(n, len(s))) for s in own]
            observed = [sum(found[s]) for s in own]
            if game == 0:  # the pivot of all its subsets
                assert sum(observed) == draws
                assert_chi_square(observed, expected)
            else:  # a draw that is not kept is one more outcome
                assert_chi_square([*observed, draws - sum(observed)], [*expected, draws - sum(expected)])
        even, odd = np.array([found[s] for s in subsets]).T
        assert np.all(np.abs(even - odd) < 5 * np.sqrt(even + odd))


@given(any_supports)
def test_pivot_draws_hold_only_subsets_of_supports_and_never_more_than_were_drawn(supports):
    games, _ = ordered(supports)
    hits = draw_pivot_hits(games, 20, seed=1)
    assert set(hits) <= naive.distinct_subsets(games)
    drawn = Counter()
    for s, of_halves in hits.items():
        drawn[naive.pivot(games, s)] += sum(of_halves)
    assert all(drawn[game] <= 20 for game in range(len(games)))
    assert drawn[0] == 20  # the first game is the pivot of all its subsets


@given(any_supports, st.integers(0, 100))
def test_what_draws_say_is_added_up_as_by_the_definition(supports, seed):
    games, graph = ordered(supports)
    rng = np.random.default_rng(seed)
    subsets = [s for s in sorted(naive.distinct_subsets(games)) if rng.random() < 0.4]
    rows = [(s, {g: rng.normal() for g in naive.holding(games, s)}, rng.integers(4, size=2).tolist()) for s in subsets]
    sums, squares = np.zeros((2, graph.n_players)), np.zeros(graph.n_players)
    add_weighted(
        (
            np.cumsum([0, *(len(s) for s in subsets)]),
            np.array([z for s in subsets for z in s], dtype=np.int32),
            np.cumsum([0, *(len(scaled) for _, scaled, _ in rows)]),
            np.array([g for _, scaled, _ in rows for g in scaled], dtype=np.int32),
        ),
        graph.arrays,
        np.array([x for _, scaled, _ in rows for x in scaled.values()], dtype=float),
        np.array([hits for *_, hits in rows], dtype=np.int64).reshape(-1, 2),
        sums,
        squares,
        np.zeros(graph.n_players),
    )
    expected = naive.add_weighted(games, rows, graph.n_players)
    np.testing.assert_allclose(sums, expected[0], atol=1e-10)
    np.testing.assert_allclose(squares, expected[1], atol=1e-10)


@given(any_supports, st.integers(0, 100))
def test_players_are_listed_by_when_they_arrive(supports, seed):
    games, graph = ordered(supports)
    rng = np.random.default_rng(seed)
    orders = [[rng.permutation(game) for game in games] for _ in range(2)]
    arrival = np.array([[list(o).index(z) for g, o in zip(games, of, strict=True) for z in g] for of in orders])
    draws, which = rng.integers(2, size=9), rng.integers(len(games), size=9)
    ends = np.sort(rng.integers(graph.sizes[which] + 1, size=(2, 9)), axis=0)
    out = np.empty((ends[1] - ends[0]).sum(), dtype=np.int32)
    list_arrived((graph.indptr, graph.players), arrival, draws, which, *ends, out)
    expected = [naive.arrived(games[g], orders[d][g], a, b) for d, g, a, b in zip(draws, which, *ends, strict=True)]
    assert out.tolist() == [z for players in expected for z in players]
