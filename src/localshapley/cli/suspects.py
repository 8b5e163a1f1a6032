"""`localshapley suspects`."""

from __future__ import annotations

from typing import Annotated

import typer

import localshapley as ls
from localshapley.cli.options import ListOut, RawCsv, Run, SavedValues, takes_groups
from localshapley.cli.output import Output, as_records, first_rows
from localshapley.cli.valuing import about, check_folder, end, guarded_in_words, saved_or_valued, whole_or_share
from localshapley.inputs.tables import write_table


@takes_groups
def suspects(
    run: Run,
    output: Output,
    n: Annotated[
        float | None,
        typer.Option(
            "-n", "--n", help="Rows to list, or a share such as 0.1 (default: all that do harm and are outvoted)."
        ),
    ] = None,
    values: SavedValues = None,
    out: ListOut = None,
    raw_csv: RawCsv = False,
) -> None:
    """List the rows that are probably mislabelled, with the neighbours that contradict them."""
    check_folder(out)
    data, valuation = saved_or_valued(run, values, output)
    found = ls.tasks.suspects(valuation, data.y, X=data.numbers, n=None if n is None else whole_or_share(n))
    written = ""
    if out is not None:
        rows = found.join(data.rows)
        rows = rows.assign(neighbours=[", ".join(map(str, near)) for near in rows["neighbours"]])
        written = guarded_in_words(write_table(rows, out, raw=raw_csv))
    text = [f"{len(found)} of {len(data.y)} rows are suspected of a wrong {run.target}" + (":" if len(found) else ".")]
    if len(found):
        text.append(first_rows(found, n is not None and n >= 1, f"-n {len(found)} shows all, "))
    elif n is None:
        text.append("No row both does harm and is outvoted by its neighbours; -n 20 lists the 20 most suspicious.")
    text += [f"note: {note}" for note in valuation.notes] + ([f"Wrote {out}{written}"] if out is not None else [])
    output.answer({**about(valuation, data), "suspects": as_records(found)}, "\n".join(text))
    end(valuation)
