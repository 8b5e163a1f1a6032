"""`localshapley select`."""

from __future__ import annotations

from typing import Annotated

import typer

import localshapley as ls
from localshapley.cli.options import ListOut, RawCsv, Run, SavedValues, takes_groups
from localshapley.cli.output import Output, as_records, first_rows
from localshapley.cli.valuing import about, check_folder, end, guarded_in_words, saved_or_valued, whole_or_share
from localshapley.inputs.tables import write_table


@takes_groups
def select(
    run: Run,
    output: Output,
    n: Annotated[float, typer.Option("-n", "--n", help="Rows to choose, or a share such as 0.2.", show_default=False)],
    balance: Annotated[
        str | None, typer.Option(help="Keep the shares of the classes (classes), or make them equal (equal).")
    ] = None,
    values: SavedValues = None,
    out: ListOut = None,
    raw_csv: RawCsv = False,
) -> None:
    """Choose the best rows."""
    check_folder(out)
    data, valuation = saved_or_valued(run, values, output)
    labels = None if data.regression else data.y
    chosen = ls.tasks.select(valuation, whole_or_share(n), y=labels, balance=balance)
    text = [
        f"The {len(chosen)} best of {len(data.y)} rows:",
        first_rows(chosen, n >= 1, f"-n {len(chosen)} shows all, "),
    ]
    if out is not None:
        rows = data.rows.copy()
        rows[run.target] = data.y
        guarded = write_table(rows.loc[chosen.index], out, raw=raw_csv)
        text.append(f"Wrote these rows to {out}{guarded_in_words(guarded)}")
    output.answer({**about(valuation, data), "selected": as_records(chosen)}, "\n".join(text))
    end(valuation)
