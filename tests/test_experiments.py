"""The experiments run, and their results have the shape and the sense that their pages claim."""

from __future__ import annotations

import functools
import importlib
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import localshapley as ls
from localshapley.notes import Note
from localshapley.stopping import Estimate

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


def experiment(name):
    """The module of an experiment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXPERIMENTS))
        return importlib.import_module(name)


@pytest.fixture(scope="module")
def shifted(tmp_path_factory):
    """Folder with the results of the quick run."""
    pytest.importorskip("matplotlib")
    out = tmp_path_factory.mktemp("results")
    experiment("distribution_shift").main(["--quick", "--out", str(out)])
    return out


@pytest.fixture(scope="module")
def table(shifted):
    return pd.read_csv(shifted / "distribution_shift.csv")


@pytest.mark.slow
def test_the_shift_experiment_has_a_row_for_each_model_shift_and_estimator(table):
    keys = table[["model", "shift", "estimator"]]
    assert len(table) == 2 * 2 * 3
    assert not keys.duplicated().any()
    assert set(table["estimator"]) == {"permutations", "pivot", "sample"}
    assert set(table["shift"]) == {0.0, 4.0}


@pytest.mark.slow
def test_variances_are_finite_and_positive_and_budgets_kept(table):
    for side in ("global", "local"):
        assert np.isfinite(table[f"variance_{side}"]).all()
        assert (table[f"variance_{side}"] > 0).all()
        assert table[f"trainings_{side}"].between(1600, 2000).all()
    np.testing.assert_allclose(table["ratio"], table["variance_global"] / table["variance_local"], rtol=1e-4)


@pytest.mark.slow
def test_supports_within_a_radius_shrink_with_the_shift_and_nearest_ones_do_not(table):
    support = table.groupby(["model", "shift"])["support"].first()
    assert support["radius", 4.0] < support["radius", 0.0] / 4
    assert support["knn", 4.0] == support["knn", 0.0] == 10


@pytest.mark.slow
def test_at_the_largest_shift_local_sampling_has_the_smaller_variance_at_equal_trainings(table):
    far = table[(table["shift"] == 4) & table["estimator"].isin(["pivot", "sample"])]
    assert len(far) == 4
    assert (far["ratio"] - 4 * far["ratio_stderr"] > 1).all()
    radius = table[table["model"] == "radius"].pivot(index="estimator", columns="shift", values="ratio")
    assert (radius[4.0] > 2 * radius[0.0]).all()


@pytest.mark.slow
def test_without_shift_large_local_games_have_the_larger_variance(table):
    near = table[(table["shift"] == 0) & (table["model"] == "radius") & (table["estimator"] != "pivot")]
    assert (near["ratio"] + 4 * near["ratio_stderr"] < 1).all()


@pytest.mark.slow
def test_a_draw_of_an_exactly_local_model_varies_no_more_globally_than_locally(table):
    own = table[(table["model"] == "radius") & (table["estimator"] == "permutations")]
    assert (np.abs(own["ratio_per_draw"] - 1) < 5 * own["ratio_per_draw_stderr"]).all()
    assert (own["ratio_per_draw_stderr"] < 0.05).all()


@pytest.mark.slow
def test_the_page_has_its_command_and_the_plots_are_there(shifted):
    page = (shifted / "distribution_shift.md").read_text(encoding="utf-8")
    assert "python experiments/distribution_shift.py --quick" in page
    assert page.count("\n| ") == 1 + 4  # a line for each model and shift
    assert "nan" not in page
    assert (shifted / "distribution_shift.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert (shifted / "distribution_shift.png").stat().st_size > 10_000


QUICK = {
    "rq1_fidelity": ["workload", "pearson", "spearman", "ceiling"],
    "rq2_selection": ["workload", "method", "at 5 %", "at 10 %", "at 20 %", "mean of curve"],
    "rq3_cost": ["workload", "method", "to the rule (s)", "error then", "to error 0.1 (s)"],
    "scaling": ["model", "method", "rows", "seconds", "evaluations"],
    "rq4_support_size": ["support", "at 10 %", "at 20 %"],
    "rq5_alignment": ["workload", "support", "pearson", "spearman"],
    "ablation": ["workload", "mechanism", "error"],
    "reuse": ["workload", "test rows", "distinct", "reused"],
    "noise": ["data", "model", "method", "average precision"],
    "cora": ["method", "at 5 %", "at 10 %"],
    "attempts": ["workload", "attempt", "low", "high"],
}


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The table of an experiment's quick run, made once."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("torch")
    out = tmp_path_factory.mktemp("quick")
    tables = {}

    def table_of(name):
        if name not in tables:
            experiment(name).main(["--quick", "--out", str(out)])
            page = (out / f"{name}.md").read_text(encoding="utf-8")
            assert f"python experiments/{name}.py --quick" in page
            assert (out / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")
            assert (out / f"{name}.png").stat().st_size > 5000
            tables[name] = pd.read_csv(out / f"{name}.csv")
            for column in QUICK[name]:
                assert tables[name][column].notna().all(), column
        return tables[name]

    return table_of


@pytest.mark.slow
def test_local_values_go_with_global_ones(quick):
    table = quick("rq1_fidelity").set_index("workload")
    assert len(table) == 4 + 1  # and the paper's games, on a graph
    rows = table[~table.index.str.startswith("GCN")]  # quick global values are too noisy for more than that
    assert rows["pearson"].mean() > 0.3
    assert rows["pearson"].between(-0.2, 1).all()
    assert (table["ceiling"] <= 1).all()


@pytest.mark.slow
def test_values_select_better_than_chance(quick):
    table = quick("rq2_selection")
    assert len(table) == 4 * 9 + 1  # seven methods, two of them also balanced; and the paper's games, on a graph
    mean = table[~table["workload"].str.startswith("GCN")].groupby("method")[["mean of curve", "best gone"]].mean()
    assert mean.loc["LSMR-A", "mean of curve"] > mean.loc["random", "mean of curve"]
    assert mean.loc["LSMR-A", "best gone"] < mean.loc["random", "best gone"]
    numbers = table[["at 5 %", "at 10 %", "at 20 %", "worst gone", "best gone"]].to_numpy()
    assert numbers.min() >= 0
    assert numbers.max() <= 100


@pytest.mark.slow
def test_ours_needs_the_fewest_trainings(quick):
    table = quick("rq3_cost")
    assert len(table) == 4 * 6 + 1  # and exact values of weighted KNN
    sampled = table[table["method"] != "LSMR (exact)"]
    needed = sampled.pivot(index="workload", columns="method", values="trainings to error 0.1")
    assert needed["LSMR-A"].notna().all()
    others = needed.drop(columns="LSMR-A").fillna(np.inf)  # so far off that it cannot be said
    assert (others.min(axis=1) > 1.5 * needed["LSMR-A"]).all()
    ours = sampled[sampled["method"] == "LSMR-A"]
    plain = ours[~ours["workload"].str.startswith("GCN")]["with scikit-learn (s)"]
    assert plain.str.endswith("*").all()  # always extrapolated
    assert (plain.str.rstrip("*").astype(float) > 0).all()


def test_cost_to_the_papers_rule_is_extrapolated_by_the_change():
    common = experiment("common")
    draws = 1 + 12 * np.random.default_rng(0).normal(size=(20_000, 50))  # of 50 players, three trainings each
    draws[:, :20] = 0  # players of no value change nothing, and count in the mean
    means = np.cumsum(draws, axis=0)[99::100] / np.arange(100, 20_001, 100)[:, None]  # at every look

    def value(stop, budget, method):
        n_looks, stopped = budget // 300, Note("budget-spent", f"budget of {budget:,} trainings")
        for k in range(n_looks):
            previous = means[k - 1] if k else None
            n = 100 * (k + 1)
            look = SimpleNamespace(
                values=means[k],
                stderr=means[k] / 9,
                previous=previous,
                trainings=3 * n,
                draws_per_game=n,
                draws_since=100,
                seconds=0.1 * n,
                relative_error=1 / np.sqrt(n),
            )
            if stop.holds(look):
                n_looks, stopped = k + 1, stop.reached(look)
                break
        cost = SimpleNamespace(trainings=300 * n_looks, draws=3000 * n_looks, seconds=10.0 * n_looks)
        return SimpleNamespace(stopped=stopped, cost=cost, values=means[k], relative_error=0.1)

    def cost(limit, **also):
        return common.to_the_rule(value, round(limit), method="global-mc", **also)

    whole, part, little = (cost(limit)[0] for limit in (60_000, 1200, 300))
    assert not whole.extrapolated
    assert part.extrapolated
    assert part.trainings == pytest.approx(whole.trainings, rel=0.3)
    assert np.isnan(little.trainings)
    given_up, run = cost(whole.trainings / 2)
    assert given_up.extrapolated
    assert run.trainings == 1500  # as soon as it can be said
    assert given_up.trainings == pytest.approx(whole.trainings, rel=0.3)
    assert cost(1.1 * whole.trainings)[0].trainings == whole.trainings


def test_early_predictions_must_be_far_off_to_give_up():
    common = experiment("common")

    def needed(trainings):
        return common.OutOfReach(40_000, lambda look: trainings / look.trainings)

    for trainings, at, gives_up in (
        (500_000, 1900, False),  # of 40,000: nothing is said before a twentieth
        (170_000, 2100, True),
        (150_000, 2100, False),
        (150_000, 10_100, True),
        (55_000, 15_000, False),  # within 1.5 times: it might still be met
        (55_000, 30_000, True),
    ):
        assert needed(trainings).holds(SimpleNamespace(trainings=at)) == gives_up


def test_one_run_tells_what_two_targets_take():
    common = experiment("common")
    X, y, X_test, y_test = ls.datasets.load("iris")[:4]
    value = functools.partial(ls.value, X, y, X_test[:5], y_test[:5], model="knn", score="accuracy", progress=False)
    settings = {"method": "local-mc", "support": ls.supports.Nearest(6)}
    aim = ls.stopping.RelativeError(0.02)
    never = common.OutOfReach(10**9, lambda look: 1.0)
    rule, other = common.to_the_rule(value, 10**6, also=(aim, never), **settings)
    assert not rule.extrapolated
    assert not other.extrapolated
    assert rule.trainings == common.to_the_rule(value, 10**6, **settings)[0].trainings
    assert other.relative_error <= 0.02
    assert other.trainings > rule.trainings
    assert other.evaluations / other.trainings == pytest.approx(rule.evaluations / rule.trainings)
    rule, other = common.to_the_rule(value, 10**6, also=(aim, common.OutOfReach(1000, lambda look: 1e9)), **settings)
    assert not rule.extrapolated
    assert other.extrapolated  # and the run ends with the rule
    assert other.trainings == rule.trainings


def test_looks_come_in_pairs_and_lie_far_apart_after_many_draws():
    common = experiment("common")
    never = common.OutOfReach(10**9, lambda look: 1.0)
    close, any_time = ls.stopping.RelativeChange(1e-12), ls.stopping.RelativeError(1e-12)
    rule = common.Firsts({"close": (close, never), "any": (any_time, never)})
    assert rule.step == 100

    def step_after(draws, since):
        one = np.ones(2)
        look = Estimate(one, one, np.ones((2, 2)), 0 * one, draws, since, trainings=2000, seconds=0.0)
        assert not rule.holds(look)
        return rule.step

    assert step_after(500, 100) == 100  # a tenth would be less
    assert step_after(2000, 100) == 200
    assert step_after(2200, 200) == 100  # the second of a pair
    rule.at["close"] = None
    assert step_after(2000, 100) == step_after(2000, 200) == 200  # nothing asks for looks close to each other


def test_what_is_timed_has_been_run_for_a_moment_before():
    calls = []

    def value(**settings):
        calls.append(settings)
        return len(calls)

    seconds, found = experiment("common").timed(value, {"budget": 2}, budget=100, seed=1)
    assert calls == [{"budget": 2, "seed": 1}, {"budget": 100, "seed": 1}]
    assert found == 2
    assert seconds >= 0


@pytest.mark.parametrize(("n", "shape"), [(1, (1, 1)), (2, (1, 2)), (3, (2, 2)), (4, (2, 2))])
def test_a_figure_has_no_more_columns_than_panels(n, shape):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = experiment("common").panels(figure, n)
    assert len(axes) == n
    assert axes[0].get_subplotspec().get_geometry()[:2] == shape


def test_a_page_depends_on_the_sources_that_compute_it(tmp_path, monkeypatch):
    keep = experiment("keep")
    monkeypatch.setattr(keep, "SOURCES", tmp_path)
    for name in ("engine.py", "report/page.py", "opendataval.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n")
    before = keep.fingerprint("noise", [])
    for name in ("report/page.py", "opendataval.py"):
        (tmp_path / name).write_text("2\n")
    assert keep.fingerprint("noise", []) == before
    (tmp_path / "engine.py").write_text("2\n")
    assert keep.fingerprint("noise", []) != before


def test_what_was_computed_is_kept_until_it_is_forgotten(tmp_path, monkeypatch):
    keep = experiment("keep")
    monkeypatch.setattr(keep, "KEPT", tmp_path / "results")
    calls = []

    def work():
        calls.append(1)
        return {"values": np.array([0.1, 1 / 3]), "seconds": 0.5, "words": "some"}

    path = keep.folder_of("noise", ["a"]) / "one.json"
    assert path != keep.folder_of("noise", ["b"]) / "one.json"
    for _ in range(2):
        assert keep.kept(path, work) == {"values": [0.1, 1 / 3], "seconds": 0.5, "words": "some"}
    assert len(calls) == 1
    keep.forget()
    keep.kept(path, work)
    assert len(calls) == 2


def test_accuracy_of_networks_that_never_saw_a_class():
    pytest.importorskip("torch")
    graph, models = experiment("graph"), ls.models
    _, _, y, train, test = graph.communities()
    # All of three classes, two, one.
    sets = [np.arange(len(train)), np.flatnonzero(y[train] != 2), np.flatnonzero(y[train] == 1)]
    everyone, two, alone = graph.accuracies_of(graph.communities(), sets, models.GCN(epochs=20))
    everyone_by_values = ls.value_nodes(
        *graph.communities(), model=models.GCN(epochs=20), support=ls.supports.Everything(), score="accuracy",
        budget=16, empty=0.0, progress=False,
    )  # fmt: skip
    assert everyone == pytest.approx(everyone_by_values.values.sum() / len(test))
    assert two * len(test) == pytest.approx(round(two * len(test)))
    assert 0.3 < two <= (y[test] != 2).mean() + 1e-12
    assert alone == (y[test] == 1).mean()


@pytest.mark.slow
def test_larger_supports_of_a_tree_go_better_with_global_values(quick):
    table = quick("attempts")
    assert table.groupby("workload").size().tolist() == [14, 14, 10]  # SVM, trees; supports under weighted KNN
    pearson = table.set_index("attempt")["pearson"].dropna()
    sizes = [f"parent of the leaf, brought to {size} by nearest" for size in ("10", "20", "30 to 50")]
    assert pearson[sizes].is_monotonic_increasing
    assert pearson[sizes[-1]] == pearson.max()


@pytest.mark.slow
def test_the_page_beyond_the_paper_shows_what_it_claims(tmp_path):
    pytest.importorskip("matplotlib")
    beyond = experiment("beyond")
    beyond.main(["--quick", "--out", str(tmp_path)])
    page = (tmp_path / "beyond.md").read_text(encoding="utf-8")
    tables = {name: pd.read_csv(tmp_path / f"beyond_{name}.csv") for name in beyond.CLAIMS}
    for name in beyond.CLAIMS:
        assert f"python experiments/beyond.py --only {name} --quick" in page
        assert f"(beyond_{name}.svg)" in page
        assert (tmp_path / f"beyond_{name}.png").stat().st_size > 5000
    ours, corrected, printed = (
        tables["bias"][name].iloc[-1] for name in (beyond.OURS, beyond.CORRECTED, beyond.PRINTED)
    )
    assert ours < corrected / 2 < printed / 4
    needed = tables["mechanisms"].set_index("mechanism")["trainings to error 0.1"]
    assert needed["+ additive fit"] < needed["+ locality"] / 5 < needed["+ reuse"] / 10
    chosen = tables["greedy"].set_index("rows").mean(axis=1, numeric_only=True)
    assert chosen.idxmax().startswith("chosen for what they add")
    held = tables["tests"].set_index("test rows")
    assert held["held (%)"].between(85, 100).all()
    assert held["relative error of exact values"].is_monotonic_decreasing


@pytest.mark.slow
def test_local_methods_hardly_grow_with_the_rows(quick):
    table = quick("scaling")
    ours = table[(table["model"] == "WKNN") & (table["method"] == "LSMR-A")].set_index("rows")["evaluations"]
    assert ours.iloc[-1] <= 1.2 * ours.iloc[0]
    widest = table[(table["model"] == "WKNN") & (table["method"] == "global-mc")].set_index("rows")["evaluations"]
    assert (widest > 10 * ours.loc[widest.index]).all()


@pytest.mark.slow
def test_larger_supports_are_nearer_to_global_values(quick):
    table = quick("rq4_support_size")
    pearson = table[table["support"] != "global"].set_index("support")["pearson"]
    assert (np.diff(pearson) > -0.05).all()
    assert pearson.iloc[-1] > pearson.iloc[0] + 0.2


@pytest.mark.slow
def test_a_models_own_supports_do_best(quick):
    table = quick("rq5_alignment")
    own = table[table["workload"].str.startswith("weighted")].set_index("support")["pearson"]
    assert own.idxmax() == "its own"
    assert own["random"] < own["its own"] - 0.2


@pytest.mark.slow
def test_the_last_mechanisms_bring_most(quick):
    table = quick("ablation")
    assert table["workload"].nunique() == 3
    for title, part in table.groupby("workload"):
        error = part.set_index("mechanism")["error"]
        assert len(error) == 7
        assert error.idxmin() == "+ additive fit"
        assert error["+ centring"] < error["+ inclusion weights"] < error["+ subset-centric"]
        assert error["+ locality"] < error["+ subset-centric"]  # a constant is sampled where nothing is centred
        assert part["paper trainings"].notna().sum() == (0 if title.startswith("RBF") else 4)


@pytest.mark.slow
def test_distinct_subsets_per_test_row_fall(quick):
    table = quick("reuse")
    assert table["workload"].nunique() == 4
    for _, part in table.groupby("workload"):
        assert (np.diff(part["distinct"]) >= 0).all()
        assert (part["distinct"] <= part["of all"]).all()
        assert part["reused"].iloc[0] == 0
        assert part["reused"].iloc[-1] == part["reused"].max() > 0


@pytest.mark.slow
def test_values_find_flipped_labels(quick):
    table = quick("noise")
    mean = table.groupby("method")["average precision"].mean()
    assert mean["suspects"] > mean["random"] + 0.2
    assert mean["LSMR-A"] > mean["random"] + 0.2
    assert table["average precision"].between(0, 1).all()


@pytest.mark.slow
def test_the_graph_experiment_compares_with_both_orders_of_in_run(quick):
    table = quick("cora").set_index("method")
    other_ways = table[table.index.str.startswith("LSMR-A, the paper's games: ")]
    assert len(table) == 6 + len(other_ways)
    assert len(other_ways) == len(experiment("cora").ATTEMPTS)
    assert not np.allclose(other_ways["pearson"], table.loc["LSMR-A, the paper's games", "pearson"])
    # The second order is a small correction of the first.
    assert table.loc["In-Run, first order", "pearson"] == pytest.approx(
        table.loc["In-Run, second order", "pearson"], abs=0.1
    )


FOUND = {"suspects": (0.8, 0.7), "Data-OOB": (0.6, 0.9), "random": (0.3, 0.2)}
"""F1 of noisy labels and of noisy features."""


@pytest.fixture
def parts(tmp_path):
    """Folder with parts of OpenDataVal's protocol, as a run keeps them."""
    for group, seed in (("fast", 0), ("fast", 1), ("oob", 0)):
        methods = ("suspects", "random") if group == "fast" else ("Data-OOB",)
        rows = [
            {"data": "adult", "task": task, "rate": 0.2, "seed": seed, "method": method}
            | {"F1": FOUND[method][i] + 0.1 * seed, "precision": 0.5, "AUROC": 0.6, "seconds": 1.0}
            | (dict.fromkeys(experiment("opendataval_protocol").CURVES, 0.7) if task == "labels" else {})
            for i, task in enumerate(("labels", "features"))
            for method in methods
        ]
        (tmp_path / f"adult-{seed}-{group}.json").write_text(json.dumps(rows))
    (tmp_path / "made.txt").write_text("(Made with another machine.)")
    return tmp_path


def test_the_page_of_opendatavals_protocol_is_written_from_parts_of_another_machine(parts, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "page"
    experiment("opendataval_protocol").main(["--page", "--keep", str(parts), "--out", str(out)])
    table = pd.read_csv(out / "opendataval_protocol.csv").set_index("method")
    assert table["F1"].to_dict() == {"suspects": 0.85, "Data-OOB": 0.6, "random": 0.35}
    assert table.loc["suspects", "±"] == pytest.approx(0.05)
    assert table["seeds"].to_dict() == {"suspects": 2, "Data-OOB": 1, "random": 2}
    assert table["published F1"].dropna().to_dict() == {"Data-OOB": 0.631}
    page = " ".join((out / "opendataval_protocol.md").read_text(encoding="utf-8").split())
    assert "(Made with another machine.)" in page
    assert "Noisy labels: lines on which `suspects` has a lower F1 than the best of OpenDataVal's: none." in page
    assert "Noisy features: lines on which `suspects` has a lower F1 than the best of OpenDataVal's: adult 20 %" in page
    assert "0.750 against 0.900 of Data-OOB" in page


@pytest.mark.slow
def test_opendatavals_protocol_goes_on_where_it_was_stopped(tmp_path, capfd):
    pytest.importorskip("opendataval", reason="OpenDataVal has an environment of its own")
    pytest.importorskip("matplotlib")
    run = ["--quick", "--keep", str(tmp_path / "parts"), "--out", str(tmp_path)]
    experiment("opendataval_protocol").main(run)
    table = pd.read_csv(tmp_path / "opendataval_protocol.csv").set_index("method")
    assert table.loc["suspects", "F1"] > table.loc["random", "F1"] + 0.2
    next((tmp_path / "parts").glob("*-svm.json")).unlink()
    capfd.readouterr()
    experiment("opendataval_protocol").main(run)
    assert "1 parts to run" in capfd.readouterr().err
