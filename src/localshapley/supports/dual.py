"""Dual sparsity: the rows that a support vector machine keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC, LinearSVR

from localshapley.arrays import Indices
from localshapley.errors import InvalidArgumentError
from localshapley.supports.base import Space, Support
from localshapley.supports.given import Everything


@dataclass(frozen=True, repr=False)
class Dual(Support):
    """The rows with a dual variable other than 0 in the reference model: the same for every test row.

    `support_` of the model where it has one; for `LinearSVC` and `LinearSVR`, which keep no dual variables, the
    rows on which the loss is active. Cap it with `max_size`: a support vector machine may keep most of the rows.
    """

    reads_model = True

    def find(self, space: Space) -> list[Indices]:
        """Find the support vectors, once for all test rows."""
        rows = _support_vectors(space.reference, space.tables[0], space.y).astype(np.int32)
        return [rows] * space.X_test.shape[0]

    def larger(self) -> str:
        """All rows: there cannot be more support vectors."""
        return "supports.Everything()"

    def grown(self) -> Everything:
        """All rows."""
        return Everything()


def _support_vectors(model: Any, X: Any, y: Any) -> Indices:
    if hasattr(model, "support_"):
        return np.asarray(model.support_, dtype=np.int32)
    if not isinstance(model, LinearSVC | LinearSVR):
        raise InvalidArgumentError(
            f"supports.Dual needs a support vector machine; {type(model).__name__} has no support vectors. "
            "Leave support=None for the family of the model, or use supports.Nearest(n)."
        )
    slack = 1e-3  # liblinear stops short of the exact margin
    if isinstance(model, LinearSVR):
        active = np.abs(y - model.predict(X)) >= model.epsilon - slack
        return np.flatnonzero(active).astype(np.int32)
    decision = np.asarray(model.decision_function(X))
    if decision.ndim == 1:
        decision = decision[:, None]
        sign = np.where(y == model.classes_[1], 1, -1)[:, None]
    else:
        sign = np.where(y[:, None] == model.classes_[None, :], 1, -1)
    return np.flatnonzero((sign * decision <= 1 + slack).any(axis=1)).astype(np.int32)
