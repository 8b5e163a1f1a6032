"""Random cases: a small table, a model, options. One number rebuilds a case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    NearestCentroid,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

import localshapley as ls

Draw = np.random.Generator


@dataclass
class Case:
    """What `value` is called with, and what the call is compared with besides the definition.

    Attributes
    ----------
    number : int
        Rebuilds the case.
    rows : tuple
        `X, y, X_test, y_test`; the last two are None with `cv`.
    options : dict
        Keyword arguments, `model` among them.
    twist : str
        What else is done: see `run.TWISTS`.
    """

    number: int
    rows: tuple[Any, Any, Any, Any]
    options: dict[str, Any]
    twist: str

    def __str__(self) -> str:
        X, y, X_test, _ = self.rows
        kind = f"{type(X).__name__} {np.shape(X) if isinstance(X, list) else X.shape} {getattr(X, 'dtype', '')}".strip()
        tests = "" if X_test is None else f", {len(X_test) if isinstance(X_test, list) else X_test.shape[0]} tests"
        named = ", ".join(f"{name}={' '.join(repr(value).split())}" for name, value in self.options.items())
        return f"X {kind}, y {type(y).__name__}{tests}; {named}; {self.twist}"


def draw(number: int) -> Case:
    """Draw the case of a number."""
    rng = np.random.default_rng(number)
    classifies = chance(rng, 0.6)
    trained = pick(rng, *["compiled"] * 24, "slow", "slow", "Estimator", "Refit")
    folded = chance(rng, 0.3)
    n_rows = (pick(rng, 4, 4, 5, 5, 6) if trained == "compiled" else 4) + folded
    n_tests = int(rng.integers(1, 4))
    numbers = draw_numbers(rng, n_rows + n_tests)
    labels = draw_labels(rng, n_rows + n_tests, numbers, classifies)
    owners = dress_owners(rng, n_rows) if chance(rng, 0.15) else None
    mixed = chance(rng, 0.08) and trained != "Refit"
    wrapped = draw_model(rng, classifies, trained == "slow", numbers)
    both = mixed_table(rng, numbers) if mixed else numbers
    model = wrap(rng, wrapped, both, mixed, trained)
    X, X_test = dress(rng, both[:n_rows], both[n_rows:]) if not mixed else (both.iloc[:n_rows], both.iloc[n_rows:])
    y, y_test = dress_labels(rng, labels[:n_rows], X), labels[n_rows:]
    if not isinstance(y, np.ndarray) and not isinstance(y, pd.Series) and chance(rng, 0.5):
        y_test = y_test.tolist()
    options: dict[str, Any] = {"model": model}
    if folded:
        X_test = y_test = None
        options["cv"] = draw_folds(rng, n_rows)
    options |= draw_options(rng, wrapped, classifies, n_rows, n_tests, owners, folded)
    twist = pick(rng, *["repeat"] * 3, *["store"] * 4, *["saved"] * 2, "frame", "frame", "per_test", "n_jobs", "plan")
    if twist == "n_jobs" and (trained != "compiled" and not chance(rng, 0.05)):  # processes take their time
        twist = "repeat"
    if twist == "plan" and not chance(rng, 0.1):  # which times trainings
        twist = "saved"
    return Case(number, (X, y, X_test, y_test), options, twist)


def pick(rng: Draw, *options: Any) -> Any:
    """One of the options."""
    return options[int(rng.integers(len(options)))]


def chance(rng: Draw, share: float) -> bool:
    return bool(rng.random() < share)


# Numbers and labels


def draw_numbers(rng: Draw, n: int) -> np.ndarray:
    """Columns of numbers: mostly without ties, sometimes on a grid or with equal rows."""
    n_columns = int(rng.integers(1, 4))
    kind = pick(rng, "normal", "normal", "normal", "grid", "integers", "counts", "scales")
    if kind == "grid":
        out = rng.integers(-4, 5, (n, n_columns)) / 4
    elif kind == "integers":
        out = rng.integers(-9, 10, (n, n_columns)).astype(float)
    elif kind == "counts":
        out = rng.integers(0, 6, (n, n_columns)).astype(float)
    else:
        out = rng.normal(size=(n, n_columns))
    if kind == "scales":
        out *= 10.0 ** rng.integers(-2, 3, n_columns)
    if chance(rng, 0.25):  # equal rows
        out[rng.integers(n)] = out[rng.integers(n)]
        out[rng.integers(n)] = out[rng.integers(n)]
    return out


def draw_labels(rng: Draw, n: int, numbers: np.ndarray, classifies: bool) -> np.ndarray:
    """Classes, of which the training rows have at least two, or amounts."""
    if not classifies:
        y = numbers @ rng.normal(size=numbers.shape[1]) + rng.normal(size=n) * pick(rng, 0.1, 1.0)
        return np.round(y).astype(np.int64) if chance(rng, 0.2) else y
    n_classes = pick(rng, 2, 2, 2, 3)
    codes = rng.integers(0, n_classes, n)
    codes[rng.permutation(4)[:2]] = 0, 1
    names = pick(
        rng,
        np.arange(3),
        np.arange(3),
        np.array(["no", "yes", "maybe"]),
        np.array([-1, 1, 5]),
        np.array([3.0, 1.0, 2.0]),
    )
    if n_classes == 2 and chance(rng, 0.1):
        names = np.array([False, True])
    return names[codes]


def dress_labels(rng: Draw, y: np.ndarray, X: Any) -> Any:
    """Labels as an array, a list, a Series or a categorical."""
    kind = pick(
        rng, *["array"] * 3, "list", "series", "categorical", "object", "nullable", "column", "polars", "swapped"
    )
    index = X.index if isinstance(X, pd.DataFrame) else None
    if kind == "list":
        return y.tolist()
    if kind == "series":
        return pd.Series(y, index=index, name="label")
    if kind == "categorical" and y.dtype.kind in "iU":
        return pd.Series(pd.Categorical(y), index=index)
    if kind == "nullable":
        return pd.Series(y, index=index).convert_dtypes()
    if kind == "column":
        return y[:, None]
    if kind == "polars":
        return __import__("polars").Series("label", y)
    if kind == "swapped":
        return y.astype(y.dtype.newbyteorder(">"))
    return y.astype(object) if kind == "object" and y.dtype.kind == "U" else y


def dress_owners(rng: Draw, n: int) -> Any:
    owners = np.array(["a", "b", "c", "d"])[rng.integers(0, pick(rng, 2, 3, 4), n)]
    return pick(rng, owners, owners.tolist(), pd.Series(owners, name="owner"))


# Tables


def dress(rng: Draw, *tables: np.ndarray) -> list[Any]:
    """The same numbers as an array of some type, a list, a frame or a sparse matrix."""
    kind = pick(rng, *["array"] * 6, *["frame"] * 4, *FORMS)
    if kind == "frame":
        return dress_frames(rng, tables)
    form = FORMS.get(kind, np.asarray)
    return [form(table) for table in tables]


def as_polars(table: np.ndarray) -> Any:
    polars = __import__("polars")
    return polars.DataFrame({f"x{i}": column for i, column in enumerate(table.T)})


def read_only(table: np.ndarray) -> np.ndarray:
    table = table.copy()
    table.flags.writeable = False
    return table


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": np.ndarray.tolist,
    "tuples": lambda table: [tuple(row) for row in table.tolist()],
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_matrix,
    "csr array": sparse.csr_array,
    "float32": lambda table: table.astype(np.float32),
    "int64": lambda table: np.round(table).astype(np.int64),
    "int8": lambda table: np.round(table).clip(-100, 100).astype(np.int8),
    "uint8": lambda table: np.round(abs(table)).clip(0, 200).astype(np.uint8),
    "bool": lambda table: table > 0,
    "object": lambda table: table.astype(object),
    "big-endian": lambda table: table.astype(">f8"),
    "columns first": np.asfortranarray,
    "strided": lambda table: np.repeat(table, 2, axis=0)[::2],
    "read-only": read_only,
    "polars": as_polars,
}
"""Other ways to write an array."""


def dress_frames(rng: Draw, tables: Sequence[np.ndarray]) -> list[pd.DataFrame]:
    """Frames with odd indexes, columns and types."""
    n_columns = tables[0].shape[1]
    columns = pick(rng, list("abc"), [0, 1, 2], ["x y", "é", ""], pd.MultiIndex.from_product([["a"], [1, 2, 3]]))
    frames = [pd.DataFrame(table, columns=columns[:n_columns]) for table in tables]
    kind = pick(rng, "float", "float", "float32", "Float64", "Int64", "int", "bool", "mixed")
    if kind in ("Float64", "float32"):
        frames = [frame.astype(kind) for frame in frames]
    elif kind in ("Int64", "int", "bool"):
        frames = [frame.round().astype("int64").astype(kind) for frame in frames]
    elif kind == "mixed":
        frames = [frame.astype({frame.columns[0]: "float32"}) for frame in frames]
    frames[0].index = odd_index(rng, len(frames[0]))
    return frames


def odd_index(rng: Draw, n: int) -> pd.Index:
    """An index that does not count rows."""
    return pick(
        rng,
        pd.RangeIndex(n),
        pd.Index(rng.permutation(n)),
        pd.Index([f"id{i}" for i in range(n)], name="id"),
        pd.Index(np.zeros(n, dtype=int)),
        pd.date_range("2020-01-01", periods=n),
        pd.MultiIndex.from_arrays([np.arange(n) // 2, np.arange(n) % 2], names=["a", "b"]),
        pd.Index(np.arange(n) / 2),
    )


def mixed_table(rng: Draw, numbers: np.ndarray) -> pd.DataFrame:
    """A table with numbers, categories, bools, dates and gaps."""
    n = len(numbers)
    frame = pd.DataFrame(numbers, columns=[f"x{i}" for i in range(numbers.shape[1])])
    if chance(rng, 0.4):
        frame = frame.round().astype(pick(rng, "int64", "int32", "Int64"))
    words = rng.choice(["red", "green", "blue"], n)
    frame["word"] = pick(rng, pd.Series(words), pd.Series(pd.Categorical(words)), pd.Series(words, dtype="string"))
    if chance(rng, 0.5):
        frame["flag"] = rng.integers(0, 2, n).astype(bool)
    if chance(rng, 0.3):
        frame["day"] = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 90, n), unit="D")
    for name in frame.columns:
        if chance(rng, 0.2) and frame[name].dtype.kind not in "bi":
            frame.loc[int(rng.integers(n)), name] = np.nan if frame[name].dtype.kind == "f" else None
    return frame


# Models


def draw_model(rng: Draw, classifies: bool, slow: bool, numbers: np.ndarray) -> Any:
    """A classifier or regressor: `slow` ones have no compiled trainer."""
    compiled, slow_ones = (CLASSIFIERS, SLOW_CLASSIFIERS) if classifies else (REGRESSORS, SLOW_REGRESSORS)
    model = pick(rng, *(slow_ones if slow else compiled))(rng)
    if isinstance(model, SVC | SVR) and abs(numbers).max() > 5:  # or rounding keeps libsvm from its tolerance for ever
        model.set_params(tol=1e-8, kernel="rbf" if model.kernel == "poly" else model.kernel)
    return model


def knn(kind: type) -> Callable[[Draw], Any]:
    def make(rng: Draw) -> Any:
        weights = pick(rng, "uniform", "distance")
        metric = pick(rng, {}, {}, {"metric": "manhattan"}, {"p": 3}, {"metric": "chebyshev"})
        return kind(int(rng.integers(1, 4)), weights=weights, **metric)

    return make


def radius(kind: type) -> Callable[[Draw], Any]:
    return lambda rng: kind(float(pick(rng, 0.6, 1.1, 2.3)), weights=pick(rng, "uniform", "distance"))


def tree(kind: type, *criteria: str) -> Callable[[Draw], Any]:
    return lambda rng: kind(
        criterion=pick(rng, *criteria),
        max_depth=pick(rng, None, None, 1, 2),
        min_samples_leaf=pick(rng, 1, 1, 2),
        max_features=pick(rng, None, "sqrt", 1),
        random_state=pick(rng, None, 3),
    )


def forest(kind: type) -> Callable[[Draw], Any]:
    return lambda rng: kind(
        int(rng.integers(1, 3)),
        max_depth=pick(rng, None, 1),
        bootstrap=chance(rng, 0.5),
        random_state=pick(rng, None, 5),
    )


def weights_of_classes(rng: Draw) -> Any:
    return pick(rng, None, None, "balanced")


def svm(kind: type) -> Callable[[Draw], Any]:
    def make(rng: Draw) -> Any:
        more = {"class_weight": weights_of_classes(rng)} if kind is SVC else {"epsilon": pick(rng, 0.0, 0.1)}
        kernel, gamma = pick(rng, "rbf", "rbf", "linear", "poly"), pick(rng, "scale", "auto", 0.5)
        C = pick(rng, 0.1, 1.0, 10.0)
        C = C if kernel == "rbf" else min(C, 1.0)  # or libsvm takes 1e8 steps where classes nearly touch
        return kind(kernel=kernel, gamma=gamma, C=C, tol=1e-10, **more)

    return make


CLASSIFIERS: list[Callable[[Draw], Any]] = [
    knn(KNeighborsClassifier),
    knn(KNeighborsClassifier),
    radius(RadiusNeighborsClassifier),
    svm(SVC),
    lambda rng: LinearSVC(
        C=pick(rng, 0.1, 1.0), dual=False, tol=1e-12, max_iter=100_000, class_weight=weights_of_classes(rng)
    ),
    lambda rng: LogisticRegression(
        C=pick(rng, 0.1, 1.0),
        tol=1e-12,
        max_iter=10_000,
        class_weight=weights_of_classes(rng),
        fit_intercept=chance(rng, 0.8),
    ),
    lambda rng: RidgeClassifier(pick(rng, 0.1, 1.0), tol=1e-12, class_weight=weights_of_classes(rng)),
    tree(DecisionTreeClassifier, "gini", "entropy", "log_loss"),
    tree(ExtraTreeClassifier, "gini", "entropy"),
    forest(RandomForestClassifier),
    forest(ExtraTreesClassifier),
    lambda rng: BaggingClassifier(n_estimators=2, random_state=pick(rng, None, 7)),
    lambda rng: GaussianNB(),
]
SLOW_CLASSIFIERS: list[Callable[[Draw], Any]] = [
    lambda rng: NuSVC(nu=pick(rng, 0.2, 0.5)),
    lambda rng: LinearDiscriminantAnalysis(solver=pick(rng, "svd", "lsqr")),
    lambda rng: SGDClassifier(loss=pick(rng, "hinge", "log_loss"), max_iter=5, random_state=pick(rng, None, 1)),
    lambda rng: Perceptron(max_iter=5),
    lambda rng: BernoulliNB(),
    lambda rng: make_pipeline(MinMaxScaler(clip=True), MultinomialNB()),
    lambda rng: NearestCentroid(),
    lambda rng: DummyClassifier(strategy=pick(rng, "prior", "most_frequent", "uniform")),
    lambda rng: BaggingClassifier(GaussianNB(), n_estimators=2),
    lambda rng: GradientBoostingClassifier(n_estimators=2, max_depth=2),
    lambda rng: AdaBoostClassifier(n_estimators=2),
    lambda rng: RadiusNeighborsClassifier(0.8, outlier_label="most_frequent"),
    lambda rng: DecisionTreeClassifier(max_leaf_nodes=3),
    lambda rng: QuadraticDiscriminantAnalysis(reg_param=0.5),
    lambda rng: VotingClassifier(
        [("a", GaussianNB()), ("b", DecisionTreeClassifier())], voting=pick(rng, "soft", "hard")
    ),
    lambda rng: OneVsRestClassifier(GaussianNB()),
    lambda rng: ComplementNB(),
    lambda rng: HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=1),
    lambda rng: LogisticRegression(l1_ratio=1, solver="saga", max_iter=20),
]
REGRESSORS: list[Callable[[Draw], Any]] = [
    knn(KNeighborsRegressor),
    radius(RadiusNeighborsRegressor),
    svm(SVR),
    lambda rng: LinearRegression(fit_intercept=chance(rng, 0.8)),
    lambda rng: Ridge(pick(rng, 0.1, 1.0), tol=1e-12, fit_intercept=chance(rng, 0.8)),
    lambda rng: Ridge(pick(rng, 0.1, 1.0), tol=1e-12),
    lambda rng: Lasso(pick(rng, 0.01, 0.1), tol=1e-12, max_iter=100_000),
    lambda rng: ElasticNet(pick(rng, 0.01, 0.1), tol=1e-12, max_iter=100_000),
    tree(DecisionTreeRegressor, "squared_error"),
    tree(ExtraTreeRegressor, "squared_error"),
    forest(RandomForestRegressor),
    forest(ExtraTreesRegressor),
    lambda rng: BaggingRegressor(n_estimators=2),
]
SLOW_REGRESSORS: list[Callable[[Draw], Any]] = [
    lambda rng: LinearSVR(C=0.5, tol=1e-3, max_iter=1000, random_state=1),
    lambda rng: SGDRegressor(max_iter=5, random_state=pick(rng, None, 1)),
    lambda rng: BayesianRidge(),
    lambda rng: KernelRidge(kernel=pick(rng, "linear", "rbf")),
    lambda rng: DummyRegressor(strategy=pick(rng, "mean", "median")),
    lambda rng: GradientBoostingRegressor(n_estimators=2, max_depth=2),
    lambda rng: Ridge(positive=True),
    lambda rng: BaggingRegressor(Ridge(), n_estimators=2),
    lambda rng: DecisionTreeRegressor(criterion="absolute_error"),
    lambda rng: HuberRegressor(max_iter=20),
    lambda rng: TransformedTargetRegressor(Ridge(), func=np.arcsinh, inverse_func=np.sinh),
    lambda rng: TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
    lambda rng: HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=1),
    lambda rng: GaussianProcessRegressor(alpha=0.1),
    lambda rng: PLSRegression(n_components=1),
]


def wrap(rng: Draw, model: Any, table: Any, mixed: bool, trained: str) -> Any:
    """The model bare, in a pipeline, or in one of `localshapley.models`."""
    if mixed:
        words = [name for name in table.columns if name == "word"]
        flags = [name for name in table.columns if name not in ("word", "day")]
        steps = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", sparse_output=chance(rng, 0.5)), words), (SimpleImputer(), flags)
        )
        model = make_pipeline(steps, model)
        return model
    if trained == "Estimator":
        return ls.models.Estimator(model)
    if trained != "Refit" and chance(rng, 0.65):
        return model
    steps = pick(
        rng,
        [],
        ["passthrough"],
        [StandardScaler()],
        [MinMaxScaler()],
        [SimpleImputer()],
        [StandardScaler(), "passthrough"],
        [PolynomialFeatures(2)],
        [make_pipeline(MinMaxScaler())],
        [SelectKBest(k=1)],
    )
    pipeline = make_pipeline(*steps, model)
    return ls.models.Refit(pipeline) if trained == "Refit" else pipeline


# Options


def draw_folds(rng: Draw, n: int) -> Any:
    """Folds as a number, a splitter or pairs, which may overlap or leave rows out."""
    kind = pick(rng, "number", "splitter", "pairs", "pairs", "overlap", "shuffle", "repeated")
    if kind == "number":
        return int(rng.integers(2, 4))
    if kind == "splitter":
        return KFold(int(rng.integers(2, 4)), shuffle=True, random_state=0)
    if kind == "shuffle":
        return ShuffleSplit(2, test_size=2, random_state=0)
    if kind == "repeated":
        return RepeatedKFold(n_splits=2, n_repeats=2, random_state=0)
    order = rng.permutation(n)
    cut = int(rng.integers(2, n - 1))
    if kind == "pairs":
        return [(order[:cut], order[cut:]), (order[cut:], order[:cut])]
    return [(order[:cut], order[cut : cut + 1]), (order[1:], order[:1])]


def draw_options(
    rng: Draw, model: Any, classifies: bool, n_rows: int, n_tests: int, owners: Any, folded: bool
) -> dict[str, Any]:
    """Everything but the rows, the model and the folds."""
    out: dict[str, Any] = {}
    out["support"] = draw_support(rng, n_rows, n_tests, folded)
    if classifies:
        out["score"] = pick(rng, None, None, "confidence", "accuracy", "margin", "log_loss", uneven)
    else:
        out["score"] = pick(rng, None, None, "squared_error", "absolute_error", off_by)
    out["method"] = pick(rng, *["exact"] * 4, *["auto"] * 2, "subset-centric", "baseline", "loo", *DRAWN, "random")
    if out["method"] in DRAWN:
        out["budget"] = int(rng.integers(20, 50))
    if owners is not None:
        out["owners"] = owners
    if chance(rng, 0.15):
        out["empty"] = pick(rng, 0.0, -0.5)
    if chance(rng, 0.3) and out["method"] in KEEPS_TESTS:
        out["per_test"] = True
    if chance(rng, 0.3):
        out["seed"] = int(rng.integers(5))
    return {name: value for name, value in out.items() if value is not None and (name, value) != ("method", "auto")}


KEEPS_TESTS = ("auto", "exact", "sample", "subset-centric", "baseline")
"""Methods that can keep values to each test row."""


DRAWN = ("sample", "local-mc", "global-mc", "tmc", "pivot", "complementary")
"""Methods that draw coalitions."""


def draw_support(rng: Draw, n_rows: int, n_tests: int, folded: bool) -> Any:
    """A support, or None for that of the model."""
    supports = ls.supports
    lists = [rng.permutation(n_rows)[: rng.integers(0, 5)].tolist() for _ in range(n_tests)]
    return pick(
        rng,
        *[None] * 2,
        *[supports.Everything()] * 3,
        supports.Everything(max_size=4),
        supports.Nearest(3),
        supports.Nearest(4, standardise=True),
        supports.Nearest(3, metric="manhattan"),
        supports.Radius(1.3),
        supports.Kernel(0.4),
        supports.CompactKernel(1.5),
        *[supports.Given(lists)] * (not folded),
    )


def uneven(y_true: Any, prediction: Any) -> float:
    """A score of labels that is not accuracy."""
    return 1.5 if y_true == prediction else -0.25 * len(str(prediction))


def off_by(y_true: float, prediction: float) -> float:
    """A score of numbers."""
    return -min(abs(y_true - prediction), 3.0)
