"""Lists of wrong labels: how rows are ranked with and without label-noise models, and with and without values."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import localshapley as ls
from localshapley import audit
from localshapley.audit.label_errors import _neighbours
from localshapley.audit.label_noise_models import noise_scores
from made import changed, made

X, y, X_test, y_test, _ = ls.datasets.load("iris")


@pytest.fixture(scope="module")
def iris():
    return ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(3), per_test=True)


class TestLabelErrors:
    @pytest.mark.parametrize("model", ["knn", "tree", "logistic"])
    def test_flipped_labels_are_found_with_the_label_that_was_there(self, model):
        rng = np.random.default_rng(0)
        true = np.repeat(["left", "right"], 40)
        rows = rng.normal(size=(80, 2)) + 6 * (true == "right")[:, None]
        wrong = [3, 20, 47, 71]
        labels = true.copy()
        labels[wrong] = np.where(true[wrong] == "left", "right", "left")
        v = ls.value(rows, labels, model=model, cv=5, support=ls.supports.Nearest(8))
        table = audit.label_errors(rows, labels, values=v, n=4).table
        assert set(table.index) == set(wrong)
        assert table["suggested"].tolist() == true[table.index].tolist()
        assert table["label"].tolist() == labels[table.index].tolist()

    def test_columns_against_a_slow_twin(self, iris):
        table = audit.label_errors(X, y, values=iris, n=105, n_neighbours=4).table
        assert list(table.columns) == [
            "suspicion",
            "p_wrong",
            "value",
            "stderr",
            "label",
            "suggested",
            "agreement",
            "neighbours",
        ]
        scaled = X / X.std(axis=0)
        for z, row in table.iterrows():
            away = [(((scaled[z] - scaled[j]) ** 2).sum(), j) for j in range(105) if j != z]
            nearest = [j for _, j in sorted(away)[:4]]
            against = [j for j in nearest if y[j] != y[z]]
            assert row["neighbours"] == against
            assert row["agreement"] == 1 - len(against) / 4
        assert table["suspicion"].is_monotonic_decreasing
        assert table["p_wrong"].is_monotonic_decreasing

    def test_with_few_rows_value_and_neighbours_decide(self):
        rng = np.random.default_rng(0)
        rows, labels = rng.normal(size=(18, 2)), np.tile([0, 1, 1], 6)
        v = made(rng.normal(size=18))
        table = audit.label_errors(rows, labels, values=v, n=18, n_neighbours=4).table
        by_row = table.sort_index()
        agreement = by_row["agreement"].to_numpy()
        expected = -(v.values / v.values.std() + agreement / agreement.std())
        assert by_row["suspicion"].to_numpy() == pytest.approx(expected)
        assert table["p_wrong"].isna().all()
        for z, row in table.iterrows():
            nearest = _neighbours(rows / rows.std(axis=0), v, 4)[z]
            assert Counter(labels[nearest])[row["suggested"]] == max(Counter(labels[nearest]).values())

    def test_by_default_those_below_zero_beyond_doubt(self):
        v = made([-1.0, -1.0, -0.1, 1.0, 0.0, 2.0], [0.1, 0.6, 0.0, 0.1, 0.0, 0.1])
        table = audit.label_errors(None, list("ababab"), values=v).table
        assert table.index.tolist() == [0, 2]
        assert table["agreement"].isna().all()
        assert table["suggested"].isna().all()
        assert table["neighbours"].tolist() == [[], []]
        assert len(audit.label_errors(np.arange(6.0)[:, None], list("ababab"), values=v).table) == 2

    def test_companions_are_the_rows_of_the_same_supports(self, iris):
        holds = [set(iris.per_test[:, [z]].nonzero()[0]) for z in range(105)]
        table = audit.label_errors(None, y, values=iris, n=105, n_neighbours=3).table
        assert table["value"].is_monotonic_increasing
        for z, found in enumerate(iris.companions(3)):
            nearness = {
                j: len(holds[z] & holds[j]) / len(holds[z] | holds[j]) for j in range(105) if holds[z] & holds[j]
            }
            nearness.pop(z, None)
            assert [nearness[j] for j in found] == pytest.approx(sorted(nearness.values(), reverse=True)[:3])

    def test_the_names_of_the_neighbours_are_those_of_the_table(self, iris):
        named = changed(iris, ids=pd.Index([f"row {z}" for z in range(105)]))
        plain, table = (
            audit.label_errors(X, y, values=iris, n=9).table,
            audit.label_errors(X, y, values=named, n=9).table,
        )
        assert table["neighbours"].tolist() == [[f"row {j}" for j in rows] for rows in plain["neighbours"]]

    def test_numbers_without_rows_are_ranked_by_value(self):
        D, t, D_test, t_test, _ = ls.datasets.load("diabetes")
        v = ls.value(D, t, D_test, t_test, model=KNeighborsRegressor(), per_test=True)
        table = audit.label_errors(None, t, values=v, n=4).table
        assert table.index.tolist() == v.bottom(4).index.tolist()
        assert "agreement" not in table
        for suggested, rows in zip(table["suggested"], table["neighbours"], strict=True):
            assert suggested == pytest.approx(t[rows].mean())
            assert len(rows) == 10

    def test_text_labels_and_cross_validation(self):
        names = np.array(["setosa", "versicolor", "virginica"])[y]
        names[5] = "setosa" if names[5] != "setosa" else "virginica"
        v = ls.value(X, names, model="knn", cv=5, per_test=True)
        assert 5 in audit.label_errors(X, names, values=v, n=3).table.index
        assert audit.label_errors(X, names, values=v).table["suggested"].isin(names).all()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"y": y[1:]}, "y must have one entry for each of the 105 rows"),
            ({"y": y, "n": 0}, "n must be a number of rows"),
            ({"y": y, "n_neighbours": 0}, "n_neighbours must be a whole number of at least 1; got 0"),
            ({"y": y, "X": X[:9]}, "X must have 105 rows"),
        ],
    )
    def test_bad_input(self, iris, arguments, message):
        with pytest.raises(ls.InvalidArgumentError, match=message):
            audit.label_errors(**{"X": None, "values": iris} | arguments)


class TestWithoutValues:
    def test_rows_are_ranked_as_with_them_and_have_no_columns_of_values(self, iris):
        plain, valued = audit.label_errors(X, y, n=20), audit.label_errors(X, y, values=iris, n=20)
        assert plain.table["suspicion"].tolist() == valued.table["suspicion"].tolist()
        assert valued.table.columns.drop(plain.table.columns).tolist() == ["value", "stderr"]
        assert plain.verdict.n_wrong == valued.verdict.n_wrong
        assert plain.verdict.harm is None
        assert valued.verdict.harm == pytest.approx(iris.values[valued.table.index].sum())

    def test_rows_go_by_the_names_of_the_table(self):
        names = pd.Index([f"r{i}" for i in range(105)], name="id")
        found = audit.label_errors(pd.DataFrame(X, index=names), y, n=5).table
        assert found.index.tolist() == [f"r{i}" for i in audit.label_errors(X, y, n=5).table.index]
        assert found.index.name == "id"
        with pytest.raises(ls.InvalidArgumentError, match="y has the index labels of X in another order"):
            audit.label_errors(pd.DataFrame(X, index=names), pd.Series(y, index=names[::-1]))

    def test_what_is_predicted_is_read_off_the_labels_or_given(self):
        D, t, *_ = ls.datasets.load("diabetes")
        assert audit.label_errors(D[:60], t[:60]).verdict.by_class is None
        ages = np.repeat(np.arange(20, 32), 5)
        with pytest.warns(ls.LocalShapleyWarning, match="nothing is known about which are wrong"):
            classes = audit.label_errors(D[:60], ages)
        amounts = audit.label_errors(D[:60], ages, task="regression")
        assert (classes.verdict.is_regression, amounts.verdict.is_regression) == (False, True)
        with pytest.raises(ls.InvalidArgumentError, match="task"):
            audit.label_errors(D, t, task="ranking")

    def test_the_scores_are_those_of_the_label_noise_models(self):
        found, scores = audit.label_errors(X, y, n=105), noise_scores(X, y, regression=False)
        assert (found.table.sort_index()["suspicion"] == scores.suspicion).all()
        assert (found.table.sort_index()["p_wrong"] == scores.p_wrong).all()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"X": X[:19], "y": y[:19]}, "too small to learn from: 19 rows, .* give values"),
            ({"X": X, "y": np.zeros(105, dtype=int)}, "too small to learn from"),
            ({"X": None, "y": y}, "X is missing"),
            ({"X": X, "y": y[1:]}, "y must have one entry for each of the 105 rows"),
            ({"X": X, "y": y, "values": np.zeros(105)}, r"values must be what value\(\) returned, or load\(\) read"),
        ],
    )
    def test_bad_input(self, arguments, message):
        with pytest.raises(ls.InvalidArgumentError, match=message):
            audit.label_errors(**arguments)
