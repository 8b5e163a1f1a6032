"""Exact methods against the definition, on games of every shape of support."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localshapley as ls
import naive
from localshapley.coalitions import Pivots, count_levels
from localshapley.coalitions.subsets import count_distinct
from localshapley.kernels import pivots

N = 9
any_supports = st.lists(st.lists(st.integers(0, N - 1), unique=True, max_size=6), min_size=1, max_size=7)
EXACT = ["exact", "subset-centric", "baseline"]

SHAPES = {
    "unequal": [[0, 1, 2, 3, 4, 5], [2, 3], [4, 5, 6, 7], [8], [0, 8, 3, 5, 7]],
    "equal": [[1, 2, 3, 4]] * 5,
    "empty": [[], [], [0, 1], []],
    "all empty": [[], []],
    "nested": [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]],
    "disjoint": [[0, 1], [2, 3], [4, 5, 6]],
}


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("shape", SHAPES)
def test_values_are_those_of_the_definition(shape, method):
    v = naive.rough_utility(1)
    expected = naive.shapley_matrix(SHAPES[shape], v, N)
    found = ls.shapley(SHAPES[shape], naive.as_utility(v), N, method=method, per_test=True)
    np.testing.assert_allclose(found.values, expected.sum(axis=0), atol=1e-10)
    np.testing.assert_allclose(found.per_test.toarray(), expected, atol=1e-10)
    assert (found.stderr == 0).all()


@given(any_supports, st.integers(0, 10))
def test_lsmr_calls_the_utility_once_per_distinct_subset_with_all_its_test_rows(supports, seed):
    v, calls = naive.rough_utility(seed), Counter()

    def utility(coalition, tests):
        subset = tuple(int(z) for z in coalition)
        calls[subset] += 1
        assert sorted(tests.tolist()) == naive.holding(supports, subset)
        return naive.as_utility(v)(coalition, tests)

    found = ls.shapley(supports, utility, N)
    expected = naive.shapley_matrix(supports, v, N).sum(axis=0)
    np.testing.assert_allclose(found.values, expected, atol=1e-10)
    assert set(calls) == naive.distinct_subsets(supports)
    assert set(calls.values()) == {1}
    assert found.cost.trainings == found.cost.distinct == len(calls)
    assert found.cost.draws == sum(2 ** len(s) for s in supports)


@given(any_supports)
def test_every_method_takes_the_trainings_that_the_plan_counts(supports):
    graph = ls.SupportGraph(supports, N)
    levels = count_levels(graph)
    assert levels.global_ == len(supports) * N * 2**N
    assert levels.lsmr == len(naive.distinct_subsets(supports))
    assert levels.lsmr_stderr == 0
    expected = {"exact": levels.lsmr, "subset-centric": levels.subset_centric, "baseline": levels.local}
    for method, count in expected.items():
        calls = []
        found = ls.shapley(supports, lambda c, t, calls=calls: calls.append(0) or np.zeros(len(t)), N, method=method)
        assert len(calls) == found.cost.trainings == count
    for t, distinct in levels.growth:
        assert distinct == len(naive.distinct_subsets(supports[:t]))


@given(any_supports, st.integers(1, 40))
def test_batches_of_any_size_give_out_the_same_coalitions(supports, size):
    graph = ls.SupportGraph(supports, N)
    given_out = []
    schedule = Pivots(graph)
    while (batch := schedule.take(size)) is not None:
        assert 1 <= len(batch) <= size
        for c in range(len(batch)):
            games = batch.games[batch.game_indptr[c] : batch.game_indptr[c + 1]]
            tests = [t for g in games for t in graph.tests[graph.test_indptr[g] : graph.test_indptr[g + 1]]]
            assert batch.tests_of(c).tolist() == tests
            given_out.append(tuple(batch.coalition(c).tolist()))
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == naive.distinct_subsets(supports)


def test_a_batch_too_small_for_one_coalitions_test_rows_still_holds_it():
    supports = [[0, 1]] * 500 + [[0, i] for i in range(2, 300)]
    found = ls.shapley(supports, lambda c, t: np.full(len(t), float(len(c))))
    np.testing.assert_allclose(found.values[0], 798)


class TestAxioms:
    """Properties that single out the Shapley value, on games with overlapping supports."""

    @given(any_supports, st.integers(0, 5))
    def test_efficiency_for_each_test_row(self, supports, seed):
        v = naive.rough_utility(seed)
        found = ls.shapley(supports, naive.as_utility(v), N, per_test=True)
        gain = [v(tuple(sorted(s)), t) - v((), t) for t, s in enumerate(supports)]
        np.testing.assert_allclose(found.per_test.sum(axis=1), gain, atol=1e-10)

    @given(any_supports, st.integers(0, 5))
    def test_a_null_player_is_worth_nothing(self, supports, seed):
        v = naive.rough_utility(seed)
        found = ls.shapley(supports, naive.as_utility(lambda s, t: v(tuple(z for z in s if z != 3), t)), N)
        assert abs(found.values[3]) < 1e-12
        outside = set(range(N)) - {z for s in supports for z in s}
        assert all(found.values[z] == 0 for z in outside)

    @given(any_supports, st.integers(0, 5))
    def test_symmetric_players_are_worth_the_same(self, supports, seed):
        supports = [sorted({*s, 0, 1}) if {0, 1} & set(s) else s for s in supports]
        v = naive.rough_utility(seed)

        def swapped_alike(s, t):
            return v(s, t) + v(tuple(sorted({0: 1, 1: 0}.get(z, z) for z in s)), t)

        found = ls.shapley(supports, naive.as_utility(swapped_alike), N)
        assert abs(found.values[0] - found.values[1]) < 1e-10

    @given(any_supports, st.integers(0, 5))
    def test_values_of_a_sum_are_the_sum_of_values(self, supports, seed):
        one, two = naive.rough_utility(seed), naive.rough_utility(seed + 100)
        parts = [ls.shapley(supports, naive.as_utility(v), N).values for v in (one, two)]
        both = ls.shapley(supports, naive.as_utility(lambda s, t: one(s, t) + 2 * two(s, t)), N)
        np.testing.assert_allclose(both.values, parts[0] + 2 * parts[1], atol=1e-10)

    @given(any_supports, st.randoms(use_true_random=False), st.integers(0, 5))
    def test_the_order_of_rows_and_of_test_rows_does_not_matter(self, supports, random, seed):
        v = naive.rough_utility(seed)
        rows, tests = list(range(N)), list(range(len(supports)))
        random.shuffle(rows)
        random.shuffle(tests)  # new test row i is old test row tests[i]; new player rows[z] is old z
        back = {new: old for old, new in enumerate(rows)}
        renamed = [[rows[z] for z in supports[t]] for t in tests]
        found = ls.shapley(renamed, naive.as_utility(lambda s, t: v(tuple(sorted(back[z] for z in s)), tests[t])), N)
        expected = ls.shapley(supports, naive.as_utility(v), N)
        np.testing.assert_allclose(found.values[rows], expected.values, atol=1e-10)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_same_bits_for_every_number_of_jobs(n_jobs):
    utility = naive.as_utility(naive.rough_utility(3))
    supports = SHAPES["unequal"]
    one = ls.shapley(supports, utility, N, per_test=True)
    many = ls.shapley(supports, utility, N, per_test=True, n_jobs=n_jobs)
    assert (one.values == many.values).all()
    assert (one.per_test.data == many.per_test.data).all()


def test_the_count_of_distinct_subsets_is_estimated_with_an_honest_error():
    rng = np.random.default_rng(0)
    graph = ls.SupportGraph([rng.choice(20, size=rng.integers(8, 14), replace=False) for _ in range(30)], 20)
    exact, none = count_distinct(graph)
    assert none == 0
    errors = []
    for seed in range(20):
        estimate, stderr = count_distinct(graph, seed=seed, n_samples=2000, max_counted=0)
        assert 0 < stderr < 0.05 * exact
        errors.append((estimate - exact) / stderr)
    assert max(map(abs, errors)) < 4
    assert 0.4 < np.std(errors) < 1.6


def test_huge_supports_are_counted_without_overflow():
    levels = count_levels(ls.SupportGraph([range(1100), range(1, 1101), range(800)], 1101))
    assert levels.subset_centric == 2 * 2**1100 + 2**800
    assert levels.local == 2 * 1100 * 2**1100 + 800 * 2**800
    assert abs(levels.lsmr / 2**1100 - 1.5) < 0.02  # the two large ones share half of their subsets
    assert levels.lsmr_stderr > 0


@pytest.mark.parametrize(("size", "drawn"), [(300, 50_000), (4000, 2**24 // 4000), (20_000, 2000)])
def test_the_larger_supports_are_the_fewer_subsets_are_drawn_to_count_them(size, drawn, monkeypatch):
    seen = []

    def counting(graph, games, *more):
        seen.append(len(games))
        return len(games) // 2

    monkeypatch.setattr(pivots, "sample_new", counting)
    _, error = count_distinct(ls.SupportGraph([range(size), range(1, size)], size))
    assert seen == [drawn]
    assert error > 0


def test_a_support_too_large_is_refused_with_its_count_before_any_training():
    def never(coalition, tests):
        raise AssertionError("trained")

    with pytest.raises(ls.TooLargeError, match=r"1\.1e12 coalitions \(the largest support has 40 rows\).*max_size"):
        ls.shapley([range(40)], never)
    with pytest.raises(ls.TooLargeError, match=r"would train 1,024 coalitions.*the budget is 1,000"):
        ls.shapley([range(10)], never, budget=1000)
    with pytest.raises(ls.TooLargeError, match="'baseline' would train 10,240"):
        ls.shapley([range(10)], never, budget=5000, method="baseline")


class SquaredSum:
    """The square of the sum of the weights of a coalition: a player's value is its weight times the sum of all."""

    def __init__(self, weights):
        self.weights = weights

    def evaluate(self, coalitions):
        of_players = np.append(self.weights[coalitions.players], 0.0)
        sums = np.add.reduceat(of_players, np.minimum(coalitions.indptr[:-1], len(of_players) - 1))
        return np.repeat(np.where(np.diff(coalitions.indptr), sums**2, 0.0), np.diff(coalitions.test_indptr))


@pytest.mark.parametrize(("n", "method"), [(8, "exact"), (16, "exact"), (11, "subset-centric"), (11, "baseline")])
def test_sums_over_many_subsets_lose_no_digits(n, method):
    """Sums of 65,000 terms, each rounded, would be off by a thousand times as much."""
    weights = np.random.default_rng(n).normal(size=n) + 3
    v = ls.shapley([list(range(n))], SquaredSum(weights), method=method, per_test=True)
    limit = 1e-14 if n == 8 else 2e-15
    np.testing.assert_allclose(v.values, weights * weights.sum(), rtol=0, atol=limit * weights.max() * weights.sum())
    np.testing.assert_allclose(v.per_test.toarray()[0], v.values, rtol=0, atol=limit * weights.max() * weights.sum())


class TestBadUtilities:
    def test_wrong_length(self):
        with pytest.raises(ls.InvalidArgumentError, match=r"one number for each of the 2 test rows.*shape \(1,\)"):
            ls.shapley([[0, 1], [0]], lambda c, t: [0.0])

    def test_nan(self):
        with pytest.raises(ls.InvalidArgumentError, match=r"NaN or infinity for coalition \[0\]"):
            ls.shapley([[0, 1]], lambda c, t: [np.nan if len(c) == 1 else 0.0])

    @pytest.mark.parametrize(
        "found",
        [["good"], ["1.5"], "good", [[1.0], [1.0, 2.0]], [1j], [np.datetime64("2020")], [np.timedelta64(9, "D")]],
    )
    def test_no_numbers(self, found):
        class Many:
            def evaluate(self, coalitions):
                return found * len(coalitions.tests) if isinstance(found, list) else found

        for utility in (lambda c, t: found, Many()):
            with pytest.raises(ls.InvalidArgumentError, match=r"must return one number for each.*it returned"):
                ls.shapley([[0, 1]], utility)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda scores: scores[:-1], r"Many\.evaluate must return one number for each of the \d+ test rows.*shape"),
            (lambda scores: np.append(scores, 0.0), "one number for each"),
            (lambda scores: scores[:, None], r"one number for each.*shape \(\d+, 1\)"),
            (
                lambda scores: np.where(np.arange(len(scores)) == 1, np.nan, scores),
                r"NaN or infinity for coalition \[\]",
            ),
        ],
        ids=["too few", "too many", "a column", "NaN"],
    )
    @pytest.mark.parametrize("method", ["exact", "sample", "local-mc"])
    def test_of_many_coalitions_at_once(self, change, message, method):
        class Many:
            def evaluate(self, coalitions):
                return change(np.zeros(len(coalitions.tests)))

        with pytest.raises(ls.InvalidArgumentError, match=message):
            ls.shapley([[0, 1, 2], [1, 2, 3]], Many(), method=method)

    def test_not_a_function(self):
        with pytest.raises(ls.InvalidArgumentError, match="utility must be a function"):
            ls.shapley([[0, 1]], 3)

    def test_no_test_row(self):
        with pytest.raises(ls.InvalidArgumentError, match="supports is empty"):
            ls.shapley([], lambda c, t: [])

    def test_unknown_method_names_the_nearest(self):
        with pytest.raises(ls.InvalidArgumentError, match=r"got 'exakt'\. Did you mean 'exact'"):
            ls.shapley([[0]], lambda c, t: [0.0], method="exakt")

    @pytest.mark.parametrize("budget", [0, -5, 2.5, True])
    def test_budget(self, budget):
        with pytest.raises(ls.InvalidArgumentError, match="budget must be a whole number"):
            ls.shapley([[0]], lambda c, t: [0.0], budget=budget)
