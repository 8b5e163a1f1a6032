"""Tables of numbers, words and gaps, as `value` takes them with a pipeline, in the tasks that measure distances."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import localshapley as ls
from localshapley import audit, tasks
from localshapley.data.preparing import prepare

N_ROWS = 120
WRONG = [3, 40, 77]
MODEL = make_pipeline(
    make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "weight"]),
        (OneHotEncoder(handle_unknown="ignore"), ["city", "smokes"]),
    ),
    LogisticRegression(),
)


@pytest.fixture(scope="module")
def patients():
    """Rows and labels, of which three are wrong."""
    rng = np.random.default_rng(0)
    city = rng.choice(["Bonn", "Oslo", "Rome"], N_ROWS)
    X = pd.DataFrame(
        {
            "age": rng.normal(50, 10, N_ROWS),
            "city": city,
            "smokes": rng.choice(["yes", "no"], N_ROWS),
            "weight": rng.normal(70, 3, N_ROWS) + 20 * (city == "Rome"),
        },
        index=[f"p{i}" for i in range(N_ROWS)],
    )
    y = np.where(city == "Rome", "ill", "well")
    y[WRONG] = np.where(y[WRONG] == "ill", "well", "ill")
    X.iloc[::9, 0] = np.nan
    X.iloc[5, 1] = None
    return X, y


@pytest.fixture(scope="module")
def v(patients):
    return ls.value(*patients, model=MODEL, cv=5, per_test=True)


def test_suspects_are_found_in_the_table_that_was_valued(v, patients):
    X, y = patients
    assert set(audit.label_errors(X, y, values=v, n=3).table.index) == {f"p{i}" for i in WRONG}
    found = audit.label_errors(X, y, values=v)
    assert len(found.table)
    assert found.table.equals(audit.label_errors(prepare(X).X, y, values=v).table)
    assert "gaps in 'age' filled with the median" in found.preparation
    assert found.table.equals(audit.label_errors(X[::-1], pd.Series(y, X.index)[::-1], values=v).table)


def test_numbers_are_left_as_they_are(v, patients):
    X, y = patients
    assert audit.label_errors(prepare(X).X, y, values=v).preparation == []


def test_an_array_with_gaps_and_words_gives_the_same(v, patients):
    X, y = patients
    assert audit.label_errors(X.to_numpy(), y, values=v).table.equals(audit.label_errors(X, y, values=v).table)


def test_distances_are_between_prepared_rows(v, patients):
    X, _ = patients
    shown = tasks.explain(v, 7, X=X, X_test=X)
    rows = prepare(X).X
    expected = np.linalg.norm(rows[X.index.get_indexer(shown.index)] - rows[7], axis=1)
    assert shown["distance"].to_numpy() == pytest.approx(expected, abs=1e-6)
    assert shown.attrs["preparation"]


def test_test_rows_are_prepared_as_training_rows_are(patients):
    X, y = patients
    v = ls.value(X[:100], y[:100], X[100:], y[100:], model=MODEL, per_test=True)
    shown = tasks.explain(v, 0, X=X[:100], X_test=X[100:], n=1)
    prepared = prepare(X[:100], X[100:])
    row = X.index.get_loc(shown.index[0])
    assert shown["distance"].iloc[0] == pytest.approx(np.linalg.norm(prepared.X[row] - prepared.X_test[0]))


def test_mending_is_measured_with_the_pipeline(patients):
    X, y = patients
    worth = audit.worth_mending(X, y, model=MODEL, cv=3)
    assert worth.n_tests == N_ROWS
    same = audit.worth_mending(X, y, model=MODEL, cv=3, features=prepare(X).X)
    assert (worth.before, worth.dropped, worth.relabelled) == (same.before, same.dropped, same.relabelled)
    assert worth.relabelled >= worth.before


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["old", *map(str, range(1, N_ROWS))], "holds numbers except in 1 row, first 'old'"),
        ([[1, 2]] * N_ROWS, "unhashable type: 'list'"),
    ],
)
def test_what_cannot_be_prepared_is_refused_with_a_remedy(patients, cells, why):
    X, y = patients
    with pytest.raises(ls.InvalidArgumentError, match=rf"features cannot be .*{why}.*X=pipeline\[:-1\]\.fit_transform"):
        audit.worth_mending(X, y, model=MODEL, cv=3, features=X.assign(age=cells))
