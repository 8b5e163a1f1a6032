"""What it is worth to act on a list of suspects, by rows that had no part in finding them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import localshapley as ls
from localshapley.audit import Mending, label_errors, worth_mending
from localshapley.data.folds import make_folds

pytestmark = pytest.mark.filterwarnings("ignore::localshapley.errors.LocalShapleyWarning")
MODEL = KNeighborsClassifier(1)


def two_clouds(n, share_wrong, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)) + 3 * y[:, None]
    wrong = rng.choice(n, int(share_wrong * n), replace=False)
    labels = y.copy()
    labels[wrong] = 1 - y[wrong]
    return X, labels, y


def plain(X, y, found, train, X_held):
    """Predictions as it is, without the suspects of the training rows, and with the suggested labels."""
    kept, mended = np.delete(np.arange(len(train)), found.index), y[train].copy()
    mended[found.index] = found["suggested"]
    sets = ((slice(None), y[train]), (kept, y[train]), (slice(None), mended))
    return [KNeighborsClassifier(1).fit(X[train][rows], labels[rows]).predict(X_held) for rows, labels in sets]


class TestWorthMending:
    def test_suspects_are_found_anew_without_each_fold(self):
        X, y, _ = two_clouds(90, 0.2)
        worth = worth_mending(X, y, model=MODEL, cv=3, seed=4)
        right, listed = np.zeros((3, 90)), np.zeros(90)
        for train, test in make_folds(3, y, classifier=True, seed=4):
            found = label_errors(X[train], y[train], seed=4).table
            listed[train[found.index]] += 0.5
            right[:, test] = [p == y[test] for p in plain(X, y, found, train, X[test])]
        assert [worth.before, worth.dropped, worth.relabelled] == pytest.approx(right.mean(axis=1))
        assert worth.dropped_stderr == pytest.approx((right[1] - right[0]).std(ddof=1) / np.sqrt(90))
        clear = right[:, listed < 0.5].mean(axis=1)
        apart = worth.unsuspected
        assert [apart.before, apart.dropped, apart.relabelled] == pytest.approx(clear)
        assert apart.n_tests == (listed < 0.5).sum() < 90

    def test_test_rows_do_not_find_suspects(self):
        X, y, _ = two_clouds(80, 0.2)
        X_test, _, y_test = two_clouds(40, 0, seed=1)
        worth = worth_mending(X, y, X_test, y_test, model=MODEL, n=12)
        found = label_errors(X, y, n=12).table
        right = np.array([p == y_test for p in plain(X, y, found, np.arange(80), X_test)])
        assert [worth.before, worth.dropped, worth.relabelled] == pytest.approx(right.mean(axis=1))
        assert worth.unsuspected is None
        assert worth.apart
        assert worth.is_measurable
        assert worth.gains["dropped"][1] > 0

    @pytest.mark.slow
    def test_labels_that_are_chance_are_worth_nothing(self):
        gains = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            X, y = rng.normal(size=(80, 3)), rng.integers(0, 2, 80)
            worth = worth_mending(X, y, model="knn", cv=3, n=20)
            gains.append(worth.dropped - worth.before)
        assert abs(np.mean(gains)) < 3 * np.std(gains, ddof=1) / np.sqrt(5)

    def test_numbers(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(100, 2))
        y = X[:, 0] + 0.1 * rng.normal(size=100)
        y[:6] += 8
        worth = worth_mending(X, y, X[6:], y[6:], model=KNeighborsRegressor(2), n=0.06)
        assert worth.score == "r2"
        assert worth.gains["dropped"][0] > 0.1
        assert "R² changes by +" in worth.sentence

    def test_tables_of_words_have_features_beside_them(self):
        X, y, _ = two_clouds(60, 0.1)
        table = pd.DataFrame({"side": np.where(X[:, 0] > 1.5, "right", "left"), "x": X[:, 1]}, index=np.arange(60) + 7)
        model = make_pipeline(make_column_transformer((OneHotEncoder(), ["side"]), remainder="passthrough"), MODEL)
        worth = worth_mending(table, pd.Series(y, index=table.index), model=model, cv=3, features=X)
        assert worth.n_tests == 60

    def test_nothing_changes_where_nothing_is_suspected(self):
        X, y, _ = two_clouds(60, 0)
        X += 20 * y[:, None]
        worth = worth_mending(X, y, model=MODEL, cv=3)
        assert worth.before == worth.dropped == worth.relabelled == 1
        assert worth.sentence.startswith("acting on the list makes no measurable difference: accuracy stays the same")

    def test_bad_input(self):
        X, y, _ = two_clouds(30, 0)
        with pytest.raises(ls.InvalidArgumentError, match="cv must be a whole number of at least 2"):
            worth_mending(X, y, model=MODEL, cv=[(np.arange(15), np.arange(15, 30))])
        with pytest.raises(ls.InvalidArgumentError, match="n must be a number of rows from 1 to 30"):
            worth_mending(X, y, model=MODEL, cv=3, n=31)
        with pytest.raises(ls.InvalidArgumentError, match="at least 20 rows outside each fold"):
            worth_mending(X[:24], y[:24], model=MODEL, cv=3)


def test_out_of_bag():
    X, y, _ = two_clouds(80, 0.1)
    forest = ls.models.Fixed(RandomForestClassifier(10, random_state=0))
    assert worth_mending(X, y, model=forest, cv="oob").n_tests == 80


@pytest.mark.parametrize(
    ("dropped", "relabelled", "said"),
    [
        (0.9, 0.88, "accuracy changes by +10.0 points (95 % interval +6.1 to +13.9) without these rows, and by +8"),
        (0.82, 0.7, "+2.0 points (95 % interval -1.9 to +5.9, which holds 0) without these rows, and by -10.0"),
        (0.82, 0.8, "acting on the list makes no measurable difference: accuracy changes by +2.0 points"),
    ],
)  # fmt: skip
def test_the_sentence_says_whether_a_difference_was_measured(dropped, relabelled, said):
    found = Mending("accuracy", 0.8, dropped, 0.02, relabelled, 0.02, 50, apart=True)
    assert said in found.sentence
    assert found.sentence.endswith("on 50 held-out rows that had no part in finding them")
    assert found.is_measurable == ("no measurable" not in said)


@pytest.mark.parametrize(
    ("dropped", "relabelled", "said"),
    [
        ((0.8, 0.0), (0.8, 0.0), "accuracy stays the same without these rows and with the suggested labels, on 9,999"),
        ((0.8, 0.0), (0.9, 0.02), "accuracy stays the same without these rows, and changes by +10.0 points (95 %"),
        ((0.9, 0.02), (0.8, 0.0), "+13.9) without these rows, and stays the same with the suggested labels, on 9,999"),
        ((0.8001, 0.0001), (0.8, 0.0001), "by +0.01 points (95 % interval -0.01 to +0.03) without these rows, and by"),
    ],
)  # fmt: skip
def test_the_sentence_has_digits_that_show_a_change_and_words_where_there_is_none(dropped, relabelled, said):
    assert said in Mending("accuracy", 0.8, *dropped, *relabelled, 9999).sentence
