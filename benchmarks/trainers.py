"""Compiled trainers against clone, fit and predict; two of the paper's workloads and a pipeline from end to end.

    python benchmarks/trainers.py [--quick]

Random coalitions of the stated sizes, each scored on a few test rows, are trained by the compiled trainer (all cores)
and, a part of them, one by one with scikit-learn in one process. The two are also compared: the largest difference
between scores, and the share of coalitions in which any differs by over 1e-3. Forests have 100 trees.
"""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier, RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import localshapley as ls
from localshapley.models import Coalitions, Estimator
from localshapley.problem.build import build_problem
from localshapley.question import Question


def rates(data, model: Any, score: str, sizes, n_tests: int, n_plain: int, n_compiled: int):
    """Coalitions per second, plain and compiled, with the differences between their scores."""
    rng = np.random.default_rng(0)
    trainers = [
        build_problem(Question.of_rows(*data, model=m, score=score, support=ls.supports.Nearest(1))).trainer
        for m in (model, Estimator(model))
    ]
    n, m = len(data[1]), len(data[3])
    coalitions = [rng.choice(n, size=rng.integers(*sizes, endpoint=True), replace=False) for _ in range(n_compiled)]
    tests = [rng.choice(m, size=n_tests, replace=False) for _ in coalitions]
    everything = Coalitions.from_lists(coalitions, tests)
    some = everything.part(0, n_plain)
    compiled, plain = trainers
    compiled.evaluate(some)  # compiles
    started = perf_counter()
    ours = compiled.evaluate(everything)
    fast = n_compiled / (perf_counter() - started)
    started = perf_counter()
    theirs = plain.evaluate(some)
    slow = n_plain / (perf_counter() - started)
    difference = np.abs(ours[: len(theirs)] - theirs).reshape(n_plain, n_tests).max(axis=1)
    return slow, fast, difference.max(), (difference > 1e-3).mean()


def digits():
    """1,000 training rows with pixels from 0 to 1."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order[:1000]] / 16, y[order[:1000]], X[order[1000:]] / 16, y[order[1000:]]


def end_to_end(name: str, data, model: Any, paper: str, **settings: Any) -> None:
    """Value all rows; print seconds and trainings beside the paper's."""
    ls.value(*data, model=model, budget=2000, **settings)  # compiles
    started = perf_counter()
    v = ls.value(*data, model=model, tol=0.1, **settings)
    seconds = perf_counter() - started
    sizes = f"{v.support_sizes.min()}..{v.support_sizes.max()}"
    print(f"{name:<44}{sizes:>9}{seconds:>8.2f} s{v.cost.trainings:>12,}  {v.relative_error:8.3f}   {paper}")


def behind_a_scaler(data, support: Any, repeats: int) -> None:
    """A pipeline against its last step on rows that are scaled already: best times of alternating runs."""
    scaler = StandardScaler().fit(data[0])
    scaled = scaler.transform(data[0]), data[1], scaler.transform(data[2]), data[3]
    pipeline, best = make_pipeline(StandardScaler(), SVC()), [np.inf, np.inf]
    for _ in range(repeats):
        for i, (rows, model) in enumerate([(scaled, SVC()), (data, pipeline)]):
            started = perf_counter()
            v = ls.value(*rows, model=model, support=support, tol=0.1)
            best[i] = min(best[i], perf_counter() - started)
    print(f"SVM, Breast Cancer, {v.support}: {best[0]:.2f} s on scaled rows, {best[1]:.2f} s behind a scaler", end=": ")
    print(f"{best[1] / best[0]:.2f} times")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the coalitions")
    share = 10 if parser.parse_args().quick else 1
    iris, cancer, diabetes = (ls.datasets.load(name)[:4] for name in ("iris", "breast_cancer", "diabetes"))
    logistic = LogisticRegression(max_iter=1000)
    tree, regression_tree = DecisionTreeClassifier(random_state=0), DecisionTreeRegressor(random_state=0)
    within = RadiusNeighborsRegressor(3)
    balanced_logistic = LogisticRegression(max_iter=1000, class_weight="balanced")
    balanced_tree = DecisionTreeClassifier(random_state=0, class_weight="balanced")
    balanced_forest = RandomForestClassifier(random_state=0, class_weight="balanced")
    forest, extra = RandomForestClassifier(random_state=0), ExtraTreesClassifier(random_state=0)
    bag, regression_forest = BaggingClassifier(n_estimators=100, random_state=0), RandomForestRegressor(random_state=0)
    rows = [
        ("tree, Iris", iris, tree, "confidence", (2, 50), 5, 2000, 200_000),
        ("SVM (RBF), Breast Cancer", cancer, SVC(), "confidence", (4, 120), 5, 2000, 50_000),
        ("logistic regression, digits", digits(), logistic, "confidence", (4, 100), 5, 500, 10_000),
        ("logistic regression, Breast Cancer", cancer, logistic, "confidence", (4, 120), 5, 1000, 20_000),
        ("SVM (RBF), digits", digits(), SVC(), "accuracy", (4, 100), 5, 1000, 10_000),
        ("tree, digits", digits(), tree, "confidence", (2, 100), 5, 1000, 20_000),
        ("KNN, digits", digits(), KNeighborsClassifier(), "confidence", (2, 100), 5, 1000, 200_000),
        ("tree, diabetes (regression)", diabetes, regression_tree, "squared_error", (2, 100), 5, 1000, 20_000),
        ("ridge, diabetes", diabetes, Ridge(), "squared_error", (2, 100), 5, 1000, 100_000),
        ("SVR, diabetes", diabetes, SVR(), "squared_error", (2, 100), 5, 1000, 50_000),
        ("linear regression, diabetes", diabetes, LinearRegression(), "squared_error", (2, 100), 5, 1000, 50_000),
        ("lasso, diabetes", diabetes, Lasso(), "squared_error", (2, 100), 5, 1000, 50_000),
        ("elastic net, diabetes", diabetes, ElasticNet(), "squared_error", (2, 100), 5, 1000, 50_000),
        ("ridge classifier, Breast Cancer", cancer, RidgeClassifier(), "accuracy", (4, 120), 5, 1000, 20_000),
        ("linear SVM, Iris", iris, LinearSVC(random_state=0), "accuracy", (2, 50), 5, 1000, 50_000),
        ("naive Bayes, Breast Cancer", cancer, GaussianNB(), "confidence", (4, 120), 5, 1000, 20_000),
        ("radius neighbours, Iris", iris, RadiusNeighborsClassifier(), "confidence", (2, 50), 5, 500, 100_000),
        ("radius neighbours, diabetes", diabetes, within, "squared_error", (2, 100), 5, 500, 50_000),
        ("SVM, balanced, Breast Cancer", cancer, SVC(class_weight="balanced"), "confidence", (4, 120), 5, 1000, 20_000),
        ("logistic, balanced, Breast Cancer", cancer, balanced_logistic, "confidence", (4, 120), 5, 1000, 20_000),
        ("tree, balanced, Iris", iris, balanced_tree, "confidence", (2, 50), 5, 1000, 50_000),
        ("random forest, Iris", iris, forest, "confidence", (2, 20), 5, 100, 20_000),
        ("random forest, Breast Cancer", cancer, forest, "confidence", (2, 20), 5, 100, 20_000),
        ("random forest, balanced, Iris", iris, balanced_forest, "confidence", (2, 20), 5, 100, 5_000),
        ("extra trees, Iris", iris, extra, "confidence", (2, 20), 5, 100, 20_000),
        ("extra trees, Breast Cancer", cancer, extra, "confidence", (2, 20), 5, 100, 20_000),
        ("bagged trees, Iris", iris, bag, "confidence", (2, 20), 5, 100, 10_000),
        ("bagged trees, Breast Cancer", cancer, bag, "confidence", (2, 20), 5, 100, 10_000),
        ("random forest, diabetes (regression)", diabetes, regression_forest, "squared_error", (2, 20), 5, 100, 5_000),
    ]  # fmt: skip
    print(f"{'coalitions per second':<38}{'plain':>9}{'compiled':>12}{'ratio':>9}{'difference':>12}{'differ':>9}")
    for name, data, model, score, sizes, n_tests, n_plain, n_compiled in rows:
        slow, fast, worst, differ = rates(data, model, score, sizes, n_tests, n_plain // share, n_compiled // share)
        plain = f"{slow:,.0f}" if slow > 10 else f"{slow:.1f}"
        print(f"{name:<38}{plain:>9}{fast:>12,.0f}{fast / slow:>9.0f}{worst:>12.1e}{differ:>9.2%}", flush=True)
    print()
    print(f"{'end to end, tol=0.1':<44}{'supports':>9}{'time':>10}{'trainings':>12}  {'error':>8}   the paper (LSMR-A)")
    end_to_end("SVM (RBF), Breast Cancer 398/171, Kernel(0.5)", cancer, SVC(), "251 s, 0.4M", method="sample")
    paper = "111 s, 0.2M"
    end_to_end("tree, Iris 105/45, TreeNode()", iris, tree, paper, method="auto", score="accuracy")
    support = ls.supports.Nearest(40)
    end_to_end("tree, Iris 105/45, Nearest(40)", iris, tree, paper, method="sample", score="accuracy", support=support)
    print()
    behind_a_scaler(cancer, ls.supports.Nearest(20), 5 // share + 1)


if __name__ == "__main__":
    main()
