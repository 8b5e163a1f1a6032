"""`localshapley demo`: flip some labels of a bundled data set and see where their values end up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import localshapley as ls


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the values and the report.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the split and of the flipped labels.")] = 0,
) -> None:
    """Value the bundled Breast Cancer data, with some labels flipped on purpose, and write a report."""
    import numpy as np
    import pandas as pd
    from sklearn.neighbors import KNeighborsClassifier

    data, names = ls.datasets.load("breast_cancer", seed=seed), np.array(["malignant", "benign"])
    flipped = np.random.default_rng(seed).choice(len(data.y), size=len(data.y) // 20, replace=False)
    y, y_test = names[data.y], names[data.y_test]
    y[flipped] = names[1 - data.y[flipped]]
    model = KNeighborsClassifier(n_neighbors=3)

    typer.echo(f"Breast Cancer: {len(y)} training rows, {len(flipped)} of them with a flipped label.\n")
    plan = ls.plan(data.X, y, data.X_test, y_test, model=model)
    typer.echo(f"{plan}\n")
    valuation = ls.value(data.X, y, data.X_test, y_test, model=model)
    typer.echo(f"{valuation}\n")
    lowest = np.argsort(valuation.values)[: len(flipped)]
    typer.echo(
        f"Of the {len(flipped)} rows with the lowest values, {np.isin(lowest, flipped).sum()} have a flipped label."
    )

    out.mkdir(parents=True, exist_ok=True)
    rows = pd.DataFrame(data.X, columns=data.feature_names).round(2)
    rows.insert(0, "label flipped", np.isin(np.arange(len(y)), flipped))
    valuation.to_frame().to_csv(out / "values.csv")
    suspects = ls.tasks.suspects(valuation, y, X=data.X)
    ls.report.write_report(
        out / "report.html",
        valuation,
        rows,
        y=y,
        target="diagnosis",
        levels=plan.levels,
        suspects=suspects,
        mending=ls.tasks.worth_mending(data.X, y, data.X_test, y_test, model=model) if len(suspects) else None,
        copies=ls.tasks.copies(data.X, y, data.X_test, y_test),
        title="Breast Cancer, 5 % of labels flipped",
    )
    typer.echo(f"Wrote {out / 'values.csv'} and {out / 'report.html'}.")
