"""Surrogates of the games, and what they leave over.

The surrogate of a game is `g(S) = Σ_i c_i P_i(s) + Σ_z (a_z + b_z s)·(1[z ∈ S] − k/n)`, where `s` runs from −1 to 1
with the size `k`. Its Shapley values are known: `a_z − mean(a)`; levels have none, slopes cancel by symmetry. It is
fitted by ridge regression with conjugate gradients, which never form a matrix: a step costs two passes over the
members of the subsets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from localshapley.arrays import Floats, Indices, Ints
from localshapley.kernels.digests import GOLDEN, mixed

N_LEVELS = 4


@njit(cache=True)
def level(levels: Floats, s: float) -> Any:
    """A curve over sizes, in Legendre polynomials: on evenly drawn sizes they do not disturb each other."""
    return levels[0] + levels[1] * s + levels[2] * 0.5 * (3.0 * s * s - 1.0) + levels[3] * 0.5 * s * (5.0 * s * s - 3.0)


@njit(cache=True)
def add_level(levels: Floats, s: float, amount: float) -> None:
    """Adjoint of `level`."""
    levels[0] += amount
    levels[1] += amount * s
    levels[2] += amount * 0.5 * (3.0 * s * s - 1.0)
    levels[3] += amount * 0.5 * s * (5.0 * s * s - 3.0)


@njit(cache=True)
def combine(support: Indices, players: Floats, s: float, n: int, line: Floats) -> Any:
    """At one size, a surrogate's players and slopes are one number a player; returns their mean."""
    total = 0.0
    for z in support:
        line[z] = players[z, 0] + s * players[z, 1]
        total += line[z]
    return total / n


@njit(cache=True)
def spread(support: Indices, gathered: Floats, common: float, s: float, players: Floats) -> None:
    """Adjoint of `combine`, less what all players have in common; empties `gathered`."""
    for z in support:
        amount = gathered[z] - common
        players[z, 0] += amount
        players[z, 1] += amount * s
        gathered[z] = 0.0


@njit(cache=True)
def add_normal(
    rows: Ints,
    row_indptr: Ints,
    row_players: Indices,
    support: Indices,
    position: Floats,
    weight: Floats,
    y: Floats,
    levels: Floats,
    players: Floats,
    is_target: bool,
    out_levels: Floats,
    out_players: Floats,
    line: Floats,
    gathered: Floats,
) -> None:
    """Add `XᵀW·Xθ` (or `XᵀW·y` for a target) to `out`; rows are in the order of their sizes."""
    n = len(support)
    s, mean, common, height = -2.0, 0.0, 0.0, 0.0
    for i in range(len(rows)):
        if weight[i] == 0.0:
            continue
        if position[i] != s:
            if s > -2.0:
                spread(support, gathered, common, s, out_players)
            s, common = position[i], 0.0
            if not is_target:
                mean, height = combine(support, players, s, n, line), level(levels, s)
        members = row_players[row_indptr[rows[i]] : row_indptr[rows[i] + 1]]
        k = len(members)
        if is_target:
            amount = weight[i] * y[i]
        else:
            amount = height - k * mean
            for z in members:
                amount += line[z]
            amount *= weight[i]
        for z in members:
            gathered[z] += amount
        common += amount * k / n
        add_level(out_levels, s, amount)
    if s > -2.0:
        spread(support, gathered, common, s, out_players)


@njit(cache=True)
def fit(
    rows: Ints,
    row_indptr: Ints,
    row_players: Indices,
    support: Indices,
    position: Floats,
    y: Floats,
    weight: Floats,
    level_ridge: float,
    player_ridge: float,
    max_steps: int,
    precision: float,
    levels: Floats,
    players: Floats,
    work: Floats,
) -> None:
    """Ridge fit of a surrogate to `y` with row weights (0 leaves a row out); results in `levels` and `players`.

    `work` (4, n_players, 2) is scratch, its last part zero. The steps are few: a fit that is stopped early is still a
    valid control variate.
    """
    n, m = len(support), len(rows)
    r, d, q, line, gathered = work[0], work[1], work[2], work[3, :, 0], work[3, :, 1]
    r_level, d_level, q_level = np.zeros(N_LEVELS), np.zeros(N_LEVELS), np.zeros(N_LEVELS)
    levels[:] = 0.0
    for z in support:
        players[z, :] = 0.0
        r[z, :] = 0.0
    add_normal(
        rows, row_indptr, row_players, support, position, weight, y, levels, players, True, r_level, r, line, gathered
    )
    # The diagonal of the normal equations is the preconditioner.
    scale_level = np.full(N_LEVELS, level_ridge)
    scale = np.full(2, player_ridge)
    unit = np.empty(N_LEVELS)
    for i in range(m):
        share = (row_indptr[rows[i] + 1] - row_indptr[rows[i]]) / n
        scale[0] += weight[i] * share * (1 - share)
        scale[1] += weight[i] * share * (1 - share) * (position[i] * position[i])
        unit[:] = 0.0
        add_level(unit, position[i], 1.0)
        for p in range(N_LEVELS):
            scale_level[p] += weight[i] * unit[p] * unit[p]
    rho = 0.0
    for p in range(N_LEVELS):
        d_level[p] = r_level[p] / scale_level[p]
        rho += r_level[p] * d_level[p]
    for z in support:
        for c in range(2):
            d[z, c] = r[z, c] / scale[c]
            rho += r[z, c] * d[z, c]
    goal = precision * rho
    for _ in range(max_steps):
        if rho <= goal or rho <= 0.0:
            break
        q_level[:] = level_ridge * d_level
        for z in support:
            for c in range(2):
                q[z, c] = player_ridge * d[z, c]
        add_normal(
            rows, row_indptr, row_players, support, position, weight, y, d_level, d, False, q_level, q, line, gathered
        )
        curvature = 0.0
        for p in range(N_LEVELS):
            curvature += d_level[p] * q_level[p]
        for z in support:
            for c in range(2):
                curvature += d[z, c] * q[z, c]
        if curvature <= 0.0:
            break
        step = rho / curvature
        new_rho = 0.0
        for p in range(N_LEVELS):
            levels[p] += step * d_level[p]
            r_level[p] -= step * q_level[p]
            new_rho += r_level[p] * r_level[p] / scale_level[p]
        for z in support:
            for c in range(2):
                players[z, c] += step * d[z, c]
                r[z, c] -= step * q[z, c]
                new_rho += r[z, c] * r[z, c] / scale[c]
        turn = new_rho / rho
        rho = new_rho
        for p in range(N_LEVELS):
            d_level[p] = r_level[p] / scale_level[p] + turn * d_level[p]
        for z in support:
            for c in range(2):
                d[z, c] = r[z, c] / scale[c] + turn * d[z, c]


@njit(cache=True, nogil=True)
def estimate_games(
    first: int,
    stop: int,
    indptr: Ints,
    players: Indices,
    n_players: int,
    pair_indptr: Ints,
    pair_row: Ints,
    targets: Floats,
    position: Floats,
    weight: Floats,
    log_weight: Floats,
    log_inclusion: Floats,
    folds: Indices,
    before: int,
    n_folds: int,
    row_indptr: Ints,
    row_players: Indices,
    level_ridge: float,
    ridge: float,
    max_steps: int,
    precision: float,
    values: Floats,
    residual: Floats,
) -> None:
    """Values of the games from `first` up to `stop` by each fold of a round, and residuals of what the folds drew.

    Pairs (game, row) are ordered by game and size. `targets` (n_folds, n_pairs) are centred scores, `log_weight` is the
    logarithm of `1/C(n,k)`, `log_inclusion` that of the chance of a row that only one fold drew. `values`
    (n_folds, total size) is aligned with `players`.
    """
    fitted, work = np.zeros((n_players, 2)), np.zeros((4, n_players, 2))
    inside = np.zeros(n_players)
    levels, height = np.zeros(N_LEVELS), 0.0
    for game in range(first, stop):
        a, b = pair_indptr[game], pair_indptr[game + 1]
        support = players[indptr[game] : indptr[game + 1]]
        n, m = len(support), b - a
        if m == 0:
            continue
        rows, at = pair_row[a:b], position[a:b]
        used = np.empty(m)
        for f in range(n_folds):
            y = targets[f, a:b]
            for i in range(m):
                row = rows[i]
                # A row is known to fold f unless fold f alone drew it in this round.
                alone = row >= before and folds[row] == 1 << f
                used[i] = 0.0 if alone else weight[a + i]
            mean = used.sum() / max(1, np.count_nonzero(used))
            if mean > 0:
                used /= mean
            fit(
                rows, row_indptr, row_players, support, at, y, used,
                level_ridge, ridge * n, max_steps, precision, levels, fitted, work,
            )  # fmt: skip
            line = work[3, :, 0]
            mean = combine(support, fitted, 0.0, n, line)
            for z in support:
                inside[z] = line[z] - mean
            common, s = 0.0, -2.0
            for i in range(m):
                row = rows[i]
                members = row_players[row_indptr[row] : row_indptr[row + 1]]
                k = len(members)
                if at[i] != s:
                    s = at[i]
                    mean = combine(support, fitted, s, n, line)
                    height = level(levels, s)
                error = y[i] - height + k * mean
                for z in members:
                    error -= line[z]
                new = row >= before
                # 1/π for what fold f alone drew, 1 for what it knows
                log_coefficient = -log_inclusion[row] if new and folds[row] == 1 << f else 0.0
                amount = error * np.exp(log_weight[a + i] + log_coefficient)
                common -= amount / (n - k)
                amount *= 1 / k + 1 / (n - k)
                for z in members:
                    inside[z] += amount
                if new and folds[row] > 0 and folds[row] >> f & 1:
                    residual[a + i] = error
            for i in range(n):
                values[f, indptr[game] + i] = inside[support[i]] + common


@njit(cache=True)
def add_variances(
    indptr: Ints,
    players: Indices,
    row_indptr: Ints,
    row_players: Indices,
    row_pair_indptr: Ints,
    row_games: Indices,
    residual: Floats,
    log_weight: Floats,
    log_inclusion: Floats,
    first: int,
    folds: Indices,
    by_player: Floats,
    by_game: Floats,
) -> None:
    """Add `a = (1−π)/π² · y_S(z)²` of every sampled row, and `a²`, to the players' sums.

    Pairs (row, game) are ordered by row, games larger than the row only. `y_S(z)` adds up the games that hold
    both the row and the player. What a game's players have in common goes to `by_game`.
    """
    touched = np.zeros(by_player.shape[1])
    for row in range(first, len(row_pair_indptr) - 1):
        if folds[row] <= 0:
            continue
        a, b = row_pair_indptr[row], row_pair_indptr[row + 1]
        k = row_indptr[row + 1] - row_indptr[row]
        rest = -np.expm1(min(log_inclusion[row], 0.0))  # 1 − π
        member = 0.0
        for i in range(a, b):
            member += residual[i] * np.exp(log_weight[i] - log_inclusion[row]) / k
        gain = rest * member * member
        if b == a + 1:
            game = row_games[a]
            n = indptr[game + 1] - indptr[game]
            outside = member * k / (n - k)
            other = rest * (outside * outside)
            by_game[0, game] += other
            by_game[1, game] += other * other
            for j in range(row_indptr[row], row_indptr[row + 1]):
                by_player[0, row_players[j]] += gain - other
                by_player[1, row_players[j]] += gain * gain - other * other
            continue
        for j in range(row_indptr[row], row_indptr[row + 1]):
            by_player[0, row_players[j]] += gain
            by_player[1, row_players[j]] += gain * gain
        # Players outside the row: sum over the games that hold them.
        for i in range(a, b):
            game = row_games[i]
            n = indptr[game + 1] - indptr[game]
            scaled = residual[i] * np.exp(log_weight[i] - log_inclusion[row]) / (n - k)
            for j in range(indptr[game], indptr[game + 1]):
                touched[players[j]] += scaled
        for j in range(row_indptr[row], row_indptr[row + 1]):
            touched[row_players[j]] = 0.0
        for i in range(a, b):
            for j in range(indptr[row_games[i]], indptr[row_games[i] + 1]):
                z = players[j]
                other = rest * touched[z] * touched[z]
                by_player[0, z] += other
                by_player[1, z] += other * other
                touched[z] = 0.0


@njit(cache=True)
def add_spread(
    indptr: Ints,
    row_indptr: Ints,
    row_players: Indices,
    row_pair_indptr: Ints,
    row_games: Indices,
    residual: Floats,
    log_weight: Floats,
    log_inclusion: Floats,
    first: int,
    folds: Indices,
    by_player: Floats,
    by_game: Floats,
) -> None:
    """Add `√(1−π)/π · y_S(·)` of every sampled row, under random signs of its own for each column.

    Signs are independent from row to row, so that products of two players' columns have their covariance as mean. What
    a game's players have in common goes to `by_game`. Pairs are ordered as in `add_variances`.
    """
    n_columns = by_player.shape[1]
    signs = np.empty(n_columns)
    for row in range(first, len(row_pair_indptr) - 1):
        if folds[row] <= 0:
            continue
        bits = mixed(np.uint64(row) * GOLDEN)
        for column in range(n_columns):
            signs[column] = 1.0 if bits >> np.uint64(column) & np.uint64(1) else -1.0
        k = row_indptr[row + 1] - row_indptr[row]
        root = np.sqrt(-np.expm1(min(log_inclusion[row], 0.0)))
        of_member = 0.0
        for i in range(row_pair_indptr[row], row_pair_indptr[row + 1]):
            game = row_games[i]
            scaled = root * residual[i] * np.exp(log_weight[i] - log_inclusion[row])
            outside = scaled / (indptr[game + 1] - indptr[game] - k)
            of_member += scaled / k + outside
            for column in range(n_columns):
                by_game[game, column] -= outside * signs[column]
        for j in range(row_indptr[row], row_indptr[row + 1]):
            z = row_players[j]
            for column in range(n_columns):
                by_player[z, column] += of_member * signs[column]
