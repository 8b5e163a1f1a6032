"""The page: its sections one after the other, in one HTML file that needs nothing from a network."""

from __future__ import annotations

import json as json_format
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from localshapley.coalitions.subsets import TrainingCounts
from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.formatting import kinds, one
from localshapley.locality import LocalityGap
from localshapley.report.html_tables import Table, show, text, to_script
from localshapley.report.row_details import Rows
from localshapley.report.sections import SECTIONS, Context, Section
from localshapley.valuation import Valuation
from localshapley.valuation.row_names import check_valuation

if TYPE_CHECKING:
    from localshapley.audit import Copies, LabelErrors, Mending
    from localshapley.tasks import Curves

FORMAT = "localshapley report 6"
PAGES = (".html", ".htm")
"""How a report may end."""
PAGE_SIZE = 25
"""Rows of a table that are shown without JavaScript, and on its first page with it."""


def write_report(
    path: str | Path,
    valuation: Valuation,
    rows: Any = None,
    *,
    y: Any = None,
    levels: TrainingCounts | None = None,
    suspects: LabelErrors | None = None,
    mending: Mending | None = None,
    copies: Copies | None = None,
    curves: Curves | None = None,
    owners: pd.DataFrame | None = None,
    owner: Any = None,
    target: str | None = None,
    table: Any = None,
    file: str | Path | None = None,
    reading: Mapping[str, str] | None = None,
    gap: LocalityGap | None = None,
    image_shape: Sequence[int] | None = None,
    preparation: str | Sequence[str] | None = None,
    title: str = "Data valuation",
    json: bool | str | Path | None = None,
    sections: Sequence[Section] | None = None,
) -> None:
    """Write a page about a valuation, in one HTML file that opens anywhere.

    Parameters
    ----------
    path : path
        The file to write, which ends in ``.html``.
    valuation : Valuation
    rows : DataFrame or array, optional
        The rows that were valued, in their order, as a reader knows them. The first columns are shown, and readers can
        choose others.
    y : array, Series or list, optional
        Their labels, for a column and for the values by class.
    levels : TrainingCounts, optional
        Trainings of the alternatives: ``plan(...).levels``.
    suspects : LabelErrors, optional
        From ``audit.label_errors``.
    owners : DataFrame, optional
        From ``tasks.owners``.
    mending : Mending, optional
        From ``audit.worth_mending`` (or ``audit.mending``): what acting on the suspects is worth.
    copies : Copies, optional
        From ``audit.copies``.
    curves : Curves, optional
        From ``tasks.curves``.
    owner : array, Series or list, optional
        The owner of each row, for a column.
    target : str, optional
        Name of what is predicted; by default the name of `y`, if it is a Series with a name.
    gap : LocalityGap, optional
        From ``locality_gap``.
    table : DataFrame, optional
        The whole table that the rows come from, under their names and with the column `target`, if `rows` holds only
        some of its columns: it is shown beside suspects, and `audit.apply` recognises its rows.
    file : path, optional
        The file that the table was read from; its name is in the command that applies decisions.
    reading : dict of str, optional
        Options `encoding`, `sep` and `na` that this command needs to read the file, such as ``{"sep": ";"}``.
    image_shape : tuple of int, optional
        (height, width) or (height, width, 3), where each row is an image and `rows` are its pixels.
    preparation : str or list of str, optional
        How the columns were prepared.
    title : str, default="Data valuation"
    json : bool or path, optional
        Where to write the contents of the page as JSON, too (``.json``); True takes `path` with that ending.
    sections : list of Section, optional
        What the page is made of, in this order; ``localshapley.report.SECTIONS`` by default.

    Examples
    --------
    >>> import localshapley as ls
    >>> from localshapley.report import write_report
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> v = ls.value(X, y, X_test, y_test, model="knn")
    >>> write_report("iris.html", v, X, y=y)  # doctest: +SKIP
    """
    check_valuation(valuation)
    if not isinstance(path, str | Path):
        raise InvalidArgumentError(f"path must be that of the file to write; got {type(path).__name__}.")
    if Path(path).suffix.lower() not in PAGES:
        raise InvalidArgumentError(
            "path must end in .html, as a report is a web page, which a browser can also print to a PDF; got "
            f"{str(path)!r}."
        )
    if isinstance(json, str | Path) and Path(json).suffix.lower() != ".json":
        raise InvalidArgumentError(f"json must end in .json, or be True for the name of the page; got {str(json)!r}.")
    summary = summarise(
        valuation,
        rows,
        levels,
        title,
        y=y,
        suspects=suspects,
        mending=mending,
        copies=copies,
        curves=curves,
        owners=owners,
        owner=owner,
        target=target,
        table=table,
        file=file,
        reading=reading,
        gap=gap,
        image_shape=image_shape,
        preparation=preparation,
        sections=sections,
    )
    _write(Path(path), render(summary, sections))
    if json is not None and json is not False:
        beside = Path(path).with_suffix(".json") if json is True else Path(json)
        _write(beside, json_format.dumps(summary, ensure_ascii=False, allow_nan=False))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LocalShapleyError(f"{path} cannot be written: {error.strerror}.") from error


def summarise(
    valuation: Valuation,
    rows: Any = None,
    levels: TrainingCounts | None = None,
    title: str = "Data valuation",
    *,
    y: Any = None,
    suspects: LabelErrors | None = None,
    mending: Mending | None = None,
    copies: Copies | None = None,
    curves: Curves | None = None,
    owners: pd.DataFrame | None = None,
    owner: Any = None,
    target: str | None = None,
    table: Any = None,
    file: str | Path | None = None,
    reading: Mapping[str, str] | None = None,
    gap: LocalityGap | None = None,
    image_shape: Sequence[int] | None = None,
    preparation: str | Sequence[str] | None = None,
    n_shown: int = 10,
    sections: Sequence[Section] | None = None,
) -> dict[str, Any]:
    """Collect what the page shows; the arguments are those of `write_report`.

    Parameters
    ----------
    n_shown : int, default=10
        Rows of highest and of lowest value to show.

    Returns
    -------
    dict
        Plain data that JSON can hold: `format`, `title`, `unit`, and `sections` with what each section says, by its id.
        Sections without contents are left out.
    """
    context = Context(
        Rows(valuation, rows, y, image_shape, owner, target, table),
        levels=levels,
        suspects=suspects,
        mending=mending,
        copies=copies,
        curves=curves,
        owners=owners,
        gap=gap,
        file=None if file is None else Path(file).name,
        reading=dict(reading or {}),
        preparation=[preparation] if isinstance(preparation, str) else list(preparation or []),
        n_shown=n_shown,
    )
    found = {section.id: section.summarise(context) for section in _checked(sections)}
    said = {name: part for name, part in found.items() if part is not None}
    unit = context.valuation.unit
    return {"format": FORMAT, "title": str(title), "unit": unit, "about": _about(context.rows), "sections": said}


def render(summary: dict[str, Any], sections: Sequence[Section] | None = None) -> str:
    """Turn a summary into HTML; every text in it is escaped.

    Parameters
    ----------
    summary : dict
        From `summarise`, or read back from its JSON.
    sections : list of Section, optional
        Those that the summary was made with; ``localshapley.report.SECTIONS`` by default.
    """
    shown, said, unit = _shown(summary, sections), summary["sections"], summary["unit"]
    tables = {section.id: section.tables(said[section.id]) for section in shown}
    data = {section.id: section.data(said[section.id]) for section in shown}
    page = _environment().get_template("page.html")
    return page.render(
        title=summary["title"],
        about=summary["about"],
        headline=[line for section in shown for line in section.headline(said[section.id])],
        unit=unit,
        sections=[(section, _body(section, said[section.id], tables[section.id], unit)) for section in shown],
        data=to_script({"page_size": PAGE_SIZE, "tables": tables, "data": data}),
    )


def _about(rows: Rows) -> dict[str, str]:
    """What the page is about, in a few words."""
    v = rows.valuation
    target = {} if rows.target is None else {"Target": text(rows.target)}
    valued = f"{len(v.values):,} {v.unit}s, on {len(v.support_sizes):,} {kinds(v.unit)[1]}"
    return target | {"Model": v.model, "Valued": valued}


def _checked(sections: Sequence[Section] | None) -> Sequence[Section]:
    """The sections of a page, if no two of them have the same id."""
    found = SECTIONS if sections is None else sections
    names = [section.id for section in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InvalidArgumentError(f"sections must differ in their ids; got more than one {min(twice)!r}.")
    return found


def _shown(summary: dict[str, Any], sections: Sequence[Section] | None) -> list[Section]:
    """The sections with contents, if they are those of the summary."""
    if summary.get("format") != FORMAT:
        raise InvalidArgumentError(
            f"summary must have the format {FORMAT!r}; got {summary.get('format')!r}. Make it with summarise()."
        )
    given = _checked(sections)
    strange = summary["sections"].keys() - {section.id for section in given}
    if strange:
        raise InvalidArgumentError(
            f"sections must be those that the summary was made with; none of them has the id {min(strange)!r}."
        )
    return [section for section in given if section.id in summary["sections"]]


def _body(section: Section, summary: dict[str, Any], tables: dict[str, Table], unit: str) -> Markup:
    """What is below the heading of a section; its template may speak of what was valued by its name."""
    drawing = _environment().get_template("table.html")
    drawn = {name: Markup(drawing.render(name=name, **table)) for name, table in tables.items()}
    charts = section.charts(summary)
    template = _template(section.template)
    players, tests = kinds(unit)
    given = {"unit": unit, "one": one(unit), "players": players, "tests": tests} | summary
    return Markup(template.render(**given, tables=SimpleNamespace(**drawn), charts=SimpleNamespace(**charts)))


@cache
def _template(source: str) -> Template:
    return _environment().from_string(source)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("localshapley.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"show": show, "page_size": PAGE_SIZE}
    pieces = environment.get_template("pieces.html").module
    environment.globals |= {name: getattr(pieces, name) for name in ("folded", "fact_list")}
    return environment
