"""What takes a process of its own: imports, tracebacks, pipes and signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest

import localshapley as ls

COMMANDS = ("value", "plan", "suspects", "select", "compare", "report", "apply", "datasets", "demo", "warm-up", "store")


def start(*words, **how):
    return subprocess.Popen(
        [sys.executable, "-m", "localshapley", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts, **how,
    )  # fmt: skip


def heed_interrupts():
    """What runs in the background of a shell ignores Ctrl-C, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_version():
    stdout, _ = start("--version").communicate()
    assert stdout == f"localshapley {ls.__version__}\n"


def test_help_imports_nothing_heavy():
    heavy = ["numpy", "pandas", "sklearn", "numba", "scipy", "pyarrow", "joblib", "sqlite3", "torch", "matplotlib"]
    script = f"""
import sys
from localshapley.cli import main
for words in [], *([name] for name in {COMMANDS}), ["store", "info"]:
    sys.argv = ["localshapley", *words, "--help"]
    try:
        main()
    except SystemExit as ended:
        assert ended.code == 0
assert not [name for name in {heavy} if name in sys.modules]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    general = done.stdout.split("Usage:")[1]
    assert all(f" {name} " in general for name in COMMANDS)


def test_a_traceback_only_when_asked_for(flowers):
    run = start("value", "train.csv", "-t", "specie", "--debug", cwd=flowers)
    _, stderr = run.communicate()
    assert "Traceback" in stderr
    assert run.returncode == 1


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error(flowers):
    run = start("value", flowers / "train.csv", "-t", "species", "--drop", "plant", "--json", "-q")
    run.stdout.close()
    assert run.stderr.read() == ""
    assert run.wait() == 0


INTERRUPTED = """
import os, signal, time
from sklearn.naive_bayes import GaussianNB
left = {trainings}
class Interrupted(GaussianNB):
    def fit(self, X, y):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.0005)  # what is quicker is not worth keeping in a store
        return super().fit(X, y)
"""


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
class TestInterruptions:
    """Ctrl-C comes in a training that is counted, not timed; the budget ends a run that does not heed it."""

    def interrupted(self, flowers, folder, trainings, *words):
        (folder / "mine.py").write_text(INTERRUPTED.format(trainings=trainings))
        run = start(
            "value", flowers / "train.csv", "-t", "species", "--drop", "plant", "--test-size", 0.2,
            "--model", "mine:Interrupted", "--tol", 1e-6, "--budget", 5000, *words, cwd=folder,
        )  # fmt: skip
        stdout, stderr = run.communicate()
        assert run.returncode == 130
        assert "Traceback" not in stderr
        return stdout, stderr

    def test_what_is_known_so_far_is_kept(self, flowers, tmp_path):
        stdout, _ = self.interrupted(flowers, tmp_path, 600, "--out", "v.parquet")
        assert "stopped  interrupted" in stdout
        v = ls.load(tmp_path / "v.parquet")
        assert v.stopped == "interrupted"
        assert (v.stderr > 0).any()

    @pytest.mark.slow
    def test_before_the_first_estimate_the_store_keeps_what_was_trained(self, flowers, tmp_path):
        _, stderr = self.interrupted(flowers, tmp_path, 1, "--store", "run.db")  # while it is told what there is to do
        assert "run.db keeps what was trained" in stderr
        self.interrupted(flowers, tmp_path, 60, "--store", "run.db", "-q")  # trainings alone: nothing is told
        stdout, _ = start("store", "info", "run.db", cwd=tmp_path).communicate()
        assert int(re.search(r"([\d,]+) coalitions", stdout)[1]) >= 16  # the first batch, whatever the pace
