"""Columns of `X` that are `y` itself: models would read the answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import gammaln

from localshapley.arrays import AnyArray
from localshapley.errors import InvalidArgumentError
from localshapley.notes import Note

FIRST_ROWS = 16
"""Rows that tell nearly all columns from `y`."""
MAX_RECODED = 20
"""With more classes than this, labels may be amounts, and a column that tells them apart a measurement."""
CHANCE = 1e-6
"""A column is `y` by accident if any column, shuffled, would equal it with more than this probability."""


def check_answer(X: Any, labels: AnyArray, y: Any) -> None:
    """Refuse a table in which a column is `y`, unless `y` has another name, or it may be so by accident.

    A few rows, or labels that hardly differ, may be equal by accident.

    Parameters
    ----------
    X : array, CSR matrix or DataFrame of shape (n_rows, n_features)
    labels : array of shape (n_rows,)
    y : the labels as the user gave them, maybe with a name
    """
    equal = equal_columns(X, labels) if isinstance(X, pd.DataFrame) else []  # columns of arrays have no names
    if not equal:
        return
    own, names = _name_of(y), X.columns[equal].tolist()
    if own in names or (own is None and not is_accident(labels, X.shape[1])):
        name = own if own in names else names[0]
        raise InvalidArgumentError(
            f"X has the column {name!r}, which is y itself, so that models would read the answer; leave it out: "
            f"X.drop(columns={name!r})."
        )


def notes_on_answers(X: Any, labels: AnyArray) -> list[Note]:
    """Name a column that is `y`, or has another word for each class; who has made it may mean it."""
    found, how = ([], "") if sparse.issparse(X) else find_answers(X, labels)
    if not found:
        return []
    name = X.columns.tolist()[found[0]] if isinstance(X, pd.DataFrame) else found[0]
    text = f"column {name!r} of X equals y{how}: models are given the answer; leave it out."
    return [Note("target-in-column", text, column=name)]


def find_answers(X: Any, labels: AnyArray) -> tuple[list[int], str]:
    """Positions of columns that equal the labels, else of those that only call classes by other names; and how."""
    equal = equal_columns(X, labels)
    if equal:
        return ([], "") if is_accident(labels, X.shape[1]) else (equal, "")
    recoded = recoded_columns(X, labels)
    return (recoded, " in other words") if recoded else ([], "")


def recoded_columns(X: Any, labels: AnyArray) -> list[int]:
    """Positions of the columns that have one value for each class and another one for each other class.

    >>> recoded_columns(np.array([[5, 1], [9, 0], [5, 1]] * 20), np.array(["no", "yes", "no"] * 20))
    [0, 1]
    """
    codes, classes = pd.factorize(labels)
    n_orders = gammaln(len(classes) + 1)  # names that classes can be given
    if not 2 <= len(classes) <= MAX_RECODED or is_accident(labels, X.shape[1] * np.exp(n_orders)):
        return []
    if isinstance(X, pd.DataFrame):
        return [i for i in range(X.shape[1]) if _is_recoded(X.iloc[:, i], codes)]
    first, codes_of_first = X[:FIRST_ROWS], codes[:FIRST_ROWS]
    seen = np.unique(codes_of_first, return_index=True)[1]  # the first row of each class
    likely = (first == first[seen][codes_of_first]).all(axis=0)
    return [i for i in np.flatnonzero(likely).tolist() if _is_recoded(X[:, i], codes)]


def _is_recoded(column: Any, codes: AnyArray) -> bool:
    """Whether values come for the first time, and again, where classes do."""
    stop = FIRST_ROWS
    while True:
        cells = column.iloc[:stop] if isinstance(column, pd.Series) else column[:stop]
        try:
            found = pd.factorize(cells)[0]
        except TypeError:  # lists and other things that cannot be told apart by a hash
            return False
        if not np.array_equal(found, codes[:stop]):
            return False
        if stop >= len(codes):
            return True
        stop *= 4


def _name_of(y: Any) -> Any:
    """The name of a column; None if it has none."""
    name = None if isinstance(y, pd.DataFrame) else getattr(y, "name", None)
    return None if name == "" else name  # polars


def equal_columns(X: Any, labels: AnyArray) -> list[int]:
    """Positions of the columns that equal the labels; each is read up to its first difference.

    >>> equal_columns(np.array([[0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1]))
    [0]
    """
    if isinstance(X, pd.DataFrame):
        return [i for i in range(X.shape[1]) if _is_equal(X.iloc[:, i], labels)]
    likely = np.flatnonzero((X[:FIRST_ROWS] == labels[:FIRST_ROWS, None]).all(axis=0)).tolist()
    return [i for i in likely if _is_equal(X[:, i], labels)]


def _is_equal(column: Any, labels: AnyArray) -> bool:
    """Whether a column, an array or a Series, equals the labels."""
    start, stop = 0, FIRST_ROWS
    while start < len(labels):
        cells = np.asarray(column.iloc[start:stop] if isinstance(column, pd.Series) else column[start:stop])
        if cells.dtype.kind in "mM" or pd.isna(cells).any() or not np.array_equal(cells, labels[start:stop]):
            return False
        start, stop = stop, 4 * stop
    return True


def is_accident(labels: AnyArray, n_columns: float) -> bool:
    """Whether one of so many columns may equal the labels by chance, as 0 and 1 in five rows do.

    There are `n! / (n_1! n_2! ...)` orders of `n` labels of which `n_1`, `n_2`, ... are equal.

    >>> is_accident(np.array([0, 1, 0, 1, 1]), 1), is_accident(np.arange(50) % 2, 10)
    (True, False)
    """
    counts = pd.Series(labels).value_counts().to_numpy()
    n_orders = gammaln(len(labels) + 1) - gammaln(counts + 1).sum()
    return bool(np.log(n_columns) - n_orders > np.log(CHANCE))
