"""Data sets with fixed splits, for examples, tests and experiments."""

from localshapley.datasets.dataset import Dataset
from localshapley.datasets.downloads import DataError
from localshapley.datasets.encoded import EncodedImages, mnist_features
from localshapley.datasets.loading import BUNDLED, FROM_FILES, NAMES, load
from localshapley.datasets.mnist import load_mnist
from localshapley.datasets.planetoid import Graph, load_graph
from localshapley.datasets.tabular import load_tabular

__all__ = [
    "BUNDLED",
    "FROM_FILES",
    "NAMES",
    "DataError",
    "Dataset",
    "EncodedImages",
    "Graph",
    "load",
    "load_graph",
    "load_mnist",
    "load_tabular",
    "mnist_features",
]
