"""Pipelines: what comes before the last step is fitted once, and the last step is what coalitions train."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags

from localshapley.arrays import AnyArray
from localshapley.data.rows import are_numbers, as_array
from localshapley.errors import RefusedByModelError
from localshapley.models.estimator_checks import about_columns, final_step, on_one_line, rows_in_words, seeded
from localshapley.models.task import Task
from localshapley.notes import Note
from localshapley.runtime.process_settings import caught_warnings


def peel(estimator: Any) -> tuple[Pipeline | None, Any]:
    """The steps before the last one, as one pipeline, and the last one; None if there are none before it.

    A pipeline within a pipeline, or within a `TransformedTargetRegressor`, is taken apart as well. Subclasses of
    `Pipeline` may do anything, and stay whole.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> peel(make_pipeline(StandardScaler(), SVC()))
    (Pipeline(steps=[('standardscaler', StandardScaler())]), SVC())
    >>> peel(SVC())
    (None, SVC())
    """
    if type(estimator) is TransformedTargetRegressor:
        before, last = peel(estimator.regressor)
        return before, estimator if before is None else clone(estimator).set_params(regressor=last)
    if type(estimator) is not Pipeline:
        return None, estimator
    *steps, (_, step) = estimator.steps
    inner, last = peel(step)
    if not steps:
        return inner, last
    outer = Pipeline(steps)
    return outer if inner is None else Pipeline([("before", outer), ("then", inner)]), last


def transformed(task: Task, before: Pipeline) -> Task:
    """The task behind the steps, which are fitted on its training rows as `Pipeline.fit` does."""
    try:
        with caught_warnings():
            fitted = seeded(before, task.seed)
            X = fitted.fit_transform(task.X, task.y)
            X_test = fitted.transform(task.X_test)
    except (ValueError, TypeError) as error:
        raise RefusedByModelError(
            f"the steps before the model, {on_one_line(before)}, cannot be trained on {rows_in_words(task.fold)}: "
            f"{error}{about_columns(task.X)}"
        ) from error
    return replace(task, X=as_table(X), X_test=as_table(X_test))


def names_of_steps(before: Pipeline) -> str:
    """The steps, by their classes: "SimpleImputer and StandardScaler", without what only hands texts on."""
    *names, last = [type(step).__name__ for _, step in flat(before) if type(step) is not TextColumn] or ["nothing"]
    return f"{', '.join(names)} and {last}" if names else last


def steps_that_read_labels(before: Pipeline, task: Task, n_rows: int = 300) -> list[str]:
    """Names of the steps that learn from labels, such as target encoders and selectors of features.

    Those that say so, and those that give other rows if they are fitted with labels shuffled; a few rows are enough.
    """
    random = np.random.default_rng(task.seed)
    rows = np.sort(random.permutation(len(task.y))[:n_rows])
    X, y = _safe_indexing(task.X, rows), task.y[rows]
    found: list[str] = []
    for _, step in flat(seeded(before, task.seed)):
        try:
            with caught_warnings():
                shuffled = clone(step).fit_transform(X, random.permutation(y))
                X = step.fit_transform(X, y)
                reads = _needs_labels(step) or not _equal(X, shuffled)
        except Exception:  # such as too few rows for it; then its word is taken
            return found + [type(step).__name__] * _needs_labels(step)
        found += [type(step).__name__] * reads
    return found


def flat(pipeline: Pipeline) -> list[tuple[str, Any]]:
    """All steps that do something, also those of pipelines within it."""
    found = []
    for name, step in pipeline.steps:
        if isinstance(step, Pipeline):
            found += flat(step)
        elif hasattr(step, "fit"):
            found.append((name, step))
    return found


def _needs_labels(step: Any) -> bool:
    """Whether a step, or an estimator inside it, says that it needs labels to be fitted."""
    inside = [value for value in step.get_params(deep=True).values() if hasattr(value, "fit")]
    return any(get_tags(one).target_tags.required for one in [step, *inside])


def _equal(one: Any, two: Any) -> bool:
    """Whether two tables have the same contents."""
    if one.shape != two.shape:
        return False
    if sparse.issparse(one):
        return bool(abs(one - two).nnz == 0)
    return pd.DataFrame(np.asarray(one)).equals(pd.DataFrame(np.asarray(two)))


def as_table(found: Any) -> Any:
    """What a step gives, as an array where it can be one, else as it is."""
    if sparse.issparse(found):
        return sparse.csr_matrix(found)
    if isinstance(found, pd.DataFrame):
        return as_array("X", found) if are_numbers(found) else found
    if hasattr(found, "to_pandas"):  # polars
        return as_table(found.to_pandas())
    found = np.asarray(found)
    return found if found.ndim == 2 else found.reshape(len(found), -1)


def note_on_steps(before: Pipeline, estimator: Any, *, folds: bool) -> Note:
    """What a reader of the values should know about the steps."""
    rows = "the training rows of each fold" if folds else "all training rows"
    names = names_of_steps(before)
    text = (
        f"{names} before {type(final_step(estimator)).__name__} {'were' if ' and ' in names else 'was'} fitted once, "
        f"on {rows}; models.Refit(pipeline) fits every step on every coalition."
    )
    return Note("steps-fitted-once", text, steps=names, in_folds=folds)


def warning_on_labels(before: Pipeline, task: Task) -> Note | None:
    """What to say of steps that read labels; None if none does."""
    readers = steps_that_read_labels(before, task)
    if not readers:
        return None
    text = (
        f"{' and '.join(readers)} in the pipeline learns from labels: fitted once on all rows, it tells every "
        "coalition about labels of rows that it does not hold. models.Refit(pipeline) fits it on every coalition."
    )
    return Note("steps-read-labels", text, steps=readers)


class TextColumn(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Takes the texts out of a table of one column, for a vectoriser."""

    def fit(self, X: Any, y: Any = None) -> TextColumn:
        """Nothing to learn."""
        return self

    def transform(self, X: pd.DataFrame) -> AnyArray:
        """One text per row."""
        return X.iloc[:, 0].to_numpy()

    def __sklearn_is_fitted__(self) -> bool:
        return True


def holds_texts(X: Any) -> bool:
    """Whether there is one text per row, and no table."""
    listed = isinstance(X, list | tuple | np.ndarray | pd.Series)
    return listed and len(X) > 0 and all(isinstance(text, str) for text in X)


def as_column(texts: Any) -> Any:
    """Texts as a table of one column, with their index if they have one."""
    return texts.to_frame("text") if isinstance(texts, pd.Series) else pd.DataFrame({"text": np.asarray(texts, object)})


def of_column(pipeline: Any) -> Any:
    """A pipeline of texts, made to take a table of one column."""
    return Pipeline([("text", TextColumn()), *pipeline.steps])
