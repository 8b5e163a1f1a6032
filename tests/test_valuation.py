"""The result, its files, the plan, the locality check and the public names."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
import naive
from localshapley.supports import Everything, Given, Nearest, Random

FORMATS = [".parquet"]
SUPPORTS = [[0, 3, 11], [3, 4], [11, 3, 9, 0], [], [4, 3]]
iris = load_iris()
DATA = (iris.data[::12], iris.target[::12], iris.data[[1, 57, 108, 133, 140]], iris.target[[1, 57, 108, 133, 140]])


def valued(index=None, per_test=False, **arguments):
    X, *others = DATA
    X = X if index is None else pd.DataFrame(X, index=index)
    arguments = {"model": KNeighborsClassifier(2), "support": Given(SUPPORTS), **arguments}
    return ls.value(X, *others, per_test=per_test, **arguments)


class TestTable:
    def test_the_frame_holds_what_the_arrays_hold(self):
        v = valued()
        table = v.to_frame()
        assert list(table.columns) == ["value", "stderr", "n_tests"]
        assert table.index.tolist() == list(range(13))
        assert (table["value"] == v.values).all()
        assert (table["stderr"] == 0).all()
        assert table["n_tests"].tolist() == [sum(z in support for support in SUPPORTS) for z in range(13)]

    def test_the_index_of_the_users_table_is_kept(self):
        index = pd.Index([f"row {z}" for z in range(13)], name="flower")
        pd.testing.assert_index_equal(valued(index).to_frame().index, index)

    def test_top_and_bottom_are_sorted_and_keep_the_index(self):
        v = valued(pd.Index(range(100, 113)))
        order = sorted(range(13), key=lambda z: -v.values[z])
        top, bottom = v.top(3), v.bottom(4)
        assert top["value"].tolist() == [v.values[z] for z in order[:3]]
        assert top.index.tolist() == [100 + z for z in order[:3]]
        assert bottom["value"].tolist() == sorted(v.values)[:4]
        assert (v.to_frame().loc[bottom.index, "value"] == bottom["value"]).all()
        assert v.values.max() > v.values.min()

    def test_top_gives_ten_rows_and_never_more_than_there_are(self):
        v = valued()
        assert len(v.top()) == len(v.bottom()) == 10
        assert len(v.top(500)) == 13

    def test_equal_values_stay_in_the_order_of_the_rows(self):
        v = ls.shapley([[0, 1, 2]], lambda c, t: [float(len(c))], 5)
        assert v.top(5).index.tolist() == [0, 1, 2, 3, 4]
        assert v.bottom(5).index.tolist() == [3, 4, 0, 1, 2]


class TestPrinting:
    def test_the_printed_result_says_what_was_done(self):
        model = ls.models.Estimator(KNeighborsClassifier(2))
        text = repr(valued(pd.Index([f"row-{z}" for z in range(13)]), model=model))
        v = valued(model=model)
        assert "exact: no training," in repr(valued())
        for part in (
            "Valuation of 13 training rows over 5 test rows",
            "KNeighborsClassifier(n_neighbors=2)",
            "confidence",
            "0 to 4 rows",
            f"exact: {v.cost.trainings} trainings",
            f"{v.cost.reused} saved by reuse",
            f"(row row-{int(np.argmax(v.values))})",
            f"(row row-{int(np.argmin(v.values))})",
            f"{int((v.values < 0).sum())} below zero",
            "1 of 5 test rows have an empty support",
        ):
            assert part in text

    def test_one_size_is_one_number(self):
        assert "Nearest(n=3): 3 rows" in repr(valued(support=Nearest(3)))


INDEXES = {
    "none": None,
    "numbers": pd.Index(range(50, 63)),
    "named numbers": pd.Index(np.arange(13)[::-1], name="id"),
    "text": pd.Index([f"row {z}" for z in range(13)]),
    "named text": pd.Index([f"zeile {z} ü" for z in range(13)], name="flower"),
    "dates": pd.date_range("2024-01-01", periods=13, name="day"),
    "index named value": pd.Index(range(13), name="value"),
}


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("per_test", [False, True])
@pytest.mark.parametrize("index", INDEXES)
def test_a_saved_valuation_comes_back_the_same(tmp_path, suffix, per_test, index):
    v = valued(INDEXES[index], per_test)
    v.save(tmp_path / f"v{suffix}")
    back = ls.load(tmp_path / f"v{suffix}")
    for name in ("values", "stderr", "n_tests", "support_sizes"):
        assert (getattr(back, name) == getattr(v, name)).all()
        assert getattr(back, name).dtype == getattr(v, name).dtype
    for name in ("method", "model", "score", "support", "stopped", "notes", "cost"):
        assert getattr(back, name) == getattr(v, name)
    assert v.notes
    if per_test:
        assert (back.per_test.toarray() == v.per_test.toarray()).all()
        assert back.per_test.shape == (5, 13)
    else:
        assert back.per_test is None
    if v.ids is None:
        assert back.ids is None
    else:
        assert back.ids.tolist() == v.ids.tolist()
        assert back.ids.name == v.ids.name
    assert repr(back) == repr(v)
    assert back.to_frame().equals(v.to_frame())


@pytest.mark.parametrize("suffix", FORMATS)
def test_rows_with_two_keys_can_be_saved(tmp_path, suffix):
    index = pd.MultiIndex.from_product([["a"], range(13)], names=["file", "line"])
    v = valued(index)
    v.save(tmp_path / f"v{suffix}")
    back = ls.load(tmp_path / f"v{suffix}")
    assert (back.values == v.values).all()
    assert len(back.ids) == 13


def test_a_saved_valuation_knows_whether_its_model_is_random(tmp_path):
    path = tmp_path / "v.parquet"
    replace(valued(), is_random=True).save(path)
    assert ls.load(path).is_random
    table = pq.read_table(path)
    header = json.loads(table.schema.metadata[b"localshapley"])
    del header["is_random"]  # as in a file of an older version
    older = {**table.schema.metadata, b"localshapley": json.dumps(header).encode()}
    pq.write_table(table.replace_schema_metadata(older), path)
    assert not ls.load(path).is_random


@pytest.mark.parametrize("suffix", FORMATS)
def test_text_paths_will_do(tmp_path, suffix):
    valued().save(str(tmp_path / f"v{suffix}"))
    assert (ls.load(str(tmp_path / f"v{suffix}")).values == valued().values).all()


def test_a_parquet_file_opens_as_a_table_anywhere(tmp_path):
    v = valued(pd.Index([f"row {z}" for z in range(13)], name="flower"), per_test=True)
    v.save(tmp_path / "v.parquet")
    table = pd.read_parquet(tmp_path / "v.parquet")
    assert table["value"].tolist() == v.values.tolist()
    assert table.index.tolist() == v.ids.tolist()


@pytest.mark.parametrize("name", ["v.csv", "v", "v.pkl", "v.npz"])
def test_another_suffix_is_refused_by_save_and_load(tmp_path, name):
    with pytest.raises(ls.InvalidArgumentError, match=r"must end in .parquet; got '.*v.*to_frame"):
        valued().save(tmp_path / name)
    assert not (tmp_path / name).exists()
    (tmp_path / name).write_text("x")
    with pytest.raises(ls.InvalidArgumentError, match=r"must end in .parquet"):
        ls.load(tmp_path / name)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_missing_file_is_named(tmp_path, suffix):
    with pytest.raises(ls.InvalidArgumentError, match=f"nothing{suffix}' does not exist"):
        ls.load(tmp_path / f"nothing{suffix}")


def foreign_files():
    buffers = {}
    pd.DataFrame({"a": [1, 2]}).to_parquet(buffer := io.BytesIO())
    buffers["another table.parquet"] = buffer.getvalue()
    for suffix in FORMATS:
        buffers[f"text{suffix}"] = b"value,stderr\n1,2\n"
        buffers[f"nothing{suffix}"] = b""
    return buffers


FOREIGN = foreign_files()


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_of_another_kind_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(FOREIGN[name])
    with pytest.raises(ls.LocalShapleyError, match=r"is not a valuation that this version can read.*Valuation.save"):
        ls.load(tmp_path / name)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.99])
def test_a_truncated_file_is_refused(tmp_path, suffix, share):
    path = tmp_path / f"v{suffix}"
    valued(per_test=True).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ls.LocalShapleyError, match="is not a valuation that this version can read"):
        ls.load(path)


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
        plain = ls.models.Estimator(KNeighborsClassifier(2))
        assert valued(method=method, model=plain).cost.trainings == getattr(plan.levels, level)

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
        assert "(estimated)" in repr(plan)

    def test_the_time_of_a_training_is_measured(self):
        class SlowTree(DecisionTreeClassifier):
            def fit(self, X, y):
                import time

                time.sleep(0.02)
                return super().fit(X, y)

        plan = ls.plan(*DATA, model=SlowTree(), support=Everything(max_size=10))
        assert 0.01 < plan.seconds_per_training < 0.2
        assert "ms a training" in repr(plan)
        assert "DecisionTree" in plan.trainer or "SlowTree" in plan.trainer

    def test_empty_supports_alone_cost_one_training(self):
        plan = ls.plan(*DATA, model="knn", support=Given([[]] * 5))
        assert plan.levels.lsmr == 1
        assert "0 to 0 rows" in repr(plan)


SMALL = (iris.data[::15], iris.target[::15], iris.data[[1, 57, 108]], iris.target[[1, 57, 108]])


class TestLocalityGap:
    def test_the_global_game_has_no_gap_and_no_noise(self):
        found = ls.locality_gap(*SMALL, model=DecisionTreeClassifier(), support=Everything(), budget=500)
        assert found.gap == found.gap_stderr == found.noise == 0
        assert found.rank_correlation == pytest.approx(1)
        assert (found.local == found.global_).all()
        assert found.enough
        assert found.advice == "the support is large enough"

    def test_radius_neighbours_are_exactly_local(self):
        rng = np.random.default_rng(0)
        X, y = rng.uniform(size=(15, 1)), rng.normal(size=15)
        data = (X, y, X[:4] + 0.01, y[:4] + 0.5)
        found = ls.locality_gap(*data, model=RadiusNeighborsRegressor(0.15), budget=500)
        assert found.gap < 1e-12
        assert found.gap_stderr < 1e-12
        assert found.noise < 1e-12
        assert found.enough
        assert np.abs(found.global_).max() > 0.01

    def test_a_support_too_small_shows_a_gap_and_a_larger_one(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(12, 2))
        y = X @ [1.0, 2.0]
        found = ls.locality_gap(X, y, X[:4] + 0.1, y[:4] + 0.3, model=Ridge(0.01), support=Nearest(1), budget=3000)
        assert found.gap > 0.5
        assert found.gap > 4 * found.noise
        assert not found.enough
        assert "supports.Nearest(2)" in found.advice
        assert f"{found.gap:.3f}" in repr(found)
        assert found.advice in repr(found)

    def test_the_gap_shrinks_as_the_support_grows(self):
        gaps = [
            ls.locality_gap(*SMALL, model=DecisionTreeClassifier(), support=Nearest(n), budget=600).gap for n in (1, 10)
        ]
        assert gaps[0] > gaps[1] == 0

    def test_estimates_and_their_errors_agree_with_exact_values_and_other_seeds(self):
        model, support = DecisionTreeClassifier(random_state=0), Nearest(4)
        runs = [
            ls.locality_gap(*SMALL, model=model, support=support, budget=30 * 22 + 1, seed=seed) for seed in range(8)
        ]
        assert {run.permutations for run in runs} == {30}
        local = ls.value(*SMALL, model=model, support=support).values
        everywhere = ls.value(*SMALL, model=model, support=Everything()).values
        for exact, estimates in (
            (local, np.array([run.local for run in runs])),
            (everywhere, np.array([run.global_ for run in runs])),
        ):
            error = estimates.std(axis=0, ddof=1) / np.sqrt(len(runs))
            assert (np.abs(estimates.mean(axis=0) - exact) <= 5 * error + 1e-12).all()
        gap = np.abs(local - everywhere).mean() / np.abs(everywhere).mean()
        seen = np.array([run.gap for run in runs])
        assert np.abs(seen - gap).max() < 5 * np.median([run.gap_stderr + run.noise for run in runs])
        assert 0.3 < np.median([run.gap_stderr for run in runs]) / seen.std(ddof=1) < 3
        assert all(-1 <= run.rank_correlation <= 1 and run.rank_correlation_stderr >= 0 for run in runs)

    def test_the_same_seed_gives_the_same_gap_whatever_the_jobs(self):
        arguments = {"model": DecisionTreeClassifier(), "support": Nearest(3), "budget": 200}
        one, again, two = (ls.locality_gap(*SMALL, **arguments, n_jobs=n) for n in (1, 1, 2))
        assert one.gap == again.gap == two.gap
        assert (one.local == two.local).all()
        assert one.gap != ls.locality_gap(*SMALL, **arguments, seed=1).gap

    def test_the_budget_is_kept_and_the_least_one_is_named(self):
        arguments = {"model": DecisionTreeClassifier(), "support": Given([[0, 1, 2], [0, 1, 2], [4, 5]])}
        least = 2 * (10 + 3 + 2) + 1
        found = ls.locality_gap(*SMALL, **arguments, budget=least)
        assert (found.permutations, found.trainings) == (2, least)
        with pytest.raises(
            ls.InvalidArgumentError, match=f"budget={least - 1} is too small: two permutations take {least} trainings"
        ):
            ls.locality_gap(*SMALL, **arguments, budget=least - 1)

    def test_test_rows_are_sampled_without_repetition(self):
        found = ls.locality_gap(*DATA, model=DecisionTreeClassifier(), support=Nearest(2), n_tests=3, budget=100)
        assert len(found.tests) == 3
        assert sorted(set(found.tests.tolist())) == found.tests.tolist()
        assert set(found.tests.tolist()) <= set(range(5))
        assert "over 3 test rows" in repr(found)


PUBLIC = [
    "CleanClassifier",
    "CleanRegressor",
    "Cost",
    "History",
    "InvalidArgumentError",
    "LocalShapleyError",
    "LocalShapleyWarning",
    "LocalityGap",
    "Plan",
    "Store",
    "StoreError",
    "SupportGraph",
    "TooLargeError",
    "TrainingError",
    "Valuation",
    "baselines",
    "datasets",
    "load",
    "locality_gap",
    "models",
    "plan",
    "report",
    "scores",
    "shapley",
    "stopping",
    "supports",
    "tasks",
    "theory",
    "update",
    "value",
    "value_nodes",
]


def test_the_public_names_are_these():
    assert set(ls.__all__) == set(PUBLIC)
    assert len(ls.__all__) == len(set(ls.__all__))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_with_its_own_name_and_a_docstring(name):
    thing = getattr(ls, name)
    assert thing.__name__.split(".")[-1] == name
    assert thing.__doc__.strip()


def test_dir_lists_the_public_names_and_no_other_name_is_there():
    assert set(PUBLIC) <= set(dir(ls))
    assert ls.__version__
    with pytest.raises(AttributeError, match="no attribute 'valeu'"):
        ls.valeu  # noqa: B018


def test_errors_are_one_family():
    assert issubclass(ls.InvalidArgumentError, ls.LocalShapleyError)
    assert issubclass(ls.TooLargeError, ls.LocalShapleyError)
    assert issubclass(ls.TrainingError, ls.LocalShapleyError)
    assert issubclass(ls.InvalidArgumentError, ValueError)
    assert issubclass(ls.TooLargeError, ValueError)
    assert not issubclass(ls.TrainingError, ValueError)
    assert issubclass(ls.LocalShapleyWarning, UserWarning)
