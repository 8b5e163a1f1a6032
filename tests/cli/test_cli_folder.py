"""A folder of files, which may be larger than memory, on the command line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import localshapley as ls
from localshapley.data import chunked_rows


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(chunked_rows, "PART_BYTES", 8 * 3 * 50)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(240, 3)) * [1, 100, 0.1], columns=list("abc"))
    table["label"] = np.where(table["a"] + rng.normal(size=240) > 0, "yes", "no")
    (tmp_path / "rows").mkdir()
    for start in range(0, 200, 80):
        table.iloc[start : min(start + 80, 200)].to_parquet(tmp_path / "rows" / f"{start:03}.parquet")
    table.iloc[:200].to_csv(tmp_path / "rows.csv", index=False)
    table.iloc[200:].to_csv(tmp_path / "test.csv", index=False)
    return tmp_path


def test_values_of_a_folder_are_those_of_a_file(folder, answer):
    options = ["--target", "label", "--test", folder / "test.csv"]
    one = answer("value", folder / "rows.csv", *options)
    other = answer("value", folder / "rows", *options, "--out", folder / "values.parquet")
    assert other["n_all"] == 200
    assert other["preparation"] == ["scaled 3 columns of numbers"]
    expected = [row["value"] for row in one["rows"]]
    assert np.allclose([row["value"] for row in other["rows"]], expected, atol=1e-12)
    assert np.allclose(ls.load(folder / "values.parquet").values, expected, atol=1e-12)


def test_a_plan_says_how_much_memory(folder, answer):
    plan = answer("plan", folder / "rows", "--target", "label", "--test", folder / "test.csv")
    assert plan["n_rows"] == 200
    assert plan["memory"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "needs test rows in their own file: --test FILE"),
        (["--cv", "5"], "--cv needs a table in one file"),
        (["--test", "test.csv", "--report", "report.html"], "--report needs the table itself"),
    ],
)
def test_what_needs_one_table_is_refused(folder, command, monkeypatch, options, message):
    monkeypatch.chdir(folder)
    done = command("value", "rows", "--target", "label", *options)
    assert done.status != 0
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize("rows", ["rows", "rows.csv"])
def test_an_interruption_before_the_first_estimate_says_what_is_kept(folder, command, monkeypatch, rows):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(ls, "value", interrupted)
    done = command("value", folder / rows, "--target", "label", "--test", folder / "test.csv", "--store", "run.db")
    assert "stopped before the first estimate; run.db keeps what was trained" in done.stderr
    assert done.status == 130
