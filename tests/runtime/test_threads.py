"""Threads give what a loop gives, and leave the interpreter as it was."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from localshapley.runtime.threads import SOON, beside, in_threads, switching_soon, unthreaded_blas


def test_results_come_in_the_order_of_the_parts():
    assert in_threads(lambda x: x * x, range(50)) == [x * x for x in range(50)]
    assert in_threads(abs, []) == []


def test_threads_switch_sooner_only_meanwhile():
    before = sys.getswitchinterval()
    assert in_threads(lambda _: sys.getswitchinterval(), [0]) == [pytest.approx(SOON)]
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda x: 1 / x, [0])
    assert sys.getswitchinterval() == before
    sys.setswitchinterval(SOON / 10)
    try:
        with switching_soon():
            assert sys.getswitchinterval() < SOON / 9  # never later than the user wants
    finally:
        sys.setswitchinterval(before)


def test_whoever_ends_last_leaves_the_interpreter_as_the_first_found_it():
    before = sys.getswitchinterval()
    first, second = switching_soon(), switching_soon()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getswitchinterval() == pytest.approx(SOON)
    second.__exit__(None, None, None)
    assert sys.getswitchinterval() == before


def test_threads_are_kept():
    def idents() -> list[int]:
        gate = threading.Barrier(2)  # so that both are at work

        def meet(_: int) -> int:
            gate.wait(timeout=30)
            return threading.get_ident()

        return sorted(in_threads(meet, range(2), 2))

    assert len(set(idents())) == 2
    assert idents() == idents()


def test_as_many_at_a_time_as_asked_for():
    gate = threading.Barrier(3)
    assert sorted(in_threads(lambda _: gate.wait(timeout=30), range(3), 3)) == [0, 1, 2]


def test_a_thread_that_asks_for_threads_does_the_work_itself():
    def work(x: int) -> list[bool]:
        me = threading.get_ident()
        return in_threads(lambda _: threading.get_ident() == me, range(4))

    assert in_threads(work, range(50), 2) == [[True] * 4] * 50
    assert beside(work, 0).result() == [True] * 4


def test_nothing_goes_on_after_an_error():
    ended, may_end = [], threading.Event()

    def work(x: int) -> None:
        if x == 0:
            may_end.set()
            raise ValueError("no")
        may_end.wait(timeout=30)
        ended.append(x)

    with pytest.raises(ValueError, match="no"):
        in_threads(work, range(4), 4)
    seen = list(ended)
    assert in_threads(abs, [1], 4) == [1]
    assert ended == seen


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    in_threads(abs, [1, 2])
    child = os.fork()
    if child == 0:
        os._exit(0 if in_threads(abs, [-1, 2]) == [1, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_blas_has_one_thread_meanwhile():
    def threads() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    np.ones((2, 2)) @ np.ones((2, 2))
    before = threads()
    with unthreaded_blas():
        assert set(threads()) == {1}
        with ThreadPoolExecutor(1) as other:
            assert set(other.submit(threads).result()) == {1}
    assert threads() == before
