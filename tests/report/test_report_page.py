"""The page as a whole: what is on it, that it is valid, safe and small, and its JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import localshapley as ls
from localshapley.errors import InvalidArgumentError
from localshapley.report import render, summarise, write_report
from report.parts import CURVES, OWNERS, SCRIPT, Outline, embedded, gap_of, suspects_of, valuation


def test_all_parts_are_there_when_given_and_none_when_not(exact, iris):
    v, plan = exact, ls.plan(iris.X, iris.y, iris.X_test, iris.y_test, model="knn")
    little = Outline(render(summarise(v)))
    optional = {"suspects", "classes", "owners", "curves", "locality"}
    assert not optional & set(little.ids)
    assert {"values", "extremes", "rows", "how", "cost", "supports", "limits"} <= set(little.ids)
    parts = {"suspects": suspects_of(v), "curves": CURVES, "owners": OWNERS, "gap": gap_of(v), "levels": plan.levels}
    page = render(summarise(v, iris.X, y=iris.y, preparation="scaled", **parts))
    much = Outline(page)
    assert optional <= set(much.ids)
    assert len(much.ids) == len(set(much.ids))
    assert much.open == little.open == []
    words = " ".join(much.words)
    assert f"{plan.levels.lsmr:,}" in words
    assert "scaled" in words
    assert {name: set(tables) for name, tables in embedded(page).items() if tables} == {
        "values": {"histogram"},
        "extremes": {"best", "worst"},
        "cost": {"levels", "reuse", "growth"},
        "supports": {"supports", "reach"},
        "locality": {"gap"},
        **{name: {name} for name in ("suspects", "classes", "owners", "curves", "rows")},
    }


def test_the_summary_is_plain_data_and_json_gives_the_same_page(sampled, iris, tmp_path):
    path = tmp_path / "r.html"
    write_report(path, sampled, iris.X, y=iris.y, gap=gap_of(sampled), owners=OWNERS, curves=CURVES, json=True)
    write_report(path, sampled, iris.X, y=iris.y, json=tmp_path / "other.json")
    assert "locality" not in json.loads((tmp_path / "other.json").read_text())["sections"]
    summary = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert "locality" in summary["sections"]
    assert "<" not in json.dumps(summary).replace(json.dumps(SCRIPT)[1:-1], "")
    direct = summarise(sampled, iris.X, y=iris.y, gap=gap_of(sampled), owners=OWNERS, curves=CURVES)
    assert render(summary) == render(direct)
    assert not (tmp_path / "no.json").exists()


def test_user_text_stays_text_everywhere(exact, iris):
    ids = pd.Index([f"{SCRIPT}{i}" for i in range(len(exact.values))], name=SCRIPT)
    v = replace(exact, ids=ids, model=SCRIPT, support=SCRIPT, score=SCRIPT, stopped=SCRIPT, notes=[SCRIPT])
    rows = pd.DataFrame({SCRIPT: [SCRIPT] * len(ids), "]]><!--": "--></script>"}, index=ids)
    curves = SimpleNamespace(score=SCRIPT, table=CURVES.table.assign(curve=SCRIPT))
    parts = {"suspects": suspects_of(v).assign(label=SCRIPT), "owners": OWNERS, "curves": curves, "gap": gap_of(v)}
    page = render(summarise(v, rows, title=SCRIPT, y=[SCRIPT] * len(ids), preparation=[SCRIPT], **parts))
    assert SCRIPT not in page
    outline = Outline(page)
    assert outline.tags.count("script") == 2
    assert " ".join(outline.words).count(SCRIPT) > 40
    assert embedded(page)["rows"]["rows"]["columns"][0]["name"] == SCRIPT
    assert embedded(page)["rows"]["rows"]["rows"][0][-1] == "--></script>"


def test_what_is_too_much_is_cut_and_said(exact):
    n = len(exact.values)
    owners = pd.concat([OWNERS] * 40)
    suspects = pd.concat([suspects_of(exact)] * 200)
    page = render(summarise(exact, y=[f"class {i}" for i in range(n)], owners=owners, suspects=suspects))
    for words in (f"The largest 30 of {n} classes.", "The largest 30 are drawn.", "The first 500 of 800."):
        assert words in page
    tables = embedded(page)
    assert [len(tables[name][name]["rows"]) for name in ("classes", "owners", "suspects")] == [30, 80, 500]


@pytest.mark.parametrize("kind", ["numbers", "words", "longest words"])
def test_ten_thousand_rows_stay_below_two_megabytes(kind):
    n, rng = 10_000, np.random.default_rng(0)
    v = valuation(rng.normal(size=n), rng.random(n))
    cell = {
        "numbers": lambda: rng.normal(size=n) * 1e3,
        "words": lambda: rng.choice(["north", "south", "private practice"], n),
        "longest words": lambda: ["😀<&>" * 20] * n,
    }[kind]
    rows = pd.DataFrame({f"feature {i}": cell() for i in range(20)})
    page = render(summarise(v, rows, y=rng.choice(["yes", "no"], n)))
    assert len(page.encode()) < 2_000_000
    table = embedded(page)["rows"]["rows"]
    assert len(table["rows"]) == n
    assert len(table["columns"]) == {"numbers": 11, "words": 11, "longest words": 5}[kind]
    assert "Of 20 columns the first are shown" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": np.zeros((3, 2))}, "rows has 3 entries, but the valuation has 2 rows"),
        ({"y": [1]}, "y has 1 entries, but the valuation has 2 rows"),
        ({"image_shape": (2, 2)}, "image_shape needs rows"),
        (
            {"rows": np.zeros((2, 4)), "image_shape": (3, 3)},
            "has 9 pixels, but rows has 4 columns",
        ),
        ({"rows": np.zeros((2, 4)), "image_shape": 4}, r"image_shape must be \(height, width\)"),
        ({"rows": np.zeros((2, 4)), "image_shape": (1, 2, 2)}, r"image_shape must be \(height, width\)"),
        ({"rows": np.zeros((2, 4)), "image_shape": (-2, -2)}, r"image_shape must be \(height, width\)"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        summarise(valuation([0.0, 1.0]), **arguments)
