"""Models that clean their training data first."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifierCV, SGDClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_estimator,
    check_fit_idempotent,
)

import localshapley as ls
from localshapley.clean import harm
from made import changed


@pytest.mark.parametrize(
    "estimator",
    [
        ls.CleanClassifier(KNeighborsClassifier()),
        ls.CleanClassifier(GaussianNB(), model="knn", action="weight"),
        ls.CleanClassifier(make_pipeline(StandardScaler(), SGDClassifier()), model="knn"),
        ls.CleanRegressor(Ridge(), support=ls.supports.Nearest(4)),
    ],
    ids=["knn", "weighted", "unseeded pipeline", "ridge"],
)
@pytest.mark.slow
def test_passes_the_checks_of_scikit_learn(estimator):
    failed = [r for r in check_estimator(estimator, on_fail=None) if r["status"] not in ("passed", "skipped")]
    assert not failed


@pytest.fixture(scope="module")
def noisy():
    """Breast Cancer with one training label in five flipped; test labels are as they were."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    train, test = order[:350], order[350:]
    flipped = rng.choice(350, 70, replace=False)
    labels = y[train].copy()
    labels[flipped] = 1 - labels[flipped]
    return X[train], labels, X[test], y[test], flipped


@pytest.mark.parametrize(
    ("model", "action", "gain"),
    [
        (DecisionTreeClassifier(random_state=0), "drop", 0.05),
        (SVC(C=100), "weight", 0.05),  # trees learn every row by heart, however little it weighs
    ],
)
def test_cleaning_helps_where_labels_are_wrong(noisy, model, action, gain):
    X, y, X_test, y_test, flipped = noisy
    clean = ls.CleanClassifier(model, model="knn", action=action).fit(X, y)
    removed = np.flatnonzero(~clean.kept_)
    assert np.isin(removed, flipped).mean() > 0.7
    assert np.isin(flipped, removed).mean() > 0.6
    assert clean.score(X_test, y_test) > model.fit(X, y).score(X_test, y_test) + gain


def test_cleaning_leaves_clean_data_nearly_alone():
    X, y = load_breast_cancer(return_X_y=True)
    clean = ls.CleanClassifier(make_pipeline(StandardScaler(), KNeighborsClassifier(5)), model="knn").fit(
        StandardScaler().fit_transform(X), y
    )
    assert (~clean.kept_).mean() < 0.05


def test_weights_fall_with_certainty(noisy):
    X, y, *_ = noisy
    clean = ls.CleanClassifier(LogisticRegression(), model="knn", action="weight").fit(X, y)
    sure = harm(clean.valuation_) / 0.9944579
    weight = clean._weights(clean.valuation_, y)
    assert ((weight == 1) == (sure <= 1)).all()
    np.testing.assert_allclose(weight[sure > 1], 1 / sure[sure > 1] ** 2)
    expected = LogisticRegression().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(clean.estimator_.coef_, expected.coef_)


def test_harm_counts_test_rows_and_draws():
    data = ls.datasets.load("iris")
    exact = ls.value(*data[:4], model="tree", support=ls.supports.Nearest(8), method="exact", per_test=True)
    by_test = exact.per_test.toarray()
    over_tests = len(by_test) * by_test.var(axis=0, ddof=1)
    for v in (exact, changed(exact, stderr=np.full(len(exact.values), 0.2))):
        error = np.sqrt(v.stderr**2 + over_tests)
        expected = np.divide(-v.values, error, out=np.zeros(len(error)), where=error > 0)
        np.testing.assert_allclose(harm(v), expected, atol=1e-6)


def test_more_confidence_removes_fewer_rows(noisy):
    X, y, *_ = noisy
    removed = [
        int((~ls.CleanClassifier(KNeighborsClassifier(), confidence=c).fit(X, y).kept_).sum())
        for c in (0.5, 0.95, 0.999)
    ]
    assert removed[0] > removed[1] > removed[2] > 0


def test_works_inside_scikit_learn(noisy):
    X, y, *_ = noisy
    clean = ls.CleanClassifier(KNeighborsClassifier(1))
    assert cross_val_score(clean, X, y, cv=3).mean() > cross_val_score(KNeighborsClassifier(1), X, y, cv=3).mean()
    search = GridSearchCV(clean, {"confidence": [0.8, 0.99], "estimator__n_neighbors": [1, 3]}, cv=2).fit(X, y)
    assert set(search.best_params_) == {"confidence", "estimator__n_neighbors"}
    proba = clean.fit(X, y).predict_proba(X)
    assert proba.shape == (350, 2)
    assert not hasattr(clean, "decision_function")
    assert hasattr(ls.CleanClassifier(LogisticRegression()), "decision_function")


def test_frames_with_words_and_a_splitter():
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "blue"], 60)
    frame = pd.DataFrame({"colour": colour, "size": rng.normal(size=60)})
    y = np.where((colour == "red") ^ (np.arange(60) % 15 == 0), "yes", "no")
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["colour"]), (StandardScaler(), ["size"])), KNeighborsClassifier(3)
    )
    clean = ls.CleanClassifier(model, cv=KFold(4), support=ls.supports.Nearest(5)).fit(frame, y)
    assert set(clean.predict(frame)) <= {"yes", "no"}
    assert list(clean.classes_) == ["no", "yes"]


def test_regression_drops_what_is_far_off():
    X, y = load_diabetes(return_X_y=True)
    wrong = np.random.default_rng(0).choice(len(y), 30, replace=False)
    y = y.copy()
    y[wrong] += 600
    clean = ls.CleanRegressor(KNeighborsRegressor(5), support=ls.supports.Nearest(8)).fit(X, y)
    removed = np.flatnonzero(~clean.kept_)
    assert np.isin(wrong, removed).mean() > 0.5
    assert np.isin(removed, wrong).mean() > 0.8
    assert clean.n_features_in_ == 10


def test_too_few_rows_to_tell_are_all_kept():
    clean = ls.CleanClassifier(KNeighborsClassifier(1)).fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
    assert clean.valuation_ is None
    assert clean.kept_.all()


def test_no_class_is_emptied():
    X = np.arange(40.0)[:, None]
    y = np.zeros(40, dtype=int)
    y[[10, 30]] = 1
    clean = ls.CleanClassifier(KNeighborsClassifier(3), confidence=0.01, cv=2).fit(X, y)
    assert set(y[clean.kept_]) == {0, 1}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"action": "burn"}, "action must be one of 'drop', 'weight'"),
        ({"confidence": 95}, "confidence must be between 0 and 1"),
        ({"confidence": "a"}, "confidence must be between 0 and 1; got 'a'"),
        ({"random_state": "a"}, "random_state must be a whole number"),
        ({"random_state": -1}, "random_state must be a whole number"),
        ({"cv": GroupKFold(3)}, r"'groups' parameter.*fit\(X, y, groups=...\)"),
        ({"action": "weight"}, "KNeighborsClassifier does not"),
        ({"cv": 1}, "number of folds"),
    ],
)
def test_bad_settings(noisy, settings, message):
    with pytest.raises(ls.InvalidArgumentError, match=message):
        ls.CleanClassifier(KNeighborsClassifier(), **settings).fit(*noisy[:2])


@pytest.mark.parametrize(
    ("clean", "message"),
    [
        (ls.CleanClassifier(Ridge()), "CleanClassifier got Ridge, which is a regressor; use CleanRegressor"),
        (
            ls.CleanRegressor(make_pipeline(StandardScaler(), GaussianNB())),
            "got GaussianNB, which is a classifier; use CleanClassifier",
        ),
    ],
)
def test_the_wrong_kind_of_model_is_refused(noisy, clean, message):
    with pytest.raises(ls.InvalidArgumentError, match=message):
        clean.fit(*noisy[:2])


@pytest.mark.parametrize("action", ["drop", "weight"])
def test_rows_are_kept_where_coalitions_learn_nothing_from_features(action):
    X, y = make_classification(150, 4, n_redundant=0, weights=[0.85], class_sep=1.5, flip_y=0, random_state=0)
    model = HistGradientBoostingClassifier(max_iter=5)
    with pytest.warns(ls.LocalShapleyWarning, match=r"all rows were kept.*min_samples_leaf=20.*model='knn'"):
        clean = ls.CleanClassifier(model, action=action, budget=600).fit(X, y)
    assert clean.kept_.all()
    assert (clean._weights(clean.valuation_, y) < 1).any()  # else there would be nothing to keep
    np.testing.assert_array_equal(clean.predict_proba(X), model.fit(X, y).predict_proba(X))


def test_a_valuation_can_be_watched_and_limited(noisy, monkeypatch):
    X, y = noisy[0][:40], noisy[1][:40]
    seen, limits = [], []

    def limited(*rows, max_seconds, tol, **options):
        """A number of trainings in place of a time that a slow machine may not keep."""
        limits.append((max_seconds, tol))
        return ls.value(*rows, **options | {"budget": 500})

    monkeypatch.setattr("localshapley.clean.value", limited)
    model = RidgeClassifierCV()
    clean = ls.CleanClassifier(model, max_seconds=1, tol=1e-9, progress=lambda done, total: seen.append(done))
    with warnings.catch_warnings(action="ignore"):
        clean = clone(clean).fit(X, y)
    assert seen[-1] > 0
    assert limits == [(1, 1e-9)]
    assert clean.get_params(deep=False)["max_seconds"] == 1


def test_unfitted():
    clean = ls.CleanClassifier(RandomForestClassifier())
    for name in ("classes_", "n_features_in_", "feature_names_in_"):
        assert not hasattr(clean, name)


def test_a_name_stands_for_the_model_that_value_takes_it_for(noisy):
    X, y = noisy[0][:80], noisy[1][:80]
    by_name, by_model = (ls.CleanClassifier(model).fit(X, y) for model in ("knn", KNeighborsClassifier()))
    np.testing.assert_array_equal(by_name.kept_, by_model.kept_)
    np.testing.assert_array_equal(by_name.predict_proba(X), by_model.predict_proba(X))
    assert hasattr(ls.CleanClassifier("knn"), "predict_proba")
    assert isinstance(ls.CleanRegressor("tree")._estimator(), DecisionTreeRegressor)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("kn", "Did you mean 'knn'"),
        (KNeighborsClassifier, r"model is a class; give an instance of it: KNeighborsClassifier\(\)"),
        (3, "model must be a scikit-learn estimator"),
    ],
)
def test_what_is_no_model_is_refused(noisy, model, message):
    with pytest.raises(ls.InvalidArgumentError, match=message):
        ls.CleanClassifier(model).fit(noisy[0][:40], noisy[1][:40])


class TestAsScikitLearnHasIt:
    """Conventions of scikit-learn, check by check; the slow test above runs all of them."""

    def test_models_without_a_seed_get_one(self, noisy):
        X, y = noisy[0][:60], noisy[1][:60]
        model = RandomForestClassifier(3, max_depth=2)
        check_fit_idempotent("CleanClassifier", ls.CleanClassifier(model, model="knn"))
        same = [ls.CleanClassifier(model, model="knn", random_state=s).fit(X, y) for s in (3, 3, 4)]
        one, two, other = (clean.predict_proba(X) for clean in same)
        np.testing.assert_array_equal(one, two)
        assert (one != other).any()
        assert (ls.CleanClassifier(model, model="knn", random_state=None).fit(X, y).predict_proba(X) != one).any()
        seed = ls.CleanClassifier(model, random_state=np.random.RandomState(1))._seed()
        assert seed == np.random.RandomState(1).randint(2**31)

    def test_columns_have_names(self, noisy):
        frame = pd.DataFrame(noisy[0][:60, :3], columns=["a", "b", "c"])
        clean = ls.CleanClassifier(GaussianNB(), model="knn")
        assert clean.fit(frame, noisy[1][:60]).feature_names_in_.tolist() == ["a", "b", "c"]
        assert not hasattr(clone(clean).fit(frame.to_numpy(), noisy[1][:60]), "feature_names_in_")
        check_dataframe_column_names_consistency("CleanClassifier", clean)

    def test_groups_reach_the_splitter(self, noisy):
        X, y = noisy[0][:60], noisy[1][:60]
        groups = np.arange(60) // 4
        clean = ls.CleanClassifier(KNeighborsClassifier(), cv=GroupKFold(3)).fit(X, y, groups=groups)
        folds = list(GroupKFold(3).split(X, y, groups))
        expected = ls.value(X, y, model=KNeighborsClassifier(), cv=folds)
        np.testing.assert_array_equal(clean.valuation_.values, expected.values)
        with pytest.raises(ls.InvalidArgumentError, match=r"groups are for a splitter.*cv=5"):
            ls.CleanClassifier(KNeighborsClassifier()).fit(X, y, groups=groups)

    def test_weights_of_rows_are_refused(self, noisy):
        with pytest.raises(ls.InvalidArgumentError, match=r"got sample_weight.*action='weight'"):
            ls.CleanClassifier(GaussianNB()).fit(*noisy[:2], sample_weight=np.ones(350))

    def test_gaps_are_taken_where_both_models_take_them(self):
        boosted, filled = HistGradientBoostingClassifier(), make_pipeline(SimpleImputer(), GaussianNB())
        takes = {
            ls.CleanClassifier(boosted): True,
            ls.CleanClassifier(boosted, model="knn"): False,
            ls.CleanClassifier(GaussianNB(), model=boosted): False,
            ls.CleanClassifier(filled, model="knn"): True,  # what is filled for one is filled for the other
        }
        for clean, expected in takes.items():
            assert get_tags(clean).input_tags.allow_nan == expected, clean
        X, y = load_wine(return_X_y=True)
        X[::7, 2] = np.nan
        assert ls.CleanClassifier(filled, model="knn").fit(X, y).score(X, y) > 0.9

    def test_what_prepares_rows_for_one_model_prepares_them_for_the_other(self):
        X, y = load_wine(return_X_y=True)
        model, knn = make_pipeline(StandardScaler(), LogisticRegression()), KNeighborsClassifier()
        judges = ["knn", make_pipeline(StandardScaler(), knn), make_pipeline(knn)]
        prepared, own, plain = (ls.CleanClassifier(model, model=judge).fit(X, y).kept_ for judge in judges)
        np.testing.assert_array_equal(prepared, own)
        assert (~prepared).sum() < (~plain).sum()  # a pipeline of its own is taken as it is
        judge = ls.CleanClassifier(model, model=ls.models.Fixed(RandomForestClassifier()))._judge()
        assert isinstance(judge, ls.models.Fixed)
        assert [type(step).__name__ for _, step in judge.estimator.steps] == ["Pipeline", "RandomForestClassifier"]
