"""The climb: gains that are kept from step to step equal those that are computed from nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localshapley as ls
from localshapley.engine.executor import Executor
from localshapley.models.utility import as_trainer
from localshapley.selection.greedy import Climb, RemovalPath
from tests import naive

pytestmark = pytest.mark.quick

SUPPORTS = [[0, 1, 2], [1, 2], [2, 1], [2, 3, 4, 5], [], [0, 5], [6]]
supports = st.lists(st.lists(st.integers(0, 6), unique=True, max_size=5), min_size=1, max_size=6)


def climb_of(supports, utility, n_players=7, **limits):
    executor = Executor(as_trainer(utility), **limits)
    return trained(Climb(ls.SupportGraph(supports, n_players), executor), executor), executor


def trained(climb, executor):
    assert executor.drain(climb.train(), may_stop=lambda: False) is None
    return climb


@given(supports=supports, seed=st.integers(0, 99), path=st.permutations(range(7)))
def test_gains_and_utility_are_right_after_every_step(supports, seed, path):
    v = naive.rough_utility(seed)
    climb, executor = climb_of(supports, naive.as_utility(v))
    members = set()
    for step in [None, *path]:
        if step is not None:
            climb.take(step)
            trained(climb, executor)
            members.add(step)
        now = naive.taught(supports, v, members)
        assert climb.utility == pytest.approx(now)
        gains = [naive.taught(supports, v, members | {z}) - now if z not in members else -np.inf for z in range(7)]
        assert climb.gains == pytest.approx(gains, abs=1e-9)


def test_a_step_trains_the_games_of_its_player_alone_and_each_coalition_once():
    game = naive.HashedGame("rough", 7, len(SUPPORTS))
    climb, executor = climb_of(SUPPORTS, game)
    assert len(game.trained) == len(set(game.trained)) == executor.counts.trainings == 8  # no row, and each row alone
    game.trained.clear()
    climb.take(2)
    pending = climb.pending.coalitions
    assert {tuple(pending.coalition(c)) for c in range(len(pending))} == {(0, 2), (1, 2), (2, 3), (2, 4), (2, 5)}
    trained(climb, executor)
    assert len(game.trained) == 5
    assert executor.counts.draws == sum(map(len, SUPPORTS)) + len(SUPPORTS) + 7


def test_small_pieces_make_no_difference():
    def gains(size):
        climb, executor = climb_of(SUPPORTS, naive.HashedGame("rough", 7, 7), max_batch=size)
        climb.take(1)
        return trained(climb, executor).gains

    assert (gains(1) == gains(1000)).all()


def test_a_lowered_start_is_the_worst_row_alone_but_no_higher_than_before():
    v = naive.rough_utility(3)
    climb, _ = climb_of(SUPPORTS, naive.as_utility(v))
    climb.lower_start()
    start = [min([v((), t), *(v((z,), t) for z in support)]) for t, support in enumerate(SUPPORTS)]
    pair = min(v((), 1) + v((), 2), *(v((z,), 1) + v((z,), 2) for z in (1, 2)))  # equal supports are one game
    assert climb.utility == pytest.approx(pair + sum(start[t] for t in (0, 3, 4, 5, 6)))
    assert climb.gains[0] == pytest.approx(v((0,), 0) + v((0,), 5) - start[0] - start[5])


@given(supports=supports, seed=st.integers(0, 99), path=st.permutations(range(7)), n=st.integers(1, 7))
def test_a_descent_measures_what_changes_as_players_go(supports, seed, path, n):
    v = naive.rough_utility(seed)
    descent = RemovalPath(ls.SupportGraph(supports, 7), np.array(path[:n]))
    scores = [np.empty(0)]
    for _ in descent.wanted.score(Executor(as_trainer(naive.as_utility(v))), scores):
        pass
    start, changes = descent.changes(np.concatenate(scores))
    taught = [naive.taught(supports, v, path[k:]) for k in range(n + 1)]
    assert start == pytest.approx(taught[0])
    assert changes == pytest.approx(np.diff(taught), abs=1e-9)


@pytest.mark.parametrize("gain", [0.1, 0.3, 0.7])
def test_a_gain_that_is_the_same_to_all_test_rows_is_sure(gain):
    supports = [[0, other] for other in range(1, 7)]
    climb, _ = climb_of(supports, lambda coalition, tests: [gain * (0 in coalition) for _ in tests])
    assert climb.take(0) == pytest.approx(0, abs=1e-7)
