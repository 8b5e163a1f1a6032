"""Compiling ahead of the first use: for container images, cluster workers and impatient people."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs

from localshapley.api import shapley, value
from localshapley.arrays import AnyArray
from localshapley.coalitions.batch import Coalitions
from localshapley.coalitions.games import SupportGraph
from localshapley.coalitions.subsets import count_distinct
from localshapley.comparators import knn_shapley, threshold_knn_shapley
from localshapley.data.row_digests import FEW_CELLS, digest_cells
from localshapley.engine.score_store import Store
from localshapley.errors import unknown_name
from localshapley.methods import Sample
from localshapley.models.estimator import Estimator
from localshapley.models.fixed_trees import Fixed
from localshapley.models.trainer import Trainer, TrainingOutcome
from localshapley.problem.build import build_problem
from localshapley.question import Question
from localshapley.runtime.compiling import Stopwatch
from localshapley.runtime.progress import Progress, ProgressSetting
from localshapley.sampling.tuning import QUICK
from localshapley.supports import Everything, Nearest

N_ROWS, MANY = 40, 100


def warm_up(
    models: str | Iterable[str] | None = None, *, n_jobs: int | None = None, progress: ProgressSetting = None
) -> dict[str, float]:
    """Compile what valuations with these models will call, and keep the code in the cache of this machine.

    Without it, the first valuation of each model compiles what it needs, which takes a few seconds.

    Parameters
    ----------
    models : str or list of str, optional
        `"knn"`, `"radius"`, `"tree"`, `"forest"`, `"fixed"` (trees of `models.Fixed`), `"svm"`, `"logistic"`,
        `"ridge"`, `"linear"`, `"bayes"`, `"gcn"`; by default all that can be used here.
    n_jobs : int, optional
        Processes at a time; by default one per core.
    progress : bool or callable, optional
        As in `value`.

    Returns
    -------
    dict
        Seconds of compiling for the methods, which all models share, and for each model; 0 where the code was there.

    Examples
    --------
    >>> import localshapley as ls
    >>> sorted(ls.warm_up("knn", n_jobs=1))
    ['knn', 'methods']
    """
    known = [name for name in PARTS if name != "methods"]
    usable = [name for name in known if name != "gcn" or find_spec("torch") is not None]
    wanted = usable if models is None else [models] if isinstance(models, str) else list(models)
    for name in wanted:
        if name not in known:
            raise unknown_name("models", name, known)
    parts = ["methods", *dict.fromkeys(wanted)]
    n_workers = min(cpu_count() if n_jobs is None else effective_n_jobs(n_jobs), len(parts))
    seconds = {}
    with Progress(progress, len(parts), "compiling") as bar:
        for name, spent in Parallel(n_workers, return_as="generator")(delayed(_compile_part)(name) for name in parts):
            seconds[name] = spent
            bar.advance(1)
    return seconds


def _compile_part(name: str) -> tuple[str, float]:
    """Compile a part in this process; returns its name and the seconds that it took."""
    with Stopwatch() as watch:
        PARTS[name]()
    return name, watch.compile_seconds


class _Sizes(Trainer):
    """A game that costs nothing to play: the score depends on the size of a coalition and on the test row."""

    name = "sizes"

    def train(self, coalitions: Coalitions) -> TrainingOutcome:
        """The scores."""
        sizes = np.repeat(np.diff(coalitions.indptr), np.diff(coalitions.test_indptr))
        return TrainingOutcome(np.sqrt(sizes) + 0.1 * np.sin(coalitions.tests))


def _compile_methods() -> None:
    """Whatever draws, stores and counts coalitions, and adds up their scores."""
    from sklearn.dummy import DummyClassifier
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(0)
    few, many = ([rng.choice(n + 8, n, replace=False) for _ in range(4)] for n in (5, 24))
    for method in ("exact", "subset-centric", "baseline", "sample", "pivot"):
        games, budget = (many, 600) if method in ("sample", "pivot") else (few, None)
        for per_test in (False, True) if method != "pivot" else (False,):
            shapley(games, _Sizes(), 32, method=method, budget=budget, per_test=per_test, progress=False)
    curved = Sample(tuning=replace(QUICK, curve_draws=1, curve_least=20))
    shapley(many, _Sizes(), 32, method=curved, budget=600, progress=False)
    graph = SupportGraph([np.arange(40), np.arange(20, 70)], 70)
    graph.overlaps(0)
    count_distinct(graph, n_samples=10, max_counted=10)
    digest_cells(np.zeros((FEW_CELLS + 1, 1)))
    with TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store.db", fastest=0)
        for model in (DummyClassifier(), DecisionTreeClassifier()):  # one of unknown manners, and one that counts rows
            value(*_data(True), model=Estimator(model), support=Nearest(2), store=store)


def _data(classes: bool, n_features: int = 3) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """Rows with two classes, or with numbers to predict."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS + 5, n_features))
    y = (X[:, 0] > 0).astype(np.int64) if classes else X[:, 0]
    return X[:N_ROWS], y[:N_ROWS], X[N_ROWS:], y[N_ROWS:]


def _compile_knn() -> None:
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    for model, classes in ((KNeighborsClassifier(3), True), (KNeighborsRegressor(3), False)):
        for method in ("exact", "local-mc"):
            value(*_data(classes), model=model, support=Nearest(8), method=method, budget=None, progress=False)
        _train(model, classes)
    value(*_data(False), model=KNeighborsRegressor(N_ROWS // 2), support=Everything(), progress=False)
    knn_shapley(*_data(True), progress=False)
    threshold_knn_shapley(*_data(True), radius=1.0, progress=False)


def _compile_radius() -> None:
    from sklearn.neighbors import RadiusNeighborsClassifier, RadiusNeighborsRegressor

    for model, classes in ((RadiusNeighborsClassifier(2.0), True), (RadiusNeighborsRegressor(2.0), False)):
        value(*_data(classes), model=model, support=Nearest(8), method="exact", progress=False)
        _train(model, classes)


def _compile_tree() -> None:
    from sklearn.tree import DecisionTreeClassifier

    _train(DecisionTreeClassifier(random_state=0), True)


def _compile_forest() -> None:
    from sklearn.ensemble import RandomForestClassifier

    _train(RandomForestClassifier(2, random_state=0), True)


def _compile_fixed() -> None:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

    model = Fixed(RandomForestClassifier(3, max_depth=2, random_state=0))
    value(*_data(True), model=model, per_test=True, progress=False)
    value(*_data(True), model=model, method="loo", progress=False)
    boosted = Fixed(GradientBoostingClassifier(n_estimators=2, max_depth=1))
    value(*_data(True), model=boosted, progress=False)
    value(*_data(True), model=boosted, method="loo", progress=False)


def _compile_svm() -> None:
    from sklearn.svm import SVC, SVR

    _train(SVC(), True)
    _train(SVR(), False)


def _compile_logistic() -> None:
    from sklearn.linear_model import LogisticRegression

    _train(LogisticRegression(), True)


def _compile_ridge() -> None:
    from sklearn.linear_model import Ridge, RidgeClassifier

    _train(Ridge(), False)
    _train(RidgeClassifier(), True)


def _compile_linear() -> None:
    from sklearn.linear_model import Lasso, LinearRegression
    from sklearn.svm import LinearSVC

    _train(LinearRegression(), False)
    _train(Lasso(), False)
    _train(LinearSVC(), True)


def _compile_bayes() -> None:
    from sklearn.naive_bayes import GaussianNB

    _train(GaussianNB(), True)


def _compile_gcn() -> None:
    from scipy import sparse

    from localshapley.models import GCN
    from localshapley.nodes import value_nodes

    rng = np.random.default_rng(0)
    edges = np.triu(rng.random((20, 20)) < 0.2, 1)
    adjacency = sparse.csr_array((edges | edges.T).astype(np.float64))
    X, y = rng.normal(size=(20, 4)), rng.integers(2, size=20)
    value_nodes(adjacency, X, y, np.arange(8), np.arange(8, 12), model=GCN(epochs=2), budget=50, progress=False)


def _train(model: object, classes: bool) -> None:
    """Train a few coalitions of a model, of rows with few and with many features."""
    rng = np.random.default_rng(0)
    coalitions = [rng.choice(N_ROWS, size=n, replace=False) for n in (2, 3, 12, 20)]
    for n_features in (3, MANY):
        question = Question.of_rows(*_data(classes, n_features), model=model, support=Nearest(1))
        trainer = build_problem(question).trainer
        trainer.evaluate(Coalitions.from_lists(coalitions, [[0, 1]] * len(coalitions)))


PARTS: dict[str, Callable[[], None]] = {
    "methods": _compile_methods,
    "knn": _compile_knn,
    "radius": _compile_radius,
    "tree": _compile_tree,
    "forest": _compile_forest,
    "fixed": _compile_fixed,
    "svm": _compile_svm,
    "logistic": _compile_logistic,
    "ridge": _compile_ridge,
    "linear": _compile_linear,
    "bayes": _compile_bayes,
    "gcn": _compile_gcn,
}
"""What can be compiled on its own."""
