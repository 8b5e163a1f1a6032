"""The sections of the page: each is a Python file, and a template that is named by its id."""

from importlib import import_module

from localshapley.report.sections.base import Context, Section

__all__ = ["SECTIONS", "Context", "Section"]

NAMES = (
    "findings",
    "suspect_list",
    "copied_rows",
    "owner_shares",
    "values",
    "extremes",
    "classes",
    "removal_curves",
    "row_table",
    "how",
    "locality",
    "caveats",
    "cost",
    "support_sizes",
)
"""The files of this folder in the order of the page; `row_table.py` has the class `RowTableSection`, and so on."""


def _make(name: str) -> Section:
    section: Section = getattr(import_module(f"{__name__}.{name}"), f"{name.title().replace('_', '')}Section")()
    return section


SECTIONS = tuple(_make(name) for name in NAMES)
"""All sections of the page, in their order."""
