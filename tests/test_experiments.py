"""The experiments run, and their results have the shape and the sense that their pages claim."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


@pytest.fixture(scope="module")
def shifted(tmp_path_factory):
    """Folder with the results of the quick run."""
    pytest.importorskip("matplotlib")
    out = tmp_path_factory.mktemp("results")
    script = EXPERIMENTS / "distribution_shift.py"
    subprocess.run([sys.executable, str(script), "--quick", "--out", str(out)], check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def table(shifted):
    return pd.read_csv(shifted / "distribution_shift.csv")


def test_the_shift_experiment_has_a_row_for_each_model_shift_and_estimator(table):
    keys = table[["model", "shift", "estimator"]]
    assert len(table) == 2 * 2 * 3
    assert not keys.duplicated().any()
    assert set(table["estimator"]) == {"permutations", "pivot", "sample"}
    assert set(table["shift"]) == {0.0, 4.0}


def test_variances_are_finite_and_positive_and_budgets_kept(table):
    for side in ("global", "local"):
        assert np.isfinite(table[f"variance_{side}"]).all()
        assert (table[f"variance_{side}"] > 0).all()
        assert table[f"trainings_{side}"].between(1600, 2000).all()
    np.testing.assert_allclose(table["ratio"], table["variance_global"] / table["variance_local"], rtol=1e-4)


def test_supports_within_a_radius_shrink_with_the_shift_and_nearest_ones_do_not(table):
    support = table.groupby(["model", "shift"])["support"].first()
    assert support["radius", 4.0] < support["radius", 0.0] / 4
    assert support["knn", 4.0] == support["knn", 0.0] == 10


def test_at_the_largest_shift_local_sampling_has_the_smaller_variance_at_equal_trainings(table):
    far = table[(table["shift"] == 4) & table["estimator"].isin(["pivot", "sample"])]
    assert len(far) == 4
    assert (far["ratio"] - 4 * far["ratio_stderr"] > 1).all()
    radius = table[table["model"] == "radius"].pivot(index="estimator", columns="shift", values="ratio")
    assert (radius[4.0] > 2 * radius[0.0]).all()


def test_without_shift_large_local_games_have_the_larger_variance(table):
    near = table[(table["shift"] == 0) & (table["model"] == "radius") & (table["estimator"] != "pivot")]
    assert (near["ratio"] + 4 * near["ratio_stderr"] < 1).all()


def test_a_draw_of_an_exactly_local_model_varies_no_more_globally_than_locally(table):
    own = table[(table["model"] == "radius") & (table["estimator"] == "permutations")]
    assert (np.abs(own["ratio_per_draw"] - 1) < 5 * own["ratio_per_draw_stderr"]).all()
    assert (own["ratio_per_draw_stderr"] < 0.05).all()


def test_the_page_has_its_command_and_the_plots_are_there(shifted):
    page = (shifted / "distribution_shift.md").read_text(encoding="utf-8")
    assert "python experiments/distribution_shift.py --quick" in page
    assert page.count("\n| ") == 1 + 12
    assert "nan" not in page
    assert (shifted / "distribution_shift.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert (shifted / "distribution_shift.png").stat().st_size > 10_000
