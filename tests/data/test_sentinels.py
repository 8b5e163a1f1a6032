"""Numbers that stand for gaps are named, and ordinary ones are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import datasets
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import localshapley as ls
from localshapley.data.sentinels import find_sentinels

pytestmark = pytest.mark.quick


def lengths(n=60):
    return np.random.default_rng(0).normal(44, 5, n).round(1)


@pytest.mark.parametrize("code", [-1, -9, -99, -999, -9999, 999, 9999, 99999])
@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, lambda X: pd.DataFrame(X, columns=["mass", "length"])])
def test_column_value_and_count_are_named(code, kind):
    X = np.column_stack([np.arange(60) / 7, lengths()])
    X[[3, 20], 1] = code
    name = {True: "'length'", False: "1"}[isinstance(X := kind(X), pd.DataFrame) and "length" in X]
    said = f"column {name} holds {code} in 2 rows, far from all other numbers there (3"
    [(line, found)] = find_sentinels(X)
    assert line.startswith(said)
    assert found == code


def test_ordinary_numbers_are_not():
    rng = np.random.default_rng(0)
    few = lengths()
    few[4] = 99.0  # one high number is no code
    tables = [
        rng.integers(0, 100, (500, 20)),
        rng.integers(-1, 2, (500, 20)),
        rng.poisson(3, (500, 20)),
        rng.normal(size=(500, 5)),
        np.array([[-999.0]] * 20),
        few[:, None],
        np.array([[np.nan], [-999.0], [3.0]]),
        np.array([["a"]] * 30),
        rng.integers(0, 2, (50, 3)).astype(bool),
        np.empty((0, 3)),
    ]
    tables += [getattr(datasets, f"load_{name}")().data for name in ("iris", "wine", "breast_cancer", "digits")]
    for X in tables:
        assert find_sentinels(X) == []
        assert find_sentinels(pd.DataFrame(X)) == []
    assert find_sentinels(sparse.csr_matrix(rng.normal(size=(30, 3)))) == []


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, lambda X: pd.DataFrame(X).astype(object)])
def test_those_of_test_rows_are_told_apart(kind):
    X, X_test = lengths()[:, None], lengths(4)[:, None]
    X_test[3] = -999
    [(line, _)] = find_sentinels(kind(X), kind(X_test))
    assert "holds -999 in 1 test row, far" in line
    X[[1, 5]] = -999
    [(line, _)] = find_sentinels(kind(X), kind(X_test))
    assert "holds -999 in 2 rows and 1 test row, far" in line
    y = np.arange(60) % 2
    model = make_pipeline(StandardScaler(), KNeighborsClassifier())
    [note] = [n for n in ls.plan(kind(X), y, kind(X_test), y[:4], model=model).notes if "-999" in n]
    assert line in note


def test_values_say_so():
    X, y, _, _, _ = ls.datasets.load("iris")
    table = pd.DataFrame(X, columns=list("abcd"))
    table.loc[[2, 5, 6], "c"] = -999
    given = [(table, "'c'"), (table.to_numpy(), "2"), (table.convert_dtypes(), "'c'")]
    for rows, name in given:
        notes = ls.value(rows, y, cv=3, model="knn").notes
        assert any(f"column {name} holds -999 in 3 rows" in note and "write NaN" in note for note in notes)
