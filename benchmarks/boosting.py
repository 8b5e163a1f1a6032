"""Boosted trees of fixed structure: how near their values are to those of retrained models, and what they find.

    python benchmarks/boosting.py [--quick] [--data wine]  # rank correlations, and wrong labels found
    python benchmarks/boosting.py --seconds [--quick]      # what exact values cost beside the fit

Retrained values are those of the same model, trained on coalitions of all rows: left one out (LOO), and sampled Shapley
values, twice, so that their correlation with each other says how much of the rest is noise. CatBoost's
`get_object_importance` (LeafInfluence) is there if CatBoost is installed; its sign is turned, so that more is better.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
from scipy.stats import spearmanr
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

import localshapley as ls
from localshapley.models import Fixed

ROUNDS, RATE, DEPTH = 10, 0.3, 2


def flipped(y, share, seed):
    """Labels of which a share is replaced by another class, and which these are."""
    rng, y = np.random.default_rng(seed), y.copy()
    wrong, classes = rng.choice(len(y), round(share * len(y)), replace=False), np.unique(y)
    for z in wrong:
        y[z] = rng.choice(classes[classes != y[z]])
    return y, wrong


def some(name, n, seed=0):
    """A few rows of a data set, and all its test rows."""
    X, y, X_test, y_test, _ = ls.datasets.load(name)
    rows = np.random.default_rng(seed).permutation(len(y))[:n]
    return X[rows], y[rows], X_test, y_test


def of_catboost(X, y, X_test, y_test):
    """Values by CatBoost's influence of rows on the loss of test rows; None without it, or for several classes."""
    if 2 < len(np.unique(y)) < 10:  # "Error function MultiClass is not supported yet"
        return None
    try:
        from catboost import CatBoostClassifier, CatBoostRegressor, Pool
    except ImportError:
        return None
    kind = CatBoostClassifier if len(np.unique(y)) < 10 else CatBoostRegressor
    model = kind(
        iterations=ROUNDS,
        depth=DEPTH,
        learning_rate=RATE,
        random_seed=0,
        verbose=False,
        allow_writing_files=False,
        leaf_estimation_iterations=1,
        boosting_type="Plain",
    )
    pool = Pool(X, y)
    model.fit(pool)
    rows, harm = model.get_object_importance(Pool(X_test, y_test), pool, top_size=-1, type="Average")
    out = np.zeros(len(y))
    out[np.asarray(rows, dtype=int)] = -np.asarray(harm)
    return out


def boosting(y):
    """The model that is fixed, and retrained."""
    kind = GradientBoostingClassifier if len(np.unique(y)) < 10 else GradientBoostingRegressor
    return kind(n_estimators=ROUNDS, learning_rate=RATE, max_depth=DEPTH, random_state=0)


def ranks(name, n, budget, seed):
    """Rank correlations of fixed values with LOO and Shapley values, of these with themselves, and of CatBoost's."""
    X, y, X_test, y_test = some(name, n, seed)
    y = y if name == "diabetes" else flipped(y, 0.1, seed)[0]
    data, model = (X, y, X_test, y_test), boosting(y)
    score = "squared_error" if name == "diabetes" else "margin"
    settings = {"model": model, "support": ls.supports.Everything(), "score": score, "progress": False}
    fixed = ls.value(*data, model=Fixed(model), progress=False).values
    loo = ls.value(*data, method="loo", **settings).values
    one, two = (ls.value(*data, method="sample", budget=budget, seed=s, **settings).values for s in (0, 1))
    theirs = of_catboost(*data)
    pairs = [(fixed, loo), (fixed, one + two), (one, two), (theirs, loo), (theirs, one + two), (theirs, fixed)]
    return [None if a is None else spearmanr(a, b).statistic for a, b in pairs]


def correlate(names, quick):
    """Rank correlations on small data, with a tenth of the labels of classes wrong; means over samples of rows."""
    n, budget, seeds = (30, 300, 1) if quick else (60, 600, 3)
    print(f"{'data':<22}{'LOO':>14}{'Shapley':>10}{'again':>8}  | {'CatBoost with LOO':>18}{'Shapley':>10}{'fixed':>8}")
    for name in names:
        found = [ranks(name, n, budget, seed) for seed in range(seeds)]
        means = [f"{np.mean(each):.2f}" if None not in each else "–" for each in zip(*found, strict=True)]
        ours, theirs = means[:3], means[3:]
        print(
            f"{name + f', {n} rows':<22}{ours[0]:>14}{ours[1]:>10}{ours[2]:>8}  | "
            f"{theirs[0]:>18}{theirs[1]:>10}{theirs[2]:>8}",
            flush=True,
        )
    print(f"left: fixed values with LOO, with Shapley values of {2 * budget:,} trainings, and these with each other")


def find_errors(names, quick):
    """Share of wrong labels among as many rows of lowest value."""
    seeds = range(2 if quick else 10)
    kinds = ("fixed boosting", "fixed forest", "CatBoost")
    print(f"{'data':<22}" + "".join(f"{kind:>18}" for kind in kinds))
    for name in names:
        found = {kind: [] for kind in kinds}
        for seed in seeds:
            X, y, X_test, y_test = some(name, 400, seed)
            y, wrong = flipped(y, 0.1, seed)
            forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=seed)
            values = {
                "fixed boosting": ls.value(X, y, X_test, y_test, model=Fixed(boosting(y)), progress=False).values,
                "fixed forest": ls.value(X, y, X_test, y_test, model=Fixed(forest), progress=False).values,
                "CatBoost": of_catboost(X, y, X_test, y_test),
            }
            for kind, each in values.items():
                if each is not None:
                    found[kind].append(np.isin(np.argsort(each, kind="stable")[: len(wrong)], wrong).mean())
        print(f"{name:<22}" + "".join(f"{np.mean(s):>18.2f}" if (s := found[kind]) else f"{'–':>18}" for kind in kinds))
    print(f"share of wrong labels (a tenth) found among as many rows of lowest value, {len(seeds)} seeds")


def take_time(quick):
    """Seconds of a fit (the quicker of two) and of values."""
    ls.warm_up("fixed", n_jobs=1)
    for n in (1_000,) if quick else (1_000, 10_000):
        classes = make_classification(n + 1000, n_features=20, n_informative=10, flip_y=0.05, random_state=0)
        numbers = make_regression(n + 1000, 20, noise=10.0, random_state=0)
        for kind in (GradientBoostingClassifier, HistGradientBoostingClassifier, GradientBoostingRegressor):
            X, y = numbers if kind is GradientBoostingRegressor else classes
            model, train, test = kind(random_state=0), (X[:n], y[:n]), (X[n:], y[n:])
            fit = min(seconds_of(lambda m=model, rows=train: m.fit(*rows)) for _ in range(2))
            both = seconds_of(lambda m=model, rows=(*train, *test): ls.value(*rows, model=Fixed(m), progress=False))
            print(f"{n:>7,} rows, {kind.__name__:<32} fit {fit:6.1f} s, fit and values {both:6.1f} s", flush=True)


def seconds_of(work):
    """Seconds that a call takes."""
    started = perf_counter()
    work()
    return perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", action="store_true", help="what values cost beside the fit")
    parser.add_argument("--quick", action="store_true", help="fewer rows, trainings and seeds")
    parser.add_argument("--data", nargs="+", default=["breast_cancer", "wine", "diabetes"], help="which data sets")
    given = parser.parse_args()
    if given.seconds:
        take_time(given.quick)
        return
    correlate(given.data, given.quick)
    find_errors([name for name in given.data if name != "diabetes"], given.quick)


if __name__ == "__main__":
    main()
