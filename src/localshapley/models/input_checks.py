"""Rows, labels, model and score, checked and in one form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.neighbors import RadiusNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from localshapley.arrays import Floats, Ints
from localshapley.data.folds import Fold, classes_to_drop, make_folds, named, order_of_tests
from localshapley.data.row_digests import Digests
from localshapley.data.rows import Data, known_table, read_data
from localshapley.errors import InvalidArgumentError
from localshapley.formatting import counted
from localshapley.models.dispatch import as_model
from localshapley.models.estimator_checks import final_step, fitting, gives_probabilities, takes_kernel
from localshapley.models.fixed_trees import Fixed
from localshapley.models.pipelines import (
    as_column,
    holds_texts,
    of_column,
)
from localshapley.models.task import Task, make_task
from localshapley.models.trainer import Model
from localshapley.notes import Note


@dataclass(frozen=True)
class CheckedInput:
    """Checked arguments, in one form; test rows of folds are in ascending order.

    Attributes
    ----------
    task : Task
    model : Model
    ids : pandas Index or None
    told : list of Note
        What the user should know, found on the way.
    remarks, digests : callable
        Give what else the user should know about the tables, and what rows are recognised by.
    folds : list of folds, optional
    oob : bool
    kept : int array, optional
        The rows that are valued, where rare classes were left out.
    """

    task: Task
    model: Model
    ids: pd.Index | None
    told: list[Note]
    remarks: Callable[[], list[Note]]
    digests: Callable[[], Digests]
    folds: list[Fold] | None = None
    oob: bool = False
    kept: Ints | None = None

    @property
    def notes(self) -> list[Note]:
        """All that the user should know."""
        return [*self.told, *self.remarks()]


def check(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    model: Any,
    cv: Any = None,
    score: Any = None,
    empty: float | None = None,
    seed: int = 0,
    least_classes: int = 2,
    rare: str = "raise",
) -> CheckedInput:
    """Check rows, labels, model and score, and convert them to one form."""
    if cv is not None and (X_test is not None or y_test is not None):
        raise InvalidArgumentError("give either X_test and y_test, or cv; with cv the rows test each other.")
    inside = model.estimator if isinstance(model, Model) else model
    if isinstance(inside, Pipeline) and holds_texts(X):
        X, X_test = as_column(X), as_column(X_test) if holds_texts(X_test) else X_test
        model = of_column(model) if inside is model else type(model)(of_column(inside))
    data = read_data(X, y, X_test, y_test, alone=cv is not None)
    chosen, notes = as_model(model, data.y)
    estimator, folds, oob, kept = chosen.estimator, None, isinstance(cv, str) and cv == "oob", None
    if rare == "drop" and isinstance(cv, int | np.integer) and is_classifier(estimator):
        data, kept = _without_rare(data)
    if oob:
        if not isinstance(chosen, Fixed):
            raise InvalidArgumentError(
                "cv='oob' needs trees that are grown once, such as model=models.Fixed(RandomForestClassifier()); for "
                "other models give a number of folds, such as cv=5."
            )
        data = replace(data, X_test=data.X, y_test=data.y)
    elif cv is not None:
        if takes_kernel(estimator):
            raise InvalidArgumentError(
                "cv is not supported by models that take a precomputed kernel; give X_test and y_test."
            )
        folds = make_folds(cv, data.y, classifier=is_classifier(estimator), seed=seed)
        tests = np.sort(np.concatenate([test for _, test in folds]))
        data = replace(data, X_test=_safe_indexing(data.X, tests), y_test=data.y[tests])
    data = fitting(data, estimator)
    task, more = make_task(
        data,
        classifies=is_classifier(estimator),
        has_proba=gives_probabilities(estimator),
        score=chosen.score if score is None else score,
        empty=empty,
        seed=seed,
        is_sure_alone=not isinstance(final_step(estimator), RadiusNeighborsClassifier),
        least_classes=least_classes,
    )
    if task.classes is None and (oob or folds is not None):
        task = replace(task, guesses=_guesses(task.y, folds))
    labels = data.y

    @cache
    def digests() -> Digests:
        if kept is None:
            return Digests.of(known_table(X), y)
        return Digests.of(_safe_indexing(known_table(X), kept), labels)

    return CheckedInput(task, chosen, data.ids, notes + more + data.notes, data.remarks, digests, folds, oob, kept)


def _guesses(y: Floats, folds: list[Fold] | None) -> Floats:
    """For each test row the mean of `y` over the rows that may teach about it: outside its fold, or all but itself."""
    if folds is None:
        others: Floats = (y.sum() - y) / max(len(y) - 1, 1)
        return others
    means = np.array([y[train].mean() for train, _ in folds])
    return np.repeat(means, [len(test) for _, test in folds])[order_of_tests(folds)]


def _without_rare(data: Data) -> tuple[Data, Ints | None]:
    """The rows without those of classes that have one row, and which these are; None if they are all."""
    rare = classes_to_drop(data.y)
    kept = np.flatnonzero(~np.isin(data.y, rare)).astype(np.int64)
    if not rare:
        return data, None
    ids = pd.Index(kept, name="row") if data.ids is None else data.ids[kept]
    text = f"left out {counted(len(rare), 'row')} whose class no other row has: {named(rare)}."
    note = Note("rare-classes-left-out", text, n_rows=len(rare), classes=rare[:5])
    return replace(data, X=_safe_indexing(data.X, kept), y=data.y[kept], ids=ids, notes=[*data.notes, note]), kept
