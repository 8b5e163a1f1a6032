"""The page as a whole: what is on it, that it is valid, safe and small, and its JSON."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import localshapley as ls
from localshapley.errors import InvalidArgumentError
from localshapley.report import SECTIONS, Section, charts, render, summarise, write_report
from localshapley.report.html_tables import as_table, number_column, text_column
from localshapley.report.sections import base
from made import changed
from report.parts import CURVES, OWNERS, SCRIPT, Outline, embedded, errors_of, gap_of, suspects_of, valuation


def test_all_parts_are_there_when_given_and_none_when_not(exact, iris):
    v, plan = exact, ls.plan(iris.X, iris.y, iris.X_test, iris.y_test, model="knn")
    little = Outline(render(summarise(v)))
    optional = {"suspects", "classes", "owners", "curves", "locality"}
    assert not optional & set(little.ids)
    assert {"findings", "values", "extremes", "rows", "how", "cost", "supports", "limits"} <= set(little.ids)
    parts = {
        "suspects": errors_of(v, suspects_of(v), iris.y),
        "curves": CURVES,
        "owners": OWNERS,
        "gap": gap_of(v),
        "levels": plan.levels,
    }
    page = render(summarise(v, iris.X, y=iris.y, preparation="scaled", **parts))
    much = Outline(page)
    assert optional <= set(much.ids)
    assert len(much.ids) == len(set(much.ids))
    assert much.open == little.open == []
    words = " ".join(much.words)
    assert f"{plan.levels.lsmr:,} trainings" in words
    assert "scaled" in words
    assert {name: set(tables) for name, tables in embedded(page).items() if tables} == {
        "findings": {"suspected"},
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


class Batches(Section):
    """What the rows of each batch are worth; it carries data of its own."""

    id = "batches"
    title = "Batches <new>"
    heading = "Values by batch"
    template = """<p>{{ table.rows | length }} batches, {{ n_below }} below zero.</p>
    {{ charts.sums }}{{ folded(tables.rows, "As numbers") }}"""

    def __init__(self, batch):
        self.batch = batch

    def summarise(self, context):
        if self.batch is None:
            return None
        sums = pd.Series(context.valuation.values).groupby(list(self.batch)).sum()
        columns = [text_column("batch", sums.index), number_column("sum", sums, decimals=1, sign=True)]
        return {"n_below": int((sums < 0).sum()), "table": as_table(columns)}

    def tables(self, summary):
        return {"rows": summary["table"]}  # the section of all rows has a table of this name too

    def charts(self, summary):
        return {"sums": charts.bars([(name, str(x), abs(x)) for name, x in summary["table"]["rows"]], "Sums")}

    def headline(self, summary):
        return [(str(len(summary["table"]["rows"])), "batches were delivered")]


def test_a_section_of_ones_own_is_on_the_page(tmp_path):
    v, batch = valuation([3.0, -1.0, 2.0, -4.0]), ["<a>", "b", "<a>", "b"]
    sections = [*SECTIONS[:2], Batches(batch), *SECTIONS[2:]]
    write_report(tmp_path / "r.html", v, sections=sections, json=True)
    page, summary = (tmp_path / "r.html").read_text(), json.loads((tmp_path / "r.json").read_text())
    assert list(summary["sections"])[:4] == ["findings", "batches", "values", "extremes"]
    assert summary["sections"]["batches"]["n_below"] == 1
    assert '<a href="#batches">Batches &lt;new&gt;</a>' in page
    assert '<section id="batches"><h2>Values by batch</h2>\n<p>2 batches, 1 below zero.</p>' in page
    assert "<strong>2</strong>batches were delivered" in page
    tables = embedded(page)
    assert tables["batches"]["rows"]["rows"] == [["<a>", 5], ["b", -5]]
    assert len(tables["rows"]["rows"]["rows"]) == 4
    assert Outline(page).words.count("<a>") == 2  # beside its bar and in the table, as text
    assert render(summary, sections) == page


def test_sections_that_do_not_apply_leave_nothing(tmp_path):
    v = valuation([1.0, -1.0])
    assert render(summarise(v, sections=[*SECTIONS, Batches(None)])) == render(summarise(v))
    page = render(summarise(v, sections=[Batches("ab")]), [Batches("ab")])
    outline = Outline(page)
    assert outline.tags.count("section") == outline.tags.count("nav") == outline.tags.count("li") == 1
    assert set(embedded(page)) == {"batches"}


def test_the_template_of_a_section_lies_beside_its_file(tmp_path, monkeypatch):
    words = "from localshapley.report import Section\nclass Ours(Section):\n    id, title = 'ours', 'Ours'\n"
    (tmp_path / "a_file_of_ours.py").write_text(
        words + "    def summarise(self, context):\n        return {'n': '<7>'}"
    )
    (tmp_path / "ours.html").write_text("<p>It is {{ n }}.</p>")
    monkeypatch.syspath_prepend(tmp_path)
    sections = [import_module("a_file_of_ours").Ours()]
    assert "<p>It is &lt;7&gt;.</p>" in render(summarise(valuation([1.0]), sections=sections), sections)


def test_every_section_of_the_folder_is_on_the_page():
    folder = Path(base.__file__).parent
    names = {path.stem for path in folder.glob("*.py")} - {"__init__", "base"}
    assert {type(section).__module__.split(".")[-1] for section in SECTIONS} == names
    assert {section.id for section in SECTIONS} == {path.stem for path in folder.glob("*.html")}


def test_sections_and_summary_must_belong_together():
    v = valuation([1.0, -1.0])
    with pytest.raises(InvalidArgumentError, match="sections must differ in their ids; got more than one 'batches'"):
        summarise(v, sections=[Batches("ab"), Batches("ba")])
    with pytest.raises(InvalidArgumentError, match="none of them has the id 'batches'"):
        render(summarise(v, sections=[Batches("ab")]))
    with pytest.raises(InvalidArgumentError, match="format 'localshapley report 6'; got 'localshapley report 1'"):
        render({"format": "localshapley report 1", "title": "old"})


def test_user_text_stays_text_everywhere(exact, iris):
    ids = pd.Index([f"{SCRIPT}{i}" for i in range(len(exact.values))], name=SCRIPT)
    v = changed(exact, ids=ids, model=SCRIPT, support=SCRIPT, score=SCRIPT, stopped=SCRIPT, notes=[SCRIPT])
    rows = pd.DataFrame({SCRIPT: [SCRIPT] * len(ids), "]]><!--": "--></script>"}, index=ids)
    curves = SimpleNamespace(score=SCRIPT, table=CURVES.table.assign(curve=SCRIPT))
    parts = {
        "suspects": errors_of(v, suspects_of(v).assign(label=SCRIPT)),
        "owners": OWNERS,
        "curves": curves,
        "gap": gap_of(v),
    }
    page = render(summarise(v, rows, title=SCRIPT, y=[SCRIPT] * len(ids), preparation=[SCRIPT], **parts))
    assert SCRIPT not in page
    outline = Outline(page)
    assert outline.tags.count("script") == 2
    assert " ".join(outline.words).count(SCRIPT) > 40
    assert embedded(page)["rows"]["rows"]["columns"][0]["name"] == SCRIPT
    assert embedded(page)["rows"]["rows"]["rows"][0][-1] == "--></script>"


def test_what_the_run_cost_is_folded_away_at_the_end(exact):
    assert [section.id for section in SECTIONS if section.folded] == ["cost", "supports"]
    assert SECTIONS[0].id == "findings"
    assert [section.id for section in SECTIONS][-2:] == ["cost", "supports"]
    page = render(summarise(exact))
    assert '<section id="cost" class="folded"><details><summary><h2>' in page
    assert "<details open" not in page


def test_the_top_says_what_the_page_is_about(exact, iris):
    named = render(summarise(exact, y=pd.Series(iris.y, name="species")))
    assert "<b>Target</b> species" in named
    assert f"<b>Valued</b> {len(iris.y)} rows, on {len(iris.y_test)} test rows" in named
    assert "<b>Target</b> &lt;kind&gt;" in render(summarise(exact, y=iris.y, target="<kind>"))
    assert "<b>Target</b>" not in render(summarise(exact, y=iris.y))


def test_what_is_too_much_is_cut_and_said(exact):
    n = len(exact.values)
    owners = pd.concat([OWNERS] * 40)
    suspects = pd.concat([suspects_of(exact)] * 200)
    page = render(
        summarise(
            exact,
            y=[f"class {i}" for i in range(n)],
            owners=owners,
            suspects=errors_of(exact, suspects, [f"class {i}" for i in range(n)]),
        )
    )
    for words in (
        f"The 30 largest of {n} classes are shown.",
        "The first 30 of 80 are drawn.",
        "The first 500 of 800 are shown.",
    ):
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
    of_user = table["columns"][5:]
    assert {"numbers": 6 < len(of_user) < 20, "words": 6 < len(of_user) < 20, "longest words": not of_user}[kind]
    assert [column.get("extra", False) for column in of_user] == [i >= 6 for i in range(len(of_user))]
    assert f"{len(of_user)} of 20 columns are in the table." in page


@pytest.mark.parametrize("name", ["r.pdf", "report", "r.html.txt"])
def test_no_page_is_written_under_the_name_of_something_else(tmp_path, name):
    with pytest.raises(InvalidArgumentError, match=r"path must end in .html, as a report is a web page, .* to a PDF"):
        write_report(tmp_path / name, valuation([0.0, 1.0]))
    with pytest.raises(InvalidArgumentError, match=r"json must end in .json, or be True"):
        write_report(tmp_path / "r.html", valuation([0.0, 1.0]), json=tmp_path / name.replace("report", "r.html"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": np.zeros((3, 2))}, "rows has 3 entries, but the valuation has 2 rows"),
        ({"y": [1]}, "y has 1 entries, but the valuation has 2 rows"),
        ({"owner": ["a"]}, "owner has 1 entries, but the valuation has 2 rows"),
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
