"""How far values of nodes are from global ones, and hops that are added until they are near enough."""

import numpy as np
import pytest

import localshapley as ls
from localshapley.locality import growing
from localshapley.supports import Everything

pytest.importorskip("torch")

RING = np.stack([np.arange(6), (np.arange(6) + 1) % 6], axis=1)
PLACES = np.random.default_rng(0).normal(size=(12, 4))
NODES = (  # two rings that are not joined; every third node is a test node
    np.concatenate([RING, RING + 6]),
    PLACES,
    (PLACES[:, 0] > 0).astype(int),
    np.setdiff1d(np.arange(12), np.arange(0, 12, 3)),
    np.arange(0, 12, 3),
)
NETWORKS = {"model": ls.models.GCN(hidden=4, epochs=3, lr=0.1), "device": "cpu"}


@pytest.mark.parametrize("kind", [ls.models.GCN, ls.models.GraphSAGE, ls.models.GIN])
def test_the_global_game_has_no_gap(kind):
    settings = NETWORKS | {"model": kind(hidden=4, epochs=3, lr=0.1)}
    found = ls.locality_gap_nodes(*NODES, **settings, support=Everything(), budget=500)
    assert found.gap < 1e-5  # networks of other batches differ by rounding
    assert np.abs(found.global_).max() > 0.01
    assert found.enough
    assert "over 4 test nodes" in repr(found)


@pytest.mark.parametrize("games", ["test", "train"])
def test_estimates_agree_with_exact_values(games):
    found = ls.locality_gap_nodes(*NODES, **NETWORKS, games=games, budget=2500)
    local = ls.value_nodes(*NODES, **NETWORKS, games=games, method="exact").values
    error = 2 / np.sqrt(found.permutations)  # marginals are at most 1 for each test node
    np.testing.assert_allclose(found.local, local, atol=error)
    assert found.trainings <= 2500
    assert len(found.tests) == (4 if games == "test" else 8)
    if games == "test":
        everywhere = ls.value_nodes(*NODES, **NETWORKS, support=Everything(), method="exact").values
        np.testing.assert_allclose(found.global_, everywhere, atol=error)
        gap = np.abs(local - everywhere).mean() / np.abs(everywhere).mean()
        assert found.gap == pytest.approx(gap, abs=5 * found.gap_stderr)
        assert not found.enough
        assert "supports.Hops(3)" in found.advice
    else:
        assert "8 games of training nodes" in repr(found)


def test_with_a_store_the_same_call_trains_nothing_and_time_ends_it(tmp_path):
    with ls.Store(tmp_path / "run.db", fastest=0) as store:
        first, again = (ls.locality_gap_nodes(*NODES, **NETWORKS, budget=500, store=store) for _ in range(2))
    assert first.trainings > 0
    assert again.trainings == 0
    assert again.gap == first.gap
    part = ls.locality_gap_nodes(*NODES, **NETWORKS, budget=500, max_seconds=1e-9)
    assert part.permutations == 2 < first.permutations
    assert "permutations were walked: " in part.notes[-1]


def test_ctrl_c_returns_what_the_permutations_so_far_show():
    def interrupt(done, total):
        if done > 60:
            raise KeyboardInterrupt

    whole = ls.locality_gap_nodes(*NODES, **NETWORKS, budget=500)
    part = ls.locality_gap_nodes(*NODES, **NETWORKS, budget=500, progress=interrupt, on_interrupt="return")
    assert 2 <= part.permutations < whole.permutations
    assert part.notes[-1] == f"only {part.permutations} of {whole.permutations} permutations were walked: interrupted."
    with pytest.raises(KeyboardInterrupt):
        ls.locality_gap_nodes(*NODES, **NETWORKS, budget=500, progress=interrupt)


def test_bad_arguments():
    for wrong, message in (
        ({"n_tests": 0}, "n_tests must be"),
        ({"budget": 3}, r"two permutations take .* fewer nodes to value"),
        ({"support": "auto"}, "value_nodes also takes 'auto'"),
        ({"games": "all"}, "games must be one of"),
    ):
        with pytest.raises(ls.InvalidArgumentError, match=message):
            ls.locality_gap_nodes(*NODES, **NETWORKS, **wrong)


def test_nodes_out_of_reach_are_taken_when_no_hop_adds_any(monkeypatch):
    # Three hops reach all of a ring; only nodes of the other ring are left.
    monkeypatch.setattr(growing, "MAX_TRAININGS", 1000)
    v = ls.value_nodes(*NODES, **NETWORKS, support="auto")
    assert not ls.locality_gap_nodes(*NODES, **NETWORKS, support=ls.supports.Hops(3), budget=1000).enough
    assert v.support == "Everything() of test nodes, induced graph"
    assert "4 test nodes" in noted(v)
    np.testing.assert_array_equal(v.values, ls.value_nodes(*NODES, **NETWORKS, support=Everything()).values)
    few = ls.value_nodes(*NODES, **NETWORKS, support="auto", budget=60)
    assert few.support.startswith("Hops(n=2)")
    assert "would take over 15 trainings" in noted(few)


def noted(found):
    return next(note for note in found.notes if "support='auto'" in note)


def test_games_of_training_nodes_do_not_grow():
    with pytest.raises(ls.InvalidArgumentError, match=r"needs games='test', got games='train'.*supports.Hops\(n\)"):
        ls.value_nodes(*NODES, **NETWORKS, games="train", support="auto")
