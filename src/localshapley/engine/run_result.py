"""What came of a run: its estimate, how it got there, what it took, and why it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Ints, Singles, relative, singles
from localshapley.coalitions.games import SupportGraph
from localshapley.engine.executor import Cost, Executor
from localshapley.errors import InvalidArgumentError
from localshapley.methods import Limits, Run
from localshapley.models.trainer import Counts
from localshapley.notes import Note
from localshapley.runtime.argument_checks import as_numbers
from localshapley.sampling.estimate import Estimate

Pick: TypeAlias = Callable[[AnyArray], AnyArray]
"""Takes an array with an entry for each row to one of other rows: in another order, or among more."""
MAX_LOOKS = 32
"""Maximum number of rounds kept as the history of a run."""
MAX_HISTORY = 2**23
"""Maximum size of a history, in numbers; a larger one is not kept."""


@dataclass(frozen=True, eq=False)
class FinalEstimate:
    """The values of a run that is over, and what is known about their errors.

    Attributes
    ----------
    values : array of shape (n_rows,)
    stderr : array of shape (n_rows,)
    per_test : sparse array of shape (n_tests, n_rows) or None
    spread : array of shape (n_rows, 64) or None
    spread_tests : array of shape (n_rows, at most 64) or None
    spread_seed : array of shape (n_rows, seeds) or None
        As a `Valuation` has them.
    """

    values: Floats
    stderr: Floats
    per_test: sparse.csr_array | None = None
    spread: Singles | None = None
    spread_tests: Singles | None = None
    spread_seed: Singles | None = None

    def __post_init__(self) -> None:
        for name in ("values", "stderr"):
            object.__setattr__(self, name, as_numbers(name, getattr(self, name)))
        check_lengths(self, ("stderr", "spread", "spread_tests", "spread_seed"), len(self.values))
        if len(self.stderr) and self.stderr.min() < 0:
            raise InvalidArgumentError(f"stderr must be at least 0; got {self.stderr.min():g}.")

    def of_rows(self, pick: Pick, per_test: sparse.csr_array | None) -> FinalEstimate:
        """The same for other rows."""
        spreads = (None if one is None else pick(one) for one in (self.spread, self.spread_tests, self.spread_seed))
        return FinalEstimate(pick(self.values), pick(self.stderr), per_test, *spreads)


def check_lengths(part: object, names: tuple[str, ...], n: int) -> None:
    """Refuse attributes that are known and have not as many entries as there are values."""
    for name in names:
        found = getattr(part, name)
        if found is not None and len(found) != n:
            raise InvalidArgumentError(f"{name} must have an entry for each of the {n} values; got {len(found)}.")


@dataclass(frozen=True, eq=False)
class History:
    """How a sampled run arrived at its values, round by round.

    Attributes
    ----------
    trainings : array of shape (n_rounds,)
        Coalitions trained by the end of each round.
    values, stderr : arrays of shape (n_rounds, n_rows)
    """

    trainings: Ints
    values: Singles
    stderr: Singles

    def of_rows(self, pick: Pick) -> History:
        """The same for other rows."""
        return History(self.trainings, pick(self.values.T).T, pick(self.stderr.T).T)

    @property
    def relative_error(self) -> Floats:
        """`‖stderr‖ / ‖values‖` at the end of each round."""
        return np.array([relative(stderr, values) for stderr, values in zip(self.stderr, self.values, strict=True)])


class EstimateHistory:
    """The estimates of a run, thinned out when there are many."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, Floats, Floats]] = []

    @property
    def is_begun(self) -> bool:
        """Whether there has been any."""
        return bool(self._kept)

    def add(self, estimate: Estimate) -> Estimate:
        """Keep what a history shows of an estimate, which is returned."""
        before = self._kept[1::2] if len(self._kept) >= MAX_LOOKS else self._kept
        self._kept = [*before, (estimate.trainings, estimate.values, estimate.stderr)]
        return estimate

    def history(self) -> History | None:
        """Return what a result keeps of them."""
        if not self._kept or len(self._kept) * len(self._kept[0][1]) > MAX_HISTORY:
            return None
        trainings, values, stderr = map(np.array, zip(*self._kept, strict=True))
        return History(trainings, singles(values), singles(stderr))


@dataclass(frozen=True)
class RunResult:
    """Games that have been played to their end."""

    graph: SupportGraph
    estimate: FinalEstimate
    halves: Floats | None
    history: History | None
    cost: Cost
    counts: Counts
    method: str
    chosen: str
    stopped: Note
    notes: list[Note]

    @classmethod
    def of(
        cls,
        run: Run,
        graph: SupportGraph,
        estimate: Estimate,
        history: EstimateHistory,
        executor: Executor,
        limits: Limits,
        ended: Note,
        notes: list[Note],
    ) -> RunResult:
        """Return the outcome of a run on the games of a graph."""
        is_sampled, per_test = bool(estimate.stderr.any()), estimate.per_test if limits.per_test else None
        return cls(
            graph=graph,
            estimate=FinalEstimate(
                estimate.values,
                estimate.stderr,
                per_test=None if per_test is None else per_test.matrix(),
                spread=estimate.covariance() if is_sampled else None,
                spread_tests=estimate.spread_tests(),
            ),
            halves=per_test.halves() if per_test is not None and is_sampled else None,
            history=history.history() if run.samples or is_sampled else None,
            cost=executor.cost(run.distinct),
            counts=executor.counts,
            method=run.title,
            chosen=run.why,
            stopped=ended,
            notes=[*notes, *run.notes],
        )

    @property
    def values(self) -> Floats:
        """The value of each player."""
        return self.estimate.values

    @property
    def stderr(self) -> Floats:
        """Its standard error."""
        return self.estimate.stderr
