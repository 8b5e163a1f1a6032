"""The paper's ablation, and on: one column for each mechanism, as the error at equal budgets.

global → locality → subset-centric → reuse → inclusion weights → centring → additive fit. The paper switches on the
first three; the others make this library's sampler. Each method has the same budget, so that the errors can be
compared; trainings to equal error follow from their squares. What is drawn twice is trained once, so that a method may
train less than its budget; the table has the trainings, and ratios count them.

    python experiments/ablation.py            # about three minutes on two cores
    python experiments/ablation.py --quick    # under a minute
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from math import comb
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.metrics import pairwise_distances

import localshapley as ls
from common import PAPER_COST, Workload, arguments, enumerable_svm, enumerable_tree, relative_error, svm, tree, write
from graph import gnn

MECHANISMS = (
    "global",
    "+ locality",
    "+ subset-centric",
    "+ reuse",
    "+ inclusion weights",
    "+ centring",
    "+ additive fit",
)
LIBRARYS = {"+ locality": "local-mc", "+ reuse": "pivot", "+ additive fit": "sample"}
"""Mechanisms that are a method of the library; the others are in `Games`."""
LESS = "draws less v(N)"
"""Tells how much of the error of subset-centric draws is that of a constant."""

# The paper's ablation, seconds and trainings to its rule: all but one mechanism are methods of its table of cost.
PAPERS = {"global": "global-mc", "+ locality": "local-mc", "+ reuse": "LSMR-A"}
PAPER = {
    name: {"+ subset-centric": own} | {mechanism: PAPER_COST[name][method] for mechanism, method in PAPERS.items()}
    for name, own in {"DT": (152, 0.3e6), "GNN": (16_075, 3.8e6)}.items()
}


def main(argv: list[str] | None = None) -> None:
    """Run, and write `ablation.csv`, `ablation_errors.csv`, `.md`, `.svg` and `.png`."""
    args = arguments(__doc__, argv)
    # With the number of global runs: a network of hundreds of nodes takes long.
    workloads = (
        ((tree(True), 10), (svm(True), 10), (enumerable_gnn(8, True), 10))
        if args.quick
        else ((enumerable_tree(14), 10), (enumerable_svm(12), 10), (enumerable_gnn(10, False), 5))
    )
    rows, means = [], {}
    for workload, n_global in workloads:
        found = measure(workload, 40, range(3 if args.quick else 5), n_global)
        rows += lines(workload, found)
        means[workload.title] = {name: found[name].error for name in (*MECHANISMS, LESS)}
        for row in rows[-len(MECHANISMS) :]:
            print(row, file=sys.stderr)
    errors = pd.DataFrame.from_dict(means, orient="index").rename_axis("workload")
    about = (
        "Relative error at equal budgets, mean over seeds, and how many times fewer trainings a mechanism needs for "
        "the error of the line above. *+ locality*: permutations of each support, a training for each prefix; *+ "
        "subset-centric*: each scored subset serves all players of its game; *+ reuse*: and all games that contain it, "
        "by the paper's pivot rule with corrected weights; *+ inclusion weights*: every draw counts, weighted by the "
        "chance that any game drew it; *+ centring*: scores less the line from v(∅) to v(N); *+ additive fit*: less a "
        f"fitted surrogate, cross-fitted (this library). *{LESS}*: subset-centric draws whose scores are less v(N), a "
        "constant that changes no value. The paper counts trainings until values change little ([RQ3](rq3_cost.md)), "
        "which is not their error."
    )
    table = pd.DataFrame(rows)
    tables = {"mechanisms": table, "errors": errors.reset_index()}
    shown = {"times fewer trainings": times(table), "errors": errors.T.rename_axis("mechanism").reset_index()}
    write(args, "ablation", "Ablation: what each mechanism brings", about, tables, findings(table, errors),
          lambda figure: draw(figure, errors[list(MECHANISMS)]), shown=shown)  # fmt: skip


def times(table: pd.DataFrame) -> pd.DataFrame:
    """How many times fewer trainings each mechanism takes than the one before it, by workload."""
    wide = table.pivot(index="mechanism", columns="workload", values="times fewer trainings")
    return wide.loc[list(MECHANISMS[1:]), list(table["workload"].unique())].rename_axis(columns=None).reset_index()


def findings(table: pd.DataFrame, errors: pd.DataFrame) -> list[str]:
    """What the table, and the errors (workload × mechanism), say in words."""

    def larger(one: str, other: str) -> str:
        count = int((errors[one] > errors[other]).sum())
        return f"in {count} of {len(errors)} workloads"

    points = []
    for title, part in table.groupby("workload", sort=False):
        needed = part.set_index("mechanism")["error"] ** 2 * part.set_index("mechanism")["trainings"]
        error = errors.loc[title]
        points.append(
            f"{title}: from {error['+ locality']:.3g} with locality alone to {error['+ additive fit']:.3g}, "
            f"{needed['+ locality'] / needed['+ additive fit']:,.0f} times fewer trainings for the same error."
        )
    return [
        *points,
        f"Subset-centric draws have a larger error than permutations {larger('+ subset-centric', '+ locality')}: a "
        "permutation takes differences, in which the constant part of v(S) cancels, while a drawn subset adds v(S) to "
        "its members and takes it from the others. Without that constant the error is larger "
        f"{larger(LESS, '+ locality')}.",
        f"The error is larger with the pivot rule than without it {larger('+ reuse', '+ subset-centric')}, with "
        f"inclusion weights than with permutations {larger('+ inclusion weights', '+ locality')}, and with these and "
        f"centring {larger('+ centring', '+ locality')}. The line is worse than v(N) alone "
        f"{larger('+ centring', LESS)}.",
        "With the paper's three mechanisms the error at equal budgets is larger than with locality alone "
        f"{larger('+ reuse', '+ locality')}.",
    ]


def enumerable_gnn(size: int, quick: bool) -> Workload:
    """The graph workload with each support cut to the training nodes fewest hops away, then with the nearest features.

    Supports of at most `size` can be enumerated.
    """
    workload = gnn(quick)
    adjacency, X, _, train, test = workload.data[:5]
    hops = sparse.csgraph.dijkstra(adjacency, indices=test, unweighted=True, limit=2)[:, train]
    distance = pairwise_distances(X[test], X[train])
    nearest = np.lexsort((distance, hops))  # one row for each test node
    counts = np.minimum(np.isfinite(hops).sum(axis=1), size)
    support = ls.supports.Given([np.sort(row[:n]) for row, n in zip(nearest, counts, strict=True)])
    title = f"{workload.title}, supports of at most {size}"
    return replace(workload, title=title, value=partial(workload.value, support=support), support=support)


class Measured(NamedTuple):
    """Relative error of a mechanism, its standard error over seeds, and the trainings that it took."""

    error: float
    spread: float
    trainings: float


def measure(workload: Workload, per_game: int, seeds: range, n_global: int) -> dict[str, Measured]:
    """Errors of all mechanisms with the same budget."""
    exact = workload.value(method="exact", per_test=True)
    games = Games(workload, exact)
    budget = per_game * games.n_games
    runs = [
        workload.value(method="global-mc", budget=max(budget, 2 * workload.n_rows + 2), seed=seed)
        for seed in range(n_global)
    ]
    trained = float(np.mean([v.cost.trainings for v in runs]))
    measured = {"global": Measured(*error_among(np.array([v.values for v in runs])), trained)}
    errors: dict[str, list[float]] = {}
    trainings: dict[str, list[int]] = {}
    for seed in seeds:
        found = games.estimates(per_game, seed)
        for name, method in LIBRARYS.items():
            v = workload.value(method=method, budget=budget, seed=seed)
            found[name] = v.values, v.cost.trainings
        for name, (values, n) in found.items():
            errors.setdefault(name, []).append(relative_error(values, exact.values))
            trainings.setdefault(name, []).append(n)
    for name, e in errors.items():
        spread = float(np.std(e, ddof=1) / np.sqrt(len(e)))
        measured[name] = Measured(float(np.mean(e)), spread, float(np.mean(trainings[name])))
    return measured


def lines(workload: Workload, measured: dict[str, Measured]) -> list[dict[str, Any]]:
    """Lines of the long table, with the paper's numbers where it has them."""
    rows, before = [], np.nan
    for name in MECHANISMS:
        error, spread, n = measured[name]
        seconds, trainings = PAPER.get(workload.name, {}).get(name, (np.nan, np.nan))
        rows.append({"workload": workload.title, "mechanism": name, "trainings": round(n), "error": error, "±": spread,
                     "times fewer trainings": before / (error**2 * n), "paper trainings": trainings,
                     "paper seconds": seconds})  # fmt: skip
        before = error**2 * n
    return rows


def error_among(runs: np.ndarray) -> tuple[float, float]:
    """Relative error of unbiased runs whose true values are not known, and its standard error by the jackknife.

    The mean product of two runs is the squared norm of the true values; a run's distance to the mean of all is
    shorter than to the true values, by a known factor. NaN if the runs are too noisy to tell the norm.
    """

    def error(values: np.ndarray) -> float:
        n, mean = len(values), values.mean(axis=0)
        squared_norm = (n**2 * mean @ mean - (values**2).sum()) / (n * (n - 1))
        squared_error = ((values - mean) ** 2).sum() / (n - 1)
        return float(np.sqrt(squared_error / squared_norm)) if squared_norm > 0 else np.nan

    without = np.array([error(np.delete(runs, i, axis=0)) for i in range(len(runs))])
    return error(runs), float(np.sqrt((len(runs) - 1) * without.var()))


class Games:
    """The games of a workload with a trainer for their subsets, so that plain estimators take a few lines."""

    def __init__(self, workload: Workload, exact: ls.Valuation) -> None:
        self.graph = ls.SupportGraph(supports_of(workload, exact), workload.n_rows, merge=False)
        self.n_games = int((self.graph.support_sizes > 0).sum())
        self._trainer = trainer_of(workload)
        tests = range(self.graph.n_tests)
        full = ls.models.Coalitions.from_lists([self.graph.support(t) for t in tests], [[t] for t in tests])
        self._highest = self._trainer.evaluate(full)
        self._lowest = self._trainer.evaluate(ls.models.Coalitions.from_lists([[]], [tests]))
        # What each player adds along the line from v(∅) to v(N).
        self._slope = (self._highest - self._lowest) / np.maximum(self.graph.support_sizes, 1)

    def estimates(self, per_game: int, seed: int) -> dict[str, tuple[np.ndarray, int]]:
        """Values by mechanism, all from the same draws, and the trainings; each distinct subset is trained once."""
        drawn, times = self._draw(per_game, seed)
        holding = [self.graph.tests_holding(subset) for subset in drawn]
        flat = self._trainer.evaluate(ls.models.Coalitions.from_lists(drawn, holding))
        scores = np.split(flat, np.cumsum([len(tests) for tests in holding])[:-1])
        names = ("+ subset-centric", LESS, "+ inclusion weights", "+ centring")
        values = {name: np.zeros(self.graph.n_players) for name in names}
        for subset, tests, scored in zip(drawn, holding, scores, strict=True):
            k, sizes = len(subset), self.graph.support_sizes[tests]
            counts = np.array([comb(int(n), k) for n in sizes])  # subsets of that size
            missed = np.where(sizes > 0, 1 - 1 / ((sizes + 1) * counts), 1).prod() ** per_game
            for t, n, count, score in zip(tests, sizes, counts, scored, strict=True):
                own = times.get((subset.tobytes(), t), 0) * (n + 1) / per_game
                shared = 1 / count / (1 - missed)
                line = self._lowest[t] + self._slope[t] * k
                self._add(values["+ subset-centric"], t, subset, own * score)
                self._add(values[LESS], t, subset, own * (score - self._highest[t]))
                self._add(values["+ inclusion weights"], t, subset, shared * score)
                self._add(values["+ centring"], t, subset, shared * (score - line))
        values["+ centring"] += self.graph.values(np.repeat(self._slope, self.graph.support_sizes))
        known = {subset.tobytes() for subset in drawn}
        full = len({self.graph.support(t).tobytes() for t in range(self.graph.n_tests)} - known)
        more = {LESS: full, "+ centring": full}  # these need the full supports too
        return {name: (found, len(drawn) + more.get(name, 0)) for name, found in values.items()}

    def _draw(self, per_game: int, seed: int) -> tuple[list[np.ndarray], Counter[tuple[bytes, int]]]:
        """Distinct subsets, and how often each game drew each: a size at random, then a subset of that size."""
        rng = np.random.default_rng(seed)
        drawn: dict[bytes, np.ndarray] = {}
        times: Counter[tuple[bytes, int]] = Counter()
        for t in np.flatnonzero(self.graph.support_sizes):
            support = self.graph.support(t)
            for _ in range(per_game):
                subset = np.sort(rng.permutation(support)[: rng.integers(len(support) + 1)])
                drawn[subset.tobytes()] = subset
                times[subset.tobytes(), t] += 1
        return list(drawn.values()), times

    def _add(self, values: np.ndarray, test: int, subset: np.ndarray, worth: float) -> None:
        """One scored subset for every player of its game: members share it, the others pay it."""
        if worth:
            support, k = self.graph.support(test), len(subset)
            share = np.where(np.isin(support, subset), 1 / max(k, 1), -1 / max(len(support) - k, 1))
            values[support] += worth * share


def supports_of(workload: Workload, exact: ls.Valuation) -> list[np.ndarray]:
    """Training rows of each test row's game."""
    if isinstance(workload.support, ls.supports.Given):
        return list(workload.support.lists)
    assert exact.per_test is not None
    return np.split(exact.per_test.indices, exact.per_test.indptr[1:-1])


def trainer_of(workload: Workload) -> Any:
    """The library's trainer for the subsets of a workload, scored by accuracy."""
    if workload.name == "GNN":
        adjacency, X, y, train, test = workload.data[:5]
        task = task_of(X[train], y[train], X[test], y[test])
        alone = sparse.eye_array(len(test), format="csr")  # a game for each test node
        return ls.models.GCNTrainer(workload.model, task, ls.models.read_graph(adjacency, X, y, train, test), alone)
    return ls.models.EstimatorTrainer(workload.model, task_of(*workload.data))


def task_of(X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray) -> Any:
    """Rows and labels as trainers take them."""
    classes, codes = np.unique(y, return_inverse=True)
    test_codes = np.where(np.isin(y_test, classes), np.searchsorted(classes, y_test), -1)
    return ls.models.Task(X, y, X_test, test_codes, classes, codes, ls.scoring.Accuracy())


def draw(figure: Any, errors: pd.DataFrame) -> None:
    """Error by mechanism."""
    ax = figure.subplots()
    for title, error in errors.iterrows():
        ax.plot(errors.columns, error, marker="o", label=title)
    ax.set(yscale="log", ylabel="relative error at equal budgets")
    ax.tick_params(axis="x", rotation=20)
    ax.legend(frameon=False)


if __name__ == "__main__":
    main(sys.argv[1:])
