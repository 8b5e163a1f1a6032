"""Support vector machines: inner products of rows once, libsvm's steps for every coalition."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.linalg.blas import ddot
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from localshapley.arrays import Floats, Indices, Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.models.compiled import MAX_PAIRS, PairwiseTrainer, Usable, are_class_weights, class_weights, plain
from localshapley.models.estimator import predict
from localshapley.models.task import Task

if TYPE_CHECKING:
    from localshapley.kernels.gram import Kernel, Rows
    from localshapley.kernels.svm import Family

KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and 0 < float(value) < np.inf


class _MachineTrainer(PairwiseTrainer):
    """What classification and regression share: the kernel and the pairs of rows.

    A pair is computed when its rows have occurred in coalitions, and kept: as a kernel value where gamma is given, as
    an inner product or squared distance where it depends on the coalition (`gamma="scale"`).

    Parameters
    ----------
    estimator, task, n_jobs, max_pairs
    max_rows : int
        Larger coalitions are left to scikit-learn: a matrix of their own would take much memory and gain little time.
    exact_features : int
        Up to so many features, `gamma="scale"` of the RBF kernel has the last bit that scikit-learn has, so that
        decisions which hang on rounding, between rows of a few whole numbers, are the same; beyond, it would cost too
        much time.
    """

    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        "C": _is_positive,
        "kernel": lambda kernel: isinstance(kernel, str) and kernel in KERNELS,
        "degree": lambda degree: True,
        "gamma": lambda gamma: gamma in ("scale", "auto") if isinstance(gamma, str) else isinstance(gamma, Real),
        "coef0": lambda coef0: True,
        "tol": _is_positive,
        "shrinking": lambda shrinking: True,
    }
    irrelevant = frozenset({"cache_size", "random_state", "verbose"})
    kernels: tuple[str, ...] = ("sum_own", "learn_pairs", "sum_squares", "fast_variances")

    def __init__(
        self,
        estimator: Any,
        task: Task,
        n_jobs: int | None = None,
        *,
        max_pairs: int = MAX_PAIRS,
        max_rows: int = 2048,
        exact_features: int = 64,
    ) -> None:
        from localshapley.kernels import gram

        super().__init__(estimator, task, n_jobs, max_pairs=max_pairs)
        self._max_rows = max_rows
        kinds = {"poly": gram.POLYNOMIAL, "rbf": gram.RBF, "sigmoid": gram.SIGMOID}
        kind = kinds.get(estimator.kernel, gram.LINEAR)
        self._gamma: float | None = 1.0 if kind == gram.LINEAR else _given_gamma(estimator, task)
        finished = kind == gram.LINEAR
        if estimator.kernel == "precomputed":
            self._rows = _given_pairs(task)
        elif sparse.issparse(task.X):
            self._rows = _sparse_rows(task, kind)
        else:
            self._rows = _dense_rows(task, kind, self._keeps_pairs)
            finished = self._keeps_pairs and self._gamma is not None
            self._is_known[:] = not self._keeps_pairs
        self._kernel: Kernel = (kind, int(estimator.degree), float(estimator.coef0), finished)
        self._settings = float(estimator.C), float(estimator.tol), bool(estimator.shrinking)
        is_exact = not sparse.issparse(task.X) and (kind != gram.RBF or task.X.shape[1] <= exact_features)
        self._moments = None if is_exact or self._gamma is not None else _moments(task.X)

    def _learn_pairs(self, rows: Indices, part: Ints) -> None:
        from localshapley.kernels.gram import learn_pairs

        gamma = 0.0 if self._gamma is None else self._gamma
        line = np.empty(max(len(rows), len(self._rows[1])))
        learn_pairs((self._kernel, gamma, self._rows), rows, part, line)

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        is_small = np.diff(coalitions.indptr)[todo] <= self._max_rows
        if is_small.any():
            self._train_small(coalitions, todo[is_small], out)
        for c in todo[~is_small]:
            rows, tests = coalitions.coalition(c), coalitions.tests_of(c)
            X, X_test = _safe_indexing(self._task.X, rows), _safe_indexing(self._task.X_test, tests)
            if self._estimator.kernel == "precomputed":
                X, X_test = X[:, rows], X_test[:, rows]
            model = clone(self._estimator).fit(X, self._task.y[rows])
            out[coalitions.test_indptr[c] : coalitions.test_indptr[c + 1]] = predict(model, self._task, X_test)

    @abstractmethod
    def _train_small(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        """Train coalitions whose kernel values fit into memory."""

    def _family(self, coalitions: Coalitions, todo: Ints) -> Family:
        """What the machines of the coalitions `todo` read kernel values from."""
        return self._kernel, self._gammas(coalitions, todo), self._rows

    def _gammas(self, coalitions: Coalitions, todo: Ints) -> Floats:
        """Gamma of each coalition: as given, or 1 / (features · variance of all entries of its rows)."""
        from localshapley.kernels import gram

        if self._gamma is not None:
            return np.full(len(todo), self._gamma)
        if self._moments is None:
            variance = gram.exact_variances(coalitions.arrays, todo, self._rows[0])
        else:
            variance = np.empty(len(todo))
            gram.fast_variances(coalitions.arrays, todo, *self._moments, variance)
        n_features = self._task.X.shape[1]
        gammas: Floats = np.divide(1.0, n_features * variance, out=np.ones(len(todo)), where=variance != 0)
        return gammas


class SVCTrainer(_MachineTrainer):
    """Support vector classification, a machine for each pair of classes that a coalition has.

    Scores that read probabilities get the logistic of the margin (two classes) or the softmax of the decision values
    (more); scikit-learn's own `probability=True` is another model, fitted to random parts of the rows.
    """

    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        **_MachineTrainer.settings,
        "class_weight": are_class_weights,
        "probability": lambda probability: probability in (False, "deprecated"),
        "decision_function_shape": lambda shape: shape in ("ovr", "ovo"),
    }
    kernels = (*_MachineTrainer.kernels, "fit_classifiers")

    @classmethod
    def is_usable_for(cls, estimator: Any, task: Task, max_pairs: int = MAX_PAIRS) -> Usable:
        """Tell whether this trainer gives what the estimator would; a setting that it does not know is a reason."""
        usable = super().is_usable_for(estimator, task, max_pairs)
        has_pairs = task.classes is not None and len(task.classes) > 2
        if usable and estimator.decision_function_shape == "ovo" and has_pairs and task.score.source != "label":
            return Usable("decision_function_shape='ovo'")
        return usable

    def _train_small(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        from localshapley.kernels.decisions import form_of
        from localshapley.kernels.svm import train_classifiers

        weights, form = class_weights(self._estimator.class_weight, self._task), form_of(self._task.score.source)
        family = self._family(coalitions, todo)
        train_classifiers(coalitions.arrays, todo, family, self._codes, weights, self._settings, form, out)


class SVRTrainer(_MachineTrainer):
    """Support vector regression."""

    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        **_MachineTrainer.settings,
        "epsilon": lambda epsilon: True,
    }
    kernels = (*_MachineTrainer.kernels, "fit_regressors")

    def _train_small(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        from localshapley.kernels.svm import train_regressors

        y, epsilon = plain(self._task.y), float(self._estimator.epsilon)
        train_regressors(coalitions.arrays, todo, self._family(coalitions, todo), y, epsilon, self._settings, out)


def _given_gamma(estimator: Any, task: Task) -> float | None:
    """Gamma, None where it depends on the coalition."""
    if isinstance(estimator.gamma, str):
        return None if estimator.gamma == "scale" else 1 / task.X.shape[1]
    return float(estimator.gamma)


def _moments(X: Any) -> tuple[Floats, Floats]:
    """Mean and variance of the entries of each row."""
    if not sparse.issparse(X):
        X = plain(X)
        return X.mean(axis=1), X.var(axis=1)
    X = sparse.csr_array(X, dtype=np.float64)
    means = plain(X.mean(axis=1))
    return means, np.maximum(X.multiply(X).mean(axis=1) - means**2, 0.0)


def _given_pairs(task: Task) -> Rows:
    """Kernel values as they are given; there are no rows."""
    none = np.empty((0, 0))
    return none, none, plain(task.X), plain(task.X_test), np.empty(0)


def _sparse_rows(task: Task, kind: int) -> Rows:
    """All pairs at once: sparse products are fast."""
    from localshapley.kernels.gram import RBF

    X, X_test = (sparse.csr_array(table, dtype=np.float64).sorted_indices() for table in (task.X, task.X_test))
    gram, cross = (X @ X.T).toarray(), (X_test @ X.T).toarray()
    norms = gram.diagonal().copy()
    if kind == RBF:
        cross = np.maximum(X_test.multiply(X_test).sum(axis=1)[:, None] + norms - 2 * cross, 0.0)
    none = np.empty((0, 0))
    return none, none, plain(gram), plain(cross), norms


def _dense_rows(task: Task, kind: int, keeps: bool) -> Rows:
    """Rows, and room for their pairs where these are kept."""
    X, X_test = plain(task.X), plain(task.X_test)
    gram = np.empty((len(X), len(X)) if keeps else (0, 0))
    cross = np.empty((len(X_test), len(X)) if keeps else (0, 0))
    return X, X_test, gram, cross, _squared_norms(X, kind)


def _squared_norms(X: Floats, kind: int) -> Floats:
    """Inner product of each row with itself.

    Where they are not subtracted from those of pairs (RBF), they are computed by the routine that libsvm calls: single
    precision hides the last bit of all other kernel values, but not of these.
    """
    from localshapley.kernels import gram

    if kind != gram.RBF:
        return np.array([ddot(row, row) if len(row) > 0 else 0.0 for row in X])
    norms = np.empty(len(X))
    gram.sum_own(X, norms)
    return norms
