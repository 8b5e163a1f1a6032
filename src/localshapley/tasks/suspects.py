"""Rows whose labels are likely to be wrong."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.errors import warn
from localshapley.inputs.numbers import check_whole
from localshapley.tasks.verdict import is_regression, verdict
from localshapley.valuation import Valuation
from localshapley.valuation.columns import count_of, ids_of, table
from localshapley.valuation.matching import rows_and_labels
from localshapley.valuation.plots import INTERVAL


def suspects(
    valuation: Valuation, y: Any, *, X: Any = None, n: float | None = None, n_neighbours: int = 10
) -> pd.DataFrame:
    """Rank the rows whose labels are likely to be wrong, with the neighbours that contradict each.

    With `X`, rows are ranked by the sum of two numbers, each divided by its standard deviation over the rows: the value
    of the row, and the share of its nearest neighbours that have its label. The first says that the row does harm, the
    second that it disagrees with its neighbours; together they find more than either alone, whatever the model.
    Without `X`, and for a regressor, rows are ranked by their value.

    A warning is given where the list should not be trusted: the model is hardly better than a constant guess, or very
    many rows are suspected. `verdict` says the same in a result, with the suspects by class.

    Parameters
    ----------
    valuation : Valuation
    y : array, Series or list of shape (n_rows,)
        Labels, or numbers, that the rows were valued with. Where `y` and `X` have the index of the valuation, in
        whatever order, they go by it.
    X : array, DataFrame or sparse matrix of numbers, optional
        The rows; neighbours are the nearest, by Euclidean distance of standardised features. Without it neighbours
        are the rows that are most often in the same supports, which needs a valuation with ``per_test=True``;
        without either there are none.
    n : int or float, optional
        How many rows, or which share of them; by default those whose value is below zero beyond sampling error
        (``value + 1.96 * stderr < 0``) and, with `X`, most of whose neighbours have another label.
    n_neighbours : int, default=10
        Number of neighbours; all other rows where there are fewer.

    Returns
    -------
    DataFrame
        Most suspicious first, under the index of the valuation: `suspicion` (what they are ranked by), `value`,
        `stderr`, `label`, `suggested` (the most frequent label of the neighbours, or their mean), `agreement` (share of
        the neighbours with the row's own label; NaN for a regressor) and `neighbours` (those with another label,
        nearest first; for a regressor all).

    Examples
    --------
    >>> import localshapley as ls
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> y[7] = (y[7] + 1) % 3
    >>> v = ls.value(X, y, X_test, y_test, model="knn")
    >>> ls.tasks.suspects(v, y, X=X, n=1).index.tolist()
    [7]
    """
    X, labels = rows_and_labels(valuation, X, y)
    found = neighbours_of(valuation, X, n_neighbours)
    regression = is_regression(valuation, labels)
    agreement = np.full(len(labels), np.nan) if regression else _agreement(labels, found)
    suspicion, doubtful = -_in_deviations(valuation.values), valuation.values + INTERVAL * valuation.stderr < 0
    if X is not None and not regression:
        suspicion = suspicion - _in_deviations(agreement)
        doubtful &= agreement < 0.5
    order = np.lexsort((valuation.values, -suspicion))
    order = order[doubtful[order]] if n is None else order[: count_of(n, len(labels))]
    ids = ids_of(valuation)
    against = [found[z] if regression else found[z][labels[found[z]] != labels[z]] for z in order]
    table = (
        valuation.to_frame()[["value", "stderr"]]
        .iloc[order]
        .assign(
            suspicion=suspicion[order],
            label=labels[order],
            suggested=[_suggested(labels[found[z]], regression) for z in order],
            agreement=agreement[order],
            neighbours=[ids[rows].tolist() for rows in against],
        )[["suspicion", "value", "stderr", "label", "suggested", "agreement", "neighbours"]]
    )
    for caution in verdict(valuation, labels, table).cautions:
        warn(caution)
    return table


def neighbours_of(valuation: Valuation, X: Any, n: int) -> list[Ints]:
    """The nearest rows of each row, nearest first: in `X`, else in the supports that rows share, else none."""
    n_rows = len(valuation.values)
    check_whole("n_neighbours", n)
    if X is not None:
        from sklearn.neighbors import NearestNeighbors
        from sklearn.preprocessing import StandardScaler

        rows = StandardScaler(with_mean=False).fit_transform(table("X", X, n_rows))
        return list(NearestNeighbors(n_neighbors=min(n, n_rows - 1)).fit(rows).kneighbors(return_distance=False))
    if valuation.per_test is None:
        return [np.empty(0, dtype=np.int64)] * n_rows
    return _companions(valuation, n)


def _companions(valuation: Valuation, n: int) -> list[Ints]:
    """The rows that share most supports with each row: supports that hold both over those that hold either."""
    supports = valuation.per_test
    assert supports is not None
    by_row = supports.tocsc()
    n_tests = np.diff(by_row.indptr)
    found = []
    for z in range(len(n_tests)):
        tests = by_row.indices[by_row.indptr[z] : by_row.indptr[z + 1]]
        others, both = np.unique(supports[tests].indices, return_counts=True)
        nearness = both / (n_tests[z] + n_tests[others] - both)
        nearness[others == z] = -1
        found.append(others[np.argsort(-nearness, kind="stable")[: min(n, len(others) - 1)]].astype(np.int64))
    return found


def _agreement(labels: AnyArray, neighbours: list[Ints]) -> Floats:
    """Share of the neighbours of each row that have its label; NaN where there are none."""
    return np.array(
        [
            (labels[rows] == label).mean() if len(rows) else np.nan
            for label, rows in zip(labels, neighbours, strict=True)
        ]
    )


def _suggested(labels: AnyArray, regression: bool) -> Any:
    """The most frequent label (the first of equals), or the mean; None without labels."""
    if len(labels) == 0:
        return None
    return float(labels.mean()) if regression else Counter(labels.tolist()).most_common(1)[0][0]


def _in_deviations(numbers: Floats) -> Floats:
    """Numbers divided by their standard deviation, if they differ at all."""
    deviation = numbers.std()
    return numbers / deviation if deviation > 0 else numbers
