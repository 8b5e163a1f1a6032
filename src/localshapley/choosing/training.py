"""Coalitions that are wanted for many games at once: listed once each, trained in pieces, counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from localshapley.arrays import Floats, Ints, chosen_lists, offsets
from localshapley.coalitions.batch import Coalitions
from localshapley.compiling import Stopwatch
from localshapley.games import SupportGraph
from localshapley.models.trainer import Counts, Trained
from localshapley.workers import Bench
from localshapley.workers.pieces import Pace


class Wanted:
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

    def sums(self, scores: Floats) -> Floats:
        """Scores summed over the test rows of each place's game."""
        return np.add.reduceat(scores, self._first_tests)


class Trainings:
    """Trains coalitions in pieces, and counts what that took.

    Attributes
    ----------
    n : int
        Coalitions trained.
    draws : int
        Coalitions scored, over all test rows.
    counts : Counts
    """

    def __init__(self, bench: Bench) -> None:
        self.n = self.draws = 0
        self.counts = Counts()
        self._bench, self._pace = bench, Pace(bench.seconds_here, bench.max_batch)

    def work_off(self, coalitions: Coalitions) -> Iterator[Floats]:
        """Have coalitions trained; yields the scores of each piece."""
        start = 0
        while start < len(coalitions):
            trained, stop = self._train_some(coalitions, start)
            self.counts.add(trained.counts)
            self.n += stop - start
            self.draws += len(trained.scores)
            start = stop
            yield trained.scores

    def _train_some(self, coalitions: Coalitions, start: int) -> tuple[Trained, int]:
        """Train coalitions from `start` on, in other processes if there are some and it takes them a moment."""
        trainer, left = self._bench.trainer, len(coalitions) - start
        n_jobs = 1 if trainer.batch_size else trainer.n_jobs
        if n_jobs > 1 and self._pace.is_known and self._pace.fitting < left:
            stop = start + min(left, n_jobs * self._pace.size)
            return self._bench.train(coalitions.part(start, stop)), stop
        stop = start + min(left, trainer.batch_size or self._pace.size)
        with Stopwatch(self._bench.clock) as watch:
            trained = trainer.train(coalitions.part(start, stop))
        self._pace.learn(stop - start, watch.seconds)
        return trained, stop
