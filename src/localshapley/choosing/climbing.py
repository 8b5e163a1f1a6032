"""The climb: what a set of rows teaches, with one row more (or less) at a time, each step exact."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from localshapley.arrays import AnyArray, Floats, Indices, Ints, Lists, chosen_lists, offsets
from localshapley.coalitions.batch import Coalitions
from localshapley.compiling import Stopwatch
from localshapley.games import SupportGraph
from localshapley.models.trainer import Counts, Trained
from localshapley.workers import Bench
from localshapley.workers.pieces import Pace


class Climb:
    """A set of players `A`, what it teaches, `U(A) = Σ_t v_t(A ∩ N(t))`, and what each next step would add to it.

    Scores are kept for every pair of a player and a game. A step changes those of the games that hold the player; the
    coalitions behind them are `pending` until `train` has had them trained, each once.

    Parameters
    ----------
    graph : SupportGraph
    bench : Bench
    removing : bool, default=False
        Whether `A` begins with all players, and steps take one out; else it begins empty, and steps put one in.

    Attributes
    ----------
    gains : array of shape (n_players,)
        What a step with each player adds to `U`; −∞ for players that have been moved.
    pending : Coalitions
        What has to be trained before the gains are right again.
    trainings : int
    draws : int
        Scores of coalitions, over all test rows.
    counts : Counts
    """

    def __init__(self, graph: SupportGraph, bench: Bench, *, removing: bool = False) -> None:
        self.graph, self.removing = graph, removing
        self.gains: Floats = np.zeros(graph.n_players)
        self.trainings = self.draws = 0
        self.counts = Counts()
        self._bench, self._pace = bench, Pace(bench.seconds_here, bench.max_batch)
        self._n_pairs = len(graph.players)
        self._inside: AnyArray = np.full(self._n_pairs, removing)
        # Of each game, summed over its test rows: after a step with each of its players, then those as it is.
        self._scores: Floats = np.zeros(self._n_pairs + graph.n_games)
        self._game_of: Indices = np.repeat(np.arange(graph.n_games, dtype=np.int32), graph.sizes)
        self._pairs_of: Lists = graph.where_indptr, np.argsort(graph.players, kind="stable").astype(np.int32)
        self._await(np.arange(graph.n_games), as_it_is=True)

    @property
    def utility(self) -> float:
        """`U(A)`."""
        return float(self._scores[self._n_pairs :].sum())

    def move(self, player: int) -> None:
        """Put a player in, or take it out."""
        indptr, pairs = self._pairs_of
        mine = pairs[indptr[player] : indptr[player + 1]]
        games = self._game_of[mine]
        self._inside[mine] = not self.removing
        self._scores[self._n_pairs + games] = self._scores[mine]
        self.gains[player] = -np.inf
        self._await(games)

    def train(self) -> Iterator[None]:
        """Have what is pending trained; gains are right at the end. Yields after each piece of work."""
        found, start = [], 0
        while start < len(self.pending):
            trained, stop = self._train_some(start)
            self.counts.add(trained.counts)
            self.trainings += stop - start
            self.draws += len(trained.scores)
            found.append(trained.scores)
            start = stop
            yield
        if found:
            self._scores[self._places] = np.add.reduceat(np.concatenate(found), self._first_tests)
            self._sum_up(np.unique(self.graph.players[self._places[self._places < self._n_pairs]]))
        self._await(np.empty(0, dtype=np.int64))

    def lower_start(self) -> None:
        """Let a support without any row score no better than its worst row alone.

        A row alone often predicts a number worse than the mean does, though many of them predict it better.
        """
        games = np.flatnonzero(self.graph.sizes)
        if len(games):
            worst = np.minimum.reduceat(self._scores[: self._n_pairs], self.graph.indptr[games])
            self._scores[self._n_pairs + games] = np.minimum(self._scores[self._n_pairs + games], worst)
            self._sum_up(np.unique(self.graph.players))

    def _train_some(self, start: int) -> tuple[Trained, int]:
        """Train coalitions from `start` on, in other processes if there are some and it takes them a moment."""
        trainer, left = self._bench.trainer, len(self.pending) - start
        n_jobs = 1 if trainer.batch_size else trainer.n_jobs
        if n_jobs > 1 and self._pace.is_known and self._pace.fitting < left:
            stop = start + min(left, n_jobs * self._pace.size)
            return self._bench.train(self.pending.part(start, stop)), stop
        stop = start + min(left, trainer.batch_size or self._pace.size)
        with Stopwatch(self._bench.clock) as watch:
            trained = trainer.train(self.pending.part(start, stop))
        self._pace.learn(stop - start, watch.seconds)
        return trained, stop

    def _await(self, games: AnyArray, *, as_it_is: bool = False) -> None:
        """List the coalitions of `A` in these games after each step, and as it is if asked for, each once."""
        graph, found = self.graph, dict[bytes, list[int]]()
        for g in games.tolist():
            first, last = int(graph.indptr[g]), int(graph.indptr[g + 1])
            players, inside = graph.players[first:last], self._inside[first:last]
            movable = np.flatnonzero(inside == self.removing)
            for place, coalition in zip(movable.tolist(), self._after(players, inside, movable), strict=True):
                found.setdefault(coalition.tobytes(), []).append(first + place)
            if as_it_is:
                found.setdefault(players[inside].tobytes(), []).append(self._n_pairs + g)
        places = np.array([place for of_one in found.values() for place in of_one], dtype=np.int64)
        of_coalition = offsets(np.array([len(of_one) for of_one in found.values()], dtype=np.int64))
        game: Ints = np.append(self._game_of, np.arange(graph.n_games))[places].astype(np.int64)
        test_indptr, tests = chosen_lists(*graph.tests_of_games, game)
        self._places, self._first_tests = places, test_indptr[:-1]
        members = np.frombuffer(b"".join(found), dtype=np.int32)
        sizes = np.array([len(key) // members.itemsize for key in found], dtype=np.int64)
        self.pending = Coalitions(offsets(sizes), members, test_indptr[of_coalition], tests.astype(np.int32))

    def _after(self, players: Indices, inside: AnyArray, movable: Ints) -> Indices:
        """The coalition after each step, one per line."""
        flags = np.tile(inside, (len(movable), 1))
        flags[np.arange(len(movable)), movable] = not self.removing
        size = max(0, int(inside.sum()) + (-1 if self.removing else 1))
        lines: Indices = np.tile(players, (len(movable), 1))[flags].reshape(len(movable), size)
        return lines

    def _sum_up(self, players: AnyArray) -> None:
        """Sum the gains of some players over their games."""
        indptr, pairs = chosen_lists(*self._pairs_of, players)
        step = self._scores[pairs] - self._scores[self._n_pairs + self._game_of[pairs]]
        self.gains[players] = np.add.reduceat(step, indptr[:-1])
