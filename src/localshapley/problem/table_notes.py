"""What a reader of values should know about the rows behind them: facts that are looked for when a result is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    NearestCentroid,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from localshapley.arrays import AnyArray
from localshapley.data.exact_duplicates import (
    equal_rows,
    is_seen_in_folds,
    is_shared,
    say_contradicted,
    say_seen,
    say_seen_in_folds,
)
from localshapley.models.input_checks import CheckedInput
from localshapley.notes import Note
from localshapley.supports.base import Space, Support
from localshapley.supports.kernel import CompactKernel, Kernel
from localshapley.supports.nearest import Nearest, Radius

FACTOR = 10
"""Spreads that differ by more than this are pointed out."""
MIN_ROWS, MAX_ROWS = 20, 2_000
"""With fewer rows spreads say little; of more, as many are looked at."""
METRICS = ("minkowski", "euclidean", "l2", "manhattan", "cityblock", "l1", "chebyshev")
"""Metrics in which a wide column outweighs a narrow one,"""
KERNELS = ("rbf", "poly")
"""and kernels."""
NEIGHBOURS = (
    KNeighborsClassifier,
    KNeighborsRegressor,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
    NearestCentroid,
)
MACHINES = SVC, SVR, NuSVC, NuSVR, KernelRidge


def notes_on_copies(checked: CheckedInput, X: Any, X_test: Any, y_test: Any) -> list[Note]:
    """Tell test rows that are copies of training rows, and equal rows with different labels.

    The arguments are what the user gave, and what was made of it. Rows that are equal because columns take few values
    are no copies.
    """
    task = checked.task
    equal = equal_rows(X, X_test, words=checked.digests().rows)
    group, n_rows, shared = equal.group, equal.n_rows, is_shared(equal.group)
    if equal.coarse or not shared.any():
        return []

    def name(row: int) -> str:
        if row >= n_rows:
            return f"test row {row - n_rows}"
        return f"row {row if checked.ids is None else checked.ids[row]}"

    if X_test is not None:
        seen = say_seen(group, n_rows, name)
    elif checked.folds is not None:
        seen = say_seen_in_folds(group, is_seen_in_folds(group, checked.folds), name, oob=False)
    else:
        seen = say_seen_in_folds(group, shared, name, oob=True)
    against = None
    if task.classes is not None:
        labels = task.y if X_test is None else np.concatenate([task.y, np.asarray(y_test).ravel()])
        against = say_contradicted(group, labels, name)
    return [note for note in (against, seen) if note]


def notes_on_spread(spaces: Iterable[Space], support: Support) -> list[Note]:
    """Name the columns whose spreads differ most, if distances are measured: of the first space where they do."""
    for space in spaces:
        measures = _measuring(space.reference, support)
        if measures and (note := note_on_spread(space.X, space.raw, measures)):
            return [note]
    return []


def note_on_spread(
    X: Any, raw: Any, measures: str, remedy: str = "make_pipeline(StandardScaler(), model)"
) -> Note | None:
    """Name the columns whose spreads differ most, by the names that they have in `raw`; None if they are alike.

    Columns of two values, and those that mostly hold one, are left out: they have no unit that could be another. So are
    columns whose ranges differ less, such as the pixels of an image.
    """
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "iuf":
        return None
    some = X[:: -(-len(X) // MAX_ROWS) or 1].astype(np.float64)
    wide, narrow, spreads = _extremes(some)
    if wide == narrow:
        return None
    named = isinstance(raw, pd.DataFrame) and raw.shape[1] == X.shape[1]
    columns = [raw.columns[i] if named else i for i in (wide, narrow)]
    text = (
        f"the middle half of column {columns[0]!r} spans {spreads[wide]:.3g}, that of column {columns[1]!r} "
        f"{spreads[narrow]:.3g}, so that the first outweighs the second in every distance that {measures} measures; "
        f"scale them, such as with {remedy}."
    )
    return Note("spreads-differ", text, columns=columns, spreads=[spreads[wide], spreads[narrow]])


def _measuring(model: object, support: Support) -> str:
    """What measures distances in the columns as they are, such as within a grid search; empty if nothing does."""
    model = getattr(model, "estimator", None) or model
    if isinstance(model, NEIGHBOURS) and model.metric in METRICS:
        return type(model).__name__
    if isinstance(model, MACHINES) and model.kernel in KERNELS:
        return type(model).__name__
    is_near = isinstance(support, Nearest | Radius) and support.metric in METRICS
    raw = is_near and not getattr(support, "standardise", False)
    return repr(support) if raw or isinstance(support, Kernel | CompactKernel) else ""


def _extremes(X: AnyArray) -> tuple[int, int, AnyArray]:
    """The columns of the widest and the narrowest spread, the same one if they do not differ much, and all spreads."""
    if len(X) < MIN_ROWS or not np.isfinite(X).all():
        return 0, 0, X[:0]
    low, high = X.min(axis=0), X.max(axis=0)
    spreads = np.subtract(*np.percentile(X, [75, 25], axis=0))  # which an outlier does not widen
    counted = np.flatnonzero((spreads > 0) & ((low < X) & (high > X)).any(axis=0))
    if not len(counted):
        return 0, 0, spreads
    wide, narrow = (int(counted[find(spreads[counted])]) for find in (np.argmax, np.argmin))
    ranges = high - low
    differ = spreads[wide] > FACTOR * spreads[narrow] and ranges[wide] > FACTOR * ranges[narrow]
    return (wide, narrow, spreads) if differ else (wide, wide, spreads)
