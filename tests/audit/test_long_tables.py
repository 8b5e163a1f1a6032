"""Long tables: nothing that is done with values loops over all rows in Python, and a report stays small."""

from __future__ import annotations

import cProfile

import numpy as np
import pytest

import localshapley as ls
from localshapley.audit.label_errors import _agreement, _neighbours
from localshapley.report import write_report

N_TESTS = 40


def valued(n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows + N_TESTS, 4)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def calls_of(action):
    """How many functions an action calls, of Python or of C."""
    profile = cProfile.Profile()
    profile.runcall(action)
    return sum(entry.callcount for entry in profile.getstats())


def actions(folder, n_rows):
    data = valued(n_rows)
    v = ls.value(*data, model="knn")
    path = folder / f"{n_rows}.parquet"
    listed = ls.audit.label_errors(None, data[1], values=v, n=5)
    return {
        "value": lambda: ls.value(*data, model="knn"),
        "to_frame": v.to_frame,
        "repr": lambda: repr(v),
        "save": lambda: v.save(path),
        "load": lambda: ls.load(path),
        "suspects": lambda: ls.audit.label_errors(None, data[1], values=v, n=5),
        "report": lambda: write_report(folder / f"{n_rows}.html", v, data[0], y=data[1], suspects=listed),
    }


def test_no_step_calls_a_function_for_each_row(tmp_path):
    small, large = (actions(tmp_path, n) for n in (11_000, 22_000))
    for name in small:
        for step in (small[name], large[name]):
            step()  # what is imported, compiled or cached the first time
        assert calls_of(large[name]) < calls_of(small[name]) + 5_000, name


def test_a_report_of_many_rows_is_small_and_says_what_it_leaves_out(tmp_path):
    X, y, *tests = valued(200_000)
    v = ls.value(X, y, *tests, model="knn")
    write_report(tmp_path / "report.html", v, X, y=y)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 5_000_000
    assert "200,000" in page
    assert "lowest" in page


@pytest.mark.parametrize("with_rows", [False, True])
def test_agreement_is_the_share_of_neighbours_with_the_same_label(with_rows):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 2)), rng.choice(["a", "b"], size=30)
    v = ls.value(X, y, X[:8] + 0.1, y[:8], model="knn", per_test=True)
    found = _neighbours(X if with_rows else None, v, 4)
    agreement = _agreement(y, found)
    for z in range(30):
        rows = found[z]
        expected = np.mean([y[i] == y[z] for i in rows]) if len(rows) else np.nan
        np.testing.assert_equal(agreement[z], expected)
    some = np.array([20, 3, 4])
    of_some = _neighbours(X if with_rows else None, v, 4, some)
    assert [near.tolist() for near in of_some] == [found[z].tolist() for z in some]
    np.testing.assert_equal(_agreement(y, of_some, some), agreement[some])
