"""The data sets that scikit-learn ships, split and standardised the same way every time."""

from __future__ import annotations

from typing import Any, NamedTuple

from localshapley.arrays import AnyArray, Floats
from localshapley.errors import unknown_name

NAMES = ("breast_cancer", "diabetes", "digits", "iris", "wine")


class Dataset(NamedTuple):
    """Training and test rows; unpacks in the order of the arguments of `value`."""

    X: Floats
    y: AnyArray
    X_test: Floats
    y_test: AnyArray
    feature_names: list[str]


def load(name: str, *, test_size: float = 0.3, seed: int = 0) -> Dataset:
    """Load a data set: 70 % training rows, 30 % test rows, classes in proportion, features standardised.

    Parameters
    ----------
    name : {"breast_cancer", "diabetes", "digits", "iris", "wine"}
    test_size : float, default=0.3
    seed : int, default=0
        Seed of the split.

    Examples
    --------
    >>> load("iris").X.shape
    (105, 4)
    """
    from sklearn import datasets
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    if name not in NAMES:
        raise unknown_name("name", name, NAMES)
    bunch: Any = getattr(datasets, f"load_{name}")()
    classes = bunch.target if name != "diabetes" else None
    X, X_test, y, y_test = train_test_split(
        bunch.data, bunch.target, test_size=test_size, random_state=seed, stratify=classes
    )
    scaler = StandardScaler().fit(X)
    return Dataset(scaler.transform(X), y, scaler.transform(X_test), y_test, list(map(str, bunch.feature_names)))
