"""What a curve over the sums' scores saves: trainings to a relative error of 0.1 with it and without, in one run.

    python benchmarks/curves.py [--seeds 3]

A run stops a little below its target; trainings are carried over to the target itself by the root of their number.
Seconds are those of the processor, of all threads together, for the run as it was.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from time import process_time
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.estimate.tuning import TUNED

STRAIGHT = replace(TUNED, curve_least=10**12)
TOL = 0.1


def workloads() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Names, data and settings."""
    iris, cancer, digits = (ls.datasets.load(name)[:4] for name in ("iris", "breast_cancer", "digits"))
    few = cancer[0], cancer[1], cancer[2][:60], cancer[3][:60]
    some = digits[0][:600], digits[1][:600], digits[2][:60], digits[3][:60]
    nearest, linear = ls.supports.Nearest, LogisticRegression(max_iter=300)
    grown = DecisionTreeClassifier(min_samples_leaf=3, random_state=0)
    yield "tree, Iris, default support", iris, {"model": DecisionTreeClassifier(random_state=0)}
    yield "RBF-SVM, Breast Cancer, default support", cancer, {"model": SVC()}
    yield "RBF-SVM, digits, 40 nearest", some, {"model": SVC(), "support": nearest(40)}
    yield "logistic regression, Breast Cancer, 60 nearest", few, {"model": linear, "support": nearest(60)}
    confident = {"score": "confidence", "support": nearest(30)}
    yield "the same, confidence, 30 nearest", cancer, {"model": linear, **confident}
    yield "tree, Breast Cancer, confidence, 30 nearest", few, {"model": grown, **confident}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    n_seeds = parser.parse_args().seeds
    print(f"{'':48}{'trainings':>11}{'without':>11}{'ratio':>7}{'CPU s':>8}{'without':>9}")
    for name, data, settings in workloads():
        found = {}
        for tuning in (STRAIGHT, TUNED):
            method = ls.methods.Sample(tuning=tuning)
            ls.value(*data, method=method, tol=0.3, progress=False, **settings)  # compiles
            runs = [run(data, seed, method=method, **settings) for seed in range(n_seeds)]
            found[tuning] = np.mean(runs, axis=0)
        (trainings, seconds), (without, longer) = found[TUNED], found[STRAIGHT]
        print(f"{name:48}{trainings:>11,.0f}{without:>11,.0f}{trainings / without:>7.2f}{seconds:>8.2f}{longer:>9.2f}")


def run(data: Any, seed: int, **settings: Any) -> tuple[float, float]:
    """Trainings to the target, and seconds."""
    start = process_time()
    v = ls.value(*data, tol=TOL, seed=seed, progress=False, **settings)
    return v.cost.trainings * (v.relative_error / TOL) ** 2, process_time() - start


if __name__ == "__main__":
    main()
