"""Columns of a table become what they are: numbers however they are spelt, yes and no, categories."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from localshapley.data.preparing import labels_of, prepare
from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.io.number_formats import read_numbers, spellings_of


@pytest.mark.parametrize(
    ("texts", "numbers", "how"),
    [
        (["12%", "7.5 %", None, "-3%"], [12, 7.5, np.nan, -3], "per cent"),
        (["1,200", "3,400,000.5", "17", "-2,000"], [1200, 3400000.5, 17, -2000], "thousands separators"),
        (["1 200", "3\u00a0400", "17", "5"], [1200, 3400, 17, 5], "thousands separators"),
        (["1'200", "3", "17", "5"], [1200, 3, 17, 5], "thousands separators"),
        (["1.200,5", "3,25", "17", "5"], [1200.5, 3.25, 17, 5], "thousands separators and decimal commas"),
        (["1,200%", "3%", "17%", "5%"], [1200, 3, 17, 5], "per cent and thousands separators"),
        (["$1,234.56", "-$17", "$-2", "1.5"], [1234.56, -17, -2, 1.5], "amounts of money and thousands separators"),
        (["12.50 €", "3 €", "17.25€", "-5 €"], [12.5, 3, 17.25, -5], "amounts of money"),
        (
            ["EUR 1.200,5", "3,25 EUR", "17", "5"],
            [1200.5, 3.25, 17, 5],
            "amounts of money and thousands separators and decimal commas",
        ),
        (["-33%", "1 %", "17%", "5%"], [-33, 1, 17, 5], "per cent"),
        (["yes", "No", "YES ", None], [1, 0, 1, np.nan], "yes or no"),
        (["t", "f", "f", "t"], [1, 0, 0, 1], "yes or no"),
    ],
)
def test_numbers_are_read_as_what_they_are(texts, numbers, how):
    found = prepare(pd.DataFrame({"a": texts}))
    expected = prepare(pd.DataFrame({"a": np.array(numbers, dtype=float)}))
    np.testing.assert_array_equal(found.X, expected.X)
    assert f"'a' read as numbers ({how})" in found.steps
    assert found.names == ["a"]


@pytest.mark.parametrize(
    "texts",
    [
        ["030 123", "040 567"],
        ["12%", "0.5"],
        ["yes", "maybe"],
        ["1,23,4", "5"],
        ["2024.01.02", "2024.01.03"],
        ["Jan 1 2000", "Jan 32 2000"],
        ["2012/01/31", "31/01/2012"],
        ["$5", "€5"],
        ["03/04/2024", "05/06/2024"],
        ["-$-5", "$5"],
    ],
    ids=[
        "telephone",
        "mixed",
        "a third word",
        "no thousands",
        "dates",
        "no such day",
        "two ways",
        "currencies",
        "days or months",
        "two signs",
    ],
)
def test_words_stay_words(texts):
    found = prepare(pd.DataFrame({"a": texts}))
    assert found.names == [f"a_{text}" for text in sorted(texts)]


def test_a_third_word_in_the_test_rows_makes_categories():
    train, test = pd.DataFrame({"a": ["yes", "no"]}), pd.DataFrame({"a": ["yes", "unknown"]})
    found = prepare(train, test)
    assert found.names == ["a_no", "a_yes"]
    np.testing.assert_array_equal(found.X_test, [[0, 1], [0, 0]])


def test_categories_that_share_a_feature_are_told():
    many = pd.DataFrame({"city": [f"c{i % 60}" for i in range(600)], "kind": ["a", "b"] * 300})
    found = prepare(many)
    assert len(found.names) == 50 + 2
    assert any("at most 50 for a column: the rarest of 'city' share one" in step for step in found.steps)
    assert not any("share" in step for step in prepare(many[["kind"]]).steps)


def test_texts_become_what_their_words_differ_in():
    texts = [f"order {i} came {'late' if i % 2 else 'broken and wet'}" for i in range(200)]
    train = pd.DataFrame({"note": [*texts, None], "order": [f"N-{i}" for i in range(201)]})
    found = prepare(train, pd.DataFrame({"note": ["never came", None], "order": ["x", "y"]}))
    assert found.names == ["note_1", "note_2"]  # two kinds of texts
    np.testing.assert_allclose(found.X[[2, 3]], found.X[[0, 1]], atol=1e-9)
    np.testing.assert_allclose(found.X_test[1], found.X[200], atol=1e-9)
    assert np.linalg.norm(found.X[0] - found.X[1]) > 3
    assert found.X.var(axis=0).sum() == pytest.approx(4)
    assert "'note' as what the words differ in most, at most 10 numbers for a column" in found.steps
    assert "left out 'order': 201 different texts in 201 rows" in found.steps


def test_directions_of_texts_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    words = np.array([f"word{chr(97 + i)}" for i in range(26)])
    table = pd.DataFrame({"note": [" ".join(rng.choice(words, 9)) for _ in range(120)]})
    order = rng.permutation(120)
    found = prepare(table)
    assert found.X.shape == (120, 10)
    np.testing.assert_allclose(prepare(table.iloc[order]).X, found.X[order], atol=1e-9)


def test_texts_without_words_that_come_again_are_left_out():
    texts = [f"word{i} more{i} yet{i}" for i in range(100)]
    found = prepare(pd.DataFrame({"note": texts, "size": range(100, 200)}))
    assert found.names == ["size"]


@pytest.mark.parametrize(
    "date",
    [
        "2025-03-0{}",
        "2025-03-0{} 12:30",
        "2025-03-0{}T12:30:00Z",
        "0{}.03.2025",
        "{}.3.2025 12:30",
        "2{}/03/2025",
        "03/2{}/2025 12:30:10",
        "2012/01/0{}",
        "2012/1/{} 12:30",
        "Jan {} 2000",
        "January {}, 2000",
        "May 0{} 2000",
        "{} Jan 2000",
        "0{}-Mar-2012",
    ],
)
def test_dates_are_numbers(date):
    found = prepare(pd.DataFrame({"opened": [date.format(i) for i in (1, 2, 3, 5)]}))
    np.testing.assert_allclose(found.X[:, 0], StandardScaler().fit_transform([[1.0], [2], [3], [5]])[:, 0])
    assert "'opened' read as numbers (dates)" in found.steps


def test_what_only_looks_like_a_date_is_a_category():
    assert prepare(pd.DataFrame({"a": ["2025-13-01", "2025-01-02"]})).names == ["a_2025-01-02", "a_2025-13-01"]


class TestTestRowsAreReadAsTrainingRows:
    @pytest.mark.parametrize(
        ("train", "test", "numbers"),
        [
            (["1,25", "3,250"], ["3,250", "8,125"], [3.25, 8.125]),
            (["1,250", "3,250.5"], ["3,250", "8"], [3250, 8]),
            (["1.250,5", "3"], ["3.250", "8"], [3250, 8]),
            (["12 %", "3.5 %"], ["4 %"], [4]),
            (["$5", "$1,000"], ["7", "$1,200.50"], [7, 1200.5]),
            (["04/21/2024", "05/02/2024"], ["05/02/2024"], [19845]),
            ([1, 2], ["1,200", "3"], [1200, 3]),
            ([1.5, 2], ["1,200", "3"], [1200, 3]),
            ([True, False], [True, None], [1, np.nan]),
        ],
        ids=str,
    )
    def test_whatever_their_own_cells_look_like(self, train, test, numbers):
        frames = [pd.DataFrame({"a": cells}) for cells in (train, test)]
        found = prepare(*frames)
        alone = prepare(frames[0])
        assert found.names == ["a"]
        np.testing.assert_array_equal(found.X, alone.X)
        np.testing.assert_allclose(read_numbers(frames[1]["a"], spellings_of(frames[0]["a"]))[0], numbers)

    @pytest.mark.parametrize(
        ("train", "test"), [(["12%", "3%"], ["4%", "5"]), (["$5", "$6"], ["$7", "7 €"]), ([1.5, 2.5], ["3", "1,25"])]
    )
    def test_other_spellings_are_named_with_file_and_row(self, train, test):
        frames = pd.DataFrame({"a": train}), pd.DataFrame({"a": test}, index=["r1", "r2"])
        with pytest.raises(LocalShapleyError, match=r"column 'a' holds numbers.*but t.csv has 1 other cell.*in row r2"):
            prepare(*frames, test_name="t.csv")

    def test_columns_that_are_left_out_need_not_be_there(self):
        train = pd.DataFrame({"size": range(99), "mail": [f"m{i}@x.org" for i in range(99)]})
        assert prepare(train, train[["size"]]).X_test.shape == (99, 1)
        with pytest.raises(LocalShapleyError, match=r"t\.csv lacks the column 'size'"):
            prepare(train, train[["mail"]], test_name="t.csv")

    def test_codes_beside_gaps_are_the_same_categories(self):
        train, test = pd.DataFrame({"zip": [7, 9, None]}), pd.DataFrame({"zip": [9, 7]})
        found = prepare(train, test, ["zip"])
        assert found.names == ["zip_(missing)", "zip_7", "zip_9"]
        np.testing.assert_array_equal(found.X_test, [[0, 0, 1], [0, 1, 0]])

    def test_dates_in_other_units(self):
        days = pd.Series(pd.date_range("2024-01-01", periods=4))
        frames = [pd.DataFrame({"day": kind}) for kind in (days.astype("datetime64[s]"), days.astype("datetime64[ns]"))]
        found = prepare(*frames)
        np.testing.assert_array_equal(found.X, found.X_test)


class TestFilesWithDecimalCommas:
    def frame(self, **columns):
        table = pd.DataFrame(columns)
        table.attrs["decimal"] = ","
        return table

    def test_dots_are_thousands(self):
        found = prepare(self.frame(a=["1.112", "999"], b=["1.200 €", "999 €"], c=["1.5", "2.5"]))
        plain = prepare(pd.DataFrame({"a": [1112, 999], "b": [1200, 999], "c": [1.5, 2.5]}))
        np.testing.assert_array_equal(found.X, plain.X)
        assert "'a' read as numbers (dots as thousands separators)" in found.steps
        assert "'b' read as numbers (amounts of money and dots as thousands separators)" in found.steps

    def test_in_the_target_too(self):
        table = self.frame(y=["1.112", "999", "1.234.567,5"], z=["1.112", "999", "5"])
        assert labels_of(table["y"])[0].tolist() == [1112, 999, 1234567.5]
        assert labels_of(table.iloc[::-1]["z"])[0].tolist() == [5, 999, 1112]


class TestWhatIsPointedOut:
    def step(self, cells, test=None):
        size = pd.DataFrame({"size": np.arange(len(cells)) % 7})
        given = None if test is None else pd.DataFrame({"size": range(len(test)), "a": test})
        return [step for step in prepare(size.assign(a=cells), given).steps if "'a'" in step]

    @pytest.mark.parametrize(
        ("cell", "what"),
        [("70.{} kg", "numbers in kg"), ("{}/3/24", "dates"), ("9:{:02}", "times of day"), ("${} to $9", "of money")],
    )
    def test_columns_that_are_left_out_and_look_like_numbers(self, cell, what):
        (step,) = self.step([cell.format(i) for i in range(10, 99)])
        assert step.startswith("left out 'a': 89 different texts in 89 rows, which look like")
        assert what in step

    def test_codes_do_not_look_like_numbers(self):
        (step,) = self.step([f"{i} {chr(65 + i % 26)}" for i in range(99)])
        assert step == "left out 'a': 99 different texts in 99 rows"

    def test_categories_that_look_like_numbers(self):
        steps = self.step([f"{i % 12} kg" for i in range(99)])
        assert (
            "'a' used as categories, which look like numbers in kg (to use them as such, write plain numbers)" in steps
        )
        assert len(self.step([f"{i % 3} kg" for i in range(99)])) == 1

    def test_categories_that_differ_in_case(self):
        assert "'a' has 'Red' and 'red', categories that differ in case or spaces only" in self.step(
            ["red", "Red", "blue"]
        )

    def test_categories_that_only_test_rows_have(self):
        told = "2 of 3 test rows have a category in 'a' that no training row has, first 'c'"
        assert told in self.step(["a", "b"], ["c", "a", "d", None])
        assert not any("test rows" in step for step in self.step(["a", "b"], ["c", "a", "b", None]))

    def test_all_columns_of_categories(self):
        table = pd.DataFrame({f"c{i}": ["x", "y"] for i in range(9)})
        assert "'c8'" in prepare(table).steps[0]


def test_a_word_among_amounts_of_money_is_refused():
    with pytest.raises(LocalShapleyError, match=r"column 'a' holds numbers except in 1 row, first 'none' in row 9"):
        prepare(pd.DataFrame({"a": ["$1,200.50"] * 9 + ["none"]}))


def test_features_have_names_of_their_own():
    found = prepare(pd.DataFrame({"a_b": [1, 2], "a": ["b", "c"]}))
    assert found.names == ["a_b", "a_b.1", "a_c"]


def test_numbers_that_overflow_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"column 'a' holds 1e\+300"):
        prepare(pd.DataFrame({"a": [1e300, 2.0]}))


class TestTargets:
    def test_spelt_numbers_are_numbers(self):
        y, amounts = labels_of(pd.Series(["1,200", "3,400.5"]))
        assert y.tolist() == [1200, 3400.5]
        assert amounts

    def test_yes_and_no_stay_the_names_of_classes(self):
        assert labels_of(pd.Series(["yes", "no"]))[0].tolist() == ["yes", "no"]

    @pytest.mark.parametrize("texts", [["$1,002.62", "$3"], ["12.50 €", "3 €"]])
    def test_money_is_an_amount(self, texts):
        y, amounts = labels_of(pd.Series(texts))
        assert y.dtype == float
        assert amounts

    def test_those_of_test_rows_are_read_as_in_training(self):
        train = pd.Series(["1,25", "3,250"], name="y")
        assert labels_of(pd.Series(["3,250"]), train)[0].tolist() == [3.25]
        assert labels_of(pd.Series([7, 8]), pd.Series(["a", "7"]))[0].tolist() == ["7", "8"]
        with pytest.raises(LocalShapleyError, match=r"the target 'y' holds numbers.*t.csv has 1 other cell, first 'x'"):
            labels_of(pd.Series(["3,5", "x"], name="y"), train, "t.csv")
        with pytest.raises(LocalShapleyError, match=r"the target 'y' of t.csv is missing in 1 row, first in row r2"):
            labels_of(pd.Series([1, None], index=["r1", "r2"], name="y"), train, "t.csv")

    def test_dates_are_refused(self):
        with pytest.raises(LocalShapleyError, match="the target 'day' holds dates"):
            labels_of(pd.Series(pd.date_range("2024-01-01", periods=3), name="day"))


def test_one_word_among_numbers_may_stand_for_a_gap():
    table = pd.DataFrame({"body mass": ["?", *map(str, range(19))]})
    with pytest.raises(
        LocalShapleyError, match=r"if '\?' stands for a gap, say so \(--na '\?'\).*--category 'body mass'"
    ):
        prepare(table)
    table.loc[1, "body mass"] = "unknown"
    with pytest.raises(LocalShapleyError, match="holds numbers except in 2 rows") as told:
        prepare(table)
    assert "--na" not in str(told.value)
