"""Permutations, whole and truncated, and pairs of complements: unbiased where they claim it, calibrated."""

from __future__ import annotations

from dataclasses import replace

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
from localshapley.comparators import TMC
from localshapley.engine.executor import Executor
from localshapley.methods import GlobalMC, LocalMC, find_method
from localshapley.methods.permutation import PermutationRun
from localshapley.models.nearest_neighbours import KNNTrainer
from localshapley.models.utility import as_trainer
from localshapley.valuation.solving import solve
from playing import Timed, play, pose, read_limits

SAMPLED = ("global-mc", "local-mc", "tmc", TMC(patience=2, by_test=True), "complementary")
N, TESTS = 5, 3
SUPPORTS = [[0, 1, 2], [1, 2, 3, 4], [0, 3]]
GAME = naive.HashedGame("0/1", N, TESTS, seed=3)


def estimates(method, budget, n_seeds, game=GAME):
    runs = [ls.shapley(SUPPORTS, game, N, method=method, budget=budget, seed=s) for s in range(n_seeds)]
    return np.array([v.values for v in runs]), np.array([v.stderr for v in runs])


TRUNCATED = {
    TMC(): {"tolerance": 0.01},
    TMC(0.4, patience=2): {"tolerance": 0.4, "patience": 2},
    TMC(0.4, patience=2, by_test=True): {"tolerance": 0.4, "patience": 2, "by_test": True},
}


@pytest.mark.slow
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
        biased = twin.mean_walk(N, naive.v_of(GAME), range(TESTS), **TRUNCATED[tmc])
        self.check(tmc, 40, 400, biased)
        exact = ls.shapley([range(N)] * TESTS, GAME, N).values
        assert np.abs(biased - exact).max() > 0.05, "the bias that the documentation speaks of"

    def test_complementary_contributions_are_shapley_values(self):
        exact = ls.shapley([range(N)] * TESTS, GAME, N).values
        np.testing.assert_allclose(twin.complementary(N, naive.v_of(GAME), range(TESTS)), exact, atol=1e-12)

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
        gains = 0 if n == 1 or method == "loo" else np.abs(worth).max()
        assert v.stderr.max() <= gains * n_tests  # nobody knows yet that gains are always the same
        assert (v.stderr > 0).all() == (gains > 0)


def test_walks_and_their_twin_on_the_same_permutations(monkeypatch):
    orders = []
    random_order = PermutationRun.random_order

    def noted(self, n):
        out = random_order(self, n)
        orders.extend(out[0].tolist())
        return out

    monkeypatch.setattr(PermutationRun, "random_order", noted)
    for tmc, truncation in [("global-mc", {}), *TRUNCATED.items()]:
        orders.clear()
        v = ls.shapley(SUPPORTS, GAME, N, method=tmc, budget=60)
        gains = np.array([twin.walk(order, naive.v_of(GAME), range(TESTS), **truncation) for order in orders])
        np.testing.assert_allclose(v.values, gains.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(v.stderr, gains.std(axis=0, ddof=1) / np.sqrt(len(gains)), atol=1e-12)


def test_no_tolerance_is_global_mc_bit_by_bit():
    one = ls.shapley(SUPPORTS, GAME, N, method="global-mc", budget=100, seed=4)
    for tmc in (TMC(0), TMC(0, patience=3, by_test=True)):
        two = ls.shapley(SUPPORTS, GAME, N, method=tmc, budget=100, seed=4)
        assert one.values.tobytes() == two.values.tobytes()
        assert one.stderr.tobytes() == two.stderr.tobytes()
        assert one.notes == two.notes
        assert one.notes[0] == "the game is global: all rows play for every test row."


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
        with pytest.raises(ls.InvalidArgumentError, match="budget=9 is too small: 10 trainings are needed"):
            ls.shapley(SUPPORTS, GAME, N, method="global-mc", budget=9)
        with pytest.raises(ls.TooLargeError, match="method='loo' would train 6 coalitions"):
            ls.shapley(SUPPORTS, GAME, N, method="loo", budget=5)

    @pytest.mark.parametrize("method", SAMPLED, ids=str)
    def test_the_same_bits_every_time_and_others_for_another_seed(self, method):
        one, two, other = (ls.shapley(SUPPORTS, GAME, N, method=method, budget=90, seed=s) for s in (1, 1, 2))
        assert one.values.tobytes() == two.values.tobytes()
        assert one.values.tobytes() != other.values.tobytes()

    @pytest.mark.parametrize("method", SAMPLED, ids=str)
    def test_small_blocks_give_the_same_bits(self, method):
        one = ls.shapley(SUPPORTS, GAME, N, method=method, budget=200)
        two = ls.shapley(SUPPORTS, GAME, N, method=replace(find_method(method), max_numbers=11), budget=200)
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

    @pytest.mark.slow
    def test_stopping_rules(self):
        rule = ls.stopping.RelativeChange(0.05, every=50)
        for method in SAMPLED:
            v = ls.shapley(SUPPORTS, GAME, N, method=method, stop=rule)
            assert "mean relative change" in v.stopped
            assert (np.diff(v.history.trainings) > 50).all()
        v = ls.shapley(SUPPORTS, GAME, N, method="complementary", stop=ls.stopping.RankStable(agreement=0.99))
        assert "rank correlation of both halves" in v.stopped
        with pytest.raises(ls.InvalidArgumentError, match="the first estimate takes"):
            ls.shapley(SUPPORTS, GAME, N, method="global-mc", tol=1e-9, max_seconds=1e-9)

    def test_halves_of_the_draws_make_up_the_values(self):
        graph = ls.SupportGraph([range(N)] * TESTS)
        walks = PermutationRun(graph, Executor(as_trainer(GAME)), GlobalMC(), 0)
        for first in (True, False):
            assert first or walks.draw(100, None, None)
            while (batch := walks.take(7)) is not None:
                walks.add(batch, GAME.evaluate(batch))
        look = walks.estimate()
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

    def test_values_by_test_row_leave_out_an_unfinished_round_too(self):
        class Interrupting(naive.HashedGame):
            def evaluate(self, coalitions):
                if len(self.trained) > 250:
                    raise KeyboardInterrupt
                return super().evaluate(coalitions)

        one_draw_a_block = LocalMC(max_numbers=11)
        settings = {"method": one_draw_a_block, "stop": ls.stopping.RelativeChange(1e-9, every=30)}
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


def grid(seed, n=24, n_tests=7, classes=3):
    """Rows on a coarse grid: many at equal distances, some at distance 0."""
    rng = np.random.default_rng(seed)
    X, X_test = rng.integers(3, size=(n, 2)).astype(float), rng.integers(3, size=(n_tests, 2)).astype(float)
    return X, rng.integers(classes, size=n), X_test, rng.integers(classes, size=n_tests)


def right_enough(truth, guess):
    return 1.0 - abs(truth - guess) / 2


class OnlyEnds(KNNTrainer):
    """Trains empty and full coalitions, and fails for all others."""

    def train(self, coalitions):
        sizes = np.diff(coalitions.indptr)
        assert ((sizes == 0) | (sizes == sizes.max())).all()
        return super().train(coalitions)


class Plodding(KNNTrainer):
    """Does not know one prefix from the one before."""

    def walker(self):
        return None


def with_trainer(kind, data, *, model, method, seed, budget, **kwargs):
    """A valuation with a trainer of one's own."""
    settings = read_limits(method, budget=budget, seed=seed)
    problem = pose(*data, model=model, support=settings.method.support(None), seed=seed, **kwargs)
    return solve(replace(problem, trainer=kind(model, problem.task)), settings)


METHODS = ("global-mc", "local-mc", TMC(0.05), TMC(0.02, 2), TMC(0.3, 3), TMC(0.3, 2, by_test=True))


class TestCompiledWalks:
    """K nearest neighbours: one prefix from the one before, against every prefix for itself."""

    @staticmethod
    def check(data, model, seed=0, methods=METHODS, **kwargs):
        for method in methods:
            kwargs |= {"method": method, "model": model, "seed": seed, "budget": 500}
            fast, slow = (with_trainer(kind, data, **kwargs) for kind in (OnlyEnds, Plodding))
            np.testing.assert_allclose(fast.values, slow.values, atol=1e-12)
            np.testing.assert_allclose(fast.stderr, slow.stderr, atol=1e-12)
            assert fast.stderr.max() > 0
            for count in ("trainings", "draws", "distinct", "reused"):
                assert getattr(fast.cost, count) == getattr(slow.cost, count), count

    @pytest.mark.parametrize("score", ["accuracy", "confidence", "margin", "log_loss", right_enough])
    @pytest.mark.parametrize("weights", ["uniform", "distance"])
    def test_classifiers(self, score, weights):
        methods = METHODS if score == "confidence" else METHODS[1::4]  # a walk scores alike, whatever ends it
        for seed, k in ((0, 1), (1, 3)):
            self.check(grid(seed), KNeighborsClassifier(k, weights=weights), seed, methods, score=score)

    def test_more_neighbours_than_rows(self):
        self.check(grid(2), KNeighborsClassifier(50), score="margin")

    @pytest.mark.slow
    def test_scores_just_as_far_as_the_tolerance_are_far_either_way(self):
        methods = (TMC(0.1), TMC(0.2), TMC(1 / 3, by_test=True))
        for seed, score in ((0, "confidence"), (3, "accuracy"), (10, "accuracy")):
            data, model = grid(seed, n_tests=10), KNeighborsClassifier(3)
            self.check(data, model, seed, methods, score=score)

    @pytest.mark.parametrize("score", ["squared_error", "absolute_error"])
    @pytest.mark.parametrize("weights", ["uniform", "distance"])
    @pytest.mark.slow
    def test_regressors(self, score, weights):
        for seed, k in ((0, 1), (1, 4)):
            X, y, X_test, y_test = grid(seed, classes=5)
            data = X, y + 0.5 * (np.arange(len(y)) % 2), X_test, y_test + 0.25
            self.check(data, KNeighborsRegressor(k, weights=weights), seed, score=score)

    def test_rows_apart_from_each_other(self):
        rng = np.random.default_rng(5)
        data = rng.normal(size=(30, 3)), rng.integers(3, size=30), rng.normal(size=(9, 3)), rng.integers(3, size=9)
        self.check(data, KNeighborsClassifier(4, weights="distance"), empty=0.1)

    @pytest.mark.filterwarnings("ignore:y_test holds labels")
    @pytest.mark.parametrize("score", ["accuracy", "confidence", "margin", "log_loss"])
    def test_labels_that_no_row_has(self, score):
        X, y, X_test, y_test = grid(3)
        y_test[:2] = 7
        self.check((X, y, X_test, y_test), KNeighborsClassifier(3), score=score)

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
        exact = ls.comparators.knn_shapley(X, y, X_test, y_test, n_neighbors=1).values
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
        with pytest.raises(ls.InvalidArgumentError, match="per_test=True is not supported by method='global-mc'"):
            shapley(method="global-mc", per_test=True)
        for method, kind in (("loo", "exact"), ("random", "no estimate")):
            with pytest.raises(ls.InvalidArgumentError, match=f"method='{method}' is {kind}"):
                shapley(method=method, tol=0.1)
        for wrong in (-0.1, np.inf, "0.1", True):
            with pytest.raises(ls.InvalidArgumentError, match=r"TMC\(tolerance=...\) must be a number of at least 0"):
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


@pytest.mark.parametrize(
    ("method", "limit"),
    [("global-mc", 0.1), ("local-mc", 0.1), ("tmc", 0.5), ("complementary", 0.1)],  # the first block of TMC is larger
)
def test_time_that_is_up_ends_the_first_round_too(method, limit):
    game = Timed(lambda coalition, tests: [float(len(coalition)) ** 0.5] * len(tests), 0.001)
    rule = ls.stopping.RelativeChange(1e-9, every=1000)  # a round of 1,000 draws takes 2 seconds or more
    v = play([range(30)], game, clock=game.clock, seconds_here=0.01, method=method, stop=rule, max_seconds=limit)
    assert f"limit {limit} s" in v.stopped
    assert v.cost.trainings < 1000
    assert v.history is not None
    assert v.values.sum() == pytest.approx(30**0.5, rel=0.2)
    assert np.isfinite(v.stderr).all()


def test_time_that_is_up_before_walks_that_may_end_early_have_ended_is_told():
    game = Timed(lambda coalition, tests: [float(len(coalition)) ** 0.5] * len(tests), 0.001)
    with pytest.raises(ls.InvalidArgumentError, match=r"too short: after \d+ trainings .* no estimate yet. Give"):
        play([range(30)], game, clock=game.clock, method="tmc", max_seconds=0.1)
    assert 0.1 < game.now < 0.15
