"""Trials of what can go wrong, in other processes: a few in each run of the tests, all in the long one."""

from __future__ import annotations

import os

import pytest

from faults import full_disk
from faults.batches import ended_well

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


@pytest.mark.slow
def test_fifty_damaged_valuations():
    assert "refused" in ended_well("damaged_valuations", 50)


@pytest.mark.slow
def test_fifty_damaged_stores():
    assert {"refused", "right", "the run continued without its store"} <= set(ended_well("damaged_stores", 50))


@needs_fork
@pytest.mark.slow
def test_a_disk_that_is_full_at_some_moment():
    assert len(ended_well("full_disk", 12)) > 2


@needs_fork
@pytest.mark.slow
def test_a_run_that_is_killed_eight_times():
    ended = ended_well("kills", 8)
    assert {how.partition(",")[0] for how in ended} == {"killed in the first write", "killed with one process"}


@needs_fork
@pytest.mark.slow
def test_compiled_code_that_cannot_be_kept_is_used():
    assert full_disk.without_room_for_code().startswith("[[")


@pytest.mark.long
def test_a_thousand_damaged_valuations(capsys):
    with capsys.disabled():
        assert "refused" in ended_well("damaged_valuations", 1000)


@pytest.mark.long
def test_five_hundred_damaged_stores(capsys):
    with capsys.disabled():
        assert {"refused", "right", "the run continued without its store"} <= set(ended_well("damaged_stores", 500))


@pytest.mark.long
@needs_fork
def test_a_disk_that_is_full_at_any_moment(capsys):
    with capsys.disabled():
        assert len(ended_well("full_disk", 60)) > 3


@pytest.mark.long
@needs_fork
def test_two_hundred_kills(capsys):
    with capsys.disabled():
        ended = ended_well("kills", 200)
    assert {how.partition(",")[0] for how in ended} == {
        f"killed {who}" for who in ("in the first write", "with one process", "with two processes")
    }
    assert sum(count for how, count in ended.items() if "scores in the store" in how) >= 150


@pytest.mark.long
@needs_fork
def test_twenty_dead_workers(capsys):
    pytest.importorskip("dask.distributed", reason="Dask is an extra")
    with capsys.disabled():
        ended = ended_well("dead_workers", 20)
    assert sorted(ended.values()) == [10, 10]  # of processes, and of a Dask cluster
