"""Random subsets of the supports, each trained once and kept with the scores of all games that hold it."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from localshapley.arrays import AnyArray, CollectionArrays, Floats, Indices, Ints, SubsetArrays, max_by, offsets
from localshapley.coalitions.batch import Batch
from localshapley.coalitions.block_scores import BlockScores
from localshapley.coalitions.games import SupportGraph


def log_subsets(n: AnyArray | int, k: AnyArray) -> Floats:
    """Logarithm of `C(n, k)`."""
    out: Floats = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return out


class Strata:
    """The sizes `1 ≤ k ≤ n − 1` of every game, one after the other: the cells from which subsets are drawn.

    Attributes
    ----------
    indptr : array of shape (n_games + 1,)
        First stratum of each game; size `k` of game `g` is stratum ``indptr[g] + k - 1``.
    game, k, n : arrays of shape (n_strata,)
    n_subsets, log_subsets : arrays of shape (n_strata,)
        `C(n, k)`, infinite where a float would overflow, and its logarithm.
    position : array of shape (n_strata,)
        The size on a scale from −1 to 1 on which sizes are drawn evenly.
    """

    def __init__(self, graph: SupportGraph) -> None:
        per_game = np.maximum(graph.sizes - 1, 0)
        self.indptr = offsets(per_game)
        self.game = np.repeat(np.arange(graph.n_games), per_game)
        self.k = np.arange(self.indptr[-1]) - self.indptr[self.game] + 1
        self.n = graph.sizes[self.game]
        self.log_subsets = log_subsets(self.n, self.k)
        small = self.log_subsets < 30  # whole numbers that must be exact
        self.log_subsets[small] = np.log(np.round(np.exp(self.log_subsets[small])))
        with np.errstate(over="ignore"):
            self.n_subsets: Floats = np.exp(self.log_subsets)
        self.n_subsets[small] = np.round(self.n_subsets[small])
        self.position = 4 / np.pi * np.arcsin(np.sqrt(self.k / self.n)) - 1

    def log_without(self, count: Floats) -> Floats:
        """Logarithm of `C(n, k) − count`."""
        huge = self.log_subsets > 40
        with np.errstate(divide="ignore", over="ignore"):
            left = np.log(np.maximum(np.where(huge, 1, self.n_subsets - count), 0))
        without: Floats = np.where(huge, self.log_subsets, left)
        return without


class Collection:
    """The distinct coalitions of a run with their scores, in the order in which they were drawn.

    Row ``r`` has the players ``players[indptr[r]:indptr[r + 1]]`` and the scores
    ``scores[pair_indptr[r]:pair_indptr[r + 1]]`` for the games ``games[...]``, each summed over the game's test rows.

    Parameters
    ----------
    graph : SupportGraph
    seed : int
    cells : BlockScores, optional
        To keep the scores of games with several test rows by bundle, too.

    Attributes
    ----------
    inner : three arrays
        Pairs of a row and a game larger than it, at the last `gather`: position among all pairs, row and stratum, as
        `Strata` counts them.
    """

    def __init__(self, graph: SupportGraph, seed: int, cells: BlockScores | None = None) -> None:
        bits = np.random.PCG64([seed, graph.n_all])
        random = np.random.Generator(bits)
        self.graph = graph
        self.n_rows = 0
        self.words = random.integers(2**64, size=(graph.n_players, 2), dtype=np.uint64)
        bits.advance(2 * (graph.n_all - graph.n_players))  # the words of players that were left out
        self.streams = random.integers(2**64, size=graph.n_games, dtype=np.uint64)
        self.table = np.full(64, -1, dtype=np.int64)
        self.keys = np.zeros((16, 2), dtype=np.uint64)
        self.indptr = np.zeros(17, dtype=np.int64)
        self.players = np.zeros(64, dtype=np.int32)
        self.last_game = np.zeros(16, dtype=np.int32)
        self.n_scored = self._n_taken = 0
        self.pair_indptr: Ints = np.zeros(1, dtype=np.int64)
        self.games: Indices = np.zeros(0, dtype=np.int32)
        self.scores: Floats = np.zeros(0)
        self.folds = np.zeros(16, dtype=np.int32)
        self.inner: tuple[Ints, Ints, Ints] = (self.pair_indptr[:0],) * 3
        self._first_stratum = offsets(np.maximum(graph.sizes - 1, 0))
        self._parts: list[tuple[Ints, Indices, Floats, Ints, Ints, Ints]] = []
        self._n_pairs = 0
        self.cells = cells

    @property
    def arrays(self) -> CollectionArrays:
        """The rows, as kernels take them."""
        return self.words, self.table, self.keys, self.indptr, self.players, self.folds, self.last_game

    @property
    def subsets(self) -> SubsetArrays:
        """Players and scored games of each row, as kernels take them."""
        return self.indptr, self.players, self.pair_indptr, self.games

    @property
    def sizes(self) -> Ints:
        """Players of each row."""
        return np.diff(self.indptr[: self.n_rows + 1])

    def ranges(self) -> Floats:
        """Range of the scores of each game so far: a constant that is added to a game does not change it."""
        high, minus_low = (max_by(self.games, scores, self.graph.n_games) for scores in (self.scores, -self.scores))
        return np.maximum(high + minus_low, 0.0)

    def reserve(self, n_rows: int, n_players: int) -> None:
        """Make room for `n_rows` more rows and `n_players` more players."""
        from localshapley.kernels.draws import rehash

        rows, filled = self.n_rows + n_rows, int(self.indptr[self.n_rows]) + n_players
        if rows > len(self.keys):
            rows = max(rows, 2 * len(self.keys))
            self.keys = _grown(self.keys, rows)
            self.indptr = _grown(self.indptr, rows + 1)
            self.folds = _grown(self.folds, rows)
            self.last_game = _grown(self.last_game, rows)
        if filled > len(self.players):
            self.players = _grown(self.players, max(filled, int(1.5 * len(self.players))))
        if 2 * rows > len(self.table):
            self.table = np.full(1 << (4 * rows - 1).bit_length(), -1, dtype=np.int64)
            rehash(self.table, self.keys, self.n_rows)

    def add_sure(self, coalitions: list[Indices]) -> Ints:
        """Add coalitions that are sure to be trained; returns their rows."""
        from localshapley.kernels.draws import keep

        self.reserve(len(coalitions), sum(map(len, coalitions)))
        rows, arrays = np.empty(len(coalitions), dtype=np.int64), self.arrays
        for i, coalition in enumerate(coalitions):
            rows[i] = keep(coalition, len(coalition), self.n_rows, arrays)
            self.folds[rows[i]] = -1
            self.n_rows = max(self.n_rows, int(rows[i]) + 1)
        return rows

    def truncate(self, n_rows: int) -> None:
        """Forget the rows from `n_rows` on, which were drawn but not trained."""
        from localshapley.kernels.draws import rehash

        self.n_rows = self._n_taken = n_rows
        self.table[:] = -1
        rehash(self.table, self.keys, n_rows)

    # The collection is the schedule of the rows that are not scored yet, and takes in their scores.

    def take(self, size: int) -> Batch | None:
        """Return the next rows to train, at most `size` and as many as there is room for their games and test rows.

        None when all are given out.
        """
        from localshapley.kernels.draws import fill_rows

        first, stop = self._n_taken, min(self._n_taken + size, self.n_rows)
        if first == stop:
            return None
        graph, room = self.graph, 64 * size
        game_indptr, test_indptr = (np.zeros(stop - first + 1, dtype=np.int64) for _ in range(2))
        games = np.empty(max(graph.n_games, room), dtype=np.int32)
        tests = np.empty(max(graph.n_tests, room), dtype=np.int32)
        holding, out = np.empty(graph.n_games, dtype=np.int32), ((game_indptr, games), (test_indptr, tests))
        rows = self.indptr, self.players
        self._n_taken = fill_rows(first, stop, rows, graph.arrays, graph.masks, graph.tests_of_games, *out, holding)
        n, a, b = self._n_taken - first, self.indptr[first], self.indptr[self._n_taken]
        return Batch(
            self.indptr[first : self._n_taken + 1] - a,
            self.players[a:b],
            test_indptr[: n + 1],
            tests[: test_indptr[n]],
            game_indptr[: n + 1],
            games[: game_indptr[n]].copy(),  # kept until the next look, and the room for them is not
        )

    def left(self) -> float:
        """Rows that are still to be given out."""
        return self.n_rows - self._n_taken

    def add(self, batch: Batch, scores: Floats) -> None:
        """Take in the scores of a batch, summed over the test rows of each game."""
        ends = np.cumsum(self.graph.tests_per_game[batch.games])
        summed = np.add.reduceat(scores, np.concatenate([[0], ends[:-1]])) if len(scores) else np.zeros(0)
        self._parts.append((batch.game_indptr, batch.games, summed, *self._inner_pairs(batch)))
        if self.cells is not None:
            self.cells.add(batch.games, scores)
        self.n_scored += len(batch)
        self._n_pairs += len(batch.games)

    def _inner_pairs(self, batch: Batch) -> tuple[Ints, Ints, Ints]:
        """Those of the rows that come next."""
        row = np.repeat(np.arange(len(batch)), np.diff(batch.game_indptr))
        k = np.diff(batch.indptr)[row]
        inner = np.flatnonzero((k > 0) & (k < self.graph.sizes[batch.games]))
        stratum = self._first_stratum[batch.games[inner]] + k[inner] - 1
        return self._n_pairs + inner, self.n_scored + row[inner], stratum

    def gather(self) -> None:
        """Join what came in with the batches since the last time into one array each."""
        if not self._parts:
            return
        indptr, games, scores, *inner = zip(*self._parts, strict=True)
        counts = [np.diff(self.pair_indptr), *(np.diff(of_batch) for of_batch in indptr)]
        self.pair_indptr = offsets(np.concatenate(counts))
        self.games, self.scores = np.concatenate([self.games, *games]), np.concatenate([self.scores, *scores])
        where, row, stratum = (np.concatenate([old, *new]) for old, new in zip(self.inner, inner, strict=True))
        self.inner = where, row, stratum
        self._parts = []
        if self.cells is not None:
            self.cells.gather()


def _grown(array: AnyArray, length: int) -> AnyArray:
    """The array with room for `length` entries."""
    out = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    out[: len(array)] = array
    return out
