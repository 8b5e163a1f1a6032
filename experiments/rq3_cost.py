"""RQ3 of the paper: what every method costs, to the paper's stopping rule and to equal error.

All methods of a row use the same trainers on the same machine, so that the ratios are method against method. A run
that does not get there within its limit is extrapolated, and marked with a star. The same trainings with plain
scikit-learn are timed on a part of them, and extrapolated too.

    python experiments/rq3_cost.py            # about half an hour on two cores
    python experiments/rq3_cost.py --quick    # under two minutes
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

import localshapley as ls
from common import PAPER_COST, Limit, Workload, arguments, panels, relative_error, to_the_rule, write
from graph import WORKLOADS

METHODS = {
    "global-mc": {"method": "global-mc"},
    "tmc": {"method": "tmc"},
    "complementary": {"method": "complementary"},
    "local-mc": {"method": "local-mc"},
    "LSMR-A, as the paper draws": {"method": "pivot"},
    "LSMR-A": {"method": "sample"},
}
EXACT = "LSMR (exact)"
GLOBAL = ("global-mc", "tmc", "complementary")
LIMIT = 15.0
"""Seconds that a run may take; beyond, its cost is extrapolated."""
AIM = 0.1
"""Relative error at which methods are compared."""
RULE_SECONDS, RULE_TRAININGS, RULE_ERROR = "to the rule (s)", "trainings to the rule", "error then"
AIM_SECONDS, AIM_TRAININGS, AIM_ERROR = f"to error {AIM} (s)", f"trainings to error {AIM}", "error found"
PLAIN = "with scikit-learn (s)"


def main(argv: list[str] | None = None) -> None:
    """Run, and write `rq3_cost.csv`, `.md`, `.svg` and `.png`."""
    args = arguments(__doc__, argv, names=WORKLOADS)
    limit = Limit(trainings=1500) if args.quick else Limit(seconds=LIMIT)
    rows, notes = [], []
    for name in args.names:
        workload = WORKLOADS[name](args.quick)
        notes += workload.notes
        rows += costs(workload, limit, args.quick)
    table = pd.DataFrame(rows)
    about = (
        f"*{RULE_SECONDS}*: seconds to the paper's stopping rule (relative change below 0.05 over 100 draws), with the "
        "trainings until then. *error then*: relative, where the run ended, against values of the same kind (local or "
        "global) from a longer run, whose own error is taken off, and no less than half of what the run says itself. "
        f"*{AIM_SECONDS}*: seconds to a relative standard error of {AIM}, with the trainings, and the error that is "
        f"found then, which has TMC's bias in it. A run may take {limit}; a star marks what is extrapolated "
        "from there: the change falls with one over the trainings, the error with their root. "
        "*evaluations*: scores of a model on a test row until the rule, which the paper counts as trainings. "
        f"*{PLAIN}*: the trainings to error {AIM} with the plain estimator, extrapolated from a part of them (always "
        "starred; scikit-learn has no GCN). Permutations of nearest neighbours are walked row by row, each step at a "
        "small part of a training's cost."
    )
    write(args, "rq3_cost", "RQ3: what values cost", about, {"cost": table}, findings(table) + notes,
          lambda figure: draw(figure, table))  # fmt: skip


def costs(workload: Workload, limit: Limit, quick: bool) -> list[dict[str, Any]]:
    """Costs of every method on one workload."""
    budget = (30 if quick else workload.permutations()) * workload.n_rows + 2
    references = {
        "local": workload.value(**limit.times(2).settings(tol=0.02)),
        "global": workload.value(method="global-mc", budget=budget, max_seconds=limit.times(2).seconds, seed=77),
    }
    rows = []
    for name, settings in METHODS.items():
        workload.value(**settings, **limit.times(1 / 30).settings(tol=AIM))  # kernels are loaded now
        rule = to_the_rule(workload.value, limit, **settings)
        seconds_to_aim, to_aim = timed(workload, **settings, **limit.settings(tol=AIM))
        factor = times_more(to_aim.relative_error)
        reference = references["global" if name in GLOBAL else "local"]
        trainings = to_aim.cost.trainings * factor
        star = "*" * rule.extrapolated
        paper = PAPER_COST[workload.name].get(name, (np.nan, np.nan))
        rows.append(
            {
                "workload": workload.title,
                "method": name,
                RULE_SECONDS: f"over {limit}" if np.isnan(rule.seconds) else f"{rule.seconds:.3g}{star}",
                RULE_TRAININGS: rule.trainings,
                "evaluations": rule.evaluations,
                RULE_ERROR: error_of(rule.valuation, reference),
                AIM_SECONDS: f"{seconds_to_aim * factor:.3g}{'*' * (factor > 1)}" if factor else f"over {limit}",
                AIM_TRAININGS: round(trainings) if factor else np.nan,
                AIM_ERROR: error_of(to_aim, reference) if factor == 1 else np.nan,
                PLAIN: plain_seconds(workload, name, trainings, limit) if name == "LSMR-A" or not quick else "",
                "paper (s)": paper[0],
                "paper's trainings": paper[1],
            }
        )
        print(rows[-1], file=sys.stderr)
    return rows + exact_costs(workload, limit, rows[-1])


def timed(workload: Workload, **settings: Any) -> tuple[float, ls.Valuation]:
    """A valuation, and its seconds."""
    started = perf_counter()
    v = workload.value(**settings)
    return perf_counter() - started, v


def error_of(v: ls.Valuation, reference: ls.Valuation) -> float:
    """Relative error against a reference that has an error of its own, which is taken off, from its norm as well."""
    squared = relative_error(v.values, reference.values) ** 2 - reference.relative_error**2
    squared /= 1 - min(reference.relative_error, 0.9) ** 2
    return float(np.sqrt(max(squared, v.relative_error**2 / 4)))


def times_more(error: float) -> float:
    """How many times as many trainings bring a relative standard error down to the aim; 0 if it cannot be said.

    The norm of values that are mostly noise is mostly the noise's, so that the error seems smaller than it is.
    """
    if error <= AIM:
        return 1.0
    return float(error**2 / (1 - error**2) / AIM**2) if error < 0.95 else 0.0


def plain_seconds(workload: Workload, method: str, trainings: float, limit: Limit) -> str:
    """Seconds of so many trainings with the plain estimator, from those that can be had in a part of the time."""
    if workload.name == "GNN" or not trainings:
        return ""
    plain = ls.models.Estimator(workload.model)
    seconds, v = timed(workload, **METHODS[method], model=plain, **limit.times(1 / 5).settings(tol=AIM))
    return f"{seconds * trainings / v.cost.trainings:.3g}*"


def exact_costs(workload: Workload, limit: Limit, sampled: dict[str, Any]) -> list[dict[str, Any]]:
    """The line of exact values by classes of equal scores, where there are such."""
    if workload.name != "WKNN":
        return []
    seconds, v = timed(workload)
    X, y, X_test, y_test = workload.data
    plan = ls.plan(X, y, X_test, y_test, model=workload.model, support=workload.support, score="confidence")
    return [
        {
            **dict.fromkeys(sampled, np.nan),
            "workload": workload.title,
            "method": EXACT,
            RULE_SECONDS: f"{seconds:.3g}",
            RULE_TRAININGS: v.cost.trainings,
            "evaluations": v.cost.draws,
            RULE_ERROR: 0.0,
            AIM_SECONDS: f"{seconds:.3g}",
            AIM_TRAININGS: v.cost.trainings,
            PLAIN: plain_seconds(workload, "LSMR-A", plan.levels.lsmr, limit),
        }
    ]


def findings(table: pd.DataFrame) -> list[str]:
    """Ratios of trainings at equal error, and what the paper's rule is worth."""
    points = []
    for title, part in table[table["method"] != EXACT].groupby("workload", sort=False):
        needed, error = (part.set_index("method")[column] for column in (AIM_TRAININGS, RULE_ERROR))
        ratios = (needed / needed["LSMR-A"]).drop("LSMR-A")
        words = ", ".join(f"{name} {ratio:,.1f} times" for name, ratio in ratios.dropna().items())
        points += [
            f"{title}: trainings to the same standard error, against LSMR-A: {words}.",
            f"{title}: errors where the paper's rule, or the time, stops lie between {error.min():.2f} "
            f"({error.idxmin()}) and {error.max():.2f} ({error.idxmax()}).",
        ]
        if part.set_index("method")[AIM_SECONDS]["LSMR-A"].endswith("*"):
            points.append(
                f"{title}: LSMR-A was cut off in its first rounds, which fit worse than later ones and do not count in "
                "the end, so that its cost is overstated; [RQ1](rq1_fidelity.md) has a longer run."
            )
    return points


def draw(figure: Any, table: pd.DataFrame) -> None:
    """Trainings to equal error, by method."""
    titles = list(dict.fromkeys(table["workload"]))
    figure.set_size_inches(9, 2.2 * -(-len(titles) // 2) + 1)
    for ax, title in zip(panels(figure, len(titles)), titles, strict=True):
        part = table[(table["workload"] == title) & (table["method"] != EXACT)]
        ax.barh(part["method"], part[AIM_TRAININGS], color="#0072B2")
        ax.set(title=title, xscale="log", xlabel=f"trainings to a relative standard error of {AIM}")
        ax.invert_yaxis()


if __name__ == "__main__":
    main(sys.argv[1:])
