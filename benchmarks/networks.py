"""Networks of many coalitions trained together, against PyTorch one at a time.

    python benchmarks/networks.py [--quick]

Random coalitions of 2 to 20 rows, each scored on 5 test rows, take 20 epochs of Adam: by `models.Network` on all cores
and, a part of them, in a plain loop of PyTorch in one process, with the same initial weights. The loop runs with one
thread of PyTorch, which is its fastest for networks as small as these; so does each of our threads. Both take turns
and the best of five counts, so that other work on the machine matters less. The largest difference between their scores
is printed as well. Adult and MNIST are read from the folder LOCALSHAPLEY_DATA, or downloaded.
"""

from __future__ import annotations

import argparse
import copy
from time import perf_counter

import numpy as np
import torch
from joblib import cpu_count
from torch import nn

import localshapley as ls
from localshapley.models import Coalitions
from localshapley.problem.build import build_problem
from localshapley.question import Question

EPOCHS, LR, SEED = 20, 0.01, 0
REPEATS = 5


def mlp() -> nn.Module:
    """For the 92 columns of Adult."""
    return nn.Sequential(nn.Linear(92, 16), nn.ReLU(), nn.Linear(16, 2))


def cnn() -> nn.Module:
    """For images of 28 x 28 pixels."""
    layers = [nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 4, 5, stride=3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10)]
    return nn.Sequential(*layers)


def one_at_a_time(module: nn.Module, data, coalitions: Coalitions) -> np.ndarray:
    """Confidence in the true class of each test row, by a network trained for each coalition."""
    X, X_test = (torch.tensor(rows, dtype=torch.float32) for rows in (data[0], data[2]))
    classes, codes = np.unique(data[1], return_inverse=True)
    test_codes = torch.tensor(np.searchsorted(classes, data[3]))
    targets = torch.tensor(codes)
    torch.manual_seed(SEED)
    for layer in module.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    found = []
    for c in range(len(coalitions)):
        rows, tests = torch.tensor(coalitions.coalition(c)), torch.tensor(coalitions.tests_of(c))
        network, own, own_targets = copy.deepcopy(module), X[rows], targets[rows]
        adam = torch.optim.Adam(network.parameters(), lr=LR)
        for _ in range(EPOCHS):
            adam.zero_grad()
            nn.functional.cross_entropy(network(own), own_targets).backward()
            adam.step()
        with torch.no_grad():
            found.append(network(X_test[tests]).softmax(1).gather(1, test_codes[tests][:, None])[:, 0].double().numpy())
    return np.concatenate(found)


def drawn(y: np.ndarray, n_tests: int, n: int) -> Coalitions:
    """Random coalitions of at least two classes; the others need no training."""
    rng = np.random.default_rng(0)
    players: list[np.ndarray] = []
    while len(players) < n:
        rows = np.sort(rng.choice(len(y), size=rng.integers(2, 20, endpoint=True), replace=False))
        if len(np.unique(y[rows])) > 1:
            players.append(rows)
    return Coalitions.from_lists(players, [rng.choice(n_tests, size=5, replace=False) for _ in players])


def compare(name: str, data, module: nn.Module, n_plain: int, n_together: int) -> None:
    """Print coalitions per second, one at a time and together."""
    network = ls.models.Network(module, epochs=EPOCHS, lr=LR, device="cpu")
    trainer = build_problem(Question.of_rows(*data, model=network, support=ls.supports.Nearest(1), seed=SEED)).trainer
    coalitions = drawn(data[1], len(data[3]), n_together)
    some = coalitions.part(0, n_plain)
    torch.set_num_threads(1)
    trainer.evaluate(some), one_at_a_time(module, data, some.part(0, 2))  # what PyTorch prepares at first
    slow = fast = 0.0
    for _ in range(REPEATS):
        started = perf_counter()
        ours = trainer.evaluate(coalitions)
        fast = max(fast, n_together / (perf_counter() - started))
        started = perf_counter()
        theirs = one_at_a_time(module, data, some)
        slow = max(slow, n_plain / (perf_counter() - started))
    worst = np.abs(ours[: len(theirs)] - theirs).max()
    print(f"{name:<24}{slow:>14,.0f}{fast:>12,.0f}{fast / slow:>9.0f}{worst:>12.1e}", flush=True)


def main() -> None:
    """Print a line for each network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the coalitions")
    share = 10 if parser.parse_args().quick else 1
    adult, mnist = (ls.datasets.load(name)[:4] for name in ("adult", "mnist"))
    print(f"coalitions per second, {cpu_count()} cores, PyTorch {torch.__version__}")
    print(f"{'':<24}{'one at a time':>14}{'together':>12}{'ratio':>9}{'difference':>12}")
    compare("MLP, Adult", adult, mlp(), 100 // share, 4_096 // share)
    compare("CNN, MNIST", mnist, cnn(), 50 // share, 512 // share)


if __name__ == "__main__":
    main()
