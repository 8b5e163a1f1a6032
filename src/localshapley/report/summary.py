"""What the report says, as plain data: texts, numbers and tables, no HTML."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from localshapley.arrays import Floats, Ints
from localshapley.coalitions.exact import Levels
from localshapley.locality import LocalityGap
from localshapley.report.charts import WIDTH, round_step
from localshapley.report.rows import Rows
from localshapley.report.tables import Table, any_column, as_table, number, number_column, text, text_column
from localshapley.valuation import Valuation
from localshapley.wording import duration, in_words

if TYPE_CHECKING:
    from localshapley.tasks import Curves

FORMAT = "localshapley report 1"
N_BINS = 40
MAX_SUSPECTS = 500
MAX_CLASSES = 30
MAX_DOTS = 200
"""Rows in the chart of local and global values."""
FEW_TESTS = 50
"""Below so many test rows the page warns that others may say something else."""


def summarise(
    valuation: Valuation,
    rows: Any = None,
    levels: Levels | None = None,
    title: str = "Data valuation",
    *,
    y: Any = None,
    suspects: pd.DataFrame | None = None,
    curves: Curves | None = None,
    owners: pd.DataFrame | None = None,
    gap: LocalityGap | None = None,
    image_shape: Sequence[int] | None = None,
    preparation: str | Sequence[str] | None = None,
    n_shown: int = 10,
) -> dict[str, Any]:
    """Collect what the page shows; the arguments are those of `write_report`.

    Parameters
    ----------
    n_shown : int, default=10
        Rows of highest and of lowest value to show.

    Returns
    -------
    dict
        Plain data that JSON can hold; parts that were not given are None.
    """
    v = valuation
    known = Rows(v, rows, y, image_shape)
    upwards, downwards = np.argsort(v.values, kind="stable"), np.argsort(-v.values, kind="stable")
    n_shown = min(n_shown, ceil(len(upwards) / 2))
    return {
        "format": FORMAT,
        "title": str(title),
        "exact": known.exact,
        "headline": _headline(v, levels, suspects),
        "facts": _facts(v),
        "preparation": [preparation] if isinstance(preparation, str) else [str(line) for line in preparation or []],
        "notes": [str(note) for note in v.notes],
        "n_rows": len(v.values),
        "n_tests": len(v.support_sizes),
        "n_features": known.n_features,
        "n_classes": 0 if known.y is None else int(known.y.map(text).nunique()),
        "n_suspects": 0 if suspects is None else len(suspects),
        "n_unjudged": int((v.n_tests == 0).sum()),
        "levels": _levels(levels, v.cost.trainings),
        "growth": _growth(levels),
        "closed": _is_closed(v),
        "reuse": _reuse(v),
        "histogram": _histogram(v.values),
        "ranking": _ranking(known, np.concatenate([downwards[:n_shown], upwards[:n_shown][::-1]])),
        "best": known.table(downwards[:n_shown]),
        "worst": known.table(upwards[:n_shown]),
        "rows": known.all_rows(upwards, downwards),
        "classes": None if known.y is None else _classes(v.values, known.y),
        "suspects": None if suspects is None else _suspects(suspects, known),
        "curves": None if curves is None else _curves(curves),
        "owners": None if owners is None else _owners(owners),
        "gap": None if gap is None else _gap(gap, known),
        "supports": _sizes(v.support_sizes),
        "reach": _sizes(v.n_tests),
        "limits": _limits(v, gap),
    }


def _headline(v: Valuation, levels: Levels | None, suspects: pd.DataFrame | None) -> list[tuple[str, str]]:
    """The numbers that a person wants first, each with what it counts."""
    n, n_tests = len(v.values), len(v.support_sizes)
    hurt = int((v.values + WIDTH * v.stderr < 0).sum())
    below = int((v.values < 0).sum())
    doubt = f"; {below - hurt:,} more may" if below > hurt else ""
    found = [
        (f"{n:,}", f"training rows valued on {n_tests:,} test rows"),
        (f"{hurt:,}", f"rows hurt the model ({hurt / n:.0%}): value below zero{doubt}"),
    ]
    if suspects is not None:
        found.append((f"{len(suspects):,}", "suspects whose label may be wrong"))
    time = duration(v.cost.seconds)
    words = f"trainings: the values have a closed form, which took {time}" if _is_closed(v) else f"trainings in {time}"
    if levels is not None:
        words += f"; global Shapley values would take {in_words(levels.global_)}"
    return [*found, (in_words(v.cost.trainings), words)]


def _is_closed(v: Valuation) -> bool:
    return v.cost.trainings == v.cost.stored == 0


def _facts(v: Valuation) -> dict[str, str]:
    low, high = int(v.support_sizes.min(initial=2**62)), int(v.support_sizes.max(initial=0))
    sizes = f"{high} rows each" if low >= high else f"{low} to {high} rows, median {np.median(v.support_sizes):g}"
    error = "exact" if not v.stderr.any() else f"sampled; standard errors together {v.relative_error:.1%} of the values"
    return {
        "Model": v.model,
        "Score": f"{v.score}, summed over {len(v.support_sizes):,} test rows",
        "Support of a test row": f"{v.support}: {sizes}",
        "Method": v.method,
        "Precision": error,
        "Stopped": v.stopped,
        "Trained by": v.cost.trainer,
        "Trainings": f"{v.cost.trainings:,} in {duration(v.cost.seconds)}",
        "Sum of all values": f"{v.values.sum():.4g}",
        "Below, at and above zero": f"{_signs(v.values)} rows",
    }


def _signs(values: Floats) -> str:
    return ", ".join(f"{int(found.sum()):,}" for found in (values < 0, values == 0, values > 0))


def _levels(levels: Levels | None, trainings: int) -> list[tuple[str, str, float]]:
    """Name, number in words and, for the bars, power of ten of the trainings at each level."""
    if levels is None:
        return []
    counts = [
        ("Global Shapley", levels.global_),
        ("Local, player by player", levels.local),
        ("Local, subset by subset", levels.subset_centric),
        ("Each subset once (LSMR)", levels.lsmr),
        ("This run", trainings),
    ]
    return [(name, in_words(n), log10(n) if n else 0.0) for name, n in counts]


def _growth(levels: Levels | None) -> Table | None:
    """How the number of distinct subsets grows with the test rows."""
    if levels is None:
        return None
    each = [f"{count / t:,.1f}" if count < 10**15 else in_words(count // t) for t, count in levels.growth]
    return as_table(
        [
            number_column("first test rows", [t for t, _ in levels.growth]),
            text_column("distinct subsets", [in_words(count) for _, count in levels.growth]),
            text_column("for each test row", each),
        ]
    )


def _reuse(v: Valuation) -> list[tuple[str, str, float]]:
    """What was scored and what of it was trained: name, number in words, number."""
    counts = [
        ("Scored for a test row", v.cost.draws),
        ("Distinct among them", v.cost.distinct),
        ("Known from the store", v.cost.stored),
        ("Trained", v.cost.trainings),
    ]
    return [(name, in_words(n), float(n)) for name, n in counts if n or name == "Trained"]


def _histogram(values: Floats) -> dict[str, list[float]]:
    """Counts between round edges, of which zero is one."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    step = round_step(high - low, N_BINS) if high > low else 1.0
    first, last = floor(low / step), max(ceil(high / step), floor(low / step) + 1)
    places = np.floor(values / step).astype(int).clip(first, last - 1)
    counts = np.bincount(places - first, minlength=last - first)
    return {"counts": counts.tolist(), "edges": [float(f"{i * step:.6g}") for i in range(first, last + 1)]}


def _sizes(sizes: Ints) -> dict[str, list[int]]:
    """Counts of whole numbers, in steps that keep the bars few."""
    low, high = int(sizes.min()), int(sizes.max())
    step = ceil((high - low + 1) / N_BINS)
    counts = np.bincount((sizes - low) // step, minlength=1)
    return {"counts": counts.tolist(), "edges": [low + i * step for i in range(len(counts) + 1)]}


def _ranking(known: Rows, positions: Ints) -> list[dict[str, Any]]:
    """Values of some rows with the ends of their intervals."""
    v = known.valuation
    return [
        {
            "row": text(known.ids[i]),
            "value": number(v.values[i]),
            "low": number(v.values[i] - WIDTH * v.stderr[i]),
            "high": number(v.values[i] + WIDTH * v.stderr[i]),
        }
        for i in positions
    ]


def _classes(values: Floats, y: pd.Series) -> Table | None:
    """Values by class, the largest classes first; None where the labels are measured numbers."""
    if pd.api.types.is_float_dtype(y) and y.nunique() > MAX_CLASSES:
        return None
    labels = y.map(text)
    groups = pd.Series(values).groupby(labels.to_numpy())
    names = groups.size().sort_values(ascending=False, kind="stable").index[:MAX_CLASSES]
    found = [groups.get_group(name).to_numpy() for name in names]
    return as_table(
        [
            text_column("label", names),
            number_column("rows", [len(x) for x in found]),
            number_column("below zero", [(x < 0).sum() for x in found]),
            number_column("sum", [x.sum() for x in found]),
            number_column("mean", [x.mean() for x in found]),
            *(
                number_column(name, [np.quantile(x, q) for x in found])
                for name, q in (("10 % below", 0.1), ("median", 0.5), ("10 % above", 0.9))
            ),
        ]
    )


def _suspects(suspects: pd.DataFrame, known: Rows) -> Table:
    """The most suspicious rows, with what speaks against them and what they look like."""
    shown = suspects.iloc[:MAX_SUSPECTS]
    columns = [
        text_column(known.names(np.empty(0, dtype=np.int64))[0]["name"], shown.index),
        *known.values(shown["value"], shown["stderr"]),
        any_column("label", shown["label"]),
        any_column("suggested", shown["suggested"]),
        number_column("agreement", shown["agreement"]),
        text_column("neighbours against", [", ".join(map(text, ids)) for ids in shown["neighbours"]]),
    ]
    for head, _ in columns[-4:-2]:
        head["choice"] = True
    places = known.ids.get_indexer(shown.index) if known.ids.is_unique else np.full(len(shown), -1)
    if (places >= 0).all():
        columns[1:1] = known.images(places)
        columns += known.features(places)
    return as_table(columns)


def _curves(curves: Curves) -> dict[str, Any]:
    """The selection curves, and what their score is called."""
    table = curves.table
    numbers = [number_column("rows", table["n_rows"])]
    numbers += [number_column(name, table[name]) for name in ("mean", "low", "high")]
    share = number_column("share in %", 100 * table["share"])
    names = text_column("curve", table["curve"], choice=True)
    return {"score": text(curves.score), "table": as_table([names, share, *numbers])}


def _owners(owners: pd.DataFrame) -> Table:
    names = {"n_rows": "rows", "value": "value", "stderr": "std. error", "share": "share in %", "share_stderr": "± %"}
    exact = not owners["stderr"].any()
    shown = [name for name in names if not (exact and name.endswith("stderr"))]
    return as_table([text_column("owner", owners.index), *(number_column(names[n], owners[n]) for n in shown)])


def _gap(gap: LocalityGap, known: Rows) -> dict[str, Any]:
    """The locality check: its verdict in words, and local beside global values."""
    shown = np.sort(np.argsort(-np.abs(gap.global_), kind="stable")[:MAX_DOTS])
    return {
        "enough": bool(gap.enough),
        "advice": gap.advice,
        "facts": {
            "Gap": f"{gap.gap:.1%} ± {gap.gap_stderr:.1%} of the values' size; sampling alone shows {gap.noise:.1%}",
            "Rank correlation": f"{gap.rank_correlation:.3f} ± {gap.rank_correlation_stderr:.3f}",
            "Checked on": f"{len(gap.tests)} test rows, {gap.permutations:,} permutations, {gap.trainings:,} trainings",
        },
        "table": as_table(
            [
                known.names(shown),
                number_column("local", gap.local[shown]),
                number_column("global", gap.global_[shown]),
            ]
        ),
    }


def _limits(v: Valuation, gap: LocalityGap | None) -> list[str]:
    """What the values do not say, as far as it applies to this run."""
    n_tests, n_unjudged = len(v.support_sizes), int((v.n_tests == 0).sum())
    limits = [
        "A value speaks of one model, one score and one set of test rows. It is no property of the row: change one of "
        "them and the order of the rows changes. Do not compare values of runs that differ in any of these.",
        "Values are summed over the test rows. Twice the test rows give about twice the values, and a row near many "
        "test rows has more to gain or to lose.",
    ]
    if gap is None:
        limits.append(
            "Rows outside the support of a test row count as nothing to it. How much that leaves out was not measured "
            "here; localshapley.locality_gap measures it."
        )
    elif not gap.enough:
        limits.append(
            "The locality check found a gap: rows outside the supports matter, and these values may be far from the "
            "global ones."
        )
    if v.stderr.any():
        limits.append(
            "The values are estimates. The interval of a value (1.96 standard errors to each side) holds the exact "
            "local value about 19 times out of 20; rows whose intervals overlap may be in another order."
        )
    if n_tests < FEW_TESTS:
        limits.append(
            f"There are only {n_tests} test rows. The intervals do not speak of other test rows, which may order the "
            "rows differently."
        )
    if n_unjudged:
        limits.append(
            f"{n_unjudged:,} rows are in no support. They have the value 0 because nothing was learnt about them, not "
            "because they are useless."
        )
    if "Forest" in v.model:
        limits.append("A random forest on few rows is mostly chance: another seed gives other values.")
    limits.append(
        "If test labels are wrong, rows that agree with them are valued for it. A value below zero is a reason to look "
        "at a row, no proof of an error; it is no price either."
    )
    return limits
