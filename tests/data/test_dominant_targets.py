"""Numbers that decide almost all of a score are named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import localshapley as ls

X = np.random.default_rng(0).normal(size=(120, 3))
Y = X @ [3, 2, 1] + np.random.default_rng(1).normal(size=120)


def notes(y, *, score=None, index=None, **tests):
    table = pd.DataFrame(X, index=index)
    found = ls.value(table, y, model="knn", score=score, **(tests or {"cv": 5}))
    return [note for note in found.notes if "so far from the other numbers" in note]


def with_loud(value, row=17):
    y = Y.copy()
    y[row] = value
    return y


@pytest.mark.parametrize("value", [1e12, -1e5, 1e3])
def test_a_loud_row_is_named_with_the_way_out(value):
    (note,) = notes(with_loud(value))
    assert note.startswith(f"row 17 ({value:.4g}): ")
    assert "score='absolute_error'" in note
    (named,) = notes(with_loud(value), index=[f"r{i}" for i in range(120)])
    assert named.startswith("row r17 (")


def test_what_is_loud_depends_on_the_score():
    assert notes(with_loud(1e3), score="absolute_error") == []
    (note,) = notes(with_loud(1e12), score="absolute_error")
    assert "score=" not in note  # that would not help any more


@pytest.mark.parametrize("y", [Y, np.exp(Y / 4), with_loud(30.0), np.arange(120) / 7])
def test_ordinary_numbers_are_not_loud(y):
    assert notes(y) == []


def test_loud_test_rows_are_named_apart():
    tests = {"X_test": X[:40], "y_test": with_loud(1e9, row=3)[:40]}
    (note,) = notes(Y, **tests)
    assert note.startswith("test row 3 (1e+09): ")


def test_other_outliers_are_found_once_the_loud_row_is_gone():
    y = Y.copy()
    y[[5, 50, 90]] += [40, -40, 40]
    loud = y.copy()
    loud[17] = 1e12
    v = ls.value(X, y, model="knn", cv=5)
    masked = ls.value(X, loud, model="knn", cv=5)
    assert {5, 50, 90} <= set(v.bottom(6).index)
    assert not {5, 50, 90} <= set(masked.bottom(6).index)
