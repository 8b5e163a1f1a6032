"""What suspects amount to: by class, how far to trust them, and what mending them brings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import localshapley as ls
from localshapley import audit
from localshapley.audit.label_noise_models import NoiseScores
from localshapley.audit.noise_rates import share_by_chance
from localshapley.audit.verdict import make_verdict
from localshapley.errors import LocalShapleyWarning
from localshapley.valuation import Skill
from made import changed

GOOD = Skill("accuracy", model=0.9, guess=0.6, stderr=0.02, n_tests=100, constant="a")
NEAR = replace(GOOD, model=0.63)


def verdict_of(v, y, rows, *, wrong=None, differ=None, regression=False):
    """What a list of some rows amounts to, by their values or, with `differ`, by label-noise models."""
    rows = np.array(rows)
    is_wrong = np.isin(np.arange(len(y)), rows if wrong is None else wrong) & v.below_zero()
    nothing = np.zeros(len(y))
    scores = None if differ is None else NoiseScores(nothing, nothing, nothing, (len(rows), 1, 20), differ)
    return make_verdict(y, rows, scores, is_wrong, v, regression=regression)


@pytest.fixture(scope="module")
def hundred():
    """A valuation of 100 rows, all of which do harm, with 80 labels a and 20 labels b."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), np.array(["a"] * 80 + ["b"] * 20)
    v = ls.value(X, y, X[:10], y[:10], model="knn", score="accuracy")
    return changed(v, values=-1 - np.arange(100.0), stderr=np.zeros(100), skill=GOOD), y


def test_suspects_are_counted_by_class(hundred):
    v, y = hundred
    verdict = verdict_of(v, y, [0, 1, 2, 85])
    assert (verdict.n_suspects, verdict.n_rows, verdict.cautions) == (4, 100, [])
    assert verdict.by_class.to_dict("index") == {
        "a": {"rows": 80, "suspects": 3, "share": 3 / 80},
        "b": {"rows": 20, "suspects": 1, "share": 1 / 20},
    }
    assert verdict.classes == "3 of 80 labelled 'a' (4 %), 1 of 20 labelled 'b' (5 %)"
    assert verdict.harm == v.values[[0, 1, 2, 85]].sum()
    assert str(GOOD) in repr(verdict)
    assert verdict_of(v, y, [0], regression=True).by_class is None


@pytest.mark.parametrize(
    ("skill", "rows", "words"),
    [
        (NEAR, range(4), "no better than a constant guess"),
        (None, range(4), None),
        (GOOD, range(15), None),
        (GOOD, range(16), "16 of 100 labels (16 %) look wrong, which is much where the model is right about 90 %"),
        (replace(GOOD, guess=0.4), range(20), None),
        (replace(GOOD, guess=0.8), range(13), None),
        (replace(GOOD, guess=0.8), range(14), "cannot be told from wrong ones"),
        (replace(GOOD, score="r2"), range(16), None),
        (GOOD, range(21), "21 of 100 rows (21 %) are suspected, more than a fifth"),
        (GOOD, range(80, 86), None),
        (GOOD, range(80, 87), "35 % of the rows labelled 'b' (7 of 20)"),
    ],
)
def test_cautions_begin_at_their_thresholds(hundred, skill, rows, words):
    v, y = hundred
    v = changed(v, skill=skill)
    cautions = verdict_of(v, y, rows).cautions
    assert len(cautions) == (words is not None)
    assert all(words in caution for caution in cautions)


def test_rows_that_may_do_no_harm_are_not_counted_for_a_caution(hundred):
    v, y = hundred
    doubtful = changed(v, stderr=np.full(100, 1000.0))
    assert verdict_of(doubtful, y, range(50)).cautions == []
    assert verdict_of(v, y, range(50), wrong=[]).cautions == []


def test_the_error_of_the_harm_knows_that_errors_are_correlated(hundred):
    v, y = hundred
    spread = np.random.default_rng(1).normal(size=(100, 64)).astype(np.float32)
    v = changed(v, spread=spread, stderr=np.linalg.norm(spread, axis=1))
    expected = np.sqrt((spread @ spread.T)[np.ix_([3, 5, 8], [3, 5, 8])].sum())
    assert verdict_of(v, y, [3, 5, 8]).harm_stderr == pytest.approx(expected, rel=1e-5)
    assert verdict_of(changed(v, spread=None), y, [3, 5, 8]).harm_stderr == pytest.approx(v.stderr[[3, 5, 8]].sum())


def test_labels_that_cannot_be_learnt_are_warned_of():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), np.char.add("class ", rng.integers(0, 30, 300).astype(str))
    v = ls.value(X, y, cv=5, model="knn")
    assert v.skill.is_near_chance
    assert v.skill.n_tests == 300
    with pytest.warns(LocalShapleyWarning) as told:
        found = audit.label_errors(X, y, values=v)
    assert len(found.table) == 0
    assert found.verdict.n_wrong is None
    words = [str(warning.message) for warning in told]
    assert any("no better than a constant guess" in text for text in words)
    assert any("nothing is known about which are wrong" in text for text in words)


class TestOutcomesOfChance:
    @pytest.mark.parametrize("seed", range(3))
    def test_are_cautioned_of(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(600, 2))
        y = (rng.random(600) < 1 / (1 + np.exp(-1.3 * X[:, 0]))).astype(int)  # bought or not
        v = ls.value(X, y, cv=5, model="logistic", support=ls.supports.Nearest(5))
        with pytest.warns(LocalShapleyWarning, match=r"outcomes of chance .* cannot be told from wrong ones"):
            audit.label_errors(X, y, values=v)

    @pytest.mark.parametrize("seed", [2, 3])
    def test_are_cautioned_of_where_fewer_than_an_eighth_look_wrong(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(700, 2))
        y = (rng.random(700) < 1 / (1 + np.exp(-2.2 * X[:, 0] - 1.5 * X[:, 1]))).astype(int)
        v = ls.value(X, y, cv=5, model="logistic", support=ls.supports.Nearest(5))
        with pytest.warns(LocalShapleyWarning, match=r"all labels may be right.* outcomes of chance"):
            found = audit.label_errors(X, y, values=v)
        assert len(found.table) > 10
        assert found.verdict.n_wrong[0] < 700 / 8
        assert "all labels may be right" in repr(found.verdict)
        with pytest.warns(LocalShapleyWarning, match="all labels may be right"):
            audit.label_errors(X, y, values=v, n=3)

    @pytest.mark.parametrize(("n", "told"), [(10, False), (11, True)])
    def test_so_few_that_all_can_be_looked_at_bring_no_caution(self, hundred, n, told):
        v, y = hundred
        assert bool(verdict_of(v, y, range(n), differ=(0.2, 0.08, 0.08)).cautions) is told
        short = verdict_of(v, y, range(1), wrong=range(n), differ=(0.2, 0.08, 0.08))  # a list that is cut short
        assert bool(short.cautions) is told
        assert not verdict_of(v, y, range(n), differ=(0.2, 0.19, 0.08)).cautions

    @pytest.mark.parametrize("width", [0.5, 1.5, 4.0])
    @pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
    def test_how_many_of_the_surest_rows_differshare_by_chance(self, width, share):
        rng = np.random.default_rng(0)
        odds = np.sort(np.abs(width * rng.normal(size=400_000)))
        differ = rng.random(len(odds)) < 1 / (1 + np.exp(odds))
        surest = differ[round((1 - share) * len(odds)) :].mean()
        assert share_by_chance(differ.mean(), share) == pytest.approx(surest, abs=0.003)

    def test_no_mistake_and_as_many_as_a_guess_makes_are_ends(self):
        assert share_by_chance(0.0, 0.4) < 1e-3
        assert share_by_chance(0.9, 0.4) == pytest.approx(0.5, abs=1e-3)

    def test_ratings_are_better_predicted_as_numbers(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 2))
        y = np.clip(np.round(3 + X[:, 0] + rng.normal(size=300)), 1, 5).astype(int)
        v = ls.value(X, y, cv=5, model="knn")
        with pytest.warns(LocalShapleyWarning, match="--task regression"):
            audit.label_errors(X, y, values=v)

    @pytest.mark.parametrize("name", ["breast_cancer", "iris"])
    @pytest.mark.parametrize("share", [0.05, 0.1])
    def test_a_tenth_of_wrong_labels_is_no_such_case(self, name, share):
        X, y, _, _, _ = ls.datasets.load(name)
        rng = np.random.default_rng(1)
        wrong = rng.choice(len(y), round(share * len(y)), replace=False)
        y[wrong] = (y[wrong] + 1) % (y.max() + 1)
        v = ls.value(X, y, cv=5, model="knn")
        assert audit.label_errors(X, y, values=v).verdict.cautions == []


def test_without_rows_other_test_rows_are_allowed_for():
    """Labels that are chance: most values below zero would not stay there with other test rows."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 4)), rng.integers(0, 60, 600)
    v = ls.value(X, y, cv=5, model="knn", per_test=True)
    with pytest.warns(LocalShapleyWarning, match="no better than a constant guess"):
        by_all, by_draws = (audit.label_errors(None, y, values=v, errors=errors).table for errors in ("all", "draws"))
    assert len(by_all) < 20
    assert len(by_draws) > 120
    with pytest.raises(ls.InvalidArgumentError, match="errors must be one of"):
        audit.label_errors(None, y, values=v, errors="none")
    with pytest.raises(ls.InvalidArgumentError, match="errors must be one of"):
        audit.label_errors(X, y, values=v, errors="none")


def test_a_rare_class_that_the_model_does_not_know_is_warned_of():
    X, labels = make_classification(600, 20, n_informative=5, weights=[0.8], flip_y=0.3, class_sep=0.6, random_state=1)
    y = np.where(labels == 1, "bad", "good")
    v = ls.value(X, y, cv=5, model="knn")
    with pytest.warns(LocalShapleyWarning) as told:
        found = audit.label_errors(X, y, values=v)
    assert "of the rows labelled 'bad'" in str(told[-1].message)
    assert found.verdict.by_class["suspects"].idxmax() == "bad"


class TestSkill:
    def test_accuracy_beside_the_share_of_the_most_frequent_class(self):
        X, y, X_test, y_test, _ = ls.datasets.load("breast_cancer")
        model = DecisionTreeClassifier(max_depth=3, random_state=0)
        skill = ls.value(X, y, X_test, y_test, model=model, budget=50).skill
        right, lucky = model.fit(X, y).predict(X_test) == y_test, y_test == 1
        assert (skill.model, skill.guess, skill.n_tests) == (right.mean(), lucky.mean(), len(y_test))
        difference = right.astype(float) - lucky
        assert skill.stderr == pytest.approx(difference.std(ddof=1) / np.sqrt(len(y_test)))
        assert skill.constant == "1"
        assert not skill.is_near_chance

    def test_with_folds_each_row_is_predicted_by_models_without_it(self):
        X, y, _, _, _ = ls.datasets.load("iris")
        names = np.array(["x", "y", "z"])[y]
        folds = [(np.arange(len(y))[np.arange(len(y)) % 3 != k], np.arange(k, len(y), 3)) for k in range(3)]
        model = DecisionTreeClassifier(random_state=0)
        skill = ls.value(X, names, cv=folds, model=model, budget=50).skill
        assert skill.model == (cross_val_predict(model, X, names, cv=folds) == names).mean()

    def test_of_numbers_it_is_the_squared_error_avoided(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 2))
        y = X[:, 0] + 0.1 * rng.normal(size=80)
        model = DecisionTreeRegressor(max_depth=3, random_state=0)
        skill = ls.value(X[:50], y[:50], X[50:], y[50:], model=model, budget=50).skill
        off = (model.fit(X[:50], y[:50]).predict(X[50:]) - y[50:]) ** 2
        assert skill.model == pytest.approx(1 - off.mean() / ((y[50:] - y[:50].mean()) ** 2).mean())
        assert (skill.score, skill.guess, skill.is_near_chance) == ("r2", 0, False)

    def test_of_many_test_rows_a_sample_is_predicted(self):
        X, y, X_test, y_test, _ = ls.datasets.load("iris")
        many, labels = np.tile(X, (20, 1)), np.tile(y, 20)  # 2,100 rows
        settings = {"model": "knn", "support": ls.supports.Nearest(3)}
        assert ls.value(many, labels, cv=5, **settings).skill.n_tests == 2000
        assert ls.value(X, y, many, labels, **settings).skill.n_tests == 2000
        assert ls.value(X, y, X_test, y_test, **settings).skill.n_tests == len(y_test)

    @pytest.mark.parametrize("weights", ["uniform", "distance"])
    def test_neighbours_of_many_rows_predict_what_their_supports_say(self, monkeypatch, weights):
        X, y, X_test, y_test, _ = ls.datasets.load("breast_cancer")
        names = np.array(["x", "y"])[y]
        for model, labels in ((KNeighborsClassifier(4, weights=weights), names), (KNeighborsRegressor(4), X[:, 0])):
            truth = np.array(["x", "y"])[y_test] if labels is names else X_test[:, 0]
            data = X, labels, X_test, truth
            expected = ls.value(*data, model=model).skill
            with monkeypatch.context() as few:
                few.setattr("localshapley.problem.reference_models.MAX_REFERENCE", 100)
                found = ls.value(*data, model=model).skill
            assert found.model == pytest.approx(expected.model, rel=1e-12)
            assert (found.guess, found.n_tests) == (expected.guess, expected.n_tests)

    def test_a_model_that_cannot_predict_has_none(self):
        assert ls.value(np.zeros((3, 1)), [0, 1, 1], np.ones((2, 1)), [0, 1], model="knn").skill is None
        assert ls.shapley([[0, 1]], lambda coalition, tests: [len(coalition)]).skill is None

    @pytest.mark.parametrize(
        "wrong",
        [
            [],
            {"score": "accuracy"},
            *({**vars(GOOD), name: value} for name, value in {"model": "x", "stderr": -1.0, "guess": None}.items()),
            *({**vars(GOOD), name: value} for name, value in {"n_tests": 0.5, "score": "f1", "constant": 3}.items()),
            {**vars(GOOD), "model": float("nan")},
        ],
    )
    def test_entries_of_a_file_are_checked(self, wrong):
        assert Skill.from_dict(vars(GOOD)) == GOOD
        with pytest.raises(ValueError, match="skill"):
            Skill.from_dict(wrong)


@pytest.fixture(scope="module")
def flipped():
    X, y, X_test, y_test, _ = ls.datasets.load("breast_cancer")
    wrong = np.random.default_rng(0).choice(len(y), 60, replace=False)
    y = y.copy()
    y[wrong] = 1 - y[wrong]
    model = DecisionTreeClassifier(random_state=0)
    v = ls.value(X, y, X_test, y_test, model=model, support=ls.supports.Nearest(10))
    found = audit.label_errors(
        X, y, values=v
    ).table  # no caution: chance would not make so many errors among the surest rows
    return v, found, (X, y, X_test, y_test), model


class TestMending:
    def test_the_scores_are_those_of_models_trained_again(self, flipped):
        v, found, (X, y, X_test, y_test), model = flipped
        mending = audit.mending(X, y, found, X_test, y_test, model=model)
        left, mended = np.setdiff1d(np.arange(len(y)), found.index), y.copy()
        mended[found.index] = found["suggested"]
        right = [
            model.fit(X[rows], labels[rows]).predict(X_test) == y_test
            for rows, labels in ((slice(None), y), (left, y), (slice(None), mended))
        ]
        assert [mending.before, mending.dropped, mending.relabelled] == pytest.approx([r.mean() for r in right])
        change = right[1].astype(float) - right[0]
        assert mending.dropped_stderr == pytest.approx(change.std(ddof=1) / np.sqrt(len(y_test)))
        assert mending.relabelled > mending.before
        assert mending.before == pytest.approx(v.skill.model)
        assert f"{mending.before:.3f} as it is" in str(mending)

    def test_with_folds_every_row_is_held_out_once(self, flipped):
        _, found, (X, y, _, _), model = flipped
        mending = audit.mending(X, y, found, model=model, cv=5)
        assert mending.n_tests == len(y)
        assert mending.dropped > mending.before

    def test_numbers_are_mended_too(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(120, 2))
        y = X[:, 0].copy()
        y[:8] += 20
        v = ls.value(X, y, cv=4, model=DecisionTreeRegressor(max_depth=4), support=ls.supports.Nearest(8))
        with pytest.warns(LocalShapleyWarning):
            found = audit.label_errors(X, y, values=v, n=8).table
        mending = audit.mending(X, y, found, X[8:], y[8:], model=DecisionTreeRegressor(max_depth=4))
        assert mending.score == "r2"
        assert mending.dropped > mending.before

    def test_whole_numbers_are_mended_by_fractions(self):
        X = np.repeat(np.arange(6.0), 10)[:, None]
        y = np.tile([0, 0, 0, 0, 0, 1, 1, 1, 1, 1], 6)
        y[3] = 1000
        model = DecisionTreeRegressor()
        v = ls.value(X, y, X, y, model=model, support=ls.supports.Nearest(5))
        found = v.to_frame().iloc[[3]].assign(label=1000, suggested=0.6)
        y_test = np.where(y == 1000, 0.6, y)
        mending = audit.mending(X, y, found, X, y_test, model=model)
        means = [np.r_[y[:3], 0.6, y[4:10]].mean(), *[0.5] * 5]
        losses = (np.repeat(means, 10) - y_test) ** 2
        guess = ((y_test - y.mean()) ** 2).mean()
        assert mending.relabelled == pytest.approx(1 - losses.mean() / guess)

    def test_bad_input(self, flipped):
        _, found, rows, model = flipped
        with pytest.raises(ls.InvalidArgumentError, match="suspects must hold rows of X"):
            audit.mending(*rows[:2], found.iloc[:0], *rows[2:], model=model)
        with pytest.raises(ls.InvalidArgumentError, match="suspects must hold rows of X"):
            audit.mending(*rows[:2], found.rename(index=lambda row: f"x{row}"), *rows[2:], model=model)
        everything = found.reindex(range(len(rows[1])))
        with pytest.raises(ls.InvalidArgumentError, match="suspects hold all rows"):
            audit.mending(*rows[:2], everything, *rows[2:], model=model)
