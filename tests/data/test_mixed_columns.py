"""Tables of whole numbers beside words, bools, categories and dates: pandas before 3 makes no NaN of integers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import localshapley as ls
from localshapley.data.rows import numbers_in
from localshapley.problem.store_keys import digest_rows

pytestmark = pytest.mark.quick
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, 100),
        "children": RNG.integers(0, 4, 100).astype("int8"),
        "job": RNG.choice(["clerk", "farmer", "nurse"], 100),
        "owns": RNG.integers(0, 2, 100).astype(bool),
        "town": pd.Categorical(RNG.choice(["Ulm", "Jena"], 100)),
        "since": pd.date_range("2020-01-01", periods=100),
    },
    index=[f"r{i}" for i in range(100)],
)
Y = ((TABLE["age"] > 50) ^ (RNG.random(100) < 0.04)).to_numpy().astype(int)
MODEL = make_pipeline(
    make_column_transformer((StandardScaler(), ["age", "children"]), (OneHotEncoder(), ["job", "owns", "town"])),
    LogisticRegression(),
)
TRAINING = TABLE[:40], Y[:40], TABLE[40:], Y[40:]
ABOUT = {"model": MODEL, "support": ls.supports.Random(5)}


def values_of(table):
    return ls.value(table[:40], Y[:40], table[40:], Y[40:], method="exact", per_test=True, **ABOUT)


def test_values_are_those_of_the_same_numbers_with_fractions(tmp_path):
    v = values_of(TABLE)
    assert np.abs(v.values).max() > 0.05
    assert (v.values == values_of(TABLE.astype({"age": float, "children": float})).values).all()
    v.save(tmp_path / "v.parquet")
    assert (ls.load(tmp_path / "v.parquet").values == v.values).all()
    ls.report.write_report(tmp_path / "v.html", v, TABLE[:40], y=Y[:40])
    assert "farmer" in (tmp_path / "v.html").read_text(encoding="utf-8")


def test_with_a_store_and_folds(tmp_path):
    alone, *kept = (
        ls.value(TABLE, Y, cv=3, store=store, method="exact", **ABOUT)
        for store in (None, tmp_path / "run.db", tmp_path / "run.db")
    )
    assert all((v.values == alone.values).all() for v in kept)
    assert ls.plan(TABLE, Y, cv=3, **ABOUT).n_rows == 100


def test_functions_that_value_or_train():
    v = values_of(TABLE)
    assert len(ls.audit.label_errors(TABLE[:40], Y[:40], values=v, n=5).table) == 5
    assert len(ls.tasks.explain(v, 0, X=TABLE[:40], X_test=TABLE[40:], y=Y[:40])) > 0
    assert "60 of 60 test rows kept their values" in ls.update(v, *TRAINING, **ABOUT).notes[-1]
    assert len(ls.select(*TRAINING, model=MODEL, n=3, seed=0).to_frame()) == 3
    assert 0 <= ls.audit.worth_mending(*TRAINING, model=MODEL).n_tests <= 60
    assert ls.CleanClassifier(MODEL, support=ls.supports.Random(5)).fit(*TRAINING[:2]).predict(TABLE[40:]).shape == (
        60,
    )


@pytest.mark.parametrize("kind", ["int64", "int8", "uint64", "Int64", "float32"])
def test_numbers_and_digests_of_columns_of_one_kind(kind):
    table = TABLE[["age", "job"]].astype({"age": kind})
    assert (numbers_in(table).ravel() == TABLE["age"]).all()
    assert (digest_rows(table, Y) == digest_rows(TABLE[["age", "job"]], Y)).all()
    gaps = table.astype({"age": "Int64"}).replace({"age": {18: pd.NA}})
    assert np.isnan(numbers_in(gaps)).sum() == (TABLE["age"] == 18).sum()
