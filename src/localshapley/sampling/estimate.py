"""What a run knows at a moment: values and errors, and the values to each test row where test rows are told apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import bisect

from localshapley.arrays import Floats, Singles, relative, scattered
from localshapley.coalitions.games import SupportGraph

SURPRISE = -float(np.log(0.001))
"""An event with chance p is missed by `SURPRISE / p` draws in one of 1,000 runs."""
NOTHING, NOISE = 0.01, 0.5
"""Values this small beside the range of scores, whose errors are at least this share of them, may be all zero."""
FEW_MET = 0.5
"""If supports hold no more than this share of the players, the others' columns, which are 0, are not computed."""


@dataclass(frozen=True)
class Estimate:
    """Values and their errors, from all draws so far.

    Attributes
    ----------
    values, stderr : arrays of shape (n_players,)
    halves : array of shape (2, n_players)
        Values from each half of the draws.
    previous : array of shape (n_players,) or None
        Values of the estimate before.
    draws_per_game : float
        Mean over the games, since the start.
    draws_since : float
        Draws per game since the estimate before.
    trainings : int
    seconds : float
    scale : float
        Largest range of the scores of a game so far, which no constant that is added to a game changes.
    exact : bool
        Whether the values were computed without sampling.
    unseen : float
        How far values may be moved by coalitions so rare that none of them has been drawn yet; see `hidden`.
    per_test : PerTest or None
        The values to each test row, where the method tells test rows apart.
    covariance : callable
        Gives columns, one row per player, whose products are the covariances of the values, where these are known.
    """

    values: Floats
    stderr: Floats
    halves: Floats
    previous: Floats | None = None
    draws_per_game: float = 0.0
    draws_since: float = 0.0
    trainings: int = 0
    seconds: float = 0.0
    scale: float = 0.0
    exact: bool = False
    unseen: float = 0.0
    per_test: PerTest | None = None
    covariance: Callable[[], Singles | None] = lambda: None

    @classmethod
    def certain(cls, values: Floats, trainings: int, per_test: PerTest | None) -> Estimate:
        """Return values that were computed without sampling."""
        halves = np.stack([values, values])
        return cls(values, np.zeros_like(values), halves, trainings=trainings, exact=True, per_test=per_test)

    def spread_tests(self) -> Singles | None:
        """Return columns like those of `covariance`, for what other test rows would have changed, if that is known."""
        return None if self.per_test is None else self.per_test.spread()

    @property
    def relative_error(self) -> float:
        """`‖stderr‖ / ‖values‖`."""
        return relative(self.stderr, self.values)

    @property
    def relative_parts(self) -> tuple[float, float]:
        """The errors of what was drawn, and of what was not, in units of `size`."""
        return float(np.linalg.norm(self.stderr)) / self.size, self.unseen / self.size

    @property
    def size(self) -> float:
        """What a target is a share of: `‖values‖`, or a hundredth of the range of scores where values may be zero."""
        size = float(np.linalg.norm(self.values))
        if float(np.linalg.norm(self.stderr)) >= NOISE * size:
            size = max(size, NOTHING * (self.scale or 1.0))
        return max(size, 1e-100)

    @property
    def zero_within(self) -> float:
        """The share of the range of scores that the values are at most, by twice their errors; 1 if that is unknown."""
        return float(np.linalg.norm(self.values) + 2 * np.linalg.norm(self.stderr)) / self.scale if self.scale else 1.0

    def growth_to(self, aim: float, rate: float = 0.5, most: float = np.inf) -> float:
        """How many times the draws so far are needed for a relative error of `aim`.

        The error of what was drawn shrinks with a power of the draws, the root by default, that of what was not with
        their number, and is brought to `most` by other means.
        """
        drawn, unseen = self.relative_parts

        def excess(log_growth: float) -> float:
            not_drawn = min(unseen * np.exp(-log_growth), most)
            return float(np.hypot(drawn * np.exp(-rate * log_growth), not_drawn)) - aim

        log_drawn = np.log(max(drawn, 1e-9) / aim) / rate  # what drawing alone asks for
        low, high = min(log_drawn - 1, -5.0), max(log_drawn + 1 / rate, np.log(max(unseen, 1e-9) / aim) + 1, 100.0)
        if excess(low) <= 0:  # hardly anything was left to chance
            return float(np.exp(low))
        return float(np.exp(bisect(excess, low, high, xtol=1e-6)))


class PerTest(ABC):
    """Values to each test row, or at least to each bundle of them, as far as a method tells test rows apart.

    Attributes
    ----------
    graph : SupportGraph
        The games that were played.
    """

    graph: SupportGraph

    def matrix(self) -> sparse.csr_array:
        """Return `φ_z(v_t)` as a matrix of test rows and players; for methods that keep test rows."""
        raise NotImplementedError

    def halves(self) -> Floats | None:
        """Return the entries of the matrix by each half of the draws, shape (2, n_entries), if anything is drawn."""
        return None

    @abstractmethod
    def by_bundle(self) -> Floats | None:
        """Return the values to each bundle of the graph's test rows, if they are known.

        Returns
        -------
        array of shape (1 or 2, n_bundles, n_players), or None
            Exact values, or those from each half of the draws.
        """

    def squares(self) -> Floats | None:
        """Return the sums over the test rows of the squared values to each, if test rows are told apart.

        From halves of the draws, the products of both: errors of the draws do not add to these.
        """
        return None

    def spread(self) -> Singles | None:
        """Return columns whose products are the covariances of the values over sets of test rows."""
        bundles, sums = self.graph.bundles, self.by_bundle()
        if bundles is None or sums is None:
            return None
        squares = self.squares()
        met = np.flatnonzero(sums.any(axis=(0, 1)))
        if not 1 < len(met) < FEW_MET * sums.shape[2]:
            return bundles.spread(sums, squares)
        found = bundles.spread(sums[:, :, met], None if squares is None else squares[met])
        return None if found is None else scattered(found, met, sums.shape[2])


@dataclass(frozen=True)
class PerGame(PerTest):
    """Values of sampled games, each of which has one test row if they are asked for by test row.

    Attributes
    ----------
    by_game : array of shape (total size of the games,)
        Values, aligned with the games' players.
    halves_by_game : two such arrays
        The same by each half of the draws.
    """

    graph: SupportGraph
    by_game: Floats
    halves_by_game: Sequence[Floats] | Floats

    def matrix(self) -> sparse.csr_array:
        """Return the values of the players of each test row, which is a game of its own."""
        return self.graph.matrix_of_games(self.by_game)

    def halves(self) -> Floats | None:
        """Return the same by each half of the draws."""
        return np.stack([self.graph.matrix_of_games(half).data for half in self.halves_by_game])

    def by_bundle(self) -> Floats | None:
        """Return sums over the test rows of each bundle, if each is a game of its own."""
        graph, bundles = self.graph, self.graph.bundles
        if bundles is None or (graph.tests_per_game > 1).any():
            return None
        pairs, bundle = (graph.indptr, graph.players), bundles.of_test[graph.tests]
        return np.stack([bundles.sums(pairs, half, bundle) for half in self.halves_by_game])

    def squares(self) -> Floats | None:
        """Return sums over the games, each of which has one test row where bundles are known."""
        one, two = self.halves_by_game
        return self.graph.by_player(one * two)


def hidden(share: Floats, draws: Floats, ranges: Floats) -> float:
    """How far values may be moved by coalitions so rare that none has been drawn yet, in the worst of the games."""
    return float(hidden_by_game(share, draws, ranges).max(initial=0.0))


def hidden_by_game(share: Floats, draws: Floats, ranges: Floats) -> Floats:
    """How far values may be moved by coalitions so rare that none of them has been drawn yet.

    If none of `n` draws has met an event, its chance of being drawn is less than `SURPRISE / n`, with 99.9 %
    confidence. If it changes the score by as much as scores are known to differ, values move by that times its chance.

    Parameters
    ----------
    share : array of shape (n_games,)
        Share of the Shapley weight of each game that is left to chance.
    draws : array of shape (n_games,)
        Draws from it.
    ranges : array of shape (n_games,)
        Range of the scores of each game so far; it counts as at least a hundredth of the largest one, and as 1 where no
        two scores differ.
    """
    reach = np.maximum(ranges, NOTHING * (ranges.max(initial=0.0) or 1.0))
    moved: Floats = SURPRISE * share * reach / np.maximum(draws, 1.0)
    return moved
