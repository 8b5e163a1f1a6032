"""Data sets that are read from files: graphs, MNIST, and the finding, downloading and checking of the files."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
from urllib.error import URLError

import numpy as np
import pytest
from scipy import sparse

import localshapley as ls
from localshapley.datasets import downloads, planetoid
from localshapley.datasets.downloads import DataError, File

CONTENTS = b"some numbers"
FILE = File("folder/numbers.txt", hashlib.sha256(CONTENTS).hexdigest(), "https://example.org/numbers.txt")


@pytest.fixture
def opened(monkeypatch):
    """Answers of a pretended network, by address; addresses that were asked for are in `asked`."""
    answers, asked = {}, []

    def urlopen(url, timeout):
        assert timeout
        asked.append(url)
        if url not in answers:
            raise URLError("no route to host")
        return io.BytesIO(answers[url])

    monkeypatch.setattr(downloads, "urlopen", urlopen)
    answers["asked"] = asked
    return answers


# Files


@pytest.mark.parametrize("place", ["folder/numbers.txt", "numbers.txt", "folder/numbers.txt.gz", "numbers.txt.gz"])
def test_a_file_is_found_where_it_may_lie(tmp_path, opened, place):
    (tmp_path / "folder").mkdir()
    (tmp_path / place).write_bytes(gzip.compress(CONTENTS) if place.endswith("gz") else CONTENTS)
    assert downloads.read(FILE, tmp_path) == CONTENTS
    assert not opened["asked"]


def test_the_folder_is_the_argument_then_the_variable_then_the_home(tmp_path, monkeypatch, opened):
    for name in ("argument", "variable", "home/localshapley_data"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(downloads.VARIABLE, str(tmp_path / "variable"))
    (tmp_path / "argument" / "numbers.txt").write_bytes(CONTENTS)
    assert downloads.read(FILE, tmp_path / "argument") == CONTENTS
    with pytest.raises(DataError, match="variable"):
        downloads.read(FILE)
    (tmp_path / "variable" / "numbers.txt").write_bytes(CONTENTS)
    assert downloads.read(FILE) == CONTENTS
    monkeypatch.delenv(downloads.VARIABLE)
    (tmp_path / "home" / "localshapley_data" / "numbers.txt").write_bytes(CONTENTS)
    opened["asked"].clear()
    assert downloads.read(FILE) == CONTENTS
    assert not opened["asked"]


def test_a_missing_file_is_downloaded_once_and_kept(tmp_path, opened):
    opened[FILE.url] = CONTENTS
    assert downloads.read(FILE, tmp_path) == downloads.read(FILE, tmp_path) == CONTENTS
    assert opened["asked"] == [FILE.url]
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["numbers.txt"]


def test_a_download_with_another_checksum_is_not_kept(tmp_path, opened):
    opened[FILE.url] = b"something else"
    with pytest.raises(DataError, match="checksum is not"):
        downloads.read(FILE, tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_network_the_message_says_what_to_do(tmp_path, opened):
    with pytest.raises(DataError, match=r"(?s)no route to host.*folder/numbers.txt.*data_home.*LOCALSHAPLEY_DATA"):
        downloads.read(FILE, tmp_path)


@pytest.mark.parametrize(
    ("place", "contents", "message"),
    [
        ("numbers.txt", b"changed", "checksum is not"),
        ("numbers.txt.gz", gzip.compress(b"changed"), "checksum is not"),
        ("numbers.txt.gz", b"not packed", "cannot be unpacked"),
    ],
    ids=["changed", "packed and changed", "not packed"],
)
def test_a_changed_file_is_not_read(tmp_path, opened, place, contents, message):
    (tmp_path / place).write_bytes(contents)
    with pytest.raises(DataError, match=message):
        downloads.read(FILE, tmp_path)


# Pickles


class Call:
    """A pickle of this runs a command when it is read the usual way."""

    def __reduce__(self):
        return print, ("a command ran",)


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
def test_a_pickle_can_name_nothing_but_arrays(protocol, capsys):
    with pytest.raises(DataError, match="does not belong in a data set"):
        planetoid.unpickle(pickle.dumps(Call(), protocol))
    assert not capsys.readouterr().out


@pytest.mark.parametrize("name", ["os\nsystem", "builtins\neval", "numpy\nload", "numpy.core.multiarray\nempty"])
def test_other_names_are_refused(name):
    with pytest.raises(DataError, match=name.replace("\n", ".")):
        planetoid.unpickle(f"c{name}\n.".encode())


# Graphs


def python_2_pickle(thing):
    """The thing in the form of the published files."""
    text = pickle.dumps(thing, 3)
    for new, old in (
        (b"numpy._core.multiarray", b"numpy.core.multiarray"),
        (b"scipy.sparse._csr\n", b"scipy.sparse.csr\n"),
    ):
        text = text.replace(new, old)
    return text


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Five nodes in Planetoid's form: 0 and 1 for training, 4 and 2 for testing, 3 without features and label."""
    eye = np.eye(3, dtype=np.float32)
    parts = {
        "allx": python_2_pickle(sparse.csr_matrix(eye[:2])),
        "ally": python_2_pickle(np.array([[0, 1], [1, 0]], dtype=np.int32)),
        "tx": python_2_pickle(sparse.csr_matrix(np.array([[0, 0, 4], [0, 2, 0]], dtype=np.float32))),
        "ty": python_2_pickle(np.array([[0, 1], [1, 0]], dtype=np.int32)),
        "graph": python_2_pickle({0: [1, 1, 0], 1: [0], 2: [4], 3: [2], 4: []}),
        "test.index": b"4\n2\n",
    }
    for part, contents in parts.items():
        (tmp_path / f"ind.cora.{part}").write_bytes(contents)
    sums = {part: hashlib.sha256(contents).hexdigest() for part, contents in parts.items()}
    monkeypatch.setitem(planetoid.CHECKSUMS, "cora", sums)
    return tmp_path


def test_the_parts_are_put_together(tiny):
    graph = ls.datasets.load("cora", data_home=tiny)
    edges = np.zeros((5, 5))
    for a, b in [(0, 1), (2, 4), (2, 3)]:
        edges[a, b] = edges[b, a] = 1
    np.testing.assert_array_equal(graph.adjacency.toarray(), edges)
    np.testing.assert_array_equal(graph.X.toarray(), [[1, 0, 0], [0, 1, 0], [0, 2, 0], [0, 0, 0], [0, 0, 4]])
    assert graph.y.tolist() == [1, 0, 0, -1, 1]
    assert (graph.train.tolist(), graph.test.tolist()) == ([0, 1], [2, 4])


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "classes", "train"),
    [
        ("cora", 2708, 5278, 1433, 7, 1708),
        ("citeseer", 3327, 4552, 3703, 6, 2312),
        ("pubmed", 19717, 44324, 500, 3, 18717),
    ],
)
def test_the_published_graphs(shared_data, name, nodes, edges, features, classes, train):
    graph = ls.datasets.load(name, data_home=shared_data)
    assert graph.adjacency.shape == (nodes, nodes)
    assert graph.adjacency.nnz == 2 * edges
    assert (graph.adjacency != graph.adjacency.T).nnz == 0
    assert graph.adjacency.diagonal().sum() == 0
    assert set(graph.adjacency.data) == {1.0}
    assert graph.X.shape == (nodes, features)
    assert len(graph.classes) == classes
    assert (len(graph.train), len(graph.test)) == (train, 1000)
    assert not np.intersect1d(graph.train, graph.test).size
    assert (graph.y[graph.train] >= 0).all()
    assert (graph.y[graph.test] >= 0).all()
    unlabelled = np.flatnonzero(graph.y < 0)
    assert len(unlabelled) == nodes - train - 1000
    assert graph.X[unlabelled].nnz == 0


def test_both_forms_of_cora_are_one_graph(shared_data):
    """Numbers of nodes differ, so compare what does not depend on them: each node's class, words and degree."""
    planetoid_, content = (ls.datasets.load("cora", data_home=shared_data, source=s) for s in ("planetoid", "content"))
    assert content.classes.tolist()[2] == "Neural_Networks"
    assert len(content.train) == 1708
    described = []
    for graph in (planetoid_, content):
        size = np.bincount(graph.y)[graph.y]
        words = np.asarray(graph.X.sum(axis=1)).ravel().astype(int)
        degree = np.asarray(graph.adjacency.sum(axis=1)).ravel().astype(int)
        two_steps = (graph.adjacency @ degree).astype(int)
        described.append(sorted(zip(size, words, degree, two_steps, strict=True)))
    assert described[0] == described[1]


# MNIST


def test_mnist(shared_data):
    X, y, X_test, y_test, names = ls.datasets.load("mnist", n_train=300, n_test=50, seed=3, data_home=shared_data)
    assert (X.shape, X_test.shape, len(names)) == ((300, 784), (50, 784), 784)
    assert (X.min(), X.max()) == (0.0, 1.0)
    assert set(y) == set(range(10))
    more = ls.datasets.load_mnist(n_train=400, n_test=50, seed=3, data_home=shared_data)
    np.testing.assert_array_equal(more.X[:300], X)
    np.testing.assert_array_equal(more.y_test, y_test)
    ink = [X[y == digit].mean() for digit in range(10)]
    assert np.argmin(ink) == 1, "ones have the least ink"


@pytest.mark.parametrize("n", [0, 60_001, 2.5, True])
def test_a_wrong_number_of_images(shared_data, n):
    with pytest.raises(ls.InvalidArgumentError, match=r"n_train must be a whole number from 1 to 60000"):
        ls.datasets.load_mnist(n_train=n, data_home=shared_data)


# Arguments


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("coral", {}, "Did you mean 'cora'"),
        ("cora", {"source": "contents"}, "Did you mean 'content'"),
        ("pubmed", {"source": "content"}, "is only for 'cora'"),
    ],
)
def test_wrong_arguments(name, settings, message):
    with pytest.raises(ls.InvalidArgumentError, match=message):
        ls.datasets.load(name, **settings)


def test_load_graph_knows_graphs_only():
    with pytest.raises(ls.InvalidArgumentError, match="'citeseer', 'cora', 'pubmed'; got 'iris'"):
        ls.datasets.load_graph("iris")


class TestTables:
    """Adult and Bank Marketing, and MNIST through a network."""

    @pytest.mark.parametrize(("name", "classes"), [("adult", {"at most 50K", "over 50K"}), ("bank", {"yes", "no"})])
    def test_rows_are_drawn_and_prepared(self, shared_data, name, classes):
        data = ls.datasets.load(name, n_train=300, n_test=100, data_home=shared_data)
        assert data.X.shape == (300, len(data.feature_names))
        assert data.X_test.shape == (100, len(data.feature_names))
        assert set(data.y) == classes
        assert not any(feature.startswith("duration") for feature in data.feature_names)
        numbers = [i for i, feature in enumerate(data.feature_names) if feature in ("age", "balance", "fnlwgt")]
        np.testing.assert_allclose(data.X[:, numbers].mean(axis=0), 0, atol=1e-9)  # scales come from training rows
        again, other = (ls.datasets.load(name, n_train=300, n_test=100, seed=s, data_home=shared_data) for s in (0, 1))
        np.testing.assert_array_equal(data.X, again.X)
        assert (data.y != other.y).any()

    @pytest.mark.parametrize("sizes", [{"n_train": 0}, {"n_train": 48_842}])
    def test_too_many_rows(self, shared_data, sizes):
        with pytest.raises(ls.InvalidArgumentError, match="together at most"):
            ls.datasets.load("adult", data_home=shared_data, **sizes)

    @pytest.mark.slow
    def test_features_of_images_are_kept_and_come_from_a_network_that_did_not_see_them(
        self, shared_data, tmp_path, monkeypatch
    ):
        pytest.importorskip("torch")
        from localshapley.datasets import network_features

        settings = {"n_train": 40, "n_test": 50, "n_encoder": 600, "data_home": shared_data, "cache": tmp_path}
        found = ls.datasets.mnist_features(**settings)
        assert found.data.X.shape == (40, 1024)
        assert found.data.X_test.shape == (50, 1024)
        assert 0.5 < found.accuracy < 1  # 600 images teach something
        images = ls.datasets.load("mnist", n_train=40, n_test=50, data_home=shared_data)
        np.testing.assert_array_equal(found.data.y, images.y)
        monkeypatch.setattr(network_features, "_encode", None)  # the second time it comes from the file
        again = ls.datasets.mnist_features(**settings)
        np.testing.assert_array_equal(again.data.X, found.data.X)
        assert again.accuracy == found.accuracy
