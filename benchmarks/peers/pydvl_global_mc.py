"""Permutation sampling for K nearest neighbours with pyDVL, one permutation.

pyDVL 0.10 needs numpy 1, so give it an environment of its own:

    python -m venv pydvl-env
    pydvl-env/bin/pip install pydvl "numpy<2"
    pydvl-env/bin/python benchmarks/peers/pydvl_global_mc.py DATA.npz

DATA.npz holds X, y, X_test, y_test and K. Prints one line of JSON: library, versions, fits (how many
models were scored) and seconds (of the valuation alone, on one job).
"""

import argparse
import json
import time
from importlib.metadata import version

import numpy as np
from joblib import parallel_config
from pydvl.valuation import Dataset, MinUpdates, ModelUtility, PermutationSampler, ShapleyValuation, SupervisedScorer
from sklearn.neighbors import KNeighborsClassifier


class CountingNeighbours(KNeighborsClassifier):
    """Neighbours that count the scorings of all instances, and vote with as many rows as there are."""

    scored = 0

    def score(self, X, y, sample_weight=None):
        CountingNeighbours.scored += 1
        wanted, self.n_neighbors = self.n_neighbors, min(self.n_neighbors, self.n_samples_fit_)
        try:
            return super().score(X, y, sample_weight)
        finally:
            self.n_neighbors = wanted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    data = np.load(parser.parse_args().data)
    train, test = Dataset(data["X"], data["y"]), Dataset(data["X_test"], data["y_test"])
    model = CountingNeighbours(int(data["K"]), weights="distance")
    utility = ModelUtility(model, SupervisedScorer(CountingNeighbours.score, test, default=0.0), catch_errors=False)
    valuation = ShapleyValuation(utility, PermutationSampler(seed=0), MinUpdates(1))
    started = time.perf_counter()
    with parallel_config(n_jobs=1):
        valuation.fit(train)
    report = {
        "library": "pydvl",
        "versions": {name: version(name) for name in ("pydvl", "numpy", "scikit-learn")},
        "fits": CountingNeighbours.scored,
        "seconds": time.perf_counter() - started,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
