"""Settings of the process, wanted by threads that overlap."""

from __future__ import annotations

import sys
import threading
import warnings
from contextlib import ExitStack, contextmanager

import pytest
from threadpoolctl import threadpool_info

from localshapley.runtime.process_settings import SharedSetting, caught_warnings
from localshapley.runtime.threads import switching_soon, unthreaded_blas


def in_turn(*steps):
    """Take steps one after the other, each in a thread of its own."""
    for step in steps:
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()


@pytest.fixture
def setting():
    made = []

    @contextmanager
    def make():
        made.append("made")
        yield
        made.append("taken back")

    return SharedSetting(make), made


def test_the_first_makes_it_and_the_last_takes_it_back(setting):
    shared, made = setting
    one, two = ExitStack(), ExitStack()
    in_turn(lambda: one.enter_context(shared), lambda: two.enter_context(shared), one.close)
    assert made == ["made"]
    in_turn(two.close)
    assert made == ["made", "taken back"]
    with shared:
        assert made == ["made", "taken back", "made"]


def test_an_error_takes_it_back_too(setting):
    shared, made = setting
    with pytest.raises(ZeroDivisionError), shared:
        raise ZeroDivisionError
    assert made == ["made", "taken back"]


def settings_of_the_process():
    blas = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    return blas, list(warnings.filters), warnings.showwarning, sys.getswitchinterval()


@pytest.mark.parametrize("context", [unthreaded_blas, switching_soon, caught_warnings])
def test_threads_that_overlap_leave_nothing_behind(context):
    before = settings_of_the_process()
    entered, may_leave = threading.Event(), threading.Event()

    def second():
        with context():
            entered.set()
            may_leave.wait()

    thread = threading.Thread(target=second)
    with context():
        thread.start()
        entered.wait()
    may_leave.set()
    thread.join()
    assert settings_of_the_process() == before


def test_warnings_are_caught_by_the_thread_that_warns():
    with warnings.catch_warnings(record=True) as shown, caught_warnings() as caught:
        warnings.warn("here", RuntimeWarning, stacklevel=1)
        with caught_warnings() as inner:
            warnings.warn("inside", DeprecationWarning, stacklevel=1)
        in_turn(lambda: warnings.warn("another thread", UserWarning, stacklevel=1))
    assert caught == [RuntimeWarning]
    assert inner == [DeprecationWarning]
    assert [str(warning.message) for warning in shown] == ["another thread"]
