"""Trees of fixed structure against the definition: enumeration of all coalitions of all rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

import localshapley as ls
from localshapley.models import tree_leaves
from localshapley.models.estimator_checks import seeded
from localshapley.models.fixed_trees import Fixed
from naive_fixed import bags_of, fixed_values, refilled
from playing import pose

CLASSIFIERS = [
    DecisionTreeClassifier(random_state=0),
    DecisionTreeClassifier(max_depth=1, random_state=1),
    DecisionTreeClassifier(max_depth=2, min_samples_leaf=3),
    ExtraTreeClassifier(random_state=0),
    RandomForestClassifier(4, random_state=0),
    RandomForestClassifier(3, max_depth=1, random_state=2),
    RandomForestClassifier(3, max_samples=4, random_state=3),
    ExtraTreesClassifier(3, max_depth=2, random_state=0),
    ExtraTreesClassifier(4, bootstrap=True, max_depth=2, random_state=1),
]
REGRESSORS = [
    DecisionTreeRegressor(max_depth=1),
    DecisionTreeRegressor(min_samples_leaf=3),
    ExtraTreeRegressor(max_depth=2, random_state=0),
    RandomForestRegressor(3, min_samples_leaf=2, random_state=0),
    RandomForestRegressor(3, max_depth=1, random_state=0),
    ExtraTreesRegressor(3, max_depth=1, random_state=0),
    ExtraTreesRegressor(3, bootstrap=True, max_depth=2, random_state=0),
]


def rows(seed, n_rows=8, n_tests=5, *, amounts=False, n_classes=3):
    """A few rows with labels that are nearly noise, so that leaves are mixed."""
    rng = np.random.default_rng(seed)
    X, X_test = rng.normal(size=(n_rows, 2)), rng.normal(size=(n_tests, 2))
    if amounts:
        return X, 10 + X[:, 0] + rng.normal(size=n_rows), X_test, 10 + X_test[:, 0] + rng.normal(size=n_tests)
    y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes)])
    return X, y, X_test, rng.integers(n_classes, size=n_tests)


def out_of_bag(forest, n_rows):
    """The trees that have not seen each row."""
    bags = bags_of(forest, n_rows)
    return [[b for b, bag in enumerate(bags) if z not in bag] for z in range(n_rows)]


class TestValuesByTheDefinition:
    """All rows play for every test row: leaf mates are not assumed to be the only ones that matter."""

    @pytest.mark.parametrize("seed", [0, 1])
    @pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=str)
    def test_test_rows(self, model, seed):
        X, y, X_test, y_test = rows(seed, amounts=model in REGRESSORS)
        v = ls.value(X, y, X_test, y_test, model=Fixed(model), per_test=True)
        score = refilled(seeded(model, 0).fit(X, y), X, y, (X_test, y_test))
        expected = fixed_values(score, range(8), 5)
        np.testing.assert_allclose(v.per_test.toarray(), expected, atol=1e-10)
        np.testing.assert_allclose(v.values, expected.sum(axis=0), atol=1e-10)
        gain = [score(tuple(range(8)), t) - score((), t) for t in range(5)]
        np.testing.assert_allclose(v.per_test.sum(axis=1), gain, atol=1e-10)
        assert v.cost.trainings == 0
        assert not v.stderr.any()

    @pytest.mark.parametrize("seed", [0, 1])
    @pytest.mark.parametrize("model", [m for m in (*CLASSIFIERS, *REGRESSORS) if getattr(m, "bootstrap", False)])
    def test_out_of_bag(self, model, seed):
        X, y, _, _ = rows(seed, amounts=model in REGRESSORS)
        forest = seeded(model, 0).fit(X, y)
        judges = out_of_bag(forest, 8)
        tests = [z for z in range(8) if judges[z]]
        v = ls.value(X, y, model=Fixed(model), cv="oob", per_test=True)
        others = [np.delete(y, z).mean() for z in tests] if model in REGRESSORS else None  # a row is not told its label
        score = refilled(forest, X, y, (X[tests], y[tests]), [judges[z] for z in tests], middle=others)
        expected = fixed_values(score, range(8), len(tests))
        np.testing.assert_allclose(v.per_test.toarray(), expected, atol=1e-10)
        np.testing.assert_allclose(v.values, expected.sum(axis=0), atol=1e-10)
        full = [score(tuple(range(8)), t) for t in range(len(tests))]
        np.testing.assert_allclose(v.oob_scores[tests], full, atol=1e-10)
        assert not v.per_test.toarray()[np.arange(len(tests)), tests].any()  # no row tests itself

    @pytest.mark.parametrize("model", [CLASSIFIERS[0], CLASSIFIERS[4], REGRESSORS[1], REGRESSORS[3]], ids=str)
    def test_folds(self, model):
        X, y, _, _ = rows(3, n_rows=9, amounts=model in REGRESSORS)
        folds = [(np.array([0, 1, 2, 3, 4, 5]), np.array([6, 8])), (np.array([1, 2, 4, 6, 7, 8]), np.array([0, 3, 5]))]
        v = ls.value(X, y, model=Fixed(model), cv=folds, per_test=True)
        expected = {}
        for train, test in folds:
            forest = seeded(model, 0).fit(X[train], y[train])
            score = refilled(
                forest, X[train], y[train], (X[test], y[test])
            )  # nothing learnt: the mean of the rows outside
            for t, values in zip(test, fixed_values(score, range(len(train)), len(test)), strict=True):
                expected[int(t)] = np.zeros(9)
                expected[int(t)][train] = values
        np.testing.assert_allclose(v.per_test.toarray(), [expected[t] for t in sorted(expected)], atol=1e-10)

    @pytest.mark.parametrize("empty", [0.0, -3.5])
    @pytest.mark.parametrize("model", [CLASSIFIERS[4], REGRESSORS[3]], ids=str)
    def test_a_score_of_ones_own_for_the_empty_coalition(self, model, empty):
        X, y, X_test, y_test = rows(5, amounts=model in REGRESSORS)
        v = ls.value(X, y, X_test, y_test, model=Fixed(model), empty=empty)
        score = refilled(seeded(model, 0).fit(X, y), X, y, (X_test, y_test), nothing=empty)
        np.testing.assert_allclose(v.values, fixed_values(score, range(8), 5).sum(axis=0), atol=1e-10)

    @pytest.mark.parametrize("empty", [None, 0.25])
    def test_a_label_that_only_test_rows_have(self, empty):
        X, y, X_test, y_test = rows(6)
        y_test[:2] = 7
        forest = RandomForestClassifier(3, max_depth=1, random_state=0)
        with pytest.warns(ls.LocalShapleyWarning, match="7"):
            v = ls.value(X, y, X_test, y_test, model=Fixed(forest), empty=empty)
        score = refilled(forest.fit(X, y), X, y, (X_test, y_test), nothing=empty)
        np.testing.assert_allclose(v.values, fixed_values(score, range(8), 5).sum(axis=0), atol=1e-10)


def many(n_rows=400, n_tests=150, *, amounts=False, seed=0):
    return rows(seed, n_rows, n_tests, amounts=amounts)


class TestLargeLeaves:
    @pytest.mark.parametrize("cv", [None, "oob", 5])
    @pytest.mark.parametrize("amounts", [False, True])
    def test_values_add_up_to_what_all_rows_gain(self, cv, amounts):
        X, y, X_test, y_test = many(amounts=amounts)
        forest = (RandomForestRegressor if amounts else RandomForestClassifier)(7, max_depth=2, random_state=0)
        tests = () if cv else (X_test, y_test)
        problem = pose(X, y, *tests, model=Fixed(forest), cv=cv)
        v = ls.value(X, y, *tests, model=Fixed(forest), cv=cv, per_test=True)
        everyone = np.arange(problem.graph.n_tests, dtype=np.int32)
        both = problem.trainer.evaluate(ls.models.Coalitions.from_lists([range(len(y)), []], [everyone, everyone]))
        full, nothing = both.reshape(2, -1)
        np.testing.assert_allclose(v.per_test.sum(axis=1), full - nothing, atol=1e-10)
        np.testing.assert_allclose(v.per_test.sum(axis=0), v.values, atol=1e-10)
        np.testing.assert_allclose(problem.task.score_nothing_learnt(everyone), nothing, atol=1e-12)

    @pytest.mark.parametrize("amounts", [False, True])
    def test_closed_form_gives_what_refilled_trees_give(self, amounts):
        X, y, X_test, y_test = rows(4, n_rows=36, n_tests=12, amounts=amounts)
        kind = RandomForestRegressor if amounts else RandomForestClassifier
        model = Fixed(kind(2, max_leaf_nodes=8, max_features=None, random_state=0))
        v = ls.value(X, y, X_test, y_test, model=model, per_test=True)
        assert 8 < v.support_sizes.max() <= 18
        trained = ls.value(X, y, X_test, y_test, model=model, method="subset-centric", per_test=True)
        assert trained.cost.trainings > 1000
        assert trained.cost.trainer == f"{kind.__name__} (fixed)"
        np.testing.assert_allclose(v.per_test.toarray(), trained.per_test.toarray(), atol=1e-10)

    def test_large_numbers_far_from_zero_lose_little(self):
        X, y, X_test, y_test = (np.round(16 * part) for part in many(amounts=True))
        forest = ExtraTreesRegressor(3, max_depth=3, max_features=1, random_state=0)  # splits at random
        near, far = (ls.value(X, y + c, X_test, y_test + c, model=Fixed(forest)).values for c in (0.0, 2.0**20))
        np.testing.assert_allclose(near, far, rtol=1e-6, atol=1e-6)

    def test_rows_that_are_alike_are_worth_the_same_and_strangers_nothing(self):
        X = np.array([[0.0], [0.0], [0.0], [5.0]])
        v = ls.value(X, [0, 1, 1, 0], [[0.1]], [1], model=Fixed(DecisionTreeClassifier()))
        assert v.values[1] == v.values[2] > 0 > v.values[0]
        assert v.values[3] == 0
        assert v.n_tests.tolist() == [1, 1, 1, 0]
        assert v.values.sum() == pytest.approx(2 / 3 - 1 / 2)


class TestTheDoor:
    """What `value` and its relatives do with fixed trees."""

    def test_the_result_tells_what_was_done(self):
        X, y, X_test, y_test = many()
        v = ls.value(X, y, X_test, y_test, model=Fixed(RandomForestClassifier(5)))
        assert v.method == "exact"
        assert v.stopped == "5 trees in closed form"
        assert v.model == "Fixed(RandomForestClassifier(n_estimators=5))"
        assert v.support == "leaf mates in 5 trees"
        assert v.chosen.startswith("closed form")
        assert v.is_random
        assert v.skill.score == "accuracy"
        assert v.levels is None  # nobody has listed the games
        assert v.oob_scores is None
        assert v.cost.draws == v.cost.distinct == 0

    @pytest.mark.parametrize("kind", ["frame", "sparse", "text labels", "pipeline", "lists"])
    def test_kinds_of_rows_and_models(self, kind):
        X, y, X_test, y_test = (np.array(part) for part in many(60, 20))
        forest = RandomForestClassifier(4, max_depth=3, random_state=0)
        expected = ls.value(X, y, X_test, y_test, model=Fixed(forest)).values
        oob = ls.value(X, y, model=Fixed(forest), cv="oob")
        model = forest
        if kind == "frame":
            X, X_test = pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame(X_test, columns=["a", "b"])
        elif kind == "sparse":
            X, X_test = sparse.csr_matrix(X), sparse.csr_matrix(X_test)
        elif kind == "text labels":
            y, y_test = np.array(["p", "q", "r"])[y], np.array(["p", "q", "r"])[y_test]
        elif kind == "pipeline":
            model = make_pipeline(StandardScaler(), "passthrough", forest)
        else:
            X, X_test, y = X.tolist(), X_test.tolist(), y.tolist()
        v = ls.value(X, y, X_test, y_test, model=Fixed(model))
        np.testing.assert_allclose(v.values, expected, atol=1e-9)
        found = ls.value(X, y, model=Fixed(model), cv="oob")
        np.testing.assert_allclose(found.values, oob.values, atol=1e-9)
        np.testing.assert_allclose(found.oob_scores, oob.oob_scores, atol=1e-9)
        assert found.skill.model == oob.skill.model

    def test_missing_values_go_where_the_trees_send_them(self):
        X, y, X_test, y_test = many(60, 20)
        X[::5, 0] = np.nan
        v = ls.value(X, y, X_test, y_test, model=Fixed(RandomForestClassifier(4, random_state=0)))
        assert np.isfinite(v.values).all()
        assert v.values.any()

    @pytest.mark.parametrize("n_jobs", [1, 2, -1])
    def test_threads_do_not_change_a_bit(self, n_jobs):
        X, y, _, _ = many()
        model = Fixed(RandomForestClassifier(9, random_state=0))
        one = ls.value(X, y, model=model, cv="oob", per_test=True)
        other = ls.value(X, y, model=model, cv="oob", n_jobs=n_jobs)
        assert (one.values == other.values).all()
        assert (one.oob_scores == other.oob_scores).all()

    def test_the_seed_decides_open_random_states(self):
        X, y, _, _ = many(80)
        values = [ls.value(X, y, model=Fixed(RandomForestClassifier(5)), cv="oob", seed=s).values for s in (0, 0, 1)]
        assert (values[0] == values[1]).all()
        assert (values[0] != values[2]).any()

    def test_out_of_bag_scores_are_probabilities_of_ones_own_label(self):
        X, y, _, _ = many(300)
        forest = RandomForestClassifier(40, min_samples_leaf=5, random_state=0, oob_score=True).fit(X, y)
        v = ls.value(X, y, model=Fixed(forest), cv="oob")
        theirs = forest.oob_decision_function_[np.arange(300), y]  # rows count as often as they were drawn
        assert np.corrcoef(v.oob_scores, theirs)[0, 1] > 0.97
        assert v.skill.model == pytest.approx(forest.oob_score_, abs=1e-12)

    def test_skill_of_a_regressor_out_of_bag(self):
        X, y, _, _ = many(300, amounts=True)
        forest = RandomForestRegressor(40, random_state=0, oob_score=True).fit(X, y)
        v = ls.value(X, y, model=Fixed(forest), cv="oob")
        assert v.skill.model == pytest.approx(forest.oob_score_, abs=1e-12)

    def test_rows_in_every_bag_are_no_test_rows(self):
        X, y, _, _ = many(60)
        forest = RandomForestClassifier(2, random_state=0).fit(X, y)
        unjudged = np.array([not judges for judges in out_of_bag(forest, 60)])
        assert 0 < unjudged.sum() < 60
        v = ls.value(X, y, model=Fixed(forest), cv="oob")
        assert len(v.support_sizes) == 60 - unjudged.sum()
        assert v.notes == [
            f"{unjudged.sum()} of 60 rows are in the bag of every tree and are no test rows; more trees "
            "(n_estimators) would judge them."
        ]
        assert np.isfinite(v.values).all()
        assert (v.oob_scores[unjudged] == 1 / 3).all()

    def test_large_leaves_are_not_counted_one_by_one(self, monkeypatch):
        X, y, _, _ = many(100)
        model = Fixed(RandomForestClassifier(3, max_depth=2, random_state=0))
        exact = ls.value(X, y, model=model, cv="oob")
        monkeypatch.setattr(tree_leaves, "MOST_COUNTED", 10)
        bound = ls.value(X, y, model=model, cv="oob")
        assert (bound.values == exact.values).all()
        assert (bound.support_sizes >= exact.support_sizes).all()
        assert (bound.n_tests >= exact.n_tests).all()
        assert ((bound.n_tests == 0) == (exact.n_tests == 0)).all()
        assert any("upper bounds" in note for note in bound.notes)
        assert not any("upper bounds" in note for note in exact.notes)
        kept = ls.value(X, y, model=model, cv="oob", per_test=True)
        assert (np.diff(kept.per_test.indptr) == exact.support_sizes).all()

    def test_save_and_load(self, tmp_path):
        X, y, _, _ = many(50)
        v = ls.value(X, y, model=Fixed(RandomForestClassifier(9)), cv="oob", per_test=True)
        v.save(tmp_path / "v.parquet")
        back = ls.load(tmp_path / "v.parquet")
        assert (back.oob_scores == v.oob_scores).all()
        assert (back.per_test != v.per_test).nnz == 0
        assert repr(back) == repr(v)

    def test_plan(self):
        X, y, _, _ = many(50)
        plan = ls.plan(X, y, model=Fixed(RandomForestClassifier(9)), cv="oob")
        assert (plan.trainings, plan.classes, plan.samples) == (0, None, False)
        assert plan.levels.lsmr > 0
        assert plan.support == "leaf mates in 9 trees"

    def test_names(self):
        X, y, _, _ = many(50)
        named = ls.value(X, y, model="fixed-forest", cv="oob")
        assert named.model == "Fixed(RandomForestClassifier(random_state=0))"
        amounts = ls.value(X, X[:, 0], model="fixed-forest", cv="oob")
        assert amounts.model == "Fixed(RandomForestRegressor(random_state=0))"

    def test_other_methods_train_by_refilling(self):
        X, y, X_test, y_test = many(30, 10)
        data = (X, y, X_test, y_test)
        model = Fixed(DecisionTreeClassifier(max_depth=2, random_state=0))
        exact = ls.value(*data, model=model)
        sampled = ls.value(*data, model=model, method="sample", tol=0.02)
        off = (sampled.values - exact.values) / np.maximum(sampled.stderr, 1e-9)
        assert sampled.cost.trainings > 0
        assert np.abs(off).max() < 5
        everyone = ls.value(*data, model=model, method="global-mc", budget=6000)
        assert np.corrcoef(everyone.values, exact.values)[0, 1] > 0.9
        gap = ls.locality_gap(*data, model=model, n_tests=5, budget=4000)
        assert gap.gap < 1e-12
        assert gap.enough

    def test_every_row_may_be_asked_to_play(self):
        X, y, _, _ = many(40)
        model = Fixed(RandomForestClassifier(5, random_state=0))
        for cv in ("oob", 4):
            few, all_ = (ls.value(X, y, model=model, cv=cv, support=s) for s in (None, ls.supports.Everything()))
            np.testing.assert_allclose(few.values, all_.values, atol=1e-12)
            assert (all_.support_sizes >= few.support_sizes).all()
            lost = ls.value(X, y, model=model, cv=cv, method="loo")
            assert lost.values.any()

    def test_owners_bring_their_rows(self):
        X, y, X_test, y_test = rows(2, n_rows=9)
        owners = np.array(list("aabbbcdda"))
        forest = RandomForestClassifier(3, max_depth=1, random_state=0)
        v = ls.value(X, y, X_test, y_test, model=Fixed(forest), owners=owners)
        score = refilled(forest.fit(X, y), X, y, (X_test, y_test))
        names = ["a", "b", "c", "d"]

        def of_owners(coalition, t):
            return score(tuple(z for z in range(9) if owners[z] in [names[i] for i in coalition]), t)

        np.testing.assert_allclose(v.values, fixed_values(of_owners, range(4), 5).sum(axis=0), atol=1e-10)
        assert v.unit == "owner"
        assert v.cost.trainings > 0

    def test_owners_out_of_bag(self):
        X, y, _, _ = rows(2, n_rows=9)
        owners = np.array(list("aabbbcdda"))
        forest = RandomForestClassifier(4, max_depth=1, random_state=0).fit(X, y)
        v = ls.value(X, y, model=Fixed(forest), owners=owners, cv="oob")
        judges = out_of_bag(forest, 9)
        tests = [z for z in range(9) if judges[z]]
        score = refilled(forest, X, y, (X[tests], y[tests]), [judges[z] for z in tests])

        def of_owners(coalition, t):
            return score(tuple(z for z in range(9) if owners[z] in ["abcd"[i] for i in coalition]), t)

        np.testing.assert_allclose(v.values, fixed_values(of_owners, range(4), len(tests)).sum(axis=0), atol=1e-10)
        assert v.oob_scores is None

    def test_a_store_tells_equal_rows_in_different_bags_apart(self, tmp_path):
        X, y, _, _ = rows(1, n_rows=8)
        X[1], y[1] = X[0], y[0]
        model = Fixed(RandomForestClassifier(3, max_depth=1, random_state=0))
        expected = ls.value(X, y, model=model, cv="oob")
        with ls.Store(tmp_path / "run.db", fastest=0) as store:
            settings = {"model": model, "cv": "oob", "method": "subset-centric", "store": store}
            first = ls.value(X, y, **settings)
            again = ls.value(X, y, **settings)
            other = ls.value(X, np.where(np.arange(8) == 7, 1 - y % 2, y), **settings)
        np.testing.assert_allclose(first.values, expected.values, atol=1e-10)
        assert (again.values == first.values).all()
        assert (first.cost.stored, other.cost.stored) == (0, 0)
        assert again.cost.stored > 0
        closed = ls.value(X, y, model=model, cv="oob", store=tmp_path / "run.db")
        assert closed.notes[-1] == "the store was not used: these values need no training."

    def test_progress_counts_trees(self):
        X, y, _, _ = many(50)
        seen = []
        ls.value(X, y, model=Fixed(RandomForestClassifier(6)), cv=3, progress=lambda *done: seen.append(done))
        assert seen == [(i + 1, 18) for i in range(18)]

    def test_a_fitted_model_stays_as_it_is(self):
        X, y, _, _ = many(50)
        forest = RandomForestClassifier(3, random_state=0).fit(X[:20], y[:20])
        before = forest.predict_proba(X)
        ls.value(X, y, model=Fixed(forest), cv="oob")
        assert (forest.predict_proba(X) == before).all()

    def test_notes_on_leaves_that_scikit_learn_fills_otherwise(self):
        X, y, X_test, y_test = many(50, 10)
        weighted = RandomForestClassifier(3, class_weight="balanced", random_state=0)
        assert any("class_weight" in n for n in ls.value(X, y, X_test, y_test, model=Fixed(weighted)).notes)
        absolute = DecisionTreeRegressor(criterion="absolute_error")
        notes = ls.value(X, X[:, 0], X_test, X_test[:, 0], model=Fixed(absolute)).notes
        assert any("refilled with means" in note for note in notes)
        assert not any("tree by tree" in note for note in notes)
        bound = DecisionTreeRegressor(monotonic_cst=[1, 0])
        notes = ls.value(X, X[:, 0], X_test, X_test[:, 0], model=Fixed(bound)).notes
        assert any("monotonic_cst" in note for note in notes)


class TestRefusals:
    @pytest.mark.parametrize(
        "model", [LogisticRegression(), AdaBoostClassifier(), make_pipeline(StandardScaler(), "passthrough")]
    )
    def test_other_models(self, model):
        with pytest.raises(ls.InvalidArgumentError, match=r"models\.Fixed needs a decision tree"):
            Fixed(model)

    @pytest.mark.parametrize("score", ["accuracy", "log_loss", "margin", lambda truth, predicted: 1.0])
    def test_scores_without_a_closed_form(self, score):
        X, y, X_test, y_test = rows(0)
        with pytest.raises(ls.InvalidArgumentError, match=r"no closed form.*score='confidence', or give the model"):
            ls.value(X, y, X_test, y_test, model=Fixed(DecisionTreeClassifier()), score=score)

    def test_scores_of_numbers_without_a_closed_form(self):
        X, y, X_test, y_test = rows(0, amounts=True)
        with pytest.raises(ls.InvalidArgumentError, match=r"absolute_error.*use score='squared_error'"):
            ls.value(X, y, X_test, y_test, model=Fixed(DecisionTreeRegressor()), score="absolute_error")

    @pytest.mark.parametrize("model", [DecisionTreeClassifier(), ExtraTreesClassifier(5)], ids=str)
    def test_out_of_bag_without_bags(self, model):
        X, y, _, _ = rows(0)
        with pytest.raises(
            ls.InvalidArgumentError, match=r"cv='oob' needs trees that each leave rows out.*bootstrap=Tr"
        ):
            ls.value(X, y, model=Fixed(model), cv="oob")

    @pytest.mark.parametrize("model", [RandomForestClassifier(5), "knn"])
    def test_out_of_bag_without_fixed_trees(self, model):
        X, y, _, _ = rows(0)
        with pytest.raises(ls.InvalidArgumentError, match="cv='oob' needs trees that are grown once"):
            ls.value(X, y, model=model, cv="oob")

    def test_nobody_out_of_bag(self):
        X, y, _, _ = rows(0, n_rows=4)
        forest = RandomForestClassifier(1, max_samples=4, random_state=next(_full_bags(X, y)))
        with pytest.raises(ls.InvalidArgumentError, match="not in the bag of every tree, and there are none"):
            ls.value(X, y, model=Fixed(forest), cv="oob")

    @pytest.mark.parametrize("support", [ls.supports.Nearest(3), ls.supports.Everything(max_size=3)], ids=str)
    def test_supports(self, support):
        X, y, X_test, y_test = rows(0)
        with pytest.raises(ls.InvalidArgumentError, match="leaf mates of a test row matter"):
            ls.value(X, y, X_test, y_test, model=Fixed(DecisionTreeClassifier()), support=support)

    def test_update(self):
        X, y, X_test, y_test = rows(0)
        model = Fixed(DecisionTreeClassifier())
        v = ls.value(X, y, X_test, y_test, model=model, per_test=True)
        with pytest.raises(ls.InvalidArgumentError, match="changed rows grow other trees"):
            ls.update(v, X, y, X_test, y_test, model=model)

    def test_what_does_not_fit_in_memory(self, monkeypatch):
        X, y, _, _ = many(60)
        monkeypatch.setattr("localshapley.runtime.memory.memory_size", lambda: 1000)
        monkeypatch.setattr("localshapley.runtime.memory.LITTLE", 0)
        model = Fixed(RandomForestClassifier(3, random_state=0))
        assert ls.value(X, y, model=model, cv="oob").values.any()
        with pytest.raises(ls.TooLargeError, match=r"per_test=True .* pairs of rows would take"):
            ls.value(X, y, model=model, cv="oob", per_test=True)
        with pytest.raises(ls.TooLargeError, match="leaf mates would take"):
            ls.value(X, y, model=model, cv="oob", method="sample")


def _full_bags(X, y):
    """Seeds of forests of one tree that has seen every row."""
    for seed in range(1000):
        if not any(out_of_bag(RandomForestClassifier(1, random_state=seed).fit(X, y), len(y))):
            yield seed
