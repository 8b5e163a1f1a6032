"""How good the model is with part of the rows."""

from __future__ import annotations

from typing import Any

import pandas as pd
from markupsafe import Markup

from localshapley.report import charts
from localshapley.report.html_tables import Table, as_table, cells_of, number_column, text, text_column
from localshapley.report.sections.base import Context, Section


class RemovalCurvesSection(Section):
    """The selection curves of `tasks.curves`."""

    id = "curves"
    title = "Selection"
    heading = "Selection curves"

    def summarise(self, context: Context) -> dict[str, Any] | None:
        if context.curves is None:
            return None
        return {"score": text(context.curves.score), "table": _table(context.curves.table)}

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        return {"curves": summary["table"]}

    def charts(self, summary: dict[str, Any]) -> dict[str, Markup]:
        names = cells_of(summary["table"], "curve")
        columns = {key: cells_of(summary["table"], key) for key in ("share in %", "mean", "low", "high")}
        lines = []
        for name in dict.fromkeys(names):
            own = [i for i, other in enumerate(names) if other == name]
            picked = {key: [column[i] for i in own] for key, column in columns.items()}
            lines.append({"name": name, "x": picked.pop("share in %"), **picked})
        return {"curves": charts.curves(lines, "Selection curves", "share of rows added or removed", summary["score"])}


def _table(points: pd.DataFrame) -> Table:
    return as_table(
        [
            text_column("curve", points["curve"], choice=True),
            number_column("share in %", 100 * points["share"]),
            number_column("rows", points["n_rows"]),
            *(number_column(name, points[name]) for name in ("mean", "low", "high")),
        ]
    )
