"""Linear models, compiled: ridge regression and logistic regression, trained to convergence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from localshapley.arrays import Floats, Indices, Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.inputs.task import Task
from localshapley.models.compiled import plain
from localshapley.models.pairs import MAX_PAIRS, PairTrainer

if TYPE_CHECKING:
    from localshapley.kernels.linear import Rows

FEW_FEATURES = 32
"""Up to so many features, it is as fast to multiply rows as to look products up."""
MAX_UNKNOWNS = 1024
"""Coalitions with more rows and more features than this are left to scikit-learn, which is as fast there."""


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and 0 < float(value) < np.inf


def _one_of(*names: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in names


class _LinearTrainer(PairTrainer):
    """What linear models share: rows, and inner products of those that have occurred in coalitions."""

    def __init__(self, estimator: Any, task: Task, n_jobs: int | None = None, *, max_pairs: int = MAX_PAIRS) -> None:
        super().__init__(estimator, task, n_jobs, max_pairs=max_pairs)
        self._intercept = bool(estimator.fit_intercept)
        if sparse.issparse(task.X):
            self._rows = _sparse_rows(task)
        else:
            self._rows = _dense_rows(task, self._intercept, self._keeps_pairs)
            self._is_known[:] = self._rows[2].size == 0

    def _learn_pairs(self, rows: Indices, part: Ints) -> None:
        from localshapley.kernels.linear import learn_products

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
        from localshapley.kernels.linear import train_ridge

        y, penalty = plain(self._task.y), float(self._estimator.alpha)
        train_ridge(coalitions.arrays, todo, self._rows, y, penalty, self._intercept, out)


class LogisticTrainer(_LinearTrainer):
    """Logistic regression with an L2 penalty, at its least loss.

    Scikit-learn's solvers stop at a tolerance (`tol`, `max_iter`), so that their coefficients differ from one another
    and from these.
    """

    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        "C": _is_positive,
        "penalty": _one_of("deprecated", "l2"),
        "l1_ratio": lambda value: value is None or value == 0,
        "fit_intercept": lambda value: True,
        "solver": _one_of("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga"),
        "multi_class": _one_of("auto", "deprecated", "multinomial"),
    }
    irrelevant = frozenset({"intercept_scaling", "max_iter", "n_jobs", "random_state", "tol", "verbose", "warm_start"})
    kernels = ("learn_products", "fit_logistic")

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        from localshapley.kernels.linear import train_logistic

        penalty = 1 / float(self._estimator.C)
        # One vector of coefficients for two classes is penalised twice as much as the two that add up to nothing.
        both = penalty if getattr(self._estimator, "multi_class", "") == "multinomial" else 2 * penalty
        train_logistic(coalitions.arrays, todo, self._rows, self._codes, (penalty, both), self._intercept, out)


def _sparse_rows(task: Task) -> Rows:
    """All inner products at once; rows themselves are not needed."""
    X, X_test = (sparse.csr_array(table, dtype=np.float64) for table in (task.X, task.X_test))
    none = np.empty((0, 0))
    return none, none, plain((X @ X.T).toarray()), plain((X_test @ X.T).toarray())


def _dense_rows(task: Task, centred: bool, keeps_pairs: bool) -> Rows:
    """Rows (less their mean, which the intercept makes up for), and room for their products where these are kept."""
    X, X_test = plain(task.X), plain(task.X_test)
    if centred:
        middle = X.mean(axis=0)
        X, X_test = X - middle, X_test - middle
    keeps = X.shape[1] > FEW_FEATURES and keeps_pairs
    gram, cross = (np.empty((len(table), len(X)) if keeps else (0, 0)) for table in (X, X_test))
    return X, X_test, gram, cross
