"""Selection, curves, owners and explanations against slow twins."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley import tasks
from localshapley.selection.learning_curves import CURVES
from localshapley.valuation.table_matching import reordered
from made import changed, made

X, y, X_test, y_test, _ = ls.datasets.load("iris")


def noisy(n, seed=0, scale=0.1):
    """A valuation whose errors are correlated."""
    rng = np.random.default_rng(seed)
    spread = scale * rng.normal(size=(n, 64)).astype(np.float32) / 8
    spread += scale * rng.normal(size=64).astype(np.float32) / 8
    return made(rng.normal(1, 1, n), np.linalg.norm(spread, axis=1), spread=spread)


@pytest.fixture(scope="module")
def iris():
    return ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(3), per_test=True)


class TestOwners:
    def test_sums_and_shares_by_hand(self):
        table = tasks.owners(made([1.0, 2.0, 3.0, -1.0]), ["a", "b", "a", "c"])
        assert table.index.tolist() == ["a", "b", "c"]
        assert table.index.name == "owner"
        assert table["n_rows"].tolist() == [2, 1, 1]
        assert table["value"].tolist() == [4, 2, -1]
        assert table["share"].tolist() == pytest.approx([80, 40, -20])
        assert (table[["stderr", "share_stderr"]] == 0).all(axis=None)

    @given(st.integers(0, 10**6), st.integers(1, 5))
    def test_standard_errors_are_those_of_the_covariance_matrix(self, seed, n_owners):
        v = noisy(12, seed)
        owner = np.random.default_rng(seed).integers(n_owners, size=12)
        table = tasks.owners(v, owner)
        covariance = v.spread.astype(float) @ v.spread.astype(float).T
        total = v.values.sum()
        for name, row in table.iterrows():
            member = (owner == name).astype(float)
            assert row["stderr"] ** 2 == pytest.approx(member @ covariance @ member)
            if total > 0:
                gradient = 100 * (member / total - v.values @ member / total**2)
                assert row["share_stderr"] ** 2 == pytest.approx(gradient @ covariance @ gradient, abs=1e-9)
        if total > 0:
            assert table["share"].sum() == pytest.approx(100)

    def test_rows_of_their_own_keep_their_standard_errors(self):
        v = noisy(9)
        table = tasks.owners(v, np.arange(9)).sort_index()
        np.testing.assert_allclose(table["stderr"], v.stderr, rtol=1e-6)

    def test_one_owner_has_all_of_it_without_doubt(self):
        table = tasks.owners(noisy(9), ["me"] * 9)
        assert table["share"].tolist() == pytest.approx([100])
        assert table["share_stderr"].tolist() == pytest.approx([0], abs=1e-9)
        assert table["stderr"].item() > 0

    def test_nothing_to_share_is_nan(self):
        table = tasks.owners(made([1.0, -2.0]), ["a", "b"])
        assert table[["share", "share_stderr"]].isna().all(axis=None)
        assert table["value"].tolist() == [1, -2]

    @pytest.mark.slow
    def test_covariances_matter_and_tell_the_error_of_sampled_sums(self):
        settings = {"model": SVC(), "support": ls.supports.Nearest(9), "score": "accuracy"}
        owner = np.arange(len(y)) % 3
        exact = tasks.owners(ls.value(X, y, X_test, y_test, method="exact", **settings), owner)
        z = []
        for seed in range(12):
            v = ls.value(X, y, X_test, y_test, method="sample", budget=400, seed=seed, **settings)
            table = tasks.owners(v, owner, errors="draws")
            z += ((table["value"] - exact["value"]) / table["stderr"]).tolist()
        assert 0.75 < np.sqrt(np.mean(np.square(z))) < 1.35
        everything = tasks.owners(v, owner)
        assert (everything["stderr"] > table["stderr"]).all()
        noise = np.array([v.spread_tests[owner == o].sum(axis=0, dtype=float) for o in everything.index])
        both = table.loc[everything.index, "stderr"] ** 2 + (noise**2).sum(axis=1)
        assert (everything["stderr"] ** 2).tolist() == pytest.approx(both.tolist())
        with pytest.raises(ls.InvalidArgumentError, match="errors must be one of"):
            tasks.owners(v, owner, errors="none")

    def test_owners_as_players_need_no_column(self):
        v = made([1.0, 3.0, -1.0], ids=pd.Index(["x", "y", "z"]), unit="owner")
        table = tasks.owners(v)
        assert table["share"].round(3).to_dict() == {"y": 100.0, "x": 33.333, "z": -33.333}
        assert tasks.owners(v, ["a", "b", "a"])["value"].to_dict() == {"b": 3.0, "a": 0.0}
        sampled = tasks.owners(changed(v, stderr=np.full(3, 0.1)))  # without covariances
        assert sampled["stderr"].tolist() == [0.1] * 3
        assert sampled["share_stderr"].isna().all()

    def test_a_series_goes_by_its_index(self):
        v = made([1.0, 2.0, 3.0], ids=pd.Index(["x", "y", "z"]))
        owner = pd.Series({"z": "late", "x": "early", "y": "early"})
        assert tasks.owners(v, owner)["value"].to_dict() == {"late": 3.0, "early": 3.0}

    @pytest.mark.parametrize(
        ("valuation", "owner", "message"),
        [
            (made([1.0, 2.0]), ["a"], r"owner must have one entry for each of the 2 rows; got shape \(1,\)"),
            (made([1.0, 2.0]), ["a", None], "owner is missing .* first at row 1"),
            (made([1.0, 2.0], [0.1, 0.1]), ["a", "b"], 'covariances .* method="auto"'),
            (made([1.0, 2.0]), None, "owner is missing; give the owner of each row"),
        ],
    )
    def test_bad_input(self, valuation, owner, message):
        with pytest.raises(ls.InvalidArgumentError, match=message):
            tasks.owners(valuation, owner)


class TestSelect:
    def test_the_best_come_first(self, iris):
        pd.testing.assert_index_equal(tasks.select(iris, 7, errors="draws").index, iris.top(7).index)
        assert len(tasks.select(iris, 0.2)) == 21
        assert tasks.select(iris, 5, y=y, errors="draws")["label"].tolist() == y[iris.top(5).index].tolist()

    @pytest.mark.parametrize("errors", ["all", "draws"])
    def test_rows_that_tie_are_chosen_alike_from_a_shuffled_table(self, iris, errors):
        rng = np.random.default_rng(3)
        tied = changed(iris, values=np.round(iris.values, 1) * (1 + 1e-15 * rng.integers(-1, 2, len(y))))
        assert len(np.unique(np.round(tied.values, 9))) < 20  # of 105
        shuffled = reordered(tied, order := rng.permutation(len(y)), pd.RangeIndex(len(y)))
        contents = np.column_stack([X, y])
        for n in range(1, len(y), 9):
            rows = tasks.select(tied, n, errors=errors).index.to_numpy()
            again = order[tasks.select(shuffled, n, errors=errors).index.to_numpy()]
            assert contents[rows].tolist() == contents[again].tolist()
        for one, two in ((tied.top(9), shuffled.top(9)), (tied.bottom(9), shuffled.bottom(9))):
            assert contents[one.index].tolist() == contents[order[two.index]].tolist()

    def test_what_one_test_row_says_counts_less_than_what_many_agree_on(self, iris):
        best = tasks.select(iris, 7)
        probability = iris.among_best(7).probability
        assert best["p_best"].is_monotonic_decreasing
        assert best["p_best"].iloc[-1] >= np.delete(probability, best.index).max()
        size = np.r_[1.0, np.full(29, 0.01)][:, None]
        columns = size * np.random.default_rng(0).choice([-1.0, 1.0], (30, 64)) / 8
        v = changed(made(np.r_[1.01, np.ones(4), np.zeros(25)]), spread_tests=columns.astype(np.float32))
        assert tasks.select(v, 5).index[-1] == 0
        assert tasks.select(v, 5, errors="draws").index[0] == 0
        with pytest.raises(ls.InvalidArgumentError, match="errors"):
            tasks.select(v, 5, errors="tests")

    @given(st.integers(0, 10**6), st.integers(1, 40))
    def test_proportions_are_kept_and_each_class_gives_its_best(self, seed, n):
        rng = np.random.default_rng(seed)
        labels = np.sort(rng.choice(["a", "b", "c"], 40))
        v = made(rng.normal(size=40))
        table = tasks.select(v, n, y=labels, balance="classes")
        assert len(table) == n
        assert table["value"].is_monotonic_decreasing
        for label, count in Counter(labels.tolist()).items():
            own = table.loc[table["label"] == label, "value"].tolist()
            assert abs(len(own) - n * count / 40) < 1
            assert own == sorted(v.values[labels == label], reverse=True)[: len(own)]

    @pytest.mark.parametrize(
        ("n", "count"), [(1, 1), (np.int64(1), 1), (0.999, 105), (1.0, 105), (np.float64(1), 105), (5.0, 5), (0.2, 21)]
    )
    def test_one_is_a_row_and_one_point_zero_are_all(self, iris, n, count):
        assert len(tasks.select(iris, n)) == count

    def test_a_dict_says_how_many(self, iris):
        table = tasks.select(iris, 10, y=y, balance={0: 0.7, 2: 0.3})
        assert table["label"].value_counts().to_dict() == {0: 7, 2: 3}

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"n": 0}, "n must be a number of rows from 1 to 105"),
            ({"n": 2.5}, "got 2.5"),
            ({"n": "all"}, "got 'all'"),
            ({"n": 106}, "got 106"),
            ({"n": 5, "balance": "equal"}, "y is missing"),
            ({"n": 5, "y": y, "balance": "eqal"}, "Did you mean 'equal'"),
            ({"n": 5, "y": y, "balance": 3}, "dict from label to share"),
            ({"n": 5, "y": y, "balance": {7: 1.0}}, "label 7, which y does not have"),
            ({"n": 5, "y": y, "balance": {0: 0.5}}, "add up to 0.5"),
            ({"n": 60, "y": y, "balance": {0: 1.0}}, "asks for 60 rows of label 0, but y has 35"),
        ],
    )
    def test_bad_input(self, iris, arguments, message):
        with pytest.raises(ls.InvalidArgumentError, match=message):
            tasks.select(iris, **arguments)


class TestExplain:
    def test_the_whole_support_with_labels_and_distances(self, iris):
        for t in (0, 11):
            table = tasks.explain(iris, t, X=X, X_test=X_test, y=y)
            dense = iris.per_test.toarray()[t]
            assert len(table) == iris.support_sizes[t]
            assert table["value"].sum() == pytest.approx(dense.sum())
            assert table["value"].abs().is_monotonic_decreasing
            for z, row in table.iterrows():
                assert row["value"] == dense[z]
                assert row["effect"] == ("helped" if dense[z] > 0 else "hurt" if dense[z] < 0 else "none")
                assert row["label"] == y[z]
                assert row["distance"] == pytest.approx(np.sqrt(((X[z] - X_test[t]) ** 2).sum()))

    def test_sparse_tables_have_the_same_distances(self, iris):
        dense = tasks.explain(iris, 3, X=X, X_test=X_test)
        thin = tasks.explain(iris, 3, X=sparse.csr_matrix(X), X_test=sparse.csr_matrix(X_test))
        pd.testing.assert_frame_equal(dense, thin)

    def test_n_and_names(self, iris):
        named = changed(iris, ids=pd.Index([f"row {z}" for z in range(105)]))
        table = tasks.explain(named, 0, n=2)
        assert list(table.columns) == ["value", "effect"]
        assert table.index.tolist() == [f"row {z}" for z in tasks.explain(iris, 0).index[:2]]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"test_row": 45}, "from 0 to 44; got 45"),
            ({"test_row": -1}, "got -1"),
            ({"test_row": "first"}, "got 'first'"),
            ({"test_row": 0, "n": 0}, "n must be a whole number of at least 1"),
            ({"test_row": 0, "X": X}, "give both X and X_test, or neither"),
            ({"test_row": 0, "X": X[1:], "X_test": X_test}, "X must have 105 rows"),
            (
                {"test_row": 0, "X": X, "X_test": sparse.csr_matrix(X_test * np.nan)},
                "X and X_test must not be sparse where",
            ),
            ({"test_row": 0, "X": X * np.nan, "X_test": X_test[:, :2]}, "X and X_test must have the same columns"),
            ({"test_row": 0, "X": X * np.nan, "X_test": X_test}, "X cannot be turned into numbers: no column is left"),
            ({"test_row": 0, "X": X[:, 0].astype(str), "X_test": X_test}, r"give .* X=pipeline\[:-1\]\.fit_transform"),
        ],
    )
    def test_bad_input(self, iris, arguments, message):
        with pytest.raises(ls.InvalidArgumentError, match=message):
            tasks.explain(iris, **arguments)

    def test_an_empty_support_has_no_rows(self):
        v = ls.shapley([[0, 1], []], lambda coalition, tests: np.full(len(tests), len(coalition)), per_test=True)
        assert tasks.explain(v, 0)["value"].tolist() == [1, 1]
        assert len(tasks.explain(v, 1)) == 0

    def test_values_to_each_test_row_are_needed(self, iris):
        with pytest.raises(ls.InvalidArgumentError, match="per_test=True"):
            tasks.explain(changed(iris, per_test=None), 0)


@pytest.fixture(scope="module")
def untied(iris):
    return changed(iris, values=iris.values + 1e-6 * np.arange(105))


@pytest.fixture(scope="module")
def found(untied):
    return tasks.curves(untied, X, y, X_test, y_test, model="tree", shares=[0.1, 0.5, 1.0], n_seeds=4)


class TestCurves:
    def test_the_shape_of_the_table(self, found):
        table = found.table
        assert list(table.columns) == ["curve", "share", "n_rows", "mean", "low", "high"]
        assert list(dict.fromkeys(table["curve"])) == list(CURVES)
        assert table.loc[table["curve"] == "best first", "n_rows"].tolist() == [10, 52, 105]
        assert table.loc[table["curve"] == "worst removed first", "n_rows"].tolist() == [95, 53]  # none left at 100 %
        assert ((table["low"] <= table["mean"] + 1e-12) & (table["mean"] <= table["high"] + 1e-12)).all()

    def test_each_point_is_the_score_of_a_model_on_those_rows(self, untied, found):
        order = np.argsort(-untied.values, kind="stable")
        points = found.table.set_index(["curve", "share"])["mean"]
        rows = {("best first", 0.5): order[:52], ("best removed first", 0.5): order[52:]}
        assert len(np.unique(untied.values)) == 105
        for key, chosen in rows.items():
            model = DecisionTreeClassifier(random_state=0).fit(X[np.sort(chosen)], y[np.sort(chosen)])
            assert points[key] == pytest.approx(model.score(X_test, y_test))

    def test_random_rows_differ_from_seed_to_seed_and_others_do_not(self, found):
        width = found.table.assign(width=found.table["high"] - found.table["low"]).groupby("curve")["width"].max()
        assert width["random"] > 0
        assert width.drop("random").max() == 0

    @pytest.mark.slow
    def test_same_seed_same_curves_in_any_number_of_processes(self, untied, found):
        again = tasks.curves(untied, X, y, X_test, y_test, model="tree", shares=[0.1, 0.5, 1.0], n_seeds=4, n_jobs=2)
        pd.testing.assert_frame_equal(found.table, again.table)

    def test_equal_values_are_put_in_order_at_random(self):
        flat = made(np.zeros(105))
        found = tasks.curves(flat, X, y, X_test, y_test, model="tree", shares=[0.06], n_seeds=6)
        best = found.table.set_index("curve").loc["best first"]
        assert best["high"] > best["low"]

    def test_one_class_predicts_it_and_too_few_rows_their_most_frequent(self):
        v = made((y == 1) + np.arange(105) / 1e4)
        found = tasks.curves(v, X, y, X_test, y_test, model=LogisticRegression(), shares=[0.1], n_seeds=1)
        assert found.table["mean"].iloc[0] == pytest.approx((y_test == 1).mean())
        found = tasks.curves(v, X, y, X_test, y_test, model=KNeighborsClassifier(30), shares=[0.1], n_seeds=1)
        assert found.table["mean"].iloc[0] == pytest.approx((y_test == 1).mean())

    def test_regression_and_scores_of_the_users_own(self, untied):
        D, t, D_test, t_test, _ = ls.datasets.load("diabetes")
        v = made(np.arange(len(t)))
        found = tasks.curves(v, D, t, D_test, t_test, model="ridge", shares=[1.0], n_seeds=1)
        assert found.score == "r2"
        assert found.table["mean"].max() > 0.3
        own = tasks.curves(
            untied, X, y, X_test, y_test, model="knn", score=balanced_accuracy_score, shares=[1.0], n_seeds=1
        )
        assert own.score == "balanced_accuracy_score"
        assert own.table["mean"].iloc[0] == pytest.approx(
            balanced_accuracy_score(y_test, KNeighborsClassifier().fit(X, y).predict(X_test))
        )

    def test_what_it_says_about_itself(self, found):
        first, *lines = repr(found).split("\n")
        assert first == "Curves of 105 rows, mean accuracy over the shares"
        assert [line.strip().rsplit(maxsplit=1)[0] for line in lines] == list(CURVES)

    def test_progress_counts_each_set_of_rows_once(self, untied):
        seen = []
        tasks.curves(
            untied, X, y, X_test, y_test, model="knn", shares=[0.5, 1.0], n_seeds=3, progress=lambda *a: seen.append(a)
        )
        # 52 best, 53 best, the others of each, all rows, and three random halves
        assert seen == [(i, 7) for i in range(1, 8)]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"score": "r2"}, "does not fit the model, which is a classifier"),
            ({"score": "acuracy"}, "Did you mean 'accuracy'"),
            ({"shares": [0.0, 0.5]}, "shares must be numbers above 0 and at most 1"),
            ({"shares": []}, "shares must be"),
            ({"n_seeds": 0}, "n_seeds must be"),
            ({"n_jobs": 0}, "n_jobs must be"),
            ({"model": "bush"}, "model must be one of"),
            ({"model": SVC(C=-1.0)}, "model cannot be trained on all of X and y"),
        ],
    )
    def test_bad_input(self, untied, arguments, message):
        with pytest.raises(ls.InvalidArgumentError, match=message):
            tasks.curves(untied, X, y, X_test, y_test, **{"model": "knn", **arguments})


@pytest.mark.parametrize(
    "call",
    [
        lambda v: ls.tasks.owners(v, ["a", "b"]),
        lambda v: ls.tasks.explain(v, 0),
        lambda v: ls.tasks.select(v, 1),
        lambda v: ls.update(v, [[0.0], [1.0]], [0, 1], [[0.0]], [0], model="knn"),
        lambda v: ls.report.write_report("r.html", v),
    ],
    ids=["owners", "explain", "select", "update", "write_report"],
)
@pytest.mark.parametrize("given", [None, np.zeros(2), pd.Series([0.0, 1.0])], ids=["nothing", "values", "column"])
def test_what_is_no_valuation_is_refused(call, given):
    with pytest.raises(ls.InvalidArgumentError, match=r"valuation must be what value\(\) returned"):
        call(given)
