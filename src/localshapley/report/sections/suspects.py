"""Rows whose label may be wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from localshapley.report.rows import Rows
from localshapley.report.sections.base import Context, Section
from localshapley.report.tables import Table, any_column, as_table, extra, number_column, text, text_column

MAX_ROWS = 500


class Suspects(Section):
    """What `tasks.suspects` found, the most suspicious first."""

    id = "suspects"
    title = "Suspects"
    heading = "Rows whose label is probably wrong"

    def summarise(self, context: Context) -> dict[str, Any] | None:
        if context.suspects is None:
            return None
        return {"n_suspects": len(context.suspects), "table": _table(context.suspects.iloc[:MAX_ROWS], context.rows)}

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        return {"suspects": summary["table"]}


def _table(suspects: pd.DataFrame, rows: Rows) -> Table:
    """The suspects, with the evidence against them and what they look like."""
    places = rows.ids.get_indexer(suspects.index) if rows.ids.is_unique else np.full(len(suspects), -1)
    known = bool((places >= 0).all())
    return as_table(
        [
            text_column(rows.name, suspects.index),
            *(rows.images(places) if known else []),
            number_column("suspicion", suspects["suspicion"], decimals=2),
            any_column(rows.label, suspects["label"], choice=True),
            any_column("suggested", suspects["suggested"], choice=True),
            number_column("agreement", suspects["agreement"]),
            *rows.values(suspects["value"], suspects["stderr"]),
            *(rows.owners(places) if known else []),
            *(rows.features(places) if known else []),
            extra(text_column("neighbours against", [", ".join(map(text, ids)) for ids in suspects["neighbours"]])),
        ]
    )
