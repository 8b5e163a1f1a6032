"""What goes wrong: errors are one line; status 2 for wrong use, 1 for what the files hold."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import localshapley as ls

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["valeu"], 2, "No such command 'valeu'"),
        (["value"], 2, "Missing"),
        (["value", "train.csv"], 2, "--target"),
        (["value", "none.csv", "-t", "species"], 1, "none.csv is not there"),
        (["value", "train.xls", "-t", "species"], 2, "must end in one of"),
        (["value", "train.csv", "-t", "specie"], 2, "Did you mean 'species'?"),
        (["value", "train.csv", "-t", "species", "--model", "knnn"], 2, "Did you mean 'knn'?"),
        (["value", "train.csv", "-t", "species", "--model", "nowhere:Thing"], 2, "could not be imported"),
        (["value", "train.csv", "-t", "species", "--support", "nearest:many"], 2, "--support nearest:many"),
        (["value", "train.csv", "-t", "species", "--support", "near"], 2, "--support must be one of"),
        (["value", "train.csv", "-t", "species", "--support", "dual:3"], 2, "--support dual takes no size"),
        (["value", "train.csv", "-t", "species", "--support", "radius"], 2, "--support radius has no valid size"),
        (["value", "train.csv", "-t", "species", "--support", "hops:2"], 2, "--support must be one of"),
        (["value", "train.csv", "-t", "species", "--method", "exat"], 2, "Did you mean 'exact'?"),
        (["value", "train.csv", "-t", "species", "--cv", "5", "--test-size", "0.3"], 2, "cannot be combined"),
        (
            ["value", "train.csv", "-t", "species", "--cv", "many"],
            2,
            "--cv must be a number of folds, or oob; got 'many'",
        ),
        (["value", "train.csv", "-t", "species", "--cv", "oob"], 2, "cv='oob' needs trees that are grown once"),
        (["value", "train.csv", "-t", "species", "--model", "fixed"], 2, "'fixed-forest'"),
        (["value", "train.csv", "-t", "species", "--test-size", "3"], 2, "share between 0 and 1"),
        (["value", "train.csv", "-t", "species", "--tol", "-1"], 2, "tol must be a number above 0"),
        (["value", "train.csv", "-t", "species", "--id", "garden"], 1, "names more than one row"),
        (["value", "train.csv", "-t", "species", "--out", "no/v.csv"], 2, "folder no does not exist"),
        (["value", "train.csv", "-t", "species", "--play-owners"], 2, "--owner COLUMN"),
        (["value", "train.csv", "-t", "species", "--task", "regression"], 1, "regression needs numbers"),
        (["value", "train.csv", "-t", "species", "--curves"], 2, "--curves needs test rows"),
        (["value", "train.csv", "-t", "species", "--image-shape", "big"], 2, "must look like 28x28"),
        (
            ["value", "train.csv", "-t", "species", "--owner", "shade"],
            1,
            "the owner column 'shade' is empty in 1 row, first in row 7",
        ),
        (["suspects", "train.csv", "-t", "species", "--play-owners"], 2, "--play-owners values owners"),
        (["suspects", "train.csv", "-t", "species", "-n", "2.5"], 2, "such as 20, or a share of them"),
        (["suspects", "train.csv", "-t", "species", "-n", "5000"], 2, "n must be a number of rows from 1 to"),
        (["value", "train.csv", "-t", "species", "--seed", "-1", "--test-size", "0.3"], 2, "--seed must be from 0"),
        (["value", "train.csv", "-t", "species", "--id", "species"], 2, "--id species is also the --target"),
        (["value", "train.csv", "-t", "species", "--id", "plant", "--drop", "plant"], 2, "is also the --drop"),
        (["value", "train.csv", "-t", "species", "--drop", "species"], 2, "--drop species is the --target"),
        (["suspects", "train.csv", "-t", "species", "--values", "no.parquet"], 1, "--values no.parquet is not there"),
        (["report", "no.parquet"], 1, "VALUES no.parquet is not there"),
        (["store", "info", "no.db"], 1, "no.db does not exist"),
        (
            ["value", "train.csv", "-t", "species", "--budget", "1.5"],
            2,
            "whole number, such as 1000 or 1e3; got '1.5'.",
        ),
        (["value", "train.csv", "-t", "species", "--tol", "much"], 2, ". See "),  # words are typer's
        (["compare", "train.csv", "test.csv"], 1, "no column 'value'"),
        (["report", "train.csv"], 2, "must end in .parquet"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else None,
)
def test_one_line_with_the_remedy(command, flowers, monkeypatch, words, status, message):
    monkeypatch.chdir(flowers)
    done = command(*words)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("100 rows")]
    assert done.status == status
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert done.stdout == ""


def test_a_test_table_with_other_columns(command, flowers):
    pd.read_csv(flowers / "test.csv").drop(columns=["plant", "garden", "shade"]).to_csv("test.csv", index=False)
    words = (
        "value",
        flowers / "train.csv",
        "-t",
        "species",
        "--id",
        "plant",
        "--owner",
        "garden",
        "--test",
        "test.csv",
    )
    done = command(*words)
    assert done.status == 1
    assert "test.csv lacks the column 'shade'" in done.stderr
    assert command(*words, "--drop", "shade").status == 0  # columns that nothing is learnt from need not be there


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"a,b,label\n", "has 0 rows"),
        (b"a,b,label\n1,2,x\n3,4,x\n5,6,x\n", "has only one class (x)"),
        (
            b"a,label\n" + b"1,x\n2,y\n" * 20 + b"abc,x\n",
            "if they are codes, give the column as a category (on the command line, --category a)",
        ),
        (
            "a,label\n1,é\n2,b\n".encode("latin-1"),
            "is not utf-8 text (byte 0xe9); save it as UTF-8, or give its encoding, such as --encoding latin-1.",
        ),
        (b"a,label\n1,x\n2,\n", "target 'label' is missing in 1 row, first in row 1"),
        (b"a,label\n1,x\n2,y,3,4,5\n", "cannot be read as csv"),
        (b"label\nx\ny\n", "no columns left to learn from"),
        (bytes(range(32)) * 10_000, "does not hold text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "does not hold text"),
        (b"a" * 2**21, "does not start with the names of columns"),
    ],
    ids=[
        "empty",
        "no rows",
        "one class",
        "text in numbers",
        "latin-1",
        "no label",
        "ragged",
        "no features",
        "binary",
        "picture",
        "one line",
    ],
)
def test_bad_files(command, tmp_path, content, message):
    (tmp_path / "bad.csv").write_bytes(content)
    done = command("value", "bad.csv", "-t", "label")
    assert done.status == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert message in done.stderr


def test_a_hundred_megabytes_of_garbage_are_not_read(command, tmp_path, monkeypatch):
    def read_csv(*_, **__):
        raise AssertionError("a file that holds no text is refused by its first bytes")

    monkeypatch.setattr(pd, "read_csv", read_csv)
    with (tmp_path / "g.csv").open("wb") as file:
        file.write(np.random.default_rng(0).bytes(2**20))
        file.truncate(100 * 2**20)
    done = command("value", "g.csv", "-t", "label")
    assert done.status == 1
    assert len(done.stderr.splitlines()) == 1
    assert "does not hold text" in done.stderr


def test_a_model_of_ones_own_that_fails(command, flowers, tmp_path):
    (tmp_path / "broken_model.py").write_text(
        "from sklearn.naive_bayes import GaussianNB\n"
        "class Broken(GaussianNB):\n"
        "    def fit(self, X, y):\n        raise RuntimeError('no memory left')\n"
    )
    done = command("value", flowers / "train.csv", "-t", "species", "--model", "broken_model:Broken", "-q")
    assert done.status == 1
    assert "no memory left" in done.stderr
    assert "Traceback" not in done.stderr


def test_warnings_of_ours_are_one_line(command, monkeypatch):
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # put back afterwards
    command("--version")
    assert warnings.formatwarning("too\nfew", ls.LocalShapleyWarning, "file.py", 7) == "warning: too few\n"
    assert "file.py:7: UserWarning: theirs" in warnings.formatwarning("theirs", UserWarning, "file.py", 7)
