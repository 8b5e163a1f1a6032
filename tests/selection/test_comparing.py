"""Chosen rows beside random ones: scored on rows that were not used to choose, and told plainly."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.question import TableInput
from localshapley.selection import Comparison
from localshapley.selection.comparing import compare

iris = ls.datasets.load("iris")
MODEL = DecisionTreeClassifier(random_state=0)


def first_rows(asked):
    """A way to choose that takes the rows as they come, and remembers what it was given."""

    def choose(X, y, X_test, y_test, *, cv, n):
        asked.append((X, y, X_test, y_test, cv, n))
        return np.arange(n)

    return choose


class TestParts:
    def test_test_rows_that_score_were_not_used_to_choose(self):
        asked = []
        data = TableInput(X=iris.X, y=iris.y, X_test=iris.X_test, y_test=iris.y_test)
        found = compare(data, MODEL, first_rows(asked), False, [0.1, 0.3], folds=3, n_random=2)
        assert len(asked) == 3
        for X, _, X_test, _, cv, n in asked:
            assert (len(X), len(X_test), cv, n) == (105, 30, None, 32)
        left_out = sum(len(iris.X_test) - len(part[2]) for part in asked)
        assert left_out == len(iris.X_test)  # each test row scores once
        expected = []
        for _, _, X_test, _, _, _ in asked:
            used = {tuple(row) for row in X_test}
            held = np.array([tuple(row) not in used for row in iris.X_test])
            model = MODEL.fit(iris.X[:32], iris.y[:32])
            expected.append(model.score(iris.X_test[held], iris.y_test[held]))
        assert found.table["score"][1] == pytest.approx(np.mean(expected))
        assert found.table["n_rows"].tolist() == [10, 32]

    def test_without_test_rows_the_rows_are_cut(self):
        asked = []
        compare(TableInput(X=iris.X, y=iris.y, cv=2), MODEL, first_rows(asked), True, [0.2], folds=5, n_random=2)
        assert [(len(X), X_test, cv) for X, _, X_test, _, cv, _ in asked] == [(84, None, 2)] * 5

    def test_folds_that_were_used_up_are_made_again(self):
        pairs = ((np.flatnonzero(np.arange(105) % 3 != k), np.flatnonzero(np.arange(105) % 3 == k)) for k in range(3))
        chosen = ls.select(iris.X, iris.y, model=MODEL, cv=pairs, n=5)
        assert chosen.curve([0.1], folds=2, n_random=2).table["n_rows"].tolist() == [5]

    def test_rows_that_go_are_left_out(self):
        found = compare(TableInput(X=iris.X, y=iris.y, cv=5), MODEL, first_rows([]), True, [0.25], n_random=2)
        assert found.table["n_rows"].tolist() == [63]
        assert "leaving random rows out" in found.verdict


class TestComparison:
    def table(self, difference, stderr):
        shares = np.arange(1, len(difference) + 1) / 10
        return pd.DataFrame({"share": shares, "difference": difference, "stderr": stderr})

    @pytest.mark.parametrize(
        ("difference", "verdict"),
        [
            (
                [0.1, 0.1, 0.01, 0],
                "chosen rows do better than random rows up to 20 %; random rows do as well from 30 % on.",
            ),
            (
                [0.1, 0.01, -0.1, 0.01],
                "chosen rows do better than random rows at 10 %; random rows do as well at 20 %, 40 %; "
                "random rows do better at 30 %.",
            ),
            ([0.01] * 4, "random rows do as well at every share."),
        ],
    )
    def test_it_says_where_choosing_helps_and_where_not(self, difference, verdict):
        assert Comparison(self.table(difference, [0.02] * 4), "accuracy", 0.9, False).verdict == verdict

    def test_chosen_rows_of_digits_do_better(self):
        X, y = ls.datasets.load("digits")[:2]
        chosen = ls.select(X[:250], y[:250], model=KNeighborsClassifier(3), cv=3, n=50)
        found = chosen.curve([0.1, 0.2], folds=3, n_random=3)
        assert (found.table["difference"] > 0.05).all()
        assert (found.table["difference"] - (found.table["score"] - found.table["random"])).abs().max() < 1e-12
        assert (found.table["spread"] > 0).all()
        assert 0.8 < found.all_rows < 1
        assert repr(found).endswith(found.verdict)
        again = chosen.curve([0.1, 0.2], folds=3, n_random=3)
        pd.testing.assert_frame_equal(found.table, again.table)

    def test_numbers_are_compared_by_r2(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 2))
        chosen = ls.select(X, X @ [1.0, 2.0], model="ridge", cv=3, n=10)
        assert chosen.curve([0.5], folds=3, n_random=2).score == "r2"

    def test_what_cannot_be_compared_is_refused(self):
        chosen = ls.select(*iris[:4], model="tree", n=5)
        for shares in ([], [0.0], [1.0], [2]):
            with pytest.raises(ls.InvalidArgumentError, match="shares must be numbers between 0 and 1"):
                chosen.curve(shares)
        with pytest.raises(ls.InvalidArgumentError, match="folds must be a whole number of at least 2"):
            chosen.curve(folds=1)
        kernel = iris.X @ iris.X.T, iris.y, iris.X_test @ iris.X.T, iris.y_test
        with pytest.raises(ls.InvalidArgumentError, match="takes a precomputed kernel, which curve does not"):
            ls.select(*kernel, model=SVC(kernel="precomputed"), n=5).curve()
