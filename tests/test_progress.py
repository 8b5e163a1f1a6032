"""What a person sees of a run: how far it is, how long it will take, and what is trained meanwhile."""

from __future__ import annotations

import io
import re
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import localshapley as ls
from localshapley.runtime import progress
from localshapley.runtime.progress import Progress, telling
from localshapley.search import nearest
from localshapley.search.scan import showing
from localshapley.supports import Dual, Nearest


class TestUntilTheFirstEstimate:
    def lines(self, bar, capsys, monkeypatch, *steps):
        """The lines on standard error after each step, by a clock that each step moves by six seconds."""
        now = [0.0]
        monkeypatch.setattr(progress, "perf_counter", lambda: now[0])
        with bar() as shown:
            for step in steps:
                now[0] += 6
                step(shown)
        return capsys.readouterr().err.splitlines()

    def test_the_trainings_until_then_and_the_time_are_told(self, capsys, monkeypatch):
        lines = self.lines(
            lambda: Progress(True, None, "training", first=2094),
            capsys,
            monkeypatch,
            lambda bar: bar.advance(154),
            lambda bar: (bar.reached(0.2, 0.1), bar.advance(46)),
        )
        assert lines[0] == "training: 154 of about 2,094 until the first estimate, 26/s, about 75.6 s left"
        assert lines[1] == "training: 200 of about 616, 17/s, relative error 0.2 (target 0.1), about 25.0 s left"

    def test_a_known_total_is_what_counts(self, capsys, monkeypatch):
        bar = lambda: Progress(True, 1000, "training", first=500)  # noqa: E731
        lines = self.lines(bar, capsys, monkeypatch, lambda bar: bar.advance(100))
        assert lines == ["training: 100 of 1,000, 17/s, 54.0 s left"]

    def test_the_time_left_is_seen_on_a_narrow_terminal(self, monkeypatch):
        monkeypatch.setattr(progress, "has_terminal", lambda: True)
        written, now = io.StringIO(), [0.0]
        narrow = Console(width=80, force_terminal=True, file=written)
        monkeypatch.setattr("rich.console.Console", lambda stderr: narrow)
        monkeypatch.setattr(progress, "perf_counter", lambda: now[0])
        with Progress(True, None, "measuring the gap", first=20_940_000) as bar:
            for _ in range(2):
                now[0] += 600
                bar.advance(1_540_000)
                bar.reached(0.2, 0.1)
            bar._bar._bar.refresh()
        assert "about 20.0 min left, " in written.getvalue()


class TestLogs:
    """Where neither a terminal nor a notebook shows anything, and nothing was asked for."""

    @pytest.fixture
    def clock(self, monkeypatch):
        clock = SimpleNamespace(now=0.0)
        monkeypatch.setattr(progress, "perf_counter", lambda: clock.now)
        return clock

    def lines(self, clock, capsys, setting, steps, **more):
        with Progress(setting, None, "training", **more) as bar:
            bar.reached(0.2, 0.1)
            for step in steps:
                clock.now += step
                bar.advance(1000)
                bar.reached(0.2, 0.1)
        return capsys.readouterr().err.splitlines()

    def test_a_long_run_says_how_far_it_is_now_and_then(self, clock, capsys):
        lines = self.lines(clock, capsys, None, [5, 4, 2, 30, 29, 2])
        assert [line[: line.index(" of")] for line in lines] == [
            "training: 3,000",
            "training: 6,000",
        ]
        assert "relative error 0.2 (target 0.1)" in lines[0]

    def test_one_that_will_take_long_says_once_what_would_be_faster(self, clock, capsys):
        lines = self.lines(clock, capsys, None, [5, 6, 20, 60], faster=lambda: "faster: fewer test rows")
        assert lines[1] == "localshapley: about 3.0 min left; faster: fewer test rows."
        assert sum("faster" in line for line in lines) == 1

    def test_also_where_the_first_estimate_takes_long(self, clock, capsys):
        with Progress(None, None, "training", first=100, faster=lambda: "faster: fewer test rows") as bar:
            clock.now += 11
            bar.advance(10)
        assert capsys.readouterr().err.splitlines() == [
            "localshapley: about 99.0 s left until the first estimate; faster: fewer test rows.",
            "training: 10 of about 100 until the first estimate, 1/s, about 99.0 s left",
        ]

    @pytest.mark.parametrize(("setting", "steps"), [(None, [3, 3, 3]), (False, [30, 30]), (lambda *_: None, [30, 30])])
    def test_others_say_nothing(self, clock, capsys, setting, steps):
        assert self.lines(clock, capsys, setting, steps, faster=lambda: "faster: fewer test rows") == []


class TestNotebooks:
    @pytest.fixture
    def looks(self, monkeypatch):
        """What the output of the cell looks like, one look after the other, in what seems to be a notebook."""
        looks = []
        output = SimpleNamespace(update=lambda data, raw: looks.append(data["text/html"]))
        shell = ModuleType("IPython")
        shell.get_ipython = lambda: SimpleNamespace(kernel=None)
        outputs = ModuleType("IPython.display")
        outputs.display = lambda data, raw, display_id: output
        monkeypatch.setitem(sys.modules, "IPython", shell)
        monkeypatch.setitem(sys.modules, "IPython.display", outputs)
        monkeypatch.setattr(progress, "BETWEEN_PICTURES", -1.0)
        return looks

    def test_a_bar_is_drawn_replaced_and_taken_away(self, looks, monkeypatch, capsys):
        monkeypatch.setattr(progress, "PATIENCE", -1.0)
        with Progress(None, 8, "a < b") as bar:
            bar.advance(2)
            bar.say("looking")
            bar.advance(6)
        looks[0] = re.sub(r"[^ ]+ [^ ]+ left, ", "", looks[0])
        assert [look.partition(", ")[0] for look in looks] == [
            '<progress value="0.250"></progress> a &lt; b: 2 of 8',
            '<progress value="0.250"></progress> a &lt; b: looking',
            '<progress value="1.000"></progress> a &lt; b: looking',
            "",
        ]
        assert capsys.readouterr().err == ""

    def test_a_quick_run_draws_none(self, looks):
        with Progress(None, 8, "training") as bar:
            bar.advance(8)
        assert not looks

    def test_a_shell_without_a_kernel_is_no_notebook(self, looks, monkeypatch):
        assert progress.in_notebook()
        sys.modules["IPython"].get_ipython = lambda: None
        assert not progress.in_notebook()
        assert not progress.is_wanted(None)


class TestTelling:
    def test_what_takes_long_is_told_while_it_goes_on(self, capsys):
        with telling(True, "training SVC on 36,000 rows, fold 2 of 5", patience=0.0):
            found = ""
            while not found:  # it is told in a thread
                found = capsys.readouterr().err
        assert found == "localshapley: training SVC on 36,000 rows, fold 2 of 5 …\n"

    @pytest.mark.parametrize("setting", [False, None, print])
    def test_nothing_is_said_where_nobody_looks(self, capsys, setting):
        with telling(setting, "training", patience=0.0):
            pass
        assert capsys.readouterr().err == ""
        assert not sys.stderr.isatty()

    def test_nothing_is_said_of_what_is_quick(self, capsys):
        with telling(True, "training", patience=1e6):
            pass
        assert capsys.readouterr().err == ""


def test_a_search_that_takes_long_is_told(capsys, monkeypatch):
    class AtOnce(progress.Timer):
        def start(self):
            self.function()

    monkeypatch.setattr(progress, "Timer", AtOnce)
    X, y, X_test, y_test, _ = ls.datasets.load("iris")
    ls.plan(X, y, X_test[:7], y_test[:7], model=LogisticRegression(), support=Nearest(3), progress=True)
    assert f"localshapley: finding supports of 7 test rows among {len(X)} rows …\n" in capsys.readouterr().err


class Noting(SVC):
    """Notes how many rows it is trained on."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y):
        self.seen.append(len(y))
        return super().fit(X[:300], y[:300]) if len(y) > 300 else super().fit(X, y)


class TestReference:
    n = 21_000

    @pytest.fixture
    def data(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(self.n, 3))
        y = (X[:, 0] > 0).astype(int)
        y[20_900] = 2  # a class of one row
        return X, y, X[:3] + 0.1, y[:3]

    def test_a_model_that_supports_do_not_read_is_trained_on_a_sample(self, data):
        Noting.seen.clear()
        v = ls.value(*data, model=Noting(), support=Nearest(3), method="exact")
        assert Noting.seen[0] in (20_000, 20_001)
        assert sum("sample of 20,000 rows" in note for note in v.notes) == 1

    def test_no_class_is_lost_in_it(self, data):
        model = LogisticRegression()
        v = ls.value(*data, model=model, support=Nearest(3), method="exact", score="confidence")
        assert np.isfinite(v.values).all()

    def test_one_that_they_read_is_trained_on_all_rows(self, data):
        Noting.seen.clear()
        v = ls.value(*data, model=Noting(), support=Dual(max_size=3), method="exact")
        assert Noting.seen[0] == self.n
        assert not any("sample of" in note for note in v.notes)


class TestSearches:
    X = np.random.default_rng(0).normal(size=(20_000, 30))

    def test_a_long_search_shows_how_many_rows_it_has_looked_at(self, capsys, monkeypatch):
        monkeypatch.setattr(progress, "PATIENCE", -1.0)
        monkeypatch.setattr(progress, "BETWEEN_LINES", -1.0)
        with showing(True):
            nearest(self.X, self.X[:50], 3)
        lines = capsys.readouterr().err.splitlines()
        assert [line.split(" of ")[0] for line in lines] == [
            f"searching rows: {done:,}" for done in (4096, 8192, 12288, 16384, 20_000)
        ]
        assert all(" of 20,000" in line for line in lines)
        nearest(self.X, self.X[:50], 3)
        assert not capsys.readouterr().err

    def test_a_function_that_counts_trainings_is_not_called_by_it(self):
        called = []
        with showing(lambda done, total: called.append(done)):
            nearest(self.X, self.X[:50], 3)
        assert not called

    def test_supports_are_found_under_the_progress_of_the_run(self, capsys, monkeypatch):
        monkeypatch.setattr(progress, "PATIENCE", -1.0)
        monkeypatch.setattr(progress, "BETWEEN_LINES", -1.0)
        y = (self.X[:, 0] > 0).astype(int)
        ls.plan(self.X, y, self.X[:50], y[:50], model="knn", progress=True)
        assert "searching rows: 20,000 of 20,000" in capsys.readouterr().err


def test_a_service_has_no_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    for setting in (None, True):
        v = ls.shapley([[0, 1]], lambda coalition, tests: np.full(len(tests), len(coalition)), progress=setting)
        np.testing.assert_allclose(v.values, 1)
