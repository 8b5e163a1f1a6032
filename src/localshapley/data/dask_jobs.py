"""Jobs on parts of Dask collections: each is done by the worker that has the part, so that no rows move."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

BETWEEN_LOOKS = 5.0
"""Seconds without a result after which to see whether the workers that have the parts are still there."""


class Job(NamedTuple):
    """What a function is called with, and the future that its part is made of, if Dask has it in memory."""

    arguments: tuple[Any, ...]
    origin: Any


def current_client() -> Any:
    """The client of a cluster, if there is one."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


def origin_of(part: Any, graph: Any) -> Any:
    """The future that a part is made of, and of nothing else: where that lies, the part lies."""
    from dask.core import get_dependencies

    key = part.key
    while (node := graph.get(key)) is not None:
        if hasattr(node, "client"):
            return node
        needed = list(get_dependencies(graph, key))
        if len(needed) != 1:
            return None
        key = needed[0]
    return None


def do_jobs(function: Callable[..., Any], jobs: list[Job], *shared: Any) -> Iterator[Any]:
    """What `function(*arguments, *shared)` gives for each job; on a cluster as workers finish.

    Where the part of a job lies on workers, one of these does the job, and Dask has no say in it: it would send rows to
    workers that have nothing to do. If they are gone meanwhile, any worker does it.
    """
    from dask.delayed import delayed

    client = current_client()
    if client is None:
        yield from (delayed(function, pure=False)(*job.arguments, *shared).compute() for job in jobs)
        return
    pending = _sent(client, function, _placed(client, jobs), shared)
    try:
        while pending:
            for future, result in _done(pending):
                del pending[future]
                yield result
            there = set(client.ncores())
            lost = [
                future
                for future, (_, workers) in pending.items()
                if future.cancelled() or (workers and there.isdisjoint(workers))
            ]
            anywhere: list[tuple[Job, Workers]] = [(pending.pop(future)[0], ()) for future in lost]
            if lost:
                client.cancel(lost)
                pending |= _sent(client, function, anywhere, shared)
    finally:
        client.cancel(list(pending))


Workers = tuple[str, ...]


def _placed(client: Any, jobs: list[Job]) -> list[tuple[Job, Workers]]:
    """Jobs, and the workers that have their parts."""
    from distributed import wait

    known = [job.origin for job in jobs if job.origin is not None]
    if not known:
        return [(job, ()) for job in jobs]
    wait(known)  # type: ignore[no-untyped-call]
    where = client.who_has(known)
    return [(job, () if job.origin is None else tuple(where.get(job.origin.key, ()))) for job in jobs]


def _sent(
    client: Any, function: Callable[..., Any], jobs: list[tuple[Job, Workers]], shared: tuple[Any, ...]
) -> dict[Any, tuple[Job, Workers]]:
    """Futures of jobs, all of the same workers at once."""
    from dask.delayed import delayed

    # Anew each time: Dask keeps as few copies as it needs, and they may be lost with a worker.
    given = client.scatter(list(shared), broadcast=True, hash=False) if shared else []
    together: dict[Workers, list[Job]] = defaultdict(list)
    for job, workers in jobs:
        together[workers].append(job)
    out: dict[Any, tuple[Job, Workers]] = {}
    for workers, some in together.items():
        calls = [delayed(function, pure=False)(*job.arguments, *given) for job in some]
        futures = client.compute(calls, workers=list(workers) or None)
        out |= {future: (job, workers) for future, job in zip(futures, some, strict=True)}
    return out


def _done(pending: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Futures and their results as they come, until none does for a while."""
    from distributed import as_completed

    # Results are awaited there too: one that is done can still be lost with its worker.
    coming = as_completed(  # type: ignore[no-untyped-call]
        list(pending), with_results=True, raise_errors=False, timeout=BETWEEN_LOOKS
    )
    while True:
        try:
            future, result = next(coming)
        except (StopIteration, TimeoutError):
            return
        if future.status == "error":
            future.result()  # raises
        if not future.cancelled():
            yield future, result
