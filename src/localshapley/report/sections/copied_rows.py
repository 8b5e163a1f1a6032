"""Rows that are there twice, labels that contradict each other, and rows far from all others."""

from __future__ import annotations

from typing import Any

import numpy as np

from localshapley.report.html_tables import Table, any_column, as_table, number_column, text_column
from localshapley.report.sections.base import Context, Section

MAX_ROWS = 500


class CopiedRowsSection(Section):
    """What `audit.copies` found, if it found anything."""

    id = "copies"
    title = "Copies"
    heading = "Copies and outliers"

    def summarise(self, context: Context) -> dict[str, Any] | None:
        copies = context.copies
        if copies is None or not copies.lines.keys() - {"skipped"}:
            return None
        groups = copies.groups.iloc[: 0 if copies.coarse else MAX_ROWS]
        outliers = copies.outliers.iloc[:MAX_ROWS]
        labels = [any_column(context.rows.label, groups["label"], choice=True)] if "label" in groups else []
        table = [
            number_column("group", groups["group"], decimals=0),
            text_column("row", groups["row"]),
            text_column("part", groups["part"], choice=True),
            text_column("copy", groups["copy"], choice=True),
            *labels,
            text_column("labels differ", np.where(groups["contradicts"], "yes", "no"), choice=True),
        ]
        far = [text_column("row", outliers["row"]), text_column("part", outliers["part"], choice=True)]
        return {
            "lines": [line[:1].upper() + line[1:] for line in copies.lines.values()],
            "n_listed": 0 if copies.coarse else len(copies.groups),
            "table": as_table(table),
            "outliers": as_table([*far, number_column("distance", outliers["away"], decimals=1)]),
        }

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        return {"copies": summary["table"], "far": summary["outliers"]}
