"""What other test rows would have changed: sums over bundles of test rows, whatever the method."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import RepeatedKFold
from sklearn.neighbors import KNeighborsRegressor, RadiusNeighborsClassifier

import localshapley as ls
from localshapley.coalitions.jackknife_blocks import MOST, JackknifeBlocks

NEAR = ls.supports.Nearest(6)


@pytest.fixture(scope="module")
def data():
    X, y, X_test, y_test, _ = ls.datasets.load("iris")
    return X[::2], y[::2], X_test[::2], y_test[::2]


def by_definition(v):
    """`√(T · Var_t φ_z(v_t))` from the values to each test row."""
    by_test = v.per_test.toarray()
    return np.sqrt(len(by_test) * by_test.var(axis=0, ddof=1))


EXACT = {
    "neighbours": {"model": "knn"},
    "all rows": {"model": "knn", "support": ls.supports.Everything()},
    "radius": {"model": RadiusNeighborsClassifier(0.7), "score": "confidence"},
    "numbers": {"model": KNeighborsRegressor(3)},
    "subsets": {"model": "tree", "support": NEAR, "method": "exact"},
    "shared supports": {"model": "tree", "support": ls.supports.TreeNode(max_size=8), "method": "exact"},
    "player by player": {"model": "tree", "support": ls.supports.Nearest(4), "method": "baseline"},
    "subset by subset": {"model": "tree", "support": ls.supports.Nearest(4), "method": "subset-centric"},
    "owners": {"model": "tree", "support": NEAR, "method": "exact", "owners": np.arange(53) % 6},
    "forest": {"model": ls.models.Fixed(RandomForestClassifier(20, random_state=0))},
    "forest of numbers": {"model": ls.models.Fixed(RandomForestRegressor(20, random_state=0))},
    "boosted trees": {"model": ls.models.Fixed(GradientBoostingRegressor(n_estimators=10, random_state=0))},
}


@pytest.mark.parametrize("settings", EXACT.values(), ids=EXACT)
def test_with_few_test_rows_the_error_is_that_of_the_definition(data, settings):
    v = ls.value(*data, per_test=True, **settings)
    without = ls.value(*data, **settings)
    assert v.spread_tests.shape == (len(v.values), len(data[2]))
    np.testing.assert_allclose(v.stderr_tests, by_definition(v), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(v.spread_tests, without.spread_tests)


def test_the_columns_of_few_rows_among_many_are_the_same(data, monkeypatch):
    settings = {"model": "knn", "support": ls.supports.Nearest(3)}
    expected = ls.value(*data, **settings)
    assert not expected.spread_tests[expected.n_tests == 0].any()
    for share in (0.0, 1e9):
        monkeypatch.setattr("localshapley.methods.closed_form.FEW_MET", share)
        np.testing.assert_array_equal(ls.value(*data, **settings).spread_tests, expected.spread_tests)


@pytest.mark.parametrize("settings", [{"cv": 4, "model": "knn"}, {"cv": "oob", "model": "fixed-forest"}], ids=str)
def test_rows_that_test_each_other_are_test_rows(data, settings):
    v = ls.value(*data[:2], per_test=True, **settings)
    np.testing.assert_allclose(v.stderr_tests, by_definition(v), rtol=1e-5, atol=1e-7)


def test_a_row_that_is_tested_twice_is_one_test_row(data):
    X, y = data[:2]
    v = ls.value(X, y, cv=RepeatedKFold(n_splits=4, n_repeats=2, random_state=0), model="knn", per_test=True)
    by_row = v.per_test.toarray().reshape(len(y), 2, len(y)).sum(axis=1)
    expected = np.sqrt(len(y) * by_row.var(axis=0, ddof=1))
    np.testing.assert_allclose(v.stderr_tests, expected, rtol=1e-5, atol=1e-7)


def test_products_are_covariances(data):
    v = ls.value(*data, model="knn", per_test=True)
    by_test = v.per_test.toarray()
    expected = len(by_test) * np.cov(by_test.T)
    np.testing.assert_allclose(v.spread_tests @ v.spread_tests.T, expected, atol=1e-6)


def test_many_test_rows_are_dealt_to_bundles_of_one_size():
    bundles = JackknifeBlocks(np.arange(1000), n_players=5)
    counts = np.bincount(bundles.of_test)
    assert len(counts) == MOST
    assert counts.max() - counts.min() == 1
    assert np.corrcoef(np.arange(1000), bundles.of_test)[0, 1] < 0.1  # at random, whatever the order of the rows
    assert JackknifeBlocks(np.arange(1000), n_players=2**22).n == 8


def test_errors_from_bundles_are_right_on_average():
    X, y = ls.datasets.load("breast_cancer")[:2]
    forest = ls.models.Fixed(RandomForestClassifier(30, random_state=0))
    v = ls.value(X, y, cv="oob", model=forest, per_test=True)
    ratio = v.stderr_tests**2 / by_definition(v) ** 2
    assert v.spread_tests.shape[1] == MOST
    assert ratio.mean() == pytest.approx(1, abs=0.1)
    assert ratio.std() < 0.3  # 64 bundles know a variance to 18 %


def test_where_test_rows_are_told_apart_the_error_is_exact_whatever_their_number():
    X, y = ls.datasets.load("breast_cancer")[:2]
    v = ls.value(X, y, cv=5, model="knn", per_test=True)
    assert v.spread_tests.shape[1] == MOST
    np.testing.assert_allclose(v.stderr_tests, by_definition(v), rtol=1e-5, atol=1e-7)


def test_one_test_row_says_nothing_about_others(data):
    X, y, X_test, y_test = data
    v = ls.value(X, y, X_test[:1], y_test[:1], model="knn")
    assert v.stderr_tests is None
    assert "other test rows" not in repr(v)


def a_game(n_players=10, n_tests=24):
    """Test rows that share three supports, or have one each, and differ in what they ask of the players."""
    rng = np.random.default_rng(3)
    strength = rng.normal(size=n_players) + 0.7 * rng.normal(size=(n_tests, n_players))
    pairs = 0.4 * rng.normal(size=(n_players, n_players))
    cache = {}

    def utility(coalition, tests):
        key = coalition.tobytes()
        if key not in cache:
            inside = np.zeros(n_players)
            inside[coalition] = 1
            cache[key] = np.tanh(strength @ inside + inside @ pairs @ inside)
        return cache[key][tests]

    shared = [np.sort(rng.choice(n_players, 8, replace=False)) for _ in range(n_tests)]
    return {"shared": [shared[t % 3] for t in range(n_tests)], "own": shared}, utility, n_players


@pytest.mark.parametrize(
    ("kind", "method", "budget"), [("shared", "sample", 120), ("own", "sample", 200), ("own", "local-mc", 1500)]
)
def test_the_error_of_the_draws_is_taken_out(kind, method, budget):
    """The mean over many seeds is that of exact values; what is taken out would show."""
    supports, utility, n_players = a_game()
    exact = ls.shapley(supports[kind], utility, n_players)
    runs = [
        ls.shapley(supports[kind], utility, n_players, method=method, budget=budget, seed=seed, progress=False)
        for seed in range(30)
    ]
    seen = np.mean([np.sum(v.stderr_tests**2) for v in runs])
    noise = np.mean([np.sum(v.stderr**2) for v in runs])
    wanted = np.sum(exact.stderr_tests**2)
    assert noise > 0.1 * wanted
    assert seen == pytest.approx(wanted, abs=0.3 * noise)


def test_where_test_rows_are_not_told_apart_nothing_is_said():
    supports, utility, n_players = a_game()
    for method in ("global-mc", "complementary", "pivot", "random"):
        about = {} if method == "random" else {"budget": 500}
        v = ls.shapley(supports["own"], utility, n_players, method=method, **about)
        assert v.stderr_tests is None


def test_leave_one_out(data):
    X, y, X_test, y_test = data
    v = ls.value(X, y, X_test, y_test, model="tree", method="loo")
    one_by_one = [
        ls.value(X, y, X_test[[t]], y_test[[t]], model="tree", method="loo").values for t in range(len(y_test))
    ]
    np.testing.assert_allclose(v.stderr_tests, np.sqrt(len(y_test) * np.var(one_by_one, axis=0, ddof=1)), atol=1e-7)


def test_games_of_nodes():
    path = [[i, i + 1] for i in range(9)]
    X, y = np.eye(10), np.arange(10) % 2
    about = {"train": [0, 1, 2, 4, 6, 8], "test": [3, 5, 7, 9], "device": "cpu", "method": "exact"}
    v = ls.value_nodes(path, X, y, per_test=True, **about)
    np.testing.assert_allclose(v.stderr_tests, by_definition(v), rtol=1e-5, atol=1e-7)
    # A training node's game is scored on several test nodes at once, each of which is in several games.
    assert ls.value_nodes(path, X, y, games="train", **about).stderr_tests is None
    v = ls.value_nodes(path, X, y, games="train", per_test=True, **about)
    np.testing.assert_allclose(v.stderr_tests, by_definition(v), rtol=1e-4, atol=1e-7)
