"""Slow, obvious twins of what is done for nearest neighbours: the oracle of their tests.

Nothing here sorts more than one coalition at a time, knows a closed form or shares a line with the library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from math import comb, log, sqrt

import numpy as np


def euclidean(a: Sequence[float], b: Sequence[float]) -> float:
    """Distance of two rows, one feature after the other."""
    return sqrt(sum((float(x) - float(y)) ** 2 for x, y in zip(a, b, strict=True)))


def distance_matrix(X, X_test, metric: Callable = euclidean) -> list[list[float]]:
    """Distances of each test row to each training row."""
    return [[metric(row, other) for other in X] for row in X_test]


def neighbours(away: Sequence[float], members: Sequence[int], K: int) -> list[int]:
    """The K nearest members (all, where there are fewer), nearest first, equally near ones by their index."""
    return sorted(members, key=lambda z: (away[z], z))[:K]


def vote_weights(away: Sequence[float], near: Sequence[int], weights: str) -> list[float]:
    """Weights of the nearest rows: equal, or 1/distance, where rows at distance 0 are the only ones that count."""
    if weights == "uniform":
        return [1.0] * len(near)
    if any(away[z] == 0 for z in near):
        return [1.0 if away[z] == 0 else 0.0 for z in near]
    return [1.0 / away[z] for z in near]


def predict_mean(away, members, targets, K: int, weights: str) -> float:
    """A regressor's prediction from a coalition that is not empty."""
    near = neighbours(away, members, K)
    w = vote_weights(away, near, weights)
    return sum(a * targets[z] for a, z in zip(w, near, strict=True)) / sum(w)


def predict_shares(away, members, labels, classes, K: int, weights: str) -> dict:
    """A classifier's share of the votes for each class, from a coalition that is not empty."""
    near = neighbours(away, members, K)
    w = vote_weights(away, near, weights)
    return {c: sum(a for a, z in zip(w, near, strict=True) if labels[z] == c) / sum(w) for c in classes}


def score_shares(score, shares: dict, truth) -> float:
    """Score of a classifier's prediction by its name, or by a function of true and predicted label."""
    own = shares.get(truth, 0.0)
    if score == "confidence":
        return own
    if score == "log_loss":
        return log(max(own, 1e-6)) - log(1 / len(shares))
    if score == "margin":
        return own - max(share for c, share in shares.items() if c != truth)
    most = max(shares.values())
    winner = next(c for c in sorted(shares) if shares[c] == most)
    return float(winner == truth) if score == "accuracy" else float(score(truth, winner))


def score_nothing(score, classes, truth) -> float:
    """Score of the empty coalition: every class equally likely."""
    if callable(score):
        return sum(float(score(truth, c)) for c in classes) / len(classes)
    if score == "accuracy":
        return float(truth in classes) / len(classes)
    # Confidence, log loss and margin need no word of their own: all shares are equal.
    return score_shares(score, dict.fromkeys(classes, 1 / len(classes)), truth)


def classifier_game(distances, labels, truths, K: int, weights: str, score, empty: float | None = None):
    """Utility `v(subset, test)` of a nearest-neighbour classifier."""
    classes = sorted(set(labels))

    @cache
    def v(subset: tuple[int, ...], t: int) -> float:
        if not subset:
            return score_nothing(score, classes, truths[t]) if empty is None else empty
        return score_shares(score, predict_shares(distances[t], subset, labels, classes, K, weights), truths[t])

    return v


def regressor_game(distances, targets, truths, K: int, weights: str, score, empty: float | None = None):
    """Utility `v(subset, test)` of a nearest-neighbour regressor."""

    def of_number(prediction: float, truth: float) -> float:
        if score == "squared_error":
            return -((prediction - truth) ** 2)
        return -abs(prediction - truth) if score == "absolute_error" else float(score(truth, prediction))

    @cache
    def v(subset: tuple[int, ...], t: int) -> float:
        if not subset:
            return of_number(sum(targets) / len(targets), truths[t]) if empty is None else empty
        return of_number(predict_mean(distances[t], subset, targets, K, weights), truths[t])

    return v


def vote_game(distances, labels, truths, K: int):
    """Jia's game: own votes among the K nearest members, divided by K even where there are fewer members."""

    @cache
    def v(subset: tuple[int, ...], t: int) -> float:
        return sum(labels[z] == truths[t] for z in neighbours(distances[t], subset, K)) / K

    return v


def ball_game(distances, labels, truths, radius: float):
    """Wang's game: share of own labels among the members within the radius; 1/classes where there are none."""

    @cache
    def v(subset: tuple[int, ...], t: int) -> float:
        inside = [z for z in subset if distances[t][z] <= radius]
        if not inside:
            return 1 / len(set(labels))
        return sum(labels[z] == truths[t] for z in inside) / len(inside)

    return v


def closed_form(distances, labels, truths, K: int) -> np.ndarray:
    """Jia's Theorem 1, with the correction for fewer than K rows, one test row after the other."""
    n = len(labels)
    values = np.zeros(n)
    for away, truth in zip(distances, truths, strict=True):
        order = neighbours(away, range(n), n)
        right = [float(labels[z] == truth) for z in order]
        s = [0.0] * n
        s[-1] = right[-1] / max(n, K)
        for i in range(n - 2, -1, -1):
            s[i] = s[i + 1] + (right[i] - right[i + 1]) / K * min(K, i + 1) / (i + 1)
        for z, value in zip(order, s, strict=True):
            values[z] += value
    return values


def shapley_by_masks(players: Sequence[int], v: Callable[[tuple[int, ...]], float]) -> dict[int, float]:
    """Shapley values from the table of all subsets, for games too large for nested loops over tuples."""
    n = len(players)
    table = np.array([v(tuple(z for i, z in enumerate(players) if mask >> i & 1)) for mask in range(2**n)])
    masks = np.arange(2**n)
    sizes = np.array([mask.bit_count() for mask in range(2**n)])
    weight = np.array([1 / (n * comb(n - 1, k)) for k in range(n)])
    out = {}
    for i, z in enumerate(players):
        without = masks[masks >> i & 1 == 0]
        out[z] = float((weight[sizes[without]] * (table[without | 1 << i] - table[without])).sum())
    return out


def values_by_counting(marks: Sequence[int], K: int, f: Callable[[int, int], object], nothing: object) -> list[float]:
    """Exact values of a game in which `f(marked, size)` scores a coalition by its K nearest members.

    Rows come nearest first. Marginal gains are counted, player by player, in exact fractions: those of coalitions of
    fewer than K others, and those of coalitions whose K-th nearest member the player would push out.
    """
    n = len(marks)
    f = cache(f)
    nothing = Fraction(nothing)

    def score(marked: int, size: int) -> Fraction:
        return Fraction(f(marked, size)) if size else nothing

    @cache
    def chance_of_larger(farther: int) -> Fraction:
        """Weights of all coalitions of others that agree on their K nearest, with `farther` rows beyond those."""
        return sum((Fraction(comb(farther, r), n * comb(n - 1, K + r)) for r in range(farther + 1)), Fraction(0))

    values = []
    for place, mark in enumerate(marks):
        others = [*marks[:place], *marks[place + 1 :]]
        n_marked = sum(others)
        value = Fraction(0)
        for size in range(min(K, n)):
            for h in range(min(n_marked, size) + 1):
                ways = comb(n_marked, h) * comb(n - 1 - n_marked, size - h)
                gain = score(h + mark, size + 1) - score(h, size) if ways else Fraction(0)
                value += Fraction(ways, n * comb(n - 1, size)) * gain
        before = 0  # marked rows among those before the K-th nearest member
        for last, pushed in enumerate(others):
            if last >= K - 1 and last >= place:  # farther than the player, who joins and pushes it out
                for h in range(min(before, K - 1) + 1):
                    ways = comb(before, h) * comb(last - before, K - 1 - h)
                    if ways and mark != pushed:
                        gain = score(h + mark, K) - score(h + pushed, K)
                        value += ways * chance_of_larger(n - 2 - last) * gain
            before += pushed
        values.append(float(value))
    return values
