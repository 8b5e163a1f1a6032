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
    size_of,
    text_column,
)
from localshapley.valuation import Valuation

MAX_FEATURES = 6
"""Columns of the user's table that are shown."""
MAX_ROWS = 10_000
"""Rows in the table of all rows; where there are more, it has the lowest and the highest."""
MAX_BYTES = 1_000_000
"""Size of the user's columns in the table of all rows; columns that do not fit are left out."""
MAX_PIXELS = 250_000
"""Pixels of the images in the table of all rows, which has none where there are more."""


class Rows:
    """What is known about each valued row, and tables of it.

    Parameters
    ----------
    valuation : Valuation
    rows : DataFrame, array or sparse matrix, or None
    y : array, Series or list, or None
    image_shape : tuple of int or None
    """

    def __init__(self, valuation: Valuation, rows: Any, y: Any, image_shape: Any) -> None:
        self.valuation = valuation
        self.exact = not valuation.stderr.any()
        self.ids = valuation.to_frame().index
        self.y = None if y is None else pd.Series(_checked("y", y, len(self.ids))).reset_index(drop=True)
        self._features = pd.DataFrame(index=range(len(self.ids)))
        self._pixels: np.ndarray | None = None
        self._shape: tuple[int, ...] = ()
        self.n_features = 0
        if rows is not None:
            self._features = _as_frame(_checked("rows", rows, len(self.ids)))
            self.n_features = self._features.shape[1]
        if image_shape is not None:
            if rows is None:
                raise InvalidArgumentError("image_shape needs rows, the pixels of each row; got rows=None.")
            self._shape = check_shape(image_shape, self.n_features)
            self._pixels = self._features.to_numpy(dtype=np.float64)
            self._features, self.n_features = self._features.iloc[:, :0], 0

    def table(self, positions: Ints) -> Table:
        """Name, image, value, label and features of some rows."""
        return as_table(
            [
                self.names(positions),
                *self.images(positions),
                *self._judgement(positions),
                *self.labels(positions),
                *self.features(positions),
            ]
        )

    def all_rows(self, upwards: Ints, downwards: Ints) -> Table:
        """The table of all rows, lowest value first, within what a page can hold."""
        positions = upwards
        if len(upwards) > MAX_ROWS:
            positions = np.concatenate([upwards[: MAX_ROWS // 2], downwards[: MAX_ROWS // 2][::-1]])
        columns = [self.names(positions), *self._judgement(positions), *self.labels(positions)]
        if self._pixels is not None and self._pixels.size <= MAX_PIXELS:
            columns[1:1] = self.images(positions)
        room = MAX_BYTES
        for column in self.features(positions):
            size = size_of(column)
            if size <= room:
                columns.append(column)
                room -= size
        return as_table(columns)

    def names(self, positions: Ints) -> Column:
        """The index of the user's table."""
        return text_column(self.ids.name if self.ids.name is not None else "row", self.ids[positions])

    def images(self, positions: Ints) -> list[Column]:
        """A column of images, if the rows are images."""
        if self._pixels is None:
            return []
        low, high = np.nanmin(self._pixels), np.nanmax(self._pixels)
        return [image_column("image", to_images(self._pixels[positions], self._shape, float(low), float(high)))]

    def labels(self, positions: Ints) -> list[Column]:
        """A column of labels, if they were given."""
        if self.y is None:
            return []
        head, cells = any_column("label", self.y.iloc[positions])
        return [({**head, "choice": True}, cells)]

    def features(self, positions: Ints) -> list[Column]:
        """The first columns of the user's table."""
        shown = self._features.iloc[positions]
        return [any_column(shown.columns[i], shown.iloc[:, i]) for i in range(min(MAX_FEATURES, shown.shape[1]))]

    def values(self, values: Any, stderr: Any) -> list[Column]:
        """Columns of values and, unless they are exact, of their errors, to the same decimals in all tables."""
        decimals = decimals_of(self.valuation.values)
        columns = [number_column("value", values, decimals=decimals, sign=True)]
        return columns if self.exact else [*columns, number_column("std. error", stderr, decimals=decimals)]

    def _judgement(self, positions: Ints) -> list[Column]:
        v = self.valuation
        reach = number_column("test rows", v.n_tests[positions])
        return [*self.values(v.values[positions], v.stderr[positions]), reach]


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
