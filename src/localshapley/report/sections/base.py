"""What a section of the page is, and what it may read."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from markupsafe import Markup

from localshapley.coalitions.subsets import TrainingCounts
from localshapley.locality import LocalityGap
from localshapley.report.html_tables import Table
from localshapley.report.row_details import Rows
from localshapley.valuation import Valuation

if TYPE_CHECKING:
    from localshapley.audit import Copies, LabelErrors, Mending
    from localshapley.tasks import Curves


class Section(ABC):
    """A part of the page: data, tables and charts made here, words in a template.

    Attributes
    ----------
    id : str
        Names the section in links and in the JSON.
    title : str
        Its name in the contents of the page.
    heading : str
        Its heading; the title, if not set.
    folded : bool
        Whether a reader has to open it.
    template : str
        Its body as a Jinja template; the file ``<id>.html`` beside the Python file, if not set. It sees the entries
        of the summary by their names, ``tables.<name>`` and ``charts.<name>`` ready to show, ``folded(...)``,
        ``fact_list(...)``, ``page_size``, and the names of what was valued, such as ``unit`` (row), ``players``
        (training rows) and ``tests`` (test rows). Every text is escaped.

    Examples
    --------
    >>> import localshapley as ls
    >>> from localshapley.report import Section, render, summarise
    >>> class Advice(Section):
    ...     id = "advice"
    ...     title = "Advice"
    ...     template = "<p>Look at the {{ n }} rows below zero.</p>"
    ...
    ...     def summarise(self, context):
    ...         return {"n": int((context.valuation.values < 0).sum())}
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> v = ls.value(X, y, X_test, y_test, model="knn")
    >>> summary = summarise(v, sections=[Advice()])
    >>> summary["sections"]
    {'advice': {'n': 6}}
    >>> "<p>Look at the 6 rows below zero.</p>" in render(summary, [Advice()])
    True
    """

    id: str
    title: str
    folded: bool = False

    @property
    def heading(self) -> str:
        """The heading of the section."""
        return self.title

    @property
    def template(self) -> str:
        """The body of the section, as a Jinja template."""
        return Path(inspect.getfile(type(self))).with_name(f"{self.id}.html").read_text(encoding="utf-8")

    @abstractmethod
    def summarise(self, context: Context) -> dict[str, Any] | None:
        """The contents of the section, as plain data that JSON can hold; None if it has none."""

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        """Tables by their names, which readers can sort and search."""
        return {}

    def data(self, summary: dict[str, Any]) -> Any:
        """Plain data for the script of the page, besides the tables; None if it needs none."""
        return None

    def charts(self, summary: dict[str, Any]) -> dict[str, Markup]:
        """Charts by their names."""
        return {}

    def headline(self, summary: dict[str, Any]) -> list[tuple[str, str]]:
        """Numbers for the top of the page, each with what it counts."""
        return []


@dataclass(frozen=True)
class Context:
    """What the sections may read.

    Attributes
    ----------
    rows : Rows
        The valued rows as the user knows them.
    levels, suspects, mending, copies, curves, owners, gap
        As given to `write_report`; None where they were not.
    file : str or None
        Name of the file that the table comes from.
    reading : dict
        Options with which the file is read, where they are not the default.
    preparation : list of str
    n_shown : int
        Rows of highest and of lowest value to show.
    """

    rows: Rows
    levels: TrainingCounts | None = None
    suspects: LabelErrors | None = None
    mending: Mending | None = None
    copies: Copies | None = None
    curves: Curves | None = None
    owners: pd.DataFrame | None = None
    gap: LocalityGap | None = None
    file: str | None = None
    reading: Mapping[str, str] = field(default_factory=dict)
    preparation: Sequence[str] = ()
    n_shown: int = 10

    @property
    def valuation(self) -> Valuation:
        """The valuation that the page is about."""
        return self.rows.valuation
