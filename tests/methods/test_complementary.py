"""A coalition against its complement: what is drawn, what stands in for what is not, and how sure it is."""

from __future__ import annotations

import numpy as np
import pytest

import localshapley as ls
import naive
from localshapley.comparators.complementary import SumsBySize

N, TESTS = 5, 3
SUPPORTS = [[0, 1, 2], [1, 2, 3, 4], [0, 3]]
GAME = naive.HashedGame("0/1", N, TESTS, seed=3)


class TestComplementary:
    def test_sizes_without_a_draw_are_told(self):
        v = ls.shapley([range(40)], naive.HashedGame("smooth", 40, 1), method="complementary", budget=200)
        assert "of 1,560 pairs of a player and a coalition size" in v.notes[1]
        assert "biased" in v.notes[1]
        assert len(ls.shapley(SUPPORTS, GAME, N, method="complementary", budget=2000).notes) == 1

    def test_sizes_with_one_draw_are_as_uncertain_as_the_others(self):
        cells = SumsBySize(3)
        said = ([1.0, -1.0, -1.0], [3.0, -3.0, -3.0], [5.0, 5.0, -5.0])
        for half, (sizes, u) in enumerate(zip(([1, 2, 2], [1, 2, 2], [2, 2, 1]), said, strict=True)):
            cells.add(half % 2, np.array(sizes), np.array(u))
        # size 1: player 0 has 1 and 3, player 2 has -5; size 2: player 0 has 5, player 1 has -1, -3, 5, player 2 -1, -3
        gain = 7.0
        one = (1 + 3 - 5) / 3  # stands in for player 1, who was never alone
        expected = [(2 + 5 + gain) / 3, (one + 1 / 3 + gain) / 3, (-5 - 2 + gain) / 3]
        np.testing.assert_allclose(cells.values(gain), expected)
        of_one, of_two = 2.0, np.var([-1, -3, 5], ddof=1)
        pooled = (2 * of_two + 2.0) / 3  # by degrees of freedom
        variance = [of_one / 2 + pooled, of_one + of_two / 3, of_one + 2.0 / 2]  # no draw counts as one
        np.testing.assert_allclose(cells.variance(), np.array(variance) / 9)
        assert cells.n_empty == 1

    def test_sizes_without_any_draw_are_left_out_of_the_mean(self):
        cells = SumsBySize(4)
        cells.add(0, np.array([1, 3, 3, 3]), np.array([2.0, -2.0, -2.0, -2.0]))
        cells.add(1, np.array([3, 1, 3, 3]), np.array([-4.0, 4.0, -4.0, -4.0]))
        gain, one, three = 8.0, 3.0, -3.0  # means over players by size; nobody was in a coalition of two
        means = [(2, -4), (4, -2), (one, three), (one, three)]
        np.testing.assert_allclose(cells.values(gain), [(3 * (a + b) / 2 + gain) / 4 for a, b in means])
        of_one = 2.0  # nobody has two draws, but there are two, two apart
        of_three = 2.0  # players 2 and 3 have two draws, two apart
        variance = np.array([of_one + of_three] * 2 + [of_one + of_three / 2] * 2)
        np.testing.assert_allclose(cells.variance(), variance * (3 / 8) ** 2)

    def test_a_size_drawn_once_is_as_uncertain_as_its_square(self):
        cells = SumsBySize(3)
        cells.add(0, np.array([1, 2, 2]), np.array([5.0, -5.0, -5.0]))
        np.testing.assert_allclose(cells.variance(), np.full(3, 5.0**2 + 5.0**2) * (2 / 6) ** 2)

    def test_no_players(self):
        assert len(ls.shapley([[]], lambda coalition, tests: [0.0], method="complementary").values) == 0

    def test_sizes_are_spread_evenly_over_the_draws(self, monkeypatch):
        drawn = []
        add = SumsBySize.add
        monkeypatch.setattr(
            SumsBySize, "add", lambda self, half, sizes, said: (drawn.append(sizes), add(self, half, sizes, said))
        )
        ls.shapley([range(20)], naive.HashedGame("smooth", 20, 1), 20, method="complementary", budget=2 + 2 * 95)
        assert len(drawn) == 95
        smaller = np.bincount([s.min() for s in drawn], minlength=11)[1:]  # of a coalition and its complement
        assert ((smaller[:9] >= 9) & (smaller[:9] <= 11)).all()  # 5 draws each of sizes 1 to 19
        assert 4 <= smaller[9] <= 6

    def test_too_many_players(self):
        with pytest.raises(ls.InvalidArgumentError, match="has a table of players by sizes"):
            ls.shapley([range(9000)], naive.HashedGame("smooth", 9000, 1), method="complementary", budget=100)


def test_few_complementary_draws_know_that_they_know_little():
    # Means of other players stand in where a player has no draw; that must not look like certainty.
    rng = np.random.default_rng(0)
    strength = rng.normal(size=60)

    def utility(coalition, tests):
        return [float(np.tanh(strength[coalition].sum() / 4))]

    exact = ls.shapley([np.arange(60)], utility, method="sample", budget=20_000, progress=False)
    for budget in (42, 200, 1000):
        v = ls.shapley([np.arange(60)], utility, method="complementary", budget=budget, progress=False)
        assert np.linalg.norm(v.stderr) > 0.5 * np.linalg.norm(v.values - exact.values)
    v = ls.shapley([np.arange(60)], utility, method="complementary", tol=0.2, progress=False)
    assert np.linalg.norm(v.values - exact.values) < 0.5 * np.linalg.norm(exact.values)


def test_complementary_sizes_without_a_draw_do_not_look_certain():
    # Scores that grow with the size: the full coalition's gain must not stand for sizes that were never drawn.
    rng = np.random.default_rng(1)
    strength = rng.random(150)

    def utility(coalition, tests):
        return [float(strength[coalition].sum() ** 0.3)]

    exact = ls.shapley([np.arange(150)], utility, method="sample", budget=10_000, progress=False)
    for budget in (22, 60, 200, 2000):
        v = ls.shapley([np.arange(150)], utility, method="complementary", budget=budget, progress=False)
        error = np.linalg.norm(v.values - exact.values)
        assert np.linalg.norm(v.stderr) > 0.5 * error
        assert v.values.sum() == pytest.approx(exact.values.sum(), rel=0.5)
        assert np.linalg.norm(v.stderr) < {22: 50, 60: 20, 200: 8, 2000: 3}[budget] * error


@pytest.mark.slow
def test_complementary_draws_that_agree_by_chance_do_not_look_certain():
    # Coalitions of half the players score the same as their complements here, again and again.
    def utility(coalition, tests):
        return [min(len(coalition), 20) / 20 + (0.5 if 3 in coalition and len(coalition) < 30 else 0.0)]

    exact = ls.shapley([np.arange(100)], utility, method="sample", budget=6000, progress=False)
    for seed in range(5):
        v = ls.shapley([np.arange(100)], utility, method="complementary", tol=0.1, seed=seed, progress=False)
        assert np.linalg.norm(v.values - exact.values) < 0.3 * np.linalg.norm(exact.values)
