"""Slow, obvious twins of the kernels and estimators: the oracle of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from math import comb, factorial

import numpy as np

Utility = Callable[[tuple[int, ...], int], float]


def subsets(players: Iterable[int]) -> list[tuple[int, ...]]:
    """All subsets, each as an ascending tuple."""
    players = sorted(int(z) for z in players)
    return [s for k in range(len(players) + 1) for s in combinations(players, k)]


def distinct_subsets(supports: Sequence[Iterable[int]]) -> set[tuple[int, ...]]:
    """𝒮: the subsets of all supports, each once."""
    return {s for support in supports for s in subsets(support)}


def shapley_of_one(support: Iterable[int], v: Callable[[tuple[int, ...]], float]) -> dict[int, float]:
    """Shapley values of one game by the definition: weighted marginal gains."""
    players = sorted(int(z) for z in support)
    n = len(players)
    out = {}
    for z in players:
        others = [p for p in players if p != z]
        out[z] = sum(
            factorial(len(s)) * factorial(n - len(s) - 1) / factorial(n) * (v(tuple(sorted((*s, z)))) - v(s))
            for s in subsets(others)
        )
    return out


def shapley_matrix(supports: Sequence[Iterable[int]], v: Utility, n_players: int) -> np.ndarray:
    """`φ_z(v_t)` for every test row and player, by the definition."""
    out = np.zeros((len(supports), n_players))
    for t, support in enumerate(supports):
        for z, value in shapley_of_one(support, lambda s, t=t: v(s, t)).items():
            out[t, z] = value
    return out


def weight(n: int, k: int, member: bool) -> float:
    """Weight of a subset of size `k` for a member, or for another player, of a game of `n`."""
    if member:
        return 1 / (k * comb(n, k))
    return -1 / ((n - k) * comb(n, k))


def pivot(supports: Sequence[Iterable[int]], subset: Iterable[int]) -> int:
    """The first support that holds the subset."""
    return next(t for t, support in enumerate(supports) if set(subset) <= set(support))


def holding(supports: Sequence[Iterable[int]], subset: Iterable[int]) -> list[int]:
    """`R_S`: all test rows whose support holds the subset."""
    return [t for t, support in enumerate(supports) if set(subset) <= {int(z) for z in support}]


def rough_utility(seed: int) -> Utility:
    """A game without any structure: an arbitrary number for every subset and test row."""

    def v(subset: tuple[int, ...], test: int) -> float:
        return float(np.random.default_rng([seed, test, *subset]).normal())

    return v


def as_utility(v: Utility) -> Callable[[np.ndarray, np.ndarray], list[float]]:
    """The same game in the form that `localshapley.shapley` takes."""

    def utility(coalition: np.ndarray, tests: np.ndarray) -> list[float]:
        return [v(tuple(int(z) for z in coalition), int(t)) for t in tests]

    return utility
