"""The rows of highest and of lowest value."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from markupsafe import Markup

from localshapley.arrays import Ints
from localshapley.report import charts
from localshapley.report.html_tables import Table, number, with_interval
from localshapley.report.row_details import Rows
from localshapley.report.sections.base import Context, Section
from localshapley.valuation.row_names import by_value


class ExtremesSection(Section):
    """The best and the worst rows: a ranking with intervals, and what the rows look like."""

    id = "extremes"
    title = "Best and worst rows"

    def summarise(self, context: Context) -> dict[str, Any]:
        rows, valuation = context.rows, context.valuation
        n = min(context.n_shown, ceil(len(valuation.values) / 2))
        best, worst = (by_value(valuation, best_first=best)[:n] for best in (True, False))
        return {
            "exact": rows.exact and valuation.spread_tests is None,
            "ranking": _ranking(rows, np.concatenate([best, worst[::-1]])),
            "best": rows.table(best),
            "worst": rows.table(worst),
        }

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        return {"best": summary["best"], "worst": summary["worst"]}

    def charts(self, summary: dict[str, Any]) -> dict[str, Markup]:
        lines = []
        for line in summary["ranking"]:
            low, value, high = line["low"], line["value"], line["high"]
            lines.append((line["row"], with_interval(low, value, high), low, value, high))
        return {"ranking": charts.intervals(lines, "The highest and lowest values")}


def _ranking(rows: Rows, positions: Ints) -> list[dict[str, Any]]:
    """Values of some rows with the ends of their intervals."""
    v = rows.valuation
    low, high = v.interval()
    return [
        {
            "row": rows.name_of(i),
            "value": number(v.values[i]),
            "low": number(low[i]),
            "high": number(high[i]),
        }
        for i in positions
    ]
