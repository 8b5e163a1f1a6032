"""Columns of the table that are the target itself."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import localshapley as ls
from localshapley.data.target_leaks import check_answer, equal_columns, is_accident, notes_on_answers, recoded_columns

rng = np.random.default_rng(0)
Z = rng.permutation(np.repeat([0, 1], 20))
TABLE = pd.DataFrame({"a": rng.normal(size=40), "z": Z, "b": rng.normal(size=40)})
WORDS = TABLE.assign(z=np.where(Z == 1, "yes", "no"))
REFUSED = r"X has the column 'z', which is y itself.*X.drop\(columns='z'\)"


@pytest.mark.parametrize(
    "table", [TABLE, WORDS, WORDS.astype({"z": "category"})], ids=["numbers", "words", "categories"]
)
@pytest.mark.parametrize("kind", ["Series", "array", "list", "frame", "without a name"])
def test_the_target_among_the_features_is_refused(table, kind):
    z = table["z"]
    y = {
        "Series": z,
        "array": z.to_numpy(),
        "list": z.tolist(),
        "frame": z.to_frame(),
        "without a name": z.rename(None),
    }
    with pytest.raises(ls.InvalidArgumentError, match=REFUSED):
        ls.value(table, y[kind], model="knn", cv=2)


def test_with_its_name_it_is_refused_however_few_rows_there_are():
    with pytest.raises(ls.InvalidArgumentError, match=REFUSED):
        check_answer(TABLE[:4], TABLE["z"][:4].to_numpy(), TABLE["z"][:4])


def test_a_frame_of_polars():
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"a": TABLE["a"].to_numpy(), "z": Z})
    for y in (table["z"], Z, polars.Series(Z)):
        with pytest.raises(ls.InvalidArgumentError, match=REFUSED):
            ls.value(table, y, model="knn", cv=2)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (TABLE, TABLE["z"].rename("target"), "column 'z' of X equals y"),
        (TABLE.to_numpy(), Z, "column 1 of X equals y"),
    ],
    ids=["another name", "array"],
)
def test_what_is_less_sure_is_noted(X, y, message):
    for v in (ls.value(X[:30], y[:30], X[30:], y[30:], model="knn"), ls.value(X, y, model="knn", cv=2)):
        assert re.match(message, v.notes[0])


class TestColumnsInOtherWords:
    WORDS = np.where(Z == 1, "approved", "rejected")

    @pytest.mark.parametrize(
        ("X", "y"),
        [
            (TABLE[["a"]].assign(w=WORDS), Z),
            (TABLE[["a"]].assign(w=pd.Categorical(WORDS)), Z),
            (TABLE[["a"]].assign(w=7.5 - 3 * Z), WORDS),
            (np.column_stack([TABLE["a"], 1 - Z]), Z),
        ],
        ids=["words", "categories", "numbers", "array"],
    )
    def test_are_found(self, X, y):
        name = "'w'" if isinstance(X, pd.DataFrame) else "1"
        told = [f"column {name} of X equals y in other words: models are given the answer; leave it out."]
        assert notes_on_answers(X, y) == told
        assert recoded_columns(X, y) == [1]

    def test_each_row_counts(self):
        for row in range(40):
            X = np.column_stack([Z, 5 - Z])
            X[row, 0] = 9
            assert recoded_columns(X, Z) == recoded_columns(pd.DataFrame(X), Z) == [1]

    def test_gaps_and_amounts_and_few_rows_are_none(self):
        gaps = pd.DataFrame({"w": pd.Series(self.WORDS).where(np.arange(40) > 0)})
        assert recoded_columns(gaps, Z) == []
        assert recoded_columns(np.arange(40.0)[:, None] ** 2, np.arange(40)) == []
        assert recoded_columns(1 - Z[:8, None], Z[:8]) == []
        assert recoded_columns(pd.DataFrame({"w": [[1]] * 40}), Z) == []


def test_accidents_are_no_answers():
    few, rare = TABLE[["z"]][:5], np.zeros(1000)
    rare[7] = 1  # one column in a thousand of this kind equals it
    for X, y in ((few, Z[:5]), (few.to_numpy(), Z[:5]), (np.ones((99, 2)), np.ones(99)), (rare[:, None], rare)):
        assert equal_columns(X, np.asarray(y))
        check_answer(X, np.asarray(y), y)
        assert notes_on_answers(X, np.asarray(y)) == []
    assert is_accident(Z[:22], 1_000_000)
    assert not is_accident(np.arange(10), 1)


def test_each_row_counts():
    X = np.column_stack([Z, Z])
    for row in range(40):
        changed = X.copy()
        changed[row, 0] = 2
        assert equal_columns(changed, Z) == equal_columns(pd.DataFrame(changed), Z) == [1]


def test_dates_and_gaps_are_no_answers():
    dates, gaps = pd.to_datetime(Z), pd.array([None, *Z[1:]], dtype="Int64")
    assert equal_columns(pd.DataFrame({"date": dates, "gaps": gaps}), Z) == []
