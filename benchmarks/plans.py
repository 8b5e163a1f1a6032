"""What a plan foresees beside what the run then takes, on twelve workloads: trainings and seconds.

    python benchmarks/plans.py [--busy N] [--only NAME] [--pilot TRAININGS]

For each workload: forecast and actual number of trainings, forecast and actual seconds, and the ratio of each, actual
over forecast; or "cannot tell" with the reason. `--busy 2` keeps two other processes in busy loops meanwhile, which
must change the seconds alone. `--pilot` makes the first rounds as small as they are on a slow machine or with slow
trainings. The target is a ratio between 1/3 and 3 for trainings, and between 1/4 and 4 for seconds; the last line
counts how many meet it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import Event, Process
from multiprocessing.synchronize import Event as Stop
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley import planning
from localshapley.engine.forecast import until_target

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def embeddings(n: int, n_tests: int, n_columns: int = 64) -> tuple[np.ndarray, ...]:
    """Rows as the last layer of a network has them: ten classes around their centres, negative parts cut off."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, n_columns))
    y = rng.integers(10, size=n + n_tests)
    X = np.maximum(centres[y] + 1.5 * rng.normal(size=(n + n_tests, n_columns)), 0)
    return X[:n], y[:n], X[n:], y[n:]


def of(name: str, n_tests: int | None = None, **settings: Any) -> Arguments:
    data = ls.datasets.load(name)
    return (data.X, data.y, data.X_test[:n_tests], data.y_test[:n_tests]), settings


def owners() -> Arguments:
    (X, y, X_test, y_test), _ = of("breast_cancer", 60)
    return (X, y, X_test, y_test), {"model": "logistic", "owners": np.arange(len(y)) % 25}


def folds() -> Arguments:
    data = ls.datasets.load("wine")
    return (data.X, data.y), {"model": LogisticRegression(), "cv": 5}


scaled_bayes = ls.models.Refit(make_pipeline(StandardScaler(), GaussianNB()))
WORKLOADS: dict[str, Callable[[], Arguments]] = {
    "logistic, 10,000 embeddings, 2,000 test rows": lambda: (embeddings(10_000, 2_000), {"model": "logistic"}),
    "logistic, 2,000 embeddings, 300 test rows": lambda: (embeddings(2_000, 300), {"model": "logistic"}),
    "logistic, breast cancer, all rows": partial(
        of, "breast_cancer", 60, model="logistic", support=ls.supports.Everything(max_size=60)
    ),
    "logistic, wine, cv=5": folds,
    "logistic, breast cancer, 25 owners": owners,
    "tree, iris": partial(of, "iris", model=DecisionTreeClassifier(random_state=0), tol=0.02),
    "tree, breast cancer": partial(of, "breast_cancer", model=DecisionTreeClassifier(random_state=0)),
    "forest, breast cancer": partial(of, "breast_cancer", 30, model=RandomForestClassifier(5, random_state=0)),
    "SVM, breast cancer": partial(of, "breast_cancer", 60, model=SVC(), tol=0.05),
    "SVM, digits": partial(of, "digits", 150, model=SVC(), support=ls.supports.Nearest(20)),
    "ridge, diabetes": partial(of, "diabetes", model=Ridge(), tol=0.05),
    "naive Bayes in a pipeline, wine": partial(
        of, "wine", 20, model=scaled_bayes, support=ls.supports.Nearest(12), tol=0.2
    ),
}


def spin(stop: Stop) -> None:
    while not stop.is_set():
        for _ in range(100_000):
            pass


@contextmanager
def busy(n: int) -> Iterator[None]:
    """Keep `n` other processes busy."""
    stop = Event()
    loops = [Process(target=spin, args=(stop,), daemon=True) for _ in range(n)]
    for loop in loops:
        loop.start()
    try:
        yield
    finally:
        stop.set()
        for loop in loops:
            loop.join()


def compare(name: str, arguments: Arguments) -> tuple[float, float] | None:
    """Plan, run and print; returns both ratios, or None if the plan cannot tell."""
    data, settings = arguments
    plan, run = ls.plan(*data, **settings), ls.value(*data, **settings)
    cost = run.cost
    if plan.target is None:
        trainings, seconds = plan.trainings, (plan.trainings or 0) * plan.seconds_per_training
    else:
        trainings, seconds = plan.target.trainings, plan.target.seconds
    if not trainings or not seconds:
        reason = "" if plan.target is None else plan.target.unknown
        print(f"{name:<46}{'cannot tell':>12}{cost.trainings:>12,}{'':>18}{cost.seconds:>10.2f}         {reason}")
        return None
    ratios = cost.trainings / trainings, cost.seconds / seconds
    print(
        f"{name:<46}{trainings:>12,}{cost.trainings:>12,}{ratios[0]:>8.2f}"
        f"{seconds:>10.2f}{cost.seconds:>10.2f}{ratios[1]:>8.2f}",
        flush=True,
    )
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="other processes in busy loops")
    parser.add_argument("--only", default="", metavar="NAME", help="workloads whose name contains this")
    parser.add_argument("--pilot", type=int, metavar="TRAININGS", help="trainings that a forecast comes from")
    options = parser.parse_args()
    smaller = {} if options.pilot is None else {"most": options.pilot}
    warnings.simplefilter("ignore")
    print(f"{'':<46}{'forecast':>12}{'trainings':>12}{'ratio':>8}{'forecast':>10}{'seconds':>10}{'ratio':>8}")
    with busy(options.busy), patch.object(planning, "until_target", partial(until_target, **smaller)):
        found = [compare(name, make()) for name, make in WORKLOADS.items() if options.only in name]
    told = [ratios for ratios in found if ratios is not None]
    for what, place, most in (("trainings", 0, 3), ("seconds", 1, 4)):
        close = sum(1 / most <= ratios[place] <= most for ratios in told)
        print(f"{what}: {close} of {len(told)} within a factor of {most}; {len(found) - len(told)} cannot be told")


if __name__ == "__main__":
    main()
