"""Rows and labels as the user gave them, checked and in one form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley.arrays import AnyArray, Ints, as_column
from localshapley.data.indexes import check_order, index_of, notes_on_names
from localshapley.data.sentinels import notes_on_sentinels
from localshapley.data.target_leaks import check_answer, notes_on_answers
from localshapley.errors import InvalidArgumentError
from localshapley.notes import Note
from localshapley.runtime.threads import in_threads

LARGEST = 1e150
"""Sums of squares of numbers up to this are finite, however many there are."""
LARGEST_AMOUNT = 1e30
"""Of what a regressor predicts: errors need sums of fourth powers."""
AT_ONCE = 2**22
"""Numbers that a thread looks at, at a time."""
MANY_NUMBERS = 50
"""Whole numbers with up to this many different values are classes, with more they are amounts."""


@dataclass(frozen=True)
class Data:
    """Training and test rows with their labels.

    Attributes
    ----------
    X, X_test : array, CSR matrix or DataFrame of shape (n_rows, n_features)
        `X_test` is None where folds are to take its place.
    y, y_test : array of shape (n_rows,)
    ids : pandas Index or None
        The index of the user's table.
    notes : list of Note
        What the user should know, found on the way.
    remarks : callable
        Gives what else the user should know about the tables.
    """

    X: Any
    y: AnyArray
    X_test: Any
    y_test: AnyArray
    ids: pd.Index | None = None
    notes: list[Note] = field(default_factory=list)
    remarks: Callable[[], list[Note]] = list


def read_data(X: Any, y: Any, X_test: Any, y_test: Any, *, alone: bool = False) -> Data:
    """Check rows and labels; both tables have the same columns and the same form: frames, arrays or CSR matrices.

    With `alone` there are no test rows: rows will test each other in folds.
    """
    notes = check_order("y", y, "X", X)
    rows, test_rows = _read_rows("X", X), None
    labels = _read_labels("y", y, rows.shape[0], "X")
    test_labels, given = labels[:0], rows
    check_answer(rows, labels, y)
    if not alone:
        notes += check_order("y_test", y_test, "X_test", X_test)
        test_rows = _read_rows("X_test", X_test)
        test_labels = _read_labels("y_test", y_test, test_rows.shape[0], "X_test")
        if rows.shape[1] != test_rows.shape[1]:
            raise InvalidArgumentError(
                f"X_test has {test_rows.shape[1]} features, X has {rows.shape[1]}; both need the same columns."
            )
        rows, test_rows = _in_one_form(rows, test_rows)

    def remarks() -> list[Note]:
        return notes_on_answers(given, labels) + notes_on_names(given) + notes_on_sentinels(rows, test_rows)

    return Data(rows, labels, test_rows, test_labels, index_of(X, y), notes, remarks)


def known_table(X: Any) -> Any:
    """Tables of other libraries (polars, pyarrow) as pandas, sparse ones in a form that can be indexed by rows."""
    if isinstance(X, np.ndarray):
        return X
    if sparse.issparse(X):
        return sparse.csr_matrix(X)
    X = _collected(X)
    if isinstance(X, pd.DataFrame):
        return _in_native_order(X)
    return X.to_pandas().rename_axis("row") if hasattr(X, "to_pandas") else X


def _in_native_order(table: pd.DataFrame) -> pd.DataFrame:
    """A frame whose numbers have their bytes in the order of this machine: pandas cannot pick rows of others."""
    foreign = {
        name: kind.newbyteorder("=")
        for name, kind in table.dtypes.items()
        if isinstance(kind, np.dtype) and not kind.isnative
    }
    return table.astype(foreign) if foreign else table


def are_numbers(table: pd.DataFrame) -> bool:
    """Whether all columns of a table hold numbers."""
    return all(pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes)


def _collected(table: Any) -> Any:
    """A polars LazyFrame as the table that it describes; anything else as it is."""
    return table.collect() if hasattr(table, "collect") and hasattr(table, "collect_schema") else table


def _read_rows(name: str, X: Any) -> Any:
    """Rows as a float array, a CSR matrix or a DataFrame."""
    X = known_table(X)
    if X is None:
        raise InvalidArgumentError(
            f"{name} is missing; give training rows and test rows (X, y, X_test, y_test), or only X, y and cv=5."
        )
    if isinstance(X, pd.DataFrame):
        rows: Any = X
    elif sparse.issparse(X):
        rows = sparse.csr_matrix(X)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()  # and sorts, which distances between sparse rows rely on
    else:
        rows = _read_array(name, X)
    if rows.shape[0] == 0 or rows.shape[1] == 0:
        raise InvalidArgumentError(f"{name} is empty: it has {rows.shape[0]} rows and {rows.shape[1]} features.")
    return rows


def _read_array(name: str, X: Any) -> AnyArray:
    try:
        rows = np.asarray(X)
    except ValueError:
        raise InvalidArgumentError(f"{name} has rows of different lengths; give each the same features.") from None
    if rows.ndim == 1 and rows.dtype.kind in "OUS" and len(rows) and isinstance(rows[0], str | bytes):
        raise InvalidArgumentError(
            f"{name} holds one text per row; give a table of numbers, such as TfidfVectorizer().fit_transform({name}), "
            "or a Pipeline that encodes it, such as make_pipeline(TfidfVectorizer(), LogisticRegression())."
        )
    if rows.ndim != 2:
        advice = f"reshape one feature with {name}.reshape(-1, 1)"
        if rows.ndim > 2:
            advice = (
                f"flatten each row with {name}.reshape(len({name}), -1); a PyTorch module that begins with "
                f"nn.Unflatten(1, {rows.shape[1:]}) gives them their shape back"
            )
        raise InvalidArgumentError(f"{name} must have two dimensions (rows, features); got {rows.ndim}: {advice}.")
    if rows.dtype.kind == "c":
        raise InvalidArgumentError(f"{name} holds complex numbers; give real ones, such as {name}.real.")
    if rows.dtype == object or rows.dtype.kind in "US":
        try:
            rows = rows.astype(np.float64)
        except (TypeError, ValueError):
            raise InvalidArgumentError(
                f"{name} holds text; give a DataFrame and a Pipeline that encodes it, or numbers."
            ) from None
    return rows


def _read_labels(name: str, y: Any, n_rows: int, rows_name: str) -> AnyArray:
    if y is None:
        raise InvalidArgumentError(f"{name} is missing; give one label or number for each row of {rows_name}.")
    labels = as_column(y if isinstance(y, np.ndarray) else _collected(y))
    if labels.ndim != 1:
        shape = getattr(y, "shape", labels.shape)  # a sparse matrix is no array
        raise InvalidArgumentError(f"{name} must be one column; got shape {shape}.")
    if len(labels) != n_rows:
        raise InvalidArgumentError(
            f"{name} has {len(labels)} entries, {rows_name} has {n_rows} rows; they must be equally long."
        )
    missing = np.flatnonzero(pd.isna(labels))
    if len(missing):
        raise InvalidArgumentError(
            f"{name} is missing (NaN) in {len(missing)} places, first at row {missing[0]}; drop or fill these rows."
        )
    if labels.dtype.kind in "mM" or isinstance(labels[0], date | timedelta):
        raise InvalidArgumentError(
            f"{name} holds dates or times; give numbers to predict, such as ({name} - {name}.min()).dt.days, or "
            f"classes, such as {name}.dt.year."
        )
    if labels.dtype == object and all(isinstance(label, str) for label in labels):
        labels = labels.astype(str)
    elif labels.dtype == object and all(type(label) is int for label in labels):
        labels = labels.astype(np.int64)
    return labels


def _in_one_form(rows: Any, test_rows: Any) -> tuple[Any, Any]:
    """Both tables as frames with the same columns, as arrays, or as sparse matrices."""
    if isinstance(rows, pd.DataFrame) and isinstance(test_rows, pd.DataFrame):
        if list(rows.columns) != list(test_rows.columns):
            raise InvalidArgumentError(_other_columns(rows.columns, test_rows.columns))
        return rows, test_rows
    rows, test_rows = as_array("X", rows), as_array("X_test", test_rows)
    if sparse.issparse(rows) != sparse.issparse(test_rows):
        raise InvalidArgumentError("X and X_test must both be sparse or both be dense.")
    return rows, test_rows


def _other_columns(own: pd.Index, others: pd.Index) -> str:
    """What to say where the columns of `X_test` are not those of `X`."""
    if sorted(map(str, own)) == sorted(map(str, others)):
        return "X_test has the columns of X in another order; give X_test[X.columns]."
    lacks, more = own.difference(others, sort=False), others.difference(own, sort=False)
    said = [f"lacks {_few(lacks)}"] if len(lacks) else []
    said += [f"has {_few(more)}, which X does not have"] if len(more) else []
    return f"X_test {' and '.join(said) or 'has a column more often or less often than X'}; both need the same columns."


def _few(names: pd.Index, most: int = 4) -> str:
    return ", ".join(map(repr, names[:most].tolist())) + (f" and {len(names) - most} more" if len(names) > most else "")


def as_array(name: str, table: Any) -> Any:
    """A frame of numbers as an array; anything else as it is."""
    if not isinstance(table, pd.DataFrame):
        return table
    try:
        return table.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"{name} is a DataFrame with text columns, the other table is not; give both as DataFrames."
        ) from None


def numbers_in(table: Any) -> AnyArray:
    """All numbers of a table, whatever holds them."""
    values = table
    if isinstance(table, pd.DataFrame):
        # As floats: of integer columns, pandas before 3 makes an array of integers, which cannot hold the NaN.
        values = table.select_dtypes("number", exclude="timedelta").to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = np.asarray(values.data if sparse.issparse(values) else values)
    return numbers if numbers.dtype in (np.float32, np.float64) else numbers.astype(np.float64)


def check_size(
    name: str,
    numbers: AnyArray,
    bounds: tuple[float, float] | None = None,
    *,
    may_vanish: bool = False,
    most: float = LARGEST,
    powers: str = "squared, as distances and errors are",
) -> None:
    """Refuse numbers whose powers are too large, or all too small, for floating point: nothing could be measured.

    `bounds` are their `extremes`, where they are known.

    >>> check_size("X", np.array([1e300, 2.0]))
    Traceback (most recent call last):
    localshapley.errors.InvalidArgumentError: X holds 1e+300, and numbers beyond 1e+150 overflow when they are \
squared, as distances and errors are; divide it by a large number, or drop what is not a measurement.
    """
    low, high = bounds or extremes(numbers)
    if not np.isfinite([low, high]).all():
        finite = np.isfinite(numbers)
        low, high = (float(f(initial=0.0, where=finite)) for f in (numbers.min, numbers.max))
    largest = max(high, -low)
    if largest > most:
        raise InvalidArgumentError(
            f"{name} holds {largest:.3g}, and numbers beyond {most:g} overflow when they are {powers}; divide it by a "
            "large number, or drop what is not a measurement."
        )
    if not may_vanish and 0 < largest < 1 / most:
        raise InvalidArgumentError(
            f"{name} holds nothing larger than {largest:.3g}, and numbers below {1 / most:g} vanish when they are "
            f"{powers}; multiply it by a large number."
        )


def extremes(numbers: AnyArray) -> tuple[float, float]:
    """The smallest and the largest number, or 0; where both are finite all are, which needs no further array.

    >>> extremes(np.array([2.0, np.nan]))
    (nan, nan)
    """
    if numbers.size <= AT_ONCE or not numbers.flags.c_contiguous:
        return float(numbers.min(initial=0.0)), float(numbers.max(initial=0.0))
    flat = numbers.reshape(-1)
    found = in_threads(lambda start: extremes(flat[start : start + AT_ONCE]), range(0, len(flat), AT_ONCE))
    low, high = np.array(found).T
    return float(low.min()), float(high.max())


def as_amounts(name: str, y: AnyArray) -> AnyArray:
    """Labels as the numbers that a regressor predicts."""
    try:
        numbers = y.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"{name} must hold numbers for a regressor; got {y.dtype} such as {y[0]!r}. Use a classifier for labels."
        ) from None
    if not np.isfinite(numbers).all():
        where = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise InvalidArgumentError(f"{name} is infinite at row {where}; drop or clip it.")
    check_size(
        name, numbers, most=LARGEST_AMOUNT, powers="squared, as errors are, and squared again for the errors of values"
    )
    return numbers


def are_amounts(y: AnyArray) -> bool:
    """Whether labels are amounts rather than classes: fractions, or too many different whole numbers to be classes.

    >>> are_amounts(np.array([0, 1, 1])), are_amounts(np.array([0.5, 2])), are_amounts(np.arange(51))
    (False, True, True)
    >>> are_amounts(np.array([2e20, 3e20]))
    True
    """
    if y.dtype.kind not in "iuf":
        return False
    if y.dtype.kind == "f" and np.abs(y).max(initial=0) >= 2**53:  # where floats are whole numbers, and all even
        return True
    return bool((y % 1 != 0).any()) or len(np.unique(y)) > MANY_NUMBERS


def encode(labels: AnyArray, classes: AnyArray) -> tuple[Ints, AnyArray]:
    """Codes of labels; a label that is not a class has code −1, −2, ... and is listed as unseen."""
    position, unseen = dict(zip(classes.tolist(), range(len(classes)), strict=True)), dict[Any, int]()
    known = list(map(position.get, labels.tolist()))
    if None not in known:
        return np.array(known, dtype=np.int64), np.array([], dtype=labels.dtype)
    codes = np.array(
        [position[v] if v in position else unseen.setdefault(v, -1 - len(unseen)) for v in labels.tolist()],
        dtype=np.int64,
    )
    return codes, np.array(list(unseen), dtype=labels.dtype)
