"""The estimate from all rounds of a sampled run: each has its own, and weights that are fixed before combine them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from localshapley.arrays import Floats, Singles, singles
from localshapley.coalitions.sampled import Collection
from localshapley.runtime.threads import beside
from localshapley.sampling.crossfit import N_SPREAD, CrossFit
from localshapley.sampling.estimate import Estimate, PerGame, hidden_by_game
from localshapley.sampling.round_sample import RoundSample
from localshapley.sampling.tuning import Tuning


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


class CombinedRounds:
    """Takes in the rounds of a run, and estimates the values from all of them.

    Parameters
    ----------
    collection : Collection
        What was drawn, with its scores.
    tuning : Tuning
    seed : int

    Attributes
    ----------
    rounds : list of Round
    fit : CrossFit or None
        That of the last round.
    n_draws : int
        Subsets drawn in all rounds.
    unseen, draws : arrays of shape (n_games,)
        How far coalitions that were not drawn yet may move the values of each game, and the draws that say so.
    """

    fit: CrossFit | None = None

    def __init__(self, collection: Collection, tuning: Tuning, seed: int) -> None:
        self.graph, self.rounds = collection.graph, list[Round]()
        self.unseen, self.draws = np.zeros((2, self.graph.n_games))
        self._collection, self._tuning, self._seed = collection, tuning, seed
        self._reached: list[tuple[float, float]] = []
        self._spread: Floats | None = None

    @property
    def n_draws(self) -> int:
        """Subsets drawn in all rounds."""
        return sum(r.draws for r in self.rounds)

    def add(self, drawn: RoundSample) -> Estimate:
        """Take in a round, all draws of which are scored, and combine it with those before."""
        before = None if self.fit is None or not self._tuning.goes_on else self.fit.learnt
        self.fit = fit = CrossFit(drawn, self._tuning, before)
        self.unseen, self.draws = self._hidden(drawn, fit.known)
        spread = beside(fit.spread) if self.graph.n_players <= self._tuning.max_spread else None
        variance = fit.variance()
        # Fits improve from round to round, and with them what a draw tells. Known before the round draws.
        weight = drawn.left_to_chance * (drawn.n_draws + self.n_draws) ** self._tuning.later
        if spread is not None:
            self._add_spread(spread.result(), weight)
        self.rounds.append(Round(drawn.n_draws, weight, fit.values, variance, exact=bool(drawn.whole.all())))
        found = self._estimate(fit)
        if len(self.rounds) > 1:
            self._reached.append((float(sum(r.draws for r in self.rounds[1:])), found.relative_parts[0]))
        return found

    def rate(self) -> float:
        """The power of the draws with which the error shrinks, by the last two looks: over a half as fits improve."""
        (few, before), (many, now) = ([(1.0, 1.0), (1.0, 1.0), *self._reached])[-2:]
        if len(self._reached) < 2 or now <= 0 or many <= few:
            return 0.5
        return float(np.clip(np.log(before / now) / np.log(many / few), 0.5, 0.9))

    def weights(self) -> Floats:
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

    def _estimate(self, fit: CrossFit) -> Estimate:
        graph, share = self.graph, self.weights()
        by_game: Floats = np.sum([w * r.folds.mean(axis=0) for w, r in zip(share, self.rounds, strict=True)], axis=0)
        by_fold = [np.stack([r.folds[half::2].mean(axis=0) for half in (0, 1)]) for r in self.rounds]
        halves = [sum(w * h[i] for w, h in zip(share, by_fold, strict=True)) for i in (0, 1)]
        stderr = np.sqrt(sum(w**2 * r.variance for w, r in zip(share, self.rounds, strict=True)))
        return Estimate(
            values=graph.by_player(by_game),
            stderr=stderr,
            halves=np.stack([graph.by_player(half) for half in halves]),
            draws_per_game=self.n_draws / graph.n_games,
            draws_since=self.rounds[-1].draws / graph.n_games,
            trainings=self._collection.n_rows,
            scale=float(self._collection.ranges().max(initial=0.0)),
            exact=self.rounds[-1].exact,
            unseen=float(self.unseen.max(initial=0.0)),
            per_test=PerSampledGame(graph, by_game, halves, fit),
            covariance=partial(self._covariance, stderr),
        )

    def _hidden(self, drawn: RoundSample, known: Floats) -> Floats:
        """How far the values of each game may be moved by coalitions that have not been drawn yet, and its draws."""
        strata, graph = drawn.strata, self.graph
        left = known < strata.n_subsets
        sizes = np.bincount(strata.game[left], minlength=graph.n_games)
        draws = np.bincount(strata.game[left], weights=known[left], minlength=graph.n_games).astype(np.float64)
        return np.stack([hidden_by_game(sizes / (graph.sizes + 1), draws, self._collection.ranges()), draws])

    def _add_spread(self, columns: Floats, weight: float) -> None:
        """Add the columns of a round, with its weight; the first round counts while it is alone."""
        columns *= weight
        if self._spread is None or len(self.rounds) == 1:
            self._spread = columns
        else:
            self._spread += columns

    def _covariance(self, stderr: Floats) -> Singles | None:
        """Return columns whose products have the covariances of the estimates as mean, and their variances exactly."""
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


@dataclass(frozen=True)
class PerSampledGame(PerGame):
    """Values by game; those of games with several test rows can be told apart in the last round."""

    fit: CrossFit

    def by_bundle(self) -> Floats | None:
        """Return the values to each bundle by each half of the folds."""
        return None if self.graph.bundles is None else self.fit.by_bundle(self.graph.bundles, self.halves_by_game)

    def squares(self) -> Floats | None:
        """Return sums over the games, if each has one test row."""
        return None if (self.graph.tests_per_game > 1).any() else super().squares()
