"""Valuations of rows that lie in parts: which hold all rows, and which only those that are in a support."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from scipy import sparse

from localshapley.arrays import AnyArray, scattered
from localshapley.coalitions.games import SupportGraph
from localshapley.problem.players import Players
from localshapley.runtime.memory import check_memory
from localshapley.valuation.facts import GameCounts

if TYPE_CHECKING:
    from localshapley.valuation import Valuation

MANY_ROWS, FEW = 2**20, 0.1
"""Of more rows than these, of which less than this share is in a support, only the latter are kept."""


def of_all_or_few(v: Valuation) -> Valuation:
    """The valuation with all rows, unless nearly all of very many are worth 0."""
    return v if v.among is None or (v.among > MANY_ROWS and len(v.values) < FEW * v.among) else over_all_rows(v)


def over_all_rows(v: Valuation) -> Valuation:
    """The same with a value for every row, 0 for those that are in no support; see `Valuation.over_all_rows`."""
    if v.among is None or v.ids is None:
        return v
    n_rows, rows, history = v.among, v.ids.to_numpy(), v.history
    wide = [one for one in (v.spread, v.spread_tests, v.spread_seed) if one is not None]
    wide += [] if history is None else [history.values.T, history.stderr.T]
    n_bytes = n_rows * (24 + 4 * sum(one.shape[1] for one in wide))
    check_memory(f"a value for each of {n_rows:,} rows", n_bytes, "keep to the rows that are in a support")

    def pick(some: AnyArray) -> AnyArray:
        return scattered(some, rows, n_rows)

    by_test = None if v.per_test is None else _spread_out(v.per_test, rows, n_rows)
    return replace(
        v,
        estimate=v.estimate.of_rows(pick, by_test),
        players=Players(unit=v.unit),
        counts=GameCounts(v.support_sizes, pick(v.n_tests)),
        history=None if history is None else history.of_rows(pick),
        games=None if v.games is None else _among_all(v.games, rows, n_rows),
        origin=None,
    )


def _spread_out(by_test: sparse.csr_array, rows: AnyArray, n_rows: int) -> sparse.csr_array:
    """Values to each test row with a column for every row."""
    shape = (by_test.shape[0], n_rows)
    return sparse.csr_array((by_test.data, rows[by_test.indices], by_test.indptr), shape=shape)


def _among_all(games: SupportGraph, rows: AnyArray, n_rows: int) -> SupportGraph:
    """The games with the players numbered among all rows."""
    return SupportGraph([rows[games.support(t)] for t in range(games.n_tests)], n_rows, sources=games.sources)
