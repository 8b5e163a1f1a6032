"""Compiling ahead: afterwards there is nothing left to compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import localshapley as ls
from compilations import KERNELS, LISTENING
from localshapley.errors import InvalidArgumentError

VALUATIONS = (
    LISTENING
    + """
import json
import numpy as np
import localshapley as ls
from sklearn.ensemble import BaggingClassifier, ExtraTreesRegressor, RandomForestClassifier
from sklearn.linear_model import ElasticNet, LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, RadiusNeighborsClassifier
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier

rng = np.random.default_rng(0)
X, X_test = rng.normal(size=(60, 4)).astype(np.float32), rng.normal(size=(6, 4))
forests = RandomForestClassifier(2), BaggingClassifier(n_estimators=2)
trees = DecisionTreeClassifier(), DecisionTreeClassifier(splitter="random")
classifiers = KNeighborsClassifier(3), *trees, *forests, SVC(), SVC(kernel="linear"), LogisticRegression()
classifiers = *classifiers, RidgeClassifier(class_weight="balanced"), GaussianNB(), LinearSVC()
classifiers = *classifiers, RadiusNeighborsClassifier(2), DecisionTreeClassifier(class_weight="balanced")
regressors = SVR(), Ridge(), LinearRegression(), ElasticNet(), KNeighborsRegressor(5), ExtraTreesRegressor(2)
for model in (*classifiers, *regressors):
    y, y_test = (X[:, 0] > 0, X_test[:, 0] > 0) if model in classifiers else (X[:, 0] * 1.0, X_test[:, 0])
    for method in ("auto", "sample", "exact"):
        budget = 400 if method == "sample" else None
        ls.value(X, y, X_test, y_test, model=model, method=method, support=ls.supports.Nearest(9), budget=budget)
ls.select(X, X[:, 0] > 0, X_test, X_test[:, 0] > 0, model=KNeighborsClassifier(3), n=3)
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
for model, y in (RandomForestClassifier(5), X[:, 0] > 0), (RandomForestRegressor(5), X[:, 0] * 1.0):
    for cv in ("oob", 3):
        ls.value(X, y, model=ls.models.Fixed(model), cv=cv, per_test=True)
        ls.value(X, y, model=ls.models.Fixed(model), cv=cv, method="loo")
print(json.dumps(compiled))
"""
)


def run(program, **environment):
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_every_kernel_is_compiled_ahead_and_valuations_compile_nothing_more():
    """The types of what is compiled ahead are those that valuations call with."""
    pytest.importorskip("torch")
    ahead = "import localshapley as ls; ls.warm_up(n_jobs=1); left = [k for k, there in kernels().items() if not there]"
    assert run(KERNELS + ahead + VALUATIONS.replace("dumps(compiled)", "dumps([left, compiled])")) == [[], []]


@pytest.mark.long
def test_valuations_in_another_process_compile_nothing_after_it(tmp_path):
    """From an empty cache, which several processes fill."""
    program = "import json, localshapley as ls; print(json.dumps(ls.warm_up(n_jobs=2)))"
    seconds = run(program, NUMBA_CACHE_DIR=str(tmp_path))
    assert all(spent > 0 for spent in seconds.values())
    assert run(VALUATIONS, NUMBA_CACHE_DIR=str(tmp_path)) == []
    again = run(program, NUMBA_CACHE_DIR=str(tmp_path))
    assert again == dict.fromkeys(seconds, 0.0)


def test_one_model_alone():
    assert list(ls.warm_up("ridge", n_jobs=1)) == ["methods", "ridge"]
    assert list(ls.warm_up(["knn", "ridge", "knn"], n_jobs=1)) == ["methods", "knn", "ridge"]


def test_unknown_models_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"models must be one of 'bayes', 'fixed', .*got 'forrest'"):
        ls.warm_up("forrest")
