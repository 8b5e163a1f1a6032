"""From a table to values: `value` and `plan`."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.cli.valuing import find_support, offered_supports

pytestmark = pytest.mark.quick


def test_from_a_table_to_values_and_a_report(command, where, tmp_path):
    done = command("value", *where, "--out", "v.parquet", "--report", "r.html")
    assert done.status == 0, done.stderr
    assert "100 training rows over 50 test rows" in done.stdout
    assert "'petal width' filled with the median" in done.stdout
    assert "one feature for each category" in done.stdout
    assert "Owners" in done.stdout
    v = ls.load(tmp_path / "v.parquet")
    assert list(v.ids[:2]) == ["p000", "p001"]
    assert (v.to_frame().loc[["p003", "p020"], "value"] < 0).all()
    assert v.to_frame().loc["p041", ["value", "n_tests"]].tolist() == [0, 0]  # no test row is near it
    page = (tmp_path / "r.html").read_text()
    assert "train.csv" in page
    assert "p041" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_one_document_on_standard_output_and_all_else_beside_it(command, where):
    done = command("value", *where, "--json")
    document = json.loads(done.stdout)
    assert "100 rows of" in done.stderr
    assert document["n_tests"] == 50
    assert document["model"] == "KNeighborsClassifier()"
    rows = document["rows"]
    assert [row["plant"] for row in rows] == [f"p{i:03}" for i in range(100)]
    assert set(rows[0]) == {"plant", "value", "stderr", "stderr_tests", "n_tests", "label", "owner"}
    shares = [owner["share"] for owner in document["owners"]]
    assert sum(shares) == pytest.approx(100)


def test_several_seeds_of_a_forest(answer, flowers):
    about = (flowers / "train.csv", "--cv", "oob", "-t", "species", "--model", "fixed-forest", "--quiet")
    document = answer("value", *about, "--seeds", 2)
    assert "values are means over 2 seeds of the model." in document["notes"]
    assert all(row["stderr_seed"] >= 0 for row in document["rows"])


def test_is_what_the_library_says(answer, flowers):
    document = answer(
        "value", flowers / "train.csv", "--test-size", 0.3, "-t", "species", "--drop", "shade", "--drop", "plant",
        "--drop", "garden", "--model", "sklearn.tree:DecisionTreeClassifier", "--support", "nearest:6",
        "--method", "exact", "--score", "accuracy", "--quiet",
    )  # fmt: skip
    table = pd.read_csv(flowers / "train.csv")
    train, test = train_test_split(np.arange(100), test_size=0.3, random_state=0, stratify=table["species"])
    train, test = np.sort(train), np.sort(test)
    X = table.iloc[:, 1:5]
    X = X.fillna(X.iloc[train].median())
    scaler = StandardScaler().fit(X.iloc[train].to_numpy())  # training rows only
    y = table["species"].to_numpy(dtype=str)
    v = ls.value(
        scaler.transform(X.iloc[train].to_numpy()), y[train], scaler.transform(X.iloc[test].to_numpy()), y[test],
        model=DecisionTreeClassifier(), support=ls.supports.Nearest(6), score="accuracy", method="exact",
    )  # fmt: skip
    np.testing.assert_allclose([row["value"] for row in document["rows"]], v.values, atol=1e-12)
    assert [row["row"] for row in document["rows"]] == train.tolist()


FORMATS = {
    "tsv": (lambda t, path: t.to_csv(path, sep="\t", index=False), lambda path: pd.read_csv(path, sep="\t")),
    "csv.gz": (lambda t, path: t.to_csv(path, sep=";", index=False), pd.read_csv),
    "parquet": (
        lambda t, path: t.astype({"species": "category"}).to_parquet(path),
        lambda path: ls.load(path).to_frame().reset_index(),
    ),
    "feather": (lambda t, path: t.to_feather(path), pd.read_feather),
    "arrow": (lambda t, path: t.to_feather(path), pd.read_feather),
}


@pytest.mark.parametrize("ending", FORMATS)
def test_formats_in_and_out(answer, flowers, tmp_path, ending):
    write, read = FORMATS[ending]
    write(pd.read_csv(flowers / "train.csv"), tmp_path / f"train.{ending}")
    out = f"values.{ending}"
    document = answer("value", f"train.{ending}", "-t", "species", "--id", "plant", "--cv", 3, "--out", out, "-q")
    assert document["files"] == {"values": out}
    written = read(tmp_path / out).set_index("plant")
    assert list(written.index) == [row["plant"] for row in document["rows"]]
    np.testing.assert_allclose(written["value"], [row["value"] for row in document["rows"]], rtol=1e-12)


def test_regression_owners_as_players_and_a_store(answer, flowers):
    words = (
        "value", flowers / "train.csv", "-t", "petal length", "--drop", "plant", "--owner", "garden", "--play-owners",
        "--test-size", 0.2, "--model", "sklearn.linear_model:HuberRegressor", "--store", "run.db", "--quiet",
    )  # fmt: skip
    first, again = (answer(*words) for _ in range(2))
    assert first["unit"] == "owner"
    assert first["score"] == "squared_error"
    assert {row["garden"] for row in first["rows"]} == {"north", "south", "west"}
    assert first["rows"] == again["rows"]
    assert first["trainings"] == 8
    assert again["trainings"] == 0
    of_owners = {row["owner"]: row["share"] for row in first["owners"]}
    assert {row["garden"]: row["share"] for row in first["rows"]} == of_owners
    assert sum(of_owners.values()) == pytest.approx(100)
    n_tests = first["n_tests"]
    assert sum(row["n_rows"] for row in first["owners"]) == len(pd.read_csv(flowers / "train.csv")) - n_tests


def test_the_command_is_in_the_file_the_document_and_the_report(answer, command, flowers, tmp_path):
    words = ("value", flowers / "train.csv", "-t", "petal length", "--seed", 3, "--tol", 0.2, "--out", "v.parquet")
    record = answer(*words, "--report", "a report.html")["record"]
    assert record["call"].startswith("localshapley value ")
    assert record["call"].endswith(
        "-t 'petal length' --seed 3 --tol 0.2 --out v.parquet --report 'a report.html' --json"
    )
    assert (record["seed"], record["limits"]) == (3, {"tol": "0.2"})
    assert ls.load(tmp_path / "v.parquet").record.call == record["call"]
    assert "--tol 0.2 --out v.parquet" in (tmp_path / "a report.html").read_text()
    command("report", "v.parquet", "--out", "later.html")
    assert "--tol 0.2 --out v.parquet" in (tmp_path / "later.html").read_text()  # of the values, not of the report


def test_owners_as_players_are_listed_and_reported_as_owners(command, flowers, tmp_path):
    words = ("value", flowers / "train.csv", "-t", "species", "--owner", "garden", "--play-owners", "-q")
    shown = command(*words, "--out", "v.csv", "--report", "r.html").stdout
    assert "share_stderr" in shown.partition("Owners")[2]
    assert "Best" not in shown
    assert "What the owners of train.csv are worth" in (tmp_path / "r.html").read_text()
    assert pd.read_csv(tmp_path / "v.csv")["share"].sum() == pytest.approx(100)


def test_a_fixed_forest_out_of_bag(answer, flowers):
    words = ("value", flowers / "train.csv", "-t", "species", "--id", "plant", "--owner", "garden", "-q")
    document = answer(*words, "--model", "fixed-forest", "--cv", "oob")
    assert document["model"] == "Fixed(RandomForestClassifier(random_state=0))"
    assert document["trainings"] == 0
    assert document["n_tests"] == document["n_rows"]
    by_folds = answer(*words, "--model", "fixed-forest")
    assert by_folds["support"] == "leaf mates in 500 trees"
    plan = answer("plan", *words[1:], "--model", "fixed-forest", "--cv", "oob")
    assert plan["this_run"] == {"samples": False, "trainings": 0, "classes": None}


class TestLimits:
    @pytest.fixture
    def words(self, flowers):
        data = ("value", flowers / "train.csv", "-t", "species", "--drop", "plant", "--test-size", 0.2, "-q")
        return (*data, "--model", "svm", "--support", "nearest:12", "--method", "sample")

    @pytest.fixture
    def limited(self, answer, words):
        return lambda *limit: answer(*words, *limit)

    def test_a_budget_is_never_exceeded(self, limited):
        document = limited("--budget", 1500)
        assert 0 < document["trainings"] <= 1500
        assert document["stopped"] == "budget of 1,500 trainings"

    def test_a_tolerance_is_reached(self, limited):
        document = limited("--tol", 0.5)
        assert document["relative_error"] <= 0.5
        assert "(tol 0.5)" in document["stopped"]

    def test_a_time_that_is_too_short_for_any_estimate_is_refused(self, command, words):
        done = command(*words, "--tol", 1e-9, "--max-seconds", 1e-9)
        assert done.status == 2
        assert "max_seconds=1e-09 is too short: the first estimate takes" in done.stderr


class TestSupports:
    def test_all_that_a_number_is_enough_for_are_offered(self):
        offered = set(offered_supports().values())
        assert {ls.supports.CompactKernel, ls.supports.Leaves, ls.supports.Nearest} < offered
        assert offered.isdisjoint({ls.supports.Support, ls.supports.Given, ls.supports.Embedding, ls.supports.Hops})

    @pytest.mark.parametrize(
        ("text", "made"),
        [
            ("nearest", ls.supports.Nearest()),
            ("nearest:7", ls.supports.Nearest(7)),
            ("radius:1.5", ls.supports.Radius(1.5)),
            ("kernel:0.25", ls.supports.Kernel(0.25)),
            ("compact-kernel:2", ls.supports.CompactKernel(2.0)),
            ("tree", ls.supports.TreeNode()),
            ("tree:2", ls.supports.TreeNode(2)),
            ("tree-node", ls.supports.TreeNode()),
            ("leaves", ls.supports.Leaves()),
            ("leaves:9", ls.supports.Leaves(9)),
            ("dual", ls.supports.Dual()),
            ("random:3", ls.supports.Random(3)),
            ("everything", ls.supports.Everything()),
        ],
    )
    def test_a_name_and_a_size(self, text, made):
        assert find_support(text) == made

    def test_a_new_one_needs_no_edit_here(self, answer, flowers, monkeypatch):
        @dataclass(frozen=True, repr=False)
        class FirstRows(ls.supports.Everything):
            n: int = 3

            def find(self, space):
                return [np.arange(self.n, dtype=np.int32)] * space.X_test.shape[0]

        monkeypatch.setattr(ls.supports, "FirstRows", FirstRows, raising=False)
        monkeypatch.setattr(ls.supports, "__all__", [*ls.supports.__all__, "FirstRows"])
        words = ("value", flowers / "train.csv", "-t", "species", "--drop", "plant", "--test-size", 0.2, "-q")
        document = answer(*words, "--support", "first-rows:4")
        assert document["support"] == "FirstRows(n=4)"
        assert [row["n_tests"] > 0 for row in document["rows"]] == [True] * 4 + [False] * 76


class TestCurves:
    """Selection curves take a while: by default they are drawn for small tables."""

    @pytest.mark.parametrize(
        ("rows", "words", "drawn"),
        [
            (60, [], True),
            (4100, [], False),
            pytest.param(4100, ["--curves"], True, marks=pytest.mark.slow),
            (60, ["--no-curves"], False),
        ],
    )
    def test_in_the_report(self, command, tmp_path, rows, words, drawn):
        numbers = np.random.default_rng(0).normal(size=(rows, 2)).round(2)
        table = pd.DataFrame(numbers, columns=["a", "b"]).assign(label=numbers.sum(axis=1) > 0)
        table.to_csv(tmp_path / "table.csv", index=False)
        how = ["--test-size", "0.5", "--support", "nearest:3"]
        done = command("value", "table.csv", "-t", "label", *how, "--report", "r.html", *words)
        assert done.status == 0, done.stderr
        assert ('id="curves"' in (tmp_path / "r.html").read_text()) == drawn
        assert ("selection curves left out" in done.stderr) == (not drawn and not words)


@pytest.mark.slow
def test_a_report_shows_the_levels_of_the_game_that_was_played(command, where, tmp_path):
    for method, expected in (("loo", "Everything()"), ("auto", "Nearest(n=10)")):
        done = command("value", *where, "--method", method, "--report", f"{method}.html", "--check-locality")
        assert done.status == 0, done.stderr
        assert expected in (tmp_path / f"{method}.html").read_text()
    # 2^100, the subsets of all rows
    assert "1.3 × 10³⁰ trainings" in (tmp_path / "loo.html").read_text().split('id="cost"')[1]


def test_plan_does_what_value_would(answer, where):
    plan, value = (answer(name, *where, "--method", "loo") for name in ("plan", "value"))
    assert plan["this_run"]["trainings"] == value["trainings"] == plan["n_rows"] + 1
    assert plan["support"] == value["support"] == "Everything()"
    sampled = answer("plan", *where, "--model", "tree", "--support", "nearest:30", "--budget", "700")
    assert sampled["this_run"] == {"samples": True, "trainings": 700, "classes": None}
    assert sampled["chosen"].startswith("sampled")


def test_plan_trains_next_to_nothing(answer, where):
    document = answer("plan", *where, "--support", "nearest:8")
    levels = document["trainings"]
    assert levels["global"] > levels["local"] > levels["subset-centric"] >= levels["lsmr"] > 0


class TestWhatIsMadeOfColumns:
    def test_spaces_make_no_class_and_commas_may_be_decimal(self, answer, tmp_path):
        rows = "".join(f"{i},5;{'yes ' if i % 4 == 0 else 'yes' if i % 2 else 'no'}\n" for i in range(60))
        (tmp_path / "t.csv").write_text("size;answer\n" + rows)
        document = answer("value", "t.csv", "-t", "answer")
        assert {row["label"] for row in document["rows"]} == {"yes", "no"}
        scaled = "1 column of numbers scaled to mean 0 and deviation 1"
        assert document["preparation"] == [scaled, "t.csv read with decimal commas"]

    def test_a_column_that_names_rows_is_pointed_out(self, answer, tmp_path):
        rows = "".join(f"{1000 + i},{i % 7},{'yes' if i % 7 > 3 else 'no'}\n" for i in range(60))
        (tmp_path / "t.csv").write_text("customer,size,answer\n" + rows)
        document = answer("value", "t.csv", "-t", "answer")
        assert any(
            "'customer' is different in every row" in line and "the id" in line for line in document["preparation"]
        )

    @pytest.mark.filterwarnings("ignore:y_test holds labels")
    def test_many_whole_numbers_are_amounts_as_in_python(self, answer, tmp_path):
        numbers = np.arange(60)
        pd.DataFrame({"size": numbers % 7, "price": numbers}).to_csv(tmp_path / "t.csv", index=False)
        document = answer("value", "t.csv", "-t", "price")
        assert document["model"] == "KNeighborsRegressor()"
        assert any("'price' treated as amounts" in line for line in document["preparation"])
        v = ls.value(numbers[:, None] % 7, numbers, cv=5, model="knn")
        assert v.model == "KNeighborsRegressor()"
        assert "treated as amounts" in v.notes[0]
        few = ls.value(numbers[:, None] % 7, numbers % 50, numbers[:5, None] % 7, numbers[:5], model="knn")
        assert few.model == "KNeighborsClassifier()"
        by_class = answer("value", "t.csv", "-t", "price", "--task", "classification", "--test-size", "0.2")
        assert by_class["model"] == "KNeighborsClassifier()"

    @pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"]], ids=["numbers", "words"])
    def test_a_copy_of_the_target_is_pointed_out(self, answer, tmp_path, labels):
        y = np.random.default_rng(0).choice(labels, 60)
        pd.DataFrame({"size": np.arange(60) % 7, "again": y, "answer": y}).to_csv(tmp_path / "t.csv", index=False)
        document = answer("value", "t.csv", "-t", "answer")
        assert "'again' equals the target: models are given the answer; leave it out (--drop again)" in str(
            document["preparation"]
        )
        left_out = answer("value", "t.csv", "-t", "answer", "--drop", "again")
        assert "given the answer" not in str(left_out)

    def test_words_that_tell_the_class_are_a_feature(self, answer, tmp_path):
        y = np.random.default_rng(0).choice([0, 1], 60)
        words = np.where(y == 1, "red", "blue")
        pd.DataFrame({"size": np.arange(60) % 7, "colour": words, "answer": y}).to_csv(tmp_path / "t.csv", index=False)
        document = answer("value", "t.csv", "-t", "answer")
        assert any("column 'colour_red' of X equals y" in note for note in document["notes"])

    def test_the_encoding_can_be_named(self, answer, tmp_path):
        rows = "".join(f"{i},{'été' if i % 2 else 'hiver'}\n" for i in range(40))
        (tmp_path / "t.csv").write_bytes(f"size,saison\n{rows}".encode("latin-1"))
        document = answer("value", "t.csv", "-t", "saison", "--encoding", "latin-1")
        assert {row["label"] for row in document["rows"]} == {"été", "hiver"}
