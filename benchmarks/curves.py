"""What settings for quick models cost in trainings, and what curves and fits that go on save, in one run.

    python benchmarks/curves.py [--seeds 3]

Trainings to a relative error of 0.1: with the settings of quick models, which these have, with those that take the
fewest trainings, with these but without curves over the sums' scores, and also without what the round before knew. A
run stops a little below its target; trainings are carried over to the target itself by the root of their number.
Seconds are those of the processor, of all threads together, for the run as it was. The ratio is of the second to the
last.
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
from localshapley.sampling.tuning import QUICK, TUNED

STRAIGHT = replace(TUNED, curve_least=10**12)
ALONE = replace(STRAIGHT, goes_on=False, max_steps=4, player_ridge=0.075)  # with the settings that were best for it
VARIANTS = {"quick": QUICK, "fewest trainings": TUNED, "no curves": STRAIGHT, "from nothing": ALONE}
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
    print(f"{'trainings, seconds of the processor':48}" + "".join(f"{v:>20}" for v in VARIANTS) + f"{'ratio':>7}")
    for name, data, settings in workloads():
        found = []
        for tuning in VARIANTS.values():
            method = ls.methods.Sample(tuning=tuning)
            ls.value(*data, method=method, tol=0.3, progress=False, **settings)  # compiles
            found.append(np.mean([run(data, seed, method=method, **settings) for seed in range(n_seeds)], axis=0))
        cells = "".join(f"{trainings:>12,.0f}{seconds:>6.2f} s" for trainings, seconds in found)
        print(f"{name:48}{cells}{found[1][0] / found[-1][0]:>7.2f}", flush=True)


def run(data: Any, seed: int, **settings: Any) -> tuple[float, float]:
    """Trainings to the target, and seconds."""
    start = process_time()
    v = ls.value(*data, tol=TOL, seed=seed, progress=False, **settings)
    return v.cost.trainings * (v.relative_error / TOL) ** 2, process_time() - start


if __name__ == "__main__":
    main()
