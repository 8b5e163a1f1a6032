"""`select` and `prune`: the right row at every step, what follows where nothing is gained, limits and refusals."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.engine.pieces import train_in_parts
from localshapley.selection.chosen_support import SelectionSupport
from localshapley.selection.harmful_rows import harmless
from localshapley.selection.selecting import _graph_of as graph_of
from localshapley.selection.selecting import _in_balance
from localshapley.supports import Nearest
from playing import pose
from tests import naive

iris = ls.datasets.load("iris")
DATA = iris.X[:40], iris.y[:40], iris.X_test[:15], iris.y_test[:15]
TREE = DecisionTreeClassifier(random_state=0)


def confidence_of(model, X, y, X_test, y_test):
    """A plain classifier, trained from nothing on every coalition."""
    classes = np.unique(y)

    def v(subset, t):
        rows = list(subset)
        if len(set(y[rows])) < 2:
            return float(y[rows[0]] == y_test[t]) if rows else 1 / len(classes)
        fitted = clone(model).fit(X[rows], y[rows])
        return float(fitted.predict_proba(X_test[t : t + 1])[0] @ (fitted.classes_ == y_test[t]))

    return v


def supports_of(n, *data, **settings):
    graph = pose(*data, support=Nearest(n), **settings).graph
    return [graph.support(t).tolist() for t in range(graph.n_tests)]


def three_groups():
    """Sixty rows of three classes that are far apart."""
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 20, axis=0) + 0.1 * rng.normal(size=(60, 2))
    return X, np.repeat(["a", "b", "c"], 20)


def slow(pace, n, seconds):
    """Learn that training takes so long that other processes are worth their while."""
    pace.is_known, pace.fitting, pace.size = True, 0.5, 1


class TestSelect:
    def test_every_step_is_the_one_that_plain_retraining_finds(self):
        supports = supports_of(6, *DATA, model=TREE)
        v = confidence_of(TREE, *DATA)
        chosen = ls.select(*DATA, model=TREE, support=Nearest(6))
        worth = [naive.taught(supports, v, [z]) - naive.taught(supports, v, []) for z in range(40)]
        assert chosen.worth == pytest.approx(worth)
        steps = naive.climb([supports], v, np.flatnonzero(chosen.worth >= 0), DATA[1], 40)
        assert chosen.order[: chosen.n_gained].tolist() == [z for z, _ in steps]
        assert chosen.gains[: chosen.n_gained] == pytest.approx([gain for _, gain in steps])
        assert chosen.stopped == "nothing more is gained"

    def test_the_first_rows_are_those_that_teach_most_in_wider_supports(self):
        posed = [pose(*DATA, model=TREE, support=SelectionSupport(times)).graph for times in (4, 2, 1)]
        supports = [[graph.support(t).tolist() for t in range(15)] for graph in posed]
        v = cache(confidence_of(TREE, *DATA))
        chosen = ls.select(*DATA, model=TREE, n=8)
        candidates = np.flatnonzero(chosen.worth >= 0)
        steps = naive.climb(supports, v, candidates, DATA[1], 8)
        assert chosen.order[: chosen.n_gained].tolist() == [z for z, _ in steps]
        assert chosen.gains[: chosen.n_gained] == pytest.approx([gain for _, gain in steps])
        assert [z for z, _ in steps] != [z for z, _ in naive.climb(supports[-1:], v, candidates, DATA[1], 8)]

    def test_wider_supports_are_found_in_each_fold_among_the_rows_outside(self):
        folds = list(KFold(3, shuffle=True, random_state=1).split(DATA[0]))
        found = [pose(*DATA[:2], model=TREE, cv=folds, support=SelectionSupport(times)).graph for times in (4, 2, 1)]
        supports = [[graph.support(t).tolist() for t in range(40)] for graph in found]
        seen = []

        def looking(problem, found):
            seen.append(found)
            return graph_of(problem, found)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("localshapley.selection.selecting._graph_of", looking)
            ls.select(*DATA[:2], model=TREE, cv=folds, n=3)
        assert len(seen) == 2
        for wide, expected in zip(seen, supports[:2], strict=True):
            for (train, test), inside in zip(folds, wide, strict=True):
                assert [sorted(train[rows].tolist()) for rows in inside] == [expected[t] for t in test]

    def test_rows_are_checked_and_the_model_is_tried_once(self):
        digits = ls.datasets.load("digits")
        model = make_pipeline(SelectKBest(k=20), LogisticRegression())
        with pytest.warns(ls.LocalShapleyWarning) as caught:
            ls.select(digits.X[:60], digits.y[:60], digits.X_test[:10], digits.y_test[:10], model=model, n=5)
        assert sum("SelectKBest" in str(w.message) for w in caught) == 1

    def test_classes_keep_their_shares_from_the_first_row_on(self):
        X, y = three_groups()
        X, y = X[5:], y[5:]  # 15, 20, 20
        chosen = ls.select(X, y, model="svm", cv=5, support=Nearest(5), n=6)
        assert chosen.n_gained == 6
        assert chosen.to_frame()["label"].value_counts().to_dict() == {"a": 2, "b": 2, "c": 2}
        assert sorted(chosen.to_frame()["label"][:3]) == ["a", "b", "c"]

    def test_gains_add_up_to_what_the_rows_teach(self):
        supports, v = supports_of(6, *DATA, model=TREE), confidence_of(TREE, *DATA)
        chosen = ls.select(*DATA, model=TREE, support=Nearest(6), n=5)
        assert chosen.start == pytest.approx(1 / 3)
        assert 15 * (chosen.scores[-1] - chosen.start) == pytest.approx(chosen.gains.sum())
        assert 15 * chosen.scores[-1] == pytest.approx(naive.taught(supports, v, chosen.order))

    def test_errors_of_gains_are_those_of_a_sum_over_the_test_rows(self):
        supports, v = supports_of(6, *DATA, model=TREE), confidence_of(TREE, *DATA)
        chosen = ls.select(*DATA, model=TREE, support=Nearest(6))
        games = sorted(set(map(tuple, supports)))
        for k in range(chosen.n_gained):
            before, after = chosen.order[:k], chosen.order[: k + 1]
            steps = np.zeros(15)  # test rows with the same support count as one
            for t, support in enumerate(supports):
                step = v([z for z in support if z in after], t) - v([z for z in support if z in before], t)
                steps[games.index(tuple(support))] += step
            assert chosen.stderr[k] == pytest.approx(np.sqrt(15) * steps.std(ddof=1))
        assert np.isnan(chosen.stderr[chosen.n_gained :]).all()
        assert chosen.n_sure == sum(chosen.gains[: chosen.n_gained] > 2 * chosen.stderr[: chosen.n_gained])

    def test_folds_are_judged_together(self):
        X, y = iris.X[:30], iris.y[:30]
        folds = list(KFold(3).split(X))
        supports = supports_of(5, X, y, model=TREE, cv=folds)
        chosen = ls.select(X, y, model=TREE, cv=folds, support=Nearest(5))
        v = confidence_of(TREE, X, y, X, y)
        steps = naive.climb([supports], v, np.flatnonzero(chosen.worth >= 0), y, 30)
        assert chosen.order[: chosen.n_gained].tolist() == [z for z, _ in steps]
        assert all(t not in support for t, support in enumerate(supports))

    def test_all_rows_are_put_in_order_and_n_takes_the_first_of_them(self):
        everyone = ls.select(*DATA, model="knn")
        assert sorted(everyone.order) == list(range(40))
        for n in (7, 0.5, everyone.n_gained + 3):
            part = ls.select(*DATA, model="knn", n=n)
            assert part.order.tolist() == everyone.order[: len(part.order)].tolist()
        assert len(ls.select(*DATA, model="knn", n=0.5).order) == 20

    def test_harmful_rows_come_last(self):
        X, y = iris.X, iris.y.copy()
        y[:10] = (y[:10] + 1) % 3
        chosen = ls.select(X, y, model="knn", cv=5)
        assert set(range(10)) <= set(chosen.order[-12:])
        assert (np.diff(chosen.worth[chosen.order[-12:]]) <= 0).all()

    def test_rows_at_the_border_between_classes_are_not_harmful(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(300, 2))
        y = (X[:, 0] > 0.1 * np.sin(20 * X[:, 1])).astype(int)  # a tree's neighbours there have both labels
        chosen = ls.select(X, y, model="knn", cv=5)
        worse = np.flatnonzero(chosen.worth < 0)
        assert len(worse) >= 5
        assert len(set(chosen.order[-len(worse) :]) & set(worse)) < len(worse) / 2

    def test_the_same_seed_gives_the_same_rows_and_processes_make_no_difference(self, monkeypatch):
        one = ls.select(*DATA, model="knn", seed=1)
        assert one.order.tolist() == ls.select(*DATA, model="knn", seed=1).order.tolist()
        assert one.order.tolist() != ls.select(*DATA, model="knn", seed=2).order.tolist()
        sent = []

        def train(jobs, trainer):
            for index, *job in jobs:
                sent.append(len(job[0]))
                yield index, train_in_parts(trainer, *job)

        monkeypatch.setattr("localshapley.engine.pieces.WorkSizer.learn", slow)
        monkeypatch.setattr("localshapley.engine.executor.train_in_processes", train)
        plain = ls.models.Estimator(KNeighborsClassifier())
        two = ls.select(*DATA, model=plain, seed=1, n_jobs=2)
        assert one.order.tolist() == two.order.tolist()
        assert sum(sent) > 50

    def test_rows_keep_their_names(self):
        table = pd.DataFrame(DATA[0], index=[f"p{i}" for i in range(40)]).rename_axis("plant")
        chosen = ls.select(table, pd.Series(DATA[1], index=table.index), *DATA[2:], model="tree", n=5)
        assert chosen.index.tolist() == [f"p{i}" for i in chosen.order]
        frame = chosen.to_frame()
        assert frame.columns.tolist() == ["position", "gain", "stderr", "worth", "label"]
        assert frame.index.name == "plant"
        assert (frame["label"] == DATA[1][chosen.order]).all()

    def test_pipelines_and_numbers(self):
        piped = ls.select(*DATA, model=make_pipeline(StandardScaler(), LogisticRegression()), n=6)
        assert any("StandardScaler" in note for note in piped.notes)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 2))
        y = 3 * X[:, 0] + 0.1 * rng.normal(size=60)
        y[:3] += 20
        chosen = ls.select(X, y, model=KNeighborsRegressor(3), cv=5)
        assert set(range(3)) <= set(chosen.order[-8:])
        assert chosen.n_gained > 10
        assert "label" not in chosen.to_frame()
        assert "classes" not in repr(chosen)

    def test_few_rows_are_enough_where_classes_are_apart(self):
        X, y = three_groups()
        chosen = ls.select(X, y, model=KNeighborsClassifier(1), cv=5, support=Nearest(16))
        assert sorted(chosen.to_frame()["label"][:3]) == ["a", "b", "c"]
        assert chosen.n_gained <= 6
        assert "nothing more is gained" in repr(chosen)


class TestOthers:
    codes = np.array([0] * 8 + [1] * 4)

    def test_classes_keep_their_shares(self):
        order = _in_balance([], np.zeros(12), np.ones(12, dtype=bool), self.codes, seed=0)
        assert sorted(order) == list(range(12))
        for k in (3, 6, 9):
            assert np.bincount(self.codes[order[:k]]).tolist() == [2 * k // 3, k // 3]

    def test_shares_are_those_of_harmless_rows(self):
        harmless = np.array([True] * 4 + [False] * 4 + [True] * 4)
        order = _in_balance([], np.zeros(12), harmless, self.codes, seed=0)
        for k in (2, 4, 6, 8):
            assert np.bincount(self.codes[order[:k]]).tolist() == [k // 2, k // 2]

    def test_what_was_taken_counts(self):
        order = _in_balance([0, 1, 2, 3], np.zeros(12), np.ones(12, dtype=bool), self.codes, seed=0)
        assert self.codes[order[:2]].tolist() == [1, 1]

    def test_a_row_that_helps_as_much_as_it_harms_is_harmless(self):
        problem = pose(*(part[:15] for part in DATA), model="knn")  # too few rows for label-noise models
        worth = np.full(15, 0.3)
        worth[0], worth[1] = 0.3 - (0.1 + 0.2), -0.01  # rounding, and harm
        assert worth[0] < 0
        assert np.flatnonzero(~harmless(worth, problem, 0, False)).tolist() == [1]

    def test_harmful_rows_follow_by_worth(self):
        worth = np.array([0.0, -1, -3, -2])
        order = _in_balance([], worth, worth >= 0, None, seed=0)
        assert order.tolist() == [0, 1, 3, 2]


class TestPrune:
    def test_rows_go_in_the_reverse_of_the_order_in_which_they_are_taken(self):
        supports, v = supports_of(5, *DATA, model=TREE), confidence_of(TREE, *DATA)
        pruned = ls.prune(*DATA, model=TREE, support=Nearest(5))
        order = ls.select(*DATA, model=TREE, support=Nearest(5)).order
        assert pruned.order.tolist() == order[::-1].tolist()
        left = [naive.taught(supports, v, order[: 40 - k]) for k in range(41)]
        assert 15 * pruned.start == pytest.approx(left[0])
        assert pruned.gains == pytest.approx(np.diff(left))
        assert pruned.scores[-1] == pytest.approx(1 / 3)
        assert len(pruned.kept) == 0

    def test_it_says_where_loss_begins(self):
        pruned = ls.prune(*DATA, model="knn")
        free, best = pruned.n_free, pruned.n_best
        assert pruned.scores[free - 1] >= pruned.start - 1e-9
        assert (pruned.scores[free:] < pruned.start).all()
        assert pruned.scores[best - 1] == pruned.scores.max()
        part = ls.prune(*DATA, model="knn", n=free)
        assert part.order.tolist() == pruned.order[:free].tolist()
        assert sorted([*part.index, *part.kept]) == list(range(40))
        assert f"{free} rows can go without a loss" in repr(pruned)
        assert repr(part).startswith(f"Pruning: the order in which {free} of 40 rows can go")
        assert (pruned.stopped, part.stopped) == ("40 rows in order", f"{free} rows in order")
        assert f"without the first {best} rows, index[:{best}]" in repr(pruned)

    def test_wrong_labels_go_first(self):
        X, y = three_groups()
        y[[0, 9, 21, 33, 50]] = ["b", "c", "a", "c", "a"]
        pruned = ls.prune(X, y, model="knn", cv=5)
        assert set(pruned.order[:5]) == {0, 9, 21, 33, 50}
        assert pruned.n_best == 5


class TestLimits:
    def test_a_budget_is_never_exceeded_and_what_is_left_follows(self):
        whole = ls.select(*DATA, model="tree")
        for budget in (120, 160, whole.cost.trainings - 1):
            part = ls.select(*DATA, model="tree", budget=budget)
            assert part.cost.trainings <= budget
            assert part.stopped == f"budget of {budget} trainings"
            assert part.order[: part.n_gained].tolist() == whole.order[: part.n_gained].tolist()
            assert 0 < part.n_gained < whole.n_gained or budget > 160
            assert sorted(part.order) == list(range(40))
        assert ls.select(*DATA, model="tree", budget=whole.cost.trainings).stopped == "nothing more is gained"

    def test_a_budget_that_cannot_try_every_row_is_refused(self):
        with pytest.raises(ls.InvalidArgumentError, match=r"budget=9 is too small: to try every row takes 11\d tr"):
            ls.select(*DATA, model="tree", budget=9)

    def test_after_the_limit_of_time_no_row_is_taken_by_gain(self):
        part = ls.select(*DATA, model="tree", max_seconds=1e-9)
        assert part.n_gained == 1
        assert part.stopped.endswith("(limit 1e-09 s)")
        assert sorted(part.order) == list(range(40))

    def test_an_interruption_gives_back_what_is_known(self):
        def interrupt(done, total):
            assert total == 40
            if done == 3:
                raise KeyboardInterrupt

        part = ls.select(*DATA, model="tree", progress=interrupt, on_interrupt="return")
        assert (part.n_gained, part.stopped) == (3, "interrupted")
        assert part.order[:3].tolist() == ls.select(*DATA, model="tree", n=3).order.tolist()
        assert sorted(part.order) == list(range(40))
        with pytest.raises(KeyboardInterrupt):
            ls.select(*DATA, model="tree", progress=interrupt)

    def test_rows_go_in_the_order_that_is_known_when_time_is_up_or_ctrl_c_comes(self):
        def interrupt(done, total):
            if done == 3:
                raise KeyboardInterrupt

        whole = ls.prune(*DATA, model="tree")
        late = ls.prune(*DATA, model="tree", max_seconds=1e-9)
        part = ls.prune(*DATA, model="tree", progress=interrupt, on_interrupt="return")
        assert late.stopped.endswith("(limit 1e-09 s)")
        assert part.stopped == "interrupted"
        for found, n_taken in ((late, 1), (part, 3)):
            assert found.order[-n_taken:].tolist() == whole.order[-n_taken:].tolist()  # those that teach most go last
            assert sorted(found.order) == list(range(40))
            assert np.isfinite(found.gains).all()
        with pytest.raises(KeyboardInterrupt):
            ls.prune(*DATA, model="tree", progress=interrupt)

    @pytest.mark.parametrize("choose", [ls.select, ls.prune])
    def test_processes_give_the_same_order(self, choose):
        plain = ls.models.Estimator(DecisionTreeClassifier(random_state=0))
        one, two = (choose(*DATA, model=plain, n_jobs=n) for n in (1, 2))
        assert one.order.tolist() == two.order.tolist()
        np.testing.assert_array_equal(one.gains, two.gains)

    @pytest.mark.parametrize("choose", [ls.select, ls.prune])
    def test_with_a_store_the_same_call_trains_nothing_and_finds_the_same(self, choose, tmp_path):
        alone = choose(*DATA, model=TREE)
        with ls.Store(tmp_path / "run.db", fastest=0) as store:
            first, again = (choose(*DATA, model=TREE, store=store) for _ in range(2))
        assert 0 < first.cost.trainings <= alone.cost.trainings  # steps of wider supports meet again in narrower ones
        assert again.cost.trainings == 0
        assert again.cost.stored == again.cost.distinct == alone.cost.trainings
        for found in (first, again):
            assert found.order.tolist() == alone.order.tolist()
            np.testing.assert_array_equal(found.gains, alone.gains)
            np.testing.assert_array_equal(found.worth, alone.worth)

    def test_an_interrupted_call_goes_on_from_its_store(self, tmp_path):
        def interrupt(done, total):
            if done == 3:
                raise KeyboardInterrupt

        with ls.Store(tmp_path / "run.db", fastest=0) as store:
            part = ls.select(*DATA, model=TREE, progress=interrupt, on_interrupt="return", store=store)
            whole = ls.select(*DATA, model=TREE, store=store)
        assert part.stopped == "interrupted"
        assert whole.cost.stored >= part.cost.trainings
        assert whole.order.tolist() == ls.select(*DATA, model=TREE).order.tolist()

    def test_a_budget_is_the_same_with_a_store_and_without(self, tmp_path):
        budget = ls.select(*DATA, model=TREE).cost.trainings - 20
        alone = ls.select(*DATA, model=TREE, budget=budget)
        with ls.Store(tmp_path / "run.db", fastest=0) as store:
            runs = [ls.select(*DATA, model=TREE, budget=budget, store=store) for _ in range(2)]
        for found in runs:
            assert (found.stopped, found.n_gained) == (alone.stopped, alone.n_gained)
            assert found.order.tolist() == alone.order.tolist()

    def test_a_budget_leaves_what_is_needed_to_measure_losses(self):
        whole = ls.prune(iris.X, iris.y, model="tree", cv=5)
        budget = whole.cost.trainings - 100
        part = ls.prune(iris.X, iris.y, model="tree", cv=5, budget=budget)
        assert part.cost.trainings <= budget
        assert part.stopped.startswith("budget")
        assert not np.isnan(part.gains).any()


class TestRefusals:
    @pytest.mark.parametrize("n", [0, 41, 1.5, -0.1, "all", True])
    def test_n_must_be_a_number_of_rows_or_a_share(self, n):
        with pytest.raises(ls.InvalidArgumentError, match="n must be a number of rows from 1 to 40, or a share"):
            ls.select(*DATA, model="knn", n=n)

    def test_n_is_refused_before_anything_is_trained(self, monkeypatch):
        monkeypatch.setattr(DecisionTreeClassifier, "fit", lambda *_, **__: pytest.fail("trained"))
        with pytest.raises(ls.InvalidArgumentError, match="n must be a number of rows from 1 to 40"):
            ls.select(*DATA, model=ls.models.Estimator(DecisionTreeClassifier()), n=41)

    @pytest.mark.parametrize("model", ["fixed-forest", ls.models.Fixed(TREE)])
    def test_trees_that_are_grown_once(self, model):
        with pytest.raises(ls.InvalidArgumentError, match="give the forest itself, such as model='forest'"):
            ls.select(*DATA, model=model)

    @pytest.mark.parametrize("kind", [ls.models.GCN, ls.models.GraphSAGE, ls.models.GIN])
    def test_nodes_of_a_graph(self, kind):
        with pytest.raises(ls.InvalidArgumentError, match=r"nodes of a graph.*tasks.select\(value_nodes"):
            ls.select(*DATA, model=kind())

    def test_folds_out_of_bag(self):
        with pytest.raises(ls.InvalidArgumentError, match=r"cv must be a number of folds.*Try cv=5"):
            ls.prune(*DATA[:2], model="forest", cv="oob")

    def test_what_value_refuses(self):
        with pytest.raises(ls.InvalidArgumentError, match="support must be one of"):
            ls.select(*DATA, model="knn", support=10)
        with pytest.raises(ls.InvalidArgumentError, match="X_test"):
            ls.select(*DATA[:2], model="knn")
        with pytest.raises(ls.InvalidArgumentError, match="budget must be"):
            ls.select(*DATA, model="knn", budget=0)
