"""Global Monte Carlo for weighted K nearest neighbours, at the size of the paper: 1,126 million evaluations.

    python benchmarks/global_mc.py [--pydvl PYTHON]

PYTHON is the interpreter of an environment with pyDVL (peers/pydvl_global_mc.py says how to make one). An evaluation is
one model's prediction for one test row. scikit-learn and pyDVL are timed on a part of the work.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

import localshapley as ls
from localshapley.comparators import TMC

N, K, PERMUTATIONS = 1000, 5, 1126
MODEL = KNeighborsClassifier(K, weights="distance")


def clusters(n: int, n_features: int = 1024):
    """Ten classes that overlap: about one in four of the nearest five rows has another class."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, n_features)) * 4.5 / np.sqrt(n_features)
    labels = rng.integers(10, size=(2, n))
    (X, X_test) = (rng.normal(size=(n, n_features)) + centres[y] for y in labels)
    return X, labels[0], X_test, labels[1]


def prefix_by_prefix(X, y, X_test, y_test) -> tuple[int, float]:
    """Twenty prefixes of a permutation, of evenly spaced sizes, with scikit-learn; evaluations and seconds."""
    order = np.random.default_rng(0).permutation(len(y))
    sizes = np.linspace(K, len(y), 20).astype(int)
    started = perf_counter()
    for size in sizes:
        MODEL.fit(X[order[:size]], y[order[:size]]).score(X_test, y_test)
    return len(sizes) * len(y_test), perf_counter() - started


def with_pydvl(python: str, data) -> tuple[int, float]:
    """One permutation with pyDVL; evaluations and seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, **dict(zip(("X", "y", "X_test", "y_test"), data, strict=True)), K=K)
        script = Path(__file__).parent / "peers" / "pydvl_global_mc.py"
        report = json.loads(subprocess.run([python, script, path], capture_output=True, check=True, text=True).stdout)
    return report["fits"] * len(data[3]), report["seconds"]


def show(name: str, evaluations: int, seconds: float, of: float = 0.0, more: str = "") -> None:
    """A line of the table; `of` evaluations are what the whole run would take."""
    whole = f"{seconds * of / evaluations:,.0f} s (extrapolated)" if of else f"{seconds:,.1f} s"
    print(f"{name:<48}{evaluations:>15,}{evaluations / seconds:>15,.0f}{whole:>26}   {more}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pydvl", metavar="PYTHON")
    arguments = parser.parse_args()
    data = clusters(N)
    budget = 2 + PERMUTATIONS * (N - 1)
    ls.value(*clusters(100), model=MODEL, method="global-mc", budget=1000)  # compiles
    prefix_by_prefix(*clusters(100))
    print(f"weighted KNN, K = {K}, {N:,} training rows, {N:,} test rows, 1,024 features, accuracy")
    print(f"{'':<48}{'evaluations':>15}{'a second':>15}{'the whole run':>26}")
    show("scikit-learn, prefix by prefix", *prefix_by_prefix(*data), PERMUTATIONS * N * N)
    if arguments.pydvl:
        show("pyDVL", *with_pydvl(arguments.pydvl, data), PERMUTATIONS * N * N)
    for method, paper in (
        ("global-mc", "212,408 s"),
        (TMC(patience=5, by_test=True), "8,085 s"),
        ("local-mc", "537 s"),
    ):
        limit = budget if method != "local-mc" else 9_000_000
        started = perf_counter()
        v = ls.value(*data, model=MODEL, method=method, score="accuracy", budget=limit)
        seconds = perf_counter() - started
        show(v.method, v.cost.draws, seconds, more=f"relative error {v.relative_error:.3f}; the paper {paper}")


if __name__ == "__main__":
    main()
