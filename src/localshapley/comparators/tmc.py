"""TMC: walks that end once the score is near that of all players.

It is biased: players who would have arrived later get nothing from this walk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localshapley.arrays import AnyArray, Floats, Indices, Ints, offsets
from localshapley.coalitions.batch import Batch
from localshapley.coalitions.games import SupportGraph
from localshapley.errors import InvalidArgumentError
from localshapley.methods.base import CoalitionScorer
from localshapley.methods.permutation import PermutationRun
from localshapley.methods.rounds import FIRST_DRAWS, RoundMethod
from localshapley.notes import Note
from localshapley.runtime.argument_checks import check_number, check_whole


@dataclass(frozen=True)
class TMC(RoundMethod):
    """Truncated Monte Carlo (Ghorbani & Zou, 2019): walks that end once the score is near that of all rows.

    The values are biased, the less the smaller the tolerance; standard errors are those of the truncated walks.

    Parameters
    ----------
    tolerance : float, default=0.01
        A score is near if it differs from that of all rows by less than this; 0 never ends a walk.
    patience : int, default=1
        Number of times in a row that the score must be near.
    by_test : bool, default=False
        Whether each test row ends its own walk, by its own score; otherwise the mean over the test rows decides for
        all of them. With ``score="accuracy"``, ``TMC(patience=5, by_test=True)`` ends the walk of a test row when five
        models in a row are as right, or as wrong, about it as the full one.

    Examples
    --------
    >>> import localshapley as ls
    >>> def several(coalition, tests):
    ...     return [float(len(coalition) > 1)]
    >>> v = ls.shapley([range(20)], several, method=ls.comparators.TMC(patience=3), budget=200)
    >>> print(v.notes[1])
    45 of 45 walks ended early: the values are biased, which the standard errors do not show.
    """

    name = "tmc"
    plays_all = True
    keeps_tests = False
    tolerance: float = 0.01
    patience: int = 1
    by_test: bool = False

    def __post_init__(self) -> None:
        check_number("TMC(tolerance=...)", self.tolerance, least=0)
        check_whole("TMC(patience=...)", self.patience)
        if not isinstance(self.by_test, bool):
            raise InvalidArgumentError(f"TMC(by_test=...) must be True or False; got {self.by_test!r}.")

    def make_run(self, graph: SupportGraph, executor: CoalitionScorer, seed: int) -> PermutationRun:
        """Walks that end early, unless the tolerance is 0."""
        return (
            TruncatedRun(graph, executor, self, seed)
            if self.tolerance > 0
            else PermutationRun(graph, executor, self, seed)
        )


class TruncatedRun(PermutationRun):
    """Walks of Global-MC that end early; the tolerance is above 0."""

    first_block = FIRST_DRAWS  # every step of its walks waits for the scores of the step before
    least_is_bound = True

    def __init__(self, graph: SupportGraph, executor: CoalitionScorer, tmc: TMC, seed: int) -> None:
        super().__init__(graph, executor, tmc, seed)
        self._tmc = tmc
        self._tolerance = tmc.tolerance * (1 - 1e-9)  # a score exactly this far away is not near, despite rounding
        if tmc.by_test:
            self.limits = (self._tolerance, int(tmc.patience))
        self._n_cut = 0
        self._place = np.empty(graph.n_tests, dtype=np.int64)  # of test rows in `graph.tests`
        self._place[graph.tests] = np.arange(graph.n_tests)

    def _begin(self, n: int) -> None:
        super()._begin(n)
        if self._tmc.by_test:
            self._full, self._scores = self.whole, np.tile(self.nothing, (n, 1))
        else:
            self._full = self.sums(self.whole) / self.graph.tests_per_game
        self._step = 0
        self._near = np.zeros((n, len(self._full)), dtype=np.int64)  # how many times in a row

    def _first(self) -> AnyArray:
        return self._next()

    def _next(self) -> AnyArray:
        """The next step of walks that have not ended."""
        self._step += 1
        live = (self._lengths == self.graph.sizes) & (self._step < self.graph.sizes)
        return np.column_stack([np.flatnonzero(live), np.full(live.sum(), self._step)])

    def _later(self) -> int:
        if not self._in_block:
            return 0
        live = self._lengths == self.graph.sizes
        return int((live * np.maximum(self.graph.sizes - 1 - self._step, 0)).sum())

    def _tests(self, draws: Ints, games: Ints) -> tuple[Ints, Indices]:
        indptr, tests = super()._tests(draws, games)
        if self._ends or not self._tmc.by_test:
            return indptr, tests
        walking = self._near[np.repeat(draws, np.diff(indptr)), self._place[tests]] < self._tmc.patience
        return offsets(walking)[indptr], tests[walking]

    def _score(self, draws: Ints, games: Ints, keys: Ints, batch: Batch, scores: Floats) -> None:
        if not self._tmc.by_test:
            super()._score(draws, games, keys, batch, scores)
            self._end_by_mean(draws, games, keys)
            return
        draw, place = np.repeat(draws, np.diff(batch.test_indptr)), self._place[batch.tests]
        self._scores[draw, place] = scores  # a test row whose walk has ended stays as it was
        self._judge(draw, place, scores)
        for d, g, k in zip(draws, games, keys, strict=True):
            here = slice(self.graph.test_indptr[g], self.graph.test_indptr[g + 1])
            self._sums[d, self._base[g] + k] = self._scores[d, here].sum()
            if (self._near[d, here] >= self._tmc.patience).all():
                self._lengths[d, g] = k

    def _judge(self, draws: Ints, who: Ints, scores: Floats) -> None:
        """Count how often in a row test rows, or the means of games, have been near."""
        near = np.abs(scores - self._full[who]) < self._tolerance
        self._near[draws, who] = np.where(near, self._near[draws, who] + 1, 0)

    def _end_by_mean(self, draws: Ints, games: Ints, sizes: Ints) -> None:
        """End walks whose mean score has been near for long enough."""
        self._judge(draws, games, self._sums[draws, self._base[games] + sizes] / self.graph.tests_per_game[games])
        ended = self._near[draws, games] >= self._tmc.patience
        self._lengths[draws[ended], games[ended]] = sizes[ended]

    def _finish(self) -> None:
        if self._tmc.by_test and self._walker is None:
            ends = np.where(self._near >= self._tmc.patience, self._scores, self.whole)
            self._sums[:, self._base + self.graph.sizes] = self.sums(ends)
        self._n_cut += int((self._lengths < self.graph.sizes).sum())
        super()._finish()

    def _end_walks(self, n_scores: int) -> int:
        if self._tmc.by_test:
            return n_scores
        while len(ids := self._next()):
            self._end_by_mean(*np.divmod(ids[:, 0], self.graph.n_games), ids[:, 1])
        return int((self._steps() * self.graph.tests_per_game).sum())

    @property
    def notes(self) -> list[Note]:
        """What truncation did."""
        if not self._n_cut:
            return super().notes
        n_walks = self.draws * self.graph.n_games
        text = (
            f"{self._n_cut:,} of {n_walks:,} walks ended early: the values are biased, which the standard errors do "
            "not show."
        )
        return [*super().notes, Note("walks-cut", text, n_cut=self._n_cut, n_walks=n_walks)]
