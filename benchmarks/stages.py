"""Where a sampled run to `tol=0.1` spends its time: seconds of the processor, of all threads together, by stage.

    python benchmarks/stages.py [--runs 3] [--only svm|tree]

Runs an RBF-SVM on Breast Cancer and a tree on Iris, each with its default support, and prints the stages of the run
that took least. Unlike times by the clock, these depend little on what else the machine does.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from functools import wraps
from time import process_time
from typing import Any

from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.coalitions.sampled import Collection
from localshapley.methods.sample import SampleRun
from localshapley.models.compiled import CompiledTrainer
from localshapley.sampling.crossfit import CrossFit

RUNS = {"svm": ("breast_cancer", SVC()), "tree": ("iris", DecisionTreeClassifier(random_state=0))}
STAGES = {
    "trainings": (CompiledTrainer, "train"),
    "draws": (SampleRun, "draw"),
    "games of the draws": (Collection, "take"),
    "looks": (SampleRun, "estimate"),
    "  surrogates": (CrossFit, "_fit"),
    "  variances, covariances": (CrossFit, "variance"),  # these beside those
}


def timed(function: Callable[..., Any], spent: Counter[str], stage: str) -> Callable[..., Any]:
    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        start = process_time()
        try:
            return function(*args, **kwargs)
        finally:
            spent[stage] += process_time() - start
            spent.setdefault(f"first of {stage}", process_time())

    return wrapper


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=RUNS)
    options = parser.parse_args()
    spent: Counter[str] = Counter()
    for stage, (owner, name) in STAGES.items():
        setattr(owner, name, timed(getattr(owner, name), spent, stage))
    for name in [options.only] if options.only else RUNS:
        which, model = RUNS[name]
        data = ls.datasets.load(which)
        found = []
        for _ in range(options.runs + 1):  # the first compiles
            spent.clear()
            start = process_time()
            v = ls.value(data.X, data.y, data.X_test, data.y_test, model=model, tol=0.1, progress=False)
            first_look = spent["first of looks"] - start
            found.append((process_time() - start, {**spent, "first look": first_look}))
        total, by_stage = min(found[1:], key=lambda run: run[0])
        print(f"{name}: {total:.2f} s of the processor, {v.cost.trainings:,} trainings")
        for stage in STAGES:
            print(f"  {stage:<26}{by_stage.get(stage, 0.0):>8.2f}")
        first = by_stage["first look"]
        print(f"  values with errors for the first time after {first:.3f} s, {first / total:.1%} of the run")


if __name__ == "__main__":
    main()
