"""Compiling: timed separately, shown on the bar, and possible without a cache."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace

import pytest
from sklearn.neighbors import KNeighborsClassifier

import localshapley as ls
from compilations import KERNELS
from localshapley.compiling import _Listener
from localshapley.kernels import receptive
from localshapley.methods.enumeration import Enumeration
from localshapley.methods.pivot import PivotRun
from localshapley.methods.sample import SampleRun
from localshapley.models.boosted import BoostedTrainer
from localshapley.models.dispatch import _HOME
from localshapley.models.fixed import FixedTrainer

TRAINERS = {getattr(import_module(f"localshapley.models.{module}"), name) for module, name in _HOME.values()}
CALLERS = (Enumeration, PivotRun, SampleRun, FixedTrainer, BoostedTrainer, *TRAINERS)


class Bar:
    """Remembers what was said on it."""

    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)


def compilation(name):
    """What numba says of a function that it compiles."""
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__name__=name))})


class TestListener:
    def test_the_bar_names_each_kernel_and_how_many_there_are(self):
        listener, bar = _Listener(), Bar()
        listener.show_on(bar, ("fit_games", "grow_trees", "draw_games"))
        for name, called in (("grow_trees", "split"), ("fit_games", "level")):
            listener.on_start(compilation(name))
            listener.on_start(compilation(called))  # compiled for the kernel: not one of its own
            listener.on_end(compilation(called))
            listener.on_end(compilation(name))
        assert bar.said == [
            "compiling grow_trees, kernel 1 of up to 3: only on first use", "",
            "compiling fit_games, kernel 2 of up to 3: only on first use", "",
        ]  # fmt: skip

    @pytest.mark.parametrize("collects", [True, False])
    def test_the_collector_rests_meanwhile(self, collects):
        listener, before = _Listener(), gc.isenabled()
        (gc.enable if collects else gc.disable)()
        try:
            listener.on_start(compilation("fit_games"))
            assert not gc.isenabled()
            listener.on_end(compilation("fit_games"))
            assert gc.isenabled() == collects
        finally:
            (gc.enable if before else gc.disable)()


def test_runs_and_trainers_name_kernels_that_there_are():
    scope = {}
    exec(KERNELS, scope)
    known = scope["kernels"]()
    named = {name for caller in CALLERS for name in caller.kernels}
    assert named <= set(known)
    elsewhere = {"add_knn_values", "add_threshold_values", "count_by_game", "find_overlaps", "sample_new"}
    of_stores_and_graphs = {"add_up", "fold_cells", "fold_words"} | {name for name in known if name in vars(receptive)}
    assert set(known) - named == elsewhere | of_stores_and_graphs


WITHOUT_CACHE = """
import json, warnings
from numba.core import caching
caching.CompileResultCacheImpl._locator_classes = []  # no folder can be written
import localshapley as ls
from sklearn.neighbors import KNeighborsClassifier
data = ls.datasets.load("iris")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    v = ls.value(data.X, data.y, data.X_test, data.y_test, model=KNeighborsClassifier(3))
print(json.dumps([[str(w.message) for w in caught if w.category is ls.LocalShapleyWarning], v.values.tolist()]))
"""


@pytest.mark.slow
def test_without_a_folder_for_the_cache_everything_works_and_one_warning_says_what_to_do():
    done = subprocess.run([sys.executable, "-c", WITHOUT_CACHE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    warned, values = json.loads(done.stdout)
    assert len(warned) == 1
    assert "Set the environment variable NUMBA_CACHE_DIR to a folder that can." in warned[0]
    data = ls.datasets.load("iris")
    expected = ls.value(data.X, data.y, data.X_test, data.y_test, model=KNeighborsClassifier(3))
    assert values == expected.values.tolist()
