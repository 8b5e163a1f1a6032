"""RQ2 of the paper: accuracy as rows are added best first, and removed worst or best first, by every method.

python experiments/rq2_selection.py            # under half an hour on two cores
python experiments/rq2_selection.py --quick    # under two minutes
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd

from common import PERMUTATIONS, Workload, arguments, svm, tree, wknn, write
from graph import gnn

METHODS = {
    "LSMR-A": {"tol": 0.1},
    "local-mc": {"method": "local-mc"},
    "global-mc": {"method": "global-mc"},
    "tmc": {"method": "tmc"},
    "complementary": {"method": "complementary"},
    "loo": {"method": "loo"},
    "random": {"method": "random"},
}
LIMIT = 20.0
"""Seconds that a sampled method may take."""
PAPER = {("WKNN", "LSMR-A"): (70.4, 78.6), ("WKNN", "global-mc"): (60.0, 68.9)}  # at 10 and 20 %


def main(argv: list[str] | None = None) -> None:
    """Run, and write `rq2_selection.csv` (accuracies at 5, 10 and 20 %), `rq2_selection_curves.csv` and figures."""
    args = arguments(__doc__, argv)
    shares = np.array([0.05, 0.1, 0.2, 0.3, 0.5]) if args.quick else np.array([*np.arange(0.025, 0.31, 0.025), 0.5])
    rows, curves, notes = [], [], []
    for workload in (wknn(args.quick), tree(args.quick), svm(args.quick), gnn(args.quick)):
        notes += workload.notes
        for method, values in all_values(workload, args.quick).items():
            points = curves_of(workload, values, shares)
            curves += [{"workload": workload.title, "method": method, **point} for point in points]
            added = {p["share"]: 100 * p["accuracy"] for p in points if p["order"] == "add best first"}
            paper = PAPER.get((workload.name, method), (np.nan, np.nan))
            accuracies = {f"at {100 * share:.0f} %": added[share] for share in (0.05, 0.1, 0.2)}
            area = float(np.mean(list(added.values())))
            paper_columns = {"paper at 10 %": paper[0], "paper at 20 %": paper[1]}
            rows.append(
                {"workload": workload.title, "method": method, **accuracies, "mean of curve": area, **paper_columns}
            )
            print(rows[-1], file=sys.stderr)
    table = pd.DataFrame(rows)
    about = (
        "Accuracy (in per cent) on the test rows of models trained on the best-valued rows only. *mean of curve*: "
        f"mean accuracy over shares from {shares[0]:.1%} to {shares[-1]:.0%}. Global methods have the paper's number "
        f"of evaluations, or {LIMIT:.0f} seconds of them; LSMR-A is ours at a relative error of 0.1, Local-MC at 0.2. "
        "The CSV of curves also has removal, worst first and best first."
    )
    write(
        args, "rq2_selection", "RQ2: selecting rows by value", about,
        {"selection": table},
        findings(table) + notes, lambda figure: draw(figure, pd.DataFrame(curves)),
    )  # fmt: skip
    pd.DataFrame(curves).to_csv(args.out / "rq2_selection_curves.csv", index=False, float_format="%.6g")


def all_values(workload: Workload, quick: bool) -> dict[str, np.ndarray]:
    """Values by every method; the sampled ones on a budget of permutations of the paper's size."""
    n = 40 if quick else {"WKNN": PERMUTATIONS["WKNN"], "DT": 593, "SVM": 60, "GNN": 3}[workload.name]
    found = {}
    for name, settings in METHODS.items():
        settings = dict(settings)
        if name in ("global-mc", "tmc", "complementary"):
            settings |= {"budget": n * workload.n_rows + 2, "max_seconds": LIMIT}
        elif name == "local-mc":
            settings |= {"tol": 0.2, "max_seconds": LIMIT}
        found[name] = workload.value(**settings).values
    return found


def curves_of(workload: Workload, values: np.ndarray, shares: np.ndarray) -> list[dict[str, Any]]:
    """Accuracy by share of rows added, or removed."""
    order, n = np.argsort(-values, kind="stable"), len(values)
    points = []
    for share in shares:
        k = max(1, round(share * n))
        for name, rows in (
            ("add best first", order[:k]),
            ("remove worst first", order[: n - k]),
            ("remove best first", order[k:]),
        ):
            points.append({"order": name, "share": float(share), "accuracy": workload.accuracy(np.sort(rows))})
    return points


def findings(table: pd.DataFrame) -> list[str]:
    """Which method selects best, by workload."""
    points = []
    for title, part in table.groupby("workload", sort=False):
        best = part.sort_values("mean of curve", ascending=False)
        ours = part[part["method"] == "LSMR-A"]["mean of curve"].iloc[0]
        points.append(
            f"{title}: best mean accuracy by {best['method'].iloc[0]} ({best['mean of curve'].iloc[0]:.1f}), LSMR-A "
            f"has {ours:.1f}, random {part[part['method'] == 'random']['mean of curve'].iloc[0]:.1f}."
        )
    return points


def draw(figure: Any, curves: pd.DataFrame) -> None:
    """Accuracy against the share of rows, one panel for each workload."""
    titles = list(dict.fromkeys(curves["workload"]))
    figure.set_size_inches(9, 3 * -(-len(titles) // 2) + 0.5)
    for ax, title in zip(figure.subplots(-(-len(titles) // 2), 2).ravel(), titles, strict=False):
        part = curves[(curves["workload"] == title) & (curves["order"] == "add best first")]
        for method, line in part.groupby("method", sort=False):
            ax.plot(100 * line["share"], 100 * line["accuracy"], label=method, marker=".", linewidth=1)
        ax.set(title=title, xlabel="rows added, best first (%)", ylabel="accuracy (%)")
    figure.axes[0].legend(frameon=False, fontsize=8)


if __name__ == "__main__":
    main(sys.argv[1:])
