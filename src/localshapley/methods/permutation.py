"""Permutations: players arrive one by one, and each is credited with what its arrival changes in the score.

Global-MC walks through all players for all test rows at once, Local-MC through the support of each test row separately.
Both are unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localshapley.arrays import AnyArray, Floats, Indices, Ints
from localshapley.coalitions.batch import Batch
from localshapley.coalitions.games import SupportGraph
from localshapley.methods.base import CoalitionScorer
from localshapley.methods.rounds import RoundMethod, RoundRun
from localshapley.models.trainer import Counts, Work
from localshapley.sampling.estimate import NOTHING

SAME = 1e-9
"""Gains that differ by less than this share of what gains are in a game are the same, up to rounding."""
MAX_STEPS = 2**27
"""Arrivals in compiled walks between two checks of the time: a fraction of a second."""


@dataclass(frozen=True)
class LocalMC(RoundMethod):
    """Marginal gains along permutations of each test row's support; unbiased, and without reuse."""

    name = "local-mc"

    def make_run(self, graph: SupportGraph, executor: CoalitionScorer, seed: int) -> PermutationRun:
        """Every test row is a game of its own."""
        return PermutationRun(graph.apart(), executor, self, seed)


@dataclass(frozen=True)
class GlobalMC(RoundMethod):
    """Marginal gains along permutations of all rows (Data Shapley without truncation); unbiased."""

    name = "global-mc"
    plays_all = True
    keeps_tests = False

    def make_run(self, graph: SupportGraph, executor: CoalitionScorer, seed: int) -> PermutationRun:
        """The run of this method."""
        return PermutationRun(graph, executor, self, seed)


class PermutationRun(RoundRun):
    """Global-MC and Local-MC: marginal gains along random permutations of every game.

    If the trainer has a walker, it scores the prefixes of permutations; else they are trained.
    """

    limits = (0.0, 1)
    """Tolerance and patience of a test row's own walk."""

    def __init__(self, graph: SupportGraph, executor: CoalitionScorer, method: RoundMethod, seed: int) -> None:
        super().__init__(graph, executor, method, seed, int(np.maximum(graph.sizes - 1, 0).sum()))
        self._walker = executor.trainer.walker()
        if self._walker is not None:
            arrivals = int((graph.sizes * graph.tests_per_game).sum())
            self._block_size = min(self._block_size, max(1, MAX_STEPS // max(arrivals, 1)))
        self._base = graph.indptr[:-1] + np.arange(graph.n_games)  # of the sums of each game, for sizes 0 to n
        self._mean, self._squares = np.zeros((2, self.n_slots))
        self._halves = np.zeros((2, self.n_slots))
        self._largest = np.zeros(graph.n_games)  # gain of a player

    def _begin(self, n: int) -> None:
        graph = self.graph
        order, self._arrival = self.random_order(n)
        self._order: Indices = graph.players[order]
        self._sums = np.empty((n, self.n_slots + graph.n_games))
        self._sums[:, self._base] = self.sums(self.nothing)
        self._sums[:, self._base + graph.sizes] = self.sums(self.whole)
        self._lengths: Ints = np.tile(graph.sizes, (n, 1))  # size at which each walk ended

    def _first(self) -> AnyArray:
        """All prefixes at once, small ones first."""
        n, n_games = self._lengths.shape
        step = np.arange(self.n_slots) - self.graph.indptr[self.game_of_slot] + 1
        inside = step < self.graph.sizes[self.game_of_slot]
        walks = (n_games * np.arange(n)[:, np.newaxis] + self.game_of_slot[inside]).ravel()
        steps = np.tile(step[inside], n)
        return np.column_stack([walks, steps])[np.argsort(steps, kind="stable")]

    def _score(self, draws: Ints, games: Ints, keys: Ints, batch: Batch, scores: Floats) -> None:
        self._sums[draws, self._base[games] + keys] = np.add.reduceat(scores, batch.test_indptr[:-1])

    def _finish(self) -> None:
        base, end = self._base[self.game_of_slot], self._lengths[:, self.game_of_slot]
        after, before = (np.minimum(self._arrival + i, end) + base for i in (1, 0))
        reached = np.take_along_axis(self._sums, after, axis=1)
        gains = reached - np.take_along_axis(self._sums, before, axis=1)
        for sums in (reached.min(axis=0), reached.max(axis=0)):
            self._see(self.game_of_slot, sums)
        np.maximum.at(self._largest, self.game_of_slot, np.abs(gains).max(axis=0))
        for gain in gains:
            self._halves[self.draws % 2] += gain
            change = gain - self._mean
            self._mean = self._mean + change / (self.draws + 1)
            self._squares += change * (gain - self._mean)
            self.draws += 1

    def _by_game(self) -> tuple[Floats, Floats, Floats]:
        counts = np.maximum([(self.draws + 1) // 2, self.draws // 2], 1)
        variance = self._squares / max(self.draws - 1, 1) / max(self.draws, 1)
        return self._mean, np.maximum(variance, self._of_constant()), self._halves / counts[:, np.newaxis]

    def _of_constant(self) -> Floats:
        """Variance where a player's gains were all the same; 0 where they were not, and where nothing is drawn.

        That they would always be the same is not known. An event that none of `n` draws met may well have a chance of
        `1/n`; if it changes the gain by as much as the largest gain of the game, the mean is off by that over `n`.
        """
        sizes, n = self.graph.sizes, max(self.draws, 1)
        least = NOTHING * (float((self._high - self._low).max(initial=0.0)) or 1.0)
        gain = np.maximum(self._largest, least)[self.game_of_slot]
        is_constant = (self._squares <= n * (SAME * gain) ** 2) & (sizes[self.game_of_slot] > 1)
        return np.where(is_constant, (gain / n) ** 2, 0.0)

    # Compiled walks: only the empty and the full coalitions go out.

    def _start(self) -> None:
        if self._walker is None:
            self._follow()

    def train(self) -> Work:
        """The prefixes of the round's permutations: by the walker, block by block, or trained."""
        if self._walker is None:
            yield from super().train()
            return
        while self._pending:
            n = min(self._pending, self._block_size)
            self._begin(n)
            ends = self.nothing, self.whole
            self._lengths, n_scores = self._walker.walk(self.graph, self._order, ends, self.limits, self._sums)
            n_scores = self._end_walks(n_scores)
            n_coalitions = int(self._steps().sum())
            self._finish()
            self._pending -= n
            self.n_scored += n_coalitions
            yield Counts(trainings=n_coalitions, draws=n_scores, reused=n_scores - n_coalitions)

    def _end_walks(self, n_scores: int) -> int:
        """End walks where they should have; returns the scores that were needed."""
        return n_scores

    def _steps(self) -> Ints:
        """Prefixes of each walk that were needed: neither the empty nor the full one."""
        found: Ints = np.minimum(self._lengths, np.maximum(self.graph.sizes - 1, 0))
        return found
