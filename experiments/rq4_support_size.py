"""RQ4 of the paper: supports of 1 to 40 rows, weighted KNN on MNIST.

python experiments/rq4_support_size.py            # a few minutes on two cores
python experiments/rq4_support_size.py --quick    # under two minutes
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd

import localshapley as ls
from common import accuracy_at, arguments, fidelity, timed, wknn, write

PAPER = {
    1: (0.443, 0.460, 68.3, 74.7),
    3: (0.619, 0.613, 71.7, 76.5),
    5: (0.721, 0.717, 70.5, 76.9),
    10: (0.839, 0.840, 70.4, 78.6),
    20: (0.901, 0.898, 70.5, 77.2),
}


def main(argv: list[str] | None = None) -> None:
    """Run, and write `rq4_support_size.csv`, `.md`, `.svg` and `.png`."""
    args = arguments(__doc__, argv)
    workload = wknn(args.quick)
    n_permutations = 100 if args.quick else workload.permutations()
    few, budget = ({"budget": n * workload.n_rows + 2} for n in (2, n_permutations))
    seconds, reference = timed(workload.value, few, method="global-mc", **budget)
    rows = [row("global", reference, reference, workload, seconds)]
    for size in (1, 3, 5, 10, 20, 40):
        seconds, local = timed(workload.value, {}, support=ls.supports.Nearest(size))
        rows.append(row(size, local, reference, workload, seconds))
        print(rows[-1], file=sys.stderr)
    table = pd.DataFrame(rows)
    others = pd.DataFrame(other_settings(workload, 100 if args.quick else 1000, args.quick))
    about = (
        f"Exact local values of {workload.title} by size of the support, against global ones from {n_permutations:,} "
        f"permutations ({reference.cost.draws:,} evaluations; the paper has 1,126 million). *at 10 %*, *at 20 %*: "
        "accuracy of a model trained on the best-valued rows."
    )
    exact = table[table["support"] != "global"]
    points = [
        "Local values are exact and need no training: coalitions of a support with equal scores are counted.",
        "The paper's numbers come out with pixels and confidence. Accuracy is noisier, and locality is weaker under "
        "it; an encoder that tells nearly all digits apart leaves little that depends on the neighbours.",
    ]
    tables = {"sizes": table, "settings": others}
    title = "RQ4: how large a support must be"
    shown = tables | {"sizes": table.drop(columns=["spearman", "seconds", "stderr", "paper spearman"])}
    write(args, "rq4_support_size", title, about, tables, points, lambda figure: draw(figure, exact), shown=shown)


def other_settings(workload: Any, n_permutations: int, quick: bool) -> list[dict[str, Any]]:
    """Correlation at a support of 10 with other features and another score."""
    features = {"pixels": workload.data}
    if not quick:
        encoded = ls.datasets.mnist_features()
        features[f"an encoder's ({encoded.accuracy:.0%} accuracy)"] = encoded.data[:4]
    rows = []
    for name, data in features.items():
        for score in ("confidence", "accuracy"):
            settings = {"model": workload.model, "score": score, "progress": False}
            reference = ls.value(*data, method="global-mc", budget=n_permutations * workload.n_rows + 2, **settings)
            local = ls.value(*data, support=ls.supports.Nearest(10), **settings)
            pearson, spearman = fidelity(local.values, reference.values)
            line = {"features": name, "score": score, "pearson": pearson, "spearman": spearman}
            rows.append({**line, "error of the global values": reference.relative_error})
    return rows


def row(size: Any, v: ls.Valuation, reference: ls.Valuation, workload: Any, seconds: float) -> dict[str, Any]:
    """One line of the table, with the paper's numbers."""
    pearson, spearman = fidelity(v.values, reference.values) if size != "global" else (np.nan, np.nan)
    paper = PAPER.get(size, (np.nan, np.nan, 60.0, 68.9) if size == "global" else (np.nan,) * 4)
    return {
        "support": size,
        "pearson": pearson,
        "spearman": spearman,
        "at 10 %": 100 * accuracy_at(workload, v.values, 0.1),
        "at 20 %": 100 * accuracy_at(workload, v.values, 0.2),
        "seconds": seconds,
        "stderr": v.relative_error,
        "paper pearson": paper[0],
        "paper spearman": paper[1],
        "paper at 10 %": paper[2],
        "paper at 20 %": paper[3],
    }


def draw(figure: Any, table: pd.DataFrame) -> None:
    """Correlation by size, ours and the paper's."""
    ax = figure.subplots()
    for name in ("pearson", "spearman"):
        ax.plot(table["support"], table[name], marker="o", label=f"{name}, ours")
        ax.plot(table["support"], table[f"paper {name}"], marker="x", linestyle="--", label=f"{name}, paper")
    ax.set(xlabel="rows in a support", ylabel="correlation with global values", ylim=(0, 1))
    ax.legend(frameon=False)


if __name__ == "__main__":
    main(sys.argv[1:])
