"""The rows as the user knows them: names, labels, features or images."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley.arrays import Ints
from localshapley.data.rows import known_table
from localshapley.errors import InvalidArgumentError
from localshapley.formatting import kinds, shortened, with_row
from localshapley.report.html_tables import (
    MAX_TEXT,
    Column,
    Table,
    any_column,
    as_table,
    decimals_of,
    extra,
    image_column,
    number_column,
    size_of,
    text,
    text_column,
)
from localshapley.report.images import check_shape, to_images
from localshapley.valuation import Valuation
from localshapley.valuation.matching import in_order
from localshapley.valuation.row_names import by_index

SHOWN_FEATURES = 6
"""Number of columns of the user's table that are shown at first; a reader can choose others."""
MAX_FEATURES = 200
"""Maximum number of columns of the user's table that the page holds."""
MAX_BYTES = 1_000_000
"""Maximum size of these columns in one table; those that do not fit are left out."""


class Rows:
    """What is known about each valued row, and columns of tables about it.

    Parameters
    ----------
    valuation : Valuation
    rows : DataFrame, array or sparse matrix, or None
    y : array, Series or list, or None
    image_shape : tuple of int or None
    owner : array, Series or list, or None
    target : str or None
    table : DataFrame or None
        The table that the rows come from, under their names, with all of its columns.

    Attributes
    ----------
    valuation : Valuation
    exact : bool
        Whether all values are exact.
    ids : pandas Index
        The index of the user's table, and `name`, what its column is called.
    y, owner : Series or None
        The labels and owners, in the order of the rows.
    target : str or None
        The name of the column of labels, and `label`, what it is called in tables.
    n_features, n_pixels : int
        Columns of the user's table, or pixels of all images where the rows are images.
    given : DataFrame
        The rows as they were given to the report, pixels too.
    whole : DataFrame
        The rows with all columns besides the labels, as they are in the user's table.
    originals : DataFrame
        Those of them that a page may show, which are no pixels.
    """

    def __init__(
        self,
        valuation: Valuation,
        rows: Any,
        y: Any,
        image_shape: Any,
        owner: Any = None,
        target: str | None = None,
        table: Any = None,
    ) -> None:
        self.valuation = valuation
        self.exact = not valuation.stderr.any()
        self.ids = valuation.to_frame().index
        self.name = "row" if self.ids.name is None else self.ids.name
        self.target = getattr(y, "name", None) if target is None else target
        self.label = "label" if self.target is None else self.target
        rows, y, owner = (
            None if given is None else self._checked(name, given)
            for name, given in (("rows", known_table(rows)), ("y", y), ("owner", owner))
        )
        y, owner = (None if given is None else pd.Series(given) for given in (y, owner))
        rows, y, owner = in_order(valuation, rows, y, owner, name="rows", shown=True)
        self.y = None if y is None else y.reset_index(drop=True)
        self.owner = None if owner is None else owner.reset_index(drop=True)
        self._features = pd.DataFrame(index=range(len(self.ids)))
        self._pixels: np.ndarray | None = None
        self._shape: tuple[int, ...] = ()
        self.n_features = self.n_pixels = 0
        if rows is not None:
            self._features = _as_frame(rows)
            self.n_features = self._features.shape[1]
        self.given = self._features
        self._numbers: Ints = np.arange(len(self.ids))
        self.whole = self._features if table is None else self._of_table(table)
        self.originals = self.whole if rows is not None else self._features
        if image_shape is not None:
            if rows is None:
                raise InvalidArgumentError("image_shape needs rows, the pixels of each row; got rows=None.")
            self._shape = check_shape(image_shape, self.n_features)
            self._pixels = self._features.to_numpy(dtype=np.float64)
            self.originals = self.whole.drop(columns=self._features.columns, errors="ignore")
            self._features, self.n_features, self.n_pixels = self._features.iloc[:, :0], 0, self._pixels.size

    def table(self, positions: Ints) -> Table:
        """Name, image, value, label and features of some rows."""
        return as_table(
            [
                self.names(positions),
                *self.images(positions),
                *self.judgement(positions),
                *self.labels(positions),
                *self.owners(positions),
                *self.features(positions),
            ]
        )

    def names(self, positions: Ints) -> Column:
        """The index of the user's table."""
        return {"name": text(self.name), "kind": "text"}, [self.name_of(z) for z in positions]

    def name_of(self, position: int, most: int = MAX_TEXT) -> str:
        """The name of a row, with its number in the user's table if there is too little room for the name."""
        name = text(self.ids[position], sys.maxsize)
        is_row = self.valuation.unit == "row"
        return with_row(name, most, self._numbers[position]) if is_row else shortened(name, most)

    def images(self, positions: Ints) -> list[Column]:
        """A column of images, if the rows are images."""
        if self._pixels is None:
            return []
        low, high = np.nanmin(self._pixels), np.nanmax(self._pixels)
        return [image_column("image", to_images(self._pixels[positions], self._shape, float(low), float(high)))]

    def judgement(self, positions: Ints) -> list[Column]:
        """Columns of values and errors, and of the test rows that they come from."""
        v = self.valuation
        reach = number_column(kinds(v.unit)[1], v.n_tests[positions])
        return [*self.values(v.values[positions], v.stderr[positions]), reach]

    def labels(self, positions: Ints) -> list[Column]:
        """A column of labels, if they were given."""
        if self.y is None:
            return []
        return [any_column(self.label, self.y.iloc[positions], choice=True)]

    @property
    def known_labels(self) -> pd.Series | None:
        """The labels, if they were given and none is missing."""
        return None if self.y is None or self.y.isna().any() else self.y

    def owners(self, positions: Ints) -> list[Column]:
        """A column of owners, if they were given."""
        return [] if self.owner is None else [text_column("owner", self.owner.iloc[positions], choice=True)]

    def owners_of(self, names: pd.Index) -> pd.Series | None:
        """The owners of some rows, if they were given and rows can be found by their names."""
        return self.owner.iloc[self.ids.get_indexer(names)] if self.owner is not None and self.ids.is_unique else None

    def features(self, positions: Ints) -> list[Column]:
        """The columns of the user's table that a page has room for; the first are shown, the others can be chosen."""
        shown, room = self._features.iloc[positions], MAX_BYTES
        columns: list[Column] = []
        for i in range(min(MAX_FEATURES, shown.shape[1])):
            column = any_column(shown.columns[i], shown.iloc[:, i])
            size = size_of(column)
            if size <= room:
                columns.append(extra(column) if len(columns) >= SHOWN_FEATURES else column)
                room -= size
        return columns

    def values(self, values: Any, stderr: Any) -> list[Column]:
        """Columns of values and, unless they are exact, of their errors, with the same decimals in all tables."""
        decimals = decimals_of(self.valuation.values)
        columns = [number_column("value", values, decimals=decimals, sign=True)]
        return columns if self.exact else [*columns, number_column("std. error", stderr, decimals=decimals)]

    def _of_table(self, table: Any) -> pd.DataFrame:
        """The valued rows in the user's table, with all columns besides the labels."""
        table = known_table(table)
        if not isinstance(table, pd.DataFrame):
            raise InvalidArgumentError(f"table must be a DataFrame; got {type(table).__name__}.")
        places = table.index.get_indexer(self.ids) if table.index.is_unique else np.array([-1])
        if (places < 0).any():
            raise InvalidArgumentError("table must hold each valued row once, under its name; got another index.")
        self._numbers = places
        return table.drop(columns=[name for name in (self.target,) if name in table.columns]).iloc[places]

    def _checked(self, name: str, given: Any) -> Any:
        """The argument, if it has an entry for each row, in their order."""
        count, n = given.shape[0] if hasattr(given, "shape") else len(given), len(self.ids)
        if count != n:
            raise InvalidArgumentError(
                f"{name} has {count} entries, but the valuation has {n} rows; give the rows that were valued, in their "
                "order."
            )
        return by_index(name, given, self.valuation)


def _as_frame(rows: Any) -> pd.DataFrame:
    """A table of the rows, whatever holds them; columns without a name get one."""
    if isinstance(rows, pd.DataFrame):
        return rows
    if sparse.issparse(rows):
        frame: pd.DataFrame = pd.DataFrame.sparse.from_spmatrix(rows)  # type: ignore[attr-defined]
    else:
        array = np.asarray(rows)
        frame = pd.DataFrame(array.reshape(len(array), -1))
    frame.columns = pd.Index([f"column {i}" for i in range(frame.shape[1])])
    return frame
