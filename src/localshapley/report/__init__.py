"""The report: one HTML page about a valuation. Summarise (→ dict), draw (→ SVG), render (→ page)."""

from localshapley.report.page import render, write_report
from localshapley.report.summary import summarise

__all__ = ["render", "summarise", "write_report"]
