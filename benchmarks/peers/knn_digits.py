"""Make tests/fixtures/knn_shapley_digits.json: KNN-Shapley of a hundred digits by pyDVL and by OpenDataVal.

    python benchmarks/peers/knn_digits.py PYDVL_PYTHON OPENDATAVAL_PYTHON

Each argument is the interpreter of an environment with that library; pydvl_knn.py and
opendataval_knn.py say how to make one. The digits get a little noise, so that no two
rows are equally far from a test row and the order of neighbours is beyond doubt, in
single precision too.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

HERE = Path(__file__).parent
FIXTURE = HERE.parents[1] / "tests" / "fixtures" / "knn_shapley_digits.json"
NEIGHBOURS = (1, 5, 20)


def rows() -> dict[str, np.ndarray]:
    """100 training rows and 60 test rows."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.RandomState(0)
    order = rng.permutation(len(y))[:160]
    X = X[order] / 16 + rng.normal(scale=1e-2, size=(160, 64))
    return {"X": X[:100], "y": y[order[:100]], "X_test": X[100:], "y_test": y[order[100:]]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pydvl")
    parser.add_argument("opendataval")
    pythons = vars(parser.parse_args())
    scripts = {name: HERE / f"{name}_knn.py" for name in pythons}
    values, versions = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        for K in NEIGHBOURS:
            np.savez(path, **rows(), K=K)
            for name, python in pythons.items():
                command = [python, str(scripts[name]), str(path)]
                report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
                values.setdefault(name, {})[K] = report["values"]
                versions[name] = report["versions"]
    fixture = {
        "description": (
            "KNN-Shapley values of 100 digits, the mean over 60 other digits, by two independent libraries, for three "
            "numbers of neighbours. The rows are made by rows() of benchmarks/peers/knn_digits.py: a permutation and "
            "then normal noise of 0.01 from numpy.random.RandomState(0), added to the pixels divided by 16. 'values' "
            "are by library and number of neighbours, one for each training row; OpenDataVal's are in single "
            "precision. 'versions' are those of the environment each library ran in; 'call' is the whole program "
            "that made each library's values from the rows."
        ),
        "versions": versions,
        "call": {name: script.read_text() for name, script in scripts.items()},
        "values": values,
    }
    FIXTURE.write_text(json.dumps(fixture, indent=1) + "\n")


if __name__ == "__main__":
    main()
