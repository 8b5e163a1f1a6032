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


class HashedGame:
    """Games whose scores come from a hash of the coalition: rough, 0/1 or smooth, for any number of players.

    It scores arrays of coalitions, as `localshapley.shapley` takes them for speed.
    """

    name = "hashed game"

    def __init__(self, kind: str, n_players: int, n_tests: int, seed: int = 0) -> None:
        rng = np.random.default_rng([seed, n_players])
        self.kind = kind
        self.words = rng.integers(2**63, size=n_players, dtype=np.uint64)
        self.test_words = rng.integers(2**63, size=n_tests, dtype=np.uint64)
        self.strength = rng.normal(size=(n_tests, n_players))
        self.trained: list[bytes] = []

    def evaluate(self, coalitions) -> np.ndarray:
        out = np.empty(len(coalitions.tests))
        for c in range(len(coalitions)):
            members, tests = coalitions.coalition(c), coalitions.tests_of(c)
            self.trained.append(members.tobytes())
            x = self.test_words[tests] + self.words[members].sum(dtype=np.uint64)
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
            noise = (x >> np.uint64(11)) * 2.0**-53
            if self.kind == "rough":
                scores = noise
            elif self.kind == "0/1":
                scores = (noise < 1 / (1 + np.exp(-self.strength[tests][:, members].sum(axis=1)))).astype(float)
            else:
                scores = 1 / (1 + np.exp(-self.strength[tests][:, members].sum(axis=1))) + 0.05 * noise
            out[coalitions.test_indptr[c] : coalitions.test_indptr[c + 1]] = scores
        return out


def v_of(game) -> Utility:
    """A game of arrays as a function of one coalition and test row."""
    from localshapley.coalitions import Coalitions

    return lambda subset, test: float(game.evaluate(Coalitions.from_lists([subset], [[test]]))[0])


def ridge(X: np.ndarray, y: np.ndarray, weight: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    """Weighted ridge regression by the normal equations."""
    return np.linalg.solve((X * weight[:, None]).T @ X + np.diag(penalty), (X * weight[:, None]).T @ y)


def surrogate_columns(subsets: Sequence[Sequence[int]], support: Sequence[int], position: np.ndarray) -> np.ndarray:
    """Columns of a game's surrogate: four Legendre levels, players, and players times the size's position."""
    n = len(support)
    levels = np.polynomial.legendre.legvander(position, 3)
    players = np.array([[(z in s) - len(s) / n for z in support] for s in subsets])
    return np.hstack([levels, players, players * position[:, None]])


def nearness(
    subsets: Sequence[Sequence[int]],
    support: Sequence[int],
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    penalty: np.ndarray,
    tuning,
) -> tuple[np.ndarray, dict[int, float]]:
    """Scores and Shapley values of a process over subsets, fitted to those with a weight together with the columns."""
    n = len(support)
    effects = ridge(X, y, weight, penalty)[4:].reshape(2, n)
    size = np.sqrt(effects[0] ** 2 + effects[1] ** 2 / 3)
    rate = dict(zip(support, tuning.nearness * (0.1 + 0.9 * size / size.mean()), strict=True))

    def kernel(one: Iterable[int], two: Iterable[int]) -> float:
        return tuning.nearness_scale * np.exp(-sum(rate[z] for z in set(one) ^ set(two)))

    known = np.flatnonzero(weight)
    gram = np.array([[kernel(subsets[i], subsets[j]) for j in known] for i in known])
    gram += np.diag(1 / weight[known]) + (X[known] / penalty) @ X[known].T
    alpha = np.linalg.solve(gram, y[known])

    def g(subset: Iterable[int]) -> float:
        return sum(a * kernel(subset, subsets[j]) for a, j in zip(alpha, known, strict=True))

    return np.array([g(subset) for subset in subsets]), shapley_of_one(support, g)


def fold_estimate(drawn, fold: int, tuning) -> np.ndarray:
    """Values by one fold of a round as it was drawn, from the formulas, with the fitted surrogates as a matrix."""
    rows, strata, before = drawn.collection, drawn.strata, drawn.before
    graph, n_folds = rows.graph, drawn.counts.shape[1]
    subsets = [rows.players[rows.indptr[r] : rows.indptr[r + 1]].tolist() for r in range(rows.n_rows)]
    scores = [
        dict(zip(rows.games[a:b].tolist(), rows.scores[a:b], strict=True))
        for a, b in zip(rows.pair_indptr, rows.pair_indptr[1:], strict=False)
    ]
    bits = rows.folds[: rows.n_rows]
    alone = [r >= before and bits[r] == 1 << fold for r in range(rows.n_rows)]

    def stratum(game: int, k: int) -> int:
        return int(strata.indptr[game]) + k - 1

    def chance(r: int, share: Callable[[int], float]) -> float:
        missed = 1.0
        for game in scores[r]:
            if len(subsets[r]) < graph.sizes[game]:
                missed *= 1 - share(stratum(game, len(subsets[r])))
        return 1 - missed

    def drawn_share(s: int) -> float:
        return 1.0 if drawn.expected[s] == drawn.unknown[s] else drawn.expected[s] / drawn.unknown[s]

    def own_share(s: int) -> float:
        others = drawn.counts[s].sum() - drawn.counts[s, fold]
        return (
            1.0 if drawn.expected[s] == drawn.unknown[s] else drawn.expected[s] / n_folds / (drawn.unknown[s] - others)
        )

    # Every pair of a row and a larger game: position, centred score, weight in the fit.
    pairs: dict[int, list[tuple[int, float, float, float, float]]] = {g: [] for g in range(graph.n_games)}
    for game in range(graph.n_games):
        n = int(graph.sizes[game])
        full = next(r for r in range(rows.n_rows) if subsets[r] == graph.game(game).tolist())
        gain = scores[full][game] - scores[0][game]
        inner = [stratum(game, k) for k in range(1, n)]
        typical = max(
            -np.log(drawn.expected[s]) - 0.5 * np.log(strata.k[s] * (n - strata.k[s]))
            for s in inner
            if drawn.expected[s]
        )
        for r in range(rows.n_rows):
            k = len(subsets[r])
            if game not in scores[r] or not 0 < k < n:
                continue
            s = 4 / np.pi * np.arcsin(np.sqrt(k / n)) - 1
            pi = 1.0 if r >= before and bits[r] < 0 else chance(r, drawn_share)
            in_fit = max(1 - pi, tuning.least_weight) / (pi * comb(n, k) * np.sqrt(k * (n - k)))
            y = scores[r][game] - scores[0][game] - gain * (s + 1) / 2
            pairs[game].append((r, s, y, in_fit * np.exp(-typical), gain))

    known = [(r, s, y, w, g) for game in pairs for r, s, y, w, g in pairs[game] if not alone[r]]
    columns = np.array([[*np.polynomial.legendre.legvander(s, 3)[0], *(g * np.polynomial.legendre.legvander(s, 3)[0])]
                        for _, s, _, _, g in known])  # fmt: skip
    pooled = ridge(
        columns, np.array([p[2] for p in known]), np.array([p[3] for p in known]), np.full(8, tuning.pooled_ridge)
    )
    values = np.zeros(len(graph.players))
    for game in range(graph.n_games):
        n, start = int(graph.sizes[game]), int(graph.indptr[game])
        support = graph.game(game).tolist()
        if not pairs[game]:
            full = next(r for r in range(rows.n_rows) if subsets[r] == support)
            values[start : start + n] = (scores[full][game] - scores[0][game]) / max(n, 1)
            continue
        r_of = [p[0] for p in pairs[game]]
        position = np.array([p[1] for p in pairs[game]])
        gain = pairs[game][0][4]
        base = np.polynomial.legendre.legvander(position, 3)
        y = np.array([p[2] for p in pairs[game]]) - np.hstack([base, gain * base]) @ pooled
        in_fit = np.array([0.0 if alone[r] else p[3] for r, p in zip(r_of, pairs[game], strict=True)])
        in_fit /= in_fit[in_fit > 0].mean()
        X = surrogate_columns([subsets[r] for r in r_of], support, position)
        penalty = np.concatenate([np.full(4, tuning.level_ridge), np.full(2 * n, tuning.player_ridge * n)])
        near, of_near = np.zeros(len(y)), dict.fromkeys(support, 0.0)
        left_to_chance = any(drawn.expected[s] < drawn.unknown[s] for s in (stratum(game, k) for k in range(1, n)))
        if left_to_chance and graph.n_games <= tuning.few_games and len(y) >= tuning.nearness_draws * n and n > 2:
            near, of_near = nearness([subsets[r] for r in r_of], support, X, y, in_fit, penalty, tuning)
        theta = ridge(X, y - near, in_fit, penalty)
        players = theta[4 : 4 + n]
        error = y - near - X @ theta
        for i, z in enumerate(support):
            total = gain / n + players[i] - players.mean() + of_near[z] - sum(of_near.values()) / n
            for r, e in zip(r_of, error, strict=True):
                k = len(subsets[r])
                coefficient = 1 / chance(r, own_share) if alone[r] else 1.0
                total += weight(n, k, z in subsets[r]) * e * coefficient
            values[start + i] = total
    return values


def draw_round(
    supports: Sequence[Iterable[int]],
    counts: dict[tuple[int, int], list[int]],
    whole: set[tuple[int, int]],
    known: set[tuple[int, ...]],
    rng: np.random.Generator,
) -> dict[tuple[int, ...], int]:
    """A round of `counts[game, k]` unknown subsets for each fold; returns fold bits by subset, −1 for the sure."""
    out: dict[tuple[int, ...], int] = {}
    for game, support in enumerate(supports):
        for k in range(1, len(list(support))):
            unknown = [s for s in combinations(sorted(support), k) if s not in known]
            if (game, k) in whole:
                out.update(dict.fromkeys(unknown, -1))
                continue
            folds = [f for f, count in enumerate(counts.get((game, k), [])) for _ in range(count)]
            for place, fold in zip(rng.permutation(len(unknown)), folds, strict=False):
                before = out.get(unknown[place], 0)
                out[unknown[place]] = -1 if before < 0 else before | 1 << fold
    return out


def draw_pivots(
    supports: Sequence[Iterable[int]], draws: int, rng: np.random.Generator
) -> dict[tuple[int, ...], list[int]]:
    """The paper's draws from every support, without those whose pivot is another; hits of either half by subset."""
    hits: dict[tuple[int, ...], list[int]] = {}
    for t, support in enumerate(supports):
        for draw in range(draws):
            order = rng.permutation(sorted(support))
            subset = tuple(sorted(int(z) for z in order[: rng.integers(len(order) + 1)]))
            if pivot(supports, subset) == t:
                hits.setdefault(subset, [0, 0])[draw % 2] += 1
    return hits


def add_weighted(
    supports: Sequence[Iterable[int]],
    rows: Sequence[tuple[tuple[int, ...], dict[int, float], list[int]]],
    n_players: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Sums by half, and sums of squares, of what each draw says of each player.

    A row is a subset, `C(n,k)` times a score for each of its games, and its hits in either half of the draws.
    """
    sums, squares = np.zeros((2, n_players)), np.zeros(n_players)
    for subset, scaled, hits in rows:
        for z in range(n_players):
            said = 0.0
            for game, amount in scaled.items():
                n = len(list(supports[game]))
                if z in supports[game]:
                    said += amount * comb(n, len(subset)) * weight(n, len(subset), z in subset)
            sums[:, z] += np.array(hits) * said
            squares[z] += sum(hits) * said**2
    return sums, squares


def arrived(game: Iterable[int], order: Sequence[int], first: int, stop: int) -> list[int]:
    """The players of a game that arrive, in an order of its players, at one of the places `first` to `stop - 1`."""
    return sorted(z for z in game if first <= list(order).index(z) < stop)


def taught(supports: Sequence[Iterable[int]], v: Utility, members: Iterable[int]) -> float:
    """`U(A) = Σ_t v_t(A ∩ N(t))`."""
    return sum(v(tuple(sorted(set(members) & {int(z) for z in support})), t) for t, support in enumerate(supports))


def climb(
    supports: Sequence[Sequence[Iterable[int]]],
    v: Utility,
    candidates: Iterable[int],
    classes: Sequence[int],
    n: int,
) -> list[tuple[int, float]]:
    """Players and their gains, each step from nothing known, until nothing more is gained.

    Supports are given at several sizes, the largest ones first: a size decides as long as it gains anything and a
    support holds less than one of the players taken. Gains are those of the last size.
    """
    members, steps, sizes = list[int](), list[tuple[int, float]](), list(supports)
    mean = [sum(len(list(support)) for support in one) / len(one) for one in sizes]
    while len(steps) < n:
        while len(sizes) > 1 and len(members) * mean[-len(sizes)] >= len(classes):
            sizes.pop(0)
        z = best_of(sizes[0], v, candidates, classes, members)
        if z is None and len(sizes) == 1:
            break
        if z is None:
            sizes.pop(0)
            continue
        steps.append((z, taught(sizes[-1], v, [*members, z]) - taught(sizes[-1], v, members)))
        members.append(z)
    return steps


def best_of(
    supports: Sequence[Iterable[int]],
    v: Utility,
    candidates: Iterable[int],
    classes: Sequence[int],
    members: Sequence[int],
) -> int | None:
    """The player that adds most, of the class that lacks most; the next class where nothing is gained.

    A class of which there is no player yet gets one in any case. Of equal gains the player that is worth most alone is
    taken, then the first one.
    """
    by_class = {c: [int(z) for z in candidates if classes[z] == c] for c in sorted({classes[z] for z in candidates})}
    so_far = {c: len(set(players) & set(members)) for c, players in by_class.items()}
    now = taught(supports, v, members)
    for c in sorted(by_class, key=lambda c: (so_far[c] + 0.5) / len(by_class[c])):
        gains = {z: taught(supports, v, [*members, z]) - now for z in by_class[c] if z not in members}
        best = max(gains.values(), default=0.0)
        if gains and (best > 1e-9 or (so_far[c] == 0 and len(by_class) > 1)):
            equal = [z for z in gains if gains[z] >= best - 1e-9]
            worth = {z: round(taught(supports, v, [z]), 9) for z in equal}
            return max(equal, key=lambda z: (worth[z], -z))
    return None
