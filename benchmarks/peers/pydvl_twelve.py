"""Play the twelve-player tree game with pyDVL, exactly, on one job.

The twelve players are rows of iris; the worth of a set of rows is the accuracy, on
fifteen other rows, of a decision tree fitted on that set, and 0 for the empty set.
pyDVL's deterministic powerset sampler visits every subset of every player's
complement, so its Shapley values are exact.

pyDVL 0.10 needs numpy 1, so give it an environment of its own:

    python -m venv pydvl-env
    pydvl-env/bin/pip install pydvl "numpy<2"
    pydvl-env/bin/python benchmarks/peers/pydvl_twelve.py

Prints one line of JSON: library, version, fits (how many times a tree was fitted),
seconds (wall time of the valuation alone) and values (one for each player, in
ascending order of row).
"""

import json
import time
from importlib.metadata import version

import numpy as np
from joblib import parallel_config
from pydvl.valuation import (
    Dataset,
    DeterministicUniformSampler,
    ModelUtility,
    NoStopping,
    ShapleyValuation,
    SupervisedScorer,
)
from pydvl.valuation.types import Sample
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier


class CountingTree(DecisionTreeClassifier):
    """A decision tree that counts the fits of all its instances."""

    fits = 0

    def fit(self, X, y, **kwargs):
        CountingTree.fits += 1
        return super().fit(X, y, **kwargs)


class AscendingUtility(ModelUtility):
    """A utility that hands rows to the model in ascending order.

    pyDVL appends the player to the end of the subset it joins, so the same set would
    otherwise reach the model in several orders.
    """

    def sample_to_data(self, sample: Sample) -> tuple:
        return super().sample_to_data(sample.with_subset(np.sort(sample.subset)))


def split_rows(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draw 4 training rows of each class, then 5 test rows of each class."""
    rng = np.random.default_rng(0)
    classes = [np.flatnonzero(y == label) for label in np.unique(y)]
    train = np.sort([rng.choice(rows, 4, replace=False) for rows in classes], axis=None)
    rest = [np.setdiff1d(rows, train) for rows in classes]
    test = np.sort([rng.choice(rows, 5, replace=False) for rows in rest], axis=None)
    return train, test


def main() -> None:
    X, y = load_iris(return_X_y=True)
    train, test = split_rows(y)
    scorer = SupervisedScorer("accuracy", Dataset(X[test], y[test]), default=0.0)
    model = CountingTree(random_state=0)
    # A failing fit must stop the run, not count as the worth of the empty set.
    utility = AscendingUtility(model, scorer, catch_errors=False)
    # NoStopping without a sampler runs until every subset has been processed.
    valuation = ShapleyValuation(utility, DeterministicUniformSampler(), NoStopping())

    start = time.perf_counter()
    with parallel_config(n_jobs=1):
        valuation.fit(Dataset(X[train], y[train]))
    seconds = time.perf_counter() - start

    result = valuation.result.sort(key="index")
    subsets = 2 ** (len(train) - 1)
    if not np.array_equal(result.counts, np.full(len(train), subsets)):
        raise RuntimeError(f"not exact: {result.counts} subsets, expected {subsets}")
    report = {
        "library": "pydvl",
        "version": version("pydvl"),
        "fits": CountingTree.fits,
        "seconds": round(seconds, 3),
        "values": result.values.tolist(),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
