"""RQ3 of the paper: what every method costs, to the paper's stopping rule and to equal error.

All methods of a row use the same trainers on the same machine, so that the ratios are method against method. A method
runs to its end if that takes no more trainings than about ten minutes have; if it clearly would, it is stopped before,
extrapolated and marked with a star. The same trainings with plain scikit-learn are timed on a part of them,
and extrapolated too.

    python experiments/rq3_cost.py            # under an hour on two cores
    python experiments/rq3_cost.py --quick    # under two minutes
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import localshapley as ls
from common import (
    OURS,
    PAPER_COST,
    Cost,
    OutOfReach,
    Workload,
    arguments,
    capped,
    panels,
    relative_error,
    timed,
    to_the_rule,
    within,
    write,
)
from graph import FEW, FEW_AROUND, WORKLOADS, gnn
from keep import folder_of, kept
from localshapley.notes import Note

METHODS = {
    "global-mc": {"method": "global-mc"},
    "tmc": {"method": "tmc"},
    "complementary": {"method": "complementary"},
    "local-mc": {"method": "local-mc"},
    "LSMR-A, as the paper draws": {"method": "pivot"},
    OURS: {"method": "sample"},
}
EXACT = "LSMR (exact)"
GLOBAL = ("global-mc", "tmc", "complementary")
LIMIT, LIMIT_GPU, LIMIT_QUICK = 600.0, 300.0, 15.0
"""Seconds on two cores, or on a GPU, whose trainings a run may take; beyond, its cost is extrapolated."""
FAR = 500
"""Draws of a game below which 100 between two looks are too many to tell when an error was met."""
AIM = 0.1
"""Relative error at which methods are compared."""
RULE_SECONDS, RULE_TRAININGS, RULE_ERROR = "to the rule (s)", "trainings to the rule", "error then"
AIM_SECONDS, AIM_TRAININGS, AIM_ERROR = f"to error {AIM} (s)", f"trainings to error {AIM}", "error found"
PLAIN = "with scikit-learn (s)"


@dataclass(frozen=True)
class StandardError(ls.stopping.Rule):
    """Stops at a relative standard error, whatever might not have been drawn yet: the same for all methods."""

    aim: float = AIM

    @staticmethod
    def of(look: Any) -> float:
        """`‖stderr‖ / ‖values‖`."""
        return float(np.linalg.norm(look.stderr) / max(np.linalg.norm(look.values), 1e-300))

    def holds(self, look: Any) -> bool:
        """Whether the error is small enough."""
        return self.of(look) <= self.aim

    def reached(self, look: Any) -> Note:
        """The error against the target."""
        error = self.of(look)
        return Note("target-reached", f"relative standard error {error:.3g} (aim {self.aim:g})", error=error)


def main(argv: list[str] | None = None) -> None:
    """Run, and write `rq3_cost.csv`, `.md`, `.svg` and `.png`."""
    args = arguments(__doc__, argv, names=WORKLOADS)
    makers = {**WORKLOADS, "GNN": partial(gnn, seed=0 if args.quick else FEW_AROUND, nodes=FEW)}
    rows, notes = [], []
    for name in args.names:
        workload = makers[name](args.quick)
        notes += workload.notes + workload.about_left_out
        rows += costs(workload, args.quick)
    table = pd.DataFrame(rows)
    about = (
        f"*{RULE_SECONDS}*: seconds to the paper's stopping rule (relative change below 0.05 over 100 draws), with the "
        "trainings until then. *error then*: relative, where the run ended, against values of the same kind (local or "
        "global) from a longer run, whose own error is taken off, and no less than half of what the run says itself. "
        f"*{AIM_SECONDS}*: seconds to a relative standard error of {AIM}, with the trainings, and the error that is "
        "found then, which has TMC's bias in it. A run may take the trainings of about ten minutes on two cores, "
        "or five of a GPU (a number for each method, so that nothing but the seconds depends on the machine); "
        "one that would take more than 4 times as many, by a twentieth of them, 1.5 times as many, by a quarter, or "
        "1.25 times, by half, is stopped there. Looks come in pairs, each a tenth of the draws after the one before. A "
        "star marks what is extrapolated: the change falls with one over the trainings, the error with their root. "
        "*evaluations*: scores of a model on a test row until the rule, which the paper counts as trainings. "
        f"*{PLAIN}*: our trainings to error {AIM} with the plain estimator, extrapolated from a part of them (always "
        "starred; scikit-learn has no GCN). Permutations of nearest neighbours are walked row by row, each step at a "
        "small part of a training's cost."
    )
    write(args, "rq3_cost", "RQ3: what values cost", about, {"cost": table}, findings(table) + notes,
          lambda figure: draw(figure, table))  # fmt: skip


def costs(workload: Workload, quick: bool) -> list[dict[str, Any]]:
    """Costs of every method on one workload; what was measured with this code and data before is kept."""
    folder = folder_of("rq3_cost", [workload.title], quick)
    references = {
        kind: kept(folder / f"{kind}.json", partial(longer_run, workload, kind, quick)) for kind in ("local", "global")
    }
    rows = []
    for name in METHODS:
        if name in workload.left_out:
            continue
        reference = references["global" if name in GLOBAL else "local"]
        path = folder / f"{name.replace(' ', '-')}.json"
        rows.append(kept(path, partial(measure, workload, name, reference, quick)))
        print(rows[-1], file=sys.stderr)
    return rows + exact_costs(workload, quick, rows[-1])


def seconds_of(workload: Workload, quick: bool) -> float:
    """Seconds whose trainings a run may take."""
    return LIMIT_QUICK if quick else LIMIT_GPU if workload.rates == "GNN, GPU" else LIMIT


def longer_run(workload: Workload, kind: str, quick: bool) -> dict[str, Any]:
    """Values to compare with."""
    method = {"local": {}, "global": {"method": "global-mc", "seed": 77}}[kind]
    seconds = 2 * LIMIT_QUICK if quick else seconds_of(workload, quick) / 15
    limit = workload.limit(seconds, method.get("method", OURS))
    v = workload.value(**method, **within(limit, 0.02))
    return {"values": v.values, "relative_error": v.relative_error}


def measure(workload: Workload, name: str, reference: dict[str, Any], quick: bool) -> dict[str, Any]:
    """What one method costs."""
    settings = METHODS[name]
    limit = workload.limit(seconds_of(workload, quick), settings["method"])
    few = within(limit // 600, AIM)
    workload.value(**settings, **few)  # kernels are loaded now
    aim = StandardError(), OutOfReach(limit, lambda look: times_more(StandardError.of(look)) or np.inf)
    rule, to_aim = to_the_rule(workload.value, limit, also=None if name == OURS else aim, **settings)
    if name == OURS or (not to_aim.extrapolated and to_aim.draws_per_game < FAR):  # looks of that rule are far apart
        seconds, v = timed(workload.value, few, **settings, **capped(aim[0] | aim[1], limit, **settings))
        to_aim = Cost.of(v, seconds)
    factor = times_more(to_aim.relative_error)
    trainings = to_aim.trainings * factor
    star = "*" * rule.extrapolated
    paper = PAPER_COST[workload.name].get(name, (np.nan, np.nan))
    return {
        "workload": workload.title,
        "method": name,
        RULE_SECONDS: "out of reach" if np.isnan(rule.seconds) else f"{rule.seconds:.3g}{star}",
        RULE_TRAININGS: float(rule.trainings),
        "evaluations": float(rule.evaluations),
        RULE_ERROR: error_of(rule, reference),
        AIM_SECONDS: f"{to_aim.seconds * factor:.3g}{'*' * (factor > 1)}" if factor else "out of reach",
        AIM_TRAININGS: float(round(trainings)) if factor else np.nan,
        AIM_ERROR: error_of(to_aim, reference) if factor == 1 else np.nan,
        PLAIN: plain_seconds(workload, trainings, quick) if name == OURS else "",
        "paper (s)": float(paper[0]),
        "paper's trainings": float(paper[1]),
    }


def error_of(run: Cost, reference: dict[str, Any]) -> float:
    """Relative error against a reference that has an error of its own, which is taken off, from its norm as well."""
    own = reference["relative_error"]
    squared = relative_error(run.values, np.array(reference["values"])) ** 2 - own**2
    squared /= 1 - min(own, 0.9) ** 2
    return float(np.sqrt(max(squared, run.relative_error**2 / 4)))


def times_more(error: float) -> float:
    """How many times as many trainings bring a relative standard error down to the aim; 0 if it cannot be said.

    The norm of values that are mostly noise is mostly the noise's, so that the error seems smaller than it is.
    """
    if error <= AIM:
        return 1.0
    return float(error**2 / (1 - error**2) / AIM**2) if error < 0.95 else 0.0


def plain_seconds(workload: Workload, trainings: float, quick: bool) -> str:
    """Seconds of so many of our trainings with the plain estimator, from those that can be had in three."""
    if workload.name == "GNN" or not trainings:
        return ""
    plain = ls.models.Estimator(workload.model)
    some: dict[str, Any] = {"budget": 300} if quick else {"max_seconds": 3}
    # Nothing is compiled for it, and its first estimate alone can take a minute.
    seconds, v = timed(workload.value, None, method="sample", model=plain, tol=AIM, **some)
    return f"{seconds * trainings / v.cost.trainings:.3g}*"


def exact_costs(workload: Workload, quick: bool, sampled: dict[str, Any]) -> list[dict[str, Any]]:
    """The line of exact values by classes of equal scores, where there are such."""
    if workload.name != "WKNN":
        return []
    seconds, v = timed(workload.value, {})
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
            PLAIN: plain_seconds(workload, plan.levels.lsmr, quick),
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
            f"{title}: errors where the paper's rule, or the limit, stops lie between {error.min():.2f} "
            f"({error.idxmin()}) and {error.max():.2f} ({error.idxmax()}).",
        ]
    return points


def draw(figure: Any, table: pd.DataFrame) -> None:
    """Trainings to equal error, by method."""
    titles = list(dict.fromkeys(table["workload"]))
    figure.set_size_inches(9, 2.2 * -(-len(titles) // 2) + 1)
    for ax, title in zip(panels(figure, len(titles)), titles, strict=True):
        part = table[(table["workload"] == title) & (table["method"] != EXACT)]
        ax.barh(part["method"], part[AIM_TRAININGS], color="#0072B2")
        ax.set(title=title, xscale="log", xlabel=f"trainings to an error of {AIM}")
        ax.invert_yaxis()


if __name__ == "__main__":
    main(sys.argv[1:])
