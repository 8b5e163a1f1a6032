"""Networks: trained together as one by one, whatever is beside them; what is refused; the usual doors."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import localshapley as ls
from localshapley import scoring
from localshapley.models import Coalitions, Estimator, Network, NetworkTrainer, Task
from localshapley.models.dispatch import as_model
from localshapley.problem.fingerprints import describe

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from localshapley.torch.batched_networks import NetworkBatch  # noqa: E402
from tests import naive_network  # noqa: E402


def mlp(n_outputs=3, n_features=5, dtype=torch.float64):
    return nn.Sequential(nn.Linear(n_features, 4), nn.Tanh(), nn.Linear(4, n_outputs)).to(dtype)


def small_task(n=30, n_test=6, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, 5))
    codes, test_codes = np.arange(n) % n_classes, np.arange(n_test) % n_classes
    X, X_test = centres[codes] + rng.normal(size=(n, 5)), centres[test_codes] + rng.normal(size=(n_test, 5))
    classes = np.array(list("abcdefgh"))[:n_classes]
    chosen = scoring.resolve("confidence", "classifier", (classes, np.empty(0)), True)
    return Task(X, classes[codes], X_test, test_codes, classes, codes, chosen, seed=7)


def regression_task(n=30, n_test=6):
    rng = np.random.default_rng(0)
    X, X_test = rng.normal(size=(n, 5)), rng.normal(size=(n_test, 5))
    chosen = scoring.resolve("squared_error", "regressor", None, False)
    return Task(X, X[:, 0] + X[:, 1] ** 2, X_test, X_test[:, 0], None, None, chosen, seed=7)


def some_coalitions(task, n=20, seed=0):
    """Coalitions of all sizes, the empty one and those of one class included, with test rows of different number."""
    rng = np.random.default_rng(seed)
    sizes = [0, 1, 2, len(task.y), *rng.integers(0, len(task.y), n)]
    players = [np.sort(rng.permutation(len(task.y))[:size]) for size in sizes]
    tests = [rng.permutation(len(task.y_test))[: rng.integers(1, len(task.y_test) + 1)] for _ in sizes]
    return Coalitions.from_lists([*players, [0, 3, 6]], [*tests, [0, 1]])


def by_hand(module, task, coalitions, **settings):
    """Scores of networks that are trained one at a time; those of untrained coalitions are NaN."""
    found = []
    for c in range(len(coalitions)):
        rows, tests = coalitions.coalition(c), coalitions.tests_of(c)
        codes = None if task.codes is None else task.codes[rows]
        if len(rows) == 0 or (codes is not None and len(set(codes)) == 1):
            found.append(np.full(len(tests), np.nan))
            continue
        targets = task.y[rows] if codes is None else codes
        trained = naive_network.train(module, task.X[rows], targets, seed=task.seed, **settings)
        outputs = torch.as_tensor(naive_network.outputs(trained, task.X_test[tests]))
        if codes is None:
            found.append(-((outputs[:, 0].numpy() - task.y_test[tests]) ** 2))
        else:
            found.append(outputs.softmax(1)[np.arange(len(tests)), task.y_test[tests]].numpy())
    return np.concatenate(found)


def assert_same_where_trained(found, expected, atol):
    trained = ~np.isnan(expected)
    assert trained.sum() >= 30
    np.testing.assert_allclose(found[trained], expected[trained], atol=atol)


# Training


@pytest.mark.parametrize(
    ("optimizer", "more"),
    [
        ("sgd", {"momentum": 0.9, "weight_decay": 0.1}),
        ("Adam", {}),
        (torch.optim.AdamW, {"betas": (0.8, 0.9)}),
        ("rmsprop", {"alpha": 0.9}),
    ],
)
def test_together_is_one_at_a_time(optimizer, more):
    """Double precision; coalitions of up to 30 rows in minibatches of 7, the last ones short."""
    task, module = small_task(), mlp()
    coalitions = some_coalitions(task)
    network = Network(module, epochs=3, lr=0.05, batch=7, optimizer=optimizer, optimizer_settings=more, device="cpu")
    found = NetworkTrainer(network, task).evaluate(coalitions)
    kind = {"sgd": torch.optim.SGD, "Adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}.get(optimizer, optimizer)
    expected = by_hand(module, task, coalitions, epochs=3, lr=0.05, batch=7, optimizer=kind, **more)
    assert_same_where_trained(found, expected, 1e-10)


@pytest.mark.parametrize("shuffle", [True, False])
def test_single_precision(shuffle):
    task, module = small_task(), mlp(dtype=torch.float32)
    coalitions = some_coalitions(task)
    network = Network(module, epochs=4, lr=0.02, batch=8, shuffle=shuffle, device="cpu")
    expected = by_hand(module, task, coalitions, epochs=4, lr=0.02, batch=8, shuffle=shuffle)
    assert_same_where_trained(NetworkTrainer(network, task).evaluate(coalitions), expected, 1e-5)


def test_regression():
    task, module = regression_task(), mlp(1)
    coalitions = some_coalitions(task)
    network = Network(module, epochs=5, lr=0.02, batch=10, loss="squared_error", device="cpu")
    found = NetworkTrainer(network, task).evaluate(coalitions)

    def loss(outputs, targets):
        return nn.functional.mse_loss(outputs[:, 0], targets)

    expected = by_hand(module, task, coalitions, epochs=5, lr=0.02, batch=10, loss=loss)
    assert_same_where_trained(found, expected, 1e-10)


def test_convolutions():
    task = small_task()
    module = nn.Sequential(
        nn.Unflatten(1, (1, 5)), nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6, 3)
    ).double()
    coalitions = some_coalitions(task, 10)
    found = NetworkTrainer(Network(module, epochs=3, batch=None, device="cpu"), task).evaluate(coalitions)
    expected = by_hand(module, task, coalitions, epochs=3, lr=0.01, batch=100)
    assert_same_where_trained(found, expected, 1e-10)


def test_fit_is_the_same_training():
    task, module = small_task(), mlp()
    network = Network(module, epochs=3, batch=7, classes=task.classes, random_state=7, device="cpu")
    expected = naive_network.train(module, task.X, task.codes, epochs=3, lr=0.01, batch=7, seed=7)
    logits = torch.as_tensor(naive_network.outputs(expected, task.X_test))
    fitted = network.fit(task.X, task.y)
    np.testing.assert_allclose(fitted.predict_proba(task.X_test), logits.softmax(1), atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(task.X_test), task.classes[logits.argmax(1).numpy()])
    coalitions = some_coalitions(task)
    found = as_model(network, task.y)[0].trainer(task)
    assert isinstance(found, NetworkTrainer)
    assert not found.training_notes
    for classes in (task.classes, None):
        plain = Estimator(network.set_params(classes=classes)).trainer(task)
        np.testing.assert_allclose(found.evaluate(coalitions), plain.evaluate(coalitions), atol=1e-12)


def test_classes_may_be_in_another_order_and_more_than_there_are_rows_of():
    task, module = small_task(), mlp(5)
    fitted = Network(module, epochs=3, classes=["x", "c", "a", "y", "b"], random_state=7).fit(task.X, task.y)
    expected = naive_network.train(module, task.X, [2, 4, 1] * 10, epochs=3, lr=0.01, batch=32, seed=7)
    logits = torch.as_tensor(naive_network.outputs(expected, task.X_test))
    np.testing.assert_allclose(fitted.predict_proba(task.X_test), logits.softmax(1), atol=1e-12)
    everyone = Coalitions.from_lists([range(30)], [range(6)])
    trainer = NetworkTrainer(clone(fitted), task)
    np.testing.assert_allclose(
        trainer.evaluate(everyone), logits.softmax(1)[np.arange(6), [2, 4, 1, 2, 4, 1]], atol=1e-12
    )


def test_one_logit_for_two_classes():
    """Cross-entropy of (0, z) is the binary cross-entropy of z."""
    task, module = small_task(n_classes=2), mlp(1)

    def loss(outputs, targets):
        return nn.functional.binary_cross_entropy_with_logits(outputs[:, 0], targets.double())

    expected = naive_network.train(module, task.X, task.codes, epochs=3, lr=0.01, batch=7, seed=0, loss=loss)
    fitted = Network(module, epochs=3, batch=7, random_state=0, device="cpu").fit(task.X, task.y)
    share = 1 / (1 + np.exp(-naive_network.outputs(expected, task.X_test)[:, 0]))
    np.testing.assert_allclose(fitted.predict_proba(task.X_test), np.stack([1 - share, share], axis=1), atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_result_does_not_depend_on_its_batch(dtype):
    task = small_task()
    coalitions = some_coalitions(task, 30)
    trainer = NetworkTrainer(Network(mlp(dtype=dtype), epochs=3, batch=8, device="cpu"), task)
    together = trainer.evaluate(coalitions)
    alone = [trainer.evaluate(coalitions.part(c, c + 1)) for c in range(len(coalitions))]
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    np.testing.assert_allclose(together, np.concatenate(alone), atol=tolerance)


def test_threads_and_processes_change_nothing():
    task = small_task()
    coalitions, network = some_coalitions(task, 60), Network(mlp(dtype=torch.float32), epochs=2, batch=8, device="cpu")
    before = torch.get_num_threads()
    one, three = (NetworkTrainer(network, task, n_jobs, together=4) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.evaluate(coalitions), three.evaluate(coalitions))
    elsewhere = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(one.evaluate(coalitions), elsewhere.evaluate(coalitions))
    assert torch.get_num_threads() == before


def test_little_memory_halves_the_piece(monkeypatch):
    task, network = small_task(), Network(mlp(), epochs=2, device="cpu")
    coalitions, train = some_coalitions(task), NetworkBatch.train
    expected = NetworkTrainer(network, task).evaluate(coalitions)

    def train_two(self, members, sizes):
        if len(members) > 2:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return train(self, members, sizes)

    monkeypatch.setattr(NetworkBatch, "train", train_two)
    np.testing.assert_allclose(NetworkTrainer(network, task).evaluate(coalitions), expected, atol=1e-12)
    monkeypatch.setattr(NetworkBatch, "train", lambda *_: (_ for _ in ()).throw(torch.cuda.OutOfMemoryError("no room")))
    with pytest.raises(ls.TrainingError, match="too little memory to train one coalition"):
        NetworkTrainer(network, task).evaluate(coalitions)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("batch", [8, None])
def test_devices_agree(batch):
    task = small_task()
    coalitions = some_coalitions(task, 100)
    here, there = (NetworkTrainer(Network(mlp(), epochs=5, batch=batch, device=d), task) for d in ("cpu", "cuda"))
    np.testing.assert_allclose(there.evaluate(coalitions), here.evaluate(coalitions), atol=1e-9)
    assert there.name == "Network (batched, cuda)"


# Initial weights


def test_initial_weights_come_from_the_seed_or_from_the_module():
    task, module = small_task(), mlp()
    as_it_was = [p.detach().clone() for p in module.parameters()]

    def found(**settings):
        return Network(module, epochs=2, device="cpu", **settings).fit(task.X, task.y).predict_proba(task.X_test)

    np.testing.assert_array_equal(found(random_state=1), found(random_state=1))
    assert abs(found(random_state=1) - found(random_state=2)).max() > 1e-4
    with torch.no_grad():
        module[0].weight += 0.5
    np.testing.assert_array_equal(found(random_state=1), found(random_state=1))
    moved = found(random_state=1, initial="module")
    with torch.no_grad():
        module[0].weight -= 0.5
    assert abs(moved - found(random_state=1, initial="module")).max() > 1e-3
    for before, after in zip(as_it_was, module.parameters(), strict=True):
        np.testing.assert_allclose(after.detach(), before, atol=1e-12)  # nothing was trained in place


def test_the_random_numbers_of_the_user_are_left_alone():
    task = small_task()
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    Network(mlp, epochs=1, device="cpu").fit(task.X, task.y)
    NetworkTrainer(Network(mlp(), epochs=1, device="cpu"), task).evaluate(some_coalitions(task, 2))
    torch.manual_seed(3)
    NetworkTrainer(Network(mlp, epochs=1, device="cpu"), task).evaluate(some_coalitions(task, 2))
    np.testing.assert_array_equal(torch.rand(2), expected)


class Scaled(nn.Module):
    """A module with a weight that belongs to no layer."""

    def __init__(self):
        super().__init__()
        self.scale, self.last = nn.Parameter(torch.rand(5)), nn.Linear(5, 3)

    def forward(self, rows):
        return self.last(rows * self.scale)


def test_weights_that_no_layer_can_draw():
    task = small_task()
    with pytest.raises(ls.InvalidArgumentError, match=r"Scaled has no reset_parameters\(\).*initial='module'"):
        Network(Scaled()).fit(task.X, task.y)
    one, same = (Network(Scaled, epochs=2, random_state=1).fit(task.X, task.y) for _ in range(2))
    np.testing.assert_array_equal(one.predict_proba(task.X_test), same.predict_proba(task.X_test))
    module = Scaled()
    kept = Network(module, epochs=1, lr=1e-9, initial="module").fit(task.X, task.y)
    np.testing.assert_allclose(kept.module_.scale.detach(), module.scale.detach(), atol=1e-6)


def test_frozen_weights_stay():
    task, module = small_task(), mlp()
    module[0].requires_grad_(False)
    trainer = NetworkTrainer(Network(module, epochs=3, device="cpu"), task)
    fitted = Network(module, epochs=3, device="cpu", random_state=7).fit(task.X, task.y)
    np.testing.assert_array_equal(fitted.module_[0].weight, module[0].weight)
    assert not np.array_equal(fitted.module_[2].weight.detach(), module[2].weight.detach())
    everyone = Coalitions.from_lists([range(30)], [range(6)])
    expected = fitted.predict_proba(task.X_test)[np.arange(6), task.y_test]
    np.testing.assert_allclose(trainer.evaluate(everyone), expected, atol=1e-12)


# What is refused


class Remembering(nn.Linear):
    def __init__(self):
        super().__init__(5, 3)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, rows):
        self.calls += 1
        return super().forward(rows)


class Branching(nn.Linear):
    def __init__(self):
        super().__init__(5, 3)

    def forward(self, rows):
        return super().forward(rows) if rows.abs().sum().item() > 0 else -super().forward(rows)


class Centring(nn.Linear):
    def __init__(self):
        super().__init__(5, 3)

    def forward(self, rows):
        return super().forward(rows - rows.mean(0))


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (
            nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)),
            r"changes '1.running_mean'.*layer '1', Batch",
        ),
        (nn.Sequential(nn.BatchNorm1d(5, track_running_stats=False), nn.Linear(5, 3)), "mixes the rows.*BatchNorm1d"),
        (nn.Sequential(nn.Linear(5, 3), nn.Dropout(0.5)), r"draws random numbers .*\(layer '1', Dropout\).*eval\(\)"),
        (Remembering(), r"changes 'calls' whenever it sees rows; what it remembers"),
        (Centring(), "mixes the rows of a minibatch: what"),
        (Branching(), r"cannot be trained for many coalitions at once, which torch.func.vmap does: .*item\(\)"),
        (nn.Linear(4, 3), r"cannot be called with rows of shape \(5,\): .*torch.nn.Unflatten"),
        (nn.Linear(5, 2), "gives 2 outputs for 3 classes"),
        (nn.LSTM(5, 3), "must give one tensor, with a row for each row; got tuple"),
        (nn.LazyLinear(3), "has lazy layers"),
        (nn.Flatten(), "has no weights to train"),
        (nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3).double()), "weights of different types"),
        ("resnet", "must be a torch.nn.Module, or a class or function that makes one; got 'resnet'"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_modules_that_cannot_be_trained_together(module, message, monkeypatch):
    task = small_task()
    monkeypatch.setattr(NetworkBatch, "train", lambda *_: pytest.fail("something was trained"))
    with pytest.raises(ls.InvalidArgumentError, match=message):
        ls.value(task.X, task.y, task.X_test, task.classes[task.y_test], model=Network(module, device="cpu"))


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(4).eval(), nn.Dropout(0.5).eval(), nn.Dropout(0), nn.GroupNorm(2, 4)])
def test_layers_that_are_frozen_or_treat_rows_alone(layer):
    task = small_task()
    module = nn.Sequential(nn.Linear(5, 4), layer, nn.Linear(4, 3)).double()
    network = Network(module, epochs=2, batch=8, device="cpu", classes=task.classes)
    coalitions = some_coalitions(task, 5)
    found, plain = NetworkTrainer(network, task), Estimator(network).trainer(task)
    np.testing.assert_allclose(found.evaluate(coalitions), plain.evaluate(coalitions), atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 1.5}, r"Network\(epochs=...\) must be a whole number"),
        ({"lr": 0}, r"Network\(lr=...\) must be a number above 0"),
        ({"batch": 0}, r"Network\(batch=...\) must be a whole number"),
        ({"loss": "hinge"}, r"Network\(loss=...\) must be one of 'cross_entropy', 'squared_error'; got 'hinge'"),
        ({"initial": "zero"}, r"Network\(initial=...\).*'zero'"),
        ({"optimizer": "adamm"}, r"Network\(optimizer=...\).*'adamm'.*adam"),
        ({"optimizer": torch.optim.LBFGS}, "an optimiser that treats each weight on its own"),
        ({"optimizer_settings": {"momentum": 1}}, r"Network\(optimizer_settings=...\) is not for Adam: .*momentum"),
        ({"classes": ["a", "b"]}, r"Network\(classes=...\) lacks labels of y, such as 'c'"),
        ({"device": "abacus"}, "device 'abacus' cannot be used"),
    ],
)
def test_wrong_settings(settings, message):
    task = small_task()
    with pytest.raises(ls.InvalidArgumentError, match=message):
        Network(mlp(), **settings).fit(task.X, task.y)
    if "loss" not in settings:
        with pytest.raises(ls.InvalidArgumentError, match=message):
            NetworkTrainer(Network(mlp(), **settings), task)


def test_without_torch(monkeypatch):
    task, network = small_task(), Network(mlp())
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ls.InvalidArgumentError, match=r"this needs PyTorch: pip install 'localshapley\[torch\]'"):
        ls.value(task.X, task.y, task.X_test, task.classes[task.y_test], model=network)


# As an estimator of scikit-learn


def test_it_is_a_classifier_or_a_regressor():
    task, numbers = small_task(), regression_task()
    network = Network(mlp(), epochs=40, lr=0.05, random_state=0)
    regressor = Network(mlp(1), epochs=60, lr=0.05, loss="squared_error", random_state=0)
    assert is_classifier(network)
    assert is_regressor(regressor)
    assert not hasattr(regressor, "predict_proba")
    assert network.fit(task.X, task.y).score(task.X, task.y) > 0.8
    assert regressor.fit(numbers.X, numbers.y).score(numbers.X, numbers.y) > 0.8
    assert regressor.predict(numbers.X).shape == (30,)
    assert not hasattr(regressor, "classes_")
    assert cross_val_score(make_pipeline(StandardScaler(), network), task.X, task.y, cv=2).mean() > 0.4


def test_copies():
    task = small_task()
    network = Network(mlp(), epochs=2, random_state=0).fit(task.X, task.y)
    again = pickle.loads(pickle.dumps(network))
    np.testing.assert_array_equal(again.predict_proba(task.X_test), network.predict_proba(task.X_test))
    copied = clone(network)
    assert copied.get_params()["epochs"] == 2
    with pytest.raises(NotFittedError):
        copied.predict(task.X_test)
    np.testing.assert_array_equal(copied.fit(task.X, task.y).predict(task.X_test), network.predict(task.X_test))


def test_it_is_described_without_its_layers():
    assert repr(Network(mlp(), lr=0.5, optimizer=torch.optim.SGD)) == "Network(Sequential, lr=0.5, optimizer=SGD)"
    assert repr(Network(Scaled)) == "Network(Scaled)"


def test_the_embedding_is_what_the_last_layer_sees():
    task = small_task()
    module = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Sequential(nn.Linear(4, 3), nn.Softmax(1))).double()
    network = Network(module, epochs=2).fit(task.X, task.y)
    with torch.no_grad():
        expected = network.module_[:2](torch.tensor(task.X))
    np.testing.assert_allclose(network.embed(task.X), expected, atol=1e-12)
    linear = Network(nn.Linear(5, 3).double(), epochs=2).fit(task.X, task.y)
    np.testing.assert_array_equal(linear.embed(task.X), task.X)


def test_images_in_their_shape():
    images = np.random.default_rng(0).normal(size=(12, 1, 6, 6))
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 3))
    network = Network(module, epochs=2).fit(images, np.arange(12) % 3)
    assert network.predict_proba(images).shape == (12, 3)
    assert network.embed(images).shape == (12, 32)
    with pytest.raises(
        ls.InvalidArgumentError, match=r"got 4: flatten each row with X.*nn\.Unflatten\(1, \(1, 6, 6\)\)"
    ):
        ls.value(images, np.arange(12) % 3, images, np.arange(12) % 3, model=network)


# Through the usual doors


def test_valuation_finds_wrong_labels():
    X, y, X_test, y_test, _ = ls.datasets.load("iris")
    names = np.array(["x", "y", "z"])
    y[:8] = (y[:8] + 1) % 3
    network = Network(mlp(n_features=4, dtype=torch.float32), epochs=20, lr=0.05, device="cpu")
    v = ls.value(X, names[y], X_test, names[y_test], model=network, support=ls.supports.Embedding(n=6), method="exact")
    assert v.cost.trainer == "Network (batched, cpu)"
    assert v.support == "Embedding(n=6)"
    assert (v.bottom(8).index < 8).sum() >= 5


def test_the_default_support_is_its_embedding():
    task = small_task()
    arguments = task.X, task.y, task.X_test, task.classes[task.y_test]
    network = Network(mlp(), epochs=5, device="cpu")
    scaler = StandardScaler().fit(task.X)
    fitted = clone(network).set_params(random_state=0).fit(scaler.transform(task.X), task.y)
    vectors = [fitted.embed(scaler.transform(X)) for X in (task.X, task.X_test)]
    piped = make_pipeline(StandardScaler(), network)
    v = ls.value(*arguments, model=piped, budget=200)
    same = ls.value(*arguments, model=piped, budget=200, support=ls.supports.Embedding(vectors))
    assert v.support == "Embedding(n=20)"
    assert any("locality is assumed" in note for note in v.notes)
    np.testing.assert_array_equal(v.values, same.values)


def test_only_networks_have_an_embedding_of_their_own():
    task = small_task()
    arguments = task.X, task.y, task.X_test, task.classes[task.y_test]
    with pytest.raises(
        ls.InvalidArgumentError, match=r"without an encoder needs a models.Network; SVC has no embedding"
    ):
        ls.value(*arguments, model="svm", support=ls.supports.Embedding(n=3))
    assert ls.supports.Embedding(n=3).larger() == "supports.Embedding(n=6)"


def test_folds_owners_and_reports(tmp_path):
    task = small_task()
    network = Network(mlp(), epochs=2, device="cpu")
    v = ls.value(task.X, task.y, model=network, cv=2, support=ls.supports.Embedding(n=3))
    assert v.cost.trainer == "Network (batched, cpu)"
    v.save(tmp_path / "v.parquet")
    np.testing.assert_array_equal(ls.load(tmp_path / "v.parquet").values, v.values)
    ls.report.write_report(tmp_path / "r.html", v, task.X, y=task.y)
    assert "Network(Sequential" in (tmp_path / "r.html").read_text()
    owners = ls.value(task.X, task.y, model=network, cv=2, owners=np.arange(30) % 4, support=ls.supports.Nearest(3))
    assert owners.values.shape == (4,)


def test_what_a_store_keeps(tmp_path):
    """A module made anew, with other random weights, is the same network; other layers or settings are not."""
    task = small_task()
    arguments = task.X, task.y, task.X_test, task.classes[task.y_test]

    def run(module, **settings):
        network = Network(module, epochs=2, device="cpu", **settings)
        v = ls.value(*arguments, model=network, support=ls.supports.Nearest(4), method="exact", store=store)
        return v, v.cost.stored

    store = ls.Store(tmp_path / "run.db", fastest=0)
    first, stored = run(mlp())
    assert stored == 0
    again, stored = run(mlp())
    assert stored == first.cost.trainings > 0
    np.testing.assert_array_equal(again.values, first.values)
    assert run(nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)).double())[1] == 0
    assert run(mlp(), lr=0.02)[1] == 0
    module = mlp()
    assert run(module, initial="module")[1] == 0
    assert run(module, initial="module")[1] > 0
    assert run(mlp(), initial="module")[1] == 0


def test_predictions_that_overflow_are_told():
    task = regression_task()
    network = Network(mlp(1), epochs=30, lr=1e160, optimizer="sgd", loss="squared_error", device="cpu")
    trained = NetworkTrainer(network, task).train(Coalitions.from_lists([[0, 1, 2]], [[0, 1]]))
    assert trained.counts.silent == 2
    assert "lower the lr" in NetworkTrainer(network, task).notes(trained.counts)[0]


def test_settings_tell_networks_apart():
    assert describe(Network(mlp(), random_state=1)) == describe(Network(mlp(), random_state=1))
    assert describe(Network(mlp(), random_state=1)) != describe(Network(mlp(4), random_state=1))
