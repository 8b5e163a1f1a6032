"""RQ2 of the paper: accuracy as rows are added best first, and removed worst or best first, by every method.

python experiments/rq2_selection.py            # about a quarter of an hour on two cores
python experiments/rq2_selection.py --quick    # under two minutes
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import localshapley as ls
from common import Workload, arguments, best_valued, panels, within, write
from graph import WORKLOADS

METHODS = {
    "LSMR-A": {},
    "local-mc": {"method": "local-mc"},
    "global-mc": {"method": "global-mc"},
    "tmc": {"method": "tmc"},
    "complementary": {"method": "complementary"},
    "loo": {"method": "loo"},
    "random": {"method": "random"},
}
BALANCED = ("LSMR-A", "global-mc")
"""Methods whose rows are also chosen with the classes in the shares that the data have."""
ADD, WORST, BEST = "add best first", "remove worst first", "remove best first"
SPLITS = {"WKNN": 3, "DT": 10, "SVM": 3, "GNN": 1}
"""Seeds of the split: small data sets need many."""
LIMIT = 10.0
"""Seconds on two cores whose trainings a sampled method may take."""
PAPER = {("WKNN", "LSMR-A"): (70.4, 78.6), ("WKNN", "global-mc"): (60.0, 68.9)}  # at 10 and 20 %


def main(argv: list[str] | None = None) -> None:
    """Run, and write `rq2_selection.csv` (accuracies at 5, 10 and 20 %), `rq2_selection_curves.csv` and figures."""
    args = arguments(__doc__, argv, names=WORKLOADS)
    shares = np.array([0.05, 0.1, 0.2]) if args.quick else np.array([*np.arange(0.025, 0.31, 0.025), 0.5])
    found, notes = [], []
    for name in args.names:
        splits = [WORKLOADS[name](args.quick, seed) for seed in range(1 if args.quick else SPLITS[name])]
        notes += splits[0].notes + splits[0].about_variants + splits[0].about_left_out
        for split, workload in enumerate(splits):
            for method, v in all_values(workload, args.quick).items():
                for balance in (None, "classes") if method in BALANCED else (None,):
                    label = f"{method}, balanced" if balance else method
                    about = {"workload": workload.title, "name": name, "method": label, "split": split}
                    found += [{**about, **point} for point in curves_of(workload, v, balance, shares)]
                    print(about, file=sys.stderr)
    table, curves = tables(pd.DataFrame(found))
    splits = ", ".join(f"{name} {n}" for name, n in SPLITS.items()) if not args.quick else "one"
    about = (
        "Test accuracy (%) of models trained on the best-valued rows alone, mean over splits of the data "
        f"({splits}) and over shares from {shares[0]:.1%} to {shares[-1]:.0%}, ± its standard error. *balanced*: the "
        "best of each class in its share (`tasks.select(..., balance='classes')`). Global methods have the paper's "
        "number of evaluations, local ones run to a relative error of 0.1; all stop after the trainings of about "
        f"{LIMIT:g} seconds on two cores. The second picture has the accuracy as rows are removed."
    )
    write(
        args, "rq2_selection", "RQ2: selecting rows by value", about, {"selection": table}, findings(table) + notes,
        lambda figure: draw(figure, curves, (ADD,)),
        {"removal": lambda figure: draw(figure, curves, (WORST, BEST))}, shown={"added": wide(table)},
    )  # fmt: skip
    curves.to_csv(args.out / "rq2_selection_curves.csv", index=False, float_format="%.6g")


def all_values(workload: Workload, quick: bool) -> dict[str, ls.Valuation]:
    """Values by every method; the global ones with the paper's number of evaluations."""
    budget = (20 if quick else workload.permutations()) * workload.n_rows + 2
    found = {}
    for name, settings in {**METHODS, **workload.variants}.items():
        if name in workload.left_out:
            continue
        if name in ("global-mc", "tmc", "complementary"):
            limit = max(workload.limit(20 if quick else LIMIT, name), 2 * workload.n_rows + 2)
            settings = {"budget": min(budget, limit), **settings}
        elif name not in ("loo", "random"):
            limit = workload.limit(20 if quick else LIMIT, name)
            settings = {**within(limit, 0.1), **settings}
        found[name] = workload.value(**settings)
    return found


def curves_of(workload: Workload, v: ls.Valuation, balance: str | None, shares: np.ndarray) -> list[dict[str, Any]]:
    """Accuracy by share of rows added, or removed."""
    best = partial(best_valued, workload, v, balance=balance)
    everyone, orders = np.arange(workload.n_rows), {}
    for share in shares:
        k = max(1, round(share * workload.n_rows))
        orders[ADD, share] = best(k)
        orders[WORST, share] = best(workload.n_rows - k)
        orders[BEST, share] = np.setdiff1d(everyone, orders[ADD, share])
    found = workload.accuracies(list(orders.values()))
    return [
        {"order": name, "share": float(share), "accuracy": 100 * accuracy}
        for (name, share), accuracy in zip(orders, found, strict=True)
    ]


def tables(found: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One line for each workload and method; and the curves, means over the splits."""
    keys = ["workload", "name", "method"]
    curves = found.groupby([*keys, "order", "share"], sort=False)["accuracy"].mean().reset_index()
    areas = found.groupby([*keys, "order", "split"], sort=False)["accuracy"].mean()
    rows = []
    for (title, name, method), part in curves.groupby(keys, sort=False):
        of = {order: areas[title, name, method, order] for order in (ADD, WORST, BEST)}
        added = part[part["order"] == ADD].set_index("share")["accuracy"]
        paper = PAPER.get((name, method), (np.nan, np.nan))
        rows.append(
            {
                "workload": title,
                "method": method,
                **{f"at {100 * share:.0f} %": added[share] for share in (0.05, 0.1, 0.2)},
                "mean of curve": of[ADD].mean(),
                "±": of[ADD].std() / np.sqrt(len(of[ADD])),
                "worst gone": of[WORST].mean(),
                "best gone": of[BEST].mean(),
                "paper at 10 %": paper[0],
                "paper at 20 %": paper[1],
            }
        )
    return pd.DataFrame(rows), curves.drop(columns="name")


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy as rows are added: one line for each method, one column for each workload."""
    error = table["±"].map(" ± {:.1f}".format).where(table["±"].notna(), "")
    lines = table[["workload", "method"]].assign(accuracy=table["mean of curve"].map("{:.1f}".format) + error)
    return (
        lines.pivot(index="method", columns="workload", values="accuracy")
        .reindex(index=lines["method"].unique(), columns=lines["workload"].unique())
        .fillna("")
        .reset_index()
    )


def findings(table: pd.DataFrame) -> list[str]:
    """The paper's numbers beside ours."""
    points = []
    for row in table.dropna(subset="paper at 10 %").to_dict("records"):
        ours, paper = ([row[f"{whose}at {share} %"] for share in (10, 20)] for whose in ("", "paper "))
        points.append(
            f"{row['workload']}, {row['method']}: {ours[0]:.1f} and {ours[1]:.1f} with the best 10 and 20 % (paper "
            f"{paper[0]:.1f} and {paper[1]:.1f})."
        )
    return points


def draw(figure: Any, curves: pd.DataFrame, orders: tuple[str, ...]) -> None:
    """Accuracy against the share of rows, one panel for each workload and order."""
    shown = [(title, order) for title in dict.fromkeys(curves["workload"]) for order in orders]
    figure.set_size_inches(9, 3 * -(-len(shown) // 2) + 0.5)
    axes = panels(figure, len(shown))
    for ax, (title, order) in zip(axes, shown, strict=True):
        part = curves[(curves["workload"] == title) & (curves["order"] == order)]
        for method, line in part.groupby("method", sort=False):
            width = 2 if method == "LSMR-A" else 1
            ax.plot(100 * line["share"], line["accuracy"], label=method, marker=".", linewidth=width)
        what = order.replace("add", "added,").replace("remove", "removed,")
        ax.set(title=title, xlabel=f"rows {what} (%)", ylabel="accuracy (%)")
    handles, labels = axes[-1].get_legend_handles_labels()  # the last workload may have one method more
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)


if __name__ == "__main__":
    main(sys.argv[1:])
