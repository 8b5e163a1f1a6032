"""A Dask cluster behind joblib: whether there is one, and whether it has workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import joblib
from joblib.parallel import get_active_backend

from localshapley.errors import TrainingError, warn
from localshapley.formatting import duration

PATIENCE = 60.0
"""Seconds to wait for workers of a cluster that has none; longer if joblib's `wait_for_workers_timeout` is."""
BETWEEN_LOOKS = 0.2
"""Seconds between two looks at a cluster that has no workers."""


def on_cluster() -> bool:
    """Whether joblib has been told to work on a Dask cluster."""
    return hasattr(get_active_backend()[0], "data_futures")


def n_processes(n_jobs: int | None) -> int:
    """Number of processes that `n_jobs` stands for; on a cluster all that it has, and at least two: more may come."""
    need_workers()
    return max(int(joblib.effective_n_jobs(n_jobs)), 2 if on_cluster() else 1)


def need_workers() -> None:
    """Wait for the workers of the cluster, if there is a cluster and it has none."""
    if on_cluster():
        await_workers(get_active_backend()[0])


def await_workers(
    backend: Any,
    patience: float = PATIENCE,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until the cluster has a worker, with a warning; an error if it has none for too long, or is closed.

    Parameters
    ----------
    backend : joblib's backend for Dask
    patience : float
        Seconds to wait; longer, if the backend's `wait_for_workers_timeout` is.
    clock, pause : callable
        Gives the time in seconds, and lets some of it pass.
    """
    patience, client = max(patience, backend.wait_for_workers_timeout or 0.0), backend.client
    started = None
    while not _has_workers(client):
        if _is_closed(client):
            raise TrainingError(
                "the Dask cluster, or the client that was connected to it, is closed; connect a new client to a "
                "running cluster and call again."
            )
        if started is None:
            started = clock()
            warn(f"the Dask cluster has no workers; waiting for one, up to {duration(patience)}.")
        elif clock() - started > patience:
            raise TrainingError(
                f"the Dask cluster has had no workers for {duration(patience)}; start some (out of memory? give each "
                "more) and call again, or set a longer wait_for_workers_timeout in joblib.parallel_config."
            )
        pause(BETWEEN_LOOKS)


def _is_closed(client: Any) -> bool:
    """Whether no worker can come any more."""
    statuses = [client.status] if client.cluster is None else [client.status, client.cluster.status.name]
    return any(status in ("closing", "closed") for status in statuses)


def _has_workers(client: Any) -> bool:
    """Whether there is a connection to the cluster, and a worker behind it."""
    try:
        return client.status == "running" and bool(client.ncores())
    except (OSError, RuntimeError, AttributeError):  # what Dask raises while a connection breaks down
        return False
