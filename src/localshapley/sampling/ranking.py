"""Who is among the worst, or the best: what errors of values leave of their order.

The lowest of many estimates are low by chance, too. So what might be true is drawn from what each estimate, its error
and the distribution of all true values say together (empirical Bayes): that distribution is estimated first, on a grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from localshapley.arrays import Floats, Ints, Singles, rounded
from localshapley.coalitions.jackknife_blocks import missing, squares

MOST_WORLDS, FEWEST_WORLDS, MAX_NUMBERS = 2000, 200, 2**27
"""How often values are drawn that might have been: fewer times for many rows."""
AT_ONCE = 2**22
"""Numbers in memory at a time."""
N_GRID, N_STEPS, MAX_FITTED = 100, 5, 2000
"""Points of the distribution of true values, steps in which it is found, and rows that it is found from."""


@dataclass(frozen=True)
class Ranking:
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
    unknown : str
        What is not counted because nothing is known about it; empty if every error is.
    unit : str
        What is valued, as in the valuation.
    """

    k: int
    level: float
    probability: Floats
    order: Ints
    size: int
    unknown: str = ""
    unit: str = "row"

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
            f"of the first {self.k} {self.unit}s, {self.expected:.1f} are among the true {self.k} on average; "
            f"{self.size} {self.unit}s hold all {self.k} of them ({100 * self.level:g} %)"
            + (f". {self.unknown}" if self.unknown else "")
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
        if tests is not None:
            alone = alone + missing(tests)
        return cls(values, alone, tuple(columns for columns in (draws, tests, seeds) if columns is not None))

    def worlds(self) -> Iterator[Floats]:
        """Values that might be true, some at a time, shape (some, n_rows)."""
        rng, n_rows = np.random.default_rng(0), len(self.values)
        n, size = min(MOST_WORLDS, max(FEWEST_WORLDS, MAX_NUMBERS // n_rows)), max(1, AT_ONCE // n_rows)
        error = np.sqrt(self.alone + sum(squares(columns) for columns in self.shared))
        mean, deviation = _likely(self.values, error)
        scale = np.divide(deviation, error, out=np.zeros_like(error), where=error > 0)
        place = np.argsort(np.lexsort((rounded(error), rounded(self.values))), kind="stable")
        for start in range(0, n, size):
            some = min(size, n - start)
            noise = rng.normal(size=(some, n_rows))[:, place] * np.sqrt(self.alone)
            for columns in self.shared:
                freedom = columns.shape[1] - 1  # a variance from few columns is itself known to within its error
                inflation = np.sqrt(freedom / rng.chisquare(freedom, size=(some, 1)))
                noise += inflation * rng.normal(size=(some, columns.shape[1])) @ columns.T
            yield mean + scale * noise

    def lowest(self, k: int, level: float) -> Ranking:
        """How sure it is which `k` rows have the lowest values."""
        n_rows = len(self.values)
        order = np.argsort(rounded(self.values), kind="stable")
        place = np.empty(n_rows, dtype=np.int64)
        place[order] = np.arange(n_rows)
        counts, needed = np.zeros(n_rows), []
        for world in self.worlds():
            lowest = np.argpartition(world, k - 1, axis=1)[:, :k]
            counts += np.bincount(lowest.ravel(), minlength=n_rows)
            needed.append(place[lowest].max(axis=1) + 1)
        sizes = np.concatenate(needed)
        return Ranking(k, level, counts / len(sizes), order, int(np.quantile(sizes, level, method="higher")))


def _likely(values: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation of what is true of each value, given its error and the distribution of all true values."""
    mean, deviation = values.copy(), np.zeros_like(values)
    doubtful = np.flatnonzero(error > 0)
    if not len(doubtful):
        return mean, deviation
    grid = np.linspace(values.min(), values.max(), N_GRID)
    weight = np.full(N_GRID, 1 / N_GRID)
    some = np.random.default_rng(0).permutation(doubtful)[:MAX_FITTED]
    fits = _fit(values[some], error[some], grid)
    for _ in range(N_STEPS):  # of the EM algorithm; few leave the distribution smooth
        share = fits * weight
        weight = (share / share.sum(axis=1, keepdims=True)).mean(axis=0)
    for start in range(0, len(doubtful), MAX_FITTED):
        rows = doubtful[start : start + MAX_FITTED]
        share = _fit(values[rows], error[rows], grid) * weight
        share /= share.sum(axis=1, keepdims=True)
        mean[rows] = share @ grid
        deviation[rows] = np.sqrt(np.maximum(share @ grid**2 - mean[rows] ** 2, 0.0))
    return mean, deviation


def _fit(values: Floats, error: Floats, grid: Floats) -> Floats:
    """How well each point of the grid explains each value: never nothing, also where errors are small."""
    step = (grid[1] - grid[0]) or 1.0
    apart = (values[:, None] - grid) / np.maximum(error, step / 2)[:, None]
    return np.exp(-0.5 * apart**2) + 1e-300
