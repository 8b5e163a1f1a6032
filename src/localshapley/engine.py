"""The one place that knows all stages: takes coalitions, has them trained and scored, adds up."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from localshapley.arrays import Floats, Singles
from localshapley.coalitions.batch import Batch
from localshapley.coalitions.exact import Pivots, Separate, count_distinct
from localshapley.compiling import told_of_compiling
from localshapley.errors import InvalidArgumentError, LocalShapleyWarning, TooLargeError, unknown_name
from localshapley.estimate.exact import ExactSum
from localshapley.games import SupportGraph
from localshapley.methods.complementary import Complementary
from localshapley.methods.loo import LeaveOneOut
from localshapley.methods.pivot import PivotSampler
from localshapley.methods.rounds import Rounds
from localshapley.methods.sample import EASY_GAME, RoundSampler
from localshapley.methods.tmc import TMC, TruncatedWalks
from localshapley.methods.walks import Walker, Walks
from localshapley.models.trainer import Solver, Trainer
from localshapley.progress import Progress, ProgressSetting
from localshapley.stopping import Look, RelativeError, Rule, Seconds
from localshapley.valuation import Cost, History, Valuation
from localshapley.wording import in_words
from localshapley.workers import Memory, Schedule, score_batches

EXACT = ("exact", "subset-centric", "baseline")
GLOBAL = ("global-mc", "tmc", "complementary", "loo", "random")
"""Methods that play one game of everyone, whatever the supports."""
METHODS = ("auto", *EXACT, "sample", "pivot", "pivot-printed", "local-mc", *GLOBAL)
MAX_SUBSETS = 2**30
"""Exact methods refuse to train more coalitions than this."""
MAX_CLASSES = 2**33
"""So many classes of coalitions with equal scores are counted rather than sampled: about half a minute."""
CLASSES_PER_SECOND = 1e7
"""That many are scored at least."""
EASY = 2048
"""So few distinct subsets are trained one and all, whatever the target, by `"auto"`."""
DEFAULT_TOL = 0.1
MAX_LOOKS = 32
"""So many rounds are kept as the history of a run."""
MAX_HISTORY = 2**23
"""Numbers in a history; larger ones are not kept."""


class Taker(Protocol):
    """Takes in scores."""

    def add(self, batch: Batch, scores: Floats) -> None: ...


class Rows(Schedule, Taker, Protocol):
    """Coalitions that were drawn, to be trained, and their scores."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_scored(self) -> int: ...

    def truncate(self, n_rows: int) -> None: ...


class Sampler(Protocol):
    """Draws coalitions round by round and estimates the values from them."""

    @property
    def collection(self) -> Rows: ...

    def draw(self, left: float, look: Look | None, rule: Rule | None) -> bool: ...

    def look(self, previous: Look | None, seconds: float) -> Look: ...

    def check(self, budget: int) -> None: ...

    @property
    def ended(self) -> str: ...

    def by_game(self) -> Floats: ...

    def spread(self, stderr: Floats) -> Singles | None: ...


@dataclass
class Tally:
    """What a run has done so far."""

    started: float
    coalitions: int = 0
    trainings: int = 0
    scores: int = 0

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return perf_counter() - self.started


def run(
    schedule: Schedule,
    trainer: Trainer,
    taker: Taker,
    tally: Tally,
    bar: Progress,
    memory: Memory | None = None,
    is_up: Callable[[], bool] = lambda: False,
) -> bool:
    """Train and score every coalition of the schedule; False if the time was up before."""
    with closing(score_batches(schedule, trainer, memory)) as batches:
        for scored in batches:
            taker.add(scored.batch, scored.scores)
            tally.coalitions += len(scored.batch)
            tally.trainings += scored.trainings
            tally.scores += len(scored.scores)
            bar.advance(len(scored.batch))
            if is_up():
                return False
    return True


@dataclass(frozen=True)
class Played:
    """Games that have been played to their end."""

    graph: SupportGraph
    values: Floats
    stderr: Floats
    per_test: sparse.csr_array | None
    cost: Cost
    method: str
    stopped: str
    spread: Singles | None = None
    history: History | None = None
    notes: tuple[str, ...] = ()

    def valuation(self, **about: Any) -> Valuation:
        """Make the result, with what the caller knows about model, score and support."""
        about["notes"] = [*about.get("notes", []), *self.notes]
        return Valuation(
            values=self.values,
            stderr=self.stderr,
            cost=self.cost,
            support_sizes=self.graph.support_sizes,
            n_tests=np.diff(self.graph.R[0]),
            method=self.method,
            stopped=self.stopped,
            per_test=self.per_test,
            spread=self.spread,
            history=self.history,
            **about,
        )


@dataclass(frozen=True)
class Settings:
    """How to play: the arguments that `value` and `shapley` share, checked."""

    method: str | TMC = "auto"
    budget: int | None = None
    tol: float | None = None
    stop: Rule | None = None
    max_seconds: float | None = None
    seed: int = 0
    progress: ProgressSetting = None
    per_test: bool = False
    on_interrupt: str = "raise"

    def __post_init__(self) -> None:
        if self.name not in METHODS:
            raise unknown_name("method", self.method, METHODS)
        budget, seed = self.budget, self.seed
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1):
            raise InvalidArgumentError(f"budget must be a whole number of trainings, at least 1; got {budget!r}.")
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InvalidArgumentError(f"seed must be a whole number, 0 or more; got {seed!r}.")
        if self.on_interrupt not in ("raise", "return"):
            raise unknown_name("on_interrupt", self.on_interrupt, ("raise", "return"))
        if self.stop is not None and not isinstance(self.stop, Rule):
            raise InvalidArgumentError(
                f"stop must be a rule of localshapley.stopping, such as RankStable(top=20); got {self.stop!r}."
            )
        for name in ("tol", "max_seconds"):
            value = getattr(self, name)
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | float | np.number) or not value > 0
            ):
                raise InvalidArgumentError(f"{name} must be a positive number; got {value!r}.")
        if self.per_test and (self.name.startswith("pivot") or self.name in GLOBAL):
            raise InvalidArgumentError(f"per_test=True is not for method={self.method!r}; use 'sample' or 'exact'.")
        if self.name in (*EXACT, "loo", "random") and (self.tol or self.stop or self.max_seconds):
            kind = "no estimate" if self.name == "random" else "exact"
            raise InvalidArgumentError(
                f"tol, stop and max_seconds are for sampled methods; method={self.method!r} is {kind}. "
                "Leave them out, or use method='auto'."
            )

    @property
    def name(self) -> str:
        """The name of the method, whatever its options."""
        return "tmc" if isinstance(self.method, TMC) else self.method

    @property
    def plays_all(self) -> bool:
        """Whether everyone plays for every test row, whatever the supports."""
        return self.name in GLOBAL

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


def play(graph: SupportGraph, trainer: Trainer, settings: Settings, memory: Memory | None = None) -> Played:
    """Play the games; what `memory` holds is not trained again."""
    with told_of_compiling(settings.progress):
        played = _play(graph, trainer, settings, memory)
    if settings.plays_all and settings.name != "random":
        played = replace(played, notes=("the game is global: all rows play for every test row.", *played.notes))
    return played


def _play(graph: SupportGraph, trainer: Trainer, settings: Settings, memory: Memory | None) -> Played:
    method, budget = settings.name, settings.budget
    tally = Tally(perf_counter())
    if method == "random":
        return _play_random(graph, settings, tally)
    if method == "loo":
        return _play_loo(graph, trainer, settings, memory, tally)
    if method in (*GLOBAL, "local-mc"):
        return _play_sampled(graph, trainer, settings, memory, tally)
    if method in ("auto", "exact") and isinstance(trainer, Solver):
        classes = trainer.count_classes(graph)
        seconds = np.inf if settings.max_seconds is None else settings.max_seconds
        if classes is not None and classes <= min(MAX_CLASSES, seconds * CLASSES_PER_SECOND):
            return _play_by_classes(graph, trainer, settings, classes, tally)
    distinct, error = count_distinct(graph, n_samples=2000)
    sampled = method not in EXACT
    # A sampler that may train every subset does: nothing is left to chance, and LSMR is how it is done.
    within = distinct + 5 * error <= (MAX_SUBSETS if budget is None else min(budget, MAX_SUBSETS))
    easy = distinct <= EASY or (graph.sizes <= EASY_GAME.bit_length() - 1).all()
    if method in ("auto", "sample") and within and (budget is not None or (method == "auto" and easy)):
        method, sampled = "exact", False
    if sampled:
        return _play_sampled(graph, trainer, settings, memory, tally)
    return _play_exact(graph, trainer, settings, memory, method, distinct, tally)


def _play_exact(
    graph: SupportGraph,
    trainer: Trainer,
    settings: Settings,
    memory: Memory | None,
    method: str,
    distinct: int,
    tally: Tally,
) -> Played:
    sizes = [int(n) for n in graph.support_sizes]
    n_trainings = {
        "exact": distinct,
        "subset-centric": sum(2**n for n in sizes),
        "baseline": sum(n * 2**n for n in sizes),
    }[method]
    _refuse_if_too_large(graph, method, n_trainings, settings.budget)
    schedule: Schedule
    if method == "exact":
        played, schedule = graph, Pivots(graph, distinct)
    else:
        played = _unmerged(graph)
        schedule = Separate(played, by_player=method == "baseline")
    estimate = ExactSum(played, per_test=settings.per_test)
    with Progress(settings.progress, n_trainings, "training coalitions") as bar:
        run(schedule, trainer, estimate, tally, bar, memory)
    cost = _cost(trainer, tally, distinct=distinct)
    stderr = np.zeros(graph.n_players)
    return Played(graph, estimate.values(), stderr, estimate.matrix(), cost, method, "every subset trained")


def _play_by_classes(graph: SupportGraph, solver: Solver, settings: Settings, classes: int, tally: Tally) -> Played:
    with Progress(settings.progress, classes, "scoring classes of coalitions") as bar:
        by_test = solver.solve(graph, bar)
    values = graph.values(by_test)
    cost = Cost(solver.name, 0, classes, classes, 0, 0, tally.seconds)
    matrix = graph.matrix(by_test) if settings.per_test else None
    subsets = sum(2 ** int(n) for n in graph.support_sizes)
    stopped = f"{in_words(classes)} classes of coalitions with equal scores stand for {in_words(subsets)}"
    return Played(graph, values, np.zeros(graph.n_players), matrix, cost, "exact", stopped)


def _play_loo(graph: SupportGraph, trainer: Trainer, settings: Settings, memory: Memory | None, tally: Tally) -> Played:
    without = LeaveOneOut(graph)
    _refuse_if_too_large(graph, "loo", len(without), settings.budget)
    with Progress(settings.progress, len(without), "training coalitions") as bar:
        run(without, trainer, without, tally, bar, memory)
    notes = ("values are what is lost without a row, and no Shapley values: they do not add up.",)
    cost, stderr = _cost(trainer, tally, distinct=len(without)), np.zeros(graph.n_players)
    return Played(graph, without.values(), stderr, None, cost, "loo", "every row left out once", notes=notes)


def _play_random(graph: SupportGraph, settings: Settings, tally: Tally) -> Played:
    values = np.random.default_rng(settings.seed).normal(size=graph.n_players)
    notes = ("values are random numbers, the floor that a method must beat; they have no standard error.",)
    cost = Cost("none", 0, 0, 0, 0, 0, tally.seconds)
    return Played(graph, values, np.zeros(graph.n_players), None, cost, "random", "at once", notes=notes)


def _sampler(graph: SupportGraph, trainer: Trainer, settings: Settings) -> Sampler:
    """The estimator of a sampled method."""
    name, seed = settings.name, settings.seed
    if name in ("auto", "sample"):
        return RoundSampler(graph, seed, eager=name == "auto")
    if name == "complementary":
        return Complementary(graph, seed)
    if name.startswith("pivot"):
        return PivotSampler(graph, seed, printed=name == "pivot-printed")
    walker = trainer if isinstance(trainer, Walker) and trainer.can_walk() else None
    tmc = TMC() if settings.method == "tmc" else settings.method
    if isinstance(tmc, TMC) and tmc.tolerance > 0:
        return TruncatedWalks(graph, seed, tmc, walker)
    return Walks(graph, seed, walker)


def _run_round(
    sampler: Sampler,
    trainer: Trainer,
    tally: Tally,
    bar: Progress,
    memory: Memory | None,
    is_up: Callable[[], bool],
) -> bool:
    """Train and score what was drawn; False if the time was up before."""
    rows = sampler.collection
    while rows.n_scored < rows.n_rows:
        if isinstance(sampler, Walks) and sampler.walker is not None:
            coalitions, scores = sampler.walk()
            tally.coalitions += coalitions
            tally.trainings += coalitions
            tally.scores += scores
            bar.advance(coalitions)
            if is_up():
                return False
        elif not run(rows, trainer, rows, tally, bar, memory, is_up):
            return False
    return True


def _play_sampled(
    graph: SupportGraph, trainer: Trainer, settings: Settings, memory: Memory | None, tally: Tally
) -> Played:
    rule = settings.rule
    played = _unmerged(graph) if settings.per_test or settings.name == "local-mc" else graph
    if settings.name == "pivot-printed" and len(set(graph.sizes.tolist())) > 1:
        warnings.warn(
            "method='pivot-printed' is biased where supports differ in size, as they do here; use 'sample', or "
            "'pivot' for the paper's estimator with corrected weights.",
            LocalShapleyWarning,
            stacklevel=4,
        )
    sampler = _sampler(played, trainer, settings)
    collection = sampler.collection
    if settings.budget is not None:
        sampler.check(settings.budget)
    look: Look | None = None
    looks: list[Look] = []
    stopped = ""
    limit = np.inf if settings.max_seconds is None else settings.max_seconds

    def can_look() -> bool:
        """Whether values can be had without the rest of the round."""
        return look is not None or (isinstance(sampler, Rounds) and sampler.can_look)

    def is_up() -> bool:
        return tally.seconds > limit and can_look()

    with Progress(settings.progress, settings.budget, "training coalitions") as bar:
        run(collection, trainer, collection, tally, bar, memory)
        while True:
            left = np.inf if settings.budget is None else settings.budget - collection.n_rows
            if not sampler.draw(left, look, rule):
                stopped = sampler.ended or f"budget of {settings.budget:,} trainings"
                break
            try:
                finished = _run_round(sampler, trainer, tally, bar, memory, is_up)
                stopped = "" if finished else f"{tally.seconds:.1f} s (limit {settings.max_seconds:g} s)"
            except KeyboardInterrupt:
                if settings.on_interrupt == "raise" or not can_look():
                    raise
                stopped = "interrupted"
            if stopped and collection.n_scored < collection.n_rows:
                collection.truncate(collection.n_scored)  # an unfinished round would be a biased one
                if isinstance(sampler, Rounds) and sampler.can_look:  # its finished draws stand for themselves
                    look = sampler.look(look, tally.seconds)
                    looks.append(look)
                break
            look = sampler.look(look, tally.seconds)
            looks = [*_every_second(looks, MAX_LOOKS), look]
            bar.reached(look.relative_error, rule.aim if rule is not None else None)
            if look.exact:
                stopped = "every subset trained"
                break
            if rule is not None and rule.holds(look):
                stopped = rule.reached(look)
                break
    look = look or sampler.look(None, tally.seconds)  # full supports were all there was
    per_test = None
    if settings.per_test:
        per_test = _by_test(played, sampler.by_game())
    cost = _cost(trainer, tally, distinct=collection.n_scored)
    spread = sampler.spread(look.stderr) if look.stderr.any() else None
    return Played(
        graph,
        look.values,
        look.stderr,
        per_test,
        cost,
        str(settings.method),
        stopped,
        spread,
        _history(looks),
        tuple(getattr(sampler, "notes", ())),
    )


def _every_second(looks: list[Look], most: int) -> list[Look]:
    """The looks so far, thinned out when there are many."""
    return looks[1::2] if len(looks) >= most else looks


def _history(looks: list[Look]) -> History | None:
    if not looks or len(looks) * len(looks[0].values) > MAX_HISTORY:
        return None
    return History(
        np.array([look.trainings for look in looks]),
        np.array([look.values for look in looks], dtype=np.float32),
        np.array([look.stderr for look in looks], dtype=np.float32),
    )


def of_everyone(graph: SupportGraph) -> SupportGraph:
    """One game of all players for all test rows."""
    return SupportGraph([np.arange(graph.n_players)] * graph.n_tests, graph.n_players)


def _by_test(graph: SupportGraph, by_game: Floats) -> sparse.csr_array:
    """Turn values by game (one test row each) into the test × player matrix."""
    parts = [by_game[graph.indptr[g] : graph.indptr[g + 1]] for g in graph.game_of_test]
    return graph.matrix(np.concatenate(parts) if parts else np.empty(0))


def _unmerged(graph: SupportGraph) -> SupportGraph:
    return SupportGraph([graph.support(t) for t in range(graph.n_tests)], graph.n_players, merge=False)


def _cost(trainer: Trainer, tally: Tally, *, distinct: int) -> Cost:
    return Cost(
        trainer=trainer.name,
        trainings=tally.trainings,
        draws=tally.scores,
        distinct=distinct,
        reused=tally.scores - tally.coalitions,
        trivial=getattr(trainer, "n_trivial", 0),
        seconds=tally.seconds,
        stored=tally.coalitions - tally.trainings,
    )


def _refuse_if_too_large(graph: SupportGraph, method: str, n_trainings: int, budget: int | None) -> None:
    allowed = MAX_SUBSETS if budget is None else min(budget, MAX_SUBSETS)
    if n_trainings <= allowed:
        return
    limit = f"{MAX_SUBSETS:,} is the most" if budget is None or budget > MAX_SUBSETS else f"budget={budget:,} allows"
    raise TooLargeError(
        f"method={method!r} would train {in_words(n_trainings)} coalitions (the largest support has "
        f"{graph.sizes.max()} rows); {limit}. Use method='auto' or 'sample', cap the supports (max_size=15), or take "
        "a smaller support; plan() shows the cost before it is paid."
    )
