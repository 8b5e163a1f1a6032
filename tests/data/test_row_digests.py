"""Digests of rows and labels, against the same arithmetic in plain Python."""

from __future__ import annotations

import struct

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from localshapley.data import row_digests
from localshapley.data.row_digests import digest_cells, digest_labels

WORD = 2**64 - 1


def mixed(x):
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & WORD
    return x ^ (x >> 31)


def fold(digest, words):
    high, low = digest
    for word in words:
        high = mixed((high + 0x9E3779B97F4A7C15 & WORD) ^ word)
        low = mixed(low * 0xD1342543DE82EF95 + (word ^ high) & WORD)
    return mixed(high ^ 0x9E3779B97F4A7C15), mixed(low + high & WORD)


def slow(rows):
    """Digest numbers one by one: place and bits of each that is not 0, then the number of columns."""
    found = []
    for row in rows:
        pairs = [(j, struct.unpack("<Q", struct.pack("<d", x))[0]) for j, x in enumerate(row) if x != 0]
        found.append(fold(fold((0, 0), [word for pair in pairs for word in pair]), [len(row)]))
    return np.array(found, dtype=np.uint64)


@pytest.mark.parametrize(("at_once", "few"), [(1, 0), (7, 0), (2**20, 0), (1, 45)])
def test_rows_of_numbers_in_every_form(monkeypatch, at_once, few):
    monkeypatch.setattr(row_digests, "FEW_CELLS", few)  # a small table needs no kernel
    monkeypatch.setattr(row_digests, "CELLS_AT_ONCE", at_once)
    monkeypatch.setattr(row_digests, "NUMBERS_AT_ONCE", at_once)
    X = np.random.default_rng(0).normal(size=(9, 5)).round(1) * (np.random.default_rng(1).random((9, 5)) < 0.6)
    X[2] = 0
    expected = slow(X.tolist())
    for form in (np.asarray, sparse.csr_matrix, sparse.coo_array, pd.DataFrame, np.ndarray.tolist, np.asfortranarray):
        assert (digest_cells(form(X)) == expected).all()
    assert (digest_cells(pd.DataFrame(X).astype(object)) == expected).all()
    assert (digest_cells(np.where(X == 0, -0.0, X)) == expected).all()
    assert (digest_cells(X[::-1]) == expected[::-1]).all()
    assert (digest_cells(X[:, ::-1]) != expected).any(axis=1).sum() == 8  # all but the row of zeros
    assert (digest_cells(X[:, :4])[2] != expected[2]).any()
    for dtype in (np.int8, np.float32, bool):
        assert (digest_cells(X.astype(dtype)) == slow(X.astype(dtype).astype(float).tolist())).all()


def test_missing_numbers_are_all_equal():
    X = np.array([[1.0, np.nan], [1.0, -np.nan], [1.0, np.inf]])
    X.view(np.uint64)[1, 1] += 5
    assert (digest_cells(X) == slow([[1.0, np.nan], [1.0, np.nan], [1.0, np.inf]])).all()
    assert (digest_cells(X) == digest_cells(pd.DataFrame(X))).all()


def test_cells_of_any_kind():
    table = pd.DataFrame(
        {
            "text": ["a", "b", None, "a"],
            "category": pd.Categorical(["x", "y", "x", "x"]),
            "whole": pd.array([1, None, 3, 1], dtype="Int64"),
            "day": pd.to_datetime(["2024-01-01", None, "2024-01-03", "2024-01-01"]),
            "mixed": [1, "1", 2.5, 1.0],
            "yes": [True, False, True, True],
        }
    )
    found = digest_cells(table)
    assert (found[0] == found[3]).all()
    assert len(np.unique(found, axis=0)) == 3
    as_objects = table.astype(object).where(table.notna(), None)
    assert (digest_cells(as_objects) == found).all()
    for name in table.columns:
        changed = table.astype(object)
        changed.loc[0, name] = "other"
        assert (digest_cells(changed)[0] != found[0]).any()


def test_labels_count_by_value():
    assert (digest_labels([0, 1, 2]) == digest_labels(np.array([0.0, 1.0, 2.0]))).all()
    assert (digest_labels([True, False]) == digest_labels([1, 0])).all()
    assert (digest_labels(["a", "b"]) == digest_labels(pd.Series(["a", "b"], dtype="category"))).all()
    assert (digest_labels(["1", "0"]) != digest_labels([1, 0])).all()
    assert (digest_labels([[3], [4]]) == digest_labels([3, 4])).all()
