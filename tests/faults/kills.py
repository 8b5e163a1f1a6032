"""Runs that are killed again and again: the store stays sound, and resumed runs end with the bits of undisturbed ones.

Ten kills hit the same store, one after the other. The first comes in the middle of SQLite's work, while the store is
made or first written; the others at a random moment after some writes, the last of them while two processes train.
`python tests/faults/kills.py 200` runs so many trials and counts how they ended.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

import localshapley as ls
from localshapley.engine.executor import Executor
from localshapley.engine.loop import play
from localshapley.engine.run_store import opened
from localshapley.methods import Limits, find_method
from localshapley.problem.build import build_problem
from localshapley.question import Question

sys.path.insert(0, str(Path(__file__).parents[1]))
from faults.batches import main

RNG = np.random.default_rng(0)
X, X_TEST = RNG.normal(size=(60, 3)), RNG.normal(size=(10, 3))
Y, Y_TEST = RNG.integers(2, size=60), RNG.integers(2, size=10)
IN_ONE = 10
"""Kills of one store."""
SECONDS_TO_END = 120
"""After this time a worker whose parent was killed counts as one that goes on."""


def trial(number: int) -> str:
    """Kill one run on the store of these ten trials, and resume it on a copy."""
    kills, rng = number % IN_ONE, np.random.default_rng(number)
    method = ("exact", "sample")[number // IN_ONE % 2]
    path = folder() / str(number // IN_ONE) / "run.db"
    path.parent.mkdir(exist_ok=True)
    n_jobs = 2 if kills == IN_ONE - 1 else 1
    if kills == 0:
        at = int(rng.integers(1, steps_of_first_write(method) + 1))
        killed = _killed(lambda told: _die_in_step(at) or value(method, path, 1, told), 0, 60.0)
    else:
        n_writes = int(rng.integers(n_jobs == 1, 5))
        seconds = float(rng.uniform(0, 0.01 if n_writes else 2))  # without a write, while processes start
        killed = _killed(lambda told: value(method, path, n_jobs, told), n_writes, seconds)
    held, wrong = ("", killed) if killed else _resumed(method, path)
    if kills == IN_ONE - 1 and not wrong:
        wrong = _ended(method, path)
    who = "in the first write" if kills == 0 else "with one process" if n_jobs == 1 else "with two processes"
    return wrong or f"killed {who}, {held} in the store: resumed with the same bits"


class Means(ClassifierMixin, BaseEstimator):
    """Probabilities by the distance from the mean of each class: a model that nothing compiles, and that is quick."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Means:
        self.classes_ = np.unique(y)
        self.means_ = np.stack([X[y == c].mean(axis=0) for c in self.classes_])
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        weight = np.exp(-((X[:, None] - self.means_) ** 2).sum(axis=2))
        return weight / weight.sum(axis=1, keepdims=True)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@cache
def folder() -> Path:
    """A folder that is there until this process ends."""
    name = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, name, ignore_errors=True)  # the killed have no say
    return Path(name)


def value(method: str, path: Path | None, n_jobs: int, told: Callable[[], None] | None = None) -> np.ndarray:
    """Values and standard errors of a run, which has small batches if it is to tell when it has written one."""
    problem = build_problem(
        Question.of_rows(X, Y, X_TEST, Y_TEST, model=Means(), support=ls.supports.Nearest(7), n_jobs=n_jobs)
    )
    settings = Limits(find_method(method), **({"budget": 600} if method == "sample" else {}))
    store = None if path is None else ls.Store(path, fastest=0)
    with opened(store, problem.contents) as known:
        executor = Executor(problem.trainer, known)
        if known is not None and told is not None:
            known.keep = _then(known.keep, told)  # type: ignore[method-assign]
            executor = Executor(problem.trainer, known, seconds_here=0.002, seconds_away=0.002)
        played = play(problem.graph, executor, settings)
    if store is not None:
        store.close()
    return np.stack([played.values, played.stderr])


def _then(act: Callable[..., Any], told: Callable[[], None]) -> Callable[..., Any]:
    def both(*given: Any) -> None:
        act(*given)
        told()

    return both


@cache
def expected(method: str) -> np.ndarray:
    """What an undisturbed run finds."""
    return value(method, None, 1)


class _EnoughError(Exception):
    pass


@cache
def steps_of_first_write(method: str) -> int:
    """Steps of SQLite from the making of a store to the end of its first write."""
    steps = [0]

    def stop() -> None:
        raise _EnoughError

    def count() -> int:
        steps[0] += 1
        return 0

    whole = sqlite3.connect
    sqlite3.connect = _watched(whole, count)  # type: ignore[assignment]
    try:
        value(method, folder() / f"{method}.db", 1, stop)
    except _EnoughError:
        pass
    finally:
        sqlite3.connect = whole  # type: ignore[assignment]
    return steps[0]


def _watched(connect: Callable[..., Any], step: Callable[[], int]) -> Callable[..., Any]:
    """Connections that call a function at each step."""

    def connected(*given: Any, **options: Any) -> Any:
        connection = connect(*given, **options)
        connection.set_progress_handler(step, 1)
        return connection

    return connected


def _die_in_step(at: int) -> None:
    """Have this process kill itself in one of SQLite's steps."""
    left = [at]

    def step() -> int:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    sqlite3.connect = _watched(sqlite3.connect, step)  # type: ignore[assignment]


def _killed(act: Callable[[Callable[[], None]], Any], n_writes: int, seconds: float) -> str:
    """Kill a process in which something is done, so long after a number of writes; says how that went."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reads)
        _alone(lambda: (act(lambda: bool(os.write(writes, b"w"))), os.write(writes, b"w" * n_writes), signal.pause()))
    os.close(writes)
    told = b""
    while len(told) < n_writes and (more := os.read(reads, 1)):
        told += more
    if len(told) == n_writes and not _ends_within(child, seconds):
        workers = _workers(child)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reads)
        return "" if _all_end(workers) else "WRONG: workers go on after their parent was killed"
    os.close(reads)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "" if status == -signal.SIGKILL else f"WRONG: the run ended with status {status} before it was killed"


def _alone(act: Callable[[], Any]) -> None:
    """Do something in a process of its own, with a folder of its own for temporary files, and end it."""
    status = 1
    try:
        tempfile.tempdir = str(folder() / "temporary")
        (folder() / "temporary").mkdir(exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            act()
        status = 0
    except BaseException as error:
        print(type(error).__name__, error, file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def _ends_within(child: int, seconds: float) -> bool:
    """Whether a process has ended by itself when so much time has passed; it is left to be waited for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return True
        time.sleep(min(0.002, seconds))
    return False


def _workers(process: int) -> list[str]:
    return subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True).stdout.split()


def _all_end(workers: list[str]) -> bool:
    """Whether all of these processes end."""
    end = time.monotonic() + SECONDS_TO_END
    while time.monotonic() < end:
        shown = subprocess.run(["ps", "-o", "stat=", "-p", ",".join(workers)], capture_output=True, text=True).stdout
        if not workers or all(line.startswith("Z") for line in shown.split()):
            return True
        time.sleep(0.1)
    return False


def _resumed(method: str, path: Path) -> tuple[str, str]:
    """What is in the store that a killed run left, and what was wrong with it when a copy of it was resumed."""
    copied = path.parent / "copy"
    shutil.rmtree(copied, ignore_errors=True)
    copied.mkdir()
    for part in path.parent.glob("run.db*"):
        shutil.copy(part, copied)
    with ls.Store(copied / "run.db") as store:
        problems, n = store.verify(), store.info().n_coalitions
    if problems:
        return "", f"WRONG: a damaged store: {problems[0]}"
    if not np.array_equal(value(method, copied / "run.db", 1), expected(method)):
        return "", "WRONG: the resumed run gave other numbers"
    return "scores" if n else "nothing", ""


def _ended(method: str, path: Path) -> str:
    """Resume the run with two processes to its end; says what was wrong."""
    out = path.parent / "values.npy"
    child = os.fork()
    if child == 0:
        _alone(lambda: np.save(out, value(method, path, 2)))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status or not np.array_equal(np.load(out), expected(method)):
        return f"WRONG: two processes that resumed it gave other numbers, or status {status}"
    left = list((folder() / "temporary").glob("localshapley-*"))
    return f"WRONG: {len(left)} folders are left" if left else ""


if __name__ == "__main__":
    main(os.path.abspath(__file__), trial, 200)
