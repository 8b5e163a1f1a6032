"""Games of the literature: values, and errors that say how far off they are, for players who hold most of it too."""

from __future__ import annotations

import numpy as np
import pytest

import known_games as known
import localshapley as ls

SMALL = {
    "veto": known.veto(9, 2),
    "shoes": known.shoes(2, 7),
    "airport": known.airport(np.array([1.0, 1, 2, 5, 5, 9, 10])),
    "voting": known.voting(np.array([9, 7, 4, 3, 3, 2, 1, 1]), 16),
    "miners": known.miners(9),
    "spanning tree": known.spanning_circle(8),
    "unanimity": known.unanimous(8, [[1, 4, 6]], [2.0]),
    "sum of unanimity games": known.some_groups(9, 12),
}
LARGE = {
    "veto": known.veto(30, 2),
    "veto of 100": known.veto(100, 2),
    "shoes": known.shoes(5, 45),
    "scarce shoes": known.shoes(2, 18),
    "one glove": known.shoes(1, 29),
    "airport": known.airport(np.repeat([1.0, 2, 5, 10, 20, 50], 5)),
    "voting": known.voting(np.array([20, 14, 11, 9, 8, 8, 7, 6, 5, 5, 4, 4, 3, 3, 3, 2, 2, 1, 1, 1]), 60),
    "miners": known.miners(25),
    "spanning tree": known.spanning_circle(30),
    "unanimity": known.unanimous(20, [[1, 4, 6]], [2.0]),
    "sum of unanimity games": known.some_groups(40, 60),
}
DECIDED_BY_FEW = ["veto", "shoes", "scarce shoes", "one glove"]
GOALS = [{"budget": 500}, {"budget": 1500}, {"tol": 0.1}, {"tol": 0.02}]


def play(game, **how):
    return ls.shapley([range(game.n)], game, game.n, progress=False, **how)


@pytest.mark.parametrize("name", SMALL)
def test_enumeration_gives_the_values(name):
    np.testing.assert_allclose(play(SMALL[name], method="exact").values, SMALL[name].values, atol=1e-12)


def check(game, n_seeds, **how):
    """Intervals of 95 % hold for the mean player of each class of equals, hardly any error is far outside."""
    runs = [play(game, seed=seed, **how) for seed in range(n_seeds)]
    off, stderr = np.array([v.values for v in runs]) - game.values, np.array([v.stderr for v in runs])
    assert (stderr > 0).all()
    held, far = np.abs(off) <= 1.96 * stderr + 1e-9, np.abs(off) > 4.5 * stderr + 1e-9
    share = 4 * np.sqrt(0.95 * 0.05 / n_seeds)  # of runs, four standard errors: of a class whose players err together
    for value in np.unique(game.values.round(9)):
        players = np.isclose(game.values, value)
        assert held[:, players].mean() >= 0.95 - share, f"{how}: players worth {value}"
        assert far[:, players].mean() <= 0.02, f"{how}: players worth {value}"
    typical = np.sqrt((stderr**2).mean(axis=0))
    assert (np.abs(off.mean(axis=0)) < typical * (0.25 + 4 / np.sqrt(n_seeds))).all()
    return runs


@pytest.mark.parametrize("goal", GOALS[:3], ids=str)
@pytest.mark.parametrize("name", DECIDED_BY_FEW)
def test_errors_of_those_who_hold_most_of_the_value(name, goal):
    check(LARGE[name], 16, method="sample", **goal)


@pytest.mark.long
@pytest.mark.parametrize("goal", GOALS, ids=str)
@pytest.mark.parametrize("name", [name for name in LARGE if name not in ("voting", "airport", "spanning tree")])
@pytest.mark.parametrize("method", ["sample", "auto"])
def test_errors_over_150_seeds(name, goal, method):
    if name == "sum of unanimity games" and "tol" in goal:
        goal = {"tol": 0.1}
    check(LARGE[name], 150, method=method, **goal)


@pytest.mark.parametrize("shoes", [(2, 18), (2, 12)], ids=str)
def test_a_coalition_that_decides_and_was_not_drawn_is_allowed_for(shoes):
    """Two left shoes are worth nothing together: one subset of its size, which most runs miss."""
    check(known.shoes(*shoes), 60, method="sample", budget=1000 if shoes == (2, 18) else 500)


@pytest.mark.parametrize(
    "name", ["airport", "voting", "miners", "spanning tree", "unanimity", "sum of unanimity games"]
)
def test_errors_of_other_games(name):
    check(LARGE[name], 16, method="sample", budget=500)


def test_equal_shoes_are_worth_the_same_within_their_errors():
    game = LARGE["shoes"]
    for v in check(game, 8, method="sample", budget=1500):
        assert v.stderr[:5].max() < 4 * v.stderr[:5].min()
        apart = np.abs(v.values[:5, None] - v.values[None, :5])
        assert (apart <= 5 * np.hypot(v.stderr[:5, None], v.stderr[None, :5])).all()


@pytest.mark.parametrize("method", ["local-mc", "global-mc"])
def test_permutations_know_that_gains_which_were_all_the_same_need_not_be(method):
    airport = known.airport(np.repeat(np.arange(1.0, 11.0), 10))
    runs = [play(airport, method=method, budget=2000, seed=seed) for seed in range(5)]
    off, stderr = np.array([v.values for v in runs]) - airport.values, np.array([v.stderr for v in runs])
    assert (stderr > 0).all()
    assert (np.abs(off) <= 1.96 * stderr).mean() >= 0.9
