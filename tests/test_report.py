"""What the report says, and that it holds whatever the user's table holds."""

from __future__ import annotations

import json
import re
import struct
import zlib
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.errors import InvalidArgumentError
from localshapley.locality import LocalityGap
from localshapley.report import render, summarise, write_report
from localshapley.report.charts import round_step
from localshapley.report.tables import MAX_TEXT, any_column, decimals_of, number_column, show, text, to_script
from localshapley.valuation import Cost, Valuation

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def iris():
    return ls.datasets.load("iris")


@pytest.fixture(scope="module")
def exact(iris):
    return ls.value(iris.X, iris.y, iris.X_test, iris.y_test, model="knn")


@pytest.fixture(scope="module")
def sampled(iris):
    arguments = iris.X, iris.y, iris.X_test, iris.y_test
    support = ls.supports.Nearest(10)
    return ls.value(*arguments, model=DecisionTreeClassifier(), support=support, method="sample", budget=800)


def valuation(values, stderr=None, **fields):
    """A valuation made by hand."""
    values = np.asarray(values, dtype=float)
    settings = {"method": "auto", "model": "M()", "score": "s", "support": "S()", "stopped": "done"} | fields
    return Valuation(
        values=values,
        stderr=np.zeros(len(values)) if stderr is None else np.asarray(stderr, dtype=float),
        cost=Cost("t", trainings=5, draws=9, distinct=5, reused=4, trivial=0, seconds=1.0),
        support_sizes=np.array([2, 3]),
        n_tests=np.ones(len(values), dtype=np.int64),
        **settings,
    )


def suspects_of(v, n=4):
    low = v.bottom(n)
    return low[["value", "stderr"]].assign(
        label="a", suggested="b", agreement=0.25, neighbours=[list(v.top(3).index)] * len(low)
    )


CURVES = SimpleNamespace(
    score="accuracy",
    table=pd.DataFrame(
        [(name, share, 1, 0.5 + share / 4, 0.4, 0.8) for name in ("best first", "random") for share in (0.2, 0.6, 1.0)],
        columns=["curve", "share", "n_rows", "mean", "low", "high"],
    ),
)
OWNERS = pd.DataFrame(
    {"n_rows": [3, 1], "value": [3.0, 1.0], "stderr": [0.1, 0.2], "share": [75.0, 25.0], "share_stderr": [2.0, 2.0]},
    index=pd.Index(["north", SCRIPT], name="owner"),
)


def gap_of(v, *, enough=True):
    return LocalityGap(
        gap=0.1,
        gap_stderr=0.01,
        noise=0.05,
        rank_correlation=0.9,
        rank_correlation_stderr=0.01,
        enough=enough,
        advice="the support is large enough",
        local=v.values,
        global_=v.values + 0.01,
        tests=np.arange(3),
        permutations=7,
        trainings=99,
    )


class Outline(HTMLParser):
    """Elements of a page, their ids, and the words outside of scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.ids, self.tags, self.words, self.open = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for key, value in attrs if key == "id"]
        if tag not in ("meta", "img", "link", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag  # every element is closed, in order

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)


def embedded(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


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
    assert embedded(page).keys() == {
        *("best", "worst", "rows", "suspects", "classes", "owners", "curves", "growth"),
        *("histogram", "supports", "reach", "levels", "reuse", "gap"),
    }


def test_the_summary_is_plain_data_and_json_gives_the_same_page(sampled, iris, tmp_path):
    path = tmp_path / "r.html"
    write_report(path, sampled, iris.X, y=iris.y, gap=gap_of(sampled), owners=OWNERS, curves=CURVES, json=True)
    write_report(path, sampled, iris.X, y=iris.y, json=tmp_path / "other.json")
    assert json.loads((tmp_path / "other.json").read_text())["gap"] is None
    summary = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert "<" not in json.dumps(summary).replace(json.dumps(SCRIPT)[1:-1], "")
    direct = summarise(sampled, iris.X, y=iris.y, gap=gap_of(sampled), owners=OWNERS, curves=CURVES)
    assert render(summary) == render(direct)
    assert not (tmp_path / "no.json").exists()


def test_error_bars_where_sampled_and_words_where_exact(exact, sampled):
    assert "so there are no error bars" in render(summarise(exact))
    assert "std. error" not in render(summarise(exact))
    page = render(summarise(sampled))
    assert "1.96 standard errors" in page
    assert "std. error" in page
    best = summarise(sampled)["ranking"][0]
    row = int(np.argmax(sampled.values))
    assert best["row"] == str(row)
    assert best["high"] == pytest.approx(sampled.values[row] + 1.96 * sampled.stderr[row], rel=1e-4)


def test_headline_counts_rows_that_hurt_beyond_doubt():
    v = valuation([-1.0, -1.0, 2.0, 0.0], [0.1, 0.9, 0.1, 0.0])
    headline = summarise(v, suspects=suspects_of(v, 3))["headline"]
    assert headline[0] == ("4", "training rows valued on 2 test rows")
    assert headline[1][0] == "1"
    assert headline[1][1].endswith("1 more may")
    assert headline[2][0] == "3"
    assert headline[3][0] == "5"


def test_rows_are_in_order_and_complete(sampled, iris):
    summary = summarise(sampled, iris.X, y=iris.y)
    assert [row[0] for row in summary["worst"]["rows"]] == [str(i) for i in sampled.bottom(10).index]
    assert [row[0] for row in summary["best"]["rows"]] == [str(i) for i in sampled.top(10).index]
    rows = summary["rows"]["rows"]
    assert [row[0] for row in rows] == [str(i) for i in np.argsort(sampled.values, kind="stable")]
    names = [column["name"] for column in summary["rows"]["columns"]]
    assert names == ["row", "value", "std. error", "test rows", "label", *(f"column {i}" for i in range(4))]
    for row in rows:
        i = int(row[0])
        assert row[1] == pytest.approx(sampled.values[i], abs=5e-5)
        assert row[3:5] == [sampled.n_tests[i], iris.y[i]]
        assert row[5:] == pytest.approx(iris.X[i].tolist(), abs=5e-4)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_the_histogram_counts_every_row_on_its_side_of_zero(values):
    values = np.array(values)
    histogram = summarise(valuation(values))["histogram"]
    counts, edges = np.array(histogram["counts"]), np.array(histogram["edges"])
    assert counts.sum() == len(values)
    assert len(edges) == len(counts) + 1 <= 45
    assert counts[edges[1:] <= 0].sum() == (values < 0).sum()


@given(st.floats(1e-12, 1e12), st.integers(1, 50))
def test_round_steps_are_round_and_as_many_as_asked(span, n):
    step = round_step(span, n)
    assert float(f"{step:.0e}") == pytest.approx(step)
    assert f"{step:.0e}"[0] in "125"
    assert n * 0.39 <= span / step <= n * 1.01


def test_support_sizes_and_reach_are_counted(exact):
    summary = summarise(replace(exact, support_sizes=np.array([3, 3, 5, 9])))
    assert summary["supports"] == {"counts": [2, 0, 1, 0, 0, 0, 1], "edges": [3, 4, 5, 6, 7, 8, 9, 10]}
    assert sum(summary["reach"]["counts"]) == len(exact.values)
    many = summarise(replace(exact, support_sizes=np.arange(1000)))["supports"]
    assert len(many["counts"]) <= 40
    assert sum(many["counts"]) == 1000
    assert "<title>3: 2 test rows</title>" in render(summary)
    assert "Every support has 7 rows" in render(summarise(replace(exact, support_sizes=np.array([7, 7]))))


def test_values_by_class_are_those_of_the_rows(exact, iris):
    names = np.array(["zero", "one", "two"])[iris.y]
    table = summarise(exact, y=names)["classes"]
    for label, n, below, total, mean, *quantiles in table["rows"]:
        own = exact.values[names == label]
        assert (n, below) == (len(own), (own < 0).sum())
        assert [total, mean, *quantiles] == pytest.approx(
            [own.sum(), own.mean(), *np.quantile(own, [0.1, 0.5, 0.9])], rel=1e-3, abs=1e-4
        )
    assert {row[0] for row in table["rows"]} == {"zero", "one", "two"}
    measured = summarise(exact, y=np.linspace(0, 1, len(exact.values)))
    assert measured["classes"] is None
    assert measured["rows"]["columns"][3]["kind"] == "number"


def test_costs_of_any_size_are_drawn(exact):
    levels = ls.plan(*[np.zeros((2, 1)), [0, 1]] * 2, model="knn").levels
    huge = replace(levels, global_=2**20_000, local=0)
    summary = summarise(exact, levels=huge)
    assert summary["levels"][0][1] == "4.0e6020"
    assert summary["levels"][0][2] == pytest.approx(20_000 * np.log10(2))
    assert "4.0e6020" in render(summary)


def test_owners_without_shares_are_drawn_by_value(exact):
    nothing = OWNERS.assign(share=np.nan, share_stderr=np.nan)
    page = render(summarise(exact, owners=nothing))
    assert "3.00 ± 0.20" in page
    assert "75.0 ± 3.9 %" in render(summarise(exact, owners=OWNERS))


def test_what_the_tasks_return_is_shown(sampled, iris):
    found = ls.tasks.suspects(sampled, iris.y, X=iris.X)
    owners = ls.tasks.owners(sampled, np.array(["north", "south"])[iris.y % 2])
    shares = {"shares": [0.5, 0.9], "n_seeds": 2}
    curves = ls.tasks.curves(sampled, iris.X, iris.y, iris.X_test, iris.y_test, model="knn", **shares)
    summary = summarise(sampled, iris.X, y=iris.y, suspects=found, owners=owners, curves=curves)
    assert [row[0] for row in summary["suspects"]["rows"]] == [str(i) for i in found.index]
    assert sum(row[4] for row in summary["owners"]["rows"]) == pytest.approx(100, abs=0.1)
    assert len(summary["curves"]["table"]["rows"]) == len(curves.table)
    assert Outline(render(summary)).open == []


def test_what_is_too_much_is_cut_and_said(exact):
    n = len(exact.values)
    owners = pd.concat([OWNERS] * 40)
    suspects = pd.concat([suspects_of(exact)] * 200)
    page = render(summarise(exact, y=[f"class {i}" for i in range(n)], owners=owners, suspects=suspects))
    for words in (f"The largest 30 of {n} classes.", "The largest 30 are drawn.", "The first 500 of 800."):
        assert words in page
    tables = embedded(page)
    assert [len(tables[name]["rows"]) for name in ("classes", "owners", "suspects")] == [30, 80, 500]


def test_limits_say_what_applies(exact, sampled):
    few = replace(exact, support_sizes=exact.support_sizes[:12])
    assert any("only 12 test rows" in limit for limit in summarise(few)["limits"])
    assert any("estimates" in limit for limit in summarise(sampled)["limits"])
    assert not any("estimates" in limit for limit in summarise(exact)["limits"])
    assert any("not measured" in limit for limit in summarise(exact)["limits"])
    found = summarise(exact, gap=gap_of(exact, enough=False))["limits"]
    assert any("found a gap" in limit for limit in found)
    n = int((exact.n_tests == 0).sum())
    assert any(limit.startswith(f"{n} rows are in no support") for limit in found) == (n > 0)


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
    assert embedded(page)["rows"]["columns"][0]["name"] == SCRIPT
    assert embedded(page)["rows"]["rows"][0][-1] == "--></script>"


ODD = [None, np.nan, pd.NaT, pd.NA, "", "x" * 500, "😀" * 100, "مرحبا", "\x00\ud800"]
ODDER = ["😀" * 100, "مرحبا", "\x00\ud800", 3, 2.5, (1, "a"), [1], b"b", np.inf]
TIMES = ["2024-01-05 00:00", None, "2024-02-01 13:45"] * 3
COLUMNS = {
    "dates": pd.to_datetime(TIMES),
    "zones": pd.to_datetime(TIMES, utc=True),
    "spans": pd.to_timedelta([1, None, 3] * 3, unit="h"),
    "categories": pd.Categorical(["a", None, "<b>"] * 3),
    "nullable": pd.array([1, None, 3] * 3, dtype="Int64"),
    "missing": [np.nan] * 9,
    "infinite": [1.0, -np.inf, 2.0] * 3,
    "complex": [1 + 2j] * 9,
    "booleans": [True, False, True] * 3,
    "large": [2**63, 1, 2] * 3,
    "tiny": [1e-12, 2e-300, 0.0] * 3,
    "sparse": pd.arrays.SparseArray([0.0, 1.5, 0.0] * 3),
    "odd": pd.Series(ODD, dtype=object),
    "odder": pd.Series(ODDER, dtype=object),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_any_kind(name):
    rows = pd.DataFrame({name: COLUMNS[name]})
    page = render(summarise(valuation(np.arange(9) - 3.0), rows, y=rows[name]))
    page.encode("utf-8")
    assert Outline(page).open == []
    table = embedded(page)["rows"]
    assert len(table["rows"]) == 9
    assert all(len(cell) <= MAX_TEXT for row in table["rows"] for cell in row if isinstance(cell, str))


def test_cells_as_a_reader_expects_them():
    assert text(pd.Timestamp("2024-01-05")) == "2024-01-05"
    assert text(pd.Timestamp("2024-01-05 13:45")) == "2024-01-05 13:45:00"
    assert [text(x) for x in (None, np.nan, pd.NA, pd.NaT)] == [""] * 4
    assert text(("north", 3)) == "north / 3"
    assert text("x" * 61) == "x" * 59 + "…"
    head, cells = any_column("price", pd.Series([123456.78, 2.0]))
    assert (head["kind"], cells) == ("number", [123457, 2])
    assert any_column("id", pd.Series([2**63 - 1]))[1] == [str(2**63 - 1)]
    assert any_column("inf", pd.Series([np.inf, 1.0]))[0]["kind"] == "text"
    assert number_column("x", [np.nan, 1.5])[1] == [None, 1.5]
    assert show(None, {"kind": "number", "decimals": 2}) == ""
    assert [decimals_of(np.array(x)) for x in ([0.123456], [12.3456], [0.25, 3.0], [7, 1e7], [1e-12], [])] == [
        *(4, 2, 2, 0, None, 0),
    ]


CELLS = st.one_of(st.none(), st.floats(), st.integers(), st.text(), st.dates(), st.binary())


@settings(max_examples=60, deadline=None)
@given(st.lists(CELLS, min_size=4, max_size=4))
def test_any_table_makes_a_page(cells):
    column = pd.Series(cells, dtype=object)
    rows = pd.DataFrame({"a": column, "b": column.infer_objects()})
    page = render(summarise(valuation([1.0, -1.0, 0.0, 2.0]), rows, y=column.map(repr)))
    assert Outline(page).open == []
    assert len(embedded(page)["rows"]["rows"]) == 4


@given(st.recursive(st.text() | st.floats(allow_nan=False, allow_infinity=False), st.lists))
def test_script_json_is_json_without_markup(data):
    words = str(to_script(data))
    assert json.loads(words) == data
    assert not set("<>&") & set(words)


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
    table = embedded(page)["rows"]
    assert len(table["rows"]) == n
    assert len(table["columns"]) == {"numbers": 11, "words": 11, "longest words": 5}[kind]
    assert "Of 20 columns the first are shown" in page


def test_of_more_rows_the_lowest_and_the_highest_are_kept():
    values = np.random.default_rng(0).permutation(12_000) - 5_000.0
    page = render(summarise(valuation(values)))
    kept = [row[1] for row in embedded(page)["rows"]["rows"]]
    assert kept == [*range(-5000, 0), *range(2000, 7000)]
    assert "The 10,000 rows of lowest and highest value, of 12,000" in page


def unpacked(image):
    """The pixels of a PNG, by its own words."""
    data = b64decode(image)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, place = {}, 8
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        name, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        assert struct.unpack(">I", data[place + 8 + length : place + 12 + length])[0] == zlib.crc32(name + body)
        chunks[name], place = body, place + 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert depth == 8
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape((height, width, 3) if colour == 2 else (height, width))


def test_rows_of_pixels_are_shown_as_images():
    X = load_digits().data[:40]
    v = valuation(np.arange(40.0))
    summary = summarise(v, X, image_shape=(8, 8), suspects=suspects_of(v))
    for part, first in (("best", 39), ("worst", 0), ("rows", 0), ("suspects", 0)):
        assert summary[part]["columns"][1]["kind"] == "image"
        np.testing.assert_array_equal(unpacked(summary[part]["rows"][0][1]), np.rint(X[first].reshape(8, 8) * 255 / 16))
    assert "column 0" not in json.dumps(summary)
    assert "data:image/png;base64," in render(summary)


def test_large_and_coloured_images_are_thinned_out():
    X = np.linspace(-1, 1, 2 * 200 * 100 * 3).reshape(2, -1)
    picture = unpacked(summarise(valuation([0.0, 1.0]), X, image_shape=(200, 100, 3))["best"]["rows"][0][1])
    assert picture.shape == (50, 25, 3)
    many = summarise(valuation(np.arange(400.0)), np.zeros((400, 28 * 28)), image_shape=[28, 28])
    assert many["rows"]["columns"][1]["kind"] == "number"  # too many pixels for the table of all rows
    assert many["best"]["columns"][1]["kind"] == "image"


def test_rows_may_be_held_by_anything(exact, iris):
    held = [iris.X, iris.X.tolist(), pd.DataFrame(iris.X), sparse.csr_array(iris.X), iris.X.reshape(-1, 2, 2)]
    first, *others = [summarise(exact, rows)["rows"]["rows"] for rows in held]
    assert all(other == first for other in others)
    polars = pytest.importorskip("polars")
    assert summarise(exact, polars.DataFrame(iris.X))["rows"]["rows"] == first


def test_repeated_ids_and_single_rows(exact):
    v = replace(exact, ids=pd.Index(["same"] * len(exact.values)))
    assert summarise(v, np.zeros((len(v.values), 2)), suspects=suspects_of(v))["suspects"]["rows"][0][0] == "same"
    pairs = pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])
    assert summarise(valuation([0.0, 1.0], ids=pairs))["best"]["rows"][0][0] == "a / 2"
    assert Outline(render(summarise(valuation([0.0])))).open == []


def test_no_suspects_is_a_finding(exact):
    page = render(summarise(exact, suspects=suspects_of(exact).iloc[:0]))
    assert "None was found." in page


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
