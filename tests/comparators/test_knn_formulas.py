"""KNN-Shapley and its threshold form against brute force, the closed form in plain Python, and other people's code."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier

import localshapley as ls
import naive
import naive_knn
from localshapley.comparators import knn_shapley, threshold_knn_shapley
from localshapley.kernels import knn_global as kernels

FIXTURE = json.loads((Path(__file__).parents[1] / "fixtures" / "knn_shapley_digits.json").read_text())
BOTH = [(knn_shapley, {}), (threshold_knn_shapley, {"radius": 1.5})]
METHODS = pytest.mark.parametrize(("function", "settings"), BOTH, ids=["knn_shapley", "threshold_knn_shapley"])


def quietly(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LocalShapleyWarning)
        return function(*args, **kwargs)


def lattice(seed, n=7, n_tests=5, n_features=2, side=3, n_classes=3):
    """A few rows on a small lattice: ties, duplicates and distances of 0 all over."""
    rng = np.random.default_rng([seed, n])
    y = rng.integers(n_classes, size=n)
    y[:2] = 0, 1
    X, X_test = (rng.integers(side, size=(k, n_features)).astype(float) for k in (n, n_tests))
    return X, y, X_test, rng.integers(n_classes + 1, size=n_tests)


def some_rows(seed=0, n=60, n_tests=12, n_features=5):
    rng = np.random.default_rng(seed)
    X, X_test = rng.normal(size=(n, n_features)), rng.normal(size=(n_tests, n_features))
    return X, rng.integers(3, size=n), X_test, rng.integers(3, size=n_tests)


def by_closed_form(data, K, metric=naive_knn.euclidean):
    X, y, X_test, y_test = data
    return naive_knn.closed_form(naive_knn.distance_matrix(X, X_test, metric), y.tolist(), y_test.tolist(), K)


def within(data, radius, metric=naive_knn.euclidean):
    """Values of the threshold game, enumerated over the ball of each test row: the rest are worth nothing."""
    X, y, X_test, y_test = data
    distances = naive_knn.distance_matrix(X, X_test, metric)
    balls = [[z for z in range(len(y)) if away[z] <= radius] for away in distances]
    v = naive_knn.ball_game(distances, y.tolist(), y_test.tolist(), radius)
    return naive.shapley_matrix(balls, v, len(y)).sum(axis=0)


class TestPeers:
    """Values that pyDVL and OpenDataVal gave, stored with the programs that made them."""

    @pytest.fixture
    def digits(self):
        """As made by benchmarks/peers/knn_digits.py."""
        X, y = load_digits(return_X_y=True)
        rng = np.random.RandomState(0)
        order = rng.permutation(len(y))[:160]
        X = X[order] / 16 + rng.normal(scale=1e-2, size=(160, 64))
        return X[:100], y[order[:100]], X[100:], y[order[100:]]

    @pytest.mark.parametrize("K", [1, 5, 20])
    def test_pydvl(self, digits, K):
        """Its values are means over the test rows."""
        v = knn_shapley(*digits, n_neighbors=K)
        stored = FIXTURE["values"]["pydvl"][str(K)]
        assert len(stored) == 100
        np.testing.assert_allclose(v.values / 60, stored, atol=1e-12)
        assert np.abs(stored).max() > 0.005

    @pytest.mark.parametrize("K", [1, 5, 20])
    def test_opendataval_in_single_precision(self, digits, K):
        v = knn_shapley(*digits, n_neighbors=K)
        np.testing.assert_allclose(v.values / 60, FIXTURE["values"]["opendataval"][str(K)], atol=2e-8)

    def test_the_fixture_says_where_it_comes_from(self):
        assert set(FIXTURE["versions"]) == set(FIXTURE["call"]) == {"pydvl", "opendataval"}
        assert FIXTURE["versions"]["pydvl"]["pydvl"] == "0.10.0"
        assert FIXTURE["versions"]["opendataval"]["opendataval"] == "1.3.0"
        peers = Path(__file__).parents[2] / "benchmarks" / "peers"
        for name, program in FIXTURE["call"].items():
            assert (peers / f"{name}_knn.py").read_text() == program


class TestByTheDefinition:
    def test_little_games_with_ties_and_duplicates(self):
        for seed in range(40):
            data = X, y, X_test, y_test = lattice(seed, n=4 + seed % 4)
            K = 1 + seed % 9  # up to more than there are rows
            v = naive_knn.vote_game(naive_knn.distance_matrix(X, X_test), y.tolist(), y_test.tolist(), K)
            expected = naive.shapley_matrix([range(len(y))] * len(y_test), v, len(y)).sum(axis=0)
            np.testing.assert_allclose(quietly(knn_shapley, *data, n_neighbors=K).values, expected, atol=1e-13)
            np.testing.assert_allclose(by_closed_form(data, K), expected, atol=1e-12)

    def test_little_balls_with_empty_ones(self):
        empty = 0
        for seed in range(40):
            data = X, y, X_test, y_test = lattice(seed, n=4 + seed % 4, side=4)
            radius = [0.5, 1.0, 1.5, 2.0][seed % 4]
            distances = naive_knn.distance_matrix(X, X_test)
            v = naive_knn.ball_game(distances, y.tolist(), y_test.tolist(), radius)
            expected = naive.shapley_matrix([range(len(y))] * len(y_test), v, len(y)).sum(axis=0)
            found = quietly(threshold_knn_shapley, *data, radius=radius)
            np.testing.assert_allclose(found.values, expected, atol=1e-13)
            np.testing.assert_allclose(within(data, radius), expected, atol=1e-12)
            empty += sum(min(away) > radius for away in distances)
        assert empty > 15

    @given(st.data())
    def test_any_little_game(self, data):
        n = data.draw(st.integers(2, 6))
        places = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
        labels = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n).filter(lambda y: len({*y}) > 1))
        K, radius = data.draw(st.integers(1, 8)), data.draw(st.sampled_from([0.5, 1, 1.5, 3]))
        rows = np.array(places, dtype=float)[:, None], np.array(labels), np.array([[1.0]]), np.array([1])
        found = quietly(knn_shapley, *rows, n_neighbors=K).values
        np.testing.assert_allclose(found, by_closed_form(rows, K), atol=1e-13)
        found = quietly(threshold_knn_shapley, *rows, radius=radius).values
        np.testing.assert_allclose(found, within(rows, radius), atol=1e-12)

    def test_by_hand(self):
        rows = [[0.0], [1.0], [5.0]], ["a", "b", "b"], [[0.2]], ["b"]
        # K = 1: the nearest row says all. Row 0 turns {1}, {2} and {1, 2} from right to wrong.
        np.testing.assert_allclose(knn_shapley(*rows, n_neighbors=1).values, [-2 / 3, 1 / 3, 1 / 3], atol=1e-15)
        # K = 10: every row votes, a tenth of a vote each.
        np.testing.assert_allclose(knn_shapley(*rows, n_neighbors=10).values, [0, 0.1, 0.1], atol=1e-15)

    def test_values_add_up_to_the_votes_of_all_rows(self):
        X, y, X_test, y_test = some_rows()
        for K in (1, 7, 60, 100):
            model = KNeighborsClassifier(min(K, 60)).fit(X, y)
            votes = model.predict_proba(X_test)[range(12), y_test] * min(K, 60) / K
            assert knn_shapley(X, y, X_test, y_test, n_neighbors=K).values.sum() == pytest.approx(votes.sum())

    def test_the_global_game_of_a_classifier_that_always_has_its_votes(self):
        """The vote divided by K is the confidence, but for coalitions of fewer than K rows: with K = 1, for ∅ alone."""
        X, y, X_test, y_test = some_rows()
        votes = knn_shapley(X, y, X_test, y_test, n_neighbors=1)
        everything = ls.supports.Everything()
        v = ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(1), support=everything, empty=0.0)
        np.testing.assert_allclose(votes.values, v.values, atol=1e-12)


class TestManyRows:
    @pytest.mark.parametrize(("n", "n_tests", "n_features"), [(200, 40, 3), (500, 30, 64), (777, 13, 20)])
    def test_the_closed_form(self, n, n_tests, n_features):
        data = some_rows(1, n, n_tests, n_features)
        for K in (1, 5, 1000):
            np.testing.assert_allclose(knn_shapley(*data, n_neighbors=K).values, by_closed_form(data, K), atol=1e-13)

    @pytest.mark.parametrize("metric", ["euclidean", "l2", "minkowski", "sqeuclidean", "cosine", "manhattan"])
    def test_equal_rows_count_in_the_order_of_their_index(self, metric):
        """Rows that occur several times, among many with 64 features: no rounding may put one before the other."""
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(160, 64))
        data = X, y, X_test, y_test = (
            rows[rng.integers(160, size=500)], rng.integers(3, size=500), rng.normal(size=(20, 64)),
            rng.integers(3, size=20),
        )  # fmt: skip
        twins = {
            "manhattan": lambda a, b: float(np.abs(a - b).sum()),
            "cosine": lambda a, b: float(((a / np.linalg.norm(a) - b / np.linalg.norm(b)) ** 2).sum()),
        }
        expected = by_closed_form(data, 5, twins.get(metric, naive_knn.euclidean))
        np.testing.assert_allclose(knn_shapley(X, y, X_test, y_test, metric=metric).values, expected, atol=1e-12)

    def test_digits_as_they_are(self):
        """Whole numbers: squares are exact in any order, and there are ties and equal distances."""
        X, y = load_digits(return_X_y=True)
        X = X // 6  # more ties
        data = X[:300], y[:300], X[300:330], y[300:330]
        expected = by_closed_form(data, 5)
        for kind in (np.float64, np.float32, np.int64, np.uint8):
            rows = data[0].astype(kind), data[1], data[2].astype(kind), data[3]
            np.testing.assert_allclose(knn_shapley(*rows).values, expected, atol=1e-12)

    @pytest.mark.parametrize("shift", [0.0, 2.0**10, 2.0**20, 2.0**30])
    def test_rows_far_from_the_origin(self, shift):
        X, y, X_test, y_test = some_rows(2, 300, 20, 8)
        X, X_test = (np.round(table * 2**10) / 2**10 for table in (X, X_test))  # the sums below are exact
        expected = by_closed_form((X, y, X_test, y_test), 5)
        found = knn_shapley(X + shift, y, X_test + shift, y_test)
        np.testing.assert_allclose(found.values, expected, atol=1e-12)

    @pytest.mark.parametrize("shift", [0.0, 2.0**20, 2.0**30])
    def test_balls_far_from_the_origin(self, shift):
        X, y, X_test, y_test = some_rows(2, 60, 10, 20)
        X, X_test = (np.round(table * 2**10) / 2**10 for table in (X, X_test))
        radius = float(np.quantile(pairwise_distances(X_test, X), 0.1))
        expected = within((X, y, X_test, y_test), radius)
        found = threshold_knn_shapley(X + shift, y, X_test + shift, y_test, radius=radius)
        np.testing.assert_allclose(found.values, expected, atol=1e-12)
        assert np.abs(expected).max() > 0.1

    def test_distances_that_differ_in_their_last_bits_only(self):
        """In the first sort the index hides the last bits of a distance; the order must come out all the same."""
        rng = np.random.default_rng(0)
        n = 400
        X = 1 + rng.permutation(n)[:, None] * 2.0**-52
        y = rng.integers(2, size=n)
        data = X, y, np.zeros((1, 1)), np.array([1])
        found = knn_shapley(*data, metric="manhattan", n_neighbors=3)
        np.testing.assert_allclose(found.values, by_closed_form(data, 3), atol=1e-13)

    @pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9, 255, 256, 257, 1024, 1025])
    def test_numbers_of_rows_around_powers_of_two(self, n):
        rng = np.random.default_rng(n)
        X, y = rng.integers(30, size=(n, 1)).astype(float), np.arange(n) % 2
        data = X, y, np.array([[7.0], [40.0]]), np.array([0, 1])
        np.testing.assert_allclose(knn_shapley(*data).values, by_closed_form(data, 5), atol=1e-13)

    def test_a_large_ball(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(3000, 2)), rng.integers(4, size=3000)
        v = threshold_knn_shapley(X, y, X[:5], y[:5], radius=50.0)
        own = [(y == label).mean() for label in y[:5]]
        assert v.values.sum() == pytest.approx(sum(own) - 5 / 4, abs=1e-9)
        one = threshold_knn_shapley(X, y, X[:1], y[:1], radius=50.0).values
        assert len(np.unique(one[y == y[0]])) == len(np.unique(one[y != y[0]])) == 1
        assert one[y == y[0]][0] > 0 > one[y != y[0]][0]

    def test_a_row_on_the_rim_is_inside(self):
        for n_features in (2, 40):
            X = np.zeros((4, n_features))
            X[:, :2] = [[3, 4], [0, 5], [3, 4.000001], [0, 0.5]]
            data = X, np.array([0, 1, 1, 0]), np.zeros((1, n_features)), np.array([1])
            np.testing.assert_allclose(threshold_knn_shapley(*data, radius=5).values, within(data, 5.0), atol=1e-14)


def scaled_sum(a, b, factor=2.0):
    return factor * np.abs(a - b).sum() + np.abs(a - b).max()


COVARIANCE = np.diag([2.0, 1.0, 0.4, 3.0, 0.1]) + 0.05
METRICS = {
    "manhattan": ("manhattan", None, lambda a, b: float(np.abs(a - b).sum())),
    "chebyshev": ("chebyshev", None, lambda a, b: float(np.abs(a - b).max())),
    "infinity": ("infinity", None, lambda a, b: float(np.abs(a - b).max())),
    "p=3": ("minkowski", {"p": 3}, lambda a, b: float((np.abs(a - b) ** 3).sum() ** (1 / 3))),
    "p=inf": ("minkowski", {"p": np.inf}, lambda a, b: float(np.abs(a - b).max())),
    "weighted": ("minkowski", {"w": np.arange(1.0, 6)}, lambda a, b: float((np.arange(1.0, 6) * (a - b) ** 2).sum())),
    "cosine": ("cosine", None, lambda a, b: 1 - float(a @ b) / float(np.sqrt(a @ a) * np.sqrt(b @ b))),
    "seuclidean": (
        "seuclidean",
        {"V": np.arange(1.0, 6)},
        lambda a, b: float(((a - b) ** 2 / np.arange(1.0, 6)).sum()),
    ),
    "mahalanobis by V": (
        "mahalanobis",
        {"V": COVARIANCE},
        lambda a, b: float((a - b) @ np.linalg.solve(COVARIANCE, a - b)),
    ),
    "mahalanobis by VI": (
        "mahalanobis",
        {"VI": np.linalg.inv(COVARIANCE)},
        lambda a, b: float((a - b) @ np.linalg.solve(COVARIANCE, a - b)),
    ),
    "canberra": ("canberra", None, lambda a, b: float((np.abs(a - b) / (np.abs(a) + np.abs(b))).sum())),
    "callable": (scaled_sum, None, scaled_sum),
    "callable with an argument": (scaled_sum, {"factor": 0.2}, lambda a, b: scaled_sum(a, b, 0.2)),
}


class TestMetrics:
    """Any metric that a nearest-neighbour classifier takes."""

    @pytest.mark.parametrize("name", METRICS)
    def test_knn_shapley(self, name):
        metric, params, twin = METRICS[name]
        data = some_rows(3)
        found = knn_shapley(*data, metric=metric, metric_params=params, n_neighbors=4)
        np.testing.assert_allclose(found.values, by_closed_form(data, 4, twin), atol=1e-12)
        assert np.abs(found.values - by_closed_form(data, 4)).max() > 1e-3

    @pytest.mark.parametrize("name", METRICS)
    def test_threshold(self, name):
        metric, params, twin = METRICS[name]
        data = some_rows(3, n_tests=6)
        squared = name in ("weighted", "seuclidean", "mahalanobis by V", "mahalanobis by VI")
        distances = np.array(naive_knn.distance_matrix(data[0], data[2], twin))
        radius = float(np.sort(distances.ravel())[[15, 16]].mean())
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nothing of scikit-learn's own is for the user
            found = threshold_knn_shapley(
                *data, metric=metric, metric_params=params, radius=np.sqrt(radius) if squared else radius
            )
        np.testing.assert_allclose(found.values, within(data, radius, twin), atol=1e-12)

    @METHODS
    def test_yes_and_no(self, function, settings):
        rng = np.random.default_rng(0)
        X, X_test = rng.integers(2, size=(30, 12)), rng.integers(2, size=(5, 12))
        y, y_test = rng.integers(2, size=30), rng.integers(2, size=5)
        settings = {"radius": 0.4} if settings else {"n_neighbors": 3}
        for metric, twin in (
            ("hamming", lambda a, b: float(np.mean(a != b))),
            ("jaccard", lambda a, b: 1 - float((a & b).sum() / (a | b).sum())),
        ):
            data = X.astype(bool), y, X_test.astype(bool), y_test
            found = function(*data, metric=metric, **settings)
            expected = within(data, 0.4, twin) if "radius" in settings else by_closed_form(data, 3, twin)
            np.testing.assert_allclose(found.values, expected, atol=1e-12)

    def test_on_a_globe(self):
        X, y, X_test, y_test = some_rows(4, n_features=2)
        distances = pairwise_distances(X_test, X, metric="haversine")
        expected = naive_knn.closed_form(distances.tolist(), y.tolist(), y_test.tolist(), 5)
        np.testing.assert_allclose(knn_shapley(X, y, X_test, y_test, metric="haversine").values, expected, atol=1e-12)

    def test_a_function_below_zero_keeps_its_order(self):
        """No distance, but a measure that a nearest-neighbour classifier takes: the inner product, negated."""
        data = some_rows(5)
        found = knn_shapley(*data, metric=lambda a, b: -float(a @ b))
        np.testing.assert_allclose(found.values, by_closed_form(data, 5, lambda a, b: -float(a @ b)), atol=1e-12)

    def test_a_function_of_small_whole_numbers(self):
        """A difference of bytes must not wrap around."""
        rng = np.random.default_rng(0)
        X, X_test = (rng.integers(256, size=(n, 4)) for n in (40, 6))
        y, y_test = rng.integers(2, size=40), rng.integers(2, size=6)
        data = X.astype(np.uint8), y, X_test.astype(np.uint8), y_test
        found = knn_shapley(*data, metric=lambda a, b: float(np.abs(a - b).sum()))
        expected = by_closed_form((X, y, X_test, y_test), 5, lambda a, b: float(np.abs(a - b).sum()))
        np.testing.assert_allclose(found.values, expected, atol=1e-12)


class TestKindsOfRows:
    @METHODS
    @pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array, sparse.csr_array])
    @pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
    def test_sparse_rows(self, function, settings, form, metric):
        X, y, X_test, y_test = some_rows(6, n_features=12)
        X, X_test = np.where(np.abs(X) > 0.7, X, 0.0), np.where(np.abs(X_test) > 0.7, X_test, 0.0)
        if "radius" in settings:
            settings = {"radius": float(np.quantile(pairwise_distances(X_test, X, metric=metric), 0.2))}
        expected = function(X, y, X_test, y_test, metric=metric, **settings).values
        found = function(form(X), y, form(X_test), y_test, metric=metric, **settings).values
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert np.abs(expected).max() > 0.01

    @METHODS
    def test_sparse_rows_with_indices_in_any_order(self, function, settings):
        X, y, X_test, y_test = some_rows(6, n_features=12)
        X, X_test = np.where(np.abs(X) > 0.7, X, 0.0), np.where(np.abs(X_test) > 0.7, X_test, 0.0)

        def reversed_csr(table):
            rows = [np.flatnonzero(row)[::-1] for row in table]
            data = np.concatenate([row[i] for row, i in zip(table, rows, strict=True)])
            indptr = np.cumsum([0] + [len(i) for i in rows])
            return sparse.csr_matrix((data, np.concatenate(rows), indptr), shape=table.shape)

        for metric in ("euclidean", "manhattan"):
            if "radius" in settings:
                settings = {"radius": float(np.quantile(pairwise_distances(X_test, X, metric=metric), 0.2))}
            expected = function(X, y, X_test, y_test, metric=metric, **settings).values
            found = function(reversed_csr(X), y, reversed_csr(X_test), y_test, metric=metric, **settings).values
            np.testing.assert_allclose(found, expected, atol=1e-12)

    @METHODS
    def test_single_precision(self, function, settings):
        X, y, X_test, y_test = some_rows(7)
        X, X_test = X.astype(np.float32), X_test.astype(np.float32)
        found = function(X, y, X_test, y_test, **settings).values
        doubles = function(X.astype(float), y, X_test.astype(float), y_test, **settings).values
        np.testing.assert_allclose(found, doubles, atol=1e-12)

    def test_single_precision_is_measured_in_double(self):
        """Differences of a millionth part of the distance, in numbers that single precision holds exactly."""
        X = np.array([[1.0], [1.0 + 2**-22], [1.0 + 2**-21], [3.0]], dtype=np.float32)
        data = X.astype(float), np.array([0, 1, 0, 1]), np.array([[2.0**14]]), np.array([1])
        single = X, data[1], data[2].astype(np.float32), data[3]
        expected = by_closed_form(data, 1)
        np.testing.assert_allclose(knn_shapley(*single, n_neighbors=1).values, expected, atol=1e-13)

    @METHODS
    def test_frames_lists_and_text_labels(self, function, settings):
        X, y, X_test, y_test = some_rows(8)
        expected = function(X, y, X_test, y_test, **settings)
        names = np.array(["ape", "bee", "cat"])
        index = [f"row {i}" for i in range(60)]
        columns = list("abcde")
        frame = pd.DataFrame(X, index=index, columns=columns), pd.DataFrame(X_test, columns=columns)
        found = function(frame[0], pd.Series(names[y]), frame[1], names[y_test].tolist(), **settings)
        assert (found.values == expected.values).all()
        assert found.to_frame().index.tolist() == index
        found = function(X.tolist(), y.tolist(), X_test.tolist(), y_test.tolist(), **settings)
        assert (found.values == expected.values).all()
        assert expected.ids is None

    @METHODS
    def test_labels_that_only_test_rows_have_count_as_wrong(self, function, settings):
        X, y, X_test, y_test = some_rows(9)
        known = y_test != 2
        y = np.where(y == 2, 0, y)
        with pytest.warns(ls.LocalShapleyWarning, match="labels that y does not have") as caught:
            v = function(X, y, X_test, y_test, **settings)
        assert caught[0].filename == __file__
        alone = function(X, y, X_test[known], y_test[known], **settings)
        lost = v.values - alone.values
        assert (lost <= 1e-15).all()
        assert (lost < 0).any() == (function is threshold_knn_shapley)
        assert any("labels that y does not have" in note for note in v.notes)


class TestRuns:
    @METHODS
    def test_the_same_bits_for_any_number_of_threads(self, function, settings, monkeypatch):
        X, y = load_digits(return_X_y=True)
        data = X[:400] / 16, y[:400], X[400:700] / 16, y[400:700]
        runs = [function(*data, n_jobs=n_jobs, **settings).values for n_jobs in (1, 2, 3, None, -1)]
        for run in runs[1:]:
            assert (run == runs[0]).all()
        assert np.abs(runs[0]).max() > 0.01

    @METHODS
    def test_blocks_do_not_matter(self, function, settings):
        X, y, X_test, y_test = some_rows(0, 100, 50)
        whole = function(X, y, X_test, y_test, **settings).values
        for size in (1, 700, 1000):
            found = function(X, y, X_test, y_test, **settings, max_distances=size).values
            np.testing.assert_allclose(found, whole, atol=1e-13)

    @METHODS
    def test_values_are_sums_over_test_rows(self, function, settings):
        X, y, X_test, y_test = some_rows(0, 50, 7)
        whole = function(X, y, X_test, y_test, **settings).values
        parts = sum(function(X, y, X_test[[t]], y_test[[t]], **settings).values for t in range(7))
        np.testing.assert_allclose(whole, parts, atol=1e-14)

    @METHODS
    def test_the_result_says_what_was_done(self, function, settings, tmp_path):
        X, y, X_test, y_test = some_rows()
        v = function(X, y, X_test, y_test, **settings)
        assert (v.stderr == 0).all()
        assert v.method == v.stopped == "closed form"
        assert "KNN-Shapley" in v.model
        assert ("radius=1.5" if settings else "K=5") in v.model
        assert v.cost.trainings == 0
        assert v.support_sizes.tolist() == [60] * 12
        assert v.n_tests.tolist() == [12] * 60
        assert "closed form" in repr(v)
        v.save(tmp_path / "v.parquet")
        assert (ls.load(tmp_path / "v.parquet").values == v.values).all()

    @METHODS
    def test_progress_counts_test_rows(self, function, settings):
        X, y = load_iris(return_X_y=True)
        seen = []
        function(
            np.repeat(X, 3, axis=0), np.repeat(y, 3), np.repeat(X, 3, axis=0), np.repeat(y, 3), n_jobs=1,
            progress=lambda done, total: seen.append((done, total)), **settings,
        )  # fmt: skip
        assert seen[-1] == (450, 450)
        assert len(seen) > 1
        assert seen == sorted(seen)

    @METHODS
    def test_other_arrays_and_settings_need_no_other_code(self, function, settings):
        """Compiling takes seconds: every kernel has one signature, whatever the user gives."""
        X, y, X_test, y_test = some_rows()
        csr = sparse.csr_matrix(X), y, sparse.csr_matrix(X_test), y_test
        for data in (csr, (X.astype(np.float32), y.astype(np.int8), np.asfortranarray(X_test), y_test)):
            function(*data, **settings)
            function(*data, metric="manhattan", **settings)
        if function is knn_shapley:
            function(X, y, X_test, y_test, n_neighbors=np.int32(3))
            assert len(kernels.add_knn_values.signatures) == 1
        else:
            function(X, y, X_test, y_test, radius=np.float32(3))
            assert len(kernels.add_threshold_values.signatures) == 1

    @METHODS
    def test_the_users_rows_are_left_as_they_were(self, function, settings):
        data = some_rows()
        copies = [array.copy() for array in data]
        for array in data:
            array.setflags(write=False)
        function(*data, **settings)
        for array, copy in zip(data, copies, strict=True):
            assert (array == copy).all()


@METHODS
@pytest.mark.parametrize("n_tests", [12, 150])
def test_errors_of_test_rows_are_known(function, settings, n_tests):
    """So that no order is claimed to be certain."""
    X, y, X_test, y_test = some_rows(n_tests=n_tests)
    v = function(X, y, X_test, y_test, **settings, n_jobs=2, max_distances=600)  # blocks of ten
    each = np.array(
        [quietly(function, X, y, X_test[t : t + 1], y_test[t : t + 1], **settings).values for t in range(n_tests)]
    )
    np.testing.assert_allclose(v.stderr_tests, np.sqrt(n_tests * each.var(axis=0, ddof=1)), rtol=1e-5)
    worst = v.among_worst(5)
    assert 0.2 < worst.expected < 4
    assert worst.size > 5
    assert not worst.unknown


@METHODS
def test_rows_of_one_class_have_values(function, settings):
    """The right one of two labels, or the wrong one; with a radius one class is always guessed right."""
    X, _, X_test, _ = some_rows()
    ones = np.ones(len(X), dtype=int)
    found = quietly(function, X, ones, X_test, ones[: len(X_test)], **settings)
    with pytest.warns(ls.LocalShapleyWarning, match="labels that y does not have"):
        wrong = function(X, ones, X_test, 0 * ones[: len(X_test)], **settings)
    right = 0 if settings else len(X_test)
    assert found.values.sum() == pytest.approx(right)
    np.testing.assert_array_equal(wrong.values <= 0, True)


class TestErrors:
    """Each names the argument, and what to do."""

    @pytest.mark.parametrize("K", [0, -1, 2.5, True, "5", None])
    def test_n_neighbors(self, K):
        with pytest.raises(ls.InvalidArgumentError, match=r"n_neighbors must be a whole number of at least 1; got"):
            knn_shapley(*some_rows(), n_neighbors=K)

    @pytest.mark.parametrize("radius", [0, -1, np.nan, np.inf, True, "5", None])
    def test_radius(self, radius):
        with pytest.raises(ls.InvalidArgumentError, match="radius must be a number above 0; got"):
            threshold_knn_shapley(*some_rows(), radius=radius)

    def test_a_radius_must_be_given(self):
        with pytest.raises(TypeError, match="radius"):
            threshold_knn_shapley(*some_rows())

    @METHODS
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda X, y, X_test, y_test: (X, y[:9], X_test, y_test), "y has 9 entries, X has 60 rows"),
            (lambda X, y, X_test, y_test: (X, y, X_test, y_test[:9]), "y_test has 9 entries, X_test has 12 rows"),
            (lambda X, y, X_test, y_test: (X, y, X_test[:, :2], y_test), "X_test has 2 features, X has 5"),
            (lambda X, y, X_test, y_test: (X[:, 0], y, X_test, y_test), "X must have two dimensions.*reshape"),
            (lambda X, y, X_test, y_test: (X[:0], y[:0], X_test, y_test), "X is empty"),
            (lambda X, y, X_test, y_test: (X, y, X_test[:0], y_test[:0]), "X_test is empty"),
            (lambda X, y, X_test, y_test: (None, y, X_test, y_test), "X is missing"),
            (lambda X, y, X_test, y_test: (np.where(X > 1, np.nan, X), y, X_test, y_test), "X holds .* missing"),
            (lambda X, y, X_test, y_test: (X, y, np.where(X_test > 1, np.inf, X_test), y_test), "X_test holds inf"),
            (lambda X, y, X_test, y_test: (sparse.csr_matrix(X), y, X_test, y_test), "both be sparse or both be dense"),
        ],
    )  # fmt: skip
    def test_rows_and_labels(self, function, settings, change, message):
        with pytest.raises(ls.InvalidArgumentError, match=message):
            function(*change(*some_rows()), **settings)

    @METHODS
    def test_numbers_in_place_of_labels(self, function, settings):
        """As many classes as rows would all be worth nothing; `value` refuses them too."""
        X, _, X_test, _ = some_rows()
        with pytest.raises(ls.InvalidArgumentError, match="y "):
            function(X, X[:, 0], X_test, X_test[:, 0], **settings)

    @METHODS
    def test_text_in_a_frame(self, function, settings):
        X, y, X_test, y_test = some_rows()
        frame, test_frame = (pd.DataFrame(table).rename(columns=str).assign(t="x") for table in (X, X_test))
        with pytest.raises(ls.InvalidArgumentError, match="X"):
            function(frame, y, test_frame, y_test, **settings)

    @METHODS
    @pytest.mark.parametrize("metric", ["euklidean", None, 3])
    def test_an_unknown_metric(self, function, settings, metric):
        with pytest.raises(ls.InvalidArgumentError, match="metric"):
            function(*some_rows(), metric=metric, **settings)

    @METHODS
    def test_a_precomputed_metric_names_no_model(self, function, settings):
        with pytest.raises(ls.InvalidArgumentError, match="metric='precomputed'") as caught:
            function(*some_rows(), metric="precomputed", **settings)
        assert not str(caught.value).startswith("model")

    @METHODS
    @pytest.mark.parametrize(
        "wrong",
        [
            {"metric": "seuclidean"},
            {"metric": "haversine"},
            {"metric": "euclidean", "metric_params": {"no": 1}},
            {"metric": "euclidean", "metric_params": {"p": 1}},
            {"metric": "manhattan", "metric_params": {"no": 1}},
            {"metric": "minkowski", "metric_params": {"p": -1}},
            {"metric": "euclidean", "metric_params": 3},
        ],
        ids=str,
    )
    def test_arguments_that_the_metric_does_not_take(self, function, settings, wrong):
        with pytest.raises(ls.InvalidArgumentError, match="metric"):
            function(*some_rows(), **wrong, **settings)

    @METHODS
    def test_a_metric_that_takes_no_sparse_rows(self, function, settings):
        X, y, X_test, y_test = some_rows()
        with pytest.raises(ls.InvalidArgumentError, match="correlation"):
            function(sparse.csr_matrix(X), y, sparse.csr_matrix(X_test), y_test, metric="correlation", **settings)

    @METHODS
    @pytest.mark.parametrize("n_jobs", [0, "2", 1.5])
    def test_n_jobs(self, function, settings, n_jobs):
        with pytest.raises(ls.InvalidArgumentError, match="n_jobs"):
            function(*some_rows(), n_jobs=n_jobs, **settings)
