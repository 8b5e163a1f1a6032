"""Linear models, compiled: least squares, ridge regression and logistic regression, trained to convergence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from localshapley.arrays import Floats, Indices, Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.models.compiled import (
    MAX_PAIRS,
    CompiledTrainer,
    PairwiseTrainer,
    are_class_weights,
    class_weights,
    plain,
)
from localshapley.models.task import Task
from localshapley.models.trees import IS_1_9

if TYPE_CHECKING:
    from localshapley.kernels.ridge_logistic import Rows

FEW_FEATURES = 32
"""Up to so many features, it is as fast to multiply rows as to look products up."""
ROUNDING = 1e-13
"""Singular values up to this share of the largest are rounding errors."""


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and 0 < float(value) < np.inf


def _one_of(*names: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in names


class LeastSquaresTrainer(CompiledTrainer):
    """Linear regression: of all coefficients with the least squared error, the shortest."""

    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        "fit_intercept": lambda value: True,
        "tol": lambda value: isinstance(value, Real),
    }
    irrelevant = frozenset({"copy_X", "n_jobs"})
    kernels = ("fit_least_squares",)
    centres: ClassVar[bool] = True

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None) -> None:
        super().__init__(estimator, task, n_jobs)
        self._intercept = bool(estimator.fit_intercept)
        self._tables = _tables(task, self._intercept)
        # Before 1.9, the tolerance was for sparse rows alone.
        self._least = float(estimator.tol) if IS_1_9 else ROUNDING

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        from localshapley.kernels.least_squares import train_least_squares

        y = plain(self._task.y)
        train_least_squares(coalitions.arrays, todo, self._tables, y, self._least, self._intercept, out)


class LassoTrainer(CompiledTrainer):
    """Lasso and elastic net, by the steps of scikit-learn 1.9: the same solution short of the optimum too."""

    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        "alpha": _is_positive,
        "l1_ratio": lambda value: _is_positive(value) and value <= 1,
        "fit_intercept": lambda value: True,
        "max_iter": lambda value: True,
        "tol": lambda value: isinstance(value, Real),
    }
    irrelevant = frozenset({"copy_X", "random_state", "warm_start"})
    kernels = ("fit_lasso",)
    centres: ClassVar[bool] = True

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None) -> None:
        super().__init__(estimator, task, n_jobs)
        self._intercept = bool(estimator.fit_intercept)
        self._tables = _tables(task, self._intercept)
        alpha, share = float(estimator.alpha), float(getattr(estimator, "l1_ratio", 1.0))
        self._penalty = alpha * share, alpha * (1 - share), float(estimator.tol), int(estimator.max_iter)

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        from localshapley.kernels.lasso import train_lasso

        y = plain(self._task.y)
        train_lasso(coalitions.arrays, todo, self._tables, y, self._penalty, self._intercept, out)


class _LinearTrainer(PairwiseTrainer):
    """What linear models share: rows, and inner products of those that have occurred in coalitions."""

    centres: ClassVar[bool] = True

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None, *, max_pairs: int = MAX_PAIRS) -> None:
        super().__init__(estimator, task, n_jobs, max_pairs=max_pairs)
        self._intercept = bool(estimator.fit_intercept)
        if sparse.issparse(task.X):
            self._rows = _sparse_rows(task)
        else:
            self._rows = _dense_rows(task, self._intercept, self._keeps_pairs)
            self._is_known[:] = self._rows[2].size == 0

    def _learn_pairs(self, rows: Indices, part: Ints) -> None:
        from localshapley.kernels.ridge_logistic import learn_products

        learn_products(self._rows, rows, part)


class RidgeTrainer(_LinearTrainer):
    """Ridge regression, solved directly whatever the solver: iterative ones come within their tolerance of it."""

    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        "alpha": _is_positive,
        "fit_intercept": lambda value: True,
        "solver": _one_of("auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga"),
    }
    irrelevant = frozenset({"copy_X", "max_iter", "random_state", "tol"})
    kernels = ("learn_products", "fit_ridge")

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        from localshapley.kernels.ridge_logistic import train_ridge

        y, penalty = plain(self._task.y), float(self._estimator.alpha)
        train_ridge(coalitions.arrays, todo, self._rows, y, penalty, self._intercept, out)


class RidgeClassifierTrainer(_LinearTrainer):
    """Ridge regression of classes as +1 and −1, solved directly whatever the solver.

    There are no probabilities; scores that read some get the logistic of the margin, or the softmax of the decision
    values, as with scikit-learn's fit.
    """

    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        **RidgeTrainer.settings,
        "class_weight": are_class_weights,
    }
    irrelevant = RidgeTrainer.irrelevant
    kernels = ("learn_products", "fit_ridge_classifier")

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        from localshapley.kernels.decisions import form_of
        from localshapley.kernels.ridge_classes import train_ridge_classifier

        weights = class_weights(self._estimator.class_weight, self._task)
        model = float(self._estimator.alpha), self._intercept, form_of(self._task.score.source)
        train_ridge_classifier(coalitions.arrays, todo, self._rows, self._codes, weights, model, out)


class LogisticTrainer(_LinearTrainer):
    """Logistic regression with an L2 penalty, at its least loss.

    Scikit-learn's solvers stop at a tolerance (`tol`, `max_iter`), so that their coefficients differ from one another
    and from these.
    """

    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        "C": _is_positive,
        "class_weight": are_class_weights,
        "penalty": _one_of("deprecated", "l2"),
        "l1_ratio": lambda value: value is None or value == 0,
        "fit_intercept": lambda value: True,
        "solver": _one_of("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga"),
        "multi_class": _one_of("auto", "deprecated", "multinomial"),
    }
    irrelevant = frozenset({"intercept_scaling", "max_iter", "n_jobs", "random_state", "tol", "verbose", "warm_start"})
    kernels = ("learn_products", "fit_logistic")

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        from localshapley.kernels.ridge_logistic import train_logistic

        penalty = 1 / float(self._estimator.C)
        # One vector of coefficients for two classes is penalised twice as much as the two that add up to nothing.
        both = penalty if getattr(self._estimator, "multi_class", "") == "multinomial" else 2 * penalty
        weights = class_weights(self._estimator.class_weight, self._task)
        train_logistic(coalitions.arrays, todo, self._rows, self._codes, weights, (penalty, both), self._intercept, out)


class LinearSVCTrainer(CompiledTrainer):
    """Linear support vector machines with the squared hinge loss, at their least loss.

    Liblinear stops at a tolerance (`tol`, `max_iter`), so that its coefficients differ a little from these.
    """

    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        "C": _is_positive,
        "class_weight": are_class_weights,
        "dual": lambda value: True,
        "fit_intercept": lambda value: True,
        "intercept_scaling": _is_positive,
    }
    irrelevant = frozenset({"max_iter", "random_state", "tol", "verbose"})
    kernels = ("fit_squared_hinge",)

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None) -> None:
        super().__init__(estimator, task, n_jobs)
        self._C, self._weights = float(estimator.C), class_weights(estimator.class_weight, task)
        scaling = float(estimator.intercept_scaling) if estimator.fit_intercept else 0.0
        X, X_test = (np.column_stack([table, np.full(len(table), scaling)]) for table in _tables(task, False))
        self._tables = plain(X), plain(X_test)

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        from localshapley.kernels.decisions import form_of
        from localshapley.kernels.squared_hinge import train_squared_hinge

        form = form_of(self._task.score.source)
        train_squared_hinge(coalitions.arrays, todo, self._tables, self._codes, self._weights, self._C, form, out)


def _sparse_rows(task: Task) -> Rows:
    """All inner products at once; rows themselves are not needed."""
    X, X_test = (sparse.csr_array(table, dtype=np.float64) for table in (task.X, task.X_test))
    none = np.empty((0, 0))
    return none, none, plain((X @ X.T).toarray()), plain((X_test @ X.T).toarray())


def _dense_rows(task: Task, centred: bool, keeps_pairs: bool) -> Rows:
    """Rows (less their mean, which the intercept makes up for), and room for their products where these are kept."""
    X, X_test = _tables(task, centred)
    keeps = X.shape[1] > FEW_FEATURES and keeps_pairs
    gram, cross = (np.empty((len(table), len(X)) if keeps else (0, 0)) for table in (X, X_test))
    return X, X_test, gram, cross


def _tables(task: Task, centred: bool) -> tuple[Floats, Floats]:
    """Training and test rows, less the mean of the training rows where `centred`."""
    X, X_test = plain(task.X), plain(task.X_test)
    if not centred:
        return X, X_test
    middle = X.mean(axis=0) if task.centre is None else task.centre
    return X - middle, X_test - middle
