"""Rows and labels are joined by position only where their indexes do not say otherwise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier

import localshapley as ls
from localshapley import audit, tasks

rng = np.random.default_rng(0)
NAMES = [f"r{i:02}" for i in range(30)]
X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"], index=NAMES)
Y = pd.Series(np.where(X["a"] + X["b"] > 0, "yes", "no"), index=NAMES)
X_TEST, Y_TEST = X[20:], Y[20:]
X, Y = X[:20], Y[:20]
SHUFFLED = rng.permutation(20)
OWNERS = pd.Series(np.arange(20) % 4, index=X.index)


def value(X=X, y=Y, X_test=X_TEST, y_test=Y_TEST, function=ls.value, **more):
    return function(X, y, X_test, y_test, **{"model": "knn"} | more)


class TestTheSameLabelsInAnotherOrder:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (
                {"y": Y.iloc[SHUFFLED]},
                r"y has the index labels of X in another order.*give y.loc\[X.index\].*y.to_numpy\(\)",
            ),
            ({"X": X.iloc[SHUFFLED]}, "y has the index labels of X in another order"),
            ({"y": Y.iloc[SHUFFLED].to_frame()}, "y has the index labels of X in another order"),
            ({"y_test": Y_TEST[::-1]}, r"y_test has the index labels of X_test.*first 'r29' where X_test has 'r20'"),
            ({"owners": OWNERS[::-1]}, r"owners has the index labels of X .*give owners.loc\[X.index\]"),
            (
                {"X": X.to_numpy(), "X_test": X_TEST.to_numpy(), "owners": OWNERS[::-1]},
                "owners has the index labels of y",
            ),
            ({"X": X.reset_index(drop=True), "y": Y.reset_index(drop=True).iloc[SHUFFLED]}, r"another order"),
            ({"X": X.set_axis(NAMES[:10] * 2), "y": Y.set_axis(np.repeat(NAMES[:10], 2))}, "index labels repeat"),
        ],
        ids=["y", "X", "a frame as y", "y_test", "owners", "owners of y", "numbers", "repeated"],
    )
    def test_is_refused(self, given, message):
        with pytest.raises(ls.InvalidArgumentError, match=message):
            value(**given)

    @pytest.mark.parametrize("function", [ls.plan, ls.locality_gap])
    def test_in_other_functions(self, function):
        with pytest.raises(ls.InvalidArgumentError, match="y has the index labels of X in another order"):
            value(y=Y[::-1], function=function)

    def test_in_baselines(self):
        with pytest.raises(ls.InvalidArgumentError, match="y has the index labels of X in another order"):
            ls.comparators.knn_shapley(X, Y[::-1], X_TEST, Y_TEST)

    def test_in_a_run_of_a_network(self):
        torch = pytest.importorskip("torch")
        with pytest.raises(ls.InvalidArgumentError, match="y_test has the index labels of X_test in another order"):
            ls.comparators.in_run_shapley(torch.nn.Linear(2, 2), X, Y, X_TEST, Y_TEST[::-1], epochs=1)

    def test_with_folds_and_in_models_that_clean(self):
        with pytest.raises(ls.InvalidArgumentError, match="another order"):
            ls.value(X, Y[::-1], cv=3, model="knn")
        with pytest.raises(ls.InvalidArgumentError, match="another order"):
            ls.CleanClassifier(KNeighborsClassifier()).fit(X, Y[::-1])

    def test_in_an_update(self):
        settings = {"model": "knn", "method": "exact"}
        v = value(**settings, per_test=True)
        with pytest.raises(ls.InvalidArgumentError, match="another order"):
            ls.update(v, X, Y[::-1], X_TEST, Y_TEST, **settings)

    def test_of_nodes(self):
        edges = [[i, i + 1] for i in range(29)]
        table, labels = pd.concat([X, X_TEST]), pd.concat([Y, Y_TEST])
        with pytest.raises(ls.InvalidArgumentError, match="another order"):
            ls.value_nodes(edges, table, labels[::-1], range(20), range(20, 30))


class TestOtherLabels:
    def test_are_noted_and_joined_by_position(self):
        v = value(y=Y.set_axis([f"other{i}" for i in range(20)]))
        np.testing.assert_array_equal(v.values, value().values)
        assert [n for n in v.notes if "joined by position" in n and "first 'other0' where X has 'r00'" in n]

    def test_of_owners_are_noted(self):
        v = value(owners=OWNERS.set_axis([f"other{i}" for i in range(20)]))
        assert any("owners and X have different labels" in note for note in v.notes)

    @pytest.mark.parametrize("y", [Y.reset_index(drop=True), Y.to_numpy(), Y], ids=["default", "array", "the same"])
    def test_a_default_index_says_nothing(self, y):
        assert not any("labels" in note for note in value(y=y).notes)


@pytest.fixture(scope="module")
def v():
    return value()


@pytest.mark.filterwarnings("ignore:the model is no better than a constant guess")
class TestTablesGivenToTasks:
    """They go by their index: values belong to named rows."""

    def test_labels_and_rows_in_any_order(self, v):
        expected = audit.label_errors(X, Y, values=v, n=5).table
        pd.testing.assert_frame_equal(audit.label_errors(X[::-1], Y.iloc[SHUFFLED], values=v, n=5).table, expected)
        assert tasks.select(v, 4, y=Y[::-1])["label"].tolist() == tasks.select(v, 4, y=Y)["label"].tolist()

    def test_curves_of_rows_in_any_order(self, v):
        how = {"model": "knn", "shares": [0.5], "n_seeds": 1}
        expected = tasks.curves(v, X, Y, X_TEST, Y_TEST, **how).table
        pd.testing.assert_frame_equal(tasks.curves(v, X[::-1], Y, X_TEST, Y_TEST, **how).table, expected)
        with pytest.raises(ls.InvalidArgumentError, match="y_test has the index labels of X_test in another order"):
            tasks.curves(v, X, Y, X_TEST, Y_TEST[::-1], **how)

    def test_distances_of_rows_in_any_order(self):
        v = value(per_test=True)
        expected = tasks.explain(v, 0, X=X, X_test=X_TEST)
        pd.testing.assert_frame_equal(tasks.explain(v, 0, X=X[::-1], X_test=X_TEST), expected)

    def test_without_names_in_the_valuation_they_are_compared_with_each_other(self):
        v = value(X.to_numpy(), Y.to_numpy(), X_TEST.to_numpy(), Y_TEST.to_numpy())
        with pytest.raises(ls.InvalidArgumentError, match="y has the index labels of X in another order"):
            audit.label_errors(X, Y[::-1], values=v)

    def test_a_report_goes_by_names(self, v, tmp_path):
        ls.report.write_report(tmp_path / "a.html", v, X.iloc[SHUFFLED], y=Y[::-1])
        ls.report.write_report(tmp_path / "b.html", v, X, y=Y)
        assert (tmp_path / "a.html").read_text() == (tmp_path / "b.html").read_text()

    @pytest.mark.parametrize(
        "task", [tasks.owners, lambda v, y: tasks.select(v, 3, y=y), lambda v, y: audit.label_errors(None, y, values=v)]
    )
    def test_other_labels_are_told(self, v, task):
        with pytest.warns(ls.LocalShapleyWarning, match="the valuation have different labels"):
            task(v, Y.set_axis([f"other{i}" for i in range(20)]))


class TestNamesThatRepeat:
    def test_of_rows_are_noted(self):
        v = value(X.set_axis([*NAMES[:19], "r00"]), Y.to_numpy())
        assert any("1 row of X has an index label of an earlier row, first 'r00'" in note for note in v.notes)

    def test_of_columns_are_noted(self):
        v = value(X.set_axis(["a", "a"], axis=1), Y, X_TEST.set_axis(["a", "a"], axis=1))
        assert any("X has the column 'a' more than once" in note for note in v.notes)
