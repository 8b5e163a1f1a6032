"""Boosting libraries, as models that are trained on a few rows: labels, threads, silence, and what they can learn."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import localshapley as ls
from localshapley.models.estimator_checks import final_step, has_random_state, on_one_line, prepared
from localshapley.runtime.boosting_libraries import library_of, note_on_splits, tamed
from naive import shapley_matrix

CLASSIFIERS = {"xgboost": "XGBClassifier", "lightgbm": "LGBMClassifier", "catboost": "CatBoostClassifier"}
REGRESSORS = {"xgboost": "XGBRegressor", "lightgbm": "LGBMRegressor", "catboost": "CatBoostRegressor"}
SMALL = {
    "xgboost": {"min_child_weight": 0},
    "lightgbm": {"min_child_samples": 1, "min_data_in_bin": 1},
    "catboost": {},
}


def boosted(library, kinds=CLASSIFIERS, **settings):
    """A small model of a library, if it is installed."""
    found = pytest.importorskip(library, reason=f"{library} is not installed")
    return getattr(found, kinds[library])(**({"n_estimators": 3} | settings))


def rows(n_rows=9, n_tests=3, seed=0):
    rng = np.random.default_rng(seed)
    X, X_test = rng.normal(size=(n_rows, 2)), rng.normal(size=(n_tests, 2))
    return X, np.arange(n_rows) % 3, X_test, np.arange(n_tests) % 3


@pytest.fixture(params=["xgboost", "lightgbm", "catboost"])
def library(request):
    return request.param


class TestClasses:
    def test_coalitions_that_lack_a_class(self, library):
        """Against the definition, with labels that are numbered anew for every coalition."""
        X, y, X_test, y_test = rows(5)
        model = boosted(library, **SMALL[library])
        names = np.array(["a", "b", "c"])
        v = ls.value(X, names[y], X_test, names[y_test], model=model, support=ls.supports.Everything(), per_test=True)
        quiet = final_step(tamed(clone(model), alone=True))

        def confidence(coalition, t):
            present = sorted(set(y[list(coalition)].tolist()))
            if len(present) < 2:
                return 1 / 3 if not present else float(y_test[t] == present[0])
            if y_test[t] not in present:
                return 0.0
            said = fitted(coalition, tuple(present)).predict_proba(X_test[t : t + 1])
            return float(said[0, present.index(y_test[t])])

        @cache
        def fitted(coalition, present):
            codes = np.searchsorted(present, y[list(coalition)])
            return clone(quiet).set_params(**SEEDS[library]).fit(X[list(coalition)], codes)

        expected = shapley_matrix([range(5)] * 3, confidence, 5)
        np.testing.assert_allclose(v.per_test.toarray(), expected, atol=1e-6)
        assert not [note for note in v.notes if "too small" in note]

    @pytest.mark.parametrize(("library", "objective"), [("xgboost", "multi:softprob"), ("lightgbm", "multiclass")])
    @pytest.mark.parametrize("settings", [{}, {"num_class": 3}], ids=str)
    def test_an_objective_for_several_classes(self, library, objective, settings):
        """Coalitions of two classes are trained, too: as with the objective left open."""
        X, y, _, _ = rows(8)
        given = prepared(boosted(library, objective=objective, **SMALL[library], **settings), 0, alone=True)
        left_open = prepared(boosted(library, **SMALL[library]), 0, alone=True)
        for inside in (np.arange(8), np.flatnonzero(y != 1)):
            expected, found = (clone(m).fit(X[inside], y[inside]).predict_proba(X) for m in (left_open, given))
            np.testing.assert_array_equal(found, expected)

    def test_predicted_labels(self, library):
        X, y, X_test, y_test = rows(8)
        model = boosted(library, **SMALL[library])
        v = ls.value(X, y, X_test, y_test, model=model, score="accuracy", support=ls.supports.Nearest(4))
        assert np.isfinite(v.values).all()
        assert v.values.any()

    def test_curves(self):
        X, y, X_test, y_test = rows(12)
        model = GradientBoostingClassifier(n_estimators=1)
        v = ls.value(X, y, X_test, y_test, model=model, support=ls.supports.Nearest(2))
        names = np.array(["a", "b", "c"])
        found = ls.tasks.curves(
            v, X, names[y], X_test, names[y_test], model=boosted("xgboost"), shares=[0.5], n_seeds=1, score="accuracy"
        )
        assert found.table["mean"].between(0, 1).all()


SEEDS = {"xgboost": {"random_state": 0}, "lightgbm": {"random_state": 0}, "catboost": {"random_seed": 0}}


class TestSettings:
    def test_silent_on_one_thread_and_seeded(self, library, capfd, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        X, y, X_test, y_test = rows()
        model = boosted(library)
        v = ls.value(X, y, X_test, y_test, model=model, support=ls.supports.Nearest(5))
        assert capfd.readouterr() == ("", "")
        assert not list(tmp_path.iterdir())  # CatBoost would leave a folder
        assert v.cost.trainings > 0
        alone = final_step(prepared(model, 7, alone=True)).get_params()
        assert alone["thread_count" if library == "catboost" else "n_jobs"] == 1
        assert alone["random_seed" if library == "catboost" else "random_state"] == 7
        assert has_random_state(model)
        assert model.get_params() == boosted(library).get_params()  # the user's own is left as it was

    def test_what_was_asked_for_is_kept(self, library):
        threads = "thread_count" if library == "catboost" else "n_jobs"
        seed = {"random_state": 3}
        model = boosted(library, **{threads: 2, "verbose" if library == "catboost" else "verbosity": 1}, **seed)
        kept = final_step(prepared(make_pipeline(StandardScaler(), model), 0, alone=True)).get_params()
        assert {name: kept[name] for name in model.get_params()} == model.get_params()

    def test_all_cores_are_one_thread_for_a_few_rows(self, library):
        threads = "thread_count" if library == "catboost" else "n_jobs"
        model = boosted(library, **{threads: -1})
        assert final_step(prepared(model, 0, alone=True)).get_params()[threads] == 1
        assert final_step(prepared(model, 0)).get_params().get(threads, -1) == -1  # for all rows

    def test_rows_that_teach_nothing(self, library):
        """Equal rows: CatBoost refuses them, which is no failure of the run."""
        X, y, X_test, y_test = rows()
        X[:] = np.arange(len(X))[:, None] // 8
        v = ls.value(X, y, X_test, y_test, model=boosted(library), support=ls.supports.Nearest(4))
        assert np.isfinite(v.values).all()
        assert any("constant" in note for note in v.notes) == (library == "catboost")

    def test_regressors(self, library):
        X, y, X_test, y_test = rows(10)
        model = boosted(library, REGRESSORS, **SMALL[library])
        v = ls.value(X, y * 1.5, X_test, y_test * 1.5, model=model, support=ls.supports.Nearest(5))
        assert v.values.any()

    def test_xgboost_is_named_by_what_was_set(self):
        model = make_pipeline(StandardScaler(), boosted("xgboost", reg_lambda=2, n_jobs=1))
        named = on_one_line(model)
        assert named.startswith("Pipeline(steps=[('standardscaler', StandardScaler()), ('xgbclassifier', XGB")
        assert "n_estimators=3, n_jobs=1, reg_lambda=2" in named
        assert "None" not in named
        assert "nan" not in named

    def test_other_models_are_of_no_library(self):
        assert library_of(GradientBoostingClassifier()) == ""


class TestSplits:
    def test_told_once_with_the_remedy(self):
        X, y, X_test, y_test = rows(30)
        few = HistGradientBoostingClassifier(max_iter=2)
        v = ls.value(X, y, X_test, y_test, model=few, support=ls.supports.Nearest(5))
        told = [note for note in v.notes if "min_" in note]
        assert len(told) == 1
        assert "min_samples_leaf=20" in told[0]
        assert "min_samples_leaf=1" in told[0]
        fine = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2)
        assert not ls.value(X, y, X_test, y_test, model=fine, support=ls.supports.Nearest(5)).notes

    def test_what_is_told_is_true(self):
        """Under 40 rows, trees of leaves of 20 are stumps of one leaf; with 40 they can split."""
        X = np.arange(40.0)[:, None]
        for n in (39, 40):
            fitted = HistGradientBoostingRegressor(max_iter=1).fit(X[:n], X[:n, 0])
            assert (len(np.unique(fitted.predict(X))) == 1) == bool(note_on_splits(fitted, np.array([n])))

    def test_lightgbm(self):
        model = boosted("lightgbm")
        assert "min_data_in_bin=1" in note_on_splits(model, np.full(3, 20))
        assert note_on_splits(model, np.full(3, 40)) is None
        assert "min_data_in_leaf" in note_on_splits(boosted("lightgbm", min_data_in_leaf=30), np.full(3, 50))

    def test_models_without_such_a_setting(self):
        assert note_on_splits(GradientBoostingClassifier(), np.array([2, 5, 20])) is None
        assert note_on_splits(GradientBoostingClassifier(min_samples_leaf=0.2), np.array([20])) is None
