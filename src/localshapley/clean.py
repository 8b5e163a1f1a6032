"""Models that clean their training data first: rows found to be harmful are left out, or get less weight."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from localshapley.api import value
from localshapley.arrays import AnyArray, Floats
from localshapley.data.indexes import check_order
from localshapley.errors import InvalidArgumentError, unknown_name, warn
from localshapley.models.dispatch import find_named
from localshapley.models.estimator_checks import check_estimator, final_step, seeded, takes_missing
from localshapley.models.named_models import named
from localshapley.models.pipelines import peel
from localshapley.models.trainer import Model
from localshapley.parameters import documented
from localshapley.runtime.progress import ProgressSetting
from localshapley.valuation import Valuation

ACTIONS = ("drop", "weight")
VALUING = ("support", "budget", "tol", "max_seconds", "n_jobs", "progress")
"""Settings that are arguments of `value`."""


def _has(name: str) -> Any:
    """Whether the model inside has a method."""
    return available_if(
        lambda self: hasattr(self.estimator_ if hasattr(self, "estimator_") else self._estimator(), name)
    )


class _Clean(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    def __init__(
        self,
        estimator: Any,
        *,
        model: Any = None,
        cv: Any = 5,
        action: str = "drop",
        confidence: float = 0.68,
        support: Any = None,
        scoring: Any = None,
        budget: int | None = None,
        tol: float | None = None,
        max_seconds: float | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        progress: ProgressSetting = None,
    ) -> None:
        self.estimator = estimator
        self.model = model
        self.cv = cv
        self.action = action
        self.confidence = confidence
        self.support = support
        self.scoring = scoring
        self.budget = budget
        self.tol = tol
        self.max_seconds = max_seconds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(self, X: Any, y: Any, *, groups: Any = None, **other: Any) -> Any:
        """Value the rows by the folds that they are not in, and train on what does no harm.

        Parameters
        ----------
        X, y
            Rows and labels.
        groups : array of shape (n_rows,), optional
            For splitters that keep rows of a group together, such as ``cv=GroupKFold()``.
        """
        self._check_settings([name for name, given in other.items() if given is not None])
        estimator, judge = self._estimator(), self._judge()
        check_estimator(estimator)
        self._check_kind(estimator)
        if self.action == "weight" and not has_fit_parameter(estimator, "sample_weight"):
            raise InvalidArgumentError(
                f"action='weight' needs a model that takes sample_weight; {type(estimator).__name__} does not: "
                "use action='drop'."
            )
        for note in check_order("y", y, "X", X):
            warn(note)
        if not hasattr(X, "iloc"):
            X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        labels, seed = column_or_1d(y, warn=True), self._seed()
        estimator = seeded(estimator, seed)
        fitted = clone(estimator).fit(X, labels)  # data that the model refuses is refused here
        folds = self._folds(X, labels, groups)
        self.valuation_: Valuation | None = None
        self.kept_: AnyArray = np.ones(len(labels), dtype=bool)
        if folds is not None:
            given = {name: getattr(self, name) for name in VALUING}
            self.valuation_ = value(X, labels, model=judge, cv=folds, score=self.scoring, seed=seed, **given)
            weight = np.ones(len(labels)) if _tells_nothing(self.valuation_) else self._weights(self.valuation_, labels)
            self.kept_ = weight == 1
            if self.action == "weight":
                fitted = clone(estimator).fit(X, labels, sample_weight=weight)
            elif not self.kept_.all():
                kept = np.flatnonzero(self.kept_)
                fitted = clone(estimator).fit(_safe_indexing(X, kept), labels[kept])
        self.estimator_ = fitted
        return self

    def _check_settings(self, other: list[str]) -> None:
        """Refuse what is no setting."""
        if other:
            raise InvalidArgumentError(
                f"fit takes X, y and groups; got {', '.join(other)}. Rows are valued as equals, without weights; leave "
                "them out, or take action='weight', which finds weights by itself."
            )
        if self.action not in ACTIONS:
            raise unknown_name("action", self.action, ACTIONS)
        is_number = isinstance(self.confidence, int | float | np.number)
        if not (is_number and 0 < self.confidence < 1):
            raise InvalidArgumentError(f"confidence must be between 0 and 1; got {self.confidence!r}.")

    def _estimator(self) -> Any:
        """The model inside; a name stands for the one that `value` takes it for."""
        if isinstance(self.estimator, str):
            return named(self.estimator, regression=isinstance(self, RegressorMixin))
        return self.estimator

    def _judge(self) -> Any:
        """What rows are valued with: `model`, behind the steps that prepare the rows for `estimator`."""
        judge, before = self.model, peel(self._estimator())[0]
        if judge is None:
            return self._estimator()
        if isinstance(judge, str):
            judge = find_named(judge, regression=isinstance(self, RegressorMixin))
        inside = judge.estimator if isinstance(judge, Model) else judge
        if before is None or isinstance(inside, Pipeline):
            return judge
        whole = Pipeline([("before", before), ("judge", inside)])
        if inside is judge:
            return whole
        judge = copy(judge)
        judge.estimator = whole
        return judge

    def _seed(self) -> int:
        """One number for all that is random."""
        if isinstance(self.random_state, int | np.integer) and 0 <= self.random_state < 2**32:
            return int(self.random_state)
        try:
            return int(check_random_state(self.random_state).randint(2**31))
        except (TypeError, ValueError):
            raise InvalidArgumentError(
                f"random_state must be a whole number from 0 to 2**32 - 1, a numpy RandomState or None; got "
                f"{self.random_state!r}."
            ) from None

    def _check_kind(self, estimator: Any) -> None:
        """Refuse a regressor where a classifier belongs, and the reverse."""
        if isinstance(self, ClassifierMixin) == is_classifier(estimator):
            return
        kind, fitting = (
            ("classifier", "CleanClassifier") if is_classifier(estimator) else ("regressor", "CleanRegressor")
        )
        raise InvalidArgumentError(
            f"{type(self).__name__} got {type(final_step(estimator)).__name__}, which is a {kind}; use {fitting}."
        )

    def _folds(self, X: Any, labels: AnyArray, groups: Any) -> Any:
        """The folds to value by; None where there are too few rows to tell anything."""
        if hasattr(self.cv, "split") and not isinstance(self.cv, str):
            try:
                return list(self.cv.split(X, labels, groups))
            except (TypeError, ValueError) as error:
                hint = "; give them to fit: fit(X, y, groups=...)" if "groups" in str(error) else ""
                said = str(error).removesuffix(".")
                raise InvalidArgumentError(f"cv={self.cv!r} cannot split the rows: {said}{hint}.") from None
        if groups is not None:
            raise InvalidArgumentError(
                f"groups are for a splitter that keeps groups together, such as cv=GroupKFold(5); got cv={self.cv!r}."
            )
        if not isinstance(self.cv, int | np.integer):
            return self.cv
        most = len(labels)
        if isinstance(self, ClassifierMixin):
            counts = np.unique(labels, return_counts=True)[1]
            if len(counts) < 2 or counts.min() < 2:
                return None
        return min(int(self.cv), most) if most >= 4 else None

    def _weights(self, valuation: Valuation, labels: AnyArray) -> Floats:
        """1 for rows that stay; for harmful rows 0, or less the surer the harm. No class is ever emptied."""
        at_least = harm(valuation) / -norm.ppf((1 - self.confidence) / 2)
        harmful = at_least > 1
        if isinstance(self, ClassifierMixin):
            for label in np.unique(labels):
                own = labels == label
                if harmful[own].all():
                    harmful[np.flatnonzero(own)[np.argmin(at_least[own])]] = False
        elif harmful.all():
            harmful[np.argmin(at_least)] = False
        if self.action == "drop":
            return np.where(harmful, 0.0, 1.0)
        return np.where(harmful, 1 / np.maximum(at_least, 1) ** 2, 1.0)

    def predict(self, X: Any) -> AnyArray:
        """Predict with the model that was trained on the cleaned rows."""
        return self._inside().predict(X)  # type: ignore[no-any-return]

    def _inside(self) -> Any:
        check_is_fitted(self, "estimator_")
        return self.estimator_

    @property
    def feature_names_in_(self) -> AnyArray:
        """Names of the columns seen in training, where they are texts."""
        if not hasattr(self, "estimator_"):
            raise AttributeError(f"{type(self).__name__} has no feature_names_in_ before it is fitted.")
        return self.estimator_.feature_names_in_  # type: ignore[no-any-return]

    @property
    def n_features_in_(self) -> int:
        """Features seen in training."""
        if not hasattr(self, "estimator_"):
            raise AttributeError(f"{type(self).__name__} has no n_features_in_ before it is fitted.")
        return int(self.estimator_.n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags, inside, judge = super().__sklearn_tags__(), get_tags(self._estimator()), self._judge()
        both = self._estimator(), judge.estimator if isinstance(judge, Model) else judge
        tags.input_tags = replace(inside.input_tags, allow_nan=self.support is None and all(map(_takes_gaps, both)))
        tags.classifier_tags = inside.classifier_tags if tags.classifier_tags is not None else None
        tags.regressor_tags = inside.regressor_tags if tags.regressor_tags is not None else None
        tags.array_api_support = False
        return tags


def _takes_gaps(model: Any) -> bool:
    """Whether a model says that it accepts missing values, or fills them in a step before."""
    return takes_missing(model) if isinstance(model, Pipeline) else bool(get_tags(model).input_tags.allow_nan)


def _tells_nothing(valuation: Valuation) -> bool:
    """Whether models learnt nothing from the features, so that values only tell frequent labels from rare; warns."""
    note = next((note for note in valuation.notes if note.code == "supports-too-small-to-split"), None)
    if note is not None:
        warn(f"all rows were kept, as their values say nothing about them: {note} Or value rows with model='knn'.")
    return note is not None


def harm(valuation: Valuation) -> Floats:
    """How many standard errors each value lies below zero.

    The error has two sources: draws of coalitions (`stderr`), and the test rows, which are a sample too.
    """
    assert valuation.stderr_tests is not None
    error = np.hypot(valuation.stderr, valuation.stderr_tests)
    out: Floats = np.divide(-valuation.values, error, out=np.zeros_like(error), where=error > 0)
    return out


@documented
class CleanClassifier(ClassifierMixin, _Clean):  # type: ignore[misc]
    """A classifier that values its training rows by cross-validation, and trains without the harmful ones.

    A row is harmful if the confidence interval of its value lies below zero. The interval allows for the draws of
    coalitions and for the test rows, which are a sample too. `max_seconds` and `progress` are about the valuation,
    which takes nearly all of the time.

    Parameters
    ----------
    estimator : scikit-learn classifier or name
        What is trained on the cleaned rows; names are those of `value`.
    model : scikit-learn classifier or name, optional
        What the rows are valued with; by default `estimator`. ``"knn"`` is exact, quick, and often the better judge.
        If `estimator` is a pipeline, the steps before its last one prepare the rows for `model`, too, unless `model` is
        a pipeline of its own.
    cv : int, splitter or pairs, default=5
        As in `value`; splitters that need groups get those of ``fit(X, y, groups=...)``.
    action : {"drop", "weight"}, default="drop"
        Whether harmful rows are left out, or count less the surer it is that they do harm.
    confidence : float, default=0.68
        Confidence of the intervals; 0.68 is one standard error, 0.95 leaves out only the clearest cases.
    scoring : str or callable, optional
        The score of `value`.
    random_state : int, RandomState or None, default=0
        Seed of the folds, of the draws, and of models that leave theirs open; None takes another one each time.

    Attributes
    ----------
    estimator_ : the model, trained on the cleaned rows
    valuation_ : Valuation of the training rows; None if there were too few to tell
    kept_ : bool array of shape (n_rows,), False for harmful rows
        All rows are kept, with a warning, if models of a few rows learn nothing from the features.
    classes_, n_features_in_, and feature_names_in_ where columns have names

    Examples
    --------
    >>> import localshapley as ls
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> y[::7] = (y[::7] + 1) % 3
    >>> clean = ls.CleanClassifier(KNeighborsClassifier(1))
    >>> bool(cross_val_score(clean, X, y).mean() > cross_val_score(clean.estimator, X, y).mean())
    True
    """

    @property
    def classes_(self) -> AnyArray:
        """The classes seen in training."""
        if not hasattr(self, "estimator_"):
            raise AttributeError("CleanClassifier has no classes_ before it is fitted.")
        return self.estimator_.classes_  # type: ignore[no-any-return]

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes."""
        return self._inside().predict_proba(X)  # type: ignore[no-any-return]

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Decision values of the classes."""
        return self._inside().decision_function(X)  # type: ignore[no-any-return]


class CleanRegressor(RegressorMixin, _Clean):  # type: ignore[misc]
    """A regressor that values its training rows by cross-validation, and trains without the harmful ones.

    Parameters and attributes are those of `CleanClassifier`, without classes.

    Examples
    --------
    >>> import localshapley as ls, numpy as np
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = X[:, 0].copy()
    >>> y[30] = 10
    >>> clean = ls.CleanRegressor(KNeighborsRegressor(3), support=ls.supports.Nearest(6)).fit(X, y)
    >>> np.flatnonzero(~clean.kept_).tolist()
    [30]
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags
