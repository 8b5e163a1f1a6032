"""Networks that are trained in batches against plain ones, and values of nodes against enumeration."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import localshapley as ls
import naive
from localshapley import scoring
from localshapley.errors import InvalidArgumentError
from localshapley.models import GCN, GIN, Coalitions, GCNTrainer, GraphSAGE, Task
from localshapley.nodes import value_nodes
from localshapley.supports import Everything, Given, Hops, Nearest, Random
from localshapley.supports.hops import within
from localshapley.torch.graph_data import NodeData, read_edges

torch = pytest.importorskip("torch")
import naive_gcn  # noqa: E402 - it needs PyTorch
from localshapley.torch.batched_gcn import GraphNetworkBatch, initial_weights  # noqa: E402

MODELS = [GCN, GraphSAGE, GIN]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def make(seed, n_nodes=24, n_features=15, n_edges=40, n_classes=3):
    """A random graph with sparse features; some nodes are isolated, some have no feature."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, n_nodes - 2, size=(n_edges, 2))
    X = rng.normal(size=(n_nodes, n_features)) * (rng.random((n_nodes, n_features)) < 0.2)
    y = rng.integers(0, n_classes, size=n_nodes)
    order = rng.permutation(n_nodes)
    train, test = order[: n_nodes // 2], order[n_nodes // 2 : n_nodes - 4]  # four nodes are neither
    y[train[:n_classes]] = np.arange(n_classes)
    return SimpleNamespace(pairs=pairs, adjacency=read_edges(pairs, n_nodes), X=X, y=y, train=train, test=test)


def trainer_of(data, model, *, graph="induced", seed=0, scored=None, score="confidence", **settings):
    classes, codes = np.unique(data.y[data.train], return_inverse=True)
    score = scoring.resolve(score, "classifier", (classes, np.empty(0)), True)
    task = Task(None, data.y[data.train], None, data.y[data.test], classes, codes, score, seed=seed)
    scored = sparse.eye_array(len(data.test), format="csr") if scored is None else scored
    return GCNTrainer(model, task, node_data(data), scored, graph=graph, **{"device": "cpu", **settings})


def node_data(data):
    return NodeData(data.adjacency, sparse.csr_array(data.X), data.y, data.train, data.test)


def plain_logits(data, coalition, model, graph, seed=0):
    """Logits of all test nodes by the slow twin; the coalition is given as rows of `train`."""
    n_classes = len(np.unique(data.y[data.train]))
    weights = initial_weights(data.X.shape[1], model.hidden, n_classes, seed, model.n_blocks)
    return naive_gcn.logits(
        data.adjacency.toarray().astype(float), data.X, data.y, data.train[list(coalition)], data.test,
        kind=type(model).__name__, n_classes=n_classes, graph=graph, weights=weights,
        epochs=model.epochs, lr=model.lr, weight_decay=model.weight_decay,
    )  # fmt: skip


def softmax(logits):
    share = np.exp(logits.astype(float) - logits.max(axis=1, keepdims=True))
    return share / share.sum(axis=1, keepdims=True)


def draw(data, n, seed=0):
    """Coalitions with two classes or more, each with some test nodes in some order."""
    rng = np.random.default_rng(seed)
    coalitions = []
    while len(coalitions) < n:
        coalition = rng.choice(len(data.train), size=rng.integers(2, len(data.train) + 1), replace=False)
        if len(np.unique(data.y[data.train[coalition]])) > 1:
            coalitions.append(np.sort(coalition))
    tests = [rng.choice(len(data.test), size=rng.integers(1, len(data.test) + 1), replace=False) for _ in coalitions]
    return Coalitions.from_lists(coalitions, tests)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("graph", ["induced", "full"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    "settings", [{}, {"hidden": 5, "epochs": 7, "lr": 0.1, "weight_decay": 0}, {"weight_decay": 0.3}]
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_same_logits_as_one_at_a_time(device, graph, kind, settings, seed):
    data, model = make(seed), kind(**settings)
    trainer, coalitions = trainer_of(data, model, graph=graph, seed=seed, device=device), draw(data, 12, seed)
    nodes, tests = trainer._nodes[coalitions.players], trainer._tests[coalitions.tests]
    codes = trainer._codes[coalitions.players]
    found = trainer._networks.predict(coalitions.indptr, nodes, codes, coalitions.test_indptr, tests)
    for c in range(len(coalitions)):
        truth = plain_logits(data, coalitions.coalition(c), model, graph, seed)[coalitions.tests_of(c)]
        ours = np.log(found[coalitions.test_indptr[c] : coalitions.test_indptr[c + 1]])
        # Probabilities tell logits up to a number that all classes share.
        np.testing.assert_allclose(
            ours - ours.mean(axis=1, keepdims=True),
            truth - truth.mean(axis=1, keepdims=True),
            atol=1e-4,
            rtol=1e-7 if device == "cpu" or kind is GCN else 1e-3,
        )


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("seed", [0, 1])
def test_same_scores_as_pytorch_geometric(kind, seed):
    nn = pytest.importorskip("torch_geometric", reason="torch_geometric").nn
    data, model = make(seed), kind(hidden=6, lr=0.05)
    first, second = initial_weights(data.X.shape[1], 6, 3, seed, model.n_blocks)
    if kind is GraphSAGE:
        layers = [nn.SAGEConv(len(first) // 2, 6), nn.SAGEConv(6, 3)]
        linear = [(layer.lin_r, layer.lin_l) for layer in layers]  # of the node, and of its neighbours
    elif kind is GIN:
        layers = [nn.GINConv(torch.nn.Linear(*w.shape)) for w in (first, second)]
        linear = [(layer.nn,) for layer in layers]
    else:
        layers = [nn.GCNConv(*w.shape) for w in (first, second)]
        linear = [(layer.lin,) for layer in layers]
    with torch.no_grad():
        for maps, weights in zip(linear, (first, second), strict=True):
            for one, block in zip(maps, weights.chunk(len(maps)), strict=True):
                one.weight.copy_(block.T)
        for name, parameter in torch.nn.ModuleList(layers).named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
    network = nn.Sequential("x, edges", [
        (layers[0], "x, edges -> x"), torch.nn.ReLU(), (layers[1], "x, edges -> x")
    ])  # fmt: skip
    X, edges = torch.tensor(data.X, dtype=torch.float32), torch.tensor(np.stack(data.adjacency.nonzero())).long()
    adam = torch.optim.Adam(network.parameters(), lr=0.05, weight_decay=5e-4)
    for _ in range(model.epochs):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(network(X, edges)[data.train], torch.tensor(data.y[data.train])).backward()
        adam.step()
    share = network(X, edges)[data.test].softmax(1).detach().numpy()
    everyone = Coalitions.from_lists([np.arange(len(data.train))], [np.arange(len(data.test))])
    ours = trainer_of(data, model, graph="full", seed=seed).evaluate(everyone)
    np.testing.assert_allclose(ours, share[np.arange(len(data.test)), data.y[data.test]], atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weight_decay", [0.0, 0.5])
@pytest.mark.parametrize("kind", MODELS)
def test_columns_that_training_does_not_see(device, weight_decay, kind):
    # Nodes 0 and 1 are trained; test node 3 is out of reach and has a feature of its own.
    pairs = np.array([[0, 1], [1, 2], [3, 4]])
    X = np.zeros((5, 4))
    X[[0, 1, 2], [0, 1, 0]] = 1
    X[3, 3] = 2
    data = SimpleNamespace(
        adjacency=read_edges(pairs, 5), X=X, y=np.array([0, 1, 0, 1, 0]), train=np.array([0, 1]), test=np.array([2, 3])
    )
    model = kind(weight_decay=weight_decay)
    truth = softmax(plain_logits(data, [0, 1], model, "induced"))
    trainer = trainer_of(data, model, device=device)
    ours = trainer.evaluate(Coalitions.from_lists([[0, 1]], [[0, 1]]))
    np.testing.assert_allclose(ours, truth[[0, 1], data.y[data.test]], atol=1e-6)
    networks = trainer._networks
    assert torch.equal(networks._decayed, networks._first) == (weight_decay == 0)


@pytest.mark.parametrize("graph", ["induced", "full"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.slow
def test_batches_do_not_matter(graph, kind):
    data = make(3)
    coalitions = draw(data, 70)
    one, few, many = (
        trainer_of(data, kind(), graph=graph, batch_size=size).evaluate(coalitions) for size in (1, 9, 70)
    )
    np.testing.assert_allclose(few, one, atol=1e-6)
    np.testing.assert_allclose(many, one, atol=1e-6)
    again = np.array([0, 0, 1, 1])
    twice = Coalitions.from_lists([coalitions.coalition(c) for c in again], [[0, 1]] * 4)
    found = trainer_of(data, kind(), graph=graph).evaluate(twice).reshape(4, 2)
    np.testing.assert_allclose(found[[0, 2]], found[[1, 3]], atol=1e-6)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("seed", range(5))
def test_all_training_nodes_see_the_whole_graph(kind, seed):
    # If every node is a training or a test node, the induced graph of all of them is the full one.
    data = make(seed)
    data.test = np.setdiff1d(np.arange(24), data.train)
    everyone = Coalitions.from_lists([np.arange(len(data.train))], [np.arange(len(data.test))])
    induced, full = (trainer_of(data, kind(), graph=graph).evaluate(everyone) for graph in ("induced", "full"))
    np.testing.assert_allclose(induced, full, atol=1e-4)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("graph", ["induced", "full"])
@pytest.mark.parametrize("seed", range(3))
def test_numbers_of_nodes_do_not_matter(kind, graph, seed):
    data, renamed = make(seed), make(seed)
    new = np.random.default_rng(seed).permutation(24)
    renamed.adjacency = read_edges(new[data.pairs], 24)
    renamed.X[new], renamed.y[new] = data.X, data.y
    renamed.train, renamed.test = new[data.train], new[data.test]
    coalitions = draw(data, 5, seed)
    here, there = (trainer_of(d, kind(), graph=graph).evaluate(coalitions) for d in (data, renamed))
    np.testing.assert_allclose(there, here, atol=1e-4)


def test_networks_differ_by_how_they_mix():
    data = make(4)
    coalitions = draw(data, 5)
    found = [trainer_of(data, kind()).evaluate(coalitions) for kind in MODELS]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(found[a] - found[b]).max() > 1e-3


def test_known_outcomes_are_not_trained():
    data = make(4)
    one_class = np.flatnonzero(data.y[data.train] == 1)
    coalitions = Coalitions.from_lists([[], one_class], [np.arange(len(data.test))] * 2)
    trainer = trainer_of(data, GCN())
    trained = trainer.train(coalitions)
    nothing, certain = trained.scores.reshape(2, -1)
    assert trained.counts.trivial == 2
    np.testing.assert_allclose(nothing, 1 / 3)
    np.testing.assert_array_equal(certain, data.y[data.test] == 1)


@pytest.mark.parametrize("score", ["accuracy", "margin", "log_loss"])
def test_other_scores(score):
    data = make(5)
    trainer, coalitions = trainer_of(data, GCN(lr=0.05), score=score), draw(data, 6)
    codes = data.y[data.test]
    for c, ours in enumerate(np.split(trainer.evaluate(coalitions), coalitions.test_indptr[1:-1])):
        tests = coalitions.tests_of(c)
        share = softmax(plain_logits(data, coalitions.coalition(c), GCN(lr=0.05), "induced"))[tests]
        if score == "accuracy":
            share = np.eye(3)[share.argmax(axis=1)]
        np.testing.assert_allclose(ours, trainer._task.score(codes[tests], share), atol=1e-4)


@pytest.mark.slow
def test_a_test_is_the_sum_of_its_nodes():
    data = make(6)
    groups = sparse.csr_array(np.random.default_rng(0).integers(0, 2, size=(4, len(data.test))).astype(float))
    coalition = draw(data, 1).coalition(0)
    alone = trainer_of(data, GCN()).evaluate(Coalitions.from_lists([coalition], [np.arange(len(data.test))]))
    summed = trainer_of(data, GCN(), scored=groups).evaluate(Coalitions.from_lists([coalition], [[3, 0, 1, 2]]))
    np.testing.assert_allclose(summed, (groups @ alone)[[3, 0, 1, 2]])


def test_out_of_memory_halves_the_batch(monkeypatch):
    data = make(7)
    coalitions = draw(data, 20)
    truth = trainer_of(data, GCN()).evaluate(coalitions)
    trainer, train, sizes = trainer_of(data, GCN()), GraphNetworkBatch._train, []

    def short_of_memory(self, field, features, columns, indptr, codes):
        sizes.append(len(indptr) - 1)
        if len(indptr) - 1 > 6:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return train(self, field, features, columns, indptr, codes)

    monkeypatch.setattr(GraphNetworkBatch, "_train", short_of_memory)
    np.testing.assert_allclose(trainer.evaluate(coalitions), truth, atol=1e-6)
    assert sizes[0] == 20
    trainer.evaluate(coalitions)
    assert sizes[-1] <= 6

    monkeypatch.setattr(
        GraphNetworkBatch, "_train", lambda *_: (_ for _ in ()).throw(torch.cuda.OutOfMemoryError("no room"))
    )
    with pytest.raises(ls.TrainingError, match=r"too little memory to train one coalition: no room"):
        trainer.evaluate(coalitions)


def test_threads_of_pytorch_are_given_back():
    before = torch.get_num_threads()
    data = make(8)
    trainer_of(data, GCN()).evaluate(draw(data, 3))
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("graph", ["induced", "full"])
@pytest.mark.parametrize(("hidden", "n_classes"), [(32, 3), (100, 17), (300, 17)])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.gpu
def test_devices_agree(graph, hidden, n_classes, kind):
    data = make(9, n_nodes=120, n_edges=300, n_classes=n_classes)
    coalitions, model = draw(data, 100), kind(hidden=hidden, epochs=5)
    here, there = (trainer_of(data, model, graph=graph, device=device) for device in ("cpu", "cuda"))
    assert there._networks.apart == (kind is GCN and hidden < 300)  # a large second layer does not fit into registers
    assert there.is_quick == there._networks.apart
    assert not here.is_quick
    difference = np.abs(there.evaluate(coalitions) - here.evaluate(coalitions))
    assert (difference < 1e-4).mean() > 0.99
    # Adam takes a whole step along a slope whose sign is rounding; sums and means have more of these.
    assert difference.max() < (1e-4 if kind is GCN else 5e-3)


@pytest.mark.parametrize("graph", ["induced", "full"])
@pytest.mark.gpu
def test_programs_give_the_same_bits_in_any_company(graph):
    data = make(3, n_nodes=200, n_edges=700)
    coalitions = draw(data, 70)
    one, few, many = (
        trainer_of(data, GCN(), graph=graph, device="cuda", batch_size=size).evaluate(coalitions) for size in (1, 9, 70)
    )
    np.testing.assert_array_equal(few, one)
    np.testing.assert_array_equal(many, one)


@pytest.mark.parametrize("graph", ["induced", "full"])
@pytest.mark.gpu
def test_programs_cut_out_what_the_walk_does(graph):
    data = make(5, n_nodes=200, n_edges=300)
    hubs = np.array([(hub, node) for hub in (data.train[0], data.test[0]) for node in range(0, 200, 2)])
    data.adjacency = read_edges(np.concatenate([data.pairs, hubs]), 200)
    coalitions, model = draw(data, 20), GCN(epochs=3)
    here, there = (trainer_of(data, model, graph=graph, device=device) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(there.evaluate(coalitions), here.evaluate(coalitions), atol=1e-5)

    from localshapley.kernels.receptive import walk

    nodes, tests = here._nodes[coalitions.players], here._tests[coalitions.tests]
    reach = there._networks._reach
    brought = np.add.reduceat(reach[nodes], coalitions.indptr[:-1])
    entries = np.diff(here._networks._graph.features.indptr)
    for wanted_indptr, wanted in ((coalitions.indptr, nodes), (coalitions.test_indptr, tests)):
        if wanted is tests:
            brought = brought + np.add.reduceat(reach[tests], coalitions.test_indptr[:-1])
        field = walk(coalitions.indptr, nodes, wanted_indptr, wanted, here._networks._graph)
        for c, (rows, links, features) in enumerate(brought):
            seen = field.rows[field.row_indptr[c] : field.row_indptr[c + 1]]
            seen = seen[seen >= 0]
            hidden = field.hidden_indptr[c : c + 2]
            if graph == "full":
                n_links = np.diff(field.outer.indptr[wanted_indptr[c : c + 2]])[0]
            else:
                n_links = np.diff(field.near.indptr[hidden] - hidden)[0]  # each row begins with the bias
            assert len(seen) <= rows
            assert 2 * n_links <= links
            assert entries[seen].sum() <= features


# Values


def enumerated(data, supports, groups, model, graph):
    """Values of the training nodes by the definition, every coalition trained by the slow twin.

    `supports` and `groups` are the players and the test nodes (by place) of each game.
    """
    trained = {}
    codes, n_classes = data.y[data.test], len(np.unique(data.y[data.train]))

    def score(coalition, game):
        if coalition not in trained:
            held = np.unique(data.y[data.train[list(coalition)]])
            if len(held) == 0:
                share = np.full((len(codes), n_classes), 1 / n_classes)
            elif len(held) == 1:
                share = np.eye(n_classes)[np.full(len(codes), held[0])]
            else:
                share = softmax(plain_logits(data, coalition, model, graph))
            trained[coalition] = share[np.arange(len(codes)), codes]
        return trained[coalition][groups[game]].sum()

    return naive.shapley_matrix(supports, score, len(data.train))


def hops(data, starts, ends, n):
    """Which of `ends` each of `starts` reaches, by breadth-first search."""
    near = [set(np.flatnonzero(row)) for row in data.adjacency.toarray()]
    out = []
    for start in starts:
        seen = {int(start)}
        for _ in range(n):
            seen |= set().union(*(near[i] for i in seen))
        out.append([place for place, end in enumerate(ends) if end in seen])
    return out


@pytest.mark.parametrize("n", [1, 2, 3])
def test_hops(n):
    data = make(10)
    found = within(data.adjacency, data.test, data.train, n)
    truth = hops(data, data.test, data.train, n)
    assert [row.tolist() for row in np.split(found.indices, found.indptr[1:-1])] == truth


@pytest.mark.parametrize("graph", ["induced", "full"])
@pytest.mark.parametrize("games", ["test", "train"])
@pytest.mark.parametrize("kind", MODELS)
def test_values_are_those_of_enumeration(games, graph, kind):
    data = make(11, n_nodes=16, n_edges=20)
    model = kind(hidden=6, epochs=4, lr=0.05)
    v = value_nodes(
        data.pairs, data.X, data.y, data.train, data.test,
        model=model, games=games, graph=graph, method="exact", device="cpu",
    )  # fmt: skip
    if games == "test":
        supports, groups = hops(data, data.test, data.train, 2), [[t] for t in range(len(data.test))]
    else:
        supports, groups = hops(data, data.train, data.train, 2), hops(data, data.train, data.test, 2)
    truth = enumerated(data, supports, groups, model, graph)
    assert np.abs(truth.sum(axis=0)).max() > 0.1
    np.testing.assert_allclose(v.values, truth.sum(axis=0), atol=1e-5)
    assert v.ids.tolist() == data.train.tolist()
    assert v.ids.name == "node"


@pytest.mark.parametrize("games", ["test", "train"])
def test_values_by_test_node(games):
    data = make(12, n_nodes=18, n_edges=24)
    settings = {"model": GCN(hidden=4, epochs=3), "games": games, "method": "exact", "device": "cpu"}
    arguments = data.pairs, data.X, data.y, data.train, data.test
    v, by_test = value_nodes(*arguments, **settings), value_nodes(*arguments, **settings, per_test=True)
    assert by_test.per_test.shape == (len(data.test), len(data.train))
    np.testing.assert_allclose(by_test.values, v.values, atol=1e-6)
    np.testing.assert_allclose(by_test.per_test.sum(axis=0), v.values, atol=1e-6)
    np.testing.assert_array_equal(by_test.n_tests, v.n_tests)
    np.testing.assert_array_equal(np.diff(by_test.per_test.indptr), v.support_sizes)


def test_sampled_values_are_near_the_exact_ones():
    data = make(13, n_nodes=40, n_edges=60)
    arguments = data.pairs, data.X, data.y, data.train, data.test
    settings = {"model": GCN(hidden=4, epochs=3, lr=0.1), "support": Hops(2, max_size=8), "device": "cpu"}
    exact = value_nodes(*arguments, **settings, method="exact")
    sampled = value_nodes(*arguments, **settings, method="sample", tol=0.2)
    assert sampled.cost.trainings > 0
    assert np.linalg.norm(sampled.values - exact.values) < 0.4 * np.linalg.norm(exact.values)


@pytest.mark.parametrize("support", [Everything(), Random(3), Given([[0, 1]] * 6), Nearest(3)])
def test_other_supports(support):
    data = make(14, n_nodes=14, n_edges=20)
    data.train, data.test = data.train[:6], data.test[:6]
    data.test = np.resize(np.setdiff1d(np.arange(14), data.train), 6)
    arguments = data.adjacency, data.X, data.y, data.train, data.test
    v = value_nodes(*arguments, support=support, model=GCN(hidden=4, epochs=2), method="exact", device="cpu")
    assert (v.support_sizes > 0).all()
    with pytest.raises(InvalidArgumentError, match=r"support must be supports.Hops\(n\) for games='train'"):
        value_nodes(*arguments, support=support, games="train", device="cpu")


def forms():
    """The same path in every form, with loops and repetitions where they can be."""
    path = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]])
    one_way = sparse.coo_array((np.full(5, 2.5), path.T), shape=(6, 6))
    yield pytest.param(one_way, id="sparse")
    yield pytest.param(np.concatenate([path, path[:, ::-1], path, [[2, 2]]]), id="array")
    yield pytest.param(path.tolist(), id="list")
    yield pytest.param(torch.tensor(path.T), id="edge_index")
    yield pytest.param(SimpleNamespace(edge_index=torch.tensor(path.T), num_nodes=6), id="PyTorch Geometric")
    ends = tuple(torch.tensor(path.T))
    yield pytest.param(SimpleNamespace(edges=lambda: ends, num_nodes=lambda: 6, nodes=None, ndata={}), id="DGL")


@pytest.mark.parametrize("adjacency", list(forms()))
def test_forms_of_a_graph(adjacency):
    found = read_edges(adjacency, 6).toarray()
    np.testing.assert_array_equal(found, np.eye(6, k=1) + np.eye(6, k=-1))


@pytest.mark.parametrize("form", ["stand-in", "PyTorch Geometric", "DGL"])
def test_graphs_bring_their_nodes_along(form):
    data = make(18)
    masks = [torch.tensor(np.isin(np.arange(24), nodes)) for nodes in (data.train, data.test)]
    tensors = torch.tensor(data.X, requires_grad=True), torch.tensor(data.y), *masks
    edges = torch.tensor(data.pairs.T)
    if form == "DGL":
        ndata = dict(zip(("feat", "label", "train_mask", "test_mask"), tensors, strict=True))
        graph = SimpleNamespace(edges=lambda: tuple(edges), num_nodes=lambda: 24, nodes=None, ndata=ndata)
    else:
        known = dict(zip(("x", "y", "train_mask", "test_mask"), tensors, strict=True))
        kind = SimpleNamespace
        if form == "PyTorch Geometric":
            kind = pytest.importorskip("torch_geometric", reason="torch_geometric").data.Data
        graph = kind(edge_index=edges, num_nodes=24, **known)
    settings = {"model": GCN(hidden=4, epochs=2), "device": "cpu", "support": Hops(1)}
    truth = value_nodes(data.pairs, data.X, data.y, np.sort(data.train), np.sort(data.test), **settings)
    np.testing.assert_array_equal(value_nodes(graph, **settings).values, truth.values)
    some = np.sort(data.train)[:6]
    found = value_nodes(graph, train=torch.tensor(some), **settings)
    assert found.ids.tolist() == some.tolist()
    with pytest.raises(InvalidArgumentError, match=r"X is missing: give it, .*Data with x .*ndata\['feat'\]; got list"):
        value_nodes(data.pairs.tolist(), **settings)


def test_networkx_graphs():
    networkx = pytest.importorskip("networkx")
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from([5, 3, 1, 0, 2, 4])
    graph.add_edges_from([(1, 0), (1, 2), (2, 3), (3, 4), (4, 5), (5, 4), (5, 5)])
    np.testing.assert_array_equal(read_edges(graph, 6).toarray(), np.eye(6, k=1) + np.eye(6, k=-1))
    assert read_edges(networkx.Graph(), 3).nnz == 0
    with pytest.raises(InvalidArgumentError, match="convert_node_labels_to_integers"):
        read_edges(networkx.Graph([("a", "b")]), 6)
    with pytest.raises(InvalidArgumentError, match=r"row numbers of X, 0 to 3; got .*\(6 nodes\)"):
        read_edges(graph, 4)


def test_masks_sparse_features_and_text_labels():
    data = make(15)
    settings = {"model": GCN(hidden=4, epochs=2), "method": "exact", "device": "cpu", "support": Hops(1)}
    v = value_nodes(data.pairs, data.X, data.y, np.sort(data.train), np.sort(data.test), **settings)
    masks = (np.isin(np.arange(24), nodes) for nodes in (data.train, data.test))
    names = np.array(["a", "b", "c"], dtype=object)[data.y]
    w = value_nodes(data.pairs, sparse.coo_array(data.X), names, *masks, **settings)
    np.testing.assert_array_equal(v.values, w.values)


def test_isolated_nodes_are_worth_nothing():
    data = make(16)
    X = data.X
    v = value_nodes([[0, 1], [1, 2]], X, data.y, [0, 1, 2, 5, 6], [3, 4], model=GCN(epochs=2), device="cpu")
    assert v.values.tolist() == [0, 0, 0, 0, 0]
    assert v.n_tests.tolist() == [0, 0, 0, 0, 0]
    said = "2 of 2 test nodes have an empty support and add nothing; supports.Everything() would reach them."
    assert said in v.notes
    with pytest.raises(
        InvalidArgumentError, match=r"within 2 hops of a training node; give test nodes in the same parts"
    ):
        value_nodes([[0, 1], [1, 2]], X, data.y, [0, 1, 2, 5, 6], [3, 4], games="train", device="cpu")
    path = [[0, 1], [1, 2], [2, 3], [3, 4]]  # the fourth hop is the first that leads from both to a training node
    v = value_nodes(path, X, data.y, [0, 5, 6], [3, 4], model=GCN(epochs=2), device="cpu")
    (note,) = (note for note in v.notes if "empty support" in note)
    assert note.endswith("a larger support (supports.Hops(4)) would reach them.")
    with pytest.raises(InvalidArgumentError, match=r"take a larger support \(supports.Hops\(4\)\)"):
        value_nodes(path, X, data.y, [0, 5, 6], [3, 4], games="train", device="cpu")


def test_a_store_is_read_again(tmp_path):
    data = make(17, n_nodes=16, n_edges=20)
    arguments = data.pairs, data.X, data.y, data.train, data.test
    settings = {"method": "exact", "device": "cpu", "support": Hops(1), "store": tmp_path / "run.db"}
    model = GCN(hidden=4, epochs=2)
    v, w = (value_nodes(*arguments, model=model, **settings) for _ in range(2))
    assert v.cost.trainings > 0
    assert (w.cost.trainings, w.cost.stored) == (0, v.cost.trainings)
    np.testing.assert_array_equal(v.values, w.values)
    assert value_nodes(*arguments, model=GCN(hidden=4, epochs=3), **settings).cost.stored == 0
    for kind in (GraphSAGE, GIN):  # the same settings, but other networks
        assert value_nodes(*arguments, model=kind(hidden=4, epochs=2), **settings).cost.stored == 0


GOOD = {"adjacency": [[0, 1], [1, 2], [2, 3]], "X": np.eye(4), "y": [0, 1, 0, 1], "train": [0, 1], "test": [2, 3]}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"train": [0, 4]}, r"train names node 4, but the nodes are 0 to 3"),
        ({"test": [-1]}, r"test names node -1"),
        ({"train": [0, 0, 1]}, r"train names a node more than once"),
        ({"train": [0, 1, 2]}, r"train and test share 1 nodes, first 2"),
        ({"train": []}, r"train must be a list of node numbers or a mask of shape \(4,\)"),
        ({"train": [0.5]}, r"train must be a list of node numbers"),
        ({"train": [True, False]}, r"train must be a list of node numbers"),
        ({"adjacency": [[0, 4]]}, r"adjacency has 5 nodes, X has 4 rows"),
        ({"adjacency": sparse.csr_array((6, 6))}, r"adjacency has 6 nodes, X has 4 rows"),
        ({"adjacency": [[0, -1]]}, r"adjacency names node -1"),
        ({"adjacency": np.eye(4)}, r"Wrap a dense matrix with scipy.sparse.csr_array"),
        ({"adjacency": "graph"}, r"adjacency must be a SciPy sparse matrix.*got str"),
        ({"X": [["a"]] * 4}, r"X must be a matrix of numbers"),
        ({"X": np.full((4, 2), np.nan)}, r"X holds missing values"),
        ({"y": [0, 1]}, r"y has shape \(2,\), X has 4 rows"),
        ({"y": [0, 0, 1, 1]}, r"y holds one class only"),
        ({"model": "gcn"}, r"model must be localshapley.models.GCN\(...\), GraphSAGE\(...\) or GIN\(...\); got 'gcn'"),
        ({"games": "tests"}, r"games must be one of 'test', 'train'; got 'tests'. Did you mean 'test'"),
        ({"graph": "whole"}, r"graph must be one of 'full', 'induced'"),
        ({"device": "gpu"}, r"device 'gpu' .*'auto', 'cpu', 'cuda'"),
        ({"device": "meta"}, r"device 'meta' cannot train graph networks; give 'auto', 'cpu' or 'cuda'"),
        ({"support": 3}, r"support must be supports.Hops, Given, Random or Everything"),
        ({"score": "squared_error"}, r"score 'squared_error' is for a regressor"),
        ({"empty": np.nan}, r"empty must be a finite number"),
    ],
)
def test_bad_input(wrong, message):
    with pytest.raises(InvalidArgumentError, match=message):
        value_nodes(**{**GOOD, "device": "cpu", **wrong})


@pytest.mark.parametrize("kind", MODELS)
def test_bad_settings(kind):
    for settings, message in (
        ({"hidden": 0}, r"\(hidden=...\) must be a whole number of at least 1; got 0"),
        ({"epochs": 2.5}, r"\(epochs=...\)"),
        ({"lr": 0}, r"\(lr=...\) must be a number above 0"),
        ({"weight_decay": -1}, r"\(weight_decay=...\)"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"^{kind.__name__}{message}"):
            kind(**settings)
    with pytest.raises(InvalidArgumentError, match=r"Hops\(n=...\)"):
        Hops(0)


def test_cuda_that_is_not_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InvalidArgumentError, match="device='cuda' was asked for, but PyTorch finds no CUDA device"):
        value_nodes(**GOOD, device="cuda")
    assert value_nodes(**GOOD, model=GCN(epochs=1)).cost.trainer == "GCN (batched, cpu)"


def test_hops_need_a_graph():
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.raises(InvalidArgumentError, match=r"supports.Hops needs a graph; use it with value_nodes\(\)"):
        ls.value(X, y, X, y, model="knn", support=Hops(2))
