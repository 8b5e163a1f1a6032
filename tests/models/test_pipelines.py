"""Pipelines: steps before the last one are fitted once, on all training rows or on those of a fold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler, TargetEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.models import Refit
from localshapley.models.pipelines import peel
from localshapley.supports import Nearest

wine, diabetes = load_wine(), load_diabetes()
rng = np.random.default_rng(0)
ROWS, TESTS = np.split(rng.permutation(len(wine.target))[:56], [50])
X, Y, X_TEST, Y_TEST = wine.data[ROWS], wine.target[ROWS], wine.data[TESTS], wine.target[TESTS]
SETTINGS = {"support": Nearest(5), "method": "exact", "per_test": True}


def mixed(n, seed):
    """A table as people have it: numbers with gaps, categories, words, dates, texts."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "age": rng.integers(18, 90, size=n),
            "colour": pd.Categorical(rng.choice(["red", "blue", "white"], n)),
            "town": np.where(rng.random(n) < 0.1, None, rng.choice(["Ulm", "Bonn", "Jena"], n)),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 2000, n), unit="D"),
            "remark": rng.choice(["good row", "bad row", "a fine good day", "bad weather"], n),
        },
        index=[f"r{i}" for i in range(n)],
    )
    return table, (table["remark"].str.contains("good") ^ (rng.random(n) < 0.1)).to_numpy().astype(int)


def days(table):
    """Days since the first of 2020."""
    return (table - pd.Timestamp("2020-01-01")) / pd.Timedelta("1D")


PREPARE = ColumnTransformer(
    [
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["size", "age"]),
        ("words", OneHotEncoder(handle_unknown="ignore"), ["colour", "town"]),
        ("dates", make_pipeline(FunctionTransformer(days), StandardScaler()), ["since"]),
        ("texts", TfidfVectorizer(), "remark"),
    ]
)
NUMBERS = {
    "scaler": make_pipeline(StandardScaler(), SVC()),
    "three steps": make_pipeline(StandardScaler(), PCA(3), KNeighborsClassifier(3)),
    "function": make_pipeline(FunctionTransformer(np.log1p), LogisticRegression(max_iter=500)),
    "nested": make_pipeline(StandardScaler(), make_pipeline(PCA(4), DecisionTreeClassifier(random_state=0))),
    "passthrough": Pipeline([("none", "passthrough"), ("scale", StandardScaler()), ("model", GaussianNB())]),
    "frames": make_pipeline(StandardScaler().set_output(transform="pandas"), KNeighborsClassifier(3)),
    "one step": make_pipeline(KNeighborsClassifier(3)),
}
TABLES = {
    "dense": make_pipeline(clone(PREPARE).set_params(sparse_threshold=0.0), SVC()),
    "sparse": make_pipeline(clone(PREPARE).set_params(sparse_threshold=1.0), SVC(kernel="linear")),
    "logistic": make_pipeline(clone(PREPARE).set_params(sparse_threshold=1.0), LogisticRegression()),
    "categories": make_pipeline(
        ColumnTransformer([("keep", "passthrough", ["size", "age", "colour"])]).set_output(transform="pandas"),
        HistGradientBoostingClassifier(
            categorical_features="from_dtype", min_samples_leaf=1, max_iter=5, random_state=0
        ),
    ),
}


def by_hand(model, X, y, X_test, y_test, **settings):
    """The valuation of the last step on rows that were transformed beforehand."""
    before, last = peel(clone(model))
    if before is None:
        return ls.value(X, y, X_test, y_test, model=last, **settings)
    rows = before.fit_transform(X, y)
    return ls.value(rows, y, before.transform(X_test), y_test, model=last, **settings)


@pytest.mark.parametrize("case", NUMBERS)
def test_values_are_those_of_the_last_step_on_transformed_rows(case):
    model = NUMBERS[case]
    found = ls.value(X, Y, X_TEST, Y_TEST, model=model, **SETTINGS)
    expected = by_hand(model, X, Y, X_TEST, Y_TEST, **SETTINGS)
    assert (found.values == expected.values).all()
    assert np.abs(found.values).max() > 0.1
    assert found.cost.trainer == expected.cost.trainer
    assert found.support == expected.support
    assert found.model.startswith("Pipeline(")
    assert any("fitted once, on all training rows" in note for note in found.notes) == (case != "one step")


@pytest.mark.parametrize("case", TABLES)
@pytest.mark.slow
def test_tables_of_all_kinds_of_columns(case):
    (table, y), (test_table, y_test) = mixed(60, 0), mixed(8, 1)
    model = TABLES[case]
    found = ls.value(table, y, test_table, y_test, model=model, **{**SETTINGS, "support": ls.supports.Random(5)})
    before, last = peel(clone(model))
    rows, test_rows = before.fit_transform(table, y), before.transform(test_table)
    assert sparse.issparse(rows) == (case in ("sparse", "logistic"))
    expected = ls.value(rows, y, test_rows, y_test, model=last, **{**SETTINGS, "support": ls.supports.Random(5)})
    assert (found.values == expected.values).all()
    assert np.abs(found.values).max() > 0.05
    assert set(found.ids) == set(table.index)


class TestTexts:
    texts = np.array(["good red wine", "bad red wine", "good white", "bad white", "a good day", "a bad day"] * 4)
    y = np.array([1, 0] * 12)
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())

    @pytest.mark.parametrize("kind", [list, np.asarray, pd.Series], ids=["list", "array", "series"])
    def test_one_text_per_row(self, kind):
        texts, tests = kind(self.texts), kind(self.texts[:4])
        found = ls.value(texts, self.y, tests, self.y[:4], model=self.model, support=Nearest(5))
        words = TfidfVectorizer().fit(self.texts)
        rows = words.transform(self.texts), self.y, words.transform(self.texts[:4]), self.y[:4]
        expected = ls.value(*rows, model=LogisticRegression(), support=Nearest(5))
        assert (found.values == expected.values).all()
        assert np.abs(found.values).max() > 0.05
        assert any(note.startswith("TfidfVectorizer before LogisticRegression was fitted") for note in found.notes)

    def test_with_folds_and_refitted(self):
        found = ls.value(list(self.texts), self.y, cv=3, model=self.model, support=Nearest(4))
        assert np.isfinite(found.values).all()
        refitted = ls.value(list(self.texts), self.y, cv=3, model=Refit(self.model), support=Nearest(4))
        assert (refitted.values != found.values).any()

    def test_an_index_names_the_rows(self):
        texts = pd.Series(self.texts, index=[f"t{i}" for i in range(24)])
        found = ls.value(texts, pd.Series(self.y, index=texts.index), cv=3, model=self.model, support=Nearest(4))
        assert list(found.ids) == list(texts.index)

    def test_a_model_around_a_pipeline_keeps_its_settings(self):
        model = VotingClassifier([("only", self.model)], voting="soft")
        with pytest.raises(ls.InvalidArgumentError, match="X holds one text per row"):
            ls.value(list(self.texts), self.y, cv=3, model=model)
        bag = BaggingClassifier(self.model, n_estimators=3)
        with pytest.raises(ls.InvalidArgumentError, match="X holds one text per row"):
            ls.value(list(self.texts), self.y, cv=3, model=bag)

    def test_a_model_without_a_vectoriser_is_told_what_it_needs(self):
        with pytest.raises(ls.InvalidArgumentError, match="X holds one text per row; give a table of numbers"):
            ls.value(list(self.texts), self.y, cv=3, model=LogisticRegression())


def test_a_frame_in_a_pipeline_of_one_step_is_trained_as_by_the_step_alone():
    X, X_test, last = pd.DataFrame(wine.data[ROWS]), pd.DataFrame(wine.data[TESTS]), KNeighborsClassifier(3)
    found, expected = (ls.value(X, Y, X_test, Y_TEST, model=model, **SETTINGS) for model in (make_pipeline(last), last))
    assert (found.values == expected.values).all()
    assert found.cost.trainer == expected.cost.trainer == "KNeighborsClassifier (compiled)"
    assert found.notes == expected.notes


def test_targets_that_are_transformed():
    X, y = diabetes.data[:40], diabetes.target[:40]
    X_test, y_test = diabetes.data[40:46], diabetes.target[40:46]
    last = TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp)
    model = TransformedTargetRegressor(make_pipeline(StandardScaler(), Ridge()), func=np.log, inverse_func=np.exp)
    scaler = StandardScaler().fit(X)
    found = ls.value(X, y, X_test, y_test, model=model, **SETTINGS)
    expected = ls.value(scaler.transform(X), y, scaler.transform(X_test), y_test, model=last, **SETTINGS)
    assert (found.values == expected.values).all()
    assert "StandardScaler before" in found.notes[0]


class Whole(Pipeline):
    """A pipeline that does as it likes."""


def test_other_pipelines_stay_whole():
    model = Whole([("scale", StandardScaler()), ("model", SVC())])
    assert peel(model) == (None, model)
    found = ls.value(X, Y, X_TEST, Y_TEST, model=model, **SETTINGS)
    refitted = ls.value(X, Y, X_TEST, Y_TEST, model=Refit(NUMBERS["scaler"]), **SETTINGS)
    assert (found.values == refitted.values).all()
    assert not any("fitted once" in note for note in refitted.notes)
    once = ls.value(X, Y, X_TEST, Y_TEST, model=NUMBERS["scaler"], **SETTINGS)
    assert (once.values != refitted.values).any()


class TestFolds:
    folds = KFold(4, shuffle=True, random_state=0)

    @pytest.mark.parametrize("case", ["scaler", "three steps", "nested", "frames"])
    def test_steps_are_fitted_on_the_training_rows_of_each_fold(self, case):
        found = ls.value(X, Y, model=NUMBERS[case], cv=self.folds, **SETTINGS)
        expected = np.zeros(len(Y))
        for train, test in self.folds.split(X):
            expected[train] += by_hand(NUMBERS[case], X[train], Y[train], X[test], Y[test], **SETTINGS).values
        np.testing.assert_allclose(found.values, expected, atol=1e-12)
        assert any("fitted once, on the training rows of each fold" in note for note in found.notes)

    def test_tables(self):
        table, y = mixed(50, 3)
        found = ls.value(table, y, model=TABLES["dense"], cv=self.folds, **SETTINGS)
        expected = np.zeros(len(y))
        for train, test in self.folds.split(table):
            part = by_hand(TABLES["dense"], table.iloc[train], y[train], table.iloc[test], y[test], **SETTINGS)
            expected[train] += part.values
        np.testing.assert_allclose(found.values, expected, atol=1e-12)

    def test_values_in_closed_form(self):
        model, settings = NUMBERS["three steps"], {"cv": self.folds, "support": Nearest(6), "per_test": True}
        found = ls.value(X, Y, model=model, method="closed-form", **settings)
        assert found.cost.trainings == 0
        trained = ls.value(X, Y, model=model, method="subset-centric", **settings)
        assert trained.cost.trainings > 0
        np.testing.assert_allclose(found.per_test.toarray(), trained.per_test.toarray(), atol=1e-12)
        assert np.abs(found.values).max() > 0.1

    def test_sampled_in_processes_and_resumed_from_a_store(self, tmp_path):
        model = make_pipeline(StandardScaler(), GaussianNB())
        settings = {"model": model, "cv": self.folds, "support": Nearest(9), "budget": 600}
        first = ls.value(X, Y, **settings, store=tmp_path / "scores.db")
        again = ls.value(X, Y, **settings, store=tmp_path / "scores.db")
        assert (again.values == first.values).all()
        assert again.cost.trainings == 0
        moved = X.copy()
        moved[0] += 1  # the scaler of most folds sees it, so no score is what it was
        other = ls.value(moved, Y, **settings, store=tmp_path / "scores.db")
        assert (other.values == ls.value(moved, Y, **settings).values).all()
        assert (ls.value(X, Y, **settings, n_jobs=2).values == first.values).all()

    def test_owners_join_with_their_rows_outside_the_fold(self):
        owners = np.arange(len(Y)) % 3
        everyone = ls.supports.Everything()
        found = ls.value(X, Y, model=NUMBERS["scaler"], cv=self.folds, owners=owners, support=everyone, method="exact")
        total = 0.0
        for train, test in self.folds.split(X):
            scaler = StandardScaler().fit(X[train])
            model = SVC().fit(scaler.transform(X[train]), Y[train])
            total += (model.predict(scaler.transform(X[test])) == Y[test]).sum() - len(test) / 3
        assert found.values.sum() == pytest.approx(total)  # nothing learnt: each of three classes is equally likely


def test_a_score_in_a_store_is_not_mistaken_for_one_behind_another_scaler(tmp_path):
    settings = {"model": NUMBERS["scaler"], "support": Nearest(5), "method": "exact", "store": tmp_path / "scores.db"}
    ls.value(X, Y, X_TEST, Y_TEST, **settings)
    assert ls.value(X, Y, X_TEST, Y_TEST, **settings).cost.trainings == 0
    fewer = ls.value(X[1:], Y[1:], X_TEST, Y_TEST, **settings)  # all rows are scaled in another way
    assert fewer.cost.stored <= 4  # the empty coalition, and the like
    assert (fewer.values == by_hand(NUMBERS["scaler"], X[1:], Y[1:], X_TEST, Y_TEST, **SETTINGS).values).all()


class TestStepsThatReadLabels:
    @pytest.mark.parametrize(
        ("step", "name"),
        [
            (SelectKBest(k=5), "SelectKBest"),
            (SelectFromModel(LogisticRegression(max_iter=10)), "SelectFromModel"),
            (ColumnTransformer([("code", TargetEncoder(), [0, 1])]), "ColumnTransformer"),
        ],
        ids=["selection", "selection by a model", "target encoder"],
    )
    def test_they_are_warned_of(self, step, name):
        model = make_pipeline(step, KNeighborsClassifier(3))
        with pytest.warns(ls.LocalShapleyWarning, match=rf"{name} in the pipeline learns from labels.*models\.Refit"):
            found = ls.value(X, Y, X_TEST, Y_TEST, model=model, **SETTINGS)
        assert any(name in note and "learns from labels" in note for note in found.notes)
        ls.value(X, Y, X_TEST, Y_TEST, model=Refit(model), **SETTINGS)  # nothing to warn of

    def test_a_target_encoder_is_cross_fitted_as_a_pipeline_does_it(self):
        codes = np.column_stack([np.arange(50) % 4, np.arange(50) % 3]).astype(float)
        model = make_pipeline(TargetEncoder(random_state=0), KNeighborsClassifier(3))
        with pytest.warns(ls.LocalShapleyWarning, match="learns from labels"):
            found = ls.value(codes, Y, codes[:6], Y[:6], model=model, **SETTINGS)
        expected = by_hand(model, codes, Y, codes[:6], Y[:6], **SETTINGS)
        assert (found.values == expected.values).all()


class TestElsewhere:
    def test_plan_update_and_gap(self):
        data, model = (X, Y, X_TEST, Y_TEST), NUMBERS["scaler"]
        plan = ls.plan(*data, model=model, support=Nearest(5))
        assert plan.trainer == "SVC (compiled)"
        v = ls.value(*data, model=model, **SETTINGS)
        fewer = ls.update(v, X[1:], Y[1:], X_TEST, Y_TEST, model=model, support=Nearest(5), method="exact")
        expected = by_hand(model, X[1:], Y[1:], X_TEST, Y_TEST, **SETTINGS).values
        np.testing.assert_allclose(fewer.values, expected, atol=1e-12)
        gap = ls.locality_gap(*data, model=model, support=Nearest(5), n_tests=3, budget=2000)
        assert gap.gap > 0

    def test_curves_train_the_last_step_alone(self):
        model = NUMBERS["scaler"]
        v = ls.value(X, Y, X_TEST, Y_TEST, model=model, **SETTINGS)
        settings = {"shares": [0.2, 0.6], "n_seeds": 2}
        found = ls.tasks.curves(v, X, Y, X_TEST, Y_TEST, model=model, **settings)
        scaler = StandardScaler().fit(X)
        w = by_hand(model, X, Y, X_TEST, Y_TEST, **SETTINGS)
        rows = scaler.transform(X), Y, scaler.transform(X_TEST), Y_TEST
        pd.testing.assert_frame_equal(found.table, ls.tasks.curves(w, *rows, model=SVC(), **settings).table)

    def test_steps_that_cannot_be_fitted_are_named(self):
        model = make_pipeline(PCA(1000), SVC())
        with pytest.raises(ls.InvalidArgumentError, match=r"steps before the model.*PCA.*cannot be trained"):
            ls.value(X, Y, X_TEST, Y_TEST, model=model)
