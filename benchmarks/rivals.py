"""One table of rivals: the same work done by others and by us, in one run, with seconds, trainings and what it gave.

    python benchmarks/rivals.py [--only knn twelve shapley labels]

Environments with the others (pyDVL, OpenDataVal, shapiq, dattri, cleanlab) are made on first use in the user's cache
(`peers/environments.py`), which takes minutes; shapiq needs a Python 3.12 on the path. Seconds are those of the work
alone, once everything is imported and compiled.

- knn: KNN-Shapley in closed form of 1,000 digits for 797 others, K = 5. All values are the same.
- twelve: exact values of 12 rows of Iris to a tree, by all subsets. All values are the same.
- shapley: Data Shapley of 100 rows of Breast Cancer to a tree of depth 3, accuracy on 100 others. pyDVL's truncated
  Monte Carlo has 100 permutations; ours goes on until it says that it has the error that pyDVL has in truth, and then
  for as many trainings as pyDVL. The error is that to a long run of ours with another seed, as a share of the values'
  size.
- labels: 1,000 digits of which 100 labels are wrong; the precision of the 100 most suspicious. cleanlab has held-out
  probabilities of a logistic regression, Data-OOB a thousand trees, ours is `suspects` after `value(..., cv=5)`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from environments import python_of

from knn import digits
from knn import seconds as seconds_of

PEERS = Path(__file__).parent / "peers"
OURS = f"localshapley {ls.__version__}"
Line = tuple[str, float, int | None, str]
"""Who, seconds, trainings, and what it gave."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=WORK, default=list(WORK))
    print("| work | by | seconds | trainings | |\n|---|---|---|---|---|")
    for name in parser.parse_args().only:
        title, lines = WORK[name]()
        for who, seconds, trainings, gave in lines:
            print(f"| {title} | {who} | {seconds:.3g} | {'' if trainings is None else f'{trainings:,}'} | {gave} |")
            title = ""
        sys.stdout.flush()


def ask(script: str, **data: Any) -> tuple[str, float, int | None, np.ndarray]:
    """Run a peer in its environment: who it is, seconds, trainings and values."""
    library = script.split("_")[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, **data)
        command = [str(python_of(library)), str(PEERS / f"{script}.py"), *([str(path)] if data else [])]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    version = found["version"] if "version" in found else found["versions"][library]
    return f"{library} {version}", found["seconds"], found.get("fits"), np.array(found["values"])


def timed(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The best of some runs after a first one, which compiles, and the result."""
    function()
    return seconds_of(function, repeats)


def named(data: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    """Training and test rows as peers read them."""
    return dict(zip(("X", "y", "X_test", "y_test"), data, strict=True))


def knn() -> tuple[str, list[Line]]:
    """KNN-Shapley."""
    data = digits()
    seconds, v = timed(lambda: ls.comparators.knn_shapley(*data, n_neighbors=5))
    lines: list[Line] = []
    for library in ("opendataval", "pydvl", "shapiq", "dattri"):
        who, theirs, _, values = ask(f"{library}_knn", **named(data), K=5)
        lines.append((who, theirs, None, f"differs by {np.abs(values - v.values / len(data[3])).max():.0e} at most"))
    return "KNN-Shapley, 1,000 digits", [*lines, (OURS, seconds, None, "")]


def twelve() -> tuple[str, list[Line]]:
    """Exact values by all subsets."""
    rows = json.loads((PEERS.parents[1] / "tests" / "fixtures" / "twelve_player_tree.json").read_text())
    X, y = load_iris(return_X_y=True)
    data = X[rows["train"]], y[rows["train"]], X[rows["test"]], y[rows["test"]]
    settings = {"support": ls.supports.Everything(), "method": "exact", "score": "accuracy", "empty": 0.0}
    model = DecisionTreeClassifier(random_state=0)
    seconds, v = timed(lambda: ls.value(*data, model=model, progress=False, **settings))
    lines: list[Line] = []
    for script, given in (
        ("pydvl_twelve", {}),
        ("shapiq_twelve", named(data)),
    ):
        who, theirs, fits, values = ask(script, **given)
        lines.append((who, theirs, fits, f"differs by {np.abs(values - v.values / len(data[3])).max():.0e} at most"))
    return "exact values of 12 rows to a tree", [*lines, (OURS, seconds, v.cost.trainings, "")]


def shapley() -> tuple[str, list[Line]]:
    """Data Shapley by sampling."""
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:100], order[100:200]
    data = X[train], y[train], X[test], y[test]
    model = DecisionTreeClassifier(max_depth=3, random_state=0)
    settings = {"model": model, "support": ls.supports.Everything(), "score": "accuracy", "empty": 0.0}
    exact = ls.value(*data, method="sample", tol=0.02, seed=1, progress=False, **settings).values / len(test)

    def error(values: np.ndarray) -> float:
        return float(np.linalg.norm(values - exact) / np.linalg.norm(exact))

    who, theirs, fits, values = ask("pydvl_tmc", **named(data), permutations=100, depth=3)
    goal = error(values)
    lines = [(f"{who}, TMC", theirs, fits, f"error {goal:.3f}")]
    for how, limit in (("to the same error", {"tol": goal}), ("as many trainings", {"budget": fits})):

        def sampled(limit: Any = limit) -> Any:
            return ls.value(*data, method="sample", progress=False, **limit, **settings)

        seconds, v = timed(sampled)
        lines.append((f"{OURS}, {how}", seconds, v.cost.trainings, f"error {error(v.values / len(test)):.3f}"))
    return "Data Shapley of 100 rows", lines


def labels() -> tuple[str, list[Line]]:
    """Wrong labels."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(y))[:1000]
    X, y = StandardScaler().fit_transform(X[rows]), y[rows]
    wrong = np.isin(np.arange(len(y)), rng.choice(len(y), 100, replace=False))
    y = np.where(wrong, (y + rng.integers(1, 10, len(y))) % 10, y)
    found = [(f"{who}{how}", seconds, fits, f"precision {wrong[np.argsort(values)[:100]].mean():.2f}")
             for script, how in (("cleanlab_labels", ""), ("opendataval_oob", ", Data-OOB"))
             for who, seconds, fits, values in [ask(script, X=X, y=y)]]  # fmt: skip
    seconds, listed = timed(lambda: ls.audit.label_errors(X, y, n=100, progress=False))
    found.append((f"{OURS}, label_errors", seconds, 0, f"precision {wrong[listed.table.index].mean():.2f}"))
    return "100 wrong labels among 1,000 digits", found


WORK = {"knn": knn, "twelve": twelve, "shapley": shapley, "labels": labels}

if __name__ == "__main__":
    main()
