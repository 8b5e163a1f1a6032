"""Rows whose labels are likely to be wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.audit.label_noise_models import Judgement, filled, judge_labels, judge_numbers
from localshapley.audit.verdict import is_regression, verdict
from localshapley.data.columns import count_of, table
from localshapley.errors import warn
from localshapley.notes import Note
from localshapley.runtime.argument_checks import check_whole
from localshapley.runtime.progress import ProgressSetting
from localshapley.search import nearest_others
from localshapley.search.scan import showing
from localshapley.valuation import Valuation
from localshapley.valuation.intervals import beyond_doubt, check_errors
from localshapley.valuation.matching import rows_and_labels
from localshapley.valuation.row_names import ids_of


def suspects(
    valuation: Valuation,
    y: Any,
    *,
    X: Any = None,
    n: float | None = None,
    n_neighbours: int = 10,
    seed: int = 0,
    errors: str = "all",
    progress: ProgressSetting = None,
) -> pd.DataFrame:
    """List the rows whose labels are probably wrong, the surest first, with the neighbours that contradict each.

    With `X`, two witnesses judge each row without having seen it: a random forest and a support vector machine. Rows
    are ranked by what both say (and more cautious ones of both, with a linear model, where many labels are not as they
    predict), and `p_wrong` is the probability that the label is wrong. How many are wrong in all is
    estimated from the rows whose class the witnesses are surest of: `verdict` tells it, with an interval. Whatever
    model the rows were valued with, these witnesses find more wrong labels than its values do.

    Numbers in place of labels have a third witness, a machine with a quadratic kernel. They are ranked by how far they
    are from what the witnesses predict, of which the best counts most, beside how far the witnesses disagree.

    Without `X`, and where there are fewer than twenty rows or no two classes of five, there are no witnesses. Rows are
    then ranked by their value and, with `X`, by the share of their neighbours that have the same label.

    A warning is given where the list should not be trusted: the model is hardly better than a constant guess, labels
    that are outcomes of chance would look like this, or very many rows are suspected. `verdict` says the same in a
    result, with the suspects by class.

    Parameters
    ----------
    valuation : Valuation
    y : array, Series or list of shape (n_rows,)
        Labels, or numbers, that the rows were valued with. Where `y` and `X` have the index of the valuation, in
        whatever order, they go by it.
    X : array, DataFrame or sparse matrix, optional
        The rows; neighbours are the nearest, by Euclidean distance of standardised features. A table with words or
        gaps is prepared as the command line does it: gaps are filled, and each category gets a feature. Without `X`
        neighbours are the rows that are most often in the same supports, which needs a valuation with
        ``per_test=True``; without either there are none.
    n : int or float, optional
        How many rows (an int), or which share of them (a float up to 1.0); by default those with ``p_wrong > 0.5``.
        Without witnesses the default are those whose value is below zero by more than its errors of 95 % and, with
        `X`, most of whose neighbours have another label.
    n_neighbours : int, default=10
        Number of neighbours; all other rows where there are fewer.
    seed : int, default=0
        Seed of the witnesses.
    errors : {"all", "draws"}, default="all"
        Which errors of a value count where it decides: those of test rows and seeds, too, or of the draws alone.
    progress : bool or callable, optional
        As in `value`.

    Returns
    -------
    DataFrame
        Most suspicious first, under the index of the valuation: `suspicion` (what they are ranked by), `p_wrong` (NaN
        without witnesses, and where they can learn nothing), `value`, `stderr`, `label`, `suggested` (the most probable
        other label, or the number that is predicted; without witnesses the most frequent label of the neighbours, or
        their mean), `agreement` (share of the neighbours with the row's own label; not for a regressor) and
        `neighbours` (those with another label, nearest first; for a regressor all). Where columns were prepared,
        ``attrs["preparation"]`` tells how.

    Examples
    --------
    >>> import localshapley as ls
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> y[7] = (y[7] + 1) % 3
    >>> v = ls.value(X, y, X_test, y_test, model="knn")
    >>> ls.tasks.suspects(v, y, X=X, n=1).index.tolist()
    [7]
    """
    check_errors(errors)
    X, labels = rows_and_labels(valuation, X, y)
    preparation: list[Note] = []
    if X is not None:
        numbers, preparation = table("X", X, len(labels))
        X = filled(numbers)
    check_whole("n_neighbours", n_neighbours)
    regression = is_regression(valuation, labels)
    judged = None if X is None else judge(X, labels, regression=regression, seed=seed, progress=progress)
    if judged is None:
        every = None
        if X is not None and not regression:
            with showing(progress):
                every = _agreement(labels, neighbours_of(valuation, X, n_neighbours))
        suspicion, doubtful = _by_value(valuation, every, errors)
    else:
        suspicion, doubtful = judged.suspicion, judged.p_wrong > 0.5
    order = np.lexsort((valuation.values, -suspicion))
    order = order[doubtful[order]] if n is None else order[: count_of(n, len(labels))]
    ids = ids_of(valuation)
    with showing(progress):
        found = neighbours_of(valuation, X, n_neighbours, order)  # of the listed rows alone: all would take long
    agreement = {} if regression else {"agreement": _agreement(labels, found, order)}
    listed_with = list(zip(order.tolist(), found, strict=True))
    against = [near if regression else near[labels[near] != labels[z]] for z, near in listed_with]
    listed = (
        valuation.to_frame()[["value", "stderr"]]
        .iloc[order]
        .assign(
            suspicion=suspicion[order],
            p_wrong=np.nan if judged is None else judged.p_wrong[order],
            label=labels[order],
            suggested=[_suggested(z, labels, near, judged, regression) for z, near in listed_with],
            **agreement,
            neighbours=[ids[rows].tolist() for rows in against],
        )[["suspicion", "p_wrong", "value", "stderr", "label", "suggested", *agreement, "neighbours"]]
    )
    if judged is not None:
        listed.attrs |= {"n_wrong": judged.n_wrong, "differ": judged.differ, "n_suspects": int(doubtful.sum())}
    if preparation:
        listed.attrs["preparation"] = preparation
    for caution in verdict(valuation, labels, listed).cautions:
        warn(caution)
    return listed


def judge(
    X: Any, labels: AnyArray, *, regression: bool, seed: int = 0, progress: ProgressSetting = False
) -> Judgement | None:
    """What the witnesses say, in terms of the user's labels; None if there are none."""
    if regression:
        return judge_numbers(X, labels.astype(np.float64), seed=seed, progress=progress)
    classes, codes = np.unique(labels, return_inverse=True)
    judged = judge_labels(X, codes, seed=seed, progress=progress)
    if judged is None:
        return None
    suggested = classes.astype(object)[judged.suggested]
    suggested[judged.suggested < 0] = None
    return replace(judged, suggested=suggested)


def _by_value(valuation: Valuation, agreement: Floats | None, errors: str) -> tuple[Floats, AnyArray]:
    """Without witnesses: suspicion by value and the neighbours' agreement, and whether a row does harm beyond doubt."""
    suspicion, doubtful = -_in_deviations(valuation.values), beyond_doubt(valuation, errors)[0]
    if agreement is None:
        return suspicion, doubtful
    return suspicion - _in_deviations(agreement), doubtful & (agreement < 0.5)


def neighbours_of(valuation: Valuation, X: Any, n: int, rows: Ints | None = None) -> Ints | list[Ints]:
    """The nearest rows of all or some rows: in `X`, else in the supports that rows share, else none."""
    rows = np.arange(len(valuation.values)) if rows is None else rows
    if X is not None:
        from sklearn.preprocessing import StandardScaler

        return nearest_others(StandardScaler(with_mean=False).fit_transform(X), n, rows=rows).rows
    if valuation.per_test is None:
        return np.empty((len(rows), 0), dtype=np.int64)
    return _companions(valuation, n, rows)


def _companions(valuation: Valuation, n: int, rows: Ints) -> list[Ints]:
    """The rows that share most supports with each of some rows: supports that hold both over those that hold either."""
    supports = valuation.per_test
    assert supports is not None
    by_row = supports.tocsc()
    n_tests = np.diff(by_row.indptr)
    found = [np.empty(0, dtype=np.int64)] * len(rows)
    for i in np.flatnonzero(n_tests[rows]).tolist():  # all others share no support
        z = rows[i]
        tests = by_row.indices[by_row.indptr[z] : by_row.indptr[z + 1]]
        others, both = np.unique(supports[tests].indices, return_counts=True)
        nearness = both / (n_tests[z] + n_tests[others] - both)
        nearness[others == z] = -1
        found[i] = others[np.argsort(-nearness, kind="stable")[: min(n, len(others) - 1)]].astype(np.int64)
    return found


def _agreement(labels: AnyArray, neighbours: Ints | list[Ints], rows: Ints | None = None) -> Floats:
    """Share of the neighbours of all or some rows that have their label; NaN where there are none."""
    rows = np.arange(len(labels)) if rows is None else rows
    sizes = np.array([len(near) for near in neighbours]) if isinstance(neighbours, list) else neighbours.shape[1]
    counts = np.broadcast_to(sizes, len(rows))
    own, codes = np.repeat(np.arange(len(rows)), counts), pd.factorize(labels)[0]
    others = np.concatenate([rows[:0], *neighbours]) if isinstance(neighbours, list) else neighbours.ravel()
    label = codes[rows][own]
    same = np.bincount(own[(codes[others] == label) & (label >= 0)], minlength=len(rows))
    shares: Floats = np.divide(same, counts, out=np.full(len(rows), np.nan), where=counts > 0)
    return shares


def _suggested(z: int, labels: AnyArray, neighbours: Ints, judged: Judgement | None, regression: bool) -> Any:
    """What the witnesses suggest, else the most frequent label of the neighbours or their mean."""
    if judged is not None and judged.suggested[z] is not None:
        return judged.suggested[z]
    near = labels[neighbours]
    if len(near) == 0:
        return None
    return float(near.mean()) if regression else Counter(near.tolist()).most_common(1)[0][0]


def _in_deviations(numbers: Floats) -> Floats:
    """Numbers divided by their standard deviation, if they differ at all."""
    deviation = numbers.std()
    return numbers / deviation if deviation > 0 else numbers
