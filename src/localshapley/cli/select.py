"""`localshapley select`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import localshapley as ls
from localshapley.cli.files import Writing, check_run
from localshapley.cli.options import ROWS, ListOut, RawCsv, RunOptions, SavedValues, takes_groups
from localshapley.cli.output import Output, as_records, first_rows
from localshapley.cli.valuing import (
    about,
    comparing_as_given,
    end,
    explaining_preparation,
    guarded_in_words,
    loaded,
    problem,
    saved_or_valued,
)
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.io.tables import kind_of, read_table, write_table

if TYPE_CHECKING:
    import pandas as pd

    from localshapley.arrays import Ints
    from localshapley.cli.data import InputTable

GAIN, VALUE = "gain", "value"
OF_VALUES = ("method", "tol", "play_owners")
"""Options that only values have a use for."""


@takes_groups
def select(
    run: RunOptions,
    output: Output,
    n: Annotated[
        float, typer.Option("-n", "--n", help="Rows to choose, or a share such as 0.2.", show_default=False, **ROWS)
    ],
    by: Annotated[
        str | None,
        typer.Option(
            help="What decides: gain, what each row adds to those before it (default), or value, the rows of highest "
            "value (default with --values or --balance).",
            show_default=False,
        ),
    ] = None,
    balance: Annotated[
        str | None,
        typer.Option(help="By value: keep the shares of the classes (classes), or make them equal (equal)."),
    ] = None,
    errors: Annotated[
        str,
        typer.Option(help="By value: count what other test rows would change, too (all), or go by the values (draws)."),
    ] = "all",
    curve: Annotated[
        bool, typer.Option("--curve", help="By gain: compare with random rows, on rows not used to choose.")
    ] = False,
    values: SavedValues = None,
    out: ListOut = None,
    raw_csv: RawCsv = False,
) -> None:
    """Choose rows to train on: those that teach most together, or those of highest value."""
    check_run(run, out=out, values=values)
    result: ls.Valuation | ls.Selection
    if _decides(by, run, values, balance, curve=curve) == VALUE:
        data, result, chosen, document, text = _by_value(run, output, n, balance, values, errors)
    else:
        data, result, chosen, document, text = _by_gain(run, output, n, curve=curve)
    lines = [
        text[0],
        first_rows(chosen, isinstance(n, int), f"-n {len(chosen)} shows all, ", data.table.index),
        *text[1:],
    ]
    writing = Writing()
    if out is not None:
        with writing.to(out):
            guarded = _write_rows(run, data.table.index.get_indexer(chosen.index), out, raw=raw_csv)
            lines.append(f"Wrote these rows to {out}{guarded_in_words(guarded)}")
    output.answer({**document, "selected": as_records(chosen)}, "\n".join(lines))
    writing.end()
    end(result)


def _write_rows(run: RunOptions, places: Ints, out: Path, *, raw: bool) -> int:
    """Write rows as they are in the table, with all of its columns; returns how many cells were guarded."""
    from localshapley.io.rewriting import copy_rows

    if kind_of(out) == kind_of(run.train):
        copy_rows(run.train, out, places, run.target, encoding=run.encoding, sep=run.sep)
        return 0
    table = read_table(run.train, run.encoding, sep=run.sep, na=run.na, ids=run.id)
    return write_table(table.iloc[places], out, raw=raw, index=False)


def _decides(by: str | None, run: RunOptions, values: Path | None, balance: str | None, *, curve: bool) -> str:
    """What decides which rows are chosen; refuses options that the other way has."""
    if by not in (None, GAIN, VALUE):
        raise unknown_name("--by", by, (GAIN, VALUE))
    if (by or (VALUE if values or balance else GAIN)) == VALUE:
        if curve:
            raise InvalidArgumentError("--curve compares rows chosen by gain; leave it out, or choose by gain.")
        return VALUE
    changed = [f.name for f in fields(run) if f.name in OF_VALUES and getattr(run, f.name) != f.default]
    for name in ["values"] * bool(values) + ["balance"] * bool(balance) + changed:
        raise InvalidArgumentError(
            f"--{name.replace('_', '-')} is about values, which choosing by gain does not compute; leave it out, or "
            "give --by value."
        )
    return GAIN


def _by_value(
    run: RunOptions, output: Output, n: float, balance: str | None, values: Path | None, errors: str
) -> tuple[InputTable, ls.Valuation, pd.DataFrame, dict[str, Any], list[str]]:
    """The rows of highest value."""
    from localshapley.valuation.intervals import check_errors  # heavy

    check_errors(errors)
    data, valuation = saved_or_valued(run, values, output, n)
    labels = None if data.regression else data.y
    chosen = ls.tasks.select(valuation, n, y=labels, balance=balance, errors=errors)
    said = [f"The {len(chosen)} best of {len(data.y)} rows:"]
    return data, valuation, chosen, about(valuation, data.preparation), said


def _by_gain(
    run: RunOptions, output: Output, n: float, *, curve: bool
) -> tuple[InputTable, ls.Selection, pd.DataFrame, dict[str, Any], list[str]]:
    """The rows that teach most together."""
    data = loaded(run, output)
    asked = problem(run, data)
    del asked["owners"]
    with explaining_preparation(run), comparing_as_given(data):
        found = ls.select(
            **asked,
            n=n,
            budget=run.budget,
            max_seconds=run.max_seconds,
            progress=not output.quiet,
            store=run.store,
            on_interrupt="return",
        )
    chosen = found.to_frame().drop(columns="position")
    names = ("model", "score", "support", "stopped", "notes", "n_rows", "n_tests", "n_gained", "n_sure")
    document = {name: getattr(found, name) for name in names}
    document |= {
        "trainings": found.cost.trainings,
        "stored": found.cost.stored,
        "seconds": found.cost.seconds,
        "preparation": data.preparation,
    }
    ended = (
        f" ({found.stopped} after {found.n_gained}, of which {found.n_sure} are sure)"
        if found.n_gained < len(chosen)
        else ""
    )
    text = [f"{len(chosen)} of {len(data.y)} rows, those that teach most together first{ended}:"]
    if curve:
        compared = found.curve(n_jobs=run.jobs, progress=not output.quiet)
        document |= {"curve": as_records(compared.table.set_index("share")), "verdict": compared.verdict}
        text.append(f"\n{compared}")
    return data, found, chosen, document, text
