"""Compiled decision trees against scikit-learn itself, and against trees in fractions that know every tie."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import localshapley as ls
import naive_tree
from doors import door
from growing import KINDS, compiled_predictions, made_up, plain_predictions, real, some_coalitions, task_of
from localshapley.coalitions.batch import Coalitions
from localshapley.kernels import cart
from localshapley.kernels.cuts import next_state, scan_entropy, scan_gini, scan_squares
from localshapley.models.estimator import Estimator
from localshapley.models.trees import MAX_TABLE, TreeTrainer
from localshapley.scoring import SCORES, Custom
from localshapley.supports import Given


def classifier(**settings):
    return DecisionTreeClassifier(**{"random_state": 0, **settings})


def regressor(**settings):
    return DecisionTreeRegressor(**{"random_state": 0, **settings})


class TestAgainstScikitLearn:
    """The same predictions to the last bit, ties included."""

    @pytest.mark.parametrize("criterion", ["gini", "entropy", "log_loss"])
    @pytest.mark.parametrize("name", ["iris", "wine", "cancer", "digits"])
    def test_classifiers_on_real_data(self, name, criterion):
        task = real(name)
        coalitions = some_coalitions(task, 150 if name == "iris" else 60, (1, 50))
        model = classifier(criterion=criterion)
        found = compiled_predictions(model, task, coalitions)
        assert (found == plain_predictions(model, task, coalitions)).all()
        assert len(np.unique(found, axis=0)) >= len(task.classes)

    @pytest.mark.parametrize("sizes", [(1, 8), (9, 60), (100, 105)])
    def test_regressor_on_real_data(self, sizes):
        task = real("diabetes")
        coalitions = some_coalitions(task, 100 if sizes[1] < 100 else 10, sizes)
        found = compiled_predictions(regressor(), task, coalitions)
        assert (found == plain_predictions(regressor(), task, coalitions)).all()

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("criterion", ["gini", "entropy"])
    def test_classifiers_on_rows_made_to_be_hard(self, kind, criterion):
        task = made_up(kind, np.random.default_rng(1))
        for seed in range(2):
            model = classifier(criterion=criterion, random_state=seed)
            coalitions = some_coalitions(task, 40, (1, 40), seed)
            assert (compiled_predictions(model, task, coalitions) == plain_predictions(model, task, coalitions)).all()

    @pytest.mark.parametrize("kind", KINDS)
    def test_regressors_of_whole_numbers_on_rows_made_to_be_hard(self, kind):
        rng = np.random.default_rng(2)
        task = made_up(kind, rng, y=rng.integers(-9, 9, size=60))
        for seed in range(2):
            coalitions = some_coalitions(task, 40, (1, 40), seed)
            model = regressor(random_state=seed)
            np.testing.assert_allclose(
                compiled_predictions(model, task, coalitions), plain_predictions(model, task, coalitions), rtol=1e-14
            )

    @pytest.mark.parametrize("scale", [1.0, 50.0, 1e-6])
    def test_regressors_of_fractions_where_no_value_comes_twice(self, scale):
        rng = np.random.default_rng(3)
        task = made_up("continuous", rng, y=scale * rng.normal(size=60))
        coalitions = some_coalitions(task, 200, (1, 50))
        assert (
            compiled_predictions(regressor(), task, coalitions) == plain_predictions(regressor(), task, coalitions)
        ).all()

    def test_regressors_of_equal_and_almost_equal_fractions(self):
        # Impurity of equal numbers may be a rounding error above zero; scikit-learn then splits, and draws, on.
        rng = np.random.default_rng(4)
        for y in (np.round(rng.normal(size=60)) * 0.1 + 150.3, 1e-8 * rng.normal(size=60), np.full(60, 0.3)):
            task = made_up("continuous", rng, y=y)
            coalitions = some_coalitions(task, 60, (1, 40))
            found = compiled_predictions(regressor(), task, coalitions)
            expected = plain_predictions(regressor(), task, coalitions)
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-12 * np.abs(y).max())

    @pytest.mark.parametrize(
        "settings",
        [
            {"max_depth": 1},
            {"max_depth": np.int64(3)},
            {"min_samples_split": 5},
            {"min_samples_split": 0.4},
            {"min_samples_split": 1.0},
            {"min_samples_leaf": 3},
            {"min_samples_leaf": 0.15},
            {"min_samples_leaf": 0.3, "min_samples_split": 3},
            {"min_impurity_decrease": 0.01},
            {"min_impurity_decrease": 0.1},
            {"min_impurity_decrease": 0.1, "min_samples_leaf": 2, "max_depth": 4},
            {"max_features": 1},
            {"max_features": 0.5},
            {"max_features": "sqrt"},
            {"max_features": "log2", "max_depth": 3},
            {"random_state": 12345},
            {"random_state": np.random.RandomState(7)},
            # These change nothing:
            {"max_features": 100},
            {"max_features": 1.0},
            {"random_state": None},
            {"ccp_alpha": 0, "min_weight_fraction_leaf": 0},
        ],
        ids=lambda given: str(given).split(" at 0x")[0],
    )
    def test_settings(self, settings):
        rng = np.random.default_rng(5)
        cases = [(classifier(criterion=c), made_up("whole numbers", rng)) for c in ("gini", "entropy")]
        cases.append((regressor(), made_up("whole numbers", rng, y=rng.integers(0, 3, size=60))))
        n_changed = 0
        for model, task in cases:
            coalitions = some_coalitions(task, 25, (1, 40))
            default = compiled_predictions(model, task, coalitions)
            model.set_params(**settings)
            found = compiled_predictions(model, task, coalitions)
            np.testing.assert_allclose(found, plain_predictions(model, task, coalitions), rtol=1e-14)
            n_changed += (found != default).any()
        nothing = [{"max_features": 100}, {"max_features": 1.0}, {"random_state": None}]
        if "ccp_alpha" in settings or any(repr(settings) == repr(other) for other in nothing):
            assert n_changed == 0
        else:
            assert n_changed >= 2

    def test_the_seed_of_the_task_stands_in_for_an_open_random_state(self):
        data = real("iris")
        predictions = []
        for seed in (0, 1):
            task = task_of(data.X, data.y, data.X_test, seed=seed)
            coalitions = some_coalitions(task, 100, (2, 12))
            predictions.append(compiled_predictions(classifier(random_state=None), task, coalitions))
            given_seed = compiled_predictions(classifier(random_state=seed), task, coalitions)
            assert (predictions[-1] == given_seed).all()
        assert (predictions[0] != predictions[1]).any()

    def test_a_random_state_of_the_user_is_not_used_up(self):
        state = np.random.RandomState(3)
        TreeTrainer(classifier(random_state=state), real("iris"))
        assert state.randint(10**9) == np.random.RandomState(3).randint(10**9)

    @pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
    def test_large_coalitions(self, criterion):
        X, y = load_digits(return_X_y=True)
        X, y = X[:, ::4], y % 3
        model = regressor(max_depth=9) if criterion == "squared_error" else classifier(criterion=criterion)
        task = task_of(X[:600], y[:600], X[600:640], y[600:640], regression=criterion == "squared_error")
        coalitions = some_coalitions(task, 6, (MAX_TABLE + 20, 500), most_tests=40)
        found, expected = compiled_predictions(model, task, coalitions), plain_predictions(model, task, coalitions)
        np.testing.assert_allclose(found, expected, rtol=1e-13)

    def test_many_rows_and_small_coalitions(self):
        rng = np.random.default_rng(6)
        task = made_up("continuous", rng, n_rows=9000)
        coalitions = some_coalitions(task, 60, (2, 20))
        assert (
            compiled_predictions(classifier(), task, coalitions) == plain_predictions(classifier(), task, coalitions)
        ).all()

    @pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8, bool])
    def test_rows_of_any_number_type(self, dtype):
        rng = np.random.default_rng(7)
        X, X_test = rng.integers(0, 5, size=(40, 3)).astype(dtype), rng.integers(0, 5, size=(10, 3)).astype(dtype)
        task = task_of(X, np.array(["b", "a", "c", "a"] * 10), X_test)
        coalitions = some_coalitions(task, 60, (2, 20))
        assert (
            compiled_predictions(classifier(), task, coalitions) == plain_predictions(classifier(), task, coalitions)
        ).all()

    def test_rows_at_a_threshold_go_left_in_32_bits(self):
        # The threshold is 0.5; a test row a little above 0.5 is 0.5 in 32 bits.
        task = task_of([[0.0], [1.0]], [0, 1], [[0.5], [0.5 + 1e-9], [0.5 + 1e-7]])
        coalitions = Coalitions.from_lists([[0, 1]], [[0, 1, 2]])
        assert compiled_predictions(classifier(), task, coalitions).tolist() == [[1, 0], [1, 0], [0, 1]]

    @pytest.mark.parametrize(("gap", "separated"), [(0.9e-7, False), (1.1e-7, True)])
    def test_values_within_a_ten_millionth_are_equal(self, gap, separated):
        task = task_of([[0.0], [gap]], [0, 1], [[-1.0], [1.0]])
        coalitions = Coalitions.from_lists([[0, 1]], [[0, 1]])
        expected = [[1, 0], [0, 1]] if separated else [[0.5, 0.5]] * 2
        assert compiled_predictions(classifier(), task, coalitions).tolist() == expected
        assert plain_predictions(classifier(), task, coalitions).tolist() == expected


class TestAgainstFractions:
    """Every tree is one of those that the definition allows, whatever scikit-learn does."""

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
    def test_every_prediction_is_possible(self, kind, criterion):
        rng = np.random.default_rng(8)
        y = None if criterion != "squared_error" else np.round(rng.normal(size=60), 1)
        task = made_up(kind, rng, y=y, n_classes=3)
        labels = task.codes.tolist() if y is None else [Fraction(round(10 * v), 10) for v in y]
        alone = 0
        every = (
            {},
            {"max_depth": 2, "min_samples_split": 0.3},
            {"min_samples_leaf": 2, "min_impurity_decrease": 0.04},
        )
        for settings in every:
            model = classifier(criterion=criterion, **settings) if y is None else regressor(**settings)
            coalitions = some_coalitions(task, 40, (1, 12), most_tests=2)
            found = compiled_predictions(model, task, coalitions)
            for c in range(len(coalitions)):
                rows = coalitions.coalition(c)
                for at in range(coalitions.test_indptr[c], coalitions.test_indptr[c + 1]):
                    possible = naive_tree.possible_predictions(
                        task.X[rows],
                        [labels[i] for i in rows],
                        task.X_test[coalitions.tests[at]],
                        0 if y is not None else 3,
                        criterion=criterion,
                        **settings,
                    )
                    assert np.isclose(possible, found[at], rtol=1e-12, atol=1e-12).all(axis=1).any()
                    alone += len(possible) == 1
        assert alone > 40  # there was something to be wrong about

    def test_regressors_that_resolve_ties_by_rounding_are_possible_too(self):
        # Repeated values and fractions: the one case where scikit-learn may choose another of the best splits.
        rng = np.random.default_rng(9)
        task = made_up("whole numbers", rng, y=np.round(rng.normal(size=60), 1))
        coalitions = some_coalitions(task, 250, (2, 12), most_tests=2)
        found, expected = (f(regressor(), task, coalitions) for f in (compiled_predictions, plain_predictions))
        other = np.flatnonzero(np.abs(found - expected)[:, 0] > 1e-12)
        assert len(other) < 0.02 * len(found)
        for at in other:
            rows = coalitions.coalition(int(np.searchsorted(coalitions.test_indptr, at, side="right")) - 1)
            labels = [Fraction(round(10 * v), 10) for v in task.y[rows]]
            possible = naive_tree.possible_predictions(
                task.X[rows], labels, task.X_test[coalitions.tests[at]], 0, criterion="squared_error"
            )
            assert np.isclose(possible, found[at]).any()
            assert np.isclose(possible, expected[at]).any()

    def test_ties_are_the_rule_on_real_data(self):
        # Why the random state is reproduced: on few rows hardly any tree is the only best one.
        task = real("iris")
        coalitions = some_coalitions(task, 200, (2, 12), most_tests=1)
        found = compiled_predictions(classifier(), task, coalitions)
        numbers = []
        for c in range(len(coalitions)):
            rows = coalitions.coalition(c)
            possible = naive_tree.possible_predictions(
                task.X[rows], task.codes[rows].tolist(), task.X_test[coalitions.tests[c]], 3
            )
            assert (possible == found[c]).all(axis=1).any()
            numbers.append(len(possible))
        assert 0.2 < np.mean(np.array(numbers) > 1) < 0.8


class TestKernels:
    def test_columns_are_sorted(self):
        rng = np.random.default_rng(10)
        for n_rows in (1, 63, 64, 65, 1000):
            X = np.round(rng.normal(size=(n_rows, 3)), 1)
            trainer = TreeTrainer(classifier(), task_of(X, np.arange(n_rows) % 2, X))
            words = np.zeros(n_rows // 64 + 1, dtype=np.uint64)
            for _ in range(5):
                rows = rng.permutation(n_rows)[: rng.integers(1, n_rows + 1)].astype(np.int32)
                lists = np.zeros((3, 3, n_rows), dtype=np.uint32)
                for f in range(3):
                    slot_of_rank = np.zeros(n_rows, dtype=np.uint32)
                    door(cart.sort_column)(f, rows, len(rows), trainer._ranks, slot_of_rank, words, lists)
                    expected = np.lexsort((rows, X[rows, f].astype(np.float32)))
                    assert (lists[0, f, : len(rows)] == expected).all()
            assert (words == 0).all()

    def test_random_bits(self):
        state = other = 0
        for _ in range(1000):
            state, other = door(next_state)(state), naive_tree.xorshift(other)
            assert state == other

    def test_groups(self):
        rng = np.random.default_rng(12)
        supports = [rng.permutation(300)[: rng.integers(5, 120)] for _ in range(30)]
        members = [rng.permutation(s)[: rng.integers(1, len(s) + 1)] for s in supports for _ in range(6)]
        coalitions = Coalitions.from_lists(members, [[0]] * len(members))
        todo = np.arange(0, len(members), 2)
        at, n_groups = 0, 0
        while at < len(todo):
            slot_of_row, rows = np.full(300, -1, dtype=np.int32), np.zeros(500, dtype=np.int32)
            stop, n = cart.form_group(coalitions.indptr, coalitions.players, todo, at, slot_of_row, rows)
            assert (stop, rows[:n].tolist()) == naive_tree.next_group(coalitions, todo.tolist(), at, cart.GROUP)
            assert (slot_of_row[rows[:n]] == np.arange(n)).all()
            assert (slot_of_row >= 0).sum() == n
            at, n_groups = stop, n_groups + 1
        assert 10 < n_groups < 80

    @pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
    @given(st.data())
    def test_the_best_cut_of_a_column(self, criterion, data):
        n = data.draw(st.integers(2, 12))
        column = np.array(data.draw(st.lists(st.integers(0, 8), min_size=n, max_size=n)), dtype=np.float32)
        y = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
        min_leaf = data.draw(st.integers(1, 3))
        order = np.argsort(column, kind="stable")
        classes, targets = np.array(y, dtype=np.uint32), np.array(y, dtype=float)
        total, left = np.bincount(y, minlength=4), np.zeros(4, dtype=np.int64)
        where = (0, n, order.astype(np.uint32), column)
        best = -np.inf
        if criterion == "gini":
            found, cut = door(scan_gini)(*where, classes, total, int((total**2).sum()), left, min_leaf, best)
        elif criterion == "entropy":
            terms = TreeTrainer(
                classifier(criterion="entropy"), task_of(np.zeros((99, 1)), [0, 1, 2] * 33, [[0]])
            )._terms
            found, cut = door(scan_entropy)(*where, classes, total, terms, left, min_leaf, best)
        else:
            found, cut = door(scan_squares)(*where, targets, targets.sum(), min_leaf, best)
        cuts = naive_tree.cuts(column.tolist(), y, criterion, min_leaf)
        if not cuts:
            assert cut == -1
            return
        best_quality = max(q for q, *_ in cuts)
        assert cut in [n_left for q, n_left, *_ in cuts if q == best_quality]
        if criterion != "squared_error":
            parts = [y[i] for i in order[:cut]], [y[i] for i in order[cut:]]
            expected = -sum(len(part) * naive_tree.impurity(part, criterion) for part in parts)
            np.testing.assert_allclose(found, expected, atol=1e-12)

    def test_lists_are_split_in_their_order(self):
        rng = np.random.default_rng(13)
        for _ in range(50):
            n = int(rng.integers(2, 30))
            start, stop = np.sort(rng.permutation(n + 1)[:2])
            lists = np.zeros((3, 1, n), dtype=np.uint32)
            lists[1, 0] = rng.permutation(n)
            on_left = rng.integers(0, 2, size=n)
            part = lists[1, 0, start:stop]
            cut = start + int(on_left[part].sum())
            cart.split_list(lists[1, 0], lists[2, 0], start, stop, cut, on_left)
            expected = [s for s in part if on_left[s]] + [s for s in part if not on_left[s]]
            assert lists[2, 0, start:stop].tolist() == expected


class TestTrainer:
    @pytest.mark.parametrize("name", ["iris", "diabetes"])
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_neither_threads_nor_batches_nor_order_change_a_bit(self, name, n_jobs):
        task = real(name)
        model = regressor() if name == "diabetes" else classifier()
        coalitions = some_coalitions(task, 400, (0, 40))
        expected = TreeTrainer(model, task, 1).evaluate(coalitions)
        trainer = TreeTrainer(model, task, n_jobs)
        assert (trainer.evaluate(coalitions) == expected).all()
        alone = [trainer.evaluate(coalitions.part(c, c + 1)) for c in range(len(coalitions))]
        assert (np.concatenate(alone) == expected).all()
        order = np.random.default_rng(0).permutation(len(coalitions))
        shuffled = Coalitions.from_lists(
            [coalitions.coalition(c) for c in order], [coalitions.tests_of(c) for c in order]
        )
        places = np.concatenate([np.arange(*coalitions.test_indptr[c : c + 2]) for c in order])
        assert (trainer.evaluate(shuffled) == expected[places]).all()

    @pytest.mark.parametrize("score", ["confidence", "accuracy", "margin", "log_loss", "custom"])
    def test_scores_of_classifiers(self, score):
        data = real("iris")

        def odd(truth, predicted):
            return 0.3 if truth == predicted else truth * predicted / 7

        labels = (np.unique(data.y), np.empty(0))
        chosen = Custom(odd, labels) if score == "custom" else SCORES[score]()
        task = task_of(data.X, data.y, data.X_test, data.y_test, score=chosen)
        coalitions = some_coalitions(task, 100, (0, 20))
        model = classifier(min_samples_leaf=2)
        found = TreeTrainer(model, task, 2).evaluate(coalitions)
        np.testing.assert_allclose(found, Estimator(model).trainer(task).evaluate(coalitions), rtol=1e-14)
        assert len(np.unique(found)) > 2

    @pytest.mark.parametrize("score", ["squared_error", "absolute_error", "custom"])
    def test_scores_of_regressors(self, score):
        data = real("diabetes")
        chosen = Custom(lambda truth, x: -(abs(truth - x) ** 0.5), None) if score == "custom" else SCORES[score]()
        task = task_of(data.X, data.y, data.X_test, data.y_test, score=chosen, regression=True)
        coalitions = some_coalitions(task, 100, (0, 20))
        model = regressor(min_samples_leaf=2)
        found = TreeTrainer(model, task, 2).evaluate(coalitions)
        np.testing.assert_allclose(found, Estimator(model).trainer(task).evaluate(coalitions), rtol=1e-14)

    def test_coalitions_without_training_are_counted(self):
        task = real("iris")
        coalitions = some_coalitions(task, 300, (0, 5))
        compiled, asis = TreeTrainer(classifier(), task), Estimator(classifier()).trainer(task)
        assert compiled.train(coalitions).counts.trivial == asis.train(coalitions).counts.trivial > 20


class TestIsUsable:
    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ({"max_leaf_nodes": 5}, "max_leaf_nodes=5"),
            ({"min_weight_fraction_leaf": 0.1}, "min_weight_fraction_leaf=0.1"),
            ({"ccp_alpha": 0.01}, "ccp_alpha=0.01"),
            ({"monotonic_cst": [0, 0, 0, 1]}, "monotonic_cst=[0, 0, 0, 1]"),
        ],
    )
    def test_settings_that_are_not_reproduced(self, settings, reason):
        for model, task in ((classifier(**settings), real("iris")), (regressor(**settings), real("diabetes"))):
            usable = TreeTrainer.is_usable_for(model, task)
            assert not usable
            assert usable.reason == reason

    @pytest.mark.parametrize("criterion", ["absolute_error", "poisson"])
    def test_other_criteria(self, criterion):
        usable = TreeTrainer.is_usable_for(regressor(criterion=criterion), real("diabetes"))
        assert usable.reason == f"criterion='{criterion}'"

    def test_numbers_beyond_32_bits(self):
        data = real("iris")
        for X, X_test in ((1e38 * data.X, data.X_test), (data.X, 1e39 * data.X_test)):
            assert TreeTrainer.is_usable_for(classifier(), task_of(X, data.y, X_test)).reason == (
                "X has numbers too large for 32 bits"
            )

    def test_missing_values(self):
        data = real("iris")
        X = data.X.copy()
        X[3, 1] = np.nan
        assert not TreeTrainer.is_usable_for(classifier(), task_of(X, data.y, data.X_test))

    def test_the_note_says_why(self):
        data = real("iris", n_rows=30, n_tests=3)
        arguments = (data.X, data.y, data.X_test, data.y_test)
        v = ls.value(*arguments, model=classifier(max_leaf_nodes=3), support=Given([[0, 1, 2, 3]] * 3))
        assert "scikit-learn fit" in v.cost.trainer
        assert any("max_leaf_nodes=3" in note for note in v.notes)


class TestValue:
    @staticmethod
    def value(task, model, **options):
        rng = np.random.default_rng(14)
        supports = [np.sort(rng.permutation(16)[:6]).tolist() for _ in task.X_test]
        y_test = task.y_test if task.classes is None else task.classes[task.y_test]
        data = (task.X, task.y, task.X_test, y_test)
        return ls.value(*data, model=model, support=Given(supports), per_test=True, **options)

    @pytest.mark.parametrize(
        ("name", "model"),
        [
            ("iris", classifier()),
            ("iris", DecisionTreeClassifier(criterion="entropy")),
            ("wine", classifier(max_depth=2, max_features="sqrt")),
            ("digits", classifier(random_state=5)),
            ("diabetes", regressor()),
            ("diabetes", DecisionTreeRegressor(max_depth=3)),
        ],
        ids=str,
    )
    def test_values_are_those_of_plain_training(self, name, model):
        task = real(name, n_rows=16, n_tests=6)
        found, expected = self.value(task, model), self.value(task, Estimator(model))
        assert "compiled" in found.cost.trainer
        assert "scikit-learn fit" in expected.cost.trainer
        assert not found.notes
        scale = np.abs(expected.per_test.data).max()
        np.testing.assert_allclose(found.per_test.toarray(), expected.per_test.toarray(), atol=1e-12 * scale)
        np.testing.assert_allclose(found.values, expected.values, atol=1e-12 * scale)
        assert found.cost.trivial == expected.cost.trivial
        assert scale > 0.05

    @pytest.mark.parametrize("method", ["exact", "subset-centric"])
    def test_every_method_gives_these_values(self, method):
        task = real("iris", n_rows=16, n_tests=4)
        found, expected = (self.value(task, m, method=method) for m in (classifier(), Estimator(classifier())))
        np.testing.assert_allclose(found.values, expected.values, atol=1e-12)

    def test_one_job_and_two_give_the_same_bits(self):
        task = real("iris", n_rows=16, n_tests=6)
        one, two = (self.value(task, classifier(), n_jobs=n_jobs) for n_jobs in (1, 2))
        assert (one.values == two.values).all()

    def test_the_switch_turns_it_off(self, monkeypatch):
        task = real("iris", n_rows=16, n_tests=4)
        found = self.value(task, classifier())
        monkeypatch.setenv("LOCALSHAPLEY_COMPILED", "0")
        asis = self.value(task, classifier())
        assert ("compiled" in found.cost.trainer, "scikit-learn fit" in asis.cost.trainer) == (True, True)
        np.testing.assert_allclose(found.values, asis.values, atol=1e-12)
