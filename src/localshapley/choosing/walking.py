"""A climb within its limits: row by row, until rows, gains, budget or time run out."""

from __future__ import annotations

import numpy as np

from localshapley.arrays import AnyArray, Floats
from localshapley.choosing.climbing import Climb
from localshapley.choosing.training import Trainings, Wanted
from localshapley.compiling import Stopwatch, announcing_compilation, showing_compilation
from localshapley.errors import InvalidArgumentError
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

    Attributes
    ----------
    order, gains, stderrs : lists
        The rows taken so far, what each added, and its standard error over the test rows.
    stopped : str
        What ended it.
    """

    def __init__(self, problem: RowsProblem, settings: Settings) -> None:
        self.problem, self.settings = problem, settings
        self.order: list[int] = []
        self.gains: list[float] = []
        self.stderrs: list[float] = []
        self.stopped = ""
        bench = Bench(problem.trainer).within(settings.max_seconds)
        self.trainings, self._watch = Trainings(bench), Stopwatch(bench.clock)

    def begin(self, later: int = 0) -> Climb:
        """Try every row; always finished, and refused if the budget is too small for it and what comes later."""
        climb, budget = Climb(self.problem.graph, self.trainings), self.settings.budget
        needed = len(climb.pending) + later
        if budget is not None and needed > budget:
            raise InvalidArgumentError(
                f"budget={budget:,} is too small: to try every row takes {counted(needed, 'training')}. Give a larger "
                "budget, or fewer rows."
            )
        progress = self.settings.progress
        with announcing_compilation(progress), telling(progress, f"trying {counted(len(climb.gains), 'row')} alone"):
            for _ in climb.train():
                pass
        return climb

    def go_on(self, climb: Climb, n: int, candidates: AnyArray, worth: Floats, later: int = 0) -> None:
        """Take up to `n` rows, always the candidate of the largest gain, until nothing more is gained.

        Parameters
        ----------
        climb : Climb
        n : int
        candidates : bool array of shape (n_rows,)
        worth : array of shape (n_rows,)
            Of equal gains the row that is worth most is taken, then the first.
        later : int, default=0
            Trainings that the budget must leave.
        """
        tiny = TINY * max(float(np.abs(climb.gains).max()), abs(climb.utility) / self.problem.graph.n_tests)
        bar = Progress(self.settings.progress, n, "choosing rows")
        try:
            with bar, showing_compilation(bar, self.problem.trainer.kernels):
                while not self.stopped:
                    gains = np.where(candidates, climb.gains, -np.inf)
                    best = gains.max()
                    if best <= tiny:
                        self.stopped = "nothing more is gained"
                        break
                    equal = np.flatnonzero(gains >= best - tiny)
                    row = int(equal[worth[equal].argmax()])
                    self.order.append(row)
                    self.gains.append(float(gains[row]))
                    self.stderrs.append(climb.take(row))
                    bar.advance(1)
                    self.stopped = f"{counted(n, 'row')} taken" if len(self.order) == n else self._refresh(climb, later)
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

    def _refresh(self, climb: Climb, later: int) -> str:
        """Bring the gains up to date; returns the limit that forbids it, if one does."""
        budget, limit = self.settings.budget, self.settings.max_seconds
        if budget is not None and self.trainings.n + len(climb.pending) + later > budget:
            return f"budget of {budget:,} trainings"
        for _ in climb.train():
            if limit is not None and self._watch.elapsed > limit:
                return f"{self._watch.elapsed:.1f} s (limit {limit:g} s)"
        return ""
