"""The sections of the page: each is a Python file and a template of the same name."""

from importlib import import_module

from localshapley.report.sections.base import Context, Section

__all__ = ["SECTIONS", "Context", "Section"]

NAMES = (
    "findings",
    "suspects",
    "copies",
    "owners",
    "values",
    "extremes",
    "classes",
    "curves",
    "rows",
    "how",
    "locality",
    "limits",
    "cost",
    "supports",
)
"""The files of this folder in the order of the page; `values.py` has the class `Values`, and so on."""


def _make(name: str) -> Section:
    section: Section = getattr(import_module(f"{__name__}.{name}"), name.capitalize())()
    return section


SECTIONS = tuple(_make(name) for name in NAMES)
"""All sections of the page, in their order."""
