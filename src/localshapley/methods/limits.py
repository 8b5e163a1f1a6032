"""How to play: the arguments that `value`, `plan`, `shapley` and `value_nodes` share, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import or_

import numpy as np

from localshapley.coalitions.games import SupportGraph
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.methods.base import CoalitionScorer, Method
from localshapley.notes import Note
from localshapley.runtime.argument_checks import check_flag, check_number, check_whole
from localshapley.runtime.compiling import Stopwatch
from localshapley.runtime.progress import ProgressSetting
from localshapley.stopping import RelativeError, Rule, Seconds

DEFAULT_TOL = 0.1
BYTES_PER_PAIR = 20
"""Memory for the value of a row to a test row: itself, a copy, and the number of the row."""


@dataclass(frozen=True)
class Limits:
    """Limits of a run; see `value` for what they mean."""

    method: Method
    budget: int | None = None
    tol: float | None = None
    stop: Rule | None = None
    max_seconds: float | None = None
    seed: int = 0
    progress: ProgressSetting = None
    per_test: bool = False
    on_interrupt: str = "raise"
    watch: Stopwatch = field(default_factory=Stopwatch, compare=False, repr=False)
    """Since the call began: its other stages count against `max_seconds`, too."""

    def __post_init__(self) -> None:
        check_whole("budget", self.budget, optional=True)
        check_whole("seed", self.seed, least=0)
        check_flag("per_test", self.per_test)
        if not (self.progress is None or isinstance(self.progress, bool) or callable(self.progress)):
            raise InvalidArgumentError(f"progress must be True, False, None or a function; got {self.progress!r}.")
        check_number("tol", self.tol, above=0, optional=True)
        check_number("max_seconds", self.max_seconds, above=0, optional=True)
        if self.on_interrupt not in ("raise", "return"):
            raise unknown_name("on_interrupt", self.on_interrupt, ("raise", "return"))
        if self.stop is not None and not isinstance(self.stop, Rule):
            raise InvalidArgumentError(
                f"stop must be a rule of localshapley.stopping, such as RankStable(top=20); got {self.stop!r}."
            )
        if self.per_test and not self.method.keeps_tests:
            raise InvalidArgumentError(
                f"per_test=True is not supported by method={self.method.title!r}; use 'sample' or 'exact'."
            )
        if self.method.kind != "sampled" and (self.tol or self.stop or self.max_seconds):
            raise InvalidArgumentError(
                f"tol, stop and max_seconds need a sampled method; method={self.method.title!r} is "
                f"{self.method.kind}. Leave them out, or use method='auto'."
            )

    @property
    def spent(self) -> Note:
        """What ends a run that has spent its budget."""
        budget = self.budget or 0
        return Note("budget-spent", f"budget of {budget:,} trainings", budget=budget)

    def check_room(self, graph: SupportGraph) -> None:
        """Refuse to keep more values than there is memory for, before a run starts."""
        if self.per_test:
            graph.check_room("per_test=True", BYTES_PER_PAIR, "leave it out, use a smaller support, or fewer test rows")

    @property
    def rule(self) -> Rule | None:
        """When to stop; None spends the whole budget."""
        rules: list[Rule] = [RelativeError(self.tol)] if self.tol is not None else []
        rules += [self.stop] if self.stop is not None else []
        if not rules and self.budget is None:
            rules = [RelativeError(DEFAULT_TOL)]
        if self.max_seconds is not None:
            rules += [Seconds(self.max_seconds)]
        return reduce(or_, rules) if rules else None

    def pace(self, graph: SupportGraph, executor: CoalitionScorer) -> float:
        """Seconds of a training, measured for at most a twentieth of a limit of time."""
        return executor.pace(graph, self.seed, patience=min(0.5, (self.max_seconds or np.inf) / 20))

    def in_time(self, graph: SupportGraph, executor: CoalitionScorer) -> float:
        """Trainings that surely fit into the limit of time."""
        return np.inf if self.max_seconds is None else 0.5 * self.max_seconds / self.pace(graph, executor)

    def left(self, planned: int, most: float) -> float:
        """Trainings that the budget leaves, or another limit."""
        return min(np.inf if self.budget is None else self.budget, most) - planned
