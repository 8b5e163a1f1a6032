"""Leave-one-out: what is lost without a player, `v(N) − v(N∖{z})`. No Shapley value, but cheap and exact."""

from __future__ import annotations

import numpy as np

from localshapley.arrays import Floats, offsets
from localshapley.coalitions.batch import Batch
from localshapley.games import SupportGraph


class LeaveOneOut:
    """Schedules the full coalition of every game, then each player left out of it, and takes in their scores.

    Parameters
    ----------
    graph : SupportGraph
    """

    def __init__(self, graph: SupportGraph) -> None:
        self._graph = graph
        self._games = np.concatenate([np.arange(graph.n_games), np.repeat(np.arange(graph.n_games), graph.sizes)])
        self._without = np.concatenate([np.full(graph.n_games, -1), graph.players])
        self._given = self._answered = 0
        self._sums = np.zeros(len(self._games))

    def __len__(self) -> int:
        return len(self._games)

    def take(self, size: int) -> Batch | None:
        """The next coalitions, at most `size`."""
        here = slice(self._given, min(self._given + size, len(self)))
        games, graph = self._games[here], self._graph
        if not len(games):
            return None
        self._given = here.stop
        full = [graph.game(g) for g in games]
        members = [players[players != z] for players, z in zip(full, self._without[here], strict=True)]
        tests = [graph.tests[graph.test_indptr[g] : graph.test_indptr[g + 1]] for g in games]
        return Batch(
            offsets(np.array([len(m) for m in members])),
            np.concatenate(members),
            offsets(graph.tests_per_game[games]),
            np.concatenate(tests),
            np.arange(len(games) + 1),
            games.astype(np.int32),
        )

    def left(self) -> int:
        """Coalitions still to be given out."""
        return len(self) - self._given

    def add(self, batch: Batch, scores: Floats) -> None:
        """Take in the scores of a batch; batches come back in the order in which they were taken."""
        here = slice(self._answered, self._answered + len(batch))
        self._sums[here] = np.add.reduceat(scores, batch.test_indptr[:-1])
        self._answered = here.stop

    def values(self) -> Floats:
        """The loss without each player, summed over the games."""
        n_games = self._graph.n_games
        loss = self._sums[self._games[n_games:]] - self._sums[n_games:]
        return np.bincount(self._without[n_games:], weights=loss, minlength=self._graph.n_players).astype(np.float64)
