"""Threads give what a loop gives, and leave the interpreter as it was."""

from __future__ import annotations

import sys

import pytest

from localshapley.inputs.threads import SOON, in_threads, switching_soon


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
