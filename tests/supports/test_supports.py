"""Every support against a plain loop, and the support that each family of models gets by default."""

from __future__ import annotations

import re
from dataclasses import replace
from math import exp, inf, nan, sqrt

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import localshapley as ls
from localshapley.supports import (
    CompactKernel,
    Dual,
    Embedding,
    Everything,
    Given,
    Kernel,
    Leaves,
    Nearest,
    Radius,
    Random,
    Space,
    TreeNode,
    default_support,
)
from playing import pose

rng = np.random.default_rng(0)
X, X_TEST = rng.normal(size=(40, 3)) * [1, 5, 0.2], rng.normal(size=(7, 3)) * [1, 5, 0.2]
SPARSE, SPARSE_TEST = (np.where(np.abs(A) > 0.15, A, 0.0) for A in (X, X_TEST))
Y = (X[:, 0] + 0.3 * rng.normal(size=40) > 0).astype(int)
NUMBERS = X[:, 0] + 0.1 * X[:, 1] + 0.1 * rng.normal(size=40)


def space(X=X, X_test=X_TEST, y=Y, reference=None, seed=0, raw=None, raw_test=None):
    return Space(X, X_test, X if raw is None else raw, X_test if raw_test is None else raw_test, y, reference, seed)


def distance(a, b):
    return sqrt(sum((float(p) - float(q)) ** 2 for p, q in zip(a, b, strict=True)))


def manhattan(a, b):
    return sum(abs(float(p) - float(q)) for p, q in zip(a, b, strict=True))


def cosine(a, b):
    dot, norms = sum(p * q for p, q in zip(a, b, strict=True)), distance(a, 0 * a) * distance(b, 0 * b)
    return 1 - dot / norms


def minkowski3(a, b):
    return sum(abs(p - q) ** 3 for p, q in zip(a, b, strict=True)) ** (1 / 3)


def loop_nearest(X, X_test, n, d=distance):
    return [[z for _, z in sorted((d(row, t), z) for z, row in enumerate(X))][:n] for t in X_test]


def loop_within(X, X_test, r, d=distance):
    return [[z for z, row in enumerate(X) if d(row, t) <= r] for t in X_test]


def as_lists(found):
    return [rows.tolist() for rows in found]


def as_sorted(found):
    return [sorted(rows.tolist()) for rows in found]


@pytest.mark.parametrize(
    ("metric", "params", "d"),
    [
        ("euclidean", None, distance),
        ("manhattan", None, manhattan),
        ("cosine", None, cosine),
        ("minkowski", {"p": 3}, minkowski3),
        ("minkowski", {"p": 1}, manhattan),
        ("chebyshev", None, lambda a, b: max(abs(a - b))),
        (manhattan, None, manhattan),
    ],
)
def test_nearest_rows_are_those_of_a_loop_in_every_metric(metric, params, d):
    found = Nearest(6, metric=metric, metric_params=params)(space())
    assert as_lists(found) == loop_nearest(X, X_TEST, 6, d)


def test_nearest_standardises_by_the_training_rows():
    mean, scale = X.mean(axis=0), X.std(axis=0)
    expected = loop_nearest((X - mean) / scale, (X_TEST - mean) / scale, 6)
    assert as_lists(Nearest(6, standardise=True)(space())) == expected
    assert expected != loop_nearest(X, X_TEST, 6)


@pytest.mark.parametrize("standardise", [False, True])
def test_nearest_finds_the_same_in_sparse_rows(standardise):
    support = Nearest(6, standardise=standardise)
    dense = support(space(SPARSE, SPARSE_TEST))
    found = support(space(sparse.csr_matrix(SPARSE), sparse.csr_matrix(SPARSE_TEST)))
    assert as_lists(found) == as_lists(dense)
    if not standardise:
        assert as_lists(found) == loop_nearest(SPARSE, SPARSE_TEST, 6)


def test_nearest_of_more_rows_than_there_are_is_all_rows():
    assert as_sorted(Nearest(100)(space())) == [list(range(40))] * 7


def test_boolean_features_are_measured_like_zeros_and_ones():
    bits, bits_test = X > 0, X_TEST > 0
    found = Nearest(1)(space(bits, bits_test))
    assert [distance(bits[z], t) for (z,), t in zip(found, bits_test, strict=True)] == [
        min(distance(row, t) for row in bits) for t in bits_test
    ]


@pytest.mark.parametrize(("metric", "d"), [("euclidean", distance), ("manhattan", manhattan)])
def test_radius_holds_the_rows_of_a_loop(metric, d):
    found = as_sorted(Radius(2.0, metric=metric)(space()))
    assert found == loop_within(X, X_TEST, 2.0, d)
    assert len({len(rows) for rows in found}) > 1
    sparse_space = space(sparse.csr_matrix(SPARSE), sparse.csr_matrix(SPARSE_TEST))
    assert as_sorted(Radius(2.0, metric=metric)(sparse_space)) == loop_within(SPARSE, SPARSE_TEST, 2.0, d)


def test_a_row_exactly_at_the_radius_is_in_and_a_support_may_be_empty():
    line = np.arange(10.0)[:, None]
    found = Radius(2)(space(line, np.array([[4.0], [50.0]])))
    assert as_sorted(found) == [[2, 3, 4, 5, 6], []]


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    ("gamma", "model", "expected"),
    [
        ("scale", None, 1 / (3 * X.var())),
        ("auto", None, 1 / 3),
        (0.3, None, 0.3),
        (None, None, 1 / (3 * X.var())),
        (None, SVC(gamma=0.7), 0.7),
        (None, SVC(gamma="auto"), 1 / 3),
        (None, SVC(), 1 / (3 * X.var())),
        (None, KernelRidge(kernel="rbf"), 1 / 3),
        (0.2, SVC(gamma=0.7), 0.2),
        (None, GaussianNB(), 1 / (3 * X.var())),
    ],
)
def test_kernel_holds_the_rows_with_a_kernel_of_at_least_the_threshold(threshold, gamma, model, expected):
    reference = None if model is None else model.fit(X, Y)
    found = as_sorted(Kernel(threshold, gamma=gamma)(space(reference=reference)))
    tied = rbf_kernel(X_TEST, X, gamma=expected) >= threshold
    assert found == [np.flatnonzero(row).tolist() for row in tied]
    assert found == [
        [z for z, row in enumerate(X) if exp(-expected * distance(row, t) ** 2) >= threshold] for t in X_TEST
    ]


def test_kernel_of_sparse_rows_scales_as_the_model_does():
    rows, test_rows = sparse.csr_matrix(SPARSE), sparse.csr_matrix(SPARSE_TEST)
    reference = SVC().fit(rows, Y)
    tied = rbf_kernel(SPARSE_TEST, SPARSE, gamma=reference._gamma) >= 0.5
    found = as_sorted(Kernel()(space(rows, test_rows, reference=reference)))
    assert found == [np.flatnonzero(row).tolist() for row in tied]


def test_kernel_of_constant_rows_scales_as_the_model_does():
    constant, test_rows = np.ones((6, 4)), np.array([[1.0], [1.5], [1.45]]) * np.ones(4)
    reference = SVC().fit(constant, [0, 1] * 3)
    tied = rbf_kernel(test_rows, constant, gamma=reference._gamma) >= 0.5
    found = as_sorted(Kernel()(space(constant, test_rows, reference=reference)))
    assert found == [np.flatnonzero(row).tolist() for row in tied]


@pytest.mark.parametrize("bandwidth", [0.5, 3])
def test_compact_kernel_holds_the_rows_within_its_bandwidth(bandwidth):
    assert as_sorted(CompactKernel(bandwidth)(space())) == loop_within(X, X_TEST, bandwidth)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (SVC(kernel="linear", tol=1e-10), Y),
        (SVC(tol=1e-10), Y),
        (SVC(tol=1e-10), np.digitize(X[:, 0], [-0.5, 0.5])),
        (NuSVC(nu=0.3, tol=1e-10), Y),
        (SVR(C=10, tol=1e-10), NUMBERS),
        (LinearSVC(tol=1e-10, max_iter=10**6), Y),
        (LinearSVC(C=100, tol=1e-10, max_iter=10**6), np.argmax(X / X.std(axis=0), axis=1)),
        (LinearSVC(loss="hinge", tol=1e-10, max_iter=10**6, random_state=0), Y),
        (LinearSVR(epsilon=0.1, tol=1e-10, max_iter=10**6, loss="squared_epsilon_insensitive"), NUMBERS),
    ],
)
def test_the_dual_rows_alone_give_the_same_machine(model, y):
    rows = X / X.std(axis=0)
    reference = model.fit(rows, y)
    found = as_sorted(Dual()(space(rows, X_TEST, y=y, reference=reference)))
    assert found == [found[0]] * len(X_TEST)
    assert 0 < len(found[0]) < 40
    if isinstance(model, NuSVC):
        assert found[0] == sorted(reference.support_.tolist())
        return
    before = getattr(reference, "decision_function", reference.predict)(rows)
    again = model.fit(rows[found[0]], y[found[0]])
    if isinstance(model, SVC | SVR) and model.gamma == "scale":
        again = model.set_params(gamma=1 / (3 * rows.var())).fit(rows[found[0]], y[found[0]])
    after = getattr(again, "decision_function", again.predict)(rows)
    np.testing.assert_allclose(after, before, atol=1e-4)


def test_the_dual_rows_of_a_linear_machine_are_those_with_an_active_loss():
    rows = X / X.std(axis=0)
    reference = LinearSVC(tol=1e-10, max_iter=10**6).fit(rows, Y)
    weights, bias = reference.coef_[0], reference.intercept_[0]
    active = [z for z in range(40) if (1 if Y[z] else -1) * (sum(weights * rows[z]) + bias) < 1]
    assert as_sorted(Dual()(space(rows, reference=reference)))[0] == active
    reference = SVR(kernel="linear", epsilon=0.2, tol=1e-10).fit(rows, NUMBERS)
    active = [z for z in range(40) if abs(NUMBERS[z] - reference.predict(rows[[z]])[0]) >= 0.2 - 1e-6]
    assert as_sorted(Dual()(space(rows, y=NUMBERS, reference=reference)))[0] == active


@pytest.mark.filterwarnings("error")
def test_dual_hands_a_model_of_frames_the_frame():
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), LinearSVC(max_iter=100_000))
    found = ls.value(frame, Y, frame[:3], Y[:3], model=ls.models.Refit(model), support=Dual(max_size=5), budget=50)
    assert found.support_sizes.tolist() == [5, 5, 5]


@pytest.mark.parametrize("model", [GaussianNB(), KNeighborsClassifier(), LogisticRegression()])
def test_dual_is_refused_for_a_model_without_support_vectors(model):
    with pytest.raises(ls.InvalidArgumentError, match=r"needs a support vector machine.*Nearest"):
        Dual()(space(reference=model.fit(X, Y)))


def path_of(tree, row):
    """Nodes from the root to the leaf, by hand."""
    nodes = [0]
    while tree.children_left[nodes[-1]] != -1:
        node = nodes[-1]
        left = np.float32(row[tree.feature[node]]) <= tree.threshold[node]
        nodes.append(int(tree.children_left[node] if left else tree.children_right[node]))
    return nodes


@pytest.mark.parametrize("levels", [0, 1, 2, 50])
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (DecisionTreeClassifier(random_state=0), Y),
        (DecisionTreeClassifier(min_samples_leaf=5, random_state=0), Y),
        (DecisionTreeRegressor(max_depth=4, random_state=0), NUMBERS),
    ],
)
def test_tree_node_holds_the_rows_that_pass_the_node_above_the_leaf(model, y, levels):
    reference = model.fit(X, y)
    tree = reference.tree_
    expected = []
    for row in X_TEST:
        path = path_of(tree, row)
        node = path[max(len(path) - 1 - levels, 0)]
        expected.append([z for z in range(40) if node in path_of(tree, X[z])])
    assert as_sorted(TreeNode(levels)(space(reference=reference))) == expected
    if levels == 50:
        assert expected == [list(range(40))] * 7


@pytest.mark.parametrize("levels", [0, 1])
def test_a_leaf_at_the_root_holds_all_rows(levels):
    reference = DecisionTreeClassifier(min_samples_split=100).fit(X, Y)
    assert as_sorted(TreeNode(levels)(space(reference=reference))) == [list(range(40))] * 7


def test_tree_node_is_refused_without_a_tree():
    with pytest.raises(ls.InvalidArgumentError, match=r"TreeNode needs a decision tree.*GaussianNB.*Leaves\(n\)"):
        TreeNode()(space(reference=GaussianNB().fit(X, Y)))


def loop_leaves(reference, X, X_test, n):
    trees = np.ravel(reference.estimators_)
    out = []
    for t in X_test:
        ranked = []
        for z, row in enumerate(X):
            shared = sum(path_of(tree.tree_, row)[-1] == path_of(tree.tree_, t)[-1] for tree in trees)
            if shared:
                ranked.append((-shared, distance(row, t), z))
        out.append([z for _, _, z in sorted(ranked)[:n]])
    return out


@pytest.mark.parametrize("n", [4, 1000])
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (RandomForestClassifier(7, random_state=0), Y),
        (RandomForestRegressor(6, min_samples_leaf=3, random_state=0), NUMBERS),
        (ExtraTreesRegressor(5, max_depth=4, random_state=0), NUMBERS),
        (GradientBoostingClassifier(n_estimators=4, random_state=0), np.digitize(X[:, 0], [-0.5, 0.5])),
        (GradientBoostingRegressor(n_estimators=4, random_state=0), NUMBERS),
    ],
)
def test_leaves_ranks_rows_by_the_leaves_they_share(model, y, n):
    reference = model.fit(X, y)
    found = as_lists(Leaves(n)(space(y=y, reference=reference)))
    assert found == loop_leaves(reference, X, X_TEST, n)
    assert all(len(rows) <= n for rows in found)


def test_leaves_leaves_out_rows_that_share_none():
    sizes = [len(rows) for rows in Leaves(1000)(space(reference=ExtraTreesClassifier(3, random_state=0).fit(X, Y)))]
    assert max(sizes) < 40


@pytest.mark.parametrize("model", [DecisionTreeClassifier(), GaussianNB(), AdaBoostClassifier()])
def test_leaves_is_refused_without_a_forest(model):
    with pytest.raises(ls.InvalidArgumentError, match="Leaves needs a forest"):
        Leaves()(space(reference=model.fit(X, Y)))


@pytest.mark.parametrize(
    ("model", "support"),
    [(RandomForestClassifier(3), Leaves(max_size=3)), (DecisionTreeClassifier(), TreeNode(2, max_size=3))],
    ids=["Leaves with max_size", "TreeNode with max_size"],
)
def test_missing_values_that_the_model_takes_but_distances_do_not_are_explained(model, support):
    holes = X.copy()
    holes[::5, 1] = nan
    with pytest.raises(ls.InvalidArgumentError, match="missing"):
        ls.value(holes, Y, holes[:3], Y[:3], model=model, support=support, budget=5000)


def test_a_tree_with_missing_values_finds_its_own_support():
    holes = X.copy()
    holes[::5, 1] = nan
    found = pose(holes, Y, holes[:3], Y[:3], model=DecisionTreeClassifier(random_state=0)).graph
    assert all(z in found.support(z) for z in range(3))


class TestEmbedding:
    def test_a_function_of_the_users_rows(self):
        found = Embedding(lambda rows: rows[:, :1], 5)(space(X * 0, X_TEST * 0, raw=X, raw_test=X_TEST))
        assert as_lists(found) == loop_nearest(X[:, :1], X_TEST[:, :1], 5)

    def test_a_fitted_transformer(self):
        encoder = StandardScaler().fit(X)
        found = Embedding(encoder, 5)(space())
        assert as_lists(found) == loop_nearest(encoder.transform(X), encoder.transform(X_TEST), 5)

    def test_a_transformer_that_needs_no_fit(self):
        found = Embedding(FunctionTransformer(np.abs), 5)(space())
        assert as_lists(found) == loop_nearest(np.abs(X), np.abs(X_TEST), 5)

    @pytest.mark.parametrize("kind", [tuple, list])
    def test_a_pair_of_arrays_in_another_metric(self, kind):
        vectors = kind([X[:, 1:], X_TEST[:, 1:]])
        found = Embedding(vectors, 5, metric="manhattan")(space())
        assert as_lists(found) == loop_nearest(X[:, 1:], X_TEST[:, 1:], 5, manhattan)

    def test_images_and_sparse_vectors(self):
        images, images_test = X.reshape(40, 3, 1), X_TEST.reshape(7, 3, 1)
        assert as_lists(Embedding((images, images_test), 5)(space())) == loop_nearest(X, X_TEST, 5)
        pair = sparse.coo_matrix(SPARSE), sparse.csr_matrix(SPARSE_TEST)
        assert as_lists(Embedding(pair, 5)(space())) == loop_nearest(SPARSE, SPARSE_TEST, 5)

    def test_the_default_is_twenty_rows(self):
        assert [len(rows) for rows in Embedding(lambda rows: rows)(space())] == [20] * 7

    def test_an_unfitted_transformer_is_refused(self):
        with pytest.raises(ls.InvalidArgumentError, match=r"must be fitted; StandardScaler is not.*Fit it first"):
            Embedding(StandardScaler())

    def test_a_class_is_refused(self):
        with pytest.raises(ls.InvalidArgumentError, match="encoder"):
            Embedding(StandardScaler)

    @pytest.mark.parametrize("encoder", [3, "pca"])
    def test_anything_else_is_refused(self, encoder):
        with pytest.raises(ls.InvalidArgumentError, match="a function, a fitted transformer or a pair"):
            Embedding(encoder)

    def test_one_array_of_three_is_refused(self):
        with pytest.raises(ls.InvalidArgumentError, match=r"pair .*got 3"):
            Embedding((X, X, X_TEST))

    @pytest.mark.parametrize(
        ("pair", "message"),
        [
            ((X[:-1], X_TEST), "39 vectors for 40 training rows"),
            ((X, X_TEST[:-2]), "5 vectors for 7 test rows"),
            ((X, X_TEST[:, :2]), "of 3 numbers for training rows and of 2 for test rows"),
            ((X, np.where(X_TEST > 0, nan, X_TEST)), "gave NaN or infinity"),
        ],
    )
    def test_vectors_that_do_not_fit_are_refused(self, pair, message):
        with pytest.raises(ls.InvalidArgumentError, match=message):
            Embedding(pair)(space())

    def test_arrays_print_on_one_line(self):
        assert "\n" not in repr(Embedding((X, X_TEST), 5))


def test_everything_is_all_rows_for_every_test_row():
    assert as_sorted(Everything()(space())) == [list(range(40))] * 7


def test_random_rows_are_the_same_for_the_same_seed_only():
    found = as_lists(Random(8)(space(seed=1)))
    assert found == as_lists(Random(8)(space(seed=1)))
    assert found != as_lists(Random(8)(space(seed=2)))
    assert [len(set(rows)) for rows in found] == [8] * 7
    assert len({tuple(rows) for rows in found}) == 7
    assert {z for rows in found for z in rows} <= set(range(40))
    assert as_sorted(Random(500)(space())) == [list(range(40))] * 7


class TestGiven:
    def test_lists_of_any_kind_come_back_as_they_are(self):
        lists = [[3, 1], (0,), np.array([39, 2]), range(4), [], {5}, [0, 39]]
        assert as_sorted(Given(lists)(space())) == [[1, 3], [0], [2, 39], [0, 1, 2, 3], [], [5], [0, 39]]

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ([0, 40], "test row 2 names row 40, but the training rows are 0 to 39"),
            ([-1, 5], "test row 2 names row -1, but the training rows are 0 to 39"),
            ([3, 3], r"(test row 2|supports\[2\]).*more than once"),
            ([0.5, 2.7], "whole numbers"),
        ],
        ids=["too large", "negative", "repeated", "fractions"],
    )
    def test_a_wrong_list_is_refused_with_its_test_row(self, wrong, message):
        lists = [[0, 1], [2], wrong]
        with pytest.raises(ls.InvalidArgumentError, match=message):
            ls.value(X, Y, X_TEST[:3], [0, 1, 0], model="knn", support=Given(lists))

    def test_the_wrong_number_of_lists_is_refused(self):
        with pytest.raises(ls.InvalidArgumentError, match="Given has 2 lists for 7 test rows"):
            Given([[0], [1]])(space())

    @pytest.mark.parametrize("lists", [3, [0, 1, 2], "abc"])
    def test_what_is_no_list_of_lists_is_refused(self, lists):
        with pytest.raises(ls.InvalidArgumentError, match="Given"):
            ls.value(X, Y, X_TEST[:3], [0, 1, 0], model="knn", support=Given(lists))


@pytest.mark.parametrize(
    ("support", "reference"),
    [
        (Everything(max_size=4), None),
        (Radius(4.0, max_size=4), None),
        (Kernel(0.2, max_size=4), None),
        (CompactKernel(4.0, max_size=4), None),
        (Dual(max_size=4), SVC().fit(X, Y)),
        (TreeNode(2, max_size=4), DecisionTreeClassifier(random_state=0).fit(X, Y)),
        (Leaves(30, max_size=4), RandomForestClassifier(5, random_state=0).fit(X, Y)),
        (Random(20, max_size=4), None),
        (Nearest(20, max_size=4), None),
        (Given([list(range(t, 40, 2)) for t in range(7)], max_size=4), None),
    ],
    ids=lambda part: type(part).__name__,
)
def test_max_size_keeps_the_nearest(support, reference):
    settings = {name: value for name, value in vars(support).items() if name not in ("max_size", "_")}
    everyone = type(support)(**settings)(space(reference=reference))
    found = as_sorted(support(space(reference=reference)))
    for t, rows in enumerate(everyone):
        nearest = sorted(rows.tolist(), key=lambda z, t=t: distance(X[z], X_TEST[t]))
        assert found[t] == sorted(nearest[:4])
    assert max(map(len, found)) == 4


def test_max_size_of_sparse_rows():
    rows, test_rows = sparse.csr_matrix(SPARSE), sparse.csr_matrix(SPARSE_TEST)
    found = Everything(max_size=5)(space(rows, test_rows))
    assert as_lists(found) == loop_nearest(SPARSE, SPARSE_TEST, 5)


BAD_PARAMETERS = {
    "Nearest(n=0)": (lambda: Nearest(0), r"Nearest\(n=...\) must be a whole number of at least 1; got 0"),
    "Nearest(n=2.5)": (lambda: Nearest(2.5), r"Nearest\(n=...\).*got 2.5"),
    "Nearest(n=True)": (lambda: Nearest(True), r"Nearest\(n=...\).*got True"),
    "Nearest(n='ten')": (lambda: Nearest("ten"), r"Nearest\(n=...\).*got 'ten'"),
    "Nearest(max_size=0)": (lambda: Nearest(5, max_size=0), r"Nearest\(max_size=...\).*got 0"),
    "Nearest(metric)": (lambda: Nearest(5, metric="euclidian"), r"metric.*'euclidian'.*'euclidean'"),
    "Radius(0)": (lambda: Radius(0), r"Radius\(r=...\) must be a number above 0; got 0"),
    "Radius(-1)": (lambda: Radius(-1), r"Radius\(r=...\).*got -1"),
    "Radius(nan)": (lambda: Radius(nan), r"Radius\(r=...\).*got nan"),
    "Radius(inf)": (lambda: Radius(inf), r"Radius\(r=...\).*got inf"),
    "Radius('1')": (lambda: Radius("1"), r"Radius\(r=...\).*got '1'"),
    "Radius(metric)": (lambda: Radius(1, metric="manhatan"), r"metric.*'manhatan'.*'manhattan'"),
    "Kernel(0)": (lambda: Kernel(0), r"Kernel\(threshold=...\).*got 0"),
    "Kernel(1.5)": (lambda: Kernel(1.5), r"Kernel\(threshold=...\) must be a number above 0 and at most 1; got 1.5"),
    "Kernel(gamma='big')": (lambda: Kernel(gamma="big"), r"Kernel\(gamma=...\).*got 'big'"),
    "Kernel(gamma=-1)": (lambda: Kernel(gamma=-1), r"Kernel\(gamma=...\).*got -1"),
    "CompactKernel(0)": (lambda: CompactKernel(0), r"CompactKernel\(bandwidth=...\).*got 0"),
    "TreeNode(-1)": (lambda: TreeNode(-1), r"TreeNode\(levels=...\) must be a whole number of at least 0; got -1"),
    "TreeNode(0.5)": (lambda: TreeNode(0.5), r"TreeNode\(levels=...\).*got 0.5"),
    "Leaves(0)": (lambda: Leaves(0), r"Leaves\(n=...\).*got 0"),
    "Random(-3)": (lambda: Random(-3), r"Random\(n=...\).*got -3"),
    "Dual(max_size)": (lambda: Dual(max_size=1.5), r"Dual\(max_size=...\).*got 1.5"),
    "Embedding(n=0)": (lambda: Embedding(abs, 0), r"Embedding\(n=...\).*got 0"),
}


@pytest.mark.parametrize("name", BAD_PARAMETERS)
def test_a_bad_parameter_is_refused_when_the_support_is_made(name):
    make, message = BAD_PARAMETERS[name]
    with pytest.raises(ls.InvalidArgumentError, match=message):
        make()


@pytest.mark.parametrize("support", [Nearest(3), Radius(1.0), Kernel(), CompactKernel(1.0)])
def test_distances_to_missing_values_are_refused(support):
    holes = X.copy()
    holes[3, 1] = nan
    with pytest.raises(ls.InvalidArgumentError, match=r"measures distances, but X has missing.*imputer"):
        support(space(holes))
    with pytest.raises(ls.InvalidArgumentError, match="measures distances, but X_test has missing"):
        support(space(X, np.where(X_TEST > 0, nan, X_TEST)))


@pytest.mark.parametrize(
    ("support", "larger"),
    [
        (Nearest(10), "supports.Nearest(20)"),
        (Radius(2.0), "supports.Radius(3)"),
        (Kernel(0.5), "supports.Kernel(0.25)"),
        (CompactKernel(2.0), "supports.CompactKernel(3)"),
        (TreeNode(), "supports.TreeNode(levels=2)"),
        (Leaves(20), "supports.Leaves(40)"),
        (Dual(), "supports.Everything()"),
        (Random(4), "supports.Random(8)"),
    ],
)
def test_a_larger_support_is_code_that_gives_a_larger_support(support, larger):
    assert support.larger() == larger
    made = eval(larger, {"supports": ls.supports})
    models = {TreeNode: DecisionTreeClassifier, Leaves: RandomForestClassifier, Dual: SVC}
    reference = models.get(type(support), GaussianNB)().fit(X, Y)
    small, large = (s(space(reference=reference)) for s in (support, made))
    assert all(len(a) <= len(b) for a, b in zip(small, large, strict=True))
    assert sum(map(len, small)) < sum(map(len, large))


@pytest.mark.parametrize(
    ("support", "text"),
    [
        (Nearest(10), "Nearest(n=10)"),
        (Nearest(20, metric="cosine", max_size=5), "Nearest(max_size=5, n=20, metric='cosine')"),
        (Kernel(), "Kernel()"),
        (Kernel(0.3), "Kernel(threshold=0.3)"),
        (Radius(1.5), "Radius(r=1.5)"),
        (TreeNode(2), "TreeNode(levels=2)"),
        (Everything(), "Everything()"),
    ],
)
def test_a_support_prints_the_settings_that_were_made(support, text):
    assert repr(support) == text
    assert eval(text, vars(ls.supports)) == support


DEFAULTS = [
    (SVC(), Kernel(0.5)),
    (SVR(), Kernel(0.5)),
    (NuSVC(), Kernel(0.5)),
    (NuSVR(), Kernel(0.5)),
    (SVC(kernel="linear"), Dual()),
    (SVC(kernel="poly"), Dual()),
    (SVR(kernel="sigmoid"), Dual()),
    (LinearSVC(), Dual()),
    (LinearSVR(), Dual()),
    (DecisionTreeClassifier(), TreeNode()),
    (DecisionTreeRegressor(), TreeNode()),
    (RandomForestClassifier(), Leaves()),
    (RandomForestRegressor(), Leaves()),
    (ExtraTreesClassifier(), Leaves()),
    (ExtraTreesRegressor(), Leaves()),
]


@pytest.mark.parametrize(("model", "support"), DEFAULTS, ids=lambda part: repr(part))
def test_each_family_has_its_own_support(model, support):
    assert default_support(model) == (support, True)


@pytest.mark.parametrize(
    "model",
    [
        KNeighborsClassifier(3),
        KNeighborsClassifier(4, metric="manhattan"),
        KNeighborsClassifier(2, p=1),
        KNeighborsClassifier(2, metric="minkowski", p=3),
        KNeighborsClassifier(3, metric="cosine"),
        KNeighborsClassifier(3, metric=manhattan),
        KNeighborsClassifier(3, metric="seuclidean", metric_params={"V": X.var(axis=0)}),
        KNeighborsRegressor(3, metric="chebyshev"),
    ],
    ids=lambda model: str(model).split(" at 0x")[0],
)
def test_neighbours_get_the_two_k_nearest_by_their_own_metric(model):
    support, induced = default_support(model)
    reference = model.fit(X, Y)
    expected = reference.kneighbors(X_TEST, 2 * model.n_neighbors, return_distance=False).tolist()
    assert induced
    assert as_lists(support(space(reference=reference))) == expected


@pytest.mark.parametrize(
    "model",
    [
        RadiusNeighborsClassifier(2.0, metric="manhattan"),
        RadiusNeighborsClassifier(1.5),
        RadiusNeighborsRegressor(2.0, p=1),
    ],
    ids=repr,
)
def test_radius_neighbours_get_their_own_radius_and_metric(model):
    support, induced = default_support(model)
    reference = model.fit(X, Y)
    expected = [sorted(rows) for rows in reference.radius_neighbors(X_TEST, return_distance=False)]
    assert induced
    assert as_sorted(support(space(reference=reference))) == expected


@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        LogisticRegression(),
        Ridge(),
        AdaBoostClassifier(),
        TransformedTargetRegressor(SVR()),
    ],
)
def test_any_other_model_gets_the_twenty_nearest_standardised_rows(model):
    assert default_support(model) == (Nearest(20, standardise=True), False)


def test_assumed_locality_is_noted_and_induced_locality_is_not():
    assumed = pose(X, Y, X_TEST, [0, 1] * 3 + [0], model=GaussianNB())
    assert any("locality is assumed, not induced" in note and "GaussianNB" in note for note in assumed.notes)
    assert [assumed.graph.support(t).tolist() for t in range(7)] == as_sorted(Nearest(20, standardise=True)(space()))
    for model in (KNeighborsClassifier(2), DecisionTreeClassifier(), SVC(kernel="linear")):
        assert not any("assumed" in note for note in pose(X, Y, X_TEST, [0, 1] * 3 + [0], model=model).notes)
    chosen = pose(X, Y, X_TEST, [0, 1] * 3 + [0], model=GaussianNB(), support=Nearest(5))
    assert not any("assumed" in note for note in chosen.notes)


def test_the_note_on_assumed_locality_is_in_the_result():
    v = ls.value(X[:7], Y[:7], X_TEST[:1], [0], model=make_pipeline(StandardScaler(), GaussianNB()))
    assert any("locality is assumed, not induced: GaussianNB" in note for note in v.notes)
    assert "locality is assumed" in repr(v)


class TestEmptySupports:
    """A remedy that is named has been looked at."""

    many = np.random.default_rng(0).normal(size=(90, 200))
    MANY = (many[:60], (many[:60, 0] > 0).astype(int), many[60:], (many[60:, 0] > 0).astype(int))

    @pytest.mark.parametrize(
        ("place", "remedy"),
        [(1.2, "a larger support (supports.Radius(r=0.75))"), (2.0, "a larger support (supports.Radius(r=1.6875))"),
         (99.0, "nearest rows (supports.Nearest(n=20))")],
    )  # fmt: skip
    def test_they_are_noted_with_a_support_that_reaches_the_test_rows(self, place, remedy):
        rows = np.array([[0.0, 0], [0.1, 0], [0.5, 0], [0, 0.2]])
        v = ls.value(rows, [0, 1, 0, 1], [[0, 0], [place, 0]], [0, 1], model="knn", support=Radius(0.5))
        (note,) = (note for note in v.notes if "empty support" in note)
        assert note == f"1 of 2 test rows have an empty support and add nothing; {remedy} would reach them."

    def test_the_support_of_the_model_gives_way_to_nearest_rows_if_it_reaches_few(self):
        said = r"have no training row in Kernel\(\), the support that belongs to the model, so Nearest\(n=20\) was used"
        with pytest.warns(ls.LocalShapleyWarning, match="30 of 30 test rows " + said):
            problem = pose(*self.MANY, model=SVC())
        assert problem.support == "Nearest(n=20)"
        found = [problem.graph.support(t).tolist() for t in range(30)]
        assert found == [sorted(rows) for rows in loop_nearest(self.MANY[0], self.MANY[2], 20)]
        with pytest.warns(ls.LocalShapleyWarning, match="60 of 60 test rows " + said):
            problem = pose(*self.MANY[:2], model=SVC(), cv=3)
        assert (problem.graph.support_sizes == 20).all()

    def test_one_that_was_given_and_reaches_none_is_refused(self):
        with pytest.raises(ls.InvalidArgumentError, match=r"support Kernel\(\) says nothing: 30 of 30 .*") as refused:
            ls.value(*self.MANY, model=SVC(), support=Kernel())
        remedy = re.search(r"supports\.(Kernel\(threshold=[\d.]+\))", str(refused.value))
        larger = eval(remedy[1], {"Kernel": Kernel})  # the code to type reaches every test row
        assert (pose(*self.MANY, model=SVC(), support=larger).graph.support_sizes > 0).all()
        some = pose(*self.MANY, model=SVC(), support=replace(larger, threshold=1.5 * larger.threshold))
        assert 0 < (some.graph.support_sizes == 0).sum() < 30  # smaller ones do not, and say so


def supports_of(X, y, X_test, y_test, **arguments):
    graph = pose(X, y, X_test, y_test, **arguments).graph
    return [graph.support(t).tolist() for t in range(graph.n_tests)]


def test_a_pipeline_takes_the_support_in_the_space_before_its_last_step():
    scaler = StandardScaler().fit(X)
    model = make_pipeline(StandardScaler(), KNeighborsClassifier(3))
    found = supports_of(X, Y, X_TEST, [0] * 7, model=model)
    scaled = loop_nearest(scaler.transform(X), scaler.transform(X_TEST), 6)
    assert found == [sorted(rows) for rows in scaled]
    assert found != [sorted(rows) for rows in loop_nearest(X, X_TEST, 6)]


def test_a_pipeline_of_three_steps_ends_in_a_tree_of_the_transformed_rows():
    data = load_breast_cancer()
    rows, y, test_rows = data.data[::8], data.target[::8], data.data[1:20:4]
    model = make_pipeline(StandardScaler(), PCA(3), DecisionTreeClassifier(max_depth=3, random_state=0))
    reference = model.fit(rows, y)
    projected, projected_test = reference[:-1].transform(rows), reference[:-1].transform(test_rows)
    paths = [path_of(reference[-1].tree_, row) for row in projected]
    expected = []
    for row in projected_test:
        path = path_of(reference[-1].tree_, row)
        expected.append([z for z, other in enumerate(paths) if path[max(len(path) - 2, 0)] in other])
    assert supports_of(rows, y, test_rows, [0] * 5, model=model) == expected


def test_a_pipeline_within_a_pipeline_takes_the_space_before_the_innermost_last_step():
    inner = Pipeline([("project", PCA(2)), ("knn", KNeighborsClassifier(3))])
    model = Pipeline([("scale", StandardScaler()), ("inner", inner)])
    reference = model.fit(X, Y)
    encode = lambda rows: reference["inner"][:-1].transform(reference[:-1].transform(rows))  # noqa: E731
    expected = [sorted(rows) for rows in loop_nearest(encode(X), encode(X_TEST), 6)]
    assert supports_of(X, Y, X_TEST, [0] * 7, model=model) == expected


def test_a_given_support_counts_in_the_transformed_space_too():
    scaled = (X - X.mean(axis=0)) / X.std(axis=0), (X_TEST - X.mean(axis=0)) / X.std(axis=0)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    found = supports_of(X, Y, X_TEST, [0] * 7, model=model, support=Radius(1.0))
    assert found == loop_within(*scaled, 1.0)


class CountingTree(ClassifierMixin, BaseEstimator):
    """A tree that counts how often it is fitted, and on how many rows."""

    fitted_on: list[int] = []  # noqa: RUF012 - shared by all clones on purpose

    def fit(self, X, y):
        self.fitted_on.append(len(X))
        self.tree = DecisionTreeClassifier(random_state=0).fit(X, y)
        self.classes_, self.tree_ = self.tree.classes_, self.tree.tree_
        return self

    def predict(self, X):
        return self.tree.predict(X)

    def apply(self, X):
        return self.tree.apply(X)

    def decision_path(self, X):
        return self.tree.decision_path(X)


@pytest.mark.parametrize("method", ["exact", "subset-centric"])
def test_the_reference_model_is_trained_once(method):
    rows, y = load_iris(return_X_y=True)
    CountingTree.fitted_on.clear()
    support = TreeNode(0, max_size=5)
    v = ls.value(rows[::5], y[::5], rows[1::37], y[1::37], model=CountingTree(), support=support, method=method)
    assert CountingTree.fitted_on.count(30) == 1
    assert len(CountingTree.fitted_on) == 1 + v.cost.trainings - v.cost.trivial
