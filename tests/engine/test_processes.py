"""Processes of this machine: what they leave behind, and when they end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import pytest

from engine.runs import run
from localshapley.engine.backends import OURS, _is_alive, _remove_leftovers

posix = pytest.mark.skipif(os.name != "posix", reason="the system cannot be asked whether a process exists")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def ended():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@posix
def test_folders_of_processes_that_have_ended_are_removed(folder, ended):
    left = folder / f"{OURS}{ended}-abc"
    left.mkdir()
    (left / "trainer").write_bytes(b"data")
    kept = [f"{OURS}{os.getpid()}-abc", f"{OURS}{os.getppid()}-abc", f"localshapley-{ended}", f"{OURS}abc", "other"]
    for name in kept:
        (folder / name).mkdir()
    _remove_leftovers()
    assert sorted(path.name for path in folder.iterdir()) == sorted(kept)


@posix
def test_they_are_removed_at_the_next_start_and_nothing_is_added(folder, ended):
    (folder / f"{OURS}{ended}-abc").mkdir()
    run(n_jobs=2)
    assert not list(folder.glob("localshapley-*"))


@posix
def test_whether_a_process_is_alive(ended):
    assert _is_alive(os.getpid())
    assert _is_alive(1)  # of another user, perhaps
    assert _is_alive(10**30)  # no number of a process
    assert not _is_alive(ended)


WORKER = """
import os, sys, time
from localshapley.engine import backends
backends.BETWEEN_SIGNS = 0.01
backends._end_with(int(sys.argv[1]))
print("ready", flush=True)
time.sleep(3600)
"""
PARENT = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2] or str(os.getpid())])
time.sleep(3600)
"""


@posix
@pytest.mark.parametrize("is_parent", [True, False])
@pytest.mark.slow
def test_a_worker_ends_with_the_process_that_it_works_for(is_parent):
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    number = "" if is_parent else str(other.pid)
    parent = subprocess.Popen([sys.executable, "-c", PARENT, WORKER, number], stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline() == "ready\n"
    parent.kill()
    parent.wait()
    other.kill()
    other.wait()
    assert parent.stdout.read() == ""  # it is at its end when the worker, which writes to it too, has ended
    parent.stdout.close()
