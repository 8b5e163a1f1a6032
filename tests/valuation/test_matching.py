"""Values beside a table that is given later: the same rows, another order, other labels, another table."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import localshapley as ls
from localshapley.report.page import summarise
from localshapley.report.row_details import Rows
from localshapley.valuation.table_matching import find, n_changed_labels
from made import changed

X, Y, X_TEST, Y_TEST, _ = ls.datasets.load("iris")
X[7], Y[7] = X[3], Y[3]  # rows that are equal
ORDER = np.random.default_rng(0).permutation(len(X))
pytestmark = pytest.mark.usefixtures("few_trees")

ANOTHER_ORDER = "holds the rows of the valuation in another order"


@pytest.fixture(scope="module")
def valuation():
    return ls.value(X, Y, X_TEST, Y_TEST, model="knn", per_test=True)


@pytest.fixture(params=["fresh", "saved"])
def v(request, valuation, tmp_path):
    if request.param == "fresh":
        return valuation
    valuation.save(tmp_path / "v.parquet")
    return ls.load(tmp_path / "v.parquet")


def mended(n):
    y = Y.copy()
    y[:n] = (y[:n] + 1) % 3
    return y


FORMS = {
    "array": lambda x: x,
    "frame": pd.DataFrame,
    "objects": lambda x: pd.DataFrame(x).astype(object),
    "list": lambda x: x.tolist(),
    "sparse": sparse.csr_matrix,
}


class TestSameRows:
    @pytest.mark.parametrize("form", FORMS)
    def test_in_their_order_nothing_is_said_whatever_holds_them(self, v, form):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = ls.audit.label_errors(FORMS[form](X), list(Y), values=v, n=5).table
        assert found.equals(ls.audit.label_errors(X, Y, values=v, n=5).table)

    def test_in_another_order_they_are_joined_by_contents(self, v):
        expected = ls.audit.label_errors(X, Y, values=v, n=9).table
        with pytest.warns(ls.LocalShapleyWarning, match=ANOTHER_ORDER):
            found = ls.audit.label_errors(X[ORDER], Y[ORDER], values=v, n=9).table
        assert found.equals(expected)

    def test_curves_and_explanations_too(self, v):
        about = {"model": "knn", "shares": [0.2, 0.5], "n_seeds": 2}
        expected = ls.tasks.curves(v, X, Y, X_TEST, Y_TEST, **about).table
        explained = ls.tasks.explain(v, 0, X=X, X_test=X_TEST, y=Y)
        with pytest.warns(ls.LocalShapleyWarning, match=ANOTHER_ORDER):
            assert ls.tasks.curves(v, X[ORDER], Y[ORDER], X_TEST, Y_TEST, **about).table.equals(expected)
        with pytest.warns(ls.LocalShapleyWarning, match=ANOTHER_ORDER):
            assert ls.tasks.explain(v, 0, X=X[ORDER], X_test=X_TEST, y=Y[ORDER]).equals(explained)

    @pytest.mark.parametrize("named", [False, True], ids=["by their place", "by name"])
    def test_owners_go_with_the_rows_of_a_report(self, named):
        names = pd.Index([f"r{i}" for i in range(len(X))], name="id")
        owner = pd.Series([f"owner {i}" for i in range(len(X))], index=names)
        v = ls.value(pd.DataFrame(X, index=names), Y, X_TEST, Y_TEST, model="knn")
        given = owner.iloc[ORDER[::-1]] if named else owner.to_numpy()[ORDER]
        with pytest.warns(ls.LocalShapleyWarning, match=ANOTHER_ORDER):
            rows = Rows(v, X[ORDER], Y[ORDER], None, given)
        assert rows._features.iloc[40].tolist() == X[40].tolist()
        assert rows.owner.drop([3, 7]).tolist() == owner.reset_index(drop=True).drop([3, 7]).tolist()  # 3 equals 7

    def test_the_report_too(self, v):
        expected = summarise(v, X, y=Y)["sections"]
        with pytest.warns(ls.LocalShapleyWarning, match="^rows holds the rows"):
            assert summarise(v, X[ORDER], y=Y[ORDER])["sections"] == expected

    def test_by_the_names_of_an_index_without_a_word(self):
        names = pd.Index([f"r{i}" for i in range(len(X))], name="id")
        table, labels = pd.DataFrame(X, index=names), pd.Series(Y, index=names)
        v = ls.value(table, labels, X_TEST, Y_TEST, model="knn")
        expected = ls.audit.label_errors(table, labels, values=v, n=9).table
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert ls.audit.label_errors(table.iloc[ORDER], labels.iloc[ORDER], values=v, n=9).table.equals(expected)
            shown = summarise(v, table.iloc[ORDER], y=labels.iloc[ORDER])["sections"]
        assert shown == summarise(v, table, y=labels)["sections"]
        # Labels that their index has joined are not joined a second time, not even where some have changed.
        changed = labels.copy()
        changed.iloc[:2] = (changed.iloc[:2] + 1) % 3
        with pytest.warns(ls.LocalShapleyWarning) as told:
            found = ls.audit.label_errors(X[ORDER], changed.iloc[ORDER], values=v, n=len(X)).table
        assert [str(warning.message)[:9] for warning in told] == ["X holds t", "2 labels "]
        assert found["label"].sort_index().equals(changed.sort_index().rename("label"))

    def test_columns_in_another_order_and_more_of_them(self):
        table = pd.DataFrame(X, columns=list("abcd")).assign(colour=np.where(X[:, 0] > 5, "red", None))
        with_text = changed(ls.value(X, Y, X_TEST, Y_TEST, model="knn"), digests=ls.valuation.Digests.of(table, Y))
        again = table.assign(other=1)[["other", "colour", "d", "b", "a", "c"]]
        assert (with_text.digests.of_table(again) == with_text.digests.rows).all()
        assert (with_text.digests.of_table(again.rename(columns={"a": "z"})) != with_text.digests.rows).any()

    def test_other_features_of_the_same_rows_are_taken_by_their_labels(self, v):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(ls.audit.label_errors(2 * X, Y, values=v, n=5).table) == 5
            assert len(ls.tasks.select(v, 5, y=np.array(["a", "b", "c"])[Y])) == 5  # other names of the classes
            summarise(v, X.round(0), y=Y)


class TestLabels:
    @pytest.mark.parametrize(("n", "text"), [(1, "^1 label changed since"), (3, "^3 labels changed since")])
    def test_changed_ones_are_told(self, v, n, text):
        for about in ({"X": X}, {}):
            with pytest.warns(ls.LocalShapleyWarning, match=text + r".*; run `value` again, or `update`\."):
                ls.audit.label_errors(**{"X": None} | about, y=mended(n), values=v, n=5)
        with pytest.warns(ls.LocalShapleyWarning, match=text):
            ls.tasks.select(v, 5, y=mended(n))
        with pytest.warns(ls.LocalShapleyWarning, match=text):
            summarise(v, X, y=mended(n))

    def test_any_number_of_them_where_the_rows_are_known(self, v):
        with pytest.warns(ls.LocalShapleyWarning) as told:  # so many others look like outcomes of chance, too
            ls.audit.label_errors(X, mended(90), values=v, n=5)
        assert [str(warning.message)[:23] for warning in told] == ["90 labels changed since", "all labels may be right"]

    def test_changed_and_in_another_order(self, v):
        with pytest.warns(ls.LocalShapleyWarning) as told:
            found = ls.audit.label_errors(X[ORDER], mended(3)[ORDER], values=v, n=len(X)).table
        assert [str(warning.message)[:9] for warning in told] == ["X holds t", "3 labels "]
        assert (found["label"].sort_index() == mended(3)).all()

    def test_in_another_order_without_the_rows_they_are_refused(self, v):
        for call in (
            lambda: ls.audit.label_errors(None, Y[ORDER], values=v),
            lambda: ls.audit.label_errors(2 * X[ORDER], Y[ORDER], values=v),
            lambda: ls.tasks.select(v, 5, y=Y[ORDER]),
            lambda: summarise(v, y=Y[ORDER]),
        ):
            with pytest.raises(ls.InvalidArgumentError, match=r"^y does not fit the valuation: \d+ of 105 labels"):
                call()

    def test_other_names_are_no_change(self, v):
        assert n_changed_labels(v, np.array(["a", "b", "c"])[Y]) == 0
        assert n_changed_labels(v, Y.astype(float)) == 0
        assert n_changed_labels(v, np.array(["a", "b", "b"])[Y]) == len(Y)


class TestOtherRows:
    @pytest.mark.parametrize(
        ("table", "lost"),
        [
            (np.vstack([X[:-1], X[:1] + 1]), 1),
            (np.vstack([X[5:], X[:5] + 1])[ORDER], 5),
            (np.vstack([X[:-2], X[:2]]), 2),
        ],
        ids=["one changed", "changed and moved", "some twice"],
    )
    def test_are_refused(self, v, table, lost):
        text = rf"X does not hold the rows that were valued: {lost} of 105 are not in it"
        with pytest.raises(ls.InvalidArgumentError, match=text):
            ls.audit.label_errors(table, Y, values=v)
        with pytest.raises(ls.InvalidArgumentError, match=text):
            ls.tasks.curves(v, table, Y, X_TEST, Y_TEST, model="knn")

    def test_a_report_may_show_rounded_rows_but_none_in_the_place_of_another(self, v):
        partly = X.copy()
        partly[:50] = partly[:50].round(0)
        summarise(v, partly, y=Y)
        partly[[60, 61]] = partly[[61, 60]]
        with pytest.raises(ls.InvalidArgumentError, match=r"^rows does not hold the rows"):
            summarise(v, partly, y=Y)


def test_every_way_to_values_of_rows_knows_its_rows():
    about = {"X": X, "y": Y, "X_test": X_TEST, "y_test": Y_TEST}
    expected = ls.value(**about, model="knn").digests
    for v in (
        ls.value(X, Y, cv=3, model="tree", support=ls.supports.Nearest(3)),
        ls.comparators.knn_shapley(**about),
        ls.update(ls.value(**about, model="knn", per_test=True), **about, model="knn"),
    ):
        assert (v.digests.rows == expected.rows).all()
        assert (v.digests.labels == expected.labels).all()
    assert ls.value(**about, model="knn", owners=Y, budget=100).digests is None
    assert ls.shapley([[0, 1]], lambda c, t: [float(len(c))]).digests is None


def test_find_gives_equal_digests_their_turn():
    rng = np.random.default_rng(1)
    for _ in range(50):
        wanted, there = (rng.integers(0, 4, (rng.integers(0, 9), 2)).astype(np.uint64) for _ in range(2))
        free, expected = list(range(len(there))), []
        for row in wanted:
            at = next((i for i in free if (there[i] == row).all()), -1)
            free = [i for i in free if i != at]
            expected.append(at)
        assert find(wanted, there).tolist() == expected
