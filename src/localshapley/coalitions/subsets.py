"""Every subset of every support: once each at its pivot, or repeatedly, as in the slower methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localshapley.arrays import BatchArrays
from localshapley.coalitions.batch import Batch
from localshapley.coalitions.games import SupportGraph

MAX_COUNTED = 2**26
"""Up to this many subsets (or steps of the count) `|𝒮|` is counted; beyond, it is estimated."""
MAX_DRAWN = 2**24
"""Players that are drawn for or against, at most, unless that leaves fewer than 2,000 subsets: from some hundred
players on, the number of subsets says no more than that it is out of reach."""


class PivotSchedule:
    """Each distinct subset once, when the first game that holds it is walked (LSMR).

    Memory is that of one batch and of the walk's stack, whatever the number of subsets.

    Parameters
    ----------
    graph : SupportGraph
    n_subsets : float, optional
        Number of distinct subsets, where it is known.
    """

    def __init__(self, graph: SupportGraph, n_subsets: float = np.inf) -> None:
        from localshapley.kernels.subset_walks import make_room

        self._left = n_subsets
        self._graph = graph
        self._state = np.array([0, 0, -1, 0], dtype=np.int64)
        depth, n_games = int(graph.sizes.max(initial=0)) + 1, graph.n_games
        position, following, n_holding = np.zeros((3, depth), dtype=np.int64)
        stack = position, following, n_holding, np.zeros((depth, n_games), dtype=np.int32)
        self._walk = stack, *make_room(n_games)

    def take(self, size: int) -> Batch | None:
        """Return the next coalitions, at most `size`; None when every subset has been given out."""
        from localshapley.kernels.subset_walks import fill_batch

        graph = self._graph
        n_players = size * int(graph.sizes.max(initial=0))
        out = _room(size, n_players, max(graph.n_tests, 16 * size), max(graph.n_games, 16 * size))
        n = fill_batch(graph.arrays, graph.tests_of_games, self._state, *self._walk, out)
        if n == 0:
            return None
        self._left -= n
        return Batch.written(out, n)

    def left(self) -> float:
        """Subsets that are still to come."""
        return self._left


class RetrainingSchedule:
    """Every subset of every support, trained again for each test row, and for each player too if `by_player`.

    `graph` must be unmerged: a game is a test row here.
    """

    def __init__(self, graph: SupportGraph, *, by_player: bool) -> None:
        self._graph = graph
        self._turns = [
            (game, int(player)) for game in range(graph.n_games) for player in (graph.game(game) if by_player else [-1])
        ]
        self._turn = 0
        self._subset = 0
        self._left = float(sum(2 ** len(graph.game(game)) for game, _ in self._turns))

    def take(self, size: int) -> Batch | None:
        """Return the next coalitions, at most `size`, all of one test row; None at the end."""
        from localshapley.kernels.subset_walks import fill_separate

        if self._turn == len(self._turns):
            return None
        game, player = self._turns[self._turn]
        support = self._graph.game(game)
        size = min(size, 2 ** len(support) - self._subset)
        out = _room(size, size * len(support), size, size)
        own = self._graph.tests[self._graph.test_indptr[game] : self._graph.test_indptr[game + 1]]
        fill_separate(support, self._subset, game, own, out)
        self._subset += size
        self._left -= size
        if self._subset == 2 ** len(support):
            self._turn, self._subset = self._turn + 1, 0
        return Batch.written(out, size, player)

    def left(self) -> float:
        """Subsets that are still to come."""
        return self._left


def _room(size: int, n_players: int, n_tests: int, n_games: int) -> BatchArrays:
    """Arrays for `size` coalitions with the given total numbers of players, test rows and games."""
    indptr, test_indptr, game_indptr = (np.zeros(size + 1, dtype=np.int64) for _ in range(3))
    players, tests, games = (np.empty(n, dtype=np.int32) for n in (n_players, n_tests, n_games))
    return indptr, players, test_indptr, tests, game_indptr, games


@dataclass(frozen=True)
class TrainingCounts:
    """Number of trainings of the paper's four levels, and how `|𝒮|` grows with the test rows.

    Attributes
    ----------
    global_, local, subset_centric : int
        `|T|·|D|·2^|D|`, `Σ n·2^n` and `Σ 2^n`, exactly.
    lsmr : int
        `|𝒮|`, the number of distinct subsets; an estimate where `lsmr_stderr` is not 0.
    lsmr_stderr : int
    growth : list of (T, |𝒮_T|)
        Distinct subsets of the first `T` test rows; fewer per test row as `T` grows (Corollary 1 of the paper).
    """

    global_: int
    local: int
    subset_centric: int
    lsmr: int
    lsmr_stderr: int
    growth: list[tuple[int, int]]

    @property
    def reused(self) -> float:
        """Share of the subsets of all supports that need no training of their own."""
        return 1 - self.lsmr / self.subset_centric if self.subset_centric else 0.0


def count_levels(graph: SupportGraph, *, seed: int = 0) -> TrainingCounts:
    """Count what each level would train; `|𝒮|` is estimated where counting it would take too long.

    Examples
    --------
    >>> levels = count_levels(SupportGraph([[0, 1], [1, 2]]))
    >>> levels.global_, levels.local, levels.subset_centric, levels.lsmr
    (48, 16, 8, 6)
    """
    sizes = [int(n) for n in graph.support_sizes]
    lsmr, stderr = count_distinct(graph, seed=seed)
    points = np.unique(np.geomspace(1, graph.n_tests, 7).astype(int)).tolist()
    growth = []
    for t in points:
        first = SupportGraph([graph.support(i) for i in range(t)], graph.n_players)
        growth.append((t, count_distinct(first, seed=seed)[0] if t < graph.n_tests else lsmr))
    return TrainingCounts(
        global_=graph.n_tests * graph.n_all * 2**graph.n_all,
        local=sum(n * 2**n for n in sizes),
        subset_centric=sum(2**n for n in sizes),
        lsmr=lsmr,
        lsmr_stderr=stderr,
        growth=growth,
    )


def count_distinct(
    graph: SupportGraph, *, seed: int = 0, n_samples: int = 50_000, max_counted: int = MAX_COUNTED
) -> tuple[int, int]:
    """Count `|𝒮|`; returns it with a standard error, 0 where the count is exact.

    Beyond `max_counted` subsets, where the walk does not end soon either, the share of subsets that are new to
    their game is sampled, games in proportion to `2^n` (Karp and Luby's estimate of a union). The powers
    of two are integers, since floats cannot hold them.
    """
    from localshapley.kernels.subset_walks import count_new, sample_new

    subsets = sum(2 ** int(n) for n in graph.sizes)
    if subsets < 2**62:
        added = np.zeros(graph.n_games, dtype=np.int64)
        if count_new(graph.arrays, max_counted if subsets <= max_counted else max_counted // 16, added):
            return int(added.sum()), 0
    largest = int(graph.sizes.max())
    share = np.exp2((graph.sizes - largest).astype(np.float64))
    n_samples = min(n_samples, max(MAX_DRAWN // largest, 2000))
    games = np.random.default_rng(seed).choice(graph.n_games, size=n_samples, p=share / share.sum())
    held, subset = np.zeros(graph.n_games, dtype=np.int64), np.empty(largest, dtype=np.int64)
    p = sample_new(graph.arrays, games.astype(np.int64), seed, held, subset) / n_samples
    error = max(float(np.sqrt(p * (1 - p) / n_samples)), 1 / n_samples)
    return _scaled(subsets, p), _scaled(subsets, error)


def _scaled(n: int, factor: float) -> int:
    """`n · factor` for a whole number of any size and a factor from 0 to 1."""
    return (n * int(factor * 2**53)) >> 53
