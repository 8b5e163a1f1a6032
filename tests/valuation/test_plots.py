"""The data behind the pictures, the pictures, and what a notebook shows."""

from __future__ import annotations

import builtins
import sys
import warnings
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import localshapley as ls
from localshapley import tasks
from localshapley.valuation import notebook, plots
from made import changed

X, y, X_test, y_test, _ = ls.datasets.load("iris")


@pytest.fixture(scope="module")
def plain():
    return ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(3))


@pytest.fixture(scope="module")
def exact():
    return ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(3), per_test=True)


@pytest.fixture(scope="module")
def sampled():
    return ls.value(
        X,
        y,
        X_test,
        y_test,
        model=SVC(),
        support=ls.supports.Nearest(12),
        score="accuracy",
        method="sample",
        budget=900,
    )


@pytest.fixture(scope="module")
def curves(exact):
    return tasks.curves(exact, X, y, X_test, y_test, model="knn", shares=[0.2, 0.5, 1.0], n_seeds=3)


class TestData:
    def test_ranking_has_both_ends(self, exact):
        data = plots.ranking_data(exact, 5)
        assert data["value"].is_monotonic_decreasing
        assert data["rank"].tolist() == [1, 2, 3, 104, 105]
        assert sorted(exact.values)[:2] == data["value"].tolist()[:2:-1]
        assert len(plots.ranking_data(exact, 500)) == 105
        with pytest.raises(ls.InvalidArgumentError, match="n must be a whole number of at least 1; got 0"):
            plots.ranking_data(exact, 0)

    # Some libraries have the processor take subnormal numbers for zero.
    @given(st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=1, max_size=50))
    def test_the_histogram_counts_every_row_once_and_splits_at_zero(self, plain, values):
        sizes = {"stderr": np.zeros(len(values)), "n_tests": np.ones(len(values), int)}
        v = changed(plain, values=np.array(values), **sizes, spread_tests=None, per_test=None)
        data = plots.distribution_data(v)
        assert data["count"].sum() == len(values)
        assert len(data) <= plots.MAX_BINS + 2
        assert not ((data["left"] < 0) & (data["right"] > 0)).any()
        below = data.loc[data["right"] <= 0, "count"].sum()
        assert below == sum(value < 0 for value in values)

    def test_classes_keep_their_rows(self, exact):
        data = plots.by_class_data(exact, y)
        for label in range(3):
            assert data.loc[data["label"] == label, "value"].tolist() == exact.values[y == label].tolist()

    def test_convergence_ends_at_the_values(self, sampled):
        data = plots.convergence_data(sampled)
        last = data.groupby("row", sort=False).last()
        order = np.argsort(-sampled.values, kind="stable")
        assert last.index.tolist() == [*order[:3], *order[-3:]]
        np.testing.assert_allclose(last["value"], sampled.values[last.index], rtol=1e-5)
        np.testing.assert_allclose(last["stderr"], sampled.stderr[last.index], rtol=1e-5)
        assert data.groupby("row")["trainings"].apply(lambda t: t.is_monotonic_increasing).all()
        assert plots.convergence_data(sampled, [7, 3])["row"].unique().tolist() == [7, 3]

    def test_convergence_needs_rounds_and_rows(self, exact, sampled):
        with pytest.raises(ls.InvalidArgumentError, match=r'has no history.*method="sample"'):
            plots.convergence_data(exact)
        with pytest.raises(ls.InvalidArgumentError, match="rows must be names of rows of the valuation, such as 0"):
            plots.convergence_data(sampled, ["nobody"])

    def test_the_support_of_a_test_row(self, exact):
        data = plots.support_data(exact, 4)
        assert data["value"].to_dict() == tasks.explain(exact, 4)["value"].to_dict()
        assert data["weight"].max() == 1
        assert data.attrs["sum"] == pytest.approx(exact.per_test[[4]].sum())
        radius = np.hypot(data["x"], data["y"])
        assert (np.diff(radius) >= -1e-12).all()  # the most influential is nearest to the middle

    def test_two_valuations_are_matched_by_name(self, exact):
        names = pd.Index([f"row {z}" for z in range(105)])
        back = np.arange(105)[::-1]
        here = changed(exact, ids=names)
        there = changed(exact, values=exact.values[back], stderr=exact.stderr[back], ids=names[back])
        data = plots.against_data(here, there)
        assert (data["value"] == data["other"]).all()
        three = {"values": exact.values[:3], "stderr": np.zeros(3), "n_tests": np.ones(3)}
        with pytest.raises(ls.InvalidArgumentError, match="other values 3 rows, this valuation 105"):
            plots.against_data(exact, changed(exact, **three, spread_tests=None, per_test=None))

    def test_curves_by_rows_in_use(self, curves):
        data = plots.curves_data(curves)
        assert set(data["curve"]) == {"best kept", "random", "worst kept"}
        best = data.loc[data["curve"] == "best kept", "used"]
        assert best.tolist() == pytest.approx([21 / 105, 52 / 105, 53 / 105, 84 / 105, 1])
        assert not data.duplicated(["curve", "used"]).any()
        few = replace(curves, table=curves.table[curves.table["share"] == 0.2])
        assert plots.curves_data(few)["used"].max() == pytest.approx(84 / 105)


DRAWN = {
    "ranking": lambda f: f["exact"].plot.ranking(8),
    "distribution": lambda f: f["exact"].plot.distribution(),
    "by_class": lambda f: f["exact"].plot.by_class(y),
    "convergence": lambda f: f["sampled"].plot.convergence(),
    "support": lambda f: f["exact"].plot.support(4),
    "against": lambda f: f["exact"].plot.against(f["sampled"]),
    "curves": lambda f: f["exact"].plot.curves(f["curves"]),
}


class TestPictures:
    def test_what_is_valued_goes_by_its_name(self, exact):
        title = changed(exact, unit="node").plot.support(4).get_title("left")
        assert title.startswith(f"Test node 4: its {exact.support_sizes[4]} nodes, sum ")

    @pytest.mark.parametrize("name", DRAWN)
    def test_each_is_drawn_with_named_axes_and_without_pyplot(self, name, exact, sampled, curves, tmp_path):
        ax = DRAWN[name]({"exact": exact, "sampled": sampled, "curves": curves})
        ax.figure.savefig(tmp_path / "picture.svg")
        ElementTree.parse(tmp_path / "picture.svg")
        assert ax.get_title(loc="left")
        assert name == "support" or (ax.get_xlabel() and ax.get_ylabel())
        assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()

    def test_long_names_of_rows_are_cut_in_the_middle_and_have_their_number(self, exact, sampled):
        ids = pd.Index([f"src/test/{'deep/' * 30}Rows{i:03}Test.java" for i in range(len(X))], name="file")
        v, other = (changed(one, ids=ids) for one in (exact, sampled))
        pictures = v.plot.ranking(10), other.plot.convergence(), v.plot.support(4)
        found = [
            [text.get_text() for text in texts]
            for texts in (pictures[0].get_yticklabels(), pictures[1].get_legend().get_texts(), pictures[2].texts)
        ]
        for ax, names in zip(pictures, found, strict=True):
            cut = [name for name in names if name.startswith("src/test")]
            assert len(cut) >= 5
            for name in cut:
                assert len(name) == plots.MAX_NAME
                assert ids[int(name.partition("(row\xa0")[2][:-1])].endswith(name.partition("…")[2].partition(" ")[0])
            with warnings.catch_warnings(action="error"):
                ax.figure.draw_without_rendering()
        by_class = changed(exact, digests=None).plot.by_class(np.where(y, "a" * 99, "b")).get_yticklabels()
        assert max(len(label.get_text()) for label in by_class) < plots.MAX_NAME + 9
        owners = changed(exact, ids=ids, unit="owner").plot.ranking(4).get_yticklabels()
        assert all("…" in label.get_text() and "(row" not in label.get_text() for label in owners)

    def test_the_bars_have_the_values_and_their_colours(self, exact):
        ax = exact.plot.ranking(10)
        widths = [bar.get_width() for bar in ax.patches]
        assert widths == plots.ranking_data(exact, 10)["value"].tolist()
        colours = {tuple(bar.get_facecolor()) for bar in ax.patches if bar.get_width() < 0}
        assert len(colours) == 1
        assert colours.isdisjoint(tuple(bar.get_facecolor()) for bar in ax.patches if bar.get_width() > 0)

    def test_all_error_bars_are_intervals_of_95_per_cent(self, exact, sampled):
        by_rank = sampled.plot.ranking(8).collections[0].get_segments()[0]
        best = sampled.top(1).iloc[0]
        assert np.ptp(by_rank[:, 0]) == pytest.approx(2 * 1.96 * best["stderr"])
        across, upwards = sampled.plot.against(sampled).collections[:2]
        assert np.ptp(across.get_segments()[0][:, 0]) == pytest.approx(2 * 1.96 * sampled.stderr[0])
        assert np.ptp(upwards.get_segments()[0][:, 1]) == pytest.approx(2 * 1.96 * sampled.stderr[0])

    def test_given_axes_are_used(self, exact, curves):
        from matplotlib.figure import Figure

        left, right = Figure().subplots(1, 2)
        assert exact.plot.distribution(ax=left) is left
        assert curves.plot(ax=right) is right
        assert len(right.lines) == 3

    def test_pyplot_shows_each_picture_once_and_no_empty_figure(self, exact, monkeypatch):
        plt = pytest.importorskip("matplotlib.pyplot")
        monkeypatch.setattr(plots, "FILES_ONLY", ())  # as if this backend had windows
        try:
            first, second = exact.plot.ranking(), exact.plot.distribution()
            assert plt.get_fignums() == [1, 2]
            assert [ax.figure.number for ax in (first, second)] == [1, 2]
            mine = plt.figure()
            assert exact.plot.ranking().figure is mine
            assert len(mine.axes) == 1
            _, (_, right) = plt.subplots(1, 2)
            assert exact.plot.ranking() is right  # the current axes, on which nothing is drawn yet
            assert exact.plot.ranking() is not right
        finally:
            plt.close("all")

    def test_scripts_collect_no_open_figures(self, exact):
        plt = pytest.importorskip("matplotlib.pyplot")
        plt.switch_backend("agg")
        try:
            exact.plot.ranking()
            assert not plt.get_fignums()
            mine = plt.figure()
            assert exact.plot.ranking().figure is mine
        finally:
            plt.close("all")

    def test_without_matplotlib_it_says_what_to_install(self, exact, monkeypatch):
        real = builtins.__import__

        def missing(name, *others):
            if name.startswith("matplotlib"):
                raise ImportError(name)
            return real(name, *others)

        monkeypatch.setattr(builtins, "__import__", missing)
        with pytest.raises(ls.LocalShapleyError, match=r'pip install "localshapley\[plots\]"'):
            exact.plot.distribution()


class TestNotebook:
    def test_facts_tables_and_picture(self, exact):
        page = exact._repr_html_()
        root = ElementTree.fromstring(page)
        assert len(root.findall(".//table")) == 2
        assert len(root.findall(".//tbody/tr")) == 10
        bars = root.findall(".//{http://www.w3.org/2000/svg}rect")
        assert len(bars) == len(plots.distribution_data(exact))
        assert "Valuation of 105 training rows" in page

    def test_names_are_escaped(self, exact):
        bad = changed(exact, ids=pd.Index(["<script>alert(1)</script>"] * 105), model="<b>model</b>", notes=["a < b"])
        page = notebook.to_html(bad)
        assert "<script>" not in page
        assert "<b>model" not in page
        assert "&lt;script&gt;" in page
        ElementTree.fromstring(page)

    @pytest.mark.parametrize(
        "values",
        [
            [0.0],
            [1.0],
            [-2.0, -2.0],
            [1e-9, 5.0, -3.0],
            [*np.nextafter(0.1, [0.0, 1.0, 1.0]), 0.1],  # equal up to rounding
            np.repeat([-0.3, np.nextafter(-0.3, 0)], 50),
        ],
    )
    def test_few_and_equal_values(self, exact, values):
        counts = {
            "stderr": np.zeros(len(values)),
            "n_tests": np.ones(len(values), int),
            "digests": None,
            "per_test": None,
        }
        few = changed(exact, values=np.array(values), spread_tests=np.ones((len(values), 2), np.float32), **counts)
        root = ElementTree.fromstring(notebook.to_html(few))
        assert len(root.findall(".//tbody/tr")) == 2 * min(len(values), notebook.N_SHOWN)
        assert sum(bar.get_height() for bar in few.plot.distribution().patches) == len(values)
