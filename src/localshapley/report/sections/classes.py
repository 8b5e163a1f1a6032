"""Values by class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from localshapley.arrays import Floats
from localshapley.report import charts
from localshapley.report.html_tables import Table, as_table, cells_of, each_once, number_column, text, text_column
from localshapley.report.sections.base import Context, Section

MAX_CLASSES = 30
QUANTILES = {"10th percentile": 0.1, "median": 0.5, "90th percentile": 0.9}


class ClassesSection(Section):
    """What the rows of each class are worth, the largest classes first."""

    id = "classes"
    title = "Classes"
    heading = "Values by class"

    def summarise(self, context: Context) -> dict[str, Any] | None:
        y = context.rows.y
        if y is None or _is_measured(y):
            return None
        labels = pd.Series(each_once(y, text))
        return {"n_classes": int(labels.nunique()), "table": _table(context.valuation.values, labels)}

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        return {"classes": summary["table"]}

    def charts(self, summary: dict[str, Any]) -> dict[str, Markup]:
        columns = [cells_of(summary["table"], name) for name in ("label", *QUANTILES)]
        lines = [(label, f"{median:.3g}", low, median, high) for label, low, median, high in zip(*columns, strict=True)]
        label = "Median value of each class, and the middle 80 % of its rows"
        return {"classes": charts.intervals(lines, label)}


def _is_measured(y: pd.Series) -> bool:
    """Whether the labels are measured numbers, not classes."""
    return pd.api.types.is_float_dtype(y) and y.nunique() > MAX_CLASSES


def _table(values: Floats, labels: pd.Series) -> Table:
    groups = pd.Series(values).groupby(labels.to_numpy())
    names = groups.size().sort_values(ascending=False, kind="stable").index[:MAX_CLASSES]
    found = [groups.get_group(name).to_numpy() for name in names]
    return as_table(
        [
            text_column("label", names),
            number_column("rows", [len(x) for x in found]),
            number_column("below zero", [(x < 0).sum() for x in found]),
            number_column("sum", [x.sum() for x in found]),
            number_column("mean", [x.mean() for x in found]),
            *(number_column(name, [np.quantile(x, q) for x in found]) for name, q in QUANTILES.items()),
        ]
    )
