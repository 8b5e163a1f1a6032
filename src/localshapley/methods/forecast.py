"""What a run will take: told before it starts, from a few timed trainings."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import numpy as np

from localshapley.compiling import Stopwatch
from localshapley.errors import warn
from localshapley.games import SupportGraph
from localshapley.methods.base import Run
from localshapley.methods.settings import DEFAULT_TOL, Settings
from localshapley.progress import is_wanted
from localshapley.stopping import Look
from localshapley.wording import duration, in_words
from localshapley.workers import Bench, Work
from localshapley.workers.bench import time_trainings

SMALL_SUPPORT = 10
"""Supports of this size have no more than 1,024 subsets."""
FEW_TESTS = 8
"""A forecast from fewer test rows would say next to nothing."""


def first_round(run: Run, graph: SupportGraph, bench: Bench, settings: Settings, watch: Stopwatch) -> float:
    """Trainings until the first estimate that a limit of time allows; says what takes long, warns of what is late."""
    say_if_long(run, graph, bench, settings)
    limit = settings.max_seconds
    if limit is None or run.counts != "trainings":
        return np.inf
    pace, least = settings.pace(graph, bench), run.least_look
    if least * pace > limit:
        warn(
            f"the first estimate takes {in_words(least)} trainings, about {duration(least * pace)}, which is longer "
            f"than max_seconds={limit:g}; the run ends as soon as it is there. Fewer test rows or a smaller support "
            "take less."
        )
    return max((0.9 * limit - watch.elapsed) / pace, least)


def say_if_long(run: Run, graph: SupportGraph, bench: Bench, settings: Settings, most: float = 60.0) -> None:
    """Say on standard error what a run takes that takes longer than `most` seconds, and what would be faster."""
    if not is_wanted(settings.progress) or run.counts != "trainings":
        return
    n = run.total or run.first_look
    if n * time_trainings(bench, graph, settings.seed, patience=0.0) < most / 4:  # a single one says enough
        return
    pace = bench.pace(graph, settings.seed, patience=0.2)
    if n * pace > most:
        until = "" if run.total else " until the first estimate"
        print(
            f"localshapley: {in_words(n)} trainings of {duration(pace)} take about {duration(n * pace)}{until}; "
            f"{what_is_faster(run, graph, bench, settings)}.",
            file=sys.stderr,
            flush=True,
        )


def what_is_faster(run: Run, graph: SupportGraph, bench: Bench, settings: Settings) -> str:
    """What would make a run shorter, in words."""
    ways = [bench.trainer.faster] if bench.trainer.faster else []
    if graph.sizes.max(initial=0) > SMALL_SUPPORT:
        ways.append(f"smaller supports (max_size={SMALL_SUPPORT})")
    if not run.samples:
        ways.append("sampling (method='auto', tol=0.1)")
    elif settings.tol is not None and settings.tol < DEFAULT_TOL:
        ways.append(f"a larger tol than {settings.tol:g}")
    ways.append("fewer test rows")
    return "faster: " + ", ".join(ways)


@dataclass(frozen=True)
class Forecast:
    """What a sampled run is expected to take until it reaches its target.

    Attributes
    ----------
    aim : float
        The relative error to reach.
    trainings : int
    seconds : float
    """

    aim: float
    trainings: int
    seconds: float


def until_target(
    run: Run, graph: SupportGraph, bench: Bench, settings: Settings, patience: float = 2.0
) -> Forecast | None:
    """What a run takes until its target, from what fits of its first rounds in `patience` seconds.

    None where there is no target, and where too few test rows fit.
    """
    aim = None if settings.rule is None else settings.rule.aim
    if aim is None or not run.samples:
        return None
    n_tests, pace = graph.n_tests, bench.pace(graph, settings.seed)
    n = int(n_tests * min(1.0, patience / max(run.first_look * pace, 1e-9)))
    if n < min(FEW_TESTS, n_tests):
        return None
    if n == n_tests:
        pilot, share = _Pilot(graph, bench, settings), 1.0
        while pilot.draws_on and pilot.look.relative_error > aim and pilot.look.trainings * pace < patience:
            pilot.play_round()
        # The length of values that are mostly noise is mostly the noise's: the error seems smaller than it is.
        now, then = (1 - min(seeming, 0.95) ** 2 for seeming in (pilot.look.relative_parts[0], aim))
        growth = pilot.look.growth_to(aim, run.rate) * (then / now) ** (0.5 / run.rate)
    else:
        chosen = np.zeros(n_tests, dtype=bool)
        chosen[np.random.default_rng(settings.seed).choice(n_tests, n, replace=False)] = True
        supports = [graph.support(t) if chosen[t] else graph.support(t)[:0] for t in range(n_tests)]
        few = SupportGraph(supports, graph.n_players, among=graph.n_all)
        pilot = _Pilot(few, bench, replace(settings, per_test=True))
        share = n / n_tests
        growth = (pilot.relative_error(share) / aim) ** (1 / run.rate)
    if pilot.n_rounds == 1:
        growth += 1  # the first round no longer counts once there is a second
    trainings = int(_needed(pilot.look.trainings / share, 1.0 if pilot.look.exact else max(growth, 1.0), graph))
    return Forecast(aim, trainings, trainings * pace)


def _needed(trained: float, growth: float, graph: SupportGraph) -> float:
    """`growth` times as many trainings, or fewer where subsets run out: errors go with 1/trainings − 1/subsets."""
    left_out = max(1 / max(trained, 1.0) - 1 / float(np.exp2(graph.sizes).sum()), 0.0)
    return 1 / max(1 / max(trained, 1.0) - left_out * (1 - 1 / growth), 1e-300)


class _Pilot:
    """The first rounds of a run."""

    def __init__(self, graph: SupportGraph, bench: Bench, settings: Settings) -> None:
        self._settings = replace(settings, budget=None, max_seconds=None)
        self.run = settings.method.start(graph, bench, self._settings)
        self.draws_on, self.n_rounds = True, 0
        self._look: Look | None = None
        _work_off(self.run.begin())
        self.play_round()

    def play_round(self) -> None:
        """Draw and train another round, if there is one."""
        self.draws_on = self.run.draw(np.inf, self._look, self._settings.rule)
        if self.draws_on:
            _work_off(self.run.train())
            self._look, self.n_rounds = self.run.look(self._look, 0.0), self.n_rounds + 1

    @property
    def look(self) -> Look:
        """Values so far."""
        return self._look or self.run.look(None, 0.0)

    def relative_error(self, share: float) -> float:
        """The relative error that a first round on all test rows would have, if these are a share of them.

        Variances add up over test rows. So do squared lengths of the values, but for what test rows have in common,
        which grows with the square of their number.
        """
        together, variance = float((self.look.values**2).sum()), float((self.look.stderr**2).sum())
        apart = float((self.run.by_test().data ** 2).sum())
        length = max(apart - variance, 0.0) / share + max(together - apart, 0.0) / share**2
        return float(np.sqrt(variance / share / max(length, 1e-100)))


def _work_off(work: Work) -> None:
    for _ in work:
        pass
