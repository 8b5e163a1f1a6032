"""The summary as an HTML page that needs nothing from a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, select_autoescape

from localshapley.coalitions.exact import Levels
from localshapley.report.summary import summarise
from localshapley.valuation import Valuation


def write_report(
    path: str | Path,
    valuation: Valuation,
    rows: pd.DataFrame | None = None,
    *,
    levels: Levels | None = None,
    title: str = "Data valuation",
) -> None:
    """Write the page about a valuation to `path`."""
    Path(path).write_text(render(summarise(valuation, rows, levels, title)), encoding="utf-8")


def render(summary: dict[str, Any]) -> str:
    """Turn a summary into HTML; every text in it is escaped."""
    environment = Environment(loader=PackageLoader("localshapley.report"), autoescape=select_autoescape(["html"]))
    template = environment.get_template("page.html")
    return template.render(**summary, bars=_bars(summary["histogram"]))


def _bars(histogram: dict[str, list[float]], width: float = 640, height: float = 180) -> list[dict[str, float | bool]]:
    """Rectangles of the histogram in a picture of `width` × `height`."""
    counts, edges = histogram["counts"], histogram["edges"]
    tallest = max(max(counts), 1)
    step = width / len(counts)
    return [
        {
            "x": i * step,
            "y": height * (1 - count / tallest),
            "width": step - 1,
            "height": height * count / tallest,
            "below": edges[i + 1] <= 0,
            "count": count,
            "low": edges[i],
            "high": edges[i + 1],
        }
        for i, count in enumerate(counts)
    ]
