"""Runs with a store: what is trained, what is found again, and what never matches."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge, SGDClassifier
from sklearn.model_selection import RepeatedKFold
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import localshapley as ls
from localshapley.coalitions.batch import Coalitions
from localshapley.models.task import Task
from localshapley.problem.fingerprints import describe
from localshapley.problem.store_keys import ScoreKeys, contents_of_folds, digest_rows
from localshapley.problem.support_search import of_folds

X, Y, X_TEST, Y_TEST, _ = ls.datasets.load("iris")
X_TEST, Y_TEST = X_TEST[:10], Y_TEST[:10]
SUPPORT = ls.supports.Nearest(6)


class CountingTree(DecisionTreeClassifier):
    """A tree, never compiled, that says how often it was fitted."""

    fits = 0

    def fit(self, X, y):
        CountingTree.fits += 1
        return super().fit(X, y)


@pytest.fixture
def fits():
    """Number of fits since it was last asked."""

    def since():
        found, CountingTree.fits = CountingTree.fits, 0
        return found

    since()
    return since


def opened(store):
    """A store that is used however quick the trainings are."""
    return ls.Store(store, fastest=0) if isinstance(store, os.PathLike) else nullcontext(store)


def run(store=None, data=(X, Y, X_TEST, Y_TEST), **settings):
    about = {"model": CountingTree(random_state=0), "support": SUPPORT, "method": "exact", **settings}
    with opened(store) as file:
        return ls.value(*data, store=file, **about)


def same_bits(a, b):
    return (a.values == b.values).all() and (a.stderr == b.stderr).all()


class TestReuse:
    def test_the_same_run_again_trains_nothing(self, tmp_path, fits):
        first = run(tmp_path / "run.db")
        trained = fits()
        again = run(tmp_path / "run.db")
        assert trained > 60
        assert fits() == 1  # the reference model
        assert again.cost.trainings == 0
        assert again.cost.stored == first.cost.trainings == first.cost.distinct
        assert same_bits(first, again)
        assert same_bits(first, run())

    def test_sampled_runs_share_with_longer_and_with_exact_ones(self, tmp_path, fits):
        short = run(tmp_path / "run.db", method="sample", budget=150)
        longer = run(tmp_path / "run.db", method="sample", budget=300)
        exact = run(tmp_path / "run.db")
        alone = run(method="sample", budget=300)
        assert same_bits(longer, alone)
        assert longer.cost.stored >= 0.5 * short.cost.trainings
        # No coalition was trained twice, and all are there now.
        assert short.cost.trainings + longer.cost.trainings + exact.cost.trainings == exact.cost.distinct
        assert same_bits(exact, run())

    def test_a_tighter_target_goes_on_from_the_looser_one(self, tmp_path):
        loose = run(tmp_path / "run.db", method="sample", tol=0.3)
        tight = run(tmp_path / "run.db", method="sample", tol=0.1)
        assert tight.cost.stored >= 0.9 * loose.cost.trainings
        with ls.Store(tmp_path / "run.db") as store:
            assert store.info().n_coalitions == loose.cost.trainings + tight.cost.trainings
        assert same_bits(tight, run(method="sample", tol=0.1))

    def test_rows_in_another_order_are_the_same_rows_to_trees(self, tmp_path):
        first = run(tmp_path / "run.db")
        order, tests = np.random.default_rng(0).permutation(len(X)), np.random.default_rng(1).permutation(len(X_TEST))
        again = run(tmp_path / "run.db", (X[order], Y[order], X_TEST[tests], Y_TEST[tests]))
        assert again.cost.trainings == 0
        np.testing.assert_allclose(again.values, first.values[order], atol=1e-12)

    def test_more_test_rows_cost_their_own_subsets_only(self, tmp_path):
        run(tmp_path / "run.db", (X, Y, X_TEST[:9], Y_TEST[:9]))
        more = run(tmp_path / "run.db")
        alone = run(data=(X, Y, X_TEST[9:], Y_TEST[9:]))
        scratch = run()
        assert same_bits(more, scratch)
        assert more.cost.trainings <= alone.cost.trainings < 0.3 * scratch.cost.trainings

    def test_one_more_training_row_costs_the_subsets_that_hold_it(self, tmp_path):
        run(tmp_path / "run.db", (X[1:], Y[1:], X_TEST, Y_TEST))
        graph = ls.SupportGraph(supports_of(X), len(X))
        with_it = sum(1 for s in distinct(graph) if 0 in s)
        more = run(tmp_path / "run.db")
        scratch = run()
        assert more.cost.trainings == with_it
        assert same_bits(more, scratch)

    def test_a_sparse_table_and_a_frame_are_found_again(self, tmp_path):
        frame = pd.DataFrame(X, columns=list("abcd"))
        for table in (sparse.csr_matrix, lambda a: pd.DataFrame(a, columns=list("abcd"))):
            data = table(X), Y, table(X_TEST), Y_TEST
            first = run(tmp_path / "run.db", data)
            assert first.cost.trainings + first.cost.stored == first.cost.distinct
            assert run(tmp_path / "run.db", data).cost.trainings == 0
        assert frame.shape == X.shape

    def test_regressors_share_when_a_row_is_added(self, tmp_path):
        data = ls.datasets.load("diabetes")[:4]
        data = data[0][:80], data[1][:80], data[2][:6], data[3][:6]
        about = {"model": ls.models.Estimator(DecisionTreeRegressor(random_state=0)), "support": SUPPORT}
        less = tuple(part[1:] for part in data[:2]) + data[2:]
        run(tmp_path / "run.db", less, **about)
        more, scratch = run(tmp_path / "run.db", data, **about), run(None, data, **about)
        assert same_bits(more, scratch)  # the mean of y, which the empty coalition predicts, has changed
        assert more.cost.stored > 0.5 * scratch.cost.trainings

    @pytest.mark.slow
    def test_in_processes(self, tmp_path):
        first = run(tmp_path / "run.db", n_jobs=2)
        again = run(tmp_path / "run.db", n_jobs=2)
        assert again.cost.trainings == 0
        assert same_bits(first, again)
        assert same_bits(first, run())

    def test_a_store_that_is_open_stays_open(self, tmp_path):
        with ls.Store(tmp_path / "run.db") as store:
            run(store)
            assert run(store).cost.trainings == 0
            assert store.info().n_coalitions == run().cost.distinct


EQUAL = np.array([[0, 1], [1, 2], [2, 0], [1.6, 0.4], [1, 2], [2, 0]])
"""Rows of which two pairs are equal, and so are their labels."""
CLASSES, AMOUNTS = np.array([0, 1, 0, 1, 1, 0]), np.array([1, 2.5, 4.1, 0.3, 2.5, 4.1])
TESTS = np.array([[0.9, 1.6], [1.8, 0.2]]), np.array([1, 0]), np.array([2.0, 3.5])
READ_ORDER = {
    "forest": RandomForestClassifier(3),
    "sgd": SGDClassifier(max_iter=50),
    "bagging": BaggingClassifier(n_estimators=2),
    "svm": SVC(),
    "linear svm": LinearSVC(),
    "neighbours": ls.models.Estimator(KNeighborsClassifier(1)),
    "scaled": ls.models.Refit(make_pipeline(StandardScaler(), Perceptron())),
    "weighted tree": ls.models.Estimator(DecisionTreeClassifier(class_weight={0: 0.1, 1: 0.7}, random_state=0)),
    "tree": CountingTree(random_state=0),
    "compiled tree": DecisionTreeClassifier(max_features=1, random_state=0),
    "svm of amounts": SVR(),
    "ridge": ls.models.Estimator(Ridge()),
    "tree of amounts": ls.models.Estimator(DecisionTreeRegressor(random_state=0)),
}
"""And trees of classes, which do not."""
OF_AMOUNTS = ("svm of amounts", "ridge", "tree of amounts")


class TestEqualRows:
    @pytest.mark.parametrize("name", READ_ORDER)
    def test_a_store_changes_no_bit(self, name, tmp_path):
        """The order of rows says which random numbers a forest gives them, which neighbour is the nearest of equally
        near ones, and the last bits of every sum."""
        model = READ_ORDER[name]
        y, y_test = (AMOUNTS, TESTS[2]) if name in OF_AMOUNTS else (CLASSES, TESTS[1])
        for rows in ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5], [0, 2, 3, 4, 5], [5, 3, 4, 1, 0, 2]):
            data = EQUAL[rows], y[rows], TESTS[0], y_test
            about = {"model": model, "support": ls.supports.Everything()}
            kept, alone = run(tmp_path / "run.db", data, **about), run(None, data, **about)
            assert same_bits(kept, alone), rows
            if len(rows) == 5:  # a row that goes away leaves the others as they were, but for the mean that ∅ predicts
                assert kept.cost.trainings == (name in OF_AMOUNTS)

    @pytest.mark.parametrize("owners", [None, list("abaabb")], ids=["rows", "owners"])
    @pytest.mark.parametrize(
        "model",
        [
            Ridge(),
            ls.models.Estimator(Ridge()),
            make_pipeline("passthrough", Ridge()),
            make_pipeline("passthrough", CountingTree(random_state=0)),
            CountingTree(random_state=0),
        ],
        ids=["ridge", "plain ridge", "pipeline", "pipeline of a tree", "tree"],
    )
    def test_in_different_folds(self, model, owners, tmp_path):
        """Equal rows have test rows of their own, and models without them: what is found must not be the other's."""
        rows = np.array([[0], [1], [2], [0], [3], [4.0]])
        y = np.array([0, 1, 0, 0, 1, 1]) if "Tree" in repr(model) else np.array([1, 2, 4, 1, 9, 7.0])
        folds = [(np.array([3, 4, 5]), np.array([0, 1, 2])), (np.array([0, 1, 2]), np.array([3, 4, 5]))]
        about = {"model": model, "owners": owners, "support": ls.supports.Everything(), "cv": folds}
        alone = run(None, (rows, y), **about)
        first, again = (run(tmp_path / "run.db", (rows, y), **about) for _ in range(2))
        assert same_bits(first, alone)
        assert same_bits(again, alone)
        assert again.cost.trainings == 0
        swapped = [(test, train) for train, test in folds[:1]] + [(np.array([0, 1, 4]), np.array([2, 3, 5]))]
        about["cv"] = swapped
        assert same_bits(run(tmp_path / "run.db", (rows, y), **about), run(None, (rows, y), **about))

    @pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
    def test_where_the_model_has_no_answer(self, plain, tmp_path):
        """The mean that is predicted then is one of all rows, which are others in another fold and in the next run."""
        rows = np.array([[0], [0.1], [5], [9], [9.1], [14.0], [0.2], [9.2]])
        y = np.array([1, 2, 4, 1, 9, 7.0, 3, 11])
        model = RadiusNeighborsRegressor(0.15, weights="distance")
        about = {
            "model": ls.models.Estimator(model) if plain else model,
            "support": ls.supports.Nearest(3),
            "cv": RepeatedKFold(n_splits=2, n_repeats=3, random_state=0),
        }
        for n in (6, 8):
            alone = run(None, (rows[:n], y[:n]), **about)
            for _ in range(2):
                assert same_bits(run(tmp_path / "run.db", (rows[:n], y[:n]), **about), alone)


def supports_of(rows):
    from localshapley.supports.nearest import nearest_rows

    return nearest_rows(rows, X_TEST, SUPPORT.n)


def distinct(graph):
    import naive

    return naive.distinct_subsets([graph.support(t) for t in range(graph.n_tests)])


OTHERS = {
    "model": {"model": CountingTree(random_state=0, max_depth=2)},
    "random state": {"model": CountingTree(random_state=1)},
    "class of model": {"model": RandomForestClassifier(2, random_state=0)},
    "score": {"score": "margin"},
    "parameter of the score": {"score": ls.scoring.LogLoss(1e-3)},
    "empty": {"empty": 0.0},
    "function": {"score": lambda y, p: float(y == p)},
    "another function": {"score": lambda y, p: float(y == p) + 1},
    "pipeline": {"model": make_pipeline(StandardScaler(), CountingTree(random_state=0))},
}


class TestNoAccidentalMatch:
    @pytest.mark.parametrize("name", OTHERS)
    def test_of_another(self, name, tmp_path):
        settings = OTHERS[name]
        base = {"score": lambda y, p: float(y == p) + 2} if name == "another function" else {}
        run(tmp_path / "run.db", **base)
        other = run(tmp_path / "run.db", **settings)
        assert other.cost.stored == 0
        assert same_bits(other, run(**settings))

    def test_of_an_open_random_state_with_another_seed(self, tmp_path):
        run(tmp_path / "run.db", model=RandomForestClassifier(2), seed=0)
        assert run(tmp_path / "run.db", model=RandomForestClassifier(2), seed=1).cost.stored == 0

    def test_of_changed_rows_labels_and_test_rows(self, tmp_path):
        store = tmp_path / "run.db"
        run(store)
        moved = X + 1e-9
        flipped = (Y + 1) % 3
        assert run(store, (moved, Y, X_TEST, Y_TEST)).cost.stored == 1  # the empty coalition
        assert run(store, (X, flipped, X_TEST, Y_TEST)).cost.stored == 1
        assert run(store, (X, Y, X_TEST + 1e-9, Y_TEST)).cost.stored == 0
        assert run(store, (X, Y, X_TEST, (Y_TEST + 1) % 3)).cost.stored == 0

    def test_of_swapped_columns(self, tmp_path):
        run(tmp_path / "run.db")
        swapped = X[:, ::-1], Y, X_TEST[:, ::-1], Y_TEST
        assert run(tmp_path / "run.db", swapped).cost.stored == 0

    def test_of_compiled_and_plain(self, tmp_path):
        run(tmp_path / "run.db", model=DecisionTreeClassifier(random_state=0))
        plain = run(tmp_path / "run.db", model=ls.models.Estimator(DecisionTreeClassifier(random_state=0)))
        assert plain.cost.stored == 0


class TestDescribe:
    def test_code_and_what_it_closes_over_count(self):
        def make(n):
            return lambda x: x + n

        assert describe(make(1)) == describe(make(1))
        assert describe(make(1)) != describe(make(2))
        assert describe(lambda x, n=1: x) != describe(lambda x, n=2: x)
        assert describe(partial(max, 1, key=abs)) == describe(partial(max, 1, key=abs))
        assert len({describe(partial(max, n, key=key)) for n in (1, 2) for key in (abs, len)}) == 4

    def test_arguments_that_are_given_by_name_count(self):
        assert describe(lambda x, *, n=1: x) != describe(lambda x, *, n=2: x)

    def test_a_function_may_use_itself(self):
        def factorial(n):
            return n * factorial(n - 1) if n else 1

        def make(last):
            def down(n):
                return down(n - 1) if n else last

            return down

        assert describe(factorial) == describe(factorial)
        assert describe(make(1)) == describe(make(1))
        assert describe(make(1)) != describe(make(2))

    @pytest.mark.parametrize(
        ("one", "two"),
        [
            ("def helper(x): return x + 1", "def helper(x): return x + 2"),
            ("helper = lambda x: x; helper.__defaults__ = (1,)", "helper = lambda x: x; helper.__defaults__ = (2,)"),
            ("helper = [1, 2]", "helper = [1, 3]"),
            ("import numpy as np; helper = np.arange(3)", "import numpy as np; helper = np.arange(4)"),
            ("class helper:\n    def f(self): pass", "class helper:\n    def f(self): return 1"),
            ("import pathlib; helper = pathlib.Path('a')", "import pathlib; helper = pathlib.Path('b')"),
            ("import pandas as pd; helper = pd.Series([1])", "import pandas as pd; helper = pd.Series([2])"),
            ("class Base:\n    n = 1\nclass helper(Base): pass", "class Base:\n    n = 2\nclass helper(Base): pass"),
        ],
        ids=["function", "defaults", "list", "array", "class", "path", "column", "base class"],
    )  # fmt: skip
    def test_what_a_function_uses_counts(self, one, two):
        def score(uses):
            names = {"__name__": "somewhere"}  # without a source that could be read
            exec(f"{uses}\ndef score(y): return [helper for _ in y]", names)
            return names["score"]

        assert describe(score(one)) == describe(score(one))
        assert describe(score(one)) != describe(score(two))

    def test_loggers_and_other_tools_that_a_function_uses_do_not_count(self):
        names = {"__name__": "somewhere"}
        exec("import logging, threading\nlog, lock = logging.getLogger('a'), threading.Lock()", names)
        exec("def score(y):\n    with lock: log.info(y)", names)
        before = describe(names["score"])
        names["log"].setLevel(10)
        names["lock"].acquire()
        assert describe(names["score"]) == before

    def test_methods_of_a_class_and_of_its_bases_count(self):
        def model(method, base):
            names = {"__name__": "somewhere"}
            exec(f"class Base:\n    def f(self): {base}\nclass Model(Base):\n    def g(self): {method}", names)
            return names["Model"]()

        assert describe(model("return 1", "return 1")) == describe(model("return 1", "return 1"))
        found = {describe(model(method, base)) for method in ("return 1", "return 2") for base in ("pass", "return 3")}
        assert len(found) == 4

    def test_globals_that_share_their_name_with_an_attribute_do_not_count_nor_do_counters(self):
        names = {"__name__": "somewhere", "mean": 1, "n": 0}
        exec("def score(y):\n    global n\n    n += 1\n    return y.mean()", names)
        before = describe(names["score"])
        names |= {"mean": 2, "n": 5}
        assert describe(names["score"]) == before

    def test_helpers_that_many_use_are_not_repeated(self):
        names = {"__name__": "somewhere"}
        for i in range(20):
            exec(
                f"def f{i}(x): return {f'f{i - 1}(x) + g{i - 1}(x)' if i else 'x'}\ndef g{i}(x): return f{i}(x)", names
            )
        assert len(describe(names["g19"])) < 2000

    def test_what_is_put_into_a_class_later_does_not_count(self, monkeypatch):
        before = describe(CountingTree())
        calls = []
        monkeypatch.setattr(CountingTree, "fits", 7)
        monkeypatch.setattr(CountingTree, "told", staticmethod(calls.append), raising=False)
        monkeypatch.setattr(CountingTree, "tell", lambda self: calls.append(1), raising=False)
        assert describe(CountingTree()) == before

    def test_connections_that_a_function_closes_over_do_not_count(self):
        def make():
            ours, _ = multiprocessing.Pipe()
            return lambda y: ours.send(y)

        assert describe(make()) == describe(make())

    def test_numbers_of_different_kinds_differ(self):
        assert len({describe(v) for v in (1, 1.0, True, "1", b"1", np.float32(1), np.float64(1))}) == 7

    def test_order_of_keys_does_not_count(self):
        assert describe({"a": 1, "b": 2}) == describe({"b": 2, "a": 1})

    def test_arrays_count_by_contents(self):
        assert describe(np.arange(5)) == describe(np.arange(10)[:5])
        assert describe(np.arange(5)) != describe(np.arange(5.0))

    def test_tensors_by_contents(self):
        torch = pytest.importorskip("torch")
        one, two = (torch.nn.Linear(2, 2) for _ in range(2))
        assert describe(one) != describe(two)
        two.load_state_dict(one.state_dict())
        assert describe(one) == describe(two)

    def test_it_is_the_same_in_another_process(self):
        code = "from localshapley.problem.fingerprints import describe; import localshapley as ls; "
        code += "from sklearn.svm import SVC; "
        code += "print(describe([SVC(gamma=2), ls.scoring.Confidence(), {'b', 'a'}, {1: (2, None)}]))"
        there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        here = describe([SVC(gamma=2), ls.scoring.Confidence(), {"b", "a"}, {1: (2, None)}])
        assert there.strip() == here


class TestDigests:
    def test_rows_count_by_value_and_label(self):
        rows = np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])
        found = [d.tobytes() for d in digest_rows(rows, np.array(["a", "a", "a", "b"]))]
        assert found[0] == found[1]
        assert len(set(found)) == 3

    def test_zeros_and_missing_values(self):
        y = np.zeros(2)
        assert len({d.tobytes() for d in digest_rows(np.array([[0.0], [-0.0]]), y)}) == 1
        assert len({d.tobytes() for d in digest_rows(np.array([[np.nan], [-np.nan]]), y)}) == 1

    def test_a_million_rows_that_differ_in_a_bit_are_told_apart(self):
        rows = np.arange(1_000_000.0)[:, None]
        found = digest_rows(rows, np.zeros(len(rows)))
        assert len(np.unique(found[:, 0])) == len(np.unique(found[:, 1])) == len(rows)

    def test_coalitions_are_told_apart_by_their_rows_in_their_order(self):
        rng = np.random.default_rng(0)
        rows, y = rng.integers(0, 2, (12, 1)).astype(float), np.zeros(12)
        digests = digest_rows(rows, y)
        chosen = [np.sort(rng.permutation(12)[: rng.integers(1, 6)]).astype(np.int32) for _ in range(400)]
        coalitions = Coalitions.from_lists(chosen, [[0]] * 400)
        for reads_order in (True, False):
            found = ScoreKeys(bytes(16), "", digests, digests, digests, reads_order).keys(coalitions)[0]
            texts = ["".join(str(int(x)) for x in rows[c, 0]) for c in chosen]
            expected = texts if reads_order else ["".join(sorted(text)) for text in texts]
            assert len(set(expected)) == len({key.tobytes() for key in found})
            assert len(set(expected)) == len(set(zip(expected, (key.tobytes() for key in found), strict=True)))

    def test_rows_that_folds_swap_are_told_apart(self):
        """What one row is in the first fold, the other is in the second."""
        y = np.zeros(4)
        task = Task(np.zeros((4, 1)), y, np.zeros((4, 1)), y, None, None, ls.scoring.SquaredError())
        folds = [(np.array([0, 1, 2]), np.array([3])), (np.array([0, 1, 3]), np.array([2]))]
        first, second = np.array([[1.0], [2], [5]]), np.array([[2.0], [1], [5]])
        parts = [replace(part, X=X) for part, X in zip(of_folds(task, folds), (first, second), strict=True)]
        trainer = ls.models.Estimator(Ridge()).trainer(task)
        found = contents_of_folds(parts, folds, np.array([1, 0]), task, Ridge(), trainer)
        assert len({digest.tobytes() for digest in found.rows}) == 4
        assert len({digest.tobytes() for digest in found.tests}) == 2  # equal test rows, of different folds

    def test_text_and_categories_of_a_frame(self):
        frame = pd.DataFrame({"a": ["x", "y", "x"], "b": [1, 2, 1]})
        found = [d.tobytes() for d in digest_rows(frame, np.zeros(3))]
        assert found[0] == found[2] != found[1]
        other = [d.tobytes() for d in digest_rows(frame.rename(columns={"a": "c"}), np.zeros(3))]
        assert other[0] != found[0]


class TestNotes:
    def test_quick_trainings_are_not_stored(self, tmp_path):
        with ls.Store(tmp_path / "run.db", fastest=1e9) as store:
            v = run(store, support=ls.supports.Nearest(9))
        (note,) = (note for note in v.notes if "the store was not used after" in note)
        n_trained = int(note.split("after ")[1].split(" training")[0].replace(",", ""))
        with ls.Store(tmp_path / "run.db") as store:
            assert 0 < store.info().n_coalitions < v.cost.distinct
        assert 0 < n_trained < v.cost.distinct

    def test_values_without_trainings_say_so(self, tmp_path):
        v = ls.value(X, Y, X_TEST, Y_TEST, model="knn", store=tmp_path / "run.db")
        assert "the store was not used: these values need no training." in v.notes

    def test_failures_are_tried_again(self, tmp_path):
        from sklearn.decomposition import PCA

        model = ls.models.Refit(make_pipeline(PCA(3), LogisticRegression(max_iter=200)))
        first = run(tmp_path / "run.db", model=model, support=ls.supports.Nearest(5))
        again = run(tmp_path / "run.db", model=model, support=ls.supports.Nearest(5))
        assert again.cost.trainings > 0
        assert [n for n in again.notes if "too small" in n] == [n for n in first.notes if "too small" in n]
        assert same_bits(first, again)

    def test_a_run_whose_disk_is_full_goes_on_and_says_so(self, tmp_path, monkeypatch):
        add, left = ls.Store.add, [2]

        def add_twice(self, *args):
            left[0] -= 1
            if left[0] < 0:
                raise ls.StoreError("the disk is full")
            add(self, *args)

        monkeypatch.setattr(ls.Store, "add", add_twice)
        with pytest.warns(ls.LocalShapleyWarning, match="the disk is full"):
            v = run(tmp_path / "run.db")
        assert left[0] == -1  # it was not tried again and again
        assert any("continued without its store" in note for note in v.notes)
        assert same_bits(v, run())
        with ls.Store(tmp_path / "run.db") as store:
            assert store.verify() == []
            assert store.info().n_coalitions > 0

    @pytest.mark.parametrize("after", [0, 1, 3])
    def test_damage_in_the_middle_of_a_run_ends_the_storing_and_not_the_run(self, tmp_path, monkeypatch, after):
        run(tmp_path / "run.db", method="sample", budget=150)
        lookup, left = ls.Store.lookup, [after]

        def damaged(self, *args):
            left[0] -= 1
            if left[0] < 0:
                raise ls.StoreError("it is damaged")
            return lookup(self, *args)

        monkeypatch.setattr(ls.Store, "lookup", damaged)
        with pytest.warns(ls.LocalShapleyWarning, match="it is damaged"):
            v = run(tmp_path / "run.db", method="sample", budget=300)
        assert left[0] == -1  # it was not asked again
        assert [note for note in v.notes if "continued without its store" in note]
        assert same_bits(v, run(method="sample", budget=300))

    @pytest.mark.parametrize("store", ["a\0b", "a\ud800"])
    def test_a_path_that_no_file_can_have(self, store):
        with pytest.raises(ls.InvalidArgumentError, match=r"store must be a path such as 'run\.db'; got 'a"):
            run(store)

    @pytest.mark.parametrize("store", [5, True, ["run.db"]])
    def test_what_is_no_store_is_refused(self, store):
        with pytest.raises(ls.InvalidArgumentError, match="store must be a path"):
            run(store)

    def test_a_file_of_another_program_is_refused_and_kept(self, tmp_path):
        path = tmp_path / "notes.txt"
        path.write_text("not a store\n" * 100)
        with pytest.raises(ls.StoreError, match=r"notes\.txt"):
            run(path)
        assert path.read_text() == "not a store\n" * 100


class TestGames:
    def test_a_named_game_is_found_again(self, tmp_path):
        calls = []

        def utility(coalition, tests):
            calls.append(len(coalition))
            return [float(len(coalition)) ** 0.5 for _ in tests]

        settings = {"store": ls.Store(tmp_path / "run.db", fastest=0), "name": "roots"}
        first = ls.shapley([range(6), range(3, 9)], utility, **settings)
        n = len(calls)
        again = ls.shapley([range(6), range(3, 9)], utility, **settings)
        assert n == first.cost.trainings == first.cost.distinct
        assert len(calls) == n
        assert again.cost.stored == n
        other = ls.shapley([range(6), range(3, 9)], utility, store=settings["store"], name="others")
        assert other.cost.stored == 0

    def test_a_store_needs_a_name(self, tmp_path):
        with pytest.raises(ls.InvalidArgumentError, match="name="):
            ls.shapley([range(3)], lambda c, t: [0.0] * len(t), store=tmp_path / "run.db")


class TellingTree(DecisionTreeClassifier):
    """A tree that tells of every fit."""

    tell = staticmethod(lambda: None)

    def fit(self, X, y):
        TellingTree.tell()
        return super().fit(X, y)


def valued(connection, store, method, last):
    """In a child: value, tell of every fit, send the result; never go on from the last fit that is allowed."""
    fits = count(1)

    def tell():
        connection.send("fit")
        if next(fits) == last:
            signal.pause()

    TellingTree.tell = tell
    about = {"method": method, "budget": 900 if method == "sample" else None, "support": ls.supports.Nearest(8)}
    v = run(store, model=TellingTree(random_state=0), **about)
    connection.send((v.values, v.stderr, v.cost.trainings))


@pytest.mark.parametrize(
    ("method", "kills"),
    [
        pytest.param("exact", 5, marks=pytest.mark.slow),
        ("sample", 3),
        *(pytest.param(m, 25, marks=pytest.mark.long) for m in ("exact", "sample")),
    ],
)
@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_in_the_same_bits(method, kills, tmp_path):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "localshapley.api"])

    def start(store, last=None):
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=valued, args=(theirs, store, method, last))
        child.start()
        theirs.close()
        return child, ours

    def result(store):
        child, connection = start(store)
        while (sent := connection.recv()) == "fit":
            pass
        child.join()
        return sent

    values, stderr, trainings = result(None)
    store = tmp_path / "run.db"
    rng = random.Random(0)
    stored = []
    for _ in range(kills):
        n_fits = rng.randint(2, 15)  # the first is the reference model's
        child, connection = start(store, n_fits + 20)  # or it might end before it is killed
        for _ in range(n_fits):
            assert connection.recv() == "fit"
        time.sleep(rng.uniform(0, 0.01))
        child.kill()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        with ls.Store(store) as file:
            assert file.verify() == []
            stored.append(file.info().n_coalitions)
    again = result(store)
    assert (again[0] == values).all()
    assert (again[1] == stderr).all()
    assert stored == sorted(stored)  # nothing is ever lost
    assert 0 < stored[-1] < trainings
    assert again[2] + stored[-1] == trainings  # and nothing is trained again


class TestUpdate:
    settings = {"model": CountingTree(random_state=0), "support": SUPPORT, "method": "exact"}  # noqa: RUF012

    def test_only_games_with_another_support_are_played(self, fits):
        before = ls.value(X[1:], Y[1:], X_TEST, Y_TEST, per_test=True, **self.settings)
        changed = [t for t, s in enumerate(supports_of(X)) if 0 in s]
        after = ls.update(before, X, Y, X_TEST, Y_TEST, **self.settings)
        scratch = ls.value(X, Y, X_TEST, Y_TEST, per_test=True, **self.settings)
        graph = ls.SupportGraph([supports_of(X)[t] for t in changed], len(X))
        assert after.cost.trainings == len(distinct(graph))
        assert 0 < after.cost.trainings < scratch.cost.trainings
        np.testing.assert_allclose(after.values, scratch.values, atol=1e-12)
        np.testing.assert_allclose(after.per_test.toarray(), scratch.per_test.toarray(), atol=1e-12)
        kept = len(X_TEST) - len(changed)
        assert f"{kept} of 10 test rows kept their values" in after.notes[-1]

    def test_rows_may_go_and_move(self):
        before = ls.value(X, Y, X_TEST, Y_TEST, per_test=True, **self.settings)
        order = np.random.default_rng(3).permutation(len(X))[:-5]
        data = X[order], Y[order], X_TEST[::-1][:8], Y_TEST[::-1][:8]
        after, scratch = ls.update(before, *data, **self.settings), ls.value(*data, **self.settings)
        np.testing.assert_allclose(after.values, scratch.values, atol=1e-12)
        assert after.cost.trainings < scratch.cost.trainings

    def test_nothing_learnt_by_a_regressor_is_another_mean(self, tmp_path):
        data = ls.datasets.load("diabetes")[:4]
        data = data[0][:60], data[1][:60], data[2][:8], data[3][:8]
        about = {"model": ls.models.Estimator(Ridge()), "support": ls.supports.Nearest(5), "method": "exact"}
        before = ls.value(data[0][1:], data[1][1:], *data[2:], per_test=True, **about)
        before.save(tmp_path / "v.parquet")
        after = ls.update(ls.load(tmp_path / "v.parquet"), *data, **about)
        np.testing.assert_allclose(after.values, ls.value(*data, **about).values, rtol=1e-9, atol=1e-9)

    def test_what_cannot_be_updated_is_refused(self):
        plain = ls.value(X, Y, X_TEST, Y_TEST, **self.settings)
        with pytest.raises(ls.InvalidArgumentError, match="per_test=True"):
            ls.update(plain, X, Y, X_TEST, Y_TEST, **self.settings)
        exact = ls.value(X, Y, X_TEST, Y_TEST, per_test=True, **self.settings)
        with pytest.raises(ls.InvalidArgumentError, match="another model"):
            ls.update(exact, X, Y, X_TEST, Y_TEST, **{**self.settings, "model": CountingTree(max_depth=1)})
