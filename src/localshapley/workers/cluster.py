"""Workers of a Dask cluster: they get the trainer once, and are waited for if there are none."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from itertools import islice
from typing import Any

from joblib.parallel import get_active_backend

from localshapley.errors import TrainingError
from localshapley.models.cluster import await_workers
from localshapley.models.trainer import Trainer
from localshapley.wording import duration
from localshapley.workers.away import Jobs, Outcomes
from localshapley.workers.pieces import Job, Outcome

BETWEEN_LOOKS = 5.0
"""Seconds without a result after which to see whether the cluster still has workers."""


def train_on_cluster(jobs: Jobs, trainer: Trainer, patience: float) -> Outcomes:
    """Train on the workers of a Dask cluster, which get the trainer once."""
    backend, _ = get_active_backend()
    await_workers(backend, patience)
    with backend.retrieval_context():  # a task of the cluster makes room for those that it waits for
        shared = _scattered(trainer, backend.client, patience)
        pending: set[Any] = set()
        try:
            while True:
                n_workers = max(trainer.n_jobs, sum(backend.client.ncores().values()))  # more may have come
                for index, job in islice(jobs, max(2 * n_workers - len(pending), 0)):
                    options = {"pure": False, **backend.submit_kwargs}
                    pending.add(backend.client.submit(_train, shared, index, job, **options))
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


def _train(trainer: Trainer, index: int, job: Job) -> tuple[int, Outcome]:
    """In a worker: train and score a piece."""
    return index, job.do(trainer)
