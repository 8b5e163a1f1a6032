"""The user's rows hold whatever they hold, and the page shows it as a reader expects."""

from __future__ import annotations

import json
import re
import struct
import zlib
from base64 import b64decode

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_digits

from localshapley import audit
from localshapley.cli.output import table_text
from localshapley.report import render, summarise
from localshapley.report.html_tables import (
    MAX_TEXT,
    any_column,
    decimals_of,
    number_column,
    probability_column,
    show,
    text,
    to_script,
)
from made import changed
from report.parts import Outline, embedded, errors_of, said, suspects_of, valuation

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
    table = embedded(page)["rows"]["rows"]
    assert len(table["rows"]) == 9
    assert all(len(cell) <= MAX_TEXT for row in table["rows"] for cell in row if isinstance(cell, str))


def test_cells_as_a_reader_expects_them():
    assert text(pd.Timestamp("2024-01-05")) == "2024-01-05"
    assert text(pd.Timestamp("2024-01-05 13:45")) == "2024-01-05 13:45:00"
    assert [text(x) for x in (None, np.nan, pd.NA, pd.NaT)] == [""] * 4
    assert text(("north", 3)) == "north / 3"
    assert text("a" * 31 + "b" * 30) == "a" * 30 + "…" + "b" * 29
    head, cells = any_column("price", pd.Series([123456.78, 2.0]))
    assert (head["kind"], cells) == ("number", [123457, 2])
    assert any_column("id", pd.Series([2**63 - 1]))[1] == [str(2**63 - 1)]
    assert any_column("inf", pd.Series([np.inf, 1.0]))[0]["kind"] == "text"
    assert number_column("x", [np.nan, 1.5])[1] == [None, 1.5]
    assert show(None, {"kind": "number", "decimals": 2}) == ""
    assert [decimals_of(np.array(x)) for x in ([0.123456], [12.3456], [0.25, 3.0], [7, 1e7], [1e-12], [])] == [
        *(4, 2, 2, 0, None, 0),
    ]


def test_no_estimated_probability_reads_as_0_or_1():
    column, cells = probability_column("p wrong", pd.Series([1.0, 0.9993, 0.99, 0.456, 0.001, 0.0, np.nan]))
    assert [show(cell, column) for cell in cells] == ["> 0.99", "> 0.99", "0.99", "0.46", "< 0.01", "< 0.01", ""]
    table = pd.DataFrame({"p_wrong": [0.9993, 0.5], "value": [1.0, 2.0]}, index=pd.Index([3, 4], name="row"))
    assert table_text(table).split() == ["row", "p_wrong", "value", "3", ">", "0.99", "1", "4", "0.50", "2"]


CELLS = st.one_of(st.none(), st.floats(), st.integers(), st.text(), st.dates(), st.binary())


@settings(max_examples=60, deadline=None)
@given(st.lists(CELLS, min_size=4, max_size=4))
def test_any_table_makes_a_page(cells):
    column = pd.Series(cells, dtype=object)
    rows = pd.DataFrame({"a": column, "b": column.infer_objects()})
    page = render(summarise(valuation([1.0, -1.0, 0.0, 2.0]), rows, y=column.map(repr)))
    assert Outline(page).open == []
    assert len(embedded(page)["rows"]["rows"]["rows"]) == 4


@given(st.recursive(st.text() | st.floats(allow_nan=False, allow_infinity=False), st.lists))
def test_script_json_is_json_without_markup(data):
    words = str(to_script(data))
    assert json.loads(words) == data
    assert not set("<>&") & set(words)


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
    summary = summarise(v, X, image_shape=(8, 8), suspects=errors_of(v, suspects_of(v)))
    places = {("extremes", "best"): 39, ("extremes", "worst"): 0, ("rows", "table"): 0, ("suspects", "table"): 0}
    for (section, part), first in places.items():
        table = summary["sections"][section][part]
        assert table["columns"][1]["kind"] == "image"
        np.testing.assert_array_equal(unpacked(table["rows"][0][1]), np.rint(X[first].reshape(8, 8) * 255 / 16))
    assert "column 0" not in json.dumps(summary)
    assert "data:image/png;base64," in render(summary)


def test_large_and_coloured_images_are_thinned_out():
    X = np.linspace(-1, 1, 2 * 200 * 100 * 3).reshape(2, -1)
    best = said("extremes", valuation([0.0, 1.0]), X, image_shape=(200, 100, 3))["best"]
    picture = unpacked(best["rows"][0][1])
    assert picture.shape == (50, 25, 3)
    many = summarise(valuation(np.arange(400.0)), np.zeros((400, 28 * 28)), image_shape=[28, 28])["sections"]
    assert many["rows"]["table"]["columns"][1]["kind"] == "number"  # too many pixels for the table of all rows
    assert many["extremes"]["best"]["columns"][1]["kind"] == "image"


def test_rows_may_be_held_by_anything(exact, iris):
    held = [iris.X, iris.X.tolist(), pd.DataFrame(iris.X), sparse.csr_array(iris.X), iris.X.reshape(-1, 2, 2)]
    first, *others = [said("rows", exact, rows)["table"]["rows"] for rows in held]
    assert all(other == first for other in others)
    polars = pytest.importorskip("polars")
    assert said("rows", exact, polars.DataFrame(iris.X))["table"]["rows"] == first


def test_repeated_ids_and_single_rows(exact):
    v = changed(exact, ids=pd.Index(["same"] * len(exact.values)))
    suspects = said("suspects", v, np.zeros((len(v.values), 2)), suspects=errors_of(v, suspects_of(v)))
    assert suspects["table"]["rows"][0][0] == "same"
    pairs = pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])
    assert said("extremes", valuation([0.0, 1.0], ids=pairs))["best"]["rows"][0][0] == "a / 2"
    assert Outline(render(summarise(valuation([0.0])))).open == []


def test_names_that_are_cut_keep_both_ends_and_have_the_number_of_their_row(exact, iris):
    """Names of columns keep both ends, too: that is where many of them differ."""
    n = len(exact.values)
    paths = pd.Index([f"src/{'very/' * 20}deep/Test{i:03}.java" for i in range(n)], name="path")
    columns = [f"a_{'long_' * 20}name_{i}" for i in range(iris.X.shape[1])]
    v, rows = changed(exact, ids=paths), pd.DataFrame(iris.X, index=paths, columns=columns)
    found = audit.label_errors(iris.X, iris.y, values=v, n=5)
    sections = summarise(v, rows, y=iris.y, suspects=found, table=rows.iloc[::-1])["sections"]
    row = int(np.argmax(exact.values))
    name = sections["extremes"]["ranking"][0]["row"]
    assert name.startswith("src/very/very/")
    assert name.endswith(f"Test{row:03}.java (row\xa0{n - 1 - row})")  # of the whole table
    assert len(name) == 60
    listed = sections["suspects"]
    heads = [column["name"] for column in listed["table"]["columns"]]
    assert [head[-6:] for head in heads if head.startswith("a_long_")] == [f"name_{i}" for i in range(len(columns))]
    near = listed["table"]["rows"][0][heads.index("neighbours against")]
    places = [n - 1 - paths.get_loc(name) for name in found.table["neighbours"].iloc[0]]
    assert [int(number) for number in re.findall(r"\(row\xa0(\d+)\)", near)] == places
    shown = [line[0] for line in listed["table"]["rows"]]
    assert [name.partition(" ")[0][-12:] for name in shown] == [path[-12:] for path in found.table.index]
    assert set(shown) <= set(listed["bench"]["names"])
    whole = [suspect[0] for suspect in listed["bench"]["suspects"]]  # decisions have whole names
    assert whole == list(found.table.index)
    assert len({line[0] for line in sections["rows"]["table"]["rows"]}) == n
