"""A scan of all rows by blocks of matrix products, chunks of queries in threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from threading import local
from typing import Any, Protocol

import numpy as np

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.runtime.progress import Progress, ProgressSetting
from localshapley.runtime.threads import cores, unthreaded_blas
from localshapley.search.bounds import Arithmetic

ROWS = 4096
"""Rows of a block,"""
QUERIES = 512
"""and queries of a chunk: what they are multiplied to stays in the cache."""
SMALL = 10**7
"""Up to so many products of two numbers, threads take longer to start than to work."""
ROOM = local()
PROGRESS: ContextVar[ProgressSetting] = ContextVar("PROGRESS", default=False)


@contextmanager
def showing(progress: ProgressSetting) -> Iterator[None]:
    """Within it, searches show how many rows they have looked at; a function is for trainings, and not called."""
    before = PROGRESS.set(False if callable(progress) else progress)
    try:
        yield
    finally:
        PROGRESS.reset(before)


def bar_of(n_rows: int) -> Progress:
    """The progress of a search in so many rows."""
    return Progress(PROGRESS.get(), n_rows, "searching rows")


class Chunk(Protocol):
    """Some queries, and what has been found for them so far."""

    def scan(self, rows: AnyArray, widths: Floats, start: int) -> None:
        """Look at a block of rows that begins at `start`, made ready by `Arithmetic.rows`."""


def scan(X: AnyArray, chunks: Sequence[Chunk], arithmetic: Arithmetic, n_queries: int) -> None:
    """Show all rows to all chunks, the blocks in their order."""

    def ready(start: int) -> tuple[AnyArray, Floats]:
        return arithmetic.rows(X[start : start + ROWS])

    if X.size * n_queries <= SMALL:
        for start in range(0, len(X), ROWS):
            block = ready(start)
            for chunk in chunks:
                chunk.scan(*block, start)
        return
    with unthreaded_blas(), ThreadPoolExecutor(cores()) as threads, bar_of(len(X)) as bar:
        ahead = threads.submit(ready, 0)
        for start in range(0, len(X), ROWS):
            block = ahead.result()
            if start + ROWS < len(X):
                ahead = threads.submit(ready, start + ROWS)
            for done in [threads.submit(chunk.scan, *block, start) for chunk in chunks]:
                done.result()
            bar.advance(len(block[0]))


def chunks_of(n_queries: int, most: int = QUERIES) -> list[slice]:
    """Queries in chunks of about equal size, as many as keep all threads busy."""
    n_threads = cores()
    n_chunks = min(n_threads * -(-n_queries // (most * n_threads)), n_queries)
    ends = np.linspace(0, n_queries, n_chunks + 1).astype(int).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def multiplied(queries: AnyArray, rows: AnyArray) -> AnyArray:
    """The products of queries and rows, in this thread's room: they are overwritten by the next ones."""
    return np.matmul(queries, rows.T, out=_room("products", (len(queries), len(rows)), queries.dtype))


def passing(products: AnyArray, limit: AnyArray) -> tuple[Ints, Ints]:
    """Lines and columns of the products that are at most the limit of their line, line by line."""
    room = _room("passes", products.shape, np.bool_)
    passes = np.less_equal(products, limit[:, None], out=room).ravel()
    if len(passes) % 8:
        at = np.flatnonzero(passes)
    else:  # nearly all are false: eight of them are looked at as one number
        eights = np.flatnonzero(passes.view(np.uint64))
        which, place = np.nonzero(passes.reshape(-1, 8)[eights])
        at = eights[which] * 8 + place
    line, column = np.divmod(at, products.shape[1])
    return line, column


def _room(name: str, shape: tuple[int, ...], dtype: Any) -> AnyArray:
    """An array of this thread to write into; new ones for each block would cost as much as the products."""
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if len(getattr(ROOM, name, b"")) < n_bytes:
        setattr(ROOM, name, np.empty(n_bytes, dtype=np.uint8))
    found: AnyArray = getattr(ROOM, name)[:n_bytes].view(dtype).reshape(shape)
    return found


def at_least(numbers: Floats, dtype: Any) -> AnyArray:
    """Numbers in another type, none of them smaller for it."""
    out: AnyArray = np.nextafter(numbers.astype(dtype), np.array(np.inf, dtype=dtype))
    return out
