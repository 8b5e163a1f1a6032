"""A surrogate that takes subsets which differ in few players to have similar scores.

A Gaussian process over subsets, with the kernel `exp(−Σ λ_z)` over the players `z` that only one of two subsets has,
beside the curve over sizes, players and slopes of `kernels/surrogate.py`. Players that matter more have a larger `λ_z`.
It learns what players do together, which sums over players cannot. Its Shapley values are known: as a function of one
subset the kernel is a product over players, whose multilinear extension is a polynomial that a quadrature integrates
exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

from localshapley.arrays import AnyArray, Floats, Indices, Ints, chosen_lists
from localshapley.runtime.threads import in_threads, unthreaded_blas
from localshapley.sampling.round_sample import RoundSample
from localshapley.sampling.tuning import Tuning


def subtract_nearness(
    drawn: RoundSample,
    pairs: tuple[Ints, Ints, Floats, Floats, Floats],
    alone: Indices,
    targets: Floats,
    tuning: Tuning,
) -> tuple[Floats, AnyArray]:
    """Subtract a process from the targets of each game that has enough draws for it.

    Returns its values by fold, and which games have one.

    Parameters
    ----------
    drawn : RoundSample
    pairs : tuple of arrays
        As `kernels.surrogate.Pairs` has them.
    alone : array of shape (n_pairs,)
        The fold that alone drew a pair's row, as a bit, or 0: the fold's process must not know it.
    targets : array of shape (n_folds, n_pairs)
        Scores, which are changed in place.
    tuning : Tuning
    """
    graph, (indptr, rows, position, weight, _) = drawn.collection.graph, pairs
    values = np.zeros((len(targets), len(graph.players)))

    def fit(game: int) -> None:
        here = slice(indptr[game], indptr[game + 1])
        known = ProcessTargets.of(_members(drawn, game, rows[here]), position[here], weight[here])
        for f, y in enumerate(targets[:, here]):
            seen = np.flatnonzero(alone[here] != 1 << f)
            some = seen[np.linspace(0, len(seen) - 1, min(len(seen), tuning.nearness_rows)).astype(np.int64)]
            scores, values[f, graph.indptr[game] : graph.indptr[game + 1]] = known.fit(y, some, tuning)
            y -= scores

    has_process = _is_worthwhile(drawn, np.diff(indptr), tuning)
    games = np.flatnonzero(has_process).tolist()
    if games:
        # One thread for each product: the same sums, whatever the number of cores.
        with unthreaded_blas():
            in_threads(fit, games)
    return values, has_process


def _is_worthwhile(drawn: RoundSample, n_pairs: Ints, tuning: Tuning) -> AnyArray:
    """Games that are left to chance, with enough draws for a process and not too many; none where there are many games.

    With many games each has few draws, and their fits would take longer than most trainings.
    """
    graph = drawn.collection.graph
    if graph.n_games > tuning.few_games:
        return np.zeros(graph.n_games, dtype=bool)
    low, high = tuning.nearness_draws * graph.sizes, tuning.nearness_most
    return (
        drawn.has_chance
        & (graph.sizes > 2)
        & (graph.sizes <= tuning.nearness_players)
        & (n_pairs >= low)
        & (n_pairs <= high)
    )


def _members(drawn: RoundSample, game: int, rows: Ints) -> Floats:
    """Which players of a game its rows have."""
    collection = drawn.collection
    support = collection.graph.game(game)
    indptr, players = chosen_lists(collection.indptr, collection.players, rows)
    members = np.zeros((len(rows), len(support)))
    members[np.repeat(np.arange(len(rows)), np.diff(indptr)), np.searchsorted(support, players)] = 1.0
    return members


@dataclass(frozen=True)
class ProcessTargets:
    """The subsets of a game.

    Attributes
    ----------
    members : array of shape (n_rows, n_players)
        1 for the players of each subset, else 0.
    columns : array of shape (n_rows, 4 + 2 n_players)
        A cubic in the size, players and slopes.
    weight : array of shape (n_rows,)
        Of each subset in a fit.
    """

    members: Floats
    columns: Floats
    weight: Floats

    @classmethod
    def of(cls, members: Floats, position: Floats, weight: Floats) -> ProcessTargets:
        """Subsets with their sizes on the scale from −1 to 1."""
        from localshapley.kernels.surrogate import N_LEVELS

        centred = members - members.mean(axis=1, keepdims=True)
        levels = legendre.legvander(position, N_LEVELS - 1)
        return cls(members, np.hstack([levels, centred, centred * position[:, None]]), weight)

    def fit(self, y: Floats, rows: Ints, tuning: Tuning) -> tuple[Floats, Floats]:
        """The process fitted to some rows: its share of the scores of all rows, and its centred Shapley values."""
        n = self.members.shape[1]
        n_levels = self.columns.shape[1] - 2 * n
        penalty = np.repeat([tuning.level_ridge, tuning.player_ridge * n], [n_levels, 2 * n])
        members, columns, weight = self.members[rows], self.columns[rows], self.weight[rows]
        weight = weight / weight.mean()
        weighted = columns * weight[:, None]
        inverse = np.linalg.inv(weighted.T @ columns + np.diag(penalty))
        additive = inverse @ (weighted.T @ y[rows])
        rate = min(tuning.nearness, tuning.nearness_sum / n) * relevance(additive[n_levels:].reshape(2, n))
        near = likeness(self.members, members, rate, tuning.nearness_scale)
        alpha = solve(near[rows], y[rows], weight, weighted, inverse, tuning)
        return near @ alpha, centred_values(members, tuning.nearness_scale * alpha, rate)


def relevance(additive: Floats) -> Floats:
    """How much players matter, with mean 1, by their effects and slopes in an additive fit."""
    size = np.sqrt(additive[0] ** 2 + additive[1] ** 2 / 3)
    mean = float(size.mean())
    return 0.1 + 0.9 * size / mean if mean > 0 else np.ones_like(size)


def likeness(one: Floats, two: Floats, rate: Floats, scale: float) -> Floats:
    """The kernel of pairs of subsets: by far the largest array of a fit, which is gone through twice.

    Its logarithm, `−Σ λ_z` over the players that only one of two subsets has, is one product of matrices.
    """
    scaled = one * rate
    left = np.column_stack([2.0 * scaled, -scaled.sum(axis=1), np.ones(len(one))])
    right = np.column_stack([two, np.ones(len(two)), np.log(scale) - two @ rate])
    out: Floats = left @ right.T
    return np.exp(out, out=out)


def solve(near: Floats, y: Floats, weight: Floats, weighted: Floats, inverse: Floats, tuning: Tuning) -> Floats:
    """`(near + 1/weight + columns·columnsᵀ/penalty)⁻¹ y` by conjugate gradients, preconditioned by all but `near`."""

    def without_near(x: Floats) -> Floats:
        return weight * x - weighted @ (inverse @ (weighted.T @ x))

    # With P the inverse of all but `near`, and x = P·u, the system is u + near·P·u = y.
    x, left = np.zeros_like(y), y.copy()
    turned = without_near(left)
    direction, rho = left.copy(), float(left @ turned)
    of_direction = turned
    goal = tuning.precision * rho
    for _ in range(tuning.nearness_steps):
        if rho <= goal or rho <= 0:
            break
        moved = direction + near @ of_direction
        length = rho / float(of_direction @ moved)
        x += length * of_direction
        left -= length * moved
        turned = without_near(left)
        share, rho = float(left @ turned) / rho, float(left @ turned)
        direction = left + share * direction
        of_direction = turned + share * of_direction
    return x


def centred_values(members: Floats, alpha: Floats, rate: Floats) -> Floats:
    """Shapley values of `Σ_j α_j·exp(−distance to subset j)`, less their mean.

    With each player present at chance `q`, the kernel's mean is a product over players: `c + (1−c)·q` for those of the
    subset, `1 − (1−c)·q` for the others, with `c = exp(−λ)`. A value is the integral of its slope in the player.
    """
    n = len(rate)
    node, share = legendre.leggauss((n + 1) // 2)
    q, share = (node + 1) / 2, share / 2
    change = -np.expm1(-rate)[:, None]
    inside, outside = 1 - change * (1 - q), 1 - change * q
    products = np.exp(members @ (np.log(inside) - np.log(outside)) + np.log(outside).sum(axis=0))
    products *= alpha[:, None] * share
    of_members = members.T @ products
    values = (of_members * (change / inside) - (products.sum(axis=0) - of_members) * (change / outside)).sum(axis=1)
    centred: Floats = values - values.mean()
    return centred
