"""Local Shapley values among the data evaluators of OpenDataVal, the benchmark of the field.

OpenDataVal pins old releases of its dependencies, but runs with new ones: ``pip install --no-deps opendataval``, with
PyTorch, torchvision, tqdm and matplotlib beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from localshapley.api import value
from localshapley.arrays import AnyArray, Floats
from localshapley.audit.label_noise_models import noise_scores
from localshapley.errors import InvalidArgumentError

try:
    import torch
    from opendataval.dataval.api import DataEvaluator, ModelMixin
except ImportError as error:  # pragma: no cover
    raise ImportError(
        f"localshapley.opendataval needs OpenDataVal and what it imports ({error}): pip install --no-deps opendataval"
    ) from error

__all__ = ["LocalShapleyEvaluator"]


class LocalShapleyEvaluator(DataEvaluator, ModelMixin):  # type: ignore[misc]
    """Local Shapley values as a `DataEvaluator` of OpenDataVal.

    Parameters
    ----------
    model : scikit-learn estimator, name or `localshapley.models` object, optional
        As in `localshapley.value`; by default the model that OpenDataVal passes. One that wraps a scikit-learn
        estimator is unwrapped, so that it is compiled where `value` compiles it; one of PyTorch is trained as it is,
        coalition by coalition.
    by : {"values", "label_errors"}, default="values"
        Whether the data values are Shapley values, or how probably each label is right (one less the `p_wrong` of
        `localshapley.audit.label_errors`), for which neither the model nor the validation rows are needed. Where too
        little is learnt from the columns to tell a probability, rows are ranked by suspicion alone.
    random_state : int, RandomState or None
        As in OpenDataVal; it seeds the draws.
    **settings
        Further arguments of `localshapley.value`, such as `support`, `score`, `tol` or `cv`. With `cv` the validation
        rows are not used.

    Attributes
    ----------
    valuation : Valuation
        What `value` gave; not there with ``by="label_errors"``.

    Examples
    --------
    >>> from opendataval.dataloader import DataFetcher  # doctest: +SKIP
    >>> from localshapley.opendataval import LocalShapleyEvaluator
    >>> LocalShapleyEvaluator(model="svm", random_state=0).train(fetcher, pred_model)  # doctest: +SKIP
    """

    def __init__(self, model: Any = None, by: str = "values", random_state: Any = None, **settings: Any) -> None:
        if by not in ("values", "label_errors"):
            raise InvalidArgumentError(f"by must be 'values' or 'label_errors', got {by!r}.")
        super().__init__(random_state)
        self.model, self.by, self.settings = model, by, settings

    def train_data_values(self, *args: Any, **kwargs: Any) -> LocalShapleyEvaluator:
        """Value the training rows; arguments go to the `fit` of a model that OpenDataVal trains."""
        seed = int(self.random_state.randint(2**31 - 1))
        X, y = _rows(self.x_train), _labels(self.y_train)
        regression = y.dtype.kind == "f"
        if self.by == "label_errors":
            scores = noise_scores(X, y, regression=regression, seed=seed)
            if scores is None:
                raise InvalidArgumentError(
                    "by='label_errors' needs twenty rows and two classes of five; use by='values' for so few."
                )
            self._values = -scores.suspicion if np.isnan(scores.p_wrong).any() else 1 - scores.p_wrong
            return self
        model = self.model if self.model is not None else _own(self.pred_model, regression, args, kwargs)
        tests = () if self.settings.get("cv") is not None else (_rows(self.x_valid), _labels(self.y_valid))
        settings = {"progress": False, "seed": seed, **self.settings}
        self.valuation = value(X, y, *tests, model=model, **settings)
        self._values = self.valuation.values
        return self

    def evaluate_data_values(self) -> Floats:
        """Return the data value of each training row."""
        return self._values


def _rows(x: Any) -> Floats:
    """Rows of a tensor or of a data set of tensors, flattened, as an array."""
    rows = x if isinstance(x, torch.Tensor) else torch.stack([torch.as_tensor(row) for row in x])
    return np.asarray(rows.reshape(len(rows), -1).numpy(force=True), dtype=np.float64)


def _labels(y: Any) -> AnyArray:
    """Numbers of the classes that OpenDataVal has as columns; targets of a regression, which have one, as they are."""
    columns = np.asarray(y.reshape(len(y), -1).numpy(force=True))
    return columns[:, 0].astype(np.float64) if columns.shape[1] == 1 else columns.argmax(axis=1)


def _own(pred_model: Any, regression: bool, args: Any, kwargs: Any) -> Any:
    """The estimator that a model of OpenDataVal wraps, else the model itself behind the methods of an estimator."""
    wrapped = getattr(pred_model, "model", None)
    if isinstance(wrapped, BaseEstimator):
        return wrapped
    return _Regressor(pred_model, args, kwargs) if regression else _Classifier(pred_model, args, kwargs)


class _Theirs(BaseEstimator):  # type: ignore[misc]
    """A model of OpenDataVal behind the methods of scikit-learn."""

    def __init__(self, pred_model: Any = None, args: Any = (), kwargs: Any = None) -> None:
        self.pred_model, self.args, self.kwargs = pred_model, args, kwargs

    def _fitted(self, X: Any, targets: Any) -> None:
        tensors = (torch.as_tensor(numbers, dtype=torch.float) for numbers in (X, targets))
        self.model_ = self.pred_model.clone()
        self.model_.fit(*tensors, *self.args, **(self.kwargs or {}))

    def _predicted(self, X: Any) -> AnyArray:
        with torch.no_grad():
            predicted = self.model_.predict(torch.as_tensor(X, dtype=torch.float))
        return np.asarray(predicted.reshape(len(X), -1).numpy(force=True), dtype=np.float64)


class _Classifier(ClassifierMixin, _Theirs):  # type: ignore[misc]
    """Its probabilities; the classes are the columns that it predicts."""

    def fit(self, X: Any, y: Any) -> _Classifier:
        columns = np.eye(self.pred_model.num_classes)
        self.classes_ = np.arange(len(columns))
        self._fitted(X, columns[y])
        return self

    def predict_proba(self, X: Any) -> AnyArray:
        return self._predicted(X)

    def predict(self, X: Any) -> AnyArray:
        return np.asarray(self._predicted(X).argmax(axis=1))


class _Regressor(RegressorMixin, _Theirs):  # type: ignore[misc]
    """Its predictions."""

    def fit(self, X: Any, y: Any) -> _Regressor:
        self._fitted(X, np.asarray(y)[:, None])
        return self

    def predict(self, X: Any) -> AnyArray:
        return self._predicted(X)[:, 0]
