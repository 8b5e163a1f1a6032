"""A note where distances are measured between columns of different units, and none elsewhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid, RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from localshapley.comparators import knn_shapley, threshold_knn_shapley
from localshapley.supports import Everything, Kernel, Nearest
from playing import pose

pytestmark = pytest.mark.quick
SAID = "the middle half of column 'mass' spans "


@pytest.fixture(scope="module")
def birds():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    mass, depth, male = rng.normal(4200, 800, 60), rng.normal(17, 2, 60) + y, rng.integers(0, 2, 60)
    return pd.DataFrame({"mass": mass, "depth": depth, "male": male}), y


def told(X, y, **settings):
    return [n for n in pose(X, y, cv=3, **settings).notes if "the middle half" in n]


@pytest.mark.parametrize(
    ("model", "support", "who"),
    [
        (KNeighborsClassifier(3), None, "KNeighborsClassifier"),
        (KNeighborsClassifier(3, metric="manhattan"), None, "KNeighborsClassifier"),
        (RadiusNeighborsClassifier(500.0, outlier_label=0), None, "RadiusNeighborsClassifier"),
        (SVC(), Nearest(5, standardise=True), "SVC"),
        (SVC(kernel="poly"), Nearest(5, standardise=True), "SVC"),
        (LogisticRegression(), Nearest(5), r"Nearest(n=5)"),
        (DecisionTreeClassifier(), Kernel(0.5), "Kernel()"),
        (make_pipeline("passthrough", KNeighborsClassifier(3)), None, "KNeighborsClassifier"),
        (NearestCentroid(), None, "NearestCentroid"),
        (GridSearchCV(SVC(), {"C": [1]}, cv=2), None, "SVC"),
        (BaggingClassifier(KNeighborsClassifier(3), 2), None, "KNeighborsClassifier"),
    ],
)
def test_what_measures_distances_is_told_once(birds, model, support, who):
    [note] = told(*birds, model=model, support=support)
    assert note.startswith(SAID)
    assert "that of column 'depth' " in note
    assert f"in every distance that {who} measures" in note


@pytest.mark.parametrize(
    ("model", "support"),
    [
        (make_pipeline(StandardScaler(), KNeighborsClassifier(3)), None),
        (make_pipeline(StandardScaler(), make_pipeline("passthrough", SVC())), Nearest(5)),
        (GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1]}, cv=2), None),
        (KNeighborsClassifier(3, metric="cosine"), None),
        (SVC(kernel="linear"), Everything()),
        (LogisticRegression(), None),
        (LogisticRegression(), Nearest(5, standardise=True)),
        (DecisionTreeClassifier(), None),
        (RandomForestClassifier(3), None),
    ],
)
def test_what_does_not_is_not(birds, model, support):
    assert told(*birds, model=model, support=support) == []


@pytest.mark.parametrize(("function", "settings"), [(knn_shapley, {}), (threshold_knn_shapley, {"radius": 500})])
def test_so_is_knn_shapley(birds, function, settings):
    X, y = birds
    [note] = [n for n in function(X, y, X[:9], y[:9], **settings).notes if n.code == "spreads-differ"]
    assert note.startswith(SAID)
    assert note.endswith("every distance that KNN-Shapley measures; scale them, such as with StandardScaler().")
    scaled = StandardScaler().fit_transform(X)
    for table, more in [(scaled, {}), (X, {"metric": "cosine"})]:
        found = function(table, y, table[:9], y[:9], **settings, **more)
        assert not [n for n in found.notes if n.code == "spreads-differ"]


def test_columns_that_are_alike_are_not(birds):
    X, y = birds
    scaled = StandardScaler().fit_transform(X)
    rare = np.zeros(60)
    rare[0] = 1
    images = np.random.default_rng(0).binomial(16, np.linspace(0.0, 0.7, 12), (60, 12))  # some edges are hardly used
    tables = [
        scaled,
        np.column_stack([scaled, rare, 100 * rare]),
        np.column_stack([scaled[:, :1] * 6, scaled[:, 1]]),
        np.column_stack([scaled[:, :1] * (1 + 1000 * rare[:, None]), scaled[:, 1]]),  # one outlier
        images,
        sparse.csr_matrix(X),
        X[:15],
    ]
    for table in tables:
        assert told(table, y[: table.shape[0]], model=KNeighborsClassifier(3)) == []
    [note] = told(np.column_stack([scaled[:, :1] * 13, scaled[:, 1]]), y, model=KNeighborsClassifier(3))
    assert note.startswith("the middle half of column 0 spans ")
