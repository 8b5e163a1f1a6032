"""The rows as the user knows them: names, labels, features or images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley.arrays import Ints
from localshapley.errors import InvalidArgumentError
from localshapley.report.images import check_shape, to_images
from localshapley.report.tables import (
    Column,
    Table,
    any_column,
    as_table,
    decimals_of,
    image_column,
    number_column,
    text_column,
)
from localshapley.valuation import Valuation
from localshapley.valuation.matching import by_name, in_order

MAX_FEATURES = 6
"""Number of columns of the user's table that are shown."""


class Rows:
    """What is known about each valued row, and columns of tables about it.

    Parameters
    ----------
    valuation : Valuation
    rows : DataFrame, array or sparse matrix, or None
    y : array, Series or list, or None
    image_shape : tuple of int or None

    Attributes
    ----------
    valuation : Valuation
    exact : bool
        Whether all values are exact.
    ids : pandas Index
        The index of the user's table, and `name`, what its column is called.
    y : Series or None
        The labels, in the order of the rows.
    n_features, n_pixels : int
        Columns of the user's table, or pixels of all images where the rows are images.
    """

    def __init__(self, valuation: Valuation, rows: Any, y: Any, image_shape: Any) -> None:
        self.valuation = valuation
        self.exact = not valuation.stderr.any()
        self.ids = valuation.to_frame().index
        self.name = "row" if self.ids.name is None else self.ids.name
        rows = None if rows is None else _checked("rows", rows, len(self.ids))
        y = None if y is None else by_name(valuation, pd.Series(_checked("y", y, len(self.ids))))
        rows, y = in_order(valuation, rows, y, name="rows", shown=True)
        self.y = None if y is None else y.reset_index(drop=True)
        self._features = pd.DataFrame(index=range(len(self.ids)))
        self._pixels: np.ndarray | None = None
        self._shape: tuple[int, ...] = ()
        self.n_features = self.n_pixels = 0
        if rows is not None:
            self._features = _as_frame(rows)
            self.n_features = self._features.shape[1]
        if image_shape is not None:
            if rows is None:
                raise InvalidArgumentError("image_shape needs rows, the pixels of each row; got rows=None.")
            self._shape = check_shape(image_shape, self.n_features)
            self._pixels = self._features.to_numpy(dtype=np.float64)
            self._features, self.n_features, self.n_pixels = self._features.iloc[:, :0], 0, self._pixels.size

    def table(self, positions: Ints) -> Table:
        """Name, image, value, label and features of some rows."""
        return as_table(
            [
                self.names(positions),
                *self.images(positions),
                *self.judgement(positions),
                *self.labels(positions),
                *self.features(positions),
            ]
        )

    def names(self, positions: Ints) -> Column:
        """The index of the user's table."""
        return text_column(self.name, self.ids[positions])

    def images(self, positions: Ints) -> list[Column]:
        """A column of images, if the rows are images."""
        if self._pixels is None:
            return []
        low, high = np.nanmin(self._pixels), np.nanmax(self._pixels)
        return [image_column("image", to_images(self._pixels[positions], self._shape, float(low), float(high)))]

    def judgement(self, positions: Ints) -> list[Column]:
        """Columns of values and errors, and of the test rows that they come from."""
        v = self.valuation
        reach = number_column("test rows", v.n_tests[positions])
        return [*self.values(v.values[positions], v.stderr[positions]), reach]

    def labels(self, positions: Ints) -> list[Column]:
        """A column of labels, if they were given."""
        if self.y is None:
            return []
        return [any_column("label", self.y.iloc[positions], choice=True)]

    def features(self, positions: Ints) -> list[Column]:
        """The first columns of the user's table."""
        shown = self._features.iloc[positions]
        return [any_column(shown.columns[i], shown.iloc[:, i]) for i in range(min(MAX_FEATURES, shown.shape[1]))]

    def values(self, values: Any, stderr: Any) -> list[Column]:
        """Columns of values and, unless they are exact, of their errors, with the same decimals in all tables."""
        decimals = decimals_of(self.valuation.values)
        columns = [number_column("value", values, decimals=decimals, sign=True)]
        return columns if self.exact else [*columns, number_column("std. error", stderr, decimals=decimals)]


def _checked(name: str, given: Any, n: int) -> Any:
    """The argument, if it has `n` entries."""
    count = given.shape[0] if hasattr(given, "shape") else len(given)
    if count != n:
        raise InvalidArgumentError(
            f"{name} has {count} entries, but the valuation has {n} rows; give the rows that were valued, in their "
            "order."
        )
    return given


def _as_frame(rows: Any) -> pd.DataFrame:
    """A table of the rows, whatever holds them; columns without a name get one."""
    if isinstance(rows, pd.DataFrame):
        return rows
    if hasattr(rows, "to_pandas"):
        return pd.DataFrame(rows.to_pandas())
    if sparse.issparse(rows):
        frame: pd.DataFrame = pd.DataFrame.sparse.from_spmatrix(rows)  # type: ignore[attr-defined]
    else:
        array = np.asarray(rows)
        frame = pd.DataFrame(array.reshape(len(array), -1))
    frame.columns = pd.Index([f"column {i}" for i in range(frame.shape[1])])
    return frame
