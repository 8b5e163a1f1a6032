"""What a change costs: `update` beside a full run on the new data, in trainings and in CPU seconds.

    python benchmarks/update.py [--rows 10000] [--tests 300] [models: knn weighted-knn svm tree]

One training row of many is relabelled, moved, added or removed, or a test row is added. The last column says how far
the values are from those of a full run: the largest difference where both are exact, else the root mean square of the
differences relative to their errors (about 1).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls

MODELS: dict[str, dict[str, Any]] = {
    "knn": {"model": KNeighborsClassifier(5)},
    "weighted-knn": {"model": KNeighborsClassifier(5, weights="distance")},
    "svm": {"model": SVC(gamma=0.2)},
    "tree": {
        "model": DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
        "support": ls.supports.TreeNode(max_size=30),
    },
}


def main() -> None:
    """Print one line for each model and change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--tests", type=int, default=300)
    arguments = parser.parse_args()
    for model in arguments.models:
        compare(model, arguments.rows, arguments.tests)


def compare(name: str, n_rows: int, n_tests: int) -> None:
    """Make each change, by `update` and by a full run."""
    X, y = make_classification(n_rows + n_tests, 8, n_informative=6, n_redundant=0, random_state=0)
    X, y, X_test, y_test = X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]
    now, tests = (X, y), (X_test, y_test)
    settings = MODELS[name]
    ls.value(X[:200], y[:200], X_test[:20], y_test[:20], per_test=True, **settings)  # compiles
    before, seconds = timed(lambda: ls.value(*now, *tests, per_test=True, **settings))
    row = int(np.argmin(np.abs(before.n_tests - max(before.n_tests.mean(), 1))))  # it is in as many supports as most
    X, y = now
    relabelled, moved = y.copy(), X.copy()
    relabelled[row] = 1 - relabelled[row]
    moved[row] += 0.05
    changes = {
        "relabelled": (X, relabelled, *tests),
        "moved": (moved, y, *tests),
        "added": (np.vstack([X, moved[row]]), np.append(y, y[row]), *tests),
        "removed": (np.delete(X, row, axis=0), np.delete(y, row), *tests),
        "new test row": (*now, np.vstack([X_test, moved[row]]), np.append(y_test, y[row])),
    }
    print(
        f"{name}: full run {work(before):,} {unit(before)}, {seconds:.2f} CPU s, supports of "
        f"{before.support_sizes.mean():.0f} rows, relative error {before.relative_error:.3f}"
    )
    print(f"  {'change':14}{'played':>8}{unit(before):>12}{'share':>9}{'CPU s':>9}{'share':>9}{'difference':>12}")
    for change, data in changes.items():
        after, took = timed(lambda data=data: ls.update(before, *data, **settings))
        full = ls.value(*data, per_test=True, **settings)
        kept = next(note.data for note in after.notes if note.code == "tests-kept")
        played = kept["n_tests"] - kept["n_kept"]
        print(
            f"  {change:14}{played:>8}{work(after):>12,}{work(after) / work(before):>9.2%}{took:>9.3f}"
            f"{took / seconds:>9.2%}{difference(after, full):>12.2g}",
            flush=True,
        )


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """What a run gives, and its CPU time."""
    start = time.process_time()
    found = run()
    return found, time.process_time() - start


def work(v: ls.Valuation) -> int:
    """Trainings or, where nothing is trained, classes of coalitions."""
    return v.cost.trainings or v.cost.draws


def unit(v: ls.Valuation) -> str:
    """What `work` counts."""
    return "trainings" if v.cost.trainings else "classes"


def difference(one: ls.Valuation, two: ls.Valuation) -> float:
    """Largest difference of exact values; of sampled ones, the root mean square relative to both errors."""
    error = np.hypot(one.stderr, two.stderr)
    if not error.any():
        return float(np.abs(one.values - two.values).max())
    return float(np.sqrt(np.mean(((one.values - two.values)[error > 0] / error[error > 0]) ** 2)))


if __name__ == "__main__":
    main()
