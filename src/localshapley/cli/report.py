"""`localshapley report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import localshapley as ls
from localshapley.cli.checking import model_of, worth
from localshapley.cli.data import named_rows
from localshapley.cli.options import Check, takes_groups
from localshapley.cli.output import Output
from localshapley.cli.saved import valued_rows
from localshapley.cli.suspects import judged
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.inputs.tables import read_table

N_FOLDS = 5
"""Folds that say what acting on suspects is worth."""


@takes_groups
def report(
    output: Output,
    values: Annotated[Path, typer.Argument(help="Values saved by `value --out values.parquet`.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Report to write.")] = Path("report.html"),
    train: Annotated[Path | None, typer.Option(help="The table that was valued, to show its rows.")] = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help="Column that was predicted.")] = None,
    owner: Annotated[str | None, typer.Option(help="Column that names the owners.")] = None,
    title: Annotated[str, typer.Option(help="Title of the report.")] = "Data valuation",
    image_shape: Annotated[str | None, typer.Option(help="Show rows as images, such as 28x28.")] = None,
    check: Check = None,
    data: Annotated[bool, typer.Option("--data", help="Also write what the report says as JSON, next to it.")] = False,
) -> None:
    """Write a report about saved values."""
    valuation = ls.load(values)
    if train is None and (target or owner):
        raise InvalidArgumentError("--target and --owner are columns of the table that was valued; give --train TABLE.")
    of_rows: dict[str, Any] = {}
    if train is not None:
        valuation, of_rows = _of_rows(valuation, train, target, owner)
        if target is not None:
            of_rows |= _checked(valuation, of_rows, output, check)
    shape = find_shape(image_shape)
    ls.report.write_report(out, valuation, **of_rows, image_shape=shape, title=title, json=data)
    output.answer({"report": str(out)}, f"Wrote {out}")


def find_shape(text: str | None) -> tuple[int, ...] | None:
    """Height and width of images, written as 28x28."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise InvalidArgumentError(f"--image-shape must look like 28x28; got {text!r}.") from None


def _of_rows(
    valuation: ls.Valuation, train: Path, target: str | None, owner: str | None
) -> tuple[ls.Valuation, dict[str, Any]]:
    """The valuation in the order of the table, and what it adds: the rows, and by their columns suspects and owners."""
    from localshapley.inputs.preparing import labels_of, prepare

    table, name = read_table(train, once=(target, owner)), valuation.to_frame().index.name
    is_named = name in table.columns
    table = named_rows(table, train, str(name) if is_named else None)
    for option, column in (("--target", target), ("--owner", owner)):
        if column is not None and column not in table.columns:
            raise unknown_name(option, column, table.columns)
    if target is not None:
        table = table[table[target].notna()]  # without a target, no row was valued
    left_out = () if owner is None else (owner,)
    table, valuation = valued_rows(valuation, table, train, named=is_named, target=target, left_out=left_out)
    rows = table.drop(columns=[name for name in (target, owner) if name is not None])
    found: dict[str, Any] = {"rows": rows, "table": table, "file": train}
    if target is not None:
        found["y"], found["target"] = labels_of(table[target])[0], target
        found["suspects"] = judged(valuation, found["y"], prepare(rows).X)[0]
    if owner is not None:
        found["owners"], found["owner"] = ls.tasks.owners(valuation, table[owner]), table[owner]
    return valuation, found


def _checked(valuation: ls.Valuation, of_rows: dict[str, Any], output: Output, check: bool | None) -> dict[str, Any]:
    """Copies among the rows, and what acting on the suspects is worth, if the model is one that is known by name."""
    from localshapley.inputs.preparing import prepare

    X, y = prepare(of_rows["rows"]).X, of_rows["y"]
    mending = worth(
        lambda: {"X": X, "y": y, "cv": N_FOLDS, "model": model_of(valuation, y)},
        X,
        valuation,
        of_rows["suspects"],
        output,
        check=check,
    )
    return {"copies": ls.tasks.copies(of_rows["rows"], y), "mending": mending}
