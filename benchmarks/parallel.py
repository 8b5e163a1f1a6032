"""Spreading work, and keeping it: speed-up of two processes, what a store costs, how large it gets.

    python benchmarks/parallel.py
    python benchmarks/parallel.py --spread   # compiled models, in two threads and on a Dask cluster of two
    python benchmarks/parallel.py --spread --only forest --turns 1

The model sleeps 20 ms (speed-up) or 2 ms (store) in each fit, so that the figures are those of the machinery, whatever
else the machine does.

`--spread` trains SVMs and a forest in this process, in two threads, and in three `--turns` on one and two Dask
workers, of which the fastest runs are printed: seconds, and those of CPU, of this process (without Dask's event loop,
which is the scheduler here, and elsewhere on a cluster) and of the workers. The speed-up from one worker to two is
given as measured, and by CPU time: this process does its share, then the workers divide theirs. Other work on the
machine does not matter to that one. Cores of one machine slow each other down, so the most that it could give is told,
too: the same valuation is made by one worker alone, and then by both at once, each the whole of it.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import perf_counter

import joblib
import numpy as np
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.engine.score_store import Store


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


def spread(only: str, turns: int) -> None:
    """Compiled models on one and two workers, of those whose name has `only` in it."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.svm import SVC

    forest = RandomForestClassifier(random_state=0)
    models = {
        "SVM, Breast Cancer, 150 nearest, 20 test rows": ("breast_cancer", SVC(), 150, 20, 200_000),
        "SVM, Breast Cancer, 150 nearest, 171 test rows": ("breast_cancer", SVC(), 150, 171, 50_000),
        "SVM, Breast Cancer, 300 nearest, 20 test rows": ("breast_cancer", SVC(), 300, 20, 100_000),
        "SVM, digits, 400 nearest, 20 test rows": ("digits", SVC(), 400, 20, 20_000),
        "forest of 100 trees, Breast Cancer, 80 nearest, 20 test rows": ("breast_cancer", forest, 80, 20, 8_000),
    }
    with _dask(1) as one, _dask(2) as two:
        places = {
            "here": (nullcontext(), 1),
            "two threads": (nullcontext(), 2),
            "one Dask worker": (one, None),
            "two Dask workers": (two, None),
        }
        for name, (*workload, budget) in models.items():
            if only not in name:
                continue
            print(f"{name}, {budget:,} trainings")
            runs: dict[str, list[tuple[float, float, float]]] = {where: [] for where in places}
            for turn in range(1 + turns):
                for where, (place, n_jobs) in places.items():
                    if turn > 1 and n_jobs is not None:
                        continue
                    with place:
                        found = trained(*workload, budget if turn else 2_000, n_jobs)
                    if turn:  # in the first, everything is made ready
                        runs[where].append(found)
            for where in places:
                seconds, own, workers = min(runs[where])
                print(f"  {where:<18}{seconds:6.2f} s  CPU {own:6.2f} s here, {workers:6.2f} s of workers")
            at_once = [whole(two, n, workload, budget) for _ in range(turns) for n in (1, 2)]
            most = 2 * min(at_once[::2]) / min(at_once[1::2])
            here, threads, alone, both = (min(found) for found in runs.values())
            by_cpu = (alone[1] + alone[2]) / (both[1] + both[2] / 2)
            print(
                f"  speed-up by two threads {here[0] / threads[0]:.2f}; from one worker to two "
                f"{alone[0] / both[0]:.2f} of {most:.2f} that the machine could give, by CPU time {by_cpu:.2f}",
                flush=True,
            )


def trained(name: str, model, n_near: int, n_tests: int, budget: int, n_jobs: int | None) -> tuple[float, float, float]:
    """Seconds of a valuation, and those of CPU: of this process, and of those that it started."""
    data = ls.datasets.load(name)
    mean, scale = data.X.mean(axis=0), np.maximum(data.X.std(axis=0), 1e-9)
    wrong = np.random.default_rng(0).random(len(data.y)) < 0.2  # or there would be little to learn
    given = (data.X - mean) / scale, np.where(wrong, (data.y + 1) % (data.y.max() + 1), data.y)
    tests = (data.X_test[:n_tests] - mean) / scale, data.y_test[:n_tests]
    started, before = perf_counter(), _cpu()
    settings = {"model": model, "support": ls.supports.Nearest(n_near), "budget": budget, "n_jobs": n_jobs}
    ls.value(*given, *tests, **settings, method="sample", progress=False)
    here, there = np.subtract(_cpu(), before).tolist()
    return perf_counter() - started, here, there


def whole(cluster: _Cluster, n_workers: int, workload: tuple, budget: int) -> float:
    """Seconds until so many workers have each made the whole valuation."""
    chosen = sorted(cluster.client.scheduler_info()["workers"])[:n_workers]
    started = perf_counter()
    made = [
        cluster.client.submit(trained, *workload, budget, 1, pure=False, workers=[worker], allow_other_workers=False)
        for worker in chosen
    ]
    cluster.client.gather(made)
    return perf_counter() - started


def _cpu() -> tuple[float, float]:
    """CPU seconds of this process, without Dask's event loop, and of those that it started."""
    import psutil

    this = psutil.Process()
    loops = {thread.native_id for thread in threading.enumerate() if thread.name.startswith("IO loop")}
    loop = sum(one.user_time + one.system_time for one in this.threads() if one.id in loops)
    return sum(this.cpu_times()[:2]) - loop, sum(sum(one.cpu_times()[:2]) for one in this.children(recursive=True))


@contextmanager
def _dask(n_workers: int):
    """A cluster; gives what makes joblib use it."""
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield _Cluster(client)


class _Cluster:
    """A cluster that joblib uses as long as this is entered; any number of times."""

    def __init__(self, client) -> None:
        self.client = client

    def __enter__(self) -> None:
        self._settings = joblib.parallel_config(backend="dask", client=self.client)
        self._settings.__enter__()

    def __exit__(self, *error) -> None:
        self._settings.__exit__(*error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spread", action="store_true")
    parser.add_argument("--only", default="", help="with --spread: models whose name has this in it")
    parser.add_argument("--turns", type=int, default=3, help="with --spread: runs on each cluster")
    given = parser.parse_args()
    if given.spread:
        spread(given.only, given.turns)
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
