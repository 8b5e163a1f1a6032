"""Which estimators are trained compiled, which as they are, what the user is told; and that code is compiled once."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Ridge,
    RidgeClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    NearestCentroid,
    RadiusNeighborsClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

import localshapley as ls
from compilations import LISTENING
from localshapley import scoring
from localshapley.models import Coalitions, Estimator, Task, named
from localshapley.models.compiled import CompiledTrainer, Usable
from localshapley.models.dispatch import SWITCH, as_model, compiled_trainer_of
from localshapley.models.estimator import EstimatorTrainer
from localshapley.models.nearest_neighbours import KNNTrainer
from localshapley.models.trees import TreeTrainer
from localshapley.supports import Nearest

iris, diabetes = load_iris(), load_diabetes()
IRIS = (iris.data[::5], iris.target[::5], iris.data[[1, 57, 108]], iris.target[[1, 57, 108]])
DIABETES = (diabetes.data[::11], diabetes.target[::11], diabetes.data[1:4], diabetes.target[1:4])

TRAINERS = {
    KNeighborsClassifier: "KNNTrainer",
    KNeighborsRegressor: "KNNTrainer",
    DecisionTreeClassifier: "TreeTrainer",
    DecisionTreeRegressor: "TreeTrainer",
    ExtraTreeClassifier: "TreeTrainer",
    ExtraTreeRegressor: "TreeTrainer",
    RandomForestClassifier: "ForestTrainer",
    RandomForestRegressor: "ForestTrainer",
    ExtraTreesClassifier: "ForestTrainer",
    ExtraTreesRegressor: "ForestTrainer",
    BaggingClassifier: "BaggingTrainer",
    BaggingRegressor: "BaggingTrainer",
    SVC: "SVCTrainer",
    SVR: "SVRTrainer",
    LogisticRegression: "LogisticTrainer",
    Ridge: "RidgeTrainer",
    RidgeClassifier: "RidgeClassifierTrainer",
    LinearRegression: "LeastSquaresTrainer",
    Lasso: "LassoTrainer",
    ElasticNet: "LassoTrainer",
    GaussianNB: "BayesTrainer",
    LinearSVC: "LinearSVCTrainer",
    RadiusNeighborsClassifier: "RadiusTrainer",
}
PLAIN = [
    NearestCentroid(),
    AdaBoostClassifier(),
    NuSVC(),
    LogisticRegressionCV(),
    CalibratedClassifierCV(KNeighborsClassifier()),
    GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 3]}),
]


def task(data=IRIS, score="confidence", X=None, X_test=None):
    """A task as the checks of `value` make it."""
    rows, y, test_rows, y_test = data
    rows, test_rows = rows if X is None else X, test_rows if X_test is None else X_test
    if y.dtype.kind == "f":
        return Task(rows, y, test_rows, y_test, None, None, scoring.SquaredError())
    classes, codes = np.unique(y, return_inverse=True)
    return Task(rows, y, test_rows, y_test, classes, codes, scoring.SCORES[score]())


def task_for(kind):
    return task(DIABETES if is_regressor(kind()) else IRIS)


def trainer_of(model, task):
    """The trainer that `value` would take for a model."""
    return as_model(model, task.y)[0].trainer(task)


class TestWhichTrainer:
    @pytest.mark.parametrize("kind", TRAINERS, ids=lambda kind: kind.__name__)
    def test_default_settings_are_compiled(self, kind):
        trainer = compiled_trainer_of(kind())
        assert trainer is not None
        assert trainer.__name__ == TRAINERS[kind]
        assert trainer.is_usable_for(kind(), task_for(kind))

    @pytest.mark.parametrize("model", PLAIN, ids=lambda model: type(model).__name__)
    def test_others_are_trained_as_they_are_without_a_word(self, model):
        assert compiled_trainer_of(model) is None
        trainer = trainer_of(model, task())
        assert isinstance(trainer, EstimatorTrainer)
        assert trainer.training_notes == ()

    @pytest.mark.parametrize("name", ["knn", "tree", "forest", "svm", "logistic", "ridge"])
    def test_models_by_name_are_compiled(self, name):
        model = named(name, regression=name == "ridge")
        trainer = compiled_trainer_of(model)
        assert trainer.is_usable_for(model, task(DIABETES if name == "ridge" else IRIS))

    @pytest.mark.parametrize("kind", TRAINERS, ids=lambda kind: kind.__name__)
    def test_a_subclass_may_do_anything_and_runs_as_it_is(self, kind):
        subclass = type(kind.__name__, (kind,), {"__init__": kind.__init__})
        assert compiled_trainer_of(subclass()) is None
        trainer = trainer_of(subclass(), task_for(kind))
        assert isinstance(trainer, EstimatorTrainer)
        assert trainer.training_notes == ()

    def test_what_a_subclass_does_counts(self):
        class Contrarian(KNeighborsClassifier):
            def predict_proba(self, X):
                return super().predict_proba(X)[:, ::-1]

        mixed = ls.supports.Given([[0, 3, 12, 25]] * 3)
        model = ls.value(*IRIS, model=KNeighborsClassifier(3), support=mixed)
        contrary = ls.value(*IRIS, model=Contrarian(3), support=mixed)
        assert contrary.cost.trainer == "Contrarian (scikit-learn fit)"
        assert model.cost.trainer == "KNeighborsClassifier (compiled)"
        assert np.abs(model.values - contrary.values).max() > 0.1

    def test_a_class_of_the_same_name_from_elsewhere_runs_as_it_is(self):
        class Impostor(ClassifierMixin, BaseEstimator):
            pass

        Impostor.__name__ = Impostor.__qualname__ = "KNeighborsClassifier"
        assert compiled_trainer_of(Impostor()) is None
        Impostor.__module__ = "sklearn_extra.neighbors"
        assert compiled_trainer_of(Impostor()) is None


class TestReasons:
    """A setting that changes the model and is not reproduced is named."""

    def reason(self, model, **settings):
        trainer = trainer_of(model, task(**settings))
        assert isinstance(trainer, EstimatorTrainer) == bool(trainer.training_notes)
        return " ".join(trainer.training_notes)

    @pytest.mark.parametrize(
        "settings",
        [
            {"n_neighbors": 1},
            {"n_neighbors": np.int64(7)},
            {"n_neighbors": 1000},
            {"weights": "distance"},
            {"metric": "manhattan"},
            {"metric": "cosine"},
            {"metric": max},
            {"metric": "minkowski", "p": 1.5},
            {"p": np.inf},
            {"metric": "seuclidean", "metric_params": {"V": np.ones(4)}},
            {"algorithm": "kd_tree", "leaf_size": 3, "n_jobs": 2},
            {"algorithm": "brute"},
        ],
        ids=str,
    )
    def test_neighbours_take_all_but_weights_of_ones_own(self, settings):
        assert KNNTrainer.is_usable_for(KNeighborsClassifier(**settings), task())
        assert self.reason(KNeighborsClassifier(**settings)) == ""

    def test_weights_of_ones_own(self):
        def slow(distances):
            return np.exp(-distances)

        note = self.reason(KNeighborsClassifier(weights=slow))
        assert note.startswith("KNeighborsClassifier uses scikit-learn's fit")
        assert "weights=<function" in note
        v = ls.value(*IRIS, model=KNeighborsClassifier(3, weights=slow), support=Nearest(4))
        assert v.notes == [self.reason(KNeighborsClassifier(3, weights=slow))]
        assert v.cost.trainer == "KNeighborsClassifier (scikit-learn fit)"
        p = ls.plan(*IRIS, model=KNeighborsClassifier(3, weights=slow), support=Nearest(4))
        assert (p.notes, p.trainer) == (v.notes, v.cost.trainer)

    def test_missing_values(self):
        holes = IRIS[0].copy()
        holes[0, 0] = np.nan
        model = KNeighborsClassifier(3, metric="nan_euclidean")
        assert "missing values" in KNNTrainer.is_usable_for(model, task(X=holes)).reason
        assert "missing values" in KNNTrainer.is_usable_for(model, task(X_test=holes[:3])).reason
        v = ls.value(holes, *IRIS[1:], model=model, support=ls.supports.Given([range(6)] * 3))
        assert v.cost.trainer == "KNeighborsClassifier (scikit-learn fit)"
        assert any("missing values" in note for note in v.notes)
        assert np.isfinite(v.values).all()

    def test_sparse_and_other_rows(self):
        csr = sparse.csr_matrix(IRIS[0])
        assert KNNTrainer.is_usable_for(KNeighborsClassifier(), task(X=csr, X_test=csr[:3]))
        csr.data[0] = np.nan
        assert "missing" in KNNTrainer.is_usable_for(KNeighborsClassifier(), task(X=csr)).reason
        frame = pd.DataFrame(IRIS[0]).astype(object)
        assert "not an array of numbers" in KNNTrainer.is_usable_for(KNeighborsClassifier(), task(X=frame)).reason
        for kind in (bool, np.int8, np.float32):
            assert KNNTrainer.is_usable_for(KNeighborsClassifier(), task(X=IRIS[0].astype(kind)))

    @pytest.mark.parametrize(
        "model",
        [
            DecisionTreeClassifier(max_leaf_nodes=5),
            BaggingClassifier(KNeighborsClassifier()),
            SVC(probability=True),
            SVC(kernel=lambda a, b: a @ b.T),
        ],
        ids=["max_leaf_nodes", "estimator", "probability", "kernel"],
    )
    def test_settings_that_make_another_model_are_named(self, model):
        (changed,) = [
            name
            for name, value in model.get_params(deep=False).items()
            if value is not inspect.signature(type(model).__init__).parameters[name].default
        ]
        assert changed in self.reason(model)

    def test_a_sentence_of_its_own(self):
        note = self.reason(KNeighborsClassifier(weights=len))
        assert "weights=<built-in function len>" in note
        assert note.endswith(".")
        holes = IRIS[0] * np.nan
        note = self.reason(KNeighborsClassifier(metric="nan_euclidean"), X=holes)
        assert "does not know X has" not in note


class Sampled(BaseEstimator, ClassifierMixin):
    """An estimator with a new setting, as a later scikit-learn may bring one."""

    def __init__(self, depth=3, boost=None, speed="auto"):
        self.depth, self.boost, self.speed = depth, boost, speed


class SampledTrainer(CompiledTrainer):
    settings = {"depth": lambda depth: depth < 10}  # noqa: RUF012
    irrelevant = frozenset({"speed"})

    def _train(self, coalitions, todo, out):
        """Votes of the rows themselves."""
        for c in todo:
            shares = np.bincount(self._codes[coalitions.coalition(c)], minlength=3) / len(coalitions.coalition(c))
            out[coalitions.test_indptr[c] : coalitions.test_indptr[c + 1]] = shares


class TestBase:
    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ({}, ""),
            ({"depth": 9}, ""),
            ({"depth": 10}, "depth=10"),
            ({"boost": 1}, "boost=1"),
            ({"boost": False}, "boost=False"),
            ({"speed": "high"}, ""),
            ({"speed": "high", "boost": "yes"}, "boost='yes'"),
        ],
    )
    def test_a_setting_that_is_not_known_is_a_reason_unless_it_has_its_default(self, settings, reason):
        usable = SampledTrainer.is_usable_for(Sampled(**settings), task())
        assert usable.reason == reason
        assert bool(usable) == (reason == "")

    def test_usable(self):
        assert Usable()
        assert not Usable("p=2")

    def test_rows_of_any_sparse_kind_are_refused_unless_taken(self):
        assert SampledTrainer.is_usable_for(Sampled(), task(X=sparse.csr_matrix(IRIS[0]))).reason == "X is sparse"

    @pytest.mark.parametrize(
        "model",
        [
            DecisionTreeClassifier(),
            RandomForestClassifier(3),
            ExtraTreesClassifier(3),
            DecisionTreeRegressor(),
            RandomForestRegressor(3),
            LinearSVC(tol=1e-10, max_iter=10**6),
            LinearRegression(),
            Lasso(0.1),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_sparse_rows_are_made_dense_where_scikit_learn_learns_the_same(self, model):
        rng = np.random.default_rng(0)
        X = np.column_stack([np.eye(5)[rng.integers(5, size=40)], rng.normal(size=40) * rng.integers(0, 2, 40)])
        y = (X[:, :5] @ np.arange(5) + X[:, 5] > 2).astype(int)
        score = "margin" if isinstance(model, LinearSVC) else None  # liblinear's labels turn at rounding errors
        games = ls.supports.Given([rng.choice(34, 5, replace=False) for _ in range(6)])

        def value(form, model):
            data = form(X[:34]), y[:34], form(X[34:]), y[34:]
            return ls.value(*data, model=model, support=games, method="exact", score=score)

        found, dense = value(sparse.csr_matrix, model), value(np.asarray, model)
        asis = value(sparse.csr_matrix, ls.models.Estimator(model))
        assert "compiled" in found.cost.trainer
        assert "scikit-learn" in asis.cost.trainer
        assert not found.notes
        np.testing.assert_array_equal(found.values, dense.values)
        np.testing.assert_allclose(found.values, asis.values, atol=1e-7)

    def test_sparse_rows_with_too_many_entries_stay_as_they_are(self):
        wide = sparse.csr_matrix((30, 2**21))
        reason = TreeTrainer.is_usable_for(DecisionTreeClassifier(), task(X=wide, X_test=wide[:3])).reason
        assert reason == "X is sparse, and dense it would have 62,914,560 entries"

    def test_a_pipeline_with_categories_has_a_compiled_forest(self):
        rng = np.random.default_rng(0)
        table = pd.DataFrame({name: rng.choice(list("abcdefgh"), 40) for name in "uvw"})
        y = (table["u"] > "d").astype(int) + (table["v"] > "f")
        model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), RandomForestClassifier(3))
        v = ls.value(table[:36], y[:36], table[36:], y[36:], model=model, support=ls.supports.Nearest(4))
        assert v.cost.trainer == "RandomForestClassifier (compiled)"

    def test_coalitions_that_need_no_training_do_not_reach_the_trainer(self):
        trainer = SampledTrainer(Sampled(), task(), n_jobs=1)
        reached = []
        train = trainer._train
        trainer._train = lambda coalitions, todo, out: (reached.extend(todo.tolist()), train(coalitions, todo, out))
        coalitions = [[], [0], [0, 1, 2], [0, 15, 29], [29], [15, 29]]
        trained = trainer.train(Coalitions.from_lists(coalitions, [[0, 1]] * 6))
        assert reached == [3, 5]
        assert trained.counts.trivial == 4
        codes = task().codes
        expected = [[(codes[c] == t).mean() if c else 1 / 3 for t in task().y_test[:2]] for c in coalitions]
        np.testing.assert_allclose(trained.scores.reshape(6, 2), expected, atol=1e-15)

    @pytest.mark.parametrize("score", ["accuracy", "margin", "log_loss"])
    def test_nothing_learnt_and_one_class_follow_the_conventions_of_every_score(self, score):
        tests = np.arange(3, dtype=np.int32)
        for empty in (None, -2.0):
            about = task(score=score)
            about = Task(*IRIS, about.classes, about.codes, about.score, empty)
            trainer = SampledTrainer(Sampled(), about)
            nothing, ones = trainer.evaluate(Coalitions.from_lists([[], [0, 1]], [tests, tests])).reshape(2, 3)
            assert nothing.tolist() == about.score_nothing_learnt(tests).tolist()
            assert ones.tolist() == about.score(about.y_test[tests], np.eye(3)[[0, 0, 0]]).tolist()

    def test_the_first_of_equals_is_the_predicted_label(self):
        trainer = SampledTrainer(Sampled(), task(score="accuracy"))
        found = trainer.evaluate(Coalitions.from_lists([[0, 15], [15, 29], [0, 15, 16]], [[0, 1, 2]] * 3))
        assert found.reshape(3, 3).tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0]]

    def test_an_error_in_a_thread_reaches_the_caller(self):
        class Failing(SampledTrainer):
            def _train(self, coalitions, todo, out):
                raise RuntimeError("a bug")

        trainer = Failing(Sampled(), task(), n_jobs=4)
        with pytest.raises(RuntimeError, match="a bug"):
            trainer.evaluate(Coalitions.from_lists([[0, 15]] * 200, [[0]] * 200))

    def test_a_copy_from_another_process_gives_the_same_bits(self):
        trainer = KNNTrainer(KNeighborsClassifier(3, weights="distance"), task())
        rng = np.random.default_rng(0)
        coalitions = Coalitions.from_lists([rng.choice(30, 9, replace=False) for _ in range(50)], [[0, 1, 2]] * 50)
        expected = trainer.evaluate(coalitions)
        for copy in (
            pickle.loads(pickle.dumps(trainer)),
            KNNTrainer(KNeighborsClassifier(3, weights="distance"), task()),
        ):
            assert (pickle.loads(pickle.dumps(copy)).evaluate(coalitions) == expected).all()


class TestSwitches:
    def test_an_estimator_that_is_wrapped_is_trained_as_it_is(self):
        wrapped = Estimator(KNeighborsClassifier(3))
        trainer = trainer_of(wrapped, task())
        assert isinstance(trainer, EstimatorTrainer)
        assert trainer.training_notes == ()
        v = ls.value(*IRIS, model=wrapped, support=Nearest(4))
        assert v.cost.trainer == "KNeighborsClassifier (scikit-learn fit)"
        assert v.notes == []
        assert v.model == "KNeighborsClassifier(n_neighbors=3)"

    @pytest.mark.parametrize(("value", "compiled"), [("0", False), ("1", True), ("", True), (None, True)])
    def test_the_environment(self, monkeypatch, value, compiled):
        monkeypatch.delenv(SWITCH, raising=False)
        if value is not None:
            monkeypatch.setenv(SWITCH, value)
        trainer = trainer_of(KNeighborsClassifier(), task())
        assert isinstance(trainer, CompiledTrainer) == compiled
        assert trainer.training_notes == ()

    def test_a_pipeline_without_a_compiled_model_says_nothing(self):
        trainer = trainer_of(make_pipeline(StandardScaler(), GaussianNB()), task())
        assert isinstance(trainer, EstimatorTrainer)
        assert trainer.training_notes == ()

    def test_a_pipeline_is_quiet_where_the_user_turned_compiling_off(self, monkeypatch):
        pipeline = make_pipeline(StandardScaler(), KNeighborsClassifier(3))
        assert trainer_of(Estimator(pipeline), task()).training_notes == ()
        monkeypatch.setenv(SWITCH, "0")
        assert trainer_of(pipeline, task()).training_notes == ()


PROGRAM = """
import json, sys
import numpy as np
import localshapley as ls
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

rng = np.random.default_rng(0)
X, X_test = rng.normal(size=(30, 3)), rng.normal(size=(4, 3))
y, y_test = rng.integers(3, size=30), rng.integers(3, size=4)
v = ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(3), support=ls.supports.Nearest(8), progress=True)
ls.value(X, X[:, 0], X_test, X_test[:, 0], model=KNeighborsRegressor(3), support=ls.supports.Nearest(8), progress=True)
first = len(compiled)
for model in (KNeighborsClassifier(4, weights="distance"), KNeighborsRegressor(np.int32(2))):
    for score in ("accuracy", "margin", "log_loss") if model.n_neighbors == 4 else ("absolute_error",):
        rows = np.asfortranarray(X), y.astype(np.int8), X_test.astype(int), y_test.astype(np.int8)
        ls.value(*rows, model=model, score=score, support=ls.supports.Nearest(6), n_jobs=2, progress=True)
print(json.dumps({"values": v.values.tolist(), "compiled": compiled[:first], "again": compiled[first:]}))
"""


@pytest.mark.slow
def test_code_is_compiled_once_on_a_machine_and_the_user_is_told(tmp_path):
    """Two processes share an empty cache: the first compiles and says so, the second does neither."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", LISTENING + PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    first, second = (json.loads(run.stdout) for run in runs)
    assert {"count_supports", "enumerate_supports"} <= set(first["compiled"])
    assert first["again"] == []  # other settings and other arrays need no other code
    assert runs[0].stderr.count("localshapley: compiling on first use.") == 1
    assert second["compiled"] == second["again"] == []
    assert "compiling" not in runs[1].stderr
    assert first["values"] == second["values"]


class LostTrainer(CompiledTrainer):
    """A trainer whose predictions are no numbers."""

    settings = {}  # noqa: RUF012

    def _train(self, coalitions, todo, out):
        for c in todo:
            out[coalitions.test_indptr[c] : coalitions.test_indptr[c + 1]] = np.nan


@pytest.mark.parametrize("score", ["accuracy", "confidence", "margin", "log_loss"])
def test_predictions_that_are_no_number_count_as_nothing_learnt(score):
    about = task(score=score)
    trainer = LostTrainer(SVC(), about)
    coalitions = Coalitions.from_lists([[0, 10, 20], [0, 1], [5, 15, 25]], [[0, 1], [0], [1, 2]])
    trained = trainer.train(coalitions)
    found = trained.scores
    nothing = about.score_nothing_learnt(np.array([0, 1, 0, 1, 2], dtype=np.int32))
    assert found[[0, 1, 3, 4]].tolist() == nothing[[0, 1, 3, 4]].tolist()
    assert np.isfinite(found).all()
    assert trained.counts.silent == 4
