"""`localshapley value`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import localshapley as ls
from localshapley.cli.checking import find_copies, find_label_errors, lines_on_copies, of_run, shown_rows, worth
from localshapley.cli.data import InputTable
from localshapley.cli.files import Writing, check_run
from localshapley.cli.folder import arguments_of_folder
from localshapley.cli.options import OUTPUT, RawCsv, RunOptions, option, takes_groups
from localshapley.cli.output import Output, as_records, first_rows, table_text
from localshapley.cli.report import check_shape, find_shape
from localshapley.cli.valuing import about, by_command, end, guarded_in_words, problem, telling_what_is_kept, valued
from localshapley.errors import InvalidArgumentError
from localshapley.io.tables import write_table
from localshapley.notes import Note

if TYPE_CHECKING:
    import pandas as pd

    from localshapley.audit import LabelErrors, Mending
    from localshapley.tasks import Curves

CURVE_ROWS = 2000
"""Selection curves are drawn by default for tables of up to this many training rows."""


@dataclass(kw_only=True)
class Files:
    """Where a valuation goes."""

    out: Annotated[
        Path | None,
        option("Values to write: .parquet (keeps everything), .csv, .tsv or .feather.", OUTPUT, "--out", "-o"),
    ] = None
    raw_csv: RawCsv = False
    report: Annotated[Path | None, option("Report to write: .html.", OUTPUT)] = None
    title: Annotated[str | None, option("Title of the report.", OUTPUT)] = None
    image_shape: Annotated[str | None, option("Show rows as images in the report, such as 28x28.", OUTPUT)] = None
    curves: Annotated[
        bool | None,
        option(
            "Selection curves, and what mending suspects would bring, in the report (default: for up to 2,000 rows).",
            OUTPUT,
            "--curves/--no-curves",
        ),
    ] = None
    check_locality: Annotated[
        bool, option("Locality check in the report; takes up to 20,000 trainings.", OUTPUT, "--check-locality")
    ] = False


@takes_groups
def value(run: RunOptions, files: Files, output: Output) -> None:
    """Value every row of a table by what it contributes to a model's predictions."""
    _check(run, files)
    if run.train.is_dir():
        _value_folder(run, files, output)
        return
    shape = find_shape(files.image_shape)
    data, valuation = valued(run, output, lambda data: check_shape(shape, data.rows, run.train))
    owners = None if data.owner is None else _owners(valuation, data.owner)
    rows, found = _labelled(valuation, data, owners), list[str]()
    writing = Writing()
    guarded = _write_values(files, rows, valuation, writing)
    if files.report is not None:
        with writing.to(files.report):
            found = _write_report(run, files, data, valuation, owners, output)
    written = _written(files, writing)
    document = {**about(valuation, data.preparation), "files": written, "rows": as_records(rows)}
    text = _in_words(valuation, rows, data.preparation, data.table.index)
    if owners is not None:
        document["owners"] = as_records(owners)
        text += ["", "Owners", first_rows(owners, whole=False)]
    text += ["", *found, *(f"Wrote {path}{guarded if what == 'values' else ''}" for what, path in written.items())]
    output.answer(document, "\n".join(text).rstrip())
    writing.end()
    end(valuation)


def _value_folder(run: RunOptions, files: Files, output: Output) -> None:
    """Value the rows of all files in a folder, which need not fit into memory."""
    if files.report is not None:
        raise InvalidArgumentError(f"--report needs the table itself, but {run.train} is a folder; leave it out.")
    given, steps = arguments_of_folder(run, output)
    with telling_what_is_kept(run, output):
        valuation = by_command(ls.value(**given, on_interrupt="return"))
    rows, writing = valuation.to_frame(), Writing()
    guarded = _write_values(files, rows, valuation, writing)
    written = _written(files, writing)
    n_all = valuation.among or len(valuation.values)
    document = {**about(valuation, steps), "n_all": n_all, "files": written, "rows": as_records(rows)}
    text = [*_in_words(valuation, rows, steps), "", *(f"Wrote {path}{guarded}" for path in written.values())]
    output.answer(document, "\n".join(text).rstrip())
    writing.end()
    end(valuation)


def _write_values(files: Files, rows: pd.DataFrame, valuation: ls.Valuation, writing: Writing) -> str:
    """Write the values, if they are asked for; returns which cells were guarded, in words."""
    guarded = ""
    if files.out is not None:
        with writing.to(files.out):
            if files.out.suffix == ".parquet":
                valuation.save(files.out)
            else:
                guarded = guarded_in_words(write_table(rows, files.out, raw=files.raw_csv))
    return guarded


def _written(files: Files, writing: Writing) -> dict[str, str]:
    """The files that are there now, by what they hold."""
    asked = {"values": files.out, "report": files.report}
    return {what: str(path) for what, path in asked.items() if writing.wrote(path)}


def _in_words(
    valuation: ls.Valuation, rows: pd.DataFrame, preparation: list[Note], names: pd.Index | None = None
) -> list[str]:
    """The valuation, how columns were prepared, and the best and the worst rows."""
    text = [repr(valuation), "", *(f"  prepared {line}" for line in preparation)]
    if valuation.unit == "owner":  # who are listed below
        return text
    text += ["", "Best", table_text(rows, valuation.top(5).index, names=names)]
    return [*text, "", "Worst", table_text(rows, valuation.bottom(5).index, names=names)]


def _check(run: RunOptions, files: Files) -> None:
    """Refuse what cannot be written, or shown, before anything is trained."""
    check_run(run, out=files.out, report=files.report)
    find_shape(files.image_shape)
    if files.curves and run.test is None and run.test_size is None:
        raise InvalidArgumentError("--curves needs test rows: --test or --test-size.")


def _owners(valuation: ls.Valuation, owner: pd.Series) -> pd.DataFrame:
    """What each owner is worth, as a whole or by the sum of its rows."""
    if valuation.unit != "owner":
        return ls.tasks.owners(valuation, owner)
    played = ls.tasks.owners(valuation)
    played.insert(0, "n_rows", owner.value_counts().reindex(played.index))
    return played


def _labelled(valuation: ls.Valuation, data: InputTable, owners: pd.DataFrame | None) -> pd.DataFrame:
    """The values of rows beside their labels and owners; values of owners beside their shares."""
    frame = valuation.to_frame()
    if valuation.unit == "owner":
        assert owners is not None
        return frame.join(owners[["share", "share_stderr"]])
    frame = frame.assign(label=data.y)
    return frame if data.owner is None else frame.assign(owner=data.owner.to_numpy())


def _write_report(
    run: RunOptions,
    files: Files,
    data: InputTable,
    valuation: ls.Valuation,
    owners: pd.DataFrame | None,
    output: Output,
) -> list[str]:
    """Write the report; returns what it says about copies, in lines."""
    assert files.report is not None
    output.status("writing the report")
    given = problem(run, data)
    of_rows: dict[str, Any] = {}
    copies = None
    if valuation.unit == "row":
        suspects = find_label_errors(data, valuation)
        copies = find_copies(data)
        of_rows = {
            **shown_rows(run, data),
            "suspects": suspects,
            "mending": _mending(run, files, data, suspects, output),
            "copies": copies,
            "curves": _curves(run, files, data, valuation, given["model"], output),
        }
    ls.report.write_report(
        files.report,
        valuation,
        **of_rows,
        levels=valuation.levels,
        owners=owners,
        gap=ls.locality_gap(**given, progress=not output.quiet, store=run.store) if files.check_locality else None,
        image_shape=find_shape(files.image_shape),
        preparation=data.preparation,
        target=run.target,
        title=files.title or f"What the {valuation.unit}s of {run.train.name} are worth",
    )
    return [] if copies is None else lines_on_copies(copies, valuation.notes)


def _mending(run: RunOptions, files: Files, data: InputTable, suspects: LabelErrors, output: Output) -> Mending | None:
    """What acting on the suspects is worth, where curves are drawn."""
    check = False if files.curves is None and len(data.y) > CURVE_ROWS else files.curves
    given = partial(of_run, run, data, None)
    return worth(given, data.numbers, suspects, output, check=check, option="curves")


def _curves(
    run: RunOptions, files: Files, data: InputTable, valuation: ls.Valuation, model: Any, output: Output
) -> Curves | None:
    """Selection curves on the test rows, if they are asked for or the table is small."""
    import numpy as np

    if data.X_test is None or data.y_test is None or files.curves is False:
        return None
    shares, n_seeds = np.linspace(0.1, 1.0, 10), 3
    if files.curves is None and len(data.y) > CURVE_ROWS:
        output.status(f"selection curves left out: over {CURVE_ROWS:,} training rows (--curves draws them anyway)")
        return None
    if files.curves:
        shares, n_seeds = np.linspace(0.05, 1.0, 20), 10
    return ls.tasks.curves(
        valuation,
        data.X,
        data.y,
        data.X_test,
        data.y_test,
        model=model,
        score="r2" if data.regression else "accuracy",
        shares=shares,
        n_seeds=n_seeds,
        seed=run.seed,
    )
