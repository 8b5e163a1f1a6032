"""The paper's scaling figure: cost against the number of training rows, and on to a million for KNN.

python experiments/scaling.py            # about twenty minutes on two cores
python experiments/scaling.py --quick    # under two minutes
"""

from __future__ import annotations

import sys
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from common import OURS, arguments, to_the_rule, within, write

LIMITS = {
    "WKNN": {"global-mc": 25_000_000, "tmc": 15_000_000, "complementary": 30_000, "local-mc": 20_000_000},
    "DT": {"global-mc": 30_000, "tmc": 30_000, "complementary": 15_000, "local-mc": 400_000, OURS: 400_000},
}
"""Trainings that a run may take, about half a minute; beyond, its cost is extrapolated."""


def main(argv: list[str] | None = None) -> None:
    """Run, and write `scaling.csv`, `.md`, `.svg` and `.png`."""
    args = arguments(__doc__, argv)
    wknn, tree = KNeighborsClassifier(5, weights="distance"), DecisionTreeClassifier(random_state=0)
    if args.quick:
        rows = runs("WKNN", wknn, (50, 100), 20, True) + runs("DT", tree, (50, 80), 10, True)
    else:
        rows = runs("WKNN", wknn, (100, 300, 1000, 3000, 10_000), 1000, False)
        rows += runs("DT", tree, (50, 100, 200, 500), 100, False)
    rows += many_rows((2000,) if args.quick else (100_000, 1_000_000))
    table = pd.DataFrame(rows)
    about = (
        "Seconds by number of training rows, on the pixels of MNIST with supports of the 10 nearest rows, to the "
        "paper's stopping rule. A star marks what is extrapolated from a limited number of trainings, good to a factor "
        "of about two; larger sizes are left out where the rule cannot be looked at twice within that limit. The last "
        "lines are KNN-Shapley in closed form and local values of uniform votes on made-up rows of 16 features with "
        "1,000 test rows."
    )
    write(args, "scaling", "Scaling with the number of rows", about, {"scaling": table}, findings(table),
          lambda figure: draw(figure, table), shown={"seconds": wide(table)})  # fmt: skip


def runs(name: str, model: Any, sizes: tuple[int, ...], n_tests: int, quick: bool) -> list[dict[str, Any]]:
    """Cost of every method by number of rows."""
    rows: list[dict[str, Any]] = []
    for method in ("global-mc", "tmc", "complementary", "local-mc", OURS):
        limit = 20_000 if quick else LIMITS[name].get(method, 400_000)
        for size in sizes:
            X, y, X_test, y_test = data_of(size, n_tests, quick)
            value = partial(
                ls.value, X, y, X_test, y_test, model=model, score="accuracy", support=ls.supports.Nearest(10),
                progress=False,
            )  # fmt: skip
            if not rows or rows[-1]["method"] != method:
                value(method=name_of(method), **within(limit // 300, 0.1))  # kernels are loaded now
            try:
                cost, _ = to_the_rule(value, limit, method=name_of(method))
            except ls.InvalidArgumentError as error:  # complementary draws of very many rows
                print(error, file=sys.stderr)
                break
            if np.isnan(cost.seconds):
                break
            rows.append(
                {
                    "model": name,
                    "method": method,
                    "rows": size,
                    "seconds": cost.seconds,
                    "trainings": round(cost.trainings),
                    "evaluations": round(cost.evaluations),
                    "extrapolated": "*" * cost.extrapolated,
                }
            )
            print(rows[-1], file=sys.stderr)
    return rows


def name_of(method: str) -> str:
    """What `value` calls a method."""
    return "auto" if method == OURS else method


def data_of(n_train: int, n_tests: int, quick: bool) -> Any:
    """Rows of MNIST, or of digits."""
    if quick:
        data = ls.datasets.load("digits")
        return data.X[:n_train], data.y[:n_train], data.X_test[:n_tests], data.y_test[:n_tests]
    return ls.datasets.load("mnist", n_train=n_train, n_test=n_tests)[:4]


def many_rows(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Nearest neighbours of very many rows."""
    rows = []
    for i, size in enumerate((2000, *sizes)):  # the first loads the kernels
        rng = np.random.default_rng(0)
        X, X_test = rng.normal(size=(size, 16)), rng.normal(size=(1000, 16))
        y, y_test = ((part[:, :3].sum(axis=1) > 0).astype(int) for part in (X, X_test))
        for name in ("KNN-Shapley", "LSMR, uniform votes"):
            started = perf_counter()
            if name == "KNN-Shapley":
                v = ls.comparators.knn_shapley(X, y, X_test, y_test, n_neighbors=5)
            else:
                v = ls.value(X, y, X_test, y_test, model=KNeighborsClassifier(5), progress=False)
            line = {"model": "KNN", "method": name, "rows": size, "seconds": perf_counter() - started}
            if i:
                rows.append({**line, "trainings": v.cost.trainings, "evaluations": v.cost.draws, "extrapolated": ""})
                print(rows[-1], file=sys.stderr)
    return rows


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """One line for each method, one column for each number of rows."""
    star = table["extrapolated"].fillna("").str.replace("*", r"\*")
    seconds = table["seconds"].map(lambda s: f"{s:,.0f}" if s >= 100 else f"{s:.3g}") + star
    lines = table.assign(seconds=seconds).pivot(index=["model", "method"], columns="rows", values="seconds")
    lines.columns = [f"{size:,}" for size in lines.columns]
    return lines.loc[table[["model", "method"]].drop_duplicates().itertuples(index=False)].fillna("").reset_index()


def findings(table: pd.DataFrame) -> list[str]:
    """Where the rule holds too early."""
    points = []
    for (model, method), part in table.groupby(["model", "method"], sort=False):
        early = part[part["trainings"] < part["rows"]].to_dict("records")
        if method == "complementary" and early:
            points.append(
                f"{model}, {method}: at {early[0]['rows']:,} rows the rule holds after {early[0]['trainings']} "
                "trainings, when most values are still means of other rows that stand in: it says nothing about the "
                "error."
            )
    return points


def draw(figure: Any, table: pd.DataFrame) -> None:
    """Seconds and evaluations against rows."""
    figure.set_size_inches(9, 6.5)
    axes = figure.subplots(2, 2)
    for row, model in enumerate(("WKNN", "DT")):
        for column, what in enumerate(("seconds", "evaluations")):
            ax = axes[row, column]
            for method, part in table[table["model"] == model].groupby("method", sort=False):
                (line,) = ax.plot(part["rows"], part[what], label=method)
                for star, face in (("", line.get_color()), ("*", "white")):
                    dots = part[part["extrapolated"] == star]
                    ax.plot(dots["rows"], dots[what], "o", color=line.get_color(), markerfacecolor=face)
            ax.set(title=model, xlabel="training rows", ylabel=what, xscale="log", yscale="log")
            sizes = sorted(set(table[table["model"] == model]["rows"]))
            ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
            ax.minorticks_off()
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle("To the paper's stopping rule; hollow: extrapolated", fontsize=10)


if __name__ == "__main__":
    main(sys.argv[1:])
