"""The paper's scaling figure: cost against the number of training rows, and on to a million for KNN.

python experiments/scaling.py            # about twenty minutes on two cores
python experiments/scaling.py --quick    # under two minutes
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from common import arguments, write

LIMIT = 30.0
"""Seconds that a run may take before larger sizes of its method are left out."""


def main(argv: list[str] | None = None) -> None:
    """Run, and write `scaling.csv`, `.md`, `.svg` and `.png`."""
    args = arguments(__doc__, argv)
    limit = 3.0 if args.quick else LIMIT
    wknn_sizes = (50, 100, 200) if args.quick else (100, 300, 1000, 3000, 10_000)
    tree_sizes = (30, 60) if args.quick else (50, 100, 200, 500)
    rows = []
    rows += runs(
        "WKNN", KNeighborsClassifier(5, weights="distance"), wknn_sizes, 60 if args.quick else 1000, limit, args.quick
    )
    rows += runs("DT", DecisionTreeClassifier(random_state=0), tree_sizes, 20 if args.quick else 100, limit, args.quick)
    rows += many_rows((2000,) if args.quick else (100_000, 1_000_000))
    table = pd.DataFrame(rows)
    about = (
        "MNIST (the pixels; digits if quick), supports of the 10 nearest rows; all methods to the paper's stopping "
        f"rule, at most {limit:.0f} seconds, after which larger sizes of a method are left out. The last lines are "
        "KNN-Shapley in closed form and local values of uniform votes on made-up rows of 16 features, 1,000 test "
        "rows."
    )
    write(args, "scaling", "Scaling with the number of rows", about, {"scaling": table}, findings(table),
          lambda figure: draw(figure, table))  # fmt: skip


def runs(
    name: str, model: Any, sizes: tuple[int, ...], n_tests: int, limit: float, quick: bool
) -> list[dict[str, Any]]:
    """Cost of every method by number of rows."""
    rows: list[dict[str, Any]] = []
    for method in ("global-mc", "tmc", "complementary", "local-mc", "LSMR-A"):
        for size in sizes:
            X, y, X_test, y_test = data_of(size, n_tests, quick)
            settings: dict[str, Any] = {"stop": ls.stopping.RelativeChange(0.05, every=100), "max_seconds": limit}
            if method == "LSMR-A":
                settings["method"] = "auto"
            else:
                settings["method"] = method
            started = perf_counter()
            v = ls.value(X, y, X_test, y_test, model=model, score="accuracy", support=ls.supports.Nearest(10),
                         progress=False, **settings)  # fmt: skip
            seconds = perf_counter() - started
            rows.append(
                {
                    "model": name,
                    "method": method,
                    "rows": size,
                    "seconds": seconds,
                    "trainings": v.cost.trainings,
                    "evaluations": v.cost.draws,
                    "finished": "relative change" in v.stopped or method == "LSMR-A",
                }
            )
            print(rows[-1], file=sys.stderr)
            if not rows[-1]["finished"]:
                break
    return rows


def data_of(n_train: int, n_tests: int, quick: bool) -> Any:
    """Rows of MNIST, or of digits."""
    if quick:
        data = ls.datasets.load("digits")
        return data.X[:n_train], data.y[:n_train], data.X_test[:n_tests], data.y_test[:n_tests]
    return ls.datasets.load("mnist", n_train=n_train, n_test=n_tests)[:4]


def many_rows(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Nearest neighbours of very many rows."""
    rows = []
    for size in sizes:
        rng = np.random.default_rng(0)
        X, X_test = rng.normal(size=(size, 16)), rng.normal(size=(1000, 16))
        y, y_test = ((part[:, :3].sum(axis=1) > 0).astype(int) for part in (X, X_test))
        for name in ("KNN-Shapley", "LSMR, uniform votes"):
            started = perf_counter()
            if name == "KNN-Shapley":
                v = ls.baselines.knn_shapley(X, y, X_test, y_test, n_neighbors=5)
            else:
                v = ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(5), progress=False)
            line = {"model": "KNN", "method": name, "rows": size, "seconds": perf_counter() - started}
            rows.append({**line, "trainings": v.cost.trainings, "evaluations": v.cost.draws, "finished": True})
            print(rows[-1], file=sys.stderr)
    return rows


def findings(table: pd.DataFrame) -> list[str]:
    """How each method grows."""
    points = []
    for (model, method), part in table.groupby(["model", "method"], sort=False):
        first, last = part.iloc[0], part.iloc[-1]
        reached = "" if last["finished"] else ", not finished"
        points.append(
            f"{model}, {method}: {first['seconds']:.3g} s at {first['rows']:,} rows, {last['seconds']:.3g} s at "
            f"{last['rows']:,}{reached}."
        )
    return points


def draw(figure: Any, table: pd.DataFrame) -> None:
    """Seconds and evaluations against rows."""
    axes = figure.subplots(2, 2)
    for row, model in enumerate(("WKNN", "DT")):
        for column, what in enumerate(("seconds", "evaluations")):
            ax = axes[row, column]
            for method, part in table[table["model"] == model].groupby("method", sort=False):
                ax.plot(part["rows"], np.maximum(part[what], 1e-3), marker="o", label=method)
            ax.set(title=model, xlabel="training rows", ylabel=what, xscale="log", yscale="log")
    axes[0, 0].legend(frameon=False, fontsize=8)


if __name__ == "__main__":
    main(sys.argv[1:])
