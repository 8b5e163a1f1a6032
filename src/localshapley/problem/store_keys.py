"""Identity by contents: digests of rows and labels, and of everything else that decides a score.

Digests tell equal from different contents; they do not protect against someone who wants two things to look alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from localshapley import __version__
from localshapley.arrays import AnyArray, Ints, Masks
from localshapley.coalitions.batch import Coalitions
from localshapley.data.folds import Fold
from localshapley.data.row_digests import bits
from localshapley.models.estimator_checks import on_one_line, seeded
from localshapley.models.task import Task
from localshapley.models.trainer import Trainer
from localshapley.problem.fingerprints import describe


class ScoreKeys(NamedTuple):
    """What the scores of a run depend on.

    Attributes
    ----------
    fingerprint : bytes
        Digest of everything but the rows that decides a score.
    about : str
        The same, in words.
    rows, tests : arrays of shape (n, 2)
        Digests of training rows and of test rows; with folds that decide how a coalition is trained, they tell the
        fold of a test row, and the folds that a row is trained in.
    nothing : array of shape (n_tests, 2)
        The same of test rows of the empty coalition, whose score may depend on all rows: a regressor predicts a mean.
    reads_order : bool
        Whether scores may depend on the order of the rows of a coalition.
    rows_of : callable
        Coalitions of rows in place of coalitions of players.
    """

    fingerprint: bytes
    about: str
    rows: Masks
    tests: Masks
    nothing: Masks
    reads_order: bool = True
    rows_of: Callable[[Coalitions], Coalitions] = lambda coalitions: coalitions

    def keys(self, coalitions: Coalitions) -> tuple[Masks, Masks]:
        """Digests of coalitions and of their test rows.

        A model is trained on rows in their order, so that is what its digest is of. Equal rows are told apart by what
        stands between them, and rows that come before, after and between others change nothing about these.
        """
        from localshapley.kernels.digests import add_up, fold_words

        out, of_rows = np.zeros((len(coalitions), 2), dtype=np.uint64), self.rows_of(coalitions)
        if self.reads_order:
            fold_words(self.rows[of_rows.players].ravel(), 2 * of_rows.indptr, out)
        else:
            add_up(of_rows.indptr, of_rows.players, self.rows, out)
        is_empty = np.repeat(np.diff(coalitions.indptr) == 0, np.diff(coalitions.test_indptr))
        return out, np.where(is_empty[:, None], self.nothing[coalitions.tests], self.tests[coalitions.tests])

    def with_folds(self, folds: Sequence[Fold], order: Ints) -> ScoreKeys:
        """The same where coalitions are trained on those of their rows alone that may teach a test row of its fold."""
        rows, numbers = self.rows.copy(), np.arange(len(folds), dtype=np.uint64)
        for number, (train, _) in zip(numbers, folds, strict=True):
            rows[train] = folded_in(rows[train], number)
        tests = folded_in(self.nothing, np.repeat(numbers, [len(test) for _, test in folds])[order])
        return self._replace(rows=rows, tests=tests, nothing=tests)


def contents_of_task(task: Task, estimator: Any, trainer: Trainer) -> ScoreKeys:
    """Contents of models that are trained on the rows of a task."""
    tests = nothing = digest_rows(task.X_test, task.y_test)
    if task.classes is None:
        nothing = folded_in(tests, bits(task.guess(np.arange(len(tests)))))
    return ScoreKeys(
        fingerprint(task, estimator, trainer.name),
        f"{on_one_line(estimator)}, {task.score.name}, {trainer.name}",
        digest_rows(task.X, task.y),
        tests,
        nothing,
        trainer.reads_order,
    )


def contents_of_folds(
    parts: Sequence[Task], folds: Sequence[Fold], order: Ints, task: Task, estimator: Any, trainer: Trainer
) -> ScoreKeys:
    """Contents of models that are trained on rows which look different in each fold; `order` sorts their test rows."""
    of_parts = [contents_of_task(part, estimator, trainer) for part in parts]
    rows = np.zeros((len(task.y), 2), dtype=np.uint64)
    for found, (train, _) in zip(of_parts, folds, strict=True):
        rows[train] = folded_in(folded_in(rows[train], found.rows[:, 0]), found.rows[:, 1])
    nothing = np.concatenate([found.nothing for found in of_parts])[order]
    whole = contents_of_task(task, estimator, trainer)
    return whole._replace(rows=rows, nothing=nothing).with_folds(folds, order)


def contents_by_name(name: str, n_players: int, n_tests: int) -> ScoreKeys:
    """Contents of a game that is identified by a name, and its players and test rows by their numbers."""
    rows, tests = (digest_rows(np.arange(n)[:, None], np.zeros(n)) for n in (n_players, n_tests))
    return ScoreKeys(digest_text(f"game {name}").tobytes(), name, rows, tests, tests)


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


def folded_in(digests: Masks, words: Any) -> Masks:
    """Digests with one more word folded into each."""
    from localshapley.kernels.digests import fold

    return np.stack(fold(digests[:, 0], digests[:, 1], words), axis=1)


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
