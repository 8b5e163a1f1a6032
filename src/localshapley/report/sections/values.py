"""How the values are spread."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from localshapley.formatting import kinds
from localshapley.report import charts
from localshapley.report.bins import bins_of_numbers, table_of_bins
from localshapley.report.html_tables import Table
from localshapley.report.sections.base import Context, Section
from localshapley.valuation.intervals import n_sure


class ValuesSection(Section):
    """A histogram of all values."""

    id = "values"
    title = "Values"
    heading = "How the values are spread"

    def summarise(self, context: Context) -> dict[str, Any]:
        v = context.valuation
        return {
            "unit": v.unit,
            "n_rows": len(v.values),
            "n_tests": len(v.support_sizes),
            "n_below": int((v.values < 0).sum()),
            "n_hurt": n_sure(v)[0],
            "n_unjudged": int((v.n_tests == 0).sum()),
            "histogram": bins_of_numbers(v.values),
        }

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        return {"histogram": table_of_bins(summary["histogram"], kinds(summary["unit"])[0])}

    def charts(self, summary: dict[str, Any]) -> dict[str, Markup]:
        players = kinds(summary["unit"])[0]
        drawn = charts.histogram(**summary["histogram"], label="Values", across="value", up=players)
        return {"histogram": drawn}
