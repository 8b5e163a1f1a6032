"""What a run will take: told before it starts, from a few timed trainings."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from localshapley.arrays import AnyArray
from localshapley.coalitions.games import SupportGraph
from localshapley.engine.executor import INTERRUPTED, Executor
from localshapley.errors import InvalidArgumentError, warn
from localshapley.formatting import duration, in_words
from localshapley.methods.base import Run
from localshapley.methods.limits import DEFAULT_TOL, Limits
from localshapley.models.trainer import Work
from localshapley.notes import Note
from localshapley.runtime.compiling import Stopwatch
from localshapley.runtime.progress import is_wanted
from localshapley.sampling.estimate import Estimate

SMALL_SUPPORT = 10
"""Supports of this size have no more than 1,024 subsets."""
FEW_TESTS = 8
"""A forecast from fewer test rows would say next to nothing."""
PILOT = 50_000
"""Trainings of the rounds from which a target is foreseen, at most."""
FARTHEST = 100.0
"""A target that is more than so many times the trainings of these rounds away cannot be foreseen from them."""
SLOWEST, FASTEST = 0.5, 1.0
"""Powers of the draws between which errors shrink: with the root at least, faster as fits improve."""
UNSURE = 0.3
"""How far the squared length of the errors may be off, as a share of it."""
FEWER_SHARE = 0.5
"""Share of a limit of time that the first estimate of fewer test rows may take: full supports train more slowly."""
SURE = 0.1
"""Share of a limit of time that is spent to make sure that it cannot be kept, before that is said."""
UNSTEADY = 1.5
"""How many times as fast or slow as now a machine may be later."""


class RunStart(NamedTuple):
    """A run that fits into the limit of time, the games that it plays, its first round at most, and what to note."""

    run: Run
    graph: SupportGraph
    most: float
    notes: list[Note]


def start(graph: SupportGraph, executor: Executor, settings: Limits) -> RunStart:
    """Begin a run whose first estimate fits into the limit of time, of fewer test rows if need be; say what is long.

    Where not even `FEW_TESTS` test rows fit, the run is refused, unless a store keeps what is trained: then the next
    run goes on from there.
    """
    run = settings.method.start(graph, executor, settings)
    limit = settings.max_seconds
    if limit is None or run.counts != "trainings":
        say_if_long(run, graph, executor, settings)
        return RunStart(run, graph, np.inf, [])
    pace, least = settings.pace(graph, executor), run.least_look
    if least * pace > limit > pace / SURE:  # the first trainings may have had work to do that is done once
        pace = min(pace, executor.measure(graph, settings.seed + 1, patience=SURE * limit))
    found = RunStart(run, graph, np.inf, [])
    if least * pace > max(limit - executor.elapsed, SURE * limit):
        found = _in_time(found, executor, settings, pace, executor.elapsed)
    say_if_long(found.run, found.graph, executor, settings)
    run, room = found.run, (0.9 * limit - executor.elapsed) / pace
    if executor.store is not None:  # the next run is to draw the same round
        room = np.inf if run.first_look <= room else 0.0
    return found._replace(most=max(room, run.least_look))


def _in_time(late: RunStart, executor: Executor, settings: Limits, pace: float, gone: float) -> RunStart:
    """A run in place of one whose first estimate comes too late."""
    limit, least, graph = settings.max_seconds or np.inf, late.run.least_look, late.graph
    takes = f"{in_words(least)} trainings, about {duration(least * pace)}"
    if late.run.least_is_bound or executor.store is not None:
        return late
    fewer = _of_fewer_tests(graph, executor, settings, (limit - gone) / pace)
    if fewer is None:
        raise InvalidArgumentError(
            f"max_seconds={limit:g} is too short: the first estimate takes {takes}, and {duration(gone)} had gone "
            "before. Give more time, fewer test rows or a smaller support."
        )
    found, n_tests = fewer
    text = (
        f"the first estimate for all {graph.n_tests:,} test rows takes {takes}, which is longer than "
        f"max_seconds={limit:g}, so {n_tests:,} of them count, drawn at random: values are sums over these. A "
        "longer limit takes them all, and a smaller support more of them."
    )
    warn(text)
    note = Note("some-tests-only", text, n_tests=n_tests, n_tests_in_all=graph.n_tests, max_seconds=limit)
    return found._replace(notes=[note])


def _of_fewer_tests(
    graph: SupportGraph, executor: Executor, settings: Limits, room: float
) -> tuple[RunStart, int] | None:
    """A run of as many test rows as `room` trainings are enough for, and how many; None if that is hardly any."""
    if settings.per_test or graph.n_games < FEW_TESTS:
        return None
    order, n = np.random.default_rng(settings.seed).permutation(graph.n_tests), graph.n_tests
    while n > FEW_TESTS:
        n = max(int(0.7 * n), FEW_TESTS)
        chosen = np.zeros(graph.n_tests, dtype=bool)
        chosen[order[:n]] = True
        few = graph.with_supports([graph.support(t) if chosen[t] else graph.support(t)[:0] for t in range(len(chosen))])
        run = settings.method.start(few, executor, settings)
        if run.least_look <= (FEWER_SHARE if n > FEW_TESTS else 1.0) * room:
            return RunStart(run, few, np.inf, []), n
    return None


def say_if_long(run: Run, graph: SupportGraph, executor: Executor, settings: Limits, most: float = 60.0) -> None:
    """Say on standard error what a run takes that takes longer than `most` seconds, and what would be faster."""
    if not is_wanted(settings.progress) or run.counts != "trainings":
        return
    n = run.total or run.first_look
    if n * executor.measure(graph, settings.seed, patience=0.0) < most / 4:  # a single one says enough
        return
    pace = executor.pace(graph, settings.seed, patience=0.2)
    if n * pace > most:
        until = "" if run.total else " until the first estimate"
        print(
            f"localshapley: {in_words(n)} trainings of {duration(pace)} take about {duration(n * pace)}{until}; "
            f"{how_to_shorten(run, graph, executor, settings)}.",
            file=sys.stderr,
            flush=True,
        )


def how_to_shorten(run: Run, graph: SupportGraph, executor: Executor, settings: Limits) -> str:
    """What to do about a run that takes long, in words."""
    ways = what_is_faster(run, graph, executor, settings)
    return f"{ways}; max_seconds=60 ends it by then" if run.samples and settings.max_seconds is None else ways


def what_is_faster(run: Run, graph: SupportGraph, executor: Executor, settings: Limits) -> str:
    """What would make a run shorter, in words."""
    ways = [executor.trainer.faster] if executor.trainer.faster else []
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
    """What a sampled run is expected to take until it reaches its target, where that can be told.

    Attributes
    ----------
    aim : float
        The relative error to reach.
    trainings : int or None
        None where it cannot be told.
    seconds : float or None
    trainings_range, seconds_range : tuple of two numbers, or None
        What the run takes at least and at most, as far as can be foreseen.
    unknown : str
        Why it cannot be told; empty where it can.
    """

    aim: float
    trainings: int | None = None
    seconds: float | None = None
    trainings_range: tuple[int, int] | None = None
    seconds_range: tuple[float, float] | None = None
    unknown: str = ""


def until_target(
    run: Run, graph: SupportGraph, executor: Executor, settings: Limits, patience: float = 4.0, most: int = PILOT
) -> Forecast | None:
    """What a run takes until its target, foreseen from its first rounds; None where there is no target.

    The rounds are those of all test rows or, where that is too much, one of some. They end after `most` trainings, so
    that a busy machine makes no difference; `patience`, in seconds of the processor, is a limit for slow trainings. The
    executor's limit of time, and Ctrl-C, end them too; its store has what they train.
    """
    aim = None if settings.rule is None else settings.rule.aim
    if aim is None or not run.samples:
        return None
    affordable = most
    if run.first_look <= most:
        pilot = _Pilot(graph, executor, settings, aim, most, patience)
        if pilot.look is not None:
            return pilot.foresee(aim, graph)
        if is_over := _why_over(pilot.cut, executor):
            return Forecast(aim, unknown=is_over)
        affordable = pilot.run.distinct
    n_tests = graph.n_tests
    n = min(int(n_tests * affordable / run.first_look), n_tests)
    if n < FEW_TESTS or not settings.method.keeps_tests:
        return Forecast(
            aim, unknown=f"the {in_words(run.first_look)} trainings of a first look are too many to try out"
        )
    chosen = np.zeros(n_tests, dtype=bool)
    chosen[np.random.default_rng(settings.seed).choice(n_tests, n, replace=False)] = True
    supports = [graph.support(t) if chosen[t] else graph.support(t)[:0] for t in range(n_tests)]
    few = SupportGraph(supports, graph.n_players, among=graph.n_all)
    pilot = _Pilot(few, executor, replace(settings, per_test=True), aim, 2 * affordable, 2 * patience)
    if pilot.look is None:
        why = _why_over(pilot.cut, executor) or "a training takes too long to try out a first look"
        return Forecast(aim, unknown=why)
    return pilot.foresee(aim, graph, chosen)


def _why_over(cut: Note | None, executor: Executor) -> str:
    """Why nothing more can be tried out, if that is so."""
    if cut is INTERRUPTED:
        return "it was interrupted"
    return f"max_seconds={executor.max_seconds:g} is over before a first look" if executor.is_late else ""


class _Pilot:
    """The first rounds of a run, until a target, a number of trainings or a limit of time.

    Attributes
    ----------
    run : Run
    look : Estimate or None
        What they reached; None if there was no time for a first look.
    cut : Note or None
        What ended them early: time, or Ctrl-C.
    """

    def __init__(
        self, graph: SupportGraph, executor: Executor, settings: Limits, aim: float, most: int, patience: float
    ) -> None:
        settings = replace(settings, budget=None, max_seconds=None)
        self.run = settings.method.start(graph, executor, settings)
        self.look: Estimate | None = None
        self.cut: Note | None = None
        self._executor, self._graph, self._seed = executor, graph, settings.seed
        self._watch, self._is_late = Stopwatch(executor.clock), executor.alarm(patience)
        self._stored = executor.counts.stored
        self._reached = [(0, 0.0)]  # trainings and seconds at the start, after the beginning, and after each round
        if not self._has_time_for(self.run.begin()):
            return
        self._note()
        while self.look is None or self.look.relative_error > aim:
            left = np.inf if self.look is None else float(most - self.run.planned)
            if not self.run.draw(left, self.look, settings.rule):
                break
            if not self._has_time_for(self.run.train()):
                return
            self.look = self.run.estimate()
            self._note()
        self.look = self.look or self.run.estimate()

    def _has_time_for(self, work: Work) -> bool:
        self.cut = self._executor.drain(work, may_stop=lambda: True, is_enough=self._is_late)
        return self.cut is None

    def _note(self) -> None:
        """Note how far the run is; what a store held counts with the time that it would have taken."""
        stored = self._executor.counts.stored - self._stored
        seconds = self._watch.seconds + (stored * self._executor.pace(self._graph, self._seed) if stored else 0.0)
        self._reached.append((self.run.distinct, seconds))

    @property
    def _seen(self) -> Estimate:
        assert self.look is not None
        return self.look

    def foresee(self, aim: float, graph: SupportGraph, chosen: AnyArray | None = None) -> Forecast:
        """The forecast for all test rows, if these rounds were of all, or of those that were chosen."""
        look = self._seen
        share = 1.0 if chosen is None else float(chosen.mean())
        if chosen is None and (look.exact or look.relative_error <= aim or self.run.ended):
            n, seconds = look.trainings, self._reached[-1][1]
            return Forecast(aim, n, seconds, (n, n), (seconds / UNSTEADY, seconds * UNSTEADY))
        lengths = self._lengths_of_all() if chosen is None else self._lengths_of_some(chosen)
        noise = float(np.linalg.norm(look.stderr)) / np.sqrt(share)
        if lengths[0] <= 0:
            return Forecast(aim, unknown=f"after {in_words(look.trainings)} trainings values are still mostly noise")
        # One round of some test rows has few draws for each, from where errors shrink faster, as fits get better: with
        # powers of 0.91 to 1.02 for the embeddings of benchmarks/plans.py.
        rate = self.run.rate if chosen is None else float(np.sqrt(self.run.rate * FASTEST))
        growths = [
            self._growth(noise / length, look.unseen / length, aim, rate)
            for length, rate in zip(lengths, (SLOWEST, rate, FASTEST), strict=True)
        ]
        if growths[1] > FARTHEST:
            return Forecast(
                aim, unknown=f"it is too far beyond the {in_words(look.trainings)} trainings of a first try"
            )
        most, trainings, least = (int(_needed(look.trainings / share, growth, graph)) for growth in growths)
        pace, once = self._pace()
        return Forecast(
            aim,
            trainings,
            trainings * pace + once,
            (least, most),
            (least * pace / UNSTEADY, (most * pace + once / share) * UNSTEADY),
        )

    def _pace(self) -> tuple[float, float]:
        """Seconds of a training in the largest round, and of work that is done once, or once for each row."""
        trained, seconds = np.diff(self._reached[1:] if len(self._reached) > 2 else self._reached, axis=0).T
        largest = int(trained.argmax())
        pace = float(seconds[largest] / max(trained[largest], 1))
        return pace, max(self._reached[-1][1] - self._reached[-1][0] * pace, 0.0)

    def _growth(self, error: float, unseen: float, aim: float, rate: float) -> float:
        """How many times as many draws a target needs, by errors in units of the true values' length."""
        then = aim / np.sqrt(1 - min(aim, 0.95) ** 2)  # values look longer than they are by their errors
        look = replace(self._seen, values=np.ones(1), stderr=np.full(1, error), unseen=unseen, scale=0.0)
        # The first round no longer counts once there is a second.
        return max(look.growth_to(then, rate), 1.0) + (len(self._reached) == 3)

    def _lengths_of_all(self) -> tuple[float, float, float]:
        """Length of the values without their errors: at least, probably, at most."""
        look = self._seen
        squared, noise = float((look.values**2).sum()), float((look.stderr**2).sum())
        floor = look.size if look.size**2 > squared else 0.0
        low, mid, high = (max(squared - (1 + off) * noise, 0.0) ** 0.5 for off in (UNSURE, 0.0, -UNSURE))
        return max(low, floor), max(mid, floor), max(high, floor)

    def _lengths_of_some(self, chosen: AnyArray) -> tuple[float, float, float]:
        """The same for all test rows: squared lengths of the values to each, and what each has in common with others.

        The first add up over test rows, the second over pairs of them.
        """
        look = self._seen
        assert look.per_test is not None
        by_test = look.per_test.matrix()[np.flatnonzero(chosen)]
        n, n_tests = int(chosen.sum()), len(chosen)
        apart = by_test.power(2).sum(axis=1) - float((look.stderr**2).sum()) / n
        common = (by_test @ look.values - by_test.power(2).sum(axis=1)) / (n - 1)
        mean = n_tests * apart + n_tests * (n_tests - 1) * common
        # A pair counts for both of its rows.
        error = (n_tests * apart + 2 * n_tests * (n_tests - 1) * common).std() / np.sqrt(n)
        low, mid, high = (max(mean.mean() + z * error, 0.0) ** 0.5 for z in (-1.5, 0.0, 1.5))
        return low, mid, high


def _needed(trained: float, growth: float, graph: SupportGraph) -> float:
    """`growth` times as many trainings, or fewer where subsets run out: errors go with 1/trainings − 1/subsets."""
    subsets = float(np.exp2(np.minimum(graph.sizes, 1000.0)).sum())
    left_out = max(1 / max(trained, 1.0) - 1 / subsets, 0.0)
    return 1 / max(1 / max(trained, 1.0) - left_out * (1 - 1 / growth), 1e-300)
