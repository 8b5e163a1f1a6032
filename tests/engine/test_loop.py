"""The loop: what it asks of a method, in what order, and what ends it; with a method that does as it is told."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import localshapley as ls
from localshapley.engine.executor import Executor
from localshapley.engine.loop import play
from localshapley.engine.run_result import MAX_LOOKS
from localshapley.methods import Limits, Method, Run
from localshapley.models.trainer import Counts
from localshapley.models.utility import as_trainer
from localshapley.runtime.compiling import Stopwatch
from localshapley.stopping import Estimate, Trainings


@dataclass(frozen=True)
class Scripted(Method):
    """Rounds of so many trainings, one piece of work each; an exception in the script is raised there."""

    name = "scripted"
    script: tuple = ()
    exact_after: int = 10**9
    can_look: bool = False
    log: list = field(default_factory=list)

    def start(self, graph, executor, settings):
        self.log.append("start")
        return ScriptedRun(self, graph)


class ScriptedRun(Run):
    title, complete = "scripted", "all of it"

    def __init__(self, method, graph):
        self.graph, self._method, self._rounds = graph, method, iter(method.script)
        self._done = self._drawn = self._looks = 0
        self.closed = False

    @property
    def distinct(self):
        return self._done

    @property
    def planned(self):
        return self._drawn

    @property
    def can_look(self):
        return self._method.can_look

    @property
    def ended(self):
        return "the script is over"

    def begin(self):
        self._method.log.append("begin")
        yield Counts(trainings=1, draws=1)
        self._done = self._drawn = 1

    def draw(self, left, estimate, rule):
        self._method.log.append(("draw", left))
        self._round = next(self._rounds, None)
        self._drawn += 0 if self._round is None else sum(n for n in self._round if isinstance(n, int))
        return self._round is not None

    def train(self):
        try:
            for piece in self._round:
                if not isinstance(piece, int):
                    raise piece
                self._done += piece
                yield Counts(trainings=piece, draws=2 * piece, reused=piece)
        finally:
            self.closed = True
            self._method.log.append("closed")

    def cut_short(self):
        self._method.log.append("cut short")
        self._drawn = self._done

    def estimate(self):
        self._looks += 1
        values = np.full(3, float(self._looks))
        return Estimate(
            values,
            values / 10,
            np.stack([values, values]),
            trainings=self._done,
            exact=self._looks >= self._method.exact_after,
        )


def played(method, clock=None, store=None, **settings):
    trainer = as_trainer(lambda coalition, tests: [0.0] * len(tests))
    settings = Limits(method, **{"stop": Trainings(10**9), **settings})
    limits = {"max_seconds": settings.max_seconds, "on_interrupt": settings.on_interrupt}
    executor = Executor(trainer, store, **limits, **({"clock": clock} if clock else {}))
    return play(ls.SupportGraph([range(3)]), executor, settings)


def test_rounds_follow_each_other_until_the_script_is_over():
    method = Scripted(((2, 3), (4,)))
    found = played(method)
    assert method.log == ["start", "begin", ("draw", np.inf), "closed", ("draw", np.inf), "closed", ("draw", np.inf)]
    assert found.stopped == "the script is over"
    assert found.values.tolist() == [2, 2, 2]
    assert (found.cost.trainings, found.cost.draws, found.cost.reused) == (10, 19, 9)
    assert found.cost.distinct == 10
    assert found.history.trainings.tolist() == [6, 10]


def test_what_was_trained_first_may_be_all_there_is():
    found = played(Scripted())
    assert found.values.tolist() == [1, 1, 1]
    assert found.history is None


def test_an_exact_look_is_the_end():
    found = played(Scripted(((1,),) * 5, exact_after=3))
    assert found.stopped == "all of it"
    assert found.values.tolist() == [3, 3, 3]


def test_a_rule_is_looked_at_after_each_round_and_a_budget_before():
    found = played(Scripted(((5,),) * 9), stop=Trainings(11))
    assert found.stopped == "11 trainings (limit 11)"
    method = Scripted(((5,), (5,)))
    played(method, budget=20)
    assert [left for kind, left in (entry for entry in method.log if isinstance(entry, tuple))] == [19, 14, 9]


class Clock:
    """Ten seconds each time that it is asked."""

    now = 0.0

    def __call__(self):
        self.now += 10
        return self.now


class TestTimeIsUp:
    def test_never_before_there_is_something_to_show(self):
        method = Scripted(((1, 1, 1), (1, 1, 1)))
        found = played(method, Clock(), max_seconds=1)
        assert found.stopped.endswith("s (limit 1 s)")
        assert found.values.tolist() == [1, 1, 1]
        assert "cut short" not in method.log  # the first round ended, and its look was enough

    def test_a_round_that_is_cut_short_is_forgotten(self):
        class Patient(Clock):
            def __call__(self):
                return super().__call__() if method.log.count("closed") else 0.0

        method = Scripted(((1, 1), (1, 1, 1)))
        found = played(method, Patient(), max_seconds=15)
        assert method.log[-2:] == ["closed", "cut short"]
        assert found.values.tolist() == [1, 1, 1]

    @pytest.mark.parametrize(
        ("limit", "room", "stored"), [(100, 0.8 * 21 * 4, False), (21, 0.0, False), (21, np.inf, True)]
    )
    def test_later_rounds_are_to_fit_into_what_is_left_unless_a_store_keeps_what_is_cut(self, limit, room, stored):
        class Working:
            def __call__(self):  # until the first look, all trainings took 20 seconds
                return 20.0 if "closed" in method.log else 0.0

        method = Scripted(((20,), (1,)))
        played(method, Working(), store=object() if stored else None, max_seconds=limit)
        draws = [entry[1] for entry in method.log if entry[0] == "draw"]
        assert draws[1] == pytest.approx(room)

    def test_what_is_finished_of_a_round_is_used_where_it_can_be(self):
        method = Scripted(((1, 1, 1), (1,)), can_look=True)
        found = played(method, Clock(), max_seconds=1)
        assert method.log[-2:] == ["closed", "cut short"]
        assert found.values.tolist() == [1, 1, 1]
        assert found.cost.trainings == 2
        assert found.stopped.endswith("s (limit 1 s)")


class TestInterruptions:
    def test_raised_where_there_is_nothing_to_show_or_it_is_not_wanted(self):
        for script, how in (((((1, KeyboardInterrupt())),), "return"), (((1,), (KeyboardInterrupt(),)), "raise")):
            with pytest.raises(KeyboardInterrupt):
                played(Scripted(script), on_interrupt=how)

    def test_what_is_known_is_returned(self):
        method = Scripted(((1,), (1, KeyboardInterrupt(), 1), (1,)))
        found = played(method, on_interrupt="return")
        assert found.stopped == "interrupted"
        assert found.values.tolist() == [1, 1, 1]
        assert method.log[-2:] == ["closed", "cut short"]

    def test_one_that_comes_when_the_round_is_done_is_not_lost(self):
        found = played(Scripted(((1,), (1, KeyboardInterrupt()), (1,), (1,))), on_interrupt="return")
        assert found.stopped == "interrupted"
        assert found.values.tolist() == [2, 2, 2]  # its round counts

    def test_an_error_ends_the_run_and_closes_the_round(self):
        method = Scripted(((1,), (1, RuntimeError("a bug"))))
        with pytest.raises(RuntimeError, match="a bug"):
            played(method)
        assert method.log[-1] == "closed"


def test_a_long_history_is_thinned_out_and_keeps_its_end():
    found = played(Scripted(((1,),) * 100))
    trainings = found.history.trainings
    assert len(trainings) <= MAX_LOOKS
    assert trainings[-1] == 101
    assert (np.diff(trainings) > 0).all()


def test_a_stopwatch_tells_compiling_apart():
    from numba import njit

    with Stopwatch() as watch:
        njit(lambda x: x + 1)(1)
    assert watch.compile_seconds > 0
    assert watch.elapsed >= watch.compile_seconds
    assert watch.seconds == pytest.approx(watch.elapsed - watch.compile_seconds)
    assert (watch.elapsed, watch.compile_seconds) == (watch.elapsed, watch.compile_seconds)  # it has stopped
