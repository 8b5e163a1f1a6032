"""Equal rows: what `value` notes about them, and the parts that find them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline

import localshapley as ls
from localshapley.data import exact_duplicates
from localshapley.data.exact_duplicates import (
    groups_of,
    is_contradicted,
    is_seen_in_folds,
    pairs_by_chance,
    seen_rows,
)
from localshapley.data.row_digests import digest_cells

RNG = np.random.default_rng(0)
X, X_TEST = RNG.normal(size=(40, 3)), RNG.normal(size=(20, 3))
Y, Y_TEST = np.array(["no", "yes"] * 20), np.array(["no", "yes"] * 10)
X[7], X[30], X_TEST[4], X_TEST[9] = X[2], X[11], X[11], X[5]  # 2 has "no", 7 has "yes", 11 and 30 differ, too
Y_TEST[[4, 9]] = Y[[11, 5]]


def notes(X=X, y=Y, X_test=X_TEST, y_test=Y_TEST, model="knn", **settings):
    tests = () if "cv" in settings else (X_test, y_test)
    found = ls.value(X, y, *tests, model=model, **settings).notes
    return [note for note in found if "in every column" in note or "cop" in note]


class TestNotes:
    def test_contradictions_come_first_and_then_test_rows_that_were_seen(self):
        against, seen = notes()
        assert against.startswith(
            "5 rows in 2 groups are equal in every column but differ in their labels (row 2 has 'no', row 7 has 'yes', "
            "...): "
        )
        assert seen.startswith("2 of 20 test rows are copies of training rows (test row 4 equals row 11, ...): ")

    def test_rows_are_called_by_their_names(self):
        named = pd.DataFrame(X, index=[f"r{i}" for i in range(40)])
        against, seen = notes(named, X_test=pd.DataFrame(X_TEST))
        assert "row r2 has 'no', row r7 has 'yes'" in against
        assert "(test row 4 equals row r11, ...)" in seen

    def test_there_is_no_note_without_copies(self):
        assert notes(X[20:30], Y[20:30], X_TEST[10:], Y_TEST[10:]) == []

    def test_numbers_do_not_contradict_each_other(self):
        (seen,) = notes(y=X[:, 0] + np.arange(40), y_test=X_TEST[:, 0], model="ridge")
        assert "test rows are copies" in seen

    def test_copies_in_other_folds_are_told_and_folds_that_keep_them_together_are_not(self):
        folds = [(np.arange(20, 40), np.arange(20)), (np.arange(20), np.arange(20, 40))]
        against, seen = notes(cv=folds)
        assert "4 rows in 2 groups" in against
        assert seen.startswith("2 of 40 rows have a copy in another fold (row 11 equals row 30), which flatters")
        assert "keep one row of each group of copies, or copies in one fold (in Python, cv=GroupKFold(5)" in seen
        together = GroupKFold(5).split(X, Y, ls.audit.copies(X).group)
        assert len(notes(cv=together)) == 1

    def test_out_of_bag_every_copy_counts(self):
        seen = notes(model="fixed-forest", cv="oob")[-1]
        assert seen.startswith(
            "4 of 40 rows have a copy, which trees that judge it may have seen (row 2 equals row 7, "
        )

    def test_rows_that_are_equal_by_chance_are_not_told(self):
        coarse = np.random.default_rng(0).integers(0, 3, size=(200, 3))
        assert notes(coarse, RNG.integers(0, 2, 200), cv=5) == []

    def test_texts_one_per_row(self):
        texts = [f"{word} {i}" for i, word in enumerate(["good", "bad"] * 20)]
        texts[8] = texts[3]
        model = make_pipeline(CountVectorizer(), LogisticRegression())
        against, seen = notes(texts, Y, texts[:1], Y[:1], model=model)
        assert "test row 0 equals row 0" in seen
        assert "row 3 has 'yes', row 8 has 'no'" in against

    def test_sparse_rows_and_owners_are_told_too(self):
        assert notes(sparse.csr_matrix(X), X_test=sparse.csr_matrix(X_TEST)) == notes()
        assert notes(owners=np.arange(40) % 4) == notes()


def test_groups_are_those_of_a_plain_loop():
    table = pd.DataFrame({"n": [1.0, np.nan, 1.0, np.nan, 2.0], "t": ["a", None, "a", None, "a"]})
    table["d"] = pd.to_datetime(["2020-01-01", None, "2020-01-01", None, "2020-01-01"])
    table["c"] = pd.Categorical(["x", "y", "x", "y", "x"])
    assert groups_of(digest_cells(table), digest_cells(table[3:])).tolist() == [0, 1, 0, 1, 2, 1, 2]


def test_missing_labels_contradict_nothing():
    group = np.array([0, 0, 1, 1, 2, 2])
    labels = np.array(["a", None, "a", "b", "b", "b"], dtype=object)
    assert is_contradicted(group, labels).tolist() == [False, False, True, True, False, False]


def test_the_first_training_row_that_equals_a_test_row():
    assert seen_rows(np.array([3, 1, 1, 0, 1, 2, 3]), 4).tolist() == [1, -1, 0]


def test_folds_against_a_plain_loop():
    rng = np.random.default_rng(1)
    group = rng.integers(0, 12, 20)
    folds = [
        (np.flatnonzero(part != k), np.flatnonzero(part == k)) for part in [rng.integers(0, 4, 20)] for k in range(4)
    ]
    expected = [any(group[z] in group[train] for train, test in folds if z in test) for z in range(20)]
    assert is_seen_in_folds(group, folds).tolist() == expected


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_matrix])
def test_pairs_by_chance_are_as_many_as_there_are_if_columns_are_independent(form):
    table = np.random.default_rng(2).integers(0, 4, size=(400, 4)).astype(float)
    sizes = np.bincount(groups_of(digest_cells(table)))
    expected = pairs_by_chance(form(table), len(table))
    assert expected == pytest.approx((sizes * (sizes - 1) / 2).sum(), rel=0.3)
    assert pairs_by_chance(form(np.random.default_rng(3).normal(size=(400, 4))), 400) == pytest.approx(0)


def test_within_a_comparison_equal_rows_are_found_once(monkeypatch):
    told, plain = [], exact_duplicates.are_coarse
    monkeypatch.setattr(exact_duplicates, "are_coarse", lambda *given: told.append(given) or plain(*given))
    with exact_duplicates.comparing(exact_duplicates.OriginalTables(pd.DataFrame(X), None, " of a file")):
        noted = ls.value(X, Y, model="knn", cv=5).notes
        listed = ls.audit.copies(X, Y)
    assert len(told) == 1
    assert any("in every column of a file" in note for note in noted)
    assert "in every column of a file" in listed.lines["contradictions"]
