"""Who is among the worst, or the best: what errors of values leave of their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from localshapley.arrays import Floats, Ints, Singles
from localshapley.bundles import unmet

MOST_WORLDS, FEWEST_WORLDS, MAX_NUMBERS = 2000, 200, 2**27
"""How often values are drawn that might have been: fewer times for many rows."""
AT_ONCE = 2**22
"""Numbers in memory at a time."""


@dataclass(frozen=True)
class Ranked:
    """How sure it is which rows are the worst, or the best.

    Attributes
    ----------
    k : int
        How many rows are asked for.
    level : float
    probability : array of shape (n_rows,)
        Probability of each row to be one of the true `k`.
    order : array of shape (n_rows,)
        Rows by their values, the worst (or best) first.
    size : int
        So many rows of this order hold all of the true `k`, with probability `level`.
    """

    k: int
    level: float
    probability: Floats
    order: Ints
    size: int

    @property
    def rows(self) -> Ints:
        """The rows that hold all of the true `k`, with probability `level`."""
        return self.order[: self.size]

    @property
    def expected(self) -> float:
        """How many of the first `k` rows are among the true `k`, on average."""
        return float(self.probability[self.order[: self.k]].sum())

    def __str__(self) -> str:
        return (
            f"of the first {self.k} rows, {self.expected:.1f} are among the true {self.k} on average; "
            f"{self.size} rows hold all {self.k} of them ({100 * self.level:g} %)"
        )


@dataclass(frozen=True)
class Doubt:
    """Values, and how they may be off.

    Attributes
    ----------
    values : array of shape (n_rows,)
    alone : array of shape (n_rows,)
        Variance of errors that rows do not share.
    shared : tuple of arrays with a row for each row
        Columns of errors that rows share.
    """

    values: Floats
    alone: Floats
    shared: tuple[Singles, ...]

    @classmethod
    def of(cls, values: Floats, stderr: Floats, *, draws: Singles | None, tests: Singles | None,
           seeds: Singles | None = None) -> Doubt:  # fmt: skip
        """Put errors of draws, of test rows and of seeds together, where they are known."""
        alone = np.zeros_like(values) if draws is not None else stderr**2
        alone = alone if tests is None else alone + unmet(tests)
        return cls(values, alone, tuple(columns for columns in (draws, tests, seeds) if columns is not None))

    def worlds(self) -> Iterator[Floats]:
        """Values that might have been, some at a time, shape (some, n_rows); the same for the same errors."""
        rng = np.random.default_rng(0)
        n = min(MOST_WORLDS, max(FEWEST_WORLDS, MAX_NUMBERS // len(self.values)))
        size = max(1, AT_ONCE // len(self.values))
        for start in range(0, n, size):
            some = min(size, n - start)
            found = self.values + rng.normal(size=(some, len(self.values))) * np.sqrt(self.alone)
            for columns in self.shared:
                freedom = columns.shape[1] - 1  # a variance from few columns is itself known to within its error
                scale = np.sqrt(freedom / rng.chisquare(freedom, size=(some, 1)))
                found += scale * rng.normal(size=(some, columns.shape[1])) @ columns.T
            yield found

    def lowest(self, k: int, level: float) -> Ranked:
        """How sure it is which `k` rows have the lowest values."""
        n_rows = len(self.values)
        order = np.argsort(self.values, kind="stable")
        place = np.empty(n_rows, dtype=np.int64)
        place[order] = np.arange(n_rows)
        counts, needed = np.zeros(n_rows), []
        for world in self.worlds():
            lowest = np.argpartition(world, k - 1, axis=1)[:, :k]
            counts += np.bincount(lowest.ravel(), minlength=n_rows)
            needed.append(place[lowest].max(axis=1) + 1)
        sizes = np.concatenate(needed)
        return Ranked(k, level, counts / len(sizes), order, int(np.quantile(sizes, level, method="higher")))
