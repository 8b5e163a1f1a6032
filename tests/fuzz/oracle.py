"""Values by the definition: scikit-learn learns every subset of every support, and each is scored."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression
from sklearn.metrics import pairwise_distances
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC
from sklearn.tree import BaseDecisionTree, DecisionTreeRegressor
from sklearn.utils import _safe_indexing

import localshapley as ls
from localshapley.data.folds import make_folds
from localshapley.supports.leaf_numbers import leaf_numbers
from naive import weight
from naive_tree import possible_predictions

NEAR = 1e-7
"""What differs by less may come out either way, by rounding."""
NEAR_IN_32_BITS = 1e-3
"""The same for solvers that compute in 32 bits, as the rows are."""


class TieError(Exception):
    """Rounding decides the outcome, so that there is nothing to compare."""


def values_of(case: Any) -> np.ndarray:
    """What each player is worth to each test row, shape (n_tests, n_players), by the definition."""
    with warnings.catch_warnings(), config_context(skip_parameter_validation=True):
        warnings.simplefilter("ignore")
        game = game_of(case)
        play = leave_one_out if case.options.get("method") == "loo" else shapley
        out = np.zeros((len(game.supports), game.n_players))
        for t, support in enumerate(game.supports):
            everyone = range(game.n_players) if case.options.get("method") == "loo" else support
            play(t, list(everyone), game, out[t])
    return out


@dataclass
class Game:
    """For each test row its players, and what a coalition of them scores."""

    n_players: int
    supports: list[list[int]]
    score: Callable[[int, tuple[int, ...]], float]


def shapley(t: int, support: list[int], game: Game, out: np.ndarray) -> None:
    n = len(support)
    for k in range(n + 1) if n else ():
        for subset in combinations(sorted(support), k):
            score = game.score(t, subset)
            for z in support:
                out[z] += weight(n, k, z in subset) * score


def leave_one_out(t: int, players: list[int], game: Game, out: np.ndarray) -> None:
    everyone = tuple(players)
    for z in players:
        out[z] = game.score(t, everyone) - game.score(t, tuple(p for p in everyone if p != z))


# Rows, folds and owners


def game_of(case: Any) -> Game:
    """The game of a call: of rows or of owners, with test rows or folds."""
    X, y, X_test, y_test = case.rows
    labels, options = native(np.ravel(np.asarray(y))), case.options
    learner = Learner.of(options, labels)
    X, X_test = (None if one is None else table(one, of_steps=learner.has_steps) for one in (X, X_test))
    labels = labels if learner.classifies else labels.astype(float)
    n_rows = len(labels)
    worlds = []
    if "cv" in options:
        folds = make_folds(options["cv"], labels, classifier=learner.classifies, seed=options.get("seed", 0))
        for train, test in folds:
            worlds.append(
                World(learner, _safe_indexing(X, train), labels[train], _safe_indexing(X, test), labels[test], train)
            )
        of_tests = sorted((int(row), f, i) for f, (_, test) in enumerate(folds) for i, row in enumerate(test))
        places = [(worlds[f], i) for _, f, i in of_tests]
    else:
        worlds.append(World(learner, X, labels, X_test, np.asarray(y_test), np.arange(n_rows)))
        places = [(worlds[0], i) for i in range(len(np.asarray(y_test)))]
    empty = sum(not world.supports[i] for world, i in places)
    if (
        options.get("support") is None and empty > len(places) / 2
    ):  # then nearest rows, of which there are few, stand in
        for world in worlds:
            world.supports = [list(range(len(world.rows)))] * len(world.supports)
    supports = [sorted(int(world.rows[z]) for z in world.supports[i]) for world, i in places]

    def score(t: int, rows: Sequence[int]) -> float:
        world, i = places[t]
        known = {int(row): place for place, row in enumerate(world.rows)}
        return world.score(i, tuple(known[row] for row in sorted(rows) if row in known))

    if "owners" not in options:
        return Game(n_rows, supports, score)
    of_row, names = pd.factorize(np.asarray(options["owners"], dtype=object))
    return Game(
        len(names),
        [sorted({int(of_row[z]) for z in support}) for support in supports],
        lambda t, members: score(t, [z for z in range(n_rows) if of_row[z] in members]),
    )


def native(y: np.ndarray) -> np.ndarray:
    """Labels with their bytes in the order of this machine."""
    return y.astype(y.dtype.newbyteorder("="))


def table(X: Any, *, of_steps: bool = False) -> Any:
    """A table that scikit-learn takes, and that has rows to pick.

    Columns of bools are numbers for models, and what they are for the steps before them, which may compute in 32 bits.
    """
    if hasattr(X, "to_pandas"):
        return X.to_pandas()
    if sparse.issparse(X):
        return sparse.csr_matrix(X)
    if isinstance(X, pd.DataFrame):
        if (X.dtypes == "Int64").any() and all(map(pd.api.types.is_numeric_dtype, X.dtypes)):
            return X.astype(float)  # scikit-learn's array of nullable columns is read-only, and some models write to it
        return X.astype(float) if (X.dtypes == "bool").all() and not of_steps else X
    X = np.asarray(X)
    return X.astype(float) if X.dtype == object else X


@dataclass
class Learner:
    """A model with what is done before it, how it is scored, and the conventions."""

    before: Any
    model: Any
    classifies: bool
    classes: np.ndarray | None
    options: dict[str, Any]

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code trains it, where there is some for the model."""
        return not isinstance(self.options["model"], ls.models.Estimator | ls.models.Refit)

    @property
    def has_steps(self) -> bool:
        """Whether there are steps before the model, fitted once or with it."""
        return self.before is not None or (isinstance(self.model, Pipeline) and len(self.model.steps) > 1)

    @classmethod
    def of(cls, options: dict[str, Any], labels: np.ndarray) -> Learner:
        given = options["model"]
        model = (
            getattr(given, "estimator", given) if isinstance(given, ls.models.Estimator | ls.models.Refit) else given
        )
        model = clone(model)
        seed = options.get("seed", 0)
        open_states = [k for k, v in model.get_params().items() if k.split("__")[-1] == "random_state" and v is None]
        model.set_params(**dict.fromkeys(open_states, seed))
        before = None
        if not isinstance(given, ls.models.Estimator | ls.models.Refit):
            before, model = peeled(model)
        classifies = is_classifier(model)
        return cls(before, model, classifies, np.unique(labels) if classifies else None, options)


def peeled(model: Any) -> tuple[Any, Any]:
    """The steps before the last one, and that one."""
    if not isinstance(model, Pipeline):
        return None, model
    inner, last = peeled(model.steps[-1][1])
    steps = model.steps[:-1] + ([("inner", inner)] if inner is not None else [])
    return (Pipeline(steps) if steps else None), last


class World:
    """Training rows and test rows: all of them, or those of one fold."""

    def __init__(self, learner: Learner, X: Any, y: Any, X_test: Any, y_test: Any, rows: np.ndarray) -> None:
        self.learner, self.y, self.y_test, self.rows = learner, y, y_test, rows
        self.X, self.X_test = X, X_test
        if learner.before is not None:
            steps = clone(learner.before)
            self.X, self.X_test = steps.fit_transform(X, y), steps.transform(X_test)
        self.learn = cache(self.learn)
        self.supports = supports_of(self)
        if isinstance(X, pd.DataFrame) or learner.is_compiled:
            self.X, self.X_test = (as_compiled(learner.model, table) for table in (self.X, self.X_test))

    def fitted(self, rows: Sequence[int]) -> Any:
        """The model after learning from some rows, in their order."""
        model = clone(self.learner.model)
        X, y = _safe_indexing(self.X, list(rows)), self.y[list(rows)]
        if not type(final(model)).__name__.startswith("KNeighbors"):
            return model.fit(X, y)
        if isinstance(model, Pipeline):
            steps = model[:-1].fit(X, y) if len(model.steps) > 1 else Pipeline([("none", "passthrough")]).fit(X, y)
            neighbours = Neighbours(final(model), steps.transform(X), y, self.learner.is_compiled)
            return Pipeline([*steps.steps, ("neighbours", neighbours)])
        return Neighbours(model, X, y, self.learner.is_compiled)

    def learn(self, rows: tuple[int, ...]) -> list[np.ndarray | None]:
        """What is predicted for each test row; None where there is no answer."""
        n_tests = self.X_test.shape[0]
        if not rows:
            return [None] * n_tests
        classes = self.learner.classes
        if classes is not None and len(set(self.y[list(rows)].tolist())) == 1:
            return [self.alone(rows, t) for t in range(n_tests)]
        refuse_to_learn_rounding(final(self.learner.model), _safe_indexing(self.X, list(rows)))
        try:
            model = self.fitted(rows)
        except ValueError:
            return [None] * n_tests
        if self.learner.is_compiled:
            self.refuse_equal_splits(model, rows)
        return self.answers(model, list(range(n_tests)))

    def refuse_equal_splits(self, model: Any, rows: tuple[int, ...]) -> None:
        """Refuse to say what a tree regressor predicts where equally good splits give sums in several orders."""
        if type(model) is not DecisionTreeRegressor or model.criterion != "squared_error":
            return
        X, X_test, y = np.float32(dense(self.X))[list(rows)], np.float32(dense(self.X_test)), self.y[list(rows)]
        if all(len(np.unique(column)) == len(column) for column in X.T) or not (y % 1).any():
            return  # one order, or sums that are not rounded
        names = "max_depth", "min_samples_split", "min_samples_leaf"
        settings = {name: value for name, value in model.get_params().items() if name in names}
        for x in X_test:
            possible = possible_predictions(X, y.tolist(), x, 0, criterion=model.criterion, **settings)
            if np.ptp(possible) > NEAR:
                raise TieError

    def alone(self, rows: tuple[int, ...], t: int) -> np.ndarray | None:
        """One class: certain, but for a radius without a row."""
        if type(final(self.learner.model)).__name__ == "RadiusNeighborsClassifier":
            try:
                self.fitted(rows).predict(_safe_indexing(self.X_test, [t]))
            except ValueError:
                return None
        return one_hot(self.learner.classes, self.y[rows[0]])

    def answers(self, model: Any, tests: list[int]) -> list[np.ndarray | None]:
        """The prediction for each test row: a number, or one for each class."""
        if isinstance(final(model), DummyClassifier) and len(tests) > 1:  # which may draw it: each alone
            return [self.answers(model, [t])[0] for t in tests]
        try:
            found = predicted(model, _safe_indexing(self.X_test, tests), self.learner)
        except ValueError:
            return [None] if len(tests) == 1 else [self.answers(model, [t])[0] for t in tests]
        return [row if np.isfinite(row).all() else None for row in found]

    def score(self, t: int, rows: tuple[int, ...]) -> float:
        """The score of a coalition on a test row."""
        found, learner = self.learn(rows)[t], self.learner
        if found is None:
            if "empty" in learner.options:
                return learner.options["empty"]
            n = 1 if learner.classes is None else len(learner.classes)
            found = np.array([np.mean(self.y)]) if learner.classes is None else np.full(n, 1 / n)
        return score_of(score_named(learner), learner.classes, self.y_test[t], found)


def refuse_to_learn_rounding(model: Any, rows: Any) -> None:
    """Refuse equal rows where what rounding leaves of 0 decides: a variance, or the direction that rows vary in.

    Of sparse rows scikit-learn computes the variance that `gamma="scale"` divides by as a difference of means, and
    refuses them where that is below 0. Up to two equal entries, or zeros alone, leave no rounding error.
    """
    X = dense(rows)
    if np.ptp(X, axis=0).any():
        return
    centres = isinstance(model, LinearRegression) and model.fit_intercept
    scales = isinstance(model, SVC | SVR) and model.gamma == "scale" and sparse.issparse(rows)
    if (
        isinstance(model, GaussianNB)
        or (centres and (X - X.mean(axis=0)).any())
        or (scales and X.size > 2 and X.any() and np.ptp(X) == 0)
    ):
        raise TieError


def as_compiled(model: Any, X: Any) -> Any:
    """Rows as compiled code takes them where scikit-learn's own differs by rounding.

    These are trees, variances near 0, and steps in 32 bits, along coordinates or with L-BFGS, which do not get as near
    as they are asked to. And least squares of sparse rows, whose columns scikit-learn does not centre: where one is
    constant, its coefficient is the inverse of a rounding error.
    """
    name = type(model).__name__
    makes_dense = name.startswith(("DecisionTree", "ExtraTree", "RandomForest", "Bagging", "LinearRegression"))
    is_compiled = isinstance(getattr(model, "estimator", None), BaseDecisionTree | None)  # bags of others are not
    if sparse.issparse(X) and makes_dense and is_compiled:
        return X.toarray()
    is_table = isinstance(X, np.ndarray | pd.DataFrame)
    return X.astype(float) if is_table and name in ("GaussianNB", "Lasso", "ElasticNet", "LogisticRegression") else X


class Neighbours(BaseEstimator):
    """K nearest neighbours by the definition: of equal rows those that come first, where compiled code picks them."""

    def __init__(self, model: Any, X: Any, y: np.ndarray, is_compiled: bool) -> None:
        self.model, self.X, self.y, self.classes_ = model, dense(X), y, np.unique(y)
        self.told_apart = self.X if is_compiled else np.column_stack([self.X, np.unique(y, return_inverse=True)[1]])

    def fit(self, X: Any, y: Any) -> Neighbours:
        return self

    def _votes(self, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows that vote, and their weights."""
        metric, more = metric_of(self.model)
        rows = list(nearest(self.X, row, self.model.n_neighbors, metric, more, self.told_apart))
        distance = away(self.X, row, metric, more)[rows]
        if self.model.weights == "uniform":
            return np.array(rows), np.ones(len(rows))
        return np.array(rows), (distance == 0).astype(float) if (distance == 0).any() else 1 / distance

    def predict_proba(self, X: Any) -> np.ndarray:
        found = [self._votes(row) for row in dense(X)]
        return np.array([[w[self.y[r] == c].sum() / w.sum() for c in self.classes_] for r, w in found])

    def predict(self, X: Any) -> np.ndarray:
        if is_classifier(self.model):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        return np.array([np.average(self.y[r], weights=w) for r, w in map(self._votes, dense(X))])


def metric_of(model: Any) -> tuple[str, dict[str, Any] | None]:
    """The metric of a neighbours model."""
    return (model.metric, {"p": model.p}) if model.metric == "minkowski" else (model.metric, None)


def final(model: Any) -> Any:
    return final(model.steps[-1][1]) if isinstance(model, Pipeline) else model


def one_hot(classes: Any, label: Any) -> np.ndarray:
    return (np.asarray(classes) == label).astype(float)


# Predictions and scores


def score_named(learner: Learner) -> Any:
    default = "squared_error"
    if learner.classifies:
        default = "confidence" if hasattr(learner.model, "predict_proba") else "accuracy"
    return learner.options.get("score", default)


COUNTS_VOTES = ("KNeighbors", "DecisionTree", "ExtraTree", "RandomForest", "Bagging", "Dummy", "RadiusNeighbors")


def predicted(model: Any, rows: Any, learner: Learner) -> np.ndarray:
    """For each row a number; a one at the predicted class; or what the model gives each class."""
    if learner.classes is None:
        return np.asarray(model.predict(rows), dtype=float).reshape(-1, 1)
    name = score_named(learner)
    if name == "accuracy" or callable(name):
        refuse_ties(model, rows, final(learner.model))
        return np.array([one_hot(learner.classes, label) for label in model.predict(rows)])
    columns = np.searchsorted(learner.classes, model.classes_)
    out = np.zeros((rows.shape[0], len(learner.classes)))
    if hasattr(model, "predict_proba"):
        out[:, columns] = model.predict_proba(rows)
        return out
    decision = decisions(model, rows)
    if name == "margin":
        out[:] = decision.min(axis=1, keepdims=True)
        out[:, columns] = decision
    else:
        shares = np.exp(decision - decision.max(axis=1, keepdims=True))
        out[:, columns] = shares / shares.sum(axis=1, keepdims=True)
    return out


def decisions(model: Any, rows: Any) -> np.ndarray:
    """One number for each class; two classes share one, half each."""
    found = np.asarray(model.decision_function(rows))
    return found if found.ndim == 2 else np.stack([-found, found], axis=1) / 2


def refuse_ties(model: Any, rows: Any, last: Any) -> None:
    """Refuse to say which of two classes is predicted where only rounding says so."""
    try:
        if hasattr(model, "decision_function"):
            found = decisions(model, rows)
        elif hasattr(model, "predict_proba"):
            found = np.asarray(model.predict_proba(rows))
        else:
            return
    except ValueError:  # some can predict, and cannot say by how much
        return
    found = np.sort(found, axis=1)
    gap = found[:, -1] - found[:, -2]
    exact = type(last).__name__.startswith(COUNTS_VOTES)
    near = NEAR_IN_32_BITS if np.float32 in dtypes_of(rows) else NEAR
    if ((gap < near) & ((gap > 0) | (not exact))).any():
        raise TieError


def dtypes_of(rows: Any) -> list[Any]:
    """The types of the columns."""
    return rows.dtypes.tolist() if isinstance(rows, pd.DataFrame) else [getattr(rows, "dtype", None)]


def score_of(name: Any, classes: Any, truth: Any, found: np.ndarray) -> float:
    """Scores as their page defines them."""
    if classes is None:
        error = float(truth) - float(found[0])
        if callable(name):
            return name(float(truth), float(found[0]))
        return -(error**2) if name == "squared_error" else -abs(error)
    own = float(found[classes == truth][0]) if (classes == truth).any() else 0.0
    if callable(name):  # a classifier that has learnt nothing predicts each class equally often
        return sum(share * name(truth, label) for share, label in zip(found, classes, strict=True) if share)
    if name == "log_loss":
        return float(np.log(max(own, 1e-6)) + np.log(len(classes)))
    if name != "margin":
        return own
    if not (classes == truth).any():
        return min(found.min(), 0.0) - found.max()
    return own - found[classes != truth].max()


# Supports


def supports_of(world: World) -> list[list[int]]:
    """The support of each test row, by the page on supports."""
    support, model = world.learner.options.get("support"), world.learner.model
    n_rows, n_tests = world.X.shape[0], world.X_test.shape[0]
    if support is None or isinstance(support, str):
        support = default_of(final(model))
    if isinstance(support, ls.supports.Given):
        return [sorted(set(map(int, rows))) for rows in support.lists]
    if isinstance(support, ls.supports.Everything) and support.max_size is None:
        return [list(range(n_rows))] * n_tests
    if support == "dual":
        rows = reference(world)[0].support_
        return [sorted(map(int, rows))] * n_tests
    if support == "node":
        return list(parents(world))
    if support == "leaves":
        return list(sharing_leaves(world))
    points, tests = map(dense, reference(world)[1:])
    if support.max_size is not None:
        return [list(nearest(points, t, support.max_size)) for t in tests]
    if isinstance(support, ls.supports.Nearest):
        if support.standardise:
            scaler = StandardScaler().fit(points)
            points, tests = scaler.transform(points), scaler.transform(tests)
        return [list(nearest(points, t, support.n, support.metric, support.metric_params)) for t in tests]
    within = reach(support, model, points)
    metric, more = getattr(support, "metric", "euclidean"), getattr(support, "metric_params", None) or {}
    return [list(inside(points, t, within, metric, more)) for t in tests]


def dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def default_of(model: Any) -> Any:
    """The support that belongs to a model."""
    name, supports = type(model).__name__, ls.supports
    if name.startswith("KNeighbors"):
        metric, more = metric_of(model)
        return supports.Nearest(2 * model.n_neighbors, metric=metric, metric_params=more)
    if name.startswith("RadiusNeighbors"):
        metric, more = metric_of(model)
        return supports.Radius(model.radius, metric=metric, metric_params=more)
    if isinstance(model, SVC | SVR | NuSVC):
        return supports.Kernel(0.5) if model.kernel == "rbf" else "dual"
    if name.startswith("LinearSV"):
        raise TieError  # which rows are active depends on the solver's tolerance
    if isinstance(model, BaseDecisionTree):
        return "node"
    if name.startswith(("RandomForest", "ExtraTrees", "GradientBoosting", "HistGradientBoosting")):
        return "leaves"
    return supports.Nearest(20, standardise=True)


def reach(support: Any, model: Any, points: np.ndarray) -> float:
    """How far from the test row rows may lie."""
    if isinstance(support, ls.supports.Radius):
        return support.r
    if isinstance(support, ls.supports.CompactKernel):
        return support.bandwidth
    gamma = getattr(final(model), "gamma", "scale") or "auto"
    if gamma == "scale":
        variance = points.var()
        gamma = 1 / (points.shape[1] * variance) if variance > 0 else 1.0
    gamma = 1 / points.shape[1] if gamma == "auto" else gamma
    return float(np.sqrt(-np.log(support.threshold) / gamma))


def away(points: np.ndarray, t: np.ndarray, metric: str = "euclidean", more: Any = None) -> np.ndarray:
    if metric == "euclidean":
        return np.sqrt(((points - t) ** 2).sum(axis=1))
    return pairwise_distances(points, t[None], metric=metric, **(more or {}))[:, 0]


def nearest(
    points: np.ndarray,
    t: np.ndarray,
    n: int,
    metric: str = "euclidean",
    more: Any = None,
    told_apart: np.ndarray | None = None,
) -> Iterator[int]:
    """The nearest rows; of equal rows, which are `told_apart` by what they hold, those that come first."""
    known = points if told_apart is None else told_apart
    distance = away(points, t, metric, more)
    order = np.lexsort((np.arange(len(points)), distance))
    for a in order[:n]:
        for b in order[n:]:
            if abs(distance[a] - distance[b]) <= NEAR * (1e-9 + distance[b]) and (known[a] != known[b]).any():
                raise TieError
    yield from sorted(order[:n].tolist())


def inside(points: np.ndarray, t: np.ndarray, within: float, metric: str, more: Any) -> Iterator[int]:
    distance = away(points, t, metric, more)
    if (abs(distance - within) <= NEAR * (1 + within)).any():
        raise TieError
    yield from np.flatnonzero(distance <= within).tolist()


def parents(world: World) -> Iterator[list[int]]:
    """The rows through the node above the test row's leaf."""
    model, X, X_test = reference(world)
    passing = model.decision_path(X).toarray().astype(bool)
    for way in model.decision_path(X_test).toarray():
        nodes = np.flatnonzero(way)  # numbered from the root on
        yield np.flatnonzero(passing[:, nodes[-2] if len(nodes) > 1 else nodes[-1]]).tolist()


def sharing_leaves(world: World) -> Iterator[list[int]]:
    """The rows that share a leaf with the test row; there are fewer than the limit of 20."""
    model, X, X_test = reference(world)
    leaves = leaf_numbers(model, X)
    for own in leaf_numbers(model, X_test):
        yield np.flatnonzero((leaves == own).any(axis=1)).tolist()


def reference(world: World) -> tuple[Any, Any, Any]:
    """The last step of the model after learning from all rows, and both tables in its space."""
    model = world.fitted(range(world.X.shape[0]))
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        return final(model), model[:-1].transform(world.X), model[:-1].transform(world.X_test)
    return final(model), world.X, world.X_test
