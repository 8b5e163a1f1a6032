"""Compiling: timed separately, shown on the bar, and possible without a cache."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from importlib import import_module, invalidate_caches
from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError
from numba.core.runtime import _nrt_python, rtsys
from sklearn.neighbors import KNeighborsClassifier

import localshapley as ls
from compilations import KERNELS
from localshapley.comparators.pivot_sampling import PivotRun
from localshapley.kernels import receptive
from localshapley.kernels.compiler import KernelCompiler
from localshapley.kernels.jit import part
from localshapley.methods.enumeration import Enumeration
from localshapley.methods.rounds import RoundRun
from localshapley.methods.sample import SampleRun
from localshapley.models.boosted_trees import BoostedTrainer
from localshapley.models.dispatch import _HOME
from localshapley.models.fixed_trees import FixedTrainer
from localshapley.runtime.compiling import _Listener

TRAINERS = {getattr(import_module(f"localshapley.{module}"), name) for module, name in _HOME.values()}
CALLERS = (Enumeration, PivotRun, RoundRun, SampleRun, FixedTrainer, BoostedTrainer, *TRAINERS)


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

    def test_what_is_left_of_compiling_is_old_at_once(self):
        listener, before = _Listener(), gc.isenabled()
        gc.enable()
        try:
            listener.on_start(compilation("fit_games"))
            left = [[] for _ in range(10_000)]
            listener.on_end(compilation("fit_games"))
            old = gc.get_objects(generation=2)
        finally:
            (gc.enable if before else gc.disable)()
        assert {id(one) for one in left} <= {id(one) for one in old}
        assert gc.get_freeze_count() == 0


class TestCompiler:
    """Kernels of their own, compiled as all are: numba's default way is the twin."""

    def test_parts_are_compiled_into_the_kernel_and_give_the_same_bits(self):
        def scaled(x, factor):
            return x * factor + 0.1 if x > 0 else x / factor

        def total(values, factor):
            found = 0.0
            for i in range(len(values)):
                found += piece(values[i], factor)
            return found

        values = np.random.default_rng(0).normal(size=100)
        piece = njit(scaled)
        expected = njit(total)(values, 3.0)
        piece = part()(scaled)
        assert njit(_nrt=False, pipeline_class=KernelCompiler)(total)(values, 3.0) == expected
        assert [result.library._finalized for result in piece.overloads.values()] == [True]
        assert not any(
            piece.overloads[types].library.codegen._engine.is_symbol_defined(result.fndesc.llvm_func_name)
            for types, result in piece.overloads.items()
        )

    def test_types_that_do_not_fit_are_told_as_numba_tells_them(self):
        compiled = njit(_nrt=False, pipeline_class=KernelCompiler)(lambda x: x + "a")
        with pytest.raises(TypingError, match="No implementation of function"):
            compiled(1.0)

    def test_memory_is_freed_where_references_are_counted(self):
        compiled = njit(pipeline_class=KernelCompiler)(lambda n: np.zeros(n)[0] + np.ones(n)[0])
        compiled(3)
        _nrt_python.memsys_enable_stats()
        before = rtsys.get_allocation_stats()
        compiled(1000)
        after = rtsys.get_allocation_stats()
        _nrt_python.memsys_disable_stats()
        assert after.alloc - before.alloc == 2
        assert after.alloc - before.alloc == after.free - before.free


EARLIER = """
from typing import NamedTuple
from localshapley.kernels.jit import kernel

class Pair(NamedTuple):
    a: float
    b: float

@kernel()
def add(pair):
    return pair.a + pair.b
"""


def test_code_kept_by_a_version_with_other_names_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def hits(text, pair):
        """How often kept code is found by a process that meets the module first."""
        (tmp_path / "updated.py").write_text(text)
        monkeypatch.delitem(sys.modules, "updated", raising=False)
        invalidate_caches()
        module = import_module("updated")
        assert module.add(getattr(module, pair)(1.0, 2.0)) == 3
        return module.add.stats.cache_hits.total()

    assert hits(EARLIER, "Pair") == 0
    assert hits(EARLIER, "Pair") == 1
    later = EARLIER.replace("Pair", "RenamedPair")
    assert hits(later, "RenamedPair") == 0
    assert hits(later, "RenamedPair") == 1


def test_runs_and_trainers_name_kernels_that_there_are():
    scope = {}
    exec(KERNELS, scope)
    known = scope["kernels"]()
    named = {name for caller in CALLERS for name in caller.kernels}
    assert named <= set(known)
    elsewhere = {"add_knn_values", "add_threshold_values", "count_by_game", "find_overlaps", "sample_new"}
    of_stores_and_graphs = {"add_up", "fold_cells", "fold_words"} | {name for name in known if name in vars(receptive)}
    assert set(known) - named == elsewhere | of_stores_and_graphs


MANY_CLASSES = """
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
import localshapley as ls
from localshapley.coalitions.batch import Coalitions
from localshapley.problem.build import build_problem
from localshapley.question import Question

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
data = X[:500] / 16, y[:500], X[500:520] / 16, y[500:520]
question = Question.of_rows(*data, model=LogisticRegression(), score="log_loss", support=ls.supports.Nearest(1))
trainer = build_problem(question).trainer
coalitions = [rng.choice(500, size=rng.integers(5, 60), replace=False) for _ in range(200)]
print(trainer.evaluate(Coalitions.from_lists(coalitions, [range(20)] * 200)).tobytes().hex())
"""


@pytest.mark.slow
def test_a_process_that_compiles_has_the_bits_of_those_that_find_the_code(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", MANY_CLASSES]
    first, second = (subprocess.run(command, env=environment, capture_output=True, check=True) for _ in range(2))
    assert first.stdout == second.stdout
    assert len(first.stdout) > 1000


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
ours = [(str(w.message), w.filename) for w in caught if w.category is ls.LocalShapleyWarning]
print(json.dumps([ours, v.values.tolist()]))
"""


@pytest.mark.slow
def test_without_a_folder_for_the_cache_everything_works_and_one_warning_says_what_to_do():
    done = subprocess.run([sys.executable, "-c", WITHOUT_CACHE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    warned, values = json.loads(done.stdout)
    ((message, where),) = warned
    assert "Set the environment variable NUMBA_CACHE_DIR to a folder that can." in message
    assert where == "<string>"  # the line of the user, though the package imports on the way
    data = ls.datasets.load("iris")
    expected = ls.value(data.X, data.y, data.X_test, data.y_test, model=KNeighborsClassifier(3))
    assert values == expected.values.tolist()
