"""Numbers counted between edges, for histograms."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import numpy as np

from localshapley.arrays import Floats, Ints
from localshapley.report.charts import round_step
from localshapley.report.html_tables import Table, as_table, number_column

MAX_BINS = 40
"""About as many bars as fit side by side."""


def bins_of_numbers(values: Floats) -> dict[str, Any]:
    """Counts between round edges, of which zero is one."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    step = round_step(high - low, MAX_BINS) if high > low else 1.0
    first, last = floor(low / step), max(ceil(high / step), floor(low / step) + 1)
    places = np.floor(values / step).astype(int).clip(first, last - 1)
    counts = np.bincount(places - first, minlength=last - first)
    return {"counts": counts.tolist(), "edges": [float(f"{i * step:.6g}") for i in range(first, last + 1)]}


def bins_of_counts(sizes: Ints) -> dict[str, Any]:
    """Counts of whole numbers, in steps large enough to keep the bars few."""
    low, high = int(sizes.min()), int(sizes.max())
    step = ceil((high - low + 1) / MAX_BINS)
    counts = np.bincount((sizes - low) // step, minlength=1)
    return {"counts": counts.tolist(), "edges": [low + i * step for i in range(len(counts) + 1)]}


def table_of_bins(bins: dict[str, Any], what: str) -> Table:
    """The bins as a table; `what` is counted."""
    edges = bins["edges"]
    ends = [number_column("from", edges[:-1]), number_column("to below", edges[1:])]
    return as_table([*ends, number_column(what, bins["counts"])])
