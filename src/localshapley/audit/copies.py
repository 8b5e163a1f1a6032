"""Rows that are there twice, in the training rows or in the test rows too, and rows that are far from all others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.utils import _safe_indexing

from localshapley.arrays import AnyArray, Ints
from localshapley.audit.near_rows import NOTHING, NearDuplicates, find_near, standardised, takes_long
from localshapley.data.exact_duplicates import (
    equal_rows,
    in_which_columns,
    is_contradicted,
    is_shared,
    say_contradicted,
    say_seen,
)
from localshapley.data.indexes import check_order, index_of
from localshapley.data.row_digests import as_cells
from localshapley.data.rows import are_amounts, known_table
from localshapley.errors import InvalidArgumentError, warn
from localshapley.formatting import counted


@dataclass(frozen=True, repr=False, eq=False)
class Copies:
    """Which rows are equal or nearly equal, which labels contradict each other, and which rows are far from all others.

    Attributes
    ----------
    n_rows, n_tests : int
    group : int array of shape (n_rows,)
        A number for each training row; equal and nearly equal rows share one. Folds that keep copies together are
        ``GroupKFold(5).split(X, y, group)``.
    groups : DataFrame
        One line per row that is in a group with others: `group`, `row` (its name), `part` (``"training"`` or
        ``"test"``), `copy` (``"equal"`` if another row has the same values in all columns, else ``"near"``), `label` if
        labels were given, and `contradicts` (labels of the group differ). Groups that contradict come first, then those
        with both training and test rows, then larger ones.
    outliers : DataFrame
        `row`, `part` and `away`: the distance to the fifth neighbour, as a multiple of the median over all rows.
    coarse : bool
        Whether so many rows are equal because the columns take few values. Such rows are no copies.
    skipped : bool
        Whether nearly equal rows and outliers were not looked for, because it would take long.
    lines : dict of str
        What was found, in sentences: ``"contradictions"``, ``"leakage"`` (test rows that are copies of training rows),
        ``"copies"``, ``"near"``, ``"outliers"``, and ``"skipped"``; only what there is.
    """

    n_rows: int
    n_tests: int
    group: Ints
    groups: pd.DataFrame
    outliers: pd.DataFrame
    coarse: bool
    skipped: bool
    lines: dict[str, str]

    def __repr__(self) -> str:
        tests = f" and {counted(self.n_tests, 'test row')}" if self.n_tests else ""
        lines = [f"  {name:<15} {line}" for name, line in self.lines.items()]
        found = (
            [] if self.lines.keys() - {"skipped"} else ["  no copies" + ("" if self.skipped else " and no outliers")]
        )
        return "\n".join([f"Copies among {counted(self.n_rows, 'row')}{tests}", *found, *lines])


def copies(X: Any, y: Any = None, X_test: Any = None, y_test: Any = None, *, near: bool | None = None) -> Copies:
    """Find rows that are there twice, labels that contradict each other, test rows that were trained on, and outliers.

    Equal rows have the same values in all columns, of whatever kind; missing cells are equal to each other. Where this
    is no more than chance brings, because columns take few values, it is said, and nothing else is made of it. The same
    row with two labels is the surest sign of a wrong label. A test row that is a copy of a training row makes scores
    too good.

    Nearly equal rows differ in amounts (or dates) only, each divided by its standard deviation, and are far nearer to
    each other than chance would bring them: of a hundred tables without copies, about one has a pair that is called
    near. Texts, categories and columns of two values have to be equal. Outliers are rows whose fifth neighbour is more
    than three times as far away as that of 95 % of the rows.

    Parameters
    ----------
    X, X_test : array, DataFrame (pandas or polars), SciPy sparse matrix or list, of shape (n_rows, n_features)
        Rows, and test rows if there are any, with the same columns.
    y, y_test : array, Series or list of shape (n_rows,), optional
        Their labels. Numbers that are amounts do not contradict each other.
    near : bool, optional
        Whether to look for nearly equal rows and outliers; by default if it takes no more than some seconds. Equal rows
        are found in a moment in any case.

    Returns
    -------
    Copies

    Examples
    --------
    >>> import localshapley as ls
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> X[7], y[7] = X[3], 2
    >>> found = ls.audit.copies(X, y, X_test, y_test)
    >>> found.groups
       group row      part   copy label  contradicts
    0      0   3  training  equal     0         True
    1      0   7  training  equal     2         True
    2      1  89  training  equal     2        False
    3      1   1      test  equal     2        False
    >>> print(found.lines["leakage"])
    1 of 45 test rows is a copy of a training row (test row 1 equals row 89): the model has seen it, which flatters \
scores. Leave it out, unless new rows will repeat old ones as often.
    """
    rows = _read(X, y, X_test, y_test)
    among = equal_rows(rows.train, rows.tests)
    equal, coarse = among.group, among.coarse
    found, skipped = _near(rows.table, equal, near)
    joined = _joined(equal, found.pairs)
    lines: dict[str, str | None] = {
        **({"copies": _say_coarse(equal)} if coarse else _say_equal(rows, equal)),
        "near": _say_near(rows, equal, joined),
        "outliers": _say_outliers(rows, found),
        "skipped": _say_skipped(rows) if skipped else "",
    }
    return Copies(
        n_rows=rows.n_rows,
        n_tests=len(rows.names) - rows.n_rows,
        group=pd.factorize(joined[: rows.n_rows])[0].astype(np.int64),
        groups=_groups(rows, equal, joined),
        outliers=rows.named(found.outliers).assign(away=found.away),
        coarse=coarse,
        skipped=skipped,
        lines={name: line for name, line in lines.items() if line},
    )


@dataclass(frozen=True)
class _Rows:
    """Training rows and test rows with the same columns; their labels (None for a row without) and names, in a row."""

    train: Any
    tests: Any
    labels: AnyArray | None
    names: AnyArray

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return int(self.train.shape[0])

    @cached_property
    def table(self) -> Any:
        """All rows, for a search."""
        return self.train if self.tests is None else _stacked(self.train, self.tests)

    def name(self, row: int) -> str:
        return f"{'row' if row < self.n_rows else 'test row'} {self.names[row]}"

    def named(self, rows: Ints) -> pd.DataFrame:
        return pd.DataFrame({"row": self.names[rows], "part": np.where(rows < self.n_rows, "training", "test")})


def _read(X: Any, y: Any, X_test: Any, y_test: Any) -> _Rows:
    """Check rows and labels."""
    given = [("X", X, "y", y)] + ([] if X_test is None else [("X_test", X_test, "y_test", y_test)])
    tables = [_table(name, rows) for name, rows, _, _ in given]
    labels, names = list[Any](), list[Any]()
    for table, (name, rows, label_name, column) in zip(tables, given, strict=True):
        index, n = index_of(known_table(rows), column), table.shape[0]
        names += list(range(n)) if index is None else index.tolist()
        labels += [None] * n if column is None else _entries(label_name, column, name, rows, n)
    tests = None if X_test is None else _with_columns_of(*tables)
    return _Rows(tables[0], tests, None if y is None else _objects(labels), _objects(names))


def _objects(entries: list[Any]) -> AnyArray:
    """An array of objects, one entry each, even if they are tuples."""
    return pd.Series(entries, dtype=object).to_numpy()


def _table(name: str, X: Any) -> Any:
    if X is None:
        raise InvalidArgumentError(f"{name} is missing; give one row per case.")
    X = as_cells(known_table(X))
    if not X.shape[0] or not X.shape[1]:
        raise InvalidArgumentError(f"{name} is empty: it has {X.shape[0]} rows and {X.shape[1]} columns.")
    return X


def _entries(name: str, y: Any, rows_name: str, X: Any, n: int) -> list[Any]:
    for note in check_order(name, y, rows_name, X):
        warn(note)
    labels: list[Any] = np.asarray(y).ravel().tolist()
    if len(labels) != n:
        raise InvalidArgumentError(
            f"{name} has {len(labels)} entries, {rows_name} has {n} rows; they must be equally long."
        )
    return labels


def _with_columns_of(rows: Any, tests: Any) -> Any:
    """Test rows with the columns of the training rows, in their order."""
    if rows.shape[1] != tests.shape[1]:
        raise InvalidArgumentError(
            f"X_test has {tests.shape[1]} columns, X has {rows.shape[1]}; both need the same columns."
        )
    if not (isinstance(rows, pd.DataFrame) and isinstance(tests, pd.DataFrame)):
        return tests
    missing = rows.columns.difference(tests.columns, sort=False)
    if len(missing):
        raise InvalidArgumentError(f"X_test lacks the column {missing[0]!r} of X; both need the same columns.")
    return tests[rows.columns] if rows.columns.is_unique else tests


def _stacked(rows: Any, tests: Any) -> Any:
    """Test rows below the training rows."""
    if sparse.issparse(rows) or sparse.issparse(tests):
        return sparse.vstack([sparse.csr_matrix(rows), sparse.csr_matrix(tests)], format="csr")
    if isinstance(rows, pd.DataFrame) and isinstance(tests, pd.DataFrame):
        return pd.concat([rows, tests], ignore_index=True)
    return np.concatenate([np.asarray(rows), np.asarray(tests)])


def _near(table: Any, equal: Ints, near: bool | None) -> tuple[NearDuplicates, bool]:
    """Nearly equal rows and outliers (of equal rows the first), and whether that was left out because it takes long."""
    skipped = near is None and takes_long(table)
    if skipped or near is False:
        return NOTHING, skipped
    first = np.unique(equal, return_index=True)[1]
    found = find_near(*standardised(_safe_indexing(table, first)))
    return replace(found, pairs=first[found.pairs], outliers=first[found.outliers]), False


def _joined(equal: Ints, pairs: Ints) -> Ints:
    """Groups of equal rows, joined where rows of them are nearly equal."""
    n = int(equal.max()) + 1
    edges = sparse.coo_array((np.ones(len(pairs)), equal[pairs].T.reshape(2, -1)), shape=(n, n))
    joined: Ints = connected_components(edges, directed=False)[1][equal].astype(np.int64)
    return joined


def _groups(rows: _Rows, equal: Ints, joined: Ints) -> pd.DataFrame:
    """The rows that share a group with others, what is told first at the top."""
    is_test, contradicts = np.arange(len(joined)) >= rows.n_rows, _contradicts(rows, joined)
    mixed = (np.bincount(joined, is_test) > 0)[joined] & (np.bincount(joined, ~is_test) > 0)[joined]
    shared = np.flatnonzero(is_shared(joined))
    keys = (shared, joined[shared], -np.bincount(joined)[joined[shared]], ~mixed[shared], ~contradicts[shared])
    shared = shared[np.lexsort(keys)]
    table = rows.named(shared)
    table.insert(0, "group", pd.factorize(joined[shared])[0])
    table["copy"] = np.where(is_shared(equal)[shared], "equal", "near")
    if rows.labels is not None:
        table["label"] = rows.labels[shared]
    return table.assign(contradicts=contradicts[shared])


def _contradicts(rows: _Rows, group: Ints) -> AnyArray:
    """Which rows are in a group with different labels; amounts do not contradict each other."""
    if rows.labels is None or are_amounts(np.array(rows.labels[: rows.n_rows].tolist())):
        return np.zeros(len(group), dtype=bool)
    return is_contradicted(group, rows.labels)


def _say_equal(rows: _Rows, equal: Ints) -> dict[str, str | None]:
    """What equal rows amount to: contradictions, leakage, repetitions."""
    against = None
    if rows.labels is not None and _contradicts(rows, equal).any():
        against = say_contradicted(equal, rows.labels, rows.name)
    return {
        "contradictions": against,
        "leakage": say_seen(equal, rows.n_rows, rows.name),
        "copies": _say_repeated(rows, equal[: rows.n_rows]),
    }


def _say_repeated(rows: _Rows, equal: Ints) -> str:
    repeated = np.flatnonzero(pd.Series(equal).duplicated())
    if not len(repeated):
        return ""
    original = int(np.argmax(equal == equal[repeated[0]]))
    return (
        f"{len(repeated):,} of {len(equal):,} rows {'repeats' if len(repeated) == 1 else 'repeat'} an earlier row "
        f"{in_which_columns()} ({rows.name(repeated[0])} equals {rows.name(original)}{', ...' * (len(repeated) > 1)})."
    )


def _say_coarse(equal: Ints) -> str:
    return (
        f"{int(is_shared(equal).sum()):,} of {len(equal):,} rows equal another {in_which_columns()}, but the columns "
        "take so few values that chance brings about as many: these are no copies."
    )


def _say_near(rows: _Rows, equal: Ints, joined: Ints) -> str:
    """What nearly equal rows amount to."""
    kinds = pd.DataFrame({"joined": joined, "equal": equal}).drop_duplicates()
    near = np.flatnonzero((np.bincount(kinds["joined"]) > 1)[joined])
    if not len(near):
        return ""
    groups, is_test = joined[near], near >= rows.n_rows
    one = near[groups == groups[0]]
    other = one[equal[one] != equal[one[0]]][0]
    n_groups, n_leaks = len(np.unique(groups)), int(np.isin(groups[is_test], groups[~is_test]).sum())
    n_against = len(np.unique(groups[_contradicts(rows, joined)[near]]))
    more = [f"their labels differ in {n_against:,} of them"] if n_against else []
    more += [f"{counted(n_leaks, 'test row')} beside a training row"] if n_leaks else []
    return (
        f"{len(near):,} rows in {counted(n_groups, 'group')} are nearly equal ({rows.name(one[0])} and "
        f"{rows.name(other)}{', ...' * (len(near) > 2)}), perhaps the same case twice"
        + "".join(f"; {m}" for m in more)
        + "."
    )


def _say_outliers(rows: _Rows, found: NearDuplicates) -> str:
    if not len(found.outliers):
        return ""
    first, n = f"{rows.name(found.outliers[0])}: {found.away[0]:.0f} times", len(found.outliers)
    return (
        f"{counted(n, 'row')} {'is' if n == 1 else 'are'} far from all others ({first} as far from its neighbours as "
        f"usual{', ...' * (n > 1)}); check the numbers and their units."
    )


def _say_skipped(rows: _Rows) -> str:
    n, width = rows.table.shape
    return (
        f"nearly equal rows and outliers were not looked for: {n:,} rows with {width:,} columns take long "
        "(audit.copies with near=True looks for them)."
    )
