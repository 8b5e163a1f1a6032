"""Choosing the best rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.data.side_columns import count_of
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.valuation import Valuation
from localshapley.valuation.intervals import check_errors
from localshapley.valuation.row_names import by_value, check_valuation, column
from localshapley.valuation.table_matching import in_order


def select(
    valuation: Valuation,
    n: float,
    *,
    y: Any = None,
    balance: str | Mapping[Any, float] | None = None,
    errors: str = "all",
) -> pd.DataFrame:
    """Choose the best rows, with the classes balanced if asked for.

    The best are those that are most probably among the `n` of highest value, with all errors that are known: of two
    rows the one that a single test row speaks for comes behind one that many test rows agree on. The order of
    rows that tie does not depend on where they are in the table.

    Parameters
    ----------
    valuation : Valuation
    n : int or float
        How many rows, or which share of them, such as 0.5: 1 is one row, and 1.0 are all rows.
    y : array, Series or list of shape (n_rows,), optional
        Labels; needed for `balance`, and shown if given. A Series with the index of the valuation goes by it.
    balance : {"classes", "equal"} or dict, optional
        Share of each label among the chosen rows: as in `y`, all the same, or a dict from label to share. By default
        the best rows are taken whatever their label.
    errors : {"all", "draws"}, default="all"
        ``"draws"`` leaves out what other test rows or seeds would change, and goes by the values as they are.

    Returns
    -------
    DataFrame
        The chosen rows, best first, under the index of the valuation: `value`, `stderr`, `p_best`, which is the
        probability to be among the true `n` (where test rows are told apart), and with `y`, `label`.

    Examples
    --------
    >>> import localshapley as ls
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> v = ls.value(X, y, X_test, y_test, model="knn")
    >>> ls.tasks.select(v, 30, y=y, balance="equal")["label"].value_counts().tolist()
    [10, 10, 10]
    """
    check_valuation(valuation)
    count = count_of(n, len(valuation.values))
    check_errors(errors)
    table = valuation.to_frame()[["value", "stderr"]]
    best_first = by_value(valuation, best_first=True)
    if errors == "all" and valuation.spread_tests is not None:
        table["p_best"] = valuation.among_best(count).probability
        best_first = best_first[np.argsort(-table["p_best"].to_numpy()[best_first], kind="stable")]
    if y is None:
        if balance is not None:
            raise InvalidArgumentError("y is missing; balance needs the label of each row.")
        return table.iloc[best_first[:count]]
    _, labels = in_order(valuation, y=column("y", y, valuation))
    table["label"] = labels
    if balance is None:
        return table.iloc[best_first[:count]]
    classes, codes = np.unique(labels, return_inverse=True)
    quota = _quotas(_shares(balance, classes, np.bincount(codes)), count)
    for label, wanted, there in zip(classes.tolist(), quota, np.bincount(codes), strict=True):
        if wanted > there:
            raise InvalidArgumentError(
                f"balance asks for {wanted} rows of label {label!r}, but y has {there}; choose a smaller n than "
                f"{count}, or a smaller share of this label."
            )
    return table.iloc[best_first[_place_in_class(codes[best_first], len(classes)) < quota[codes[best_first]]]]


def _shares(balance: str | Mapping[Any, float], classes: AnyArray, counts: Ints) -> Floats:
    """Share of each class among the chosen rows; they sum to 1."""
    if isinstance(balance, str):
        if balance not in ("classes", "equal"):
            raise unknown_name("balance", balance, ("classes", "equal"))
        weights = counts if balance == "classes" else np.ones(len(classes))
        return np.asarray(weights / weights.sum(), dtype=np.float64)
    if not isinstance(balance, Mapping):
        raise InvalidArgumentError(
            f"balance must be 'classes', 'equal' or a dict from label to share; got {balance!r}."
        )
    unknown = [label for label in balance if label not in classes.tolist()]
    if unknown:
        raise InvalidArgumentError(f"balance names the label {unknown[0]!r}, which y does not have.")
    shares = np.array([balance.get(label, 0) for label in classes.tolist()], dtype=np.float64)
    if not (shares >= 0).all() or not np.isclose(shares.sum(), 1):
        raise InvalidArgumentError(
            f"balance must give shares of at least 0 that add up to 1; got {dict(balance)}, which add up to "
            f"{shares.sum():g}."
        )
    return shares


def _quotas(shares: Floats, count: int) -> Ints:
    """Whole numbers in proportion to `shares` that add up to `count`: what is left goes to the largest remainders."""
    exact = shares * count
    quota = np.floor(exact + 1e-9).astype(np.int64)
    quota[np.argsort(quota - exact, kind="stable")[: count - quota.sum()]] += 1
    return quota


def _place_in_class(codes: Ints, n_classes: int) -> Ints:
    """How many entries of the same code come before each entry."""
    place = np.empty(len(codes), dtype=np.int64)
    for c in range(n_classes):
        of_class = codes == c
        place[of_class] = np.arange(of_class.sum())
    return place
