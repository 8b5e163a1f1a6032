"""Saved values beside a table that was shuffled, mended, changed or replaced since."""

from __future__ import annotations

import json
import re

import pandas as pd
import pyarrow.parquet as pq
import pytest

import localshapley as ls

pytestmark = pytest.mark.quick
WITHOUT_NAMES = ["-t", "species", "--owner", "garden"]
WITH_NAMES = [*WITHOUT_NAMES, "--id", "plant"]


@pytest.fixture(params=["names", "numbers"])
def words(request):
    """The words that name the rows, by their ids or not."""
    return WITH_NAMES if request.param == "names" else WITHOUT_NAMES


@pytest.fixture
def table(flowers):
    table = pd.read_csv(flowers / "train.csv")
    return pd.concat([table, table[:2].assign(plant=["p900", "p901"])], ignore_index=True)


@pytest.fixture
def valued(answer, table, words, tmp_path):
    """Values of the table in `v.parquet`; the table itself is in `train.csv`."""
    if "--id" not in words:
        table = table.drop(columns="plant")
    table.to_csv(tmp_path / "train.csv", index=False)
    answer("value", "train.csv", *words, "--out", "v.parquet")
    return table


def by_contents(rows, table, words):
    """Suspicion and label of rows by what identifies them."""
    if "--id" in words:
        return {row["plant"]: (round(row["suspicion"], 9), row["label"]) for row in rows}
    features = table.drop(columns=["species", "garden"]).astype(str).apply(tuple, axis=1)
    return sorted((str(features[row["row"]]), round(row["suspicion"], 9), row["label"]) for row in rows)


def test_a_shuffled_table_gives_each_row_its_own_value(answer, valued, words, tmp_path):
    expected = answer("suspects", "train.csv", *words, "--values", "v.parquet", "-n", 102)
    shuffled = valued.sample(frac=1, random_state=1, ignore_index=True)
    shuffled = shuffled[[*reversed(shuffled.columns)]]  # columns in another order, too
    shuffled.to_csv(tmp_path / "shuffled.csv", index=False)
    found = answer("suspects", "shuffled.csv", *words, "--values", "v.parquet", "-n", 102)
    assert by_contents(found["suspects"], shuffled[valued.columns], words) == by_contents(
        expected["suspects"], valued, words
    )
    chosen = answer("select", "shuffled.csv", *words, "--values", "v.parquet", "-n", 10, "--out", "best.csv")
    best = [
        row["value"] for row in answer("select", "train.csv", *words, "--values", "v.parquet", "-n", 10)["selected"]
    ]
    assert [row["value"] for row in chosen["selected"]] == pytest.approx(best)
    labels = pd.read_csv(tmp_path / "best.csv")["species"]
    assert labels.tolist() == [row["label"] for row in chosen["selected"]]


def test_the_report_of_a_shuffled_table_is_that_of_the_table(command, valued, words, tmp_path):
    valued.sample(frac=1, random_state=1).to_csv(tmp_path / "shuffled.csv", index=False)
    said = []
    for name in ("train", "shuffled"):
        about = ["--train", f"{name}.csv", "-t", "species", "--owner", "garden", "--data", "--out", f"{name}.html"]
        assert command("report", "v.parquet", *about).status == 0
        said.append(json.loads((tmp_path / f"{name}.json").read_text())["sections"])
    assert "virginica" in str(said[0]["classes"])
    assert said[0]["classes"] == said[1]["classes"]
    assert said[0]["owners"] == said[1]["owners"]


def test_mended_labels_are_told_everywhere(answer, command, valued, words, tmp_path):
    mended = valued.copy()
    mended.loc[[3, 20, 41], "species"] = "versicolor"
    changed = int((mended["species"] != valued["species"]).sum())
    assert changed == 3
    mended.sample(frac=1, random_state=2).to_csv(tmp_path / "mended.csv", index=False)
    note = "3 labels changed since the rows were valued; run `localshapley value` again."
    for name in ("suspects", "select"):
        found = answer(name, "mended.csv", *words, "--values", "v.parquet", "-n", 5)
        assert found["notes"].count(note) == 1
    assert f"note: {note}" in command("suspects", "mended.csv", *words, "--values", "v.parquet").stdout
    assert command("report", "v.parquet", "--train", "mended.csv", "-t", "species").status == 0
    assert "3 labels changed since" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda t: t.assign(**{"sepal width": [9.5, *t["sepal width"][1:]]}), "(1 of 102 rows)"),
        (lambda t: t.drop(index=5), "(it has no row 'p005'|1 of 102 rows are not in it)"),
        (lambda t: t.drop(columns="shade"), "it has no column 'shade'"),
    ],
    ids=["a changed row", "a row less", "a column less"],
)
def test_another_table_is_refused(command, valued, words, tmp_path, change, why):
    change(valued).to_csv(tmp_path / "other.csv", index=False)
    for done in (
        command("suspects", "other.csv", *words, "--values", "v.parquet"),
        command("select", "other.csv", *words, "--values", "v.parquet", "-n", 5),
        command("report", "v.parquet", "--train", "other.csv", "-t", "species", "--owner", "garden"),
    ):
        assert done.status == 1
        assert done.stderr.count("\n") == 1
        assert re.search(f"other.csv is not the table that was valued: {why}", done.stderr)


def test_rows_that_were_added_are_refused_and_those_set_aside_are_not(answer, command, table, tmp_path):
    table.to_csv(tmp_path / "train.csv", index=False)
    split = ["train.csv", *WITH_NAMES, "--test-size", "0.3", "--seed", "4"]
    answer("value", *split, "--out", "v.parquet")
    table.sample(frac=1, random_state=3).to_csv(tmp_path / "train.csv", index=False)  # splits would now differ
    found = answer("suspects", *split, "--values", "v.parquet", "-n", 5)
    assert found["n_rows"] == 71
    values = ls.load(tmp_path / "v.parquet").to_frame()["value"]
    assert all(row["value"] == values[row["plant"]] for row in found["suspects"])
    done = command("suspects", "train.csv", *WITH_NAMES, "--values", "v.parquet")
    assert done.status == 1
    assert "has 31 rows that were not valued" in done.stderr


def test_rows_without_a_target_are_left_out_again(answer, command, table, words, tmp_path):
    table = table if "--id" in words else table.drop(columns="plant")
    table.loc[[0, 30], "species"] = None
    table.to_csv(tmp_path / "train.csv", index=False)
    about = ["train.csv", *words, "--drop-missing-target"]
    answer("value", *about, "--out", "v.parquet")
    table.sample(frac=1, random_state=3).to_csv(tmp_path / "train.csv", index=False)
    found = answer("suspects", *about, "--values", "v.parquet", "-n", 5)
    assert found["n_rows"] == 100
    assert any("left out 2 rows of train.csv without a target" in line for line in found["preparation"])
    assert command("report", "v.parquet", "--train", "train.csv", "-t", "species", "--owner", "garden").status == 0


def test_tables_that_look_like_others_when_prepared(answer, tmp_path):
    numbers = pd.DataFrame({"a": [0, 1, 2] * 20, "species": ["one", "two", "two"] * 20})  # prepared, 1 becomes 0
    numbers.to_csv(tmp_path / "train.csv", index=False)
    for more in ([], ["--no-prepare"]):
        about = ["train.csv", "-t", "species", "--model", "knn", *more]
        answer("value", *about, "--out", "v.parquet", "--report", "r.html")
        fresh, saved = (
            answer("suspects", *about, *way, "-n", 5) for way in (["--report", "r.html"], ["--values", "v.parquet"])
        )
        assert fresh["suspects"] == saved["suspects"]


def test_values_of_owners_are_not_those_of_rows(command, answer, where):
    answer("value", *where, "--play-owners", "--out", "v.parquet")
    done = command("suspects", *where, "--values", "v.parquet")
    assert done.status == 1
    assert "these are values of owners" in done.stderr


def test_compare_joins_rows_without_names_by_contents(answer, table, tmp_path):
    table = table.drop(columns="plant")
    table.to_csv(tmp_path / "one.csv", index=False)
    table.sample(frac=1, random_state=1).to_csv(tmp_path / "two.csv", index=False)
    for name in ("one", "two"):
        answer("value", f"{name}.csv", *WITHOUT_NAMES, "--test", "one.csv", "--out", f"{name}.parquet")
    assert answer("compare", "one.parquet", "two.parquet")["pearson"] == pytest.approx(1)


def test_a_file_of_an_earlier_version_is_taken_by_its_names_with_a_note(answer, valued, words, tmp_path):
    path = tmp_path / "v.parquet"
    expected = answer("suspects", "train.csv", *words, "--values", path, "-n", 5)
    found = pq.read_table(path)
    header = json.loads(found.schema.metadata[b"localshapley"])
    header = {name: header[name] for name in header if name not in ("columns", "names")}
    meta = {**found.schema.metadata, b"localshapley": json.dumps(header).replace("valuation 3", "valuation 1").encode()}
    del meta[b"localshapley.checksum"]
    pq.write_table(found.drop_columns(["digest"]).replace_schema_metadata(meta), path)
    again = answer("suspects", "train.csv", *words, "--values", path, "-n", 5)
    assert again["suspects"] == expected["suspects"]
    assert [note for note in again["notes"] if "could not be checked" in note]
    assert not [note for note in expected["notes"] if "could not be checked" in note]
