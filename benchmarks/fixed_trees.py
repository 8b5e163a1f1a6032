"""Forests of fixed structure: what exact values cost beside the fit, and how near they are to retrained ones.

    LOCALSHAPLEY_DATA=FOLDER python benchmarks/fixed_trees.py            # Adult, 32,000 rows, out of bag
    LOCALSHAPLEY_DATA=FOLDER python benchmarks/fixed_trees.py --retrained [--quick]  # rank correlations
    python benchmarks/fixed_trees.py --million [--min-samples-leaf 5]    # 1,000,000 rows, 20 columns, 100 trees

Seconds of values are those of `value()` less those of its one fit. Retrained
values are sampled from coalitions of all rows, so that two runs of them do not agree either: their rank correlation
with each other says how far.
"""

from __future__ import annotations

import argparse
import resource
from time import perf_counter
from typing import ClassVar

import numpy as np
from scipy.stats import spearmanr
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.models import Fixed


class TimedForest(RandomForestClassifier):
    """A forest that keeps the seconds of its fits."""

    seconds: ClassVar[list[float]] = []

    def fit(self, X, y, sample_weight=None):
        """Grow the trees."""
        started = perf_counter()
        super().fit(X, y, sample_weight)
        self.seconds.append(perf_counter() - started)
        return self


def timed(X, y, forest, name):
    """Value the rows of a forest out of bag; what is not the fit is counted as the values."""
    ls.warm_up("fixed", n_jobs=1)
    started = perf_counter()
    v = ls.value(X, y, model=Fixed(forest), cv="oob", n_jobs=forest.n_jobs, progress=True)
    both, (fit,) = perf_counter() - started, forest.seconds
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(v)
    print(
        f"{name}, 100 trees with leaves of {forest.min_samples_leaf}: fit {fit:.1f} s, values {both - fit:.1f} s, "
        f"{(both - fit) / fit:.2f} times the fit; {peak:.1f} GiB"
    )


def retrained(data, model, budget, jobs):
    """Sampled values of a model that is trained on every coalition drawn from all rows, twice."""
    return [
        ls.value(
            *data,
            model=model,
            support=ls.supports.Everything(),
            method="sample",
            budget=budget,
            seed=seed,
            n_jobs=jobs,
            progress=False,
        ).values
        for seed in (0, 1)
    ]


def flipped(y, share):
    """Labels of which a share is replaced by another class."""
    rng, y = np.random.default_rng(0), y.copy()
    classes = np.unique(y)
    for z in rng.choice(len(y), round(share * len(y)), replace=False):
        y[z] = rng.choice(classes[classes != y[z]])
    return y


def correlations(quick, jobs):
    """Rank correlation of fixed with retrained values, on labels as they are and with a tenth of them wrong."""
    n, many, few = (150, 4_000, 200) if quick else (500, 100_000, 1_500)
    sets = {
        "Iris": ls.datasets.load("iris"),
        "Breast Cancer": ls.datasets.load("breast_cancer"),
        f"Adult, {n} rows": ls.datasets.load("adult", n_train=n, n_test=n),
    }
    models = {
        "tree": (DecisionTreeClassifier(random_state=0), many),
        "tree, leaves of 5": (DecisionTreeClassifier(min_samples_leaf=5, random_state=0), many),
        "forest of 10": (RandomForestClassifier(10, random_state=0), few),
    }
    print(f"{'data':<18}{'wrong labels':>14}  {'model':<20}{'trainings':>10}{'fixed':>8}{'again':>8}")
    for kind, (model, budget) in models.items():
        for name, (X, y, X_test, y_test, _) in sets.items():
            for share in (0.0, 0.1):
                data = X, flipped(y, share), X_test, y_test
                fixed = ls.value(*data, model=Fixed(model)).values
                one, two = retrained(data, model, budget, jobs)
                near, again = spearmanr(fixed, one + two).statistic, spearmanr(one, two).statistic
                print(f"{name:<18}{share:>14.0%}  {kind:<20}{2 * budget:>10,}{near:>8.2f}{again:>8.2f}", flush=True)
    print("fixed: rank correlation of fixed values with the mean of two retrained runs; again: of these two runs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--retrained", action="store_true", help="rank correlation with retrained models")
    parser.add_argument("--million", action="store_true", help="1,000,000 rows of 20 columns")
    parser.add_argument("--quick", action="store_true", help="fewer rows and permutations")
    parser.add_argument("--min-samples-leaf", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    forest = TimedForest(100, min_samples_leaf=given.min_samples_leaf, n_jobs=given.jobs, random_state=0)
    if given.retrained:
        correlations(given.quick, given.jobs)
    elif given.million:
        n = 50_000 if given.quick else 1_000_000
        X, y = make_classification(n, n_features=20, n_informative=10, flip_y=0.05, random_state=0)
        timed(X.astype(np.float32), y, forest.set_params(verbose=1), f"{n:,} rows, 20 columns")
    else:
        data = ls.datasets.load("adult", n_train=32_000, n_test=1)
        timed(data.X, data.y, forest, "Adult, 32,000 rows")


if __name__ == "__main__":
    main()
