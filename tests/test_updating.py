"""Changed data: what is kept, what is played again, and the errors of both together."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.data.folds import continued, fold_of_rows

X, Y, X_TEST, Y_TEST, _ = ls.datasets.load("breast_cancer")
X, Y, X_TEST, Y_TEST = X[:60, :4], Y[:60], X_TEST[:12, :4], Y_TEST[:12]
TREE = {"model": DecisionTreeClassifier(random_state=0), "support": ls.supports.Nearest(8)}


def sampled(seed, **more):
    return {**TREE, "method": "sample", "seed": seed, **more}


@pytest.mark.slow
def test_sampled_values_are_unbiased_and_their_errors_are_right():
    exact = ls.value(X, Y, X_TEST, Y_TEST, **TREE, method="exact")
    off, expected = [], []
    for seed in range(40):
        before = ls.value(X[1:], Y[1:], X_TEST, Y_TEST, per_test=True, **sampled(seed, budget=500))
        after = ls.update(before, X, Y, X_TEST, Y_TEST, **sampled(seed))
        off.append(after.values - exact.values)
        expected.append(after.stderr)
    off, expected = np.array(off), np.array(expected)
    moved = expected.any(axis=0)
    mean, error = off.mean(axis=0)[moved], off.std(axis=0)[moved] / np.sqrt(len(off))
    assert np.abs(mean / error).max() < 4.5
    assert 0.85 < np.sqrt((off**2).sum() / (expected**2).sum()) < 1.15
    assert moved[0]  # the new row


def test_only_changed_games_are_played_and_the_others_keep_their_values():
    about = sampled(0, budget=500)
    before = ls.value(X[1:], Y[1:], X_TEST, Y_TEST, per_test=True, **about)
    after = ls.update(before, X, Y, X_TEST, Y_TEST, **sampled(0))
    in_support = np.array([np.isin(np.arange(len(X)), after.games.support(t)) for t in range(12)])
    has_it = in_support[:, 0]
    assert 0 < has_it.sum() < 6
    kept = ~has_it
    np.testing.assert_array_equal(after.per_test.toarray()[kept, 1:], before.per_test.toarray()[kept])
    assert after.cost.trainings < before.cost.trainings
    np.testing.assert_allclose(after.per_test.sum(axis=0), after.values)
    np.testing.assert_allclose((after.spread**2).sum(axis=1), after.stderr**2, rtol=1e-4, atol=1e-12)
    elsewhere = ~in_support[has_it].any(axis=0)[1:] & (after.n_tests[1:] == before.n_tests)
    np.testing.assert_allclose(after.stderr[1:][elsewhere], before.stderr[elsewhere], rtol=1e-6)
    assert after.stderr_tests is not None


def test_shared_supports_have_as_many_draws_for_each_test_row_as_before():
    """A training is scored on all test rows that share a support, so that few trainings make many draws."""
    data = ls.datasets.load("wine")[:4]
    tree = {"model": DecisionTreeClassifier(random_state=0), "method": "sample"}
    before = ls.value(*data, per_test=True, budget=4000, **tree)
    assert before.cost.draws > 5 * before.cost.trainings
    after = ls.update(before, data[0][1:], data[1][1:], *data[2:], **tree)
    n_played = int(after.notes[-1].split("values, ")[1].split(" were")[0])
    assert 0 < n_played < 54
    assert after.cost.draws / n_played == pytest.approx(before.cost.draws / 54, rel=0.3)
    assert after.cost.trainings < before.cost.trainings
    assert after.stopped == "as many draws for each test row as before"


def test_the_method_is_called_as_it_was_asked_for():
    before = ls.value(X[1:], Y[1:], X_TEST, Y_TEST, per_test=True, **TREE, tol=0.2)
    assert before.method == ls.update(before, X, Y, X_TEST, Y_TEST, **TREE).method == "auto"


def test_an_update_that_has_no_time_for_its_test_rows_is_refused():
    before = ls.value(X[1:], Y[1:], X_TEST, Y_TEST, per_test=True, **sampled(0, budget=500))
    with pytest.raises(ls.InvalidArgumentError, match="max_seconds=1e-09 is too short"):
        ls.update(before, X, Y, X_TEST, Y_TEST, **sampled(0), max_seconds=1e-9)


def test_nothing_changed_is_the_same_valuation():
    before = ls.value(X, Y, X_TEST, Y_TEST, per_test=True, **sampled(0, budget=500))
    after = ls.update(before, X, Y, X_TEST, Y_TEST, **sampled(0))
    np.testing.assert_allclose(after.values, before.values)
    np.testing.assert_allclose(after.stderr, before.stderr)
    np.testing.assert_array_equal(after.origin.apart, before.origin.apart)
    np.testing.assert_allclose(after.stderr_tests, before.stderr_tests, atol=1e-5)
    assert after.cost.trainings <= 1


def test_a_new_test_row_is_its_own_game():
    before = ls.value(X, Y, X_TEST[1:], Y_TEST[1:], per_test=True, **sampled(0, budget=500))
    after = ls.update(before, X, Y, X_TEST, Y_TEST, **sampled(0, budget=100))
    assert "11 of 12 test rows kept" in after.notes[-1]
    assert after.cost.trainings <= 100
    np.testing.assert_array_equal(after.per_test.toarray()[1:], before.per_test.toarray())


def test_a_file_keeps_what_an_update_needs(tmp_path):
    before = ls.value(X[1:], Y[1:], X_TEST, Y_TEST, per_test=True, **sampled(0, budget=500))
    before.save(tmp_path / "v.parquet")
    one, two = (ls.update(v, X, Y, X_TEST, Y_TEST, **sampled(0)) for v in (before, ls.load(tmp_path / "v.parquet")))
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.stderr, two.stderr)
    older = replace(before, origin=replace(before.origin, apart=np.empty(0)))
    with pytest.raises(ls.InvalidArgumentError, match="earlier version"):
        ls.update(older, X, Y, X_TEST, Y_TEST, **sampled(0))


def test_a_target_that_kept_values_miss_is_told():
    before = ls.value(X[1:], Y[1:], X_TEST, Y_TEST, per_test=True, **sampled(0, budget=300))
    after = ls.update(before, X, Y, X_TEST, Y_TEST, **sampled(0, tol=0.001))
    assert "larger error than tol=0.001" in after.notes[-1]


@pytest.mark.parametrize("model", [None, Ridge()], ids=["tree", "numbers"])
@pytest.mark.parametrize("change", ["added", "removed", "relabelled"])
def test_folds(change, model, tmp_path):
    about = {**TREE, "method": "exact"} | ({} if model is None else {"model": model})
    ls.value(X[1:], Y[1:], cv=4, per_test=True, **about).save(tmp_path / "v.parquet")
    before = ls.load(tmp_path / "v.parquet")
    other = Y[1:].copy()
    other[5] = 1 - other[5]
    data = {"added": (X, Y), "removed": (X[2:], Y[2:]), "relabelled": (X[1:], other)}[change]
    after = ls.update(before, *data, cv=4, **about)
    folds = after.origin.folds
    pairs = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(4)]
    full = ls.value(*data, cv=pairs, per_test=True, **about)
    np.testing.assert_allclose(after.values, full.values, atol=1e-10)
    np.testing.assert_allclose(after.stderr_tests, full.stderr_tests, atol=1e-6)
    assert after.cost.trainings < full.cost.trainings / 2


def test_folds_of_known_rows_stay():
    folds = continued(np.array([0, 1, -1, 0, -1]), np.array([0, 0, 1, 1, 1]), 2)
    np.testing.assert_array_equal(fold_of_rows(folds, 5), [0, 1, 1, 0, 0])
    assert fold_of_rows([folds[0]], 5) is None
    assert fold_of_rows([folds[0], folds[0]], 5) is None


def test_owners():
    owners = np.arange(len(X)) % 7
    about = {**TREE, "method": "exact"}
    before = ls.value(X, Y, X_TEST, Y_TEST, owners=owners, per_test=True, **about)
    data = np.delete(X, 3, axis=0), np.delete(Y, 3), X_TEST, Y_TEST
    after = ls.update(before, *data, owners=np.delete(owners, 3), **about)
    full = ls.value(*data, owners=np.delete(owners, 3), **about)
    np.testing.assert_allclose(after.values, full.values, atol=1e-12)


def test_what_is_fitted_anew_in_every_fold_is_refused():
    about = {"model": make_pipeline(StandardScaler(), SVC()), "support": ls.supports.Nearest(5), "cv": 3}
    before = ls.value(X, Y, per_test=True, **about)
    with pytest.raises(ls.InvalidArgumentError, match="pipelines"):
        ls.update(before, X, Y, **about)
