"""What the values cost, and what they would have cost without reuse."""

from __future__ import annotations

from math import floor, log10
from typing import Any

from markupsafe import Markup

from localshapley.coalitions.subsets import TrainingCounts
from localshapley.formatting import counted, duration
from localshapley.report import charts
from localshapley.report.html_tables import Table, as_table, number_column, text_column
from localshapley.report.sections.base import Context, Section
from localshapley.valuation import Cost

Line = tuple[str, str, float]
"""Name, number in words, and length of a bar."""


class CostSection(Section):
    """Trainings of this run beside those of the alternatives, and what was reused."""

    id = "cost"
    title = "Cost"
    heading = "What it cost, and what was reused"
    folded = True

    def summarise(self, context: Context) -> dict[str, Any]:
        cost, levels = context.valuation.cost, context.levels
        return {
            "trainings": cost.trainings,
            "time": duration(cost.seconds),
            "closed": cost.trainings == cost.stored == 0,
            "levels": [] if levels is None else _levels(levels, cost.trainings),
            "digits": 0 if levels is None else floor(log10(levels.global_)) + 1,
            "growth": None if levels is None else _growth(levels),
            "reuse": _reuse(cost),
        }

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        tables = {"reuse": _table(summary["reuse"], "coalitions", "number")}
        if summary["levels"]:
            tables["levels"] = _table(summary["levels"], "way to compute the values", "trainings")
            tables["growth"] = summary["growth"]
        return tables

    def charts(self, summary: dict[str, Any]) -> dict[str, Markup]:
        drawn = {"reuse": charts.bars(summary["reuse"], "Coalitions scored and trained")}
        if summary["levels"]:
            drawn["levels"] = charts.bars(summary["levels"], "Trainings, on a logarithmic scale")
        return drawn


def _levels(levels: TrainingCounts, trainings: int) -> list[Line]:
    """Trainings at each level; bars are on a logarithmic scale."""
    counts = [
        ("Global Shapley", levels.global_),
        ("Local, player by player", levels.local),
        ("Local, subset by subset", levels.subset_centric),
        ("Each subset once (LSMR)", levels.lsmr),
        ("This run", trainings),
    ]
    return [(name, counted(n, "training"), log10(n) if n else 0.0) for name, n in counts]


def _growth(levels: TrainingCounts) -> Table:
    """How the number of distinct subsets grows with the test rows."""
    each = [f"{count / t:,.1f}" if count < 10**6 else counted(count // t, "subset") for t, count in levels.growth]
    return as_table(
        [
            number_column("test rows", [t for t, _ in levels.growth]),
            text_column("distinct subsets", [counted(count, "subset") for _, count in levels.growth]),
            text_column("per test row", each),
        ]
    )


def _reuse(cost: Cost) -> list[Line]:
    """How many coalitions were scored, and how many of these were trained."""
    counts = [
        ("Scored", cost.draws),
        ("Distinct", cost.distinct),
        ("From the store", cost.stored),
        ("Trained", cost.trainings),
    ]
    return [(name, counted(n, "coalition"), float(n)) for name, n in counts if n or name == "Trained"]


def _table(lines: list[Line], what: str, count: str) -> Table:
    names, words, _ = zip(*lines, strict=True)
    return as_table([text_column(what, names), text_column(count, words)])
