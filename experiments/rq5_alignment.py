"""RQ5 of the paper: supports of one model under another, and random ones.

python experiments/rq5_alignment.py            # under half an hour on two cores
python experiments/rq5_alignment.py --quick    # under two minutes
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import rbf_kernel

import localshapley as ls
from common import Workload, accuracy_at, arguments, fidelity, global_values, tree_supports, within, write
from graph import WORKLOADS

PAPER = {
    ("WKNN", "its own"): (0.839, 0.840, 70.4, 78.6),
    ("WKNN", "tree"): (0.713, 0.722, 66.7, 74.8),
    ("WKNN", "RBF kernel"): (0.596, 0.575, 68.0, 75.3),
    ("WKNN", "random"): (0.118, 0.120, 64.1, 68.0),
    ("GNN", "its own"): (0.516, 0.376, 78.6, 83.9),
    ("GNN", "tree"): (0.136, 0.139, 73.8, 76.5),
    ("GNN", "nearest"): (0.112, 0.113, 75.1, 79.3),
    ("GNN", "random"): (0.164, 0.188, 74.6, 79.6),
}
LIMIT = 60.0
"""Seconds on two cores whose trainings the values of one kind of support may take."""
SAMPLED = 80_000
"""Trainings of global values on a GPU."""
SHARES = {"WKNN": (0.1, 0.2), "GNN": (0.05, 0.1)}


def main(argv: list[str] | None = None) -> None:
    """Run, and write `rq5_alignment.csv`, `.md`, `.svg` and `.png`."""
    args = arguments(__doc__, argv, names=SHARES)
    rows, notes = [], []
    for name in args.names:
        workload = WORKLOADS[name](args.quick)
        limit = workload.limit(20 if args.quick else LIMIT)
        reference = reference_of(workload, args.quick)
        notes += workload.notes
        for support, local in local_values(workload, limit).items():
            pearson, spearman = fidelity(local.values, reference)
            paper = PAPER[name, support]
            low, high = SHARES[name]
            rows.append(
                {
                    "workload": workload.title,
                    "support": support,
                    "rows": float(local.support_sizes.mean()),
                    "pearson": pearson,
                    "spearman": spearman,
                    "low": 100 * accuracy_at(workload, local.values, low),
                    "high": 100 * accuracy_at(workload, local.values, high),
                    "paper pearson": paper[0],
                    "paper spearman": paper[1],
                    "paper low": paper[2],
                    "paper high": paper[3],
                }
            )
            print(rows[-1], file=sys.stderr)
    table = pd.DataFrame(rows)
    about = (
        "Local values with supports of another model, of the same mean size, against global values. Supports of the "
        "RBF kernel lie above one threshold, so that some test rows have none. *low* and *high*: accuracy (%) with the "
        "best 10 and 20 % of the rows (KNN), 5 and 10 % (GCN). Global values are those of [RQ1](rq1_fidelity.md), or, "
        f"on a GPU, of this library's sampler ({SAMPLED:,} trainings), since the paper's number of evaluations says "
        "little about them there."
    )
    shown = {"alignment": table.drop(columns=["spearman", "paper spearman"])}
    write(args, "rq5_alignment", "RQ5: supports of another model", about, {"alignment": table}, notes,
          lambda figure: draw(figure, table), shown=shown)  # fmt: skip


def reference_of(workload: Workload, quick: bool) -> np.ndarray:
    """Global values."""
    if workload.rates != "GNN, GPU":
        return global_values(workload, quick)
    return workload.value(support=ls.supports.Everything(), method="sample", budget=SAMPLED).values


def local_values(workload: Workload, limit: int) -> dict[str, ls.Valuation]:
    """Values with the model's own supports, with those of others cut to the same size, and with random ones."""
    settings = within(limit, 0.1)
    own = workload.value(**settings)
    size = max(2, round(float(own.support_sizes.mean())))
    if workload.name == "WKNN":
        X, y, X_test, _ = workload.data
        others = {
            "tree": tree_supports((X, y, X_test), size, size),
            "RBF kernel": rbf_supports(X, X_test, size),
        }
    else:
        _, features, y, train, test = workload.data[:5]
        X, X_test = (np.asarray(features[nodes].todense() if hasattr(features, "todense") else features[nodes])
                     for nodes in (train, test))  # fmt: skip
        nearest = np.argsort(pairwise_distances(X_test, X), axis=1, kind="stable")[:, :size]
        others = {"tree": tree_supports((X, y[train], X_test), size, size), "nearest": list(np.sort(nearest, axis=1))}
    found = {"its own": own}
    for name, supports in others.items():
        found[name] = workload.value(support=ls.supports.Given(supports), **settings)
    found["random"] = workload.value(support=ls.supports.Random(size), **settings)
    return found


def rbf_supports(X: np.ndarray, X_test: np.ndarray, size: int) -> list[np.ndarray]:
    """Rows above the kernel that makes supports of the mean size, the same for every test row; the nearest of many."""
    gamma = 1 / (X.shape[1] * X.var())
    kernel = rbf_kernel(X_test, X, gamma=gamma)
    threshold = np.sort(kernel.ravel())[-size * len(X_test)]
    nearest = np.argsort(-kernel, axis=1, kind="stable")[:, : 4 * size]
    return [np.sort(near[row[near] >= threshold]) for near, row in zip(nearest, kernel, strict=True)]


def draw(figure: Any, table: pd.DataFrame) -> None:
    """Correlations, ours beside the paper's."""
    ax = figure.subplots()
    place = np.arange(len(table))
    ax.bar(place - 0.2, table["pearson"], 0.4, label="ours")
    ax.bar(place + 0.2, table["paper pearson"], 0.4, label="paper")
    ax.set_xticks(place, [f"{row.workload.split(',')[0]}\n{row.support}" for row in table.itertuples()], fontsize=8)
    ax.set(ylabel="Pearson's correlation with global values")
    ax.legend(frameon=False)


if __name__ == "__main__":
    main(sys.argv[1:])
