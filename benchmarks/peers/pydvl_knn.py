"""KNN-Shapley with pyDVL.

pyDVL 0.10 needs numpy 1, so give it an environment of its own:

    python -m venv pydvl-env
    pydvl-env/bin/pip install pydvl "numpy<2"
    pydvl-env/bin/python benchmarks/peers/pydvl_knn.py DATA.npz

DATA.npz holds X, y, X_test, y_test and K. Prints one line of JSON: library, versions,
seconds (of the valuation alone, the best of three runs on one job and of three on all
cores), jobs (of the best run) and values (one for each row of X, the mean over the
test rows).
"""

import argparse
import json
import os
import time
from importlib.metadata import version

import numpy as np
from joblib import parallel_config
from pydvl.valuation import Dataset, KNNShapleyValuation
from sklearn.neighbors import KNeighborsClassifier


def value(data, jobs: int) -> tuple[float, list[float]]:
    """Value the rows once; returns seconds and values."""
    train, test = Dataset(data["X"], data["y"]), Dataset(data["X_test"], data["y_test"])
    model = KNeighborsClassifier(int(data["K"]))
    valuation = KNNShapleyValuation(model, test, progress=False)
    started = time.perf_counter()
    with parallel_config(n_jobs=jobs):
        valuation.fit(train)
    seconds = time.perf_counter() - started
    return seconds, valuation.result.sort(key="index").values.tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    data = np.load(parser.parse_args().data)
    runs = [(*value(data, jobs), jobs) for jobs in {1, os.cpu_count() or 1} for _ in range(3)]
    seconds, values, jobs = min(runs, key=lambda run: run[0])
    report = {
        "library": "pydvl",
        "versions": {name: version(name) for name in ("pydvl", "numpy", "scikit-learn")},
        "seconds": seconds,
        "jobs": jobs,
        "values": values,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
