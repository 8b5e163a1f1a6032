"""Surrogates of the games, and their residuals.

The surrogate of a game is `g(S) = Σ_i c_i P_i(s) + Σ_z (a_z + b_z s)·(1[z ∈ S] − k/n)`, where `s` runs from −1 to 1
with the size `k`. Its Shapley values are known: `a_z − mean(a)`; levels have none, slopes cancel by symmetry. It is
fitted by ridge regression with conjugate gradients, which never form a matrix: a step costs two passes over the
members of the subsets, or over those that are missing where these are fewer.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from localshapley.arrays import Floats, GraphArrays, Indices, Ints, Lists, SubsetArrays
from localshapley.kernels.digests import GOLDEN, mixed
from localshapley.kernels.jit import kernel, part, section

N_LEVELS = 4
NO_SIZE = -2.0  # a size on the scale from −1 to 1 before the first one

Pairs: TypeAlias = tuple[Ints, Ints, Floats, Floats, Floats]
"""`indptr`, `rows`, `position`, `weight`, `log_weight`: the rows that each game is larger than, by size.

The size of each on the scale from −1 to 1, its weight in the fit, and the logarithm of `1/C(n,k)`.
"""
Drawn: TypeAlias = tuple[Floats, Indices, int]
"""`log_inclusion`, `folds`, `before`: log probability of each row, the folds that drew it, rows before the round."""
Settings: TypeAlias = tuple[float, float, int, float]
"""`level_ridge`, `ridge`, `max_steps`, `precision` of a fit; the ridge of players is multiplied by their number."""
Sample: TypeAlias = tuple[int, Floats, Floats, int, Ints, Indices]
"""`n_players`, `position`, `weight`, `turn`, `indptr`, `places`: the subsets of a game, in the order of their sizes.

A weight of 0 leaves one out of the fit. The places of its players in the support; from `turn` on, where subsets have
more than half of the players, the places of those that are missing.
"""
Room: TypeAlias = tuple[Floats, Floats, Floats, Ints, Indices, Indices]
"""`vectors`, `lines`, `used`, `indptr`, `places`, `place`.

What is added to a game's surrogate, four vectors like it that conjugate gradients work in, and the surrogate that they
start from: the `c_i`, then `a_z` and `b_z` of each player. For each place in the support, the surrogate at one size,
and what goes back to the players (zero). Weights and places of the subsets in a fit; where each player of the support
stands in it.
"""


Fitted: TypeAlias = tuple[Floats, Floats]
"""`levels` (n_games, 4), the `c_i`, and `effects` (total size, 2), the `a_z` and `b_z`.

Where each fold has its own, both have a first axis for the folds.
"""
Begun: TypeAlias = tuple[Floats, Floats, Fitted]
"""`targets` (n_folds, n_pairs), `shift` (n_pairs), `start`.

Centred scores, what is added to them in the fits alone, and the surrogates that the fits start from, which the shift
takes off.
"""


def fit_surrogates(
    first: int,
    stop: int,
    graph: GraphArrays,
    subsets: Lists,
    pairs: Pairs,
    alone: Indices,
    begun: Begun,
    settings: Settings,
    n_places: int,
    out: tuple[Floats, Floats, Floats],
) -> None:
    """Fit the surrogates of the games from `first` up to `stop` for each fold.

    Pairs (game, row) are ordered by game and size; `n_places` is the most entries of the lists of a game's players, or
    of those that are missing, whichever are fewer in each subset. `alone` has the fold that alone drew a row, as a bit,
    or 0. Both arrays of `Fitted` and the values, (total size,) and aligned
    with the games' players, are written to `out`, each with a first axis for the folds.
    """
    n_pairs, sizes = np.diff(pairs[0][first : stop + 1]), np.diff(graph[0][first : stop + 1])
    longest, most_players = int(n_pairs.max(initial=0)), int(sizes.max(initial=0))
    vectors, lines = np.empty((6, N_LEVELS + 2 * most_players)), np.zeros((2, most_players))
    places = np.empty(n_places, dtype=np.int32), np.empty(len(graph[2]) - 1, dtype=np.int32)
    room = vectors, lines, np.empty(longest), np.empty(longest + 1, dtype=np.int64), *places
    fit_games(first, stop, graph, subsets, pairs, alone, begun, settings, room, out)


@kernel()
def fit_games(
    first: int,
    stop: int,
    graph: GraphArrays,
    subsets: Lists,
    pairs: Pairs,
    alone: Indices,
    begun: Begun,
    settings: Settings,
    room: Room,
    out: tuple[Floats, Floats, Floats],
) -> None:
    """Fit surrogates game by game and fold by fold."""
    indptr, players, _, _ = graph
    pair_indptr, pair_rows, position, weight, _ = pairs
    targets, shift, start = begun
    levels, effects, values = out
    vectors, lines, used, starts, places, place = room
    added, before, line = vectors[0], vectors[5], lines[0]
    for game in range(first, stop):
        a, b = pair_indptr[game], pair_indptr[game + 1]
        if a == b:
            continue
        support, rows = players[indptr[game] : indptr[game + 1]], pair_rows[a:b]
        turn = list_places(support, rows, subsets, place, starts, places)
        sample = len(support), position[a:b], used[: b - a], turn, starts, places
        load(start, game, indptr, before)
        for f in range(len(targets)):
            weigh(f, weight[a:b], alone[a:b], used)
            fit(sample, targets[f, a:b], shift[a:b], settings, room)
            for i in range(N_LEVELS + 2 * len(support)):
                added[i] += before[i]
            for i in range(N_LEVELS):
                levels[f, game, i] = added[i]
            mean = combine(len(support), added, 0.0, line)
            for i in range(len(support)):
                at, slot = N_LEVELS + 2 * i, indptr[game] + i
                effects[f, slot, 0], effects[f, slot, 1] = added[at], added[at + 1]
                values[f, slot] = line[i] - mean


@section()
def list_places(support: Indices, rows: Ints, subsets: Lists, place: Indices, indptr: Ints, places: Indices) -> int:
    """Write the places in the support of each row's players, or of those that are missing where these are fewer.

    Returns from which row on they are the missing ones: rows are in the order of their sizes, players ascending.
    """
    row_indptr, row_players = subsets
    n, turn, at = len(support), len(rows), 0
    for i in range(n):
        place[support[i]] = i
    indptr[0] = 0
    for i in range(len(rows)):
        start, stop = row_indptr[rows[i]], row_indptr[rows[i] + 1]
        if 2 * (stop - start) <= n:
            for j in range(start, stop):
                places[at] = place[row_players[j]]
                at += 1
        else:
            turn = min(turn, i)
            missing = 0
            for j in range(start, stop):
                here = place[row_players[j]]
                while missing < here:
                    places[at] = missing
                    at += 1
                    missing += 1
                missing = here + 1
            while missing < n:
                places[at] = missing
                at += 1
                missing += 1
        indptr[i + 1] = at
    return turn


@section()
def load(start: Fitted, game: int, indptr: Ints, out: Floats) -> None:
    """Write the surrogate of a game as one vector."""
    levels, effects = start
    for i in range(N_LEVELS):
        out[i] = levels[game, i]
    for slot in range(indptr[game], indptr[game + 1]):
        at = N_LEVELS + 2 * (slot - indptr[game])
        out[at], out[at + 1] = effects[slot, 0], effects[slot, 1]


@section()
def weigh(f: int, weight: Floats, alone: Indices, out: Floats) -> None:
    """Weights of the pairs in the fit for a fold, with mean 1: a row that fold `f` alone drew is unknown to it."""
    total, n = 0.0, 0
    for i in range(len(weight)):
        out[i] = 0.0 if alone[i] == 1 << f else weight[i]
        total += out[i]
        n += out[i] != 0.0
    mean = total / max(1, n)
    if mean > 0:
        for i in range(len(weight)):
            out[i] /= mean


@section()
def fit(sample: Sample, y: Floats, shift: Floats, settings: Settings, room: Room) -> None:
    """Ridge fit, to `y` and a shift, of what is to be added to the surrogate before.

    The steps are few: a fit that is stopped early is still a valid control variate.
    """
    n_players = sample[0]
    size = N_LEVELS + 2 * n_players
    level_ridge, ridge, max_steps, precision = settings
    player_ridge = ridge * n_players
    vectors = room[0]
    added, left, direction, turned, scale = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    before = vectors[5]
    for i in range(size):
        scale[i] = level_ridge if i < N_LEVELS else player_ridge
        added[i], left[i] = 0.0, -scale[i] * before[i]
    of_target = n_players >= 0  # a variable: a literal would have the part compiled for it alone
    lines = room[1]
    add_products(sample, y, shift, added, of_target, left, lines)
    add_squares(sample, turned, scale)
    rho = 0.0
    for i in range(size):
        direction[i] = left[i] / scale[i]
        rho += left[i] * direction[i]
    goal = precision * rho
    for _ in range(max_steps):
        if rho <= goal or rho <= 0.0:
            break
        for i in range(size):
            turned[i] = (level_ridge if i < N_LEVELS else player_ridge) * direction[i]
        add_products(sample, y, shift, direction, not of_target, turned, lines)
        curvature = 0.0
        for i in range(size):
            curvature += direction[i] * turned[i]
        if curvature <= 0.0:
            break
        length, rho_before, rho = rho / curvature, rho, 0.0
        for i in range(size):
            added[i] += length * direction[i]
            left[i] -= length * turned[i]
            rho += left[i] * left[i] / scale[i]
        share = rho / rho_before
        for i in range(size):
            direction[i] = left[i] / scale[i] + share * direction[i]


@part(inlined=False)
def add_products(
    sample: Sample, y: Floats, shift: Floats, surrogate: Floats, is_target: bool, out: Floats, lines: Floats
) -> None:
    """Add `XᵀW(y + shift)` to `out` if `is_target`, else `XᵀW·Xθ` for the surrogate `θ`."""
    n, position, weight, turn, indptr, places = sample
    line, gathered = lines[0], lines[1]
    s, mean, height, sign, total, listed = NO_SIZE, 0.0, 0.0, 0.0, 0.0, 0
    for i in range(len(position)):
        if weight[i] == 0.0:
            continue
        start, stop = indptr[i], indptr[i + 1]
        if position[i] != s:
            if s > NO_SIZE:
                spread(n, gathered, sign * total * listed / n, s, out)
                add_level(out, s, total)
            s, total, listed = position[i], 0.0, stop - start
            # What the players add up to is n·mean less what those add up to that are missing.
            sign = 1.0 if i < turn else -1.0
            if not is_target:
                mean, height = combine(n, surrogate, s, line), level(surrogate, s)
                height -= sign * listed * mean
        amount = 0.0
        if is_target:
            amount = y[i] + shift[i]
        else:
            for j in range(start, stop):
                amount += line[places[j]]
            amount = height + sign * amount
        amount *= weight[i]
        total += amount
        amount *= sign
        for j in range(start, stop):
            gathered[places[j]] += amount
    if s > NO_SIZE:
        spread(n, gathered, sign * total * listed / n, s, out)
        add_level(out, s, total)


@part()
def level(surrogate: Floats, s: float) -> Any:
    """A curve over sizes, in Legendre polynomials, which are orthogonal on evenly drawn sizes."""
    a, b, c, d = surrogate[0], surrogate[1], surrogate[2], surrogate[3]
    return a + b * s + c * 0.5 * (3.0 * s * s - 1.0) + d * 0.5 * s * (5.0 * s * s - 3.0)


@part()
def add_level(out: Floats, s: float, amount: float) -> None:
    """Adjoint of `level`."""
    out[0] += amount
    out[1] += amount * s
    out[2] += amount * 0.5 * (3.0 * s * s - 1.0)
    out[3] += amount * 0.5 * s * (5.0 * s * s - 3.0)


@part()
def combine(n: int, surrogate: Floats, s: float, line: Floats) -> Any:
    """At one size, a surrogate's players and slopes are one number per player; returns their mean."""
    total = 0.0
    for i in range(n):
        at = N_LEVELS + 2 * i
        value = surrogate[at] + s * surrogate[at + 1]
        line[i] = value
        total += value
    return total / n


@part()
def spread(n: int, gathered: Floats, common: float, s: float, out: Floats) -> None:
    """Adjoint of `combine`, less what all players have in common; empties `gathered`."""
    for i in range(n):
        at = N_LEVELS + 2 * i
        amount = gathered[i] - common
        out[at] += amount
        out[at + 1] += amount * s
        gathered[i] = 0.0


@section()
def add_squares(sample: Sample, unit: Floats, scale: Floats) -> None:
    """Add the diagonal of the normal equations, which is the preconditioner; all players have the same two entries."""
    n, position, weight, _, indptr, _ = sample
    of_player, of_slope = scale[N_LEVELS], scale[N_LEVELS + 1]
    s, total, i = NO_SIZE, 0.0, 0
    while i < len(position):
        s, total = position[i], 0.0
        share = (indptr[i + 1] - indptr[i]) / n
        while i < len(position) and position[i] == s:
            total += weight[i]
            i += 1
        of_player += total * share * (1 - share)
        of_slope += total * share * (1 - share) * (s * s)
        for p in range(N_LEVELS):
            unit[p] = 0.0
        add_level(unit, s, 1.0)
        for p in range(N_LEVELS):
            scale[p] += total * unit[p] * unit[p]
    for z in range(n):
        scale[N_LEVELS + 2 * z], scale[N_LEVELS + 2 * z + 1] = of_player, of_slope


def leave_surrogates(
    first: int,
    stop: int,
    graph: GraphArrays,
    subsets: Lists,
    pairs: Pairs,
    wanted: Indices,
    fitted: Fitted,
    targets: Floats,
) -> None:
    """Subtract the surrogates of the games from `first` up to `stop`, those of each fold from its targets.

    Both arrays of `fitted` have a first axis for the folds. `wanted` has a bit for each fold whose target is wanted.
    """
    most_players = int(np.diff(graph[0][first : stop + 1]).max(initial=0))
    room = np.empty(N_LEVELS + 2 * most_players), np.empty(most_players), np.empty(len(graph[2]) - 1)
    leave_games(first, stop, graph, subsets, pairs, wanted, fitted, targets, room)


@kernel()
def leave_games(
    first: int,
    stop: int,
    graph: GraphArrays,
    subsets: Lists,
    pairs: Pairs,
    wanted: Indices,
    fitted: Fitted,
    targets: Floats,
    room: tuple[Floats, Floats, Floats],
) -> None:
    """Subtract surrogates game by game and fold by fold."""
    indptr, players, _, _ = graph
    pair_indptr, rows, position, _, _ = pairs
    row_indptr, row_players = subsets
    levels, effects = fitted
    surrogate, line, of_player = room
    for game in range(first, stop):
        support = players[indptr[game] : indptr[game + 1]]
        for f in range(len(targets)):
            load((levels[f], effects[f]), game, indptr, surrogate)
            mean, height, s = 0.0, 0.0, NO_SIZE
            for i in range(pair_indptr[game], pair_indptr[game + 1]):
                if wanted[i] >> f & 1 == 0:
                    continue
                if position[i] != s:
                    s = position[i]
                    mean, height = combine(len(support), surrogate, s, line), level(surrogate, s)
                    for j in range(len(support)):
                        of_player[support[j]] = line[j]
                start, stop_at = row_indptr[rows[i]], row_indptr[rows[i] + 1]
                score = height - (stop_at - start) * mean
                for j in range(start, stop_at):
                    score += of_player[row_players[j]]
                targets[f, i] -= score


def correct_values(
    first: int,
    stop: int,
    graph: GraphArrays,
    subsets: Lists,
    pairs: Pairs,
    wanted: Indices,
    errors: Floats,
    drawn: Drawn,
    values: Floats,
    residual: Floats,
) -> None:
    """Correct values of surrogates by their residuals on each fold's draws, and keep the residuals of what it drew.

    `wanted` has a bit for each fold whose error is there; `log_inclusion` is the logarithm of the chance of a row that
    only one fold drew. `values` (n_folds, total size) is aligned with the games' players.
    """
    inside = np.empty(len(graph[2]) - 1)
    correct_games(first, stop, graph, subsets, pairs, wanted, errors, drawn, inside, (values, residual))


@kernel()
def correct_games(
    first: int,
    stop: int,
    graph: GraphArrays,
    subsets: Lists,
    pairs: Pairs,
    wanted: Indices,
    errors: Floats,
    drawn: Drawn,
    inside: Floats,
    out: tuple[Floats, Floats],
) -> None:
    """Correct values game by game and fold by fold."""
    indptr, players, _, _ = graph
    pair_indptr, rows, _, _, log_weight = pairs
    row_indptr, row_players = subsets
    log_inclusion, folds, before = drawn
    values, residual = out
    for game in range(first, stop):
        n = indptr[game + 1] - indptr[game]
        for f in range(len(errors)):
            common = 0.0
            for i in range(indptr[game], indptr[game + 1]):
                inside[players[i]] = values[f, i]
            for i in range(pair_indptr[game], pair_indptr[game + 1]):
                if wanted[i] >> f & 1 == 0:
                    continue
                row, error = rows[i], errors[f, i]
                start, stop_at = row_indptr[row], row_indptr[row + 1]
                k = stop_at - start
                new = row >= before
                # 1/π for what fold f alone drew, 1 for what it knows
                log_coefficient = -log_inclusion[row] if new and folds[row] == 1 << f else 0.0
                amount = error * np.exp(log_weight[i] + log_coefficient)
                common -= amount / (n - k)
                amount *= 1 / k + 1 / (n - k)
                for j in range(start, stop_at):
                    inside[row_players[j]] += amount
                if new and folds[row] > 0 and folds[row] >> f & 1:
                    residual[i] = error
            for i in range(indptr[game], indptr[game + 1]):
                values[f, i] = inside[players[i]] + common


@kernel()
def add_variances(
    graph: GraphArrays,
    subsets: SubsetArrays,
    residual: Floats,
    log_weight: Floats,
    drawn: Drawn,
    by_player: Floats,
    by_game: Floats,
    touched: Floats,
) -> None:
    """Add `a = (1−π)/π² · y_S(z)²` of every sampled row, and `a²`, to the players' sums.

    Pairs (row, game) are ordered by row, games larger than the row only. `y_S(z)` adds up the games that hold
    both the row and the player. What a game's players have in common goes to `by_game`. There is room for one number
    per player, all zero.
    """
    indptr, players, _, _ = graph
    row_indptr, row_players, pair_indptr, games = subsets
    log_inclusion, folds, before = drawn
    for row in range(before, len(pair_indptr) - 1):
        if folds[row] <= 0:
            continue
        a, b = pair_indptr[row], pair_indptr[row + 1]
        k = row_indptr[row + 1] - row_indptr[row]
        rest = -np.expm1(min(log_inclusion[row], 0.0))  # 1 − π
        member = 0.0
        for i in range(a, b):
            member += residual[i] * np.exp(log_weight[i] - log_inclusion[row]) / k
        gain = rest * member * member
        if b == a + 1:
            game = games[a]
            outside = member * k / (indptr[game + 1] - indptr[game] - k)
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
        first, last, n_entries = len(touched), -1, 0
        for i in range(a, b):
            n = indptr[games[i] + 1] - indptr[games[i]]
            scaled = residual[i] * np.exp(log_weight[i] - log_inclusion[row]) / (n - k)
            for j in range(indptr[games[i]], indptr[games[i] + 1]):
                touched[players[j]] += scaled
            n_entries += n
            if players[indptr[games[i]]] < first:  # `min` would be one more function to compile
                first = players[indptr[games[i]]]
            if players[indptr[games[i] + 1] - 1] > last:
                last = players[indptr[games[i] + 1] - 1]
        for j in range(row_indptr[row], row_indptr[row + 1]):
            touched[row_players[j]] = 0.0
        if last - first < n_entries:  # side by side is quicker; those in no game add 0
            for z in range(first, last + 1):
                other = rest * touched[z] * touched[z]
                by_player[0, z] += other
                by_player[1, z] += other * other
                touched[z] = 0.0
            continue
        for i in range(a, b):
            for j in range(indptr[games[i]], indptr[games[i] + 1]):
                z = players[j]
                other = rest * touched[z] * touched[z]
                by_player[0, z] += other
                by_player[1, z] += other * other
                touched[z] = 0.0


@kernel()
def add_spread(
    graph: GraphArrays,
    subsets: SubsetArrays,
    residual: Floats,
    log_weight: Floats,
    drawn: Drawn,
    by_player: Floats,
    by_game: Floats,
    signs: Floats,
) -> None:
    """Add `√(1−π)/π · y_S(·)` of every sampled row, under random signs of its own for each column.

    Signs are independent from row to row, so that products of two players' columns have their covariance as mean. What
    a game's players have in common goes to `by_game`. Pairs are ordered as in `add_variances`. There is room for
    the signs of a row.
    """
    indptr = graph[0]
    row_indptr, row_players, pair_indptr, games = subsets
    log_inclusion, folds, before = drawn
    n_columns = by_player.shape[1]
    for row in range(before, len(pair_indptr) - 1):
        if folds[row] <= 0:
            continue
        bits = mixed(np.uint64(row) * GOLDEN)
        for column in range(n_columns):
            signs[column] = 1.0 if bits >> np.uint64(column) & np.uint64(1) else -1.0
        k = row_indptr[row + 1] - row_indptr[row]
        root = np.sqrt(-np.expm1(min(log_inclusion[row], 0.0)))
        of_member = 0.0
        for i in range(pair_indptr[row], pair_indptr[row + 1]):
            game = games[i]
            scaled = root * residual[i] * np.exp(log_weight[i] - log_inclusion[row])
            outside = scaled / (indptr[game + 1] - indptr[game] - k)
            of_member += scaled / k + outside
            for column in range(n_columns):
                by_game[game, column] -= outside * signs[column]
        for j in range(row_indptr[row], row_indptr[row + 1]):
            z = row_players[j]
            for column in range(n_columns):
                by_player[z, column] += of_member * signs[column]
