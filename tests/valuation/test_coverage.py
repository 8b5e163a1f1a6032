"""Intervals hold what values would be over a large pool of test rows; see `benchmarks/intervals.py`."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from sklearn.ensemble import RandomForestClassifier

import localshapley as ls

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def intervals():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
        return importlib.import_module("intervals")


@pytest.fixture(scope="module")
def pools(intervals):
    made_up = intervals.synthetic(200, 3000)
    forest = ls.models.Fixed(RandomForestClassifier(30, min_samples_leaf=3, random_state=0))
    return {
        "neighbours": ls.value(*intervals.loaded("digits"), per_test=True, **intervals.NEIGHBOURS),
        "made up": ls.value(*made_up, per_test=True, **intervals.NEIGHBOURS),
        "forest": ls.value(*made_up, per_test=True, model=forest),
    }


@pytest.mark.parametrize(("size", "most"), [(20, 1.0), (50, 1.0), (200, 0.975), (1000, 0.97)])
@pytest.mark.parametrize("name", ["neighbours", "made up", "forest"])
def test_intervals_hold_the_mean_over_the_pool(intervals, pools, name, size, most):
    out = intervals.coverage(pools[name], size, 60)
    assert 0.93 <= out["all"] <= most
    assert out["normal"] < out["all"]
    few = [out[key] for key in ("0 to 1", "1 to 4") if out[key] == out[key]]
    assert all(share > 0.92 for share in few)


def test_intervals_of_sampled_values_include_draws_and_test_rows(intervals):
    out = intervals.sampled_coverage(200, 25)
    assert out["ratio"] > 0.3
    assert out["draws"] < 0.85
    assert 0.93 <= out["all"] <= 0.99
