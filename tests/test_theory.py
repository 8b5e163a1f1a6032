"""Bounds on sampling against simulation of the paper's sampler."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import ceil, comb, log

import numpy as np
import pytest

import localshapley as ls
import naive
from localshapley.theory import draws_needed, expected_distinct


def paper_draws(n: int, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Subsets as the paper draws them, a bit mask each: a size from 0 to `n` evenly, then the first of a shuffle."""
    sizes = rng.integers(0, n + 1, shape)
    place = rng.random((*shape, n)).argsort(axis=-1).argsort(axis=-1)
    return ((place < sizes[..., None]) * (1 << np.arange(n))).sum(axis=-1)


@pytest.mark.parametrize(("n", "draws"), [(1, 1), (1, 5), (3, 4), (5, 30), (8, 300), (10, 1000), (12, 40), (40, 200)])
def test_the_expected_number_of_distinct_subsets_is_that_of_the_sampler(n, draws):
    rng = np.random.default_rng([n, draws])
    seen = np.array([len(np.unique(row)) for row in paper_draws(n, (400, draws), rng)])
    stderr = max(seen.std(ddof=1), 0.05) / np.sqrt(len(seen))
    assert abs(seen.mean() - expected_distinct(n, draws)) < 4 * stderr


@pytest.mark.parametrize(("n", "draws"), [(0, 3), (1, 1), (6, 17), (20, 90), (44, 60), (60, 60), (90, 25)])
def test_the_expected_number_is_the_sum_over_sizes_in_exact_arithmetic(n, draws):
    exact = sum(comb(n, k) * (1 - (1 - Fraction(1, (n + 1) * comb(n, k))) ** draws) for k in range(n + 1))
    assert expected_distinct(n, draws) == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.parametrize("n", [0, 1, 7, 45, 300])
def test_no_draw_sees_nothing_and_one_draw_sees_one_subset(n):
    assert expected_distinct(n, 0) == 0
    assert expected_distinct(n, 1) == pytest.approx(1)


@pytest.mark.parametrize("n", [0, 1, 4, 12, 30])
def test_draws_without_end_see_every_subset(n):
    assert expected_distinct(n, 10**15) == pytest.approx(2**n)


def test_draws_without_end_see_no_more_than_every_subset_of_a_large_support():
    assert expected_distinct(50, 10**20) == pytest.approx(2**50)


def test_more_draws_see_more_and_never_more_than_there_were():
    seen = [expected_distinct(9, draws) for draws in range(200)]
    assert (np.diff(seen) > 0).all()
    assert (np.diff(seen, 2) < 0).all()
    assert all(s <= min(draws, 2**9) + 1e-9 for draws, s in enumerate(seen))


def test_a_huge_support_does_not_overflow():
    n, draws = 5000, 1000
    # only the empty and the full set are drawn twice with a chance worth a name; single rows and all but one come next
    twice = 2 * (draws / (n + 1) + (1 - 1 / (n + 1)) ** draws - 1)
    assert np.isfinite(expected_distinct(n, draws))
    assert draws - expected_distinct(n, draws) == pytest.approx(twice, rel=0.01)


def test_the_papers_bound_on_distinct_subsets_does_not_hold():
    assert expected_distinct(10, 1000) > 10 * min(2**10, 1000**0.5)


@pytest.mark.parametrize(("n", "draws"), [(-1, 3), (3, -1)])
def test_negative_numbers_have_no_distinct_subsets(n, draws):
    with pytest.raises(ls.InvalidArgumentError, match=f"n and draws must not be negative; got n={n}, draws={draws}"):
        expected_distinct(n, draws)


def in_favour(n):
    """Every draw speaks for player 0: `v = 1` with it and `v = −1` without."""
    return lambda s: 1.0 if 0 in s else -1.0


def always_one(n):
    """Player 0 is worth nothing, but every draw has the largest weight there is: `v = 1`."""
    return lambda s: 1.0


def rough(n):
    """`v = ±1` by the toss of a coin."""
    signs = np.random.default_rng(n).choice([-1.0, 1.0], 2**n)
    return lambda s: signs[sum(1 << z for z in s)]


def failures(n, v, epsilon, draws, repeats, seed):
    """How often the plain estimate of player 0 is off by more than `epsilon`, and the estimates' mean and its error."""
    subsets = [s for k in range(n + 1) for s in combinations(range(n), k)]
    said = np.zeros(2**n)
    for s in subsets:
        said[sum(1 << z for z in s)] = v(s) * (n + 1) * comb(n, len(s)) * naive.weight(n, len(s), 0 in s)
    rng = np.random.default_rng(seed)
    estimates = np.array([said[paper_draws(n, (draws,), rng)].mean() for _ in range(repeats)])
    off = np.abs(estimates - naive.shapley_of_one(range(n), v)[0]) > epsilon
    return off.mean(), estimates.mean(), estimates.std(ddof=1) / np.sqrt(repeats)


GAMES = [in_favour, always_one, rough]
SETTINGS = [(1, 0.4, 0.2), (2, 0.5, 0.1), (3, 0.6, 0.2), (4, 1.0, 0.05)]


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize(("n", "epsilon", "delta"), SETTINGS)
def test_with_the_draws_of_the_valid_bound_the_estimate_fails_no_more_often_than_allowed(game, n, epsilon, delta):
    v = game(n)
    rate, mean, stderr = failures(n, v, epsilon, draws_needed(epsilon, delta, n=n), 500, seed=n)
    assert rate <= delta
    assert abs(mean - naive.shapley_of_one(range(n), v)[0]) < 4.5 * max(stderr, 1e-12)  # the estimator is unbiased


@pytest.mark.parametrize(("n", "epsilon", "delta"), SETTINGS)
def test_with_the_draws_that_the_paper_prints_it_fails_far_more_often(n, epsilon, delta):
    draws = draws_needed(epsilon, delta, n=n, printed=True)
    rate, _, _ = failures(n, always_one(n), epsilon, draws, 500, seed=n)
    stderr = np.sqrt(delta * (1 - delta) / 500)
    assert rate > delta + 5 * stderr
    assert rate > 0.4


def test_the_printed_bound_fails_for_a_large_number_of_draws_too():
    draws = draws_needed(0.05, 0.05, n=6, printed=True)
    assert draws > 700
    rate, _, _ = failures(6, always_one(6), 0.05, draws, 300, seed=1)
    assert rate > 0.5


def test_a_quarter_of_the_valid_bound_would_not_do():
    # n = 1, v = 1: a draw says +2 or −2, the ends of its range, which is where Hoeffding's bound is sharpest
    draws = draws_needed(0.3, 0.1, n=1)
    rate, _, _ = failures(1, always_one(1), 0.3, draws // 4, 2000, seed=0)
    assert rate > 0.1 + 5 * np.sqrt(0.1 * 0.9 / 2000)


def test_the_bound_is_hoeffdings_with_the_true_range():
    for n, epsilon, delta, bound in [(1, 0.1, 0.1, 1.0), (7, 0.03, 0.01, 2.5), (100, 1.0, 0.5, 0.2)]:
        width = 2 * (n + 1) * bound
        expected = ceil(width**2 * log(2 / delta) / (2 * epsilon**2))
        assert draws_needed(epsilon, delta, bound=bound, n=n) == expected
        valid, printed = (draws_needed(epsilon, delta, bound=bound, n=n, printed=p) for p in (False, True))
        assert valid / printed == pytest.approx(4 * (n + 1) ** 2, rel=1 / printed)


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        ({"epsilon": 0}, "epsilon=0"),
        ({"epsilon": -0.1}, r"epsilon=-0\.1"),
        ({"epsilon": float("nan")}, "epsilon=nan"),
        ({"delta": 0}, "delta=0"),
        ({"delta": 1}, "delta=1"),
        ({"bound": 0}, "bound=0"),
        ({"n": 0}, "n=0"),
    ],
)
def test_arguments_out_of_range_are_named(bad, name):
    with pytest.raises(ls.InvalidArgumentError, match=f"epsilon and bound must be positive.*{name}"):
        draws_needed(**{"epsilon": 0.1, "delta": 0.1, "n": 3, **bad})
