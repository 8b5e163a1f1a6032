"""What the report says, as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from localshapley.coalitions.exact import Levels
from localshapley.counts import duration, in_words
from localshapley.valuation import Valuation

MAX_COLUMNS = 6


def summarise(
    valuation: Valuation, rows: pd.DataFrame | None, levels: Levels | None, title: str, n_shown: int = 10
) -> dict[str, Any]:
    """Collect what the page shows; `rows` are the user's rows in the order of the values."""
    values = valuation.values
    facts = {
        "Model": valuation.model,
        "Score": f"{valuation.score}, summed over {len(valuation.support_sizes)} test rows",
        "Support": f"{valuation.support}: {valuation.support_sizes.min()} to {valuation.support_sizes.max()} rows",
        "Method": valuation.method,
        "Trainer": valuation.cost.trainer,
        "Trainings": f"{valuation.cost.trainings:,} in {duration(valuation.cost.seconds)}",
        "Sum of values": f"{values.sum():.4g}",
        "Rows below zero": f"{int((values < 0).sum())} of {len(values)}",
    }
    frame = valuation.to_frame()
    if rows is not None:
        shown = rows.iloc[:, :MAX_COLUMNS].copy()
        shown.index = frame.index
        frame = frame[["value", "stderr"]].join(shown)
    order = np.argsort(values, kind="stable")
    return {
        "title": title,
        "facts": facts,
        "notes": valuation.notes,
        "levels": _levels(levels, valuation.cost.trainings),
        "histogram": _histogram(values),
        "best": _table(frame.iloc[order[::-1][:n_shown]]),
        "worst": _table(frame.iloc[order[:n_shown]]),
    }


def _levels(levels: Levels | None, trainings: int) -> list[tuple[str, str, float]]:
    """Name, number and, for the bars, the logarithm of the trainings at each level."""
    if levels is None:
        return []
    counts = [
        ("Global Shapley", levels.global_),
        ("Local, player by player", levels.local),
        ("Local, subset by subset", levels.subset_centric),
        ("Each subset once (LSMR)", levels.lsmr),
        ("This run", trainings),
    ]
    return [(name, in_words(n), float(max(n, 1).bit_length())) for name, n in counts]


def _histogram(values: np.ndarray) -> dict[str, list[float]]:
    counts, edges = np.histogram(values, bins=min(40, max(5, len(values) // 4)))
    return {"counts": counts.tolist(), "edges": edges.tolist()}


def _table(frame: pd.DataFrame) -> dict[str, list[Any]]:
    def text(cell: Any) -> str:
        return f"{cell:.4g}" if isinstance(cell, float | np.floating) else str(cell)

    records = [[text(index), *(text(c) for c in row)] for index, row in zip(frame.index, frame.values, strict=True)]
    return {"columns": [str(frame.index.name or "row"), *map(str, frame.columns)], "rows": records}
