"""Columns that differ in scale, where a model or a support measures distances between rows."""

from __future__ import annotations

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


def note_on_spread(space: Space, support: Support, notes: list[Note]) -> list[Note]:
    """Name the columns whose spreads differ most, if distances are measured and this is not noted yet.

    Columns of two values, and those that mostly hold one, are left out: they have no unit that could be another. So are
    columns whose ranges differ less, such as the pixels of an image.
    """
    X = space.X
    measures = _measuring(space.reference, support)
    is_told = any(note.code == "spreads-differ" for note in notes)
    if is_told or not measures or not isinstance(X, np.ndarray) or X.dtype.kind not in "iuf":
        return []
    some = X[:: -(-len(X) // MAX_ROWS) or 1].astype(np.float64)
    wide, narrow, spreads = _extremes(some)
    if wide == narrow:
        return []
    named = isinstance(space.raw, pd.DataFrame) and space.raw.shape[1] == X.shape[1]
    one, two = (repr(space.raw.columns[i]) if named else i for i in (wide, narrow))
    text = (
        f"the middle half of column {one} spans {spreads[wide]:.3g}, that of column {two} {spreads[narrow]:.3g}, "
        f"so that the first outweighs the second in every distance that {measures} measures; scale them, such as with "
        "make_pipeline(StandardScaler(), model)."
    )
    columns = [space.raw.columns[i] if named else i for i in (wide, narrow)]
    return [Note("spreads-differ", text, columns=columns, spreads=[spreads[wide], spreads[narrow]])]


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
