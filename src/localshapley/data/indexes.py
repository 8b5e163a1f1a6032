"""Tables that belong together have their rows in the same order: the check of their indexes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import Ints
from localshapley.errors import InvalidArgumentError
from localshapley.formatting import counted
from localshapley.notes import Note


def index_of(*tables: Any) -> pd.Index | None:
    """The index of the first of the tables that has one."""
    for table in tables:
        if isinstance(table, pd.DataFrame | pd.Series):
            return table.index
    return None


def check_order(
    name: str, given: Any, rows_name: str, rows: Any, joined: str = "rows were joined by position"
) -> list[Note]:
    """Refuse a table whose index is that of `rows` in another order; returns a note if it has other labels.

    A default index (0, 1, 2, ...) says nothing about which row is which, so that any labels go with it.

    Parameters
    ----------
    name, rows_name : str
        The arguments, as the message names them.
    given, rows : table, column or Index
        Anything without an index is taken as it comes.
    joined : str
        What becomes of rows whose labels differ.

    Examples
    --------
    >>> check_order("y", pd.Series([1, 2], index=["a", "b"]), "X", pd.DataFrame({"f": [3, 4]}, index=["b", "a"]))
    Traceback (most recent call last):
    localshapley.errors.InvalidArgumentError: y has the index labels of X in another order, first 'a' where X has 'b'; \
give y.loc[X.index], or y.to_numpy() if the rows are in the right order already.
    """
    one = given if isinstance(given, pd.Index) else index_of(given)
    other = rows if isinstance(rows, pd.Index) else index_of(rows)
    if one is None or other is None or len(one) != len(other) or one.equals(other):
        return []
    labels, others = one.tolist(), other.tolist()
    if labels == others:
        return []
    where = next(i for i, (a, b) in enumerate(zip(labels, others, strict=True)) if a != b)
    first = f"first {labels[where]!r} where {rows_name} has {others[where]!r}"
    if same_labels(one, other):
        aligned = (
            f"give {name}.loc[{rows_name}.index]" if one.is_unique else "index labels repeat, so sort both beforehand"
        )
        raise InvalidArgumentError(
            f"{name} has the index labels of {rows_name} in another order, {first}; {aligned}, or {name}.to_numpy() "
            "if the rows are in the right order already."
        )
    if is_default(one) or is_default(other):
        return []
    text = f"{name} and {rows_name} have different labels in their indexes, {first}; {joined}."
    return [Note("indexes-differ", text, tables=[name, rows_name], labels=[labels[where], others[where]])]


def same_labels(one: pd.Index, other: pd.Index) -> bool:
    """Whether two indexes hold the same labels, each as often, in whatever order."""
    codes, labels = pd.factorize(one.append(other), use_na_sentinel=False)
    counts = [np.bincount(part, minlength=len(labels)) for part in (codes[: len(one)], codes[len(one) :])]
    return bool(np.array_equal(counts[0], counts[1]))


def places_of(wanted: pd.Index, there: pd.Index) -> Ints:
    """Where labels are in an index of unique ones, −1 where they are not; texts and numbers may name the same row.

    A file that was read by the command line has its ids as texts, and one that was read by pandas as numbers.

    >>> places_of(pd.Index([319, 7]), pd.Index(["7", "00319"])).tolist()
    [1, 0]
    """
    places: Ints = there.get_indexer(wanted)
    if pd.api.types.is_numeric_dtype(wanted.dtype) == pd.api.types.is_numeric_dtype(there.dtype):
        return places
    places = there.astype(str).get_indexer(wanted.astype(str))
    return places if (places >= 0).all() else _by_numbers(wanted, there)


def _by_numbers(wanted: pd.Index, there: pd.Index) -> Ints:
    """Where labels are as numbers: text that is no number is not found, and nor is a number that is there twice."""
    one, other = (pd.to_numeric(pd.Series(labels), errors="coerce") for labels in (wanted, there))
    known = np.flatnonzero(other.notna() & ~other.duplicated(keep=False))
    found = pd.Index(other.iloc[known]).get_indexer(pd.Index(one))
    return np.where(found >= 0, known[found] if len(known) else -1, -1)


def notes_on_names(X: Any) -> list[Note]:
    """What the user should know about a table in which rows or columns share a name."""
    if not isinstance(X, pd.DataFrame):
        return []
    notes = []
    if X.index.has_duplicates:
        again = X.index[X.index.duplicated()].tolist()
        text = (
            f"{counted(len(again), 'row')} of X {'have' if len(again) > 1 else 'has'} an index label of an earlier "
            f"row, first {again[0]!r}; each row has a value of its own, but these labels do not tell them apart."
        )
        notes.append(Note("index-labels-repeat", text, n_rows=len(again), first=again[0]))
    if X.columns.has_duplicates:
        name = X.columns[X.columns.duplicated()][0]
        notes.append(
            Note("columns-repeat", f"X has the column {name!r} more than once; each is a feature.", column=name)
        )
    return notes


def is_default(index: pd.Index) -> bool:
    """Whether an index only numbers the rows."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1
