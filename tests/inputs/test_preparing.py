"""Columns of a table become what they are: numbers however they are spelt, yes and no, categories."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.inputs.preparing import labels_of, prepare


@pytest.mark.parametrize(
    ("texts", "numbers", "how"),
    [
        (["12%", "7.5 %", None, "-3%"], [12, 7.5, np.nan, -3], "per cent"),
        (["1,200", "3,400,000.5", "17", "-2,000"], [1200, 3400000.5, 17, -2000], "thousands separators"),
        (["1 200", "3\u00a0400", "17", "5"], [1200, 3400, 17, 5], "thousands separators"),
        (["1'200", "3", "17", "5"], [1200, 3, 17, 5], "thousands separators"),
        (["1.200,5", "3,25", "17", "5"], [1200.5, 3.25, 17, 5], "thousands separators and decimal commas"),
        (["1,200%", "3%", "17%", "5%"], [1200, 3, 17, 5], "per cent and thousands separators"),
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
    [["030 123", "040 567"], ["12%", "0.5"], ["yes", "maybe"], ["1,23,4", "5"], ["2024.01.02", "2024.01.03"]],
    ids=["telephone", "mixed", "a third word", "no thousands", "dates"],
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


@pytest.mark.parametrize("date", ["2025-03-0{}", "2025-03-0{} 12:30", "2025-03-0{}T12:30:00Z"])
def test_dates_are_numbers(date):
    found = prepare(pd.DataFrame({"opened": [date.format(i) for i in (1, 2, 3, 5)]}))
    np.testing.assert_allclose(found.X[:, 0], StandardScaler().fit_transform([[1.0], [2], [3], [5]])[:, 0])
    assert "'opened' read as numbers (dates)" in found.steps


def test_what_only_looks_like_a_date_is_a_category():
    assert prepare(pd.DataFrame({"a": ["2025-13-01", "2025-01-02"]})).names == ["a_2025-01-02", "a_2025-13-01"]


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

    def test_dates_are_refused(self):
        with pytest.raises(LocalShapleyError, match="the target 'day' holds dates"):
            labels_of(pd.Series(pd.date_range("2024-01-01", periods=3), name="day"))
