"""All rows, in a table that fits into a page."""

from __future__ import annotations

from typing import Any

import numpy as np

from localshapley.arrays import Ints
from localshapley.report.html_tables import Table, as_table
from localshapley.report.sections.base import Context, Section
from localshapley.valuation import Valuation
from localshapley.valuation.row_names import by_value

MAX_ROWS = 10_000
"""If there are more rows, the table has only the lowest and the highest."""
MAX_PIXELS = 250_000
"""Maximum number of pixels of all images; if there are more, the table has no images."""


class RowTableSection(Section):
    """The table of all rows, lowest value first."""

    id = "rows"
    title = "All rows"

    def summarise(self, context: Context) -> dict[str, Any]:
        rows = context.rows
        positions = _lowest_and_highest(context.valuation)
        images = rows.images(positions) if rows.n_pixels <= MAX_PIXELS else []
        features, labels = rows.features(positions), [*rows.labels(positions), *rows.owners(positions)]
        known = [rows.names(positions), *images, *rows.judgement(positions), *labels]
        return {
            "n_rows": len(context.valuation.values),
            "n_features": rows.n_features,
            "n_features_shown": len(features),
            "table": as_table([*known, *features]),
        }

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        return {"rows": summary["table"]}


def _lowest_and_highest(valuation: Valuation) -> Ints:
    """Positions of as many rows as a page can hold, lowest value first."""
    upwards = by_value(valuation, best_first=False)
    if len(upwards) <= MAX_ROWS:
        return upwards
    downwards = by_value(valuation, best_first=True)
    return np.concatenate([upwards[: MAX_ROWS // 2], downwards[: MAX_ROWS // 2][::-1]])
