"""Cooperative games whose Shapley values are known, from the literature; their players come in classes of equals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np


@dataclass(frozen=True)
class Known:
    """A game that scores many coalitions at once, with its values.

    Attributes
    ----------
    values : array of shape (n_players,)
    worth : callable
        What coalitions are worth, from the members as flags, shape (n_coalitions, n_players).
    """

    values: np.ndarray
    worth: Callable[[np.ndarray], np.ndarray]
    name: str = "known"

    @property
    def n(self) -> int:
        return len(self.values)

    def evaluate(self, coalitions):
        sizes = np.diff(coalitions.indptr)
        members = np.zeros((len(sizes), self.n), dtype=bool)
        members[np.repeat(np.arange(len(sizes)), sizes), coalitions.players] = True
        return np.repeat(self.worth(members).astype(float), np.diff(coalitions.test_indptr))


def veto(n: int, others: int) -> Known:
    """One player and so many others win; the value of the one is the chance to come after them."""
    first = (n - others) / n
    values = np.append(first, np.full(n - 1, (1 - first) / (n - 1)))
    return Known(values, lambda m: m[:, 0] & (m.sum(axis=1) > others))


def shoes(left: int, right: int) -> Known:
    """A pair of shoes is worth 1 (the glove market of Shapley and Shubik); by the shoes that came before one."""
    n = left + right
    one = sum(
        Fraction(comb(left - 1, a) * comb(right, b), comb(n - 1, a + b)) * (min(a + 1, b) - min(a, b))
        for a in range(left)
        for b in range(right + 1)
    ) / Fraction(n)
    other = (min(left, right) - left * one) / right
    values = np.repeat([float(one), float(other)], [left, right])
    return Known(values, lambda m: np.minimum(m[:, :left].sum(axis=1), m[:, left:].sum(axis=1)))


def airport(costs: np.ndarray) -> Known:
    """A coalition pays for its longest runway (Littlechild and Owen): each piece is shared by those who need it."""
    pieces, need = np.unique(costs, return_counts=True)
    shares = np.diff(pieces, prepend=0.0) / need[::-1].cumsum()[::-1]
    return Known(shares.cumsum()[np.searchsorted(pieces, costs)], lambda m: np.where(m, costs, 0.0).max(axis=1))


def voting(weights: np.ndarray, quota: int) -> Known:
    """A majority of weights wins (Shapley and Shubik's index); by counts of coalitions by size and weight."""
    n, total = len(weights), int(weights.sum())
    values = []
    for z in range(n):
        counts = np.zeros((n, total + 1), dtype=object)
        counts[0, 0] = 1
        for w in np.delete(weights, z):
            counts[1:, w:] += counts[:-1, : total + 1 - w].copy()
        decides = counts[:, max(quota - int(weights[z]), 0) : quota].sum(axis=1)
        values.append(float(sum(Fraction(int(c), comb(n - 1, k)) for k, c in enumerate(decides)) / n))
    return Known(np.array(values), lambda m: m @ weights >= quota)


def miners(n: int) -> Known:
    """Two carry one piece of gold."""
    return Known(np.full(n, n // 2 / n), lambda m: m.sum(axis=1) // 2)


def spanning_circle(n: int) -> Known:
    """Least cost to connect all to a source, `n + 1` from each and 1 between neighbours on a circle."""

    def cost(m: np.ndarray) -> np.ndarray:
        gaps = (m & ~np.roll(m, 1, axis=1)).sum(axis=1)
        return m.sum(axis=1) + n * np.where(m.all(axis=1), 1, gaps)

    return Known(np.full(n, 2.0), cost)


def unanimous(n: int, groups: list[list[int]], worths: list[float]) -> Known:
    """A sum of games in which the whole group is needed: each of its members gets the same share."""
    needed = np.zeros((len(groups), n))
    for i, group in enumerate(groups):
        needed[i, group] = 1.0
    values = (needed * (np.array(worths) / needed.sum(axis=1))[:, None]).sum(axis=0)
    return Known(values, lambda m: (m @ needed.T == needed.sum(axis=1)) @ np.array(worths))


def some_groups(n: int, n_groups: int) -> Known:
    """A sum of unanimity games of random groups."""
    rng = np.random.default_rng(n)
    groups = [rng.choice(n, rng.integers(1, n), replace=False).tolist() for _ in range(n_groups)]
    return unanimous(n, groups, rng.normal(size=n_groups).tolist())
