"""Workers that are killed while they train: others do their work again, and the values have the same bits.

Trials take turns between two processes of this machine (`n_jobs=2`) and two workers of a Dask cluster, which replaces
them. `python tests/faults/dead_workers.py 20` runs so many trials, each with a dead worker, and counts how they ended.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import parallel_config

import localshapley as ls
from localshapley.engine.executor import Executor
from localshapley.engine.loop import play
from localshapley.methods import Limits, find_method
from localshapley.problem.build import build_problem
from localshapley.question import Question

sys.path.insert(0, str(Path(__file__).parents[1]))
from faults.batches import main
from faults.kills import X_TEST, Y_TEST, Means, X, Y


class Signing(Means):
    """A model whose fits leave the number of their process in a folder."""

    def __init__(self, folder: str = "") -> None:
        self.folder = folder

    def fit(self, X: np.ndarray, y: np.ndarray) -> Means:
        Path(self.folder, str(os.getpid())).touch()
        return super().fit(X, y)


def trial(number: int) -> str:
    """Kill a worker after some of the coalitions are done."""
    rng = np.random.default_rng(number)
    on_cluster = number % 2 == 1
    with tempfile.TemporaryDirectory() as folder:
        killer = Killer(folder, int(rng.integers(1, 600)), int(rng.integers(2)))
        backend = {"backend": "dask", "client": client()} if on_cluster else {"backend": "loky"}
        with parallel_config(**backend), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a cluster may have to wait for its workers
            found = value(folder, 2, killer)
    where = "of a Dask cluster" if on_cluster else "of two processes"
    if not killer.killed:
        return f"WRONG: no worker {where} was killed"
    same = np.array_equal(found, expected())
    return f"a worker {where} was killed: same bits" if same else f"WRONG: a dead worker {where} gave other numbers"


class Killer:
    """Progress of a run that kills a worker when so many coalitions are done."""

    def __init__(self, folder: str, after: int, which: int) -> None:
        self._folder, self._after, self._which = folder, after, which
        self.killed = False

    def __call__(self, done: int, total: int | None) -> None:
        workers = sorted(int(name) for name in os.listdir(self._folder) if int(name) != os.getpid())
        if done >= self._after and not self.killed and workers:
            os.kill(workers[self._which % len(workers)], signal.SIGKILL)
            self.killed = True


def value(folder: str, n_jobs: int, progress: Any = False) -> np.ndarray:
    """Values of a run whose pieces are small."""
    model, support = Signing(folder), ls.supports.Nearest(7)
    question = Question.of_rows(X, Y, X_TEST, Y_TEST, model=model, support=support, n_jobs=n_jobs)
    problem = build_problem(question)
    executor = Executor(problem.trainer, max_batch=8)
    return play(problem.graph, executor, Limits(find_method("exact"), progress=progress)).values


@cache
def expected() -> np.ndarray:
    """What an undisturbed run finds."""
    with tempfile.TemporaryDirectory() as folder:
        return value(folder, 1)


@cache
def client() -> Any:
    """A client of a cluster of two workers."""
    from dask.distributed import Client, LocalCluster

    return Client(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50))


if __name__ == "__main__":
    main(os.path.abspath(__file__), trial, 20)
