"""XGBoost, LightGBM and CatBoost: what they need to be trained on a few rows, thousands of times. None is imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.pipeline import Pipeline

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.formatting import counted
from localshapley.notes import Note

LIBRARIES = ("xgboost", "lightgbm", "catboost")
REFUSALS = ("LightGBMError", "CatBoostError")
"""Errors by which they refuse rows; that of XGBoost is a `ValueError`."""

_SILENT: dict[str, dict[str, Any]] = {
    "xgboost": {"verbosity": 0},
    "lightgbm": {"verbosity": -1},
    "catboost": {"verbose": False, "allow_writing_files": False},
}
_VOICES = ("verbose", "verbosity", "verbose_eval", "logging_level", "silent")
_THREADS = {
    "xgboost": ("n_jobs", "nthread"),
    "lightgbm": ("n_jobs", "num_threads", "nthread", "nthreads"),
    "catboost": ("thread_count",),
}
_OBJECTIVES = {"xgboost": ("multi:softprob", "multi:softmax"), "lightgbm": ("multiclass", "softmax")}
_ANY_CLASSES: dict[str, dict[str, Any]] = {
    "xgboost": {"objective": "binary:logistic", "num_class": None},
    "lightgbm": {"objective": None, "num_class": 1},
}
"""Settings with which a library counts the classes itself, and takes the objective for several if there are several."""
_LEAST = ("min_samples_leaf", "min_child_samples", "min_data_in_leaf")
"""Settings that say how many rows a leaf has at least."""


def library_of(estimator: Any) -> str:
    """The boosting library that an estimator comes from, or is derived from; empty for all others."""
    for kind in type(estimator).__mro__:
        if (home := kind.__module__.partition(".")[0]) in LIBRARIES:
            return home
    return ""


def boosters_in(estimator: Any) -> Iterator[tuple[str, str, Any]]:
    """Library, prefix of the settings, and the model, of each boosted model of these libraries in an estimator."""
    if hasattr(estimator, "get_params"):
        inside = {f"{name}__": value for name, value in estimator.get_params(deep=True).items()}
        for prefix, value in {"": estimator, **inside}.items():
            library = "" if isinstance(value, type) else library_of(value)
            if library and hasattr(value, "get_params"):
                yield library, prefix, value


def open_states(estimator: Any) -> dict[str, None]:
    """Random states that are settings of a model, but not named among them as long as they are open."""
    return {
        f"{prefix}random_seed": None
        for library, prefix, model in boosters_in(estimator)
        if library == "catboost" and not {"random_seed", "random_state"} & set(model.get_params())
    }


def tamed(estimator: Any, *, alone: bool) -> Any:
    """The same estimator, changed in place: silent if nothing else was asked for, and ready for any classes.

    Parameters
    ----------
    estimator : a clone
    alone : bool
        Whether it is trained on so few rows that more than one thread would be in the way.
    """
    for library, prefix, model in list(boosters_in(estimator)):
        given = {name: value for name, value in model.get_params().items() if value is not None}
        new = {name: value for name, value in _SILENT[library].items() if name not in given}
        if any(name in given for name in _VOICES):
            new = {name: value for name, value in new.items() if name not in _VOICES}
        if alone:
            new |= _one_thread(library, given)
        if given.get("objective") in _OBJECTIVES.get(library, ()):
            new |= {name: value for name, value in _ANY_CLASSES[library].items() if name in given}
        estimator.set_params(**{f"{prefix}{name}": value for name, value in new.items()})
    return _coded(estimator)


def _one_thread(library: str, given: dict[str, Any]) -> dict[str, int]:
    """Settings for one thread where the number was left open, or is that of all cores."""
    names = [name for name in _THREADS[library] if name in given]
    if any(given[name] > 0 for name in names):
        return {}
    return dict.fromkeys(names or _THREADS[library][:1], 1)


def _coded(estimator: Any) -> Any:
    """XGBoost wants classes 0, 1, 2, ... without gaps; a coalition may lack one of them."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return estimator.set_params(**{name: _coded(last)})
    return LabelCoder(estimator) if library_of(estimator) == "xgboost" and is_classifier(estimator) else estimator


class LabelCoder(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is trained on numbers of the classes that there are, and answers with the classes.

    Parameters
    ----------
    estimator : classifier
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: AnyArray) -> LabelCoder:
        """Number the classes, and train."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.estimator_ = clone(self.estimator).fit(X, codes)
        return self

    def predict(self, X: Any) -> AnyArray:
        """Predict classes."""
        return self.classes_[self.estimator_.predict(X).astype(np.int64)]  # type: ignore[no-any-return]

    def predict_proba(self, X: Any) -> Floats:
        """Predict a probability for each of `classes_`."""
        return self.estimator_.predict_proba(X)  # type: ignore[no-any-return]


def note_on_splits(estimator: Any, sizes: Ints) -> Note | None:
    """What to say if most supports have too few rows for a split; None if they have enough.

    Parameters
    ----------
    estimator : tree, forest or boosted trees
    sizes : rows in the support of each test row
    """
    least = {name: value for name, value in _given(estimator).items() if name in _LEAST}
    name, rows = max(least.items(), key=lambda item: item[1], default=("", 1))
    small = int((sizes < 2 * rows).sum())
    if rows < 2 or 2 * small <= len(sizes):
        return None
    also = ", min_data_in_bin=1" if library_of(estimator) == "lightgbm" else ""
    text = (
        f"{type(estimator).__name__}({name}={rows}) splits no fewer than {counted(2 * rows, 'row')}, and {small} of "
        f"{counted(len(sizes), 'support')} have fewer: coalitions of these learn how frequent labels are, and "
        f"nothing from the features. A smaller {name}, such as {name}=1{also}, or a larger support lets them learn."
    )
    return Note("supports-too-small-to-split", text, setting=name, rows=rows, n_small=small, n_supports=len(sizes))


def _given(estimator: Any) -> dict[str, int]:
    """Settings that are whole numbers."""
    settings = estimator.get_params(deep=False).items() if hasattr(estimator, "get_params") else ()
    whole = (int, np.integer)
    return {name: int(value) for name, value in settings if isinstance(value, whole) and not isinstance(value, bool)}
