"""`localshapley datasets`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import localshapley as ls
from localshapley.cli.options import takes_groups
from localshapley.cli.output import Output
from localshapley.errors import unknown_name
from localshapley.inputs.tables import write_table

BUNDLED = {
    "breast_cancer": "569 tumours, 30 measurements, benign or malignant",
    "diabetes": "442 patients, 10 measurements, progression (regression)",
    "digits": "1,797 images of 8 × 8 pixels, digits 0 to 9",
    "iris": "150 flowers, 4 measurements, 3 species",
    "wine": "178 wines, 13 measurements, 3 cultivars",
}
FROM_FILES = {
    "mnist": "70,000 images of 28 × 28 pixels, digits 0 to 9 (from files)",
    "adult": "48,842 people, 14 columns, income over 50K or not (from files)",
    "bank": "4,521 calls by a bank, 15 columns, offer taken or not (from files)",
    "cora": "2,708 papers that cite each other, 7 subjects (from files)",
    "citeseer": "3,327 papers that cite each other, 6 subjects (from files)",
    "pubmed": "19,717 papers that cite each other, 3 subjects (from files)",
}


@takes_groups
def datasets(
    output: Output,
    name: Annotated[str | None, typer.Argument(help="Data set to write as a table.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Table to write (default: NAME.csv).")] = None,
) -> None:
    """List the data sets that the package knows, or write one as a table to try things out on."""
    if name is None:
        text = [f"{key:<14} {about}" for key, about in {**BUNDLED, **FROM_FILES}.items()]
        text += ["", "localshapley datasets iris writes iris.csv; in Python: ls.datasets.load('iris')."]
        text += ["Those from files are looked for in the folder that LOCALSHAPLEY_DATA names."]
        output.answer({"bundled": BUNDLED, "from_files": FROM_FILES}, "\n".join(text))
        return
    if name not in BUNDLED:
        raise unknown_name("NAME", name, BUNDLED)
    path = out or Path(f"{name}.csv")
    n_rows = _write(name, path)
    output.answer(
        {"table": str(path), "rows": n_rows}, f"Wrote {path}: {n_rows:,} rows; use it with --target target --id id"
    )


def _write(name: str, path: Path) -> int:
    """Write a data set as one table, and return how many rows it has."""
    import numpy as np
    import pandas as pd

    data = ls.datasets.load(name)
    table = pd.DataFrame(np.vstack([data.X, data.X_test]), columns=data.feature_names).round(6)
    table["target"] = np.concatenate([data.y, data.y_test])
    write_table(table.rename_axis("id"), path)
    return len(table)
