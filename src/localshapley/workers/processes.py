"""Processes of this machine, which joblib provides: they read the trainer from a file, and end with their parent."""

from __future__ import annotations

import os
import pickle
import platform
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache, lru_cache
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import joblib
from joblib.parallel import get_active_backend

from localshapley.models.trainer import Trainer
from localshapley.workers.away import Jobs, Outcomes
from localshapley.workers.pieces import Job, Outcome

OURS = f"localshapley-{zlib.crc32(platform.node().encode()):08x}-"
"""How the names of folders begin that processes of this machine made; the number of the process follows."""
BETWEEN_SIGNS = 0.5
"""Seconds between two looks of a worker at whether its parent is alive."""


def train_in_processes(jobs: Jobs, trainer: Trainer) -> Outcomes:
    """Train in what joblib provides on this machine, processes or threads."""
    with _shared(trainer) as shared:
        parallel = joblib.Parallel(
            trainer.n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs", batch_size=1
        )
        with closing(parallel(joblib.delayed(_train)(shared, *job) for job in jobs)) as results:
            yield from results


def _train(shared: TrainerFile | Trainer, index: int, job: Job) -> tuple[int, Outcome]:
    """In a worker: train and score a piece."""
    return index, job.do(_load(shared) if isinstance(shared, TrainerFile) else shared)


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
