"""Data sets by name; those that scikit-learn ships are split and standardised the same way every time."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from localshapley.arrays import AnyArray, Floats
from localshapley.datasets.planetoid import Graph, load_graph
from localshapley.errors import unknown_name

BUNDLED = ("breast_cancer", "diabetes", "digits", "iris", "wine")
GRAPHS = ("citeseer", "cora", "pubmed")
TABLES = ("adult", "bank")
NAMES = (*BUNDLED, "mnist", *TABLES, *GRAPHS)


class Dataset(NamedTuple):
    """Training and test rows; unpacks in the order of the arguments of `value`."""

    X: Floats
    y: AnyArray
    X_test: Floats
    y_test: AnyArray
    feature_names: list[str]


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
        from localshapley.datasets.mnist import load_mnist

        return load_mnist(**settings)
    if name in TABLES:
        from localshapley.datasets.tabular import load_tabular

        return load_tabular(name, **settings)
    if name in BUNDLED:
        return _load_bundled(name, **settings)
    raise unknown_name("name", name, NAMES)


def _load_bundled(name: str, *, test_size: float = 0.3, seed: int = 0) -> Dataset:
    from sklearn import datasets
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    bunch: Any = getattr(datasets, f"load_{name}")()
    classes = bunch.target if name != "diabetes" else None
    X, X_test, y, y_test = train_test_split(
        bunch.data, bunch.target, test_size=test_size, random_state=seed, stratify=classes
    )
    scaler = StandardScaler().fit(X)
    return Dataset(scaler.transform(X), y, scaler.transform(X_test), y_test, list(map(str, bunch.feature_names)))
