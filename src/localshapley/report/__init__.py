"""The report: one HTML page about a valuation, made of sections that can be exchanged and added to."""

from localshapley.report.page import render, summarise, write_report
from localshapley.report.sections import SECTIONS, Context, Section

__all__ = ["SECTIONS", "Context", "Section", "render", "summarise", "write_report"]
