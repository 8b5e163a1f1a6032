"""Corollary 1 of the paper: distinct subsets per test row against the number of test rows, and against draws.

python experiments/reuse.py            # a few minutes on two cores
python experiments/reuse.py --quick    # under a minute
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd

import localshapley as ls
from common import arguments, svm, tree, wknn, write


def main(argv: list[str] | None = None) -> None:
    """Run, and write `reuse.csv`, `reuse_draws.csv`, `.md`, `.svg` and `.png`."""
    args = arguments(__doc__, argv)
    rows, draws = [], []
    for workload in (wknn(args.quick), tree(True), svm(True)):
        X, y, X_test, y_test = workload.data
        sizes = np.unique(np.geomspace(1, len(y_test), 8).astype(int))
        for n_tests in sizes:
            support = first_supports(workload.support, n_tests)
            plan = ls.plan(X, y, X_test[:n_tests], y_test[:n_tests], model=workload.model, support=support)
            subsets = plan.levels.subset_centric
            line = {"workload": workload.title, "test rows": int(n_tests), "distinct": plan.levels.lsmr}
            rows.append({**line, "of all": subsets, "distinct per test row": plan.levels.lsmr / n_tests,
                         "reused": 1 - plan.levels.lsmr / subsets})  # fmt: skip
        for budget in (300, 1000, 3000) if args.quick else (5000, 10_000, 20_000):
            model = ls.models.Estimator(workload.model) if args.quick else workload.model
            v = workload.value(method="sample", budget=budget, model=model)
            each = v.cost.draws / max(v.cost.trainings, 1)
            draws.append({"workload": workload.title, "budget": budget, "trainings": v.cost.trainings,
                          "scores": v.cost.draws, "scores per training": each})  # fmt: skip
    table = pd.DataFrame(rows)
    points = [
        f"{title}: {part['distinct per test row'].iloc[0]:,.0f} distinct subsets for one test row, "
        f"{part['distinct per test row'].iloc[-1]:,.0f} per test row for {part['test rows'].iloc[-1]}; "
        f"{part['reused'].iloc[-1]:.0%} of the subsets are reused."
        for title, part in table.groupby("workload", sort=False)
    ]
    about = (
        "*distinct*: subsets that LSMR trains; *of all*: subsets of all supports, counted for each test row. "
        "Corollary 1 says that distinct subsets per test row fall as test rows are added, once supports repeat. The "
        "second table has the scores that each training of a sampled run serves."
    )
    write(args, "reuse", "Reuse across test rows", about, {"subsets": table, "draws": pd.DataFrame(draws)}, points,
          lambda figure: draw(figure, table))  # fmt: skip


def first_supports(support: Any, n_tests: int) -> Any:
    """Given supports are cut to the test rows that are there."""
    return ls.supports.Given(support.lists[:n_tests]) if isinstance(support, ls.supports.Given) else support


def draw(figure: Any, table: pd.DataFrame) -> None:
    """Distinct subsets per test row."""
    ax = figure.subplots()
    for title, part in table.groupby("workload", sort=False):
        ax.plot(part["test rows"], part["distinct per test row"], marker="o", label=title)
    ax.set(xscale="log", yscale="log", xlabel="test rows", ylabel="distinct subsets per test row")
    ax.legend(frameon=False)


if __name__ == "__main__":
    main(sys.argv[1:])
