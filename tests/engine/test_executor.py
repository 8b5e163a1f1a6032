"""Work that is spread: over processes, threads or a Dask cluster, with workers that die, errors and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures.process import BrokenProcessPool
from itertools import count

import joblib
import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
import naive
from engine.runs import X_TEST, Y_TEST, MortalTree, X, Y, run, run_with, same_bits
from localshapley.coalitions.subsets import PivotSchedule
from localshapley.engine.executor import Executor
from localshapley.models.trainer import Counts, Trainer, TrainingOutcome
from localshapley.supports.nearest import nearest_rows


class RefusingTree(DecisionTreeClassifier):
    """A tree that raises on coalitions that hold both of two rows of `X`."""

    def fit(self, rows, y):
        held = [(rows == X[z]).all(axis=1).any() for z in PAIR]
        if all(held) and len(y) < len(Y):
            raise RuntimeError("cannot bear these two")
        return super().fit(rows, y)


SUPPORTS = nearest_rows(X, X_TEST, 7)
MIXED = next(support for support in SUPPORTS if len(set(Y[support].tolist())) > 1)
PAIR = (int(MIXED[0]), int(next(z for z in MIXED if Y[z] != Y[MIXED[0]])))


@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize("settings", [{}, {"method": "sample", "budget": 400}], ids=["exact", "sample"])
def test_same_bits_on_every_backend(backend, settings):
    one = run(**settings)
    with joblib.parallel_config(backend=backend):
        other = run(n_jobs=2, **settings)
    assert same_bits(one, other)
    assert one.cost.trainings == other.cost.trainings
    assert one.cost.trivial == other.cost.trivial


class Sleeper(Trainer):
    """A trainer that is the slower the earlier its coalitions come."""

    name = "sleeper"
    n_jobs = 4

    def __init__(self):
        self.turn = count()

    def train(self, coalitions):
        turn = next(self.turn)
        time.sleep(0.02 / (1 + turn))
        scores = coalitions.tests + 0.5 * np.repeat(np.diff(coalitions.indptr), np.diff(coalitions.test_indptr))
        return TrainingOutcome(scores, Counts(failed=len(coalitions), first_failure=str(coalitions.coalition(0))))


@pytest.mark.parametrize("late", [2.0, -1.0], ids=["whole", "in parts"])
def test_batches_come_back_in_their_order(late, monkeypatch):
    monkeypatch.setattr("localshapley.engine.pieces.LATE", late)  # below 0, every job is cut after its first part
    graph = ls.SupportGraph([range(8), range(4, 12)])
    with joblib.parallel_config(backend="threading"):
        found = list(Executor(Sleeper()).scores(PivotSchedule(graph)))
    schedule = PivotSchedule(graph)
    alone = schedule.take(2**14)
    assert len(found) > 8
    assert np.concatenate([batch.players for batch, _ in found]).tolist() == alone.players.tolist()
    expected = alone.tests + 0.5 * np.repeat(np.diff(alone.indptr), np.diff(alone.test_indptr))
    assert np.concatenate([scored.scores for _, scored in found]).tolist() == expected.tolist()
    for batch, scored in found:  # what happened comes back in the same order
        assert scored.counts.failed == len(batch)
        assert scored.counts.first_failure == str(batch.coalition(0))


class TestWorkersThatDie:
    @pytest.mark.slow
    def test_their_work_is_done_again(self, tmp_path):
        alone = run(model=MortalTree(str(tmp_path)))
        (tmp_path / "first").touch()
        assert same_bits(alone, run(model=MortalTree(str(tmp_path)), n_jobs=2))
        assert not list(tmp_path.iterdir())

    def test_a_source_that_is_closed_is_no_trouble_of_its_own(self, monkeypatch):
        # joblib closes the source of its jobs when workers die; that must not hide why they did.
        class Closing:
            def __init__(self, *args, **settings):
                pass

            def __call__(self, jobs):
                next(jobs)
                jobs.close()
                raise BrokenProcessPool("they died")
                yield

        monkeypatch.setattr("localshapley.engine.backends.joblib.Parallel", Closing)
        with pytest.raises(ls.TrainingError, match="died 3 times in a row"):
            run(model=MortalTree(""), n_jobs=2)

    def test_plans_say_so_too(self, monkeypatch):
        def broken(*args, **settings):
            raise BrokenProcessPool("they died")

        monkeypatch.setattr("localshapley.engine.backends.joblib.Parallel", broken)
        with pytest.raises(ls.TrainingError, match=r"worker processes died \(BrokenProcessPool\); out of memory"):
            ls.plan(X, Y, X_TEST, Y_TEST, model=MortalTree(""), n_jobs=2)

    @pytest.mark.slow
    def test_three_times_are_enough(self, tmp_path):
        (tmp_path / "always").touch()
        with pytest.raises(ls.TrainingError, match="worker processes died 3 times in a row"):
            run(model=MortalTree(str(tmp_path)), n_jobs=2)


class TestErrors:
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_the_rows_are_named(self, n_jobs, store):
        with pytest.raises(ls.TrainingError, match="cannot bear these two") as caught:
            run(model=RefusingTree(random_state=0), n_jobs=n_jobs, store=store)
        assert str(PAIR[0]) in str(caught.value)
        assert str(PAIR[1]) in str(caught.value)

    def test_what_was_trained_before_the_error_is_not_trained_again(self, store):
        with pytest.raises(ls.TrainingError):
            run_with({"seconds_here": 1e-9}, store, model=RefusingTree(random_state=0))
        before = store.info().n_coalitions
        assert before > 16
        skipped = run(model=RefusingTree(random_state=0), store=store, on_error="skip")
        assert skipped.cost.stored == before

    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.slow
    def test_they_can_be_skipped_and_are_noted(self, n_jobs):
        v = run(model=RefusingTree(random_state=0), on_error="skip", n_jobs=n_jobs)
        note = next(note for note in v.notes if "failed to train" in note)
        assert "values are biased" in note
        assert "cannot bear these two" in note
        n = int(note.split()[0])
        assert n == sum(set(PAIR) <= set(subset) for subset in naive.distinct_subsets(SUPPORTS))

    def test_other_words_are_refused(self):
        with pytest.raises(ls.InvalidArgumentError, match="on_error"):
            run(on_error="ignore")
        with pytest.raises(ls.InvalidArgumentError, match="on_interrupt"):
            run(on_interrupt="ignore")


class Interrupted:
    """A utility that is interrupted after some calls."""

    def __init__(self, calls):
        self.left = calls

    def __call__(self, coalition, tests):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return [np.sqrt(len(coalition)) + 0.1 * (int(np.sum(coalition)) % 3) for _ in tests]


class TestInterrupt:
    supports = [range(start, start + 12) for start in range(0, 30, 3)]  # noqa: RUF012

    def test_a_sampled_run_returns_its_finished_rounds(self):
        whole = ls.shapley(self.supports, Interrupted(10**9), method="sample", tol=0.02)
        assert whole.cost.trainings > 500
        calls = int(0.9 * whole.cost.trainings)
        part = ls.shapley(self.supports, Interrupted(calls), method="sample", tol=0.02, on_interrupt="return")
        assert part.stopped == "interrupted"
        assert (part.stderr > 0).any()
        exact = ls.shapley(self.supports, Interrupted(10**9))
        error = np.abs(part.values - exact.values)[part.stderr > 0] / part.stderr[part.stderr > 0]
        assert np.sqrt((error**2).mean()) < 3

    @pytest.mark.parametrize(
        "settings", [{"method": "sample", "tol": 0.02}, {"method": "exact", "on_interrupt": "return"}]
    )
    def test_otherwise_it_ends(self, settings):
        with pytest.raises(KeyboardInterrupt):
            ls.shapley(self.supports, Interrupted(300), **settings)

    def test_before_the_first_round_there_is_nothing_to_return(self):
        with pytest.raises(KeyboardInterrupt):
            ls.shapley(self.supports, Interrupted(5), method="sample", on_interrupt="return")

    @pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
    def test_ctrl_c_ends_the_run_and_all_batches_are_stored(self, n_jobs, tmp_path):
        code = f"""
            import signal, time, localshapley as ls
            from sklearn.tree import DecisionTreeClassifier

            class SlowTree(DecisionTreeClassifier):
                def fit(self, X, y):
                    time.sleep(0.01)
                    return super().fit(X, y)

            signal.signal(signal.SIGINT, signal.default_int_handler)  # which the background of a shell ignores
            X, y, X_test, y_test, _ = ls.datasets.load("iris")
            ls.value(X, y, X_test, y_test, model=SlowTree(), support=ls.supports.Nearest(12), method="exact",
                     store={str(tmp_path / "run.db")!r}, n_jobs={n_jobs},
                     progress=lambda done, total: print(done, flush=True))
        """
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for _ in range(4):
            done = int(child.stdout.readline())
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does
        _, errors = child.communicate()
        assert child.returncode != 0
        assert "KeyboardInterrupt" in errors
        with ls.Store(tmp_path / "run.db") as store:
            assert store.verify() == []
            assert done <= store.info().n_coalitions < 10_000  # of some 50,000


class Payload:
    """A parameter of a model that counts how often it is packed."""

    packed = 0

    def __getstate__(self):
        Payload.packed += 1
        return {}


class LadenTree(DecisionTreeClassifier):
    """A tree with a parameter of its own."""

    def __init__(self, payload=None, random_state=0):
        super().__init__(random_state=random_state)
        self.payload = payload


def test_data_travel_once_and_not_with_every_piece():
    Payload.packed = 0
    v = run_with({"max_batch": 16}, model=LadenTree(Payload()), n_jobs=2)
    assert v.cost.trainings > 500  # dozens of pieces
    assert 1 <= Payload.packed <= 3
