"""Tables in files: how they are separated, names that repeat, and cells that a spreadsheet would run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.io.tables import guard, read_table, read_with_notes, unguard, write_table


def written(folder, text):
    (folder / "t.csv").write_text(text, encoding="utf-8")
    return folder / "t.csv"


class TestSeparators:
    @pytest.mark.parametrize(
        "text",
        [
            "a b c\n1 2 x\n3 4 y\n",
            "  a    b  c\n  1    2  x\n 33    4  y\n",
            '"a" "b" "c"\n"1" 1 2 "x"\n"2" 3 4 "y"\n',
        ],
        ids=["single", "aligned", "as R writes it"],
    )
    def test_whitespace_is_found(self, tmp_path, text):
        table = read_table(written(tmp_path, text))
        assert list(table.columns) == ["a", "b", "c"]
        assert table["c"].tolist() == ["x", "y"]

    def test_single_spaces_around_empty_cells(self, tmp_path):
        table = read_table(written(tmp_path, "a b c\n1  x\n3 4 y\n5 6 \n"))
        assert table["a"].tolist() == [1, 3, 5]
        assert table.isna().to_numpy().sum() == 2
        assert table["c"].tolist()[:2] == ["x", "y"]

    def test_a_name_with_a_space_is_no_separator(self, tmp_path):
        assert list(read_table(written(tmp_path, "sepal length\n1\n2\n")).columns) == ["sepal length"]
        assert list(read_table(written(tmp_path, "sepal length,label\n1,x y\n")).columns) == ["sepal length", "label"]

    @pytest.mark.parametrize(("sep", "between"), [("whitespace", " "), ("tab", "\t"), (":", ":"), (" ", " ")])
    def test_it_can_be_named(self, tmp_path, sep, between):
        table = read_table(written(tmp_path, f"a{between}b,c\n1{between}2\n"), sep=sep)
        assert list(table.columns) == ["a", "b,c"]

    def test_others_are_refused(self, tmp_path):
        with pytest.raises(InvalidArgumentError, match=r"must be one character or one of comma.*got 'ab'"):
            read_table(written(tmp_path, "a,b\n1,2\n"), sep="ab")

    def test_separators_at_the_end_of_lines_move_no_column(self, tmp_path):
        table = read_table(written(tmp_path, "a,b\n0,2,\n1,4,\n"))
        assert table.to_dict("list") == {"a": [0, 1], "b": [2, 4]}

    def test_a_long_text_is_no_hindrance(self, tmp_path):
        assert len(read_table(written(tmp_path, f"a,b\n{'x' * 200_000},2\n"))["a"][0]) == 200_000

    def test_cells_beyond_the_header_are_told(self, tmp_path):
        table, notes = read_with_notes(written(tmp_path, "a,b\nr1,1,2\nr2,3,4\n"))
        assert table["a"].tolist() == [1, 3]
        assert "more cells than its header" in notes[0]


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["12,345", "987", "1,000"], ["12,345", "987", "1,000"]),
        (["12,345", "7,5", "1,000"], [12.345, 7.5, 1.0]),
        (["0,567", "1,234", "2"], [0.567, 1.234, 2.0]),
    ],
    ids=["thousands", "decimals", "three decimals"],
)
def test_commas_between_thousands_are_not_decimal(tmp_path, cells, read):
    table = read_table(written(tmp_path, "a;b\n" + "".join(f"{cell};x\n" for cell in cells)))
    assert table["a"].tolist() == read


class TestDecimalCommas:
    @pytest.mark.parametrize("cells", [["36,33", "5"], ["1.234,5", "2.000,75"], ["36,33 €", "5 €"]])
    def test_are_told_and_kept_with_the_table(self, tmp_path, cells):
        table, notes = read_with_notes(written(tmp_path, "a;b\n" + "".join(f"{cell};1.112\n" for cell in cells)))
        assert notes == ["t.csv read with decimal commas"]
        assert table.attrs["decimal"] == ","
        assert table["b"].tolist() == ["1.112", "1.112"]  # what dots mean is for others to say

    def test_four_decimals_are_no_thousands(self, tmp_path):
        table = read_table(written(tmp_path, "a;b\n1.2345;x\n36,33;y\n"))
        assert "decimal" not in table.attrs

    def test_of_another_table_hold_here_too(self, tmp_path):
        train = read_table(written(tmp_path, "a;b;c\n1,25;x;1\n3,250;7;2\n"))
        test, notes = read_with_notes(written(tmp_path, "a;b;c\n3,250;7;1,5\n2,250;;2\n"), like=train)
        assert test["a"].tolist() == [3.25, 2.25]
        assert test["b"].tolist()[0] == "7"
        assert test["c"].tolist() == [1.5, 2]
        assert notes == []


class TestNamesThatRepeat:
    @pytest.mark.parametrize("header", ["a,label,label", "a,label,label ", 'a,"label", label'])
    def test_of_the_target_are_refused(self, tmp_path, header):
        with pytest.raises(LocalShapleyError, match="has the column 'label' 2 times"):
            read_table(written(tmp_path, f"{header}\n1,x,x\n2,y,y\n"), once=("label",))

    def test_of_others_are_noted(self, tmp_path):
        table, notes = read_with_notes(written(tmp_path, "a,b,a,label\n1,2,3,x\n"), once=("label", None))
        assert list(table.columns) == ["a", "b", "a.1", "label"]
        assert notes == ["t.csv has the column 'a' 2 times; each was used, the later ones as a.1, ..."]

    def test_in_parquet_and_arrow(self, tmp_path):
        table = pa.Table.from_arrays([pa.array([1, 2])] * 2 + [pa.array(["x", "y"])], names=["a", "a", "label"])
        parquet.write_table(table, tmp_path / "t.parquet")
        with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        for name in ("t.parquet", "t.arrow"):
            table, notes = read_with_notes(tmp_path / name)
            assert list(table.columns) == ["a", "a.1", "label"]
            assert "has the column 'a' 2 times" in notes[0]
            with pytest.raises(LocalShapleyError, match="'a' 2 times"):
                read_table(tmp_path / name, once=("a",))


class TestSpreadsheets:
    TABLE = pd.DataFrame(
        {"=name": ["=1+1", "-2.5", "plain"], "value": [-1.5, 2.0, -3.0], "kind": pd.Categorical(["@x", "-", "+4%"])},
        index=pd.Index(["+cmd", "-x", "\t=y"], name="id"),
    )

    def test_cells_that_run_are_marked_and_numbers_stay_numbers(self, tmp_path):
        assert write_table(self.TABLE, tmp_path / "t.csv") == 5
        back = pd.read_csv(tmp_path / "t.csv")
        assert list(back.columns) == ["id", "'=name", "value", "kind"]
        assert back["id"].tolist() == ["'+cmd", "'-x", "'\t=y"]
        assert back["'=name"].tolist() == ["'=1+1", "-2.5", "plain"]
        assert back["kind"].tolist() == ["'@x", "-", "+4%"]
        np.testing.assert_array_equal(back["value"], self.TABLE["value"])

    def test_they_can_be_left(self, tmp_path):
        assert write_table(self.TABLE, tmp_path / "t.tsv", raw=True) == 0
        back = pd.read_csv(tmp_path / "t.tsv", sep="\t")
        assert back["=name"].tolist() == ["=1+1", "-2.5", "plain"]

    def test_other_formats_keep_what_they_are_given(self, tmp_path):
        assert write_table(self.TABLE, tmp_path / "t.parquet") == 0
        assert pd.read_parquet(tmp_path / "t.parquet")["=name"].tolist()[0] == "=1+1"

    @pytest.mark.parametrize("cell", ["=1", "-x", "'quoted'", "plain", "'-3", -3.0, None])
    def test_marks_come_off_again(self, cell):
        assert unguard(guard(cell)) == cell


@pytest.mark.parametrize(
    ("text", "ids", "expected"),
    [
        ("id,x\n007,1\n1.10,2\n,3\nNA,4\n", "id", ["007", "1.10", "", "NA"]),
        ("id,x\n007,1\n1.10,2\n", 0, ["007", "1.10"]),
        ("x; id \n1,5;007\n2,5;8\n", " id", ["007", "8"]),
        ("id,x\nr1,007,1\nr2,8,2\n", "id", ["007", "8"]),
    ],
)
def test_ids_are_texts_as_they_are_in_the_file(tmp_path, text, ids, expected):
    table = read_table(written(tmp_path, text), ids=ids)
    assert table["id"].tolist() == expected
    assert table["x"].dtype.kind in "if"
