"""Whether a table given later holds the rows that were valued, in which order, and with which labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing

from localshapley.arrays import AnyArray, Ints, Masks
from localshapley.data.indexes import check_order, is_default
from localshapley.data.row_digests import digest_labels
from localshapley.data.rows import known_table
from localshapley.data.side_columns import entries_of
from localshapley.errors import InvalidArgumentError, warn
from localshapley.formatting import counted
from localshapley.valuation.row_names import by_index

if TYPE_CHECKING:
    from localshapley.valuation import Valuation


def rows_and_labels(valuation: Valuation, X: Any, y: Any) -> tuple[Any, ...]:
    """The user's rows and labels in the order of the valuation: by their indexes, else by their contents.

    Where the valuation has no names for the rows, the indexes of both must not contradict each other.
    """
    X, y = by_index("X", known_table(X), valuation), by_index("y", y, valuation)
    for note in check_order("y", y, "X", X):
        warn(note)
    return in_order(valuation, X, None if y is None else entries_of("y", y, len(valuation.values)))


def in_order(
    valuation: Valuation, X: Any = None, y: Any = None, *beside: Any, name: str = "X", shown: bool = False
) -> tuple[Any, ...]:
    """Rows and labels in the order of the valuation; refuses those of another table, and tells changed labels.

    Rows are joined by their digests. A table none of whose rows is known may hold the same rows in other features; then
    the labels decide.

    Parameters
    ----------
    valuation : Valuation
    X : table or None
        In the order that its index says, as `columns.by_index` gives it.
    y : array or Series of shape (n_rows,), or None
        Labels, as `columns.column` gives them.
    *beside : Series or None
        Other columns that belong to the rows; those whose index names the rows are in order already.
    name : str
        What a message calls the table.
    shown : bool, default=False
        Whether rows and labels are only shown, so that they may be rounded and have other names.
    """
    digests, is_known = valuation.digests, False
    if digests is None or digests.is_joined:
        return X, y, *beside
    if X is not None and _n_rows(X) == len(digests.rows):
        place = _places(valuation, X, y, name, shown)
        is_known = place is not None
        if place is not None and (np.diff(place) < 0).any():
            X, y = _safe_indexing(X, place), None if y is None else _nearer(digests.labels, y, _safe_indexing(y, place))
            beside = tuple(c.iloc[place] if c is not None and is_default(c.index) else c for c in beside)
            warn(f"{name} holds the rows of the valuation in another order; they were joined by their contents.")
    if y is not None and not (shown and _n_equal(digests.labels, y) == 0):
        _check_labels(valuation, y, is_known)
    return X, y, *beside


def _places(valuation: Valuation, X: Any, y: Any, name: str, shown: bool) -> Ints | None:
    """Where each row of the valuation is in a table; None where the table has other features."""
    assert valuation.digests is not None
    was, now = valuation.digests.rows, valuation.digests.of_table(X)
    same = (now == was).all(axis=1)
    place = find_rows(valuation, now, y)
    lost = int((place < 0).sum())
    if not lost:
        return place
    if (find(was[~same], now[~same]) >= 0).any() or (same.any() and not shown):
        raise InvalidArgumentError(
            f"{name} does not hold the rows that were valued: {lost} of {len(was)} are not in it; give the table that "
            "was valued, or value this one."
        )
    return None


def _nearer(was: Masks, one: Any, two: Any) -> Any:
    """Labels in the order that has more of those that were valued."""
    return two if _n_equal(was, two) > _n_equal(was, one) else one


def find_rows(valuation: Valuation, rows: Masks, y: AnyArray | None) -> Ints:
    """Where each row of the valuation is in a table with the digests `rows`, −1 where it is not.

    Of rows that are equal those with the same label are taken first, and then in their order.
    """
    digests = valuation.digests
    assert digests is not None
    if rows.shape == digests.rows.shape and (rows == digests.rows).all():
        return np.arange(len(rows))
    place = np.full(len(digests.rows), -1)
    if y is not None:
        place = find(np.column_stack([digests.rows, digests.labels]), np.column_stack([rows, digest_labels(y)]))
    left, free = np.flatnonzero(place < 0), np.setdiff1d(np.arange(len(rows)), place)
    found = find(digests.rows[left], rows[free])
    place[left[found >= 0]] = free[found[found >= 0]]
    return place


def find(wanted: Masks, there: Masks) -> Ints:
    """Where each wanted digest is, −1 where it is not; of equal ones the first is the first, and so on.

    >>> find(np.array([[7], [5], [7]], dtype=np.uint64), np.array([[7], [8], [7], [5]], dtype=np.uint64)).tolist()
    [0, 3, 2]
    """
    both = pd.DataFrame(np.concatenate([wanted, there]))
    code = both.groupby(list(both.columns), sort=False).ngroup()
    is_wanted = np.arange(len(both)) < len(wanted)
    turn = code.groupby([code, is_wanted]).cumcount().to_numpy()
    keys = code.to_numpy().astype(np.int64) * len(both) + turn
    table = pd.Series(np.arange(len(there)), index=keys[len(wanted) :])
    return np.array(table.reindex(keys[: len(wanted)], fill_value=-1))


def n_changed_labels(valuation: Valuation, y: AnyArray) -> int:
    """How many labels are others than those that were valued; other names for the same classes are no change."""
    assert valuation.digests is not None
    was, now = valuation.digests.labels, digest_labels(y)
    changed = int((was != now).sum())
    pairs = pd.DataFrame({"was": was, "now": now}).drop_duplicates()
    are_classes = 2 * len(pairs) <= len(was)
    renamed = are_classes and pairs["was"].is_unique and pairs["now"].is_unique
    return 0 if renamed else changed


def about_changed(n: int, remedy: str = "run `value` again, or `update`") -> str:
    """What is said about changed labels."""
    return f"{counted(n, 'label')} changed since the rows were valued; {remedy}."


def reordered(valuation: Valuation, order: Ints, ids: pd.Index) -> Valuation:
    """The valuation with its rows in the order of the user's table, under the names that they have there."""
    v, by_test = valuation, valuation.per_test

    def pick(rows: AnyArray) -> AnyArray:
        return rows[order]

    return replace(
        v,
        estimate=v.estimate.of_rows(pick, None if by_test is None else by_test[:, order]),
        players=replace(
            v.players,
            ids=ids,
            digests=None if v.digests is None else v.digests.joined(order),
            oob_scores=None if v.oob_scores is None else v.oob_scores[order],
        ),
        counts=replace(v.counts, n_tests=v.n_tests[order]),
        history=None if v.history is None else v.history.of_rows(pick),
        games=None,
        origin=None,
    )


def _check_labels(valuation: Valuation, y: AnyArray, is_known: bool) -> None:
    """Tell changed labels; where the rows are not known, refuse as many as rows in another order would have."""
    changed = n_changed_labels(valuation, y)
    if not changed:
        return
    assert valuation.digests is not None
    by_chance = _changed_by_chance(valuation.digests.labels, digest_labels(y))
    if not is_known and changed > by_chance / 2:
        raise InvalidArgumentError(
            f"y does not fit the valuation: {changed} of {len(y)} labels are others than those that were valued, as if "
            "the rows were others or in another order; give y in the order of the valuation, or a Series with its "
            "index."
        )
    warn(about_changed(changed))


def _changed_by_chance(was: Masks, now: Masks) -> float:
    """Mean number of differences if the labels were in a random order."""
    counts = pd.DataFrame({"was": pd.Series(was).value_counts(), "now": pd.Series(now).value_counts()}).fillna(0)
    return float(len(was) - (counts["was"] * counts["now"]).sum() / len(was))


def _n_equal(was: Masks, y: Any) -> int:
    return int((was == digest_labels(y)).sum())


def _n_rows(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)
