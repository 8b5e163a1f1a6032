"""Corollary 1 of the paper: distinct subsets per test row against the number of test rows, and against draws.

python experiments/reuse.py            # about a minute on two cores
python experiments/reuse.py --quick    # under a minute
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd

import localshapley as ls
from ablation import enumerable_gnn
from common import Workload, arguments, enumerable_svm, enumerable_tree, svm, tree, wknn, write


def main(argv: list[str] | None = None) -> None:
    """Run, and write `reuse.csv`, `reuse_draws.csv`, `.md`, `.svg` and `.png`."""
    args = arguments(__doc__, argv)
    workloads = (
        (wknn(True), tree(True), svm(True), enumerable_gnn(8, True))
        if args.quick
        else (wknn(False), enumerable_tree(14), enumerable_svm(12), enumerable_gnn(10, False))
    )
    subsets = pd.DataFrame([row for w in workloads for row in growth(w, range(2 if args.quick else 10))])
    per_test = (10, 20, 40) if args.quick else (5, 10, 20, 40, 80)
    draws = pd.DataFrame([row for w in workloads for row in sampled(w, per_test)])
    about = (
        "*distinct per test row*: distinct subsets that LSMR trains, means over random orders of the test rows; "
        "*reused*: the share of all subsets of the supports that need no training of their own. *fall by doubling*: by "
        "how much distinct subsets, as a share of all, fall when test rows double; 0 is no reuse, and Corollary 1, by "
        "which distinct subsets per test row go to nothing, needs one half in the end. *draws per training*: scores "
        "asked for in a sampled run, over all test rows, for each distinct subset that is trained."
    )
    ends = {"subsets": ends_of(subsets, ["test rows", "distinct per test row", "reused", "fall by doubling"]),
            "draws": ends_of(draws, ["budget", "draws per training"])}  # fmt: skip
    write(args, "reuse", "Reuse across test rows", about, {"subsets": subsets, "draws": draws},
          findings(subsets, draws), lambda figure: draw(figure, subsets, draws), shown=ends)  # fmt: skip


def ends_of(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """The first and the last line of each workload."""
    lines = table.groupby("workload", sort=False)
    return pd.concat([lines.head(1), lines.tail(1)]).sort_index()[["workload", *columns]]


def growth(workload: Workload, orders: range) -> list[dict[str, Any]]:
    """Distinct subsets of the first test rows, in random orders."""
    plans = [plan_of(workload, seed) for seed in orders]
    rows, before = [], (np.nan, np.nan)
    for i, (n_tests, _) in enumerate(plans[0].levels.growth):
        distinct = float(np.mean([plan.levels.growth[i][1] for plan in plans]))
        every = float(np.mean([np.exp2(plan.support_sizes[:n_tests]).sum() for plan in plans]))
        share = distinct / every
        fall = 1 - (share / before[1]) ** (1 / np.log2(n_tests / before[0]))
        rows.append({"workload": workload.title, "test rows": n_tests, "distinct": distinct, "of all": every,
                     "distinct per test row": distinct / n_tests, "reused": 1 - share,
                     "fall by doubling": fall})  # fmt: skip
        before = n_tests, share
    return rows


def plan_of(workload: Workload, seed: int) -> ls.Plan:
    """The plan with test rows in a random order.

    Subsets depend on the supports alone, so any model of rows can stand in for the network.
    """
    X, y, X_test, y_test = workload.data[:4]
    model, support = workload.model, workload.support
    if workload.name == "GNN":
        _, features, labels, train, test = workload.data[:5]
        X, y, X_test, y_test, model = features[train], labels[train], features[test], labels[test], "knn"
    order = np.random.default_rng(seed).permutation(len(y_test))
    if isinstance(support, ls.supports.Given):
        support = ls.supports.Given([support.lists[t] for t in order])
    return ls.plan(X, y, X_test[order], y_test[order], model=model, support=support)


def sampled(workload: Workload, per_test: tuple[int, ...]) -> list[dict[str, Any]]:
    """Draws and trainings of sampled runs, so many trainings for each test row."""
    rows = []
    for each in per_test:
        cost = workload.value(method="sample", budget=each * workload.n_tests).cost
        rows.append({"workload": workload.title, "budget": each * workload.n_tests, "draws": cost.draws,
                     "trainings": cost.trainings, "draws per training": cost.draws / cost.trainings})  # fmt: skip
    return rows


def findings(subsets: pd.DataFrame, draws: pd.DataFrame) -> list[str]:
    """Whether distinct subsets per test row fall, how slowly, and what a training of a sampled run serves."""
    points = []
    by_workload = subsets.groupby("workload", sort=False)
    first, last = by_workload.first(), by_workload.last()
    fewer = int((last["distinct per test row"] < first["distinct per test row"]).sum())
    reused, fall = int((last["reused"] > 0).sum()), last["fall by doubling"]
    points.append(
        f"Corollary 1: distinct subsets per test row are fewer in the end than for one test row in {fewer} of "
        f"{len(last)} workloads, and fewer than all subsets of the same supports in {reused}. The fall is slow: "
        f"{fall.min():.1%} to {fall.max():.1%} when test rows double, where the corollary's limit, all supports seen, "
        "has 50 %."
    )
    served = draws.groupby("workload", sort=False)["draws per training"]
    points.append(
        f"With a larger budget a training serves fewer draws in {int((served.last() < served.first()).sum())} of "
        f"{len(served)} workloads; the likely reason is that small subsets, which many supports contain, are few and "
        "soon all trained."
    )
    return points


def draw(figure: Any, subsets: pd.DataFrame, draws: pd.DataFrame) -> None:
    """Distinct subsets per test row, and trainings against draws."""
    left, right = figure.subplots(1, 2)
    for title, part in subsets.groupby("workload", sort=False):
        left.plot(part["test rows"], part["distinct"] / part["of all"], marker="o", label=title)
    for _, part in draws.groupby("workload", sort=False):
        right.plot(part["draws"], part["trainings"], marker="o")
    low, high = draws["trainings"].min(), draws["draws"].max()
    right.plot([low, high], [low, high], color="grey", linestyle=":", label="no reuse")
    left.set(xscale="log", xlabel="test rows", ylabel="distinct subsets per test row, of its subsets", ylim=(0, 1.05))
    right.set(xscale="log", yscale="log", xlabel="draws", ylabel="distinct subsets trained")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)


if __name__ == "__main__":
    main(sys.argv[1:])
