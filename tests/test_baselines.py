"""The paper's baselines: unbiased where they claim it, calibrated, and the same however they are computed."""

from __future__ import annotations

from time import sleep

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import localshapley as ls
import naive
import naive_baselines as twin
from localshapley.baselines import TMC
from localshapley.methods.complementary import Cells
from localshapley.methods.walks import Walks
from localshapley.models.knn import KNNTrainer

SAMPLED = ("global-mc", "local-mc", "tmc", TMC(patience=2, by_test=True), "complementary")
N, TESTS = 5, 3
SUPPORTS = [[0, 1, 2], [1, 2, 3, 4], [0, 3]]
GAME = naive.HashedGame("0/1", N, TESTS, seed=3)


def v_of(game):
    """A game of arrays as a function of one coalition and test row."""

    def v(subset, test):
        return float(game.evaluate(ls.coalitions.batch.Coalitions.from_lists([subset], [[test]]))[0])

    return v


def estimates(method, budget, n_seeds, game=GAME):
    runs = [ls.shapley(SUPPORTS, game, N, method=method, budget=budget, seed=s) for s in range(n_seeds)]
    return np.array([v.values for v in runs]), np.array([v.stderr for v in runs])


TRUNCATED = {
    TMC(): {"tolerance": 0.01},
    TMC(0.4, patience=2): {"tolerance": 0.4, "patience": 2},
    TMC(0.4, patience=2, by_test=True): {"tolerance": 0.4, "patience": 2, "by_test": True},
}


class TestMeans:
    """Mean of many seeds within four of its own standard errors of what it should be; standard errors say as much."""

    @staticmethod
    def check(method, budget, n_seeds, expected):
        values, stderr = estimates(method, budget, n_seeds)
        spread = values.std(axis=0, ddof=1)
        moving = spread > 1e-9
        assert np.abs((values.mean(axis=0) - expected) / (spread / np.sqrt(n_seeds) + 1e-12))[moving].max() < 4
        np.testing.assert_allclose(values.mean(axis=0)[~moving], expected[~moving], atol=1e-9)
        ratio = np.sqrt((stderr**2).mean(axis=0))[moving] / spread[moving]
        assert 0.75 < ratio.min() <= ratio.max() < 1.25

    @pytest.mark.parametrize(("method", "budget"), [("global-mc", 34), ("complementary", 202)])
    def test_the_global_game(self, method, budget):
        self.check(method, budget, 300, ls.shapley([range(N)] * TESTS, GAME, N).values)

    def test_the_local_games(self):
        self.check("local-mc", 48, 400, ls.shapley(SUPPORTS, GAME, N).values)

    @pytest.mark.parametrize("tmc", TRUNCATED, ids=repr)
    def test_truncated_walks_have_the_mean_of_all_truncated_permutations(self, tmc):
        biased = twin.mean_walk(N, v_of(GAME), range(TESTS), **TRUNCATED[tmc])
        self.check(tmc, 40, 400, biased)
        exact = ls.shapley([range(N)] * TESTS, GAME, N).values
        assert np.abs(biased - exact).max() > 0.05, "the bias that the documentation speaks of"

    def test_complementary_contributions_are_shapley_values(self):
        exact = ls.shapley([range(N)] * TESTS, GAME, N).values
        np.testing.assert_allclose(twin.complementary(N, v_of(GAME), range(TESTS)), exact, atol=1e-12)

    def test_more_draws_find_the_value(self):
        exact = ls.shapley([range(N)] * TESTS, GAME, N).values
        for method in ("global-mc", "complementary"):
            v = ls.shapley(SUPPORTS, GAME, N, method=method, tol=0.04)
            assert v.relative_error <= 0.04
            assert np.linalg.norm(v.values - exact) < 0.12 * np.linalg.norm(exact)


class Additive:
    name = "additive"

    def __init__(self, worth):
        self.worth = worth

    def evaluate(self, coalitions):
        sums = [self.worth[coalitions.coalition(c)].sum() for c in range(len(coalitions))]
        return np.repeat(sums, np.diff(coalitions.test_indptr))


@given(st.integers(1, 12), st.integers(1, 4), st.integers(0, 99))
def test_additive_games_are_right_after_two_permutations(n, n_tests, seed):
    worth = np.random.default_rng(seed).normal(size=n)
    supports = [range(n)] * n_tests
    for method in ("global-mc", "local-mc", TMC(0), "loo"):
        v = ls.shapley(supports, Additive(worth), n, method=method, budget=2 * (n_tests + 1) * n + 8, seed=seed)
        np.testing.assert_allclose(v.values, worth * n_tests, atol=1e-12)
        np.testing.assert_allclose(v.stderr, 0, atol=1e-12)


def test_walks_and_their_twin_on_the_same_permutations(monkeypatch):
    orders = []
    random_order = Walks.random_order

    def noted(self, n):
        out = random_order(self, n)
        orders.extend(out[0].tolist())
        return out

    monkeypatch.setattr(Walks, "random_order", noted)
    for tmc, truncation in [("global-mc", {}), *TRUNCATED.items()]:
        orders.clear()
        v = ls.shapley(SUPPORTS, GAME, N, method=tmc, budget=60)
        gains = np.array([twin.walk(order, v_of(GAME), range(TESTS), **truncation) for order in orders])
        np.testing.assert_allclose(v.values, gains.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(v.stderr, gains.std(axis=0, ddof=1) / np.sqrt(len(gains)), atol=1e-12)


def test_no_tolerance_is_global_mc_bit_by_bit():
    one = ls.shapley(SUPPORTS, GAME, N, method="global-mc", budget=100, seed=4)
    for tmc in (TMC(0), TMC(0, patience=3, by_test=True)):
        two = ls.shapley(SUPPORTS, GAME, N, method=tmc, budget=100, seed=4)
        assert one.values.tobytes() == two.values.tobytes()
        assert one.stderr.tobytes() == two.stderr.tobytes()
        assert one.notes == two.notes == ["the game is global: all rows play for every test row."]


class TestRun:
    @pytest.mark.parametrize("method", SAMPLED, ids=str)
    @pytest.mark.parametrize("budget", [24, 25, 47, 300])
    def test_the_budget_is_kept(self, method, budget):
        game = naive.HashedGame("0/1", N, TESTS)
        v = ls.shapley(SUPPORTS, game, N, method=method, budget=budget)
        assert len(game.trained) == v.cost.trainings == v.cost.distinct <= budget
        assert v.cost.trainings > budget - 10
        assert v.stopped == f"budget of {budget} trainings"

    def test_budgets_that_allow_no_standard_error(self):
        with pytest.raises(ls.InvalidArgumentError, match="budget=9 is too small: 10 trainings are the least"):
            ls.shapley(SUPPORTS, GAME, N, method="global-mc", budget=9)
        with pytest.raises(ls.TooLargeError, match="method='loo' would train 6 coalitions"):
            ls.shapley(SUPPORTS, GAME, N, method="loo", budget=5)

    @pytest.mark.parametrize("method", SAMPLED, ids=str)
    def test_the_same_bits_every_time_and_others_for_another_seed(self, method):
        one, two, other = (ls.shapley(SUPPORTS, GAME, N, method=method, budget=90, seed=s) for s in (1, 1, 2))
        assert one.values.tobytes() == two.values.tobytes()
        assert one.values.tobytes() != other.values.tobytes()

    @pytest.mark.parametrize("method", SAMPLED, ids=str)
    def test_small_blocks_give_the_same_bits(self, method, monkeypatch):
        one = ls.shapley(SUPPORTS, GAME, N, method=method, budget=200)
        monkeypatch.setattr("localshapley.methods.rounds.MAX_NUMBERS", 11)
        two = ls.shapley(SUPPORTS, GAME, N, method=method, budget=200)
        assert one.values.tobytes() == two.values.tobytes()
        assert one.cost.trainings == two.cost.trainings

    def test_several_workers_give_the_same_bits(self):
        X, y = load_iris(return_X_y=True)
        rows = np.arange(0, 150, 10)
        data = X[rows], y[rows], X[5::30], y[5::30]
        for method in ("global-mc", "local-mc", "complementary", "loo", TMC(0.2, patience=2)):
            settings = {"model": GaussianNB(), "support": ls.supports.Nearest(4), "method": method, "budget": 60}
            one = ls.value(*data, **settings, n_jobs=1)
            with joblib.parallel_config(backend="threading"):
                two = ls.value(*data, **settings, n_jobs=2)
            assert one.values.tobytes() == two.values.tobytes()
            assert one.cost.trainings == two.cost.trainings

    def test_stopping_rules(self):
        rule = ls.stopping.RelativeChange(0.05, every=50)
        for method in SAMPLED:
            v = ls.shapley(SUPPORTS, GAME, N, method=method, stop=rule)
            assert "mean relative change" in v.stopped
            assert (np.diff(v.history.trainings) > 50).all()
        v = ls.shapley(SUPPORTS, GAME, N, method="complementary", stop=ls.stopping.RankStable(agreement=0.99))
        assert "halves correlate" in v.stopped
        v = ls.shapley(SUPPORTS, GAME, N, method="global-mc", tol=1e-9, max_seconds=0.3)
        assert "limit 0.3 s" in v.stopped

    def test_halves_of_the_draws_make_up_the_values(self):
        from localshapley.methods.walks import Walks

        graph = ls.SupportGraph([range(N)] * TESTS)
        walks = Walks(graph, 0)
        for first in (True, False):
            assert first or walks.draw(100, None, None)
            while (batch := walks.take(7)) is not None:
                walks.add(batch, GAME.evaluate(batch))
        look = walks.look(None, 0.0)
        assert walks.draws == 10
        np.testing.assert_allclose(look.halves.mean(axis=0), look.values, atol=1e-12)
        assert np.abs(look.halves[0] - look.halves[1]).max() > 0.01

    def test_an_interrupted_run_returns_what_it_has(self):
        class Interrupting(naive.HashedGame):
            def evaluate(self, coalitions):
                if len(self.trained) > 100:
                    raise KeyboardInterrupt
                return super().evaluate(coalitions)

        for method in SAMPLED:
            game = Interrupting("0/1", N, TESTS)
            v = ls.shapley(SUPPORTS, game, N, method=method, budget=1000, on_interrupt="return")
            assert v.stopped == "interrupted"
            assert np.isfinite(v.stderr).all()
            with pytest.raises(KeyboardInterrupt):
                ls.shapley(SUPPORTS, game, N, method=method, budget=1000)

    def test_values_by_test_row_leave_out_an_unfinished_round_too(self, monkeypatch):
        monkeypatch.setattr("localshapley.methods.rounds.MAX_NUMBERS", 11)  # a block is one draw

        class Interrupting(naive.HashedGame):
            def evaluate(self, coalitions):
                if len(self.trained) > 250:
                    raise KeyboardInterrupt
                return super().evaluate(coalitions)

        settings = {"method": "local-mc", "stop": ls.stopping.RelativeChange(1e-9, every=30)}
        v = ls.shapley(SUPPORTS, Interrupting("0/1", N, TESTS), N, **settings, per_test=True, on_interrupt="return")
        assert v.stopped == "interrupted"
        np.testing.assert_allclose(v.per_test.sum(axis=0), v.values, atol=1e-12)

    def test_a_store_is_used(self, tmp_path):
        runs = []
        for _ in range(2):
            game = naive.HashedGame("0/1", N, TESTS)
            runs.append(
                ls.shapley(SUPPORTS, game, N, method="global-mc", budget=50, store=tmp_path / "a.db", name="game")
            )
        assert runs[0].cost.trainings > 10
        assert runs[1].cost.trainings == 0
        assert runs[0].values.tobytes() == runs[1].values.tobytes()

    def test_games_of_one_player_at_most_need_no_draw(self):
        game = naive.HashedGame("rough", 3, 3)
        exact = ls.shapley([[0], [], [2]], game, 3)
        v = ls.shapley([[0], [], [2]], game, 3, method="local-mc")
        np.testing.assert_allclose(v.values, exact.values, atol=1e-12)
        assert v.stopped == "every subset trained"
        assert not v.stderr.any()
        one = ls.shapley([[0], [0]], game, 1, method="complementary")
        np.testing.assert_allclose(one.values, ls.shapley([[0], [0]], game, 1).values, atol=1e-12)

    def test_values_by_test_row(self):
        v = ls.shapley(SUPPORTS, GAME, N, method="local-mc", budget=500, per_test=True)
        np.testing.assert_allclose(v.per_test.sum(axis=0), v.values, atol=1e-12)
        exact = ls.shapley(SUPPORTS, GAME, N, per_test=True)
        assert np.abs((v.per_test - exact.per_test).toarray()).max() < 0.3


class TestLeaveOneOut:
    def test_against_its_twin(self):
        v = ls.shapley(SUPPORTS, GAME, N, method="loo")
        np.testing.assert_allclose(v.values, twin.leave_one_out([range(N)] * TESTS, v_of(GAME), N), atol=1e-12)
        assert v.cost.trainings == N + 1
        assert not v.stderr.any()
        assert v.notes[0] == "the game is global: all rows play for every test row."
        assert "no Shapley values" in v.notes[1]


class TestRandom:
    def test_a_floor(self):
        game = naive.HashedGame("0/1", N, TESTS)
        one, two = (ls.shapley(SUPPORTS, game, N, method="random", seed=s) for s in (0, 1))
        assert not game.trained
        assert (one.values != two.values).all()
        assert one.cost.trainings == 0
        assert "random numbers" in one.notes[0]
        repr(one)


class TestComplementary:
    def test_sizes_without_a_draw_are_told(self):
        v = ls.shapley([range(40)], naive.HashedGame("smooth", 40, 1), method="complementary", budget=200)
        assert "of 1,560 sizes of a coalition" in v.notes[1]
        assert "biased" in v.notes[1]
        assert len(ls.shapley(SUPPORTS, GAME, N, method="complementary", budget=2000).notes) == 1

    def test_sizes_with_one_draw_are_as_uncertain_as_the_others(self):
        cells = Cells(3)
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
        cells = Cells(4)
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
        cells = Cells(3)
        cells.add(0, np.array([1, 2, 2]), np.array([5.0, -5.0, -5.0]))
        np.testing.assert_allclose(cells.variance(), np.full(3, 5.0**2 + 5.0**2) * (2 / 6) ** 2)

    def test_no_players(self):
        assert len(ls.shapley([[]], lambda coalition, tests: [0.0], method="complementary").values) == 0

    def test_sizes_are_spread_evenly_over_the_draws(self, monkeypatch):
        drawn = []
        add = Cells.add
        monkeypatch.setattr(
            Cells, "add", lambda self, half, sizes, said: (drawn.append(sizes), add(self, half, sizes, said))
        )
        ls.shapley([range(20)], naive.HashedGame("smooth", 20, 1), 20, method="complementary", budget=2 + 2 * 95)
        assert len(drawn) == 95
        smaller = np.bincount([s.min() for s in drawn], minlength=11)[1:]  # of a coalition and its complement
        assert ((smaller[:9] >= 9) & (smaller[:9] <= 11)).all()  # 5 draws each of sizes 1 to 19
        assert 4 <= smaller[9] <= 6

    def test_too_many_players(self):
        with pytest.raises(ls.InvalidArgumentError, match="keeps every player and size apart"):
            ls.shapley([range(9000)], naive.HashedGame("smooth", 9000, 1), method="complementary", budget=100)


def grid(seed, n=24, n_tests=7, classes=3):
    """Rows on a coarse grid: many at equal distances, some at distance 0."""
    rng = np.random.default_rng(seed)
    X, X_test = rng.integers(3, size=(n, 2)).astype(float), rng.integers(3, size=(n_tests, 2)).astype(float)
    return X, rng.integers(classes, size=n), X_test, rng.integers(classes, size=n_tests)


def right_enough(truth, guess):
    return 1.0 - abs(truth - guess) / 2


evaluate = KNNTrainer.evaluate


def only_ends(self, coalitions):
    """Trains empty and full coalitions, and fails for all others."""
    sizes = np.diff(coalitions.indptr)
    assert ((sizes == 0) | (sizes == sizes.max())).all()
    return evaluate(self, coalitions)


METHODS = ("global-mc", "local-mc", TMC(0.05), TMC(0.02, 2), TMC(0.3, 3), TMC(0.3, 2, by_test=True))


class TestCompiledWalks:
    """K nearest neighbours: one prefix from the one before, against every prefix for itself."""

    @staticmethod
    def check(monkeypatch, data, model, seed=0, methods=METHODS, **kwargs):
        for method in methods:
            kwargs |= {"method": method, "model": model, "seed": seed, "budget": 500}
            with monkeypatch.context() as patch:
                patch.setattr(KNNTrainer, "evaluate", only_ends)
                fast = ls.value(*data, **kwargs)
            with monkeypatch.context() as patch:
                patch.setattr(KNNTrainer, "can_walk", lambda self: False)
                slow = ls.value(*data, **kwargs)
            np.testing.assert_allclose(fast.values, slow.values, atol=1e-12)
            np.testing.assert_allclose(fast.stderr, slow.stderr, atol=1e-12)
            assert fast.stderr.max() > 0
            for count in ("trainings", "draws", "distinct", "reused"):
                assert getattr(fast.cost, count) == getattr(slow.cost, count), count

    @pytest.mark.parametrize("score", ["accuracy", "confidence", "margin", "log_loss", right_enough])
    @pytest.mark.parametrize("weights", ["uniform", "distance"])
    def test_classifiers(self, score, weights, monkeypatch):
        for seed, k in ((0, 1), (1, 3)):
            self.check(monkeypatch, grid(seed), KNeighborsClassifier(k, weights=weights), seed, score=score)

    def test_more_neighbours_than_rows(self, monkeypatch):
        self.check(monkeypatch, grid(2), KNeighborsClassifier(50), score="margin")

    def test_scores_just_as_far_as_the_tolerance_are_far_either_way(self, monkeypatch):
        methods = (TMC(0.1), TMC(0.2), TMC(1 / 3, by_test=True))
        for seed, score in ((0, "confidence"), (3, "accuracy"), (10, "accuracy")):
            data, model = grid(seed, n_tests=10), KNeighborsClassifier(3)
            self.check(monkeypatch, data, model, seed, methods, score=score)

    @pytest.mark.parametrize("score", ["squared_error", "absolute_error"])
    @pytest.mark.parametrize("weights", ["uniform", "distance"])
    def test_regressors(self, score, weights, monkeypatch):
        for seed, k in ((0, 1), (1, 4)):
            X, y, X_test, y_test = grid(seed, classes=5)
            data = X, y + 0.5 * (np.arange(len(y)) % 2), X_test, y_test + 0.25
            self.check(monkeypatch, data, KNeighborsRegressor(k, weights=weights), seed, score=score)

    def test_rows_apart_from_each_other(self, monkeypatch):
        rng = np.random.default_rng(5)
        data = rng.normal(size=(30, 3)), rng.integers(3, size=30), rng.normal(size=(9, 3)), rng.integers(3, size=9)
        self.check(monkeypatch, data, KNeighborsClassifier(4, weights="distance"), empty=0.1)

    @pytest.mark.filterwarnings("ignore:y_test holds labels")
    @pytest.mark.parametrize("score", ["accuracy", "confidence", "margin", "log_loss"])
    def test_labels_that_no_row_has(self, score, monkeypatch):
        X, y, X_test, y_test = grid(3)
        y_test[:2] = 7
        self.check(monkeypatch, (X, y, X_test, y_test), KNeighborsClassifier(3), score=score)

    def test_threads_give_the_same_bits(self):
        data, model = grid(0, 40, 20), KNeighborsClassifier(3)
        for method in METHODS:
            one, two = (ls.value(*data, model=model, method=method, budget=4000, n_jobs=n) for n in (1, 2))
            assert one.values.tobytes() == two.values.tobytes()

    def test_scores_of_ones_own_go_the_plain_way(self):
        def closeness(truth, guess):
            return 1 / (1 + abs(truth - guess))

        X, y, X_test, y_test = grid(0)
        data = X, y + 0.5, X_test, y_test + 0.1
        v = ls.value(*data, model=KNeighborsRegressor(3), score=closeness, method="global-mc", budget=200)
        assert np.isfinite(v.values).all()

    def test_the_global_values_of_knn_shapley(self):
        X, y, X_test, y_test = grid(0, 20, 5)
        v = ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(1), empty=0.0, method="global-mc", budget=200_000)
        exact = ls.baselines.knn_shapley(X, y, X_test, y_test, n_neighbors=1).values
        assert (np.abs(v.values - exact) < 5 * v.stderr + 1e-9).all()


class TestInTheLibrary:
    def test_everyone_plays_whatever_the_support(self):
        X, y, X_test, y_test = grid(0, 12, 4)
        for method in ("global-mc", "tmc", "complementary", "loo", "random"):
            v = ls.value(X, y, X_test, y_test, model=GaussianNB(), method=method, budget=100)
            assert v.support == "Everything()"
            assert (v.support_sizes == 12).all()
        v = ls.value(
            X, y, X_test, y_test, model=GaussianNB(), method="local-mc", budget=200, support=ls.supports.Nearest(3)
        )
        assert (v.support_sizes == 3).all()

    def test_rows_do_not_test_themselves_in_folds(self):
        X, y, _, _ = grid(1, 12, classes=2)
        settings = {"model": KNeighborsClassifier(3, weights="distance"), "cv": 3}
        exact = ls.value(X, y, support=ls.supports.Everything(), method="exact", **settings)
        v = ls.value(X, y, method="global-mc", budget=60_000, **settings)
        assert (v.support_sizes == 8).all()
        assert (np.abs(v.values - exact.values) < 5 * v.stderr + 1e-9).all()

    def test_owners(self):
        X, y, X_test, y_test = grid(1, 12, classes=2)
        owners = np.arange(12) // 3
        settings = {"model": KNeighborsClassifier(3), "owners": owners}
        exact = ls.value(X, y, X_test, y_test, support=ls.supports.Everything(), method="exact", **settings)
        v = ls.value(X, y, X_test, y_test, method="global-mc", budget=4000, **settings)
        assert (np.abs(v.values - exact.values) < 5 * v.stderr + 1e-9).all()

    def test_errors_name_the_argument(self):
        def shapley(**kwargs):
            ls.shapley(SUPPORTS, GAME, N, **kwargs)

        with pytest.raises(ls.InvalidArgumentError, match=r"method must be one of .* Did you mean 'global-mc'"):
            shapley(method="globalmc")
        with pytest.raises(ls.InvalidArgumentError, match="per_test=True is not for method='global-mc'"):
            shapley(method="global-mc", per_test=True)
        for method, kind in (("loo", "exact"), ("random", "no estimate")):
            with pytest.raises(ls.InvalidArgumentError, match=f"method='{method}' is {kind}"):
                shapley(method=method, tol=0.1)
        for wrong in (-0.1, np.inf, "0.1", True):
            with pytest.raises(ls.InvalidArgumentError, match=r"TMC\(tolerance=...\) must be a number, 0 or more"):
                TMC(wrong)
        with pytest.raises(ls.InvalidArgumentError, match="patience"):
            TMC(patience=0)
        with pytest.raises(ls.InvalidArgumentError, match=r"TMC\(by_test=...\) must be True or False"):
            TMC(by_test=1)

    def test_the_method_says_its_options(self, tmp_path):
        v = ls.shapley(SUPPORTS, GAME, N, method=TMC(0.1, patience=2), budget=60)
        assert v.method == "TMC(tolerance=0.1, patience=2, by_test=False)"
        assert "walks ended early: the values are biased" in v.notes[1]
        v.save(tmp_path / "v.parquet")
        assert ls.load(tmp_path / "v.parquet").method == v.method


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
    v = ls.shapley([np.arange(60)], utility, method="complementary", tol=0.2, max_seconds=60, progress=False)
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


@pytest.mark.parametrize("method", ["global-mc", "local-mc", "tmc", "complementary"])
def test_time_that_is_up_ends_the_first_round_too(method):
    def slow(coalition, tests):
        sleep(0.001)
        return [float(len(coalition)) ** 0.5] * len(tests)

    rule = ls.stopping.RelativeChange(1e-9, every=1000)  # a round of 1,000 draws would take 2 seconds or more
    v = ls.shapley([range(30)], slow, method=method, stop=rule, max_seconds=0.1)
    assert "limit 0.1 s" in v.stopped
    assert v.cost.trainings < 1000
    assert v.history is not None
    assert v.values.sum() == pytest.approx(30**0.5, rel=0.2)
    assert np.isfinite(v.stderr).all()


def test_complementary_draws_that_agree_by_chance_do_not_look_certain():
    # Coalitions of half the players score the same as their complements here, again and again.
    def utility(coalition, tests):
        return [min(len(coalition), 20) / 20 + (0.5 if 3 in coalition and len(coalition) < 30 else 0.0)]

    exact = ls.shapley([np.arange(100)], utility, method="sample", budget=6000, progress=False)
    for seed in range(5):
        v = ls.shapley([np.arange(100)], utility, method="complementary", tol=0.1, seed=seed, progress=False)
        assert np.linalg.norm(v.values - exact.values) < 0.3 * np.linalg.norm(exact.values)
