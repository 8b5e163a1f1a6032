"""What a data set of rows is."""

from __future__ import annotations

from typing import NamedTuple

from localshapley.arrays import AnyArray, Floats


class Dataset(NamedTuple):
    """Training and test rows; unpacks in the order of the arguments of `value`."""

    X: Floats
    y: AnyArray
    X_test: Floats
    y_test: AnyArray
    feature_names: list[str]
