"""Compiled forests against scikit-learn itself: the same predictions, bit by bit."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

import localshapley as ls
import naive_tree
from doors import door
from growing import KINDS, compiled_predictions, made_up, plain_predictions, real, some_coalitions, task_of
from localshapley.coalitions.batch import Coalitions
from localshapley.kernels.sorting import MOST_PENDING, sort_by_heap, sort_rows
from localshapley.models import forests
from localshapley.models.dispatch import compiled_trainer_of
from localshapley.models.estimator import Estimator
from localshapley.models.trees import SHORT
from localshapley.scoring import SCORES
from localshapley.supports import Given

CLASSIFIERS = [RandomForestClassifier, ExtraTreesClassifier, BaggingClassifier]
REGRESSORS = [RandomForestRegressor, ExtraTreesRegressor, BaggingRegressor]


# Scikit-learn advises against a fraction of few rows.
pytestmark = pytest.mark.filterwarnings("ignore:Using the fractional value")


def name_of(kind):
    return kind.__name__


def differences(model, task, coalitions):
    """In how many predictions the compiled forests differ from scikit-learn's, by any bit."""
    found = compiled_predictions(model, task, coalitions)
    assert len(np.unique(found, axis=0)) > 2  # there was something to be wrong about
    return int((found != plain_predictions(model, task, coalitions)).any(axis=1).sum())


class TestAgainstScikitLearn:
    @pytest.mark.parametrize("kind", CLASSIFIERS, ids=name_of)
    @pytest.mark.parametrize("name", ["iris", "wine", "cancer", "digits"])
    def test_classifiers_on_real_data(self, kind, name):
        task = real(name)
        assert differences(kind(n_estimators=8, random_state=1), task, some_coalitions(task, 10, (1, 50))) == 0

    @pytest.mark.parametrize("kind", REGRESSORS, ids=name_of)
    @pytest.mark.parametrize("sizes", [(1, 8), (9, 60), (100, 105)])
    @pytest.mark.slow
    def test_regressors_on_real_data(self, kind, sizes):
        task = real("diabetes")
        assert differences(kind(n_estimators=6, random_state=1), task, some_coalitions(task, 30, sizes)) == 0

    @pytest.mark.parametrize("kind", CLASSIFIERS, ids=name_of)
    @pytest.mark.parametrize("rows", KINDS)
    @pytest.mark.slow
    def test_classifiers_on_rows_made_to_be_hard(self, kind, rows):
        task = made_up(rows, np.random.default_rng(1))
        for seed in range(2):
            coalitions = some_coalitions(task, 15, (1, 40), seed)
            assert differences(kind(n_estimators=5, random_state=seed), task, coalitions) == 0

    @pytest.mark.parametrize("kind", REGRESSORS, ids=name_of)
    @pytest.mark.parametrize("rows", KINDS)
    @pytest.mark.slow
    def test_regressors_of_fractions_on_rows_made_to_be_hard(self, kind, rows):
        """Fractions and repeated values: rounding errors decide between splits, and the order of sums between them."""
        rng = np.random.default_rng(2)
        task = made_up(rows, rng, y=np.round(rng.normal(size=60), 1))
        for seed in range(2):
            coalitions = some_coalitions(task, 15, (1, 40), seed)
            assert differences(kind(n_estimators=5, random_state=seed), task, coalitions) == 0

    @pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS], ids=name_of)
    def test_a_hundred_trees_on_few_rows(self, kind):
        task = real("diabetes" if kind in REGRESSORS else "cancer")
        assert differences(kind(n_estimators=100, random_state=0), task, some_coalitions(task, 4, (1, 20))) == 0

    @pytest.mark.parametrize(
        "settings",
        [
            {"max_depth": 2},
            {"min_samples_split": 5},
            {"min_samples_split": 0.4},
            {"min_samples_leaf": 3},
            {"min_samples_leaf": 0.15},
            {"min_impurity_decrease": 0.05},
            {"max_features": 1},
            {"max_features": 2, "min_samples_leaf": 2},
            {"max_features": 0.7},
            {"max_features": "log2"},
            {"max_features": None},
            {"bootstrap": False},
            {"bootstrap": True},
            {"bootstrap": True, "max_samples": 1.0},
            {"bootstrap": True, "max_samples": 0.5},
            {"bootstrap": True, "max_samples": 1.7},
            {"bootstrap": True, "max_samples": np.int64(9), "min_samples_leaf": 2},
            {"random_state": 12345},
            {"random_state": np.random.RandomState(7)},
            {"random_state": None},
            {"n_estimators": 1},
            {"n_jobs": 1, "verbose": 0},
        ],
        ids=lambda given: str(given).split(" at 0x")[0],
    )
    def test_settings_of_forests(self, settings):
        rng = np.random.default_rng(5)
        tasks = made_up("whole numbers", rng), made_up("whole numbers", rng, y=np.round(rng.normal(size=60), 1))
        for kind in (RandomForestClassifier, ExtraTreesClassifier, RandomForestRegressor, ExtraTreesRegressor):
            model = kind(**{"n_estimators": 4, "random_state": 0, **settings})
            task = tasks[kind in REGRESSORS]
            assert differences(model, task, some_coalitions(task, 6, (1, 40))) == 0

    @pytest.mark.parametrize("criterion", ["entropy", "log_loss"])
    @pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier], ids=name_of)
    def test_entropy(self, kind, criterion):
        task = real("iris")
        model = kind(n_estimators=6, criterion=criterion, random_state=3)
        assert differences(model, task, some_coalitions(task, 15, (1, 50))) == 0

    @pytest.mark.parametrize(
        "settings",
        [
            {},
            {"bootstrap": False},
            {"max_samples": 1.0, "n_jobs": 1},
            {"max_samples": 0.4},
            {"max_samples": 30},
            {"random_state": None},
            {"estimator": "best", "random_state": 3},
            {"estimator": "random", "random_state": 3},
            {"estimator": "extra"},
            {"estimator": "extra", "bootstrap": False},
        ],
        ids=str,
    )
    def test_settings_of_bags(self, settings):
        rng = np.random.default_rng(6)
        trees = {
            BaggingClassifier: {
                "best": DecisionTreeClassifier(max_depth=3, criterion="entropy", max_features=2, random_state=9),
                "random": DecisionTreeClassifier(splitter="random", min_samples_leaf=2),
                "extra": ExtraTreeClassifier(),
            },
            BaggingRegressor: {
                "best": DecisionTreeRegressor(max_depth=3, max_features=2, random_state=9),
                "random": DecisionTreeRegressor(splitter="random", min_samples_leaf=2),
                "extra": ExtraTreeRegressor(),
            },
        }
        tasks = made_up("whole numbers", rng), made_up("whole numbers", rng, y=np.round(rng.normal(size=60), 1))
        for kind, task in zip(trees, tasks, strict=True):
            given = {"n_estimators": 5, "random_state": 0, **settings}
            if "estimator" in given:
                given["estimator"] = trees[kind][given["estimator"]]
            assert differences(kind(**given), task, some_coalitions(task, 8, (1, 40))) == 0

    @pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS], ids=name_of)
    @pytest.mark.slow
    def test_large_coalitions(self, kind):
        """Columns of many equal values, sorted in three ways, and entropies beyond the table."""
        X, y = load_digits(return_X_y=True)
        y = y / 7 if kind in REGRESSORS else y % 3
        task = task_of(X[:600, ::4], y[:600], X[600:640, ::4], y[600:640], regression=kind in REGRESSORS)
        model = kind(n_estimators=2, random_state=0)
        if kind in (RandomForestClassifier, ExtraTreesClassifier):
            model.set_params(criterion="entropy")
        assert differences(model, task, some_coalitions(task, 4, (270, 500), most_tests=40)) == 0

    @pytest.mark.parametrize("kind", CLASSIFIERS, ids=name_of)
    def test_labels_are_those_of_predict(self, kind):
        """The class with the largest mean share; the first of equals."""
        data = real("iris")
        task = task_of(data.X, data.y, data.X_test, data.y_test, score=SCORES["accuracy"]())
        coalitions = some_coalitions(task, 30, (2, 12))
        model = kind(n_estimators=4, random_state=0)
        found = compiled_trainer_of(model)(model, task).evaluate(coalitions)
        assert (found == Estimator(model).trainer(task).evaluate(coalitions)).all()
        assert 0 < found.mean() < 1

    def test_one_row(self):
        """Every bootstrap is that row."""
        task = real("diabetes")
        coalitions = Coalitions.from_lists([[3], [4]], [[0, 1], [2]])
        for kind in REGRESSORS:
            found = compiled_predictions(kind(n_estimators=5, random_state=0), task, coalitions)
            np.testing.assert_allclose(found[:, 0], task.y[[3, 3, 4]], rtol=1e-15)

    def test_a_random_state_of_the_user_is_not_used_up(self):
        state = np.random.RandomState(3)
        forests.ForestTrainer(RandomForestClassifier(random_state=state), real("iris"))
        assert state.randint(10**9) == np.random.RandomState(3).randint(10**9)


class TestRandomTrees:
    """Single trees with thresholds at random are forests of one."""

    @pytest.mark.parametrize("rows", KINDS)
    def test_extra_trees(self, rows):
        rng = np.random.default_rng(7)
        cases = [
            (DecisionTreeClassifier(splitter="random", random_state=2), made_up(rows, rng)),
            (ExtraTreeClassifier(random_state=2, min_samples_leaf=2), made_up(rows, rng)),
            (DecisionTreeRegressor(splitter="random"), made_up(rows, rng, y=rng.normal(size=60))),
            (ExtraTreeRegressor(random_state=2, max_depth=3), made_up(rows, rng, y=rng.normal(size=60))),
        ]
        for model, task in cases:
            assert differences(model, task, some_coalitions(task, 30, (1, 40))) == 0

    def test_the_trainer_says_what_it_calls(self):
        task = real("iris")
        assert compiled_trainer_of(ExtraTreeClassifier())(ExtraTreeClassifier(), task).kernels == ("grow_forests",)
        tree = compiled_trainer_of(DecisionTreeClassifier())(DecisionTreeClassifier(), task)
        assert (tree.kernels, tree.is_random) == (("grow_trees",), False)


class TestSorting:
    """Rows with equal values come out in scikit-learn's order."""

    @given(st.lists(st.integers(0, 12), min_size=1, max_size=80), st.integers(0, 5), st.sampled_from([1, 15]))
    def test_sort(self, numbers, start, short):
        values, expected = np.array(numbers, dtype=np.float32), [float(v) for v in numbers]
        members, order = np.arange(len(numbers), dtype=np.uint32), list(range(len(numbers)))
        start = min(start, len(numbers) - 1)
        door(sort_rows)(values, members, start, len(numbers), short, np.empty((MOST_PENDING, 3), dtype=np.int64))
        naive_tree.sort_as_scikit_learn(expected, order, start, len(numbers), short)
        assert (values.tolist(), members.tolist()) == (expected, order)
        assert expected[start:] == sorted(expected[start:])

    @given(st.lists(st.integers(0, 12), min_size=2, max_size=60))
    def test_heap(self, numbers):
        values, expected = np.array(numbers, dtype=np.float32), [float(v) for v in numbers]
        members, order = np.arange(len(numbers), dtype=np.uint32), list(range(len(numbers)))
        door(sort_by_heap)(values, members, 0, len(numbers))
        naive_tree.sort_by_heap(expected, order)
        assert (values.tolist(), members.tolist()) == (expected, order)
        assert expected == sorted(numbers)

    def test_it_is_the_sort_of_scikit_learn(self):
        sorting = pytest.importorskip("sklearn.utils._sorting")
        if SHORT == 1:
            pytest.skip("this version of scikit-learn does not show its sort")
        rng = np.random.default_rng(8)
        for n in (1, 2, 15, 16, 17, 60, 500, 3000):
            for many in (2, 9, n):
                values = rng.integers(many, size=n).astype(np.float32)
                theirs, order = values.copy(), np.arange(n)
                sorting._py_simultaneous_sort(theirs, order, n, use_three_way_partition=True)
                members = np.arange(n, dtype=np.uint32)
                door(sort_rows)(values, members, 0, n, SHORT, np.empty((MOST_PENDING, 3), dtype=np.int64))
                assert (members == order).all()


class TestTrainer:
    @pytest.mark.parametrize("kind", [RandomForestClassifier, BaggingRegressor], ids=name_of)
    def test_neither_threads_nor_batches_nor_order_nor_small_tables_change_a_bit(self, kind, monkeypatch):
        task = real("diabetes" if kind in REGRESSORS else "iris")
        model = kind(n_estimators=7, random_state=0)
        trainer = compiled_trainer_of(model)
        coalitions = some_coalitions(task, 200, (0, 40))
        expected = trainer(model, task, 1).evaluate(coalitions)
        assert (trainer(model, task, 2).evaluate(coalitions) == expected).all()
        alone = [trainer(model, task).evaluate(coalitions.part(c, c + 1)) for c in range(0, 200, 20)]
        places = [slice(*coalitions.test_indptr[c : c + 2]) for c in range(0, 200, 20)]
        assert all((found == expected[where]).all() for found, where in zip(alone, places, strict=True))
        monkeypatch.setattr(forests, "MAX_COUNTS", 500)
        few = trainer(model, task, 2)
        assert (few.evaluate(coalitions) == expected).all()
        assert 0 < sum(kept.size for kept in few._kept.values()) <= 500

    def test_in_another_process(self):
        model, task = RandomForestClassifier(5, random_state=0), real("iris")
        trainer = forests.ForestTrainer(model, task)
        coalitions = some_coalitions(task, 30, (2, 12))
        expected = trainer.evaluate(coalitions)
        assert (pickle.loads(pickle.dumps(trainer)).evaluate(coalitions) == expected).all()

    def test_it_is_random(self):
        data = real("iris")
        model = RandomForestClassifier(5)
        one, two = (
            forests.ForestTrainer(model, task_of(data.X, data.y, data.X_test, data.y_test, seed=seed))
            for seed in (0, 1)
        )
        coalitions = some_coalitions(data, 30, (2, 12))
        assert one.is_random
        assert (one.evaluate(coalitions) != two.evaluate(coalitions)).any()


class TestIsUsable:
    @pytest.mark.parametrize(
        "settings",
        [
            {"max_leaf_nodes": 5},
            {"oob_score": True, "bootstrap": True},
            {"warm_start": True},
            {"ccp_alpha": 0.01},
            {"min_weight_fraction_leaf": 0.1},
            {"monotonic_cst": [0, 0, 0, 1]},
        ],
        ids=str,
    )
    def test_settings_of_forests_that_are_not_reproduced(self, settings):
        (name, value), *_ = settings.items()
        for kind in (RandomForestClassifier, ExtraTreesClassifier):
            assert forests.ForestTrainer.is_usable_for(kind(**settings), real("iris")).reason == f"{name}={value!r}"

    @pytest.mark.parametrize("criterion", ["absolute_error", "poisson"])
    def test_other_criteria(self, criterion):
        usable = forests.ForestTrainer.is_usable_for(RandomForestRegressor(criterion=criterion), real("diabetes"))
        assert usable.reason == f"criterion='{criterion}'"

    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ({"estimator": LogisticRegression()}, "estimator=LogisticRegression()"),
            ({"estimator": DecisionTreeClassifier(max_leaf_nodes=4)}, "max_leaf_nodes=4"),
            ({"max_features": 0.5}, "max_features=0.5"),
            ({"bootstrap_features": True}, "bootstrap_features=True"),
            ({"oob_score": True}, "oob_score=True"),
            ({"max_samples": 0.5, "bootstrap": False}, "bootstrap=False, max_samples=0.5"),
            ({"max_samples": 1, "bootstrap": False}, "bootstrap=False, max_samples=1"),
        ],
        ids=str,
    )
    def test_bags_that_are_not_reproduced(self, settings, reason):
        assert forests.BaggingTrainer.is_usable_for(BaggingClassifier(**settings), real("iris")).reason == reason

    def test_fractions_of_the_rows_before_they_were_rounded_as_now(self, monkeypatch):
        monkeypatch.setattr(forests, "IS_1_9", False)
        for model in (RandomForestClassifier(max_samples=0.5), BaggingClassifier(max_samples=0.5)):
            assert compiled_trainer_of(model).is_usable_for(model, real("iris")).reason == "max_samples=0.5"
            for everything in (None, 1.0):
                model.set_params(max_samples=everything)
                assert compiled_trainer_of(model).is_usable_for(model, real("iris"))

    def test_numbers_beyond_32_bits(self):
        data = real("iris")
        task = task_of(1e38 * data.X, data.y, data.X_test)
        for trainer, model in (
            (forests.ForestTrainer, RandomForestClassifier()),
            (forests.BaggingTrainer, BaggingClassifier()),
        ):
            assert trainer.is_usable_for(model, task).reason == "X has numbers too large for 32 bits"

    def test_the_note_says_why(self):
        data = real("iris", n_rows=30, n_tests=3)
        model = RandomForestClassifier(2, oob_score=True)
        v = ls.value(data.X, data.y, data.X_test, data.y_test, model=model, support=Given([[0, 1, 2, 3]] * 3))
        assert "scikit-learn fit" in v.cost.trainer
        assert any("oob_score=True" in note for note in v.notes)


def test_frames_of_numbers_are_taken_by_bags_of_trees():
    task = real("iris", n_rows=16, n_tests=2)
    frames = pd.DataFrame(task.X).add_prefix("x"), pd.DataFrame(task.X_test).add_prefix("x")
    bag, support = BaggingClassifier(DecisionTreeClassifier(), 3), Given([[0, 1, 2, 3]] * 2)
    y_test = task.classes[task.y_test]
    framed = ls.value(frames[0], task.y, frames[1], y_test, model=bag, support=support)
    assert framed.cost.trainer == "BaggingClassifier (compiled)"
    assert (framed.values == ls.value(task.X, task.y, task.X_test, y_test, model=bag, support=support).values).all()


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS], ids=name_of)
def test_values_are_those_of_plain_training(kind):
    task = real("diabetes" if kind in REGRESSORS else "iris", n_rows=16, n_tests=4)
    y_test = task.y_test if task.classes is None else task.classes[task.y_test]
    rng = np.random.default_rng(14)
    support = Given([np.sort(rng.permutation(16)[:4]).tolist() for _ in range(4)])
    found, expected = (
        ls.value(task.X, task.y, task.X_test, y_test, model=model, support=support)
        for model in (kind(n_estimators=3), Estimator(kind(n_estimators=3)))
    )
    assert found.cost.trainer == f"{kind.__name__} (compiled)"
    assert (found.values == expected.values).all()
    assert found.is_random
    assert np.abs(found.values).max() > 0.05
