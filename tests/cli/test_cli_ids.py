"""Names of rows and columns: ids are shown as they are in the file, and join with ids of another kind."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import localshapley as ls
from cli.deciding import decide
from localshapley.cli import output

pytestmark = pytest.mark.quick

WHERE = ("t.csv", "-t", "kind", "--id", "id")


@pytest.fixture
def table(tmp_path):
    """Rows with numbers as ids, whose zeros count, in `t.csv`; four labels are wrong."""
    label = np.arange(60) % 2
    size = np.random.default_rng(0).normal(6 * label).round(3)
    frame = pd.DataFrame({"id": [f"{7 * i:05}" for i in range(60)], "size": size, "kind": np.where(label, "x", "y")})
    frame.loc[:3, "kind"] = ["x", "y", "x", "y"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    return frame


def test_every_output_has_them_as_they_are_in_the_file(answer, command, table, tmp_path):
    ids = set(table["id"])
    assert {row["id"] for row in answer("value", *WHERE, "--out", "v.csv", "--report", "r.html")["rows"]} == ids
    assert set(pd.read_csv(tmp_path / "v.csv", dtype=str)["id"]) == ids
    found = answer("suspects", *WHERE, "-n", 4, "--out", "s.csv")["suspects"]
    assert pd.read_csv(tmp_path / "s.csv", dtype=str)["id"].tolist() == [row["id"] for row in found]
    assert all(near in ids for row in found for near in row["neighbours"])
    assert f"\n{found[0]['id']} " in command("select", *WHERE, "-n", 60).stdout
    made = decide(tmp_path / "r.html", tmp_path / "d.csv", lambda *_: ("drop", ""))
    assert made.keys() <= ids
    answer("apply", "t.csv", "d.csv", "-t", "kind", "--id", "id", "--out", "o.csv")
    assert set(pd.read_csv(tmp_path / "o.csv", dtype=str)["id"]) == ids - made.keys()
    as_numbers = ls.audit.apply(pd.read_csv(tmp_path / "t.csv"), tmp_path / "d.csv", target="kind", id="id")
    assert set(as_numbers.dropped) == {int(name) for name in made}


def test_texts_that_pandas_takes_for_missing_are_names(answer, table, tmp_path):
    table.assign(id=["NA", "1.10", "1.1", *table["id"][3:]]).to_csv(tmp_path / "t.csv", index=False)
    assert [row["id"] for row in answer("value", *WHERE)["rows"]][:3] == ["NA", "1.10", "1.1"]


@pytest.mark.parametrize(("name", "ending"), [("", "csv"), ("  ", "csv"), (None, "parquet")])
def test_a_row_without_one_is_refused(command, table, tmp_path, name, ending):
    gaps = table.assign(id=[*table["id"][:5], name, *table["id"][6:]])
    if ending == "csv":
        gaps.to_csv(tmp_path / "t.csv", index=False)
    else:
        gaps.to_parquet(tmp_path / "t.parquet")
    done = command("value", f"t.{ending}", *WHERE[1:])
    assert done.status == 1
    assert "--id id is empty in 1 row, first in row 5 (counted from 0); name each row there" in done.stderr


def test_numbers_that_repeat_are_named_plainly(command, table, tmp_path):
    table.assign(id=[7, *range(59)]).to_parquet(tmp_path / "t.parquet")
    assert "--id id: '7' names more than one row" in command("value", "t.parquet", *WHERE[1:]).stderr


def test_values_under_numbers_join_the_table(answer, table, tmp_path):
    read = pd.read_csv(tmp_path / "t.csv").set_index("id")  # where 00007 is 7
    ls.value(read[["size"]], read["kind"], cv=5, model="knn").save(tmp_path / "python.parquet")
    answer("value", *WHERE, "--no-prepare", "--out", "v.csv")
    answer("value", *WHERE, "--no-prepare", "--out", "v.parquet")
    table.sample(frac=1, random_state=1).to_csv(tmp_path / "t.csv", index=False)
    for name in ("python.parquet", "v.parquet"):
        found = answer("suspects", *WHERE, "--values", name, "-n", 4)["suspects"]
        assert {row["id"] for row in found} == set(table["id"][:4])
        assert answer("compare", name, "v.csv")["pearson"] == pytest.approx(1)
        assert answer("compare", "v.csv", name)["rows"] == 60
        answer("report", name, "--train", "t.csv", "-t", "kind", "--out", "r.html")
        made = decide(tmp_path / "r.html", tmp_path / "d.csv", lambda *_: ("keep", ""))
        assert "00000" in made
        assert made.keys() <= set(table["id"])
    v = ls.load(tmp_path / "v.parquet")
    shuffled = read.sample(frac=1, random_state=2)
    rows = ls.audit.label_errors(shuffled[["size"]], shuffled["kind"], values=v, n=4).table
    assert set(rows.index) == set(table["id"][:4])


class TestNamesOfColumns:
    @pytest.mark.parametrize("name", ["kind", " kind "])
    def test_are_taken_with_or_without_spaces(self, answer, table, tmp_path, name):
        text = (tmp_path / "t.csv").read_text().replace("id,size,kind", " id , size , kind ")
        (tmp_path / "t.csv").write_text(text)
        where = ["t.csv", "-t", name, "--id", " id"]
        answer("value", *where, "--out", "v.parquet", "--report", "r.html")
        answer("report", "v.parquet", "--train", "t.csv", "-t", name)
        made = decide(tmp_path / "r.html", tmp_path / "d.csv", lambda *_: ("drop", ""))
        answer("apply", "t.csv", "d.csv", *where[1:], "--out", "o.csv")
        left = (tmp_path / "o.csv").read_text().splitlines()
        assert left == [line for line in text.splitlines() if line.split(",")[0] not in made]

    def test_also_those_of_parquet(self, answer, table, tmp_path):
        table.rename(columns={"kind": " kind "}).to_parquet(tmp_path / "t.parquet")
        answer("value", "t.parquet", "-t", " kind ", "--id", "id", "--report", "r.html")
        decide(tmp_path / "r.html", tmp_path / "d.csv", lambda *_: ("drop", ""))
        answer("apply", "t.parquet", "d.csv", "-t", "kind", "--id", "id", "--out", "o.parquet")
        assert list(pd.read_parquet(tmp_path / "o.parquet").columns) == ["id", "size", " kind "]


def test_whole_numbers_may_have_an_exponent(answer, command, table):
    words = ["plan", *WHERE, "--model", "tree", "--support", "nearest:30"]
    assert answer(*words, "--budget", "7e2")["this_run"]["trainings"] == 700
    assert answer("plan", *WHERE, "--cv", "5e0", "--seed", "1e1")["n_tests"] == 60
    done = command(*words, "--budget", "1e999999999")
    assert done.status == 2
    assert "must be a whole number" in done.stderr


def test_no_more_rows_are_offered_than_there_are(command, table, tmp_path):
    table[4:10].to_csv(tmp_path / "t.csv", index=False)
    few = command("suspects", *WHERE)
    assert few.status == 2
    assert "too small to learn from: 6 rows" in few.stderr
    assert command("value", *WHERE, "--out", "v.parquet").status == 0
    assert "-n 6 lists the 6 most suspicious" in command("suspects", *WHERE, "--values", "v.parquet").stdout


def test_what_a_store_keeps_is_said_when_the_run_starts(command, table):
    assert (
        "run.db keeps trainings that take longer than reading them back"
        in command("value", *WHERE, "--store", "run.db").stderr
    )


class TestLongNames:
    @pytest.fixture
    def paths(self, table, tmp_path):
        names = [f"src/test/{'deep/' * 30}Rows{i:02}Test.java" for i in range(60)]
        table.assign(id=names).to_csv(tmp_path / "t.csv", index=False)
        return names

    def test_are_cut_in_the_middle_and_have_the_number_of_their_row(self, command, paths):
        for words in (["suspects", *WHERE, "-n", 4], ["select", *WHERE, "-n", 4], ["value", *WHERE]):
            listed = [line for line in command(*words, "-q").stdout.splitlines() if line.startswith("src/test/")]
            assert len(listed) >= 4
            for line in listed:
                number = int(line.partition("(row ")[2].partition(")")[0])
                assert f"/Rows{number:02}Test.java (row {number})" in line

    def test_of_neighbours_are_cut_one_by_one(self, command, paths):
        (line, *_) = [line for line in command("suspects", *WHERE, "-n", 4, "-q").stdout.splitlines() if "(row" in line]
        one = r"src/test/d…(\w+\.java) \(row (\d+)\)"
        end, number, other_end, other = re.search(rf"{one}, {one}, .*…$", line).groups()
        assert paths[int(number)].endswith(end)
        assert paths[int(other)].endswith(other_end)

    @pytest.mark.parametrize(("columns", "whole"), [(60, False), (90, False), (400, True)])
    def test_have_the_room_that_the_terminal_has(self, columns, whole, monkeypatch):
        names = pd.Index([f"{'a' * 50}{'b' * 30}{i}" for i in range(3)], name="id")
        rows = pd.DataFrame({"value": [0.5, 1.5, 2.5], "label": ["x", "y", None]}, index=names)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: True))
        lines = output.table_text(rows, names=names[::-1]).splitlines()
        assert (names[0] in lines[1]) == whole
        assert ("… " not in lines[1] and "(row 2)" in lines[1]) == (not whole)
        assert len(lines[1]) <= columns
        assert whole or len(lines[1]) > columns - 4
