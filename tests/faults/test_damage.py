"""Damaged files and full disks, in other processes: a few trials in each run of the tests, all in the long one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faults import full_disk
from faults.batches import report, run_batches

HERE = Path(__file__).parent
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


def ended_well(name: str, n_trials: int) -> set[str]:
    """Run trials, print how they ended, and return the ways."""
    ended = run_batches(str(HERE / f"{name}.py"), n_trials)
    print(report(name, ended))
    wrong = [how for how in ended if how.startswith(("WRONG", "CRASHED"))]
    assert not wrong, "\n".join(wrong)
    assert sum(ended.values()) == n_trials
    return set(ended)


def test_fifty_damaged_valuations():
    assert "refused" in ended_well("damaged_valuations", 50)


def test_fifty_damaged_stores():
    assert {"refused", "right", "the run continued without its store"} <= ended_well("damaged_stores", 50)


@needs_fork
def test_a_disk_that_is_full_at_some_moment():
    assert len(ended_well("full_disk", 12)) > 2


@needs_fork
def test_compiled_code_that_cannot_be_kept_is_used():
    assert full_disk.without_room_for_code().startswith("[[")


@pytest.mark.long
def test_a_thousand_damaged_valuations(capsys):
    with capsys.disabled():
        assert "refused" in ended_well("damaged_valuations", 1000)


@pytest.mark.long
def test_five_hundred_damaged_stores(capsys):
    with capsys.disabled():
        assert {"refused", "right", "the run continued without its store"} <= ended_well("damaged_stores", 500)


@pytest.mark.long
@needs_fork
def test_a_disk_that_is_full_at_any_moment(capsys):
    with capsys.disabled():
        assert len(ended_well("full_disk", 60)) > 3
