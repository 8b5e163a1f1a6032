"""Decisions about rows, applied to the table that they are about, and to no other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import localshapley as ls
from localshapley.audit import apply, contents
from localshapley.audit.apply_decisions import COLUMNS, read_decisions
from localshapley.errors import InvalidArgumentError, LocalShapleyError

TABLE = pd.DataFrame(
    {"size": [1.5, 2.0, np.nan, 4.0], "note": ["a", None, "=x", "d"], "kind": ["yes", "no", " yes", "no"]},
    index=pd.Index(["p", "q", "r", "s"], name="plant"),
)


def made(table=TABLE, target="kind", **decisions):
    """Decisions on rows: a word, or a new label."""
    digests = dict(zip(table.index, contents(table.drop(columns=target)), strict=True))
    lines = []
    for row, (decision, new) in decisions.items():
        name = row if row in digests else int(row[1:])
        old = str(table[target][name]).strip()
        lines.append((str(name), decision, old, new, digests[name]))
    return pd.DataFrame(lines, columns=COLUMNS)


DECISIONS = {"p": ("relabel", "no"), "q": ("drop", ""), "r": ("keep", "yes"), "s": ("relabel", "may be")}


def test_the_table_is_mended_and_what_changed_is_told():
    before = TABLE.copy()
    done = apply(TABLE, made(**DECISIONS), target="kind")
    pd.testing.assert_frame_equal(TABLE, before)
    expected = TABLE.drop(index="q").assign(kind=["no", " yes", "may be"])
    pd.testing.assert_frame_equal(done.table, expected)
    assert done.kept.tolist() == ["r"]
    assert done.dropped.tolist() == ["q"]
    assert done.relabelled.to_dict() == {("yes", "no"): 1, ("no", "may be"): 1}
    assert done.new_labels == ["may be"]
    assert str(done).splitlines() == [
        "4 decisions on 4 rows",
        "  kept        1",
        "  relabelled  2",
        "    yes → no: 1",
        "    no → may be: 1",
        "  dropped     1",
        "  labels that were not in the table: may be",
    ]


def test_rows_are_found_in_another_order_and_by_a_column():
    mixed = TABLE.iloc[[2, 0, 3, 1]]
    done = apply(mixed, made(**DECISIONS), target="kind")
    assert done.table["kind"].to_dict() == {"p": "no", "r": " yes", "s": "may be"}
    column = apply(mixed.reset_index(), made(**DECISIONS), target="kind", id="plant")
    assert column.table["plant"].tolist() == ["r", "p", "s"]
    more = pd.concat([TABLE, TABLE.rename(index=str.upper)])  # rows that nothing was decided on
    assert len(apply(more, made(**DECISIONS), target="kind").table) == 7


@pytest.mark.parametrize(
    ("labels", "new", "expected"),
    [
        ([0, 1, 1], "0", "int64"),
        ([0, 1, 1], "2.5", "float64"),
        ([0.0, 1.0, 1.0], "0", "float64"),
        ([False, True, True], "False", "bool"),
        (pd.Categorical(["a", "b", "b"]), "c", "category"),
    ],
)
def test_the_type_of_the_labels_stays_where_it_can(labels, new, expected):
    table = pd.DataFrame({"x": [1, 2, 3], "y": labels})
    old = {"False": "True"}.get(new, "1" if new in ("0", "2.5") else "b")
    decision = made(table, "y", r2=("relabel", new)).assign(old_label=old)
    done = apply(table, decision, target="y")
    assert done.table["y"].dtype == expected
    assert str(done.table["y"].iloc[2]).removesuffix(".0") == new


def test_labels_that_do_not_fit_are_refused():
    table = pd.DataFrame({"x": [1, 2], "y": [0, 1]})
    with pytest.raises(LocalShapleyError, match="new label 'a' does not fit 'y', which holds numbers"):
        apply(table, made(table, "y", r1=("relabel", "a")), target="y")
    table["y"] = table["y"] == 1
    with pytest.raises(LocalShapleyError, match="which holds True and False"):
        apply(table, made(table, "y", r1=("relabel", "2")), target="y")


def test_decisions_of_another_table_are_refused():
    decisions = made(**DECISIONS)
    with pytest.raises(LocalShapleyError, match="2 of 4 decided rows are not in the table, first 'q'"):
        apply(TABLE.rename(index={"q": "x", "s": "y"}), decisions, target="kind")
    with pytest.raises(LocalShapleyError, match=r"about another table: 1 of 4 decided rows had other contents .* 'p'"):
        apply(TABLE.assign(size=[1.6, 2.0, np.nan, 4.0]), decisions, target="kind")
    with pytest.raises(
        LocalShapleyError, match=r"row 'p' was decided on with the label 'yes', but has 'no'; .* mended"
    ):
        apply(apply(TABLE, made(p=("relabel", "no")), target="kind").table, made(p=("relabel", "no")), target="kind")
    numbered = TABLE.reset_index(drop=True)
    by_number = made(numbered, r0=("relabel", "no"), r3=("drop", ""))
    assert len(apply(numbered, by_number, target="kind").table) == 3
    with pytest.raises(LocalShapleyError, match=r"about another table|was decided on with"):
        apply(numbered.iloc[[3, 1, 2, 0]].reset_index(drop=True), by_number, target="kind")


def test_a_report_that_saw_some_columns():
    decisions = made(**DECISIONS).assign(contents=contents(TABLE[["size"]]))
    with pytest.raises(LocalShapleyError, match="another table"):
        apply(TABLE, decisions, target="kind")
    assert len(apply(TABLE, decisions, target="kind", columns=["size"]).table) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.drop(columns="contents"), "decisions has no column 'contents'; give the decisions.csv"),
        (lambda d: pd.concat([d, d[:1]]), "more than one decision on row 'p'"),
        (
            lambda d: d.assign(decision="burn"),
            "the decision 'burn' on row 'p'; known decisions are keep, relabel, drop",
        ),
        (lambda d: d.assign(new_label=""), "relabels row 'p', but gives no new label"),
        (lambda d: d[:0], "holds no decisions"),
    ],
)
def test_decisions_that_cannot_be_read_are_refused(change, message):
    with pytest.raises(LocalShapleyError, match=message):
        apply(TABLE, change(made(**DECISIONS)), target="kind")


def test_wrong_arguments_are_named():
    decisions = made(**DECISIONS)
    with pytest.raises(InvalidArgumentError, match=r"target must be one of .*got 'kin'. Did you mean 'kind'"):
        apply(TABLE, decisions, target="kin")
    with pytest.raises(InvalidArgumentError, match="id must be one of"):
        apply(TABLE, decisions, target="kind", id="no")
    with pytest.raises(InvalidArgumentError, match="table must be a DataFrame"):
        apply(TABLE.to_numpy(), decisions, target="kind")
    with pytest.raises(LocalShapleyError, match="the name 'p' is there more than once"):
        apply(TABLE.rename(index={"q": "p"}), decisions, target="kind")
    with pytest.raises(LocalShapleyError, match="drop every row"):
        apply(TABLE, made(**dict.fromkeys("pqrs", ("drop", ""))), target="kind")


def test_files_are_read_as_a_spreadsheet_may_have_saved_them(tmp_path):
    path = tmp_path / "decisions.csv"
    path.write_bytes(
        b'\xef\xbb\xbfrow;decision;old_label;new_label;contents\r\n007;keep;a;a;c1\r\n\'=x;drop;"b;";;c2\r\n;;;;\r\n'
    )
    assert read_decisions(path).to_numpy().tolist() == [
        ["007", "keep", "a", "a", "c1"],
        ["'=x", "drop", "b;", "", "c2"],
    ]
    path.write_text("row,decision,old_label,new_label,contents\n1,keep\n")
    with pytest.raises(LocalShapleyError, match="has 2 cells in decision 1, not 5"):
        read_decisions(path)
    with pytest.raises(LocalShapleyError, match="is not there"):
        read_decisions(tmp_path / "no.csv")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LocalShapleyError, match="cannot be read as decisions"):
        read_decisions(path)


def test_marks_of_spreadsheets_are_taken_off():
    table = pd.DataFrame({"x": [1, 2], "y": ["=a", "+b"]}, index=["-p", "@q"])
    marked = made(table, "y", **{"-p": ("relabel", "'+b"), "@q": ("relabel", "'=new")})
    marked = marked.assign(row=["'-p", "'@q"], old_label=["'=a", "'+b"])
    done = apply(table, marked, target="y")
    assert done.table["y"].tolist() == ["+b", "=new"]


class TestCheck:
    def test_mending_wrong_labels_makes_the_model_better_on_rows_that_did_not_change(self):
        X, y, *_ = ls.datasets.load("iris")
        wrong = np.random.default_rng(0).choice(len(y), 25, replace=False)
        table = pd.DataFrame(X).assign(kind=np.array(["a", "b", "c"])[y])
        truth = table["kind"].copy()
        table.loc[wrong, "kind"] = [{"a": "b", "b": "c", "c": "a"}[label] for label in truth[wrong]]
        decisions = made(
            table, **{f"r{i}": ("relabel", truth[i]) for i in wrong[:-5]}, **{f"r{i}": ("drop", "") for i in wrong[-5:]}
        )
        done = apply(table, decisions, target="kind")
        pd.testing.assert_series_equal(done.table["kind"], truth.drop(wrong[-5:]))
        change = done.check(X, model="tree")
        assert change.n_tests == len(y) - 25
        assert change.after - change.before > 2 * change.stderr > 0
        assert change.own_after > change.after - 0.1 > change.own_before
        assert f"80 rows that did not change: {change.before:.3f}, {change.after:.3f}: +" in str(change)
        assert "before and after: better" in str(change)

    def test_rows_without_a_label_are_left_out(self):
        table = pd.DataFrame({"x": np.arange(40.0), "y": ["a"] * 20 + ["b"] * 20})
        table.loc[[3, 30], "y"] = ["b", None]
        done = apply(table, made(table, "y", r3=("relabel", "a")), target="y")
        change = done.check(table[["x"]], model="tree", cv=4)
        assert change.n_tests == 38
        assert (change.after, change.own_after) == (37 / 38, 38 / 39)  # the row that got another label is right, too
        assert done.check(table[["x"]].drop(index=30), model="tree", cv=4) == change
        with pytest.raises(InvalidArgumentError, match="X has 3 rows, but the table had 40"):
            done.check(table[["x"]][:3], model="tree")

    def test_numbers_are_compared_by_their_squared_errors(self):
        x = np.linspace(0, 1, 60)
        table = pd.DataFrame({"x": x, "y": x + 0.001})
        table.loc[[5, 25, 45], "y"] = 5.5
        done = apply(table, made(table, "y", **{f"r{i}": ("relabel", f"{x[i]:.3f}") for i in (5, 25, 45)}), target="y")
        change = done.check(table[["x"]], model="knn")
        assert change.score == "r2"
        assert change.n_tests == 57
        assert change.after > 0.9 > change.before

    def test_long_lists_of_changes_are_cut(self):
        table = pd.DataFrame({"x": np.arange(15), "y": np.arange(15) + 0.5})
        done = apply(table, made(table, "y", **{f"r{i}": ("relabel", f"{i}.25") for i in range(12)}), target="y")
        assert len(done.relabelled) == 12
        lines = str(done).splitlines()
        assert lines[2:5] == ["  relabelled  12", "    0.5 → 0.25: 1", "    1.5 → 1.25: 1"]
        assert lines[13] == "    and 2 others"
        assert lines[-1].endswith("9.25, ...")
