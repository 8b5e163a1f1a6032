"""Leave-one-out and random values."""

from __future__ import annotations

import numpy as np

import localshapley as ls
import naive
from naive_baselines import leave_one_out

N, TESTS = 5, 3
SUPPORTS = [[0, 1, 2], [1, 2, 3, 4], [0, 3]]
GAME = naive.HashedGame("0/1", N, TESTS, seed=3)


class TestLeaveOneOut:
    def test_against_its_twin(self):
        v = ls.shapley(SUPPORTS, GAME, N, method="loo")
        np.testing.assert_allclose(v.values, leave_one_out([range(N)] * TESTS, naive.v_of(GAME), N), atol=1e-12)
        assert v.cost.trainings == N + 1
        assert not v.stderr.any()
        assert v.notes[0] == "the game is global: all rows play for every test row."
        assert "not Shapley values" in v.notes[1]


class TestRandom:
    def test_a_floor(self):
        game = naive.HashedGame("0/1", N, TESTS)
        one, two = (ls.shapley(SUPPORTS, game, N, method="random", seed=s) for s in (0, 1))
        assert not game.trained
        assert (one.values != two.values).all()
        assert one.cost.trainings == 0
        assert "random numbers" in one.notes[0]
        repr(one)
