"""`value` with scikit-learn's estimators against a plain loop: enumerate, clone, fit, predict."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
import naive
from localshapley.models import Coalitions, Counts, Refit, Trainer
from localshapley.supports import Everything, Given, Nearest
from playing import pose

iris, cancer, wine, diabetes = load_iris(), load_breast_cancer(), load_wine(), load_diabetes()
IRIS = (iris.data[::5], iris.target[::5], iris.data[[1, 57, 108, 133]], iris.target[[1, 57, 108, 133]])
CANCER = (cancer.data[::12], cancer.target[::12], cancer.data[[1, 20, 50]], cancer.target[[1, 20, 50]])
WINE = (wine.data[::6], wine.target[::6], wine.data[[1, 70, 141]], wine.target[[1, 70, 141]])
DIABETES = (diabetes.data[::11], diabetes.target[::11], diabetes.data[1:4], diabetes.target[1:4])


@pytest.fixture(autouse=True)
def the_plain_way(monkeypatch):
    """Compiled trainers have tests of their own."""
    monkeypatch.setenv("LOCALSHAPLEY_COMPILED", "0")


def rows_of(X, indices):
    return X.iloc[list(indices)] if isinstance(X, pd.DataFrame) else X[list(indices)]


def plain_loop(model, X, y, X_test, y_test, supports, accuracy=False):
    """Local Shapley values by enumeration, with nothing of the library but its conventions."""
    y = np.asarray(y)
    classes = sorted(set(y.tolist())) if is_classifier(model) else None

    def nothing_learnt(t):
        return 1 / len(classes) if classes else -((y.mean() - y_test[t]) ** 2)

    @cache
    def v(subset, t):
        if not subset:
            return nothing_learnt(t)
        labels = y[list(subset)]
        copy = clone(model)
        last = copy[-1] if hasattr(copy, "steps") else copy
        may_be_silent = isinstance(last, RadiusNeighborsClassifier)
        if classes and len(set(labels.tolist())) == 1 and not may_be_silent:
            return float(labels[0] == y_test[t])
        if isinstance(last, KNeighborsClassifier | KNeighborsRegressor) and last.n_neighbors > len(subset):
            last.n_neighbors = len(subset)
        try:
            copy.fit(rows_of(X, subset), labels)
            row = rows_of(X_test, [t])
            if not classes:
                return -((copy.predict(row)[0] - y_test[t]) ** 2)
            if accuracy:
                return float(copy.predict(row)[0] == y_test[t])
            known = copy.classes_.tolist()
            found = copy.predict_proba(row)[0]
            return found[known.index(y_test[t])] if y_test[t] in known else 0.0
        except ValueError:
            return nothing_learnt(t)

    return naive.shapley_matrix(supports, v, len(y))


def some_supports(data, n, seed=0):
    """For each test row the two nearest rows and others at random, so that supports overlap."""
    X, _, X_test, _ = data
    rng = np.random.default_rng(seed)
    out = []
    for t in np.asarray(X_test):
        near = np.argsort(((np.asarray(X) - t) ** 2).sum(axis=1))[:2].tolist()
        others = [z for z in rng.permutation(12).tolist() if z not in near]
        out.append(sorted(near + [int(z) * (len(X) // 12) for z in others if z * (len(X) // 12) not in near][: n - 2]))
    return out


CASES = {
    "knn": (KNeighborsClassifier(3), IRIS, 6),
    "knn by distance": (KNeighborsClassifier(5, weights="distance", p=1), WINE, 6),
    "tree": (DecisionTreeClassifier(random_state=0), IRIS, 6),
    "forest": (RandomForestClassifier(4, random_state=0), WINE, 5),
    "logistic": (LogisticRegression(max_iter=2000), IRIS, 4),
    "logistic in a pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), CANCER, 5),
    "knn in a pipeline": (make_pipeline(StandardScaler(), KNeighborsClassifier(4)), CANCER, 6),
    "knn regressor": (KNeighborsRegressor(3), DIABETES, 6),
    "ridge": (Ridge(0.1), DIABETES, 6),
    "svr": (SVR(C=100.0), DIABETES, 6),
    "ridge in a pipeline": (make_pipeline(StandardScaler(), Ridge()), DIABETES, 5),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_values_are_those_of_a_plain_loop(case):
    model, data, n = CASES[case]
    supports = some_supports(data, n)
    found = ls.value(*data, model=Refit(model), support=Given(supports), per_test=True)
    expected = plain_loop(model, *data, supports)
    np.testing.assert_allclose(found.per_test.toarray(), expected, atol=1e-10 * max(1, np.abs(expected).max()))
    np.testing.assert_allclose(found.values, expected.sum(axis=0), atol=1e-10 * max(1, np.abs(expected).max()))
    assert np.abs(expected).max() > 0.01
    assert found.score == ("confidence" if is_classifier(model) else "squared_error")


@pytest.mark.parametrize("model", [SVC(), SVC(kernel="linear", C=10), DecisionTreeClassifier(random_state=0)])
@pytest.mark.parametrize("data", [IRIS, CANCER], ids=["iris", "cancer"])
@pytest.mark.slow
def test_accuracy_values_are_those_of_a_plain_loop(model, data):
    supports = some_supports(data, 5)
    found = ls.value(*data, model=model, support=Given(supports), score="accuracy", per_test=True)
    np.testing.assert_allclose(found.per_test.toarray(), plain_loop(model, *data, supports, accuracy=True), atol=1e-10)


def test_a_machine_without_probabilities_is_scored_by_accuracy():
    supports = some_supports(IRIS, 4)
    found = ls.value(*IRIS, model=SVC(), support=Given(supports))
    assert found.score == "accuracy"
    same = ls.value(*IRIS, model=SVC(), support=Given(supports), score="accuracy")
    assert (found.values == same.values).all()


@pytest.mark.parametrize("model", [KNeighborsClassifier(3), SVC(), Ridge()], ids=repr)
def test_every_exact_method_gives_the_same_values(model):
    data = IRIS if is_classifier(model) else DIABETES
    support = Given(some_supports(data, 4))
    values = {
        method: ls.value(*data, model=model, support=support, method=method).values
        for method in ("auto", "exact", "subset-centric", "baseline")
    }
    assert (values["auto"] == values["exact"]).all()
    for method in ("subset-centric", "baseline"):
        np.testing.assert_allclose(values[method], values["exact"], atol=1e-10 * max(1, np.abs(values["exact"]).max()))


def test_costs_are_those_of_the_distinct_subsets():
    supports = some_supports(IRIS, 6)
    v = ls.value(*IRIS, model=KNeighborsClassifier(3), support=Given(supports))
    distinct = naive.distinct_subsets(supports)
    one_class = [s for s in distinct if len(set(IRIS[1][list(s)].tolist())) <= 1]
    assert v.cost.trainings == v.cost.distinct == len(distinct)
    assert v.cost.draws == 4 * 2**6
    assert v.cost.reused == 4 * 2**6 - len(distinct)
    assert v.cost.trivial == len(one_class)
    assert "KNeighborsClassifier" in v.cost.trainer
    assert "scikit-learn fit" in v.cost.trainer


@pytest.mark.parametrize(
    "model",
    [
        KNeighborsClassifier(3),
        RandomForestClassifier(3),
        LogisticRegression(max_iter=200),
        make_pipeline(StandardScaler(), SVC()),
    ],
    ids=["knn", "forest", "logistic", "pipeline"],
)
def test_same_bits_for_one_job_and_two(model):
    support = Given(some_supports(IRIS, 5))
    one = ls.value(*IRIS, model=model, support=support, per_test=True, n_jobs=1)
    two = ls.value(*IRIS, model=model, support=support, per_test=True, n_jobs=2)
    assert (one.values == two.values).all()
    assert (one.per_test.data == two.per_test.data).all()
    assert one.notes == two.notes
    assert one.cost.trivial == two.cost.trivial


def test_everything_is_the_global_game():
    X, y = iris.data[[0, 9, 52, 60, 75, 110, 140]], iris.target[[0, 9, 52, 60, 75, 110, 140]]
    data = X, y, IRIS[2], IRIS[3]
    found = ls.value(*data, model=KNeighborsClassifier(3), support=Everything(), per_test=True)
    expected = plain_loop(KNeighborsClassifier(3), *data, [range(7)] * 4)
    np.testing.assert_allclose(found.per_test.toarray(), expected, atol=1e-10)
    full = KNeighborsClassifier(3).fit(X, y).predict_proba(IRIS[2])[range(4), IRIS[3]]
    np.testing.assert_allclose(found.values.sum(), (full - 1 / 3).sum(), atol=1e-10)
    assert found.cost.trainings == 2**7


def test_fewer_rows_than_k_all_vote():
    X, y = np.array([[0.0], [1.0], [2.0]]), ["a", "b", "b"]
    v = ls.value(X, y, [[0.1]], ["b"], model=KNeighborsClassifier(50), support=Everything())
    # Votes for "b": none of 0 rows 1/2; {a} 0; {b} 1; {a, b} 1/2; {b, b} 1; all 2/3.
    np.testing.assert_allclose(v.values[0], (-1 / 2) / 3 + 2 * (-1 / 2) / 6 + (-1 / 3) / 3)
    np.testing.assert_allclose(v.values[1], (1 / 2) / 3 + (1 / 2) / 6 + 0 / 6 + (1 / 6) / 3)
    np.testing.assert_allclose(v.values[1], v.values[2])


class NeedsFour(ClassifierMixin, BaseEstimator):
    """A tree that cannot learn from fewer than four rows."""

    def fit(self, X, y):
        if len(X) < 4:
            raise ValueError("at least 4 rows are needed")
        self.tree = DecisionTreeClassifier(random_state=0).fit(X, y)
        self.classes_ = self.tree.classes_
        return self

    def predict(self, X):
        return self.tree.predict(X)

    def predict_proba(self, X):
        return self.tree.predict_proba(X)


def test_coalitions_that_an_estimator_refuses_count_as_nothing_learnt_and_are_noted():
    supports = some_supports(IRIS, 6)
    found = ls.value(*IRIS, model=NeedsFour(), support=Given(supports), per_test=True)
    np.testing.assert_allclose(found.per_test.toarray(), plain_loop(NeedsFour(), *IRIS, supports), atol=1e-10)
    refused = [s for s in naive.distinct_subsets(supports) if len(s) < 4 and len(set(IRIS[1][list(s)].tolist())) > 1]
    (note,) = [note for note in found.notes if "too small" in note]
    assert note.startswith(f"{len(refused)} coalitions")
    assert "at least 4 rows are needed" in note


def test_one_of_a_kind_is_told_as_one():
    class Some(Trainer):
        def train(self, coalitions):
            """Nothing to train."""

    counts = Counts(
        failed=1, skipped=1, silent=1, warnings=Counter(UserWarning=1), first_failure="x", first_skipped="y"
    )
    assert Some().notes(counts) == [
        "1 coalition was too small for the model and is scored like the empty coalition (first: x).",
        "1 coalition failed to train and is scored like the empty coalition: the values are biased (first: y).",
        "1 prediction was missing, NaN, infinite or too large to be scored, and is scored like the empty coalition.",
        "1 fit gave a UserWarning.",
    ]


def test_calibration_that_needs_two_rows_of_each_class_never_raises():
    data = (CANCER[0], CANCER[1], CANCER[2][:2], CANCER[3][:2])
    supports = some_supports(data, 5)
    model = CalibratedClassifierCV(KNeighborsClassifier(1), cv=2)
    found = ls.value(*data, model=model, support=Given(supports), per_test=True)
    np.testing.assert_allclose(found.per_test.toarray(), plain_loop(model, *data, supports), atol=1e-10)
    assert any("too small for the model" in note for note in found.notes)


@pytest.mark.parametrize("score", ["confidence", "accuracy"])
def test_a_radius_without_neighbours_counts_as_nothing_learnt_and_is_noted(score):
    X, y = np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([0, 1, 0, 1])
    data = X, y, np.array([[0.2], [5.9]]), np.array([0, 1])
    supports = [range(4)] * 2
    model = RadiusNeighborsClassifier(1.5)
    found = ls.value(*data, model=model, support=Everything(), score=score, per_test=True)
    expected = plain_loop(model, *data, supports, accuracy=score == "accuracy")
    np.testing.assert_allclose(found.per_test.toarray(), expected, atol=1e-10)
    assert any("scored like the empty coalition" in note for note in found.notes)


def test_a_regressor_that_predicts_nan_counts_as_nothing_learnt_and_is_noted():
    X, y = np.array([[0.0], [1.0], [5.0]]), np.array([1.0, 3.0, 8.0])
    v = ls.value(X, y, [[0.2]], [1.0], model=RadiusNeighborsRegressor(1.5), support=Everything())
    # The mean 4 is predicted without neighbours: errors 9; 0 of {0}; 4 of {1}; 1 of {0, 1}.
    np.testing.assert_allclose(v.values, [(9 + 3) / 2, (5 - 1) / 2, 0], atol=1e-12)
    assert any("scored like the empty coalition" in note for note in v.notes)


class FailsOnThree(NeedsFour):
    """A tree with a bug that shows on three rows."""

    def fit(self, X, y):
        if len(X) == 3:
            raise KeyError("a bug")
        self.tree = DecisionTreeClassifier(random_state=0).fit(X, y)
        self.classes_ = self.tree.classes_
        return self


def test_any_other_exception_is_a_training_error_that_names_the_rows():
    with pytest.raises(ls.TrainingError, match=r"coalition of rows \[3, 14, 25\] failed: KeyError: 'a bug'"):
        ls.value(
            *(part[:1] if i > 1 else part for i, part in enumerate(IRIS)),
            model=FailsOnThree(),
            support=Given([[3, 14, 25]]),
        )


class CannotPredictOneRow(FailsOnThree):
    def fit(self, X, y):
        self.tree = DecisionTreeClassifier(random_state=0).fit(X, y)
        self.classes_, self.n_rows = self.tree.classes_, len(X)
        return self

    def predict_proba(self, X):
        if self.n_rows == 2:
            raise ZeroDivisionError("a bug")
        return self.tree.predict_proba(X)


def test_an_exception_in_prediction_names_the_rows_too():
    with pytest.raises(ls.TrainingError, match=r"rows \[\d+, \d+\] failed: ZeroDivisionError"):
        ls.value(*IRIS, model=CannotPredictOneRow(), support=Given([[3, 14, 25]] * 4))


def test_an_open_random_state_is_set_by_the_seed():
    arguments = {"model": RandomForestClassifier(3), "support": Given(some_supports(IRIS, 4))}
    first, again = (ls.value(*IRIS, **arguments).values for _ in range(2))
    other = ls.value(*IRIS, **arguments, seed=1).values
    assert (first == again).all()
    assert (first != other).any()
    fixed = ls.value(*IRIS, **{**arguments, "model": RandomForestClassifier(3, random_state=0)}).values
    assert (first == fixed).all()


def test_an_open_random_state_inside_a_pipeline_is_set_too():
    model = make_pipeline(StandardScaler(), RandomForestClassifier(3))
    support = Given(some_supports(IRIS, 4))
    first, again = (ls.value(*IRIS, model=model, support=support).values for _ in range(2))
    assert (first == again).all()
    assert model[-1].random_state is None


@pytest.mark.parametrize(
    "model",
    [
        DummyClassifier(strategy="uniform"),
        DummyClassifier(strategy="stratified"),
        make_pipeline(IterativeImputer(sample_posterior=True, max_iter=1), GaussianNB()),
    ],
)
def test_what_a_model_draws_for_a_row_does_not_depend_on_the_rows_before_it(model):
    holes = IRIS[2].copy()
    holes[:, 2] = np.nan
    data = IRIS[0], IRIS[1], holes if hasattr(model, "steps") else IRIS[2], np.ones(4, dtype=int)
    score = "confidence" if hasattr(model, "steps") else "accuracy"
    trainer = pose(*data, model=Refit(model), score=score, support=Everything()).trainer
    rows = [*range(0, 30, 3), 29]
    together = trainer.evaluate(Coalitions.from_lists([rows], [[0, 1, 2, 3]]))
    alone = trainer.evaluate(Coalitions.from_lists([rows] * 4, [[3], [2], [1], [0]]))
    assert (together == alone[::-1]).all()


def test_the_users_estimator_is_left_as_it_was():
    model = KNeighborsClassifier(40)
    ls.value(*IRIS, model=model, support=Given(some_supports(IRIS, 3)))
    assert model.n_neighbors == 40
    assert not hasattr(model, "classes_")


def test_class_weights_by_text_label_count():
    names = iris.target_names[IRIS[1]], iris.target_names[IRIS[3]]
    data = (IRIS[0], names[0], IRIS[2], names[1])
    weights = {"setosa": 1.0, "versicolor": 20.0, "virginica": 0.5}
    support = some_supports(data, 4)
    model = LogisticRegression(C=0.01, class_weight=weights)
    found = ls.value(*data, model=ls.models.Estimator(model), support=Given(support), per_test=True)
    np.testing.assert_allclose(found.per_test.toarray(), plain_loop(model, *data, support), atol=1e-10)
    plain = ls.value(*data, model=LogisticRegression(C=0.01), support=Given(support))
    assert np.abs(found.values - plain.values).max() > 0.01


@pytest.mark.parametrize("kind", [np.array, list, pd.Series, lambda y: np.array(y, dtype=object), pd.Categorical])
def test_text_labels_of_any_kind_give_the_values_of_their_codes(kind):
    support = Given(some_supports(IRIS, 5))
    expected = ls.value(*IRIS, model=KNeighborsClassifier(3), support=support).values
    y, y_test = (kind(iris.target_names[codes].tolist()) for codes in (IRIS[1], IRIS[3]))
    found = ls.value(IRIS[0], y, IRIS[2], y_test, model=KNeighborsClassifier(3), support=support).values
    assert (found == expected).all()


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("knn", KNeighborsClassifier()),
        ("tree", DecisionTreeClassifier(random_state=0)),
        ("svm", SVC()),
        ("logistic", LogisticRegression(max_iter=1000)),
    ],
)
def test_a_model_by_name_is_that_estimator(name, model):
    support = Given(some_supports(IRIS, 4))
    found = ls.value(*IRIS, model=name, support=support)
    expected = ls.value(*IRIS, model=model, support=support)
    assert (found.values == expected.values).all()
    assert found.model == expected.model


@pytest.mark.parametrize(("name", "kind"), [("knn", KNeighborsRegressor), ("svm", SVR), ("ridge", Ridge)])
def test_a_name_is_a_regressor_where_y_has_fractions(name, kind):
    X, y, X_test, y_test = DIABETES
    data = X, y + 0.5, X_test, y_test
    support = Given(some_supports(data, 4))
    found = ls.value(*data, model=name, support=support)
    assert (found.values == ls.value(*data, model=kind(), support=support).values).all()
    assert found.score == "squared_error"


def test_ridge_by_name_is_a_regressor_whatever_numbers_y_holds():
    support = Given(some_supports(DIABETES, 4))
    found = ls.value(*DIABETES, model="ridge", support=support)
    assert (found.values == ls.value(*DIABETES, model=Ridge(), support=support).values).all()


def test_a_wrapped_estimator_is_trained_the_plain_way():
    support = Given(some_supports(IRIS, 4))
    wrapped = ls.value(*IRIS, model=ls.models.Estimator(DecisionTreeClassifier(random_state=0)), support=support)
    plain = ls.value(*IRIS, model=DecisionTreeClassifier(random_state=0), support=support)
    np.testing.assert_allclose(wrapped.values, plain.values, atol=1e-10)
    assert "scikit-learn fit" in wrapped.cost.trainer


class TestEmpty:
    def test_the_score_of_nothing_is_shared_among_the_rows(self):
        supports = some_supports(IRIS, 5)
        default, zero, high = (
            ls.value(*IRIS, model=KNeighborsClassifier(3), support=Given(supports), empty=empty, per_test=True)
            for empty in (None, 0.0, 0.9)
        )
        member = np.zeros((4, 30))
        for t, support in enumerate(supports):
            member[t, support] = 1 / 5
        np.testing.assert_allclose((zero.per_test - default.per_test).toarray(), member / 3, atol=1e-12)
        np.testing.assert_allclose((zero.per_test - high.per_test).toarray(), 0.9 * member, atol=1e-12)

    def test_it_holds_for_refused_coalitions_too(self):
        v = ls.value(*IRIS, model=NeedsFour(), support=Given([[3, 14, 25]] * 4), empty=0.25, per_test=True)
        np.testing.assert_allclose(v.per_test.sum(axis=1), 0, atol=1e-12)

    def test_a_regressor_predicts_the_mean_of_all_of_y(self):
        v = ls.value(*DIABETES, model=Ridge(), support=Given([[0], [1], [2]]), per_test=True)
        _, y, X_test, y_test = DIABETES
        for t in range(3):
            alone = Ridge().fit(DIABETES[0][[t]], y[[t]]).predict(X_test[[t]])[0]
            expected = (y.mean() - y_test[t]) ** 2 - (alone - y_test[t]) ** 2
            np.testing.assert_allclose(v.per_test.toarray()[t, t], expected, rtol=1e-12)


class TestTables:
    columns = [f"f{i}" for i in range(4)]  # noqa: RUF012
    support = Given(some_supports(IRIS, 4))

    def value(self, X, X_test, y=IRIS[1], y_test=IRIS[3], model=None):
        model = model or make_pipeline(StandardScaler(), KNeighborsClassifier(3))
        return ls.value(X, y, X_test, y_test, model=model, support=self.support)

    @pytest.mark.parametrize(
        "kind",
        [
            lambda X: pd.DataFrame(X, columns=TestTables.columns),
            lambda X: X.tolist(),
            lambda X: X.astype(object),
            np.asfortranarray,
        ],
        ids=["frame", "lists", "objects", "columns first"],
    )
    def test_tables_of_every_kind_give_the_same_values(self, kind):
        found = self.value(kind(IRIS[0]), kind(IRIS[2]))
        np.testing.assert_allclose(found.values, self.value(IRIS[0], IRIS[2]).values, atol=1e-12)

    @pytest.mark.parametrize(
        ("kind", "model"),
        [
            (sparse.csr_matrix, LogisticRegression(max_iter=2000)),
            (sparse.csc_matrix, KNeighborsClassifier(3)),
            (sparse.coo_matrix, SVC()),
            (sparse.csr_array, DecisionTreeClassifier()),
        ],
        ids=["csr matrix", "csc matrix", "coo matrix", "csr array"],
    )
    def test_sparse_rows_give_the_values_of_dense_ones(self, kind, model):
        found = self.value(kind(IRIS[0]), kind(IRIS[2]), model=model)
        np.testing.assert_allclose(found.values, self.value(IRIS[0], IRIS[2], model=model).values, atol=1e-6)

    def test_a_frame_and_an_array_go_together(self):
        found = self.value(pd.DataFrame(IRIS[0]), IRIS[2])
        assert (found.values == self.value(IRIS[0], IRIS[2]).values).all()

    def test_the_index_of_a_frame_is_kept(self):
        index = pd.Index([f"flower {z}" for z in range(30)], name="flower")
        found = self.value(pd.DataFrame(IRIS[0], index=index), pd.DataFrame(IRIS[2]))
        assert found.ids.equals(index)
        assert found.to_frame().index.equals(index)

    def test_the_index_of_a_series_is_kept_where_there_is_no_frame(self):
        found = self.value(IRIS[0], IRIS[2], y=pd.Series(IRIS[1], index=range(100, 130)))
        assert found.ids.tolist() == list(range(100, 130))
        assert self.value(IRIS[0], IRIS[2]).ids is None

    def test_labels_in_one_column_of_a_table(self):
        found = self.value(IRIS[0], IRIS[2], y=pd.DataFrame({"y": IRIS[1]}), y_test=IRIS[3][:, None])
        assert (found.values == self.value(IRIS[0], IRIS[2]).values).all()

    def test_columns_are_read_by_name_and_text_is_encoded(self):
        rng = np.random.default_rng(0)
        frame, test_frame = pd.DataFrame(IRIS[0], columns=self.columns), pd.DataFrame(IRIS[2], columns=self.columns)
        frame["colour"], test_frame["colour"] = (rng.choice(["red", "blue", "white"], n) for n in (30, 4))
        steps = [("scale", StandardScaler(), ["f2"]), ("code", OneHotEncoder(handle_unknown="ignore"), ["colour"])]
        model = make_pipeline(ColumnTransformer(steps), KNeighborsClassifier(3))
        found = self.value(frame, test_frame, model=Refit(model))
        expected = plain_loop(model, frame, IRIS[1], test_frame, IRIS[3], self.support.lists)
        np.testing.assert_allclose(found.values, expected.sum(axis=0), atol=1e-10)

    def test_numeric_columns_are_read_by_name_inside_any_model(self):
        frame, test_frame = pd.DataFrame(IRIS[0], columns=self.columns), pd.DataFrame(IRIS[2], columns=self.columns)
        inner = make_pipeline(ColumnTransformer([("scale", StandardScaler(), ["f2"])]), DecisionTreeClassifier())
        model = VotingClassifier([("only", inner)], voting="soft")
        found = self.value(frame, test_frame, model=model)
        expected = plain_loop(
            VotingClassifier([("only", inner.set_params(decisiontreeclassifier__random_state=0))], voting="soft"),
            frame,
            IRIS[1],
            test_frame,
            IRIS[3],
            self.support.lists,
        )
        np.testing.assert_allclose(found.values, expected.sum(axis=0), atol=1e-10)

    def test_missing_values_are_taken_where_an_imputer_comes_first(self):
        holes = IRIS[0].copy()
        holes[::7, 1] = np.nan
        model = make_pipeline(SimpleImputer(), StandardScaler(), KNeighborsClassifier(3))
        found = self.value(holes, IRIS[2], model=Refit(model))
        expected = plain_loop(model, holes, *IRIS[1:], self.support.lists)
        np.testing.assert_allclose(found.values, expected.sum(axis=0), atol=1e-10)

    def test_missing_values_are_taken_where_the_model_takes_them(self):
        holes = IRIS[0].copy()
        holes[::7, 1] = np.nan
        model = DecisionTreeClassifier(random_state=0)
        found = self.value(holes, IRIS[2], model=model)
        expected = plain_loop(model, holes, *IRIS[1:], self.support.lists)
        np.testing.assert_allclose(found.values, expected.sum(axis=0), atol=1e-10)


def test_warnings_of_fits_are_counted_in_a_note_and_not_shown(recwarn):
    model = LogisticRegression(max_iter=1)
    v = ls.value(*IRIS, model=model, support=Given(some_supports(IRIS, 4)))
    (note,) = [note for note in v.notes if "ConvergenceWarning" in note]
    assert int(note.split()[0]) > 0
    assert not recwarn.list


def test_the_result_says_what_was_done():
    v = ls.value(*IRIS, model=DecisionTreeClassifier(random_state=0), support=Nearest(4), score="margin")
    assert v.model == "DecisionTreeClassifier(random_state=0)"
    assert (v.score, v.method, v.support) == ("margin", "exact", "Nearest(n=4)")
    assert v.support_sizes.tolist() == [4] * 4
    assert v.n_tests.sum() == 16
    assert v.per_test is None
    assert (v.stderr == 0).all()
    assert (v.values[v.n_tests == 0] == 0).all()


def test_progress_is_told_of_every_training():
    seen = []
    v = ls.value(
        *IRIS,
        model="knn",
        support=Given(some_supports(IRIS, 4)),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (v.cost.trainings, v.cost.trainings)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_budget_below_the_cost_is_refused_and_one_at_the_cost_is_not():
    support = Given(some_supports(IRIS, 5))
    cost = ls.value(*IRIS, model="knn", support=support, method="exact").cost.trainings
    assert ls.value(*IRIS, model="knn", support=support, method="exact", budget=cost).cost.trainings == cost
    with pytest.raises(ls.TooLargeError, match=f"would train {cost} coalitions"):
        ls.value(*IRIS, model="knn", support=support, method="exact", budget=cost - 1)
