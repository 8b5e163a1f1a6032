"""What a run will take: limits of time that cannot be kept are told beforehand, targets are foreseen."""

from __future__ import annotations

import contextlib
import re
import warnings

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import localshapley as ls
from localshapley.engine.executor import Executor
from localshapley.engine.forecast import PILOT, until_target
from localshapley.engine.loop import play as play_games
from localshapley.models.utility import as_trainer
from playing import Timed, play, read_limits

N = 40
SUPPORTS = [np.sort(np.random.default_rng(t).choice(N, 11, replace=False)) for t in range(12)]
WEIGHT = np.random.default_rng(0).normal(size=N)


def smooth(coalition, tests):
    return [np.tanh(WEIGHT[list(coalition)].sum() + 0.1 * t) for t in tests]


class Remembering:
    """A store in memory."""

    notes = ()

    def __init__(self):
        self._scores, self.kept = {}, 0

    def look_up(self, coalitions):
        return np.array([self._scores.get(key, np.nan) for key in self._keys(coalitions)])

    def keep(self, coalitions, trained):
        self.kept += len(coalitions)
        self._scores.update(zip(self._keys(coalitions), trained.scores.tolist(), strict=False))

    def _keys(self, coalitions):
        for c in range(len(coalitions)):
            row = tuple(coalitions.coalition(c).tolist())
            for test in coalitions.tests[coalitions.test_indptr[c] : coalitions.test_indptr[c + 1]]:
                yield row, int(test)


class TestMaxSeconds:
    @pytest.mark.parametrize("method", ["sample", "auto"])
    def test_fewer_test_rows_count_where_there_is_no_time_for_all(self, method):
        supports = [np.sort(np.random.default_rng(t).choice(N, 11, replace=False)) for t in range(200)]
        game = Timed(smooth, 0.01)  # for all test rows it takes 10 seconds
        with pytest.warns(ls.LocalShapleyWarning, match=r"all 200 test rows takes .* max_seconds=4, so \d+ of them"):
            found = play(supports, game, N, clock=game.clock, method=method, tol=1e-6, max_seconds=4)
        assert 2 < game.now <= 4 + 4 / 20
        assert found.stopped.endswith("(limit 4 s)")
        (note,) = [note for note in found.notes if "drawn at random" in note]
        played = np.flatnonzero(found.graph.support_sizes)
        assert f"so {len(played)} of them count" in note
        assert len(played) >= 8
        assert (found.stderr > 0).any()
        some = play([row if t in played else [] for t, row in enumerate(supports)], smooth, N, method="exact")
        error = np.linalg.norm(found.values - some.values)
        assert error < 4 * np.linalg.norm(found.stderr)

    def test_what_went_before_counts_too(self):
        supports = [np.sort(np.random.default_rng(t).choice(N, 11, replace=False)) for t in range(200)]
        game = Timed(smooth, 0.01)
        settings = read_limits("sample", tol=1e-6, max_seconds=20)
        executor = Executor(as_trainer(game), max_seconds=20, before=16.0, clock=game.clock)
        with pytest.warns(ls.LocalShapleyWarning, match="drawn at random"):
            play_games(ls.SupportGraph(supports, N), executor, settings)
        assert 1 < game.now <= 4 + 20 / 20

    @pytest.mark.parametrize("settings", [{"method": "sample"}, {"method": "global-mc"}, {"per_test": True}])
    def test_a_first_estimate_that_takes_longer_is_refused_before_it_is_trained(self, settings):
        game = Timed(smooth, 1.0)
        with pytest.raises(ls.InvalidArgumentError, match=r"max_seconds=3 is too short: .* takes \d+ trainings"):
            play(SUPPORTS, game, N, clock=game.clock, **{"method": "auto", "max_seconds": 3, **settings})
        assert game.now <= 5  # those that were timed

    def test_with_a_store_each_run_goes_on_where_the_one_before_ended(self):
        store, found = Remembering(), None
        settings = {"method": "sample", "tol": 0.5, "max_seconds": 10}
        game = Timed(smooth, 1.0)
        with pytest.raises(ls.InvalidArgumentError, match=r"after \d+ trainings there is no estimate yet. They are in"):
            play(SUPPORTS, game, N, clock=game.clock, store=store, **settings)
        for _ in range(20):
            game = Timed(smooth, 1.0)
            with contextlib.suppress(ls.InvalidArgumentError):
                found = play(SUPPORTS, game, N, clock=game.clock, store=store, **settings)
                break
            assert 10 <= game.now <= 14
        assert found is not None
        assert found.cost.stored > 40
        assert store.kept == found.cost.distinct  # none was trained twice

    def test_a_first_moment_that_was_slow_makes_no_false_warning(self):
        game, started = Timed(smooth, 0.001), [True]

        def loading(coalition, tests):
            game.now += 0.5 * (len(started) in (2, 3))  # as trainers do that prepare what later trainings use
            started.append(True)
            return game(coalition, tests)

        with warnings.catch_warnings(action="error"):
            found = play(SUPPORTS, loading, N, clock=game.clock, method="sample", tol=0.5, max_seconds=5)
        assert found.stopped.startswith("relative error")

    @pytest.mark.parametrize("method", ["sample", "auto"])
    @pytest.mark.parametrize("limit", [70.0, 80.0, 90.0])
    def test_the_first_round_is_as_small_as_the_limit_asks_for(self, method, limit):
        game = Timed(smooth, 1.0)  # a first round of the usual size takes 85 trainings
        found = play(SUPPORTS, game, N, clock=game.clock, method=method, tol=1e-6, max_seconds=limit)
        assert found.cost.trainings >= 30
        assert game.now <= limit + limit / 20 + 1
        assert (found.stderr > 0).any()

    def test_all_subsets_are_trained_only_if_there_is_time_for_them(self):
        supports = [range(6), range(3, 9)]  # 120 distinct subsets
        for limit, chosen in ((1000.0, "exact"), (60.0, "sampled")):
            game = Timed(smooth, 1.0)
            found = play(supports, game, N, clock=game.clock, method="auto", max_seconds=limit)
            assert found.chosen.startswith(chosen)
            assert game.now <= limit + limit / 20 + 1

    @pytest.mark.parametrize("limit", [8.0, 20.0])
    def test_batches_are_so_small_that_the_limit_is_kept(self, limit):
        game = Timed(smooth, 0.001)
        play(SUPPORTS, game, N, clock=game.clock, method="sample", tol=1e-9, max_seconds=limit, seconds_here=30.0)
        assert 0.85 * limit <= game.now <= limit * 1.05 + 0.05


class TestUntilTarget:
    def forecast(self, seconds, patience=2.0, supports=SUPPORTS, most=PILOT, busy=1.0, **settings):
        game = Timed(smooth, seconds)
        executor = Executor(as_trainer(game), clock=lambda: busy * game.now, cpu_clock=game.clock)
        graph = ls.SupportGraph(supports, N)
        settings = read_limits(**{"method": "sample", **settings})
        run = settings.method.start(graph, executor, settings)
        return until_target(run, graph, executor, settings, patience, most), game

    def test_a_target_that_is_reached_meanwhile_is_known(self):
        found, _ = self.forecast(1e-5, tol=0.2)
        real = ls.shapley(SUPPORTS, smooth, N, method="sample", tol=0.2)
        assert found.aim == 0.2
        assert found.trainings == real.cost.trainings
        assert found.seconds == pytest.approx(1e-5 * real.cost.trainings)

    @pytest.mark.parametrize("tol", [0.05, 0.1])
    def test_one_that_is_not_is_foreseen_from_the_first_rounds(self, tol):
        found, game = self.forecast(0.01, tol=tol)
        real = ls.shapley(SUPPORTS, smooth, N, method="sample", tol=tol)
        assert real.cost.trainings / 4 < found.trainings < 4 * real.cost.trainings
        assert game.now < 10

    @pytest.mark.parametrize("tol", [0.1, 1e-6])
    def test_games_that_are_enumerated_on_the_way_leave_no_error(self, tol):
        supports = [row[:3] for row in SUPPORTS]
        found, _ = self.forecast(0.001, supports=supports, tol=tol, method="sample")
        assert found.trainings == ls.shapley(supports, smooth, N, method="exact").cost.trainings

    def test_where_a_round_takes_too_long_some_of_the_test_rows_say_it(self):
        supports = [np.sort(np.random.default_rng(t).choice(N, 11, replace=False)) for t in range(60)]
        found, game = self.forecast(0.01, supports=supports, tol=0.1)
        real = ls.shapley(supports, smooth, N, method="sample", tol=0.1)
        assert real.cost.trainings / 3 < found.trainings < 3 * real.cost.trainings
        assert found.trainings_range[0] < real.cost.trainings < found.trainings_range[1]
        assert found.seconds_range[0] < found.seconds < found.seconds_range[1]
        assert game.now < 7
        found, _ = self.forecast(0.02, supports=supports, tol=0.1)  # a quarter of the rows, once
        assert found.trainings is None
        assert found.unknown.endswith("values are still mostly noise")

    def test_how_many_trainings_it_takes_does_not_depend_on_how_busy_the_machine_is(self):
        supports = [np.sort(np.random.default_rng(t).choice(N, 14, replace=False)) for t in range(60)]
        found, _ = self.forecast(1e-6, supports=supports, tol=0.03, most=2000)
        assert found.trainings > 5000
        busy, _ = self.forecast(1e-6, supports=supports, tol=0.03, most=2000, busy=4.0)
        assert (busy.trainings, busy.trainings_range) == (found.trainings, found.trainings_range)
        assert busy.seconds == pytest.approx(4 * found.seconds)
        slow, _ = self.forecast(0.01, supports=supports, tol=0.03, most=2000)
        held, _ = self.forecast(0.01, supports=supports, tol=0.03, most=2000, busy=4.0)
        assert slow.trainings != found.trainings  # seconds of the processor end it, to the next batch
        assert held.trainings == pytest.approx(slow.trainings, rel=0.3)

    def test_a_target_far_beyond_what_was_tried_cannot_be_told(self):
        supports = [np.sort(np.random.default_rng(t).choice(N, 30, replace=False)) for t in range(12)]
        found, _ = self.forecast(1e-6, supports=supports, tol=1e-4, most=500)
        assert found.trainings is None
        assert re.fullmatch(r"it is too far beyond the \d+ trainings of a first try", found.unknown)

    def test_large_supports_leave_no_warning(self):
        supports = [np.sort(np.random.default_rng(t).choice(3000, 2500, replace=False)) for t in range(12)]
        game = Timed(lambda coalition, tests: [np.tanh(len(coalition) / 900 + t) for t in tests], 0.001)
        graph = ls.SupportGraph(supports, 3000)
        executor, settings = Executor(as_trainer(game), clock=game.clock, cpu_clock=game.clock), read_limits("sample")
        run = settings.method.start(graph, executor, settings)
        with np.errstate(over="raise", divide="raise", invalid="raise"), warnings.catch_warnings(action="error"):
            until_target(run, graph, executor, settings)

    def test_where_next_to_nothing_can_be_trained_it_says_that_it_cannot_tell(self):
        found, game = self.forecast(1.0)
        assert (found.trainings, found.seconds, found.trainings_range, found.seconds_range) == (None,) * 4
        assert found.unknown == "the 85 trainings of a first look are too many to try out"
        assert game.now < 7

    def test_without_a_target_there_is_nothing_to_foresee(self):
        assert self.forecast(1e-5, budget=200)[0] is None
        assert self.forecast(1e-5, method="auto", supports=[range(3)])[0] is None


class TestToldBeforehand:
    def said(self, capsys, seconds, supports=SUPPORTS, **settings):
        game = Timed(smooth, seconds)
        settings = {"clock": game.clock, "progress": True, "method": "sample", **settings}
        play(supports, game, N, **settings)
        return [line for line in capsys.readouterr().err.splitlines() if "trainings of" in line]

    def test_a_run_of_more_than_a_minute_says_what_it_takes_and_what_would_be_faster(self, capsys):
        (line,) = self.said(capsys, 1.0, tol=0.9)
        assert line.startswith(
            "localshapley: 85 trainings of 1.0 s take about 85.0 s until the first estimate; faster: "
        )
        assert line.endswith("smaller supports (max_size=10), fewer test rows; max_seconds=60 ends it by then.")
        (line,) = self.said(capsys, 1.0, supports=[range(8)], method="exact")
        assert "256 trainings of 1.0 s take about 4.3 min; faster: sampling (method='auto', tol=0.1)" in line
        (line,) = self.said(capsys, 1.0, tol=0.05, budget=100)
        assert "100 trainings" in line
        assert "a larger tol than 0.05" in line

    def test_a_short_one_says_nothing(self, capsys):
        assert self.said(capsys, 0.5, tol=0.9) == []
        assert self.said(capsys, 1.0, tol=0.9, progress=False) == []
        assert self.said(capsys, 1.0, tol=0.9, progress=lambda done, total: None) == []

    def test_the_plan_says_the_same(self):
        X, y, X_test, y_test, _ = ls.datasets.load("iris")
        model = ls.models.Refit(make_pipeline(StandardScaler(), GaussianNB()))
        plan = ls.plan(X, y, X_test, y_test, model=model, support=ls.supports.Nearest(30), budget=10**9)
        for text in ("without Refit", "a compiled model", "n_jobs=-1", "max_size=10"):
            assert text in plan.faster
        assert plan.faster in repr(plan)
        assert ls.plan(X, y, X_test, y_test, model="knn").faster == ""
