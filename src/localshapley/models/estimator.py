"""Any scikit-learn estimator: clone, fit, predict, one coalition after the other."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits

from localshapley.arrays import AnyArray, Floats, Indices
from localshapley.coalitions.batch import Coalitions
from localshapley.errors import TrainingError
from localshapley.models.estimator_checks import (
    counts_rows,
    draws_to_predict,
    final_step,
    has_random_state,
    prepared,
    refuses,
    takes_kernel,
)
from localshapley.models.task import NOTHING, UNKNOWN, Task, one_hot
from localshapley.models.trainer import Counts, Model, Trainer, TrainingOutcome
from localshapley.runtime.dask_cluster import n_processes
from localshapley.runtime.process_settings import caught_warnings
from localshapley.runtime.threads import unthreaded_blas


class Estimator(Model):
    """A scikit-learn classifier or regressor, trained with its own `fit`.

    Parameters
    ----------
    estimator : estimator object
        Anything with `fit` and `predict` that `sklearn.base.clone` can copy, a `Pipeline` included.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> Estimator(DecisionTreeClassifier())
    Estimator(DecisionTreeClassifier())
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def trainer(self, task: Task, n_jobs: int | None = None, *, skip_errors: bool = False) -> EstimatorTrainer:
        """Make the trainer of this model for a task."""
        return EstimatorTrainer(self.estimator, task, n_jobs, skip_errors=skip_errors)

    def __repr__(self) -> str:
        return f"Estimator({self.estimator!r})"


class Refit(Estimator):
    """A pipeline of which every step is fitted on every coalition.

    By default the steps before the last one are fitted once, on all training rows, and coalitions train the last step
    alone, which is much faster. The difference matters where an early step learns from labels (target encoders,
    selection of features) or where what it learns from a few rows is part of what these rows are worth.

    Parameters
    ----------
    estimator : `sklearn.pipeline.Pipeline`, or any other estimator

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> Refit(make_pipeline(StandardScaler(), SVC())).split()[0] is None
    True
    """

    def __repr__(self) -> str:
        return f"Refit({self.estimator!r})"


class EstimatorTrainer(Trainer):
    """Trains clones of an estimator on coalitions of a task's rows, in `n_jobs` processes.

    Parameters
    ----------
    estimator : estimator object
    task : Task
    n_jobs : int, optional
    skip_errors : bool, default=False
        Whether a coalition whose training fails, other than for too few rows, is scored like the empty coalition.
    """

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None, *, skip_errors: bool = False) -> None:
        self.name = f"{type(final_step(estimator)).__name__} (scikit-learn fit)"
        self.n_jobs = n_processes(n_jobs)
        self.is_random = has_random_state(estimator)
        self.reads_order = not counts_rows(estimator)
        self.faster = _faster(estimator, self.n_jobs)
        self.if_silent = "" if task.classes is not None else "where the model diverges, scale the columns of X, and y"
        self._estimator = prepared(estimator, task.seed, alone=True)
        final = final_step(self._estimator)
        if task.classes is not None and final.get_params(deep=False).get("classes", ()) is None:
            # A network has an output for each class, also for those that are not in a coalition.
            final.set_params(classes=task.classes)
        self._task = task
        self._skip_errors = skip_errors
        # Such a model's draws for a row depend on the rows before it, which games, batches and a store choose.
        self._one_by_one = draws_to_predict(self._estimator)

    def train(self, coalitions: Coalitions) -> TrainingOutcome:
        """Train and score coalitions in this process, with one BLAS thread."""
        task = self._task
        outcome = task.outcomes(coalitions.indptr, coalitions.players)
        counts = Counts(trivial=int((outcome != UNKNOWN).sum()))
        prediction = task.room_for(len(coalitions.tests))
        one_thread = threadpool_limits(1, user_api="openmp")  # of this thread; BLAS has one setting for all
        with caught_warnings() as caught, unthreaded_blas(), one_thread, self._alone():
            for c in np.flatnonzero(outcome == UNKNOWN).tolist():
                where = slice(coalitions.test_indptr[c], coalitions.test_indptr[c + 1])
                found = self._predict(coalitions.coalition(c), coalitions.tests_of(c), counts)
                if found is None:
                    outcome[c] = NOTHING
                else:
                    prediction[where] = found
        counts.warnings = Counter(category.__name__ for category in caught)
        per_test = np.diff(coalitions.test_indptr)
        scores, silent = task.score_predictions(coalitions.tests, prediction, np.repeat(outcome, per_test))
        counts.silent = int(silent.sum())
        failed = (outcome == NOTHING) & (np.diff(coalitions.indptr) > 0)
        failed[np.repeat(np.arange(len(coalitions)), per_test)[silent]] = True
        return TrainingOutcome(scores, counts, np.flatnonzero(failed).tolist())

    def trivial(self, coalitions: Coalitions) -> AnyArray:
        """Which coalitions are empty, or of one class."""
        return self._task.is_known(coalitions.indptr, coalitions.players)

    def _alone(self) -> AbstractContextManager[Any]:
        """A context in which estimators do not run in parallel themselves, if coalitions already do."""
        return parallel_config(backend="sequential") if self.n_jobs > 1 else nullcontext()

    def _predict(self, rows: Indices, tests: Indices, counts: Counts) -> Floats | None:
        """Train on rows and predict test rows; None where the model refuses the rows."""
        try:
            model = _fit(self._estimator, self._task, rows)
            return _predict_rows(model, self._task, tests, rows, alone=self._one_by_one)
        except Exception as error:
            if refuses(error):  # "cannot learn from so little"; the whole training set has been tried before
                counts.failed += 1
                counts.first_failure = counts.first_failure or f"{len(rows)} rows: {error}"
                return None
            what = f"{type(error).__name__}: {error}"
            if not self._skip_errors:
                raise TrainingError(f"training on the coalition of rows {rows.tolist()} failed: {what}") from error
            counts.skipped += 1
            counts.first_skipped = counts.first_skipped or f"rows {rows.tolist()}: {what}"
        return None


def _faster(estimator: Any, n_jobs: int) -> str:
    """What would train faster than clones of an estimator."""
    ways = []
    if isinstance(estimator, Pipeline):
        ways.append("the pipeline without Refit, so that only its last step is trained")
    ways.append("a compiled model (docs: concepts/compiled)")
    if n_jobs == 1:
        ways.append("all cores (n_jobs=-1)")
    return ", ".join(ways)


def _fit(estimator: Any, task: Task, rows: Indices) -> Any:
    model = clone(estimator)
    final = final_step(model)
    if isinstance(final, KNeighborsClassifier | KNeighborsRegressor) and final.n_neighbors > len(rows):
        final.set_params(n_neighbors=len(rows))  # fewer than K rows: all of them vote
    return model.fit(_select(model, task.X, rows, rows), task.y[rows])


def _select(model: Any, X: Any, rows: Indices, columns: Indices) -> Any:
    """Rows of a table; of a kernel matrix (for a model that takes one) the columns of the training rows alone."""
    chosen = _safe_indexing(X, rows)
    return _safe_indexing(chosen, columns, axis=1) if takes_kernel(model) else chosen


def _predict_rows(model: Any, task: Task, tests: Indices, rows: Indices, *, alone: bool) -> Floats:
    """Predict test rows, together or each alone; NaN for those that the model refuses."""
    if len(tests) == 1 or not alone:
        try:
            return predict(deepcopy(model) if alone else model, task, _select(model, task.X_test, tests, rows))
        except ValueError:
            if len(tests) == 1:
                return np.full(1 if task.classes is None else (1, task.n_outputs), np.nan)
    return np.concatenate([_predict_rows(model, task, tests[i : i + 1], rows, alone=alone) for i in range(len(tests))])


def predict(model: Any, task: Task, X: Any) -> Floats:
    """Predict in the form that the task's score reads: numbers, or a matrix of one column per class."""
    source = task.score.source
    if task.classes is None:
        return np.asarray(model.predict(X), dtype=np.float64).reshape(-1)
    if source == "label":
        return one_hot(np.searchsorted(task.classes, np.ravel(model.predict(X))), len(task.classes))
    columns = np.searchsorted(task.classes, model.classes_)
    if hasattr(model, "predict_proba"):
        found, out = np.asarray(model.predict_proba(X)), np.zeros((X.shape[0], len(task.classes)))
        if found.shape != (len(out), len(columns)):
            raise TrainingError(
                f"predict_proba of {type(final_step(model)).__name__} must give a column for each of the "
                f"{len(columns)} classes in classes_; for {len(out)} rows it gave an array of shape {found.shape}."
            )
        out[:, columns] = found
        return out
    decision = _decision(model, X)
    if source == "margin":
        # A class that the coalition lacks counts as no better than the worst that it has.
        out = np.repeat(decision.min(axis=1)[:, None], len(task.classes), axis=1)
        out[:, columns] = decision
        return out
    out = np.zeros((X.shape[0], len(task.classes)))
    out[:, columns] = _softmax(decision)
    return out


def _decision(model: Any, X: Any) -> Floats:
    """`decision_function` with one column per class; two classes share one number, half each."""
    decision = np.asarray(model.decision_function(X), dtype=np.float64)
    return decision if decision.ndim == 2 else np.column_stack([-decision / 2, decision / 2])


def _softmax(decision: Floats) -> Floats:
    """Logistic of the margin (for two classes), softmax of the decision values (for more)."""
    weight = np.exp(decision - decision.max(axis=1, keepdims=True))
    share: Floats = weight / weight.sum(axis=1, keepdims=True)
    return share
