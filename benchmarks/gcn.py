"""Graph networks trained in batches against one at a time, and the paper's Cora protocol from end to end.

    python benchmarks/gcn.py [--device cpu] [--only rates|models|sweep|cora] [--max-seconds 1800]

`--only models` compares GCN, GraphSAGE and GIN on the same coalitions, in turns. `--only sweep` trains the same
coalitions again and again, by networks trained together and threads that launch them.

Coalitions are drawn as the protocol has them: a training node's ego network of two hops, a random number of its
training nodes, scored on its test nodes; those with one class, which need no training, are left out. One at a time is
PyTorch as one writes it (autograd, `torch.optim.Adam`), on the whole graph that the coalition sees (the coalition and
all test nodes) and on nothing but the nodes and columns that matter to the coalition and the scored nodes, dense. Two
floors are counted: bytes, if weights and both moments of Adam are read and written once a step and nothing else moves;
and operations. The device's speeds are measured: a large copy, and a large float32 product.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
import torch
from scipy import sparse

import localshapley as ls
from localshapley import scoring
from localshapley.kernels.receptive import learnt_features, walk
from localshapley.models import GCN, GIN, Coalitions, GCNTrainer, GraphSAGE, Task
from localshapley.nodes import value_nodes
from localshapley.supports.hops import within
from localshapley.torch.batched_gcn import initial_weights
from localshapley.torch.graph_data import NodeData, read_edges


def draw(data, edges, n: int) -> Coalitions:
    """Random coalitions with two classes or more, each with the test nodes of its game."""
    rng = np.random.default_rng(0)
    players, tests = (within(edges, data.train, nodes, 2) for nodes in (data.train, data.test))
    codes = data.y[data.train]
    coalitions, scored = [], []
    while len(coalitions) < n:
        game = rng.integers(len(data.train))
        ego, seen = (m.indices[m.indptr[game] : m.indptr[game + 1]] for m in (players, tests))
        coalition = rng.choice(ego, size=rng.integers(1, len(ego) + 1), replace=False)
        if len(seen) and len(np.unique(codes[coalition])) > 1:
            coalitions.append(coalition)
            scored.append(seen)
    return Coalitions.from_lists(coalitions, scored)


def one_at_a_time(data, edges, X, coalition, scored, model: GCN, weights, device: str, cut: bool) -> torch.Tensor:
    """Probabilities of the scored nodes after training one network on the induced graph, whole or cut out."""
    seen, columns = np.union1d(coalition, data.test), np.arange(X.shape[1])
    if cut:
        here = edges[seen][:, seen]
        wanted = np.searchsorted(seen, np.union1d(coalition, scored))
        seen = seen[np.unique(within(here, wanted, np.arange(len(seen)), 2).indices)]
        degree = np.asarray(edges[seen][:, np.union1d(coalition, data.test)].sum(axis=1)).ravel() + 1
        columns = np.unique(X[seen].indices)
    closed = edges[seen][:, seen].astype(float) + sparse.eye_array(len(seen))
    root = 1 / np.sqrt(degree if cut else np.asarray(closed.sum(axis=1)).ravel())
    spread = (sparse.diags_array(root) @ closed @ sparse.diags_array(root)).astype(np.float32)
    dense = torch.tensor(spread.toarray(), device=device)
    propagation = dense if cut else dense.to_sparse_csr()
    features = torch.tensor(X[seen][:, columns].toarray(), dtype=torch.float32, device=device)
    rows = torch.tensor(np.searchsorted(seen, coalition), device=device)
    target = torch.tensor(data.y[coalition], device=device)
    first, second = weights[0][columns].to(device).requires_grad_(), weights[1].clone().to(device).requires_grad_()
    biases = [torch.zeros(w.shape[1], device=device, requires_grad=True) for w in (first, second)]
    adam = torch.optim.Adam([first, second, *biases], lr=model.lr, weight_decay=model.weight_decay)
    spread_features = propagation @ features

    def forward():
        return propagation @ (torch.relu(spread_features @ first + biases[0]) @ second) + biases[1]

    for _ in range(model.epochs):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(forward()[rows], target).backward()
        adam.step()
    with torch.no_grad():
        return forward()[np.searchsorted(seen, scored)].softmax(1).cpu()


def counted(trainer: GCNTrainer, coalitions: Coalitions, model: GCN, n_classes: int) -> tuple[float, float]:
    """Bytes and operations of one training, on average."""
    nodes = trainer._nodes[coalitions.players]
    field = walk(coalitions.indptr, nodes, coalitions.indptr, nodes, trainer._networks._graph)
    features, _, columns = learnt_features(field, trainer._networks._graph)
    n, hidden = len(coalitions), model.hidden
    weights = len(columns) * hidden + n * (hidden + 1) * n_classes
    products = 4 * hidden * sum(len(matrix.data) for matrix in (features, field.near, field.outer))
    products += 6 * len(nodes) * hidden * n_classes
    return 6 * 4 * weights * model.epochs / n, (products + 12 * weights) * model.epochs / n


def speeds(device: str) -> tuple[float, float]:
    """Bytes and float32 operations a second, of a large copy and a large product."""
    size = 2**28 if device == "cuda" else 2**24
    a, b = torch.rand(size, device=device), torch.empty(size, device=device)
    m = torch.rand(8192 if device == "cuda" else 1024, 8192 if device == "cuda" else 1024, device=device)
    return 8 * size / timed(lambda: b.copy_(a), device), 2 * len(m) ** 3 / timed(lambda: m @ m, device)


def timed(work, device: str, n: int = 10) -> float:
    """Seconds of one call, the first ones left out."""
    for attempt in range(2):
        if device == "cuda":
            torch.cuda.synchronize()
        started = perf_counter()
        for _ in range(n if attempt else 2):
            work()
        if device == "cuda":
            torch.cuda.synchronize()
    return (perf_counter() - started) / n


def rates(data, device: str) -> None:
    """Trainings a second, batched and one at a time, and how far from the floor."""
    edges, X = read_edges(data.adjacency, data.X.shape[0]), sparse.csr_array(data.X)
    model, n_classes = GCN(), len(data.classes)
    coalitions = draw(data, edges, 32768 if device == "cuda" else 2048)
    weights = initial_weights(X.shape[1], model.hidden, n_classes, 0)
    bandwidth, operations = speeds(device)
    print(f"{device}: copy {bandwidth / 1e9:,.0f} GB/s, float32 product {operations / 1e12:,.2f} TFLOP/s")
    plain = []
    for cut, n in ((False, 20), (True, 40)):
        pairs = [(data.train[coalitions.coalition(i)], data.test[coalitions.tests_of(i)]) for i in range(n)]
        seconds = []
        for n_threads in {1, torch.get_num_threads()}:  # small products may do better on one
            torch.set_num_threads(n_threads)
            started = perf_counter()
            found = [one_at_a_time(data, edges, X, *pair, model, weights, device, cut) for pair in pairs]
            seconds.append(perf_counter() - started)
        plain.append(n / min(seconds))
    truth = np.concatenate([
        p[torch.arange(len(p)), data.y[data.test[coalitions.tests_of(i)]]] for i, p in enumerate(found)
    ])  # fmt: skip
    print(f"one at a time: {plain[0]:,.1f} trainings/s (whole graph), {plain[1]:,.1f} (cut out)")
    for graph in ("induced", "full"):
        trainer = make_trainer(data, edges, X, graph, device)
        trainer.evaluate(coalitions if device == "cuda" else coalitions.part(0, 128))  # compiles, and takes memory
        seconds = []
        for _ in range(5):
            started = perf_counter()
            ours = trainer.evaluate(coalitions)
            seconds.append(perf_counter() - started)
        rate = len(coalitions) / np.median(seconds)
        n_bytes, n_operations = counted(trainer, coalitions.part(0, 2048), model, n_classes)
        floor = max(n_bytes / bandwidth, n_operations / operations)
        print(
            f"batched, {graph}: {rate:,.0f} trainings/s (median of five runs, {len(coalitions) / max(seconds):,.0f} to "
            f"{len(coalitions) / min(seconds):,.0f}); {n_bytes / 1e6:.2f} MB and {n_operations / 1e6:.2f} MFLOP a "
            f"training, floor {floor * 1e6:.2f} µs, {floor * rate:.1%} of it reached"
        )
        if graph == "induced":
            print(
                f"  {rate / plain[0]:,.0f} and {rate / plain[1]:,.0f} times one at a time; largest difference between "
                f"the scores {np.abs(ours[: len(truth)] - truth).max():.1e}"
            )


def models(data, device: str) -> None:
    """Trainings a second of each network, on the same coalitions and in turns."""
    edges, X = read_edges(data.adjacency, data.X.shape[0]), sparse.csr_array(data.X)
    coalitions = draw(data, edges, 32768 if device == "cuda" else 1024)
    for graph in ("induced", "full"):
        trainers = [make_trainer(data, edges, X, graph, device, model) for model in (GCN(), GraphSAGE(), GIN())]
        seconds = np.zeros((6, len(trainers)))
        for turn, place in np.ndindex(seconds.shape):
            started = perf_counter()
            trainers[place].evaluate(coalitions)
            seconds[turn, place] = perf_counter() - started
        found = len(coalitions) / seconds[1:]  # the first turn compiles, and takes memory
        for trainer, rate in zip(trainers, found.T, strict=True):
            print(
                f"{trainer.name}, {graph}: {np.median(rate):,.0f} trainings/s (median of five runs, {rate.min():,.0f} "
                f"to {rate.max():,.0f}), {np.median(rate / found[:, 0]):.2f} times as many as GCN"
            )


def sweep(data, device: str) -> None:
    """Trainings a second of repeated calls, by networks trained together and threads."""
    edges, X = read_edges(data.adjacency, data.X.shape[0]), sparse.csr_array(data.X)
    coalitions = draw(data, edges, 32768 if device == "cuda" else 1024)
    trainer = make_trainer(data, edges, X, "induced", device)
    for together, threads in (
        ((1024, 8), (1024, 16), (2048, 16), (2048, 12), (512, 16)) if device == "cuda" else ((64, 2),)
    ):
        trainer._most, trainer._n_threads = together, threads
        found = []
        for _ in range(4):
            started = perf_counter()
            trainer.evaluate(coalitions)
            found.append(len(coalitions) / (perf_counter() - started))
        print(f"{together} networks, {threads} threads:", *(f"{rate:,.0f}" for rate in found[1:]))


def make_trainer(data, edges, X, graph: str, device: str, model=GCN()) -> GCNTrainer:  # noqa: B008 - frozen
    """The trainer of all training nodes, scored by confidence."""
    score = scoring.resolve("confidence", "classifier", None, True)
    codes = data.y[data.train]
    task = Task(None, codes, None, data.y[data.test], data.classes, codes, score)
    alone = sparse.eye_array(len(data.test), format="csr")
    nodes = NodeData(edges, X, data.y, data.train, data.test)
    return GCNTrainer(model, task, nodes, alone, graph=graph, device=device)


def cora(data, device: str, max_seconds: float) -> None:
    """The paper's protocol, to a relative error of 0.1; compiled before the clock starts."""
    settings = {"games": "train", "score": "accuracy", "device": device, "progress": False}
    value_nodes(*data[:5], **settings, max_seconds=1e-6)
    started = perf_counter()
    v = value_nodes(*data[:5], **settings, tol=0.1, max_seconds=max_seconds)
    print(v)
    print(f"relative error {v.relative_error:.3f}")
    print(f"in all {perf_counter() - started:.1f} s, {v.cost.trivial:,} of the trainings were of one class or none")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", choices=("rates", "models", "sweep", "cora"))
    parser.add_argument("--max-seconds", type=float, default=1800.0)
    arguments = parser.parse_args()
    graph = ls.datasets.load_graph("cora")
    if arguments.only in (None, "rates"):
        rates(graph, arguments.device)
    if arguments.only == "models":
        models(graph, arguments.device)
    if arguments.only == "sweep":
        sweep(graph, arguments.device)
    if arguments.only in (None, "cora"):
        cora(graph, arguments.device, arguments.max_seconds)
