"""Data sets by name."""

from __future__ import annotations

from typing import Any, Literal, overload

from localshapley.datasets.bundled import load_bundled
from localshapley.datasets.dataset import Dataset
from localshapley.datasets.mnist import load_mnist
from localshapley.datasets.planetoid import Graph, load_graph
from localshapley.datasets.tabular import load_tabular
from localshapley.errors import unknown_name

BUNDLED = {
    "breast_cancer": "569 tumours, 30 measurements, benign or malignant",
    "diabetes": "442 patients, 10 measurements, progression (regression)",
    "digits": "1,797 images of 8 × 8 pixels, digits 0 to 9",
    "iris": "150 flowers, 4 measurements, 3 species",
    "wine": "178 wines, 13 measurements, 3 cultivars",
}
"""Those that come with scikit-learn, and what they hold."""
TABLES = {
    "adult": "48,842 people, 14 columns, income over 50K or not",
    "bank": "4,521 calls by a bank, 15 columns, offer taken or not",
}
GRAPHS = {
    "cora": "2,708 papers that cite each other, 7 subjects",
    "citeseer": "3,327 papers that cite each other, 6 subjects",
    "pubmed": "19,717 papers that cite each other, 3 subjects",
}
FROM_FILES = {"mnist": "70,000 images of 28 × 28 pixels, digits 0 to 9", **TABLES, **GRAPHS}
"""Those that are read from files, or downloaded."""
NAMES = (*BUNDLED, *FROM_FILES)


@overload
def load(name: Literal["cora", "citeseer", "pubmed"], **settings: Any) -> Graph: ...
@overload
def load(name: str, **settings: Any) -> Dataset: ...
def load(name: str, **settings: Any) -> Dataset | Graph:
    """Load a data set by its name.

    Parameters
    ----------
    name : str
        ``"breast_cancer"``, ``"diabetes"``, ``"digits"``, ``"iris"`` and ``"wine"`` come with scikit-learn;
        ``"mnist"``, the tables ``"adult"`` and ``"bank"``, and the graphs ``"cora"``, ``"citeseer"`` and ``"pubmed"``
        are read from files or downloaded.
    **settings
        Those that come with scikit-learn take `test_size` (default 0.3) and `seed` (default 0): classes are split in
        proportion, features standardised. ``"mnist"`` takes the settings of `load_mnist`, tables those of
        `load_tabular`, graphs those of `load_graph`.

    Returns
    -------
    Dataset, or Graph

    Examples
    --------
    >>> load("iris").X.shape
    (105, 4)
    """
    if name in GRAPHS:
        return load_graph(name, **settings)
    if name == "mnist":
        return load_mnist(**settings)
    if name in TABLES:
        return load_tabular(name, **settings)
    if name in BUNDLED:
        return load_bundled(name, **settings)
    raise unknown_name("name", name, NAMES)
