"""The locality check: how far local values are from global ones."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge
from sklearn.neighbors import RadiusNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.supports import Everything, Given, Nearest

SUPPORTS = [[0, 3, 11], [3, 4], [11, 3, 9, 0], [], [4, 3]]
iris = load_iris()
DATA = (iris.data[::12], iris.target[::12], iris.data[[1, 57, 108, 133, 140]], iris.target[[1, 57, 108, 133, 140]])


SMALL = (iris.data[::15], iris.target[::15], iris.data[[1, 57, 108]], iris.target[[1, 57, 108]])


class TestLocalityGap:
    def test_the_global_game_has_no_gap_and_no_noise(self):
        found = ls.locality_gap(*SMALL, model=DecisionTreeClassifier(), support=Everything(), budget=500)
        assert found.gap == found.gap_stderr == found.noise == 0
        assert found.rank_correlation == pytest.approx(1)
        assert (found.local == found.global_).all()
        assert found.enough
        assert found.advice == "the support is large enough"

    def test_radius_neighbours_are_exactly_local(self):
        rng = np.random.default_rng(0)
        X, y = rng.uniform(size=(15, 1)), rng.normal(size=15)
        data = (X, y, X[:4] + 0.01, y[:4] + 0.5)
        found = ls.locality_gap(*data, model=RadiusNeighborsRegressor(0.15), budget=500)
        assert found.gap < 1e-12
        assert found.gap_stderr < 1e-12
        assert found.noise < 1e-12
        assert found.enough
        assert np.abs(found.global_).max() > 0.01

    def test_a_support_too_small_shows_a_gap_and_a_larger_one(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(12, 2))
        y = X @ [1.0, 2.0]
        found = ls.locality_gap(X, y, X[:4] + 0.1, y[:4] + 0.3, model=Ridge(0.01), support=Nearest(1), budget=3000)
        assert found.gap > 0.5
        assert found.gap > 4 * found.noise
        assert not found.enough
        assert "supports.Nearest(2)" in found.advice
        assert f"{found.gap:.3f}" in repr(found)
        assert found.advice in repr(found)

    def test_the_gap_shrinks_as_the_support_grows(self):
        gaps = [
            ls.locality_gap(*SMALL, model=DecisionTreeClassifier(), support=Nearest(n), budget=600).gap for n in (1, 10)
        ]
        assert gaps[0] > gaps[1] == 0

    def test_estimates_and_their_errors_agree_with_exact_values_and_other_seeds(self):
        model, support = DecisionTreeClassifier(random_state=0), Nearest(4)
        runs = [
            ls.locality_gap(*SMALL, model=model, support=support, budget=30 * 22 + 1, seed=seed) for seed in range(8)
        ]
        assert {run.permutations for run in runs} == {30}
        local = ls.value(*SMALL, model=model, support=support).values
        everywhere = ls.value(*SMALL, model=model, support=Everything()).values
        for exact, estimates in (
            (local, np.array([run.local for run in runs])),
            (everywhere, np.array([run.global_ for run in runs])),
        ):
            error = estimates.std(axis=0, ddof=1) / np.sqrt(len(runs))
            assert (np.abs(estimates.mean(axis=0) - exact) <= 5 * error + 1e-12).all()
        gap = np.abs(local - everywhere).mean() / np.abs(everywhere).mean()
        seen = np.array([run.gap for run in runs])
        assert np.abs(seen - gap).max() < 5 * np.median([run.gap_stderr + run.noise for run in runs])
        assert 0.3 < np.median([run.gap_stderr for run in runs]) / seen.std(ddof=1) < 3
        assert all(-1 <= run.rank_correlation <= 1 and run.rank_correlation_stderr >= 0 for run in runs)

    def test_the_same_seed_gives_the_same_gap_whatever_the_jobs(self):
        arguments = {"model": DecisionTreeClassifier(), "support": Nearest(3), "budget": 200}
        one, again, two = (ls.locality_gap(*SMALL, **arguments, n_jobs=n) for n in (1, 1, 2))
        assert one.gap == again.gap == two.gap
        assert (one.local == two.local).all()
        assert one.gap != ls.locality_gap(*SMALL, **arguments, seed=1).gap

    def test_with_a_store_the_same_call_trains_nothing_and_finds_the_same(self, tmp_path):
        arguments = {"model": DecisionTreeClassifier(random_state=0), "support": Nearest(3), "budget": 200}
        alone = ls.locality_gap(*SMALL, **arguments)
        with ls.Store(tmp_path / "run.db", fastest=0) as store:
            first, again = (ls.locality_gap(*SMALL, **arguments, store=store) for _ in range(2))
        assert 0 < first.trainings < alone.trainings  # what several permutations meet is trained once
        assert again.trainings == 0
        for found in (first, again):
            assert (found.gap, found.gap_stderr, found.noise) == (alone.gap, alone.gap_stderr, alone.noise)
            assert (found.local == alone.local).all()
            assert (found.global_ == alone.global_).all()

    def test_ctrl_c_returns_what_the_permutations_so_far_show(self):
        def interrupt(done, total):
            if done > 60:
                raise KeyboardInterrupt

        arguments = {"model": DecisionTreeClassifier(random_state=0), "support": Nearest(3), "on_interrupt": "return"}
        each = 19  # coalitions of a permutation
        part = ls.locality_gap(*SMALL, **arguments, budget=200, progress=interrupt)
        n = part.permutations
        assert n in (3, 4)  # the last batch may have finished one
        assert part.notes[-1] == f"only {n} of 10 permutations were walked: interrupted."
        few = ls.locality_gap(*SMALL, **arguments, budget=n * each + 1)
        assert (part.gap, part.gap_stderr) == (few.gap, few.gap_stderr)
        with pytest.raises(KeyboardInterrupt):
            ls.locality_gap(*SMALL, **arguments | {"on_interrupt": "raise"}, budget=200, progress=interrupt)

        def at_once(done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):  # nothing is known yet
            ls.locality_gap(*SMALL, **arguments, budget=200, progress=at_once)

    def test_when_time_is_up_two_permutations_are_finished(self):
        arguments = {"model": DecisionTreeClassifier(random_state=0), "support": Nearest(3), "budget": 200}
        part = ls.locality_gap(*SMALL, **arguments, max_seconds=1e-9)
        assert part.permutations == 2
        assert part.notes[-1].startswith("only 2 of 10 permutations were walked: ")
        assert part.notes[-1].endswith("(limit 1e-09 s).")
        assert part.gap == ls.locality_gap(*SMALL, **arguments | {"budget": 2 * 19 + 1}).gap
        for wrong, message in (({"max_seconds": 0}, "max_seconds must be"), ({"on_interrupt": "stop"}, "on_interrupt")):
            with pytest.raises(ls.InvalidArgumentError, match=message):
                ls.locality_gap(*SMALL, **arguments, **wrong)

    def test_the_budget_is_kept_and_the_least_one_is_named(self):
        arguments = {"model": DecisionTreeClassifier(), "support": Given([[0, 1, 2], [0, 1, 2], [4, 5]])}
        least = 2 * (10 + 3 + 2) + 1
        found = ls.locality_gap(*SMALL, **arguments, budget=least)
        assert (found.permutations, found.trainings) == (2, least)
        with pytest.raises(
            ls.InvalidArgumentError, match=f"budget={least - 1} is too small: two permutations take {least} trainings"
        ):
            ls.locality_gap(*SMALL, **arguments, budget=least - 1)

    def test_test_rows_are_sampled_without_repetition(self):
        found = ls.locality_gap(*DATA, model=DecisionTreeClassifier(), support=Nearest(2), n_tests=3, budget=100)
        assert len(found.tests) == 3
        assert sorted(set(found.tests.tolist())) == found.tests.tolist()
        assert set(found.tests.tolist()) <= set(range(5))
        assert "over 3 test rows" in repr(found)

    @pytest.mark.slow
    def test_with_folds_a_row_never_learns_from_its_own(self):
        X, y = iris.data[::15], iris.target[::15]  # ten rows
        model = DecisionTreeClassifier(random_state=0)
        found = ls.locality_gap(X, y, model=model, cv=5, support=Everything(), budget=2000)
        assert found.gap == found.noise == 0  # everyone outside the fold is in the support
        near = ls.locality_gap(X, y, model=model, cv=5, support=Nearest(2), n_tests=10, budget=100_000)
        exact = [
            ls.value(X, y, model=model, cv=5, support=support, method="exact") for support in (Nearest(2), Everything())
        ]
        for values, estimate in zip(exact, (near.local, near.global_), strict=True):
            np.testing.assert_allclose(estimate, values.values, atol=0.25)
        assert near.gap > 0.1

    def test_owners_as_players(self):
        found = ls.locality_gap(*DATA, model=DecisionTreeClassifier(), owners=np.arange(13) // 4, budget=500)
        assert len(found.local) == len(found.global_) == 4
