"""The evaluator for OpenDataVal, on a stand-in that has its two base classes as it has them."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import localshapley as ls
from localshapley.audit.label_noise_models import score_labels

torch = pytest.importorskip("torch")


class DataEvaluator:
    """What OpenDataVal's evaluators inherit, as far as it is used."""

    def __init__(self, random_state=None):
        self.random_state = np.random.RandomState(random_state)

    def train(self, fetcher, pred_model=None):
        self.x_train, self.y_train, self.x_valid, self.y_valid = fetcher
        self.pred_model = pred_model
        return self.train_data_values()

    @property
    def data_values(self):
        return self.evaluate_data_values()


class Centres:
    """A model as OpenDataVal has them: labels are columns, predictions are tensors."""

    num_classes = 3

    def clone(self):
        return Centres()

    def fit(self, x, y):
        self.centres = [x[y[:, c] == 1].mean(dim=0) if (y[:, c] == 1).any() else None for c in range(3)]

    def predict(self, x):
        far = torch.full((len(x),), 9.0)
        return torch.stack([far if c is None else ((x - c) ** 2).sum(1) for c in self.centres], 1).neg().softmax(1)


@pytest.fixture
def evaluator(monkeypatch):
    for name in ("opendataval", "opendataval.dataval", "opendataval.dataval.api"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    api = sys.modules["opendataval.dataval.api"]
    api.DataEvaluator, api.ModelMixin = DataEvaluator, type("ModelMixin", (), {})
    monkeypatch.delitem(sys.modules, "localshapley.opendataval", raising=False)
    yield importlib.import_module("localshapley.opendataval").LocalShapleyEvaluator
    sys.modules.pop("localshapley.opendataval", None)


@pytest.fixture(scope="module")
def iris():
    X, y, X_test, y_test, _ = ls.datasets.load("iris")
    y[7] = (y[7] + 1) % 3
    return X, y, X_test, y_test


def tensors(X, y, X_test, y_test):
    columns = np.eye(3)
    return tuple(torch.tensor(a, dtype=torch.float) for a in (X, columns[y], X_test, columns[y_test]))


def test_a_wrapped_estimator_is_valued_as_value_does(evaluator, iris):
    X, y, X_test, y_test = tensors(*iris)
    wrapper = SimpleNamespace(model=KNeighborsClassifier(5))
    found = evaluator(random_state=0).train((X, y, X_test, y_test), wrapper).data_values
    rows = (X.numpy().astype(float), iris[1], X_test.numpy().astype(float), iris[3])
    np.testing.assert_array_equal(found, ls.value(*rows, model=KNeighborsClassifier(5)).values)


def test_a_model_of_theirs_is_trained_as_it_is(evaluator, iris):
    X, y, X_test, y_test = (part[::3] for part in iris)
    settings = {"support": ls.supports.Nearest(4), "method": "exact"}
    data = tensors(X, y, X_test, y_test)
    found = evaluator(random_state=0, **settings).train(data, Centres())

    def utility(coalition, tests):
        model = Centres()
        model.fit(data[0][coalition], data[1][coalition])
        return model.predict(data[2][tests]).numpy()[np.arange(len(tests)), y_test[tests]]

    def game(coalition, tests):  # what a coalition of none or of one class predicts is a convention, not the model
        classes = set(y[coalition])
        if len(classes) < 2:
            return [1 / 3 if not classes else float(y_test[t] in classes) for t in tests]
        return utility(coalition, tests)

    rows = data[0].numpy().astype(float), data[2].numpy().astype(float)
    near = np.argsort(((rows[1][:, None] - rows[0]) ** 2).sum(2), axis=1, kind="stable")[:, :4]
    expected = ls.shapley(np.sort(near), game, n_players=len(X))
    np.testing.assert_allclose(found.data_values, expected.values, atol=1e-6)
    assert found.valuation.cost.trainings > 0


def test_suspects_have_the_lowest_values(evaluator, iris):
    found = evaluator(by="label_errors", random_state=0).train(tensors(*iris)).data_values
    assert np.argmin(found) == 7
    assert ((found >= 0) & (found <= 1)).all()


def test_suspects_are_ranked_where_nothing_is_learnt_from_the_columns(evaluator):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    data = tensors(X, y, X, y)
    found = evaluator(by="label_errors", random_state=0).train(data).data_values
    judged = score_labels(data[0].numpy().astype(float), y, seed=np.random.RandomState(0).randint(2**31 - 1))
    assert np.isnan(judged.p_wrong).all()
    np.testing.assert_array_equal(found, -judged.suspicion)


def test_folds_take_the_place_of_validation_rows(evaluator, iris):
    data = tensors(*iris)
    found = evaluator(model="knn", cv=3, random_state=0).train(data).data_values
    seed = np.random.RandomState(0).randint(2**31 - 1)
    expected = ls.value(data[0].numpy().astype(float), iris[1], cv=3, model="knn", seed=seed).values
    np.testing.assert_array_equal(found, expected)


def test_other_words_are_refused(evaluator):
    with pytest.raises(ls.InvalidArgumentError, match="by must be 'values' or 'label_errors', got 'loo'"):
        evaluator(by="loo")
