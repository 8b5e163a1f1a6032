"""How many wrong labels are found: 10 % of the labels are flipped, and as many rows are called suspicious.

    LOCALSHAPLEY_DATA=folder python benchmarks/label_errors.py [--seeds 5] [--only NAME] [--rankings]

The folder holds Adult as in PMLB, `adult.tsv.gz`, somewhere; cleanlab must be installed. Prints the precision (of the
rows called suspicious, how many have a flipped label; here the recall, too), mean over seeds, of

- suspects: `tasks.suspects(v, y, X=X)`,
- value: the rows of lowest value,
- KNN-Shapley: the rows of lowest value in `baselines.knn_shapley` (5 neighbours),
- cleanlab issues: `find_label_issues` with held-out probabilities of the same model, worst first; where it names fewer
  rows the others follow by their label quality,
- cleanlab quality: the rows of lowest `get_label_quality_scores` with the same probabilities. An SVM has its
  probabilities from `SVC(probability=True)`; with `CalibratedClassifierCV` cleanlab did worse on digits.

"folds" knows no clean label: every row is tested by the others, flipped labels included (`value(X, y, cv=5)`; the same
folds for KNN-Shapley and cleanlab). "clean test set" keeps 30 % of the rows, with their true labels, for the test.
Valuations take the 10 nearest rows as support and stop at `tol=0.2`.

With --rankings the columns are other ways to rank rows by their value and the agreement of their neighbours, by folds.
"""

from __future__ import annotations

import argparse
import os
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import localshapley as ls
from localshapley import tasks
from localshapley.models import named

MODELS = ("knn", "tree", "svm", "logistic")
CATEGORIES = (
    "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country",
)  # fmt: skip
WRONG = 0.1
SETTINGS: dict[str, Any] = {"support": ls.supports.Nearest(10), "tol": 0.2, "progress": False}


def adult() -> tuple[np.ndarray, np.ndarray]:
    """2,000 rows of Adult, numbers standardised and categories one column each."""
    file = next(Path(os.environ["LOCALSHAPLEY_DATA"]).rglob("adult.tsv.gz"))
    table = pd.read_csv(file, sep="\t").sample(2000, random_state=0)
    y = table.pop("target").to_numpy()
    numbers = StandardScaler().fit_transform(table.drop(columns=list(CATEGORIES)))
    return np.hstack([numbers, pd.get_dummies(table[list(CATEGORIES)].astype(str)).to_numpy(float)]), y


def bundled(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return StandardScaler().fit_transform(X), y


DATA = {
    "Breast Cancer": lambda: bundled("breast_cancer"),
    "digits": lambda: bundled("digits"),
    "Adult, 2,000 rows": adult,
}


def flipped(y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Labels of which a tenth are another class, and where they are."""
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rng.choice(len(y), round(WRONG * len(y)), replace=False)] = True
    classes = np.unique(y)
    return np.where(wrong, [rng.choice(classes[classes != label]) for label in y], y), wrong


def precision(rows: Any, wrong: np.ndarray) -> float:
    return float(wrong[np.asarray(rows)].mean())


def found(v: ls.Valuation, X: np.ndarray, y: np.ndarray, knn: np.ndarray, wrong: np.ndarray) -> dict[str, float]:
    n = int(wrong.sum())
    return {
        "suspects": precision(tasks.suspects(v, y, X=X, n=n).index, wrong),
        "value": precision(v.bottom(n).index, wrong),
        "KNN-Shapley": precision(np.argsort(knn, kind="stable")[:n], wrong),
    }


def by_folds(X: np.ndarray, y: np.ndarray, wrong: np.ndarray, model: str, seed: int) -> dict[str, float]:
    """No clean label anywhere."""
    folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y))
    v = ls.value(X, y, model=model, cv=folds, seed=seed, **SETTINGS)
    knn = np.zeros(len(y))
    for train, test in folds:
        knn[train] += ls.baselines.knn_shapley(X[train], y[train], X[test], y[test], progress=False).values
    estimator = named(model, regression=False)
    estimator = estimator if model != "svm" else SVC(probability=True, random_state=0)
    held_out = cross_val_predict(estimator, X, y, cv=folds, method="predict_proba")
    return found(v, X, y, knn, wrong) | by_cleanlab(y, held_out, wrong)


def by_cleanlab(y: np.ndarray, held_out: np.ndarray, wrong: np.ndarray) -> dict[str, float]:
    """The rows that cleanlab calls issues first, and those of lowest label quality."""
    codes, n = np.unique(y, return_inverse=True)[1], int(wrong.sum())
    issues = find_label_issues(codes, held_out, return_indices_ranked_by="self_confidence", n_jobs=1)
    by_quality = np.argsort(get_label_quality_scores(codes, held_out), kind="stable")
    filled = np.concatenate([issues, by_quality[~np.isin(by_quality, issues)]])
    return {"cleanlab issues": precision(filled[:n], wrong), "cleanlab quality": precision(by_quality[:n], wrong)}


def by_ranking(X: np.ndarray, y: np.ndarray, wrong: np.ndarray, model: str, seed: int) -> dict[str, float]:
    """Ways to put value and agreement together."""
    v = ls.value(X, y, model=model, cv=5, seed=seed, **SETTINGS)
    agreement = {k: tasks.suspects(v, y, X=X, n=len(y), n_neighbours=k)["agreement"].sort_index() for k in (5, 10, 20)}
    value, near = v.to_frame()["value"], agreement[10]
    ways = {f"sum, {k} neighbours": value / value.std() + share / share.std() for k, share in agreement.items()}
    ways |= {
        "value": value,
        "value per test row": value / np.maximum(v.n_tests, 1),
        "value × disagreement": value * (1 - near),
        "sum of ranks": value.rank() + near.rank(),
        "neighbours, then value": near + 1e-6 * value.rank(pct=True),
    }
    return {way: precision(np.argsort(order, kind="stable")[: wrong.sum()], wrong) for way, order in ways.items()}


def by_clean_tests(X: np.ndarray, y: np.ndarray, wrong: np.ndarray, true: np.ndarray, model: str, seed: int) -> dict:
    """30 % of the rows with true labels are the test rows of the others."""
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=true)
    data = X[train], y[train], X[test], true[test]
    v = ls.value(*data, model=model, seed=seed, **SETTINGS)
    knn = ls.baselines.knn_shapley(*data, progress=False).values
    return found(v, X[train], y[train], knn, wrong[train])


def compared(X: np.ndarray, y: np.ndarray, wrong: np.ndarray, true: np.ndarray, model: str, seed: int) -> dict:
    """Folds and clean tests side by side."""
    tests = by_clean_tests(X, y, wrong, true, model, seed)
    return by_folds(X, y, wrong, model, seed) | {f"{name}, clean": share for name, share in tests.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="part of the name of a data set")
    parser.add_argument("--rankings", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    headed = False
    for name, model in product([name for name in DATA if arguments.only in name], MODELS):
        X, true = DATA[name]()
        runs = []
        for seed in range(arguments.seeds):
            y, wrong = flipped(true, np.random.default_rng(seed))
            run = (
                by_ranking(X, y, wrong, model, seed) if arguments.rankings else compared(X, y, wrong, true, model, seed)
            )
            runs.append(run)
        means = pd.DataFrame(runs).mean()
        if not headed:
            print(f"| data | model | {' | '.join(means.index)} |\n|---|---|" + "---:|" * len(means))
            headed = True
        print(f"| {name} | {model} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |", flush=True)


if __name__ == "__main__":
    main()
