"""What was found beyond the paper, as one reads it: six claims, each with one figure, one table and one command.

python experiments/beyond.py                  # three minutes on two cores
python experiments/beyond.py --only bias      # one of: bias, cost, mechanisms, forest, greedy, tests
python experiments/beyond.py --quick          # small sizes, under two minutes
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import ablation
import localshapley as ls
from common import (
    arguments,
    enumerable_svm,
    enumerable_tree,
    flipped,
    made_with,
    markdown,
    relative_error,
    save_figure,
    timed,
)

PRINTED, CORRECTED, OURS = "the paper's weights", "its weights, corrected", "this library"


@dataclass
class Claim:
    """A section of the page."""

    title: str
    text: str
    table: pd.DataFrame
    seen: str
    draw: Callable[[Any], None]


def main(argv: list[str] | None = None) -> None:
    """Run, and write `beyond.md`, with a table and a figure for each claim."""
    args = arguments(__doc__, argv, names=CLAIMS)
    words = (
        "What this library adds to the paper, each with the figure and the command that shows it; [the other "
        f"pages](index.md) compare with the paper's own tables. {made_with(args.commit)}"
    )
    lines = ["# Beyond the paper", "", fill(words, 118), ""]
    for name in args.names:
        claim = CLAIMS[name](args.quick)
        print(f"{name}: {claim.seen}", file=sys.stderr)
        claim.table.to_csv(args.out / f"beyond_{name}.csv", index=False, float_format="%.6g")
        save_figure(claim.draw, args.out / f"beyond_{name}")
        command = f"    python experiments/beyond.py --only {name}" + (" --quick" if args.quick else "")
        lines += [
            f"## {claim.title}",
            "",
            fill(claim.text, 118),
            "",
            command,
            "",
            f"![{claim.title}](beyond_{name}.svg)",
        ]
        lines += ["", markdown(claim.table), "", fill(claim.seen, 118), ""]
    (args.out / "beyond.md").write_text("\n".join(lines), encoding="utf-8")


def bias(quick: bool) -> Claim:
    """The printed estimator tends to something else than the values."""
    workload = enumerable_svm(6 if quick else 10)
    exact = workload.value(method="exact").values
    n_runs, budget = (8, 800) if quick else (64, 3000)
    rows = []
    for name, method in ((PRINTED, "pivot-printed"), (CORRECTED, "pivot"), (OURS, "sample")):
        with warnings.catch_warnings():  # that the printed weights are biased
            warnings.simplefilter("ignore", ls.LocalShapleyWarning)
            runs = [workload.value(method=method, budget=budget, seed=seed) for seed in range(n_runs)]
        for n in [2**k for k in range(n_runs.bit_length())]:
            mean = np.mean([v.values for v in runs[:n]], axis=0)
            rows.append({"estimator": name, "runs": n, "error of their mean": relative_error(mean, exact)})
    table = pd.DataFrame(rows)
    last = table[table["runs"] == n_runs].set_index("estimator")["error of their mean"]
    text = (
        "A draw of a subset serves every game whose support contains it. As printed, it is weighted as if each of "
        "these games had drawn it with the same chance, which holds only if all supports are of one size, so that the "
        "mean of many runs tends to wrong values. With the chance that the draw really had, the same draws are "
        f"unbiased. Error of the mean of some runs: {workload.title}, exact values known, {budget:,} trainings a run."
    )
    seen = (
        f"The mean of {n_runs} runs is off by {last[PRINTED]:.2f} of the values' size with the printed weights, "
        f"{last[CORRECTED]:.2f} with corrected ones, {last[OURS]:.4f} with ours."
    )
    return Claim("The printed estimator is biased", text, table.pivot(index="runs", columns="estimator",
                 values="error of their mean")[[PRINTED, CORRECTED, OURS]].reset_index(), seen,
                 lambda figure: lines_of(figure, table, "runs", "error of their mean"))  # fmt: skip


def cost(quick: bool) -> Claim:
    """Error against trainings, exact values known."""
    workload = enumerable_tree(8 if quick else 14)
    exact = workload.value(method="exact").values
    budgets = (800, 1600) if quick else (1500, 3000, 6000, 12_000, 24_000)
    methods = {"permutations of each support": "local-mc", CORRECTED: "pivot", OURS: "sample"}
    rows = []
    for name, method in methods.items():
        for budget in budgets:
            runs = [workload.value(method=method, budget=budget, seed=seed) for seed in range(2 if quick else 10)]
            error = np.sqrt(np.mean([relative_error(v.values, exact) ** 2 for v in runs]))
            trainings = float(np.mean([v.cost.trainings for v in runs]))
            rows.append({"estimator": name, "trainings": trainings, "relative error": float(error)})
    table = pd.DataFrame(rows)
    needed = table["relative error"] ** 2 * table["trainings"]
    per = needed.groupby(table["estimator"], sort=False).median() / 0.1**2
    text = (
        f"Relative error against trainings, {workload.title}, exact values known. The paper counts trainings until "
        "values change little, which says nothing about their error."
    )
    seen = "Trainings to a relative error of 0.1: " + ", ".join(f"{n:,.0f} ({name})" for name, n in per.items()) + "."
    return Claim("What values cost at equal error", text, table, seen,
                 lambda figure: lines_of(figure, table, "trainings", "relative error"))  # fmt: skip


def mechanisms(quick: bool) -> Claim:
    """What locality gives, and what reuse gives."""
    workload = enumerable_tree(8 if quick else 12)
    found = ablation.measure(workload, 40, range(2 if quick else 5), 5 if quick else 10)
    rows, before = [], np.nan
    for name in ablation.MECHANISMS:
        needed = found[name].error ** 2 * found[name].trainings / 0.1**2
        rows.append({"mechanism": name, "error": found[name].error, "trainings to error 0.1": needed,
                     "times fewer than the line above": before / needed})  # fmt: skip
        before = needed
    table = pd.DataFrame(rows)
    needed = table.set_index("mechanism")["trainings to error 0.1"]
    text = (
        f"The mechanisms switched on one after the other, at equal budgets ([ablation](ablation.md)). {workload.title}."
    )
    seen = (
        f"Locality alone takes {needed['global'] / needed['+ locality']:.1f} times fewer trainings than global "
        "permutations. Subset-centric draws and pivots, as the paper has them, take "
        f"{needed['+ reuse'] / needed['+ locality']:.1f} times more than locality alone; with inclusion weights, "
        f"centring and the fitted surrogate reuse takes {needed['+ locality'] / needed['+ additive fit']:.1f} times "
        "fewer."
    )

    def draw(figure: Any) -> None:
        ax = figure.subplots()
        ax.barh(table["mechanism"], table["trainings to error 0.1"], color="#0072B2")
        ax.set(xscale="log", xlabel="trainings to a relative error of 0.1")
        ax.invert_yaxis()

    return Claim("What locality gives, and what reuse gives", text, table, seen, draw)


def forest(quick: bool) -> Claim:
    """Exact values of a forest whose trees are grown once, and how they find wrong labels."""
    names = ("wine",) if quick else ("iris", "wine", "breast_cancer", "digits")
    rows = []
    for name in names:
        for seed in range(2 if quick else 5):
            data = ls.datasets.load(name, seed=seed)
            y, wrong = flipped(data.y, 0.2, seed)
            model = RandomForestClassifier(50 if quick else 300, min_samples_leaf=3, random_state=seed, n_jobs=1)
            values = partial(ls.value, data.X, y, model=ls.models.Fixed(model), cv="oob", progress=False)
            seconds, v = timed(values, {})
            started = perf_counter()
            votes = right_votes(model.fit(data.X, y), data.X, y)
            fit = perf_counter() - started
            rows.append({"data": name, "forest values": average_precision_score(wrong, -v.values),
                         "right votes out of bag": average_precision_score(wrong, -votes),
                         "seconds, values": seconds, "seconds, fit and votes": fit})  # fmt: skip
    every = pd.DataFrame(rows)
    table = every.groupby("data", sort=False).mean().reset_index()
    text = (
        "The trees are grown once on all rows; a coalition only refills their leaves. Values are then exact and global "
        "in closed form, and every row is tested by the trees that have not seen it, so that no test set is needed. "
        "Average precision with which a fifth of flipped labels is found, mean over splits, beside the share of right "
        "votes out of bag (Data-OOB)."
    )
    better = int((table["forest values"] > table["right votes out of bag"]).sum())
    seen = (
        f"Mean average precision {table['forest values'].mean():.3f}, by right votes "
        f"{table['right votes out of bag'].mean():.3f}; better on {better} of {len(table)} data sets."
    )

    def draw(figure: Any) -> None:
        ax, place = figure.subplots(), np.arange(len(table))
        for shift, name in ((-0.2, "forest values"), (0.2, "right votes out of bag")):
            ax.bar(place + shift, table[name], 0.4, label=name)
        ax.set_xticks(place, table["data"])
        ax.set(ylabel="average precision", ylim=(0.8, 1))
        figure.legend(frameon=False, loc="outside upper center", ncols=2)

    return Claim("Forests of fixed structure: exact at the cost of one fit", text, table, seen, draw)


def right_votes(model: RandomForestClassifier, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Share of the trees that have not seen a row and give its label."""
    right, asked = np.zeros(len(y)), np.zeros(len(y))
    for tree, bag in zip(model.estimators_, model.estimators_samples_, strict=True):
        out = np.setdiff1d(np.arange(len(y)), bag)
        asked[out] += 1
        right[out] += model.classes_[tree.predict(X[out]).astype(int)] == y[out]
    return right / np.maximum(asked, 1)


def greedy(quick: bool) -> Claim:
    """Rows chosen for what they add to those already chosen, against the best-valued ones."""
    shares = (0.05, 0.1, 0.2) if quick else (0.025, 0.05, 0.1, 0.15, 0.2, 0.3)
    names = ("wine",) if quick else ("breast_cancer", "digits")
    rows = []
    for name in names:
        for seed in range(1 if quick else 5):
            data = ls.datasets.load(name, seed=seed)
            X, y = data.X[:500], data.y[:500]
            judge = np.arange(len(data.y_test)) % 2 == 0  # half of the held-out rows choose, the others judge
            asked = (X, y, data.X_test[~judge], data.y_test[~judge])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ls.LocalShapleyWarning)
                chosen = ls.select(*asked, model=SVC(), n=round(shares[-1] * len(y)), seed=seed, progress=False)
                v = ls.value(*asked, model=SVC(), seed=seed, tol=0.2, progress=False)
            orders = {
                "chosen for what they add (select)": np.asarray(chosen.order),
                "the best-valued": np.argsort(-v.values, kind="stable"),
                "the best-valued of each class": in_balance(v, y),
                "at random": np.random.default_rng(seed).permutation(len(y)),
            }
            for title, order in orders.items():
                for share in shares:
                    some = order[: round(share * len(y))]
                    hit = data.y_test[judge] == (
                        SVC().fit(X[some], y[some]).predict(data.X_test[judge]) if len(set(y[some])) > 1 else y[some[0]]
                    )
                    rows.append({"data": name, "rows": title, "share (%)": 100 * share, "accuracy": 100 * hit.mean()})
    every = pd.DataFrame(rows)
    table = every.groupby(["data", "rows", "share (%)"], sort=False)["accuracy"].mean().unstack().reset_index()
    means = every.groupby("rows", sort=False)["accuracy"].mean()
    text = (
        "The value of a row is what it adds to a random coalition: two rows of high value may say the same. `select` "
        "takes one row after the other for what it adds to those already there. Accuracy (%) of an SVM trained on the "
        "chosen share of at most 500 rows, mean over splits; half of the held-out rows choose, the other half judges."
    )
    seen = "Mean accuracy: " + ", ".join(f"{title} {mean:.1f}" for title, mean in means.items()) + "."

    def draw(figure: Any) -> None:
        figure.set_size_inches(9, 4)
        axes = figure.subplots(1, len(names), squeeze=False).ravel()
        for ax, name in zip(axes, names, strict=True):
            for title, part in every[every["data"] == name].groupby("rows", sort=False):
                curve = part.groupby("share (%)")["accuracy"].mean()
                ax.plot(curve.index, curve, marker=".", label=title)
            ax.set(title=name, xlabel="rows (%)", ylabel="accuracy (%)")
        axes[-1].legend(frameon=False, fontsize=8)

    table.columns = [f"{c:g} %" if isinstance(c, float) else str(c) for c in table.columns]
    return Claim("Which rows to keep is a choice of a set", text, table, seen, draw)


def in_balance(v: ls.Valuation, y: np.ndarray) -> np.ndarray:
    """Rows by their place among those of their class, best first."""
    order = np.argsort(-v.values, kind="stable")
    place = np.empty(len(y))
    for label in np.unique(y):
        mine = order[y[order] == label]
        place[mine] = (np.arange(len(mine)) + 0.5) / len(mine)
    return np.argsort(place, kind="stable")


def tests(quick: bool) -> Claim:
    """Which test rows happen to be there moves values more than anything else, and intervals say so."""
    data = ls.datasets.load("digits")
    X, y = data.X[:300], flipped(data.y[:300], 0.1, 0)[0]
    pool_X, pool_y = np.concatenate([data.X[300:], data.X_test]), np.concatenate([data.y[300:], data.y_test])
    settings: dict[str, Any] = {"model": KNeighborsClassifier(5), "support": ls.supports.Nearest(10), "progress": False}
    truth = ls.value(X, y, pool_X, pool_y, **settings).values / len(pool_y)
    rng, rows = np.random.default_rng(0), []
    for size in (20, 100) if quick else (20, 50, 100, 200, 500, 1000):
        held, held_by_draws, off = [], [], []
        for _ in range(5 if quick else 100):
            some = rng.integers(0, len(pool_y), size)
            v = ls.value(X, y, pool_X[some], pool_y[some], **settings)
            low, high = v.interval(0.95)
            held.append(np.mean((low / size <= truth) & (truth <= high / size)))
            held_by_draws.append(np.mean(np.abs(v.values / size - truth) <= 1.96 * v.stderr / size + 1e-12))
            off.append(relative_error(v.values / size, truth))
        rows.append({"test rows": size, "relative error of exact values": np.mean(off), "held (%)": 100 * np.mean(held),
                     "held by the draws' error alone (%)": 100 * np.mean(held_by_draws)})  # fmt: skip
    table = pd.DataFrame(rows)
    text = (
        "Exact values of 300 rows of digits to a few test rows drawn from a pool of 1,497, against their values to the "
        "whole pool. `Valuation.interval` includes the error due to the choice of test rows, which no number of draws "
        "makes smaller. *held*: how often an interval of 95 % contains the value to the pool."
    )
    first, last = rows[0], rows[-1]
    seen = (
        f"With {first['test rows']} test rows exact values are off by {first['relative error of exact values']:.2f} "
        f"of their size, with {last['test rows']:,} by {last['relative error of exact values']:.2f}; intervals hold "
        f"in {table['held (%)'].min():.1f} to {table['held (%)'].max():.1f} %."
    )

    def draw(figure: Any) -> None:
        ax = figure.subplots()
        for name in ("held (%)", "held by the draws' error alone (%)"):
            ax.plot(table["test rows"], table[name], marker="o", label=name)
        ax.axhline(95, color="grey", linewidth=0.8)
        ax.set(xscale="log", xlabel="test rows", ylabel="intervals that hold the value to the pool (%)", ylim=(0, 103))
        ax.set_xticks(table["test rows"], [f"{n:,}" for n in table["test rows"]])
        ax.minorticks_off()
        ax.legend(frameon=False, loc="center right")

    return Claim("Which test rows happened to be there", text, table, seen, draw)


def lines_of(figure: Any, table: pd.DataFrame, x: str, y: str) -> None:
    """A line for each estimator, both axes logarithmic."""
    ax = figure.subplots()
    for name, part in table.groupby("estimator", sort=False):
        ax.plot(part[x], part[y], marker="o", label=name)
    ax.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.xaxis.set_minor_formatter("{x:,.0f}")
    ax.legend(frameon=False)


CLAIMS: dict[str, Callable[[bool], Claim]] = {
    "bias": bias,
    "cost": cost,
    "mechanisms": mechanisms,
    "forest": forest,
    "greedy": greedy,
    "tests": tests,
}


if __name__ == "__main__":
    main(sys.argv[1:])
