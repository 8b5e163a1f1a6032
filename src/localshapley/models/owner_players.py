"""Owners as players: a coalition of owners is trained on all of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Indices, Ints, Masks, offsets
from localshapley.coalitions.batch import Coalitions
from localshapley.coalitions.games import SupportGraph
from localshapley.errors import InvalidArgumentError
from localshapley.formatting import counted
from localshapley.models.fold_trainers import FoldCoalitions
from localshapley.models.trainer import Trainer, TrainingOutcome


class Owners:
    """Who owns which rows.

    Attributes
    ----------
    names : pandas Index
        The owners, by their first row.
    of_row : array of shape (n_rows,)
        Number of each row's owner.
    """

    def __init__(self, owners: Any, n_rows: int) -> None:
        given = np.asarray(owners, dtype=object)
        if given.shape != (n_rows,):
            raise InvalidArgumentError(
                f"owners must name the owner of each of the {n_rows} training rows; got shape {given.shape}."
            )
        of_row, names = pd.factorize(given)
        if (of_row < 0).any():
            missing = np.flatnonzero(of_row < 0)
            raise InvalidArgumentError(
                f"owners is missing for {counted(len(missing), 'row')}, first for row {missing[0]}; name an owner "
                "for them, such as 'unknown'."
            )
        self.names = pd.Index(names, name=getattr(owners, "name", None) or "owner").infer_objects()
        self.of_row: Ints = of_row.astype(np.int64)
        self._rows: Indices = np.argsort(self.of_row, kind="stable").astype(np.int32)
        self._indptr = offsets(np.bincount(self.of_row, minlength=len(names)))

    def graph(self, graph: SupportGraph) -> SupportGraph:
        """Games of owners: those who have a row in the support of a test row."""
        supports = [np.unique(self.of_row[graph.support(t)]) for t in range(graph.n_tests)]
        return graph.with_supports(supports, len(self.names))

    def digests(self, rows: Masks) -> Masks:
        """Digests of owners, as those of the coalitions of their rows."""
        out = np.zeros((len(self.names), 2), dtype=np.uint64)
        np.add.at(out, self.of_row, rows)
        return out

    def rows_of(self, coalitions: Coalitions) -> Coalitions:
        """Coalitions of rows in place of coalitions of owners."""
        sizes = np.diff(self._indptr)[coalitions.players]
        place = np.repeat(self._indptr[coalitions.players] - offsets(sizes)[:-1], sizes)
        rows = self._rows[place + np.arange(len(place))]
        indptr = offsets(sizes)[coalitions.indptr]
        return Coalitions(indptr, _sorted(indptr, rows), coalitions.test_indptr, coalitions.tests)


def _sorted(indptr: Ints, rows: Indices) -> Indices:
    """Rows ascending within each coalition."""
    coalition = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    ordered: Indices = rows[np.lexsort((rows, coalition))]
    return ordered


class OwnersTrainer(Trainer):
    """Trains coalitions of owners with the trainer of their rows.

    Parameters
    ----------
    inner : Trainer
    owners : Owners
    allowed : bool array of shape (n_folds, n_rows), optional
        Rows that may be trained on for the test rows of each fold: an owner joins with these alone.
    fold_of_test : int array of shape (n_tests,), optional
    """

    def __init__(
        self, inner: Trainer, owners: Owners, allowed: AnyArray | None = None, fold_of_test: Ints | None = None
    ) -> None:
        self.name, self.n_jobs, self.batch_size = inner.name, inner.n_jobs, inner.batch_size
        self.is_random, self.if_silent, self.kernels = inner.is_random, inner.if_silent, inner.kernels
        self.faster, self.reads_order = inner.faster, inner.reads_order
        self._inner, self._owners = inner, owners
        self._allowed, self._fold_of_test = allowed, fold_of_test

    def trivial(self, coalitions: Coalitions) -> AnyArray:
        """Which coalitions need no training, whatever the fold."""
        return self._inner.trivial(self._owners.rows_of(coalitions))

    def train(self, coalitions: Coalitions) -> TrainingOutcome:
        """Train and score coalitions in this process; with folds, once for each fold that has a test row of it."""
        if self._allowed is None or self._fold_of_test is None:
            return self._inner.train(self._owners.rows_of(coalitions))
        cut = FoldCoalitions(coalitions, self._fold_of_test)
        return cut.together(self._inner.train(_only(self._owners.rows_of(cut.coalitions), self._allowed[cut.fold])))


def _only(coalitions: Coalitions, allowed: AnyArray) -> Coalitions:
    """The coalitions without the rows that are not allowed to each."""
    coalition = np.repeat(np.arange(len(coalitions)), np.diff(coalitions.indptr))
    kept = allowed[coalition, coalitions.players]
    indptr = offsets(np.bincount(coalition[kept], minlength=len(coalitions)))
    return Coalitions(indptr, coalitions.players[kept], coalitions.test_indptr, coalitions.tests)
