"""The summary as an HTML page that needs nothing from a network."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, Template, select_autoescape

from localshapley.coalitions.exact import Levels
from localshapley.locality import LocalityGap
from localshapley.report.figures import MAX_LINES, charts_of, tables_of
from localshapley.report.summary import summarise
from localshapley.report.tables import show, to_script
from localshapley.valuation import Valuation

if TYPE_CHECKING:
    from localshapley.tasks import Curves

PAGE = 25
"""Rows of a table that are there without JavaScript, and on its first page with it."""


def write_report(
    path: str | Path,
    valuation: Valuation,
    rows: Any = None,
    *,
    y: Any = None,
    levels: Levels | None = None,
    suspects: pd.DataFrame | None = None,
    curves: Curves | None = None,
    owners: pd.DataFrame | None = None,
    gap: LocalityGap | None = None,
    image_shape: Sequence[int] | None = None,
    preparation: str | Sequence[str] | None = None,
    title: str = "Data valuation",
    json: bool | str | Path | None = None,
) -> None:
    """Write a page about a valuation, in one HTML file that opens anywhere.

    Parameters
    ----------
    path : path
        The file to write.
    valuation : Valuation
    rows : DataFrame or array, optional
        The rows that were valued, in their order, as a reader knows them: its first columns are shown.
    y : array, Series or list, optional
        Their labels, for a column and for the values by class.
    levels : Levels, optional
        Trainings of the alternatives: ``plan(...).levels``.
    suspects, owners : DataFrame, optional
        From ``tasks.suspects`` and ``tasks.owners``.
    curves : Curves, optional
        From ``tasks.curves``.
    gap : LocalityGap, optional
        From ``locality_gap``.
    image_shape : tuple of int, optional
        (height, width) or (height, width, 3), where each row is an image and `rows` are its pixels.
    preparation : str or list of str, optional
        How the columns were prepared.
    title : str, default="Data valuation"
    json : bool or path, optional
        Where to write what the page says as JSON as well; True takes `path` with the ending ``.json``.

    Examples
    --------
    >>> import localshapley as ls
    >>> from localshapley.report import write_report
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> v = ls.value(X, y, X_test, y_test, model="knn")
    >>> write_report("iris.html", v, X, y=y)  # doctest: +SKIP
    """
    summary = summarise(
        valuation,
        rows,
        levels,
        title,
        y=y,
        suspects=suspects,
        curves=curves,
        owners=owners,
        gap=gap,
        image_shape=image_shape,
        preparation=preparation,
    )
    Path(path).write_text(render(summary), encoding="utf-8")
    if json is not None and json is not False:
        beside = Path(path).with_suffix(".json") if json is True else Path(json)
        beside.write_text(json_format.dumps(summary, ensure_ascii=False, allow_nan=False), encoding="utf-8")


def render(summary: dict[str, Any]) -> str:
    """Turn a summary into HTML; every text in it is escaped."""
    tables = tables_of(summary)
    return _template().render(
        **summary,
        tables=tables,
        charts=charts_of(summary),
        data=to_script(tables),
        show=show,
        page_size=PAGE,
        max_lines=MAX_LINES,
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("localshapley.report"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")
