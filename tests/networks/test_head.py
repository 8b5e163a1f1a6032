"""Heads on frozen embeddings: one by one, in batches, and torch encoders."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import estimator_checks_generator

import localshapley as ls
from localshapley import scoring
from localshapley.models import Coalitions, Estimator, Head, Task
from localshapley.models.dispatch import as_model
from localshapley.torch.heads import HeadTrainer, encode

torch = pytest.importorskip("torch")


def small_task(n=24, n_test=6, n_classes=4, score="confidence", seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, 5))
    codes, test_codes = np.arange(n) % n_classes, np.arange(n_test) % n_classes
    X, X_test = centres[codes] + rng.normal(size=(n, 5)), centres[test_codes] + rng.normal(size=(n_test, 5))
    classes = np.array(list("abcdefgh"))[:n_classes]
    chosen = scoring.resolve(score, "classifier", (classes, np.empty(0)), True)
    return Task(X, classes[codes], X_test, test_codes, classes, codes, chosen)


def some_coalitions(task, n=40, seed=0):
    """Coalitions of all sizes, the empty one and those of one class included, with test rows of different number."""
    rng = np.random.default_rng(seed)
    sizes = [0, 1, 2, len(task.y), *rng.integers(0, len(task.y), n)]
    players = [rng.permutation(len(task.y))[:size] for size in sizes]
    tests = [rng.permutation(len(task.y_test))[: rng.integers(1, len(task.y_test) + 1)] for _ in sizes]
    return Coalitions.from_lists([*players, [0, 4, 8]], [*tests, [0, 1]])


# One head


@pytest.mark.parametrize("hidden", [None, 3])
def test_training_is_that_of_torch(hidden):
    """The same steps written with layers and the optimiser of torch."""
    task = small_task()
    head = Head(hidden, epochs=30, lr=0.05, weight_decay=0.1, random_state=5, device="cpu").fit(task.X, task.y)
    X, codes = torch.as_tensor(task.X), torch.as_tensor(task.codes)
    widths = [5, 4] if hidden is None else [5, hidden, 4]
    linear = [torch.nn.Linear(a, b).double() for a, b in itertools.pairwise(widths)]
    rng = np.random.RandomState(5)
    with torch.no_grad():
        for layer in linear:
            bound = np.sqrt(6 / sum(layer.weight.shape)) if layer is not linear[-1] else 0
            layer.weight.copy_(torch.as_tensor(rng.uniform(-bound, bound, layer.weight.T.shape).T))
            layer.bias.zero_()
    network = linear[0] if hidden is None else torch.nn.Sequential(linear[0], torch.nn.ReLU(), linear[1])
    adam = torch.optim.Adam(network.parameters(), lr=0.05, weight_decay=0.1)
    for _ in range(30):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(network(X), codes).backward()
        adam.step()
    expected = network(torch.as_tensor(task.X_test)).softmax(dim=1).detach().numpy()
    np.testing.assert_allclose(head.predict_proba(task.X_test), expected, atol=1e-9)


def test_it_learns():
    X, y, X_test, y_test, _ = ls.datasets.load("digits")
    assert Head(epochs=60, lr=0.05).fit(X, y).score(X_test, y_test) > 0.93
    assert Head(32, epochs=60, lr=0.05, random_state=0).fit(X, y).score(X_test, y_test) > 0.93


def test_the_seed_decides():
    task = small_task()
    first, same, other = (
        Head(3, epochs=5, random_state=seed).fit(task.X, task.y).predict_proba(task.X_test) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, same)
    assert abs(first - other).max() > 1e-6


# Scikit-learn's own checks of an estimator; device is a torch matter, and float32 rows are trained in double precision.
@pytest.mark.parametrize(
    ("estimator", "check"),
    list(estimator_checks_generator(Head(epochs=30, lr=0.1, device="cpu"))),
    ids=lambda x: getattr(getattr(x, "func", None), "__name__", ""),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_fitted_head_can_be_copied_and_pickled():
    task = small_task()
    head = Head(3, epochs=5, encoder=torch.nn.Linear(5, 2), random_state=0).fit(task.X, task.y)
    again = pickle.loads(pickle.dumps(head))
    np.testing.assert_array_equal(again.predict_proba(task.X_test), head.predict_proba(task.X_test))
    with pytest.raises(NotFittedError):
        clone(head).predict(task.X_test)


def test_it_is_described_without_the_layers_of_its_encoder():
    encoder = torch.nn.Sequential(torch.nn.Linear(5, 2), torch.nn.ReLU())
    assert repr(Head(8, lr=0.5, encoder=encoder)) == "Head(encoder=Sequential, hidden=8, lr=0.5)"
    assert repr(Head()) == "Head()"


# Many heads


@pytest.mark.parametrize("hidden", [None, 3])
@pytest.mark.parametrize("score", ["confidence", "accuracy", "log_loss"])
def test_batches_are_fits_one_by_one(hidden, score):
    task = small_task(score=score)
    coalitions = some_coalitions(task)
    head = Head(hidden, epochs=20, lr=0.05, device="cpu")
    batched = as_model(head, task.y)[0].trainer(task)
    assert isinstance(batched, HeadTrainer)
    assert not batched.training_notes
    found, expected = batched.train(coalitions), Estimator(head).trainer(task).train(coalitions)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-9)
    assert found.counts.trivial == expected.counts.trivial > 2


@given(seed=st.integers(0, 1000), n_classes=st.integers(2, 8), hidden=st.sampled_from([None, 2]))
def test_a_result_does_not_depend_on_its_batch(seed, n_classes, hidden):
    task = small_task(n_classes=n_classes, seed=seed)
    coalitions = some_coalitions(task, 10, seed)
    trainer = HeadTrainer(Head(hidden, epochs=5, lr=0.1, device="cpu"), task)
    together = trainer.evaluate(coalitions)
    alone = [trainer.evaluate(coalitions.part(c, c + 1)) for c in range(len(coalitions))]
    np.testing.assert_allclose(together, np.concatenate(alone), atol=1e-9)


def test_little_room_changes_nothing():
    task, head = small_task(), Head(epochs=5, device="cpu")
    coalitions = some_coalitions(task)
    roomy, narrow = HeadTrainer(head, task), HeadTrainer(head, task, room=1)
    np.testing.assert_allclose(narrow.evaluate(coalitions), roomy.evaluate(coalitions), atol=1e-12)


def test_threads_change_nothing():
    task = small_task()
    coalitions, head = some_coalitions(task, 600), Head(epochs=3, device="cpu")
    before = torch.get_num_threads()
    one, three = (HeadTrainer(head, task, n_jobs).evaluate(coalitions) for n_jobs in (1, 3))
    np.testing.assert_allclose(one, three, atol=1e-12)
    assert torch.get_num_threads() == before


def test_rows_without_any_difference():
    """Equal rows with unequal labels: gradients cancel, and what is left must not grow to steps."""
    task = small_task(n=20, n_classes=2)
    task.X[:] = task.X[0]
    trainer = HeadTrainer(Head(epochs=50, lr=0.1, device="cpu"), task)
    balanced = Coalitions.from_lists([[0, 1], list(range(20)), [0, 1, 2, 3]], [[0]] * 3)
    np.testing.assert_allclose(trainer.evaluate(balanced), 0.5, atol=1e-6)


def test_valuation():
    X, y, X_test, y_test, _ = ls.datasets.load("iris")
    y = np.array(["x", "y", "z"])[y]
    wrong = np.arange(8)
    y[wrong] = np.roll(np.array(["x", "y", "z"]), 1)[np.searchsorted(["x", "y", "z"], y[wrong])]
    y_test = np.array(["x", "y", "z"])[y_test]
    head = Head(epochs=20, lr=0.1, device="cpu")
    v = ls.value(X, y, X_test, y_test, model=head, support=ls.supports.Nearest(8), method="exact")
    assert v.cost.trainer == "Head (batched, cpu)"
    assert (v.bottom(8).index < 8).sum() >= 5


def test_valuation_agrees_with_the_plain_way(monkeypatch):
    X, y, X_test, y_test, _ = ls.datasets.load("iris")
    settings = {"model": Head(2, epochs=5, lr=0.1), "support": ls.supports.Nearest(5), "method": "exact", "seed": 3}
    fast = ls.value(X, y, X_test[:8], y_test[:8], **settings)
    monkeypatch.setenv("LOCALSHAPLEY_COMPILED", "0")
    slow = ls.value(X, y, X_test[:8], y_test[:8], **settings)
    assert slow.cost.trainer == "Head (scikit-learn fit)"
    np.testing.assert_allclose(fast.values, slow.values, atol=1e-9)


# Encoders


class Watched(torch.nn.Module):
    """An encoder that writes down how it was called."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.layer, self.drop, self.calls = torch.nn.Linear(5, 3, dtype=dtype), torch.nn.Dropout(0.5), []

    def forward(self, rows):
        self.calls.append((len(rows), rows.dtype, self.training, torch.is_grad_enabled()))
        return self.drop(self.layer(rows))[:, :, None]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_encoder_runs_some_rows_at_a_time_and_is_left_as_it_was(training, dtype):
    encoder = Watched(dtype).train(training)
    X = np.random.default_rng(0).normal(size=(600, 5))
    found = encode(encoder, X)
    assert encoder.calls == [(n, dtype, False, False) for n in (256, 256, 88)]
    assert encoder.training is training
    weights, bias = (p.detach().numpy() for p in encoder.layer.parameters())
    np.testing.assert_allclose(found, X.astype(weights.dtype) @ weights.T + bias, rtol=1e-4, atol=1e-5)


def test_an_encoder_that_fails_is_left_as_it_was():
    encoder = Watched()
    with pytest.raises(RuntimeError):
        encode(encoder, np.zeros((3, 4)))
    assert encoder.training


def test_an_encoder_without_parameters():
    np.testing.assert_array_equal(encode(torch.nn.Flatten(), np.ones((2, 3, 4))), np.ones((2, 12)))


def test_a_head_with_an_encoder_is_a_head_on_its_embeddings():
    task, encoder = small_task(), Watched()
    embedded = encode(encoder, task.X), encode(encoder, task.X_test)
    with_encoder = Head(epochs=5, encoder=encoder, device="cpu").fit(task.X, task.y)
    without = Head(epochs=5, device="cpu").fit(embedded[0], task.y)
    np.testing.assert_allclose(with_encoder.predict_proba(task.X_test), without.predict_proba(embedded[1]), atol=1e-12)
    coalitions = some_coalitions(task)
    found = HeadTrainer(Head(epochs=5, encoder=encoder, device="cpu"), task).evaluate(coalitions)
    assert len(encoder.calls) == 6, "every row once a trainer, and once in fit and predict"
    expected = Estimator(Head(epochs=5, encoder=encoder, device="cpu")).trainer(task).evaluate(coalitions)
    np.testing.assert_allclose(found, expected, atol=1e-5)  # the encoder is in single precision


def test_images_go_to_an_encoder_in_their_shape():
    images = np.random.default_rng(0).normal(size=(12, 1, 6, 6))
    encoder = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU())
    head = Head(epochs=5, encoder=encoder).fit(images, np.arange(12) % 3)
    assert head.predict_proba(images).shape == (12, 3)


def test_embedding_by_a_torch_module():
    task, encoder = small_task(), Watched()
    settings = {"model": Head(epochs=3), "method": "exact"}
    arguments = (task.X, task.y, task.X_test, task.classes[task.y_test])
    vectors = encode(encoder, task.X), encode(encoder, task.X_test)
    by_module = ls.value(*arguments, support=ls.supports.Embedding(encoder, 4), **settings)
    by_arrays = ls.value(*arguments, support=ls.supports.Embedding(vectors, 4), **settings)
    np.testing.assert_array_equal(by_module.values, by_arrays.values)
    assert by_module.support == "Embedding(Watched, n=4)"
    assert encoder.training


# Arguments


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": 0}, r"Head\(hidden=...\) must be a whole number of at least 1; got 0"),
        ({"epochs": 1.5}, r"Head\(epochs=...\) must be a whole number"),
        ({"lr": 0}, r"Head\(lr=...\) must be a number above 0"),
        ({"weight_decay": -1}, r"Head\(weight_decay=...\) must be a number of at least 0"),
        ({"encoder": "resnet"}, r"Head\(encoder=...\) must be a torch.nn.Module; got 'resnet'"),
        ({"device": "abacus"}, "device 'abacus' cannot be used"),
    ],
)
def test_wrong_settings(settings, message):
    task = small_task()
    with pytest.raises(ls.InvalidArgumentError, match=message):
        Head(**settings).fit(task.X, task.y)
    with pytest.raises(ls.InvalidArgumentError, match=message):
        ls.value(task.X, task.y, task.X_test, task.classes[task.y_test], model=Head(**settings))
