"""Reference models: trained on all rows, so that supports can be found and their skill is known."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from localshapley.arrays import AnyArray, Indices, Ints
from localshapley.inputs.data import encode
from localshapley.inputs.model import (
    final_step,
    predict,
    train_reference,
)
from localshapley.inputs.task import Task
from localshapley.models.skill import Skill, classifier_skill, regressor_skill
from localshapley.notes import Note
from localshapley.progress import ProgressSetting, telling
from localshapley.supports.base import Support
from localshapley.supports.default import default_support

MAX_PREDICTED = 2000
"""Maximum number of test rows that reference models predict; more would hardly say better how good the model is."""


MAX_REFERENCE = 20_000
"""Maximum number of rows that a reference model is trained on where supports do not read what it has learnt."""


JUDGED_ON_SAMPLE = Note(
    "judged-on-sample",
    f"how good the model is was judged after training on a sample of {MAX_REFERENCE:,} rows, not on all; supports and "
    "values do not depend on it.",
    n_rows=MAX_REFERENCE,
)

Trial: TypeAlias = tuple[AnyArray, AnyArray, AnyArray]
"""Of some test rows: what is true, what a reference model predicts, and the best constant guess of its rows."""


def train_on_rows(
    support: Support | None, task: Task, estimator: Any, notes: list[Note], progress: ProgressSetting, where: str
) -> Any:
    """Train the model on all rows, of many on a random sample if supports do not read what it has learnt."""
    X, y = task.X, task.y
    is_slow = not isinstance(estimator, KNeighborsClassifier | KNeighborsRegressor)
    if searches_once(support, task, estimator):  # it is trained again on the rows that its predictions depend on
        X, y = X[:MAX_REFERENCE], y[:MAX_REFERENCE]
    elif len(y) > MAX_REFERENCE and is_slow and not needs_reference(support, estimator):
        rows = _sample_of_rows(task, MAX_REFERENCE)
        X, y = _safe_indexing(X, rows), y[rows]
        notes.append(JUDGED_ON_SAMPLE)
    with telling(progress, f"training {type(final_step(estimator)).__name__} on {len(y):,} rows{where}"):
        return train_reference(estimator, X, y, task.seed, task.fold)


def needs_reference(support: Support | None, estimator: Any) -> bool:
    """Whether supports need a trained model, and not only to know how good it is."""
    return isinstance(estimator, Pipeline) or (support or default_support(estimator)[0]).reads_model


def searches_once(support: Support | None, task: Task, estimator: Any) -> bool:
    """Whether the supports of many rows hold what a neighbours model predicts from, so that one search does for both.

    The support is then the one that belongs to the model: its nearest rows, twice as many as it asks.
    """
    by_neighbours = isinstance(estimator, KNeighborsClassifier | KNeighborsRegressor)
    return support is None and by_neighbours and len(task.y) > MAX_REFERENCE


def _sample_of_rows(task: Task, n: int) -> Ints:
    """Random rows, with the first one of every class."""
    rows = np.random.default_rng(task.seed).permutation(len(task.y))[:n]
    if task.codes is not None:
        rows = np.union1d(rows, np.unique(task.codes, return_index=True)[1])
    return np.sort(rows)


def try_out(reference: Any, task: Task, most: int) -> Trial:
    """Have a reference model predict test rows, of many a random sample."""
    tests = sampled(np.arange(len(task.y_test)), most, task.seed)
    return as_trial(predict(reference, _safe_indexing(task.X_test, tests)), task, tests)


def try_out_near(reference: Any, task: Task, most: int, supports: list[Indices]) -> Trial:
    """The same of a neighbours model whose supports hold its neighbours, nearest first: none is searched again."""
    tests = sampled(np.arange(len(task.y_test)), most, task.seed)
    if reference.weights == "uniform":
        nearest = np.stack([supports[t][: reference.n_neighbors] for t in tests.tolist()])
        return as_trial(_voted(nearest, task), task, tests)
    rows = np.unique(np.concatenate([supports[t] for t in tests.tolist()]))
    near = clone(reference).fit(_safe_indexing(task.X, rows), task.y[rows])
    return as_trial(predict(near, _safe_indexing(task.X_test, tests)), task, tests)


def _voted(nearest: Indices, task: Task) -> AnyArray:
    """The most frequent class of each line of rows, the first of several, or their mean."""
    if task.classes is None or task.codes is None:
        mean: AnyArray = task.y[nearest].mean(axis=1)
        return mean
    votes = np.zeros((len(nearest), len(task.classes)))
    np.add.at(votes, (np.arange(len(nearest))[:, None], task.codes[nearest]), 1)
    voted: AnyArray = task.classes[votes.argmax(axis=1)]
    return voted


def sampled(tests: Ints, most: int, seed: int) -> Ints:
    """The test rows or, of many, a random sample."""
    if len(tests) <= most:
        return tests
    return np.sort(np.random.default_rng(seed).choice(tests, most, replace=False))


def as_trial(predicted: AnyArray, task: Task, tests: Ints) -> Trial:
    """Predictions beside what is true, and a constant guess."""
    if task.classes is None or task.codes is None:
        return task.y_test[tests], predicted.astype(np.float64), task.guess(tests)
    codes, _ = encode(predicted, task.classes)
    return task.y_test[tests], codes, np.full(len(tests), np.bincount(task.codes).argmax())


def skill_of(trials: list[Trial], task: Task) -> Skill | None:
    """How good the reference models are together; None if they have predicted next to nothing."""
    if sum(len(truth) for truth, _, _ in trials) < 2:
        return None
    truth, predicted, guessed = (np.concatenate(parts) for parts in zip(*trials, strict=True))
    if task.classes is None or task.codes is None:
        return regressor_skill(truth, predicted, guessed)
    return classifier_skill(truth, predicted, guessed, str(task.classes[np.bincount(task.codes).argmax()]))
