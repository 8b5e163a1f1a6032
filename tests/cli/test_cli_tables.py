"""Tables as people have them: hostile cells, missing targets, names that repeat, pipelines of one's own."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

ESCAPE = "\x1b[31m"


@pytest.fixture
def table(tmp_path):
    """Sixty rows in two clouds; four labels are wrong."""
    rng = np.random.default_rng(0)
    label = np.arange(60) % 2
    frame = pd.DataFrame({"name": [f"n{i}" for i in range(60)], "size": rng.normal(4 * label).round(3)})
    frame["color"] = np.where(label, "red", "blue")
    frame["label"] = np.where(label, "yes", "no")
    frame.loc[:3, "label"] = ["yes", "no", "yes", "no"]

    def write(changed=frame, name="t.csv"):
        changed.to_csv(tmp_path / name, index=False)
        return changed

    write()
    return frame, write


WHERE = ("t.csv", "-t", "label", "--id", "name")


class TestHostileCells:
    @pytest.fixture
    def hostile(self, table):
        frame, write = table
        names = [f"=run({i})" if i % 2 else f"{ESCAPE}n{i}" for i in range(60)]
        write(frame.assign(name=names, label=frame["label"].replace("no", f"no{ESCAPE}")))

    @pytest.mark.parametrize("words", [["value"], ["suspects", "-n", "9"], ["select", "-n", "9"], ["plan"]])
    def test_nothing_but_text_reaches_the_terminal(self, command, hostile, words):
        done = command(words[0], *WHERE, *words[1:])
        assert done.status == 0, done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        assert words == ["plan"] or r"\x1b[31m" in done.stdout

    def test_nor_in_an_error(self, command, hostile):
        done = command("value", f"{ESCAPE}.csv", "-t", "label")
        assert done.status == 1
        assert "\x1b" not in done.stderr
        assert r"\x1b[31m.csv is not there" in done.stderr

    def test_cells_that_a_spreadsheet_would_run_are_marked(self, command, answer, hostile, tmp_path):
        for words in (["value"], ["suspects", "-n", "60"]):
            done = command(*words[:1], *WHERE, *words[1:], "--out", "out.csv")
            assert "--raw-csv" in done.stdout
            written = pd.read_csv(tmp_path / "out.csv")
            assert sum(written["name"].str.startswith("'=run(")) == 30
            answer(*words[:1], *WHERE, *words[1:], "--out", "raw.csv", "--raw-csv")
            assert sum(pd.read_csv(tmp_path / "raw.csv")["name"].str.startswith("=run(")) == 30
        np.testing.assert_array_equal(written["size"], pd.read_csv(tmp_path / "raw.csv")["size"])  # −1.2 is a number

    def test_rows_that_are_chosen_stay_as_they_are_in_the_file(self, command, hostile, tmp_path):
        for name, marked in (("out.csv", 0), ("out.tsv", 30)):  # in another format they are written anew
            done = command("select", *WHERE, "-n", "60", "--out", name)
            assert ("--raw-csv" in done.stdout) == bool(marked)
            assert (tmp_path / name).read_text().count("'=run(") == marked

    def test_marked_names_are_compared_as_they_were(self, answer, hostile):
        answer("value", *WHERE, "--out", "v.csv")
        answer("value", *WHERE, "--out", "v.parquet")
        assert answer("compare", "v.csv", "v.parquet")["rows"] == 60


class TestOwnPipelines:
    PIPELINE = """
from sklearn.compose import ColumnTransformer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

def numbers():
    return make_pipeline(ColumnTransformer([("n", StandardScaler(), ["size"])]), KNeighborsClassifier(3))

words = make_pipeline(
    ColumnTransformer([("n", "passthrough", ["size"]), ("w", OneHotEncoder(handle_unknown="ignore"), ["color"])]),
    KNeighborsClassifier(3),
)
"""

    @pytest.fixture
    def where(self, table, tmp_path, monkeypatch):
        (tmp_path / "own_pipelines.py").write_text(self.PIPELINE)
        return ["value", *WHERE, "--test-size", "0.3", "--support", "nearest:4"]

    def test_names_are_kept(self, answer, where):
        document = answer(*where, "--model", "own_pipelines:numbers")  # a function that makes it
        assert document["model"].startswith("Pipeline(")

    def test_a_clash_is_explained(self, command, where):
        done = command(*where, "--model", "own_pipelines:words", "-q")
        assert done.status == 2
        assert "cannot be trained" in done.stderr
        assert "needs --no-prepare" in done.stderr

    def test_the_table_as_it_is(self, answer, command, where):
        document = answer(*where, "--model", "own_pipelines:words", "--no-prepare", "--report", "r.html")
        assert document["preparation"] == ["nothing: the model gets the table as it is (--no-prepare)"]
        assert len(document["rows"]) == 42
        done = command(*where, "--no-prepare", "-q")
        assert "it must encode words" in done.stderr
        assert "could not convert string to float" in done.stderr

    def test_suspects_measure_distances_in_numbers_all_the_same(self, answer, where):
        found = answer("suspects", *where[1:], "--model", "own_pipelines:words", "--no-prepare", "-n", "3")
        assert all(row["neighbours"] for row in found["suspects"])


class TestRareClasses:
    def test_are_named_and_can_be_left_out(self, answer, command, table):
        frame, write = table
        write(
            frame.assign(
                label=frame["label"].astype(str).where(~frame.index.isin([3, 9]), "n" + frame.index.astype(str))
            )
        )
        done = command("value", *WHERE)
        assert done.status == 2
        assert "'n3' and 'n9' once" in done.stderr
        assert "--drop-rare-classes" in done.stderr
        document = answer("value", *WHERE, "--drop-rare-classes")
        assert document["n_rows"] == 58
        assert "left out 2 rows of t.csv whose label no other row has: 'n3' and 'n9'" in document["preparation"]

    def test_a_table_of_nothing_else_is_refused(self, command, table):
        frame, write = table
        write(frame.assign(label="n" + frame.index.astype(str)))
        done = command("value", *WHERE, "--drop-rare-classes")
        assert done.status == 2
        assert "every class has one row, so that no row would be left" in done.stderr


class TestMissingTargets:
    @pytest.fixture
    def gaps(self, table):
        frame, write = table
        write(frame.assign(label=frame["label"].where(frame.index % 10 != 5)))
        write(frame[:20].assign(label=frame["label"].where(frame.index != 3)), "test.csv")

    def test_the_error_says_what_to_do(self, command, gaps):
        done = command("value", *WHERE)
        assert done.status == 1
        assert "is missing in 6 rows, first in row n5" in done.stderr
        assert "--drop-missing-target" in done.stderr

    def test_they_can_be_left_out(self, answer, gaps):
        document = answer("value", *WHERE, "--test", "test.csv", "--drop-missing-target")
        assert document["n_rows"] == 54
        assert document["n_tests"] == 19
        assert "n5" not in [row["name"] for row in document["rows"]]
        assert "left out 6 rows of t.csv without a target 'label'" in document["preparation"]
        assert "left out 1 row of test.csv without a target 'label'" in document["preparation"]


class TestNamesThatRepeat:
    def test_the_target_twice_is_refused(self, command, table, tmp_path):
        lines = (tmp_path / "t.csv").read_text().splitlines()
        leaking = [f"{line},{line.rpartition(',')[2]}" for line in lines]
        (tmp_path / "t.csv").write_text("\n".join(leaking))
        done = command("suspects", *WHERE)
        assert done.status == 1
        assert "has the column 'label' 2 times" in done.stderr

    def test_others_are_told(self, answer, table, tmp_path):
        text = (tmp_path / "t.csv").read_text().replace("color", "size", 1)
        (tmp_path / "t.csv").write_text(text)
        document = answer("value", *WHERE)
        assert any("t.csv has the column 'size' 2 times" in line for line in document["preparation"])


class TestLongLists:
    def test_twenty_are_shown_and_how_to_get_the_rest(self, command, table):
        done = command("select", *WHERE, "-n", "0.5")
        assert len(done.stdout.splitlines()) == 2 + 20 + 1
        assert "... and 10 more; -n 30 shows all, --out FILE writes all, --json prints all." in done.stdout
        assert len(command("select", *WHERE, "-n", "30").stdout.splitlines()) == 2 + 30

    @pytest.mark.slow
    def test_of_suspects(self, command, table):
        shown = command("suspects", *WHERE, "-n", "0.5").stdout
        assert "... and 10 more; -n 30 shows all" in shown
        assert len(json.loads(command("suspects", *WHERE, "-n", "0.5", "--json").stdout)["suspects"]) == 30


def test_separated_by_whitespace(answer, table, tmp_path):
    frame, _ = table
    (tmp_path / "t.txt").write_text(frame.to_string(index=False))
    assert answer("value", "t.txt", *WHERE[1:])["n_rows"] == 60
    (tmp_path / "t.txt").write_text(frame.to_csv(index=False, sep=":"))
    assert answer("value", "t.txt", *WHERE[1:], "--sep", ":")["n_rows"] == 60


def test_a_target_of_spelt_numbers_is_told(answer, table):
    frame, write = table
    write(frame.assign(label=[f"{1000 + i:,}.5" for i in range(60)]))
    document = answer("value", *WHERE)
    assert document["model"] == "KNeighborsRegressor()"
    assert "the target 'label' read as numbers, such as 1000.5 for '1,000.5'" in document["preparation"]


@pytest.mark.parametrize("names", [("value", "suspicion"), ("p_wrong", "neighbours"), ("label", "stderr")])
def test_columns_may_be_named_as_ours(command, table, tmp_path, names):
    frame, write = table
    write(frame.rename(columns={"size": names[0], "color": names[1], "label": "kind"}))
    out = tmp_path / "suspects.csv"
    done = command("suspects", tmp_path / "t.csv", "-t", "kind", "--id", "name", "--out", out, "-n", "5")
    assert done.status == 0, done.stderr
    listed = pd.read_csv(out)
    for name in names:
        theirs = f"{name}_in_table" if f"{name}_in_table" in listed else name
        np.testing.assert_array_equal(
            listed[theirs], listed[["name"]].merge(frame, on="name")["size" if name == names[0] else "color"]
        )


@pytest.mark.parametrize(
    ("words", "name"),
    [(["value"], "value"), (["suspects"], "value"), (["select", "-n", "5", "--by", "value"], "p_best")],
)
def test_the_column_of_names_may_be_named_as_ours(command, table, tmp_path, words, name):
    frame, write = table
    write(frame.rename(columns={"name": name}))
    out = tmp_path / "out.csv"
    first, *more = words
    done = command(first, tmp_path / "t.csv", "-t", "label", "--id", name, "--out", out, *more)
    assert done.status == 0, done.stderr
    listed = pd.read_csv(out)
    assert set(listed[f"{name}_in_table" if f"{name}_in_table" in listed else name]) <= set(frame["name"])


class TestClassesThatReadLikeMissingCells:
    @pytest.fixture
    def none(self, table):
        frame, write = table
        return write(frame.assign(label=frame["label"].replace("no", "None")))

    def test_a_message_says_what_to_do(self, command, none, tmp_path):
        done = command("value", tmp_path / "t.csv", "-t", "label", "--id", "name")
        assert done.status == 1
        assert "if that is a class, let only empty cells be missing (--na '')" in done.stderr

    def test_only_empty_cells_may_be_missing(self, answer, none, tmp_path):
        found = answer("suspects", tmp_path / "t.csv", "-t", "label", "--id", "name", "--na", "")
        assert {"n0", "n2"} <= {row["name"] for row in found["suspects"]}

    def test_others_may_be_missing(self, command, none, tmp_path):
        words = "value", tmp_path / "t.csv", "-t", "label", "--id", "name", "--na", "yes, ?"
        done = command(*words)
        assert f"missing in {(none['label'] == 'yes').sum()} rows" in done.stderr
