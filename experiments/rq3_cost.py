"""RQ3 of the paper: what every method costs, to the paper's stopping rule and to equal error.

All methods of a row use the same trainers on the same machine, so that the ratios are method against method. A method
that would take over ten minutes runs on a part of its budget; its cost is then extrapolated and marked with a star.

    python experiments/rq3_cost.py            # about half an hour on two cores
    python experiments/rq3_cost.py --quick    # under two minutes
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

import localshapley as ls
from common import PAPER_COST, PAPERS_RULE, PERMUTATIONS, Workload, arguments, relative_error, svm, tree, wknn, write
from graph import gnn

METHODS = {
    "global-mc": {"method": "global-mc"},
    "tmc": {"method": "tmc"},
    "complementary": {"method": "complementary"},
    "local-mc": {"method": "local-mc"},
    "LSMR-A, as the paper draws": {"method": "pivot"},
    "LSMR-A": {"method": "sample"},
}
LIMIT = 40.0
"""Seconds that a method may take; beyond, its cost is extrapolated."""
AIM = 0.1
"""Relative error at which methods are compared."""


def main(argv: list[str] | None = None) -> None:
    """Run, and write `rq3_cost.csv`, `.md`, `.svg` and `.png`."""
    args = arguments(__doc__, argv)
    rows, notes = [], []
    for workload in (wknn(args.quick), tree(args.quick), svm(args.quick), gnn(args.quick)):
        notes += workload.notes
        rows += costs(workload, 1.5 if args.quick else LIMIT, args.quick)
    table = pd.DataFrame(rows)
    about = (
        "To the paper's stopping rule (relative change below 0.05 over 100 draws) and to a relative error of 0.1 "
        "against a reference of the same kind (local or global), with errors taken to fall with the root of the "
        "trainings. *trainings*: models trained; *evaluations*: scores of a model on a test row, which the paper "
        f"counts as trainings. A method runs for at most {LIMIT:.0f} seconds. A star marks what was extrapolated. "
        "*scikit-learn*: seconds with plain training, extrapolated from 200 trainings on 20 rows (always marked)."
    )
    write(args, "rq3_cost", "RQ3: what values cost", about, {"cost": table}, findings(table) + notes,
          lambda figure: draw(figure, table))  # fmt: skip


def costs(workload: Workload, limit: float, quick: bool) -> list[dict[str, Any]]:
    """Costs of every method on one workload."""
    references = {
        "local": workload.value(tol=0.02 if not quick else 0.05, max_seconds=2 * limit),
        "global": workload.value(
            method="global-mc", budget=(100 if quick else PERMUTATIONS[workload.name]) * workload.n_rows + 2,
            max_seconds=2 * limit, seed=77,
        ),
    }  # fmt: skip
    plain = seconds_of_plain_training(workload)
    rows = []
    for name, settings in METHODS.items():
        kind = "local" if settings["method"] in ("local-mc", "pivot", "sample") else "global"
        started = perf_counter()
        v = workload.value(**settings, stop=PAPERS_RULE, max_seconds=limit)
        seconds = perf_counter() - started
        error = error_of(v, references[kind])
        finished = "relative change" in v.stopped
        factor = (error / AIM) ** 2
        paper = PAPER_COST[workload.name].get(name, (np.nan, np.nan))
        rows.append(
            {
                "workload": workload.title,
                "method": name,
                "to the rule (s)": f"{seconds:.3g}" if finished else f"over {seconds:.0f}",
                "trainings": v.cost.trainings,
                "evaluations": v.cost.draws,
                "error reached": error,
                f"to error {AIM} (s)": f"{seconds * factor:.3g}*",
                f"trainings to error {AIM}": max(1.0, v.cost.trainings * factor),
                "scikit-learn (s)": f"{v.cost.trainings * factor * plain:.3g}*" if plain else "",
                "paper (s)": paper[0],
                "paper trainings": paper[1],
            }
        )
        print(rows[-1], file=sys.stderr)
    return rows


def error_of(v: ls.Valuation, reference: ls.Valuation) -> float:
    """Relative error against a reference that has an error of its own, which is taken off."""
    squared = relative_error(v.values, reference.values) ** 2 - reference.relative_error**2
    return float(np.sqrt(max(squared, v.relative_error**2 / 4, 1e-6)))


def seconds_of_plain_training(workload: Workload, n: int = 200) -> float:
    """Mean seconds of a scikit-learn training on 20 rows, with one prediction."""
    if workload.model is None or workload.name == "GNN":
        return 0.0
    from sklearn.base import clone

    X, y, X_test, _ = workload.data
    rng = np.random.default_rng(0)
    rows = [rng.choice(len(y), 20, replace=False) for _ in range(n)]
    rows = [r for r in rows if len(set(y[r])) > 1]
    started = perf_counter()
    for r in rows:
        clone(workload.model).fit(X[r], y[r]).predict(X_test[:1])
    return (perf_counter() - started) / len(rows)


def findings(table: pd.DataFrame) -> list[str]:
    """Ratios of trainings at equal error."""
    points = []
    column = f"trainings to error {AIM}"
    for title, part in table.groupby("workload", sort=False):
        needed = dict(zip(part["method"], part[column], strict=True))
        ratios = ", ".join(
            f"{name} {needed[name] / needed['LSMR-A']:,.1f} times" for name in needed if name != "LSMR-A"
        )
        points.append(f"{title}, trainings at equal error against LSMR-A: {ratios}.")
    return points


def draw(figure: Any, table: pd.DataFrame) -> None:
    """Trainings to equal error, by method."""
    titles = list(dict.fromkeys(table["workload"]))
    figure.set_size_inches(9, 2.2 * -(-len(titles) // 2) + 1)
    for ax, title in zip(figure.subplots(-(-len(titles) // 2), 2).ravel(), titles, strict=False):
        part = table[table["workload"] == title]
        ax.barh(part["method"], part[f"trainings to error {AIM}"], color="#0072B2")
        ax.set(title=title, xscale="log", xlabel=f"trainings to a relative error of {AIM}")
        ax.invert_yaxis()


if __name__ == "__main__":
    main(sys.argv[1:])
