"""Copies, contradictions, leakage and outliers of tables of any kind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import datasets

import localshapley as ls
from localshapley.audit import copies, near_rows


def normal(n, p, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


class TestEqual:
    def test_contradictions_first_then_leaks_then_the_rest(self):
        X, X_test = normal(30, 4), normal(10, 4, seed=1)
        X[[5, 6]], X[20], X_test[3] = X[1], X[19], X[8]
        y, y_test = np.arange(30) % 2, np.zeros(10, dtype=int)
        y[[1, 5, 6, 8]] = 0
        found = copies(X, y, X_test, y_test)
        assert found.groups["row"].tolist() == [19, 20, 8, 3, 1, 5, 6]
        assert found.groups["group"].tolist() == [0, 0, 1, 1, 2, 2, 2]
        assert found.groups["part"].tolist() == ["training"] * 3 + ["test"] + ["training"] * 3
        assert found.groups["contradicts"].tolist() == [True, True] + [False] * 5
        assert found.group[[1, 5, 6]].tolist() == [1, 1, 1]
        assert len(np.unique(found.group)) == 27
        assert list(found.lines) == ["contradictions", "leakage", "copies"]
        assert found.lines["copies"] == (
            "3 of 30 rows repeat an earlier row in every column (row 5 equals row 1, ...)."
        )
        assert repr(found).splitlines()[0] == "Copies among 30 rows and 10 test rows"

    def test_sentences_are_those_of_a_valuation(self):
        X, y, X_test, y_test, _ = ls.datasets.load("iris")
        X[7], y[7] = X[3], 2
        found = copies(X, y, X_test, y_test)
        notes = ls.value(X, y, X_test, y_test, model="knn").notes
        assert [found.lines["contradictions"], found.lines["leakage"]] == notes

    def test_tables_of_any_kind(self):
        table = pd.DataFrame(
            {
                "word": ["a", "b", "a", None, None, "a"],
                "size": [1.5, 2, 1.5, np.nan, np.nan, 1.5],
                "kind": pd.Categorical(["x", "y", "x", "x", "x", "x"]),
                "day": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-01", None, None, "2020-01-03"]),
            },
            index=list("pqrstu"),
        )
        found = copies(table, near=False)
        assert found.groups[["row", "group"]].to_numpy().tolist() == [["p", 0], ["r", 0], ["s", 1], ["t", 1]]
        assert "label" not in found.groups
        again = copies(table, list("abaaab"), table[["day", "size", "word", "kind"]].iloc[1:2], near=False)
        assert again.groups["row"].tolist() == ["q", "q", "p", "r", "s", "t"]
        assert "1 of 1 test rows is a copy of a training row (test row q equals row q)" in again.lines["leakage"]

    def test_sparse_matrices(self):
        X = normal(30, 6) * (normal(30, 6, seed=1) > -0.5)
        X[4] = X[9]
        for form in (sparse.csr_matrix, sparse.csc_matrix):
            assert copies(form(X), None, form(X[9:10])).groups["row"].tolist() == [4, 9, 0]

    def test_columns_of_few_values_have_no_copies(self):
        X = np.random.default_rng(0).integers(0, 3, size=(300, 4))
        found = copies(X, np.arange(300) % 2)
        assert found.coarse
        assert list(found.lines) == ["copies"]
        assert found.lines["copies"].endswith("chance brings about as many: these are no copies.")
        doubled = copies(np.concatenate([normal(50, 4)] * 2))
        assert not doubled.coarse
        assert "50 of 100 rows repeat an earlier row" in doubled.lines["copies"]

    def test_amounts_do_not_contradict_each_other(self):
        X = normal(40, 2)
        X[3] = X[4]
        assert not copies(X, np.arange(40) / 7).groups["contradicts"].any()
        assert copies(X, np.arange(40) % 2).groups["contradicts"].all()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((None,), "X is missing"),
            ((np.empty((0, 3)),), "X is empty: it has 0 rows and 3 columns"),
            ((normal(5, 2), [1, 2]), "y has 2 entries, X has 5 rows"),
            ((normal(5, 2), None, normal(5, 3)), "X_test has 3 columns, X has 2"),
            ((pd.DataFrame({"a": [1]}), None, pd.DataFrame({"b": [1]})), "X_test lacks the column 'a'"),
        ],
    )
    def test_bad_input(self, arguments, message):
        with pytest.raises(ls.InvalidArgumentError, match=message):
            copies(*arguments)


class TestNear:
    @pytest.mark.parametrize("p", [3, 10, 30])
    def test_planted_copies_with_noise_are_found(self, p):
        X = normal(400, p)
        X[:8] = X[8:16] + 1e-3 * normal(8, p, seed=1)
        found = copies(X)
        assert set(found.groups["row"]) == set(range(16))
        assert (found.groups["copy"] == "near").all()
        assert (found.group[:8] == found.group[8:16]).all()
        assert "16 rows in 8 groups are nearly equal (row 0 and row 8, ...)" in found.lines["near"]

    def test_one_edited_cell(self):
        X = normal(400, 10)
        X[3], X[3, 2] = X[7], X[7, 2] + 0.1
        found = copies(X[:390], np.arange(390) % 2, X[3:4], [0])
        assert found.groups[["row", "copy", "part"]].to_numpy().tolist() == [
            [3, "equal", "training"],
            [7, "near", "training"],
            [0, "equal", "test"],
        ]
        near = copies(X[4:], np.arange(396) % 2, X[3:4], [0]).lines["near"]
        assert near.endswith("perhaps the same case twice; their labels differ in 1 of them; 1 test row beside a "
                             "training row.")  # fmt: skip

    def test_texts_and_gaps_must_be_equal(self):
        X = pd.DataFrame(normal(100, 6)).add_prefix("x").assign(word=["a", "b"] * 50, yes=np.arange(100) % 2)
        for near, other, kind in ((2, 4, "near"), (3, 6, "no"), (9, 11, "gap")):
            X.iloc[near, :6] = X.iloc[other, :6] + 1e-4
            assert kind == "no" or X["word"].iloc[near] == X["word"].iloc[other]
        X.iloc[9, 3] = np.nan
        assert copies(X).groups["row"].tolist() == [2, 4]

    @pytest.mark.filterwarnings("error")
    def test_tables_without_amounts(self):
        words = pd.DataFrame({"a": [f"w{i}" for i in range(30)], "b": [True, False] * 15, "gap": np.nan})
        assert copies(words).lines == {}
        assert copies(words.assign(n=np.arange(30.0))).lines == {}
        assert copies(np.eye(30)).lines == {}

    @pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
    def test_real_tables_have_no_near_copies(self, name):
        found = copies(getattr(datasets, f"load_{name}")().data)
        assert "near" not in found.lines
        assert len(found.groups) == (2 if name == "iris" else 0)

    def test_false_alarms_are_rare(self):
        alarms = 0
        for seed in range(60):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(150, 4)) @ rng.normal(size=(4, rng.integers(1, 9)))
            X = X.round(1) if seed % 3 == 0 else np.exp(X) if seed % 3 == 1 else X
            alarms += "near" in copies(np.unique(X, axis=0)).lines
        assert alarms <= 2

    def test_what_takes_long_is_left_out_and_said(self, monkeypatch):
        X = normal(60, 20)
        X[1] = X[2] + 1e-6
        monkeypatch.setattr(near_rows, "MAX_WORK", 1e4)
        found = copies(X)
        assert found.skipped
        assert (
            "60 rows with 20 columns take long (audit.copies with near=True looks for them)" in found.lines["skipped"]
        )
        assert "no copies\n" in repr(found)
        assert "near" in copies(X, near=True).lines
        assert copies(X, near=False).lines == {}


class TestOutliers:
    def test_a_row_far_from_all_others(self):
        X = normal(200, 4)
        X[17], X[20] = 40, -15
        found = copies(X[:190], None, X[190:])
        assert found.outliers["row"].tolist() == [17, 20]
        assert found.outliers["away"].is_monotonic_decreasing
        assert found.lines["outliers"].startswith("2 rows are far from all others (row 17: ")

    def test_huge_numbers_and_constant_columns(self):
        X = np.column_stack([normal(60, 2), np.ones(60), normal(60, 1) * 1e300])
        X[5, 0] = np.inf
        X[9, 1] = 1e200
        assert copies(X).outliers["row"].tolist() == [9]

    def test_normal_rows_have_next_to_none(self):
        assert sum(len(copies(normal(200, 4, seed)).outliers) for seed in range(20)) <= 2
