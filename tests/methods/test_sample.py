"""The sampled estimator: unbiased, calibrated, exact in the end, the same bits every time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import localshapley as ls
import naive
from localshapley.engine.executor import Executor
from localshapley.methods import Auto, Sample
from localshapley.methods.sample import SampleRun
from localshapley.models.utility import as_trainer
from localshapley.sampling.crossfit import CrossFit
from localshapley.sampling.tuning import QUICK, TUNED, Tuning
from playing import play, pose, read_limits

N = 9
any_supports = st.lists(st.lists(st.integers(0, N - 1), unique=True, max_size=6), min_size=1, max_size=7)


def unequal_supports(sizes=(2, 3, 4, 5, 6, 7), n_players=10, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.choice(n_players, size=k, replace=False) for k in sizes]


def estimates(method, kind, budget, n_seeds, supports=None, n_players=10, **how):
    supports = unequal_supports() if supports is None else supports
    game = naive.HashedGame(kind, n_players, len(supports))
    exact = ls.shapley(supports, game, n_players).values
    runs = [ls.shapley(supports, game, n_players, method=method, budget=budget, seed=s, **how) for s in range(n_seeds)]
    return exact, np.array([v.values for v in runs]), np.array([v.stderr for v in runs]), runs


def bias(exact, values):
    """Mean error of each player in units of its own standard error."""
    spread = values.std(axis=0, ddof=1)
    moving = spread > 1e-9
    return ((values.mean(axis=0) - exact) / (spread / np.sqrt(len(values)) + 1e-300))[moving]


class TestUnbiased:
    """Mean of many seeds within four of its own standard errors, for every player, on six unequal supports."""

    @pytest.mark.parametrize(("kind", "budget"), [("rough", 45), ("smooth", 45), ("0/1", 90)])
    def test_sample(self, kind, budget):
        exact, values, _, _ = estimates("sample", kind, budget, 200)
        assert np.abs(bias(exact, values)).max() < 4

    @pytest.mark.parametrize("kind", ["rough", "0/1"])
    def test_one_game_with_a_process_over_its_subsets(self, kind):
        game = naive.HashedGame(kind, 6, 1)
        exact = ls.shapley([range(6)], game, 6, method="exact").values
        values = [ls.shapley([range(6)], game, 6, method="sample", budget=44, seed=seed).values for seed in range(200)]
        assert np.abs(bias(exact, np.array(values))).max() < 4

    @pytest.mark.long
    @pytest.mark.parametrize(("kind", "budget"), [("rough", 45), ("smooth", 45), ("0/1", 90)])
    def test_sample_over_2000_seeds(self, kind, budget):
        exact, values, _, _ = estimates("sample", kind, budget, 2000)
        assert np.abs(bias(exact, values)).max() < 4

    @pytest.mark.parametrize("kind", ["rough", "0/1"])
    def test_with_the_settings_of_quick_trainers(self, kind):
        exact, values, _, _ = estimates(Sample(QUICK), kind, 90, 200)
        assert np.abs(bias(exact, values)).max() < 4

    @pytest.mark.parametrize("tuning", [TUNED, QUICK])
    @pytest.mark.parametrize("goal", [{"stop": ls.stopping.Trainings(300)}, {"tol": 0.1}])
    def test_several_rounds_together(self, tuning, goal):
        supports = unequal_supports((8, 9, 10, 11, 12), 30)
        exact, values, stderr, runs = estimates(Sample(tuning), "smooth", None, 80, supports, 30, **goal)
        assert all(len(v.history.trainings) > 3 for v in runs)
        assert np.abs(bias(exact, values)).max() < 4
        moving = stderr > 0
        assert 0.92 <= (np.abs(values - exact) <= 1.96 * stderr)[moving].mean() <= 0.98

    def test_auto(self):
        exact, values, _, _ = estimates(Auto(easy=0), "rough", 60, 200)
        assert np.abs(bias(exact, values)).max() < 4

    @pytest.mark.parametrize("n_seeds", [300, pytest.param(2000, marks=pytest.mark.long)])
    def test_pivot(self, n_seeds):
        exact, values, _, _ = estimates("pivot", "rough", 60, n_seeds)
        assert np.abs(bias(exact, values)).max() < 4

    @pytest.mark.filterwarnings("ignore::localshapley.LocalShapleyWarning")
    @pytest.mark.slow
    def test_pivot_as_printed_is_not(self):
        exact, values, _, _ = estimates("pivot-printed", "rough", 60, 400)
        assert np.abs(bias(exact, values)).max() > 6

    def test_pivot_as_printed_warns_where_sizes_differ_and_only_there(self):
        with pytest.warns(ls.LocalShapleyWarning, match="biased where supports differ in size"):
            ls.shapley([[0, 1], [1, 2, 3]], naive.HashedGame("rough", 4, 2), 4, method="pivot-printed", budget=10)
        ls.shapley([[0, 1], [1, 2]], naive.HashedGame("rough", 4, 2), 4, method="pivot-printed", budget=7)


class TestCalibrated:
    """95 % intervals cover 92 to 98 % of the values."""

    @pytest.mark.parametrize("kind", ["smooth", "rough", "0/1"])
    @pytest.mark.parametrize("overlap", ["tight", "loose"])
    @pytest.mark.parametrize("draws", ["few", pytest.param("many", marks=pytest.mark.long)])
    def test_coverage(self, kind, overlap, draws):
        n_players = 14 if overlap == "tight" else 60
        rng = np.random.default_rng(5)
        supports = [rng.choice(n_players, size=rng.integers(6, 12), replace=False) for _ in range(15)]
        budget = 120 if draws == "few" else 1200
        exact, values, stderr, _ = estimates("sample", kind, budget, 80, supports, n_players)
        sampled = stderr > 0
        covered = (np.abs(values - exact) <= 1.96 * stderr)[sampled].mean()
        assert 0.92 <= covered <= 0.98

    def test_own_error_is_the_true_error(self):
        exact, values, stderr, _ = estimates("sample", "smooth", 300, 100, unequal_supports((8, 9, 10, 11, 12), 30), 30)
        true = np.sqrt(np.mean(np.sum((values - exact) ** 2, axis=1)))
        own = np.sqrt(np.mean(np.sum(stderr**2, axis=1)))
        assert 0.9 < own / true < 1.25

    def test_never_zero_where_something_was_sampled(self):
        v = ls.shapley([range(12)], lambda c, t: [1.0 if len(c) else 0.0], method="sample", budget=60)
        assert (v.stderr > 0).all()

    def test_zero_where_nothing_was(self):
        supports = [[0, 1, 2], range(10, 24)]
        v = ls.shapley(supports, naive.HashedGame("rough", 25, 2), 25, method="sample", budget=600)
        assert (v.stderr[:3] == 0).all()
        assert (v.stderr[10:24] > 0).all()
        assert v.values[5] == v.stderr[5] == 0


class TestExactInTheEnd:
    @given(any_supports, st.integers(0, 3))
    def test_a_budget_for_every_subset_gives_lsmr(self, supports, seed):
        game = naive.HashedGame("rough", N, len(supports), seed)
        exact = ls.shapley(supports, game, N)
        sampled = ls.shapley(supports, game, N, method="sample", budget=exact.cost.trainings)
        np.testing.assert_allclose(sampled.values, exact.values, atol=1e-10)
        assert (sampled.stderr == 0).all()
        assert sampled.stopped == "every subset trained"

    @given(any_supports, st.integers(0, 3))
    @example([[0], [0, 1, 2, 3, 4, 6], [0, 1, 2, 3, 4, 5]], 2)  # the games draw the last subsets for each other
    def test_rounds_that_run_out_of_subsets_give_lsmr(self, supports, seed):
        game = naive.HashedGame("rough", N, len(supports), seed)
        exact = ls.shapley(supports, game, N)
        sampled = ls.shapley(supports, game, N, method="sample", tol=1e-12)
        np.testing.assert_allclose(sampled.values, exact.values, atol=1e-10)
        assert (sampled.stderr == 0).all()
        assert sampled.cost.trainings == exact.cost.trainings

    def test_auto_is_exact_where_that_is_easy(self):
        v = ls.shapley([range(10), range(5, 15)], naive.HashedGame("rough", 15, 2), method="auto")
        assert v.cost.trainings == 2 * 2**10 - 2**5
        assert (v.stderr == 0).all()

    def test_auto_takes_small_games_whole_and_samples_large_ones_in_one_run(self):
        supports = [range(4), range(2, 7), range(10, 40)]
        v = ls.shapley(supports, naive.HashedGame("smooth", 40, 3), method="auto", tol=0.05)
        assert (v.stderr[:7] == 0).all()
        assert (v.stderr[10:] > 0).all()
        assert v.relative_error <= 0.05


@given(any_supports, st.integers(0, 3), st.integers(25, 60))
def test_efficiency_holds_for_samples_too(supports, seed, budget):
    game = naive.HashedGame("rough", N, len(supports), seed)
    v = ls.shapley(supports, game, N, method="sample", budget=budget, per_test=True)
    exact = ls.shapley(supports, game, N, per_test=True)
    np.testing.assert_allclose(v.per_test.sum(axis=1), exact.per_test.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(v.per_test.sum(axis=0), v.values, atol=1e-9)


class TestSameBits:
    supports = unequal_supports((8, 9, 10, 11), 20)

    def play(self, **how):
        return play(self.supports, naive.as_utility(naive.rough_utility(1)), 20, method="sample", budget=150, **how)

    def test_for_every_number_of_jobs(self):
        one, two = self.play(), self.play(n_jobs=2)
        assert (one.values == two.values).all()
        assert (one.stderr == two.stderr).all()

    @pytest.mark.parametrize("size", [1, 7, 1000])
    def test_for_every_batch_size(self, size):
        one, other = self.play(), self.play(max_batch=size, seconds_here=1e9)
        assert (one.values == other.values).all()
        assert (one.stderr == other.stderr).all()

    def test_and_others_for_another_seed(self):
        assert (self.play().values != self.play(seed=1).values).any()


@pytest.mark.parametrize("budget", [30, 60, 200, 600])
@pytest.mark.parametrize("per_test", [False, True])
def test_budgets_are_kept_and_no_coalition_is_trained_twice(budget, per_test):
    supports = unequal_supports()
    for seed in range(20):
        game = naive.HashedGame("rough", 10, 6)
        v = ls.shapley(supports, game, 10, method="sample", budget=budget, seed=seed, per_test=per_test)
        assert len(game.trained) == len(set(game.trained)) == v.cost.trainings <= budget


class TestAgainstTheFormulas:
    """One round against a twin that follows the formulas with dense matrices."""

    @pytest.mark.parametrize("seed", range(4))
    def test_values_of_each_fold(self, seed):
        supports = unequal_supports((3, 4, 6, 7, 7, 8), 12, seed)
        executor = Executor(as_trainer(naive.HashedGame("smooth", 12, 6)))
        run = SampleRun(ls.SupportGraph(supports, 12), executor, read_limits("sample", seed=seed), "sample")
        list(run.begin())
        sharp = Tuning(max_steps=500, nearness_steps=500, precision=1e-24)
        learnt = None  # where a fit starts makes no difference in the end
        for draws in (40, 60):
            assert run.draw_round(draws, 1000)
            list(run.train())
            run.estimate()
            fit = CrossFit(run.drawn, sharp, learnt)
            learnt = fit.learnt
            for fold in range(run.drawn.n_folds):
                expected = naive.fold_estimate(run.drawn, fold, sharp)
                np.testing.assert_allclose(fit.values[fold], expected, atol=1e-8)

    def test_a_fit_starts_where_another_ended(self):
        supports = unequal_supports((9, 9, 10, 10), 14, 0)
        executor = Executor(as_trainer(naive.HashedGame("smooth", 14, 4)))
        run = SampleRun(ls.SupportGraph(supports, 14), executor, read_limits("sample", seed=0), "sample")
        list(run.begin())
        for draws in (80, 200):
            assert run.draw_round(draws, 1000)
            list(run.train())
            run.estimate()
        one_step = Tuning(max_steps=1)
        from_nothing, from_before = (
            np.linalg.norm(CrossFit(run.drawn, one_step, before).learnt.fitted[1] - run.so_far.fit.learnt.fitted[1])
            for before in (None, run.so_far.fit.learnt)
        )
        assert from_before < 0.5 * from_nothing


class TestSettings:
    @pytest.mark.parametrize("method", [Sample, lambda tuning=None: Auto(easy=0, tuning=tuning)])
    def test_by_what_a_training_takes_unless_they_are_given_or_there_is_but_a_budget(self, method):
        trainer, graph = as_trainer(naive.HashedGame("smooth", 14, 2)), ls.SupportGraph([range(12), range(2, 14)], 14)

        def chosen(how, **goal):
            return how.start(graph, Executor(trainer), read_limits("sample", **(goal or {"tol": 0.5}))).tuning

        assert chosen(method()) is TUNED
        trainer.is_quick = True
        assert chosen(method()) is QUICK
        assert chosen(method(TUNED)) is TUNED
        assert chosen(method(), budget=900) is TUNED  # which is to go as far as it can
        assert chosen(method(), budget=900, tol=0.5) is QUICK

    def test_compiled_models_are_quick_and_forests_are_not(self):
        from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC

        X, y, X_test, y_test, _ = ls.datasets.load("iris")
        forests = RandomForestClassifier(3, random_state=0), BaggingClassifier(n_estimators=3, random_state=0)
        for model, is_quick in ((SVC(), True), *((forest, False) for forest in forests)):
            assert pose(X, y, X_test, y_test, model=model).trainer.is_quick == is_quick
            for last in (model, make_pipeline(StandardScaler(), model)):  # one trainer, and one for each fold
                assert pose(X, y, cv=3, model=last).trainer.is_quick == is_quick
            # Owners join with all their rows at once.
            assert not pose(X, y, X_test, y_test, model=model, owners=y).trainer.is_quick

    def test_networks_and_heads_are_not(self):
        pytest.importorskip("torch")
        from localshapley.models import HeadTrainer, NetworkTrainer

        assert not HeadTrainer.is_quick
        assert not NetworkTrainer.is_quick

    def test_are_named_by_what_was_changed(self):
        assert Sample(Tuning(n_folds=2)).title == "Sample(tuning=Tuning(n_folds=2))"
        assert Sample().title == "sample"

    def test_later_rounds_count_more(self):
        graph = ls.SupportGraph([range(30), range(10, 40)], 40)
        trainer = as_trainer(naive.HashedGame("smooth", 40, 2))
        run = SampleRun(
            graph, Executor(trainer), read_limits("sample", tol=0.01), "sample", Tuning(later=0.4, ends_share=0)
        )
        list(run.begin())
        for draws in (60, 120, 240):
            run.draw_round(draws, np.inf)
            list(run.train())
            run.estimate()
        shares, draws = run.so_far.weights(), np.array([r.draws for r in run.so_far.rounds])
        expected = draws * np.cumsum(draws) ** 0.4 * [0, 1, 1]
        assert shares[0] == 0
        assert shares == pytest.approx(expected / expected.sum(), rel=0.02)


class TestLargeSupports:
    def test_one_game_learns_first_unless_it_has_a_process(self):
        for n, n_rounds in ((40, 1), (41, 2)):
            game = naive.HashedGame("smooth", n, 1)
            v = ls.shapley([range(n)], game, n, method="sample", budget=800)
            assert len(v.history.trainings) == n_rounds
            assert v.cost.trainings <= 800

    @pytest.mark.parametrize("n", [1, 2, 3, 64, 65, 500, 1500, 5000])
    def test_an_additive_game_of_any_size(self, n):
        worth = np.random.default_rng(0).random(n)

        class Additive:
            name = "additive"

            def evaluate(self, coalitions):
                sums = [worth[coalitions.coalition(c)].sum() for c in range(len(coalitions))]
                return np.repeat(sums, np.diff(coalitions.test_indptr))

        v = ls.shapley([np.arange(n)], Additive(), n, method="sample", budget=400)
        assert np.isfinite(v.values).all()
        assert np.isfinite(v.stderr).all()
        np.testing.assert_allclose(v.values.sum(), worth.sum(), rtol=1e-9)
        if n <= 64:
            np.testing.assert_allclose(v.values, worth, atol=0.25)

    def test_overlapping_supports_of_thousands(self):
        rng = np.random.default_rng(1)
        supports = [rng.choice(6000, size=size, replace=False) for size in (5000, 3000, 1200, 40)]
        v = ls.shapley(supports, naive.HashedGame("smooth", 6000, 4), 6000, method="sample", budget=300)
        assert np.isfinite(v.values).all()
        assert np.isfinite(v.stderr).all()
        assert v.cost.trainings <= 300
