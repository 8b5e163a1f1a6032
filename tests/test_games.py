from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localshapley as ls
import naive

supports_of_ten = st.lists(st.lists(st.integers(0, 9), unique=True, max_size=7), min_size=1, max_size=8)


def test_equal_supports_become_one_game_whatever_their_order():
    graph = ls.SupportGraph([[2, 0], [1], [0, 2], [], [0, 2]])
    assert graph.n_games == 3
    assert graph.sizes.tolist() == [0, 1, 2]
    assert [graph.tests[a:b].tolist() for a, b in zip(graph.test_indptr, graph.test_indptr[1:], strict=False)] == [
        [3],
        [1],
        [0, 2, 4],
    ]
    assert graph.game_of_test.tolist() == [2, 1, 2, 0, 2]


@given(supports_of_ten)
def test_games_are_ascending_and_the_csr_arrays_say_what_the_lists_say(supports):
    graph = ls.SupportGraph(supports, 10)
    assert (np.diff(graph.sizes) >= 0).all()
    assert graph.support_sizes.tolist() == [len(s) for s in supports]
    assert graph.tests_per_player.tolist() == np.diff(graph.R[0]).tolist()
    assert graph.n_entries == sum(len(s) for s in supports)
    indptr, players = graph.N
    for t, support in enumerate(supports):
        assert players[indptr[t] : indptr[t + 1]].tolist() == sorted(support)
        assert graph.support(t).tolist() == sorted(support)
    indptr, tests = graph.R
    for z in range(10):
        assert tests[indptr[z] : indptr[z + 1]].tolist() == [t for t, s in enumerate(supports) if z in s]
        games = graph.where[graph.where_indptr[z] : graph.where_indptr[z + 1]]
        assert games.tolist() == [g for g in range(graph.n_games) if z in graph.game(g)]


@given(supports_of_ten, st.lists(st.integers(0, 9), unique=True, max_size=4))
def test_tests_holding_a_coalition(supports, coalition):
    graph = ls.SupportGraph(supports, 10)
    assert graph.tests_holding(coalition).tolist() == naive.holding(supports, coalition)


@given(supports_of_ten)
def test_overlap_masks_are_intersections(supports):
    graph = ls.SupportGraph(supports, 10)
    for game in range(graph.n_games):
        games, masks = graph.overlaps(game)
        own = graph.game(game).tolist()
        shared = {u: set(own) & set(graph.game(u).tolist()) for u in range(graph.n_games)}
        assert games.tolist() == [u for u in range(graph.n_games) if shared[u]]
        for u, mask in zip(games, masks, strict=True):
            assert {z for i, z in enumerate(own) if int(mask[0]) >> i & 1} == shared[u]


def test_overlap_masks_of_more_than_64_players():
    graph = ls.SupportGraph([range(150), range(100, 300)], 300)
    games, masks = graph.overlaps(0)
    assert games.tolist() == [0, 1]
    assert masks.shape == (2, 3)
    bits = "".join(f"{int(word):064b}"[::-1] for word in masks[1])
    assert [i for i, bit in enumerate(bits) if bit == "1"] == list(range(100, 150))


@pytest.mark.parametrize(
    ("supports", "message"),
    [
        ([[0, 5]], "player 5, but there are only 3"),
        ([[0], [1, 1]], r"supports\[1\] names player 1 more than once"),
        ([[-1]], r"supports\[0\] holds the negative index -1"),
        ([[0.5]], r"supports\[0\] must be a flat list of player indices"),
        ([[[0, 1]]], r"supports\[0\] must be a flat list"),
    ],
)
def test_bad_supports_are_refused(supports, message):
    with pytest.raises(ls.InvalidArgumentError, match=message):
        ls.SupportGraph(supports, 3)
