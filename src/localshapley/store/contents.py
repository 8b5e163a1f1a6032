"""Identity by contents: digests of rows and labels, and of everything else that decides a score.

Digests tell equal from different contents; they do not protect against someone who wants two things to look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley import __version__
from localshapley.arrays import AnyArray, Ints, Masks
from localshapley.inputs.digests import bits
from localshapley.inputs.folds import Fold
from localshapley.inputs.model import on_one_line, seeded
from localshapley.inputs.task import Task
from localshapley.store.describing import describe


class Contents(NamedTuple):
    """What the scores of a run depend on.

    Attributes
    ----------
    fingerprint : bytes
        Digest of everything but the rows that decides a score.
    about : str
        The same, in words.
    rows, tests : arrays of shape (n, 2)
        Digests of players and of test rows.
    nothing : array of shape (2,)
        Digest of the empty coalition.
    """

    fingerprint: bytes
    about: str
    rows: Masks
    tests: Masks
    nothing: Masks


def contents_of_task(task: Task, estimator: Any, trainer: str) -> Contents:
    """Contents of models that are trained on the rows of a task."""
    # What the empty coalition predicts may depend on all rows: a regressor takes their mean.
    nothing = f"nothing {'' if task.classes is not None else describe(task.guess(np.arange(len(task.y_test))))}"
    return Contents(
        fingerprint(task, estimator, trainer),
        f"{on_one_line(estimator)}, {task.score.name}, {trainer}",
        digest_rows(task.X, task.y),
        digest_rows(task.X_test, task.y_test),
        digest_text(nothing),
    )


def contents_of_folds(
    parts: Sequence[Task], folds: Sequence[Fold], order: Ints, task: Task, estimator: Any, trainer: str
) -> Contents:
    """Contents of models that are trained on rows which look different in each fold; `order` sorts their test rows."""
    of_parts = [contents_of_task(part, estimator, trainer) for part in parts]
    rows = np.zeros((len(task.y), 2), dtype=np.uint64)
    for found, (train, _) in zip(of_parts, folds, strict=True):
        rows[train] += found.rows
    whole = contents_of_task(task, estimator, trainer)
    return whole._replace(
        fingerprint=blake2b(whole.fingerprint + describe(folds).encode(), digest_size=16).digest(),
        rows=rows,
        tests=np.concatenate([found.tests for found in of_parts])[order],
    )


def contents_by_name(name: str, n_players: int, n_tests: int) -> Contents:
    """Contents of a game that is identified by a name, and its players and test rows by their numbers."""
    rows, tests = (digest_rows(np.arange(n)[:, None], np.zeros(n)) for n in (n_players, n_tests))
    return Contents(digest_text(f"game {name}").tobytes(), name, rows, tests, digest_text("nothing"))


def digest_rows(X: Any, y: AnyArray) -> Masks:
    """Digest the contents of rows and their labels, shape (n, 2).

    Numbers count by their value as float64. Columns of a DataFrame that hold anything else count by the hash that
    pandas gives them.
    """
    from localshapley.kernels.digests import fold_words

    out = np.zeros((len(y), 2), dtype=np.uint64)
    labels, code = np.unique(y, return_inverse=True)
    of_label = np.array([_word(label) for label in labels.tolist()], dtype=np.uint64)[code]
    one_each = np.arange(len(y) + 1)
    for words, indptr in (*_words(X), (of_label, one_each)):
        fold_words(words, indptr, out)
    return out


def digest_text(text: str) -> Masks:
    """Digest a text, shape (2,)."""
    return np.frombuffer(blake2b(text.encode(), digest_size=16).digest(), dtype="<u8").astype(np.uint64)


def _words(X: Any) -> list[tuple[Masks, Ints]]:
    """The contents of rows as words, row after row, with their offsets."""
    one_each = np.arange(X.shape[0] + 1)
    if isinstance(X, pd.DataFrame):
        numbers = X.select_dtypes("number")
        parts = _words(numbers.to_numpy(dtype=np.float64, na_value=np.nan)) if numbers.shape[1] else []
        for name in X.columns.difference(numbers.columns, sort=False):
            hashed = pd.util.hash_pandas_object(X[name], index=False).to_numpy()
            parts.append((hashed.astype(np.uint64), one_each))
        columns = np.full(X.shape[0], _word([str(name) for name in X.columns]), dtype=np.uint64)
        return [*parts, (columns, one_each)]
    if sparse.issparse(X):
        rows = sparse.csr_array(X, dtype=np.float64, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        words = np.stack([rows.indices.astype(np.uint64), bits(rows.data)], axis=1)
        return [(words.ravel(), 2 * rows.indptr.astype(np.int64))]
    dense = np.ascontiguousarray(X, dtype=np.float64)
    return [(bits(dense.ravel()), X.shape[1] * one_each)]


def _word(value: Any) -> int:
    return int.from_bytes(blake2b(describe(value).encode(), digest_size=8).digest(), "little")


def fingerprint(task: Task, estimator: Any, trainer: str) -> bytes:
    """Digest everything but the rows that decides a score: model, parameters, score, conventions, versions."""
    about = (
        trainer,
        f"localshapley {__version__}",
        describe(seeded(estimator, task.seed)),
        describe(task.score),
        describe(task.empty),
        describe(None if task.classes is None else task.classes.tolist()),
    )
    return blake2b("\n".join(about).encode(), digest_size=16).digest()
