"""Every score by numbers worked out by hand."""

from __future__ import annotations

from math import exp, inf, log, nan

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.models import Task
from localshapley.models.task import NOTHING, UNKNOWN
from localshapley.scoring import (
    AbsoluteError,
    Accuracy,
    Confidence,
    Custom,
    LogLoss,
    Margin,
    SquaredError,
    resolve,
)
from localshapley.supports import Everything, Given

CODES = np.array([0, 1, 2, -1])
PROBABILITIES = np.array([[0.7, 0.2, 0.1], [0.5, 0.1, 0.4], [0.0, 0.0, 1.0], [0.6, 0.4, 0.0]])
ONE_HOT = np.array([[1.0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize(
    ("score", "prediction", "expected"),
    [
        (Confidence(), PROBABILITIES, [0.7, 0.1, 1.0, 0.0]),
        (Accuracy(), ONE_HOT, [1, 0, 1, 0]),
        (Margin(), PROBABILITIES, [0.5, -0.4, 1.0, -0.6]),
        (LogLoss(), PROBABILITIES, [log(2.1), log(0.3), log(3), log(3e-6)]),
        (LogLoss(floor=0.01), PROBABILITIES, [log(2.1), log(0.3), log(3), log(0.03)]),
    ],
    ids=["confidence", "accuracy", "margin", "log_loss", "log_loss with a floor"],
)
def test_scores_of_a_classifier(score, prediction, expected):
    np.testing.assert_allclose(score(CODES, prediction), expected, atol=1e-12)


def test_scores_of_a_regressor():
    truth, prediction = np.array([3.0, -1.0, 0.0]), np.array([1.0, 2.0, 0.0])
    assert SquaredError()(truth, prediction).tolist() == [-4, -9, 0]
    assert AbsoluteError()(truth, prediction).tolist() == [-2, -3, 0]


@pytest.mark.parametrize(
    ("score", "nothing", "right_class", "wrong_class"),
    [
        (Confidence(), 1 / 3, 1, 0),
        (Accuracy(), 1 / 3, 1, 0),
        (Margin(), 0, 1, -1),
        (LogLoss(), 0, log(3), log(3e-6)),
        (Custom(lambda a, b: {"aa": 5.0, "ab": 2.0, "ac": 2.0}[a + b], (np.array(list("abc")), np.empty(0))), 3, 5, 2),
    ],
    ids=["confidence", "accuracy", "margin", "log_loss", "custom"],
)
def test_nothing_learnt_and_one_class_learnt(score, nothing, right_class, wrong_class):
    y = np.array(["a", "b", "c"])
    task = Task(np.zeros((3, 1)), y, np.zeros((1, 1)), np.array([0]), y, np.arange(3), score)
    tests = np.array([0])
    np.testing.assert_allclose(task.score_nothing_learnt(tests), [nothing], atol=1e-12)
    outcome = task.outcomes(np.array([0, 2, 3, 3, 4]), np.array([0, 1, 0, 1]))  # two classes, one, none, another one
    assert outcome.tolist() == [UNKNOWN, 0, NOTHING, 1]
    found, silent = task.score_predictions(tests[[0, 0, 0]], np.full((3, 3), np.nan), outcome[1:])
    np.testing.assert_allclose(found, [right_class, nothing, wrong_class], atol=1e-12)
    assert not silent.any()
    found, silent = task.score_predictions(tests, np.array([[0.2, np.inf, 0.1]]), outcome[:1])
    np.testing.assert_allclose(found, [nothing], atol=1e-12)
    assert silent.all()


@pytest.mark.parametrize(("score", "nothing"), [(SquaredError(), -16), (AbsoluteError(), -4)])
def test_nothing_learnt_of_a_regressor_is_the_mean(score, nothing):
    task = Task(np.zeros((3, 1)), np.array([1.0, 2, 3]), np.zeros((1, 1)), np.array([6.0]), None, None, score)
    assert task.score_nothing_learnt(np.array([0])).tolist() == [nothing]


@pytest.mark.parametrize("score", [Confidence(), Accuracy(), Margin(), LogLoss()], ids=lambda s: s.name)
def test_an_unseen_label_is_never_better_than_nothing_learnt(score):
    uniform = np.full((1, 3), 1 / 3)
    nothing = score(np.array([0]), uniform)[0]
    for prediction in (uniform, ONE_HOT[:1], ONE_HOT[2:3], PROBABILITIES[1:2]):
        assert score(np.array([-1]), prediction)[0] <= nothing


def test_an_unseen_label_has_a_negative_margin_whatever_the_decision_values():
    decision = np.array([[-3.0, -1.0, -2.0], [2.0, 0.5, -1.0]])
    assert (Margin()(np.array([-1, -1]), decision) < 0).all()


class TestDecisionFunctions:
    """A linear machine on one row at −1 and one at 1 has the decision function `f(x) = x`."""

    X, y = np.array([[-1.0], [1.0]]), np.array(["a", "b"])
    model = SVC(kernel="linear", C=100, tol=1e-12)

    def test_margin_of_two_classes(self):
        v = ls.value(self.X, self.y, [[0.5]], ["b"], model=self.model, support=Everything(), score="margin")
        # v(∅) = 0, v(a) = −1, v(b) = 1, v(ab) = f(0.5) = 0.5.
        np.testing.assert_allclose(v.values, [(-1 - 0.5) / 2, (1 + 1.5) / 2], atol=1e-9)

    def test_confidence_of_two_classes(self):
        v = ls.value(self.X, self.y, [[0.5]], ["b"], model=self.model, support=Everything(), score="confidence")
        both = 1 / (1 + exp(-0.5))
        np.testing.assert_allclose(v.values, [(-0.5 + both - 1) / 2, (0.5 + both) / 2], atol=1e-9)

    def test_log_loss_of_two_classes(self):
        v = ls.value(self.X, self.y, [[0.5]], ["b"], model=self.model, support=Everything(), score="log_loss")
        both, floor = log(2 / (1 + exp(-0.5))), log(2e-6)
        np.testing.assert_allclose(v.values, [(floor + both - log(2)) / 2, (log(2) + both - floor) / 2], atol=1e-9)

    @pytest.mark.parametrize(("score", "both"), [("margin", -0.5), ("confidence", 0.0), ("accuracy", 0.0)])
    def test_a_class_that_the_coalition_lacks(self, score, both):
        X, y = np.vstack([self.X, [[5.0]]]), ["a", "b", "c"]
        v = ls.value(X, y, [[0.5]], ["c"], model=self.model, support=Given([[0, 1]]), score=score)
        nothing, one = {"margin": (0, -1)}.get(score, (1 / 3, 0))
        np.testing.assert_allclose(v.values[0], ((one - nothing) + (both - one)) / 2, atol=1e-9)
        np.testing.assert_allclose(v.values[:2].sum(), both - nothing, atol=1e-9)

    def test_three_classes_are_read_class_by_class(self):
        X, y = np.vstack([self.X, [[5.0]]]), np.array(["a", "b", "c"])
        model = LinearSVC(random_state=0)
        v = ls.value(X, y, [[0.8]], ["b"], model=model, support=Everything(), score="margin")
        decision = model.fit(X, y).decision_function([[0.8]])[0]
        np.testing.assert_allclose(v.values.sum(), decision[1] - max(decision[0], decision[2]), atol=1e-9)
        v = ls.value(X, y, [[0.8]], ["b"], model=model, support=Everything(), score="confidence")
        share = np.exp(decision) / np.exp(decision).sum()
        np.testing.assert_allclose(v.values.sum(), share[1] - 1 / 3, atol=1e-9)

    @pytest.mark.parametrize("n_classes", [3, 4])
    def test_decisions_between_pairs_of_classes_are_refused_and_not_misread(self, n_classes):
        X, y = load_digits(n_class=n_classes, return_X_y=True)
        model = SVC(decision_function_shape="ovo")
        support = Given([list(range(n_classes))])
        with pytest.raises(ls.InvalidArgumentError, match="decision_function_shape"):
            ls.value(X[:40], y[:40], X[50:51], y[50:51], model=model, support=support, score="margin")


class OnlyPredicts(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


@pytest.mark.parametrize("score", ["confidence", "margin", "log_loss"])
def test_a_model_that_only_predicts_has_accuracy_only(score):
    data = [[0.0], [1.0], [2.0]], ["a", "b", "b"], [[0.5]], ["a"]
    with pytest.raises(ls.InvalidArgumentError, match=f"score '{score}' needs predict_proba.*OnlyPredicts.*accuracy"):
        ls.value(*data, model=OnlyPredicts(), support=Everything(), score=score)
    v = ls.value(*data, model=OnlyPredicts(), support=Everything())
    assert v.score == "accuracy"
    np.testing.assert_allclose(v.values.sum(), 1 - 1 / 2)


class TestCallables:
    data = np.array([[-1.0], [1.0]]), np.array(["a", "b"]), [[0.9]], ["b"]

    def test_a_function_of_labels(self):
        def cost(truth, prediction):
            return {"ba": -5.0, "bb": 1.0}[truth + prediction]

        v = ls.value(*self.data, model=DecisionTreeClassifier(), support=Everything(), score=cost)
        # v(∅) = (−5 + 1)/2 = −2, v(a) = −5, v(b) = v(ab) = 1.
        np.testing.assert_allclose(v.values, [(-3 + 0) / 2, (3 + 6) / 2])
        assert v.score == "cost"

    def test_a_function_of_numbers(self):
        v = ls.value(
            [[0.0], [1.0]],
            [2.0, 6.0],
            [[0.1]],
            [3.0],
            model=KNeighborsRegressor(1),
            support=Everything(),
            score=lambda truth, prediction: 10 * truth - prediction,
        )
        # Predictions are 4 of nothing, 2 and 6 of one row and 2 of both: v = 26, 28, 24 and 28.
        np.testing.assert_allclose(v.values, [(2 + 4) / 2, (-2 + 0) / 2])

    def test_an_unseen_label_reaches_the_function_as_it_is(self):
        seen = set()
        with pytest.warns(ls.LocalShapleyWarning):
            ls.value(
                *self.data[:3],
                ["zebra"],
                model=DecisionTreeClassifier(),
                support=Everything(),
                score=lambda truth, prediction: seen.add((truth, prediction)) or 0.0,
            )
        assert seen == {("zebra", "a"), ("zebra", "b")}

    @pytest.mark.parametrize("bad", [nan, inf])
    def test_a_number_that_is_not_finite_is_an_error(self, bad):
        with pytest.raises(ls.TrainingError, match=r"gave (nan|inf) for y_true=.*'b'.*prediction=.*'a'.*finite number"):
            ls.value(
                *self.data,
                model=DecisionTreeClassifier(),
                support=Everything(),
                score=lambda truth, prediction: bad,
            )

    @pytest.mark.parametrize("error", [ValueError, ZeroDivisionError])
    def test_an_exception_in_the_function_is_not_taken_for_a_coalition_too_small(self, error):
        calls = []

        def flawed(truth, prediction):
            calls.append(prediction)
            if len(calls) > 4:
                raise error("a bug in the score")
            return 0.0

        with pytest.raises(ls.LocalShapleyError, match="a bug in the score"):
            ls.value(*self.data, model=DecisionTreeClassifier(), support=Everything(), score=flawed)
        assert len(calls) == 5


@pytest.mark.parametrize(
    ("task", "has_proba", "expected"),
    [
        ("classifier", True, "confidence"),
        ("classifier", False, "accuracy"),
        ("regressor", False, "squared_error"),
    ],
)
def test_the_default_score_of_each_task(task, has_proba, expected):
    labels = None if task == "regressor" else (np.array([0, 1]), np.empty(0))
    assert resolve(None, task, labels, has_proba).name == expected


@pytest.mark.parametrize("name", ["accuracy", "confidence", "margin", "log_loss"])
def test_a_name_is_the_score_of_that_name(name):
    score = resolve(name, "classifier", (np.array([0, 1]), np.empty(0)), True)
    assert score.name == name
    assert resolve(score, "classifier", (np.array([0, 1]), np.empty(0)), True) is score


def test_a_score_object_with_settings_is_used():
    data = [[-1.0], [1.0]], ["a", "b"], [[0.9]], ["b"]
    v = ls.value(*data, model=DecisionTreeClassifier(), support=Everything(), score=LogLoss(floor=0.25))
    # v(∅) = 0, v(a) = log(1/2), v(b) = v(ab) = log 2.
    np.testing.assert_allclose(v.values, [-log(2) / 2, 1.5 * log(2)])


@pytest.mark.parametrize(
    ("score", "model", "message"),
    [
        ("acuracy", KNeighborsClassifier(), "score must be one of .*got 'acuracy'. Did you mean 'accuracy'"),
        ("confidense", KNeighborsClassifier(), "Did you mean 'confidence'"),
        ("squared_error", KNeighborsClassifier(), "is for a regressor, but the model is a classifier.*'accuracy'"),
        ("confidence", Ridge(), "is for a classifier, but the model is a regressor.*'squared_error'"),
        (3, KNeighborsClassifier(), "score must be a name, a function .*got 3"),
        (Confidence(), Ridge(), "score 'confidence' is for a classifier"),
        (Confidence, KNeighborsClassifier(), "score"),
    ],
)
def test_a_score_that_does_not_fit_is_refused(score, model, message):
    with pytest.raises(ls.InvalidArgumentError, match=message):
        ls.value([[0.0], [1.0]], [0, 1], [[0.5]], [1], model=model, score=score, support=Everything())
