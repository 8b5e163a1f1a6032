"""Bad arguments are refused before any training, by a message with the argument, what it was and a way out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.supports import Everything, Nearest

rng = np.random.default_rng(0)
X, X_TEST = rng.normal(size=(8, 3)), rng.normal(size=(4, 3))
Y, Y_TEST = np.array([0, 1] * 4), np.array([0, 1, 1, 0])


class NeverClassifies(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        raise AssertionError("trained")

    def predict(self, X):
        raise AssertionError("predicted")


class NeverRegresses(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        raise AssertionError("trained")

    def predict(self, X):
        raise AssertionError("predicted")


def make_model():
    return NeverClassifies()


def value(function=ls.value, **changed):
    arguments = {"X": X, "y": Y, "X_test": X_TEST, "y_test": Y_TEST, "model": NeverClassifies(), **changed}
    data = [arguments.pop(name) for name in ("X", "y", "X_test", "y_test")]
    return function(*data, **arguments)


def but(table, entry, row=2, column=1):
    """The table with one entry changed."""
    changed = table.astype(object if isinstance(entry, str) else float)
    changed[row, column] = entry
    return changed


def frame(table, columns="abc"):
    return pd.DataFrame(table, columns=list(columns))


ROWS = {
    "fewer labels than rows": ({"y": Y[:-1]}, "y has 7 entries, X has 8 rows; they must be equally long"),
    "fewer test labels": ({"y_test": Y_TEST[:-1]}, "y_test has 3 entries, X_test has 4 rows"),
    "nan": ({"X": but(X, np.nan)}, r"X holds 1 missing values \(NaN\).*NeverClassifies.*SimpleImputer"),
    "nan in test rows": ({"X_test": but(X_TEST, np.nan)}, r"X_test holds 1 missing values \(NaN\)"),
    "nan in a frame": (
        {"X": frame(but(X, np.nan)), "X_test": frame(X_TEST)},
        r"X holds 1 missing values \(NaN\)",
    ),
    "missing in a nullable column": (
        {"X": frame(but(X, np.nan)).convert_dtypes(), "X_test": frame(X_TEST)},
        r"X holds 1 missing values",
    ),
    "nan in a pipeline without imputer": (
        {"X": but(X, np.nan), "model": make_pipeline(StandardScaler(), NeverClassifies())},
        "X holds 1 missing values",
    ),
    "nan in a sparse matrix": (
        {"X": sparse.csr_matrix(but(X, np.nan)), "X_test": sparse.csr_matrix(X_TEST)},
        r"X holds 1 missing values \(NaN\)",
    ),
    "infinity": ({"X": but(X, np.inf)}, "X holds infinity; drop or clip"),
    "minus infinity in test rows": ({"X_test": but(X_TEST, -np.inf)}, "X_test holds infinity"),
    "infinity in a frame": ({"X": frame(but(X, np.inf)), "X_test": frame(X_TEST)}, "X holds infinity"),
    "infinity in a sparse matrix": (
        {"X": sparse.csr_matrix(but(X, np.inf)), "X_test": sparse.csr_matrix(X_TEST)},
        "X holds infinity",
    ),
    "no row": ({"X": X[:0], "y": Y[:0]}, "X is empty: it has 0 rows and 3 features"),
    "no test row": ({"X_test": X_TEST[:0], "y_test": Y_TEST[:0]}, "X_test is empty: it has 0 rows"),
    "no row in a list": ({"X": [], "y": []}, "X "),
    "no feature": ({"X": X[:, :0], "X_test": X_TEST[:, :0]}, "X is empty: it has 8 rows and 0 features"),
    "other number of features": ({"X_test": X_TEST[:, :2]}, "X_test has 2 features, X has 3; both need the same"),
    "other columns": (
        {"X": frame(X), "X_test": frame(X_TEST, "abd")},
        "X_test lacks 'c' and has 'd', which X does not have",
    ),
    "other order of columns": ({"X": frame(X), "X_test": frame(X_TEST, "acb")}, r"give X_test\[X.columns\]"),
    "other repeated columns": (
        {"X": frame(X, "aab"), "X_test": frame(X_TEST, "abb")},
        "X_test has a column more often or less often than X",
    ),
    "one dimension": ({"X": X[:, 0]}, r"X must have two dimensions.*got 1: reshape.*X.reshape\(-1, 1\)"),
    "one test row without brackets": ({"X_test": X_TEST[0], "y_test": [0]}, "X_test must have two dimensions"),
    "three dimensions": ({"X": X[:, :, None]}, r"X must have two dimensions.*got 3: flatten.*reshape\(len\(X\), -1\)"),
    "texts": ({"X": ["a b", "c d"] * 4}, r"X holds one text per row.*TfidfVectorizer\(\).fit_transform\(X\)"),
    "squares that overflow": ({"X": X * 1e300}, r"X holds .*e\+300, and numbers beyond 1e\+150 overflow"),
    "squares that overflow in a frame": (
        {"X": frame(X), "X_test": frame(X_TEST * 1e300)},
        "X_test holds .* overflow",
    ),
    "squares that vanish": ({"X": X * 1e-300}, "X holds nothing larger than .*vanish when they are squared"),
    "ragged lists": ({"X": [[1, 2, 3], [4, 5]], "y": [0, 1]}, "X "),
    "text": ({"X": but(X, "red")}, "X holds text; give a DataFrame and a Pipeline"),
    "text in test rows": ({"X_test": but(X_TEST, "red")}, "X_test holds text"),
    "text in one frame of two": ({"X": frame(but(X, "red")), "X_test": X_TEST}, "X is a DataFrame with text columns"),
    "nothing": ({"X": None}, "X is missing"),
    "no test rows at all": ({"X_test": None}, "X_test is missing"),
    "sparse and dense": ({"X": sparse.csr_matrix(X)}, "X and X_test must both be sparse or both be dense"),
}
LABELS = {
    "one class": ({"y": np.zeros(8, dtype=int)}, "y holds one class only.*0.*two or more"),
    "one class of text": ({"y": ["cat"] * 8}, r"y holds one class only \('cat'\)"),
    "nan": ({"y": Y + np.array([0, np.nan] + [0] * 6)}, r"y is missing \(NaN\) in 1 places, first at row 1"),
    "none": ({"y": ["a", "b", None, "a"] * 2}, r"y is missing \(NaN\) in 2 places, first at row 2"),
    "nan in test labels": ({"y_test": [0, 1, np.nan, 0]}, r"y_test is missing \(NaN\) in 1 places, first at row 2"),
    "two columns": ({"y": np.zeros((8, 2))}, r"y must be one column; got shape \(8, 2\)"),
    "nothing": ({"y": None}, "y is missing; give one label"),
    "no test labels": ({"y_test": None}, "y_test is missing"),
    "text for a regressor": (
        {"model": NeverRegresses(), "y": list("abcdabcd")},
        "y must hold numbers for a regressor.*'a'.*classifier",
    ),
    "text in test labels of a regressor": (
        {"model": NeverRegresses(), "y_test": list("abcd")},
        "y_test must hold numbers for a regressor",
    ),
    "nan for a regressor": ({"model": NeverRegresses(), "y": [0.5, np.nan] * 4}, r"y is missing \(NaN\)"),
    "infinity for a regressor": ({"model": NeverRegresses(), "y": [0.5, np.inf] * 4}, "y is infinite at row 1"),
    "dates": ({"y": pd.date_range("2024-01-01", periods=8)}, r"y holds dates or times.*dt.days.*y.dt.year"),
    "dates as objects": (
        {"y_test": list(pd.date_range("2024-01-01", periods=4).date)},
        "y_test holds dates or times",
    ),
    "dates for a regressor": (
        {"model": NeverRegresses(), "y": pd.Series(pd.date_range("2024-01-01", periods=8))},
        "y holds dates or times",
    ),
    "errors that overflow": (
        {"model": NeverRegresses(), "y": np.arange(8) * 1e300, "y_test": np.arange(4.0)},
        r"y holds 7e\+300, .*overflow",
    ),
    "fractions for a classifier": (
        {"y": Y + 0.5, "y_test": Y_TEST + 0.7},
        "y holds fractions such as 0.5.*a regressor",
    ),
    "numbers against text": (
        {"y_test": Y_TEST.astype(str)},
        r"no label of y_test occurs in y: y holds int such as 0, y_test holds str such as '0'.*y_test.astype\(int\)",
    ),
    "text against numbers": ({"y": Y.astype(str)}, r"y holds str such as '0', .*y_test.astype\(str\)"),
    "labels that do not compare": (
        {"y": np.array(["a", 1] * 4, dtype=object)},
        "y ",
    ),
}
MODELS = {
    "a class": ({"model": NeverClassifies}, r"model is a class; give an instance.*NeverClassifies\(\)"),
    "a function that makes one": ({"model": make_model}, r"model is a function.*call it: model=make_model\(\)"),
    "a nameless function": ({"model": lambda: NeverClassifies()}, r"model is a function.*model=it\(\)"),
    "a transformer": ({"model": StandardScaler()}, "model must be a scikit-learn estimator.*StandardScaler"),
    "a clusterer": ({"model": KMeans(2)}, "model must be a classifier or a regressor; KMeans is neither"),
    "no fit": ({"model": object()}, "model must be a scikit-learn estimator, a name.*got <object"),
    "a number": ({"model": 3}, "model must be a scikit-learn estimator.*got 3"),
    "nothing": ({"model": None}, "model must be a scikit-learn estimator.*got None"),
    "an unknown name": ({"model": "kn"}, "model must be one of .*got 'kn'. Did you mean 'knn'"),
    "a name far from all": ({"model": "zzzzzz"}, "model must be one of 'fixed-forest', 'forest', 'knn'.*got 'zzzzzz'"),
    "a wrapped class": ({"model": ls.models.Estimator(NeverClassifies)}, r"model is a class.*NeverClassifies\(\)"),
    "precomputed distances": (
        {"model": KNeighborsClassifier(metric="precomputed")},
        "model has metric='precomputed'; give feature rows",
    ),
}
SETTINGS = {
    "a word for a switch": ({"per_test": "yes"}, "per_test must be True or False; got 'yes'"),
    "unknown method": ({"method": "exakt"}, "method must be one of .*got 'exakt'. Did you mean 'exact'"),
    "unknown score": ({"score": "acuracy"}, "score must be one of .*got 'acuracy'. Did you mean 'accuracy'"),
    "a score of regressors": ({"score": "squared_error"}, "score 'squared_error' is for a regressor.*'accuracy'"),
    "a name of many rows": ({"score": "roc_auc"}, "got 'roc_auc'. A score sees one test row at a time.*F1 and AUC"),
    "a function of many rows": ({"score": f1_score}, "score f1_score is a score of many rows.*one test row at a time"),
    "a scorer": ({"score": make_scorer(f1_score)}, r"make_scorer\(f1_score.* is a score of many rows"),
    "a score of no kind": ({"score": 3}, "score must be a name, a function.*got 3"),
    "a support by name": ({"support": "nearest"}, r"support must be one of.*Nearest\(10\).*got 'nearest'"),
    "a support by number": ({"support": 10}, r"support must be one of.*got 10"),
    "a support class": ({"support": Nearest}, r"support must be one of.*got <class.*Nearest"),
    "lists without Given": ({"support": [[0, 1]] * 4}, r"support must be one of"),
    "empty is nan": ({"empty": np.nan}, "empty must be a finite number; got nan"),
    "empty is text": ({"empty": "zero"}, "empty must be a finite number; got 'zero'"),
    "budget is zero": ({"budget": 0}, "budget must be a whole number of at least 1; got 0"),
    "budget is a fraction": ({"budget": 2.5}, "budget must be a whole number of at least 1; got 2.5"),
    "budget is a whole float": ({"budget": 1e3}, "budget must be a whole number.*got 1000.0; write 1000"),
}
ALL = {
    f"{kind}: {name}": case
    for kind, cases in {"X": ROWS, "y": LABELS, "model": MODELS, "settings": SETTINGS}.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("case", ALL)
def test_value_refuses_it_before_any_training(case):
    changed, message = ALL[case]
    with pytest.raises(ls.InvalidArgumentError, match=message) as caught:
        value(**changed)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("within", [lambda module: module, lambda module: make_pipeline(StandardScaler(), module)])
def test_a_module_is_no_estimator_and_the_message_says_what_makes_one(within):
    torch = pytest.importorskip("torch")
    with pytest.raises(ls.InvalidArgumentError, match=r"(?s)model must.*models\.Network\(module\)"):
        value(model=within(torch.nn.Linear(4, 3)))


@pytest.mark.parametrize("function", [ls.plan, ls.locality_gap], ids=["plan", "locality_gap"])
@pytest.mark.parametrize("case", ["X: nan", "y: one class", "model: a class", "settings: unknown score"])
def test_plan_and_locality_gap_refuse_the_same(function, case):
    changed, message = ALL[case]
    with pytest.raises(ls.InvalidArgumentError, match=message):
        value(function, **changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_tests": 0}, r"n_tests.*at least 1; got 0"),
        ({"n_tests": 2.5}, r"n_tests.*got 2.5"),
        ({"budget": 0}, r"budget.*got 0"),
        ({"budget": "many"}, r"budget.*got 'many'"),
    ],
)
def test_locality_gap_refuses_bad_settings_before_any_training(changed, message):
    with pytest.raises(ls.InvalidArgumentError, match=message):
        value(ls.locality_gap, **changed)


def test_what_the_model_itself_refuses_is_said_with_the_model():
    table, test_table = frame(but(X, "red")), frame(but(X_TEST, "red"))
    with pytest.raises(ls.InvalidArgumentError, match=r"DecisionTreeClassifier\(\) cannot be trained on all.*'red'"):
        value(X=table, X_test=test_table, model=DecisionTreeClassifier())


@pytest.mark.parametrize(
    "model", [DecisionTreeClassifier(), make_pipeline(StandardScaler(), SVC())], ids=["tree", "steps"]
)
def test_columns_that_hold_no_numbers_are_named(model):
    dates = pd.date_range("2020-01-01", periods=8)
    for column, message in (
        (["x", "y"] * 4, "'c' holds no numbers.*OneHotEncoder"),
        (dates, "'c' holds dates or times"),
    ):
        table = frame(X).assign(c=column)
        with pytest.raises(ls.InvalidArgumentError, match=f"column {message}"):
            value(X=table, X_test=table[:4], model=model)


def test_whole_numbers_as_objects_are_labels():
    expected = ls.value(X, Y, X_TEST, Y_TEST, model=SVC(), support=Nearest(4))
    found = ls.value(X, Y.astype(object), X_TEST, Y_TEST.astype(object), model=SVC(), support=Nearest(4))
    assert (found.values == expected.values).all()


def test_labels_of_which_y_has_none_are_noted_where_they_are_of_its_kind():
    with pytest.warns(ls.LocalShapleyWarning, match=r"labels that y does not have \(7, and no others\)"):
        ls.value(X, Y, X_TEST[:1], [7], model="knn", support=Nearest(4))


def test_labels_that_no_training_row_has_are_noted_and_scored_as_wrong():
    y, y_test = np.array(["cat", "dog"] * 4), np.array(["cat", "owl", "dog", "emu"])
    with pytest.warns(ls.LocalShapleyWarning, match="y_test holds labels that y does not have.*'owl', 'emu'"):
        v = ls.value(X, y, X_TEST, y_test, model="knn", support=Nearest(4), score="accuracy", per_test=True)
    assert any("'owl', 'emu'" in note for note in v.notes)
    by_test = v.per_test.toarray()
    assert (by_test[[1, 3]] == 0).all()
    known = ls.value(X, y, X_TEST[::2], y_test[::2], model="knn", support=Nearest(4), score="accuracy")
    np.testing.assert_allclose(v.values, known.values, atol=1e-12)


@pytest.mark.parametrize("score", ["confidence", "margin", "log_loss"])
def test_an_unseen_label_is_wrong_for_every_score(score):
    with pytest.warns(ls.LocalShapleyWarning):
        v = ls.value(X, Y, X_TEST[:1], [7], model="logistic", support=Nearest(4), score=score, per_test=True)
    assert v.values.sum() <= 1e-12


def test_the_warning_points_at_the_line_of_the_user():
    with pytest.warns(ls.LocalShapleyWarning) as caught:
        ls.value(X, Y, X_TEST, [0, 1, 2, 3], model="knn", support=Nearest(2))
    assert caught[0].filename == __file__


def test_labels_of_another_number_type_are_the_same_labels():
    expected = ls.value(X, Y, X_TEST, Y_TEST, model="knn", support=Nearest(4))
    found = ls.value(X, Y.astype(float), X_TEST, Y_TEST.astype(np.int8), model="knn", support=Nearest(4))
    assert (found.values == expected.values).all()
    flags = ls.value(X, Y.astype(bool), X_TEST, Y_TEST.astype(bool), model="knn", support=Nearest(4))
    assert (flags.values == expected.values).all()


@pytest.mark.parametrize("rows", [{"X_test": X_TEST, "y_test": Y_TEST}, {"cv": 2}])
def test_frames_with_their_bytes_in_the_other_order_are_frames_like_others(rows):
    """As files of astronomers and old Fortran have them."""
    other = {"X_test": pd.DataFrame(X_TEST.astype(">f8"))} if "X_test" in rows else {}
    expected = ls.value(X, Y, **rows, model="tree", support=Nearest(4))
    found = ls.value(pd.DataFrame(X.astype(">f8")), Y.astype(">i8"), **rows | other, model="tree", support=Nearest(4))
    assert (found.values == expected.values).all()


def test_arguments_are_left_as_they_were():
    data = X.copy(), Y.copy(), X_TEST.copy(), Y_TEST.copy()
    ls.value(X, Y, X_TEST, Y_TEST, model=LogisticRegression(), support=Everything(max_size=4))
    for before, after in zip(data, (X, Y, X_TEST, Y_TEST), strict=True):
        assert (before == after).all()
