"""The arguments of a valuation, checked, and the stages up to the games put together."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags

from localshapley import scores
from localshapley.arrays import AnyArray, Indices, Ints
from localshapley.errors import InvalidArgumentError, LocalShapleyWarning, unknown_name
from localshapley.games import SupportGraph
from localshapley.inputs.folds import Fold, make_folds
from localshapley.inputs.task import Task
from localshapley.models.dispatch import choose_trainer
from localshapley.models.estimator import Estimator, final_step, seeded
from localshapley.models.named import named
from localshapley.models.owners import Owners, of_owners
from localshapley.models.trainer import Trainer
from localshapley.supports.base import Space, Support
from localshapley.supports.default import default_support
from localshapley.supports.embedding import Embedding
from localshapley.supports.given import Given

MANY_NUMBERS = 50
"""Floats that are whole, but more different ones than this, are amounts and not classes to a model's name."""


@dataclass(frozen=True)
class Problem:
    """A valuation that is ready to be paid for: games, and a trainer for their coalitions."""

    task: Task
    graph: SupportGraph
    trainer: Trainer
    support: Support
    estimator: Any
    ids: pd.Index | None
    notes: list[str] = field(default_factory=list)
    owners: Owners | None = None

    @property
    def model(self) -> str:
        """The estimator with its settings, on one line."""
        return _describe(self.estimator)


def pose(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    model: Any,
    cv: Any = None,
    support: Support | None = None,
    score: Any = None,
    empty: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    on_error: str = "raise",
    owners: Any = None,
) -> Problem:
    """Check the arguments of `value`, train the reference models and find the games."""
    X, X_test = _known_table(X), _known_table(X_test)
    checked = check(X, y, X_test, y_test, model=model, cv=cv, score=score, empty=empty, seed=seed)
    task, estimator, notes = checked.task, checked.estimator, checked.notes
    held = None if owners is None else Owners(owners, task.X.shape[0])
    check_n_jobs(n_jobs)
    if on_error not in ("raise", "skip"):
        raise unknown_name("on_error", on_error, ("raise", "skip"))
    if support is not None and not isinstance(support, Support):
        raise InvalidArgumentError(
            f"support must be one of localshapley.supports, such as supports.Nearest(10), or None; got {support!r}."
        )
    if checked.folds is None:
        support, found = _find_supports(support, task, estimator, X, X_test, notes)
    else:
        support, found = _find_by_folds(support, task, estimator, X, checked.folds, notes)
    graph = SupportGraph(found, task.X.shape[0])
    empty_supports = int((graph.support_sizes == 0).sum())
    if empty_supports:
        notes.append(
            f"{empty_supports} of {graph.n_tests} test rows have an empty support and add nothing; "
            f"a larger support ({support.larger()}) would reach them."
        )
    trainer, note = choose_trainer(
        model if isinstance(model, Estimator) else estimator, task, n_jobs, skip_errors=on_error == "skip"
    )
    notes += [note] if note else []
    if held is None:
        return Problem(task, graph, trainer, support, estimator, checked.ids, notes)
    notes.append("an owner joins a coalition with all of its rows.")
    return Problem(task, held.graph(graph), of_owners(trainer, held), support, estimator, held.names, notes, held)


def _find_supports(
    support: Support | None, task: Task, estimator: Any, raw: Any, raw_test: Any, notes: list[str]
) -> tuple[Support, list[Indices]]:
    """Train the model on all rows, and find the support of every test row."""
    reference = _train_reference(estimator, task.X, task.y, task.seed)
    if task.score.source in ("proba", "margin"):
        _check_decisions(reference, task.score.name)
    if support is None:
        support, induced = default_support(final_step(reference))
        note = (
            f"locality is assumed, not induced: {type(final_step(estimator)).__name__} has no support of its own, "
            f"so {support} was taken; locality_gap() tells how much that loses."
        )
        if not induced and note not in notes:
            notes.append(note)
    return support, support(_space(reference, task.X, task.X_test, raw, raw_test, task.y, task.seed))


def _find_by_folds(
    support: Support | None, task: Task, estimator: Any, raw: Any, folds: list[Fold], notes: list[str]
) -> tuple[Support, list[Indices]]:
    """Find supports fold by fold among the rows outside; test rows are ordered as in `_tests_of`."""
    if isinstance(support, Given) or (isinstance(support, Embedding) and isinstance(support.encoder, tuple | list)):
        raise InvalidArgumentError(
            f"support {type(support).__name__} names rows or vectors for one set of test rows, cv makes several; give "
            "another support, or X_test and y_test instead of cv."
        )
    found: list[Indices] = []
    chosen = support
    for train, test in folds:
        part = replace(
            task,
            X=_safe_indexing(task.X, train),
            y=task.y[train],
            X_test=_safe_indexing(task.X, test),
            y_test=task.y[test],
        )
        chosen, inside = _find_supports(
            support, part, estimator, _safe_indexing(raw, train), _safe_indexing(raw, test), notes
        )
        found += [train[rows].astype(np.int32) for rows in inside]
    assert chosen is not None
    order = np.argsort(np.concatenate([test for _, test in folds]), kind="stable")
    return chosen, [found[t] for t in order]


def _tests_of(folds: list[Fold]) -> Ints:
    """Test rows of all folds, ascending."""
    return np.sort(np.concatenate([test for _, test in folds]))


@dataclass(frozen=True)
class Checked:
    """Arguments that can be worked with."""

    task: Task
    estimator: Any
    ids: pd.Index | None
    notes: list[str]
    folds: list[Fold] | None = None


def check(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    model: Any,
    cv: Any = None,
    score: Any = None,
    empty: float | None = None,
    seed: int = 0,
) -> Checked:
    """Check rows, labels, model and score, and bring them to one form."""
    rows = _check_rows("X", X)
    labels = _check_labels("y", y, rows.shape[0], "X")
    folds = None
    if cv is not None:
        if X_test is not None or y_test is not None:
            raise InvalidArgumentError("give either X_test and y_test, or cv; with cv the rows test each other.")
        estimator = _check_model(model, labels)
        if get_tags(estimator).input_tags.pairwise:
            raise InvalidArgumentError("cv is not for models that take a precomputed kernel; give X_test and y_test.")
        folds = make_folds(cv, labels, classifier=is_classifier(estimator), seed=seed)
        tests = _tests_of(folds)
        X_test, y_test = _safe_indexing(rows, tests), labels[tests]
    test_rows = _check_rows("X_test", X_test)
    test_labels = _check_labels("y_test", y_test, test_rows.shape[0], "X_test")
    if rows.shape[1] != test_rows.shape[1]:
        raise InvalidArgumentError(
            f"X_test has {test_rows.shape[1]} features, X has {rows.shape[1]}; both need the same columns."
        )
    ids = X.index if isinstance(X, pd.DataFrame) else y.index if isinstance(y, pd.Series) else None
    estimator = _check_model(model, labels)
    if get_tags(estimator).input_tags.pairwise and rows.shape[0] != rows.shape[1]:
        raise InvalidArgumentError(
            "model takes a precomputed kernel: X must be the square matrix between the training rows, X_test that of "
            f"test rows by training rows; X has shape {rows.shape}."
        )
    rows, test_rows = _in_one_form(rows, test_rows, estimator)
    notes: list[str] = []
    classes = codes = None
    unseen = np.empty(0)
    if is_classifier(estimator):
        try:
            classes, codes = np.unique(labels, return_inverse=True)
        except TypeError:
            raise InvalidArgumentError(
                "y mixes labels of different kinds, such as text and numbers; make them one kind, y.astype(str)."
            ) from None
        if len(classes) == 1:
            raise InvalidArgumentError(
                f"y holds one class only ({classes.tolist()[0]!r}); a classifier's rows are worth something only with "
                "two or more. Check the column, or use a regressor for numbers."
            )
        test_labels, unseen = _encode(test_labels, classes)
        if len(unseen):
            names = ", ".join(map(repr, unseen.tolist()[:5]))
            note = f"y_test holds labels that y does not have ({names}); they count as wrong whatever is learnt."
            warnings.warn(note, LocalShapleyWarning, stacklevel=4)
            notes.append(note)
    else:
        labels, test_labels = _check_numbers("y", labels), _check_numbers("y_test", test_labels)
    if empty is not None and (not isinstance(empty, int | float | np.number) or not np.isfinite(empty)):
        raise InvalidArgumentError(f"empty must be a finite score or None; got {empty!r}.")
    chosen = scores.resolve(
        score,
        "classifier" if classes is not None else "regressor",
        None if classes is None else (classes, unseen),
        hasattr(estimator, "predict_proba"),
    )
    task = Task(rows, labels, test_rows, test_labels, classes, codes, chosen, empty, seed)
    return Checked(task, estimator, ids, notes, folds)


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse anything but None and a whole number other than 0."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0):
        raise InvalidArgumentError(f"n_jobs must be None, a number of processes, or -1 for all cores; got {n_jobs!r}.")


def _known_table(X: Any) -> Any:
    """Tables of other libraries (polars, pyarrow) as pandas, sparse ones in a form that has rows."""
    if sparse.issparse(X):
        return sparse.csr_matrix(X)
    return X.to_pandas().rename_axis("row") if hasattr(X, "to_pandas") else X


def _check_rows(name: str, X: Any) -> Any:
    """Return rows as a float array, a CSR matrix or a DataFrame."""
    if X is None:
        raise InvalidArgumentError(
            f"{name} is missing; give training rows and test rows (X, y, X_test, y_test), or only X, y and cv=5."
        )
    if isinstance(X, pd.DataFrame):
        rows: Any = X
    elif sparse.issparse(X):
        rows = sparse.csr_matrix(X)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()  # and sorts, which distances between sparse rows rely on
    else:
        try:
            rows = np.asarray(X)
        except ValueError:
            raise InvalidArgumentError(f"{name} has rows of different lengths; give each the same features.") from None
        if rows.ndim != 2:
            advice = {1: f"reshape one feature with {name}.reshape(-1, 1)"}.get(
                rows.ndim, f"flatten each row with {name}.reshape(len({name}), -1)"
            )
            raise InvalidArgumentError(f"{name} must have two dimensions (rows, features); got {rows.ndim}: {advice}.")
        if rows.dtype == object or rows.dtype.kind in "US":
            try:
                rows = rows.astype(np.float64)
            except (TypeError, ValueError):
                raise InvalidArgumentError(
                    f"{name} holds text; give a DataFrame and a Pipeline that encodes it, or numbers."
                ) from None
    if rows.shape[0] == 0 or rows.shape[1] == 0:
        raise InvalidArgumentError(f"{name} is empty: it has {rows.shape[0]} rows and {rows.shape[1]} features.")
    return rows


def _check_labels(name: str, y: Any, n_rows: int, rows_name: str) -> AnyArray:
    if y is None:
        raise InvalidArgumentError(f"{name} is missing; give one label or number for each row of {rows_name}.")
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InvalidArgumentError(f"{name} must be one column; got shape {labels.shape}.")
    if len(labels) != n_rows:
        raise InvalidArgumentError(
            f"{name} has {len(labels)} entries, {rows_name} has {n_rows} rows; they must be equally long."
        )
    missing = np.flatnonzero(pd.isna(labels))
    if len(missing):
        raise InvalidArgumentError(
            f"{name} is missing (NaN) in {len(missing)} places, first at row {missing[0]}; drop or fill these rows."
        )
    if labels.dtype == object and all(isinstance(label, str) for label in labels):
        labels = labels.astype(str)
    return labels


def _check_numbers(name: str, y: AnyArray) -> AnyArray:
    try:
        numbers = y.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"{name} must hold numbers for a regressor; got {y.dtype} such as {y[0]!r}. Use a classifier for labels."
        ) from None
    if not np.isfinite(numbers).all():
        where = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise InvalidArgumentError(f"{name} is infinite at row {where}; drop or bound it.")
    return numbers


def _check_model(model: Any, labels: AnyArray) -> Any:
    """The estimator behind the `model` argument."""
    if isinstance(model, str):
        amounts = labels.dtype.kind == "f" and (bool((labels % 1 != 0).any()) or len(np.unique(labels)) > MANY_NUMBERS)
        model = named(model, regression=amounts or model == "ridge")
    estimator = model.estimator if isinstance(model, Estimator) else model
    if isinstance(estimator, type):
        raise InvalidArgumentError(f"model is a class; give an instance of it: {estimator.__name__}().")
    if not hasattr(estimator, "fit") or not hasattr(estimator, "predict") or not hasattr(estimator, "get_params"):
        raise InvalidArgumentError(
            f"model must be a scikit-learn estimator, a name or a localshapley.models object; got {estimator!r}."
        )
    if not (is_classifier(estimator) or is_regressor(estimator)):
        raise InvalidArgumentError(
            f"model must be a classifier or a regressor; {type(final_step(estimator)).__name__} is neither."
        )
    if getattr(final_step(estimator), "metric", None) == "precomputed":
        raise InvalidArgumentError("model has metric='precomputed'; give feature rows and a metric instead.")
    return estimator


def _in_one_form(rows: Any, test_rows: Any, estimator: Any) -> tuple[Any, Any]:
    """Bring both tables to one form: frames where the model may read columns by name, else arrays.

    NaN is let through only where the model says that it takes it.
    """
    frames = [r for r in (rows, test_rows) if isinstance(r, pd.DataFrame)]
    if len(frames) == 2:
        if list(rows.columns) != list(test_rows.columns):
            raise InvalidArgumentError(
                f"X_test has the columns {list(test_rows.columns)}, X has {list(rows.columns)}; "
                "they must be the same, in the same order."
            )
        numeric = all(pd.api.types.is_numeric_dtype(t) for t in rows.dtypes)
        if not numeric or _holds_estimators(estimator):
            _check_missing(rows, test_rows, estimator)
            return rows, test_rows
    out = []
    for name, table in (("X", rows), ("X_test", test_rows)):
        if isinstance(table, pd.DataFrame):
            try:
                table = table.to_numpy(dtype=np.float64)
            except (TypeError, ValueError):
                raise InvalidArgumentError(
                    f"{name} is a DataFrame with text columns, the other table is not; give both as DataFrames."
                ) from None
        out.append(table)
    if sparse.issparse(out[0]) != sparse.issparse(out[1]):
        raise InvalidArgumentError("X and X_test must both be sparse or both be dense.")
    _check_missing(out[0], out[1], estimator)
    return out[0], out[1]


def _check_missing(rows: Any, test_rows: Any, estimator: Any) -> None:
    takes_nan = _takes_missing(estimator)
    for name, table in (("X", rows), ("X_test", test_rows)):
        values = table.select_dtypes("number").to_numpy() if isinstance(table, pd.DataFrame) else table
        values = values.data if sparse.issparse(values) else values
        values = np.asarray(values, dtype=np.float64)
        if np.isinf(values).any():
            raise InvalidArgumentError(f"{name} holds infinity; drop or bound these entries.")
        if np.isnan(values).any() and not takes_nan:
            raise InvalidArgumentError(
                f"{name} holds {int(np.isnan(values).sum())} missing values (NaN), which "
                f"{type(final_step(estimator)).__name__} does not take; drop these rows, or put SimpleImputer() before "
                "the model in a Pipeline."
            )


def _takes_missing(estimator: Any) -> bool:
    """Whether missing values are filled, or taken by every step that they reach."""
    if not isinstance(estimator, Pipeline):
        return bool(get_tags(estimator).input_tags.allow_nan)
    *transformers, (_, model) = estimator.steps
    for _, step in transformers:
        if not hasattr(step, "fit"):
            continue
        module = type(step).__module__
        if module.startswith(("sklearn.impute", "sklearn.compose")) or not module.startswith("sklearn."):
            return True  # it fills them, or nobody can know
        if not _takes_missing(step):
            return False
    return _takes_missing(model)


def _holds_estimators(estimator: Any) -> bool:
    """Whether other estimators are inside, which may read columns by name."""
    return any(hasattr(value, "get_params") for value in estimator.get_params(deep=True).values())


def _check_decisions(reference: Any, score: str) -> None:
    """Refuse a classifier without probabilities whose decisions are not one number a class."""
    name = type(final_step(reference)).__name__
    if hasattr(reference, "predict_proba"):
        return
    if not hasattr(reference, "decision_function"):
        raise InvalidArgumentError(
            f"score {score!r} needs predict_proba or decision_function, which {name} does not have; "
            "use score='accuracy'."
        )
    n_classes = len(reference.classes_)
    if n_classes > 2 and getattr(final_step(reference), "decision_function_shape", "ovr") == "ovo":
        raise InvalidArgumentError(
            f"score {score!r} needs one decision value for each of the {n_classes} classes, {name} gives one for each "
            "pair; set decision_function_shape='ovr', or use score='accuracy'."
        )


def _encode(labels: AnyArray, classes: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Codes of labels; a label that is no class has code −1, −2, ... and is listed as unseen."""
    position = {label: code for code, label in enumerate(classes.tolist())}
    unseen: dict[Any, int] = {}
    codes = np.array(
        [position[v] if v in position else unseen.setdefault(v, -1 - len(unseen)) for v in labels.tolist()],
        dtype=np.int64,
    )
    return codes, np.array(list(unseen), dtype=labels.dtype)


def _train_reference(estimator: Any, X: Any, y: AnyArray, seed: int) -> Any:
    """Train the model on all rows; what it refuses here is refused before anything is paid."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return seeded(estimator, seed).fit(X, y)
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(
            f"model {_describe(estimator)} cannot be trained on all of X and y: {error}"
        ) from error


def _space(reference: Any, X: Any, X_test: Any, raw: Any, raw_test: Any, y: AnyArray, seed: int) -> Space:
    """The space before the last step of a pipeline, else that of the rows."""
    model = reference
    while isinstance(model, Pipeline):
        if len(model.steps) > 1:
            X, X_test = model[:-1].transform(X), model[:-1].transform(X_test)
        model = model.steps[-1][1]
    tables = []
    for table in (X, X_test):
        if sparse.issparse(table):
            table = sparse.csr_matrix(table)
        elif isinstance(table, pd.DataFrame):
            table = table.to_numpy()
        tables.append(table)
    return Space(tables[0], tables[1], raw, raw_test, y, final_step(reference), seed)


def _describe(estimator: Any) -> str:
    """An estimator's settings on one line."""
    return " ".join(repr(estimator).split())
