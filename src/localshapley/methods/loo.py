"""Leave-one-out: what is lost without a player, `v(N) − v(N∖{z})`. Not a Shapley value, but cheap and exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localshapley.arrays import Floats, offsets
from localshapley.coalitions.batch import Batch
from localshapley.coalitions.games import SupportGraph
from localshapley.methods.base import GLOBAL_NOTE, CoalitionScorer, DeterministicRun, Method
from localshapley.methods.enumeration import MAX_SUBSETS, refuse_if_too_large
from localshapley.methods.limits import Limits
from localshapley.models.trainer import Work
from localshapley.notes import Note
from localshapley.sampling.estimate import PerTest


@dataclass(frozen=True)
class LeaveOneOut(Method):
    """What is lost without a row, with all other rows present."""

    name = "loo"
    kind = "exact"
    plays_all = True
    keeps_tests = False

    def start(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> LeaveOneOutRun:
        """Begin a run."""
        run = LeaveOneOutRun(graph, executor)
        refuse_if_too_large(graph, self.name, len(run), MAX_SUBSETS, settings.budget)
        return run


class LeaveOneOutRun(DeterministicRun):
    """Schedules the full coalition of every game, then each player left out of it, and takes in their scores.

    Parameters
    ----------
    graph : SupportGraph
    executor : CoalitionScorer
    """

    title, complete = "loo", Note("all-left-out", "every row left out once")

    def __init__(self, graph: SupportGraph, executor: CoalitionScorer) -> None:
        self.graph = graph
        self._executor = executor
        self._games = np.concatenate([np.arange(graph.n_games), np.repeat(np.arange(graph.n_games), graph.sizes)])
        self._without = np.concatenate([np.full(graph.n_games, -1), graph.players])
        self._given = self._answered = 0
        self._sums = np.zeros(len(self._games))
        self._full = np.zeros(graph.n_tests)
        self._bundled = np.zeros((1, 0 if graph.bundles is None else graph.bundles.n, graph.n_players))
        self.total = self.first_look = len(self)

    def __len__(self) -> int:
        return len(self._games)

    def train(self) -> Work:
        """Every coalition of the schedule."""
        return self._executor.feed(self, self)

    @property
    def notes(self) -> list[Note]:
        """What the values are not."""
        text = "values are what is lost without a row; they are not Shapley values, and do not add up."
        return [GLOBAL_NOTE, Note("not-shapley", text)]

    def take(self, size: int) -> Batch | None:
        """The next coalitions, at most `size`."""
        here = slice(self._given, min(self._given + size, len(self)))
        games, graph = self._games[here], self.graph
        if not len(games):
            return None
        self._given = here.stop
        full = [graph.game(g) for g in games]
        members = [players[players != z] for players, z in zip(full, self._without[here], strict=True)]
        tests = [graph.tests_of(g) for g in games]
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
        bundles = self.graph.bundles
        for c, player in enumerate(self._without[here].tolist()):
            tests, found = batch.tests_of(c), scores[batch.test_indptr[c] : batch.test_indptr[c + 1]]
            if player < 0:
                self._full[tests] = found
            elif bundles is not None:
                lost = np.bincount(bundles.of_test[tests], weights=self._full[tests] - found, minlength=bundles.n)
                self._bundled[0, :, player] += lost

    def values(self) -> Floats:
        """The loss without each player, summed over the games."""
        n_games = self.graph.n_games
        loss = self._sums[self._games[n_games:]] - self._sums[n_games:]
        return np.bincount(self._without[n_games:], weights=loss, minlength=self.graph.n_players).astype(np.float64)

    def per_test(self) -> PerTest:
        """The same, summed over the test rows of each bundle."""
        return LossPerBundle(self.graph, self._bundled)


@dataclass(frozen=True)
class LossPerBundle(PerTest):
    """What is lost without each player, for the test rows of each bundle."""

    graph: SupportGraph
    bundled: Floats

    def by_bundle(self) -> Floats | None:
        """Return the losses, if there are bundles."""
        return None if self.graph.bundles is None else self.bundled
