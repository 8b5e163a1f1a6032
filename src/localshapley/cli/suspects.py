"""`localshapley suspects`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import localshapley as ls
from localshapley.cli.checking import checked, find_label_errors, shown_rows
from localshapley.cli.files import Writing, check_run
from localshapley.cli.options import OUTPUT, ROWS, Check, ListOut, RawCsv, RunOptions, SavedValues, option, takes_groups
from localshapley.cli.output import SHOWN, Output, as_records, first_rows
from localshapley.cli.valuing import about, end, guarded_in_words, loaded, refuse_owners, saved_or_valued
from localshapley.io.tables import OF_TABLE, write_table

if TYPE_CHECKING:
    import pandas as pd

    from localshapley.audit import Verdict
    from localshapley.cli.data import InputTable


@takes_groups
def suspects(
    run: RunOptions,
    output: Output,
    n: Annotated[
        float | None,
        typer.Option(
            "-n",
            "--n",
            help="Rows to list, or a share such as 0.1 (default: all that are more probably wrong than right).",
            **ROWS,
        ),
    ] = None,
    values: SavedValues = None,
    out: ListOut = None,
    report: Annotated[
        Path | None, option("Report to write, with a place to decide on each row and mend the table: .html.", OUTPUT)
    ] = None,
    raw_csv: RawCsv = False,
    check: Check = None,
    errors: Annotated[
        str,
        typer.Option(
            help="Used only if the table is too small for the label-noise models (fewer than 20 rows, or no two "
            "classes of 5), so that --values decide: count all their errors (all), or those of the draws alone (draws)."
        ),
    ] = "all",
) -> None:
    """List the rows that are probably mislabelled, with the neighbours that contradict them."""
    from localshapley.data.columns import count_of  # heavy
    from localshapley.valuation.intervals import check_errors

    check_run(run, out=out, report=report, values=values)
    check_errors(errors)
    valuation: ls.Valuation | None = None
    if values is not None or report is not None:  # which shows values
        data, valuation = saved_or_valued(run, values, output, n)
    else:
        refuse_owners(run)
        data = loaded(run, output)
        _ = n is None or count_of(n, len(data.y))
    found = find_label_errors(data, valuation, n, errors)
    table, verdict = found.table, found.verdict
    writing, guarded = Writing(), ""
    if out is not None:
        with writing.to(out):
            guarded = guarded_in_words(write_table(_with_columns(table, data), out, raw=raw_csv))
    text = [verdict.number] if verdict.number else []
    if n is None:
        which = ", each more probably wrong than right (-n lists more)"
        text.append(f"{len(table):,} of {len(data.y):,} rows are suspected of a wrong {run.target}{which}")
    else:
        text.append(f"listed: the {len(table):,} most suspicious of {len(data.y):,} rows")
    text += [f"by class: {verdict.classes}"] if verdict.classes else []
    text += [f"held out: {verdict.skill}"] if verdict.skill is not None else []
    text += [f"caution: {caution}" for caution in verdict.cautions]
    lines, more, parts = checked(run, data, valuation, found, output, n=n, check=check, saved=values is not None)
    text += lines
    if report is not None and valuation is not None:
        with writing.to(report):
            _write_report(report, run, data, valuation, suspects=found, **parts)
    if len(table):
        text += ["", first_rows(table, isinstance(n, int), f"-n {len(table)} shows all, ", data.table.index), ""]
    elif n is None:
        most = min(SHOWN, len(data.y))
        text.append(f"No label is more probably wrong than right; -n {most} lists the {most} most suspicious.")
    text += [f"note: {note}" for note in ([] if valuation is None else valuation.notes)]
    text += [f"Wrote {out}{guarded}"] if writing.wrote(out) else []
    if writing.wrote(report):
        text.append(f"Wrote {report}" + (": open it in a browser to decide on these rows" if len(table) else ""))
    rows = {"n_rows": len(data.y), "preparation": data.preparation}
    of_values = rows if valuation is None else about(valuation, data.preparation)
    document = {**of_values, **as_document(verdict), **more, "suspects": as_records(table)}
    output.answer(document, "\n".join(text).rstrip())
    writing.end()
    if valuation is not None:
        end(valuation)


def _with_columns(found: pd.DataFrame, data: InputTable) -> pd.DataFrame:
    """The suspects beside the columns of the table, of which those that are named as ours are renamed."""
    import pandas as pd

    ours = {found.index.name, *found.columns}
    rows = data.rows.loc[found.index].rename(columns=lambda name: f"{name}{OF_TABLE}" if name in ours else name)
    beside = found.assign(neighbours=[", ".join(map(str, near)) for near in found["neighbours"]])
    return pd.concat([beside, rows], axis=1)


def _write_report(path: Path, run: RunOptions, data: InputTable, valuation: ls.Valuation, **parts: Any) -> None:
    ls.report.write_report(
        path,
        valuation,
        **shown_rows(run, data),
        **parts,
        levels=valuation.levels,
        preparation=data.preparation,
        target=run.target,
        title=f"Rows of {run.train.name} whose {run.target} may be wrong",
    )


def as_document(verdict: Verdict) -> dict[str, Any]:
    """A verdict for a document."""
    return {
        "n_suspects": verdict.n_suspects,
        "n_wrong": None
        if verdict.n_wrong is None
        else dict(zip(("about", "low", "high"), verdict.n_wrong, strict=True)),
        "by_class": None if verdict.by_class is None else as_records(verdict.by_class),
        "harm": verdict.harm,
        "harm_stderr": verdict.harm_stderr,
        "cautions": verdict.cautions,
    }
