"""A climb within its limits: step by step, until rows, gains, budget or time run out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from localshapley.arrays import AnyArray, Floats
from localshapley.choosing.climbing import Climb
from localshapley.compiling import Stopwatch, announcing_compilation, showing_compilation
from localshapley.errors import InvalidArgumentError
from localshapley.methods import Settings
from localshapley.models.trainer import Counts
from localshapley.problem.base import RowsProblem
from localshapley.progress import Progress
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
    order, gains : lists
        The rows moved so far, and what each step added.
    stopped : str
        What ended it.
    """

    def __init__(self, problem: RowsProblem, settings: Settings) -> None:
        self.problem, self.settings = problem, settings
        self.order: list[int] = []
        self.gains: list[float] = []
        self.stopped = ""
        self._bench = Bench(problem.trainer).within(settings.max_seconds)
        self._watch = Stopwatch(self._bench.clock)
        self._climbs: list[Climb] = []

    def begin(self, *, removing: bool = False) -> Climb:
        """Try a step with every row; this is always finished, and refused if the budget is too small for it."""
        climb = Climb(self.problem.graph, self._bench, removing=removing)
        if self._is_over_budget(climb):
            needed = sum(c.trainings for c in self._climbs) + len(climb.pending)
            raise InvalidArgumentError(
                f"budget={self.settings.budget:,} is too small: trying every row takes {counted(needed, 'training')}. "
                "Give a larger budget, or fewer rows."
            )
        self._climbs.append(climb)
        with announcing_compilation(self.settings.progress):
            for _ in climb.train():
                pass
        return climb

    def go_on(
        self,
        climb: Climb,
        n: int,
        preferred: tuple[AnyArray, Floats],
        enough: Callable[[float, float], bool],
        doing: str,
    ) -> None:
        """Take up to `n` steps, each with the candidate of the largest gain.

        Parameters
        ----------
        climb : Climb
        n : int
        preferred : two arrays of shape (n_rows,)
            Which rows are candidates, and which of equal gains goes first; then it is the first row.
        enough : callable
            `enough(gain, tiny)`: whether to stop before a step of this gain; `tiny` is what rounding may add.
        doing : str
            What to call it.
        """
        candidates, first = preferred
        graph = self.problem.graph
        tiny = TINY * max(float(np.abs(climb.gains).max(initial=0.0)), abs(climb.utility) / graph.n_tests)
        try:
            with (
                Progress(self.settings.progress, n, doing) as bar,
                showing_compilation(bar, self._bench.trainer.kernels),
            ):
                while not self.stopped:
                    gains = np.where(candidates, climb.gains, -np.inf)
                    best = float(gains.max(initial=-np.inf))
                    if best == -np.inf or enough(best, tiny):
                        self.stopped = "nothing more is gained"
                        break
                    equal = np.flatnonzero(gains >= best - tiny)
                    row = int(equal[first[equal].argmax()])
                    self.order.append(row)
                    self.gains.append(float(gains[row]))
                    climb.move(row)
                    bar.advance(1)
                    self.stopped = f"{counted(n, 'row')} taken" if len(self.order) == n else self._refresh(climb)
        except KeyboardInterrupt:
            if self.settings.on_interrupt == "raise":
                raise
            self.stopped = "interrupted"

    def cost(self) -> Cost:
        """What it took."""
        trainings, draws = (sum(getattr(c, name) for c in self._climbs) for name in ("trainings", "draws"))
        return Cost(
            trainer=self._bench.trainer.name,
            trainings=trainings,
            draws=draws,
            distinct=trainings,
            reused=draws - trainings,
            trivial=self.counts().trivial,
            seconds=self._watch.seconds,
            compile_seconds=self._watch.compile_seconds,
        )

    def counts(self) -> Counts:
        """What happened while coalitions were trained."""
        counts = Counts()
        for climb in self._climbs:
            counts.add(climb.counts)
        return counts

    def _refresh(self, climb: Climb) -> str:
        """Bring the gains up to date; returns the limit that forbids it, if one does."""
        limit = self.settings.max_seconds
        if self._is_over_budget(climb):
            return f"budget of {self.settings.budget:,} trainings"
        for _ in climb.train():
            if limit is not None and self._watch.elapsed > limit:
                return f"{self._watch.elapsed:.1f} s (limit {limit:g} s)"
        return ""

    def _is_over_budget(self, climb: Climb) -> bool:
        """Whether what is pending would exceed the budget."""
        budget, others = self.settings.budget, sum(c.trainings for c in self._climbs)
        return budget is not None and others + len(climb.pending) > budget
