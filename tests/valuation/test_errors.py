"""How sure values are: intervals of all errors, and what is said about them."""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.svm import SVC

import localshapley as ls
from localshapley.coalitions.jackknife_blocks import JackknifeBlocks, credibility
from localshapley.valuation.intervals import beyond_doubt
from localshapley.valuation.seeds import mean_over_seeds
from made import changed


@pytest.fixture(scope="module")
def data():
    X, y, X_test, y_test, _ = ls.datasets.load("iris")
    y = y.copy()
    y[::9] = (y[::9] + 1) % 3
    return X, y, X_test, y_test


@pytest.fixture(scope="module")
def exact(data):
    return ls.value(*data, model="knn")


@pytest.fixture(scope="module")
def sampled(data):
    return ls.value(*data, model="tree", support=ls.supports.Nearest(12), tol=0.2)


class TestInterval:
    def test_of_the_draws_is_normal(self, sampled):
        low, high = sampled.interval(0.9, errors="draws")
        half = norm.ppf(0.95) * sampled.stderr
        np.testing.assert_allclose([low, high], [sampled.values - half, sampled.values + half])

    def test_of_all_adds_up_variances(self, sampled):
        low, high = sampled.interval()
        weight, common = credibility(sampled.spread_tests)
        own = weight * sampled.stderr_tests**2
        variance = sampled.stderr**2 + own + common
        freedom = variance**2 / ((own**2 + common**2) / (sampled.spread_tests.shape[1] - 1))
        np.testing.assert_allclose((high - low) / 2, student.ppf(0.975, freedom) * np.sqrt(variance), rtol=1e-6)

    def test_widens_with_the_level(self, exact):
        widths = [np.subtract(*exact.interval(level)[::-1]) for level in (0.5, 0.9, 0.99)]
        assert (widths[0] < widths[1]).all()
        assert (widths[1] < widths[2]).all()

    def test_a_row_without_test_rows_is_not_certain(self, exact):
        lonely = exact.n_tests == 0
        low, high = exact.interval()
        assert lonely.any()
        assert (low[lonely] < 0).all()
        assert (high[lonely] > 0).all()

    def test_where_test_rows_are_unknown_it_is_that_of_the_draws(self, sampled):
        older = changed(sampled, spread_tests=None)
        np.testing.assert_array_equal(older.interval(), sampled.interval(errors="draws"))

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"level": 1}, "level must be below 1"),
            ({"level": 0}, "level must be a number above 0"),
            ({"level": "high"}, "level must be a number"),
            ({"errors": "tests"}, "errors must be one of 'all', 'draws'; got 'tests'"),
        ],
    )
    def test_refuses(self, exact, arguments, message):
        with pytest.raises(ls.InvalidArgumentError, match=message):
            exact.interval(**arguments)


class TestCredibility:
    def test_is_an_analysis_of_variance_of_the_squares(self):
        columns = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32) * np.arange(1, 8)[:, None] ** 2
        squares = 5 * columns.astype(float) ** 2
        own, rest = squares.mean(axis=1), 0.0
        for z in range(7):
            for b in range(5):
                rest += (squares[z, b] - own[z] - squares[:, b].mean() + squares.mean()) ** 2
        chance = rest / (6 * (5 - 2)) / 5
        weight = 1 - 4 / 6 * chance / own.var(ddof=1)
        assert credibility(columns) == pytest.approx((weight, (1 - weight) * own.mean()), rel=1e-5)

    def test_rows_alike_have_one_variance_and_rows_apart_have_their_own(self):
        alike = np.random.default_rng(1).normal(size=(400, 20))
        alike -= alike.mean(axis=1, keepdims=True)
        assert credibility(alike.astype(np.float32))[0] < 0.1
        apart = alike * np.exp(2 * np.random.default_rng(2).normal(size=(400, 1)))
        assert credibility(apart.astype(np.float32))[0] > 0.8

    def test_three_rows_and_nothing_are_left_alone(self):
        columns = np.random.default_rng(0).normal(size=(3, 20)).astype(np.float32)
        assert credibility(columns) == (1.0, 0.0)
        assert credibility(np.zeros((10, 5), dtype=np.float32)) == (1.0, 0.0)

    @pytest.mark.parametrize("size", [20, 50, 200])
    def test_intervals_hold_what_they_should_where_rows_meet_few_test_rows(self, exact, size):
        rng = np.random.default_rng(size)
        rate = rng.gamma(2, 15 / size / 20, size=200)  # as many test rows as each row meets, on average
        worth, held = rng.normal(0.5, 1, size=(30, 200)), []  # to test rows of thirty kinds
        for _ in range(20):
            by_test = (rng.random((size, 200)) < rate) * worth[rng.integers(30, size=size)]
            bundles = JackknifeBlocks(np.arange(size), 200)
            sums = np.zeros((bundles.n, 200))
            np.add.at(sums, bundles.of_test, by_test)
            parts = {"stderr": np.zeros(200), "n_tests": np.ones(200, int), "spread_tests": bundles.spread(sums[None])}
            v = changed(exact, values=by_test.sum(axis=0), **parts)
            low, high = v.interval()
            truth = size * rate * worth.mean(axis=0)
            held.append(((low <= truth) & (truth <= high)).mean())
        assert 0.93 <= np.mean(held) <= 0.975


def test_a_row_that_met_one_test_row_is_not_beyond_doubt():
    columns = np.random.default_rng(0).normal(scale=0.01, size=(500, 20)).astype(np.float32)
    columns[0] = -1 / 20
    columns[0, 0] += 1
    values = np.zeros(500)
    values[0] = -1
    v = changed(ls.value(*ls.datasets.load("iris")[:4], model="knn"), values=values, stderr=np.zeros(500),
                n_tests=np.ones(500, int), spread_tests=columns)  # fmt: skip
    assert v.interval()[1][0] < 0  # by what is seen of the others such a row is rare
    assert not beyond_doubt(v)[0][0]


def test_what_is_said_first(exact):
    n_below, sure = int((exact.values < 0).sum()), int(beyond_doubt(exact)[0].sum())
    line = f"{sure} of the {n_below} rows below zero would still be below zero with other test rows (95 %)"
    assert repr(exact).split("\n")[1] == f"  sure     {line}"
    assert exact.summary().startswith(line)
    assert 0 < sure < n_below
    positive = changed(exact, values=np.abs(exact.values))
    assert "rows above zero would still be above zero" in positive.summary()


def test_the_larger_error_is_named(sampled, exact):
    said = "more draws would not help; more test rows would."
    assert np.linalg.norm(sampled.stderr_tests) > np.linalg.norm(sampled.stderr)
    assert any(said in note for note in sampled.notes)
    assert said in sampled.summary()
    assert not any(said in note for note in exact.notes)
    rough = changed(sampled, stderr=10 * sampled.stderr + sampled.stderr_tests)
    assert said not in rough.summary()
    assert "he draws are off by" not in sampled.summary()
    assert "The draws are off by" in rough.summary()


def test_a_run_that_ends_before_its_target_says_so(data):
    about = {"model": "tree", "support": ls.supports.Nearest(12), "method": "sample", "seed": 0}
    short = ls.value(*data, **about, budget=400, tol=0.01)
    said = f"off by {100 * short.relative_error:.0f} % of the size of the values, not by 1 %"
    assert short.relative_error > 0.01
    assert [said in note for note in short.notes if "ended before its target" in note] == [True]
    with pytest.raises(ls.InvalidArgumentError, match="progress must be True, False, None or a function; got 'yes'"):
        ls.value(*data, **about, progress="yes")
    far = ls.value(*data, **about, budget=6000, tol=1e-9)  # test rows are the larger error by now
    assert "ended before its target" in far.notes[-2]
    assert "helps" not in far.notes[-2]
    assert far.notes[-1].endswith("more draws would not help; more test rows would.")
    reached = ls.value(*data, **about, tol=0.5)
    assert not any("ended before" in note or "are off by" in note for note in reached.notes)


def test_table_and_file_have_what_is_known(exact, tmp_path):
    assert list(exact.to_frame().columns) == ["value", "stderr", "stderr_tests", "n_tests"]
    with_seeds = changed(exact, spread_seed=np.ones((len(exact.values), 3), dtype=np.float32))
    assert list(with_seeds.to_frame().columns) == ["value", "stderr", "stderr_tests", "stderr_seed", "n_tests"]
    with_seeds.save(tmp_path / "v.parquet")
    loaded = ls.load(tmp_path / "v.parquet")
    np.testing.assert_array_equal(loaded.interval(), with_seeds.interval())
    older = changed(exact, spread_tests=None)
    older.save(tmp_path / "w.parquet")
    assert ls.load(tmp_path / "w.parquet").stderr_tests is None
    assert list(older.to_frame().columns) == ["value", "stderr", "n_tests"]


def test_update_keeps_the_error(data):
    X, y, X_test, y_test = data
    about = {"model": "tree", "support": ls.supports.Nearest(6), "method": "exact"}
    v = ls.value(X[:-1], y[:-1], X_test, y_test, per_test=True, **about)
    updated = ls.update(v, X, y, X_test, y_test, **about)
    np.testing.assert_allclose(updated.stderr_tests, ls.value(X, y, X_test, y_test, **about).stderr_tests, atol=1e-7)


def test_probabilities_add_up_to_the_number_of_rows(sampled):
    worst, best = sampled.among_worst(10), sampled.among_best(10)
    assert worst.probability.sum() == pytest.approx(10)
    assert best.probability.sum() == pytest.approx(10)
    assert set(worst.order[:10]) == set(sampled.bottom(10).index)
    assert set(best.order[:10]) == set(sampled.top(10).index)
    assert 10 <= worst.size <= len(sampled.values)
    assert 0 < worst.expected < 10


def test_it_says_how_many_are_known(exact):
    worst = exact.among_worst(5, level=0.9)
    assert str(worst) == (
        f"of the first 5 rows, {worst.expected:.1f} are among the true 5 on average; "
        f"{worst.size} rows hold all 5 of them (90 %)"
    )
    owners = str(changed(exact, unit="owner").among_worst(5, level=0.9))
    assert owners == str(worst).replace("rows", "owners")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "k must be a whole number of at least 1; got 0"),
        ((1000,), "k must be at most 105, the number of rows; got 1000"),
        ((5, 1), "level must be below 1"),
    ],
)
def test_ranks_refuse(exact, arguments, message):
    with pytest.raises(ls.InvalidArgumentError, match=message):
        exact.among_worst(*arguments)


FOREST = ls.models.Fixed(RandomForestClassifier(10, random_state=7))


class TestSeeds:
    def test_values_are_means_over_seeds(self, data):
        v = ls.value(*data, model=FOREST, seeds=3, per_test=True)
        others = [ls.models.Fixed(RandomForestClassifier(10, random_state=state)) for state in (7, 1, 2)]
        runs = [ls.value(*data, model=model, per_test=True) for model in others]
        values = np.array([run.values for run in runs])
        np.testing.assert_allclose(v.values, values.mean(axis=0))
        np.testing.assert_allclose(v.stderr_seed, values.std(axis=0, ddof=1) / np.sqrt(3), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(v.per_test.toarray(), np.mean([run.per_test.toarray() for run in runs], axis=0))
        assert v.stderr_tests == pytest.approx(
            np.sqrt(len(data[2]) * v.per_test.toarray().var(axis=0, ddof=1)), rel=1e-4, abs=1e-6
        )
        assert "values are means over 3 seeds of the model." in v.notes

    def test_intervals_have_few_degrees_of_freedom(self, data):
        v = ls.value(*data, model=FOREST, seeds=2)
        alone = changed(v, spread_tests=None)
        low, high = alone.interval()
        np.testing.assert_allclose((high - low) / 2, student.ppf(0.975, 1) * v.stderr_seed, rtol=1e-5)

    def test_the_error_of_the_draws_is_taken_out(self, data):
        X, y, X_test, y_test = data
        about = {"model": ExtraTreesClassifier(3), "support": ls.supports.Nearest(9), "budget": 600, "method": "sample"}
        v = ls.value(X, y, X_test[:9], y_test[:9], seeds=3, **about)
        single = ls.value(X, y, X_test[:9], y_test[:9], **(about | {"budget": 200}))
        assert v.cost.trainings <= 600
        assert np.linalg.norm(v.stderr) < 0.8 * np.linalg.norm(single.stderr)
        np.testing.assert_allclose(np.linalg.norm(v.spread, axis=1), v.stderr, rtol=1e-5, atol=1e-8)

    def test_runs_that_differ_by_their_draws_alone_have_no_error_of_the_seed(self, sampled):
        rng = np.random.default_rng(0)
        runs = [changed(sampled, values=sampled.values + sampled.stderr * noise) for noise in rng.normal(size=(8, 105))]
        v = mean_over_seeds(runs)
        assert np.sum(v.stderr_seed**2) < 0.6 * np.sum(v.stderr**2)  # what is left is clipped at zero

    def test_a_model_without_chance_is_refused(self, data):
        with pytest.raises(ls.InvalidArgumentError, match="seeds=3 needs a model that draws random numbers; SVC"):
            ls.value(*data, model=SVC(), seeds=3)
        with pytest.raises(ls.InvalidArgumentError, match="seeds must be a whole number of at least 2"):
            ls.value(*data, model=SVC(), seeds=1)


def test_an_order_says_which_errors_it_does_not_count(data, exact):
    told, untold = (ls.value(*data, model="knn", method=method, budget=1000) for method in ("local-mc", "global-mc"))
    for v in (told, exact):
        assert not v.among_worst(3).unknown
        assert str(v.among_worst(3)).endswith("(95 %)")
    assert "which test rows were there is not known" in untold.among_worst(3).unknown
    assert str(untold.among_best(3)).endswith("is not known: with others the order may differ.")
