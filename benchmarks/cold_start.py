"""The first minute: what importing, the command line and the first valuation cost.

    python benchmarks/cold_start.py [--quick] [--cpu]

Every line is a process of its own. The first table has the seconds of imports and commands, with a warm cache. The
second values rows of Breast Cancer (regression: diabetes) with each model and its default support, from an empty
cache; `functions` counts all that numba compiled. `second model` is the same in a cache that holds only what all models
share (the methods), so that a model pays for its own trainer alone; `exact` trains every subset of supports of 8 rows,
from an empty cache; `warm` has everything in the cache. `--quick` leaves out all models but two.

Python finds the bytecode of all packages, as pip leaves it. `--cpu` prints seconds of the processor in the second
table, which tell more than those of the clock on a machine that does something else too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

VALUATION = """
import json, sys, time
from numba.core import event
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier
import localshapley as ls

recorded = event.RecordingListener()
model = eval(sys.argv[1])
X, y = (load_diabetes if sys.argv[1] in ("Ridge()", "SVR()") else load_breast_cancer)(return_X_y=True)
X = StandardScaler().fit_transform(X)
order = np.random.default_rng(0).permutation(len(y))
train, test = order[:300], order[300:330]
exact = {"method": "exact", "support": ls.supports.Nearest(8)} if sys.argv[2] == "exact" else {}
clock = getattr(time, sys.argv[3])
started = clock()
with event.install_listener("numba:compile", recorded):
    v = ls.value(X[train], y[train], X[test], y[test], model=model, progress=False, **exact)
functions = sum(event.is_start for _, event in recorded.buffer)
print(json.dumps([clock() - started, functions]))
"""
MODELS = {
    "nearest neighbours": "KNeighborsClassifier()",
    "tree": "DecisionTreeClassifier(random_state=0)",
    "random forest": "RandomForestClassifier(random_state=0)",
    "SVM": "SVC()",
    "logistic regression": "LogisticRegression()",
    "ridge": "Ridge()",
    "SVR": "SVR()",
}


def value(model: str, way: str, cache: Path, clock: str) -> tuple[float, int]:
    """Seconds of a valuation, and functions compiled."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", VALUATION, model, way, clock]
    return tuple(json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout))


def seconds(*command: str, **how) -> float:
    """The best of three runs of a command."""
    found = []
    for _ in range(3):
        started = perf_counter()
        subprocess.run(command, capture_output=True, check=True, **how)
        found.append(perf_counter() - started)
    return min(found)


def start() -> None:
    """What each part of the start costs."""
    python = sys.executable
    nothing = seconds(python, "-c", "pass")
    print(f"{'start':<44}{'seconds':>9}")
    print(f"{'python':<44}{nothing:>9.2f}")
    for name in ("localshapley", "numpy", "scipy.sparse", "sklearn.base", "pandas", "numba", "localshapley.api"):
        print(f"{'import ' + name:<44}{seconds(python, '-c', f'import {name}') - nothing:>9.2f}")
    print(f"{'localshapley --help':<44}{seconds(python, '-m', 'localshapley', '--help'):>9.2f}")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "localshapley", "datasets", "iris"], cwd=folder, capture_output=True, check=True)
        words = (python, "-m", "localshapley", "suspects", "iris.csv", "--target", "target", "--id", "id")
        subprocess.run(words, cwd=folder, capture_output=True, check=True)
        print(f"{'localshapley suspects iris.csv (150 rows)':<44}{seconds(*words, cwd=folder):>9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two models only")
    parser.add_argument("--cpu", action="store_true", help="seconds of the processor")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as bytecode:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = bytecode
        start()
        first_valuations(options.quick, "process_time" if options.cpu else "perf_counter")


def first_valuations(quick: bool, clock: str) -> None:
    """What is compiled for each model, and what that takes."""
    titles = f"{'empty cache':>12}{'functions':>11}{'exact':>8}{'second model':>14}{'warm':>8}"
    print(f"\n{'first valuation, seconds':<24}{titles}")
    for name, model in list(MODELS.items())[: 2 if quick else None]:
        with tempfile.TemporaryDirectory() as folder:
            empty, exact, shared = (Path(folder) / kind for kind in ("empty", "exact", "shared"))
            program = "from localshapley.warming import PARTS; PARTS['methods']()"
            environment = {**os.environ, "NUMBA_CACHE_DIR": str(shared)}
            subprocess.run([sys.executable, "-c", program], env=environment, check=True)
            second, _ = value(model, "default", shared, clock)
            first, functions = value(model, "default", empty, clock)
            warm, _ = value(model, "default", empty, clock)
            of_exact, _ = value(model, "exact", exact, clock)
        print(f"{name:<24}{first:>12.1f}{functions:>11}{of_exact:>8.1f}{second:>14.1f}{warm:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
