"""Which tables and charts a summary has, by their place in the page."""

from __future__ import annotations

from math import floor, log10
from typing import Any

from markupsafe import Markup

from localshapley.report import charts
from localshapley.report.tables import Table, as_table, number_column, text_column

MAX_LINES = 30
"""Owners that are drawn; all of them are in the table."""


def tables_of(summary: dict[str, Any]) -> dict[str, Table]:
    """All tables of the page; those without rows are left out."""
    plain = ("best", "worst", "rows", "suspects", "classes", "owners", "growth")
    tables = {name: summary[name] for name in plain}
    tables |= {
        "histogram": _counts(summary["histogram"], "training rows"),
        "supports": _counts(summary["supports"], "test rows"),
        "reach": _counts(summary["reach"], "training rows"),
        "levels": _numbers(summary["levels"], "way to the values", "trainings"),
        "reuse": _numbers(summary["reuse"], "coalitions", "number"),
        "curves": summary["curves"] and summary["curves"]["table"],
        "gap": summary["gap"] and summary["gap"]["table"],
    }
    return {name: table for name, table in tables.items() if table and table["rows"]}


def charts_of(summary: dict[str, Any]) -> dict[str, Markup]:
    """All charts of the page; where all counts would be in one bar there is none."""
    values, supports, reach = summary["histogram"], summary["supports"], summary["reach"]
    size, tests = "rows in the support of a test row", "test rows that a training row can matter to"
    drawn = {
        "histogram": charts.histogram(**values, label="Values", across="value", up="training rows"),
        "ranking": _ranking(summary["ranking"]),
        "reuse": charts.bars(summary["reuse"], "Coalitions scored and trained"),
    }
    if len(supports["counts"]) > 1:
        drawn["supports"] = charts.histogram(**supports, label="Support sizes", across=size, up="test rows", whole=True)
    if len(reach["counts"]) > 1:
        drawn["reach"] = charts.histogram(**reach, label="Test rows", across=tests, up="training rows", whole=True)
    if summary["levels"]:
        drawn["levels"] = charts.bars(summary["levels"], "Trainings, on a logarithmic scale")
    for name, draw in (("classes", _classes), ("owners", _owners), ("curves", _curves), ("gap", _gap)):
        if summary[name]:
            drawn[name] = draw(summary[name])
    return drawn


def _counts(histogram: dict[str, list[float]], what: str) -> Table:
    edges, counts = histogram["edges"], histogram["counts"]
    ends = [number_column("from", edges[:-1]), number_column("to below", edges[1:])]
    return as_table([*ends, number_column(what, counts)])


def _numbers(lines: list[tuple[str, str, float]], what: str, count: str) -> Table | None:
    if not lines:
        return None
    names, words, _ = zip(*lines, strict=True)
    return as_table([text_column(what, names), text_column(count, words)])


def _column(table: Table, name: str) -> list[Any]:
    """A column by its name; zeros where the table has none such."""
    names = [column["name"] for column in table["columns"]]
    return [row[names.index(name)] if name in names else 0 for row in table["rows"]]


def _with_error(x: float, half: float) -> str:
    """A number with what it may be off, both to two digits of the latter."""
    if not half:
        return f"{x:.4g}"
    decimals = max(1 - floor(log10(half)), 0)
    return f"{x:.{decimals}f} ± {half:.{decimals}f}"


def _ranking(lines: list[dict[str, Any]]) -> Markup:
    drawn = []
    for line in lines:
        low, value, high = line["low"], line["value"], line["high"]
        drawn.append((line["row"], _with_error(value, (high - low) / 2), low, value, high))
    return charts.intervals(drawn, "The highest and the lowest values")


def _classes(table: Table) -> Markup:
    parts = (_column(table, name) for name in ("label", "10 % below", "median", "10 % above"))
    lines = [(label, f"{median:.3g}", low, median, high) for label, low, median, high in zip(*parts, strict=True)]
    return charts.intervals(lines, "Median value of each class, and the range of the middle 80 % of its rows")


def _owners(table: Table) -> Markup:
    """Shares where there are any, which takes a sum above zero, else values."""
    what, error, unit = ("share in %", "± %", " %")
    if any(share is None for share in _column(table, what)):
        what, error, unit = ("value", "std. error", "")
    lines = []
    columns = (_column(table, name)[:MAX_LINES] for name in ("owner", what, error))
    for name, x, stderr in zip(*columns, strict=True):
        half = charts.WIDTH * stderr
        lines.append((name, _with_error(x, half) + unit, x - half, x, x + half))
    return charts.intervals(lines, f"Owners: {what}")


def _curves(curves: dict[str, Any]) -> Markup:
    table = curves["table"]
    names = _column(table, "curve")
    columns = {key: _column(table, key) for key in ("share in %", "mean", "low", "high")}
    lines = []
    for name in dict.fromkeys(names):
        own = [i for i, other in enumerate(names) if other == name]
        picked = {key: [column[i] for i in own] for key, column in columns.items()}
        lines.append({"name": name, "x": picked.pop("share in %"), **picked})
    return charts.curves(lines, "Selection curves", "rows added or removed", curves["score"])


def _gap(gap: dict[str, Any]) -> Markup:
    names, local, everywhere = zip(*gap["table"]["rows"], strict=True)
    titles = [f"{name}: local {a}, global {b}" for name, a, b in zip(names, local, everywhere, strict=True)]
    return charts.scatter(everywhere, local, titles, "Local against global values", "global value", "local value")
