"""Tables as they come out of spreadsheets: decimal commas, money, columns that leak, test tables of another make."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import localshapley as ls
from localshapley.errors import LocalShapleyWarning

LABEL = np.arange(60) % 2
SIZE = np.random.default_rng(0).normal(4 * LABEL).round(2)
FRAME = pd.DataFrame({"size": SIZE, "label": np.where(LABEL, "yes", "no")})


@pytest.fixture
def write(tmp_path):
    def write(file="t.csv", frame=FRAME, sep=",", **columns):
        frame.assign(**columns).to_csv(tmp_path / file, index=False, sep=sep)

    return write


def with_commas(numbers, decimals):
    return [f"{number:.{decimals}f}".replace(".", ",") for number in numbers]


def test_dots_are_thousands_where_commas_are_decimal(answer, write):
    sales = np.linspace(800, 3000, 60).astype(int)
    write(sep=";", size=with_commas(SIZE, 2), sales=[f"{n:,}".replace(",", ".") for n in sales])
    write("plain.csv", sales=sales)
    found, plain = (answer("value", name, "-t", "label") for name in ("t.csv", "plain.csv"))
    assert [row["value"] for row in found["rows"]] == [row["value"] for row in plain["rows"]]
    assert "'sales' read as numbers (dots as thousands separators)" in found["preparation"]
    assert "t.csv read with decimal commas" in found["preparation"]


@pytest.mark.parametrize("sep", [",", ";"])
def test_test_rows_are_read_as_training_rows(answer, write, sep):
    write(sep=sep, size=with_commas(SIZE + 9, 2))
    write("test.csv", FRAME[:9], sep, size=with_commas(SIZE[:9] + 9, 3))
    write("plain.csv", size=SIZE + 9)
    write("plain_test.csv", FRAME[:9], size=SIZE[:9] + 9)
    found = answer("value", "t.csv", "-t", "label", "--test", "test.csv")
    plain = answer("value", "plain.csv", "-t", "label", "--test", "plain_test.csv")
    assert [row["value"] for row in found["rows"]] == pytest.approx([row["value"] for row in plain["rows"]])


def test_whole_numbers_in_training_leave_fractions_in_test_rows(answer, write):
    write(label=np.arange(60))
    write("test.csv", FRAME[:4], label=[0.5, 1.5, 2.5, 3.5])
    write("same.csv", FRAME[:4], label=[0, 1, 2, 3])
    found, other = (answer("value", "t.csv", "-t", "label", "--test", name) for name in ("test.csv", "same.csv"))
    assert [row["value"] for row in found["rows"]] != [row["value"] for row in other["rows"]]


@pytest.mark.parametrize("cells", [np.r_[-10:20, np.zeros(30, int)], [f"{i}%" for i in [*range(30), *[5] * 30]]])
def test_amounts_that_are_taken_for_classes_are_told(command, write, cells):
    write(label=cells)
    done = command("value", "t.csv", "-t", "label")
    assert done.status == 2
    assert "use a regressor (on the command line, --task regression)" in done.stderr
    assert "treated as 30 classes; if they are amounts: --task regression" in done.stderr
    assert command("value", "t.csv", "-t", "label", "--task", "regression").status == 0


def test_of_words_no_regressor_is_spoken_of(command, write):
    write(label=["once", *FRAME["label"][1:]])
    assert "regress" not in command("value", "t.csv", "-t", "label").stderr


def test_a_target_of_money_is_an_amount(answer, write):
    write(label=[f"${1000 + 1.31 * i:,.2f}" for i in range(60)])
    document = answer("value", "t.csv", "-t", "label")
    assert document["model"] == "KNeighborsRegressor()"
    assert "the target 'label' read as numbers, such as 1000.0 for '$1,000.00'" in document["preparation"]


class TestTestTables:
    WHERE = ("value", "t.csv", "-t", "label", "--id", "name", "--test", "test.csv")

    @pytest.fixture
    def tables(self, write):
        names = np.array([f"n{i}" for i in range(60)])
        write(name=names, mail=np.char.add(names, "@x.org"), city=["Oslo", "Bergen"] * 30)

        def test_table(**columns):
            write("test.csv", FRAME[:9], name=[f"t{i}" for i in range(9)], **columns)

        return test_table

    def test_columns_that_are_left_out_may_lack(self, command, tables):
        tables(city="Oslo")
        assert command(*self.WHERE).status == 0
        done = command(*self.WHERE, "--no-prepare")
        assert "test.csv lacks the column 'mail' of t.csv" in done.stderr
        tables()
        assert "test.csv lacks the column 'city'" in command(*self.WHERE).stderr

    def test_bad_cells_are_named_by_file_and_id(self, command, tables):
        tables(city="Oslo", size=["many" if i == 3 else i for i in range(9)])
        done = command(*self.WHERE)
        assert done.status == 1
        assert "column 'size' holds numbers in the training rows, but test.csv has 1 other cell" in done.stderr
        assert "first 'many' in row t3" in done.stderr

    def test_gaps_in_the_target_are_named_by_file_and_id(self, command, tables):
        tables(city="Oslo", label=["yes", None] + ["no"] * 7)
        assert "the target 'label' of test.csv is missing in 1 row, first in row t1" in command(*self.WHERE).stderr

    def test_unknown_categories_are_told(self, answer, tables):
        tables(city="Turku")
        told = "9 of 9 test rows have a category in 'city' that no training row has, first 'Turku'"
        assert told in answer(*self.WHERE)["preparation"]


def test_the_target_in_other_words_is_pointed_out(answer, write):
    write(outcome=np.where(LABEL, "approved", "rejected"))
    told = "'outcome' equals the target in other words: models are given the answer; leave it out (--drop outcome)"
    assert told in answer("value", "t.csv", "-t", "label")["preparation"]
    assert told not in answer("value", "t.csv", "-t", "label", "--drop", "outcome")["preparation"]


def test_classes_that_differ_in_case_are_pointed_out(answer, write):
    write(label=np.where(np.arange(60) % 4 == 1, "Yes", FRAME["label"]))
    told = "the target 'label' has 'Yes' and 'yes', classes that differ in case only"
    assert told in answer("value", "t.csv", "-t", "label")["preparation"]


def test_outcomes_of_chance_are_cautioned_of(answer, write):
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    bought = (rng.random(400) < 1 / (1 + np.exp(-1.3 * x))).astype(int)
    write(frame=pd.DataFrame({"x": x, "bought": bought}))
    cautions = answer("suspects", "t.csv", "-t", "bought")["cautions"]
    assert any("outcomes of chance" in caution for caution in cautions)


def test_preparation_says_so_and_what_it_names_works(answer, tmp_path):
    bills = np.random.default_rng(0).normal(44, 5, 60).round(1)
    table = pd.DataFrame({"bill": bills, "sex": list("mf") * 30, "kind": list("aab") * 20})
    table.loc[[1, 8], "bill"] = -999
    table.to_csv(tmp_path / "t.csv", index=False)
    told = "column 'bill' holds -999 in 2 rows, far from all other numbers there"
    [line] = [step for step in answer("value", "t.csv", "-t", "kind")["preparation"] if told in step]
    assert line.endswith("(on the command line, --na=-999)")
    steps = answer("value", "t.csv", "-t", "kind", "--na=-999")["preparation"]
    assert "gaps in 'bill' filled with the median" in steps
    assert not any("-999" in step for step in steps)
    v = ls.value(table[["bill"]], table["kind"], cv=3, model="knn")
    with (
        pytest.warns(LocalShapleyWarning, match="nothing is known"),
        pytest.warns(LocalShapleyWarning, match="constant"),
    ):
        found = ls.audit.label_errors(table[["bill", "sex"]], table["kind"], values=v, n=3)
    assert any(told in step for step in found.preparation)
