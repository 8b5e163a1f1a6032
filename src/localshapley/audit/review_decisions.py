"""Decisions about suspected rows, as a report saves them: one line per row, with what it was when it was judged."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from localshapley.data.row_digests import digest_cells
from localshapley.errors import LocalShapleyError
from localshapley.io.spelling import label_text

COLUMNS = ("row", "decision", "old_label", "new_label", "contents")
"""Columns of a file of decisions; `bench.js` writes the same."""
KEEP, RELABEL, DROP = WORDS = ("keep", "relabel", "drop")


def contents_of(table: Any) -> list[str]:
    """A digest of the contents of each row."""
    return [contents_text(word) for word in digest_cells(table)[:, 0]]


def contents_text(word: np.uint64) -> str:
    """A digest as a text; it begins with a letter, so that no spreadsheet takes it for a number."""
    return f"c{word:016x}"


def read_decisions(given: Any) -> pd.DataFrame:
    """Decisions as texts, one for each row, from a file or a table with the columns `COLUMNS`."""
    if isinstance(given, pd.DataFrame):
        named, lines = "decisions", [list(given.columns), *given.astype(object).to_numpy().tolist()]
    else:
        named, lines = str(given), _lines(Path(given))
    heads = [label_text(cell) for cell in lines[0]] if lines else []
    for name in COLUMNS:
        if name not in heads:
            raise LocalShapleyError(
                f"{named} has no column {name!r}; give the decisions.csv that a report saves, with the columns "
                f"{', '.join(COLUMNS)}."
            )
    cells = [[_text(cell) for cell in line] for line in lines[1:] if any(map(_text, line))]
    uneven = next((i for i, line in enumerate(cells) if len(line) != len(heads)), None)
    if uneven is not None:
        raise LocalShapleyError(f"{named} has {len(cells[uneven])} cells in decision {uneven + 1}, not {len(heads)}.")
    if not cells:
        raise LocalShapleyError(f"{named} holds no decisions; decide on some rows in the report, and save again.")
    made = pd.DataFrame(cells, columns=heads)[list(COLUMNS)]
    _check(made, named)
    return made


def _check(made: pd.DataFrame, named: str) -> None:
    """Refuse decisions that are not known, or that are made twice."""
    unknown = made[~made["decision"].isin(WORDS)]
    if len(unknown):
        word, row = unknown[["decision", "row"]].iloc[0]
        raise LocalShapleyError(
            f"{named} has the decision {word!r} on row {row!r}; known decisions are {', '.join(WORDS)}."
        )
    twice = made["row"][made["row"].duplicated()]
    if len(twice):
        raise LocalShapleyError(f"{named} has more than one decision on row {twice.iloc[0]!r}; leave one of them.")
    empty = made["row"][(made["decision"] == RELABEL) & (made["new_label"].str.strip() == "")]
    if len(empty):
        raise LocalShapleyError(f"{named} relabels row {empty.iloc[0]!r}, but gives no new label.")


def _text(cell: Any) -> str:
    return cell if isinstance(cell, str) else label_text(cell)


def _lines(path: Path) -> list[list[Any]]:
    """The cells of a text file, all of them as text; spreadsheets may have saved it with another separator."""
    if not path.is_file():
        raise LocalShapleyError(f"{path} is {'a folder' if path.is_dir() else 'not there'}; give saved decisions.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            separator = max(",;\t", key=file.readline().count)
            file.seek(0)
            return list(csv.reader(file, delimiter=separator))
    except (UnicodeDecodeError, csv.Error) as error:
        raise LocalShapleyError(f"{path} cannot be read as decisions: {error}") from None
