"""The climb: what a set of rows teaches, with one row more at a time, each step exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from localshapley.arrays import AnyArray, Floats, Indices, Ints, Lists, chosen_lists, offsets
from localshapley.coalitions.batch import Coalitions, ListSchedule
from localshapley.coalitions.games import SupportGraph
from localshapley.engine.executor import Executor
from localshapley.models.trainer import Work


class Climb:
    """A set of players `A`, what it teaches, `U(A) = Σ_t v_t(A ∩ N(t))`, and what each player would add to it.

    Scores are kept for every pair of a player and a game. Taking a player changes those of its games; the coalitions
    behind them are `pending` until `train` has had them trained, each once.

    Parameters
    ----------
    graph : SupportGraph
    executor : Executor

    Attributes
    ----------
    gains : array of shape (n_players,)
        What each player would add to `U`; −∞ for those that have been taken.
    pending : CoalitionRequests
        What has to be trained before the gains are right again.
    """

    def __init__(self, graph: SupportGraph, executor: Executor) -> None:
        self.graph = graph
        self.gains: Floats = np.zeros(graph.n_players)
        self._executor = executor
        self._n_pairs = len(graph.players)
        self._inside: AnyArray = np.zeros(self._n_pairs, dtype=bool)
        # Of each game, summed over its test rows: with each of its players added, then those of `A` as it is.
        self._scores: Floats = np.zeros(self._n_pairs + graph.n_games)
        self._game_of: Ints = np.append(np.repeat(np.arange(graph.n_games), graph.sizes), np.arange(graph.n_games))
        self._pairs_of: Lists = graph.where_indptr, np.argsort(graph.players, kind="stable").astype(np.int32)
        self._await(np.arange(graph.n_games))

    @property
    def utility(self) -> float:
        """`U(A)`."""
        return float(self._scores[self._n_pairs :].sum())

    def take(self, player: int) -> float:
        """Add a player to the set; returns the standard error of what it adds, over the test rows.

        Test rows of one game count as one that changes by as much as all of them.
        """
        indptr, pairs = self._pairs_of
        mine = pairs[indptr[player] : indptr[player + 1]]
        games = self._game_of[mine]
        step, n_tests = self._scores[mine] - self._scores[self._n_pairs + games], self.graph.n_tests
        self._inside[mine] = True
        self._scores[self._n_pairs + games] = self._scores[mine]
        self.gains[player] = -np.inf
        self._await(games)
        spread = max(float(step @ step - step.sum() ** 2 / n_tests), 0.0)  # equal steps may miss 0 by rounding
        return float(np.sqrt(spread * n_tests / max(n_tests - 1, 1)))

    def train(self) -> Work:
        """Have what is pending trained; gains are right at the end. Yields after each piece what it took."""
        places, scores = self.pending.places, list[Floats]()
        yield from self.pending.score(self._executor, scores)
        if scores:
            self._scores[places] = self.pending.sums(np.concatenate(scores))
            self._sum_up(np.unique(self.graph.players[places[places < self._n_pairs]]))
        self._await(np.empty(0, dtype=np.int64))

    def lower_start(self) -> None:
        """Let a support without any row score no better than its worst row alone.

        One row alone often predicts a number worse than the mean does, though many rows predict it better.
        """
        games = np.flatnonzero(self.graph.sizes)
        if len(games):
            worst = np.minimum.reduceat(self._scores[: self._n_pairs], self.graph.indptr[games])
            self._scores[self._n_pairs + games] = np.minimum(self._scores[self._n_pairs + games], worst)
            self._sum_up(np.unique(self.graph.players))

    def _await(self, games: AnyArray) -> None:
        """List the coalitions of `A` in these games with each other player, and in the beginning without."""
        graph, found = self.graph, dict[bytes, list[int]]()
        for g in games.tolist():
            first, last = int(graph.indptr[g]), int(graph.indptr[g + 1])
            players, inside = graph.players[first:last], self._inside[first:last]
            others = np.flatnonzero(~inside)
            for place, coalition in zip(others.tolist(), _with_each(players, inside, others), strict=True):
                found.setdefault(coalition.tobytes(), []).append(first + place)
            if not inside.any():
                found.setdefault(b"", []).append(self._n_pairs + g)
        self.pending = CoalitionRequests(graph, found, self._game_of)

    def _sum_up(self, players: AnyArray) -> None:
        """Sum the gains of some players over their games."""
        indptr, pairs = chosen_lists(*self._pairs_of, players)
        step = self._scores[pairs] - self._scores[self._n_pairs + self._game_of[pairs]]
        self.gains[players] = np.add.reduceat(step, indptr[:-1])


def _with_each(players: Indices, inside: AnyArray, others: Ints) -> Indices:
    """The players inside with each of the others, one coalition per line, ascending."""
    flags = np.tile(inside, (len(others), 1))
    flags[np.arange(len(others)), others] = True
    lines: Indices = np.tile(players, (len(others), 1))[flags].reshape(len(others), int(inside.sum()) + 1)
    return lines


class RemovalPath:
    """What all players teach, and what changes as they go, one after the other.

    The order is known, so that all coalitions are trained in one batch: those of a game as its players go.

    Parameters
    ----------
    graph : SupportGraph
    order : int array
        The players that go.

    Attributes
    ----------
    wanted : CoalitionRequests
        What has to be trained.
    """

    def __init__(self, graph: SupportGraph, order: AnyArray) -> None:
        self._graph, self._order = graph, order
        rank = np.full(graph.n_players, len(order))
        rank[order] = np.arange(len(order))
        found, before = dict[bytes, list[int]](), list[int]()
        going, game_of = list[int](), list[int]()
        for g in range(graph.n_games):
            players = graph.game(g)
            turn = np.argsort(rank[players], kind="stable")
            n_going = int((rank[players] < len(order)).sum())
            for k in range(n_going + 1):
                found.setdefault(np.sort(players[turn[k:]]).tobytes(), []).append(len(game_of))
                before.append(len(game_of) - 1)
                going.append(int(players[turn[k - 1]]) if k else -1)
                game_of.append(g)
        self._before, self._going = np.array(before), np.array(going)
        self.wanted = CoalitionRequests(graph, found, np.array(game_of, dtype=np.int64))

    def changes(self, scores: Floats) -> tuple[float, Floats]:
        """What all players teach, and what each one that goes adds to that (a loss is below zero), in the order."""
        sums = np.empty(len(self._going))
        sums[self.wanted.places] = self.wanted.sums(scores)
        goes = self._going >= 0
        steps = sums[goes] - sums[self._before[goes]]
        by_player = np.bincount(self._going[goes], weights=steps, minlength=self._graph.n_players)
        return float(sums[~goes].sum()), by_player[self._order].astype(np.float64)


class CoalitionRequests:
    """Coalitions to train, each once, and where their scores belong.

    Parameters
    ----------
    graph : SupportGraph
    found : dict
        By coalition (the bytes of its ascending int32 players) the places that want its score.
    game_of : int array
        The game of each place, over whose test rows the scores are summed.

    Attributes
    ----------
    coalitions : Coalitions
    places : int array
    """

    def __init__(self, graph: SupportGraph, found: Mapping[bytes, Sequence[int]], game_of: Ints) -> None:
        self.places: Ints = np.array([place for places in found.values() for place in places], dtype=np.int64)
        per_coalition = offsets(np.array([len(places) for places in found.values()], dtype=np.int64))
        test_indptr, tests = chosen_lists(*graph.tests_of_games, game_of[self.places])
        # a buffer of bytes could only be read, which is another type: kernels would be compiled again for it
        members = np.frombuffer(bytearray().join(found), dtype=np.int32)
        sizes = np.array([len(key) // members.itemsize for key in found], dtype=np.int64)
        self.coalitions = Coalitions(offsets(sizes), members, test_indptr[per_coalition], tests.astype(np.int32))
        self._first_tests = test_indptr[:-1]

    def __len__(self) -> int:
        return len(self.coalitions)

    def score(self, executor: Executor, scores: list[Floats]) -> Work:
        """Have them scored; adds the scores of each piece to the list, and yields what it took."""
        for _, scored in executor.scores(ListSchedule([self.coalitions], len(self))):
            scores.append(scored.scores)
            yield scored.counts

    def sums(self, scores: Floats) -> Floats:
        """Scores summed over the test rows of each place's game."""
        return np.add.reduceat(scores, self._first_tests)
