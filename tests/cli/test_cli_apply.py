"""From a report to a mended table, on the command line."""

from __future__ import annotations

import re
import sys

import numpy as np
import pandas as pd
import pytest

from cli.deciding import decide
from localshapley.cli import main
from localshapley.io.tables import read_table

NAMED = ["--target", "species", "--id", "plant"]


def accept(name, label, suggested):
    return "relabel", suggested


@pytest.fixture(scope="module")
def plants(flowers, tmp_path_factory):
    """The flowers as a file that something else wrote: numbers, quotes, line ends and a text to leave out."""
    folder = tmp_path_factory.mktemp("plants")
    lines = (flowers / "train.csv").read_text().splitlines()
    text = [lines[0] + ",note"] + [f'{line},"said ""{i:03}"", 1.50"' for i, line in enumerate(lines[1:])]
    (folder / "plants.csv").write_bytes(("\r\n".join(text) + "\r\n").encode())
    return folder


@pytest.fixture(scope="module")
def report(plants):
    """A report about the plants."""
    words = ["value", plants / "plants.csv", *NAMED, "--report", plants / "r.html", "--no-curves", "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["localshapley", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 0
    return plants / "r.html"


@pytest.mark.parametrize(
    "words",
    ["value --test-size 0.2 --no-curves", "suspects --drop note --owner garden", "suspects -n 9 --errors draws"],
)
def test_every_other_character_stays(answer, plants, tmp_path, words):
    table = plants / "plants.csv"
    first, *more = words.split()
    answer(first, table, *NAMED, *more, "--report", "r.html")
    told = "localshapley apply plants.csv decisions.csv --target species --id plant --out plants-mended.csv"
    assert told in (tmp_path / "r.html").read_text()
    made = decide(tmp_path / "r.html", tmp_path / "d.csv", accept)
    assert {"p003", "p020", "p041"} & set(made)
    done = answer("apply", table, "d.csv", *NAMED, "--out", "clean.csv")
    assert (done["kept"], done["relabelled"], done["dropped"]) == (0, len(made), 0)
    assert sum(change["n"] for change in done["changes"]) == len(made)
    before, after = (path.read_bytes().split(b"\r\n") for path in (table, tmp_path / "clean.csv"))
    assert len(before) == len(after)
    for was, now in zip(before, after, strict=True):
        name = was.split(b",")[0].decode()
        old, new = (made[name][2], made[name][3]) if name in made else ("", "")
        assert now == was.replace(old.encode(), new.encode())
        assert (now != was) == (name in made)


def test_the_score_before_and_after_and_what_is_said(command, answer, plants, report, tmp_path):
    table = plants / "plants.csv"
    first = []
    made = decide(report, tmp_path / "d.csv", lambda *row: first.append(row) or (
        ("drop", "") if len(first) == 1 else ("relabel", "unclear") if len(first) == 2 else ("keep", row[1])
    ))  # fmt: skip
    words = [table, "d.csv", *NAMED, "--out", "clean.csv"]
    said = command("apply", *words, "--check", "--model", "tree", "--cv", "3")
    assert said.status == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[0] == f"{len(made)} decisions on 100 rows"
    assert "  labels that were not in the table: unclear" in lines
    n_same = 98
    same = rf"  on the {n_same} rows that did not change: (0\.\d+), \1: the same on every row"
    assert re.fullmatch(same, lines[-3])
    assert lines[-4].endswith("before and after: no difference beyond two standard errors")
    assert re.fullmatch(r"  on all rows of each table: 0\.\d+, 0\.\d+ \(higher in any case, .*\)", lines[-2])
    assert lines[-1] == "Wrote clean.csv: 99 rows"
    assert "comparing the model before and after" in said.stderr
    document = answer("apply", *words, "--force", "--check", "--model", "tree", "--cv", "3")
    assert document["check"]["n_tests"] == n_same
    assert document["new_labels"] == ["unclear"]
    assert document["decisions"][0]["decision"] == "drop"


def test_nothing_is_overwritten_or_mended_twice_unless_asked(command, plants, report, tmp_path):
    (tmp_path / "t.csv").write_bytes((plants / "plants.csv").read_bytes())
    decide(report, tmp_path / "d.csv", accept)
    original = (tmp_path / "t.csv").read_bytes()
    (tmp_path / "there.csv").write_text("mine")
    for out, why in (("t.csv", "t.csv is the table itself"), ("there.csv", "there.csv is there already")):
        done = command("apply", "t.csv", "d.csv", *NAMED, "--out", out)
        assert done.status == 1
        assert f"{why}; give another --out, or --force" in done.stderr
    assert (tmp_path / "there.csv").read_text() == "mine"
    assert (tmp_path / "t.csv").read_bytes() == original
    assert command("apply", "t.csv", "d.csv", *NAMED, "--out", "t.csv", "--force").status == 0
    assert (tmp_path / "t.csv").read_bytes() != original
    again = command("apply", "t.csv", "d.csv", *NAMED, "--out", "other.csv")
    assert again.status == 1
    assert "not one that is mended already" in again.stderr
    assert not (tmp_path / "other.csv").exists()


def test_wrong_use_is_one_line(command, plants, report, tmp_path):
    table = plants / "plants.csv"
    decide(report, tmp_path / "d.csv", accept)
    other = pd.read_csv(table)
    other["sepal width"] += 1
    other.to_csv("other.csv", index=False)
    cases = [
        ([table, "d.csv", *NAMED, "--out", "c.parquet"], 2, "c.parquet must end in .csv like"),
        ([table, "d.csv", "--target", "kind", "--out", "c.csv"], 2, "has no such column: --target must be one of"),
        ([table, "d.csv", "--target", "species", "--out", "c.csv"], 1, "are not in the table, first"),
        ([table, "no.csv", *NAMED, "--out", "c.csv"], 1, "no.csv is not there; give saved decisions"),
        ([table, table, *NAMED, "--out", "c.csv"], 1, "has no column 'row'; give the decisions.csv"),
        ([table, "d.csv", *NAMED, "--out", "no/c.csv"], 2, "the folder no does not exist"),
        (["other.csv", "d.csv", *NAMED, "--out", "c.csv"], 1, "these are decisions about another table"),
    ]
    for words, status, message in cases:
        done = command("apply", *words)
        assert (done.status, done.stdout) == (status, "")
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "c.csv").exists()


def test_parquet_stays_parquet_and_a_report_of_saved_values_will_do(answer, plants, tmp_path):
    table = read_table(plants / "plants.csv").assign(when=pd.date_range("2024-01-01", periods=100))
    table["species"] = table["species"].astype("category")
    table.to_parquet("t.parquet")
    answer("value", "t.parquet", "--target", "species", "--id", "plant", "--drop", "when", "--out", "v.parquet")
    answer("report", "v.parquet", "--train", "t.parquet", "--target", "species", "--out", "r.html")
    made = decide(tmp_path / "r.html", tmp_path / "d.csv", lambda *_: ("drop", ""))
    answer("apply", "t.parquet", "d.csv", "--target", "species", "--id", "plant", "--out", "c.parquet")
    found = pd.read_parquet("c.parquet")
    expected = table[~table["plant"].isin(list(made))].reset_index(drop=True)
    assert len(found) == 100 - len(made)
    pd.testing.assert_frame_equal(found, expected, check_categorical=False)


def test_labels_of_numbers(answer, plants, tmp_path):
    table = read_table(plants / "plants.csv")
    table["species"] = table["species"].map({"setosa": 0, "versicolor": 1, "virginica": 2})
    table.insert(0, "species code", table.pop("species").astype(float))
    table.to_csv("t.csv", index=False)
    answer("value", "t.csv", "--target", "species code", "--id", "plant", "--report", "r.html", "--no-curves")
    made = decide(tmp_path / "r.html", tmp_path / "d.csv", accept)
    assert {line[2] for line in made.values()} <= {"0", "1", "2"}
    answer("apply", "t.csv", "d.csv", "--target", "species code", "--id", "plant", "--out", "c.csv")
    found = (tmp_path / "c.csv").read_text().splitlines()
    assert {line.split(",")[0] for line in found[1:]} == {"0.0", "1.0", "2.0"}
    changed = np.flatnonzero(
        [a != b for a, b in zip((tmp_path / "t.csv").read_text().splitlines(), found, strict=True)]
    )
    assert len(changed) == len(made)
