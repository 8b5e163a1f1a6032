"""What the values do not say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from localshapley.formatting import kinds, one
from localshapley.models.skill import INTERVAL
from localshapley.report.sections.base import Context, Section

FEW_TESTS = 50
"""Below this many test rows the page warns that others may rank the rows differently."""


class CaveatsSection(Section):
    """The limits of the method, as far as they apply to this run."""

    id = "limits"
    title = "Limits"

    def summarise(self, context: Context) -> dict[str, Any]:
        return {"limits": list(_limits(context))}


def _limits(context: Context) -> Iterator[str]:
    v, gap = context.valuation, context.gap
    unit, tests = v.unit, kinds(v.unit)[1]
    n_tests, n_unjudged = len(v.support_sizes), int((v.n_tests == 0).sum())
    yield (
        f"A value holds for one model, one score and one set of {tests}. It is not a property of the {unit} itself: "
        f"change any of these, and the order of the {unit}s may change. Do not compare values from runs that differ in "
        "any of them."
    )
    yield (
        f"Values are summed over the {tests}. Twice as many {tests} give values about twice as large, and "
        f"{one(unit)} near many {tests} has more to gain or lose."
    )
    if gap is None:
        yield (
            f"{unit.capitalize()}s outside the support of a {tests[:-1]} do not count for it. How much that leaves "
            "out was not measured here; localshapley.locality_gap measures it."
        )
    elif not gap.enough:
        yield (
            f"The locality check found a gap: {unit}s outside the supports matter, and these values may be far from "
            "the global ones."
        )
    if v.stderr.any():
        yield (
            f"The values are estimates. The exact local value is within {INTERVAL} standard errors of a value about 19 "
            f"times out of 20. {unit.capitalize()}s whose values are no further apart may be in the wrong order."
        )
    if v.stderr_tests is not None and v.values.any():
        share = float(np.linalg.norm(v.stderr_tests) / np.linalg.norm(v.values))
        yield (
            f"Other {tests} would have given other values: the standard errors from this alone are "
            f"{100 * share:.0f} % of the values, all together. More {tests} would make them smaller."
        )
    if n_tests < FEW_TESTS:
        yield f"There are only {n_tests} {tests}. Others may put the {unit}s in another order."
    if n_unjudged:
        yield (
            f"{n_unjudged:,} {unit}s are in no support. Their value is 0 because nothing was learnt about them, not "
            "because they are useless."
        )
    if v.is_random:
        yield (
            "The model draws random numbers: on few rows much of a value is chance, and another seed gives other "
            "values."
        )
    yield (
        f"If test labels are wrong, {unit}s that agree with them get credit for it. A value below zero is a reason to "
        f"look at {one(unit)}. It is not proof of an error, and not a price."
    )
