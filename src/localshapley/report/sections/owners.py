"""What each owner contributes."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from localshapley.report import charts
from localshapley.report.sections.base import Context, Section
from localshapley.report.tables import Table, as_table, cells_of, number_column, text_column, with_error
from localshapley.valuation.plots import INTERVAL

MAX_LINES = 30
"""Number of owners in the chart; all of them are in the table."""
COLUMNS = {"n_rows": "rows", "value": "value", "stderr": "std. error", "share": "share in %", "share_stderr": "± %"}


class Owners(Section):
    """What `tasks.owners` found."""

    id = "owners"
    title = "Owners"

    def summarise(self, context: Context) -> dict[str, Any] | None:
        owners = context.owners
        if owners is None:
            return None
        exact = not owners["stderr"].any()
        shown = [name for name in COLUMNS if not (exact and name.endswith("stderr"))]
        numbers = [number_column(COLUMNS[name], owners[name]) for name in shown]
        return {
            "exact": exact,
            "n_drawn": min(len(owners), MAX_LINES),
            "table": as_table([text_column("owner", owners.index), *numbers]),
        }

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        return {"owners": summary["table"]}

    def charts(self, summary: dict[str, Any]) -> dict[str, Markup]:
        """Shares if there are any (the sum must be above zero), else values."""
        table, n = summary["table"], summary["n_drawn"]
        what, error, unit = ("share in %", "± %", " %")
        if None in cells_of(table, what):
            what, error, unit = ("value", "std. error", "")
        stderr = [0.0] * n if summary["exact"] else cells_of(table, error)[:n]
        lines = []
        for name, x, off in zip(cells_of(table, "owner")[:n], cells_of(table, what)[:n], stderr, strict=True):
            half = INTERVAL * off
            lines.append((name, with_error(x, half) + unit, x - half, x, x + half))
        return {"owners": charts.intervals(lines, f"Owners: {what}")}
