"""One table and no test set, and owners as players."""

from itertools import combinations, permutations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, RepeatedKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.data.folds import make_folds

HALVES = [(np.array([3, 4, 5]), np.array([0, 1, 2])), (np.array([0, 1, 2]), np.array([3, 4, 5]))]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    keep = np.random.default_rng(0).permutation(150)[:80]
    return X[keep], y[keep]


class TestFolds:
    @pytest.mark.parametrize("n_folds", [2, 3, 5, 20])
    def test_a_number_makes_folds_of_equal_size_with_classes_in_proportion(self, n_folds):
        y = np.repeat(["a", "b", "c"], [40, 57, 3])
        folds = make_folds(n_folds, y, classifier=True, seed=1)
        tests = np.concatenate([test for _, test in folds])
        assert sorted(tests) == list(range(100))
        for train, test in folds:
            assert sorted([*train, *test]) == list(range(100))
            for label, count in (("a", 40), ("b", 57), ("c", 3)):
                assert abs((y[test] == label).sum() - count / n_folds) < 1
                assert label in y[train]

    def test_the_seed_deals(self):
        y = np.arange(30.0)
        first, same, other = (make_folds(3, y, classifier=False, seed=s) for s in (0, 0, 1))
        assert all((a[1] == b[1]).all() for a, b in zip(first, same, strict=True))
        assert any((a[1] != b[1]).any() for a, b in zip(first, other, strict=True))

    @pytest.mark.parametrize(
        ("cv", "message"),
        [
            (1, r"from 2 to 6 \(one per row\)"),
            (7, r"from 2 to 6 \(one per row\)"),
            ("five", "cv must be a number of folds"),
            (True, "cv must be a number of folds"),
            ([], "no folds"),
            ([([0, 1], [1, 2])], "cannot test itself"),
            ([([0, 1], [6])], "row numbers from 0 to 5"),
            ([([], [1])], "some in each part"),
            ([(np.array([0.5]), [1])], "row numbers"),
        ],
    )
    def test_bad_folds(self, cv, message):
        with pytest.raises(ls.InvalidArgumentError, match=message):
            make_folds(cv, np.array([0, 0, 0, 1, 1, 1]), classifier=True, seed=0)

    def test_a_class_of_one_row(self):
        with pytest.raises(ls.InvalidArgumentError, match=r"'b'.* once"):
            make_folds(2, np.array(["a", "a", "b"]), classifier=True, seed=0)

    def test_all_classes_of_one_row_are_named(self):
        labels = np.array(["a", "a", "b", "c", "d", "d", "e"])
        with pytest.raises(ls.InvalidArgumentError, match=r"'b', 'c' and 'e' once\. .*rare='drop'.*--drop-rare"):
            make_folds(2, labels, classifier=True, seed=0)


class TestRareClassesAreLeftOut:
    @pytest.mark.parametrize("kind", ["array", "frame", "sparse", "list"])
    def test_values_are_those_of_the_other_rows(self, iris, kind):
        X, y = iris[0][:60].copy(), iris[1][:60].astype(str)
        y[[7, 31]] = ["rare", "rarer"]
        owners = np.arange(60) % 5
        kept = np.setdiff1d(np.arange(60), [7, 31])
        of = {"array": np.asarray, "frame": pd.DataFrame, "sparse": sparse.csr_matrix, "list": np.ndarray.tolist}[kind]
        expected = ls.value(of(X[kept]), y[kept], cv=3, model="knn")
        v = ls.value(of(X), y, cv=3, model="knn", rare="drop")
        np.testing.assert_array_equal(v.values, expected.values)
        assert v.ids.tolist() == kept.tolist()
        assert "left out 2 rows whose class no other row has: 'rare' and 'rarer'." in v.notes
        np.testing.assert_array_equal(v.digests.rows, expected.digests.rows)
        assert ls.plan(of(X), y, cv=3, model="knn", rare="drop").n_rows == 58
        by_owner = ls.value(of(X), y, cv=3, model="knn", rare="drop", owners=owners)
        np.testing.assert_array_equal(
            by_owner.values, ls.value(of(X[kept]), y[kept], cv=3, model="knn", owners=owners[kept]).values
        )

    def test_names_of_rows_stay(self, iris):
        X, y = pd.DataFrame(iris[0][:60], index=[f"r{i}" for i in range(60)]), iris[1][:60].copy()
        y[7] = 99
        assert "r7" not in ls.value(X, y, cv=3, model="knn", rare="drop").ids

    def test_where_there_are_none_nothing_changes(self, iris):
        X, y = iris[0][:60], iris[1][:60]
        expected, v = (ls.value(X, y, cv=3, model="knn", rare=rare) for rare in ("raise", "drop"))
        np.testing.assert_array_equal(v.values, expected.values)
        assert (v.ids, v.notes) == (None, expected.notes)
        assert len(ls.value(X, np.arange(60) / 7, cv=3, model="knn", rare="drop").values) == 60
        with pytest.raises(ls.InvalidArgumentError, match="rare must be one of"):
            ls.value(X, y, cv=3, model="knn", rare="keep")

    def test_rows_of_nothing_else_are_refused(self):
        with pytest.raises(ls.InvalidArgumentError, match="every class has one row, so that no row would be left"):
            ls.value(np.eye(4), list("abcd"), cv=2, model="knn", rare="drop")


class TestCrossValidation:
    @pytest.mark.parametrize(
        "model", [SVC(), make_pipeline(StandardScaler(), SVC()), ls.models.Fixed(GradientBoostingClassifier())]
    )
    def test_a_fold_that_leaves_one_class_is_named(self, model):
        X, y = np.arange(24.0).reshape(12, 2), np.repeat(["a", "b", "b"], 4)
        folds = [([0, 1, 4, 5], [2, 3, 6, 7]), (np.arange(4, 12), np.arange(4))]
        message = "be trained on the rows outside fold 2 of 2: they hold a single class, b. Give folds that leave"
        with pytest.raises(ls.InvalidArgumentError, match=message):
            ls.value(X, y, model=model, cv=folds)

    def test_steps_that_refuse_a_fold_name_it(self):
        model = make_pipeline(PCA(5), SVC())
        with pytest.raises(ls.InvalidArgumentError, match="cannot be trained on the rows outside fold 1 of 2: n_comp"):
            ls.value(np.eye(8), np.arange(8) % 2, model=model, cv=[([0, 1], [2, 3]), (np.arange(4, 8), [0, 1])])

    @pytest.mark.parametrize(
        "model",
        [
            KNeighborsClassifier(3),
            make_pipeline(StandardScaler(), KNeighborsClassifier(2)),
            DecisionTreeClassifier(random_state=0),
            SVC(),
            KNeighborsRegressor(3),
            Ridge(),
            make_pipeline("passthrough", Ridge()),
            ls.models.Refit(make_pipeline("passthrough", Ridge())),
        ],
        ids=["knn", "pipeline", "tree", "svm", "knn of numbers", "ridge", "pipeline of numbers", "refit of numbers"],
    )
    def test_is_the_sum_over_the_folds(self, iris, model):
        X, y = iris
        folds = StratifiedKFold(4, shuffle=True, random_state=0)
        settings = {"model": model, "support": ls.supports.Nearest(5), "method": "exact"}
        v = ls.value(X, y, cv=folds, per_test=True, **settings)
        expected, by_test = np.zeros(len(y)), np.zeros((len(y), len(y)))
        trainings = 0
        for train, test in folds.split(X, y):
            # A pipeline's scaler sees the fold's training rows only, where supports are found.
            part = ls.value(X[train], y[train], X[test], y[test], per_test=True, **settings)
            expected[train] += part.values
            by_test[np.ix_(test, train)] = part.per_test.toarray()
            trainings += part.cost.trainings
        np.testing.assert_allclose(v.values, expected, atol=1e-12)
        np.testing.assert_allclose(v.per_test.toarray(), by_test, atol=1e-12)
        assert (v.per_test.diagonal() == 0).all()
        assert v.cost.trainings <= trainings
        if v.cost.trainings:
            assert v.cost.trainings < trainings  # folds share coalitions

    def test_regression(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 2))
        y = X @ [1.0, -1.0] + 0.1 * rng.normal(size=40)
        y[7] += 5
        v = ls.value(X, y, model=LinearRegression(), cv=5, support=ls.supports.Nearest(6), method="exact")
        assert np.argmin(v.values) == 7
        assert v.n_tests[7] > 0

    @pytest.mark.parametrize("owners", [None, list("abaabb")], ids=["rows", "owners"])
    def test_a_regressor_is_not_told_the_label_it_is_tested_on(self, owners):
        """Nothing learnt predicts the mean of the rows outside the fold, in pipelines as without."""
        X, y = np.array([[0], [1], [2], [0], [3], [4.0]]), np.array([1, 2, 4, 1, 9, 7.0])
        settings = {"cv": HALVES, "support": ls.supports.Everything(), "method": "exact", "owners": owners}
        gain = 0.0
        for train, test in HALVES:
            found = Ridge().fit(X[train], y[train]).predict(X[test])
            gain += ((y[test] - y[train].mean()) ** 2 - (y[test] - found) ** 2).sum()
        for model in (Ridge(), ls.models.Estimator(Ridge()), make_pipeline("passthrough", Ridge())):
            assert ls.value(X, y, model=model, **settings).values.sum() == pytest.approx(gain)
        # Class priors do not depend on the fold: every class of `y` is equally likely, also one that a fold lacks.
        codes = np.array([0, 1, 2, 0, 1, 0])
        found = GaussianNB().fit(X[3:], codes[3:]).predict(X[:3]), GaussianNB().fit(X[:3], codes[:3]).predict(X[3:])
        right = (found[0] == codes[:3]).sum() + (found[1] == codes[3:]).sum()
        for model in (GaussianNB(), make_pipeline("passthrough", GaussianNB())):
            v = ls.value(X, codes, model=model, score="accuracy", **settings)
            assert v.values.sum() == pytest.approx(right - 6 / 3)

    def test_repeated_folds_add_up(self, iris):
        X, y = iris
        once = [
            ls.value(X, y, model="knn", cv=KFold(4, shuffle=True, random_state=s)).values
            for s in np.random.RandomState(3).randint(2**31 - 1, size=2)
        ]
        splits = [
            split
            for s in np.random.RandomState(3).randint(2**31 - 1, size=2)
            for split in KFold(4, shuffle=True, random_state=s).split(X)
        ]
        v = ls.value(X, y, model="knn", cv=splits)
        np.testing.assert_allclose(v.values, sum(once), atol=1e-12)
        assert len(v.support_sizes) == 160
        assert len(ls.value(X, y, model="knn", cv=RepeatedKFold(n_splits=4, n_repeats=2)).support_sizes) == 160

    def test_sampled_and_with_frames(self, iris):
        X, y = iris
        frame = pd.DataFrame(X, columns=list("abcd"), index=[f"r{i}" for i in range(len(y))])
        v = ls.value(frame, y, model=GaussianNB(), cv=3, budget=900, progress=False)
        assert list(v.ids) == list(frame.index)
        assert 0 < v.cost.trainings <= 900
        assert frame.join(v.to_frame()).shape == (80, 8)
        assert sum("locality is assumed" in note for note in v.notes) == 1

    def test_a_plan_takes_the_same_arguments(self, iris):
        X, y = iris
        plan = ls.plan(X, y, model="tree", cv=4, support=ls.supports.Nearest(6))
        v = ls.value(X, y, model="tree", cv=4, support=ls.supports.Nearest(6), method="exact")
        assert plan.levels.lsmr == v.cost.trainings
        owners = np.arange(80) % 3
        assert ls.plan(X, y, model="tree", cv=4, owners=owners).n_rows == 3

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"X_test": [[0.0] * 4], "y_test": [0]}, "either X_test and y_test, or cv"),
            ({"support": ls.supports.Given([[0]] * 80)}, "Given names rows"),
            ({"support": ls.supports.Embedding((np.zeros((80, 1)), np.zeros((80, 1))))}, "Embedding names"),
            ({"model": SVC(kernel="precomputed")}, "precomputed kernel"),
        ],
    )
    def test_what_does_not_go_with_folds(self, iris, settings, message):
        X, y = iris
        with pytest.raises(ls.InvalidArgumentError, match=message):
            ls.value(X, y, **{"model": "knn", "cv": 4, **settings})

    def test_neither_test_rows_nor_folds(self, iris):
        with pytest.raises(ls.InvalidArgumentError, match="cv=5"):
            ls.value(*iris, model="knn")


def test_polars_in_and_out(iris):
    pl = pytest.importorskip("polars")
    X, y = iris
    table = pl.DataFrame({name: X[:, i] for i, name in enumerate("abcd")})
    v = ls.value(table[:50], pl.Series(y[:50]), table[50:], pl.Series(y[50:]), model="knn")
    np.testing.assert_array_equal(v.values, ls.value(X[:50], y[:50], X[50:], y[50:], model="knn").values)
    out = v.to_polars()
    assert out.columns == ["row", "value", "stderr", "stderr_tests", "n_tests"]
    assert out["value"].to_list() == v.values.tolist()
    lazy = ls.value(table[:50].lazy(), pl.Series(y[:50]), table[50:].lazy(), pl.Series(y[50:]), model="knn")
    np.testing.assert_array_equal(lazy.values, v.values)


def values_of_owners(model, X, y, X_test, y_test, owners):
    """Shapley values of owners by their definition: orders, one by one; every owner's rows at once."""
    names = list(dict.fromkeys(owners))
    classes = np.unique(y)

    def score(group):
        rows = np.flatnonzero(np.isin(owners, list(group)))
        if len(rows) == 0:
            return np.full(len(y_test), 1 / len(classes))
        if len(set(y[rows])) == 1:
            return (y_test == y[rows[0]]).astype(float)
        fitted = model.fit(X[rows], y[rows])
        proba = np.zeros((len(y_test), len(classes)))
        proba[:, np.searchsorted(classes, fitted.classes_)] = fitted.predict_proba(X_test)
        return proba[np.arange(len(y_test)), np.searchsorted(classes, y_test)]

    worth = {frozenset(g): score(g).sum() for k in range(len(names) + 1) for g in combinations(names, k)}
    out = dict.fromkeys(names, 0.0)
    for order in permutations(names):
        for i, name in enumerate(order):
            out[name] += worth[frozenset(order[: i + 1])] - worth[frozenset(order[:i])]
    return np.array([out[name] for name in names]) / factorial(len(names))


class TestOwners:
    @pytest.mark.parametrize(
        "model", [KNeighborsClassifier(3), DecisionTreeClassifier(random_state=0)], ids=["knn", "tree"]
    )
    def test_values_are_those_of_the_definition(self, iris, model):
        X, y = iris
        owners = np.array(["ann", "bo", "cy", "di"])[np.random.default_rng(1).integers(4, size=50)]
        v = ls.value(
            X[:50], y[:50], X[50:], y[50:], model=model, support=ls.supports.Everything(), owners=owners, method="exact"
        )
        expected = values_of_owners(model, X[:50], y[:50], X[50:], y[50:], owners)
        np.testing.assert_allclose(v.values, expected, atol=1e-10)
        assert list(v.ids) == list(dict.fromkeys(owners))
        assert v.cost.trainings == 16

    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.slow
    def test_with_folds_an_owner_does_not_bring_the_rows_that_are_tested(self, iris, n_jobs):
        X, y = iris[0][:45], iris[1][:45]
        owners = np.array(["ann", "bo", "cy", "di"])[np.random.default_rng(1).integers(4, size=45)]
        rng = np.random.default_rng(2).permutation(45)
        folds = [(np.setdiff1d(np.arange(45), test), test) for test in np.array_split(rng, 3)]
        model = ls.models.Estimator(DecisionTreeClassifier(random_state=0))
        how = {"model": model, "cv": folds, "support": ls.supports.Everything(), "method": "exact"}
        v = ls.value(X, y, **how, owners=owners, n_jobs=n_jobs)
        expected = pd.Series(0.0, index=v.ids)
        for train, test in folds:
            found = values_of_owners(model.estimator, X[train], y[train], X[test], y[test], owners[train])
            expected[list(dict.fromkeys(owners[train]))] += found
        np.testing.assert_allclose(v.values, expected, atol=1e-10)
        assert v.cost.trainings == 16
        assert "outside the test row's fold" in v.notes[-1]

    def test_a_store_tells_folds_apart(self, iris, tmp_path):
        X, y = iris
        settings = {"model": RandomForestClassifier(2, random_state=0), "cv": 3, "owners": np.arange(80) % 5}
        runs = [ls.value(X, y, **settings, seed=seed, store=tmp_path / "run.db") for seed in (0, 1, 0)]
        assert [run.cost.stored for run in runs] == [0, 0, runs[0].cost.trainings]

    def test_supports_only_save_work(self, iris):
        X, y = iris
        owners = pd.Series(np.arange(50) // 10, name="hospital")
        data = (X[:50], y[:50], X[50:], y[50:])
        local = ls.value(*data, model=KNeighborsClassifier(2), owners=owners)
        whole = ls.value(*data, model=KNeighborsClassifier(2), owners=owners, support=ls.supports.Everything())
        assert local.support_sizes.max() <= 5
        assert local.support_sizes.min() < whole.support_sizes.min()
        np.testing.assert_allclose(local.values.sum(), whole.values.sum(), atol=1e-9)
        assert local.to_frame().index.name == "hospital"
        assert "5 owners over 30 test rows" in repr(local)

    def test_every_row_its_own_owner(self, iris):
        X, y = iris
        data = (X[:40], y[:40], X[40:], y[40:])
        settings = {"model": "tree", "support": ls.supports.Nearest(6), "method": "exact"}
        rows = ls.value(*data, **settings)
        owners = ls.value(*data, **settings, owners=np.arange(40))
        np.testing.assert_allclose(owners.values, rows.values, atol=1e-12)
        assert owners.cost.trainings == rows.cost.trainings

    def test_sampled_resumed_and_in_processes(self, iris, tmp_path):
        X, y = iris
        owners = np.arange(80) % 16
        forest = RandomForestClassifier(n_estimators=2, random_state=0)
        settings = {"model": forest, "cv": 3, "owners": owners, "budget": 300, "progress": False}
        first = ls.value(X, y, **settings, store=tmp_path / "run.db")
        again = ls.value(X, y, **settings, store=tmp_path / "run.db", n_jobs=2)
        np.testing.assert_array_equal(first.values, again.values)
        assert first.cost.trainings > 0
        assert again.cost.trainings == 0
        first.save(tmp_path / "v.parquet")
        assert ls.load(tmp_path / "v.parquet").unit == "owner"

    @pytest.mark.parametrize(
        ("owners", "message"),
        [
            (["a"] * 79, r"each of the 80 training rows; got shape \(79,\)"),
            (["a"] * 79 + [None], "missing for 1 row, first for row 79"),
            (np.zeros((80, 2)), "shape"),
        ],
    )
    def test_bad_owners(self, iris, owners, message):
        with pytest.raises(ls.InvalidArgumentError, match=message):
            ls.value(*iris, model="knn", cv=3, owners=owners)
