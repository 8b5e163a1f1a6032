"""How good a model is on part of the rows: accuracy after training on 2.5 to 50 % of them, chosen in different ways.

    LOCALSHAPLEY_DATA=folder python benchmarks/selection.py [--only NAME] [--seeds 5] [--wrong 0.2] [--jobs 4]

The folder holds Adult, pol and 2dplanes (as in PMLB: `adult.tsv.gz`, `201_pol.tsv.gz`, `215_2dplanes.tsv.gz`), Bank
Marketing (`bank.csv`) and MNIST. Rows are split into training rows, from which rows are chosen, and held-out rows, on
which the model is scored and which no way to choose gets to see. With --wrong a share of the training labels is
flipped; held-out labels stay. Prints a table for each data set: mean accuracy (in per cent) over the seeds by share of
the rows, the mean over the shares, and the standard error of its difference from random rows; and where `select` is
worse than others by over two standard errors. Defaults of `select` were tried out on splits of seeds 0 to 19, so give
--first-seed 200 for splits that they were not.

- select: `ls.select(X, y, model=model, cv=5)`.
- value, value in balance: the rows of highest value, `ls.value(X, y, model=model, cv=5, support=Nearest(10), tol=0.2)`,
  and the best of each class in its share.
- KNN-Shapley in balance: the same by `comparators.knn_shapley`, fold by fold.
- k-centre: the row that is farthest from all rows chosen so far; facility location: the row that brings the rows
  nearest to a chosen one; both in the space of the features, without labels.
- random: mean of five random orders.

--jobs runs as many data sets and seeds at a time, each in a process of one thread; results are the same.
--methods adds the values of other methods, in balance, each within five seconds. --prune prints the accuracy after
5 to 50 % of the rows are left out: as `ls.prune` says, by lowest value, and random ones.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config
from sklearn import datasets
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls

SHARES = (0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
LEFT_OUT = (0.05, 0.1, 0.2, 0.3, 0.5)
METHODS = ("local-mc", "global-mc", "tmc", "complementary", "loo")
N_RANDOM = 5
CATEGORIES = (
    "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country",
)  # fmt: skip
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=[""], nargs="+", help="parts of the names of workloads")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0, help="other splits of the data")
    parser.add_argument("--wrong", type=float, default=0.0, help="share of the training labels to flip")
    parser.add_argument("--methods", action="store_true", help="values of other methods, too")
    parser.add_argument("--prune", action="store_true", help="leave rows out instead of choosing them")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    arguments = parser.parse_args()
    shares = LEFT_OUT if arguments.prune else SHARES
    names = [name for name in WORKLOADS if any(part in name for part in arguments.only)]
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    with parallel_config("loky", n_jobs=arguments.jobs, inner_max_num_threads=1 if arguments.jobs > 1 else None):
        cells = Parallel(return_as="generator")(
            delayed(scored)(name, seed, arguments) for name in names for seed in seeds
        )
        for name in names:
            scores: dict[str, list[list[float]]] = {}
            for n_rows, found in islice(cells, len(seeds)):  # noqa: B007 - the same for all seeds
                for way, line in found.items():
                    scores.setdefault(way, []).append(line)
            wrong = f", {arguments.wrong:.0%} of the labels wrong" if arguments.wrong else ""
            print(f"{name}, {n_rows} rows{wrong}\n\n{table(scores, shares)}\n\n{below(scores, shares)}\n", flush=True)


def scored(name: str, seed: int, arguments: argparse.Namespace) -> tuple[int, dict[str, list[float]]]:
    """The number of rows, and accuracy by share for every way to choose; of several orders the mean."""
    warnings.simplefilter("ignore")
    load, model = WORKLOADS[name]
    X, y, X_held, y_held = load(seed)
    y = flipped(y, arguments.wrong, np.random.default_rng(seed))
    ways = pruned(X, y, model, seed) if arguments.prune else chosen(X, y, model, seed, methods=arguments.methods)
    shares, found = LEFT_OUT if arguments.prune else SHARES, {}
    for way, orders in ways.items():
        sets = [[used(order, share, len(y), prune=arguments.prune) for share in shares] for order in orders]
        lines = [[accuracy(model, X[rows], y[rows], X_held, y_held) for rows in line] for line in sets]
        found[way] = np.mean(lines, axis=0).tolist()
    return len(y), found


def chosen(X: np.ndarray, y: np.ndarray, model: Any, seed: int, *, methods: bool) -> dict[str, list[np.ndarray]]:
    """Orders of the rows, by every way to choose."""
    folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y))
    settings = {"model": model, "cv": folds, "support": ls.supports.Nearest(10), "seed": seed, "progress": False}
    values = ls.value(X, y, tol=0.2, **settings).values
    knn = np.zeros(len(y))
    for train, test in folds:
        knn[train] += ls.comparators.knn_shapley(X[train], y[train], X[test], y[test], progress=False).values
    found = {
        "select": [ls.select(X, y, model=model, cv=5, n=max(SHARES), seed=seed, progress=False).order],
        "value": [best_first(values)],
        "value in balance": [in_balance(best_first(values), y)],
        "KNN-Shapley in balance": [in_balance(best_first(knn), y)],
        "k-centre": [k_centre(X, round(max(SHARES) * len(y)))],
        "facility location": [facility_location(X, round(max(SHARES) * len(y)))],
        "random": random_orders(len(y), seed),
    }
    for method in METHODS if methods else ():
        limit = {} if method == "loo" else {"tol": 0.1, "max_seconds": 5}
        v = ls.value(X, y, method=method, **limit, **settings)
        found[f"{method} in balance"] = [in_balance(best_first(v.values), y)]
    return found


def pruned(X: np.ndarray, y: np.ndarray, model: Any, seed: int) -> dict[str, list[np.ndarray]]:
    """Orders in which rows go."""
    v = ls.value(X, y, model=model, cv=5, support=ls.supports.Nearest(10), tol=0.2, seed=seed, progress=False)
    found = ls.prune(X, y, model=model, cv=5, seed=seed, n=max(LEFT_OUT), progress=False)
    return {"prune": [found.order], "value": [best_first(-v.values)], "random": random_orders(len(y), seed)}


def used(order: np.ndarray, share: float, n_rows: int, *, prune: bool) -> np.ndarray:
    """The rows to train on: a share of them, or all others."""
    some = order[: max(1, round(share * n_rows))]
    return np.setdiff1d(np.arange(n_rows), some) if prune else some


def random_orders(n: int, seed: int) -> list[np.ndarray]:
    return [np.random.default_rng([seed, r]).permutation(n) for r in range(N_RANDOM)]


def best_first(values: np.ndarray) -> np.ndarray:
    return np.argsort(-values, kind="stable")


def in_balance(order: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same rows so that classes keep their shares."""
    labels = pd.Series(y[order])
    place = (labels.groupby(labels.to_numpy()).cumcount() + 0.5) / labels.map(labels.value_counts())
    return order[np.argsort(place.to_numpy(), kind="stable")]


def k_centre(X: np.ndarray, n: int) -> np.ndarray:
    """Farthest point first, from the row nearest to the middle on."""
    order = [int(np.linalg.norm(X - X.mean(axis=0), axis=1).argmin())]
    distance = np.linalg.norm(X - X[order[0]], axis=1)
    while len(order) < n:
        order.append(int(distance.argmax()))
        distance = np.minimum(distance, np.linalg.norm(X - X[order[-1]], axis=1))
    return np.array(order)


def facility_location(X: np.ndarray, n: int) -> np.ndarray:
    """The row that brings all rows nearest to one that is chosen, again and again."""
    distance = pairwise_distances(X)
    nearest, order = np.full(len(X), distance.max()), list[int]()
    while len(order) < n:
        gain = np.maximum(nearest - distance, 0).sum(axis=1)
        gain[order] = -1
        order.append(int(gain.argmax()))
        nearest = np.minimum(nearest, distance[order[-1]])
    return np.array(order)


def accuracy(model: Any, X: np.ndarray, y: np.ndarray, X_held: np.ndarray, y_held: np.ndarray) -> float:
    """Accuracy in per cent; one class alone is predicted always."""
    if len(set(y)) < 2:
        return float(100 * (y_held == y[0]).mean())
    few = {"n_neighbors": min(5, len(y))} if isinstance(model, KNeighborsClassifier) else {}
    return float(100 * clone(model).set_params(**few).fit(X, y).score(X_held, y_held))


def table(scores: dict[str, list[list[float]]], shares: tuple[float, ...]) -> str:
    """Means over seeds, in Markdown."""
    lines = [
        "| | " + " | ".join(f"{100 * share:g} %" for share in shares) + " | mean | ± |",
        "|---|" + "---:|" * (len(shares) + 2),
    ]
    random = np.array(scores["random"]).mean(axis=1)
    for way, found in scores.items():
        means = np.mean(found, axis=0)
        difference = np.mean(found, axis=1) - random
        error = np.std(difference, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
        cells = [f"{mean:.1f}" for mean in [*means, means.mean()]] + ["" if way == "random" else f"{error:.1f}"]
        lines.append(f"| {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def below(scores: dict[str, list[list[float]]], shares: tuple[float, ...]) -> str:
    """Where the first way is worse than another by more than two standard errors of the difference."""
    first, *others = scores
    found = []
    for way in others:
        difference = np.array(scores[first]) - np.array(scores[way])
        mean, error = difference.mean(axis=0), difference.std(axis=0, ddof=1) / np.sqrt(max(len(difference), 2))
        for share, m, e in zip(shares, mean, error, strict=True):
            found += [f"{way} at {100 * share:g} % ({m:.1f} ± {e:.1f})"] * bool(m < -2 * e)
    return f"{first} is worse than: {', '.join(found) or 'none'}."


def flipped(y: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Labels of which a share is another class."""
    y, classes = y.copy(), np.unique(y)
    wrong = rng.choice(len(y), round(share * len(y)), replace=False)
    y[wrong] = [rng.choice(classes[classes != label]) for label in y[wrong]]
    return y


def split(X: np.ndarray, y: np.ndarray, seed: int, held_out: float = 0.5) -> Split:
    X, X_held, y, y_held = train_test_split(X, y, test_size=held_out, random_state=seed, stratify=y)
    return X, y, X_held, y_held


def bundled(name: str, held_out: float) -> Callable[[int], Split]:
    """A data set of scikit-learn, standardised."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return lambda seed: split(StandardScaler().fit_transform(X), y, seed, held_out)


def digits(seed: int) -> Split:
    X, y = datasets.load_digits(return_X_y=True)
    return split(X / 16, y, seed, 0.3)


def mnist(seed: int) -> Split:
    return ls.datasets.load("mnist", seed=seed)[:4]


def adult(seed: int) -> Split:
    data = sample(pd.read_csv(file("adult.tsv.gz"), sep="\t"), seed)
    return split(numbers(data, list(CATEGORIES)), data["target"].to_numpy(), seed)


def bank(seed: int) -> Split:
    data = sample(pd.read_csv(file("bank.csv"), sep=None, engine="python").rename(columns={"y": "target"}), seed)
    names = [name for name in data.columns.drop("target") if not pd.api.types.is_numeric_dtype(data[name])]
    return split(numbers(data, names), data["target"].to_numpy(str), seed)


def pol(seed: int) -> Split:
    data = sample(pd.read_csv(file("201_pol.tsv.gz"), sep="\t"), seed)
    return split(numbers(data, []), (data["target"] > 0).to_numpy(int), seed)


def planes(seed: int) -> Split:
    data = sample(pd.read_csv(file("215_2dplanes.tsv.gz"), sep="\t"), seed)
    return split(numbers(data, []), (data["target"] > 0).to_numpy(int), seed)


def file(name: str) -> Path:
    return next(Path(os.environ["LOCALSHAPLEY_DATA"]).rglob(name))


def sample(data: pd.DataFrame, seed: int) -> pd.DataFrame:
    return data.sample(2000, random_state=seed)


def numbers(data: pd.DataFrame, categories: list[str]) -> np.ndarray:
    """Numbers standardised, and a column for each category."""
    amounts = StandardScaler().fit_transform(data.drop(columns=["target", *categories]))
    return np.hstack([amounts, *(pd.get_dummies(data[name].astype(str)).to_numpy(float) for name in categories)])


WORKLOADS: dict[str, tuple[Callable[[int], Split], Any]] = {
    "weighted KNN, MNIST": (mnist, KNeighborsClassifier(5, weights="distance")),
    "tree, Iris": (bundled("iris", 0.3), DecisionTreeClassifier(random_state=0)),
    "SVM, Breast Cancer": (bundled("breast_cancer", 0.3), SVC()),
    "KNN, digits": (digits, KNeighborsClassifier(5)),
    "logistic regression, Adult": (adult, LogisticRegression(max_iter=500)),
    "logistic regression, Bank": (bank, LogisticRegression(max_iter=500)),
    "tree, pol": (pol, DecisionTreeClassifier(random_state=0)),
    "SVM, wine": (bundled("wine", 0.3), SVC()),
    "KNN, 2dplanes": (planes, KNeighborsClassifier(5)),
}
"""The first three are those of RQ2 of the paper."""


if __name__ == "__main__":
    main()
