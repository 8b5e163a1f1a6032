"""Exact values against those that other people's code gave (`fixtures/`, with the calls that made them)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls

pytestmark = pytest.mark.slow
FIXTURE = json.loads((Path(__file__).parent / "fixtures" / "twelve_player_tree.json").read_text())


@pytest.fixture(scope="module")
def ours():
    X, y = load_iris(return_X_y=True)
    train, test = FIXTURE["train"], FIXTURE["test"]
    return ls.value(
        X[train],
        y[train],
        X[test],
        y[test],
        model=ls.models.Estimator(DecisionTreeClassifier(random_state=0)),
        support=ls.supports.Everything(),
        method="exact",
        score="accuracy",
        empty=0.0,  # both libraries take the empty coalition to be worth 0
    )


@pytest.mark.parametrize("library", ["shapiq", "pydvl"])
def test_a_tree_game_of_twelve_players(ours, library):
    assert ours.cost.trainings == 2**12
    np.testing.assert_allclose(ours.values / len(FIXTURE["test"]), FIXTURE[f"values_{library}"], atol=1e-10)
