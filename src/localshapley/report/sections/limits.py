"""What the values do not say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from localshapley.report.charts import INTERVAL
from localshapley.report.sections.base import Context, Section

FEW_TESTS = 50
"""Below so many test rows the page warns that others may say something else."""


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
        "A value speaks of one model, one score and one set of test rows. It is no property of the row: change one of "
        "them and the order of the rows changes. Do not compare values of runs that differ in any of these."
    )
    yield (
        "Values are summed over the test rows. Twice the test rows give about twice the values, and a row near many "
        "test rows has more to gain or to lose."
    )
    if gap is None:
        yield (
            "Rows outside the support of a test row count as nothing to it. How much that leaves out was not measured "
            "here; localshapley.locality_gap measures it."
        )
    elif not gap.enough:
        yield (
            "The locality check found a gap: rows outside the supports matter, and these values may be far from the "
            "global ones."
        )
    if v.stderr.any():
        yield (
            f"The values are estimates. The interval of a value ({INTERVAL} standard errors to each side) holds the "
            "exact local value about 19 times out of 20; rows whose intervals overlap may be in another order."
        )
    if n_tests < FEW_TESTS:
        yield (
            f"There are only {n_tests} test rows. The intervals do not speak of other test rows, which may order the "
            "rows differently."
        )
    if n_unjudged:
        yield (
            f"{n_unjudged:,} rows are in no support. They have the value 0 because nothing was learnt about them, not "
            "because they are useless."
        )
    if v.is_random:
        yield (
            "The model draws random numbers: on few rows much of a value is chance, and another seed gives other "
            "values."
        )
    yield (
        "If test labels are wrong, rows that agree with them are valued for it. A value below zero is a reason to look "
        "at a row, no proof of an error; it is no price either."
    )
