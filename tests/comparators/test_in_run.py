"""In-Run Data Shapley, against gradients of single rows and games that are enumerated."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from math import comb
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import localshapley as ls

torch = pytest.importorskip("torch")
from localshapley.comparators import in_run_nodes, in_run_shapley, in_run_values  # noqa: E402 (these import PyTorch)


def small_network(seed=0, layers=None):
    torch.manual_seed(seed)
    layers = layers or [torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3)]
    return torch.nn.Sequential(*layers).double()


def small_data(n=7, n_test=5, seed=0, shape=(3,)):
    rng = np.random.default_rng(seed)
    X, X_test = rng.normal(size=(n, *shape)), rng.normal(size=(n_test, *shape))
    return X, np.arange(n) % 3, X_test, np.arange(n_test) % 3


class Plain:
    """The slow twin: each row's gradient by itself, the whole Hessian, numbers in one long vector."""

    def __init__(self, module, X, y, X_test, y_test):
        self.module = module
        self.X, self.X_test = torch.as_tensor(X), torch.as_tensor(X_test)
        self.y, self.y_test = torch.as_tensor(y), torch.as_tensor(y_test)
        self.theta = torch.nn.utils.parameters_to_vector(module.parameters()).detach()

    def loss(self, theta, X, y):
        params, start = {}, 0
        for name, tensor in self.module.named_parameters():
            params[name] = theta[start : start + tensor.numel()].view_as(tensor)
            start += tensor.numel()
        outputs = torch.func.functional_call(self.module, params, (X,))
        return torch.nn.functional.cross_entropy(outputs, y, reduction="sum")

    def test_loss(self, theta):
        return self.loss(theta, self.X_test, self.y_test)

    def gradient(self, i):
        theta = self.theta.clone().requires_grad_()
        return torch.autograd.grad(self.loss(theta, self.X[i : i + 1], self.y[i : i + 1]), theta)[0]

    def expansion(self):
        theta = self.theta.clone().requires_grad_()
        slope = torch.autograd.grad(self.test_loss(theta), theta)[0]
        return slope, torch.autograd.functional.hessian(self.test_loss, self.theta)

    def worth(self, rows, size, order):
        """Fall of the test loss, expanded, after a step with these rows alone."""
        slope, hessian = self.expansion()
        move = -size * sum((self.gradient(i) for i in rows), torch.zeros_like(self.theta))
        fall = -slope @ move
        return float(fall if order == 1 else fall - move @ hessian @ move / 2)

    def values(self, batch, size, order):
        """Shapley values by enumeration of the coalitions of a batch."""
        worth = {s: self.worth(s, size, order) for r in range(len(batch) + 1) for s in combinations(batch, r)}
        out = np.zeros(len(self.X))
        for i in batch:
            for s in worth:
                if i not in s:
                    gain = worth[tuple(sorted((*s, i), key=batch.index))] - worth[s]
                    out[i] += gain / (len(batch) * comb(len(batch) - 1, len(s)))
        return out

    def step(self, batch, size):
        self.theta = self.theta - size * sum(self.gradient(i) for i in batch)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.slow
def test_one_step_is_the_shapley_value_of_the_expansion(order):
    data, module = small_data(n=6), small_network()
    found = in_run_shapley(module, *data, order=order, epochs=1, batch_size=6, lr=2.0, device="cpu")
    np.testing.assert_allclose(found.values, Plain(module, *data).values(range(6), 2.0 / 6, order), rtol=1e-9)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.slow
def test_a_run_of_unequal_batches(order):
    """Seven rows in batches of three, three and one, two epochs, against gradients of single rows."""
    data, module = small_data(), small_network(1)
    found = in_run_shapley(module, *data, order=order, epochs=2, batch_size=3, lr=0.5, seed=4, device="cpu").values
    plain, rng, values = Plain(module, *data), np.random.default_rng(4), np.zeros(7)
    for _ in range(2):
        turn = rng.permutation(7).tolist()
        for batch in (turn[:3], turn[3:6], turn[6:]):
            values += plain.values(batch, 0.5 / len(batch), order)
            plain.step(batch, 0.5 / len(batch))
    np.testing.assert_allclose(found, values, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    "layers",
    [
        lambda: [torch.nn.Conv1d(2, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(9, 3)],
        lambda: [torch.nn.Flatten(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3)],
        lambda: [torch.nn.Conv1d(2, 4, 2), torch.nn.MaxPool1d(2), torch.nn.Flatten(), torch.nn.Linear(4, 3)],
        lambda: [
            torch.nn.Flatten(),
            torch.nn.Linear(8, 4),
            torch.nn.BatchNorm1d(4),
            torch.nn.GELU(),
            torch.nn.Linear(4, 3),
        ],
    ],
)
def test_any_layers(layers):
    """No layer needs a rule of its own."""
    data, module = small_data(n=4, shape=(2, 4)), small_network(2, layers())
    found = in_run_shapley(module, *data, order=2, epochs=1, batch_size=4, lr=1.0, device="cpu")
    np.testing.assert_allclose(found.values, Plain(module.eval(), *data).values(range(4), 0.25, 2), rtol=1e-8)


def test_values_add_up_to_the_fall_of_the_loss():
    """Nearly; second order comes nearer than first, and both the nearer the smaller the steps."""
    data, module = small_data(n=20, n_test=10), small_network(3)
    errors = {}
    for lr, epochs in ((0.4, 4), (0.04, 40)):
        params = {name: tensor.detach() for name, tensor in module.named_parameters()}
        for order in (1, 2):
            X, y, X_test, y_test = (torch.as_tensor(array) for array in data)

            def losses(p, batch, X=X, y=y):
                outputs = torch.func.functional_call(module, p, (X[batch],))
                return torch.nn.functional.cross_entropy(outputs, y[batch], reduction="none")

            def test_loss(p, X=X_test, y=y_test):
                return torch.nn.functional.cross_entropy(torch.func.functional_call(module, p, (X,)), y)

            values, end = in_run_values(params, losses, test_loss, 20, order=order, epochs=epochs, batch_size=5, lr=lr)
            errors[lr, order] = abs(values.sum() - float(test_loss(params) - test_loss(end)))
    assert errors[0.4, 2] < errors[0.4, 1] / 5
    assert errors[0.04, 1] < errors[0.4, 1] / 5
    assert errors[0.04, 2] < errors[0.4, 2] / 20


def test_wrong_labels_have_low_values():
    X, y, X_test, y_test, _ = ls.datasets.load("iris")
    y = y.copy()
    y[:8] = (y[:8] + 1) % 3
    torch.manual_seed(0)
    v = in_run_shapley(torch.nn.Linear(4, 3), X, y, X_test, y_test, epochs=20, batch_size=16, lr=0.1)
    assert (v.bottom(8).index < 8).sum() >= 6
    assert "in-run, order 1: 1 training" in repr(v)


def test_the_module_is_left_as_it_was():
    data = small_data()
    module = small_network(0, [torch.nn.Linear(3, 3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 3)])
    module[0].weight.requires_grad_(False)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    first, second = (in_run_shapley(module, *data, epochs=3, device="cpu").values for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert module.training
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_text_labels_are_the_outputs_in_their_order():
    X, y, X_test, y_test = small_data()
    names = np.array(["a", "b", "c"])
    numbers = in_run_shapley(small_network(), X, y, X_test, y_test, epochs=2).values
    texts = in_run_shapley(small_network(), X, names[y], X_test, names[y_test], epochs=2).values
    np.testing.assert_array_equal(numbers, texts)


# Nodes


def path_of_nodes(n=9, seed=0):
    rng = np.random.default_rng(seed)
    adjacency = sparse.diags([1.0, 1.0, 1.0, 1.0], [-5, -1, 1, 5], shape=(n, n)).tocsr()
    return (
        adjacency,
        sparse.csr_matrix(rng.normal(size=(n, 4))),
        rng.integers(0, 2, n),
        np.array([7, 1, 2, 4]),
        np.array([3, 8]),
    )


@pytest.mark.parametrize("order", [1, 2])
def test_nodes_against_a_dense_network(order):
    """The same network written with dense matrices and single nodes' losses."""
    from localshapley.comparators.in_run_graph import _first_weights

    adjacency, X, y, train, test = path_of_nodes()
    looped = adjacency.toarray() + np.eye(9)
    degrees = looped.sum(axis=1)
    spread = torch.as_tensor(looped / np.sqrt(np.outer(degrees, degrees)))
    features, truth = torch.as_tensor(X.toarray()), torch.as_tensor(y)

    def losses(p, batch):
        units = torch.relu(spread @ features @ p["first"] + p["first_bias"])
        outputs = spread @ units @ p["second"] + p["second_bias"]
        return torch.nn.functional.cross_entropy(outputs[batch], truth[batch], reduction="none")

    start = {name: w.double() for name, w in _first_weights(4, 5, 2, 3, torch.device("cpu")).items()}
    slow, _ = in_run_values(
        start,
        lambda p, batch: losses(p, train[batch]),
        lambda p: losses(p, test).sum(),
        4,
        order=order,
        epochs=5,
        batch_size=3,
        lr=0.5,
        seed=3,
    )
    fast = in_run_nodes(
        adjacency, X, y, train, test, hidden=5, order=order, epochs=5, batch_size=3, lr=0.5, seed=3, device="cpu"
    )
    np.testing.assert_allclose(fast.values, slow, rtol=1e-4, atol=1e-6)


def edges_of(adjacency):
    """Each edge once, from the lower node."""
    return np.stack(sparse.triu(adjacency).nonzero(), axis=1)


def a_networkx_graph(adjacency):
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph(edges_of(adjacency).tolist())
    graph.add_edge(2, 2)
    return graph


FORMS = {
    "edge list": lambda a: edges_of(a).tolist(),
    "edges repeated, with a loop": lambda a: np.concatenate([edges_of(a), edges_of(a)[:, ::-1], [[3, 3]]]),
    "networkx": a_networkx_graph,
    "PyTorch Geometric": lambda a: SimpleNamespace(edge_index=torch.tensor(edges_of(a).T), num_nodes=9),
    "weights, one way, with loops": lambda a: sparse.coo_array(sparse.triu(2.5 * a + sparse.eye(9))),
}


def assert_same_values(nodes, others):
    settings = {"hidden": 5, "epochs": 3, "batch_size": 3, "lr": 0.5, "seed": 3, "device": "cpu"}
    found, expected = (in_run_nodes(*arguments, **settings).values for arguments in (others, nodes))
    assert expected.all()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_graph_give_the_same_values(form):
    adjacency, *others = path_of_nodes()
    assert_same_values((adjacency, *others), (FORMS[form](adjacency), *others))


def test_frames_text_labels_and_masks_give_the_same_values():
    adjacency, X, y, train, test = path_of_nodes()
    names = np.array(["no", "yes"], dtype=object)[y]
    names[0] = None  # neither a training node nor a test node
    masks = (np.isin(np.arange(9), nodes) for nodes in (train, test))
    assert_same_values(
        (adjacency, X, y, np.sort(train), test), (adjacency, pd.DataFrame(X.toarray()), pd.Series(names), *masks)
    )


def test_the_features_are_left_as_they_were():
    """Columns out of order, one of them twice, a zero: what is read is put in order, what was given is not."""
    adjacency, _, *others = path_of_nodes()
    columns, ends = np.array([2, 0, 1, 1, 0, *[3] * 7]), np.array([0, 3, 5, *range(6, 13)])
    for dtype in (np.float32, np.float64):
        X = sparse.csr_matrix((np.arange(12, dtype=dtype), columns, ends), shape=(9, 4))
        before = X.copy()
        in_run_nodes(adjacency, X, *others, epochs=1)
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(X, part), getattr(before, part))


def test_a_test_label_that_no_training_node_has():
    adjacency, X, y, train, test = path_of_nodes()
    y[8] = 2
    with pytest.warns(ls.errors.LocalShapleyWarning, match=r"y_test holds labels that y does not have \(2\)") as told:
        v = in_run_nodes(adjacency, X, y, train, test, epochs=2)
    assert told[0].filename == __file__
    assert np.isfinite(v.values).all()
    assert len(v.notes) == 2
    assert "does not have (2)" in v.notes[0]


def test_cora(shared_data):
    graph = ls.datasets.load("cora", data_home=shared_data)
    y = graph.y.copy()
    wrong = np.random.default_rng(0).permutation(len(graph.train))[:170]
    y[graph.train[wrong]] = (y[graph.train[wrong]] + 1) % 7
    v = in_run_nodes(graph.adjacency, graph.X, y, graph.train, graph.test, epochs=6, lr=0.1)
    lowest = np.argsort(v.values)[:170]
    assert np.isin(lowest, wrong).mean() > 0.4, "a tenth would be chance"


# Arguments


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"order": 3}, "order must be one of '1', '2'; got 3"),
        ({"epochs": 0}, r"epochs must be a whole number"),
        ({"batch_size": 2.5}, r"batch_size must be a whole number"),
        ({"lr": -1}, r"lr must be a number above 0"),
        ({"device": "abacus"}, "device 'abacus' cannot be used"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(ls.InvalidArgumentError, match=message):
        in_run_shapley(small_network(), *small_data(), **settings)


def test_a_run_that_leaves_the_numbers():
    module = small_network(0, [torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3)])
    with pytest.raises(ls.InvalidArgumentError, match=r"lr=1e.300 is too large"):
        in_run_shapley(module, *small_data(), lr=1e300, epochs=5)


@pytest.mark.parametrize(
    ("place", "wrong", "message"),
    [
        (0, "network", "module must be a torch.nn.Module; got str"),
        (0, torch.nn.Tanh(), "no parameters to train"),
        (0, torch.nn.Linear(3, 2), r"each of the 3 classes of y; one row gave shape \(1, 2\)"),
        (2, [0, 1], r"y must have one label for each of the 7 rows; got shape \(2,\)"),
        (4, [0, 1, 2, 0, 9], "y_test holds labels that y does not have [(]9[)]"),
    ],
)
def test_wrong_data(place, wrong, message):
    arguments = [small_network(), *small_data()]
    arguments[place] = wrong
    with pytest.raises(ls.InvalidArgumentError, match=message):
        in_run_shapley(*arguments)


@pytest.mark.parametrize("function", [in_run_nodes, ls.value_nodes])
@pytest.mark.parametrize(
    ("place", "wrong", "message"),
    [
        (0, np.eye(9), r"adjacency must be a SciPy sparse matrix.*csr_array\(matrix\)"),
        (0, [[0, 9]], "adjacency has 10 nodes, X has 9 rows"),
        (0, [[0, -1]], "adjacency names node -1; nodes are numbered from 0"),
        (1, np.zeros((3, 4)), "adjacency has 9 nodes, X has 3 rows"),
        (1, np.full((9, 4), np.nan), "X holds missing values"),
        (1, [["text"]] * 9, "X must be a matrix of numbers"),
        (2, [0, 1], r"y has shape \(2,\), X has 9 rows"),
        (2, np.zeros(9), r"y holds one class only \(0.0\)"),
        (2, np.array([*"abababab", None]), r"y_test is missing \(NaN\) in 1 places"),
        (3, np.array([4, 9]), "train names node 9, but the nodes are 0 to 8"),
        (3, [1, 2, 1], "train names a node more than once"),
        (3, [1, 2, 3], "train and test share 1 nodes, first 3"),
        (4, np.array([]), r"test must be a list of node numbers or a mask of shape \(9,\)"),
    ],
)
def test_wrong_graphs(function, place, wrong, message):
    """Both readers of graphs say the same."""
    arguments = list(path_of_nodes())
    arguments[place] = wrong
    with pytest.raises(ls.InvalidArgumentError, match=message):
        function(*arguments, device="cpu")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": 0}, r"hidden must be a whole number"),
        ({"epochs": 2.5}, r"epochs must be a whole number"),
        ({"device": "abacus"}, "device 'abacus' cannot be used"),
    ],
)
def test_wrong_settings_for_graphs(settings, message):
    with pytest.raises(ls.InvalidArgumentError, match=message):
        in_run_nodes(*path_of_nodes(), **settings)


def test_without_torch_the_extra_is_named(monkeypatch):
    for name in ("torch", "localshapley.comparators.in_run", "localshapley.comparators.in_run_graph"):
        monkeypatch.setitem(sys.modules, name, None if name == "torch" else sys.modules.get(name))
        if name != "torch":
            monkeypatch.delitem(sys.modules, name)
    for name in ("in_run_shapley", "in_run_values", "in_run_nodes"):
        with pytest.raises(ls.InvalidArgumentError, match=rf"comparators\.{name} needs PyTorch: pip install"):
            getattr(ls.comparators, name)


@pytest.mark.slow
def test_torch_is_imported_when_it_is_needed():
    code = "import sys, localshapley as ls; ls.comparators.knn_shapley, ls.models; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
