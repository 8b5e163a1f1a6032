"""K nearest neighbours: exact values of weighted votes, KNN-Shapley beside its peers, a million rows.

    python benchmarks/knn.py [--pydvl PYTHON] [--opendataval PYTHON] [--million]

PYTHON is the interpreter of an environment with the peer (peers/pydvl_knn.py and peers/opendataval_knn.py say how to
make one); the ratio is to the fastest. `--million` needs about 3 GB of memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import localshapley as ls
from localshapley.supports import chunked_search


def clusters(n: int, n_tests: int, n_features: int, dtype=np.float64):
    """Ten classes that overlap: about one in four of the nearest five rows has another class."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, n_features)) * 4.5 / np.sqrt(n_features)
    y, y_test = rng.integers(10, size=n), rng.integers(10, size=n_tests)
    X = rng.standard_normal(size=(n, n_features), dtype=np.float32).astype(dtype) + centres[y].astype(dtype)
    X_test = rng.standard_normal(size=(n_tests, n_features), dtype=np.float32).astype(dtype)
    return X, y, X_test + centres[y_test].astype(dtype), y_test


def seconds(function, repeats: int = 3):
    """The shortest of a few runs, and the result."""
    best = np.inf
    for _ in range(repeats):
        started = perf_counter()
        result = function()
        best = min(best, perf_counter() - started)
    return best, result


def weighted() -> None:
    """Exact values of weighted KNN with local supports."""
    print("weighted KNN, K = 5, 1,000 test rows, 1,024 features: exact values, seconds after compilation")
    print(f"{'training rows':>14}{'supports':>10}{'confidence':>12}{'accuracy':>10}   the paper (an estimate)")
    model = KNeighborsClassifier(5, weights="distance")
    for n, size, paper in ((1000, 10, "88 s"), (1000, 20, "89 s"), (10_000, 10, "")):
        data = clusters(n, 1000, 1024)
        times = [
            seconds(lambda d=data, n=size, s=score: ls.value(*d, model=model, support=ls.supports.Nearest(n), score=s))[
                0
            ]
            for score in ("confidence", "accuracy")
        ]
        print(f"{n:>14,}{size:>10}{times[0]:>12.2f}{times[1]:>10.2f}   {paper}", flush=True)


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """1,000 digits and 797 others, with a little noise, so that no two distances are equal."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.RandomState(0)
    X = X / 16 + rng.normal(scale=1e-3, size=X.shape)
    order = rng.permutation(len(y))
    train, test = order[:1000], order[1000:]
    return X[train], y[train], X[test], y[test]


def knn_shapley(peers: dict[str, str]) -> None:
    """Closed form on digits, beside the peers."""
    data = digits()
    ours, v = seconds(lambda: ls.comparators.knn_shapley(*data, n_neighbors=5), repeats=10)
    print("\nKNN-Shapley on digits, 1,000 / 797, K = 5")
    print(f"  {'localshapley':<22}{1000 * ours:8.1f} ms")
    fastest = np.inf
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, X=data[0], y=data[1], X_test=data[2], y_test=data[3], K=5)
        for name, python in peers.items():
            script = Path(__file__).parent / "peers" / f"{name}_knn.py"
            report = json.loads(
                subprocess.run([python, script, path], capture_output=True, check=True, text=True).stdout
            )
            difference = np.abs(v.values / len(data[3]) - report["values"]).max()
            print(f"  {name:<22}{1000 * report['seconds']:8.1f} ms, largest difference {difference:.1e}")
            fastest = min(fastest, report["seconds"])
    if peers:
        print(f"  ratio to the fastest peer: {fastest / ours:.0f}")


def million() -> None:
    """A million training rows; run in a process of its own, whose memory is looked at."""
    data = clusters(1_000_000, 10_000, 64, dtype=np.float32)
    searching = 0.0
    search = chunked_search.nearest

    def timed(*args, **kwargs):
        nonlocal searching
        started = perf_counter()
        result = search(*args, **kwargs)
        searching += perf_counter() - started
        return result

    chunked_search.nearest = timed
    started = perf_counter()
    v = ls.value(*data, model=KNeighborsClassifier(5))
    total = perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\n1,000,000 training rows, 64 features, 10,000 test rows, KNN, K = 5, {v.support}")
    print(f"  {total:.1f} s, {searching / total:.0%} of it in the neighbour search; {memory:.2f} GiB at most")
    print(f"  {v.method}: {v.stopped}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pydvl", metavar="PYTHON")
    parser.add_argument("--opendataval", metavar="PYTHON")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--only-million", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only_million:
        million()
        return
    weighted()
    knn_shapley({name: python for name in ("pydvl", "opendataval") if (python := getattr(arguments, name))})
    if arguments.million:
        subprocess.run([sys.executable, __file__, "--only-million"], check=True)


if __name__ == "__main__":
    main()
