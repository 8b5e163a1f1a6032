"""One table and no test set: every row is a test row of the models that are trained without its fold."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import AnyArray, Ints
from localshapley.errors import InvalidArgumentError
from localshapley.io.spelling import look_like_numbers

Fold: TypeAlias = tuple[Ints, Ints]
"""Training rows and test rows, ascending."""


def make_folds(cv: Any, y: AnyArray, *, classifier: bool, seed: int) -> list[Fold]:
    """Split rows into folds: `cv` is their number, a splitter of scikit-learn, or pairs (training rows, test rows).

    With a number, rows are shuffled, and classes are kept in proportion.
    """
    n_rows = len(y)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv <= n_rows:
            raise InvalidArgumentError(f"cv must be a number of folds from 2 to {n_rows} (one per row); got {cv!r}.")
        if classifier:
            rare = rare_classes(y)
            if len(rare):
                amounts = (
                    " If these are amounts and no classes, use a regressor (on the command line, --task regression)."
                )
                raise InvalidArgumentError(
                    f"cv needs two rows of every class, one to learn from and one to test on; y has {named(rare)} "
                    "once. Drop such rows (value and plan do with rare='drop', the command line with "
                    f"--drop-rare-classes), or join rare classes.{amounts if look_like_numbers(np.unique(y)) else ''}"
                )
        cv = _dealt(int(cv), y if classifier else np.zeros(n_rows), seed)
    given = cv
    if hasattr(cv, "split") and not isinstance(cv, str):
        cv = cv.split(np.zeros((n_rows, 1)), y)
    try:
        folds = [(np.unique(train), np.unique(test)) for train, test in cv]
    except (TypeError, ValueError) as error:
        name = type(given).__name__
        hint = f"; give its splits: cv={name}(...).split(X, y, groups)" if "groups" in str(error) else ""
        raise InvalidArgumentError(
            "cv must be a number of folds, a splitter of scikit-learn, pairs of row numbers, or 'oob' with "
            f"models.Fixed; got {given!r} ({error}){hint}."
        ) from None
    for train, test in folds:
        for rows in (train, test):
            if not len(rows) or rows.dtype.kind not in "iu" or rows[0] < 0 or rows[-1] >= n_rows:
                raise InvalidArgumentError(f"cv must give row numbers from 0 to {n_rows - 1}, some in each part.")
        if np.intersect1d(train, test).size:
            raise InvalidArgumentError(
                "cv has a fold with the same row in training and test; a row cannot test itself."
            )
    if not folds:
        raise InvalidArgumentError("cv has no folds.")
    return [(train.astype(np.int64), test.astype(np.int64)) for train, test in folds]


def rare_classes(y: AnyArray) -> list[Any]:
    """The classes that have one row."""
    labels, counts = np.unique(y, return_counts=True)
    return labels[counts < 2].tolist()  # type: ignore[no-any-return]


def classes_to_drop(y: AnyArray) -> list[Any]:
    """Return the classes that have one row; refused if there are no others."""
    rare = rare_classes(y)
    if len(rare) == len(y):
        raise InvalidArgumentError(
            "every class has one row, so that no row would be left without rare classes; join classes, or use a "
            "regressor for amounts (on the command line, --task regression)."
        )
    return rare


def named(classes: list[Any], most: int = 10) -> str:
    """Classes in words, the first of very many.

    >>> named(["a", "b", "c"]), named(list(range(12)))
    ("'a', 'b' and 'c'", '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more')
    """
    words = list(map(repr, classes[:most]))
    words += [f"{len(classes) - most} more"] if len(classes) > most else []
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _dealt(n_folds: int, classes: AnyArray, seed: int) -> list[Fold]:
    """Deal shuffled rows to folds, class by class, so that even rare classes are in proportion."""
    order = np.random.default_rng(seed).permutation(len(classes))
    order = order[np.argsort(classes[order], kind="stable")]
    fold = np.empty(len(classes), dtype=np.int64)
    fold[order] = np.arange(len(classes)) % n_folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


def order_of_tests(folds: list[Fold]) -> Ints:
    """Positions that sort the concatenated test rows of all folds; of equal rows, earlier folds come first."""
    return np.argsort(np.concatenate([test for _, test in folds]), kind="stable")


def tested_rows(folds: list[Fold]) -> Ints:
    """The row that each test row is; some may be tested several times."""
    return np.sort(np.concatenate([test for _, test in folds]))


def training_rows(folds: list[Fold]) -> list[Ints]:
    """For each test row the rows that models are trained on."""
    by_fold = [train for train, test in folds for _ in test]
    return [by_fold[t] for t in order_of_tests(folds)]


def fold_of_rows(folds: list[Fold], n_rows: int) -> Ints | None:
    """The fold that each row tests; None unless each tests one, of models that all the others train."""
    out = np.full(n_rows, -1)
    for number, (train, test) in enumerate(folds):
        if len(train) + len(test) != n_rows or (out[test] >= 0).any():
            return None
        out[test] = number
    return out if (out >= 0).all() else None


def continued(known: Ints, labels: AnyArray, n_folds: int) -> list[Fold]:
    """Folds of rows most of which are in one already (-1 for the others): these go where fewest of their kind are.

    >>> [test.tolist() for _, test in continued(np.array([0, 1, 1, -1]), np.zeros(4), 2)]
    [[0, 3], [1, 2]]
    """
    fold = known.copy()
    for row in np.flatnonzero(fold < 0):
        alike = np.bincount(fold[(labels == labels[row]) & (fold >= 0)], minlength=n_folds)
        together = np.bincount(fold[fold >= 0], minlength=n_folds)
        fold[row] = np.lexsort((together, alike))[0]
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]
