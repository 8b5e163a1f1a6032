"""Citation networks: Cora, Citeseer and Pubmed with the Planetoid split, and Cora from its original text files."""

from __future__ import annotations

import io
import os
import pickle
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Ints
from localshapley.datasets.downloads import DataError, File, read
from localshapley.errors import InvalidArgumentError, unknown_name

PLANETOID = "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data"
PYGCN = "https://raw.githubusercontent.com/tkipf/pygcn/master/data/cora"

# Every file is pinned by its checksum, however the branch of the source changes.
CHECKSUMS = {
    "cora": {
        "allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        "ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        "tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        "ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        "graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        "test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    },
    "citeseer": {
        "allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
        "ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
        "tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
        "ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
        "graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
        "test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    },
    "pubmed": {
        "allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
        "ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        "tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        "ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        "graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        "test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    },
}
CONTENT = File(
    "cora/cora.content", "b8ebed0fd45e53995abafd1b70cf6a9fcc8f86abc5826d69b97fe6ca46e9c8ee", f"{PYGCN}/cora.content"
)
CITES = File(
    "cora/cora.cites", "ec1a372391b7f0f60a6aff0084e8abd8f19f0faa7e1f2441a41c492042d5945e", f"{PYGCN}/cora.cites"
)
CONTENT_TEST = (500, 1500)  # test nodes of the text files, as in the code that they were published with


class Graph(NamedTuple):
    """A graph whose nodes have features and classes; unpacks in the order of the arguments of `value_nodes`.

    Attributes
    ----------
    adjacency : CSR matrix of shape (n_nodes, n_nodes)
        1 where two nodes are joined, either way; no loops.
    X : CSR matrix of shape (n_nodes, n_features), float32
    y : int array of shape (n_nodes,)
        Class codes into `classes`; −1 where the files give no label.
    train, test : int arrays
        Node numbers, ascending: the labelled nodes outside the test set, and the test set.
    classes : array
        Names of the classes, or numbers where the files have no names.
    """

    adjacency: sparse.csr_matrix
    X: sparse.csr_matrix
    y: Ints
    train: Ints
    test: Ints
    classes: AnyArray


def load_graph(name: str, *, data_home: str | os.PathLike[str] | None = None, source: str = "planetoid") -> Graph:
    """Load a citation network: papers with the words that they hold, citations, and a field of science to predict.

    The 1,000 test nodes of the Planetoid files are the test set, and all other labelled nodes are for training: 1,708
    in Cora, 2,312 in Citeseer, 18,717 in Pubmed.

    Parameters
    ----------
    name : {"cora", "citeseer", "pubmed"}
    data_home : path, optional
        Folder of the data files; by default that of the environment variable ``LOCALSHAPLEY_DATA``, else
        ``~/localshapley_data``. Missing files are downloaded; checksums are verified before files are read.
    source : {"planetoid", "content"}, default="planetoid"
        ``"content"`` reads Cora's original text files instead, whose nodes come in another order and whose classes have
        names; nodes 500 to 1,499 are the test set.

    Returns
    -------
    Graph
    """
    if name not in CHECKSUMS:
        raise unknown_name("name", name, CHECKSUMS)
    if source not in ("planetoid", "content"):
        raise unknown_name("source", source, ("planetoid", "content"))
    if source == "planetoid":
        return _load_planetoid(name, data_home)
    if name != "cora":
        raise InvalidArgumentError(f"source='content' is only for 'cora'; got name={name!r}. Use source='planetoid'.")
    return _load_content(data_home)


def _load_planetoid(name: str, data_home: str | os.PathLike[str] | None) -> Graph:
    contents = {
        part: read(File(f"planetoid/ind.{name}.{part}", checksum, f"{PLANETOID}/ind.{name}.{part}"), data_home)
        for part, checksum in CHECKSUMS[name].items()
    }
    neighbours = unpickle(contents["graph"])
    n_nodes = len(neighbours)
    rows = np.repeat(np.arange(n_nodes), [len(neighbours[node]) for node in range(n_nodes)])
    columns = np.concatenate([neighbours[node] for node in range(n_nodes)]).astype(np.int64)

    test = np.array(contents["test.index"].split(), dtype=np.int64)  # node of each row of tx and ty
    X, X_test = _as_matrix(unpickle(contents["allx"])), _as_matrix(unpickle(contents["tx"]))
    one_hot, one_hot_test = unpickle(contents["ally"]), unpickle(contents["ty"])
    # Numbers that neither file has are nodes without features or label.
    stacked = sparse.vstack([X, X_test]).tocoo()
    node = np.concatenate([np.arange(X.shape[0]), test])
    features = sparse.csr_matrix((stacked.data, (node[stacked.row], stacked.col)), shape=(n_nodes, X.shape[1]))
    y = np.full(n_nodes, -1)
    y[node] = np.concatenate([one_hot, one_hot_test]).argmax(axis=1)
    return Graph(
        _adjacency(rows, columns, n_nodes),
        features,
        y,
        np.arange(X.shape[0]),
        np.sort(test),
        np.arange(one_hot.shape[1]),
    )


def _load_content(data_home: str | os.PathLike[str] | None) -> Graph:
    lines = [line.split() for line in read(CONTENT, data_home).decode().splitlines()]
    number = {line[0]: node for node, line in enumerate(lines)}
    X = sparse.csr_matrix(np.array([line[1:-1] for line in lines], dtype=np.float32))
    classes, y = np.unique([line[-1] for line in lines], return_inverse=True)
    cited, citing = np.array([number[paper] for paper in read(CITES, data_home).decode().split()]).reshape(-1, 2).T
    test = np.arange(*CONTENT_TEST)
    train = np.setdiff1d(np.arange(len(lines)), test)
    return Graph(_adjacency(cited, citing, len(lines)), X, y, train, test, classes)


def _adjacency(rows: Ints, columns: Ints, n_nodes: int) -> sparse.csr_matrix:
    """Matrix with a one for each pair of different nodes that is listed, either way, however often."""
    different = rows != columns
    pairs = np.concatenate([(rows * n_nodes + columns)[different], (columns * n_nodes + rows)[different]])
    row, column = np.divmod(np.unique(pairs), n_nodes)
    return sparse.csr_matrix((np.ones(len(row)), (row, column)), shape=(n_nodes, n_nodes))


def unpickle(contents: bytes) -> Any:
    """Read a pickle of arrays, sparse matrices and lists of neighbours; anything else in it is refused."""
    return _Unpickler(io.BytesIO(contents), encoding="latin1").load()


class _Matrix:
    """The contents of a pickled CSR matrix: `data`, `indices`, `indptr` and `_shape`."""


class _Unpickler(pickle.Unpickler):
    admitted = {  # noqa: RUF012 - a table, not a field
        ("numpy", "dtype"): np.dtype,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("scipy.sparse.csr", "csr_matrix"): _Matrix,
        ("collections", "defaultdict"): defaultdict,
        ("__builtin__", "list"): list,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.admitted:
            raise DataError(f"the file names {module}.{name}, which does not belong in a data set; it was not read.")
        return self.admitted[module, name]


def _as_matrix(pickled: Any) -> sparse.csr_matrix:
    return sparse.csr_matrix((pickled.data, pickled.indices, pickled.indptr), shape=pickled._shape)
