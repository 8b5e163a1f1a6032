"""Any scikit-learn estimator, as it is: clone, fit, predict, one coalition after the other."""

from __future__ import annotations

import warnings
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from threadpoolctl import threadpool_limits

from localshapley.arrays import AnyArray, Floats, Indices
from localshapley.coalitions.batch import Coalitions
from localshapley.errors import TrainingError
from localshapley.inputs.task import Task
from localshapley.models.trainer import Trained


class Estimator:
    """A scikit-learn classifier or regressor that is trained the plain way.

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


class EstimatorTrainer:
    """Trains clones of an estimator on coalitions of a task's rows, in `n_jobs` processes.

    Attributes
    ----------
    name : str
    n_jobs : int
    n_trivial, n_failed, n_silent, n_skipped, first_failure, first_skipped, warnings
        What happened so far, as in `Trained`.
    """

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None, *, skip_errors: bool = False) -> None:
        self.name = f"{type(final_step(estimator)).__name__} (scikit-learn fit)"
        self.n_jobs = effective_n_jobs(n_jobs)
        self._estimator = seeded(estimator, task.seed)
        self._task = task
        self._skip_errors = skip_errors
        self.n_trivial = self.n_failed = self.n_silent = self.n_skipped = 0
        self.first_failure = self.first_skipped = ""
        self.warnings: Counter[str] = Counter()

    def evaluate(self, coalitions: Coalitions) -> Floats:
        """Train and score every coalition; returns one number for each of its test rows, flat."""
        parts = coalitions.parts(1 if self.n_jobs == 1 else 4 * self.n_jobs)
        results = Parallel(self.n_jobs)(delayed(self.train)(part) for part in parts)
        for trained in results:
            self.count(trained)
        return np.concatenate([trained.scores for trained in results])

    def count(self, trained: Trained) -> None:
        """Add up what happened."""
        self.n_trivial += trained.n_trivial
        self.n_failed += trained.n_failed
        self.n_silent += trained.n_silent
        self.n_skipped += trained.n_skipped
        self.first_failure = self.first_failure or trained.first_failure
        self.first_skipped = self.first_skipped or trained.first_skipped
        self.warnings.update(trained.warnings)

    def _alone(self) -> AbstractContextManager[Any]:
        """A context in which estimators do not spread their own work, where coalitions are spread already."""
        return parallel_config(backend="sequential") if self.n_jobs > 1 else nullcontext()

    def train(self, coalitions: Coalitions) -> Trained:
        """Train and score coalitions in this process, with one BLAS thread."""
        task = self._task
        result = Trained(np.empty(len(coalitions.tests)))
        with warnings.catch_warnings(record=True) as caught, threadpool_limits(1), self._alone():
            warnings.simplefilter("always")
            for c in range(len(coalitions)):
                rows, tests = coalitions.coalition(c), coalitions.tests_of(c)
                where = slice(coalitions.test_indptr[c], coalitions.test_indptr[c + 1])
                known = _known_outcome(task, rows, tests)
                if known is not None:
                    result.n_trivial += 1
                    result.scores[where] = known
                    continue
                try:
                    model = _fit(self._estimator, task, rows)
                    result.scores[where], silent = _score_rows(model, task, tests, rows)
                    result.n_silent += silent
                    if silent:
                        result.stand_ins.append(c)
                    continue
                except ValueError as error:
                    # Scikit-learn's word for "cannot learn from so little"; the whole training set was tried before.
                    result.n_failed += 1
                    result.first_failure = result.first_failure or f"{len(rows)} rows: {error}"
                except TrainingError:
                    raise
                except Exception as error:
                    if not self._skip_errors:
                        raise TrainingError(
                            f"training on the coalition of rows {rows.tolist()} failed: {type(error).__name__}: {error}"
                        ) from error
                    result.n_skipped += 1
                    result.first_skipped = result.first_skipped or (
                        f"rows {rows.tolist()}: {type(error).__name__}: {error}"
                    )
                result.scores[where] = task.score_nothing_learnt(tests)
                result.stand_ins.append(c)
        result.warnings = Counter(w.category.__name__ for w in caught)
        return result


def _known_outcome(task: Task, rows: Indices, tests: Indices) -> Floats | None:
    """Scores of a coalition whose model is known without training it."""
    if len(rows) == 0:
        return task.score_nothing_learnt(tests)
    if task.codes is not None and (task.codes[rows] == task.codes[rows[0]]).all():
        return task.score_one_class(int(task.codes[rows[0]]), tests)
    return None


def _fit(estimator: Any, task: Task, rows: Indices) -> Any:
    model = clone(estimator)
    final = final_step(model)
    if isinstance(final, KNeighborsClassifier | KNeighborsRegressor) and final.n_neighbors > len(rows):
        final.set_params(n_neighbors=len(rows))  # fewer than K rows: all of them vote
    return model.fit(_select(model, task.X, rows, rows), task.y[rows])


def _select(model: Any, X: Any, rows: Indices, columns: Indices) -> Any:
    """Rows of a table; of a kernel matrix (for a model that takes one) the columns of the training rows alone."""
    chosen = _safe_indexing(X, rows)
    return _safe_indexing(chosen, columns, axis=1) if get_tags(model).input_tags.pairwise else chosen


def _score_rows(model: Any, task: Task, tests: Indices, rows: Indices) -> tuple[Floats, int]:
    """Score test rows; those that the model has no answer for count as nothing learnt, and are counted."""
    try:
        prediction = predict(model, task, _select(model, task.X_test, tests, rows))
    except ValueError:
        if len(tests) == 1:
            return task.score_nothing_learnt(tests), 1
        one_by_one = [_score_rows(model, task, tests[i : i + 1], rows) for i in range(len(tests))]
        return np.concatenate([scores for scores, _ in one_by_one]), sum(silent for _, silent in one_by_one)
    answered = np.isfinite(prediction).reshape(len(tests), -1).all(axis=1)
    scores = task.score_nothing_learnt(tests)
    scores[answered] = task.score(task.y_test[tests[answered]], prediction[answered])
    return scores, int((~answered).sum())


def predict(model: Any, task: Task, X: Any) -> Floats:
    """Predict in the form that the task's score reads: numbers, or a matrix of one column per class."""
    source = task.score.source
    if task.classes is None:
        return np.asarray(model.predict(X), dtype=np.float64).reshape(-1)
    if source == "label":
        return _one_hot(np.searchsorted(task.classes, model.predict(X)), len(task.classes))
    columns = np.searchsorted(task.classes, model.classes_)
    if hasattr(model, "predict_proba"):
        out = np.zeros((X.shape[0], len(task.classes)))
        out[:, columns] = model.predict_proba(X)
        return out
    decision = _decision(model, X)
    if source == "margin":
        # A class that the coalition lacks is taken for no better than the worst that it has.
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


def _one_hot(codes: AnyArray, n_classes: int) -> Floats:
    out = np.zeros((len(codes), n_classes))
    out[np.arange(len(codes)), codes] = 1
    return out


def final_step(estimator: Any) -> Any:
    """The estimator itself, or the last step of a pipeline."""
    return final_step(estimator.steps[-1][1]) if isinstance(estimator, Pipeline) else estimator


def seeded(estimator: Any, seed: int) -> Any:
    """A clone whose open random states are set, so that a coalition always gives the same model."""
    model = clone(estimator)
    open_states = {
        name: seed
        for name, value in model.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    }
    return model.set_params(**open_states)
