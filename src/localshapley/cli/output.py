"""What commands print: text for people, or one JSON document."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from itertools import accumulate
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any

from localshapley import __version__
from localshapley.cli.options import OUTPUT, option
from localshapley.formatting import printable, probability, shortened
from localshapley.io.tables import index_as_columns
from localshapley.notes import plain

if TYPE_CHECKING:
    import pandas as pd

LEAST, MOST = 30, 100
"""Characters that a text in a table has room for, on a narrow terminal and where there is none."""
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


def as_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table with its index."""
    return [{str(name): cell for name, cell in row.items()} for row in index_as_columns(table).to_dict("records")]


def table_text(table: pd.DataFrame, rows: pd.Index | None = None, *, names: pd.Index | None = None) -> str:
    """A table for a terminal, some of its rows or all of them.

    Texts are cut in the middle where the terminal has no room for them. `names` are those of all rows of the file, in
    its order: it gives the number of each row whose name is cut, that of a neighbour, too.
    """
    import numpy as np

    some = table if rows is None else table.loc[rows]
    shown = index_as_columns(some)
    for name in PROBABILITIES & set(shown.columns):
        shown[name] = shown[name].map(probability)
    texts = {
        i: [_cell(cell, names) for cell in shown.iloc[:, i]]
        for i, kind in enumerate(shown.dtypes)
        if kind.kind not in "biufcmM"
    }
    ends = [""] * len(some) if names is None else [f" (row {number})" for number in names.get_indexer(some.index)]
    shown.columns = [shortened(str(_cell(name)), MOST) for name in shown.columns]
    length = _room_for(shown, texts)
    for i, cells in texts.items():
        added = ends if i < some.index.nlevels else [""] * len(some)
        shown.isetitem(i, np.array([_fitting(*pair, length) for pair in zip(cells, added, strict=True)], dtype=object))
    text: str = shown.to_string(index=False, float_format="{:.4g}".format, max_colwidth=None)
    return text


def first_rows(table: pd.DataFrame, whole: bool, option: str = "", names: pd.Index | None = None) -> str:
    """The text of a table, all or the first rows of it and how to get the rest."""
    if whole or len(table) <= SHOWN:
        return table_text(table, names=names)
    ways = f"{option}--out FILE writes all, --json prints all"
    return f"{table_text(table[:SHOWN], names=names)}\n... and {len(table) - SHOWN:,} more; {ways}."


def _cell(cell: Any, names: pd.Index | None = None) -> Any:
    """A cell for a terminal: text has no control characters, and the entries of a list are short."""
    if isinstance(cell, list):
        cell = cell[:5]
        ends = [""] * len(cell) if names is None else [f" (row {number})" for number in names.get_indexer(cell)]
        return [_fitting(printable(str(entry)), end, LEAST) for entry, end in zip(cell, ends, strict=True)]
    return printable(cell) if isinstance(cell, str) else cell


def _fitting(cell: Any, end: str, length: int) -> Any:
    """A cell of so many characters: a text loses its middle, and says then how it ends; a list its last entries."""
    if isinstance(cell, list):
        ends = accumulate(len(entry) + 2 for entry in cell)
        fits = max(sum(at - 2 <= length for at in ends), 1)
        return ", ".join(cell[:fits] + ["…"] * (fits < len(cell)))
    if not isinstance(cell, str) or len(cell) <= length:
        return cell
    return shortened(cell, length - len(end)) + end


def _room_for(table: pd.DataFrame, texts: dict[int, list[Any]]) -> int:
    """How long a text may be so that the lines of a table fit the terminal."""
    if not (sys.stdout is not None and sys.stdout.isatty()):
        return MOST
    others = table.iloc[:, [i for i in range(table.shape[1]) if i not in texts]]
    line = others.to_string(index=False, float_format="{:.4g}".format).partition("\n")[0]
    room = max(get_terminal_size().columns - len(line), LEAST)
    heads = [len(table.columns[i]) for i in texts]
    widths = [max((len(str(_fitting(cell, "", room))) for cell in cells), default=0) for cells in texts.values()]

    def fits(length: int) -> bool:
        return sum(max(head, min(width, length)) + 1 for head, width in zip(heads, widths, strict=True)) <= room

    return next(filter(fits, range(room, LEAST, -1)), LEAST)
