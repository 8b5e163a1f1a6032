"""Pieces of work: how large they are, and where they are cut. The clock is moved by trainings alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import localshapley as ls
from localshapley.coalitions.subsets import PivotSchedule
from localshapley.engine.executor import Executor
from localshapley.engine.pieces import BatchSizer, Piece, WorkSizer
from localshapley.models.trainer import Counts, Trainer, TrainingOutcome


class TestPace:
    def test_it_grows_fourfold_at_most_and_settles_at_the_target(self):
        pace, sizes = WorkSizer(1.0, 2**14), []
        for _ in range(12):
            sizes.append(pace.size)
            pace.learn(pace.size, 0.002 * pace.size)
        assert sizes[:3] == [16, 64, 256]
        assert sizes[-1] == 500

    def test_it_follows_when_trainings_slow_down(self):
        pace = WorkSizer(1.0, 2**14)
        for each in [0.001] * 8 + [0.1] * 8:
            pace.learn(pace.size, each * pace.size)
        assert 9 <= pace.size <= 12

    def test_one_slow_training_is_a_piece(self):
        pace = WorkSizer(1.0, 2**14)
        pace.learn(16, 1600.0)
        assert pace.size == 1


class TestBatchSizer:
    def test_what_needs_no_training_says_nothing_about_trainings(self):
        sizer = BatchSizer(0.5, 2**14)
        for _ in range(8):
            sizer.learn(sizer.size, 0, 1e-6 * sizer.size)
        assert sizer.size == 2**14
        assert sizer.trainings == 16

    def test_a_fixed_size_stays(self):
        sizer = BatchSizer(0.5, 2**14, fixed=100)
        sizer.learn(100, 100, 1000.0)
        assert (sizer.size, sizer.trainings) == (100, 100)


class Slow(Trainer):
    """A trainer whose clock moves by `seconds(n)` for the `n`-th training; some players make it trivial."""

    name = "slow"

    def __init__(self, seconds: Callable[[int], float], n_trivial: int = 0, batch_size: int | None = None) -> None:
        self._seconds, self._n_trivial, self.batch_size = seconds, n_trivial, batch_size
        self.now, self.n_trained = 0.0, 0

    def trivial(self, coalitions):
        lowest = [min(coalitions.coalition(c), default=np.inf) for c in range(len(coalitions))]
        return np.array(lowest) < self._n_trivial  # these come first

    def train(self, coalitions):
        n_trivial = int(self.trivial(coalitions).sum())
        for _ in range(len(coalitions) - n_trivial):
            self.n_trained += 1
            self.now += self._seconds(self.n_trained)
        scores = np.concatenate([np.empty(0), *(score(coalitions, c) for c in range(len(coalitions)))])
        return TrainingOutcome(scores, Counts(trivial=n_trivial))

    def clock(self):
        return self.now


def score(coalitions, c):
    return coalitions.tests_of(c) + np.sqrt(coalitions.coalition(c) + 1.0).sum()


class Kept:
    """A store that knows nothing, and notes what was trained, and when it was told."""

    notes: list[str] = []  # noqa: RUF012

    def __init__(self, trainer):
        self.trainer, self.coalitions, self.trainings, self.at = trainer, [], [], [0.0]

    def look_up(self, coalitions):
        return np.full(len(coalitions.tests), np.nan)

    def keep(self, coalitions, trained):
        self.coalitions.append(len(coalitions))
        self.trainings.append(len(coalitions) - trained.counts.trivial)
        self.at.append(self.trainer.now)

    @property
    def between(self):
        """Seconds between one write and the next."""
        return np.diff(self.at)


def written(trainer, graph):
    """Score all coalitions of a graph, check the scores, and return what was written when."""
    store = Kept(trainer)
    found = list(Executor(trainer, store, clock=trainer.clock).scores(PivotSchedule(graph)))
    alone = PivotSchedule(graph).take(2**20)
    expected = np.concatenate([score(alone, c) for c in range(len(alone))])
    assert np.concatenate([batch.players for batch, _ in found]).tolist() == alone.players.tolist()
    assert np.concatenate([scored.scores for _, scored in found]).tolist() == expected.tolist()
    assert sum(scored.counts.trainings for _, scored in found) == sum(store.coalitions) == len(alone)
    return store


SIXTEEN = ls.SupportGraph([range(16)])  # 65,536 coalitions


def test_a_slow_model_after_many_coalitions_of_one_class_is_written_after_each_training():
    store = written(Slow(lambda n: 10.0, n_trivial=4), ls.SupportGraph([range(14)]))
    assert max(store.coalitions) > 5000  # these took no time
    assert max(store.trainings) == 1
    assert store.between.max() == 10.0


def test_trainings_of_an_eighth_of_a_second_are_written_every_half_second():
    store = written(Slow(lambda n: 0.125, n_trivial=1), ls.SupportGraph([range(12)]))
    assert store.between.max() <= 1.125
    assert np.median(store.between[store.between > 0]) == 0.5


def test_a_batch_that_turns_slow_is_cut():
    store = written(Slow(lambda n: 0.001 if n < 3000 else 1.0), ls.SupportGraph([range(12)]))
    assert max(store.trainings) > 400
    # What was begun at the old pace is a quarter of a piece; then the pace is learnt.
    assert sorted(store.between)[-3] < 10
    assert store.between.max() < 160


def test_quick_trainings_are_not_cut_into_parts():
    class Counting(Slow):
        calls = 0

        def train(self, coalitions):
            Counting.calls += 1
            return super().train(coalitions)

    store = written(Counting(lambda n: 1e-6), SIXTEEN)
    assert Counting.calls <= len(store.coalitions) + 4  # the first are tried one, two, four and eight at a time


def test_batches_of_a_fixed_size_are_never_cut():
    store = written(Slow(lambda n: 100.0, n_trivial=5, batch_size=300), ls.SupportGraph([range(12)]))
    assert set(store.coalitions[:-1]) == {300}


class TestPiece:
    @pytest.fixture
    def batch(self):
        return PivotSchedule(ls.SupportGraph([range(3)])).take(8)

    def test_it_is_cut_after_a_number_of_coalitions_that_are_to_be_trained(self, batch):
        known = np.full(len(batch), np.nan)
        known[[0, 2, 3, 7]] = [0.0, 2.0, 3.0, 7.0]
        piece = Piece(batch, known, np.arange(8) == 4)  # 1, 5, 6 to be trained, 4 to be scored without
        assert len(piece.todo) == 4
        assert piece.n_trainings == 3
        assert piece.stops(np.array([1, 2, 3])) == [1, 3, 4]
        assert piece.stops(np.array([2])) == [3, 4]
        first, rest = piece.cut(1)
        assert (len(first.batch), len(first.todo), len(rest.batch), len(rest.todo)) == (2, 1, 6, 3)
        assert first.scored(TrainingOutcome(np.array([1.0]))).scores.tolist() == [0.0, 1.0]
        found = rest.scored(TrainingOutcome(np.array([4.0, 5.0, 6.0])))
        assert found.scores.tolist() == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
        assert (found.counts.trainings, found.counts.stored) == (3, 3)
        assert piece.cut(4) == (piece, None)
