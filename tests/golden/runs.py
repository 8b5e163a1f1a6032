"""Small runs of everything that computes values, with all that comes of them: what a redesign must not change.

Every run is a function without arguments that returns a valuation; its name is its place in `golden.json`. Nothing here
depends on a clock. `make.py` beside this file writes the results of the code as it is.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import localshapley as ls
from localshapley.stopping import RankStable, RelativeChange, RelativeError, Trainings
from localshapley.supports import Everything, Kernel, Nearest, Radius, TreeNode

RUNS: dict[str, Callable[[], Any]] = {}
NEED_TORCH = {
    "head_on_rows",
    "nodes_of_test_games",
    "nodes_of_train_games_per_test",
    "nodes_left_out",
    "nodes_by_graphsage",
    "nodes_by_gin_on_the_full_graph",
    "in_run_nodes",
    "in_run_rows",
}
"""The runs that train with PyTorch."""
REASSOCIATED = {"svm_exact", "svm_auto", "svm_regressor_exact", "logistic_exact", "logistic_auto",
                "ridge_regressor_exact", "everything_plays", "owners_svm"}  # fmt: skip
"""Exact runs of linear models and SVMs: their kernels let the compiler add up in the order that suits the processor."""
ROUNDED = {"bayes_exact", "bayes_auto", "bayes_sample", "tight_tolerance_until_exact", "game_loo"} | {
    f"game_{method}" for method in ("exact", "auto", "sample", "subset-centric", "baseline")
}
"""Runs without errors whose last bits are others on other processors: NumPy's exponentials and sines make their scores,
or the sampler's fits were taken off and put back."""


def run(function: Callable[[], Any]) -> Callable[[], Any]:
    """Register a run under its name."""
    RUNS[function.__name__] = function
    return function


def register(name: str, function: Callable[[], Any]) -> None:
    """Register a run under a name that is put together."""
    assert name not in RUNS
    RUNS[name] = function


@lru_cache
def flowers(n: int = 40, n_tests: int = 12) -> tuple[np.ndarray, ...]:
    """Part of Iris, with a few labels that are wrong."""
    X, y, X_test, y_test, _ = ls.datasets.load("iris")
    y = y.copy()
    y[3:n:9] = (y[3:n:9] + 1) % 3
    return X[:n], y[:n], X_test[:n_tests], y_test[:n_tests]


@lru_cache
def patients(n: int = 40, n_tests: int = 12) -> tuple[np.ndarray, ...]:
    """Part of Breast Cancer, scaled."""
    X, y, X_test, y_test, _ = ls.datasets.load("breast_cancer")
    scaler = StandardScaler().fit(X)
    return scaler.transform(X[:n]), y[:n], scaler.transform(X_test[:n_tests]), y_test[:n_tests]


@lru_cache
def amounts(n: int = 40, n_tests: int = 12) -> tuple[np.ndarray, ...]:
    """Part of Diabetes."""
    X, y, X_test, y_test, _ = ls.datasets.load("diabetes")
    return X[:n], y[:n].astype(float), X_test[:n_tests], y_test[:n_tests].astype(float)


def labels_of_owners(n: int = 40) -> np.ndarray:
    """Seven owners of `n` rows."""
    return np.array(["ann", "bob", "cy", "dee", "eve", "fay", "gus"])[np.arange(n) * np.arange(n) % 7]


def wavy(coalition: np.ndarray, tests: np.ndarray) -> np.ndarray:
    """A utility without any structure that an estimator could use."""
    total = float(np.sum((coalition + 1.0) ** 1.5))
    return np.array([np.sin(total * (t + 2.0)) + 0.1 * len(coalition) for t in tests])


SUPPORTS = [
    [0, 1, 2, 3, 4, 5],
    [2, 3, 4, 5, 6, 7, 8],
    [0, 1, 2, 3, 4, 5],
    [5, 6, 7, 8, 9],
    [9],
    [],
    [0, 4, 8, 9, 1, 2, 6],
]
CLASSIFIERS = {
    "knn": KNeighborsClassifier(3),
    "knn_by_distance": KNeighborsClassifier(3, weights="distance"),
    "tree": DecisionTreeClassifier(min_samples_leaf=2, random_state=3),
    "svm": SVC(),
    "logistic": LogisticRegression(),
    "bayes": ls.models.Estimator(GaussianNB()),
}
REGRESSORS = {
    "knn": KNeighborsRegressor(3),
    "tree": DecisionTreeRegressor(min_samples_leaf=2, random_state=3),
    "svm": SVR(C=10),
    "ridge": Ridge(),
}

# Every method with every kind of model.

for name, model in CLASSIFIERS.items():
    data = patients if name in ("svm", "logistic") else flowers
    for method in ("exact", "auto", "sample"):
        register(
            f"{name}_{method}",
            lambda model=model, method=method, data=data: ls.value(
                *data(), model=model, support=Nearest(7), score="confidence", method=method
            ),
        )
for name, model in REGRESSORS.items():
    for method in ("exact", "sample"):
        register(
            f"{name}_regressor_{method}",
            lambda model=model, method=method: ls.value(*amounts(), model=model, support=Nearest(7), method=method),
        )
for method in ("subset-centric", "baseline", "pivot", "pivot-printed", "local-mc"):
    limits = {} if method in ("subset-centric", "baseline") else {"budget": 900}
    for name in ("tree", "knn_by_distance"):
        register(
            f"{name}_{method}",
            lambda name=name, method=method, limits=limits: ls.value(
                *flowers(), model=CLASSIFIERS[name], support=TreeNode(max_size=6) if name == "tree" else Nearest(5),
                method=method, **limits,
            ),
        )  # fmt: skip
for method in ("global-mc", "tmc", "complementary", "loo", "random"):
    limits = {} if method in ("loo", "random") else {"budget": 1500}
    for name in ("knn", "svm"):
        register(
            f"{name}_{method}",
            lambda name=name, method=method, limits=limits: ls.value(
                *flowers(24, 8), model=CLASSIFIERS[name], score="accuracy", method=method, **limits
            ),
        )


@run
def tmc_by_test() -> Any:
    method = ls.comparators.TMC(patience=5, by_test=True)
    return ls.value(*flowers(24, 8), model=SVC(), score="accuracy", method=method, budget=2000)


@run
def tmc_by_test_compiled_walks() -> Any:
    method = ls.comparators.TMC(tolerance=0.2, patience=2, by_test=True)
    return ls.value(*flowers(24, 8), model=KNeighborsClassifier(3), method=method, budget=9000)


@run
def global_mc_of_a_regressor() -> Any:
    return ls.value(*amounts(20, 5), model=KNeighborsRegressor(3), method="global-mc", stop=Trainings(800))


# The support that belongs to the model, other supports, other scores.


@run
def default_supports_svm() -> Any:
    return ls.value(*patients(60, 8), model=SVC(), score="margin", tol=0.2)


@run
def default_supports_tree() -> Any:
    return ls.value(*flowers(), model="tree", score="log_loss")


@run
def forest_with_its_leaves() -> Any:
    return ls.value(*flowers(24, 6), model=RandomForestClassifier(5), support=ls.supports.Leaves(5))


@run
def forest_regressor() -> Any:
    return ls.value(*amounts(20, 4), model=RandomForestRegressor(4), support=Nearest(5), score="absolute_error")


@run
def pipeline() -> Any:
    model = ls.models.Refit(make_pipeline(StandardScaler(), SVC()))
    return ls.value(*patients(30, 6), model=model, support=Nearest(6), method="exact")


@run
def forced_plain_estimator() -> Any:
    model = ls.models.Estimator(DecisionTreeClassifier(random_state=0))
    return ls.value(*flowers(24, 6), model=model, support=Nearest(6), method="exact", score="accuracy")


@run
def own_score_and_empty() -> Any:
    return ls.value(
        *flowers(), model="knn", support=Nearest(6), score=lambda truth, found: float(truth == found) - 0.5, empty=-0.25
    )


@run
def everything_plays() -> Any:
    return ls.value(*flowers(10, 4), model="logistic", support=Everything())


@run
def empty_supports() -> Any:
    return ls.value(*flowers(), model="knn", support=Radius(0.3))


@run
def kernel_neighbours() -> Any:
    return ls.value(*patients(60, 8), model=SVC(), support=Kernel(0.5, max_size=12), tol=0.15)


@run
def head_on_rows() -> Any:
    return ls.value(*flowers(20, 5), model=ls.models.Head(epochs=10, lr=0.1), support=Nearest(5), method="exact")


# Folds, owners, values of each test row, stopping rules, budgets, stores.


@run
def folds_knn() -> Any:
    X, y, _, _ = flowers()
    return ls.value(X, y, model="knn", cv=4)


@run
def folds_tree_sampled() -> Any:
    X, y, _, _ = flowers()
    return ls.value(X, y, model="tree", cv=3, method="sample", budget=600, support=Nearest(8))


@run
def owners_svm() -> Any:
    return ls.value(*patients(), model=SVC(), owners=labels_of_owners(), support=Nearest(12), score="confidence")


@run
def owners_knn_folds() -> Any:
    X, y, _, _ = flowers()
    return ls.value(X, y, model="knn", cv=3, owners=labels_of_owners(), method="sample", tol=0.3)


@run
def owners_global() -> Any:
    return ls.value(*flowers(), model="tree", owners=labels_of_owners(), method="global-mc", budget=400)


@run
def per_test_exact() -> Any:
    return ls.value(*flowers(), model="tree", support=Nearest(7), method="exact", per_test=True)


@run
def per_test_closed_form() -> Any:
    return ls.value(*flowers(), model="knn", per_test=True)


@run
def per_test_sampled() -> Any:
    return ls.value(*patients(), model=SVC(), support=Nearest(10), per_test=True, budget=1200)


@run
def per_test_local_mc() -> Any:
    return ls.value(*flowers(), model="knn", method="local-mc", per_test=True, budget=3000)


@run
def stop_by_rank() -> Any:
    return ls.value(*patients(), model=SVC(), support=Nearest(12), stop=RankStable(top=5, agreement=0.8))


@run
def stop_by_change() -> Any:
    return ls.value(*patients(), model=SVC(), support=Nearest(10), stop=RelativeChange(0.1, every=20), method="pivot")


@run
def stop_by_two_rules() -> Any:
    rule = RelativeError(0.01) | Trainings(1500)
    return ls.value(*patients(), model="logistic", support=Nearest(11), stop=rule)


@run
def tight_tolerance_until_exact() -> Any:
    return ls.value(*flowers(24, 6), model="tree", support=Nearest(7), method="sample", tol=1e-6)


@run
def budget_large_enough_for_all() -> Any:
    return ls.value(*flowers(24, 6), model="tree", support=Nearest(7), method="sample", budget=5000)


def with_store(first: dict[str, Any], then: dict[str, Any]) -> Any:
    """The second of two runs with one store."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "run.db")
        ls.value(*patients(24, 6), **first, store=store)
        return ls.value(*patients(24, 6), **then, store=store)


@run
def store_again() -> Any:
    settings = {"model": ls.models.Estimator(GaussianNB()), "support": Nearest(5)}
    return with_store({**settings, "method": "exact"}, {**settings, "method": "exact"})


@run
def store_shared_by_two_supports() -> Any:
    return with_store(
        {"model": ls.models.Estimator(GaussianNB()), "support": Nearest(5)},
        {"model": ls.models.Estimator(GaussianNB()), "support": Nearest(6)},
    )


@run
def two_processes() -> Any:
    return ls.value(*flowers(24, 6), model=ls.models.Estimator(GaussianNB()), support=Nearest(6), n_jobs=2)


@run
def updated() -> Any:
    X, y, X_test, y_test = flowers()
    settings = {"model": DecisionTreeClassifier(random_state=0), "support": Nearest(6), "method": "exact"}
    before = ls.value(X[8:], y[8:], X_test, y_test, per_test=True, **settings)
    return ls.update(before, X, y, X_test, y_test, **settings)


# Any game.

for method in ("exact", "auto", "sample", "subset-centric", "baseline", "pivot", "local-mc", "global-mc", "tmc", "loo"):
    limits = {"budget": 400} if method in ("sample", "pivot", "local-mc", "global-mc", "tmc") else {}
    register(
        f"game_{method}",
        lambda method=method, limits=limits: ls.shapley(SUPPORTS, wavy, 12, method=method, seed=5, **limits),
    )


@run
def game_complementary() -> Any:
    return ls.shapley(SUPPORTS, wavy, method="complementary", tol=0.9, seed=2)


@run
def large_game_sampled() -> Any:
    supports = [np.arange(3 * t, 3 * t + 18 + t) for t in range(6)]
    return ls.shapley(supports, wavy, method="sample", budget=700, seed=1)


@run
def large_game_to_a_tolerance() -> Any:
    supports = [np.arange(2 * t, 2 * t + 14) for t in range(5)]

    def smooth(coalition: np.ndarray, tests: np.ndarray) -> np.ndarray:
        return np.sqrt(len(coalition)) + 0.01 * wavy(coalition, tests)

    return ls.shapley(supports, smooth, tol=0.05, method="auto")


# Graphs, In-Run, locality, closed forms of others.


@lru_cache
def nodes() -> tuple[Any, ...]:
    """A ring of three communities."""
    rng = np.random.default_rng(0)
    y = np.arange(36) % 3
    near = rng.random((36, 36)) < np.where(y[:, None] == y, 0.25, 0.03)
    X = np.eye(3)[y] + 0.3 * rng.normal(size=(36, 3))
    return np.argwhere(np.triu(near, 1)), X, y, np.arange(24), np.arange(24, 36)


@run
def nodes_of_test_games() -> Any:
    return ls.value_nodes(*nodes(), model=ls.models.GCN(epochs=5, hidden=8), budget=300, device="cpu")


@run
def nodes_of_train_games_per_test() -> Any:
    settings = {"games": "train", "graph": "full", "support": ls.supports.Hops(1), "per_test": True}
    return ls.value_nodes(*nodes(), model=ls.models.GCN(epochs=5, hidden=8), device="cpu", budget=400, **settings)


@run
def nodes_left_out() -> Any:
    return ls.value_nodes(*nodes(), model=ls.models.GCN(epochs=5, hidden=8), device="cpu", method="loo")


@run
def nodes_by_graphsage() -> Any:
    settings = {"support": ls.supports.Hops(1), "method": "exact", "device": "cpu"}
    return ls.value_nodes(*nodes(), model=ls.models.GraphSAGE(epochs=5, hidden=8), **settings)


@run
def nodes_by_gin_on_the_full_graph() -> Any:
    settings = {"graph": "full", "method": "loo", "device": "cpu"}
    return ls.value_nodes(*nodes(), model=ls.models.GIN(epochs=5, hidden=8), **settings)


@run
def in_run_nodes() -> Any:
    return ls.comparators.in_run_nodes(*nodes(), hidden=8, epochs=4, order=2, device="cpu")


@run
def in_run_rows() -> Any:
    import torch

    X, y, X_test, y_test = flowers()
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)).double()
    return ls.comparators.in_run_shapley(module, X, y, X_test, y_test, epochs=3, batch_size=8, lr=0.1, device="cpu")


@run
def knn_shapley() -> Any:
    return ls.comparators.knn_shapley(*flowers(), n_neighbors=3)


@run
def threshold_knn_shapley() -> Any:
    return ls.comparators.threshold_knn_shapley(*flowers(), radius=1.0)


@run
def locality() -> Any:
    return ls.locality_gap(*flowers(), model="tree", support=Nearest(8), n_tests=6, budget=800)


# What is kept of a run.


def result_of(name: str) -> dict[str, Any]:
    """Play a run and describe all that came of it; numbers by their bits."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ls.LocalShapleyWarning)
        found = RUNS[name]()
    told = sorted({str(w.message) for w in caught if issubclass(w.category, ls.LocalShapleyWarning)})
    if isinstance(found, ls.LocalityGap):
        return {
            "values": bits(found.local),
            "stderr": bits(found.global_),
            "numbers": bits([found.gap, found.gap_stderr, found.noise, found.rank_correlation]),
            "text": [found.advice, found.trainings, found.permutations, *found.notes],
            "warnings": told,
        }
    cost = found.cost
    return {
        "values": bits(found.values),
        "stderr": bits(found.stderr),
        "cost": {
            key: getattr(cost, key)
            for key in ("trainer", "trainings", "draws", "distinct", "reused", "trivial", "stored")
        },
        "text": [found.method, found.model, found.score, found.support, found.stopped, found.unit],
        "notes": found.notes,
        "warnings": told,
        "support_sizes": found.support_sizes.tolist(),
        "n_tests": found.n_tests.tolist(),
        "ids": None if found.ids is None else [str(i) for i in found.ids],
        "per_test": None if found.per_test is None else bits(found.per_test.toarray().ravel()),
        "trainings": None if found.history is None else found.history.trainings.tolist(),
        "spread": None if found.spread is None else [digest(found.spread)],
        "history": None if found.history is None else [digest(found.history.values), digest(found.history.stderr)],
    }


def bits(numbers: Any) -> list[str]:
    """Numbers as texts that keep every bit."""
    return [float(x).hex() for x in np.asarray(numbers, dtype=np.float64)]


def digest(array: np.ndarray) -> list[Any]:
    """A digest of the bits of an array, and its size, which can be compared up to rounding."""
    of_bits = blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()
    return [of_bits, float(np.linalg.norm(array.astype(np.float64)))]
