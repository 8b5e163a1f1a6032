"""A first look: flip some labels of a bundled data set and see where their values end up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd


def run_demo(out: Path, seed: int, say: Callable[[str], None]) -> None:
    """Value Breast Cancer with one label in twenty flipped; write `values.csv` and `report.html` to `out`."""
    from sklearn.neighbors import KNeighborsClassifier

    import localshapley as ls
    from localshapley.report import write_report

    data = ls.datasets.load("breast_cancer", seed=seed)
    flipped = np.random.default_rng(seed).choice(len(data.y), size=len(data.y) // 20, replace=False)
    y = data.y.copy()
    y[flipped] = 1 - y[flipped]
    model = KNeighborsClassifier(n_neighbors=3)

    say(f"Breast Cancer: {len(y)} training rows, {len(flipped)} of them with a flipped label.\n")
    plan = ls.plan(data.X, y, data.X_test, data.y_test, model=model)
    say(f"{plan}\n")
    valuation = ls.value(data.X, y, data.X_test, data.y_test, model=model)
    say(f"{valuation}\n")
    lowest = np.argsort(valuation.values)[: len(flipped)]
    say(f"Of the {len(flipped)} rows of lowest value {np.isin(lowest, flipped).sum()} have a flipped label.")

    out.mkdir(parents=True, exist_ok=True)
    rows = pd.DataFrame(data.X, columns=data.feature_names).round(2)
    rows.insert(0, "label flipped", np.isin(np.arange(len(y)), flipped))
    valuation.to_frame().to_csv(out / "values.csv")
    write_report(
        out / "report.html",
        valuation,
        rows,
        y=np.array(["malignant", "benign"])[y],
        levels=plan.levels,
        title="Breast Cancer, 5 % of labels flipped",
    )
    say(f"Wrote {out / 'values.csv'} and {out / 'report.html'}.")
