"""Valuations that are made once for all tests of the report."""

from __future__ import annotations

import pytest
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls


@pytest.fixture(scope="session")
def iris():
    return ls.datasets.load("iris")


@pytest.fixture(scope="session")
def exact(iris):
    return ls.value(iris.X, iris.y, iris.X_test, iris.y_test, model="knn")


@pytest.fixture(scope="session")
def sampled(iris):
    arguments = iris.X, iris.y, iris.X_test, iris.y_test
    support = ls.supports.Nearest(10)
    return ls.value(*arguments, model=DecisionTreeClassifier(), support=support, method="sample", budget=800)
