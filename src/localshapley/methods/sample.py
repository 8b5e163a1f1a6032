"""LSMR-A: subsets are drawn, each is trained once and scored on all its test rows; unbiased, with standard errors.

`design` plans what a round draws, `estimate.drawn` describes how likely each subset was to be drawn, and
`estimate.crossfit` estimates values from the draws. Here rounds are sized, and combined.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Singles, singles
from localshapley.coalitions.block_scores import Cells
from localshapley.coalitions.games import SupportGraph
from localshapley.coalitions.sampled import Collection, Strata
from localshapley.errors import InvalidArgumentError
from localshapley.methods.base import EVERY_SUBSET, CoalitionScorer, Method, Run
from localshapley.methods.collecting import Collecting
from localshapley.methods.exact import Exact
from localshapley.methods.limits import Limits
from localshapley.models.trainer import Work
from localshapley.notes import Note
from localshapley.runtime.threads import beside
from localshapley.sampling.allotment import Design, least_draws
from localshapley.sampling.crossfit import N_SPREAD, CrossFit, Learnt
from localshapley.sampling.round_sample import Drawn
from localshapley.sampling.tuning import QUICK, TUNED, Tuning
from localshapley.stopping import Look, Rule, hidden_by_game


@dataclass(frozen=True)
class Sample(Method):
    """Unbiased sampling with standard errors (LSMR-A, corrected); exact where the budget allows every subset.

    Parameters
    ----------
    tuning : `localshapley.sampling.tuning.Tuning`, optional
        Settings of the estimator. By default those that take the fewest trainings; the least time, where a training
        takes microseconds (`Trainer.is_quick`) and the run goes to a target.
    """

    name = "sample"
    tuning: Tuning | None = None

    def start(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> Run:
        """Begin a run."""
        if settings.budget is not None:
            # If the budget allows every subset, all of them are trained, by LSMR.
            distinct = Exact().count_if_within(graph, settings.budget)
            if distinct is not None:
                return Exact().enumerate(graph, executor, settings, distinct)
        games = graph.apart() if settings.per_test else graph
        return SampleRun(games, executor, settings, self.title, self.tuning)


@dataclass(frozen=True)
class Round:
    """The estimate from one round.

    Attributes
    ----------
    draws : int
        Subsets drawn, over all games.
    weight : float
        How much the round counts: expected draws outside strata that were taken whole, and more for a later round.
    folds : array of shape (n_folds, total size of the games)
        Values by each fold, aligned with the games' players.
    variance : array of shape (n_players,)
        Variance of the values.
    exact : bool
        Whether the values are exact.
    """

    draws: int
    weight: float
    folds: Floats
    variance: Floats
    exact: bool


class SampleRun(Collecting):
    """Draws rounds of subsets, estimates the values from each round, and combines the rounds.

    The empty coalition and every full support are trained first, always.

    Parameters
    ----------
    graph : SupportGraph
    executor : CoalitionScorer
    settings : Limits
    title : str
    tuning : Tuning, optional
    eager : bool
        Whether to take small games whole at once, and a game's size as soon as half of its subsets would be drawn.
    """

    kernels = ("draw_games", "fill_rows", "leave_games", "fit_games", "correct_games", "add_variances", "add_spread",
               "rehash", "games_holding", "keep", "gather_games", "bend_games", "walk_curves")  # fmt: skip
    rate = 0.7  # more than the root, as fits improve: 0.6 to 0.9 were seen

    def __init__(
        self,
        graph: SupportGraph,
        executor: CoalitionScorer,
        settings: Limits,
        title: str,
        tuning: Tuning | None = None,
        *,
        eager: bool = False,
    ) -> None:
        self.graph, self.title, self.total = graph, title, settings.budget
        # A target is to be met soon; a budget alone is to go as far as it can.
        self.tuning = tuning or (QUICK if executor.trainer.is_quick and settings.rule is not None else TUNED)
        self.strata = Strata(graph)
        has_cells = graph.bundles is not None and bool((graph.tests_per_game > 1).any())
        self.collection = Collection(graph, settings.seed, Cells(graph) if has_cells else None)
        self.rounds: list[Round] = []
        self._executor, self._seed, self._eager = executor, settings.seed, eager
        self._learns = False
        self._unseen = np.zeros((2, graph.n_games))
        self._floor = np.zeros(graph.n_games)
        self._reached: list[tuple[float, float]] = []
        self._learnt: Learnt | None = None
        self._sigma2: Floats | None = None
        self._spread: Floats | None = None
        everyone = [graph.game(g) for g in range(graph.n_games)]
        full = self.collection.add_sure([np.empty(0, dtype=np.int32), *everyone])[1:]
        nothing = np.zeros(len(self.strata.k))
        none_drawn = np.zeros((len(nothing), self.tuning.few_folds), dtype=np.int32)
        self.drawn = Drawn(self.strata, self.collection, full, 0, nothing, nothing, nothing, none_drawn)
        self._n_sure = self.collection.n_rows
        self.first_look = self._n_sure + self.tuning.first_draws * graph.n_games
        if settings.budget is not None:
            self._check(settings.budget)

    def _check(self, budget: int) -> None:
        """Refuse a budget that is too small for one round."""
        least = int(self._least_draws(self._unknown_at_first()))
        if budget < self._n_sure + least:
            raise self._too_small(budget)

    def _too_small(self, budget: float) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"budget is too small: the empty coalition, the full supports of {self.graph.n_games} games and a few "
            f"draws for each take {self.least_look:,} trainings, not {budget:,.0f}. Give a larger one, or fewer test "
            "rows."
        )

    @cached_property
    def least_look(self) -> int:
        """Trainings that are enough for a first round, however its numbers of draws are rounded."""
        unknown = self._unknown_at_first()
        rounding = self.tuning.few_folds * len(np.unique(self.strata.game[unknown > self.tuning.few_folds]))
        return self._n_sure + int(self._least_draws(unknown)) + rounding

    def _least_draws(self, unknown: Floats) -> float:
        return least_draws(self.strata, unknown, self.tuning.few_folds, self.tuning.few_folds)

    def _unknown_at_first(self) -> Floats:
        """Subsets of each stratum that are not the full support of another game."""
        from localshapley.kernels.draws import games_holding

        graph, strata = self.graph, self.strata
        left = strata.n_subsets.copy()
        holding = np.empty(graph.n_games, dtype=np.int32)
        for row in np.unique(self.drawn.full[graph.sizes > 0]):
            start, stop = self.collection.indptr[row], self.collection.indptr[row + 1]
            players, k = self.collection.players[start:stop], int(stop - start)
            n = games_holding(players, k, graph.arrays, graph.masks, holding)
            larger = holding[:n][graph.sizes[holding[:n]] > k]
            left[strata.indptr[larger] + k - 1] -= 1
        return left

    def begin(self) -> Work:
        """The empty coalition and every full support."""
        yield from self.train()

    @property
    def ended(self) -> Note | None:
        """Why there is no further round; None if the budget is the reason."""
        return None if self.drawn.leaves_any else EVERY_SUBSET

    def draw(self, left: float, look: Look | None, rule: Rule | None) -> bool:
        """Draw the next round, at most `left` new subsets; False if that is not worth it."""
        tuning = self.tuning
        least = tuning.few_folds * int((self.graph.sizes > 1).sum())  # without which a round is not worth it
        n_games = max(least // tuning.few_folds, 1)
        if rule is None:
            draws = self._share_of(left, n_games)
        elif look is None:
            draws = n_games * max(tuning.first_draws, rule.step)
        else:
            drawn = sum(r.draws for r in self.rounds)
            counted = drawn - self.rounds[0].draws  # the first round will no longer count
            wanted = (
                1.0
                if rule.aim is None
                else tuning.margin * look.growth_to(rule.aim, self._rate(), tuning.unseen_share * rule.aim)
            )
            wanted = wanted * (counted or drawn) - counted
            self._floor = self._against_surprises(look, rule.aim)
            wanted = max(wanted, self._floor.sum())
            least_growth = 1 / 3 if rule.aim is None else tuning.least_growth
            wanted = float(np.clip(wanted, least_growth * drawn, tuning.max_growth * drawn))
            draws = max(wanted, n_games * max(tuning.few_folds, rule.step))
        if look is not None and min(draws, left) < least:
            return False
        drew = self.draw_round(min(draws, left), left)
        if not drew and look is None and self.drawn.leaves_any:
            raise self._too_small(self.collection.n_rows + left)
        return drew

    def _rate(self) -> float:
        """The power of the draws with which the error shrinks, by the last two looks: over a half as fits improve."""
        (few, before), (many, now) = ([(1.0, 1.0), (1.0, 1.0), *self._reached])[-2:]
        if len(self._reached) < 2 or now <= 0 or many <= few:
            return 0.5
        return float(np.clip(np.log(before / now) / np.log(many / few), 0.5, 0.9))

    def _share_of(self, left: float, n_games: int) -> float:
        """Draws of the next round where there is a budget to spend: an eighth to learn from, then the rest."""
        if not self.rounds:
            # One game has no other to take draws from. What it would learn, a process over its subsets knows as well.
            has_process = self.tuning.few_games > 0 and self.graph.sizes.max() <= self.tuning.nearness_players
            learns = n_games > 1 or not has_process
            self._learns = bool(learns) and left >= 3 * self.tuning.least_draws * n_games
            return max(left / 8, self.tuning.least_draws * n_games) if self._learns else left
        # What reuse leaves over at the end is too little for a good round.
        return left if self._learns and len(self.rounds) == 1 else 0.0

    def draw_round(self, draws: float, most: float) -> bool:
        """Draw about `draws` subsets, at most `most` new ones; False if there are none to draw.

        Once games that overlap have drawn all for each other, there is one more round, which is empty and exact.
        """
        collection, strata = self.collection, self.strata
        before = collection.n_rows
        if self.rounds:
            known = self._fit.known
        else:
            collection.gather()
            known = np.bincount(collection.inner[2], minlength=len(strata.k)).astype(np.float64)
        unknown = np.maximum(strata.n_subsets - known, 0.0)
        none_drawn = np.zeros((len(unknown), self.tuning.few_folds), dtype=np.int32)
        self.drawn = Drawn(strata, collection, self.drawn.full, before, known, unknown, unknown, none_drawn)
        if not self.drawn.leaves_any:
            return bool(self.rounds) and not self.rounds[-1].exact
        if draws < 1:
            return False
        design, draws = self._design(unknown, draws, most)
        while design.least <= most:
            expected, whole = design.expected(min(draws, float(most)))
            counts = design.rounded(np.where(whole, 0.0, expected), [self._seed, len(self.rounds)])
            self.drawn = replace(self.drawn, expected=expected, counts=counts)
            self._take(whole)
            if collection.n_rows - before <= most:
                return collection.n_rows > before
            collection.truncate(before)
            if draws <= design.least:
                break
            draws = max(0.9 * min(draws, float(most)), design.least)
        return False

    def _design(self, unknown: Floats, draws: float, most: float) -> tuple[Design, float]:
        """The plan of a round of about `draws` draws, and how many it takes at least."""
        strata, n_games = self.strata, self.graph.n_games
        of_game = np.bincount(strata.game, weights=unknown, minlength=n_games)
        at_once = (of_game <= self.tuning.easy_game)[strata.game] if self._eager else np.zeros(len(unknown), dtype=bool)
        easy = unknown[at_once].sum()
        if easy > most / 2:
            at_once[:] = False
            easy = 0.0
        elif not self.rounds:
            draws += easy
        tuning = self.tuning
        at_once |= self._ends(unknown, draws)
        few = unknown[unknown <= tuning.n_folds].sum()  # in strata too small for the folds, which are taken whole
        n_folds = tuning.n_folds if draws >= 2 * max(tuning.n_folds * n_games, few) else tuning.few_folds
        if n_games <= tuning.few_games and 4 * tuning.many_folds * n_games <= draws <= tuning.nearness_most * n_games:
            n_folds = tuning.many_folds
        fullness = 0.5 if self._eager else 1.0
        design = Design(strata, unknown, n_folds, tuning.few_folds, at_once, fullness, self._sigma2, self._floor)
        return design, max(draws, design.least + easy)

    def _ends(self, unknown: Floats, draws: float) -> AnyArray:
        """Strata of one player, and of all but one, that are cheap enough to be taken whole in a round, as flags."""
        strata, graph = self.strata, self.graph
        share = (graph.sizes / max(int(graph.sizes.sum()), 1))[strata.game]  # of the game in the draws
        so_far = draws + sum(r.draws for r in self.rounds)
        most = np.minimum(self.tuning.ends_share * so_far, draws / 4) * share
        cheap: AnyArray = ((strata.k == 1) | (strata.k == strata.n - 1)) & (unknown <= most)
        return cheap

    def _take(self, whole: AnyArray) -> None:
        """Draw the subsets of the round into the collection."""
        from localshapley.kernels.draws import draw_round

        graph, collection, strata, drawn = self.graph, self.collection, self.strata, self.drawn
        n_new = int(drawn.counts.sum() + drawn.unknown[whole].sum())
        n_players = int((drawn.counts.sum(axis=1) * strata.k).sum() + (drawn.unknown[whole] * strata.k[whole]).sum())
        collection.reserve(n_new + 1, n_players + int(graph.sizes.max(initial=0)))
        design = strata.indptr, drawn.counts, whole.astype(np.int32), drawn.unknown, strata.n_subsets
        collection.n_rows = draw_round(graph.arrays, design, collection.streams, drawn.before, collection.arrays)

    def look(self, previous: Look | None, seconds: float) -> Look:
        """Estimate the values from the last round, and combine them with those of the rounds before."""
        self.rounds.append(self._estimate())
        weight = self._weights()
        variance = sum(w**2 * r.variance for w, r in zip(weight, self.rounds, strict=True))
        drawn = [r.draws for r in self.rounds]
        look = Look(
            values=self.graph.by_player(self._by_game()),
            stderr=np.sqrt(variance),
            halves=np.stack([self.graph.by_player(half) for half in self._halves()]),
            previous=None if previous is None else previous.values,
            draws_per_game=sum(drawn) / self.graph.n_games,
            draws_since=drawn[-1] / self.graph.n_games,
            trainings=self.collection.n_rows,
            seconds=seconds,
            scale=float(self.collection.ranges().max(initial=0.0)),
            exact=self.rounds[-1].exact,
            unseen=float(self._unseen[0].max(initial=0.0)),
        )
        if len(self.rounds) > 1:
            self._reached.append((float(sum(drawn[1:])), look.relative_parts[0]))
        return look

    def _hidden(self, known: Floats) -> Floats:
        """How far the values of each game may be moved by coalitions that have not been drawn yet, and its draws."""
        strata, graph = self.strata, self.graph
        left = known < strata.n_subsets
        sizes = np.bincount(strata.game[left], minlength=graph.n_games)
        draws = np.bincount(strata.game[left], weights=known[left], minlength=graph.n_games).astype(np.float64)
        return np.stack([hidden_by_game(sizes / (graph.sizes + 1), draws, self.collection.ranges()), draws])

    def _against_surprises(self, look: Look, aim: float | None) -> Floats:
        """Draws that each game needs so that what was not drawn is a minor part of the error."""
        if aim is None or look.relative_parts[0] > 2 * aim:  # too early: the size of the values is not known yet
            return np.zeros(self.graph.n_games)
        unseen, draws = self._unseen
        return draws * np.maximum(unseen / (self.tuning.unseen_share * aim * look.size) - 1, 0.0)

    def _estimate(self) -> Round:
        """Values and variances from the draws of the last round, all of which must be scored by now."""
        self._fit = fit = CrossFit(self.drawn, self.tuning, self._learnt if self.tuning.goes_on else None)
        self._learnt, self._sigma2, self._unseen = fit.learnt, fit.sigma2, self._hidden(fit.known)
        spread = beside(fit.spread) if self.graph.n_players <= self.tuning.max_spread else None
        variance = fit.variance()
        draws = self.drawn.n_draws
        # Fits improve from round to round, and with them what a draw tells. Known before the round draws.
        weight = self.drawn.left_to_chance * (draws + sum(r.draws for r in self.rounds)) ** self.tuning.later
        if spread is not None:
            self._add_spread(spread.result(), weight)
        return Round(
            draws=draws,
            weight=weight,
            folds=fit.values,
            variance=variance,
            exact=bool(self.drawn.whole.all()),
        )

    def _weights(self) -> Floats:
        """Weights of the rounds, from numbers of draws alone.

        The first round has the poorest fit, and its draws were allocated blindly: it counts only while it is the only
        one. An exact round is the answer.
        """
        weight = np.array([r.weight for r in self.rounds])
        if self.rounds[-1].exact:
            weight[:-1], weight[-1] = 0.0, 1.0
        elif len(weight) > 1:
            weight[0] = 0.0
        share: Floats = weight / weight.sum()
        return share

    def _by_game(self) -> Floats:
        """Values by game, aligned with the games' players."""
        total: Floats = np.sum(
            [w * r.folds.mean(axis=0) for w, r in zip(self._weights(), self.rounds, strict=True)], axis=0
        )
        return total

    def _halves(self) -> list[Floats]:
        """The same by each half of the folds."""
        by_fold = [np.stack([r.folds[half::2].mean(axis=0) for half in (0, 1)]) for r in self.rounds]
        return [sum(w * h[i] for w, h in zip(self._weights(), by_fold, strict=True)) for i in (0, 1)]

    def by_bundle(self) -> Floats | None:
        """Values to each bundle by each half of the folds; of games with several test rows, from the last round."""
        return None if self.graph.bundles is None else self._fit.by_bundle(self.graph.bundles, self._halves())

    def squares(self) -> Floats | None:
        """Sums over the games, if each has one test row."""
        one, two = self._halves()
        return None if self.collection.cells is not None else self.graph.by_player(one * two)

    def by_test(self) -> sparse.csr_array:
        """Values of the players of each test row, which is a game of its own."""
        return self.graph.matrix_of_games(self._by_game())

    def halves_by_test(self) -> Floats | None:
        """The same by each half of the folds."""
        return np.stack([self.graph.matrix_of_games(half).data for half in self._halves()])

    def _add_spread(self, columns: Floats, weight: float) -> None:
        """Add the columns of a round, with its weight; the first round counts while it is alone."""
        columns *= weight
        if self._spread is None or len(self.rounds) == 1:
            self._spread = columns
        else:
            self._spread += columns

    def spread(self, stderr: Floats) -> Singles | None:
        """Columns whose products have the covariances of the estimates as mean, and their variances exactly."""
        if self._spread is None:
            return None
        out = self._spread
        norm = np.linalg.norm(out, axis=1)
        # The error of a row without surprises so far is independent of the others.
        lonely = np.flatnonzero((norm == 0) & (stderr > 0))
        out[lonely] = np.random.default_rng([self._seed, len(self.rounds)]).choice([-1.0, 1.0], (len(lonely), N_SPREAD))
        norm[lonely] = np.sqrt(N_SPREAD)
        out *= np.divide(stderr, norm, out=np.zeros_like(norm), where=norm > 0)[:, None]
        return singles(out)
