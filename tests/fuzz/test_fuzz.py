"""Some random cases, from a fixed seed; `make fuzz` plays others."""

from __future__ import annotations

import warnings

import pytest

import localshapley as ls
from fuzz import run
from made import changed

CASES, PARTS = 300, 10
EXACT_CASE = 17


@pytest.mark.parametrize("part", range(PARTS))
def test_random_cases_are_equal_or_refused_clearly(part):
    each = CASES // PARTS
    played = {number: run.play(number) for number in range(part * each, (part + 1) * each)}
    failed = [
        f"{number}: {outcome} {case}" for number, (case, outcome) in played.items() if outcome.kind in run.FAILURES
    ]
    assert not failed, "\n".join(failed)
    equal = sum(outcome.kind == "equal" for _, outcome in played.values())
    assert equal > 0.7 * each  # or the cases are no good


def off(valued):
    return changed(valued, values=valued.values + 1e-3)


def failing(valued):
    raise ZeroDivisionError


def loud(valued):
    warnings.warn("not for the user", RuntimeWarning, stacklevel=1)
    return valued


@pytest.mark.parametrize(("spoil", "kind"), [(off, "wrong"), (failing, "raw"), (loud, "warning")])
def test_failures_are_seen(monkeypatch, spoil, kind):
    value = ls.value
    monkeypatch.setattr(ls, "value", lambda *args, **options: spoil(value(*args, **options)))
    assert run.play(EXACT_CASE)[1].kind == kind
