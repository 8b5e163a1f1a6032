"""What the values do not say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from localshapley.report.sections.base import Context, Section
from localshapley.valuation.plots import INTERVAL

FEW_TESTS = 50
"""Below this many test rows the page warns that others may rank the rows differently."""


class Limits(Section):
    """The limits of the method, as far as they apply to this run."""

    id = "limits"
    title = "Limits"

    def summarise(self, context: Context) -> dict[str, Any]:
        return {"limits": list(_limits(context))}


def _limits(context: Context) -> Iterator[str]:
    v, gap = context.valuation, context.gap
    n_tests, n_unjudged = len(v.support_sizes), int((v.n_tests == 0).sum())
    yield (
        "A value holds for one model, one score and one set of test rows. It is not a property of the row itself: "
        "change any of these, and the order of the rows may change. Do not compare values from runs that differ in "
        "any of them."
    )
    yield (
        "Values are summed over the test rows. Twice as many test rows give values about twice as large, and a row "
        "near many test rows has more to gain or lose."
    )
    if gap is None:
        yield (
            "Rows outside the support of a test row do not count for it. How much that leaves out was not measured "
            "here; localshapley.locality_gap measures it."
        )
    elif not gap.enough:
        yield (
            "The locality check found a gap: rows outside the supports matter, and these values may be far from the "
            "global ones."
        )
    if v.stderr.any():
        yield (
            f"The values are estimates. The interval of a value ({INTERVAL} standard errors to each side) contains the "
            "exact local value about 19 times out of 20. Rows whose intervals overlap may be in the wrong order."
        )
    if v.stderr_tests is not None and v.values.any():
        share = float(np.linalg.norm(v.stderr_tests) / np.linalg.norm(v.values))
        yield (
            "Other test rows would have given other values: the standard errors from this alone are "
            f"{100 * share:.0f} % of the values, all together. More test rows would make them smaller."
        )
    if n_tests < FEW_TESTS:
        yield f"There are only {n_tests} test rows. Others may put the rows in another order."
    if n_unjudged:
        yield (
            f"{n_unjudged:,} rows are in no support. Their value is 0 because nothing was learnt about them, not "
            "because they are useless."
        )
    if v.is_random:
        yield (
            "The model draws random numbers: on few rows much of a value is chance, and another seed gives other "
            "values."
        )
    yield (
        "If test labels are wrong, rows that agree with them get credit for it. A value below zero is a reason to look "
        "at a row. It is not proof of an error, and not a price."
    )
