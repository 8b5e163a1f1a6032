"""The same searches on a GPU through PyTorch: products, bounds and the rows that pass stay there until the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import Any, TypeVar

import numpy as np
import torch

from localshapley.arrays import AnyArray, Indices, Ints
from localshapley.search.best import CROWD, EUCLIDEAN, IN_SAMPLE, nearest_by_products
from localshapley.search.bounds import WHOLE_STEP, Arithmetic, UndecidedError, arithmetics, sample_of
from localshapley.search.distances import measure
from localshapley.search.inside import by_query, check_room, within_by_products
from localshapley.search.results import Neighbours, best_of
from localshapley.search.scan import at_least, bar_of

ROWS = 2**18
"""Rows that are sent to the device at a time,"""
QUERIES = 2**14
"""queries of a chunk,"""
PRODUCTS = 2**28
"""and products that are there at a time: 1 GiB."""
SAMPLE = 2**16
"""Rows that the first bounds are taken from."""
PASSING = 64
"""If so many times as many rows as are looked for have passed, the bound is made tighter."""
KNOWN = (np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_)
"""Types of arrays that PyTorch takes as they are."""

P = TypeVar("P", bound="Passing")


def nearest_on_device(X: AnyArray, queries: AnyArray, k: int, device: torch.device) -> Neighbours:
    """The `k` nearest of dense rows; what float32 cannot settle is left to numpy."""

    def search(way: Arithmetic) -> list[DeviceNearestQueries]:
        sample = _rows(X[sample_of(len(X), max(SAMPLE, IN_SAMPLE * k))], way, device)
        return [DeviceNearestQueries(queries[where], k, way, sample, device) for where in _chunks(len(queries))]

    found = _scan(X, search, device)
    if found is None:
        return nearest_by_products(X, queries, k)
    parts = [chunk.result(X) for chunk in found]
    return Neighbours(np.concatenate([part.distances for part in parts]), np.concatenate([part.rows for part in parts]))


def within_on_device(X: AnyArray, queries: AnyArray, radius: float, device: torch.device) -> list[Indices]:
    """The rows within the radius; what float32 cannot settle is left to numpy."""

    def search(way: Arithmetic) -> list[DeviceRadiusQueries]:
        return [DeviceRadiusQueries(X, queries[where], radius, way, device) for where in _chunks(len(queries))]

    found = _scan(X, search, device)
    if found is None:
        return within_by_products(X, queries, radius)
    return [rows for chunk in found for rows in chunk.result()]


class Passing:
    """Some queries on the device, and the limit at which rows pass."""

    def __init__(self, queries: AnyArray, way: Arithmetic, device: torch.device) -> None:
        self.raw, self.way = queries, way
        ready, self.errors = way.queries(queries)
        self.queries = torch.from_numpy(ready).to(device)
        self.limit = torch.full((len(queries),), torch.inf, device=device)

    def look(self, rows: torch.Tensor, widths: torch.Tensor, start: int) -> None:
        """Look at rows that begin at `start`, as many at a time as there is room for."""
        step = max(PRODUCTS // len(self.raw), 1)
        for at in range(0, len(rows), step):
            products = self.queries @ rows[at : at + step].T
            query, column = torch.nonzero(products <= self.limit[:, None], as_tuple=True)
            if len(query):
                product = products[query, column]
                self.take(query, column + (start + at), product, product + widths[column + at])

    def take(self, query: torch.Tensor, row: torch.Tensor, product: torch.Tensor, upper: torch.Tensor) -> None:
        """Take what passed."""
        raise NotImplementedError

    def close(self) -> None:
        """All rows have been looked at."""


class DeviceNearestQueries(Passing):
    """The rows that may be among the `k` nearest, with the `k`-th smallest upper bound so far as limit."""

    def __init__(
        self, queries: AnyArray, k: int, way: Arithmetic, sample: tuple[torch.Tensor, torch.Tensor], device: Any
    ) -> None:
        super().__init__(queries, way, device)
        self._k = k
        self._twice = torch.from_numpy(at_least(2 * self.errors, np.float32)).to(device)
        self._found: list[tuple[torch.Tensor, ...]] = []
        self._n_new = 0
        rows, widths = sample
        step = max(PRODUCTS // len(rows), 1)
        for at in range(0, len(queries), step):
            upper = self.queries[at : at + step] @ rows.T + widths
            kth = torch.topk(upper, k, largest=False).values[:, -1]
            self.limit[at : at + step] = kth + (0 if way.exact else self._twice[at : at + step])

    def take(self, query: torch.Tensor, row: torch.Tensor, product: torch.Tensor, upper: torch.Tensor) -> None:
        """Keep what passed; lower the limit once that is many."""
        self._found.append((query, row, product, upper))
        self._n_new += len(query)
        if self._n_new > PASSING * self._k * len(self.raw):
            self._tighten()

    def close(self) -> None:
        """Drop what the last limits do not let pass."""
        self._tighten()

    def _tighten(self) -> None:
        """Sink the limits to what has been found, and drop what does not pass them any more; see `best.Best`."""
        query, row, product, upper = (torch.cat(parts) for parts in zip(*self._found, strict=True))
        order, counts, first = _by_query(query, len(self.raw), upper)  # rows came in the order of their numbers
        query, row, product, upper = query[order], row[order], product[order], upper[order]
        enough = torch.nonzero(counts >= self._k).ravel()
        kth = upper[first[enough] + self._k - 1] + (-WHOLE_STEP if self.way.exact else self._twice[enough])
        self.limit[enough] = torch.minimum(self.limit[enough], kth)
        if self.way.exact:
            keep = torch.arange(len(query), device=query.device) - first[query] < self._k
        else:
            keep = product <= self.limit[query]
        self._found = [(query[keep], row[keep], product[keep], upper[keep])]
        self._n_new = 0
        if len(self._found[0][0]) > CROWD * self._k * len(self.raw):
            raise UndecidedError

    def result(self, X: AnyArray) -> Neighbours:
        """Measure what is left, and take the nearest."""
        query, row = self._found[0][:2]
        if query.device.type == "mps":  # it has no float64
            pairs = query.cpu().numpy(), row.cpu().numpy()
            return best_of(len(self.raw), self._k, *pairs, measure(X, self.raw, *pairs[::-1], *EUCLIDEAN))
        away = _measured(X, self.raw, row, query)
        order, _, first = _by_query(query, len(self.raw), away, row)
        taken = order[first[:, None] + torch.arange(self._k, device=order.device)]
        return Neighbours(away[taken].cpu().numpy(), row[taken].cpu().numpy())


class DeviceRadiusQueries(Passing):
    """The rows within a radius: those that surely are, and of the others the measured."""

    def __init__(self, X: AnyArray, queries: AnyArray, radius: float, way: Arithmetic, device: torch.device) -> None:
        super().__init__(queries, way, device)
        self._X, self._radius = X, radius
        reach, slack = way.nearness_at(queries, radius)
        self.limit = torch.from_numpy(at_least(reach + self.errors + slack, np.float32)).to(device)
        self._sure = -torch.from_numpy(at_least(self.errors + slack - reach, np.float32)).to(device)
        self._found: list[tuple[Ints, Ints]] = []
        self._n_found = 0

    def take(self, query: torch.Tensor, row: torch.Tensor, product: torch.Tensor, upper: torch.Tensor) -> None:
        """Keep what is within the radius."""
        inside = (upper <= self._sure[query]).cpu().numpy()
        queries, rows = query.cpu().numpy(), row.cpu().numpy()
        doubtful = np.flatnonzero(~inside)
        inside[doubtful] = measure(self._X, self.raw, rows[doubtful], queries[doubtful], *EUCLIDEAN) <= self._radius
        self._found.append((queries[inside], rows[inside].astype(np.int32)))
        self._n_found += len(self._found[-1][0])
        check_room(self._radius, self._n_found)

    def result(self) -> list[Indices]:
        """The rows within the radius of each query, in the order of their numbers."""
        return by_query(len(self.raw), self._found)


def _by_query(
    query: torch.Tensor, n_queries: int, *keys: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The order of pairs by query, then by the keys; how many each query has, and where they begin."""
    order = torch.arange(len(query), device=query.device)
    for key in (*keys[::-1], query):
        order = order[torch.sort(key[order], stable=True).indices]
    counts = torch.bincount(query, minlength=n_queries)
    return order, counts, torch.cumsum(counts, 0) - counts


def _measured(X: AnyArray, queries: AnyArray, row: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Distances of pairs, to the last bit those of `pairs.measure`: one feature is added after the other."""
    rows, others = (_known(table).to(row.device).double() for table in (X[row.cpu().numpy()], queries))
    difference = rows - others[query]
    difference *= difference
    out = torch.zeros(len(row), dtype=torch.float64, device=row.device)
    for of_feature in difference.T.contiguous():
        out += of_feature
    return torch.from_numpy(np.sqrt(out.cpu().numpy())).to(row.device)  # PyTorch's roots are not all rounded correctly


def _chunks(n_queries: int) -> list[slice]:
    return [slice(start, start + QUERIES) for start in range(0, n_queries, QUERIES)]


def _scan(X: AnyArray, search: Callable[[Arithmetic], list[P]], device: torch.device) -> list[P] | None:
    """Show all rows to all chunks, in the first arithmetic that can decide; None if none of float32 can."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")  # the bounds are those of float32, not of TF32
    try:
        for way in arithmetics(X):
            if way.dtype != np.float32:
                return None
            with suppress(UndecidedError):
                chunks = search(way)
                with bar_of(len(X)) as bar:
                    for start, rows, widths in _blocks(X, way, device):
                        for chunk in chunks:
                            chunk.look(rows, widths, start)
                        bar.advance(len(rows))
                for chunk in chunks:
                    chunk.close()
                return chunks
        return None
    finally:
        torch.set_float32_matmul_precision(before)


def _blocks(X: AnyArray, way: Arithmetic, device: torch.device) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Blocks of the rows and where they begin; the next one is sent while one is looked at."""
    stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    def sent(start: int) -> tuple[torch.Tensor, torch.Tensor]:
        with nullcontext() if stream is None else torch.cuda.stream(stream):
            rows, widths = _rows(X[start : start + ROWS], way, device)
        if stream is not None:
            stream.synchronize()
        return rows, widths

    with ThreadPoolExecutor(1) as thread:
        ahead = thread.submit(sent, 0)
        for start in range(0, len(X), ROWS):
            rows, widths = ahead.result()
            if start + ROWS < len(X):
                ahead = thread.submit(sent, start + ROWS)
            if stream is not None:
                for part in (rows, widths):
                    part.record_stream(torch.cuda.current_stream(device))
            yield start, rows, widths


def _rows(X: AnyArray, way: Arithmetic, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """What `Arithmetic.rows` gives, computed on the device where it has float64."""
    if device.type == "mps":
        ready, widths = way.rows(X)
        return torch.from_numpy(ready).to(device), torch.from_numpy(widths.astype(np.float32)).to(device)
    moved = _known(X).to(device).double() - torch.from_numpy(way.centre).to(device)
    moved *= way.scale
    squares = (moved * moved).sum(dim=1)
    way.check(float(squares.max()), not way.exact or bool((moved == moved.round()).all()))
    out = torch.empty((len(X), X.shape[1] + 1), dtype=torch.float32, device=device)
    torch.neg(moved, out=moved)
    out[:, :-1] = moved
    out[:, -1] = squares * (0.5 - way.share)
    return out, (2 * way.share * squares).float()


def _known(X: AnyArray) -> torch.Tensor:
    """An array as a tensor in memory."""
    if X.dtype not in KNOWN or not X.flags.writeable:  # PyTorch warns of arrays that it must not write to
        X = X.astype(np.float32 if X.dtype == np.float32 else np.float64)
    return torch.from_numpy(np.ascontiguousarray(X))
