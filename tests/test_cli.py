"""The command line as a person would use it, and the page that it writes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd

import localshapley as ls
from localshapley.report import render, summarise, write_report


def command(*words, **how):
    return subprocess.run([sys.executable, "-m", "localshapley.cli", *words], capture_output=True, text=True, **how)


def test_version():
    assert command("--version").stdout.strip() == f"localshapley {ls.__version__}"


def test_help_lists_the_commands_and_nothing_heavy_is_imported():
    assert "demo" in command("--help").stdout
    heavy = ["numpy", "pandas", "sklearn", "numba", "scipy"]
    script = f"import localshapley.cli, sys; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "[]"


def test_wrong_use_ends_with_status_two():
    assert command("valeu").returncode == 2
    assert command("demo", "--seed", "x").returncode == 2


def test_demo_writes_values_and_a_report(tmp_path):
    done = command("demo", "--out", "here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    values = pd.read_csv(tmp_path / "here" / "values.csv")
    assert len(values) == 398
    assert np.isfinite(values["value"]).all()
    page = (tmp_path / "here" / "report.html").read_text()
    assert "Breast Cancer" in page
    assert "http" not in page  # nothing comes from a network
    found = int(done.stdout.split("rows of lowest value")[1].split()[0])
    assert found >= 10  # of 19 flipped labels


def test_user_text_in_a_report_stays_text(tmp_path):
    X = pd.DataFrame({"<script>alert(1)</script>": [0.0, 1.0, 2.0, 3.0]}, index=["<b>a</b>", "b", "c", "d"])
    v = ls.value(X, ["x", "x", "y", "y"], X, ["x", "x", "y", "y"], model="knn")
    write_report(tmp_path / "r.html", v, X, title="<i>title</i>")
    page = (tmp_path / "r.html").read_text()
    for text in ("<script>", "<b>a</b>", "<i>title</i>"):
        assert text not in page
    assert "&lt;script&gt;alert(1)" in page


def test_the_summary_says_what_the_valuation_says():
    data = ls.datasets.load("iris")
    arguments = data.X, data.y, data.X_test[:5], data.y_test[:5]
    v = ls.value(*arguments, model="knn", support=ls.supports.Nearest(4))
    plan = ls.plan(*arguments, model="knn", support=ls.supports.Nearest(4))
    summary = summarise(v, None, plan.levels, "Iris", n_shown=3)
    assert [row[0] for row in summary["worst"]["rows"]] == [str(i) for i in v.bottom(3).index]
    assert sum(summary["histogram"]["counts"]) == len(data.y)
    assert summary["levels"][3][1] == f"{plan.levels.lsmr:,}"
    assert f"{plan.levels.lsmr:,}" in render(summary)
