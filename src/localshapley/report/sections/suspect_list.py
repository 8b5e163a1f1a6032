"""Rows whose label may be wrong, and a place to decide on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd

from localshapley.audit.apply_decisions import WORDS
from localshapley.report.html_tables import (
    Column,
    Table,
    any_column,
    as_table,
    extra,
    number_column,
    probability_column,
    text,
    text_column,
)
from localshapley.report.row_details import Rows
from localshapley.report.sections.base import Context, Section
from localshapley.report.suspect_review import make_bench

MAX_ROWS = 500
FEW = 30
"""Characters of a neighbour's name in a list of them."""
EVIDENCE = ("p wrong", "suspicion", "agreement", "value", "std. error", "owner")
"""Columns that speak for or against a suspect, where they are there."""


class SuspectListSection(Section):
    """What `audit.label_errors` found, the most suspicious first."""

    id = "suspects"
    title = "Suspects"
    heading = "Rows whose label is probably wrong"

    def summarise(self, context: Context) -> dict[str, Any] | None:
        if context.suspects is None:
            return None
        rows, shown = context.rows, context.suspects.table.iloc[:MAX_ROWS]
        numbers = context.suspects.verdict.is_regression
        bench = make_bench(rows, shown, numbers=numbers) if len(shown) else None
        return {
            "n_suspects": len(context.suspects.table),
            "has_probability": "p_wrong" in shown and bool(shown["p_wrong"].notna().any()),
            "table": _table(shown, rows, undecided=bench is not None),
            "bench": bench,
            "command": _command(rows, context.file, context.reading),
        }

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        return {"suspects": summary["table"]}

    def data(self, summary: dict[str, Any]) -> Any:
        names = [column["name"] for column in summary["table"]["columns"]]
        evidence = [names.index(name, 1) for name in EVIDENCE if name in names[1:]]
        return None if summary["bench"] is None else summary["bench"] | {"evidence": evidence}


def _command(rows: Rows, file: str | None, reading: Mapping[str, str]) -> str:
    """How the decisions are applied to the table."""
    table, mended = "TABLE", "MENDED"
    if file is not None:
        table, mended = (quote(text(name)) for name in (file, f"{Path(file).stem}-mended{Path(file).suffix}"))
    named = f" --id {quote(text(rows.name))}" if rows.ids.name not in (None, "row") else ""
    read = "".join(f" --{option} {quote(str(given))}" for option, given in reading.items())
    about = f"--target {quote(text(rows.label))}{named}{read}"
    return f"localshapley apply {table} decisions.csv {about} --out {mended} --check"


def _table(suspects: pd.DataFrame, rows: Rows, *, undecided: bool) -> Table:
    """The suspects, with the evidence against them and what they look like."""
    places = rows.ids.get_indexer(suspects.index) if rows.ids.is_unique else np.full(len(suspects), -1)
    known = bool((places >= 0).all())
    return as_table(
        [
            rows.names(places) if known else text_column(rows.name, suspects.index),
            *(rows.images(places) if known else []),
            *([_decisions(len(suspects))] if undecided else []),
            *([probability_column("p wrong", suspects["p_wrong"])] if "p_wrong" in suspects else []),
            number_column("suspicion", suspects["suspicion"], decimals=2),
            any_column(rows.label, suspects["label"], choice=True),
            any_column("suggested", suspects["suggested"], choice=True),
            *([number_column("agreement", suspects["agreement"])] if "agreement" in suspects else []),
            *(rows.values(suspects["value"], suspects["stderr"]) if "value" in suspects else []),
            *(rows.owners(places) if known else []),
            *(rows.features(places) if known else []),
            extra(_neighbours(suspects["neighbours"], rows)),
        ]
    )


def _neighbours(found: pd.Series, rows: Rows) -> Column:
    """A column of lists of names."""

    def named(ids: list[Any]) -> str:
        places = rows.ids.get_indexer(pd.Index(ids)).tolist() if rows.ids.is_unique else [-1] * len(ids)
        return ", ".join(text(x, FEW) if z < 0 else rows.name_of(z, FEW) for x, z in zip(ids, places, strict=True))

    return {"name": "neighbours against", "kind": "text"}, list(map(named, found))


def _decisions(n: int) -> Column:
    """A column for what a reader decides, empty at first."""
    head, cells = text_column("decision", [""] * n)
    return head | {"choices": ["undecided", *WORDS]}, cells
