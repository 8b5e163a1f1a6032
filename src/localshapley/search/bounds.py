"""Rows made ready for products of matrices, with proven bounds of what rounding does to them.

With rows `x` and queries `q` moved by the same centre and multiplied by the same power of 2, their *nearness* is

    h(x, q) = ½‖x − q‖² − ½‖q‖² = ½‖x‖² − x·q,

which puts rows in the order of distance. A product of matrices in arithmetic of unit roundoff `u` computes it as the
inner product of `(−x, ½‖x‖²)` and `(q, 1)`. Whatever the order in which it adds, the error is at most the sum of

    (d+1)u·(‖x‖‖q‖ + ½‖x‖²)    products and sums of d+1 terms (γ of Higham, to first order)
    2u·(‖x‖² + ‖q‖²)           the coordinates, rounded after they were moved
    ½u·‖x‖²                    ½‖x‖², rounded
    (d+1)·tiny                 products below the smallest normal number

and so, as `‖x‖‖q‖ ≤ ½‖x‖² + ½‖q‖²`, below `c·(‖x‖² + ‖q‖²) + tiny` with `c = (d+16)u` (and 2 % for terms of higher
order), which leaves room to round the bounds themselves: an error of a row and one of a query. That of the row is taken
off the product's last column, so that products are lower bounds: of a product `p`,

    p − e_q  ≤  h  ≤  p + 2c‖x‖² + e_q,        e_q = c‖q‖² + tiny.

A row whose lower bound is above the `k`-th smallest upper bound is not among the `k` nearest. All others are measured
in float64 (`pairs.measure`), which rounds by less than `4(d+4)·2⁻⁵³·(‖x‖² + ‖q‖²)`; in float64, `c` is 8 times as large
to hold that too. Sums of whole numbers, or of quarters, are exact below 2²², and nothing is in doubt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from localshapley.arrays import AnyArray, Floats

SAMPLE = 2048
"""Rows that the centre, the scale and the first bounds are taken from."""
LARGEST_WHOLE = 2.0**20
"""Up to this squared length, sums of products of whole numbers are exact in float32, quarters too."""
WHOLE_STEP = 0.25
"""Less than two different nearnesses of whole numbers are apart."""
MOST_FEATURES = 2**18
"""Up to so many features, an error grows with their number by no more than the bound says in float32."""


class UndecidedError(Exception):
    """Rounding leaves too much open in this arithmetic; the next one is to be tried."""


@dataclass(frozen=True)
class Arithmetic:
    """How coordinates are moved and rounded, and the share `c` of squared lengths that bounds errors."""

    centre: Floats
    scale: float
    dtype: Any
    exact: bool

    @property
    def share(self) -> float:
        """`c`: the error of a nearness is at most this share of the squared lengths."""
        if self.exact:
            return 0.0
        units = (1.02 if self.dtype == np.float32 else 8) * (len(self.centre) + 16)
        return units * float(np.finfo(self.dtype).eps) / 2

    @property
    def tiny(self) -> float:
        """What underflow can add to an error, here or when the rows themselves are measured."""
        smallest = max(float(np.finfo(self.dtype).tiny), 2.0**-1074 * self.scale * self.scale)
        return 0.0 if self.exact else 4 * (len(self.centre) + 16) * smallest

    def rows(self, X: AnyArray) -> tuple[AnyArray, Floats]:
        """`(−x, ½‖x‖² − c‖x‖²)` of each row, and `2c‖x‖²`, by which its upper bound is above the product."""
        moved, squares = self._moved(X)
        out = np.empty((len(X), X.shape[1] + 1), dtype=self.dtype)
        np.negative(moved, out=out[:, :-1], casting="same_kind")
        out[:, -1] = squares * (0.5 - self.share)
        return out, 2 * self.share * squares

    def queries(self, X: AnyArray) -> tuple[AnyArray, Floats]:
        """`(q, 1)` of each query, and its error `e_q`."""
        moved, squares = self._moved(X)
        out = np.ones((len(X), X.shape[1] + 1), dtype=self.dtype)
        out[:, :-1] = moved
        return out, self.share * squares + self.tiny

    def nearness_at(self, X: AnyArray, radius: float) -> tuple[Floats, Floats]:
        """Nearness of rows at this distance from each query, and how far off that is for rounding."""
        _, squares = self._moved(X)
        reach = 0.5 * (radius * self.scale) ** 2
        return reach - 0.5 * squares, 2.0**-50 * (reach + squares)

    def _moved(self, X: AnyArray) -> tuple[Floats, Floats]:
        moved = X.astype(np.float64)
        moved -= self.centre
        moved *= self.scale
        squares: Floats = np.einsum("ij,ij->i", moved, moved)
        self.check(float(squares.max(initial=0.0)), not self.exact or np.array_equal(moved, np.rint(moved)))
        return moved, squares

    def check(self, largest: float, whole: bool) -> None:
        """Refuse rows of which the bounds do not hold, by the largest squared length and whether numbers are whole."""
        if self.exact and not (whole and largest <= LARGEST_WHOLE):
            raise UndecidedError
        if not largest < float(np.finfo(self.dtype).max) ** 0.5:  # products stay finite
            raise UndecidedError


def arithmetics(X: AnyArray) -> list[Arithmetic]:
    """The kinds of arithmetic to try for these rows, the fastest first."""
    some = X[sample_of(len(X), SAMPLE)].astype(np.float64)
    centre = some.mean(axis=0)
    largest = float(np.abs(some - centre).max(initial=0.0))
    if not np.isfinite(largest):
        return []
    scale = float(2.0 ** -np.ceil(np.log2(largest))) if largest > 0 else 1.0
    if not (np.isfinite(scale) and scale > 0):
        return []
    rounded = [Arithmetic(centre, scale, dtype, exact=False) for dtype in (np.float32, np.float64)]
    if X.shape[1] > MOST_FEATURES:
        return rounded[1:]
    whole = np.array_equal(some, np.rint(some)) and largest < np.sqrt(LARGEST_WHOLE)
    return [Arithmetic(np.rint(centre), 1.0, np.float32, exact=True), *rounded] if whole else rounded


def sample_of(n: int, size: int) -> AnyArray:
    """So many row numbers at equal steps, which also in sorted rows are of all kinds."""
    return np.unique(np.linspace(0, n - 1, min(n, size)).astype(np.int64))
