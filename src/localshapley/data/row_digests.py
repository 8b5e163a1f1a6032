"""Digests of rows and labels as the user gave them, by which they are recognised in another table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Ints, Masks
from localshapley.runtime.threads import in_threads

CELLS_AT_ONCE, NUMBERS_AT_ONCE = 2**20, 2**19
"""Cells of a table that are digested together, which bounds the memory that it takes."""
FEW_CELLS = 2**18
"""Cells that are digested sooner without a kernel, if that is not compiled yet."""
MISSING = np.float64(np.nan).view(np.uint64)
"""The word of a missing cell."""


@dataclass(frozen=True)
class Digests:
    """What was valued, as the user gave it: enough to recognise the rows and labels in another table.

    Attributes
    ----------
    rows : uint64 array of shape (n_rows, 2)
        Digests of the rows by the values in them, in the order of the columns.
    labels : uint64 array of shape (n_rows,)
    columns : list of str or None
        Names of the columns, where the table had names that differ: another table may have them in another order, and
        more of them.
    is_joined : bool
        Whether the rows were joined with the user's table already: digests then do nothing but break ties.
    """

    rows: Masks
    labels: Masks
    columns: list[str] | None = None
    is_joined: bool = False

    @classmethod
    def of(cls, X: Any, y: Any, *, is_joined: bool = False) -> Digests:
        """Digest the rows and labels of a table."""
        names = [str(name) for name in X.columns] if isinstance(X, pd.DataFrame) else []
        columns = names if names and len(set(names)) == len(names) else None
        return cls(digest_cells(X), digest_labels(y), columns, is_joined)

    def joined(self, order: Ints) -> Digests:
        """The digests of rows that were joined with the user's table, in the order that it has."""
        return Digests(self.rows[order], self.labels[order], self.columns, is_joined=True)

    def of_table(self, X: Any) -> Masks:
        """Digest the rows of another table, by the same columns where it has them."""
        if isinstance(X, pd.DataFrame) and self.columns is not None:
            place = {str(name): i for i, name in enumerate(X.columns)}
            if all(name in place for name in self.columns):
                X = X.iloc[:, [place[name] for name in self.columns]]
        return digest_cells(X)


def digest_cells(X: Any) -> Masks:
    """Digest each row of a table by the values in it and their columns' places, shape (n_rows, 2).

    Numbers count by their value as float64, everything else by its text; all missing values are equal. An array, a
    sparse matrix and a DataFrame with the same contents have the same digests.
    """
    from localshapley.kernels.digests import digests_of_few, fold_cells, fold_words

    table = as_cells(X)
    n_rows, n_columns = table.shape
    if n_rows * n_columns <= FEW_CELLS and not sparse.issparse(table):
        return digests_of_few(words_of(table))
    out = np.zeros((n_rows, 2), dtype=np.uint64)
    is_array = isinstance(table, np.ndarray) and table.dtype.kind in "biuf"
    step = max(1, (NUMBERS_AT_ONCE if is_array else CELLS_AT_ONCE) // max(n_columns, 1))

    def digest(start: int) -> None:
        part = table.iloc[start : start + step] if isinstance(table, pd.DataFrame) else table[start : start + step]
        if sparse.issparse(part):
            fold_words(*_pairs(part), out[start : start + step])
        else:
            digests = np.zeros((2, part.shape[0]), dtype=np.uint64)
            fold_cells(words_of(part), *digests)
            out[start : start + step] = digests.T

    starts = range(0, n_rows, step)
    for start in starts[: 1 if is_array else None]:  # the first one compiles
        digest(start)
    if is_array and len(starts) > 1:
        in_threads(digest, starts[1:])
    fold_words(np.full(n_rows, n_columns, dtype=np.uint64), np.arange(n_rows + 1), out)
    return out


def as_cells(X: Any) -> Any:
    """A table as a DataFrame, a CSR array or an array of two dimensions; a list of texts has one column."""
    if isinstance(X, pd.DataFrame):
        return X
    if sparse.issparse(X):
        return sparse.csr_array(X)
    table = np.asarray(X)
    return table.reshape(len(table), int(np.prod(table.shape[1:])))


def digest_labels(y: Any) -> Masks:
    """Digest each label, shape (n_rows,): a number by its value, anything else by its text."""
    return _column_words(pd.Series(np.asarray(y).ravel()))


def bits(numbers: AnyArray) -> Masks:
    """Bits of numbers as float64; 0 and −0 count as equal, and so do all NaN."""
    found: Floats = np.add(numbers, 0.0, dtype=np.float64, order="C")
    if np.isnan(found.min(initial=0.0)):
        found[np.isnan(found)] = np.nan
    return found.view(np.uint64)


def _pairs(part: sparse.csr_array) -> tuple[Masks, Ints]:
    """Column and word of each number other than 0, row after row, with their offsets."""
    part = sparse.csr_array(part, dtype=np.float64, copy=True)
    part.sum_duplicates()
    part.eliminate_zeros()
    pairs = np.stack([part.indices.astype(np.uint64), bits(part.data)], axis=1)
    return pairs.ravel(), 2 * part.indptr.astype(np.int64)


def words_of(part: Any) -> Masks:
    """One word for each cell of a DataFrame or an array, 0 for the number 0; shape (n_columns, n_rows)."""
    if not isinstance(part, pd.DataFrame) and part.dtype.kind in "biuf":
        return bits(part.T)
    table = pd.DataFrame(part)
    words = np.empty(table.shape[::-1], dtype=np.uint64)
    for j in range(table.shape[1]):
        words[j] = _column_words(table.iloc[:, j])
    return words


def _column_words(column: pd.Series) -> Masks:
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
        return bits(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if column.dtype != object or pd.api.types.infer_dtype(column) == "string":
        codes, kinds = pd.factorize(column)  # each different cell once
        return np.append(_cell_words(np.asarray(kinds, dtype=object)), MISSING)[codes]
    return _cell_words(column.to_numpy())


def _cell_words(cells: AnyArray) -> Masks:
    """Words of cells of any kind."""
    missing = pd.isna(cells)
    is_number = ~missing & np.fromiter((isinstance(cell, int | float | np.number) for cell in cells), bool, len(cells))
    words = np.full(len(cells), MISSING)
    words[is_number] = bits(cells[is_number].astype(np.float64))
    is_text = ~missing & ~is_number
    words[is_text] = pd.util.hash_array(np.array([str(cell) for cell in cells[is_text]], dtype=object))
    return words
