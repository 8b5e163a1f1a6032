"""`localshapley report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import localshapley as ls
from localshapley.cli.checking import given_reading, label_errors, model_of, worth
from localshapley.cli.data import named_rows
from localshapley.cli.files import check_files, check_page
from localshapley.cli.options import Check, Encoding, Na, Sep, stripped, takes_groups
from localshapley.cli.output import Output
from localshapley.cli.saved import load_values, valued_rows
from localshapley.errors import InvalidArgumentError, LocalShapleyError, unknown_name
from localshapley.io.tables import read_table

if TYPE_CHECKING:
    import pandas as pd

REPORTED = b'{"format": "localshapley report'
"""How the data of a report begins."""
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
    encoding: Encoding = "utf-8",
    sep: Sep = None,
    na: Na = None,
    check: Check = None,
    data: Annotated[bool, typer.Option("--data", help="Also write what the report says as JSON, next to it.")] = False,
) -> None:
    """Write a report about saved values."""
    beside = out.with_suffix(".json") if data else None
    check_files(read={"the values": values, "--train": train}, written={"--out": out, "--data": beside})
    check_page("--out", out)
    _check_beside(beside)
    valuation, target, owner = load_values("VALUES", values), stripped(target), stripped(owner)
    if train is None and (target or owner):
        raise InvalidArgumentError("--target and --owner are columns of the table that was valued; give --train TABLE.")
    of_rows: dict[str, Any] = {}
    shape = find_shape(image_shape)
    if train is not None:
        reading = {"encoding": encoding, "sep": sep, "na": na}
        valuation, of_rows = _of_rows(valuation, train, target, owner, reading)
        check_shape(shape, of_rows["rows"], train)
        if target is not None:
            of_rows |= _checked(valuation, of_rows, output, check)
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


def check_shape(shape: tuple[int, ...] | None, rows: pd.DataFrame, path: Path) -> None:
    """Refuse images that rows cannot be, before anything is trained."""
    from localshapley.report.images import check_shape as fits

    if shape is None:
        return
    text = "x".join(map(str, shape))
    words = [name for name, kind in rows.dtypes.items() if kind.kind not in "biuf"]
    if words:
        raise InvalidArgumentError(
            f"--image-shape {text} needs pixels, but the column {words[0]!r} of {path} holds no numbers; leave it out "
            "(--drop), or leave out --image-shape."
        )
    try:
        fits(shape, rows.shape[1])
    except InvalidArgumentError:
        raise InvalidArgumentError(
            f"--image-shape {text} does not fit the {rows.shape[1]} columns that {path} has besides the target; give "
            "HEIGHTxWIDTH, or HEIGHTxWIDTHx3, of as many pixels."
        ) from None


def _check_beside(path: Path | None) -> None:
    """Refuse to replace a file that nobody named, unless it is what a report said before."""
    if path is not None and path.is_file():
        with path.open("rb") as file:
            if not file.read(len(REPORTED)) == REPORTED:
                raise LocalShapleyError(f"--data would replace {path}, which is of something else; give another --out.")


def _of_rows(
    valuation: ls.Valuation, train: Path, target: str | None, owner: str | None, reading: dict[str, Any]
) -> tuple[ls.Valuation, dict[str, Any]]:
    """The valuation in the order of the table, and what it adds: the rows, and by their columns suspects and owners."""
    from localshapley.data.preparing import labels_of, prepare

    name, digests = valuation.to_frame().index.name, valuation.digests
    is_feature = digests is not None and name in (digests.columns or ())  # rows without names are called row, too
    ids = None if name is None or is_feature else str(name)
    table = read_table(train, **reading, once=(target, owner), ids=ids)
    is_named = ids in table.columns
    table = named_rows(table, train, ids if is_named else None)
    for option, column in (("--target", target), ("--owner", owner)):
        if column is not None and column not in table.columns:
            raise unknown_name(option, column, table.columns)
    if target is not None:
        table = table[table[target].notna()]  # without a target, no row was valued
    left_out = () if owner is None else (owner,)
    table, valuation = valued_rows(valuation, table, train, named=is_named, target=target, left_out=left_out)
    rows = table.drop(columns=[name for name in (target, owner) if name is not None])
    found: dict[str, Any] = {"rows": rows, "table": table, "file": train, "reading": given_reading(reading)}
    if target is not None:
        found["y"], found["target"] = labels_of(table[target])[0], target
        found["suspects"] = label_errors(prepare(rows).X, found["y"], valuation)
    if owner is not None:
        found["owners"], found["owner"] = ls.tasks.owners(valuation, table[owner]), table[owner]
    return valuation, found


def _checked(valuation: ls.Valuation, of_rows: dict[str, Any], output: Output, check: bool | None) -> dict[str, Any]:
    """Copies among the rows, and what acting on the suspects is worth, if the model is one that is known by name."""
    from localshapley.data.exact_duplicates import OriginalTables, comparing
    from localshapley.data.preparing import prepare

    X, y = prepare(of_rows["rows"]).X, of_rows["y"]
    mending = worth(
        lambda: {"X": X, "y": y, "cv": N_FOLDS, "model": model_of(valuation, y)},
        X,
        of_rows["suspects"],
        output,
        check=check,
    )
    with comparing(OriginalTables(of_rows["rows"], None, f" of {of_rows['file'].name} that was valued")):
        return {"copies": ls.audit.copies(of_rows["rows"], y), "mending": mending}
