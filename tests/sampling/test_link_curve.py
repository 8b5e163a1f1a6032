"""Curves over the scores of surrogates: their Shapley values, what they are fitted to, and what they leave."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import localshapley as ls
import naive
from localshapley.kernels.link_curves import bend_games
from localshapley.sampling import fit_pairs, link_fits
from localshapley.sampling.crossfit import CrossFit
from localshapley.sampling.link_fits import SLOPES, LinkCurves, no_curves, straightened
from localshapley.sampling.tuning import TUNED
from naive_curves import Curve

EAGER = replace(TUNED, curve_draws=2, curve_least=20)


class Votes:
    """Each test row is won if the players of its support that are there have a majority of the weights."""

    name = "votes"

    def __init__(self, n_players: int, n_tests: int) -> None:
        self.weights = np.random.default_rng(0).normal(size=(n_tests, n_players))

    def evaluate(self, coalitions: ls.models.Coalitions) -> np.ndarray:
        out = []
        for c in range(len(coalitions)):
            sums = self.weights[:, coalitions.coalition(c)].sum(axis=1)
            out.append((sums > 0)[coalitions.tests_of(c)])
        return np.concatenate(out).astype(float)


def a_curve(n=5, seed=0, straight=False):
    """A curve, with the surrogate of a game of `n` players: effects, and what it is at each size without them."""
    rng = np.random.default_rng(seed)
    height = rng.normal(size=(4, 3))
    if straight:
        height[1:3] = 0.0
    return (
        Curve(0.4, 0.7, height),
        rng.normal(size=(n, 2)) / 2,
        rng.normal(size=n - 1),
        np.linspace(-0.8, 0.8, n - 1),
    )


def as_arrays(curves):
    """The curves of a game, one for each fold."""
    return tuple(np.array([[getattr(c, name)] for c in curves]) for name in ("middle", "unit", "height"))


def by_definition(curve, effects, middle, position):
    """Shapley values of the curve, of which the empty and the full set have none."""
    n = len(effects)
    centred = effects - effects.mean(axis=0)

    def score(members):
        k = len(members)
        if k in (0, n):
            return 0.0
        s, (effect, slope) = position[k - 1], centred[list(members)].sum(axis=0)
        return float(curve.at(middle[k - 1] + effect + s * slope, s))

    return np.array(list(naive.shapley_of_one(range(n), score).values()))


def along_orders(curves, effects, middle, position, n_orders, seed):
    """Values of the curves of a game, by fold, and their variances.

    A fold's surrogate is `middle` at each size, without its players.
    """
    n_folds, n = effects.shape[:2]
    sizes, n_sizes, n_pairs = np.array([n]), np.array([0, n - 1]), -(-n_orders * (n - 1) // 2)
    graph = SimpleNamespace(indptr=np.array([0, n]), sizes=sizes, players=np.arange(n))
    strata = SimpleNamespace(game=np.zeros(n - 1, dtype=int), position=position, indptr=n_sizes)
    collection = SimpleNamespace(graph=graph, streams=np.array([seed], dtype=np.uint64))
    drawn = SimpleNamespace(collection=collection, strata=strata, before=0)
    fitted, pairs = (np.zeros((n_folds, 1, 4)), effects), SimpleNamespace(pairs=(np.array([0, n_pairs]),))
    made = LinkCurves(drawn, pairs, np.zeros(n_pairs), middle, fitted, replace(TUNED, least_orders=2), [(0, 1)])
    return made.values(as_arrays(curves))


def values_of(curve, effects, middle, position, n_orders, seed):
    """Values of one fold's curve, and their variances."""
    values, variance = along_orders([curve], effects[None], middle[None], position, n_orders, seed)
    return values[0], variance[0]


@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_the_definition_within_their_errors(seed):
    given = a_curve(seed=seed)
    values, variance = values_of(*given, 4000, seed)
    off = (values - by_definition(*given)) / np.sqrt(variance)
    assert np.abs(off).max() < 4
    assert 0 < np.sqrt(variance).max() < 0.05
    assert values.sum() == pytest.approx(0, abs=1e-12)


def test_values_are_those_of_plain_walks_along_the_same_orders():
    n_folds, n, n_orders = 2, 6, 9
    curves = [a_curve(n, seed)[0] for seed in range(n_folds)]
    effects, middle = (np.stack([a_curve(n, seed)[i] for seed in range(n_folds)]) for i in (1, 2))
    position = a_curve(n)[3]
    values, variance = along_orders(curves, effects, middle, position, n_orders, 5)
    numbers = random_numbers(5)
    for f, curve in enumerate(curves):
        order, orders = list(range(n)), []
        for _ in range(n_orders):
            for i in range(n - 1):
                j = i + int(next(numbers) * (n - i))
                order[i], order[j] = order[j], order[i]
            orders.append(order.copy())
        expected = curve.along_orders(effects[f], middle[f], position, orders)
        np.testing.assert_allclose(values[f], expected[0], atol=1e-12)
        np.testing.assert_allclose(variance[f], expected[1], atol=1e-12)


def random_numbers(seed):
    """From 0 to 1, as orders are made from: splitmix64, from a start that is mixed twice."""
    word = 2**64 - 1

    def mixed(x):
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & word
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB & word
        return x ^ (x >> 31)

    state = mixed(mixed(seed))
    while True:
        state = state + 0x9E3779B97F4A7C15 & word
        yield (mixed(state) >> 11) * 2.0**-53


def test_values_of_a_straight_line_need_no_chance():
    given = a_curve(straight=True)
    values, variance = values_of(*given, 2, 0)
    np.testing.assert_allclose(values, by_definition(*given), atol=1e-12)
    assert not variance.any()


def some_pairs(seed=0):
    """Pairs of three games, as kernels take them, with two scores for each."""
    rng = np.random.default_rng(seed)
    pairs = np.array([0, 8, 12, 20]), np.arange(20), rng.uniform(-1, 1, 20), rng.random(20), np.zeros(20)
    return pairs, rng.random(20), rng.random(20)


def test_curves_add_what_they_say_and_have_that_slope():
    pairs, first, second = some_pairs()
    curves = [[a_curve(seed=10 * f + game)[0] for game in range(3)] for f in range(2)]
    middle, unit, height = (
        np.array([[getattr(c, name) for c in row] for row in curves]) for name in ("middle", "unit", "height")
    )
    unit[1, 0] = 0.0  # the second fold has no curve there
    wanted = np.where(np.arange(20) % 5, 3, 1).astype(np.int32)
    sums, scores = np.stack([first, second]), np.random.default_rng(2).random(20)
    left, slopes = scores - sums, np.zeros((2, 20))
    after = left.copy()
    for part in ((0, 2), (2, 3)):
        bend_games(*part, pairs, wanted, (middle, unit, height), scores, (after, slopes))
    for f, i in np.ndindex(2, 20):
        game = int(np.searchsorted(pairs[0], i, side="right")) - 1
        if wanted[i] >> f & 1 == 0 or unit[f, game] == 0:
            assert after[f, i] == left[f, i]
            assert slopes[f, i] == 0
            continue
        curve, s, step, score = curves[f][game], pairs[2][i], 1e-6, sums[f, i]
        assert left[f, i] - after[f, i] == pytest.approx(curve.at(score, s), abs=1e-12)
        found = (curve.at(score + step, s) - curve.at(score - step, s)) / (2 * step)
        assert slopes[f, i] == pytest.approx(found, abs=1e-6)
    without = left.copy()
    bend_games(0, 3, pairs, wanted, (middle, unit, height), scores, (without, np.empty((2, 0))))
    assert (without == after).all()


def test_straightened_scores_are_to_sums_what_scores_are_to_the_curve():
    pairs, sums, scores = some_pairs()
    indptr, rng = pairs[0], np.random.default_rng(1)
    curves = no_curves(3)
    curves[0][0, ::2], curves[1][0, ::2] = 0.5, 0.5
    curves[2][0, ::2] = rng.normal(size=(2, 4, 3)) / 60
    shift, weight = straightened(curves, pairs, sums, scores, [(0, 3)])
    assert not shift[8:12].any()  # a game without a curve
    assert (weight[8:12] == pairs[3][8:12]).all()
    for game in (0, 2):
        here, curve = slice(*indptr[game : game + 2]), Curve(0.5, 0.5, curves[2][0, game])
        position, step = pairs[2][here], 1e-5
        slope = 1 + (curve.at(sums[here] + step, position) - curve.at(sums[here] - step, position)) / (2 * step)
        assert (slope > SLOPES[0]).all()
        assert (slope < SLOPES[1]).all()
        # if the sums were larger by the step, the curve would leave
        left = scores[here] - sums[here] - step - curve.at(sums[here] + step, position)
        straight = (scores - sums + shift)[here] - step
        np.testing.assert_allclose(left, slope * straight, atol=1e-8)
        np.testing.assert_allclose(pairs[3][here] * left**2, weight[here] * straight**2, atol=1e-8)


def test_curves_that_are_too_flat_or_too_steep_do_not_stretch_scores():
    pairs = np.array([0, 3]), np.arange(3), np.zeros(3), np.ones(3), np.zeros(3)
    steep = np.zeros((4, 3))
    for height, slope in ((-0.99, SLOPES[0]), (9.0, SLOPES[1])):
        steep[0, 0] = height
        shift, weight = straightened(as_arrays([Curve(0.0, 1.0, steep)]), pairs, np.zeros(3), np.ones(3), [(0, 1)])
        np.testing.assert_allclose(weight, slope**2)
        np.testing.assert_allclose(shift, 1 / slope - 1)


def watched_fits(monkeypatch):
    """What each round of the runs to come is fitted to: its draws, and what the round before learnt."""
    fits = []

    class Watched(CrossFit):
        def __init__(self, drawn, tuning, before):
            fits.append((drawn, before))
            super().__init__(drawn, tuning, before)

    monkeypatch.setattr("localshapley.sampling.combined_rounds.CrossFit", Watched)
    return fits


def test_sums_that_know_of_the_curve_leave_less(monkeypatch):
    fits = watched_fits(monkeypatch)
    method = ls.methods.Sample(tuning=EAGER)
    ls.shapley(SUPPORTS, Votes(24, 10), 24, method=method, budget=6000)
    drawn, before = fits[-1]
    assert before.curves[1].all()
    straight = replace(before, curves=no_curves(len(SUPPORTS)))
    known, unknown = (CrossFit(drawn, EAGER, learnt).variance().sum() for learnt in (before, straight))
    assert known < 0.9 * unknown


def bent_rounds(monkeypatch, supports, game, n_players, tuning=EAGER, **how):
    """A run, and what each of its rounds gave to the curves: the arguments, and what was left before and after."""
    seen = []
    subtract = LinkCurves.subtract

    def watched(self, left, games):
        before = left.copy()
        found = subtract(self, left, games)
        seen.append((self, games, before, left.copy()))
        return found

    monkeypatch.setattr(link_fits.LinkCurves, "subtract", watched)
    method = ls.methods.Sample(tuning=tuning)
    return ls.shapley(supports, game, n_players, method=method, **how), seen


SUPPORTS = [np.sort(np.random.default_rng(t).choice(24, 14, replace=False)) for t in range(10)]


def test_a_curve_takes_most_of_what_sums_leave_of_votes(monkeypatch):
    _, seen = bent_rounds(monkeypatch, SUPPORTS, Votes(24, 10), 24, budget=8000)
    _, _, before, after = seen[-1]
    assert after.var() < 0.6 * before.var()


def test_the_curve_of_a_fold_does_not_know_what_the_fold_alone_drew(monkeypatch):
    _, seen = bent_rounds(monkeypatch, SUPPORTS, Votes(24, 10), 24, budget=4000)
    self, games, before, _ = seen[-1]
    chosen = games & self._has_enough()
    assert chosen.all()
    for f in range(2):
        hidden = self.ordered.alone == 1 << f
        assert 0.05 < hidden.mean() < 0.6
        other = replace(self, scores=np.where(hidden, 7.0, self.scores))
        changed = before + other.scores - self.scores
        for one, two in zip(self.fit(before, chosen), other.fit(changed, chosen), strict=True):
            np.testing.assert_allclose(one[f], two[f], atol=1e-10)
            assert np.abs(one[1 - f] - two[1 - f]).max() > 1e-3


def test_curves_are_ridge_fits_that_lean_towards_what_they_have_in_common(monkeypatch):
    _, seen = bent_rounds(monkeypatch, SUPPORTS, Votes(24, 10), 24, budget=4000)
    self, games, left, _ = seen[-1]
    games = games & (np.arange(10) != 3)  # one without
    middle, unit, height = replace(self, parts=[(game, game + 1) for game in range(10)]).fit(left, games)
    assert not unit[:, 3].any()
    indptr, _, position, weight, _ = self.ordered.pairs
    for f in range(len(left)):
        known = self.ordered.bends & (self.ordered.alone != 1 << f)
        samples = []
        for game in np.flatnonzero(games):
            here = np.arange(*indptr[game : game + 2])
            here = here[known[here]]
            scores = self.scores[here]
            curve = Curve((scores.min() + scores.max()) / 2, (scores.max() - scores.min()) / 2, height[f, game])
            assert (middle[f, game], unit[f, game]) == (curve.middle, curve.unit)
            columns = curve.columns(scores - left[f, here], position[here])
            weights = weight[here] / weight[here].mean()
            samples.append((curve, (columns * weights) @ columns.T, (columns * weights) @ left[f, here] / curve.unit))
        penalty = self.tuning.curve_ridge * np.eye(12)
        common = np.linalg.solve(sum(gram for _, gram, _ in samples) + penalty, sum(y for *_, y in samples))
        for curve, gram, y in samples:
            expected = np.linalg.solve(gram + penalty, y + penalty @ common)
            np.testing.assert_allclose(curve.height.ravel(), curve.unit * expected, rtol=1e-8, atol=1e-10)


def test_the_sums_of_a_fold_do_not_know_what_the_fold_alone_drew(monkeypatch):
    fits, curves = watched_fits(monkeypatch), []
    ls.shapley(SUPPORTS, Votes(24, 10), 24, method=ls.methods.Sample(tuning=EAGER), budget=4000)
    drawn, before = fits[-1]
    assert before.curves[1].all()
    subtract = LinkCurves.subtract

    def watched(self, left, games):
        curves.append(self)
        return subtract(self, left, games)

    monkeypatch.setattr(link_fits.LinkCurves, "subtract", watched)
    CrossFit(drawn, EAGER, before)
    collection = drawn.collection
    row = np.repeat(np.arange(collection.n_rows), np.diff(collection.pair_indptr[: collection.n_rows + 1]))
    for fold in range(2):
        own = (row >= drawn.before) & (collection.folds[row] == 1 << fold)
        assert 0.05 < own.mean() < 0.6
        kept = collection.scores[: len(row)][own]
        collection.scores[: len(row)][own] = 0.3
        CrossFit(drawn, EAGER, before)
        collection.scores[: len(row)][own] = kept
        for first, second in zip(curves[0].fitted, curves[-1].fitted, strict=True):
            np.testing.assert_allclose(first[fold], second[fold], atol=1e-12)
            assert np.abs(first[1 - fold] - second[1 - fold]).max() > 1e-3


def test_values_are_unbiased_and_their_errors_right(monkeypatch):
    supports = [support[:9] for support in SUPPORTS]
    game, method = Votes(24, 10), ls.methods.Sample(tuning=replace(EAGER, curve_draws=1, curve_least=6))
    known = []
    monkeypatch.setattr(
        "localshapley.sampling.crossfit.straightened",
        lambda curves, *given: known.append(curves[1]) or straightened(curves, *given),
    )
    exact = ls.shapley(supports, game, 24, method="exact")
    runs = [ls.shapley(supports, game, 24, method=method, budget=700, seed=seed, progress=False) for seed in range(100)]
    values, stderr = (np.array([getattr(v, name) for v in runs]) for name in ("values", "stderr"))
    assert min(np.count_nonzero(unit) for unit in known[1::2]) > 7  # the second round of each run
    moving = values.std(axis=0) > 1e-9
    off = (values - exact.values)[:, moving]
    assert np.abs(off.mean(axis=0) / (off.std(axis=0, ddof=1) / 10)).max() < 4
    assert 0.8 < np.mean((off / stderr[:, moving]) ** 2) < 1.25


def test_a_game_that_is_known_has_no_curve(monkeypatch):
    supports = [support[:5] for support in SUPPORTS]
    found, seen = bent_rounds(monkeypatch, supports, Votes(24, 10), 24, tol=1e-9)
    exact = ls.shapley(supports, Votes(24, 10), 24, method="exact")
    np.testing.assert_allclose(found.values, exact.values, atol=1e-10)
    assert not found.stderr.any()
    assert not seen[-1][0]._has_enough().any()


def test_folds_have_errors_of_their_own():
    curve, effects, middle, position = a_curve(n=6)
    n_folds, exact = 3, by_definition(curve, effects, middle, position)
    same = [curve] * n_folds, np.stack([effects] * n_folds), np.stack([middle] * n_folds), position
    found = np.array([along_orders(*same, 8, seed) for seed in range(600)])
    off, variance = found[:, 0] - exact, found[:, 1].mean(axis=0)
    np.testing.assert_allclose(off.var(axis=0), variance, rtol=0.3)
    assert np.abs(off.mean(axis=0) / np.sqrt(variance / 600)).max() < 4
    for z in range(6):
        between = np.corrcoef(off[:, :, z].T)[np.triu_indices(n_folds, 1)]
        assert np.abs(between).max() < 4 / np.sqrt(600)


LARGE = [np.sort(np.random.default_rng(t).choice(80, 60, replace=False)) for t in range(6)]


def test_what_is_not_computed_makes_no_difference(monkeypatch):
    fits = watched_fits(monkeypatch)
    few = replace(EAGER, curve_most=50)
    _, seen = bent_rounds(monkeypatch, LARGE, Votes(80, 6), 80, few, budget=3000)
    all_folds = (1 << seen[-1][0].drawn.n_folds) - 1
    assert (seen[-1][0].ordered.wanted != all_folds).mean() > 0.2
    drawn, before = fits[-1]
    some = CrossFit(drawn, few, before)
    monkeypatch.setattr(fit_pairs, "NEGLIGIBLE", np.inf)
    every = CrossFit(drawn, few, before)
    assert (seen[-1][0].ordered.wanted == all_folds).all()
    np.testing.assert_allclose(some.values, every.values, atol=1e-9)
    np.testing.assert_allclose(some.variance(), every.variance(), rtol=1e-9)


def test_curves_of_many_draws_are_fitted_to_some_of_them(monkeypatch):
    _, seen = bent_rounds(monkeypatch, LARGE, Votes(80, 6), 80, budget=3000)
    self, *_ = seen[-1]
    indptr, rows = self.ordered.pairs[:2]
    assert self.ordered.bends.all()
    some = fit_pairs._some(self.drawn, rows, np.repeat(np.arange(6), np.diff(indptr)), replace(EAGER, curve_most=200))
    assert np.abs(np.add.reduceat(some, indptr[:-1]) - 200).max() < 60  # of a mean of 200, by chance


def test_parts_of_the_games_make_no_difference(monkeypatch):
    fits = watched_fits(monkeypatch)
    ls.shapley(SUPPORTS, Votes(24, 10), 24, method=ls.methods.Sample(tuning=EAGER), budget=4000)
    drawn, before = fits[-1]
    assert before.curves[1].all()
    parts = []
    for size in (1, 1e12):
        monkeypatch.setattr("localshapley.sampling.crossfit.PART", size)
        found = CrossFit(drawn, EAGER, before)
        parts.append((found._parts(np.arange(11)), found.values, found.variance(), *found.learnt.curves))
    (many, *first), (one, *second) = parts
    assert len(many) > 5
    assert one == [(0, 10)]
    for a, b in zip(first, second, strict=True):
        assert (a == b).all()


def test_a_fold_without_a_curve_has_no_values_of_it_and_does_not_count_in_the_mean(monkeypatch):
    _, seen = bent_rounds(monkeypatch, SUPPORTS, Votes(24, 10), 24, budget=4000)
    monkeypatch.undo()
    self, games, left, _ = seen[-1]
    curves = self.fit(left, games)
    assert curves[1].all()
    for of_folds in curves[:2]:
        of_folds[0, 3] = 0.0
    monkeypatch.setattr(LinkCurves, "fit", lambda *_: curves)
    after = left.copy()
    _, _, means = self.subtract(after, games)
    here = slice(*self.ordered.pairs[0][3:5])
    assert (after[0, here] == left[0, here]).all()
    assert (after[1, here] != left[1, here]).any()
    for mean, of_folds in zip(means[:2], curves[:2], strict=True):
        np.testing.assert_allclose(mean[0, 3], of_folds[1:, 3].mean())
        np.testing.assert_allclose(mean[0, 4], of_folds[:, 4].mean())
    _, variance = self.values(curves)
    players = slice(*self.drawn.collection.graph.indptr[3:5])
    assert not variance[0, players].any()
    assert variance[1, players].all()


def test_scores_of_a_game_with_a_process_are_not_straightened(monkeypatch):
    fits, units = watched_fits(monkeypatch), []
    ls.shapley(SUPPORTS, Votes(24, 10), 24, method=ls.methods.Sample(tuning=EAGER), budget=4000)
    drawn, before = fits[-1]
    has_process = np.arange(10) == 4
    monkeypatch.setattr(
        "localshapley.sampling.crossfit.subtract_nearness",
        lambda drawn, pairs, alone, targets, tuning: (np.zeros((len(targets), 140)), has_process),
    )
    monkeypatch.setattr(
        "localshapley.sampling.crossfit.straightened",
        lambda curves, *given: units.append(curves[1][0]) or straightened(curves, *given),
    )
    assert before.curves[1].all()
    found = CrossFit(drawn, EAGER, before)
    assert (units[0] == 0).tolist() == has_process.tolist()
    assert (found.learnt.curves[1][0] == 0).tolist() == has_process.tolist()


def test_one_order_is_never_all(monkeypatch):
    _, seen = bent_rounds(monkeypatch, SUPPORTS, Votes(24, 10), 24, budget=4000)
    few = replace(seen[-1][0], ordered=SimpleNamespace(pairs=(np.arange(11),)), tuning=replace(EAGER, least_orders=1))
    assert (few._orders()[0] == 2).all()  # or there would be no variance


def test_a_game_of_large_scores_does_not_blur_the_sums_of_others():
    effects = np.random.default_rng(0).normal(size=(6, 2))
    sums = link_fits._sums(np.concatenate([1e12 * effects, effects])[None], np.array([0, 6, 6, 12]))
    np.testing.assert_allclose(sums[0, [0, 2]], [1e12 * effects.sum(axis=0), effects.sum(axis=0)], rtol=1e-12)
    assert not sums[0, 1].any()
