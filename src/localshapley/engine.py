"""The one place that knows all stages: takes coalitions, has them trained and scored, adds up."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from localshapley.arrays import Floats
from localshapley.coalitions.batch import Batch, Coalitions
from localshapley.coalitions.exact import Pivots, Separate, count_distinct
from localshapley.counts import in_words
from localshapley.errors import InvalidArgumentError, TooLargeError, unknown_name
from localshapley.estimate import ExactSum
from localshapley.games import SupportGraph
from localshapley.progress import Progress, ProgressSetting
from localshapley.valuation import Cost, Valuation

METHODS = ("auto", "exact", "subset-centric", "baseline")
MAX_SUBSETS = 2**30
"""Exact methods refuse to train more coalitions than this."""

SECONDS_PER_BATCH = 0.5
MAX_BATCH = 2**14


class Schedule(Protocol):
    """Gives out coalitions, batch by batch."""

    def take(self, size: int) -> Batch | None: ...


class Trainer(Protocol):
    """Trains coalitions and scores them on their test rows."""

    name: str

    def evaluate(self, coalitions: Coalitions) -> Floats: ...


class Estimate(Protocol):
    """Turns scores into values."""

    def add(self, batch: Batch, scores: Floats) -> None: ...


@dataclass(frozen=True)
class Played:
    """Games that have been played to their end."""

    graph: SupportGraph
    values: Floats
    stderr: Floats
    per_test: sparse.csr_array | None
    cost: Cost
    method: str

    def valuation(self, **about: Any) -> Valuation:
        """Make the result, with what the caller knows about model, score and support."""
        return Valuation(
            values=self.values,
            stderr=self.stderr,
            cost=self.cost,
            support_sizes=self.graph.support_sizes,
            n_tests=np.diff(self.graph.R[0]),
            method=self.method,
            per_test=self.per_test,
            **about,
        )


def play(
    graph: SupportGraph,
    trainer: Trainer,
    *,
    method: str,
    budget: int | None = None,
    progress: ProgressSetting = None,
    per_test: bool = False,
) -> Played:
    """Play the games with a method of `METHODS`."""
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1):
        raise InvalidArgumentError(f"budget must be a whole number of trainings, at least 1; got {budget!r}.")
    method = "exact" if method == "auto" else method
    started = perf_counter()
    n_distinct, n_trainings = _count(graph, method)
    _refuse_if_too_large(graph, method, n_trainings, budget)

    schedule: Schedule
    if method == "exact":
        played, schedule = graph, Pivots(graph)
    else:
        played = SupportGraph([graph.support(t) for t in range(graph.n_tests)], graph.n_players, merge=False)
        schedule = Separate(played, by_player=method == "baseline")
    estimate = ExactSum(played, per_test=per_test)
    with Progress(progress, n_trainings, "training coalitions") as bar:
        trainings, draws = run(schedule, trainer, estimate, bar)
    cost = Cost(
        trainer=trainer.name,
        trainings=trainings,
        draws=draws,
        distinct=n_distinct,
        reused=draws - trainings,
        trivial=getattr(trainer, "n_trivial", 0),
        seconds=perf_counter() - started,
    )
    return Played(graph, estimate.values(), np.zeros(graph.n_players), estimate.matrix(), cost, method)


def _count(graph: SupportGraph, method: str) -> tuple[int, int]:
    """Distinct subsets, and trainings of an exact method."""
    sizes = [int(n) for n in graph.support_sizes]
    distinct, _ = count_distinct(graph)
    trainings = {
        "exact": distinct,
        "subset-centric": sum(2**n for n in sizes),
        "baseline": sum(n * 2**n for n in sizes),
    }
    return distinct, trainings[method]


def _refuse_if_too_large(graph: SupportGraph, method: str, n_trainings: int, budget: int | None) -> None:
    allowed = MAX_SUBSETS if budget is None else min(budget, MAX_SUBSETS)
    if n_trainings <= allowed:
        return
    limit = f"{MAX_SUBSETS:,} is the most" if budget is None or budget > MAX_SUBSETS else f"budget={budget:,} allows"
    raise TooLargeError(
        f"method={method!r} would train {in_words(n_trainings)} coalitions (the largest support has "
        f"{graph.sizes.max()} rows); {limit}. Cap the supports (max_size=15), take a smaller support, or give a "
        "larger budget; plan() shows the cost before it is paid."
    )


def run(schedule: Schedule, trainer: Trainer, estimate: Estimate, progress: Progress) -> tuple[int, int]:
    """Train and score every coalition of the schedule; returns the numbers of trainings and of scores."""
    trainings = evaluations = 0
    size = 16
    while (batch := schedule.take(size)) is not None:
        started = perf_counter()
        scores = trainer.evaluate(batch)
        estimate.add(batch, scores)
        trainings += len(batch)
        evaluations += len(scores)
        progress.advance(len(batch))
        # Batches change nothing in the result; they grow until one takes about half a second.
        pace = SECONDS_PER_BATCH / max(perf_counter() - started, 1e-9)
        size = int(np.clip(len(batch) * min(pace, 4.0), 1, MAX_BATCH))
    return trainings, evaluations
