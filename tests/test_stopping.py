"""Stopping rules, by themselves on made-up looks and in runs of games with known values."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

import localshapley as ls
import naive
from localshapley.sampling.estimate import hidden
from localshapley.stopping import (
    AmongWorst,
    Estimate,
    RankStable,
    RelativeChange,
    RelativeError,
    Rule,
    Seconds,
    Trainings,
)
from playing import Timed, play

N = 30
_rng = np.random.default_rng(0)
SUPPORTS = [sorted(_rng.choice(N, size=_rng.integers(8, 13), replace=False).tolist()) for _ in range(8)]
WEIGHT = _rng.normal(0.5, 1.0, N)
SAMPLED = ["sample", "auto", "pivot"]


def smooth(coalition, tests):
    """Score that grows with what its players weigh, less and less, and differs by test row."""
    return np.tanh(WEIGHT[coalition].sum() / (4 + np.asarray(tests) / 4)) + 0.3 * (3 in coalition and 5 in coalition)


class Counted:
    """A utility that remembers which coalitions it was called with."""

    def __init__(self, utility=smooth):
        self.utility, self.calls = utility, Counter()

    def __call__(self, coalition, tests):
        self.calls[tuple(coalition.tolist())] += 1
        return self.utility(coalition, tests)

    @property
    def total(self):
        return sum(self.calls.values())


@dataclass(frozen=True)
class Watched(Rule):
    """A rule that keeps every look it was shown."""

    rule: Rule
    looks: list[Estimate] = field(default_factory=list)

    aim = property(lambda self: self.rule.aim)
    step = property(lambda self: self.rule.step)

    def holds(self, look):
        self.looks.append(look)
        return self.rule.holds(look)

    def reached(self, look):
        return self.rule.reached(look)


def a_look(values=(3.0, 4.0), stderr=(0.0, 0.0), halves=None, previous=None, since=100.0, trainings=10, seconds=1.0):
    values = np.asarray(values, dtype=float)
    halves = np.stack([values, values]) if halves is None else np.asarray(halves, dtype=float)
    previous = None if previous is None else np.asarray(previous, dtype=float)
    return Estimate(values, np.asarray(stderr, dtype=float), halves, previous, 100.0, since, trainings, seconds)


class TestRelativeError:
    def test_it_is_the_norm_of_the_standard_errors_over_that_of_the_values(self):
        look = a_look((3.0, -4.0), (0.3, 0.4))
        assert look.relative_error == pytest.approx(0.1)
        assert RelativeError(0.101).holds(look)
        assert not RelativeError(0.099).holds(look)
        assert RelativeError(0.125).holds(a_look((3.0, 4.0), (0.625, 0.0)))  # at the target is good enough

    def test_values_of_nothing_are_certain_only_without_any_error(self):
        assert RelativeError().holds(a_look((0.0, 0.0), (0.0, 0.0)))
        assert not RelativeError().holds(replace(a_look((0.0, 0.0), (1e-3, 0.0)), scale=0.9))

    def test_values_that_cannot_be_told_from_zero_are_zero_beside_the_range_of_scores(self):
        lost = replace(a_look((3e-4, 4e-4), (3e-4, 4e-4)), scale=1.0)
        assert lost.relative_error == pytest.approx(1.0)
        assert RelativeError().holds(lost)
        assert RelativeError().reached(lost) == "values are zero to within 0.15 % of the range of scores"
        assert not RelativeError().holds(replace(lost, unseen=1e-3))
        assert not RelativeError().holds(replace(lost, stderr=0.4 * lost.values))  # not zero, and not known either

    def test_it_aims_at_its_target_and_names_it(self):
        assert (RelativeError().aim, RelativeError(0.02).aim, RelativeError().step) == (0.1, 0.02, 0)
        assert RelativeError(0.2).reached(a_look((3, 4), (0.3, 0.4))) == "relative error 0.1 (tol 0.2)"


@pytest.mark.parametrize(
    ("rule", "below", "at", "text"),
    [
        (Seconds(2.5), {"seconds": 2.49}, {"seconds": 2.5}, "2.5 s (limit 2.5 s)"),
        (Trainings(2000), {"trainings": 1999}, {"trainings": 2000}, "2,000 trainings (limit 2,000)"),
    ],
)
def test_limits_hold_from_the_limit_on(rule, below, at, text):
    assert not rule.holds(a_look(**below))
    assert rule.holds(a_look(**at))
    assert rule.reached(a_look(**at)) == text
    assert (rule.aim, rule.step) == (None, 0)


class TestRelativeChange:
    def test_it_is_the_mean_over_players_of_the_papers_ratio(self):
        rule = RelativeChange(0.05)
        look = a_look((1.0, -2.0, 0.0), previous=(1.1, -2.0, 1e-13))
        assert rule.change(look) == pytest.approx((0.1 / 1.0 + 0.0 + 1e-13 / 1e-12) / 3)
        assert not rule.holds(look)
        assert RelativeChange(0.07).holds(look)

    def test_a_change_of_exactly_tau_is_still_too_large(self):
        look = a_look((1.0, 1.0), previous=(0.5, 1.0))
        assert RelativeChange(0.25).change(look) == pytest.approx(0.25, abs=1e-11)
        assert not RelativeChange(0.2499).holds(look)
        assert RelativeChange(0.2501).holds(look)

    def test_only_looks_with_enough_draws_between_them_count(self):
        still = {"values": (1.0, 2.0), "previous": (1.0, 2.0)}
        assert RelativeChange(every=100).holds(a_look(**still, since=100.0))
        assert not RelativeChange(every=100).holds(a_look(**still, since=99.0))
        assert RelativeChange(every=50).holds(a_look(**still, since=50.0))

    def test_the_first_look_has_nothing_to_compare_with(self):
        assert RelativeChange(1e9).change(a_look(previous=None)) == np.inf
        assert not RelativeChange(1e9).holds(a_look(previous=None))

    def test_it_asks_for_its_draws_and_aims_at_no_error(self):
        assert (RelativeChange().step, RelativeChange(every=7).step, RelativeChange().aim) == (100, 7, None)
        assert "mean relative change 0.25 (tau 0.05)" in RelativeChange().reached(a_look((1, 1), previous=(0.5, 1)))


class TestRankStable:
    def test_top_sets_are_compared_whatever_the_order_within(self):
        halves = [[9, 8, 7, 6, 0, 1], [6, 7, 8, 1, 9, 0]]  # best four: {0,1,2,3} and {4,2,1,0}
        assert RankStable(top=4).shared(a_look(halves=halves)) == 0.75
        assert RankStable(top=4, agreement=0.75).holds(a_look(halves=halves))
        assert not RankStable(top=4, agreement=0.76).holds(a_look(halves=halves))
        assert RankStable(top=3).shared(a_look(halves=[[3, 2, 1, 0], [1, 2, 3, 0]])) == 1

    def test_without_a_top_it_is_spearmans_correlation_ties_included(self):
        rng = np.random.default_rng(4)
        one = rng.normal(size=40)
        two = np.round(one + rng.normal(size=40), 0)  # many ties
        look = a_look(halves=[one, two])
        expected = spearmanr(one, two).statistic
        assert RankStable().shared(look) == pytest.approx(expected)
        assert RankStable(agreement=expected - 1e-6).holds(look)
        assert not RankStable(agreement=expected + 1e-6).holds(look)

    def test_players_that_are_all_alike_have_a_stable_rank(self):
        assert RankStable().shared(a_look(halves=[[1, 1, 1], [3, 2, 1]])) == 1

    def test_its_words_say_what_agreed(self):
        look = a_look(halves=[[3, 2, 1], [3, 2, 1]])
        assert RankStable(top=2).reached(look) == "top 2 of both halves agree to 1 (wanted 0.9)"
        assert RankStable(agreement=0.8).reached(look) == "rank correlation of both halves 1 (wanted 0.8)"


@dataclass
class Spread:
    """What other test rows would have changed."""

    columns: np.ndarray

    def spread(self):
        return self.columns


class TestAmongWorst:
    VALUES, TESTS = (0.0, 0.2, 1.0, 5.0), np.diag([0.5, 0.5, 0.5, 0.5]).astype(np.float32)

    def test_without_errors_the_worst_are_known(self):
        assert AmongWorst(2).known(a_look(self.VALUES, np.zeros(4))) == (1, 1)
        assert AmongWorst(2).known(a_look(self.VALUES, np.full(4, 0.5)))[0] < 0.95

    def test_draws_matter_as_long_as_test_rows_leave_less_open(self):
        rough, fine = (replace(a_look(self.VALUES, np.full(4, e)), per_test=Spread(self.TESTS)) for e in (2.0, 0.1))
        assert not AmongWorst(2).holds(rough)
        assert AmongWorst(2).holds(fine)
        so_far, at_most = AmongWorst(2).known(fine)
        assert at_most < 0.9  # what the test rows leave open does not keep the run going
        assert AmongWorst(2).reached(fine) == (
            f"{100 * so_far:.0f} % of the worst 2 known, with exact values {100 * at_most:.0f} %"
        )

    def test_the_best_are_those_of_the_negated_values(self):
        errors = np.array([2.0, 0.1, 0.1, 0.1])
        worst = AmongWorst(1).known(a_look(self.VALUES, errors))
        best = AmongWorst(1, best=True).known(a_look(-np.array(self.VALUES), errors))
        assert best == worst
        assert "best 1 known" in AmongWorst(1, best=True).reached(a_look(self.VALUES, errors))

    def test_a_run_ends_when_the_test_rows_are_what_is_left(self):
        v = ls.shapley(SUPPORTS, smooth, N, method="sample", stop=AmongWorst(5))
        assert re.fullmatch(r"\d+ % of the worst 5 known, with exact values \d+ %", v.stopped)
        precise = ls.shapley(SUPPORTS, smooth, N, method="sample", tol=0.01)
        assert v.cost.trainings < precise.cost.trainings
        assert v.among_worst(5).expected > precise.among_worst(5).expected - 0.5


class TestCombinations:
    @pytest.mark.parametrize("slow", [False, True])
    @pytest.mark.parametrize("many", [False, True])
    def test_and_or_are_those_of_logic(self, slow, many):
        look = a_look(seconds=10 if slow else 1, trainings=100 if many else 1)
        one, two = Seconds(5), Trainings(50)
        assert (one & two).holds(look) == (slow and many)
        assert (one | two).holds(look) == (slow or many)
        assert (one | two & RelativeError(9)).holds(look) == (slow or many)
        assert ((one | two) & RelativeChange()).holds(look) is False  # nothing to compare with yet

    def test_the_aim_of_both_is_the_harder_one_and_of_either_the_easier(self):
        assert (RelativeError(0.1) & RelativeError(0.02)).aim == 0.02
        assert (RelativeError(0.1) | RelativeError(0.02)).aim == 0.1
        for pair in (RelativeError(0.3) & Seconds(5), Seconds(5) | RelativeError(0.3)):
            assert pair.aim == 0.3
        assert (Seconds(5) | RankStable()).aim is None

    def test_the_step_is_the_longer_one(self):
        rule = RelativeChange(every=40) | RelativeChange(every=70) & Seconds(1)
        assert rule.step == 70
        assert (Seconds(1) & RelativeError()).step == 0

    def test_the_words_are_those_of_the_rule_that_held(self):
        one, two = Seconds(5), Trainings(50)
        both = "10.0 s (limit 5 s) and 100 trainings (limit 50)"
        assert (one & two).reached(a_look(seconds=10, trainings=100)) == both
        assert (one | two).reached(a_look(seconds=10, trainings=1)) == "10.0 s (limit 5 s)"
        assert (one | two).reached(a_look(seconds=1, trainings=100)) == "100 trainings (limit 50)"
        assert (one | two).reached(a_look(seconds=10, trainings=100)) == "10.0 s (limit 5 s)"

    @pytest.mark.parametrize("other", [0.1, None, RelativeError, "Seconds(5)"])
    def test_only_rules_combine(self, other):
        with pytest.raises(ls.InvalidArgumentError, match="rules combine with stopping rules; got"):
            Seconds(5) & other
        with pytest.raises(ls.InvalidArgumentError, match="rules combine with stopping rules; got"):
            Seconds(5) | other


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: RelativeError(0), r"RelativeError\(tol=\.\.\.\) must be a number above 0; got 0"),
        (lambda: RelativeError("0.1"), r"RelativeError\(tol=\.\.\.\).*got '0\.1'"),
        (lambda: RelativeError(np.nan), r"RelativeError\(tol=\.\.\.\).*got nan"),
        (lambda: RelativeError(True), r"RelativeError\(tol=\.\.\.\).*got True"),
        (lambda: Seconds(-1), r"Seconds\(seconds=\.\.\.\).*got -1"),
        (lambda: Trainings(0), r"Trainings\(trainings=\.\.\.\).*got 0"),
        (lambda: RelativeChange(tau=-0.05), r"RelativeChange\(tau=\.\.\.\).*got -0\.05"),
        (lambda: RelativeChange(every=0), r"RelativeChange\(every=\.\.\.\).*got 0"),
        (lambda: RankStable(top=0), r"RankStable\(top=\.\.\.\).*got 0"),
        (lambda: RankStable(top=-3), r"RankStable\(top=\.\.\.\).*got -3"),
        (lambda: RankStable(agreement=1.5), r"RankStable\(agreement=\.\.\.\) .* at most 1; got 1\.5"),
        (lambda: RankStable(agreement=0), r"RankStable\(agreement=\.\.\.\).*got 0"),
    ],
)
def test_a_bad_parameter_is_refused_by_its_name(make, names):
    with pytest.raises(ls.InvalidArgumentError, match=names):
        make()


@pytest.mark.parametrize("make", [lambda: RankStable(top=2.5), lambda: RelativeChange(every=50.5)])
def test_counts_must_be_whole_numbers(make):
    with pytest.raises(ls.InvalidArgumentError, match="whole number"):
        make()


@pytest.mark.parametrize("method", SAMPLED)
def test_by_default_a_run_stops_at_a_relative_error_of_a_tenth_and_keeps_the_promise(method):
    utility = Counted()
    found = ls.shapley(SUPPORTS, utility, N, method=method)
    reached = np.linalg.norm(found.stderr) / np.linalg.norm(found.values)
    assert found.stopped == f"relative error {reached:.3g} (tol 0.1)"
    assert 0 < reached <= 0.1
    truth = ls.shapley(SUPPORTS, smooth, N).values
    # The squared error has the promised mean; with 30 values its root is hardly ever over twice the promise.
    assert np.linalg.norm(found.values - truth) / np.linalg.norm(truth) < 2 * reached
    assert set(utility.calls.values()) == {1}
    assert found.cost.trainings == utility.total
    if method != "pivot":
        assert utility.total < len(naive.distinct_subsets(SUPPORTS)) / 4


def test_a_tighter_target_takes_more_trainings_and_is_met_too():
    trainings = []
    for tol in (0.2, 0.05, 0.02):
        found = ls.shapley(SUPPORTS, smooth, N, method="sample", tol=tol)
        assert np.linalg.norm(found.stderr) <= tol * np.linalg.norm(found.values)
        assert f"(tol {tol:g})" in found.stopped
        trainings.append(found.cost.trainings)
    assert trainings[0] < trainings[1] < trainings[2]


def test_a_target_out_of_reach_of_sampling_ends_with_every_subset_trained():
    found = ls.shapley([range(9), range(4, 12)], smooth, N, method="sample", tol=1e-12)
    assert found.cost.trainings == len(naive.distinct_subsets([range(9), range(4, 12)]))
    assert (found.stderr == 0).all()
    np.testing.assert_allclose(found.values, ls.shapley([range(9), range(4, 12)], smooth, N).values, atol=1e-12)


@pytest.mark.parametrize("method", SAMPLED)
@pytest.mark.parametrize("stop", [None, RelativeError(1e-3) | RankStable(top=3, agreement=1.0)])
def test_a_budget_is_never_exceeded_and_no_coalition_trained_twice(method, stop):
    for budget in [30, 31, 37, 48, 75, 120, 333, 1000, 2500]:
        utility = Counted()
        found = ls.shapley(SUPPORTS, utility, N, method=method, budget=budget, stop=stop, seed=budget)
        assert utility.total == found.cost.trainings <= budget
        assert set(utility.calls.values()) == {1}
        if stop is None:
            assert found.stopped == f"budget of {budget:,} trainings"
            assert utility.total > 0.6 * budget  # a budget without a rule is there to be spent
        assert np.isfinite(found.values).all()
        assert np.isfinite(found.stderr).all()


@given(
    st.lists(st.lists(st.integers(0, 8), unique=True, max_size=7), min_size=1, max_size=6),
    st.integers(1, 200),
    st.sampled_from(["sample", "auto"]),
    st.sampled_from([None, 0.3, 0.02]),
)
def test_any_budget_on_any_supports_is_kept_or_refused_with_one_that_is_enough(supports, budget, method, tol):
    v = naive.rough_utility(1)
    utility = Counted(naive.as_utility(v))
    try:
        found = ls.shapley(supports, utility, 9, method=method, budget=budget, tol=tol)
    except ls.InvalidArgumentError as refused:
        (needed,) = re.findall(r"take (?:about )?([\d,]+) trainings", str(refused))
        assert int(needed) > budget
        utility = Counted(naive.as_utility(v))
        budget = int(needed)
        found = ls.shapley(supports, utility, 9, method=method, budget=budget, tol=tol)
    assert utility.total == found.cost.trainings <= budget
    assert set(utility.calls.values()) == {1}
    gain = sum(v(tuple(sorted(s)), t) - v((), t) for t, s in enumerate(supports))
    np.testing.assert_allclose(found.values.sum(), gain, atol=1e-9)  # efficiency holds for every sample
    if utility.total == len(naive.distinct_subsets(supports)):
        np.testing.assert_allclose(found.values, naive.shapley_matrix(supports, v, 9).sum(axis=0), atol=1e-9)


@pytest.mark.parametrize("method", ["sample", "auto"])
def test_a_budget_too_small_is_refused_with_the_number_needed(method):
    least = 1 + len(SUPPORTS) + 2 * len(SUPPORTS)
    with pytest.raises(ls.InvalidArgumentError, match=r"budget is too small: .* full supports .* trainings") as refused:
        ls.shapley(SUPPORTS, smooth, N, method=method, budget=least - 1)
    (needed,) = map(int, re.findall(r"take (?:about )?(\d+) trainings", str(refused.value)))
    assert least <= needed <= 3 * least
    assert ls.shapley(SUPPORTS, smooth, N, method=method, budget=needed).cost.trainings <= needed


@pytest.mark.slow
def test_a_budget_just_too_small_for_a_round_is_refused_rather_than_left_without_draws():
    # Such a run once gave values from the full supports alone, which are not unbiased.
    rng = np.random.default_rng(5)
    refused = sampled = 0
    for seed in range(20):
        supports = [rng.choice(10, size=rng.integers(1, 8), replace=False) for _ in range(rng.integers(1, 8))]
        game = naive.HashedGame("rough", 10, len(supports))
        distinct = len(naive.distinct_subsets(supports))
        for budget in range(8, min(40, distinct)):
            try:
                v = ls.shapley(supports, game, 10, method="sample", budget=budget, seed=seed)
            except ls.InvalidArgumentError:
                refused += 1
            else:
                sampled += 1
                assert v.history is not None  # at least one round was drawn
                assert v.cost.trainings <= budget
    assert refused > 40
    assert sampled > 40


def test_a_budget_too_small_is_refused_before_any_training():
    utility = Counted()
    with pytest.raises(ls.InvalidArgumentError, match="budget is too small"):
        ls.shapley(SUPPORTS, utility, N, method="sample", budget=2)
    assert utility.total == 0


def test_a_pivot_budget_too_small_for_one_draw_a_game_is_refused():
    utility = Counted()
    with pytest.raises(ls.InvalidArgumentError, match=f"budget is too small .* each of the {len(SUPPORTS)} games"):
        ls.shapley(SUPPORTS, utility, N, method="pivot", budget=1)
    assert utility.total == 0


class TestMaxSeconds:
    @pytest.mark.parametrize("limit", [2.0, 5.0, 20.0])
    @pytest.mark.parametrize("method", ["sample", "auto"])
    def test_rounds_fit_into_the_limit_and_nothing_is_trained_in_vain(self, method, limit):
        ls.shapley(SUPPORTS, smooth, N, method=method, tol=0.9)  # compiled by now
        game = Timed(smooth, 0.03)
        found = play(SUPPORTS, game, N, clock=game.clock, method=method, tol=1e-6, max_seconds=limit)
        assert 0.85 * limit <= game.now <= limit
        assert found.cost.trainings == found.history.trainings[-1]
        assert found.stopped == f"{game.now:.1f} s (limit {limit:g} s)"

    @pytest.mark.parametrize("limit", [5.0, 20.0])
    @pytest.mark.parametrize("method", ["sample", "auto"])
    def test_a_round_is_cut_at_the_first_batch_over_the_limit(self, method, limit):
        ls.shapley(SUPPORTS, smooth, N, method=method, tol=0.9)  # compiled by now
        game = Timed(smooth, 0.03, quick=0.4 * limit / 0.03)
        found = play(SUPPORTS, game, N, clock=game.clock, method=method, tol=1e-6, max_seconds=limit)
        assert limit <= game.now < 1.15 * limit + 6 * 0.03  # a batch takes a twentieth of the limit, or three
        assert found.cost.seconds == pytest.approx(game.now)
        assert found.stopped == f"{game.now:.1f} s (limit {limit:g} s)"
        assert found.cost.trainings > found.history.trainings[-1]

    def test_a_round_that_was_cut_adds_nothing_to_the_values(self):
        game = Timed(smooth, 0.03, quick=70)
        cut = play(SUPPORTS, game, N, clock=game.clock, method="sample", tol=1e-6, max_seconds=3)
        first = ls.shapley(SUPPORTS, smooth, N, method="sample", stop=RelativeError(1e-6) | Trainings(1))
        assert cut.cost.trainings > first.cost.trainings
        assert (cut.values == first.values).all()
        assert (cut.stderr == first.stderr).all()

    def test_the_rule_that_comes_first_is_the_one_named(self):
        game = Timed(smooth, 0.001)
        found = play(SUPPORTS, game, N, clock=game.clock, method="sample", tol=0.2, max_seconds=1000)
        assert re.fullmatch(r"relative error 0\.\d+ \(tol 0\.2\)", found.stopped)
        found = play(SUPPORTS, game, N, clock=game.clock, method="sample", budget=200, max_seconds=1000)
        assert found.stopped == "budget of 200 trainings"

    @pytest.mark.parametrize("method", SAMPLED)
    def test_a_limit_that_is_over_at_once_is_refused(self, method):
        with pytest.raises(ls.InvalidArgumentError, match=r"max_seconds=1e-09 is too short: the first estimate takes"):
            ls.shapley(SUPPORTS, smooth, N, method=method, tol=1e-6, max_seconds=1e-9)


def test_the_papers_rule_looks_at_pivot_draws_every_hundred_and_stops_at_the_first_small_change():
    rule = Watched(RelativeChange(tau=0.3))
    found = ls.shapley(SUPPORTS, smooth, N, method="pivot", stop=rule)
    looks = rule.looks
    assert len(looks) > 2
    assert [look.draws_per_game for look in looks] == [100 * (i + 1) for i in range(len(looks))]
    assert {look.draws_since for look in looks} == {100}
    changes = [np.mean(np.abs(new.values - old.values) / (np.abs(new.values) + 1e-12)) for old, new in pairwise(looks)]
    assert all(change >= 0.3 for change in changes[:-1])
    assert changes[-1] < 0.3
    assert found.stopped == f"mean relative change {changes[-1]:.3g} (tau 0.3)"
    assert (found.values == looks[-1].values).all()


def test_the_papers_rule_says_nothing_about_the_error():
    found = ls.shapley(SUPPORTS, smooth, N, method="pivot", stop=RelativeChange(tau=0.05))
    truth = ls.shapley(SUPPORTS, smooth, N).values
    assert "(tau 0.05)" in found.stopped
    assert np.linalg.norm(found.stderr) > 2 * 0.05 * np.linalg.norm(found.values)
    assert np.linalg.norm(found.values - truth) > 0.05 * np.linalg.norm(truth)


def test_looks_follow_each_other():
    rule = Watched(RelativeChange(tau=1e-9, every=20) | Trainings(1500))
    ls.shapley(SUPPORTS, smooth, N, method="sample", stop=rule)
    assert len(rule.looks) > 2
    assert rule.looks[0].previous is None
    for old, new in pairwise(rule.looks):
        assert (new.previous == old.values).all()
        assert new.trainings > old.trainings
        assert new.seconds >= old.seconds
        assert new.draws_per_game == pytest.approx(old.draws_per_game + new.draws_since)


def test_the_papers_rule_gets_its_draws_between_looks_in_sampled_rounds():
    rule = Watched(RelativeChange(tau=0.05))
    ls.shapley(SUPPORTS, smooth, N, method="sample", stop=rule)
    assert all(look.draws_since >= 99 for look in rule.looks)  # rounding may cost a game less than one draw
    assert not any(rule.rule.change(look) < 0.05 for look in rule.looks[:-1])


@pytest.mark.parametrize("stop", [RankStable(top=5), RankStable(agreement=0.9)])
def test_a_ranking_is_stable_before_the_values_are_precise(stop):
    ranked = ls.shapley(SUPPORTS, smooth, N, method="sample", stop=stop)
    precise = ls.shapley(SUPPORTS, smooth, N, method="sample", tol=0.01)
    assert ranked.cost.trainings < precise.cost.trainings / 2
    assert "(wanted 0.9)" in ranked.stopped
    truth = ls.shapley(SUPPORTS, smooth, N).values
    assert spearmanr(ranked.values, truth).statistic > 0.8


def test_trainings_is_looked_at_between_rounds_and_both_waits_for_the_slower_rule():
    limit = ls.shapley(SUPPORTS, smooth, N, method="sample", stop=Trainings(300))
    assert limit.cost.trainings >= 300
    assert re.fullmatch(r"[\d,]+ trainings \(limit 300\)", limit.stopped)
    both = ls.shapley(SUPPORTS, smooth, N, method="sample", stop=Trainings(300) & RelativeError(0.05))
    assert both.cost.trainings >= 300
    assert np.linalg.norm(both.stderr) <= 0.05 * np.linalg.norm(both.values)
    assert re.fullmatch(r"[\d,]+ trainings \(limit 300\) and relative error \S+ \(tol 0\.05\)", both.stopped)


@pytest.mark.parametrize("method", ["exact", "subset-centric", "baseline"])
@pytest.mark.parametrize("setting", [{"tol": 0.1}, {"stop": RankStable()}, {"max_seconds": 5}])
def test_exact_methods_refuse_stopping_rules(method, setting):
    with pytest.raises(ls.InvalidArgumentError, match=rf"tol, stop and max_seconds need a sampled.*'{method}' is ex"):
        ls.shapley([[0, 1]], smooth, N, method=method, **setting)


@pytest.mark.parametrize("stop", [0.05, "RankStable", RelativeError, lambda look: True])
def test_a_stop_that_is_no_rule_is_refused(stop):
    with pytest.raises(ls.InvalidArgumentError, match=r"stop must be a rule of localshapley\.stopping, such as"):
        ls.shapley(SUPPORTS, smooth, N, method="sample", stop=stop)


@pytest.mark.parametrize("name", ["tol", "max_seconds"])
@pytest.mark.parametrize("value", [0, -1, "1", True, np.nan])
def test_a_target_that_is_no_positive_number_is_refused(name, value):
    with pytest.raises(ls.InvalidArgumentError, match=f"{name} must be a number above 0; got"):
        ls.shapley(SUPPORTS, smooth, N, method="sample", **{name: value})


@pytest.mark.parametrize("method", SAMPLED)
def test_the_same_seed_gives_the_same_bits_whatever_the_batches_and_another_seed_other_values(method):
    one = ls.shapley(SUPPORTS, smooth, N, method=method, budget=600, seed=3)
    other = ls.shapley(SUPPORTS, smooth, N, method=method, budget=600, seed=4)
    assert (one.values != other.values).mean() > 0.8
    again = play(SUPPORTS, smooth, N, seconds_here=1e-9, method=method, budget=600, seed=3)  # batches of one
    assert (one.values == again.values).all()
    assert (one.stderr == again.stderr).all()
    assert one.cost.trainings == again.cost.trainings


@pytest.mark.parametrize("score", [0.0, 0.7])
@pytest.mark.parametrize("method", ["sample", "auto"])
def test_a_utility_that_never_changes_is_seen_through(method, score):
    found = ls.shapley([range(30)], lambda c, t: np.full(len(t), score), method=method)
    assert found.stopped == "all scores drawn were the same"
    assert np.abs(found.values).max() < 1e-12
    assert "ended before its target: the draws are off by many times the size of the values" in found.notes[0]


class TestConstants:
    """A constant that is added to all scores of a test row changes neither values nor draws, nor when a run stops."""

    @staticmethod
    def game(added):
        def utility(coalition, tests):
            return np.array([0.25 * (len(coalition) > 3 + t) + 0.5 * (t in coalition) + added[t] for t in tests])

        return utility

    @settings(max_examples=8)
    @given(st.lists(st.integers(-(10**6), 10**6), min_size=3, max_size=3), st.sampled_from(["sample", "auto"]))
    def test_change_nothing(self, added, method):
        supports = [range(12), range(4, 16), range(3, 15)]
        one, two = (
            ls.shapley(supports, self.game(constants), 16, method=method, tol=0.4) for constants in ([0] * 3, added)
        )
        assert one.cost.trainings == two.cost.trainings
        np.testing.assert_allclose(two.values, one.values, atol=1e-8)
        np.testing.assert_allclose(two.stderr, one.stderr, atol=1e-8)

    @pytest.mark.parametrize("method", ["local-mc", "global-mc", "complementary"])
    def test_change_nothing_of_permutations_either(self, method):
        one, two = (
            ls.shapley([range(6)] * 2, self.game(constants), 6, method=method, tol=0.2)
            for constants in ([0, 0], [1024, -1024])
        )
        assert one.cost.trainings == two.cost.trainings
        assert (one.values == two.values).all()
        assert one.stopped == two.stopped

    @pytest.mark.parametrize("method", ["sample", "local-mc"])
    def test_what_is_printed_is_what_the_standard_errors_say(self, method):
        v = ls.shapley([range(14)], lambda c, t: [1000.0 + 0.05 * len(c) + ({0, 1} <= set(c))], method=method, tol=0.1)
        assert v.stopped == f"relative error {v.relative_error:.3g} (tol 0.1)"
        assert v.relative_error == np.linalg.norm(v.stderr) / np.linalg.norm(v.values) <= 0.1

    def test_values_of_zero_end_a_run_that_says_so(self):
        v = ls.shapley([range(20)], lambda c, t: [np.sin(np.pi * len(c) / 20)], method="sample", tol=0.1)
        assert re.fullmatch(r"values are zero to within 0\.\d+ % of the range of scores", v.stopped)
        assert v.relative_error > 0.5
        assert v.notes[0].startswith("the run ended before its target")


@pytest.mark.parametrize("supports", [[[0, 1, 2]], [[], [0]], [[0, 1], [1, 2, 3], [4]]])
def test_pivot_ends_where_its_budget_is_more_than_there_are_subsets(supports):
    found = ls.shapley(supports, smooth, N, method="pivot", budget=500)
    assert found.cost.trainings <= len(naive.distinct_subsets(supports))


@pytest.mark.parametrize("supports", [[[0], [1]], [[], []]])
def test_games_without_anything_to_draw_can_be_sampled(supports):
    assert ls.shapley(supports, smooth, N, method="sample").stopped == "every subset trained"


def test_small_games_never_give_values_that_are_no_numbers():
    stop = RankStable() | Trainings(200)
    for seed in range(40):
        found = ls.shapley(
            [[2, 6, 7, 11]], naive.as_utility(naive.rough_utility(1)), 12, method="sample", stop=stop, seed=seed
        )
        assert np.isfinite(found.values).all()


def test_pivot_draws_that_saw_nothing_are_not_every_subset():
    found = ls.shapley(
        [range(40)], lambda c, t: np.full(len(t), float({0, 1, 2} <= set(c) and len(c) < 9)), method="pivot"
    )
    assert found.stopped != "every subset trained"


class TestRareEvents:
    """Games that look certain until a rare event is drawn; see `benchmarks/rare_events.py`."""

    @pytest.fixture(scope="class")
    def rare(self):
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
            return importlib.import_module("rare_events")

    def failures(self, rare, seeds, rule, n_games, method="sample"):
        """Number of runs with a true error over twice the target."""
        failed = 0
        for seed in seeds:
            supports, trainer, n_players = rare.problem(seed, n_games)
            exact = ls.shapley(supports, trainer, n_players, method="exact", progress=False).values
            v = ls.shapley(supports, trainer, n_players, method=method, stop=rule, seed=seed, progress=False)
            failed += rare.true_error(v, exact) > 2 * rule.tol
        return failed

    @pytest.mark.slow
    def test_a_run_waits_until_what_was_not_drawn_cannot_matter(self, rare):
        seeds = range(60)
        assert self.failures(rare, seeds, rare.DrawnError(0.1), (1,)) >= 3
        assert self.failures(rare, seeds, RelativeError(0.1), (1,)) <= 1

    @pytest.mark.slow
    def test_so_do_the_other_sampled_methods(self, rare):
        seeds = range(40)
        assert self.failures(rare, seeds, rare.DrawnError(0.1), (1,), "complementary") >= 3
        assert self.failures(rare, seeds, RelativeError(0.1), (1,), "complementary") == 0

    @pytest.mark.long
    @pytest.mark.parametrize("method", ["sample", "auto"])
    def test_fewer_than_one_in_a_hundred_runs_fail(self, rare, method):
        assert self.failures(rare, range(600), RelativeError(0.1), (1, 1, 2, 5, 50), method) < 6

    def test_what_is_hidden_shrinks_with_the_draws_and_is_nothing_once_all_is_trained(self):
        share, reach = np.array([0.5, 1.0]), np.array([1.0, 0.1])
        some = hidden(share, np.array([100.0, 100.0]), reach)
        assert some == pytest.approx(np.log(1000) * 0.5 / 100)
        assert hidden(share, np.array([1000.0, 1000.0]), reach) == pytest.approx(some / 10)
        assert hidden(np.zeros(2), np.zeros(2), reach) == 0

    def test_growth_meets_the_target(self):
        values = np.array([1.0, 0.0])
        for error, unseen in ((0.3, 0.0), (0.0, 0.5), (0.2, 0.4)):
            look = Estimate(values, np.array([error, 0.0]), np.zeros((2, 2)), None, 0, 0, 0, 0, unseen=unseen)
            growth = look.growth_to(0.1)
            assert np.hypot(error / np.sqrt(growth), unseen / growth) == pytest.approx(0.1)

    @pytest.mark.parametrize("aim", [0.1, 1e-40])
    @pytest.mark.parametrize(("error", "unseen"), [(0.0, 0.0), (1e-12, 0.5), (0.0, 0.01), (3.0, 2.0)])
    def test_growth_is_known_however_small_the_errors_and_the_target(self, error, unseen, aim):
        look = Estimate(np.ones(1), np.array([error]), np.zeros((2, 1)), None, 0, 0, 0, 0, unseen=unseen)
        for most in (np.inf, 0.5 * aim):
            growth = look.growth_to(aim, 0.7, most)
            assert np.hypot(error * growth**-0.7, min(unseen / growth, most)) <= aim * (1 + 1e-5)
