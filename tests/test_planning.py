"""The plan: what `value` would do with the same arguments, and what that costs."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
import naive
from localshapley.engine.executor import Executor
from localshapley.engine.forecast import Forecast
from localshapley.methods.sample import SampleRun
from localshapley.models.utility import as_trainer
from localshapley.supports import Everything, Given, Nearest, Random
from playing import Timed

SUPPORTS = [[0, 3, 11], [3, 4], [11, 3, 9, 0], [], [4, 3]]
iris = load_iris()
DATA = (iris.data[::12], iris.target[::12], iris.data[[1, 57, 108, 133, 140]], iris.target[[1, 57, 108, 133, 140]])


class TestPlan:
    arguments = {"model": KNeighborsClassifier(2), "support": Given(SUPPORTS)}  # noqa: RUF012

    def test_the_plan_counts_every_level(self):
        plan = ls.plan(*DATA, **self.arguments)
        assert (plan.n_rows, plan.n_tests, plan.n_games) == (13, 5, 4)
        assert plan.support_sizes.tolist() == [3, 2, 4, 0, 2]
        levels = plan.levels
        assert levels.global_ == 5 * 13 * 2**13
        assert levels.local == sum(len(s) * 2 ** len(s) for s in SUPPORTS) == 104
        assert levels.subset_centric == sum(2 ** len(s) for s in SUPPORTS) == 33
        assert levels.lsmr == len(naive.distinct_subsets(SUPPORTS)) == 18
        assert levels.reused == pytest.approx(1 - 18 / 33)
        assert levels.growth[-1] == (5, 18)

    @pytest.mark.parametrize(
        ("method", "level"), [("exact", "lsmr"), ("subset-centric", "subset_centric"), ("baseline", "local")]
    )
    def test_the_plan_is_what_value_then_trains(self, method, level):
        plan = ls.plan(*DATA, **self.arguments)
        plain = {**self.arguments, "model": ls.models.Estimator(KNeighborsClassifier(2)), "method": method}
        assert ls.value(*DATA, **plain).cost.trainings == getattr(plan.levels, level)
        assert ls.plan(*DATA, **plain).trainings == getattr(plan.levels, level)

    def test_owners_that_are_valued_as_a_whole_are_not_called_rows(self):
        plan = ls.plan(*DATA, model="knn", owners=np.arange(13) % 3)
        assert plan.unit == "owner"
        assert "Plan for 3 owners and 5 test rows" in repr(plan)
        assert " 3 to 3 owners, median 3" in repr(plan)

    def test_the_printed_plan_shows_the_numbers_and_the_methods(self):
        text = repr(ls.plan(*DATA, **self.arguments, score="margin"))
        lines = {line.strip().split("  ")[0]: line for line in text.splitlines() if line.strip()}
        assert "Plan for 13 training rows and 5 test rows" in text
        assert "532,480" in lines["global"]
        assert "104" in lines["local, player by player"]
        assert "method='baseline'" in lines["local, player by player"]
        assert "33" in lines["subset by subset"]
        assert "method='subset-centric'" in lines["subset by subset"]
        assert "18" in lines["each subset once (LSMR)"]
        assert "method='exact'" in lines["each subset once (LSMR)"]
        assert "45.5% of the subsets are reused" in text
        assert "0 to 4 rows, median 2" in text
        assert "4 distinct supports" in text
        assert "KNeighborsClassifier(n_neighbors=2)" in text
        assert "margin" in lines["score"]
        assert "1 of 5 test rows have an empty support" in text
        assert "±" not in text

    def test_a_plan_of_supports_too_large_to_play_is_printed_with_its_error(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(200, 2)), np.arange(200) % 2
        plan = ls.plan(X, y, X[:4], y[:4], model=DecisionTreeClassifier(), support=Random(60))
        assert plan.levels.subset_centric == 4 * 2**60
        assert plan.levels.lsmr_stderr > 0
        assert "4.6e18" in repr(plan)
        assert "(estimated; ± is one standard error)" in repr(plan)

    def test_the_time_of_a_training_is_measured(self):
        game = Timed(lambda coalition, tests: [float(len(coalition)) for _ in tests], 0.02)
        executor = Executor(as_trainer(game), clock=game.clock)
        assert executor.pace(ls.SupportGraph([range(10)]), seed=0) == pytest.approx(0.02)

    @pytest.mark.parametrize("stalled", [1, 2, 7])
    def test_a_moment_in_which_the_machine_did_something_else_does_not_count(self, stalled):
        game = Timed(lambda coalition, tests: [float(len(coalition)) for _ in tests], 0.001)
        calls = iter(range(10**6))

        def stalling(coalition, tests):
            game.now += 0.3 * (next(calls) == stalled)
            return game(coalition, tests)

        executor = Executor(as_trainer(stalling), clock=game.clock)
        assert executor.pace(ls.SupportGraph([range(10)]), seed=0) == pytest.approx(0.001)

    def test_what_cannot_be_told_is_said(self):
        arguments = {**self.arguments, "model": DecisionTreeClassifier(), "support": Everything(), "tol": 0.3}
        plan = ls.plan(*DATA, **arguments)
        few, many = (plan.target.trainings // 2, 2 * plan.target.trainings)
        plan = replace(plan, target=replace(plan.target, trainings_range=(few, many)))
        told = [line.split() for line in repr(plan).splitlines() if line.startswith(("  until", "    at"))]
        assert [line[:3] for line in told[1:]] == [
            ["at", name, f"{n:,}"] for name, n in zip(("least", "most"), plan.target.trainings_range, strict=True)
        ]
        assert told[0][:4] == ["until", "0.3,", "estimated", f"{plan.target.trainings:,}"]
        plan = replace(plan, target=Forecast(0.3, unknown="a training takes too long"))
        assert "  until 0.3                  cannot tell  (a training takes too long)" in repr(plan).splitlines()

    @pytest.mark.parametrize(
        ("settings", "chosen"),
        [
            ({}, "closed form"),
            ({"model": DecisionTreeClassifier()}, "exact: games are so small"),
            ({"model": DecisionTreeClassifier(), "budget": 500}, "exact: the budget allows all 18 distinct subsets"),
            ({"model": DecisionTreeClassifier(), "support": Everything()}, "sampled"),
            ({"model": DecisionTreeClassifier(), "support": Nearest(9)}, "exact: all 992 distinct subsets"),
            ({"method": "loo"}, ""),
            ({"method": "exact", "model": DecisionTreeClassifier()}, ""),
            ({"method": "global-mc", "budget": 400}, ""),
        ],
    )
    def test_it_says_what_value_then_does(self, settings, chosen):
        arguments = {**self.arguments, **settings}
        plan, v = ls.plan(*DATA, **arguments), ls.value(*DATA, **arguments)
        assert plan.chosen.startswith(chosen)
        assert (plan.method, plan.chosen, plan.support, plan.trainer) == (v.method, v.chosen, v.support, v.cost.trainer)
        assert plan.samples == bool(v.stderr.any())
        if plan.classes is not None:
            assert (plan.classes, v.cost.trainings) == (v.cost.distinct, 0)
        elif plan.trainings is not None:
            assert v.cost.trainings == plan.trainings if not plan.samples else v.cost.trainings <= plan.trainings
        assert plan.first_look <= max(v.cost.trainings, 1) or not plan.samples

    def test_it_takes_what_value_takes_and_refuses_what_it_refuses(self):
        names = [set(signature(function).parameters) for function in (ls.plan, ls.value)]
        assert names[0] == names[1]
        with pytest.raises(ls.TooLargeError, match="the budget is 5"):
            ls.plan(*DATA, model=DecisionTreeClassifier(), support=Everything(), method="exact", budget=5)
        with pytest.raises(ls.InvalidArgumentError, match="method must be one of"):
            ls.plan(*DATA, **self.arguments, method="exakt")

    sampled = {"model": DecisionTreeClassifier(random_state=0), "support": Everything(), "tol": 0.05}  # noqa: RUF012

    def test_what_is_tried_out_is_kept_in_a_store_and_counts_as_trainings_to_come(self, tmp_path):
        alone = ls.plan(*DATA, **self.sampled)
        with ls.Store(tmp_path / "run.db", fastest=0) as store:
            first = ls.plan(*DATA, **self.sampled, store=store)
            n_kept = store.info().n_coalitions
            again = ls.plan(*DATA, **self.sampled, store=store)
            v = ls.value(*DATA, **self.sampled, store=store)
            assert n_kept > 100
        assert first.target.trainings == again.target.trainings == alone.target.trainings
        assert again.target.seconds > 0
        assert v.cost.stored >= n_kept

    def test_a_plan_without_sampling_leaves_no_store(self, tmp_path):
        ls.plan(*DATA, **self.arguments, store=tmp_path / "run.db")
        assert not list(tmp_path.iterdir())

    def test_time_that_is_up_leaves_the_plan_without_a_forecast(self):
        plan = ls.plan(*DATA, **self.sampled, max_seconds=1e-9)
        assert plan.target.trainings is None
        assert plan.target.unknown == "max_seconds=1e-09 is over before a first look"
        assert plan.levels.lsmr == ls.plan(*DATA, **self.sampled).levels.lsmr

    def test_ctrl_c_leaves_the_plan_without_a_forecast(self, monkeypatch):
        def interrupted(self):
            raise KeyboardInterrupt
            yield

        monkeypatch.setattr(SampleRun, "begin", interrupted)
        plan = ls.plan(*DATA, **self.sampled, on_interrupt="return")
        assert plan.target.unknown == "it was interrupted"
        assert "cannot tell  (it was interrupted)" in repr(plan)
        with pytest.raises(KeyboardInterrupt):
            ls.plan(*DATA, **self.sampled)

    def test_processes_give_the_same_forecast(self):
        plain = self.sampled | {"model": ls.models.Estimator(DecisionTreeClassifier(random_state=0)), "tol": 0.3}
        one, two = (ls.plan(*DATA, **plain, n_jobs=n).target for n in (1, 2))
        assert one.trainings == two.trainings
        assert one.trainings_range == two.trainings_range

    def test_it_is_that_of_one_seed(self):
        about = {"model": ExtraTreesClassifier(2), "support": Everything(), "method": "sample", "budget": 600}
        plan = ls.plan(*DATA, **about, seeds=3)
        assert plan.trainings == 200
        assert "this is one of 3 runs, one per seed." in plan.notes
        with pytest.raises(ls.InvalidArgumentError, match="seeds=3 needs a model that draws random numbers"):
            ls.plan(*DATA, model="knn", seeds=3)

    def test_all_rows_play_where_the_method_says_so(self):
        plan = ls.plan(*DATA, **self.arguments, method="loo")
        assert plan.support == "Everything()"
        assert plan.trainings == 14
        assert "all of loo" in repr(plan)
