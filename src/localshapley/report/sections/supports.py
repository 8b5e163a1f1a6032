"""How large the supports are, and how many test rows a row can matter to."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from localshapley.report import charts
from localshapley.report.bins import bins_of_counts, table_of_bins
from localshapley.report.sections.base import Context, Section
from localshapley.report.tables import Table


class Supports(Section):
    """Histograms of both; words, if all counts would be in one bar."""

    id = "supports"
    title = "Supports"
    heading = "Which rows can matter to which"
    folded = True

    def summarise(self, context: Context) -> dict[str, Any]:
        v = context.valuation
        return {"supports": bins_of_counts(v.support_sizes), "reach": bins_of_counts(v.n_tests)}

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        return {
            "supports": table_of_bins(summary["supports"], "test rows"),
            "reach": table_of_bins(summary["reach"], "training rows"),
        }

    def charts(self, summary: dict[str, Any]) -> dict[str, Markup]:
        words = {
            "supports": ("Support sizes", "rows in the support of a test row", "test rows"),
            "reach": ("Test rows", "test rows that a training row can matter to", "training rows"),
        }
        return {
            name: charts.histogram(**summary[name], label=label, across=across, up=up, whole=True)
            for name, (label, across, up) in words.items()
            if len(summary[name]["counts"]) > 1
        }
