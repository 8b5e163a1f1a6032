"""`localshapley demo`: flip some labels of a bundled data set and see where their values end up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import localshapley as ls
from localshapley.cli.options import WHOLE


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the table, the values and the report.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the split and of the flipped labels.", **WHOLE)] = 0,
) -> None:
    """Value the bundled Breast Cancer data, with some labels flipped on purpose, and write a report."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split
    from sklearn.neighbors import KNeighborsClassifier

    from localshapley.data.preparing import prepare

    data, names = load_breast_cancer(as_frame=True), np.array(["malignant", "benign"])
    rows, test_rows, y, y_test = train_test_split(
        data.data, names[data.target], test_size=0.3, random_state=seed, stratify=data.target
    )
    rows = rows.reset_index(drop=True)
    flipped = np.random.default_rng(seed).choice(len(y), size=len(y) // 20, replace=False)
    y[flipped] = np.where(y[flipped] == names[0], names[1], names[0])
    prepared = prepare(rows, test_rows)
    X, X_test = prepared.X, prepared.X_test
    model = KNeighborsClassifier(n_neighbors=3)

    typer.echo(f"Breast Cancer: {len(y)} training rows, {len(flipped)} of them with a flipped label.\n")
    plan = ls.plan(X, y, X_test, y_test, model=model)
    typer.echo(f"{plan}\n")
    valuation = ls.value(X, y, X_test, y_test, model=model)
    typer.echo(f"{valuation}\n")
    lowest = np.argsort(valuation.values)[: len(flipped)]
    typer.echo(
        f"Of the {len(flipped)} rows with the lowest values, {np.isin(lowest, flipped).sum()} have a flipped label."
    )

    out.mkdir(parents=True, exist_ok=True)
    table = rows.assign(diagnosis=y)
    table.insert(0, "label flipped", np.isin(np.arange(len(y)), flipped))
    table.to_csv(out / "table.csv", index=False)
    valuation.to_frame().to_csv(out / "values.csv")
    suspects = ls.audit.label_errors(X, y, values=valuation)
    ls.report.write_report(
        out / "report.html",
        valuation,
        rows,
        y=y,
        target="diagnosis",
        table=table,
        file="table.csv",
        levels=plan.levels,
        suspects=suspects,
        mending=ls.audit.worth_mending(X, y, X_test, y_test, model=model) if len(suspects.table) else None,
        copies=ls.audit.copies(X, y, X_test, y_test),
        title="Breast Cancer, 5 % of labels flipped",
    )
    typer.echo(f"Wrote {out / 'table.csv'}, {out / 'values.csv'} and {out / 'report.html'}.")
    typer.echo(
        "Decide on the suspects in the report and save decisions.csv; this makes the mended table:\n"
        f"  localshapley apply {out / 'table.csv'} decisions.csv --target diagnosis --out {out / 'mended.csv'}"
    )
