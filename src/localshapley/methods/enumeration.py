"""What the exact methods share: every coalition of a schedule is trained, and the closed-form weights are summed."""

from __future__ import annotations

from localshapley.arrays import Floats
from localshapley.coalitions.batch import Schedule
from localshapley.coalitions.games import SupportGraph
from localshapley.errors import TooLargeError
from localshapley.formatting import in_words
from localshapley.methods.base import CoalitionScorer, DeterministicRun
from localshapley.methods.shapley_sums import ExactSum
from localshapley.models.trainer import Work

MAX_SUBSETS = 2**30
"""Exact methods refuse to train more coalitions than this."""


class Enumeration(DeterministicRun):
    """Trains all coalitions of a schedule.

    Parameters
    ----------
    graph : SupportGraph
        The games that are played.
    executor : CoalitionScorer
    schedule : Schedule
    title : str
    total, distinct : int
        Coalitions of the schedule, and how many of them differ.
    per_test : bool
        Whether to keep the values to each test row.
    """

    kernels = (
        "fill_batch",
        "fill_separate",
        "add_scores",
        "add_scores_to_one",
        "add_scores_per_test",
        "add_scores_by_bundle",
        "add_by_bundle",
    )

    def __init__(
        self,
        graph: SupportGraph,
        executor: CoalitionScorer,
        schedule: Schedule,
        title: str,
        *,
        total: int,
        distinct: int,
        per_test: bool,
    ) -> None:
        self.graph, self.title = graph, title
        self.total = self.first_look = total
        self._executor, self._schedule, self._distinct = executor, schedule, distinct
        self._sum = ExactSum(graph, per_test=per_test)

    @property
    def distinct(self) -> int:
        """`|𝒮|`."""
        return self._distinct

    def train(self) -> Work:
        """Every coalition of the schedule."""
        return self._executor.feed(self._schedule, self._sum)

    def values(self) -> Floats:
        """The sums."""
        return self._sum.values()

    def per_test(self) -> ExactSum:
        """The sums of each test row, or each bundle."""
        return self._sum


def refuse_if_too_large(graph: SupportGraph, method: str, trainings: int, most: int, budget: int | None) -> None:
    """Before it starts, refuse an exact method that would train more than `most` coalitions, or than its budget."""
    if trainings <= (most if budget is None else min(budget, most)):
        return
    limit = f"the limit is {most:,}" if budget is None or budget > most else f"the budget is {budget:,}"
    raise TooLargeError(
        f"method={method!r} would train {in_words(trainings)} coalitions (the largest support has "
        f"{graph.sizes.max()} rows); {limit}. Use method='auto' or 'sample', cap the supports (max_size=15), or use "
        "a smaller support; plan() shows the cost before you run it."
    )
