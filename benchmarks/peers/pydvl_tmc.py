"""Truncated Monte Carlo with pyDVL. `rivals.py` runs it with DATA.npz: X, y, X_test, y_test and `permutations`."""

import argparse
import time

import numpy as np
from joblib import parallel_config
from pydvl.valuation import (
    Dataset,
    MinUpdates,
    ModelUtility,
    PermutationSampler,
    RelativeTruncation,
    ShapleyValuation,
    SupervisedScorer,
)
from pydvl_twelve import CountingTree
from reporting import report

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    data = np.load(parser.parse_args().data)
    train, test = Dataset(data["X"], data["y"]), Dataset(data["X_test"], data["y_test"])
    model = CountingTree(max_depth=int(data["depth"]), random_state=0)
    utility = ModelUtility(model, SupervisedScorer("accuracy", test, default=0.0), catch_errors=False)
    sampler = PermutationSampler(RelativeTruncation(rtol=0.01), seed=0)
    valuation = ShapleyValuation(utility, sampler, MinUpdates(int(data["permutations"])), progress=False)
    started = time.perf_counter()
    with parallel_config(n_jobs=1):
        valuation.fit(train)
    seconds = time.perf_counter() - started
    values = valuation.result.sort(key="index").values
    report(("pydvl", "numpy", "scikit-learn"), seconds, values, CountingTree.fits)
