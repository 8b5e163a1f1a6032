"""Surrogates of the games, and what they leave over.

The surrogate of a game is `g(S) = Σ_i c_i s^i + Σ_z (a_z + b_z s)·(1[z ∈ S] − k/n)`, where `s` runs from −1 to 1 with
the size `k`. Its Shapley values are known: `a_z − mean(a)`; levels have none, slopes cancel by symmetry. It is
fitted by ridge regression with conjugate gradients, which never form a matrix: a step costs two passes over the
members of the subsets.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from localshapley.arrays import Floats, Indices, Ints

N_LEVELS = 4


@njit(cache=True)
def predict(
    rows: Ints,
    row_indptr: Ints,
    row_players: Indices,
    n: int,
    position: Floats,
    levels: Floats,
    main: Floats,
    slope: Floats,
    sums: Floats,
    out: Floats,
) -> None:
    """Values of a surrogate at subsets; `main` and `slope` are indexed by player, `sums` are their totals."""
    for i in range(len(rows)):
        a, b = row_indptr[rows[i]], row_indptr[rows[i] + 1]
        s = position[i]
        total_main, total_slope = 0.0, 0.0
        for j in range(a, b):
            z = row_players[j]
            total_main += main[z]
            total_slope += slope[z]
        share = (b - a) / n
        level = levels[0] + s * (levels[1] + s * (levels[2] + s * levels[3]))
        out[i] = level + total_main - share * sums[0] + s * (total_slope - share * sums[1])


@njit(cache=True)
def transpose(
    rows: Ints,
    row_indptr: Ints,
    row_players: Indices,
    n: int,
    position: Floats,
    residual: Floats,
    levels: Floats,
    main: Floats,
    slope: Floats,
    support: Indices,
) -> None:
    """Adjoint of `predict`: weighted residuals gathered into levels, players and slopes."""
    levels[:] = 0.0
    for z in support:
        main[z] = 0.0
        slope[z] = 0.0
    shared_main, shared_slope = 0.0, 0.0
    for i in range(len(rows)):
        r, s = residual[i], position[i]
        if r == 0.0:
            continue
        a, b = row_indptr[rows[i]], row_indptr[rows[i] + 1]
        power = r
        for p in range(N_LEVELS):
            levels[p] += power
            power *= s
        for j in range(a, b):
            z = row_players[j]
            main[z] += r
            slope[z] += r * s
        share = (b - a) / n
        shared_main += r * share
        shared_slope += r * s * share
    for z in support:
        main[z] -= shared_main
        slope[z] -= shared_slope


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
    levels: Floats,
    main: Floats,
    slope: Floats,
    work: Floats,
) -> None:
    """Ridge fit of a surrogate to `y` with row weights (0 leaves a row out); results in `levels`, `main`, `slope`.

    `work` (6, n_players) is scratch. The step count is bounded: a fit that is stopped early is still a valid
    control variate.
    """
    n, m = len(support), len(rows)
    r_main, r_slope, d_main, d_slope, q_main, q_slope = work[0], work[1], work[2], work[3], work[4], work[5]
    r_level, d_level, q_level = np.empty(N_LEVELS), np.empty(N_LEVELS), np.empty(N_LEVELS)
    fitted = np.empty(m)
    # Diagonal of the normal equations, the preconditioner.
    scale_level = np.full(N_LEVELS, level_ridge)
    scale_main, scale_slope = player_ridge, player_ridge
    for i in range(m):
        if weight[i] == 0.0:
            continue
        share = (row_indptr[rows[i] + 1] - row_indptr[rows[i]]) / n
        spread = weight[i] * share * (1 - share)
        s2 = position[i] * position[i]
        scale_main += spread
        scale_slope += spread * s2
        power = weight[i]
        for p in range(N_LEVELS):
            scale_level[p] += power
            power *= s2
    levels[:] = 0.0
    for z in support:
        main[z] = 0.0
        slope[z] = 0.0
    transpose(rows, row_indptr, row_players, n, position, weight * y, r_level, r_main, r_slope, support)
    rho = 0.0
    for p in range(N_LEVELS):
        d_level[p] = r_level[p] / scale_level[p]
        rho += r_level[p] * d_level[p]
    for z in support:
        d_main[z] = r_main[z] / scale_main
        d_slope[z] = r_slope[z] / scale_slope
        rho += r_main[z] * d_main[z] + r_slope[z] * d_slope[z]
    goal = 1e-6 * rho
    sums = np.empty(2)
    for _ in range(max_steps):
        if rho <= goal or rho <= 0.0:
            break
        sums[:] = 0.0
        for z in support:
            sums[0] += d_main[z]
            sums[1] += d_slope[z]
        predict(rows, row_indptr, row_players, n, position, d_level, d_main, d_slope, sums, fitted)
        fitted *= weight
        transpose(rows, row_indptr, row_players, n, position, fitted, q_level, q_main, q_slope, support)
        curvature = 0.0
        for p in range(N_LEVELS):
            q_level[p] += level_ridge * d_level[p]
            curvature += d_level[p] * q_level[p]
        for z in support:
            q_main[z] += player_ridge * d_main[z]
            q_slope[z] += player_ridge * d_slope[z]
            curvature += d_main[z] * q_main[z] + d_slope[z] * q_slope[z]
        if curvature <= 0.0:
            break
        step = rho / curvature
        new_rho = 0.0
        for p in range(N_LEVELS):
            levels[p] += step * d_level[p]
            r_level[p] -= step * q_level[p]
            new_rho += r_level[p] * r_level[p] / scale_level[p]
        for z in support:
            main[z] += step * d_main[z]
            slope[z] += step * d_slope[z]
            r_main[z] -= step * q_main[z]
            r_slope[z] -= step * q_slope[z]
            new_rho += r_main[z] * r_main[z] / scale_main + r_slope[z] * r_slope[z] / scale_slope
        turn = new_rho / rho
        rho = new_rho
        for p in range(N_LEVELS):
            d_level[p] = r_level[p] / scale_level[p] + turn * d_level[p]
        for z in support:
            d_main[z] = r_main[z] / scale_main + turn * d_main[z]
            d_slope[z] = r_slope[z] / scale_slope + turn * d_slope[z]


@njit(cache=True)
def estimate_games(
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
    values: Floats,
    residual: Floats,
) -> None:
    """Values of every game by each fold of a round, and residuals of rows in the folds that drew them.

    Pairs (game, row) are ordered by game. `targets` (n_folds, n_pairs) are centred scores, `log_weight` is the
    logarithm of `1/C(n,k)`, `log_inclusion` that of the chance of a row that only one fold drew. `values`
    (n_folds, total size) is aligned with `players`.
    """
    main, slope = np.zeros(n_players), np.zeros(n_players)
    inside = np.zeros(n_players)
    work = np.zeros((6, n_players))
    levels, sums = np.zeros(N_LEVELS), np.zeros(2)
    for game in range(len(indptr) - 1):
        a, b = pair_indptr[game], pair_indptr[game + 1]
        support = players[indptr[game] : indptr[game + 1]]
        n, m = len(support), b - a
        if m == 0:
            continue
        rows, at = pair_row[a:b], position[a:b]
        error = np.empty(m)
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
                level_ridge, ridge * n, max_steps, levels, main, slope, work,
            )  # fmt: skip
            sums[:] = 0.0
            for z in support:
                sums[0] += main[z]
                sums[1] += slope[z]
            predict(rows, row_indptr, row_players, n, at, levels, main, slope, sums, error)
            common = 0.0
            for z in support:
                inside[z] = main[z] - sums[0] / n
            for i in range(m):
                row = rows[i]
                error[i] = y[i] - error[i]
                new = row >= before
                # 1/π for what fold f alone drew, 1 for what it knows
                log_coefficient = -log_inclusion[row] if new and folds[row] == 1 << f else 0.0
                amount = error[i] * np.exp(log_weight[a + i] + log_coefficient)
                k = row_indptr[row + 1] - row_indptr[row]
                common -= amount / (n - k)
                amount *= 1 / k + 1 / (n - k)
                for j in range(row_indptr[row], row_indptr[row + 1]):
                    inside[row_players[j]] += amount
                if new and folds[row] > 0 and folds[row] >> f & 1:
                    residual[a + i] = error[i]
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
            other = rest * (member * k / (n - k)) ** 2
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
