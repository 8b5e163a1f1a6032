"""Curves over the scores of surrogates: what they are fitted to, what they take away, and their values.

At a size `s`, on the scale from −1 to 1, a curve adds `Σ_a h_a(s)·b_a(x)` to a score `x`, which is on that scale, too:
`b` are `x` itself, `bent(2x)`, `bent(6x)` and 1, with `bent(x) = x/√(1 + x²)`, and each height `h_a` is a polynomial of
the second degree in `s`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import AnyArray, Floats, Indices, Ints, Masks
from localshapley.kernels.draws import next_below
from localshapley.kernels.jit import kernel, part, section
from localshapley.kernels.surrogate import Pairs

GENTLE, STEEP = 2.0, 6.0
"""How steep the bent parts of a curve are."""
N_CURVES, N_POWERS = 4, 3

Curves: TypeAlias = tuple[Floats, Floats, Floats]
"""`middle`, `unit` (n_folds, n_games), `height` (n_folds, n_games, 4, 3): the middle of the scores that a fold knows of
a game and half their range, which is 0 where there is no curve, and the coefficients of the heights.
"""
Products: TypeAlias = tuple[Floats, Floats, Floats]
"""`middle`, `unit`, `sums` (n_folds, n_games, 4, 23).

As in `Curves`; then, for each `a`, sums over the pairs of `b_a·y·sʲ` for `j < 3`, where `y` is what is to be fitted,
and for each `b` of `b_a·b_b·sʲ` for `j < 5`.
"""
Way: TypeAlias = tuple[Floats, Floats]
"""`at_sizes` (5, n_folds, n_strata), `effects` (n_folds, total size, 2).

At each size: the surrogate without its players, the size, the heights of both bent parts, and what these add to that
surrogate. Of each player, effect and slope in the surrogate, each less its mean over the game.
"""
Orders: TypeAlias = tuple[Ints, Masks]
"""`n_orders`, `streams` (n_games): how many orders each fold goes along, and what random numbers come from."""
Room: TypeAlias = tuple[Indices, Floats, Floats]
"""`order` (n), `way` (3, n), `gains` (2, n): room for a game of `n` players.

An order of them; along it the sums of effects, of slopes, and what has been gained there and back; for each player, the
sum of its gains and of their squares.
"""


def add_products(
    part: tuple[int, int], pairs: Pairs, known: tuple[Indices, AnyArray], scores: Floats, left: Floats, out: Products
) -> None:
    """Add up what the curves of some games are fitted to, from the first one up to another.

    For each fold from what surrogates left of the scores. `known` are the fold that alone drew a pair, as a bit, or 0,
    and whether curves are fitted to it. A game of which a fold knows no two different scores is left alone.
    """
    gather_games(*part, pairs, *known, scores, left, np.empty(N_CURVES), out)


@kernel(error_model="numpy")
def gather_games(
    first: int,
    stop: int,
    pairs: Pairs,
    alone: Indices,
    bends: AnyArray,
    scores: Floats,
    left: Floats,
    columns: Floats,
    out: Products,
) -> None:
    """Add up products game by game and fold by fold."""
    indptr, _, position, weight, _ = pairs
    middle, unit, sums = out
    for game in range(first, stop):
        for f in range(len(left)):
            low, high, total, n = np.inf, -np.inf, 0.0, 0
            for i in range(indptr[game], indptr[game + 1]):
                if bends[i] and alone[i] != 1 << f:
                    low, high = min(low, scores[i]), max(high, scores[i])
                    total += weight[i]
                    n += 1
            half = (high - low) / 2.0
            if total <= 0.0 or half <= 0.0:
                continue
            middle[f, game], unit[f, game] = (low + high) / 2.0, half
            for i in range(indptr[game], indptr[game + 1]):
                if bends[i] and alone[i] != 1 << f:
                    x, y = (scores[i] - left[f, i] - middle[f, game]) / unit[f, game], left[f, i] / unit[f, game]
                    columns[0], columns[1], columns[2], columns[3] = x, bent(GENTLE * x), bent(STEEP * x), 1.0
                    add_powers(columns, y, weight[i] * n / total, position[i], sums[f, game])


@part(error_model="numpy")
def bent(x: float) -> Any:
    """From −1 to 1, steep at 0."""
    return x / np.sqrt(1.0 + x * x)


@part(inlined=False)
def add_powers(columns: Floats, y: float, weight: float, s: float, out: Floats) -> None:
    """Add the products of a pair, times powers of its size."""
    for a in range(N_CURVES):
        at, sums = 0, out[a]
        for b in range(-1, N_CURVES):
            amount = weight * columns[a] * (columns[b] if b >= 0 else y)
            for _ in range(2 * N_POWERS - 1 if b >= 0 else N_POWERS):
                sums[at] += amount
                amount *= s
                at += 1


@kernel(error_model="numpy")
def bend_games(
    first: int, stop: int, pairs: Pairs, wanted: Indices, curves: Curves, scores: Floats, out: tuple[Floats, Floats]
) -> None:
    """Subtract the curves of some games from what surrogates left of the scores (n_folds, n_pairs).

    `wanted` has a bit for each fold that wants to know it. The slopes of the curves are written, too, where there is
    room for them, and not (n_folds, 0).
    """
    indptr, _, position, _, _ = pairs
    middle, unit, height = curves
    left, slopes = out
    for game in range(first, stop):
        for f in range(len(left)):
            if unit[f, game] == 0.0:
                continue
            for i in range(indptr[game], indptr[game + 1]):
                if wanted[i] >> f & 1 == 0:
                    continue
                s, x = position[i], (scores[i] - left[f, i] - middle[f, game]) / unit[f, game]
                slope = at(height[f, game, 0], s)
                added = slope * x + at(height[f, game, 3], s)
                for a in range(1, 3):
                    steepness = GENTLE if a == 1 else STEEP
                    tall, cosine = at(height[f, game, a], s), 1.0 / np.sqrt(1.0 + steepness * steepness * x * x)
                    added += tall * steepness * x * cosine
                    slope += tall * steepness * (cosine * cosine * cosine)
                left[f, i] -= added
                if slopes.shape[1]:
                    slopes[f, i] = slope / unit[f, game]


@part()
def at(height: Floats, s: float) -> Any:
    """One of a curve's heights at a size."""
    return height[0] + height[1] * s + height[2] * (s * s)


def go_along_orders(
    part: tuple[int, int],
    sizes: tuple[Ints, Ints],
    has_curve: AnyArray,
    way: Way,
    orders: Orders,
    out: tuple[Floats, Floats],
) -> None:
    """Add the values of the bent parts of the curves of some games, means along orders and back, and their variances.

    `sizes` are where the players and where the sizes of each game begin, `out` values and variances, (n_folds, total
    size).
    """
    most = int(np.diff(sizes[0][part[0] : part[1] + 1]).max(initial=0))
    room = np.empty(most, dtype=np.int32), np.empty((3, most)), np.empty((2, most))
    walk_curves(*part, sizes, has_curve, way, orders, room, out)


@kernel(error_model="numpy")
def walk_curves(
    first: int,
    stop: int,
    sizes: tuple[Ints, Ints],
    has_curve: AnyArray,
    way: Way,
    orders: Orders,
    room: Room,
    out: tuple[Floats, Floats],
) -> None:
    """Go along orders game by game and fold by fold."""
    indptr, stratum_indptr = sizes
    at_sizes, effects = way
    n_orders, streams = orders
    values, variance = out
    gains = room[2]
    for game in range(first, stop):
        start, n = indptr[game], indptr[game + 1] - indptr[game]
        own, order = slice(stratum_indptr[game], stratum_indptr[game + 1]), room[0][:n]
        for f in range(len(values)):
            if not has_curve[f, game]:
                continue
            for i in range(n):
                order[i], gains[0, i], gains[1, i] = i, 0.0, 0.0
            for _ in range(n_orders[game]):
                for i in range(n - 1):
                    j = i + next_below(streams, game, n - i)
                    order[i], order[j] = order[j], order[i]
                walk(order, effects[f, start : start + n], at_sizes[:, f, own], room)
            for i in range(n):
                mean, square = gains[0, i] / n_orders[game], gains[1, i] / n_orders[game]
                values[f, start + i] += mean
                variance[f, start + i] = max(square - mean * mean, 0.0) / (n_orders[game] - 1)


@section(error_model="numpy")
def walk(order: Indices, effects: Floats, at_sizes: Floats, room: Room) -> None:
    """Add what each player gains along an order, and back."""
    effect, slope, risen, gains = room[1][0], room[1][1], room[1][2], room[2]
    x, s, gentle, steep, on_line = at_sizes[0], at_sizes[1], at_sizes[2], at_sizes[3], at_sizes[4]
    last = len(order) - 1
    a, b = 0.0, 0.0
    for j in range(last):
        a += effects[order[j], 0]
        b += effects[order[j], 1]
        effect[j], slope[j] = a, b
    for j in range(last):
        back = last - 1 - j  # those that are not there yet make up the sets of the way back, with the opposite sums
        a, b = x[j] + effect[j] + slope[j] * s[j], x[back] - effect[j] - slope[j] * s[back]
        risen[j] = gentle[j] * bent(GENTLE * a) + steep[j] * bent(STEEP * a) - on_line[j]
        risen[j] -= gentle[back] * bent(GENTLE * b) + steep[back] * bent(STEEP * b) - on_line[back]
    before, risen[last] = 0.0, 0.0
    for j in range(last + 1):
        gain, before = (risen[j] - before) / 2.0, risen[j]
        gains[0, order[j]] += gain
        gains[1, order[j]] += gain * gain
