"""Spreading work, and keeping it: speed-up of two processes, what a store costs, how large it gets.

    python benchmarks/parallel.py
    python benchmarks/parallel.py --spread   # compiled models, in two threads and on a Dask cluster of two

The model sleeps 20 ms (speed-up) or 2 ms (store) in each fit, so that the figures are those of the machinery, whatever
else the machine does.

`--spread` trains an SVM and a forest in this process and on one and two workers. It prints the seconds that each took,
those of CPU, of all processes and of this one, and the speed-up over this process alone: as measured, and as CPU time
allows, if this process does its share while the workers wait and they share the rest (other work on the machine does
not matter to that one).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import contextmanager, nullcontext
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


def spread() -> None:
    """Compiled models on one and two workers."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.svm import SVC

    forest = RandomForestClassifier(random_state=0)
    models = {
        "SVM, supports of 150 rows": (SVC(), ls.supports.Nearest(150), 50_000),
        "SVM, supports of 390 rows": (SVC(), ls.supports.Nearest(390), 10_000),
        "forest of 100 trees, supports of 80 rows": (forest, ls.supports.Nearest(80), 4_000),
    }
    for name, (model, support, budget) in models.items():
        print(f"{name}, {budget:,} trainings")
        times = {}
        for where, (place, n_jobs, n_workers) in PLACES.items():
            with place():
                trained(model, support, 2_000, n_jobs)  # everything is there
                seconds, cpu, own = np.min([trained(model, support, budget, n_jobs) for _ in range(2)], axis=0)
            times[where] = seconds, own + (cpu - own) / n_workers
            faster = [one / now for one, now in zip(times["here"], times[where], strict=True)]
            print(
                f"  {where:<18}{seconds:6.2f} s  CPU {cpu:6.2f} s, of which here {own:5.2f} s  "
                f"speed-up {faster[0]:.2f}, by CPU time {faster[1]:.2f}",
                flush=True,
            )


def trained(model, support, budget: int, n_jobs: int | None) -> tuple[float, float, float]:
    """Seconds of a valuation, of all CPUs, and of that of this process."""
    data = ls.datasets.load("breast_cancer")
    mean, scale = data.X.mean(axis=0), data.X.std(axis=0)
    wrong = np.random.default_rng(0).random(len(data.y)) < 0.2  # or there would be little to learn
    given = (data.X - mean) / scale, np.where(wrong, 1 - data.y, data.y), (data.X_test - mean) / scale, data.y_test
    started, before = perf_counter(), _cpu()
    ls.value(*given, model=model, support=support, budget=budget, n_jobs=n_jobs, method="sample", progress=False)
    here, there = np.subtract(_cpu(), before).tolist()
    return perf_counter() - started, here + there, here


def _cpu() -> tuple[float, float]:
    """CPU seconds of this process, and of those that it started."""
    import psutil

    this = psutil.Process()
    used = [sum(one.cpu_times()[:2]) for one in (this, *this.children(recursive=True))]
    return used[0], sum(used[1:])


@contextmanager
def _dask(n_workers: int):
    import joblib
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        yield


PLACES = {
    "here": (nullcontext, 1, 1),
    "two threads": (nullcontext, 2, 2),
    "one Dask worker": (lambda: _dask(1), None, 1),
    "two Dask workers": (lambda: _dask(2), None, 2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spread", action="store_true")
    if parser.parse_args().spread:
        spread()
        return
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
