"""A table is written again with some rows and labels changed, and every other character stays."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.io.rewriting import _check_split, copy_rows, rewrite_table
from localshapley.io.tables import read_table

NONE = np.array([], dtype=np.int64)


def rewritten(tmp_path, text, cells, dropped=(), *, name="t.csv", target="kind", encoding="utf-8", **how):
    path, out = tmp_path / name, tmp_path / f"out-{name}"
    path.write_bytes(text.encode(encoding))
    places = np.array(dropped, dtype=np.int64)
    guarded = rewrite_table(path, out, target, cells, places, encoding=encoding, **how)
    return out.read_bytes().decode(encoding), guarded


@pytest.mark.parametrize(
    ("text", "cells", "dropped", "expected"),
    [
        ("x,kind\n1.50,a\n007,b\n", {0: "b"}, [], "x,kind\n1.50,b\n007,b\n"),
        ("x,kind\r\n1e3,a\r\n,b\r\n 2 ,a", {2: "b"}, [0], "x,kind\r\n,b\r\n 2 ,b"),
        ('x,kind\n"q, ""r""\n s",a\n\n2,"b"\n', {0: "b"}, [], 'x,kind\n"q, ""r""\n s","b"\n\n2,"b"\n'),
        ("\ufeffkind;x\na;1,5\nb;2,25\n", {0: "b"}, [], "\ufeffkind;x\nb;1,5\nb;2,25\n"),
        ("x\tkind\n\t\n1\ta\n \n2\tb\n", {1: "b"}, [], "x\tkind\n\t\n1\tb\n \n2\tb\n"),
        ("kind\tx\na\t1\n\nb\t2\n", {1: "a"}, [0], "kind\tx\na\t2\n"),
        ("x   kind\n 1   a\n 22  b\n", {0: "b"}, [], "x   kind\n 1   b\n 22  b\n"),
        ("x,kind,\n1,a,\n2,b,\n", {1: "a"}, [], "x,kind,\n1,a,\n2,a,\n"),
        ("x,kind\nr1,1,a\nr2,2,b\n", {1: "a"}, [], "x,kind\nr1,1,a\nr2,2,a\n"),
        ("x,kind\n1, a\n2,b\n3, a\n", {1: "a"}, [], "x,kind\n1, a\n2, a\n3, a\n"),
        ("x,kind\n1,NA\n2,a\n3,b\n", {1: "b"}, [], "x,kind\n1,NA\n2,b\n3,b\n"),
        ("x,kind\n2024-01-05,0\n05.01.2024,1.0\n", {0: 1.0}, [], "x,kind\n2024-01-05,1.0\n05.01.2024,1.0\n"),
        ("x;kind\n1,5;0,5\n2;3,25\n", {0: 1.75}, [], "x;kind\n1,5;1,75\n2;3,25\n"),
    ],
)
def test_only_what_changes_is_changed(tmp_path, text, cells, dropped, expected):
    assert rewritten(tmp_path, text, cells, dropped) == (expected, 0)


CELL = st.text(st.sampled_from("ab1 ,;\t\"'\n=.é"), max_size=6)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=6), st.sampled_from(",;\t|"), st.data())
def test_any_cells_survive(tmp_path, cells, sep, data):
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=sep).writerows(
            [("x", "kind", "z")] + [(x, f"k{i}", z) for i, (x, z) in enumerate(cells)]
        )
    n = len(cells)
    changed = data.draw(st.sets(st.integers(0, n - 1)))
    dropped = data.draw(st.sets(st.integers(0, n - 1), max_size=n - 1)) - changed
    rewrite_table(
        path, out, "kind", dict.fromkeys(changed, 'new, "one"'), np.array(sorted(dropped), dtype=np.int64), sep=sep
    )
    with path.open(encoding="utf-8", newline="") as before, out.open(encoding="utf-8", newline="") as after:
        was, now = (list(csv.reader(file, delimiter=sep)) for file in (before, after))
    expected = [
        [x, 'new, "one"' if i in changed else kind, z] for i, (x, kind, z) in enumerate(was[1:]) if i not in dropped
    ]
    assert now[1:] == expected
    if not changed and not dropped:
        assert out.read_bytes() == path.read_bytes()


def test_new_labels_are_quoted_and_guarded(tmp_path):
    text = "x,kind\n1,a\n2,b\n3,c\n"
    cells = {0: 'so, "so"', 1: "=cmd()", 2: "-5"}
    assert rewritten(tmp_path, text, cells) == ('x,kind\n1,"so, ""so"""\n2,\'=cmd()\n3,-5\n', 1)
    assert rewritten(tmp_path, text, cells, raw=True) == ('x,kind\n1,"so, ""so"""\n2,=cmd()\n3,-5\n', 0)
    known = "x,kind\n1,=a\n2,b\n"
    assert rewritten(tmp_path, known, {1: "=a"}) == ("x,kind\n1,=a\n2,=a\n", 0)  # as it is in the table already


def test_encodings_separators_and_compression_stay(tmp_path):
    assert rewritten(tmp_path, "größe,kind\n1,süß\n2,herb\n", {1: "süß"}, encoding="latin-1")[0].endswith("2,süß\n")
    assert rewritten(tmp_path, "x kind\n1 a\n2 b\n", {1: "a"}, sep=" ")[0] == "x kind\n1 a\n2 a\n"
    path, out = tmp_path / "t.csv.gz", tmp_path / "o.csv.gz"
    path.write_bytes(gzip.compress(b"x,kind\n1,a\n2,b\n"))
    rewrite_table(path, out, "kind", {0: "b"}, NONE)
    assert gzip.decompress(out.read_bytes()) == b"x,kind\n1,b\n2,b\n"
    assert sorted(file.name for file in tmp_path.iterdir() if file.name.startswith(".")) == []


def test_another_format_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"must end in \.csv like"):
        rewrite_table(tmp_path / "t.csv", tmp_path / "t.parquet", "kind", {}, NONE)


def test_lines_that_pandas_reads_otherwise_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,kind\n1,a\n2,b\n")
    how = {"sep": ","}
    _check_split(path, ["a", '"b" '], 1, 2, how)
    for cells, n in ((["a", "c"], 2), (["a"], 1), (["a", "b"], 3)):
        with pytest.raises(LocalShapleyError, match="cannot be changed cell by cell"):
            _check_split(path, cells, 1, n, how)


@pytest.mark.parametrize("ending", ["parquet", "feather", "arrow"])
def test_types_of_columns_stay(tmp_path, ending):
    table = pd.DataFrame(
        {
            "small": np.arange(4, dtype=np.int8),
            "when": pd.to_datetime(["2024-01-01 09:00", None, "2024-01-03 10:00", "2024-01-04 00:00"]),
            "gaps": pd.array([1, None, 3, 4], dtype="Int32"),
            "kind": pd.Categorical(["a", "b", "a", "b"]),
            "code": np.array([0, 1, 1, 0], dtype=np.int16),
        }
    )
    path, out, again = (tmp_path / f"{name}.{ending}" for name in ("t", "o", "p"))
    (table.to_parquet if ending == "parquet" else table.to_feather)(path)
    rewrite_table(path, out, "kind", {0: "b", 3: "new"}, np.array([2]))
    rewrite_table(out, again, "code", {0: np.int64(1)}, NONE)
    expected = table.drop(index=2).reset_index(drop=True)
    expected["kind"] = ["b", "b", "new"]
    expected.loc[0, "code"] = 1
    found = read_table(again)
    assert found["kind"].astype(str).tolist() == expected["kind"].tolist()
    pd.testing.assert_frame_equal(found.drop(columns="kind"), expected.drop(columns="kind"))


@pytest.mark.parametrize(
    ("text", "rows", "expected"),
    [
        ("id,x,kind\r\n007,5.40,a\r\n08, 1 ,b\r\n9,2,a", [2, 0], "id,x,kind\r\n9,2,a\r\n007,5.40,a\r\n"),
        ("\ufeffx;kind\n1,5;a\n\n2,25;b\n", [1, 0], "\ufeffx;kind\n2,25;b\n1,5;a\n"),
        ('x,kind\n"q, ""r""\n s",a\n2,"b"\n', [1, 0], 'x,kind\n2,"b"\n"q, ""r""\n s",a\n'),
        ("x   kind\n 1   a\n 22  b\n", [1], "x   kind\n 22  b\n"),
        ("x,kind\nr1,1,a\nr2,2,b\n", [1], "x,kind\nr2,2,b\n"),
        (" x , kind \n1,a\n2,b\n", [1], " x , kind \n2,b\n"),
    ],
)
def test_rows_are_copied_in_any_order(tmp_path, text, rows, expected):
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_bytes(text.encode())
    copy_rows(path, out, np.array(rows), "kind")
    assert out.read_bytes().decode() == expected
