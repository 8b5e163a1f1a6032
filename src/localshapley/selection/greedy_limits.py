"""A climb within its limits: row by row, until rows, gains, budget or time run out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.coalitions.games import SupportGraph
from localshapley.engine.executor import Executor
from localshapley.errors import InvalidArgumentError
from localshapley.formatting import counted
from localshapley.methods import Limits
from localshapley.models.trainer import Work
from localshapley.notes import Note
from localshapley.problem.base import RowsProblem
from localshapley.runtime.compiling import announcing_compilation, showing_compilation
from localshapley.runtime.progress import Progress, telling
from localshapley.selection.greedy import Climb, CoalitionRequests
from localshapley.valuation import Cost

TINY = 1e-9
"""Gains that differ by less, relative to the largest first gain or the mean score, are equal; less is no gain."""


class GreedyRun:
    """Rows in the order of a climb.

    Parameters
    ----------
    problem : RowsProblem
    settings : Limits
        Budget and progress.
    executor : Executor
    wider : sequence of SupportGraph, optional
        Larger supports of the same test rows, the largest ones first, by which the first rows are chosen.

    Attributes
    ----------
    order, gains, stderrs : lists
        The rows taken so far, what each added, and its standard error over the test rows.
    stopped : Note or None
        What ended it.
    is_cut : bool
        Whether that was a limit, or Ctrl-C.
    """

    def __init__(
        self, problem: RowsProblem, settings: Limits, executor: Executor, wider: Sequence[SupportGraph] = ()
    ) -> None:
        self.problem, self.settings, self.executor = problem, settings, executor
        self.order: list[int] = []
        self.gains: list[float] = []
        self.stderrs: list[float] = []
        self.stopped: Note | None = None
        self.is_cut = True
        self._wider = wider

    def begin(self, later: int = 0) -> list[Climb]:
        """Try every row; always finished, and refused if the budget is too small for it and what comes later.

        Returns a climb for each of the wider supports, and last the one of the problem.
        """
        climbs = [Climb(graph, self.executor) for graph in (*self._wider, self.problem.graph)]
        needed, budget = sum(len(climb.pending) for climb in climbs) + later, self.settings.budget
        if budget is not None and needed > budget:
            raise InvalidArgumentError(
                f"budget={budget:,} is too small: to try every row takes {counted(needed, 'training')}. Give a larger "
                "budget, or fewer rows."
            )
        n_rows, progress = self.problem.graph.n_players, self.settings.progress
        with announcing_compilation(progress), telling(progress, f"trying {counted(n_rows, 'row')} alone"):
            for climb in climbs:
                self.executor.drain(climb.train(), may_stop=lambda: False)
        return climbs

    def go_on(self, climbs: list[Climb], n: int, candidates: AnyArray, later: int = 0) -> None:
        """Take up to `n` rows, always the candidate of the largest gain in its class, until nothing more is gained.

        Parameters
        ----------
        climbs : list of Climb
            All of them take the row that the first one chooses; gains are those of the last one.
        n : int
        candidates : bool array of shape (n_rows,)
        later : int, default=0
            Trainings that the budget must leave.
        """
        choosing = [ClassBalancedChoice(climb, candidates, self.problem.task.codes) for climb in climbs]
        bar = Progress(self.settings.progress, n, "choosing rows")
        with bar, showing_compilation(bar, self.problem.trainer.kernels):
            cut = self.executor.drain(self._steps(choosing, n, bar, later), may_stop=lambda: True)
        self.stopped = cut or self.stopped

    def _steps(self, choosing: list[ClassBalancedChoice], n: int, bar: Progress, later: int) -> Work:
        """Take row after row, until it says why it stopped."""
        budget = self.settings.budget
        while not self.stopped:
            row = _next(choosing, self.order)
            if row is None:
                self.stopped, self.is_cut = Note("nothing-gained", "nothing more is gained"), False
                return
            self.order.append(row)
            self.gains.append(float(choosing[-1].climb.gains[row]))
            self.stderrs.append([choice.climb.take(row) for choice in choosing][-1])
            bar.advance(1)
            if len(self.order) == n:
                self.stopped, self.is_cut = Note("rows-taken", f"{counted(n, 'row')} taken", n_rows=n), False
                return
            pending = sum(len(choice.climb.pending) for choice in choosing)
            if budget is not None and self._n_scored + pending + later > budget:
                self.stopped = self.settings.spent
                return
            for choice in choosing:
                yield from choice.climb.train()

    def scores_of(self, wanted: CoalitionRequests) -> Floats:
        """Have coalitions scored, all of them."""
        scores = [np.empty(0)]
        self.executor.drain(wanted.score(self.executor, scores), may_stop=lambda: False)
        return np.concatenate(scores)

    def cost(self) -> Cost:
        """What it took."""
        return self.executor.cost(self._n_scored)

    @property
    def _n_scored(self) -> int:
        """Coalitions scored, trained now or before: what counts against a budget."""
        return self.executor.counts.trainings + self.executor.counts.stored


class ClassBalancedChoice:
    """Which row a climb would take next.

    Classes take turns, so that they keep the shares that they have among the candidates.
    """

    def __init__(self, climb: Climb, candidates: AnyArray, codes: AnyArray | None) -> None:
        self.climb, self._codes, self._worth = climb, codes, climb.gains.copy()
        self._rows: list[Ints] = [np.flatnonzero(candidates)]
        if codes is not None:
            self._rows = [np.flatnonzero(candidates & (codes == code)) for code in np.unique(codes[candidates])]
        self._tiny = TINY * max(float(np.abs(climb.gains).max()), abs(climb.utility) / climb.graph.n_tests)

    def is_wide(self, n_taken: int) -> bool:
        """Whether its supports hold one of so many rows, on average."""
        return n_taken * float(self.climb.graph.support_sizes.mean()) >= self.climb.graph.n_players

    def best(self, taken: list[int]) -> int | None:
        """The row of the largest gain in the class that lacks most rows; in the next one if nothing is gained there.

        A class without any row gets one in any case: alone it may gain nothing, and yet the others need it. Of equal
        gains the row that was worth most alone is taken, then the first.
        """
        so_far = [int(np.isin(taken, rows).sum()) for rows in self._rows]
        lacking = [(n + 0.5) / len(rows) for n, rows in zip(so_far, self._rows, strict=True)]
        for turn in np.argsort(lacking, kind="stable"):
            rows = self._rows[turn]
            gains = self.climb.gains[rows]
            best = gains.max()
            if best > self._tiny or (len(self._rows) > 1 and so_far[turn] == 0):
                equal = rows[gains >= best - self._tiny]
                return int(equal[self._worth[equal].argmax()])
        return None


def _next(choosing: list[ClassBalancedChoice], taken: list[int]) -> int | None:
    """The row that the first climb would take; it is left for the next one once it is wide, or gains nothing more."""
    while len(choosing) > 1:
        row = None if choosing[0].is_wide(len(taken)) else choosing[0].best(taken)
        if row is not None:
            return row
        del choosing[0]
    return choosing[0].best(taken)
