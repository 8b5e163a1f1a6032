"""KNN-Shapley with OpenDataVal, which counts in single precision.

OpenDataVal 1.3 needs older numpy, pandas and torch, so give it an environment of its own:

    python -m venv opendataval-env
    opendataval-env/bin/pip install opendataval
    opendataval-env/bin/python benchmarks/peers/opendataval_knn.py DATA.npz

DATA.npz holds X, y (class codes), X_test, y_test and K. Prints one line of JSON:
library, versions, seconds (of the valuation alone, the best of three runs, on as many
threads as torch takes) and values (one for each row of X, the mean over the test rows).
"""

import argparse
import contextlib
import json
import sys
import time
from importlib.metadata import version

import numpy as np
import torch

with contextlib.redirect_stdout(sys.stderr):  # a package that it imports prints on standard output
    from opendataval.dataval import KNNShapley


def value(data) -> tuple[float, list[float]]:
    """Value the rows once; returns seconds and values."""
    X, y, X_test, y_test = (torch.tensor(data[name]) for name in ("X", "y", "X_test", "y_test"))
    n_classes = int(max(y.max(), y_test.max())) + 1
    labels, test_labels = (torch.nn.functional.one_hot(codes.long(), n_classes).float() for codes in (y, y_test))
    valuation = KNNShapley(k_neighbors=int(data["K"]))
    valuation.input_data(X.float(), labels, X_test.float(), test_labels)
    started = time.perf_counter()
    values = valuation.train_data_values().evaluate_data_values()
    return time.perf_counter() - started, values.astype(float).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    data = np.load(parser.parse_args().data)
    seconds, values = min((value(data) for _ in range(3)), key=lambda run: run[0])
    report = {
        "library": "opendataval",
        "versions": {name: version(name) for name in ("opendataval", "torch", "numpy")},
        "seconds": seconds,
        "values": values,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
