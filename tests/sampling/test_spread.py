"""Errors of sampled values belong together: the spread says how."""

import numpy as np
import pytest

import localshapley as ls


def a_game(n_players=24, n_tests=7, size=12, seed=0):
    """Supports that overlap, and a utility with interactions."""
    rng = np.random.default_rng(seed)
    supports = [np.sort(rng.choice(n_players, size, replace=False)) for _ in range(n_tests)]
    pairs = rng.normal(size=(n_tests, n_players, n_players))
    strength = rng.normal(size=n_players)

    def utility(coalition, tests):
        inside = np.zeros(n_players)
        inside[coalition] = 1
        return [float(np.tanh(strength @ inside + 0.5 * inside @ pairs[t] @ inside)) for t in tests]

    return supports, utility, n_players


@pytest.fixture(
    scope="module", params=[{"budget": 1000}, {"stop": ls.stopping.Trainings(700)}], ids=["one round", "rounds"]
)
def runs(request):
    supports, utility, n_players = a_game()
    cache = {}

    def cached(coalition, tests):
        key = coalition.tobytes()
        if key not in cache:
            cache[key] = np.array(utility(coalition, np.arange(len(supports))))
        return cache[key][tests]

    return [
        ls.shapley(supports, cached, n_players, method="sample", seed=seed, progress=False, **request.param)
        for seed in range(150)
    ]


def test_norms_are_the_standard_errors(runs):
    for v in runs[:5]:
        assert v.spread.shape == (24, 64)
        np.testing.assert_allclose(np.linalg.norm(v.spread, axis=1), v.stderr, rtol=1e-5)


@pytest.mark.parametrize(
    "weights",
    [
        np.repeat([1.0, 0.0], 12),
        np.tile([1.0, -1.0], 12),
        np.eye(24)[3] + np.eye(24)[4],
        np.eye(24)[3] - np.eye(24)[4],
    ],
    ids=["half", "alternating", "sum of two", "difference of two"],
)
def test_variances_of_sums_are_those_seen_over_many_seeds(runs, weights):
    sums = np.array([weights @ v.values for v in runs])
    expected = np.mean([np.sum((weights @ v.spread) ** 2) for v in runs])
    # The variance seen over 150 runs is known to 12 %; standard errors lean to the safe side.
    assert 0.6 < sums.var() / expected < 1.4


def test_what_all_have_together_is_not_left_to_chance(runs):
    assert np.std([v.values.sum() for v in runs]) < 1e-9
    together = np.mean([np.sum(v.spread.sum(axis=0) ** 2) for v in runs])
    alone = np.mean([np.sum(v.stderr**2) for v in runs])
    assert together < 0.05 * alone


def test_exact_values_have_no_spread():
    supports, utility, n_players = a_game(8, 3, 5)
    v = ls.shapley(supports, utility, n_players)
    assert v.spread is None
    assert v.history is None


def test_pivot_sampling_does_not_know_its_covariances():
    supports, utility, n_players = a_game(12, 4, 9)
    v = ls.shapley(supports, utility, n_players, method="pivot", budget=200, progress=False)
    assert v.stderr.any()
    assert v.spread is None


def test_history_ends_in_the_values_and_survives_a_file(runs, tmp_path):
    v = runs[0]
    assert v.history.trainings[-1] <= 1000
    assert (np.diff(v.history.trainings) > 0).all()
    np.testing.assert_allclose(v.history.values[-1], v.values, rtol=1e-6)
    np.testing.assert_allclose(v.history.stderr[-1], v.stderr, rtol=1e-6)
    assert v.history.relative_error[-1] == pytest.approx(v.relative_error, rel=1e-5)
    v.save(tmp_path / "v.parquet")
    w = ls.load(tmp_path / "v.parquet")
    np.testing.assert_array_equal(w.spread, v.spread)
    for name in ("trainings", "values", "stderr"):
        np.testing.assert_array_equal(getattr(w.history, name), getattr(v.history, name))


def test_long_histories_are_thinned_out():
    supports, utility, n_players = a_game(16, 6, 12)
    rule = ls.stopping.RelativeChange(1e-9, every=1)
    v = ls.shapley(supports, utility, n_players, method="pivot", stop=rule, budget=1500, progress=False)
    assert 8 <= len(v.history.trainings) <= 32
    assert (np.diff(v.history.trainings) >= 0).all()
