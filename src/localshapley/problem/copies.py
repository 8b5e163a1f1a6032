"""What a result says about copies among the rows that were valued, and the rows that they were valued on."""

from __future__ import annotations

from typing import Any

import numpy as np

from localshapley.inputs.copies import (
    any_equal,
    are_coarse,
    compared,
    groups_of,
    is_seen_in_folds,
    is_shared,
    say_contradicted,
    say_seen,
    say_seen_in_folds,
)
from localshapley.inputs.digests import digest_cells
from localshapley.models.checking import Checked
from localshapley.notes import Note


def notes_on_copies(checked: Checked, X: Any, X_test: Any, y_test: Any) -> list[Note]:
    """Tell test rows that are copies of training rows, and equal rows with different labels.

    The arguments are what the user gave, and what was made of it. Rows that are equal because columns take few values
    are no copies.
    """
    task = checked.task
    rows, X_test = compared(X, X_test)
    digests = [checked.digests().rows if rows is X else digest_cells(rows)]
    n_rows = len(digests[0])
    digests += [] if X_test is None else [digest_cells(X_test)]
    if not any_equal(*digests):
        return []
    group = groups_of(*digests)
    shared = is_shared(group)
    if are_coarse(group, rows):
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
