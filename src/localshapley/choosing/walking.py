"""A climb within its limits: row by row, until rows, gains, budget or time run out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.choosing.climbing import Climb
from localshapley.choosing.training import Trainings, Wanted
from localshapley.compiling import Stopwatch, announcing_compilation, showing_compilation
from localshapley.errors import InvalidArgumentError
from localshapley.games import SupportGraph
from localshapley.methods import Settings
from localshapley.problem.base import RowsProblem
from localshapley.progress import Progress, telling
from localshapley.valuation import Cost
from localshapley.wording import counted
from localshapley.workers import Bench

TINY = 1e-9
"""Gains that differ by less, relative to the largest first gain or the mean score, are equal; less is no gain."""


class Walk:
    """Rows in the order of a climb.

    Parameters
    ----------
    problem : RowsProblem
    settings : Settings
        Budget, limit of time, progress, and what an interruption does.
    wider : sequence of SupportGraph, optional
        Larger supports of the same test rows, the largest ones first, by which the first rows are chosen.

    Attributes
    ----------
    order, gains, stderrs : lists
        The rows taken so far, what each added, and its standard error over the test rows.
    stopped : str
        What ended it.
    is_cut : bool
        Whether that was a limit, or Ctrl-C.
    """

    def __init__(self, problem: RowsProblem, settings: Settings, wider: Sequence[SupportGraph] = ()) -> None:
        self.problem, self.settings = problem, settings
        self.order: list[int] = []
        self.gains: list[float] = []
        self.stderrs: list[float] = []
        self.stopped, self.is_cut = "", True
        bench = Bench(problem.trainer).within(settings.max_seconds)
        self.trainings, self._watch = Trainings(bench), Stopwatch(bench.clock)
        self._wider = wider

    def begin(self, later: int = 0) -> list[Climb]:
        """Try every row; always finished, and refused if the budget is too small for it and what comes later.

        Returns a climb for each of the wider supports, and last the one of the problem.
        """
        climbs = [Climb(graph, self.trainings) for graph in (*self._wider, self.problem.graph)]
        needed, budget = sum(len(climb.pending) for climb in climbs) + later, self.settings.budget
        if budget is not None and needed > budget:
            raise InvalidArgumentError(
                f"budget={budget:,} is too small: to try every row takes {counted(needed, 'training')}. Give a larger "
                "budget, or fewer rows."
            )
        n_rows, progress = self.problem.graph.n_players, self.settings.progress
        with announcing_compilation(progress), telling(progress, f"trying {counted(n_rows, 'row')} alone"):
            for climb in climbs:
                for _ in climb.train():
                    pass
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
        choosing = [Choice(climb, candidates, self.problem.task.codes) for climb in climbs]
        bar = Progress(self.settings.progress, n, "choosing rows")
        try:
            with bar, showing_compilation(bar, self.problem.trainer.kernels):
                while not self.stopped:
                    row = _next(choosing, self.order)
                    if row is None:
                        self.stopped, self.is_cut = "nothing more is gained", False
                        break
                    self.order.append(row)
                    self.gains.append(float(choosing[-1].climb.gains[row]))
                    self.stderrs.append([choice.climb.take(row) for choice in choosing][-1])
                    bar.advance(1)
                    if len(self.order) == n:
                        self.stopped, self.is_cut = f"{counted(n, 'row')} taken", False
                    else:
                        self.stopped = self._refresh([choice.climb for choice in choosing], later)
        except KeyboardInterrupt:
            if self.settings.on_interrupt == "raise":
                raise
            self.stopped = "interrupted"

    def scores_of(self, wanted: Wanted) -> Floats:
        """Have coalitions trained, all of them."""
        return np.concatenate([np.empty(0), *self.trainings.work_off(wanted.coalitions)])

    def cost(self) -> Cost:
        """What it took."""
        done = self.trainings
        return Cost(
            trainer=self.problem.trainer.name,
            trainings=done.n,
            draws=done.draws,
            distinct=done.n,
            reused=done.draws - done.n,
            trivial=done.counts.trivial,
            seconds=self._watch.seconds,
            compile_seconds=self._watch.compile_seconds,
        )

    def _refresh(self, climbs: list[Climb], later: int) -> str:
        """Bring the gains up to date; returns the limit that forbids it, if one does."""
        budget, limit = self.settings.budget, self.settings.max_seconds
        pending = sum(len(climb.pending) for climb in climbs)
        if budget is not None and self.trainings.n + pending + later > budget:
            return self.settings.spent
        for climb in climbs:
            for _ in climb.train():
                if limit is not None and self._watch.elapsed > limit:
                    return f"{self._watch.elapsed:.1f} s (limit {limit:g} s)"
        return ""


class Choice:
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


def _next(choosing: list[Choice], taken: list[int]) -> int | None:
    """The row that the first climb would take; it is left for the next one once it is wide, or gains nothing more."""
    while len(choosing) > 1:
        row = None if choosing[0].is_wide(len(taken)) else choosing[0].best(taken)
        if row is not None:
            return row
        del choosing[0]
    return choosing[0].best(taken)
