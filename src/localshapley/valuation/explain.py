"""The training rows behind one prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from localshapley.data.side_columns import tables
from localshapley.errors import InvalidArgumentError
from localshapley.runtime.argument_checks import check_whole
from localshapley.search.distances import distances
from localshapley.valuation import Valuation
from localshapley.valuation.row_names import ids_of, influences
from localshapley.valuation.table_matching import rows_and_labels


def explain(
    valuation: Valuation, test_row: int, *, X: Any = None, X_test: Any = None, y: Any = None, n: int | None = None
) -> pd.DataFrame:
    """List the training rows that helped and hurt the prediction for one test row.

    Parameters
    ----------
    valuation : Valuation
        Made with ``per_test=True``.
    test_row : int
        Number of the test row, from 0.
    X, X_test : array, DataFrame or sparse matrix, optional
        Training and test rows; with both, Euclidean distances are shown. In a valuation with ``cv=...`` the test rows
        are the training rows: give `X` for both. Tables with words or gaps are prepared as in `audit.label_errors`.
    y : array, Series or list of shape (n_rows,), optional
        Labels of the training rows.
    n : int, optional
        Number of rows to show; by default all of the support.

    Returns
    -------
    DataFrame
        The training rows of the test row's support, most influential first, under the index of the valuation: `value`
        (what the row adds to the score of this prediction), `effect` (``"helped"``, ``"hurt"`` or ``"none"``) and,
        where they were given, `label` and `distance`. The values sum to what all rows of the support together add.
        Where columns were prepared, ``attrs["preparation"]`` tells how.

    Examples
    --------
    >>> import localshapley as ls
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> v = ls.value(X, y, X_test, y_test, model="knn", per_test=True)
    >>> ls.tasks.explain(v, 0, y=y, n=3)["effect"].tolist()
    ['helped', 'helped', 'helped']
    """
    check_whole("n", n, optional=True)
    if (X is None) != (X_test is None):
        raise InvalidArgumentError("give both X and X_test, or neither; distances are measured between them.")
    X, y = rows_and_labels(valuation, X, y)
    rows, values = influences(valuation, test_row)
    rows, values = rows[:n], values[:n]
    found = pd.DataFrame(
        {"value": values, "effect": np.select([values > 0, values < 0], ["helped", "hurt"], "none")},
        index=ids_of(valuation)[rows],
    )
    if y is not None:
        found["label"] = y[rows]
    if X is not None:
        (X, X_test), steps = tables(("X", X, len(valuation.values)), ("X_test", X_test, len(valuation.support_sizes)))
        found.attrs |= {"preparation": steps} if steps else {}
        near = distances(X[rows], X_test[[test_row]], "euclidean", {})[:, 0] if len(rows) else np.zeros(0)
        found["distance"] = near
    return found
