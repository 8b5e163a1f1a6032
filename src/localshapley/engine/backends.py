"""Where coalitions are trained: in this process, in others of this machine, or on a Dask cluster.

Processes of this machine read the trainer from a file, each once, and end with their parent; workers of a cluster are
sent it once, and are waited for if there are none.
"""

from __future__ import annotations

import os
import pickle
import platform
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import closing, contextmanager
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, TypeAlias

import joblib
from joblib.parallel import get_active_backend

from localshapley.engine.pieces import Job, train_in_parts
from localshapley.errors import TrainingError
from localshapley.formatting import duration
from localshapley.models.trainer import Trainer, TrainingOutcome
from localshapley.runtime.dask_cluster import await_workers

Outcomes: TypeAlias = Generator[tuple[int, TrainingOutcome], None, None]
"""What came of jobs, by their numbers, in any order; counts say how many coalitions of each were trained."""
Backend: TypeAlias = Callable[[Iterator[Job], Trainer], Outcomes]
"""Trains jobs. It asks for them as it goes: what came of one may lead to others."""

OURS = f"localshapley-{zlib.crc32(platform.node().encode()):08x}-"
"""How the names of folders begin that processes of this machine made; the number of the process follows."""
BETWEEN_SIGNS = 0.5
"""Seconds between two looks of a worker at whether its parent is alive."""
BETWEEN_LOOKS = 5.0
"""Seconds without a result after which to see whether the cluster still has workers."""


def train_here(jobs: Iterator[Job], trainer: Trainer, clock: Callable[[], float]) -> Outcomes:
    """Train in this process, one job after the other."""
    for index, coalitions, stops, seconds in jobs:
        yield index, train_in_parts(trainer, coalitions, stops, seconds, clock)


# Processes of this machine.


def train_in_processes(jobs: Iterator[Job], trainer: Trainer) -> Outcomes:
    """Train in what joblib provides on this machine, processes or threads."""
    with _shared(trainer) as shared:
        parallel = joblib.Parallel(
            trainer.n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs", batch_size=1
        )
        with closing(parallel(joblib.delayed(_train)(shared, *job) for job in jobs)) as results:
            yield from results


def _train(shared: TrainerFile | Trainer, index: int, *job: Any) -> tuple[int, TrainingOutcome]:
    """In a worker: train and score a piece."""
    return index, train_in_parts(_load(shared) if isinstance(shared, TrainerFile) else shared, *job)


class TrainerFile(NamedTuple):
    """A file from which the processes that `parent` started read the trainer, each once."""

    path: Path
    parent: int


@contextmanager
def _shared(trainer: Trainer) -> Iterator[TrainerFile | Trainer]:
    """What workers are given for the trainer, so that its data travels to each of them once."""
    if getattr(get_active_backend()[0], "supports_sharedmem", False):
        yield trainer
        return
    _remove_leftovers()
    with tempfile.TemporaryDirectory(prefix=f"{OURS}{os.getpid()}-") as folder:
        path = Path(folder) / "trainer"
        path.write_bytes(pickle.dumps(joblib.wrap_non_picklable_objects(trainer, keep_wrapper=False)))
        yield TrainerFile(path, os.getpid())


def _remove_leftovers() -> None:
    """Remove the folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{OURS}*"):
        process = folder.name.removeprefix(OURS).partition("-")[0]
        if process.isdecimal() and not _is_alive(int(process)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    """Whether there is a process of this number; where that cannot be asked, there may be."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


@lru_cache(maxsize=1)
def _load(file: TrainerFile) -> Trainer:
    _end_with(file.parent)
    trainer: Trainer = pickle.loads(file.path.read_bytes())
    return trainer


@cache
def _end_with(parent: int) -> None:
    """End this process soon after the one that started it, which may be killed; it would go on, and then idle."""
    is_child = os.getppid() == parent

    def watch() -> None:
        while os.getppid() == parent if is_child else _is_alive(parent):
            time.sleep(BETWEEN_SIGNS)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


# Workers of a Dask cluster.


def train_on_cluster(jobs: Iterator[Job], trainer: Trainer, patience: float) -> Outcomes:
    """Train on the workers of a Dask cluster; waits so many seconds for some if there are none."""
    backend, _ = get_active_backend()
    await_workers(backend, patience)
    with backend.retrieval_context():  # a task of the cluster makes room for those that it waits for
        shared = _scattered(trainer, backend.client, patience)
        pending: set[Any] = set()
        try:
            while True:
                n_workers = max(trainer.n_jobs, sum(backend.client.ncores().values()))  # more may have come
                for job in islice(jobs, max(2 * n_workers - len(pending), 0)):
                    options = {"pure": False, **backend.submit_kwargs}
                    pending.add(backend.client.submit(_train, shared, *job, **options))
                if not pending:
                    return
                for future in _first_done(pending, backend, patience):
                    pending.remove(future)
                    yield future.result()
        finally:
            for future in (shared, *pending):
                future.release()


def _scattered(trainer: Trainer, client: Any, patience: float) -> Any:
    """The trainer on all workers."""
    try:
        return client.scatter(trainer, broadcast=True, hash=False, timeout=patience)
    except TimeoutError as error:
        raise TrainingError(
            f"no worker of the Dask cluster took the training data within {duration(patience)}; out of memory? "
            "Start fewer on a machine, or give them more memory."
        ) from error
    except OSError as error:
        raise BrokenExecutor(str(error)) from error


def _first_done(pending: set[Any], backend: Any, patience: float) -> set[Any]:
    """The futures that are done, at least one; meanwhile the cluster is looked after."""
    from distributed import wait

    while True:
        try:
            with backend.client.as_current():  # joblib may have been given another one than Dask's latest
                found = wait(list(pending), timeout=BETWEEN_LOOKS, return_when="FIRST_COMPLETED")  # type: ignore[no-untyped-call]
            return set(found.done)
        except TimeoutError:
            await_workers(backend, patience)
