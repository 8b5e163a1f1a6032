"""What is done with values: `suspects`, `select`, `compare`, `report`; and tables to try it on: `datasets`, `demo`."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import localshapley as ls
from cli.deciding import decide
from localshapley.cli import checking

pytestmark = pytest.mark.quick


class TestSuspectsAndSelect:
    @pytest.fixture
    def kept(self, answer, where):
        """The words that name the rows and their values."""
        answer("value", *where, "--out", "v.parquet")
        return [*where, "--values", "v.parquet"]

    def test_suspects(self, answer, command, kept, tmp_path):
        document = answer("suspects", *kept, "-n", 6, "--out", "s.csv")
        assert {s["plant"] for s in document["suspects"]} >= {"p003", "p020", "p041"}
        written = pd.read_csv(tmp_path / "s.csv")
        assert set(written.columns) >= {"plant", "value", "label", "suggested", "neighbours", "petal width"}
        assert (written["label"] != written["suggested"]).all()
        assert "suspected of a wrong species" in command("suspects", *kept).stdout

    def test_suspects_value_no_rows_by_themselves(self, answer, command, kept, where, monkeypatch, tmp_path):
        valued = answer("suspects", *kept, "-n", 6)["suspects"]
        with monkeypatch.context() as refusing:
            refusing.setattr(ls, "value", None)
            plain = answer("suspects", *where, "-n", 6)
        assert plain["suspects"] == [
            {name: cell for name, cell in row.items() if name not in ("value", "stderr")} for row in valued
        ]
        assert plain["harm"] is None
        assert "trainings" not in plain
        shown = answer("suspects", *where, "-n", 6, "--report", "r.html")  # which shows values
        assert [row["value"] for row in shown["suspects"]] == [row["value"] for row in valued]

    def test_suspects_say_how_far_to_trust_them(self, answer, command, kept):
        document, text = answer("suspects", *kept), command("suspects", *kept).stdout
        assert document["n_suspects"] == len(document["suspects"]) == sum(c["suspects"] for c in document["by_class"])
        assert {c["label"]: c["rows"] for c in document["by_class"]}.keys() == {"setosa", "versicolor", "virginica"}
        assert document["skill"]["model"] > document["skill"]["guess"]
        assert document["cautions"] == []
        assert f"held out: accuracy {document['skill']['model']:.3f} on 50 test rows" in text
        assert "by class: " in text

    def test_labels_that_cannot_be_learnt_bring_a_caution(self, answer, command, tmp_path):
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"x": rng.normal(size=200), "kind": rng.choice(list("abcdefgh"), 200)})
        table.to_csv(tmp_path / "chance.csv", index=False)
        document = answer("suspects", "chance.csv", "-t", "kind")
        assert any("nothing is known about which are wrong" in caution for caution in document["cautions"])
        shown = command("suspects", "chance.csv", "-t", "kind")
        assert shown.stdout.count("caution: ") == len(document["cautions"])
        assert "warning" not in shown.stderr.lower()
        command("value", "chance.csv", "-t", "kind", "--report", "r.html")
        assert 'class="caution"' in (tmp_path / "r.html").read_text()

    def test_a_report_is_written_where_mending_cannot_be_measured(self, command, where, tmp_path, monkeypatch):
        def refuse(*arguments, **settings):
            raise ls.InvalidArgumentError("too few rows are left.")

        monkeypatch.setattr(checking, "MAX_ROWS", 5000)
        monkeypatch.setattr(ls.audit, "worth_mending", refuse)
        done = command("value", *where, "--report", "r.html")
        assert done.status == 0, done.stderr
        assert "what mending the suspects would bring is left out: too few rows are left." in done.stderr
        assert "An estimate of what mending could bring" in (tmp_path / "r.html").read_text()
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        assert command("value", *where, "--report", tmp_path / "r.html").status == 0
        assert "What mending brings, measured by training again" in (tmp_path / "r.html").read_text()

    def test_suspects_say_what_it_is_worth_to_act(self, answer, command, where):
        shown = command("suspects", *where, "--check")
        document = answer("suspects", *where, "--check")["mending"]
        (line,) = [line for line in shown.stdout.splitlines() if line.startswith("worth: ")]
        assert document["n_tests"] == 50
        assert document["apart"]
        for change, (gain, low, high) in document["gains"].items():
            assert low <= gain <= high
            assert gain == pytest.approx(document[change] - document["before"])
            changes = f"{100 * gain:+.1f} points (95 % interval {100 * low:+.1f} to {100 * high:+.1f}"
            assert (changes if low < high else "stays the same") in line
        assert ("no measurable difference" in line) == (not document["is_measurable"])
        assert "--no-check skips it" in shown.stderr
        skipped = command("suspects", *where, "--no-check")
        assert "worth: " not in skipped.stdout
        assert "measuring" not in skipped.stderr

    def test_what_would_take_long_is_measured_only_if_asked_for(self, command, where, monkeypatch):
        monkeypatch.setattr(checking, "MAX_ROWS", 0)
        shown = command("suspects", *where)
        assert "what mending the suspects would bring is left out: it takes long with" in shown.stderr
        assert "--check measures it." in shown.stderr
        assert "worth: " not in shown.stdout
        assert "worth: " in command("suspects", *where, "--check").stdout

    @pytest.mark.slow
    def test_saved_values_are_measured_if_their_model_is_known(self, answer, command, kept, where, tmp_path):
        assert "worth: " in command("suspects", *kept, "--check").stdout
        answer("report", "v.parquet", "--train", where[0], "-t", "species", "--data", "--check")
        findings = json.loads((tmp_path / "report.json").read_text())["sections"]["findings"]
        assert findings["mending"]["apart"]
        (tmp_path / "three_neighbours.py").write_text(
            "from sklearn import neighbors as n\nmine = n.KNeighborsClassifier(3)"
        )
        mine = ["--model", "three_neighbours:mine"]
        answer("value", *where, "--out", "v.parquet", *mine)
        unknown = command("suspects", *kept)
        assert "the saved values are of KNeighborsClassifier(n_neighbors=3), which has no name here" in unknown.stderr
        assert "worth: " in command("suspects", *kept, *mine, "--check").stdout
        answer("report", "v.parquet", "--train", where[0], "-t", "species", "--data")
        assert json.loads((tmp_path / "report.json").read_text())["sections"]["findings"]["mending"] is None

    def test_copies_contradictions_leaks_and_outliers_are_told(self, answer, command, flowers, where, tmp_path):
        train, test = pd.read_csv(flowers / "train.csv"), pd.read_csv(flowers / "test.csv")
        features = ["sepal length", "sepal width", "petal length", "petal width", "shade"]
        train.loc[30, features] = train.loc[31, features]
        train.loc[[30, 31], "species"] = ["setosa", "virginica"]
        train.loc[50, features[:4]] = 90.0
        test.loc[4, [*features, "species"]] = train.loc[60, [*features, "species"]]
        train.to_csv(tmp_path / "train.csv", index=False)
        test.to_csv(tmp_path / "test.csv", index=False)
        words = ["train.csv", "--test", "test.csv", *where[3:]]
        document = answer("suspects", *words, "--no-check")
        assert list(document["copies"]["lines"]) == ["contradictions", "leakage", "copies", "outliers"]
        assert [row["row"] for row in document["copies"]["groups"]][:2] == ["p030", "p031"]
        assert document["copies"]["outliers"][0]["row"] == "p050"
        shown = command("value", *words, "--report", "r.html", "--no-curves").stdout
        assert (
            "note     2 rows in 1 group are equal in every column of train.csv besides 'species', 'plant', 'garden' "
            "but differ in their labels (row p030 has"
        ) in shown
        assert "(test row 4 equals row p060 in every column of train.csv" in document["copies"]["lines"]["leakage"]
        assert "outliers: 1 row is far from all others (row p050: " in shown
        assert "contradictions: " not in shown
        assert "Copies and outliers" in (tmp_path / "r.html").read_text()

    @pytest.mark.parametrize("way", [["--cv", "3"], ["--test", "test.csv"], ["--no-prepare", "--cv", "3"]])
    def test_rows_that_differ_in_a_column_that_preparation_leaves_out_are_no_copies(self, answer, tmp_path, way):
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"x": rng.normal(size=60), "z": rng.normal(size=60), "who": rng.choice(["a", "b"], 60)})
        table.loc[30:, ["x", "z"]] = table.loc[:29, ["x", "z"]].to_numpy()  # twins, of which some have other names
        table.insert(0, "name", [f"passenger number {row}" for row in range(60)])
        if "--no-prepare" in way:
            table["name"] = np.arange(60)
        table.to_csv(tmp_path / "twins.csv", index=False)
        table.iloc[::7].assign(name="nobody").to_csv(tmp_path / "test.csv", index=False)
        where = ["twins.csv", "-t", "who", *way, "--no-check"]
        differing = answer("suspects", *where)
        assert not {"copies", "contradictions", "leakage"} & differing["copies"]["lines"].keys()
        table.loc[33, "name"] = table.loc[3, "name"]
        table.loc[[3, 33], "who"] = ["a", "b"]
        table.to_csv(tmp_path / "twins.csv", index=False)
        lines = answer("suspects", *where)["copies"]["lines"]
        assert lines["copies"] == (
            "1 of 60 rows repeats an earlier row in every column of twins.csv besides 'who' (row 33 equals row 3)."
        )
        assert "are equal in every column of twins.csv besides 'who' but differ" in lines["contradictions"]

    def test_select(self, answer, kept, tmp_path):
        chosen = answer("select", *kept, "-n", 12, "--balance", "equal", "-o", "best.csv")
        best = pd.read_csv(tmp_path / "best.csv")
        assert best["species"].value_counts().tolist() == [4, 4, 4]
        assert list(best["plant"]) == [row["plant"] for row in chosen["selected"]]
        assert len(answer("select", *kept, "-n", 0.25)["selected"]) == 25
        assert len(answer("select", *kept, "-n", "1.0")["selected"]) == 100
        assert len(answer("suspects", *kept[:-2], "-n", "1", "--no-check")["suspects"]) == 1
        by_value = answer("select", *kept[:-2], "-n", 25, "--by", "value")
        assert by_value["selected"] == answer("select", *kept, "-n", 25)["selected"]

    def test_select_by_gain(self, answer, command, where, tmp_path):
        found = answer("select", *where, "-n", 12, "-o", "rows.csv")
        assert [row["plant"] for row in found["selected"]] == pd.read_csv(tmp_path / "rows.csv")["plant"].tolist()
        assert [row["gain"] is None for row in found["selected"]] == [k >= found["n_gained"] for k in range(12)]
        assert found["trainings"] > 100
        assert {row["label"] for row in found["selected"][:5]} == {"setosa", "versicolor", "virginica"}
        whole = command("select", *where, "-n", 1.0 * 100).stdout
        assert "100 of 100 rows, those that teach most together first (nothing more is gained after " in whole

    def test_select_by_gain_compares_with_random_rows(self, answer, command, where):
        words = ["select", *where, "-n", 5, "--model", "tree", "--curve"]
        found = answer(*words)
        assert [line["share"] for line in found["curve"]] == [0.025, 0.05, 0.1, 0.2, 0.3, 0.5]
        assert command(*words).stdout.rstrip().endswith(found["verdict"])

    def test_options_of_the_other_way_to_select_are_refused(self, command, kept, where):
        refused = [
            ([*kept, "-n", 5, "--by", "gain"], "--values is about values"),
            ([*where, "-n", 5, "--by", "gain", "--balance", "equal"], "--balance is about values"),
            ([*where, "-n", 5, "--tol", 0.1], "--tol is about values, which choosing by gain does not compute"),
            ([*where, "-n", 5, "--play-owners"], "--play-owners is about values"),
            ([*kept, "-n", 5, "--curve"], "--curve compares rows chosen by gain"),
            ([*where, "-n", 5, "--by", "size"], "--by must be one of 'gain', 'value'; got 'size'"),
        ]
        for words, text in refused:
            done = command("select", *words)
            assert done.status == 2
            assert text in done.stderr

    def test_values_of_other_rows_are_refused(self, command, kept, flowers):
        other = command("suspects", flowers / "test.csv", "-t", "species", "--values", "v.parquet")
        assert other.status == 1
        assert "is not the table that was valued: 100 of 100 rows are not in it" in other.stderr


def test_compare_and_report_from_results(answer, command, flowers, tmp_path):
    where = [flowers / "train.csv", "-t", "species", "--id", "plant", "--drop", "garden", "-q"]
    answer("value", *where, "--out", "knn.parquet")
    answer("value", *where, "--model", "logistic", "--support", "nearest:8", "-o", "logistic.csv")
    document = answer("compare", "knn.parquet", "logistic.csv", "--top", 10, "--picture", "c.png")
    one = ls.load(tmp_path / "knn.parquet").values
    two = pd.read_csv(tmp_path / "logistic.csv")["value"]
    assert document["spearman"] == pytest.approx(pd.Series(one).corr(two, method="spearman"))
    common = set(np.argsort(-one, kind="stable")[:10]) & set(np.argsort(-two.to_numpy(), kind="stable")[:10])
    assert document["best_in_common"] == len(common)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    done = command(
        "report", "knn.parquet", "--train", flowers / "train.csv", "-t", "species", "--owner", "garden", "--data"
    )
    assert done.status == 0, done.stderr
    page = (tmp_path / "report.html").read_text()
    assert "<b>Target</b> species" in page
    assert ">owner</th>" in page
    for text in ("p041", "virginica", "north", "petal width"):
        assert text in page
    assert json.loads((tmp_path / "report.json").read_text())["title"] == "Data valuation"


def test_datasets(command, tmp_path):
    assert "iris" in command("datasets").stdout
    assert command("datasets", "wine").status == 0
    assert pd.read_csv(tmp_path / "wine.csv").shape == (178, 15)
    wrong = command("datasets", "wien")
    assert wrong.status == 2
    assert "Did you mean 'wine'?" in wrong.stderr


def test_the_first_commands_of_the_readme(command, tmp_path):
    done = command("datasets", "breast_cancer", "--out", "patients.csv")
    assert done.status == 0, done.stderr
    assert done.stdout == "Wrote patients.csv: 569 rows; use it with --target target --id id\n"
    done = command("suspects", "patients.csv", "--target", "target", "--id", "id", "-n", 10)
    assert done.status == 0, done.stderr
    about, table = done.stdout.split("\nnote:")[0].strip().split("\n\n")
    assert about.splitlines()[:2] == [
        "about 2 (0 to 13) of 569 labels look wrong",
        "listed: the 10 most suspicious of 569 rows",
    ]
    _, *rows = table.splitlines()
    assert len(rows) == 10
    ids = set(map(str, pd.read_csv(tmp_path / "patients.csv")["id"]))
    assert {row.split()[0] for row in rows} <= ids


def test_demo_writes_values_and_a_report(command, tmp_path):
    done = command("demo", "--out", "here")
    assert done.status == 0, done.stderr
    values = pd.read_csv(tmp_path / "here" / "values.csv")
    assert len(values) == 398
    assert np.isfinite(values["value"]).all()
    assert "Breast Cancer" in (tmp_path / "here" / "report.html").read_text()
    made = decide(tmp_path / "here" / "report.html", tmp_path / "decisions.csv", lambda *_: ("drop", ""))
    words = done.stdout.splitlines()[-1].split()  # the command that it names
    assert words[:2] == ["localshapley", "apply"]
    assert command(*words[1:]).status == 0
    assert len(pd.read_csv(tmp_path / "here" / "mended.csv")) == 398 - len(made)
