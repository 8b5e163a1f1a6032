"""Supports that grow until they are large enough."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley import supports
from localshapley.locality import growing
from localshapley.locality.growing import grow_support
from localshapley.question import Question

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
Y = X @ [1.0, 2.0] + 0.1 * rng.normal(size=40)
DATA = X[:30], Y[:30], X[30:], Y[30:]
LABELS = DATA[0], (DATA[1] > 0).astype(int), DATA[2], (DATA[3] > 0).astype(int)


@pytest.fixture(autouse=True)
def few_trainings(monkeypatch):
    monkeypatch.setattr(growing, "MAX_TRAININGS", 4000)


def noted(found):
    return next(note for note in found.notes if "support='auto'" in note)


def test_an_exactly_local_model_keeps_its_support():
    v = ls.value(*DATA, model=RadiusNeighborsRegressor(0.8), support="auto", method="sample", tol=0.5)
    assert v.support == "Radius(r=0.8)"
    assert "0.00 ± 0.00 of the values' size" in noted(v)
    assert "locality gap of Radius(r=0.8)" in v.summary().lower().replace("radius", "Radius")


def test_a_support_that_misses_much_grows_until_it_is_enough():
    v = ls.value(*LABELS, model=KNeighborsClassifier(3), support="auto")
    default = ls.value(*LABELS, model=KNeighborsClassifier(3))
    gap = ls.locality_gap(*LABELS, model=KNeighborsClassifier(3), budget=20_000)
    assert not gap.enough
    assert v.support_sizes.mean() > default.support_sizes.mean()
    assert "locality gap of Nearest(n=" in noted(v)
    chosen = eval(v.support, vars(supports))
    assert ls.locality_gap(*LABELS, model=KNeighborsClassifier(3), support=chosen, budget=20_000).gap < gap.gap
    np.testing.assert_array_equal(v.values, ls.value(*LABELS, model=KNeighborsClassifier(3), support=chosen).values)


def test_the_budget_says_stop_and_counts_all_trainings():
    v = ls.value(*DATA, model=Ridge(0.01), support="auto", budget=1200)
    assert "; " in noted(v)
    used = int(noted(v).split(" trainings)")[0].split()[-1].replace(",", ""))
    assert used <= 300
    assert v.cost.trainings + used <= 1200


def test_a_limit_of_time_ends_the_growing():
    settings = {"model": ls.models.Estimator(Ridge(0.01)), "support": "auto"}
    _, limits = grow_support(Question.of_rows(*DATA, **settings, max_seconds=1000))
    assert limits.max_seconds == 1000
    late, _ = grow_support(Question.of_rows(*DATA, **settings, max_seconds=1e-9))
    default = ls.plan(*DATA, model=ls.models.Estimator(Ridge(0.01)))
    assert late.support == default.support
    assert noted(late).endswith("; there was no time to measure a larger one.")


def test_with_a_store_the_same_call_trains_nothing(tmp_path):
    settings = {"model": ls.models.Estimator(Ridge(0.01)), "support": "auto", "budget": 1200}
    alone = ls.value(*DATA, **settings)
    with ls.Store(tmp_path / "run.db", fastest=0) as store:
        first, again = (ls.value(*DATA, **settings, store=store) for _ in range(2))
    assert again.cost.trainings == 0
    assert "; " in noted(again)
    assert ", 0 trainings)" in noted(again)
    for found in (first, again):
        assert found.support == alone.support
        np.testing.assert_array_equal(found.values, alone.values)


def test_too_many_rows_to_measure_are_told():
    v = ls.value(*DATA, model=Ridge(0.01), support="auto", budget=400)
    assert "would take over 100 trainings" in noted(v)


def test_plan_says_what_value_does():
    about = {"model": DecisionTreeClassifier(random_state=0), "support": "auto"}
    assert ls.plan(*LABELS, **about).support == ls.value(*LABELS, **about, tol=0.5).support


def test_folds_and_owners():
    about = {"model": DecisionTreeClassifier(random_state=0), "support": "auto", "tol": 0.5}
    assert "locality gap" in noted(ls.value(*LABELS[:2], cv=3, **about))
    assert "locality gap" in noted(ls.value(*LABELS, owners=np.arange(30) % 6, **about))


def test_what_is_global_anyway():
    forest = ls.models.Fixed(RandomForestClassifier(5, random_state=0))
    assert not any("auto" in note for note in ls.value(*LABELS, model=forest, support="auto").notes)
    v = ls.value(*LABELS, model="knn", support="auto", method="global-mc", budget=2000)
    assert v.support == "Everything()"


def test_elsewhere_it_is_refused():
    with pytest.raises(ls.InvalidArgumentError, match="also take 'auto'"):
        ls.locality_gap(*LABELS, model="knn", support="auto")
    with pytest.raises(ls.InvalidArgumentError, match="got 'large'"):
        ls.value(*LABELS, model="knn", support="large")


@pytest.mark.parametrize(
    "support",
    [
        supports.Nearest(3, standardise=True),
        supports.Radius(2.0),
        supports.Kernel(0.5),
        supports.CompactKernel(2.0),
        supports.TreeNode(),
        supports.Leaves(4),
        supports.Dual(),
        supports.Embedding(n=4),
        supports.Random(3),
        supports.Hops(2),
    ],
)
def test_grown_is_what_larger_says(support):
    said = eval(support.larger(), {"supports": supports, "encoder": None})
    grown = support.grown()
    assert type(grown) is type(said)
    size = next(iter(vars(said).keys() - {"max_size"}), None)
    assert all(
        getattr(grown, name) == getattr(said, name)
        for name in ("n", "r", "threshold", "bandwidth", "levels")
        if hasattr(said, name)
    ), size


def test_some_cannot_grow():
    assert supports.Everything().grown() is None
    assert supports.Given([[0]]).grown() is None
