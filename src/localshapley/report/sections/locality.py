"""How far the values are from global ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from localshapley.locality import LocalityGap
from localshapley.report import charts
from localshapley.report.html_tables import Table, as_table, number_column
from localshapley.report.sections.base import Context, Section

MAX_DOTS = 200
"""Maximum number of rows in the chart of local and global values."""


class LocalitySection(Section):
    """The verdict of `locality_gap` in words, and local values beside global ones."""

    id = "locality"
    title = "Locality"
    heading = "Locality check"

    def summarise(self, context: Context) -> dict[str, Any] | None:
        gap = context.gap
        if gap is None:
            return None
        shown = np.sort(np.argsort(-np.abs(gap.global_), kind="stable")[:MAX_DOTS])
        columns = [number_column("local", gap.local[shown]), number_column("global", gap.global_[shown])]
        return {
            "enough": bool(gap.enough),
            "advice": gap.advice,
            "facts": _facts(gap),
            "n_rows": len(gap.local),
            "table": as_table([context.rows.names(shown), *columns]),
        }

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        return {"gap": summary["table"]}

    def charts(self, summary: dict[str, Any]) -> dict[str, Markup]:
        names, local, everywhere = zip(*summary["table"]["rows"], strict=True)
        titles = [f"{name}: local {a}, global {b}" for name, a, b in zip(names, local, everywhere, strict=True)]
        label = "Local against global values"
        return {"gap": charts.scatter(everywhere, local, titles, label, "global value", "local value")}


def _facts(gap: LocalityGap) -> dict[str, str]:
    size, noise = f"{gap.gap:.1%} ± {gap.gap_stderr:.1%} of the size of the values", f"{gap.noise:.1%}"
    return {
        "Gap": f"{size}; sampling noise alone would show {noise}",
        "Rank correlation": f"{gap.rank_correlation:.3f} ± {gap.rank_correlation_stderr:.3f} (± is one standard error)",
        "Checked on": f"{len(gap.tests)} {gap.tested}, {gap.permutations:,} permutations, {gap.trainings:,} trainings",
    }
