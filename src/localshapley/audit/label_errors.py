"""Rows whose labels are likely to be wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.audit.base import RowValues, check_values
from localshapley.audit.label_noise_models import NoiseScores, filled, noise_scores
from localshapley.audit.verdict import Verdict, make_verdict
from localshapley.data.indexes import check_order, index_of
from localshapley.data.rows import are_amounts, known_table
from localshapley.data.side_columns import count_of, entries_of, n_rows_of, table
from localshapley.errors import InvalidArgumentError, unknown_name, warn
from localshapley.notes import Note
from localshapley.runtime.argument_checks import check_whole
from localshapley.runtime.progress import ProgressSetting
from localshapley.scoring import SCORES
from localshapley.search import nearest_others
from localshapley.search.scan import showing

TASKS = ("auto", "classification", "regression")


@dataclass(frozen=True, repr=False, eq=False)
class LabelErrors:
    """Rows whose labels are probably wrong, and what the list amounts to.

    Attributes
    ----------
    table : DataFrame
        Most suspicious first, under the names of the rows: `suspicion` (what they are ranked by), `p_wrong` (NaN where
        the models can learn nothing, or the table is too small for them), `value` and `stderr` (with values only),
        `label`, `suggested` (the most probable other label, or the number that is predicted; without models the most
        frequent label of the neighbours, or their mean), `agreement` (share of the neighbours with the row's own label;
        not for numbers) and `neighbours` (those with another label, nearest first; for numbers all).
    verdict : Verdict
        How many labels look wrong in all, of which classes the listed rows are, and reasons to doubt the list.
    preparation : list of Note
        How columns were turned into numbers; empty if they were numbers.
    """

    table: pd.DataFrame
    verdict: Verdict
    preparation: list[Note] = field(default_factory=list)

    def __repr__(self) -> str:
        shown = self.table.drop(columns="neighbours").head().to_string(float_format="{:.3g}".format)
        return f"{self.verdict}\n{shown}" if len(self.table) else repr(self.verdict)


def label_errors(
    X: Any,
    y: Any,
    *,
    values: RowValues | None = None,
    n: float | None = None,
    n_neighbours: int = 10,
    task: str = "auto",
    seed: int = 0,
    errors: str = "all",
    progress: ProgressSetting = None,
) -> LabelErrors:
    """List the rows whose labels are probably wrong, the surest first, with the neighbours that contradict each.

    A random forest and a support vector machine score the label of each row without having seen it. Rows are ranked by
    what both say (and more cautious ones of both, with a linear model, where many labels are not as they predict), and
    `p_wrong` is the probability that the label is wrong. How many are wrong in all is estimated from the rows whose
    class the models are surest of. No row is valued for this, and the list finds more wrong labels than values do.

    Numbers in place of labels have a third model, a machine with a quadratic kernel. They are ranked by how far they
    are from what the models predict, of which the best counts most, beside how far the models disagree.

    Where there are fewer than twenty rows or no two classes of five, these models have too little to learn from. Rows
    are then ranked by `values` and by the share of their neighbours that have the same label.

    A warning is given where the list should not be trusted; `verdict.cautions` has the same reasons.

    Parameters
    ----------
    X : array, DataFrame or sparse matrix of shape (n_rows, n_features)
        The rows; neighbours are the nearest, by Euclidean distance of standardised features. A table with words or
        gaps is prepared as the command line does it: gaps are filled, and each category gets a feature. None if only
        values are known; neighbours are then the rows that are most often in the same supports, if the values were made
        with ``per_test=True``.
    y : array, Series or list of shape (n_rows,)
        Labels, or numbers.
    values : Valuation, optional
        Values of the rows, for the columns `value` and `stderr` and for tables that are too small for the models. Rows
        and labels are then taken in the order of the values: by their indexes, else by their contents.
    n : int or float, optional
        How many rows to list (an int), or which share of them (a float up to 1.0); by default those with
        ``p_wrong > 0.5``. Without models the default are those whose value is below zero by more than its errors of
        95 % and, with `X`, most of whose neighbours have another label.
    n_neighbours : int, default=10
        Number of neighbours; all other rows where there are fewer.
    task : {"auto", "classification", "regression"}, default="auto"
        Whether `y` holds classes or amounts. By default the values say so, or the numbers: amounts are fractions, or
        more than 50 different whole numbers.
    seed : int, default=0
        Seed of the models.
    errors : {"all", "draws"}, default="all"
        Which errors of a value count where values decide: all that are known, or those of the draws alone.
    progress : bool or callable, optional
        As in `value`.

    Returns
    -------
    LabelErrors
        Has the list (`table`) and the `verdict`.

    Examples
    --------
    >>> import localshapley as ls
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> y[:9] = (y[:9] + 1) % 3
    >>> found = ls.audit.label_errors(X, y)
    >>> found.table.index[:5].tolist()
    [4, 3, 5, 8, 0]
    >>> found.verdict
    about 13 (4 to 30) of 105 labels look wrong
    10 of 105 rows are suspected (10 %)
      by class  4 of 36 labelled 0 (11 %), 3 of 36 labelled 1 (8 %), 3 of 33 labelled 2 (9 %)
    """
    X, labels, names = _in_one_order(X, y, values)
    preparation: list[Note] = []
    if X is not None:
        numbers, preparation = table("X", X, len(labels))
        X = filled(numbers)
    check_whole("n_neighbours", n_neighbours)
    if task not in TASKS:
        raise unknown_name("task", task, TASKS)
    harmful = None if values is None else values.below_zero(errors)
    regression = _holds_amounts(labels, values) if task == "auto" else task == "regression"
    scores = None if X is None else noise_scores(X, labels, regression=regression, seed=seed, progress=progress)
    if scores is not None:
        suspicion, is_wrong = scores.suspicion, scores.p_wrong > 0.5
        beyond_doubt = is_wrong
    elif values is not None and harmful is not None:
        suspicion, is_wrong = -_in_deviations(values.values), harmful
        if X is not None and not regression:
            with showing(progress):
                shares = _agreement(labels, _neighbours(X, values, n_neighbours))
            suspicion, is_wrong = suspicion - _in_deviations(shares), is_wrong & (shares < 0.5)
        beyond_doubt = is_wrong & values.below_zero()  # cautions go by all errors, whichever the list goes by
    else:
        raise InvalidArgumentError(
            f"X and y are too small to learn from: {len(labels)} rows, and twenty are needed, with two classes of five "
            "rows; give values (on the command line, --values), by which so few rows are ranked."
        )
    order = np.lexsort((np.zeros(len(labels)) if values is None else values.values, -suspicion))
    order = order[is_wrong[order]] if n is None else order[: count_of(n, len(labels))]
    with showing(progress):
        near = _neighbours(X, values, n_neighbours, order)  # of the listed rows alone: all would take long
    against = [rows if regression else rows[labels[rows] != labels[z]] for z, rows in zip(order, near, strict=True)]
    columns = {
        "suspicion": suspicion[order],
        "p_wrong": np.nan if scores is None else scores.p_wrong[order],
        **({} if values is None else {"value": values.values[order], "stderr": values.stderr[order]}),
        "label": labels[order],
        "suggested": [_suggested(z, labels, rows, scores, regression) for z, rows in zip(order, near, strict=True)],
        **({} if regression else {"agreement": _agreement(labels, near, order)}),
        "neighbours": [names[rows].tolist() for rows in against],
    }
    listed = pd.DataFrame(columns, index=names[order])
    verdict = make_verdict(labels, order, scores, beyond_doubt, values, regression=regression)
    for caution in verdict.cautions:
        warn(caution)
    return LabelErrors(listed, verdict, preparation)


def _in_one_order(X: Any, y: Any, values: RowValues | None) -> tuple[Any, AnyArray, pd.Index]:
    """Rows and labels in one order, that of the values if there are any, and the names of the rows."""
    if values is not None:
        check_values(values)
        return *values.in_order(X, y), values.to_frame().index
    if X is None:
        raise InvalidArgumentError("X is missing; give one row per label, or values=value(...).")
    X = known_table(X)
    for note in check_order("y", y, "X", X):
        warn(note)
    names, n_rows = index_of(X, y), n_rows_of(X)
    labels = entries_of("y", y, n_rows)
    return X, labels, pd.RangeIndex(n_rows, name="row") if names is None else names


def _holds_amounts(labels: AnyArray, values: RowValues | None) -> bool:
    """Whether rows carry amounts: by the score of their values, or by the labels if there is none of this package."""
    if values is not None and values.score in SCORES:
        return SCORES[values.score].task == "regressor"
    return are_amounts(labels)


def _neighbours(X: Any, values: RowValues | None, n: int, rows: Ints | None = None) -> Ints | list[Ints]:
    """The nearest rows of all or some rows: in `X`, else in the supports that rows share."""
    if X is None:
        assert values is not None
        return values.companions(n, rows)
    from sklearn.preprocessing import StandardScaler

    rows = np.arange(X.shape[0]) if rows is None else rows
    return nearest_others(StandardScaler(with_mean=False).fit_transform(X), n, rows=rows).rows


def _agreement(labels: AnyArray, neighbours: Ints | list[Ints], rows: Ints | None = None) -> Floats:
    """Share of the neighbours of all or some rows that have their label; NaN where there are none."""
    own = labels if rows is None else labels[rows]
    same = [labels[near] == label for near, label in zip(neighbours, own, strict=True)]
    return np.array([equal.mean() if len(equal) else np.nan for equal in same], dtype=np.float64)


def _suggested(z: int, labels: AnyArray, neighbours: Ints, scores: NoiseScores | None, regression: bool) -> Any:
    """What the models suggest, else the most frequent label of the neighbours or their mean."""
    if scores is not None and scores.suggested[z] is not None:
        return scores.suggested[z]
    near = labels[neighbours]
    if len(near) == 0:
        return None
    return float(near.mean()) if regression else Counter(near.tolist()).most_common(1)[0][0]


def _in_deviations(numbers: Floats) -> Floats:
    """Numbers divided by their standard deviation, if they differ at all."""
    deviation = numbers.std()
    return numbers / deviation if deviation > 0 else numbers
