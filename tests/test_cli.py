"""The command line as a person would use it: a process of its own, real files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import localshapley as ls


def command(*words, **how):
    return subprocess.run(
        [sys.executable, "-m", "localshapley", *map(str, words)], capture_output=True, text=True, timeout=120, **how
    )


def answer(*words, **how):
    """The one JSON document of a command that must succeed."""
    done = command(*words, "--json", **how)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def flowers(tmp_path_factory):
    """Iris as a person has it: names, words, gaps, an owner and three wrong labels; a part set aside."""
    folder = tmp_path_factory.mktemp("flowers")
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    table = pd.DataFrame(X[order], columns=["sepal length", "sepal width", "petal length", "petal width"])
    table["species"] = np.array(["setosa", "versicolor", "virginica"])[y[order]]
    table.insert(0, "plant", [f"p{i:03}" for i in range(150)])
    table["garden"] = np.array(["north", "south", "west"])[np.arange(150) % 3]
    table["shade"] = np.where(np.arange(150) % 4 == 0, "sun", "shade")
    table.loc[5, "petal width"] = np.nan
    table.loc[7, "shade"] = None
    wrong = [3, 20, 41]
    table.loc[wrong, "species"] = ["virginica" if s == "setosa" else "setosa" for s in table.loc[wrong, "species"]]
    table[:100].to_csv(folder / "train.csv", index=False)
    table[100:].to_csv(folder / "test.csv", index=False)
    return folder


def options(folder):
    return ["--test", folder / "test.csv", "--target", "species", "--id", "plant", "--owner", "garden"]


def test_version_and_help():
    assert command("--version").stdout.strip() == f"localshapley {ls.__version__}"
    shown = command("--help").stdout
    for name in ("value", "plan", "suspects", "select", "compare", "report", "datasets", "demo", "store"):
        assert name in shown


def test_nothing_heavy_is_imported_for_help():
    heavy = ["numpy", "pandas", "sklearn", "numba", "scipy", "torch", "matplotlib"]
    script = f"import localshapley.cli, sys; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "[]"


class TestValue:
    def test_from_a_table_to_values_and_a_report(self, flowers, tmp_path):
        done = command(
            "value", flowers / "train.csv", *options(flowers), "--out", tmp_path / "v.parquet", "--report", "r.html",
            cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
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

    def test_one_document_on_standard_output_and_all_else_beside_it(self, flowers):
        done = command("value", flowers / "train.csv", *options(flowers), "--json")
        document = json.loads(done.stdout)
        assert "100 rows of" in done.stderr
        assert document["n_tests"] == 50
        assert document["model"] == "KNeighborsClassifier()"
        rows = document["rows"]
        assert [row["plant"] for row in rows] == [f"p{i:03}" for i in range(100)]
        assert set(rows[0]) == {"plant", "value", "stderr", "n_tests", "label", "owner"}
        shares = [owner["share"] for owner in document["owners"]]
        assert sum(shares) == pytest.approx(100)

    def test_is_what_the_library_says(self, flowers):
        document = answer(
            "value", flowers / "train.csv", "--test-size", 0.3, "-t", "species", "--drop", "shade", "--drop", "plant",
            "--drop", "garden", "--model", "sklearn.tree:DecisionTreeClassifier", "--support", "nearest:6",
            "--method", "exact", "--score", "accuracy", "--quiet",
        )  # fmt: skip
        table = pd.read_csv(flowers / "train.csv")
        from sklearn.model_selection import train_test_split
        from sklearn.preprocessing import StandardScaler
        from sklearn.tree import DecisionTreeClassifier

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

    @pytest.mark.parametrize("ending", ["tsv", "csv.gz", "parquet", "feather", "arrow"])
    def test_formats_in_and_out(self, flowers, tmp_path, ending):
        table = pd.read_csv(flowers / "train.csv")
        path = tmp_path / f"train.{ending}"
        if ending == "tsv":
            table.to_csv(path, sep="\t", index=False)
        elif ending == "csv.gz":
            table.to_csv(path, sep=";", index=False)
        elif ending == "parquet":
            table.astype({"species": "category"}).to_parquet(path)
        else:
            table.to_feather(path)
        out = tmp_path / f"values.{ending}"
        document = answer("value", path, "-t", "species", "--id", "plant", "--cv", 3, "--out", out, "-q")
        assert document["files"] == {"values": str(out)}
        if ending == "parquet":
            written = ls.load(out).to_frame()
        elif ending in ("tsv", "csv.gz"):
            written = pd.read_csv(out, sep="\t" if ending == "tsv" else ",").set_index("plant")
        else:
            written = pd.read_feather(out).set_index("plant")
        np.testing.assert_allclose(written["value"], [row["value"] for row in document["rows"]], rtol=1e-12)

    def test_regression_owners_as_players_and_a_store(self, flowers, tmp_path):
        words = (
            "value", flowers / "train.csv", "-t", "petal length", "--drop", "plant", "--owner", "garden",
            "--play-owners", "--test-size", 0.2, "--model", "sklearn.linear_model:HuberRegressor",
            "--store", "run.db", "--quiet",
        )  # fmt: skip
        first, again = (answer(*words, cwd=tmp_path) for _ in range(2))
        assert first["unit"] == "owner"
        assert first["score"] == "squared_error"
        assert {row["garden"] for row in first["rows"]} == {"north", "south", "west"}
        assert first["rows"] == again["rows"]
        assert first["trainings"] == 8
        assert again["trainings"] == 0

    def test_budget_tolerance_and_time(self, flowers):
        words = ("value", flowers / "train.csv", "-t", "species", "--drop", "plant", "--model", "svm", "-q")
        assert answer(*words, "--budget", 1500)["trainings"] <= 1500
        assert answer(*words, "--tol", 0.5)["relative_error"] <= 0.5


class TestOtherCommands:
    def test_plan_trains_next_to_nothing(self, flowers):
        document = answer("plan", flowers / "train.csv", *options(flowers), "--support", "nearest:8")
        levels = document["trainings"]
        assert levels["global"] > levels["local"] > levels["subset-centric"] >= levels["lsmr"] > 0

    def test_suspects_and_select_from_kept_values(self, flowers, tmp_path):
        where = [flowers / "train.csv", *options(flowers)]
        answer("value", *where, "--out", "v.parquet", cwd=tmp_path)
        document = answer("suspects", *where, "--values", "v.parquet", "-n", 6, "--out", "s.csv", cwd=tmp_path)
        assert {s["plant"] for s in document["suspects"]} >= {"p003", "p020", "p041"}
        written = pd.read_csv(tmp_path / "s.csv")
        assert set(written.columns) >= {"plant", "value", "label", "suggested", "neighbours", "petal width"}
        assert (written["label"] != written["suggested"]).all()
        shown = command("suspects", *where, "--values", "v.parquet", cwd=tmp_path)
        assert "suspected of a wrong species" in shown.stdout
        chosen = answer(
            "select", *where, "--values", "v.parquet", "-n", 12, "--balance", "equal", "-o", "best.csv", cwd=tmp_path
        )
        best = pd.read_csv(tmp_path / "best.csv")
        assert best["species"].value_counts().tolist() == [4, 4, 4]
        assert list(best["plant"]) == [row["plant"] for row in chosen["selected"]]
        assert len(answer("select", *where, "--values", "v.parquet", "-n", 0.25, cwd=tmp_path)["selected"]) == 25
        other = command("suspects", flowers / "test.csv", "-t", "species", "--values", "v.parquet", cwd=tmp_path)
        assert other.returncode == 1
        assert "is not about the 50 rows" in other.stderr

    def test_compare_and_report_from_results(self, flowers, tmp_path):
        where = [flowers / "train.csv", "-t", "species", "--id", "plant", "--drop", "garden", "-q"]
        answer("value", *where, "--out", "knn.parquet", cwd=tmp_path)
        answer("value", *where, "--model", "logistic", "--support", "nearest:8", "-o", "logistic.csv", cwd=tmp_path)
        document = answer("compare", "knn.parquet", "logistic.csv", "--top", 10, "--picture", "c.png", cwd=tmp_path)
        one = ls.load(tmp_path / "knn.parquet").values
        two = pd.read_csv(tmp_path / "logistic.csv")["value"]
        assert document["spearman"] == pytest.approx(pd.Series(one).corr(two, method="spearman"))
        common = set(np.argsort(-one, kind="stable")[:10]) & set(np.argsort(-two.to_numpy(), kind="stable")[:10])
        assert document["best_in_common"] == len(common)
        assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
        done = command(
            "report", "knn.parquet", "--train", flowers / "train.csv", "-t", "species", "--owner", "garden", "--data",
            cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        page = (tmp_path / "report.html").read_text()
        for text in ("p041", "virginica", "north", "petal width"):
            assert text in page
        assert json.loads((tmp_path / "report.json").read_text())["title"] == "Data valuation"

    def test_datasets(self, tmp_path):
        assert "iris" in command("datasets").stdout
        assert command("datasets", "wine", cwd=tmp_path).returncode == 0
        assert pd.read_csv(tmp_path / "wine.csv").shape == (178, 15)
        wrong = command("datasets", "wien")
        assert wrong.returncode == 2
        assert "Did you mean 'wine'?" in wrong.stderr

    def test_demo_writes_values_and_a_report(self, tmp_path):
        done = command("demo", "--out", "here", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        values = pd.read_csv(tmp_path / "here" / "values.csv")
        assert len(values) == 398
        assert np.isfinite(values["value"]).all()
        assert "Breast Cancer" in (tmp_path / "here" / "report.html").read_text()


class TestWhatGoesWrong:
    """Errors are one line; status 2 for wrong use, 1 for what the files hold."""

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
            (["value", "train.csv", "-t", "species", "--model", "nowhere:Thing"], 2, "cannot be had"),
            (["value", "train.csv", "-t", "species", "--support", "nearest:many"], 2, "--support nearest:many"),
            (["value", "train.csv", "-t", "species", "--support", "near"], 2, "--support must be one of"),
            (["value", "train.csv", "-t", "species", "--cv", "5", "--test-size", "0.3"], 2, "exclude each other"),
            (["value", "train.csv", "-t", "species", "--tol", "-1"], 2, "tol must be a positive number"),
            (["value", "train.csv", "-t", "species", "--id", "garden"], 1, "names more than one row"),
            (["value", "train.csv", "-t", "species", "--out", "no/v.csv"], 2, "folder no does not exist"),
            (["value", "train.csv", "-t", "species", "--play-owners"], 2, "--owner COLUMN"),
            (["value", "train.csv", "-t", "species", "--task", "regression"], 1, "regression needs numbers"),
            (["value", "train.csv", "-t", "species", "--curves"], 2, "--curves needs test rows"),
            (["value", "train.csv", "-t", "species", "--check-locality"], 2, "--check-locality needs test rows"),
            (["value", "train.csv", "-t", "species", "--image-shape", "big"], 2, "must be like 28x28"),
            (["value", "train.csv", "-t", "species", "--owner", "shade"], 1, "owner 'shade' is missing in 1 rows"),
            (["compare", "train.csv", "test.csv"], 1, "no column 'value'"),
            (["report", "train.csv"], 2, "must end in .parquet"),
        ],
        ids=lambda given: " ".join(given) if isinstance(given, list) else None,
    )
    def test_one_line_with_the_remedy(self, flowers, words, status, message):
        done = command(*words, cwd=flowers)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("100 rows")]
        assert done.returncode == status
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith("error: ")
        assert message in lines[0]
        assert done.stdout == ""

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "is empty"),
            (b"a,b,label\n", "has 0 rows"),
            (b"a,b,label\n1,2,x\n3,4,x\n5,6,x\n", "holds one class only (x)"),
            (b"a,label\n" + b"1,x\n2,y\n" * 20 + b"abc,x\n", "column 'a' holds numbers but for 1 rows, first 'abc'"),
            ("a,label\n1,é\n2,b\n".encode("latin-1"), "is not utf-8 text"),
            (b"a,label\n1,x\n2,\n", "target 'label' is missing in 1 rows, first in row 1"),
            (b"a,label\n1,x\n2,y,3,4,5\n", "cannot be read as csv"),
            (b"label\nx\ny\n", "no column left to learn from"),
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
    def test_bad_files(self, tmp_path, content, message):
        (tmp_path / "bad.csv").write_bytes(content)
        done = command("value", "bad.csv", "-t", "label", cwd=tmp_path)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert message in done.stderr

    def test_spaces_make_no_class_and_commas_may_be_decimal(self, tmp_path):
        rows = "".join(f"{i},5;{'yes ' if i % 4 == 0 else 'yes' if i % 2 else 'no'}\n" for i in range(60))
        (tmp_path / "t.csv").write_text("size;answer\n" + rows)
        document = answer("value", "t.csv", "-t", "answer", cwd=tmp_path)
        assert {row["label"] for row in document["rows"]} == {"yes", "no"}
        assert document["preparation"] == ["1 column of numbers scaled to mean 0 and deviation 1"]

    def test_a_column_that_names_rows_is_pointed_out(self, tmp_path):
        rows = "".join(f"{1000 + i},{i % 7},{'yes' if i % 7 > 3 else 'no'}\n" for i in range(60))
        (tmp_path / "t.csv").write_text("customer,size,answer\n" + rows)
        document = answer("value", "t.csv", "-t", "answer", cwd=tmp_path)
        assert any("--id customer" in line for line in document["preparation"])

    def test_the_encoding_can_be_named(self, tmp_path):
        rows = "".join(f"{i},{'été' if i % 2 else 'hiver'}\n" for i in range(40))
        (tmp_path / "t.csv").write_bytes(f"size,saison\n{rows}".encode("latin-1"))
        document = answer("value", "t.csv", "-t", "saison", "--encoding", "latin-1", cwd=tmp_path)
        assert {row["label"] for row in document["rows"]} == {"été", "hiver"}

    def test_a_hundred_megabytes_of_garbage(self, tmp_path):
        with (tmp_path / "g.csv").open("wb") as file:
            for _ in range(100):
                file.write(np.random.default_rng(0).bytes(2**20))
        started = time.perf_counter()
        done = command("value", "g.csv", "-t", "label", cwd=tmp_path)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1
        assert time.perf_counter() - started < 60

    def test_a_traceback_only_when_asked_for(self, flowers):
        done = command("value", "train.csv", "-t", "specie", "--debug", cwd=flowers)
        assert "Traceback" in done.stderr
        assert done.returncode == 1

    def test_a_model_of_ones_own_that_fails(self, flowers, tmp_path):
        (tmp_path / "mine.py").write_text(
            "from sklearn.naive_bayes import GaussianNB\n"
            "class Broken(GaussianNB):\n"
            "    def fit(self, X, y):\n        raise RuntimeError('no memory left')\n"
        )
        done = command("value", flowers / "train.csv", "-t", "species", "--model", "mine:Broken", "-q", cwd=tmp_path)
        assert done.returncode == 1
        assert "no memory left" in done.stderr
        assert "Traceback" not in done.stderr


def start(*words, **how):
    return subprocess.Popen(
        [sys.executable, "-m", "localshapley", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts, **how,
    )  # fmt: skip


def heed_interrupts():
    """What runs in the background of a shell ignores Ctrl-C, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_reader_that_leaves_early_is_no_error(flowers):
    run = start("value", flowers / "train.csv", "-t", "species", "--drop", "plant", "--json", "-q")
    run.stdout.close()
    assert run.wait(timeout=120) == 0
    assert run.stderr.read() == ""


SLOW = """
import time
from sklearn.naive_bayes import GaussianNB
class Slow(GaussianNB):
    def fit(self, X, y):
        time.sleep(0.002)
        return super().fit(X, y)
"""


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
class TestInterruptions:
    def wait_for(self, run, text):
        for line in run.stderr:
            if text in line:
                return
        raise AssertionError("the run ended before")

    def test_what_is_known_so_far_is_kept(self, flowers, tmp_path):
        (tmp_path / "mine.py").write_text(SLOW)
        run = start(
            "value", flowers / "train.csv", "-t", "species", "--drop", "plant", "--model", "mine:Slow", "--tol", 1e-6,
            "--out", "v.parquet", cwd=tmp_path,
        )  # fmt: skip
        self.wait_for(run, "relative error")
        run.send_signal(signal.SIGINT)
        stdout, _ = run.communicate(timeout=120)
        assert run.returncode == 130
        assert "stopped  interrupted" in stdout
        v = ls.load(tmp_path / "v.parquet")
        assert v.stopped == "interrupted"
        assert (v.stderr > 0).any()

    def test_before_the_first_estimate_the_store_keeps_what_was_trained(self, flowers, tmp_path):
        (tmp_path / "mine.py").write_text(SLOW.replace("0.002", "0.05"))
        run = start(
            "value", flowers / "train.csv", "-t", "species", "--drop", "plant", "--model", "mine:Slow", "--store",
            "run.db", cwd=tmp_path,
        )  # fmt: skip
        self.wait_for(run, "rows of")
        while not (tmp_path / "run.db").exists():
            time.sleep(0.1)
        time.sleep(2)
        run.send_signal(signal.SIGINT)
        _, stderr = run.communicate(timeout=120)
        assert run.returncode == 130
        assert "run.db keeps what was trained" in stderr
        assert "Traceback" not in stderr
        assert "coalitions" in command("store", "info", "run.db", cwd=tmp_path).stdout
