"""Spreading work, and keeping it: speed-up of two processes, what a store costs, how large it gets.

    python benchmarks/parallel.py

The model sleeps 20 ms (speed-up) or 2 ms (store) in each fit, so that the figures are those of the machinery, whatever
else the machine does.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.store import Store


class SlowTree(DecisionTreeClassifier):
    """A tree that takes its time."""

    def __init__(self, seconds: float = 0.02, random_state: int = 0) -> None:
        super().__init__(random_state=random_state)
        self.seconds = seconds

    def fit(self, X, y):
        time.sleep(self.seconds)
        return super().fit(X, y)


def run(seconds: float, size: int, **settings):
    """Value breast cancer rows; returns the valuation and the seconds that it took."""
    data = ls.datasets.load("breast_cancer")
    started = perf_counter()
    v = ls.value(
        *data[:2],
        data.X_test[:12],
        data.y_test[:12],
        model=SlowTree(seconds),
        support=ls.supports.Random(size),
        method="exact",
        progress=False,
        **settings,
    )
    return v, perf_counter() - started


def main() -> None:
    run(0.0, 3, n_jobs=2)  # processes are there
    one, alone = run(0.02, 8)
    two, together = run(0.02, 8, n_jobs=2)
    assert (one.values == two.values).all()
    fits = one.cost.trainings - one.cost.trivial
    print(f"two processes, {fits:,} fits of 20 ms: {alone:.1f} s and {together:.1f} s, speed-up {alone / together:.2f}")

    with tempfile.TemporaryDirectory() as folder:
        plain, stored, again = np.inf, np.inf, np.inf
        for turn in range(3):  # the best of three each, in turn
            path = Path(folder) / f"{turn}.db"
            v, seconds = run(0.002, 9)
            plain = min(plain, seconds)
            w, seconds = run(0.002, 9, store=path)
            stored = min(stored, seconds)
            x, seconds = run(0.002, 9, store=path)
            again = min(again, seconds)
            assert (v.values == w.values).all()
            assert (v.values == x.values).all()
            assert x.cost.trainings == 0
        fits = v.cost.trainings - v.cost.trivial
        print(f"store, {fits:,} fits of 2 ms: {plain:.2f} s without, {stored:.2f} s with it: {stored / plain - 1:+.1%}")
        print(f"the same run again: {again:.2f} s, no fit")

        print("bytes for each coalition in the store, by the test rows that it is scored on:")
        rng = np.random.default_rng(0)
        for tests in (1, 5, 50):
            path = Path(folder) / f"size {tests}.db"
            n = 20_000
            rows = rng.integers(2**63, size=(500, 2)).astype(np.uint64)
            with Store(path) as store:
                for start in range(0, n, 2000):
                    keys = rng.integers(2**63, size=(2000, 2)).astype(np.uint64)
                    which = np.concatenate([rng.permutation(500)[:tests] for _ in range(2000)])
                    scores = rng.random(2000 * tests)
                    store.add(bytes(16), f"part {start}", keys, np.arange(2001) * tests, rows[which], scores)
            print(f"  {tests:>3} test rows: {path.stat().st_size / n:,.0f}")


if __name__ == "__main__":
    main()
