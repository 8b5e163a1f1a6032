"""LSMR-A: subsets are drawn, each is trained once and scored on all its test rows; unbiased, with standard errors.

`design` plans what a round draws, `estimate.drawn` describes how likely each subset was to be drawn, and
`estimate.crossfit` estimates values from the draws. Here rounds are sized, and combined.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from localshapley.arrays import AnyArray, Floats
from localshapley.coalitions.block_scores import BlockScores
from localshapley.coalitions.games import SupportGraph
from localshapley.coalitions.sampled import Collection, Strata
from localshapley.errors import InvalidArgumentError
from localshapley.methods.base import EVERY_SUBSET, CoalitionScorer, Collecting, Method, Run
from localshapley.methods.exact import Exact
from localshapley.methods.limits import Limits
from localshapley.models.trainer import Work
from localshapley.notes import Note
from localshapley.sampling.allotment import Allotment, least_draws
from localshapley.sampling.combined_rounds import CombinedRounds
from localshapley.sampling.estimate import Estimate
from localshapley.sampling.round_sample import RoundSample
from localshapley.sampling.tuning import QUICK, TUNED, Tuning
from localshapley.stopping import Rule


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


class SampleRun(Collecting):
    """Draws rounds of subsets, each sized by the estimate of the rounds before.

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
        has_cells = bool((graph.tests_per_game > 1).any()) and graph.bundles is not None
        self.collection = Collection(graph, settings.seed, BlockScores(graph) if has_cells else None)
        self._executor, self._seed, self._eager = executor, settings.seed, eager
        self._learns = False
        self._floor = np.zeros(graph.n_games)
        self.so_far = CombinedRounds(self.collection, self.tuning, settings.seed)
        everyone = np.split(graph.players, graph.indptr[1:-1])[: graph.n_games]
        full = self.collection.add_sure([np.empty(0, dtype=np.int32), *everyone])[1:]
        nothing = np.zeros(len(self.strata.k))
        none_drawn = np.zeros((len(nothing), self.tuning.few_folds), dtype=np.int32)
        self.drawn = RoundSample(self.strata, self.collection, full, 0, nothing, nothing, nothing, none_drawn)
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
        return self._executor.feed(self.collection, self.collection)

    @property
    def ended(self) -> Note | None:
        """Why there is no further round; None if the budget is the reason."""
        return None if self.drawn.leaves_any else EVERY_SUBSET

    def draw(self, left: float, estimate: Estimate | None, rule: Rule | None) -> bool:
        """Draw the next round, at most `left` new subsets; False if that is not worth it."""
        tuning = self.tuning
        least = tuning.few_folds * int((self.graph.sizes > 1).sum())  # without which a round is not worth it
        n_games = max(least // tuning.few_folds, 1)
        if rule is None:
            draws = self._share_of(left, n_games)
        elif estimate is None:
            draws = n_games * max(tuning.first_draws, rule.step)
        else:
            drawn = self.so_far.n_draws
            counted = drawn - self.so_far.rounds[0].draws  # the first round will no longer count
            wanted = (
                1.0
                if rule.aim is None
                else tuning.margin * estimate.growth_to(rule.aim, self.so_far.rate(), tuning.unseen_share * rule.aim)
            )
            wanted = wanted * (counted or drawn) - counted
            self._floor = self._against_surprises(estimate, rule.aim)
            wanted = max(wanted, self._floor.sum())
            least_growth = 1 / 3 if rule.aim is None else tuning.least_growth
            wanted = float(np.clip(wanted, least_growth * drawn, tuning.max_growth * drawn))
            draws = max(wanted, n_games * max(tuning.few_folds, rule.step))
        if estimate is not None and min(draws, left) < least:
            return False
        drew = self.draw_round(min(draws, left), left)
        if not drew and estimate is None and self.drawn.leaves_any:
            raise self._too_small(self.collection.n_rows + left)
        return drew

    def _share_of(self, left: float, n_games: int) -> float:
        """Draws of the next round where there is a budget to spend: an eighth to learn from, then the rest."""
        if not self.so_far.rounds:
            # One game has no other to take draws from. What it would learn, a process over its subsets knows as well.
            has_process = self.tuning.few_games > 0 and self.graph.sizes.max() <= self.tuning.nearness_players
            learns = n_games > 1 or not has_process
            self._learns = bool(learns) and left >= 3 * self.tuning.least_draws * n_games
            return max(left / 8, self.tuning.least_draws * n_games) if self._learns else left
        # What reuse leaves over at the end is too little for a good round.
        return left if self._learns and len(self.so_far.rounds) == 1 else 0.0

    def draw_round(self, draws: float, most: float) -> bool:
        """Draw about `draws` subsets, at most `most` new ones; False if there are none to draw.

        Once games that overlap have drawn all for each other, there is one more round, which is empty and exact.
        """
        collection, strata, rounds = self.collection, self.strata, self.so_far.rounds
        before = collection.n_rows
        if self.so_far.fit is not None:
            known = self.so_far.fit.known
        else:
            collection.gather()
            known = np.bincount(collection.inner[2], minlength=len(strata.k)).astype(np.float64)
        unknown = np.maximum(strata.n_subsets - known, 0.0)
        none_drawn = np.zeros((len(unknown), self.tuning.few_folds), dtype=np.int32)
        self.drawn = RoundSample(strata, collection, self.drawn.full, before, known, unknown, unknown, none_drawn)
        if not self.drawn.leaves_any:
            return bool(rounds) and not rounds[-1].exact
        if draws < 1:
            return False
        design, draws = self._design(unknown, draws, most)
        while design.least <= most:
            expected, whole = design.expected(min(draws, float(most)))
            counts = design.rounded(np.where(whole, 0.0, expected), [self._seed, len(rounds)])
            self.drawn = replace(self.drawn, expected=expected, counts=counts)
            self._take(whole)
            if collection.n_rows - before <= most:
                return collection.n_rows > before
            collection.truncate(before)
            if draws <= design.least:
                break
            draws = max(0.9 * min(draws, float(most)), design.least)
        return False

    def _design(self, unknown: Floats, draws: float, most: float) -> tuple[Allotment, float]:
        """The plan of a round of about `draws` draws, and how many it takes at least."""
        strata, n_games = self.strata, self.graph.n_games
        of_game = np.bincount(strata.game, weights=unknown, minlength=n_games)
        at_once = (of_game <= self.tuning.easy_game)[strata.game] if self._eager else np.zeros(len(unknown), dtype=bool)
        easy = unknown[at_once].sum()
        if easy > most / 2:
            at_once[:] = False
            easy = 0.0
        elif not self.so_far.rounds:
            draws += easy
        tuning = self.tuning
        at_once |= self._ends(unknown, draws)
        few = unknown[unknown <= tuning.n_folds].sum()  # in strata too small for the folds, which are taken whole
        n_folds = tuning.n_folds if draws >= 2 * max(tuning.n_folds * n_games, few) else tuning.few_folds
        if n_games <= tuning.few_games and 4 * tuning.many_folds * n_games <= draws <= tuning.nearness_most * n_games:
            n_folds = tuning.many_folds
        fullness = 0.5 if self._eager else 1.0
        sigma2 = None if self.so_far.fit is None else self.so_far.fit.sigma2
        design = Allotment(strata, unknown, n_folds, tuning.few_folds, at_once, fullness, sigma2, self._floor)
        return design, max(draws, design.least + easy)

    def _ends(self, unknown: Floats, draws: float) -> AnyArray:
        """Strata of one player, and of all but one, that are cheap enough to be taken whole in a round, as flags."""
        strata, graph = self.strata, self.graph
        share = (graph.sizes / max(int(graph.sizes.sum()), 1))[strata.game]  # of the game in the draws
        so_far = draws + self.so_far.n_draws
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

    def estimate(self) -> Estimate:
        """Return the estimate of the last round, combined with those of the rounds before."""
        return self.so_far.add(self.drawn)

    def _against_surprises(self, estimate: Estimate, aim: float | None) -> Floats:
        """Draws that each game needs so that what was not drawn is a minor part of the error."""
        if aim is None or estimate.relative_parts[0] > 2 * aim:  # too early: the size of the values is not known yet
            return np.zeros(self.graph.n_games)
        unseen, draws = self.so_far.unseen, self.so_far.draws
        return draws * np.maximum(unseen / (self.tuning.unseen_share * aim * estimate.size) - 1, 0.0)
