"""Slow, obvious twins of the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

import numpy as np

from naive import Utility


def ends(near: int, score: float, full: float, tolerance: float) -> int:
    """How many times in a row the score has been near that of all players."""
    return near + 1 if abs(score - full) < tolerance else 0


def walk(
    order: Sequence[int],
    v: Utility,
    tests: Sequence[int],
    tolerance: float = 0.0,
    patience: int = 1,
    by_test: bool = False,
) -> np.ndarray:
    """What the arrival of each player adds, over all test rows, along a walk that may end early."""
    groups = [[t] for t in tests] if by_test else [list(tests)]
    gains = np.zeros(len(order))
    for group in groups:
        full = sum(v(tuple(sorted(order)), t) for t in group)
        before, near = sum(v((), t) for t in group), 0
        for size, z in enumerate(order, 1):
            after = sum(v(tuple(sorted(order[:size])), t) for t in group)
            gains[sorted(order).index(z)] += after - before
            before = after
            near = ends(near, after / len(group), full / len(group), tolerance)
            if near == patience:
                break
    return gains


def mean_walk(n: int, v: Utility, tests: Sequence[int], **truncation) -> np.ndarray:
    """The mean of `walk` over all permutations."""
    return np.mean([walk(order, v, tests, **truncation) for order in permutations(range(n))], axis=0)


def complementary(n: int, v: Utility, tests: Sequence[int]) -> np.ndarray:
    """Mean over sizes of the mean complementary contribution of the coalitions of this size that hold a player."""
    out = np.zeros(n)
    for z in range(n):
        for k in range(1, n + 1):
            holding = [s for s in combinations(range(n), k) if z in s]
            said = [sum(v(s, t) - v(tuple(sorted(set(range(n)) - set(s))), t) for t in tests) for s in holding]
            out[z] += np.mean(said) / n
    return out


def leave_one_out(supports: Sequence[Sequence[int]], v: Utility, n_players: int) -> np.ndarray:
    """What each game loses without a player."""
    out = np.zeros(n_players)
    for t, support in enumerate(supports):
        for z in support:
            out[z] += v(tuple(sorted(support)), t) - v(tuple(sorted(set(support) - {z})), t)
    return out
