"""What commands print: text for people, or one JSON document."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from localshapley import __version__
from localshapley.cli.options import OUTPUT, option
from localshapley.inputs.tables import index_as_columns
from localshapley.wording import printable, probability

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 20
"""Rows of a long list that are printed, unless a number of them is asked for."""

PROBABILITIES = {"p_wrong", "p_best"}
"""Columns of our tables that hold probabilities."""


@dataclass(kw_only=True)
class Output:
    """What a command prints: answers on standard output, all else on standard error."""

    json: Annotated[
        bool, option("Print one JSON document; everything else goes to standard error.", OUTPUT, "--json")
    ] = False
    quiet: Annotated[bool, option("Print the result and nothing else.", OUTPUT, "--quiet", "-q")] = False
    debug: Annotated[bool, option("Show the traceback of an error.", OUTPUT, "--debug")] = False

    def status(self, text: str) -> None:
        """Say what is going on."""
        if not self.quiet:
            print(printable(text), file=sys.stderr, flush=True)

    def answer(self, document: dict[str, Any], text: str) -> None:
        """Print what was asked for."""
        if self.json:
            text = json.dumps(plain({"localshapley": __version__, **document}), indent=1, allow_nan=False)
        else:
            text = printable(text, keep="\n")
        try:
            print(text, flush=True)
        except BrokenPipeError:  # the reader has closed the pipe, and files are written by now
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def plain(value: Any) -> Any:
    """Numbers, strings, lists and dicts in place of everything else; NaN and infinity become null."""
    import numpy as np
    import pandas as pd

    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(entry) for entry in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return None if value is None or value is pd.NA or value is pd.NaT else str(value)


def as_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table with its index."""
    return [{str(name): cell for name, cell in row.items()} for row in index_as_columns(table).to_dict("records")]


def table_text(table: pd.DataFrame, rows: pd.Index | None = None) -> str:
    """A table for a terminal, some of its rows or all of them; lists are joined."""
    import numpy as np

    shown = index_as_columns(table if rows is None else table.loc[rows])
    for name in PROBABILITIES & set(shown.columns):
        shown[name] = shown[name].map(probability)
    for i, dtype in enumerate(shown.dtypes):
        if dtype.kind not in "biufcmM":
            shown.isetitem(i, np.array([_cell(cell) for cell in shown.iloc[:, i]], dtype=object))
    shown.columns = [_cell(name) for name in shown.columns]
    text: str = shown.to_string(index=False, float_format="{:.4g}".format, max_colwidth=40)
    return text


def first_rows(table: pd.DataFrame, whole: bool, option: str = "") -> str:
    """The text of a table, all or the first rows of it and how to get the rest."""
    if whole or len(table) <= SHOWN:
        return table_text(table)
    ways = f"{option}--out FILE writes all, --json prints all"
    return f"{table_text(table[:SHOWN])}\n... and {len(table) - SHOWN:,} more; {ways}."


def _cell(cell: Any) -> Any:
    """A cell for a terminal: lists are joined, and text has no control characters."""
    if isinstance(cell, list):
        cell = ", ".join(map(str, cell[:5]))
    return printable(cell) if isinstance(cell, str) else cell
