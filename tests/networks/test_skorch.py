"""Nets of skorch, by a stand-in that has what they have: skorch itself is not needed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import localshapley as ls
from localshapley.models import Network
from localshapley.torch.network import without_skorch
from localshapley.torch.skorch_nets import is_net, settings_of

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tests import naive_network  # noqa: E402


class NeuralNet(BaseEstimator):
    """Settings as skorch keeps them: those of a part are attributes with two underscores."""

    def __init__(self, module, criterion, optimizer=torch.optim.SGD, lr=0.01, max_epochs=10, batch_size=128, **more):
        self.module, self.criterion, self.optimizer = module, criterion, optimizer
        self.lr, self.max_epochs, self.batch_size = lr, max_epochs, batch_size
        self.train_split, self.callbacks, self.device = "ValidSplit(5)", None, "cpu"
        self._more = more

    def get_params(self, deep=True):
        names = ("module", "criterion", "optimizer", "lr", "max_epochs", "batch_size", "train_split", "callbacks")
        return {**{name: getattr(self, name) for name in names}, **self._more}

    def fit(self, X, y):
        raise AssertionError("skorch's own fit is not called")

    predict = fit


class NeuralNetClassifier(ClassifierMixin, NeuralNet):
    def __init__(self, module, criterion=nn.NLLLoss, **more):
        super().__init__(module, criterion, **more)


class NeuralNetRegressor(RegressorMixin, NeuralNet):
    def __init__(self, module, criterion=nn.MSELoss, **more):
        super().__init__(module, criterion, **more)


class Layers(nn.Module):
    """Gives probabilities, as skorch wants it for its default loss."""

    def __init__(self, hidden=4, n_outputs=3):
        super().__init__()
        self.first = nn.Linear(4, hidden, dtype=torch.float64)
        self.last = nn.Linear(hidden, n_outputs, dtype=torch.float64)

    def forward(self, rows):
        return self.last(self.first(rows).relu()).softmax(dim=1)


class Logits(Layers):
    def forward(self, rows):
        return self.last(self.first(rows).relu())


def flowers(n=20, n_test=4):
    X, y, X_test, y_test, _ = ls.datasets.load("iris")
    return X[:n], y[:n], X_test[:n_test], y_test[:n_test]


def test_training_is_that_of_the_net():
    X, y, X_test, _ = flowers()
    net = NeuralNetClassifier(
        Layers,
        module__hidden=6,
        max_epochs=5,
        lr=0.1,
        batch_size=8,
        optimizer__momentum=0.9,
        iterator_train__shuffle=True,
    )
    network, (note,) = without_skorch(net)
    assert note.startswith("NeuralNetClassifier of skorch was read as Network(Layers(hidden=6), batch=8, ")
    assert "train_split" in note

    def loss(outputs, targets):
        return nn.functional.nll_loss(torch.log(outputs), targets)

    settings = {"epochs": 5, "lr": 0.1, "batch": 8, "seed": 3, "optimizer": torch.optim.SGD, "momentum": 0.9}
    expected = naive_network.train(Layers(6), X, y, loss=loss, **settings)
    fitted = network.set_params(random_state=3).fit(X, y)
    np.testing.assert_allclose(fitted.predict_proba(X_test), naive_network.outputs(expected, X_test), atol=1e-12)


def test_all_doors_lead_to_the_same_values():
    rows, settings = flowers(), {"support": ls.supports.Nearest(3)}
    net = NeuralNetClassifier(Logits, criterion=nn.CrossEntropyLoss, max_epochs=3, batch_size=-1)
    network = Network(Logits, epochs=3, lr=0.01, batch=None, optimizer="sgd", shuffle=False, device="cpu")
    expected = ls.value(*rows, model=network, **settings)
    found = ls.value(*rows, model=net, **settings)
    np.testing.assert_array_equal(found.values, expected.values)
    assert found.cost.trainer == "Network (batched, cpu)"
    assert any("was read as Network(Logits(), batch=None" in note for note in found.notes)
    np.testing.assert_array_equal(ls.value(*rows, model=Network(net), **settings).values, expected.values)
    piped = [
        ls.value(*rows, model=make_pipeline(StandardScaler(), m), **settings) for m in (net, Network(net), network)
    ]
    for v in piped[1:]:  # memory may be aligned in another way, which can change the last bits of a product
        np.testing.assert_allclose(v.values, piped[0].values, atol=1e-6)
    fitted = Network(net, random_state=0).fit(*rows[:2])
    np.testing.assert_array_equal(
        fitted.predict_proba(rows[2]), network.set_params(random_state=0).fit(*rows[:2]).predict_proba(rows[2])
    )


def test_a_regressor():
    X, _, X_test, _ = flowers()
    net = NeuralNetRegressor(Logits, module__n_outputs=1, max_epochs=3)
    v = ls.value(X, X[:, 0], X_test, X_test[:, 0], model=net, support=ls.supports.Nearest(3))
    assert v.score == "squared_error"
    assert v.cost.trainer == "Network (batched, cpu)"


def test_settings_that_are_read():
    found = settings_of(
        NeuralNetClassifier(
            Logits, criterion=nn.CrossEntropyLoss, optimizer__lr=0.5, classes=["a", "b"], module__hidden=2
        )
    )
    assert (found["lr"], found["optimizer_settings"], found["classes"]) == (0.5, None, ["a", "b"])
    module = Logits()
    kept = settings_of(NeuralNetClassifier(module, criterion=nn.CrossEntropyLoss()))
    assert kept["module"] is module
    assert kept["initial"] == "module"
    again = settings_of(NeuralNetClassifier(module, criterion=nn.CrossEntropyLoss, module__hidden=2))
    assert again["module"]().first.out_features == 2


def test_settings_that_cannot_be_read():
    for more, name in (
        ({"criterion": nn.HuberLoss}, "criterion=HuberLoss"),
        ({"criterion__weight": [1, 2]}, "criterion__weight"),
        ({"iterator_train__drop_last": True}, "drop_last"),
    ):
        with pytest.raises(ls.InvalidArgumentError, match=f"does not have: {name}; .*models.Estimator"):
            ls.value(*flowers(), model=NeuralNetClassifier(Logits, **more))


def test_other_estimators_are_no_nets():
    assert not is_net(StandardScaler())
    network = Network(Logits)
    assert without_skorch(network) == (network, [])
    pipeline = make_pipeline(StandardScaler(), network)
    assert without_skorch(pipeline) == (pipeline, [])
