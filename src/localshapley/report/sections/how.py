"""What was valued, and how."""

from __future__ import annotations

from typing import Any

import numpy as np

from localshapley.arrays import Floats, Ints
from localshapley.formatting import duration, kinds
from localshapley.report.sections.base import Context, Section
from localshapley.valuation import Provenance, Valuation


class HowSection(Section):
    """Facts about the run, the preparation of the columns, and notes."""

    id = "how"
    title = "What was valued"
    heading = "What was valued, and how"

    def summarise(self, context: Context) -> dict[str, Any]:
        return {
            "facts": _facts(context.valuation) | _record(context.valuation.record),
            "preparation": [str(line) for line in context.preparation],
            "stopped": context.valuation.stopped.to_dict(),
            "notes": [note.to_dict() for note in context.valuation.notes],
        }


def _facts(v: Valuation) -> dict[str, str]:
    error = (
        "exact"
        if not v.stderr.any()
        else f"sampled; the standard errors together are {v.relative_error:.1%} of the values"
        if v.values.any()
        else "sampled; all values are zero"
    )
    tests = kinds(v.unit)[1]
    return {
        "Model": v.model,
        "Score": f"{v.score}, summed over {len(v.support_sizes):,} {tests}",
        f"Support of a {tests[:-1]}": f"{v.support}: {_sizes(v.support_sizes, v.unit)}",
        "Method": v.method,
        "Precision": error,
        "Stopped": v.stopped.text,
        "Trained by": v.cost.trainer,
        "Trainings": f"{v.cost.trainings:,} in {duration(v.cost.seconds)}",
        "Sum of all values": f"{v.values.sum():.4g}",
        "Below, at and above zero": f"{_signs(v.values)} {v.unit}s",
    }


def _record(record: Provenance | None) -> dict[str, str]:
    """How the values were made, for who wants to make them again."""
    if record is None:
        return {}
    limits = ", ".join(f"{name}={text}" for name, text in record.limits.items())
    facts = {"Limits": limits, "Seed": "" if record.seed is None else f"{record.seed}"}
    facts |= {"Made by": f"localshapley {record.version}", "Made on": record.date, "Call": record.call}
    return {name: fact for name, fact in facts.items() if fact}


def _sizes(sizes: Ints, unit: str) -> str:
    low, high = int(sizes.min()), int(sizes.max())
    return f"{high} {unit}s each" if low == high else f"{low} to {high} {unit}s, median {np.median(sizes):g}"


def _signs(values: Floats) -> str:
    return ", ".join(f"{int(found.sum()):,}" for found in (values < 0, values == 0, values > 0))
