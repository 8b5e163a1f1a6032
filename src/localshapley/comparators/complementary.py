"""Complementary contributions (Zhang et al., 2023): a coalition against all others, `v(S) − v(N∖S)`.

A player's value is the mean, over the sizes `k = 1, ..., n` of a coalition that it is in, of the mean complementary
contribution of such coalitions. A pair of trainings counts for every player: for members under the size of
the coalition, for the others, with the sign changed, under the size of its complement. Sizes are spread evenly over the
draws. Small ones are still seldom drawn for any one player: where a player has no draw of a size yet, the mean of the
others stands in, and the value is biased towards theirs. Sizes without any draw are left out: those of a coalition and
its complement come together, and their means over all players cancel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.coalitions.batch import Batch
from localshapley.coalitions.games import SupportGraph
from localshapley.errors import InvalidArgumentError
from localshapley.methods.base import CoalitionScorer
from localshapley.methods.rounds import RoundMethod, RoundRun
from localshapley.notes import Note

MAX_CELLS = 2**26
"""Maximum number of pairs of a player and a size, over all games."""
GOLDEN = (5**0.5 - 1) / 2
"""Steps of this length around a circle are spread evenly, however many there are."""


@dataclass(frozen=True)
class Complementary(RoundMethod):
    """A coalition of all rows against its complement; biased until each row has a draw of each size.

    Until then the mean of the other rows stands in, and a note counts how often. Standard errors do not show the bias.
    """

    name = "complementary"
    plays_all = True
    keeps_tests = False

    def make_run(self, graph: SupportGraph, executor: CoalitionScorer, seed: int) -> ComplementaryRun:
        """The run of this method."""
        return ComplementaryRun(graph, executor, self, seed)


class SumsBySize:
    """Sums over the draws of one game, for each player and size of the coalition that it was in."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.counts, self.totals = np.zeros((2, n, n), dtype=np.int32), np.zeros((2, n, n))  # by half of the draws
        self.squares = np.zeros((n, n))
        self._players = np.arange(n)

    def add(self, half: int, sizes: Ints, said: Floats) -> None:
        """Add a draw: the size of each player's coalition, and its complementary contribution."""
        self.counts[half, self._players, sizes - 1] += 1
        self.totals[half, self._players, sizes - 1] += said
        self.squares[self._players, sizes - 1] += said**2

    def values(self, gain: float, half: int | None = None) -> Floats:
        """Mean over the sizes; the full coalition, against the empty one, is one of them and contributes `gain`."""
        counts, totals = (a.sum(axis=0) if half is None else a[half] for a in (self.counts, self.totals))
        of_others = totals.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
        means = np.where(counts > 0, totals / np.maximum(counts, 1), of_others)
        drawn = counts.any(axis=0)
        found: Floats = ((self.n - 1) * means.sum(axis=1) / max(drawn.sum(), 1) + gain) / max(self.n, 1)
        return found

    def variance(self) -> Floats:
        """Variance of the values, by size; where there is one draw, or none, that of draws of this size in general.

        Where no player has two draws of a size, the players are pooled; for a size drawn once it is the square of that
        draw.
        """
        counts, totals = self.counts.sum(axis=0), self.totals.sum(axis=0)
        within = np.maximum(self.squares - totals**2 / np.maximum(counts, 1), 0)
        degrees = np.maximum(counts - 1, 0)
        seen = np.maximum(counts.sum(axis=0), 1)
        draws = seen / np.arange(1, self.n + 1)  # of a size: all members of a coalition get the same
        square = self.squares.sum(axis=0) / seen
        together = (square - (totals.sum(axis=0) / seen) ** 2) * draws / np.maximum(draws - 1, 1)
        pooled = np.where(
            degrees.any(axis=0),
            within.sum(axis=0) / np.maximum(degrees.sum(axis=0), 1),
            np.where(draws > 1.5, np.maximum(together, 0), square),
        )
        each = np.where(degrees > 0, within / np.maximum(degrees, 1), pooled) / np.maximum(counts, 1)
        drawn = counts.any(axis=0)
        share = (self.n - 1) / max(self.n * drawn.sum(), 1)  # of a size in the mean
        found: Floats = each[:, drawn].sum(axis=1) * share**2
        return found

    @property
    def n_empty(self) -> int:
        """Players and sizes without a draw."""
        return int((self.counts.sum(axis=0)[:, :-1] == 0).sum())


class ComplementaryRun(RoundRun):
    """Draws a random coalition of every game, of sizes spread from 1 to `n − 1`, and trains it and its complement."""

    def __init__(self, graph: SupportGraph, executor: CoalitionScorer, method: RoundMethod, seed: int) -> None:
        super().__init__(graph, executor, method, seed, 2 * int((graph.sizes > 1).sum()))
        if (graph.sizes**2).sum() > MAX_CELLS:
            raise InvalidArgumentError(
                f"method='complementary' has a table of players by sizes, too large for {graph.sizes.max():,} players "
                f"(at most {int(MAX_CELLS**0.5):,}); use 'global-mc', or value fewer rows."
            )
        self._cells = [SumsBySize(int(n)) for n in graph.sizes]
        self._starts = self._random.random(graph.n_games)

    def _begin(self, n: int) -> None:
        graph = self.graph
        _, self._arrival = self.random_order(n)
        around = (self._starts + GOLDEN * np.arange(self.draws, self.draws + n)[:, None]) % 1
        self._sizes = 1 + (around * (graph.sizes - 1)).astype(np.int64)  # of the coalitions
        self._inside = self._arrival < self._sizes[:, self.game_of_slot]
        self._sums = np.zeros((2, n, graph.n_games))

    def _first(self) -> AnyArray:
        """All pairs at once: key 1 is the coalition, 0 its complement."""
        pairs = np.flatnonzero(np.broadcast_to(self.graph.sizes > 1, self._sizes.shape))
        return np.column_stack([np.repeat(pairs, 2), np.tile([1, 0], len(pairs))])

    def _places(self, draws: Ints, games: Ints, keys: Ints) -> tuple[Ints, Ints]:
        if self._ends:
            return super()._places(draws, games, keys)
        size = self._sizes[draws, games]
        return np.where(keys, 0, size), np.where(keys, size, self.graph.sizes[games])

    def _score(self, draws: Ints, games: Ints, keys: Ints, batch: Batch, scores: Floats) -> None:
        self._sums[keys, draws, games] = np.add.reduceat(scores, batch.test_indptr[:-1])

    def _finish(self) -> None:
        indptr, sizes = self.graph.indptr, self.graph.sizes
        some = np.flatnonzero(sizes > 1)
        for sums in (self._sums.min(axis=(0, 1)), self._sums.max(axis=(0, 1))):
            self._see(some, sums[some])
        for draw, said in enumerate(self._sums[1] - self._sums[0]):
            for game in some:
                inside, k = self._inside[draw, indptr[game] : indptr[game + 1]], self._sizes[draw, game]
                own = np.where(inside, k, sizes[game] - k)
                self._cells[game].add(self.draws % 2, own, np.where(inside, said[game], -said[game]))
            self.draws += 1

    def _by_game(self) -> tuple[Floats, Floats, Floats]:
        gains = (self.sums(self.whole) - self.sums(self.nothing)).tolist()
        pairs = list(zip(self._cells, gains, strict=True))
        return (
            np.concatenate([cells.values(gain) for cells, gain in pairs]),
            np.concatenate([cells.variance() for cells in self._cells]),
            np.array([np.concatenate([cells.values(gain, half) for cells, gain in pairs]) for half in (0, 1)]),
        )

    @property
    def notes(self) -> list[Note]:
        """How many pairs of a player and a size have no draw."""
        empty, cells = sum(c.n_empty for c in self._cells), int((self.graph.sizes * (self.graph.sizes - 1)).sum())
        if not empty:
            return super().notes
        text = (
            f"{empty:,} of {cells:,} pairs of a player and a coalition size have no draw: other players' means are "
            "used instead, and the values are biased."
        )
        return [*super().notes, Note("sizes-not-drawn", text, n_empty=empty, n_pairs=cells)]
