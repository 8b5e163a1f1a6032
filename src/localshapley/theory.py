"""Bounds on sampling that hold, next to the printed ones."""

from __future__ import annotations

from math import ceil, log

import numpy as np

from localshapley.coalitions.sampled import log_subsets
from localshapley.errors import InvalidArgumentError

__all__ = ["draws_needed", "expected_distinct"]


def expected_distinct(n: int, draws: int) -> float:
    """Expected number of distinct subsets among `draws` draws of the paper's sampler from a support of `n` rows.

    A draw takes a random size from 0 to `n` and then a random subset of that size, so a subset of size `k` has the
    probability `p_k = 1 / ((n+1)·C(n,k))`, and the expectation is exactly `Σ_k C(n,k)·(1 − (1−p_k)^M)`. The paper
    prints a bound of the order of `min(2^n, √M)`, which does not hold: for `n = 10` and 1,000 draws it would be 32.

    Parameters
    ----------
    n : int
    draws : int

    Examples
    --------
    >>> round(expected_distinct(10, 1000), 1)
    451.5
    >>> expected_distinct(3, 0)
    0.0
    """
    if n < 0 or draws < 0:
        raise InvalidArgumentError(f"n and draws must not be negative; got n={n}, draws={draws}.")
    k = np.arange(n + 1)
    log_count = log_subsets(n, k)
    p = np.exp(-log_count) / (n + 1)
    # C·(1 − (1−p)^M) tends to M/(n+1) where p is too small for a float
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        seen = np.exp(log_count) * -np.expm1(draws * np.log1p(-np.minimum(p, 1.0)))
    return float(np.where(log_count < 700, seen, draws / (n + 1)).sum()) if draws else 0.0


def draws_needed(epsilon: float, delta: float, *, bound: float = 1.0, n: int, printed: bool = False) -> int:
    """Draws of the paper's sampler for one test row until `P(|φ̂ − φ| > ε) ≤ δ`, for each player.

    With `|v| ≤ B` a draw's contribution `±(n+1)·v(S)/k` or `∓(n+1)·v(S)/(n−k)` lies between `−(n+1)·B` and
    `(n+1)·B`; Hoeffding's inequality with that range gives `M ≥ 2·(n+1)²·B²·log(2/δ) / ε²`. The paper prints
    `M ≥ B²·log(2/δ) / (2ε²)`, which takes contributions to lie within `B`: it is too small by `4·(n+1)²`.

    Both are far from what a run needs: stop on standard errors (`stopping.RelativeError`) instead.

    Parameters
    ----------
    epsilon, delta : float
    bound : float, default=1.0
        `B`, the largest absolute score.
    n : int
        Size of the support.
    printed : bool, default=False
        Return the paper's number instead, for comparison; it does not guarantee anything.

    Examples
    --------
    >>> draws_needed(0.1, 0.05, n=5), draws_needed(0.1, 0.05, n=5, printed=True)
    (26560, 185)
    """
    if not epsilon > 0 or not 0 < delta < 1 or not bound > 0 or n < 1:
        raise InvalidArgumentError(
            f"epsilon and bound must be positive, delta between 0 and 1, n at least 1; got epsilon={epsilon}, "
            f"delta={delta}, bound={bound}, n={n}."
        )
    if printed:
        return ceil(bound**2 * log(2 / delta) / (2 * epsilon**2))
    return ceil(2 * ((n + 1) * bound) ** 2 * log(2 / delta) / epsilon**2)
