"""Approximate search: what it finds is near, how much it misses is told, and what it cannot do is refused."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import localshapley as ls
from localshapley.search import approximate, nearest

rng = np.random.default_rng(0)
X, X_TEST = rng.normal(size=(3000, 6)), rng.normal(size=(40, 6))


class Cells:
    """Stands for faiss: the exact nearest rows, every `miss`-th of which is missing."""

    def __init__(self, quantizer, n_features, n_cells):
        self.n_cells = n_cells

    def train(self, rows):
        assert len(rows) >= self.n_cells

    def add(self, rows):
        self.rows = rows

    def search(self, tests, n):
        away = ((tests[:, None] - self.rows) ** 2).sum(axis=2)
        found = np.argsort(away, axis=1)[:, : 2 * n]
        found = found[:, np.arange(2 * n) % 10 != 3][:, :n]
        found[0, 2:] = -1  # a test row whose cells hold too few
        return None, found


@pytest.fixture(params=["stand-in", "faiss"])
def _library(request, monkeypatch):
    monkeypatch.setattr(approximate, "FEWEST_ROWS", 1000)
    if request.param == "faiss":
        pytest.importorskip("faiss")
    else:
        monkeypatch.setitem(sys.modules, "faiss", SimpleNamespace(IndexFlatL2=lambda _: None, IndexIVFFlat=Cells))


@pytest.mark.usefixtures("_library")
def test_the_recall_that_is_told_is_the_true_one():
    found, notes = approximate.roughly_nearest_rows(X, X_TEST, 8, "euclidean", None)
    exact = nearest(X, X_TEST, 8).rows
    recall = np.mean([len(set(f.tolist()) & set(e.tolist())) / 8 for f, e in zip(found, exact, strict=True)])
    assert f"{100 * recall:.1f} % of the nearest rows were found (measured on 40 test rows)" in notes[0]
    assert 0.3 < recall < 1
    for t, rows in enumerate(found):
        away = np.linalg.norm(X[rows] - X_TEST[t], axis=1)
        assert len(set(rows.tolist())) == 8
        assert (np.diff(away) >= 0).all()


@pytest.mark.usefixtures("_library")
def test_the_note_is_one_of_the_result():
    y = (X[:, 0] > 0).astype(int)
    v = ls.value(
        X, y, X_TEST, (X_TEST[:, 0] > 0).astype(int), model="knn", support=ls.supports.Nearest(10, approximate=True)
    )
    assert any("searched approximately" in note for note in v.notes)
    assert v.support == "Nearest(n=10, approximate=True)"


def test_few_rows_are_searched_exactly():
    found, notes = approximate.roughly_nearest_rows(X, X_TEST, 8, "euclidean", None)
    np.testing.assert_array_equal(np.array(found), nearest(X, X_TEST, 8).rows)
    assert "not needed" in notes[0]


def test_what_it_cannot_search_is_refused(monkeypatch):
    for rows, metric in ((sparse.csr_matrix(X), "euclidean"), (X, "manhattan")):
        with pytest.raises(ls.InvalidArgumentError, match="approximate"):
            approximate.roughly_nearest_rows(rows, X_TEST, 8, metric, None)
    monkeypatch.setattr(approximate, "FEWEST_ROWS", 1000)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ls.InvalidArgumentError, match="pip install"):
        approximate.roughly_nearest_rows(X, X_TEST, 8, "euclidean", None)
