"""Searches give what a plain loop over all pairs gives, to the last bit, in whatever parts and blocks."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from math import sqrt

import numpy as np
import pytest
from scipy import sparse

import localshapley as ls
from localshapley.kernels.neighbours import euclidean_pairs
from localshapley.search import bounds, join, merge, nearest, nearest_others, nearest_rows, scan, within
from localshapley.search import product_scan as best_module
from localshapley.search.distances import distances, measure, nearest_of_few

rng = np.random.default_rng(0)
CENTRES = rng.normal(size=(8, 5)) * 100


def clustered(n, spread=1e-3):
    return CENTRES[rng.integers(8, size=n)] + spread * rng.normal(size=(n, 5))


def copied(n):
    return rng.normal(size=(12, 5))[rng.integers(12, size=n)]


TABLES = {
    "numbers": rng.normal(size=(700, 5)),
    "single precision": rng.normal(size=(700, 5)).astype(np.float32),
    "far from the origin": rng.normal(size=(700, 5)) + 1e6,
    "in tight clusters": clustered(700),
    "in clusters that float64 blurs": clustered(700, 1e-13),
    "copies": copied(700),
    "whole": rng.integers(0, 3, size=(700, 5)),
    "whole, too large for float32": rng.integers(0, 4, size=(700, 5)) * 10.0**6,
    "bits": rng.normal(size=(700, 5)) > 0,
    "tiny": rng.normal(size=(700, 5)) * 1e-170,
    "huge": rng.normal(size=(700, 5)) * 1e150,
    "one far row": np.vstack([np.full((1, 5), 1e60), rng.normal(size=(699, 5))]),
    "all equal": np.ones((700, 5)),
    "one feature": rng.normal(size=(700, 1)).round(1),
    "no feature": np.empty((700, 0)),
}


def loop(X, queries):
    """Distances of all pairs, feature by feature."""
    X, queries = X.astype(np.float64), queries.astype(np.float64)
    out = np.zeros((len(queries), len(X)))
    for t, q in enumerate(queries.tolist()):
        for z, x in enumerate(X.tolist()):
            total = 0.0
            for a, b in zip(x, q, strict=True):
                total += (a - b) * (a - b)
            out[t, z] = sqrt(total)
    return out


def same(found, away, k):
    order = np.argsort(away, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(found.rows, order)
    np.testing.assert_array_equal(found.distances, np.take_along_axis(away, order, axis=1))


@pytest.fixture(params=[(4096, 512, 2048), (64, 7, 10)], ids=["one block", "many blocks"])
def _blocks(request, monkeypatch):
    rows, queries, sample = request.param
    monkeypatch.setattr(scan, "ROWS", rows)
    monkeypatch.setattr(scan, "QUERIES", queries)
    monkeypatch.setattr(best_module, "QUERIES", queries)
    monkeypatch.setattr(best_module, "SAMPLE", sample)
    monkeypatch.setattr(best_module, "IN_SAMPLE", 2)
    monkeypatch.setattr(bounds, "SAMPLE", sample)
    if rows < 700:
        monkeypatch.setattr(scan, "SMALL", 0)  # in threads


@pytest.fixture(autouse=True)
def _never_few(monkeypatch):
    """Tables of tests are small, but are searched as large ones are."""
    monkeypatch.setattr(nearest_rows, "FEW_PRODUCTS", -1)


@pytest.mark.parametrize("name", TABLES)
def test_all_distances_of_few_rows_are_those_of_a_loop(name):
    X, queries = TABLES[name][:500], TABLES[name][500:520]
    for k in (1, 9, 500):
        same(nearest_of_few(X, queries, k), loop(X, queries), k)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.usefixtures("_blocks")
def test_the_nearest_rows_are_those_of_a_loop(name):
    X, queries = TABLES[name][:500], TABLES[name][500:520]
    away = loop(X, queries)
    for k in (1, 9, 500):
        same(nearest(X, queries, k), away, k)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.usefixtures("_blocks")
def test_the_rows_within_a_radius_are_those_of_a_loop(name):
    X, queries = TABLES[name][:500], TABLES[name][500:520]
    away = loop(X, queries)
    for radius in (np.quantile(away, 0.01), np.quantile(away, 0.6), away[3, 7], away[5, 80]):  # on the edge, too
        found = within(X, queries, max(float(radius), 1e-300))
        assert [rows.tolist() for rows in found] == [np.flatnonzero(a <= max(radius, 1e-300)).tolist() for a in away]


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("name", ["numbers", "whole", "copies", "in tight clusters"])
def test_parts_give_the_bits_of_the_whole(name, metric):
    X, queries = TABLES[name][:500], TABLES[name][500:520]
    ends = [0, 3, 130, 131, 500]
    parts = list(pairwise(ends))
    whole = nearest(X, queries, 6, metric=metric)
    merged = merge([nearest(X[a:b], queries, 6, metric=metric, offset=a) for a, b in parts][::-1], 6)
    np.testing.assert_array_equal(merged.rows, whole.rows)
    np.testing.assert_array_equal(merged.distances, whole.distances)
    radius = float(np.median(whole.distances)) + 0.1
    joined = join([within(X[a:b], queries, radius, metric=metric, offset=a) for a, b in parts])
    assert [r.tolist() for r in joined] == [r.tolist() for r in within(X, queries, radius, metric=metric)]
    same(whole, distances(queries, X, metric, {}), 6)


def test_rows_in_few_dimensions_are_found_by_a_tree(monkeypatch):
    monkeypatch.setattr("localshapley.search.nearest_rows.TREE_STEP", 0)
    monkeypatch.setattr(
        "localshapley.search.nearest_rows.nearest_by_products", _only_ties(best_module.nearest_by_products)
    )
    for X in (TABLES["numbers"][:, :2], TABLES["whole"][:, :2]):  # with and without ties
        same(nearest(X[:500], X[500:], 5), loop(X[:500], X[500:]), 5)
        found = within(X[:500], X[500:], 1.0)
        assert [r.tolist() for r in found] == [np.flatnonzero(a <= 1.0).tolist() for a in loop(X[:500], X[500:])]


def _only_ties(search):
    def searching(X, queries, k):
        assert np.array_equal(X, np.rint(X))
        return search(X, queries, k)

    return searching


def test_sparse_rows_are_as_far_apart_as_dense_ones():
    X = np.where(rng.normal(size=(200, 6)) > 0.8, 1.5, 0.0)
    dense, found = nearest(X, X[:30], 7), nearest(sparse.csr_matrix(X), sparse.csr_matrix(X[:30]), 7)
    np.testing.assert_array_equal(found.rows, dense.rows)
    np.testing.assert_allclose(found.distances, dense.distances, rtol=1e-15)
    assert [r.tolist() for r in within(sparse.csr_matrix(X), sparse.csr_matrix(X[:30]), 1.5)] == [
        r.tolist() for r in within(X, X[:30], 1.5)
    ]


@pytest.mark.parametrize("name", ["numbers", "copies", "all equal"])
def test_the_nearest_others_leave_a_row_itself_out(name):
    X = TABLES[name][:60]
    away = loop(X, X)
    np.fill_diagonal(away, np.inf)
    same(nearest_others(X, 4), away, 4)
    assert nearest_others(X, 100).rows.shape == (60, 59)
    assert nearest_others(X[:1], 4).rows.shape == (1, 0)
    some = np.array([7, 3, 59])
    assert np.array_equal(nearest_others(X, 4, rows=some).rows, nearest_others(X, 4).rows[some])


def test_pairs_are_as_far_apart_as_the_kernel_of_models_says():
    X, queries = rng.normal(size=(50, 37)), rng.normal(size=(9, 37)).astype(np.float32)
    row, query = np.tile(np.arange(50, dtype=np.int32), 9), np.repeat(np.arange(9), 50)
    expected = np.empty(450)
    euclidean_pairs(X, queries.astype(np.float64), np.arange(10) * 50, row, np.arange(9), expected)
    np.testing.assert_array_equal(measure(X, queries, row, query, "euclidean", {}), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_stay_within_their_bounds(dtype):
    """The nearness in arithmetic of higher precision lies between the bounds, and they are not far apart."""
    for scale in (1e-3, 1.0, 50.0):
        X, queries = rng.normal(size=(300, 40)) * scale + 7, rng.normal(size=(50, 40)) + 7
        way = bounds.Arithmetic(np.full(40, 7.0), 0.25, dtype, exact=False)
        (rows, widths), (q, errors) = way.rows(X), way.queries(queries)
        products = (q @ rows.T).astype(np.longdouble)
        x, t = (X.astype(np.longdouble) - 7) / 4, (queries.astype(np.longdouble) - 7) / 4
        true = (x * x).sum(axis=1) / 2 - t @ x.T
        assert (products - errors[:, None] <= true).all()
        assert (true <= products + widths + errors[:, None]).all()
        lengths = (x * x).sum(axis=1) + (t * t).sum(axis=1)[:, None]
        assert (widths + 2 * errors[:, None] <= 1000 * np.finfo(dtype).eps * lengths).all()


class TestDevices:
    """The searches of a GPU, here on PyTorch's CPU where there is none."""

    DEVICES = ("cpu", pytest.param("cuda", marks=pytest.mark.gpu))

    @pytest.fixture(autouse=True, params=[False, True], ids=["one block", "many blocks"])
    def _blocks(self, request, monkeypatch):
        self.torch = pytest.importorskip("torch")
        on_device = import_module("localshapley.search.on_device")
        if request.param:
            for name, size in {"ROWS": 60, "QUERIES": 7, "PRODUCTS": 200, "SAMPLE": 10, "PASSING": 2}.items():
                monkeypatch.setattr(on_device, name, size)
            monkeypatch.setattr(on_device, "IN_SAMPLE", 2)
        self.search = on_device

    @pytest.mark.parametrize("device", DEVICES)
    @pytest.mark.parametrize("name", TABLES)
    def test_devices_give_the_same_bits(self, name, device):
        X, queries = TABLES[name][:500], TABLES[name][500:520]
        away, device = loop(X, queries), self.torch.device(device)
        for k in (1, 9, 500):
            same(self.search.nearest_on_device(X, queries, k, device), away, k)
        for radius in (np.quantile(away, 0.01), np.quantile(away, 0.6), away[3, 7]):
            radius = max(float(radius), 1e-300)
            found = self.search.within_on_device(X, queries, radius, device)
            assert [rows.tolist() for rows in found] == [np.flatnonzero(a <= radius).tolist() for a in away]

    def test_the_device_does_the_work_where_float32_can(self, monkeypatch):
        def refuse(*_):
            raise AssertionError

        monkeypatch.setattr(self.search, "nearest_by_products", refuse)
        monkeypatch.setattr(self.search, "within_by_products", refuse)
        monkeypatch.setattr(self.search, "_rows", _through_mps(self.search._rows))
        for name in ("numbers", "single precision", "far from the origin", "whole"):
            X, queries = TABLES[name][:500], TABLES[name][500:520]
            here = self.torch.device("cpu")
            same(self.search.nearest_on_device(X, queries, 5, here), loop(X, queries), 5)
            assert len(self.search.within_on_device(X, queries, 1.0, here)) == 20

    def test_the_precision_of_products_is_set_back(self):
        self.torch.set_float32_matmul_precision("medium")
        try:
            X = TABLES["numbers"]
            same(self.search.nearest_on_device(X, X[:9], 3, self.torch.device("cpu")), loop(X, X[:9]), 3)
            assert self.torch.get_float32_matmul_precision() == "medium"
        finally:
            self.torch.set_float32_matmul_precision("highest")


def _through_mps(rows_on):
    """Rows made ready on the CPU, as for devices without float64, and compared with those made ready on the device."""

    def rows(X, way, device):
        expected, (ready, widths) = rows_on(X, way, device), way.rows(X)
        np.testing.assert_allclose(ready, expected[0].numpy(), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(widths, expected[1].numpy(), rtol=1e-6)
        return expected

    return rows


def test_a_device_that_is_not_there_is_refused():
    X = TABLES["numbers"]
    with pytest.raises(ls.InvalidArgumentError, match="device"):
        nearest(X, X[:3], 2, device="abacus")
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        with pytest.raises(ls.InvalidArgumentError, match="no CUDA device"):
            within(X, X[:3], 2.0, device="cuda")


def test_a_gpu_is_used_by_itself_where_there_is_much_to_do(monkeypatch):
    pytest.importorskip("torch")
    on_device = import_module("localshapley.search.on_device")
    nearest_rows = import_module("localshapley.search.nearest_rows")
    there = on_device.torch.device("cpu")
    monkeypatch.setattr(nearest_rows, "find_gpu", lambda: there)
    used = []
    search = on_device.nearest_on_device
    monkeypatch.setattr(on_device, "nearest_on_device", lambda *args: used.append(args[3]) or search(*args))
    X = TABLES["numbers"]
    nearest(X, X[:9], 3)
    assert not used
    monkeypatch.setattr(nearest_rows, "MANY_PRODUCTS", 0)
    same(nearest(X, X[:9], 3), loop(X, X[:9]), 3)
    assert used == [there]
    nearest(X, X[:9], 3, device="cpu")
    assert used == [there]


def test_few_rows_are_measured(monkeypatch):
    """The running bound lets hardly more rows pass than are looked for."""
    measured = []
    monkeypatch.setattr(best_module, "measure", lambda *args: measured.append(len(args[2])) or measure(*args))
    X = rng.normal(size=(20_000, 16))
    for rows in (X, X.astype(np.float32), rng.integers(0, 2, size=X.shape)):
        measured.clear()
        nearest(rows[:-50], rows[-50:], 10)
        assert sum(measured) < 1.2 * 50 * 10


def test_no_queries_and_no_rows_are_no_trouble():
    X = TABLES["numbers"]
    assert nearest(X, X[:0], 3).rows.shape == (0, 3)
    assert nearest(X[:0], X[:4], 3).rows.shape == (4, 0)
    assert within(X, X[:0], 1.0) == []
    assert [len(rows) for rows in within(X[:0], X[:4], 1.0)] == [0] * 4


def test_a_support_says_where_it_is_searched(monkeypatch):
    nearest_rows = import_module("localshapley.search.nearest_rows")
    asked = []
    monkeypatch.setattr(
        nearest_rows, "find_device", lambda device: asked.append(device) or pytest.skip("no CUDA device")
    )
    X, y = TABLES["numbers"][:50], np.arange(50) % 2
    assert ls.supports.Nearest(3, device="cpu") != ls.supports.Nearest(3)
    ls.value(X, y, X[:3], y[:3], model="knn", support=ls.supports.Nearest(3, device="cpu"))
    assert asked == []
    for support in (ls.supports.Nearest(3, device="cuda"), ls.supports.Kernel(device="cuda")):
        with pytest.raises(pytest.skip.Exception):
            ls.value(X, y, X[:3], y[:3], model="knn", support=support)
    assert asked == ["cuda", "cuda"]


def test_columns_of_sparse_rows_may_be_in_any_order():
    rows = sparse.random_array((30, 8), density=0.5, rng=np.random.default_rng(0), format="csr")
    shuffled = rows.copy()
    for start, end in pairwise(rows.indptr):
        order = np.arange(start, end)[::-1]
        shuffled.indices[start:end], shuffled.data[start:end] = rows.indices[order], rows.data[order]
    shuffled.has_sorted_indices = False
    found, expected = nearest(shuffled, shuffled[:9], 4), nearest(rows, rows[:9], 4)
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.distances, expected.distances)
