"""How large the supports are, and how many test rows a row can matter to."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from localshapley.formatting import kinds, one
from localshapley.report import charts
from localshapley.report.bins import bins_of_counts, table_of_bins
from localshapley.report.html_tables import Table
from localshapley.report.sections.base import Context, Section


class SupportSizesSection(Section):
    """Histograms of both; words, if all counts would be in one bar."""

    id = "supports"
    title = "Supports"
    heading = "Which rows can matter to which"
    folded = True

    def summarise(self, context: Context) -> dict[str, Any]:
        v = context.valuation
        return {"unit": v.unit, "supports": bins_of_counts(v.support_sizes), "reach": bins_of_counts(v.n_tests)}

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        players, tests = kinds(summary["unit"])
        return {
            "supports": table_of_bins(summary["supports"], tests),
            "reach": table_of_bins(summary["reach"], players),
        }

    def charts(self, summary: dict[str, Any]) -> dict[str, Markup]:
        unit = summary["unit"]
        players, tests = kinds(unit)
        words = {
            "supports": ("Support sizes", f"{unit}s in the support of a {tests[:-1]}", tests),
            "reach": (tests.capitalize(), f"{tests} that {one(players[:-1])} can matter to", players),
        }
        return {
            name: charts.histogram(**summary[name], label=label, across=across, up=up, whole=True)
            for name, (label, across, up) in words.items()
            if len(summary[name]["counts"]) > 1
        }
