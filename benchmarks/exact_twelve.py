"""Exact values of a 12-player tree game: a peer's way against each subset once.

    python benchmarks/exact_twelve.py [--pydvl PYTHON]

PYTHON is the interpreter of an environment with pyDVL (see peers/pydvl_twelve.py); without it the peer is a plain
loop with scikit-learn that trains, as pyDVL does, for every player and every subset without it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from itertools import combinations
from math import comb
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls

FIXTURE = Path(__file__).parents[1] / "tests" / "fixtures" / "twelve_player_tree.json"


def plain_loop(X, y, X_test, y_test, model):
    """Shapley values by marginal gains, player by player; returns them with the number of fits."""
    n, fits = len(X), 0

    def worth(rows):
        nonlocal fits
        if not rows:
            return 0.0
        fits += 1
        return clone(model).fit(X[list(rows)], y[list(rows)]).score(X_test, y_test)

    values = np.zeros(n)
    for z in range(n):
        others = [i for i in range(n) if i != z]
        for k in range(n):
            for subset in combinations(others, k):
                gain = worth(tuple(sorted((*subset, z)))) - worth(subset)
                values[z] += gain / (n * comb(n - 1, k))
    return values, fits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pydvl", metavar="PYTHON", help="interpreter of an environment with pyDVL")
    peer = parser.parse_args().pydvl
    fixture = json.loads(FIXTURE.read_text())
    X, y = load_iris(return_X_y=True)
    data = X[fixture["train"]], y[fixture["train"]], X[fixture["test"]], y[fixture["test"]]
    model = DecisionTreeClassifier(random_state=0)

    def valued(model):
        started = perf_counter()
        v = ls.value(
            *data,
            model=model,
            support=ls.supports.Everything(),
            method="exact",
            score="accuracy",
            empty=0.0,
            progress=False,
        )
        return v, perf_counter() - started

    v, ours = valued(ls.models.Estimator(model))  # scikit-learn's own tree, as the peer has it
    valued(model)  # compiles
    compiled, ours_compiled = valued(model)

    if peer:
        script = Path(__file__).parent / "peers" / "pydvl_twelve.py"
        report = json.loads(subprocess.run([peer, script], capture_output=True, check=True, text=True).stdout)
        name = f"pyDVL {report['version']}"
        fits, seconds, values = report["fits"], report["seconds"], np.array(report["values"])
    else:
        name = "plain loop"
        started = perf_counter()
        values, fits = plain_loop(*data, model)
        seconds = perf_counter() - started

    print(f"{'':<16}{'trainings':>12}{'seconds':>10}")
    print(f"{name:<16}{fits:>12,}{seconds:>10.2f}")
    print(f"{'localshapley':<16}{v.cost.trainings:>12,}{ours:>10.2f}")
    print(f"{'  compiled':<16}{compiled.cost.trainings:>12,}{ours_compiled:>10.2f}")
    print(
        f"ratio: {fits / v.cost.trainings:.1f} times fewer trainings, {seconds / ours:.1f} times faster, "
        f"compiled {seconds / ours_compiled:.0f} times"
    )
    print(f"largest difference of the values: {np.abs(v.values / len(data[3]) - values).max():.1e}")


if __name__ == "__main__":
    main()
