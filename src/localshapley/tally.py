"""What a run has done so far, and whether its time is up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import numpy as np

from localshapley.compiling import Stopwatch
from localshapley.errors import InvalidArgumentError
from localshapley.methods import Settings
from localshapley.progress import Progress
from localshapley.valuation import Cost
from localshapley.workers import Bench, Done, Memory, Work


class Tally:
    """What a run has done so far, and how long it took; `before` it, so many seconds of a limit had gone."""

    def __init__(self, settings: Settings, bench: Bench, before: float) -> None:
        self.settings, self.watch, self.done = settings, Stopwatch(bench.clock), Done()
        self._before, self._has_store = before, bench.memory is not None
        self.is_unforeseen = False  # whether it was not known beforehand if the first estimate fits into the limit

    @property
    def elapsed(self) -> float:
        """Seconds of a limit that are gone."""
        return self._before + self.watch.elapsed

    def work_off(self, work: Work, bar: Progress, may_stop: Callable[[], bool]) -> str:
        """Do the work; returns what cut it short, if anything did."""
        limit = self.settings.max_seconds
        try:
            with closing(work):
                for done in work:
                    self.done.add(done)
                    bar.advance(done.progress)
                    if limit is not None and self.elapsed > limit:
                        if may_stop():
                            return self.time
                        if self._has_store or self.is_unforeseen:
                            raise self._too_short(limit)
        except KeyboardInterrupt:
            if self.settings.on_interrupt == "raise" or not may_stop():
                raise
            return "interrupted"
        return ""

    def _too_short(self, limit: float) -> InvalidArgumentError:
        kept = "They are in the store, so the same call goes on from there; give" if self._has_store else "Give"
        return InvalidArgumentError(
            f"max_seconds={limit:g} is too short: after {self.done.trainings:,} trainings there is no estimate yet. "
            f"{kept} more time, fewer test rows or a smaller support."
        )

    @property
    def time(self) -> str:
        """How long it took, against the limit."""
        return f"{self.elapsed:.1f} s (limit {self.settings.max_seconds:g} s)"

    def in_time(self, distinct: int, memory: Memory | None) -> float:
        """Trainings that the limit of time surely has room for, at the pace so far; none where they are too few."""
        if self.settings.max_seconds is None or not distinct or memory is not None:  # a store keeps what is cut
            return np.inf
        room = 0.8 * (self.settings.max_seconds / max(self.elapsed, 1e-9) - 1)  # a round that is cut is lost
        return room * distinct if room >= 0.1 else 0.0

    def cost(self, trainer: str, distinct: int) -> Cost:
        """The same, as a result reports it."""
        done = self.done
        return Cost(
            trainer=trainer if done.draws else "none",
            trainings=done.trainings,
            draws=done.draws,
            distinct=distinct,
            reused=done.reused,
            trivial=done.counts.trivial,
            seconds=self.watch.seconds,
            stored=done.stored,
            compile_seconds=self.watch.compile_seconds,
        )
