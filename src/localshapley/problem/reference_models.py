"""Reference models: trained on all rows, so that supports can be found, data are refused and their skill is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from localshapley.arrays import AnyArray, Indices, Ints
from localshapley.data.rows import encode
from localshapley.models.estimator_checks import check_decisions, final_step, predict, train_reference
from localshapley.models.skill import Skill, classifier_skill, regressor_skill
from localshapley.models.task import Task
from localshapley.notes import Note
from localshapley.runtime.progress import ProgressSetting, telling
from localshapley.search.nearest_rows import metric_for
from localshapley.supports.base import Support
from localshapley.supports.nearest import Nearest

MAX_PREDICTED = 2000
"""Maximum number of test rows that reference models predict; more would hardly say better how good the model is."""


MAX_REFERENCE = 20_000
"""Maximum number of rows that a reference model is trained on where supports do not read what it has learnt."""


Trial: TypeAlias = tuple[AnyArray, AnyArray, AnyArray]
"""Of some test rows: what is true, what a reference model predicts, and the best constant guess of its rows."""


def train_on_rows(support: Support, task: Task, estimator: Any, progress: ProgressSetting) -> Any:
    """Train the model on all rows, of many on a random sample if supports do not read what it has learnt."""
    X, y = task.X, task.y
    if holds_neighbours(support, task, estimator):  # what it predicts is read from the supports
        X, y = X[:MAX_REFERENCE], y[:MAX_REFERENCE]
    elif is_sampled(support, task, estimator):
        rows = _sample_of_rows(task, MAX_REFERENCE)
        X, y = _safe_indexing(X, rows), y[rows]
    where = f", {task.fold}" if task.fold else ""
    with telling(progress, f"training {type(final_step(estimator)).__name__} on {len(y):,} rows{where}"):
        reference = train_reference(estimator, X, y, task.seed, task.fold)
    if task.score.source in ("proba", "margin"):
        check_decisions(reference, task.score.name)
    return reference


def reads_reference(support: Support, estimator: Any) -> bool:
    """Whether supports need a trained model, and not only to know how good it is."""
    return isinstance(estimator, Pipeline) or support.reads_model


def is_sampled(support: Support, task: Task, estimator: Any) -> bool:
    """Whether the reference model is trained on a sample of the rows."""
    is_slow = not isinstance(estimator, KNeighborsClassifier | KNeighborsRegressor)
    return len(task.y) > MAX_REFERENCE and is_slow and not reads_reference(support, estimator)


JUDGED_ON_SAMPLE = Note(
    "judged-on-sample",
    f"how good the model is was judged after training on a sample of {MAX_REFERENCE:,} rows, not on all; "
    "supports and values do not depend on it.",
    n_rows=MAX_REFERENCE,
)


def holds_neighbours(support: Support, task: Task, estimator: Any) -> bool:
    """Whether the supports of many rows hold what a neighbours model predicts from, so that one search does for both:
    they are the nearest rows by its distance, and at least as many as it asks.
    """
    if not isinstance(estimator, KNeighborsClassifier | KNeighborsRegressor) or len(task.y) <= MAX_REFERENCE:
        return False
    if not isinstance(support, Nearest) or support.standardise or support.approximate:
        return False
    if min(support.n, support.max_size or support.n) < estimator.n_neighbors:
        return False
    name, params = metric_for(support.metric, support.metric_params)
    other, others = metric_for(estimator.metric, {"p": estimator.p, **(estimator.metric_params or {})})
    alike = name == other and params.keys() == others.keys()
    return alike and all(np.array_equal(params[key], others[key]) for key in params)


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


def try_out_near(estimator: Any, task: Task, most: int, supports: Sequence[Indices]) -> Trial:
    """The same of a neighbours model whose supports hold its neighbours, nearest first: none is searched again."""
    tests = sampled(np.arange(len(task.y_test)), most, task.seed)
    if estimator.weights == "uniform":
        nearest = np.stack([supports[t][: estimator.n_neighbors] for t in tests.tolist()])
        return as_trial(_voted(nearest, task), task, tests)
    rows = np.unique(np.concatenate([supports[t] for t in tests.tolist()]))
    near = clone(estimator).fit(_safe_indexing(task.X, rows), task.y[rows])
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


def skill_of(trials: Sequence[Trial], task: Task) -> Skill | None:
    """How good the reference models are together; None if they have predicted next to nothing."""
    if sum(len(truth) for truth, _, _ in trials) < 2:
        return None
    truth, predicted, guessed = (np.concatenate(parts) for parts in zip(*trials, strict=True))
    if task.classes is None or task.codes is None:
        return regressor_skill(truth, predicted, guessed)
    return classifier_skill(truth, predicted, guessed, str(task.classes[np.bincount(task.codes).argmax()]))
