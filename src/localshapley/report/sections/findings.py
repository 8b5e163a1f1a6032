"""What was found, and what to do about it, for a reader who decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pandas as pd
from markupsafe import Markup

from localshapley.audit import Mending, Verdict
from localshapley.models.skill import NAMES
from localshapley.report import charts
from localshapley.report.html_tables import Table, as_table, number, number_column, text, text_column
from localshapley.report.sections.base import Context, Section
from localshapley.valuation import Skill, Valuation
from localshapley.valuation.intervals import counted_sure, n_sure

MAX_CLASSES = 30


class Findings(Section):
    """The suspects by class, how good the model is, what mending labels would bring, and cautions."""

    id = "findings"
    title = "Findings"
    heading = "What was found, and what to do"

    def summarise(self, context: Context) -> dict[str, Any]:
        v, suspects = context.valuation, context.suspects
        judged = None if suspects is None else suspects.verdict
        n_hurt = n_sure(v)[0]
        numbers = judged is not None and judged.is_regression
        owners = None if suspects is None else context.rows.owners_of(suspects.table.index)
        return {
            "n_rows": len(v.values),
            "unit": v.unit,
            "n_hurt": n_hurt,
            "sure": None if v.spread_tests is None else counted_sure(v),
            "n_suspects": None if judged is None else judged.n_suspects,
            "n_wrong": None if judged is None or judged.n_wrong is None else [round(n) for n in judged.n_wrong],
            "what": "numbers" if numbers else "labels",
            "harm": _harm(judged),
            "skill": None if v.skill is None else asdict(v.skill),
            "mending": None if context.mending is None else asdict(context.mending),
            "cautions": [] if judged is None else [_sentence(caution) for caution in judged.cautions],
            "found": list(_found(v, judged, context, "number" if numbers else "label", n_hurt)),
            "advice": list(_advice(judged, owners, n_hurt, v.unit)),
            "classes": None if judged is None else _classes(judged),
        }

    def tables(self, summary: dict[str, Any]) -> dict[str, Table]:
        return {} if summary["classes"] is None else {"suspected": summary["classes"]}

    def charts(self, summary: dict[str, Any]) -> dict[str, Markup]:
        table = summary["classes"]
        if table is None:
            return {}
        lines = [
            (label, f"{suspects:,} of {rows:,} ({share:.0f} %)", suspects / rows)
            for label, suspects, rows, share in table["rows"]
        ]
        return {"suspected": charts.bars(lines, "Share of the rows of each class that are suspected", alike=True)}

    def headline(self, summary: dict[str, Any]) -> list[tuple[str, str]]:
        tiles = []
        n, n_suspects, n_hurt = summary["n_rows"], summary["n_suspects"], summary["n_hurt"]
        if summary["n_wrong"] is not None:
            about, low, high = summary["n_wrong"]
            tiles.append((f"{about:,}", f"of {n:,} {summary['what']} look wrong ({low:,} to {high:,}, with 95 %)"))
        elif n_suspects is not None:
            tiles.append((f"{n_suspects:,}", f"of {n:,} {summary['what']} look wrong ({_percent(n_suspects / n)})"))
        if summary["skill"] is not None:
            tiles.append(_tile(Skill(**summary["skill"])))
        if summary["mending"] is not None and not summary["cautions"]:
            tiles.append(_tile_of_mending(Mending(**summary["mending"])))
        if summary["sure"] is None:
            hurt = f"of {n:,} {summary['unit']}s make predictions worse: their value is below zero beyond doubt"
            return [*tiles, (f"{n_hurt:,}", hurt)]
        sure, still = summary["sure"]
        first = int(summary["n_wrong"] is not None)
        return [*tiles[:first], (f"{sure:,}", still), *tiles[first:]]


def _harm(judged: Verdict | None) -> dict[str, Any] | None:
    if judged is None or judged.harm is None or judged.harm_stderr is None:
        return None
    return {"sum": number(judged.harm), "stderr": number(judged.harm_stderr)}


def _tile(skill: Skill) -> tuple[str, str]:
    if skill.score == "accuracy":
        against = f"always predicting “{text(skill.constant)}” would get {_percent(skill.guess)}"
        return _percent(skill.model), f"accuracy on {skill.n_tests:,} held-out rows; {against}"
    return f"{skill.model:.2f}", f"R² on {skill.n_tests:,} held-out rows; always predicting the mean would get 0"


def _tile_of_mending(mending: Mending) -> tuple[str, str]:
    gain, low, high = mending.gains["relabelled"]
    interval = f"95 % interval {_gain(low, mending.score)} to {_gain(high, mending.score)}"
    name, measured = NAMES[mending.score], "with the suggested labels, measured on held-out rows"
    if gain == low == high == 0:
        return "no change", f"of {name} {measured}: no row is predicted better or worse"
    if low <= 0 <= high:
        return "no sure change", f"of {name} {measured}: {_gain(gain, mending.score)} ({interval})"
    return _gain(gain, mending.score), f"of {name} {measured} ({interval})"


def _found(v: Valuation, judged: Verdict | None, context: Context, what: str, n_hurt: int) -> Iterator[str]:
    target = "" if context.rows.target is None else f" in “{text(context.rows.target)}”"
    if judged is not None and judged.n_wrong is not None:
        about, low, high = (f"{round(n):,}" for n in judged.n_wrong)
        yield (
            f"About {about} ({low} to {high}) of {judged.n_rows:,} {what}s{target} look wrong. "
            f"{judged.n_suspects:,} are listed below, the surest first."
        )
    elif judged is not None and judged.n_suspects:
        assert context.suspects is not None
        listed = context.suspects.table
        agree = listed["agreement"].median() if "agreement" in listed else 1.0
        outvoted = ", and most rows like them have another label" if agree < 0.5 else ""
        yield f"{judged.n_suspects:,} of {judged.n_rows:,} {what}s{target} look wrong: these rows do harm{outvoted}."
    elif judged is not None:
        yield f"No {what}{target} looks wrong."
    if v.skill is not None:
        yield _quality(v.skill)
    if context.mending is not None:
        yield _measured(context.mending)
        if judged is not None and judged.cautions:
            yield (
                "Do not read that change as a gain, because of the caution above: a model that only predicts the most "
                "frequent label more often may score higher, too."
            )
    elif judged is not None and judged.n_suspects and judged.harm is not None:
        yield _estimated(judged, judged.harm, v)
    if judged is None:
        yield f"{n_hurt:,} of {len(v.values):,} {v.unit}s have a value below zero beyond doubt."


def _quality(skill: Skill) -> str:
    close = " That is no clear lead: the difference is within two standard errors." if skill.is_near_chance else ""
    if skill.score == "accuracy":
        return (
            f"The model, trained on all rows, gets {_percent(skill.model)} of {skill.n_tests:,} held-out rows right. "
            f"Always predicting “{text(skill.constant)}”, the most frequent label, would get {_percent(skill.guess)}."
            f"{close}"
        )
    return (
        f"The model, trained on all rows, avoids {_percent(skill.model)} of the squared error that predicting the mean "
        f"would have on {skill.n_tests:,} held-out rows (R² {skill.model:.2f}).{close}"
    )


def _measured(m: Mending) -> str:
    flattered = "" if m.apart else " Expect less than this on others."
    clear = ""
    if m.unsuspected is not None:
        drop, relabel = (_gain(gain, m.score) for gain, _, _ in m.unsuspected.gains.values())
        which = "that most lists made for this do not suspect" if m.apart else "that are not suspected"
        clear = f" On the {m.unsuspected.n_tests:,} of them {which}, the changes are {drop} and {relabel}."
    return (
        f"What mending brings, measured by training again: {m.sentence}.{flattered} They keep their labels, wrong "
        f"ones too, which makes a real gain look smaller.{clear} The intervals are about other held-out rows, not "
        "other training rows."
    )


def _estimated(judged: Verdict, harm: float, v: Valuation) -> str:
    error = f" ± {judged.harm_stderr:.3g}, one standard error" if judged.harm_stderr else ""
    each = f"{harm / len(v.support_sizes):.3g} per test row"
    return (
        f"An estimate of what mending could bring: the values of the suspected rows add up to {harm:.4g}{error} "
        f"({text(v.score)}, summed over {len(v.support_sizes):,} test rows), or {each}. That is the mean effect of "
        "these rows over training sets of all sizes. Among many good rows they do less harm, so expect a smaller gain; "
        "training again without them measures it."
    )


def _advice(judged: Verdict | None, owners: pd.Series | None, n_hurt: int, unit: str) -> Iterator[str]:
    if judged is None:
        yield f"Look at the {unit}s of lowest value first."
        return
    if judged.cautions:
        yield "Do not change labels by this list alone. See by hand whether the first twenty are wrong; stop if not."
    if not judged.n_suspects:
        still = f" The {n_hurt:,} rows that hurt may still be unusual or measured wrongly." if n_hurt else ""
        yield f"There is no label to mend.{still}"
        return
    yield (
        "Look at the suspected rows, most suspicious first, beside the label that is suggested. Correct "
        "labels that are wrong; drop rows that nobody can judge. None of them is proven wrong."
    )
    if owners is not None and owners.nunique() > 1:
        most, count = text(owners.value_counts().index[0]), int(owners.value_counts().iloc[0])
        yield f"Ask “{most}” first: {count:,} of the {len(owners):,} suspected rows are from there."
    yield (
        "Save your decisions and apply them to the table (localshapley apply, or audit.apply). Then value the rows "
        "again, and see whether the model has become better on held-out rows."
    )


def _classes(judged: Verdict) -> Table | None:
    table = judged.by_class
    if table is None or not judged.n_suspects:
        return None
    table = table.iloc[:MAX_CLASSES]
    return as_table(
        [
            text_column("label", table.index),
            number_column("suspected", table["suspects"]),
            number_column("rows", table["rows"]),
            number_column("share in %", 100 * table["share"], decimals=1),
        ]
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _gain(difference: float, score: str) -> str:
    """A difference with its sign: of accuracies in points, a hundredth each."""
    return f"{100 * difference:+.1f} points" if score == "accuracy" else f"{difference:+.3f}"


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]
