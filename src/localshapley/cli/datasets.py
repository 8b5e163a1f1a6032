"""`localshapley datasets`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import localshapley as ls
from localshapley.cli.files import check_folder, naming
from localshapley.cli.options import takes_groups
from localshapley.cli.output import Output
from localshapley.errors import unknown_name
from localshapley.io.tables import write_table


@takes_groups
def datasets(
    output: Output,
    name: Annotated[str | None, typer.Argument(help="Data set to write as a table.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Table to write (default: NAME.csv).")] = None,
) -> None:
    """List the data sets that the package knows, or write one as a table to try things out on."""
    bundled, from_files = ls.datasets.BUNDLED, ls.datasets.FROM_FILES
    if name is None:
        text = [f"{key:<14} {about}" for key, about in bundled.items()]
        text += [f"{key:<14} {about} (from files)" for key, about in from_files.items()]
        text += ["", "localshapley datasets iris writes iris.csv; in Python: ls.datasets.load('iris')."]
        text += ["Those from files are looked for in the folder that LOCALSHAPLEY_DATA names."]
        output.answer({"bundled": bundled, "from_files": from_files}, "\n".join(text))
        return
    if name not in bundled:
        raise unknown_name("NAME", name, bundled)
    path = out or Path(f"{name}.csv")
    check_folder(path)
    with naming(path):
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
