"""RQ1 of the paper: how near local values are to global ones.

Global values come from permutations of all rows, as many as the paper's trainings make; two halves of them tell how
well they are known themselves, which bounds any correlation with them.

    python experiments/rq1_fidelity.py            # under half an hour on two cores
    python experiments/rq1_fidelity.py --quick    # under two minutes
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from common import PAPER_FIDELITY, Workload, arguments, fidelity, global_halves, panels, timed, within, write
from graph import WORKLOADS

COLUMNS = ["pearson", "spearman", "ceiling", "paper pearson", "paper spearman", "evaluations", "local seconds"]
LIMIT = 120.0
"""Seconds on two cores whose trainings local values may take."""


def main(argv: list[str] | None = None) -> None:
    """Run, and write `rq1_fidelity.csv`, `.md`, `.svg` and `.png`."""
    args = arguments(__doc__, argv, names=WORKLOADS)
    rows: list[dict[str, Any]] = []
    pairs: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    notes: list[str] = []
    for name in args.names:
        workload = WORKLOADS[name](args.quick)
        for row, local, reference in measure(workload, args.quick):
            rows.append(row)
            pairs[row["workload"]] = (local, reference)
            print(row, file=sys.stderr)
        notes += workload.notes + workload.about_variants
    table = pd.DataFrame(rows)
    about = (
        "How local values correlate with global ones. *ceiling*: what the true global values would correlate with "
        "these, estimated from two halves of the permutations (the root of Spearman–Brown); no method can be expected "
        "to do better. *evaluations*: scores of the global reference, one per coalition and test row, which the paper "
        "counts as trainings. For trees and SVM the paper has pictures only."
    )
    shown = table[["workload", *COLUMNS]]
    write(args, "rq1_fidelity", "RQ1: local against global values", about, {"fidelity": table}, notes,
          lambda figure: draw(figure, pairs), shown={"fidelity": shown})  # fmt: skip


def measure(workload: Workload, quick: bool) -> Iterator[tuple[dict[str, Any], np.ndarray, np.ndarray]]:
    """Local and global values of one workload, and of its variants."""
    halves = global_halves(workload, quick)
    reference = np.mean([half["values"] for half in halves], axis=0)
    between = fidelity(*(np.array(half["values"]) for half in halves))[0]
    paper = PAPER_FIDELITY.get(workload.name, (np.nan, np.nan))
    for name, settings in {"": {}, **workload.variants}.items():
        limit = workload.limit(30 if quick else LIMIT)
        seconds, local = timed(workload.value, within(limit // 100, 0.05), **within(limit, 0.05), **settings)
        pearson, spearman = fidelity(local.values, reference)
        row = {
            "workload": workload.title + (f": {name}" if name else ""),
            "pearson": pearson,
            "spearman": spearman,
            "paper pearson": paper[0],
            "paper spearman": paper[1],
            "ceiling": float(np.sqrt(max(2 * between / (1 + between), 0))),
            "evaluations": sum(half["evaluations"] for half in halves),
            "local trainings": local.cost.trainings,
            "local error": local.relative_error,
            "local seconds": seconds,
            "global seconds": sum(half["seconds"] for half in halves),
        }
        yield row, local.values, reference


def draw(figure: Any, pairs: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    """A scatter with its fit for each workload."""
    figure.set_size_inches(9, 2.6 * -(-len(pairs) // 2) + 1)
    for ax, (title, (local, reference)) in zip(panels(figure, len(pairs)), pairs.items(), strict=True):
        ax.scatter(reference, local, s=8, alpha=0.5, linewidths=0)
        slope, height = np.polyfit(reference, local, 1)
        ends = np.array([reference.min(), reference.max()])
        ax.plot(ends, slope * ends + height, color="#D55E00")
        ax.set(title=title, xlabel="global value", ylabel="local value")


if __name__ == "__main__":
    main(sys.argv[1:])
