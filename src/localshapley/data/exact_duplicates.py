"""Rows that are equal in every column: copies, test rows that the model has seen, labels that contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import _safe_indexing

from localshapley.arrays import AnyArray, Ints, Masks
from localshapley.data.folds import Fold
from localshapley.data.row_digests import as_cells, digest_cells, words_of
from localshapley.notes import Note

PAIRS_DRAWN = 2000
"""Pairs of rows by which it is estimated how often rows are equal by chance."""
CHANCE = 0.5
"""If chance explains this share of the equal pairs, equal rows are no copies."""


@dataclass(frozen=True)
class EqualRows:
    """Which rows are equal in every column.

    Attributes
    ----------
    group : int array
        A number for each training row, and after them for each test row; equal rows share one.
    n_rows : int
        Number of training rows.
    coarse : bool
        Whether rows are equal because columns take few values: such rows are no copies.
    """

    group: Ints
    n_rows: int
    coarse: bool

    @classmethod
    def of(cls, X: Any, *words: Masks) -> EqualRows:
        """Find them by the digests of training rows and of test rows; `X` tells how many are equal by chance."""
        if not any_equal(*words):
            return cls(np.arange(sum(map(len, words))), len(words[0]), coarse=False)
        group = groups_of(*words)
        return cls(group, len(words[0]), are_coarse(group, X))


@dataclass(frozen=True)
class OriginalTables:
    """Rows as they were before they were prepared for a model: these are compared, for preparation leaves columns out.

    Attributes
    ----------
    rows, test_rows : DataFrames
        `test_rows` is None where there are none.
    columns : str
        Which columns these are, in words that follow "in every column".
    """

    rows: Any
    test_rows: Any
    columns: str

    @cached_property
    def equal(self) -> EqualRows:
        """Those of them that are equal, found once for notes and lists."""
        tests = () if self.test_rows is None else (digest_cells(self.test_rows),)
        return EqualRows.of(self.rows, digest_cells(self.rows), *tests)


_AS_GIVEN: ContextVar[OriginalTables | None] = ContextVar("rows as they were given", default=None)


@contextmanager
def comparing(given: OriginalTables) -> Iterator[None]:
    """Compare these rows in place of those that models get."""
    token = _AS_GIVEN.set(given)
    try:
        yield
    finally:
        _AS_GIVEN.reset(token)


def equal_rows(X: Any, X_test: Any = None, *, words: Masks | None = None) -> EqualRows:
    """Find equal rows: among those that models get, of which `words` may be known, or what these were prepared from."""
    given = _AS_GIVEN.get()
    if given is not None:
        return given.equal
    tests = () if X_test is None else (digest_cells(X_test),)
    return EqualRows.of(X, digest_cells(X) if words is None else words, *tests)


def in_which_columns() -> str:
    """Where rows are equal, in words."""
    given = _AS_GIVEN.get()
    return "in every column" + ("" if given is None else given.columns)


def any_equal(*digests: Masks) -> bool:
    """Whether any two rows of all tables are equal; faster than `groups_of`, for most tables have no copies."""
    words = np.sort(np.concatenate([words[:, 0] for words in digests]))
    return bool((words[1:] == words[:-1]).any())


def groups_of(*digests: Masks) -> Ints:
    """Number the groups of equal rows over all tables, in their order; 64 bits of a digest tell rows apart."""
    return pd.factorize(np.concatenate([words[:, 0] for words in digests]))[0].astype(np.int64)


def is_shared(group: Ints) -> AnyArray:
    """Which rows have a group with others."""
    shared: AnyArray = np.bincount(group)[group] > 1
    return shared


def is_contradicted(group: Ints, labels: AnyArray) -> AnyArray:
    """Which rows are in a group with different labels; missing ones do not count."""
    pairs = pd.DataFrame({"group": group, "label": labels}).dropna().drop_duplicates()
    contradicted: AnyArray = np.bincount(pairs["group"], minlength=int(group.max()) + 1)[group] > 1
    return contradicted


def seen_rows(group: Ints, n_rows: int) -> Ints:
    """For each test row, which come after `n_rows` training rows, the first training row that equals it, else −1."""
    first = np.full(group.max() + 1, -1)
    first[group[:n_rows][::-1]] = np.arange(n_rows)[::-1]
    return first[group[n_rows:]]


def is_seen_in_folds(group: Ints, folds: list[Fold]) -> AnyArray:
    """Which rows are tested by models that were trained on an equal row."""
    seen, there = np.zeros(len(group), dtype=bool), np.empty(group.max() + 1, dtype=bool)
    for train, test in folds:
        there[:] = False
        there[group[train]] = True
        seen[test] |= there[group[test]]
    return seen


def are_coarse(group: Ints, X: Any) -> bool:
    """Whether rows are equal because the columns of `X` take few values, and not because rows were copied."""
    sizes = np.bincount(group)
    return bool(pairs_by_chance(X, len(group)) >= CHANCE * (sizes * (sizes - 1) / 2).sum())


def pairs_by_chance(X: Any, n: int) -> float:
    """How many pairs of `n` rows would be equal if the columns were independent of each other."""
    X = as_cells(X)
    n_rows = X.shape[0]
    rng = np.random.default_rng(0)
    one = rng.integers(n_rows, size=PAIRS_DRAWN)
    two = (one + rng.integers(1, max(n_rows, 2), size=PAIRS_DRAWN)) % n_rows
    left, right = (_safe_indexing(X, rows) for rows in (one, two))
    if sparse.issparse(X):
        equal = 1 - np.asarray((left != right).mean(axis=0)).ravel()
    else:
        equal = (words_of(left) == words_of(right)).mean(axis=1)
    return float(n * (n - 1) / 2 * equal.prod())


def say_seen(group: Ints, n_rows: int, name: Callable[[int], str]) -> Note | None:
    """Say which test rows are copies of training rows; None if none is."""
    seen = seen_rows(group, n_rows)
    leaks = np.flatnonzero(seen >= 0)
    if not len(leaks):
        return None
    which, them = ("is a copy of a training row", "it") if len(leaks) == 1 else ("are copies of training rows", "them")
    text = (
        f"{len(leaks):,} of {len(seen):,} test rows {which} ({name(n_rows + leaks[0])} equals {name(seen[leaks[0]])}"
        f"{_where_prepared()}{', ...' * (len(leaks) > 1)}): the model has seen {them}, which flatters scores. Leave "
        f"{them} out, unless new rows will repeat old ones as often."
    )
    return Note("test-rows-seen", text, n_seen=len(leaks), n_tests=len(seen))


def say_seen_in_folds(group: Ints, seen: AnyArray, name: Callable[[int], str], *, oob: bool) -> Note | None:
    """Say which rows are tested by models that were trained on a copy; None if none is."""
    rows = np.flatnonzero(seen)
    if not len(rows):
        return None
    first = rows[0]
    other = next(int(z) for z in np.flatnonzero(group == group[first]) if z != first)
    where = "a copy, which trees that judge it may have seen" if oob else "a copy in another fold"
    remedy = (
        "keep one row of each group of copies"
        if oob
        else "keep one row of each group of copies, or copies in one fold (in Python, "
        "cv=GroupKFold(5).split(X, y, audit.copies(X).group))"
    )
    text = (
        f"{len(rows):,} of {len(group):,} rows {'has' if len(rows) == 1 else 'have'} {where} ({name(first)} equals "
        f"{name(other)}{_where_prepared()}{', ...' * (len(rows) > 2)}), which flatters scores; {remedy}."
    )
    return Note("copies-in-other-folds", text, n_seen=len(rows), n_rows=len(group), oob=oob)


def say_contradicted(group: Ints, labels: AnyArray, name: Callable[[int], str]) -> Note | None:
    """Say which equal rows have different labels; None if none has."""
    rows = np.flatnonzero(is_contradicted(group, labels) & ~pd.isna(labels))
    if not len(rows):
        return None
    first, same = rows[0], rows[group[rows] == group[rows[0]]]
    other = same[labels[same] != labels[first]][0]
    one, two = labels[[first, other]].tolist()
    n_groups = len(np.unique(group[rows]))
    text = (
        f"{len(rows):,} rows in {n_groups:,} group{'s' * (n_groups > 1)} are equal {in_which_columns()} but differ in "
        f"their labels ({name(first)} has {one!r}, {name(other)} has {two!r}{', ...' * (len(rows) > 2)}): "
        "labels are wrong there, or the columns cannot tell these rows apart. Look at them first."
    )
    return Note("labels-contradict", text, n_rows=len(rows), n_groups=n_groups)


def _where_prepared() -> str:
    """In which columns rows are equal, where models get others."""
    return "" if _AS_GIVEN.get() is None else f" {in_which_columns()}"
