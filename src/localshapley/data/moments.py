"""Means and variances of columns, whose bits do not depend on the order, layout or parts of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from localshapley.arrays import AnyArray, Floats

AT_ONCE = 2**17
"""Cells that are summed together: they stay in the cache."""


@dataclass(frozen=True)
class Moments:
    """Sums of the columns' distances from `shift`, and of their squares, each as a number and what it leaves out.

    A sum of doubles depends on their order in its last bits. Here each addition also yields its error, exactly (Knuth's
    two-sum); the errors are added up as well, so that a sum is known to about 100 bits and rounded once.

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0]])
    >>> found = Moments.of(X, X[0])
    >>> found.mean, found.variance
    (array([2., 5.]), array([1., 0.]))
    """

    n: int
    shift: Floats
    sums: tuple[Floats, Floats]
    squares: tuple[Floats, Floats]

    @classmethod
    def of(cls, X: Any, shift: AnyArray) -> Moments:
        """The moments of the columns of an array; `shift` must be the same for all parts of a table: its first row."""
        n_rows, n_columns = X.shape
        shift = np.asarray(shift, dtype=np.float64)
        sums = squares = np.zeros(n_columns), np.zeros(n_columns)
        step = max(2, AT_ONCE // max(n_columns, 1))
        for start in range(0, n_rows, step):
            away = np.asarray(X[start : start + step], dtype=np.float64) - shift
            sums, squares = _added(sums, _summed(away)), _added(squares, _summed(away**2))
        return cls(n_rows, shift, sums, squares)

    def __add__(self, other: Moments) -> Moments:
        sums, squares = _added(self.sums, other.sums), _added(self.squares, other.squares)
        return Moments(self.n + other.n, self.shift, sums, squares)

    @property
    def mean(self) -> Floats:
        """Mean of each column."""
        return self.shift + self._away

    @property
    def variance(self) -> Floats:
        """Variance of each column, over all rows."""
        return np.maximum((self.squares[0] + self.squares[1]) / self.n - self._away**2, 0.0)

    @property
    def scale(self) -> Floats:
        """Standard deviation of each column; 1 where all its numbers are equal."""
        spread = np.sqrt(self.variance)
        return np.where(spread > 0, spread, 1.0)

    @property
    def variance_of_all(self) -> float:
        """Variance of all entries."""
        mean = self.mean
        return float(self.variance.mean() + ((mean - mean.mean()) ** 2).mean())

    @property
    def _away(self) -> Floats:
        return (self.sums[0] + self.sums[1]) / self.n

    def standardised(self, X: Any) -> AnyArray:
        """Rows with columns brought to mean 0 and variance 1."""
        rows = np.array(X, dtype=X.dtype if X.dtype.kind == "f" else np.float64)
        rows -= self.mean.astype(rows.dtype)
        rows /= self.scale.astype(rows.dtype)
        return rows


def _summed(rows: Floats) -> tuple[Floats, Floats]:
    """Sum of the rows, and what it leaves out: halves are added to each other until one row is left."""
    left_out = np.zeros(rows.shape[1])
    while len(rows) > 1:
        half = len(rows) // 2
        total, error = _two_sum(rows[:half], rows[half : 2 * half])
        left_out += error.sum(axis=0)
        rows = total if len(rows) % 2 == 0 else np.concatenate([total, rows[-1:]])
    return rows[0], left_out


def _added(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    total, error = _two_sum(one[0], other[0])
    return total, one[1] + other[1] + error


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """A sum and its rounding error, exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
