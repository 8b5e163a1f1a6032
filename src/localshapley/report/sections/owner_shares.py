"""What each owner contributes."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from localshapley.models.skill import INTERVAL
from localshapley.report import charts
from localshapley.report.html_tables import Table, as_table, cells_of, number_column, text_column, with_error
from localshapley.report.sections.base import Context, Section
from localshapley.tasks import owners as owners_of

MAX_LINES = 30
"""Number of owners in the chart; all of them are in the table."""
SHARE_ERROR = "std. error of share"
COLUMNS = {
    "n_rows": "rows",
    "value": "value",
    "stderr": "std. error",
    "share": "share in %",
    "share_stderr": SHARE_ERROR,
}


class OwnerSharesSection(Section):
    """What `tasks.owners` found, or what owners are worth that were valued as a whole."""

    id = "owners"
    title = "Owners"

    def summarise(self, context: Context) -> dict[str, Any] | None:
        owners, played = context.owners, context.valuation.unit == "owner"
        if owners is None and played:
            owners = owners_of(context.valuation)
        if owners is None:
            return None
        exact = not owners["stderr"].any()
        shown = [name for name in COLUMNS if name in owners and not (exact and name.endswith("stderr"))]
        numbers = [number_column(COLUMNS[name], owners[name]) for name in shown]
        return {
            "exact": exact,
            "played": played,
            "n_drawn": min(len(owners), MAX_LINES),
            "table": as_table([text_column("owner", owners.index), *numbers]),
        }

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        return {"owners": summary["table"]}

    def charts(self, summary: dict[str, Any]) -> dict[str, Markup]:
        """Shares if there are any (the sum must be above zero), else values."""
        table, n = summary["table"], summary["n_drawn"]
        what, error, unit = ("share in %", SHARE_ERROR, " %")
        if None in cells_of(table, what) or (not summary["exact"] and None in cells_of(table, error)):
            what, error, unit = ("value", "std. error", "")
        stderr = [0.0] * n if summary["exact"] else cells_of(table, error)[:n]
        lines = []
        for name, x, off in zip(cells_of(table, "owner")[:n], cells_of(table, what)[:n], stderr, strict=True):
            half = INTERVAL * off
            lines.append((name, with_error(x, off) + unit, x - half, x, x + half))
        return {"owners": charts.intervals(lines, f"Owners: {what}")}
