"""What the experiments share: the paper's workloads and numbers, and how results are written."""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from textwrap import fill
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.stats import pearsonr, spearmanr
from sklearn.base import clone
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from keep import folder_of, kept
from localshapley.notes import Note

RESULTS = Path(__file__).parents[1] / "docs" / "results"

# Tables 2 to 4 and 6 of the paper. It counts a training for each test row that a model is scored on.
PAPER_COST = {
    "WKNN": {"global-mc": (212_408, 1126e6), "tmc": (8_085, 65.1e6), "complementary": (9_181, 16.8e6),
             "local-mc": (537, 9.0e6), "LSMR-A": (88, 0.9e6)},
    "DT": {"global-mc": (1_446, 2.8e6), "tmc": (250, 0.5e6), "complementary": (206, 0.4e6),
           "local-mc": (243, 0.5e6), "LSMR-A": (111, 0.2e6)},
    "SVM": {"global-mc": (101_903, 81.7e6), "tmc": (2_790, 4.9e6), "complementary": (3_087, 5.1e6),
            "local-mc": (16_013, 32e6), "LSMR-A": (251, 0.4e6)},
    "GNN": {"global-mc": (200_860, 28.2e6), "tmc": (122_264, 23.8e6), "complementary": (71_768, 9.1e6),
            "local-mc": (45_378, 12.0e6), "LSMR-A": (7_241, 1.7e6)},
}  # fmt: skip
PAPER_FIDELITY = {"WKNN": (0.839, 0.840), "GNN": (0.516, 0.376)}  # of the others the paper has pictures only
EVALUATIONS = {name: int(cost["global-mc"][1]) for name, cost in PAPER_COST.items()}
"""Scores of a model on a test row that the paper's global values took."""

OURS = "LSMR-A"
METHODS = ("global-mc", "tmc", "complementary", "local-mc", "pivot", OURS)
RATES = {
    "WKNN": (540_000, 350_000, 400, 8_000_000, 125_000, 240_000),
    "DT": (75_000, 31_000, 32_000, 125_000, 160_000, 105_000),
    "SVM": (7_500, 12_000, 5_200, 53_000, 38_000, 45_000),
    "GNN": (540, 310, 310, 1_080, 1_350, 1_100),
    "GNN, few": (1_320, 650, 1_060, 1_380, 1_220, 2_380),
    "GNN, GPU": (3_000, 100, 1_000, 100_000, 30_000, 30_000),
    "quick": (100, 100, 100, 100, 100, 100),
}
"""Trainings a second by method, measured once on two cores, or on a GPU. They turn limits in seconds into limits in
trainings, so that no result depends on how fast a machine is."""


@dataclass
class Workload:
    """A model with its data and supports, as the paper has them.

    Attributes
    ----------
    name, title : str
    value : callable
        `value(**settings)`: the valuation, by any method.
    accuracies : callable
        `accuracies(sets)`: accuracy on the test rows after training on each of some sets of training rows.
    labels : array of shape (n_rows,)
    n_tests : int
    notes : list of str
        Where it differs from the paper's.
    data, model, support
        What `value` is called with.
    variants : dict
        Other ways to make local values of this workload: settings of `value` by name.
    about_variants : list of str
        What these are.
    rates : str
        Which of `RATES` its limits go by; that of its name by default.
    """

    name: str
    title: str
    value: Callable[..., ls.Valuation]
    accuracies: Callable[[list[np.ndarray]], list[float]]
    labels: np.ndarray
    n_tests: int
    notes: list[str] = field(default_factory=list)
    data: Any = None
    model: Any = None
    support: Any = None
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)
    about_variants: list[str] = field(default_factory=list)
    rates: str = ""

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return len(self.labels)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Methods that take too long: TMC goes through a permutation one row after the other."""
        return ("tmc",) if self.rates == "GNN, GPU" else ()

    @property
    def about_left_out(self) -> list[str]:
        """Words on these."""
        return ["GCN: TMC, which trains one network after the other, is left out."] if self.left_out else []

    def permutations(self) -> int:
        """Permutations of all rows that make at least the paper's number of evaluations; an even number."""
        return 2 * -(-EVALUATIONS[self.name] // (2 * (self.n_rows - 1) * self.n_tests))

    def limit(self, seconds: float, method: str = OURS) -> int:
        """Trainings of a method that take about so many seconds on two cores."""
        rate = dict(zip(METHODS, RATES[self.rates or self.name], strict=True))
        return round(seconds * rate.get(method, rate[OURS]))


def tabular(
    name: str,
    title: str,
    data: Any,
    model: Any,
    support: Any,
    notes: list[str] | None = None,
    score: str = "accuracy",
    rates: str = "",
) -> Workload:
    """A workload of rows; utility is accuracy, as in the paper's code, if nothing else is said."""
    X, y, X_test, y_test = data

    def accuracy(rows: np.ndarray) -> float:
        if len(set(y[rows])) < 2:
            return float((y_test == y[rows[0]]).mean()) if len(rows) else 1 / len(set(y))
        settings = {"n_neighbors": min(5, len(rows))} if isinstance(model, KNeighborsClassifier) else {}
        return float(clone(model).set_params(**settings).fit(X[rows], y[rows]).score(X_test, y_test))

    def value(**settings: Any) -> ls.Valuation:
        settings = {"model": model, "support": support, "score": score, "progress": False, **settings}
        return ls.value(X, y, X_test, y_test, **settings)

    return Workload(
        name, title, value, lambda sets: [accuracy(rows) for rows in sets], y, len(y_test), notes or [],
        (X, y, X_test, y_test), model, support, rates=rates,
    )  # fmt: skip


def wknn(quick: bool, seed: int = 0) -> Workload:
    """Weighted K nearest neighbours on MNIST, K = 5, supports of the 10 nearest.

    Pixels and the confidence in the true class: with these the paper's numbers come out, with other features or
    accuracy they do not (see RQ4).
    """
    model, support = KNeighborsClassifier(5, weights="distance"), ls.supports.Nearest(10)
    if quick:
        data = ls.datasets.load("digits", seed=seed)
        rows, tests = slice(None, 100), slice(None, 40)
        digits = (data.X[rows], data.y[rows], data.X_test[tests], data.y_test[tests])
        return tabular(
            "WKNN", "weighted KNN, digits (quick)", digits, model, support, score="confidence", rates="quick"
        )
    data = ls.datasets.load("mnist", seed=seed)
    note = (
        "Weighted KNN: rows are pixels and the score is the confidence in the true class. The paper speaks of an "
        "encoder's 1,024 features and its code of accuracy, but with those its numbers are not reached (see "
        "[RQ4](rq4_support_size.md))."
    )
    return tabular("WKNN", "weighted KNN, MNIST", data[:4], model, support, [note], "confidence")


def tree(quick: bool, seed: int = 0) -> Workload:
    """Trees on Iris; supports from a reference tree, brought to 30 to 50 rows by nearest neighbours."""
    data = ls.datasets.load("iris", seed=seed)[:4]
    low, high = (8, 12) if quick else (30, 50)
    support = ls.supports.Given(tree_supports(data, low, high))
    title = "trees, Iris" + (" (quick: supports of 8 to 12)" if quick else "")
    rates = "quick" if quick else "DT"
    return tabular("DT", title, data, DecisionTreeClassifier(random_state=0), support, rates=rates)


PRUNED = {"min_samples_leaf": 5, "min_samples_split": 10}
"""The paper's tree that supports come from."""


def tree_supports(
    data: tuple[np.ndarray, ...],
    low: int,
    high: int,
    *,
    up: int = 1,
    nearest: bool = True,
    settings: dict[str, int] = PRUNED,
) -> list[np.ndarray]:
    """Rows in the node `up` steps above each test row's leaf; cut to the nearest `high`, filled to the nearest `low`.

    If not `nearest`, those that are taken are drawn at random. `data` begins with `X`, `y` and `X_test`.
    """
    X, y, X_test = data[:3]
    tree = DecisionTreeClassifier(random_state=0, **settings).fit(X, y)
    inside = sparse.csc_array(tree.decision_path(X))
    distance = pairwise_distances(X_test, X) if nearest else np.random.default_rng(0).random((len(X_test), len(X)))
    supports = []
    for t, path in enumerate(tree.decision_path(X_test).tolil().rows):
        outside = np.ones(len(X), dtype=bool)
        outside[inside[:, [path[max(len(path) - 1 - up, 0)]]].nonzero()[0]] = False
        order = np.lexsort((distance[t], outside))  # those inside first, nearest first
        supports.append(np.sort(order[: int(np.clip((~outside).sum(), low, high))]))
    return supports


def within(limit: int, tol: float) -> dict[str, Any]:
    """Arguments of `value` for a run to a relative error that takes no more trainings than the limit."""
    return {"stop": ls.stopping.RelativeError(tol) | ls.stopping.Trainings(limit)}


def timed(
    value: Callable[..., ls.Valuation], few: dict[str, Any] | None, **settings: Any
) -> tuple[float, ls.Valuation]:
    """Seconds of a valuation, and the valuation.

    `few` are settings of a smaller one that is run first, so that nothing is compiled or loaded while the clock runs;
    none is run if it is None.
    """
    if few is not None:
        value(**{**settings, **few})
    started = perf_counter()
    v = value(**settings)
    return perf_counter() - started, v


@dataclass(frozen=True)
class OutOfReach(ls.stopping.Rule):
    """Gives up if a run would need more than its limit: 4 times by a twentieth, 1.5 by a quarter, 1.25 by half."""

    limit: int
    times_more: Callable[[Any], float]
    """How many times the trainings so far are needed; NaN if that cannot be said."""

    def holds(self, look: Any) -> bool:
        """Whether to give up."""
        share = look.trainings / self.limit  # a first look predicts badly
        doubt = 1.25 if share >= 1 / 2 else 1.5 if share >= 1 / 4 else 4.0
        early = look.trainings < max(1500, self.limit / 20)
        return not early and self.times_more(look) * look.trainings > doubt * self.limit

    def reached(self, look: Any) -> Note:
        """The trainings against the limit."""
        text = f"out of reach by {look.trainings:,} trainings of at most {self.limit:,}"
        return Note("out-of-reach", text, trainings=look.trainings, limit=self.limit)


@dataclass
class Firsts(ls.stopping.Rule):
    """Waits until each of some rules has held once, or is out of reach, and remembers when they first held.

    A look costs as much as all draws until then, so that thousands of them would cost more than the draws. They come in
    pairs, as close as the rules that are waited for want them, with a tenth more draws between two pairs.
    """

    rules: dict[str, tuple[ls.stopping.Rule, OutOfReach]]
    at: dict[str, Any] = field(default_factory=dict)
    """The first look at which each held."""
    step: int = 0

    def __post_init__(self) -> None:
        self.step = max(rule.step for rule, _ in self.rules.values())

    def holds(self, look: Any) -> bool:
        """Whether there is nothing to wait for."""
        self.at.update({key: look for key, (rule, _) in self.rules.items() if key not in self.at and rule.holds(look)})
        waited = [rule for key, (rule, over) in self.rules.items() if key not in self.at and not over.holds(look)]
        close, far = max((rule.step for rule in waited), default=0), int(look.draws_per_game // 10)
        self.step = far if far > max(close, 9) and (not close or look.draws_since <= close + 1) else close
        return not waited

    def reached(self, look: Any) -> Note:
        """What each of them says."""
        said = [(rule if key in self.at else over).reached(look) for key, (rule, over) in self.rules.items()]
        code = "target-reached" if self.at.keys() == self.rules.keys() else "out-of-reach"
        return Note(code, " and ".join(said))


@dataclass(frozen=True)
class PapersRule(ls.stopping.RelativeChange):
    """The paper's stopping rule, which remembers what it saw; with another `every` it only looks, and never holds."""

    seen: dict[int, tuple[float, float]] = field(default_factory=dict)
    """By trainings: draws so far, and the change over `m` of `n` draws times `√(n(n − m)/m)`, which stays the same."""

    def holds(self, look: Any) -> bool:
        """Whether the values have settled."""
        if look.previous is not None:
            some = np.abs(look.values) > 1e-9  # a value that is just passing 0 says nothing about the others
            change = (np.abs(look.values - look.previous)[some] / np.abs(look.values)[some]).sum() / len(some)
            n, since = look.draws_per_game, look.draws_since
            self.seen[look.trainings] = (n, float(change) * np.sqrt(n * (n - since) / since))
        return self.every == 100 and super().holds(look)

    def times_more(self, trainings: int) -> float:
        """How many times as many trainings it takes to hold; NaN if there was nothing to see."""
        if not self.seen:
            return np.nan
        last = list(self.seen)[-1]
        steady = float(np.median([found for _, found in list(self.seen.values())[-5:]]))
        draws = 50 + np.sqrt(50**2 + 100 * (steady / self.tau) ** 2)  # at which the last 100 change little enough
        return max(1.0, float(draws * last / self.seen[last][0] / trainings))


@dataclass
class Cost:
    """What it takes to a target; extrapolated if the run ended before. Values and error are those that there were."""

    seconds: float
    trainings: float
    evaluations: float
    extrapolated: bool
    values: np.ndarray
    relative_error: float
    draws_per_game: float

    @classmethod
    def of(cls, v: ls.Valuation, seconds: float, look: Any = None) -> Cost:
        """That of a whole run, or up to a look at it."""
        if look is None:
            cut = v.stopped.code in ("budget-spent", "time-over", "trainings-reached", "out-of-reach")
            return cls(seconds, v.cost.trainings, v.cost.draws, cut, v.values, v.relative_error, 0.0)
        share = look.trainings / v.cost.trainings
        error = float(np.linalg.norm(look.stderr) / np.linalg.norm(look.values))
        seconds -= v.cost.seconds - look.seconds
        return cls(seconds, look.trainings, share * v.cost.draws, False, look.values, error, look.draws_per_game)

    def times(self, factor: float) -> Cost:
        """So many times as much."""
        seconds, trainings, evaluations = (factor * x for x in (self.seconds, self.trainings, self.evaluations))
        return replace(self, seconds=seconds, trainings=trainings, evaluations=evaluations)


def capped(rule: ls.stopping.Rule, limit: int, method: str = "auto", **settings: Any) -> dict[str, Any]:
    """Arguments of `value` for a run to a rule that takes no more trainings than the limit.

    A budget is kept to the training. This library's methods would be exact if it allowed every subset: they stop at the
    next look.
    """
    if method in ("auto", "sample"):
        return {"stop": rule | ls.stopping.Trainings(limit)}
    return {"stop": rule, "budget": limit}


def to_the_rule(
    value: Callable[..., ls.Valuation],
    limit: int,
    also: tuple[ls.stopping.Rule, OutOfReach] | None = None,
    **settings: Any,
) -> tuple[Cost, Cost]:
    """Run to the paper's rule, within a limit, and to another rule in the same run; what each took.

    Again with closer looks while there is room for one only. The paper's rule is extrapolated if it was not met; cost
    is NaN if nothing can be said from what was run. The other is not, and is that of the whole run if there is none.
    """
    for every in (100, 10, 2):
        rule = PapersRule(0.05, every=every)
        rules = {"paper's": (rule, OutOfReach(limit, lambda look, rule=rule: rule.times_more(look.trainings)))}
        stop = Firsts(rules if also is None else {**rules, "also": also})
        started = perf_counter()
        v = value(**settings, **capped(stop, limit, **settings))
        seconds = perf_counter() - started
        cost = Cost.of(v, seconds, stop.at.get("paper's"))
        times = rule.times_more(v.cost.trainings) if cost.extrapolated else 1.0
        if not np.isnan(times):
            break
    return cost.times(times), Cost.of(v, seconds, stop.at.get("also"))


def enumerable_tree(size: int) -> Workload:
    """Trees on Iris with supports that can be enumerated."""
    data = ls.datasets.load("iris")[:4]
    supports = ls.supports.Given(tree_supports(data, size, size))
    return tabular("DT", f"trees, Iris, supports of {size}", data, DecisionTreeClassifier(random_state=0), supports)


def enumerable_svm(size: int) -> Workload:
    """RBF-SVM on Breast Cancer with supports that can be enumerated."""
    data = ls.datasets.load("breast_cancer")[:4]
    support = ls.supports.Kernel(0.5, max_size=size)
    return tabular("SVM", f"RBF-SVM, Breast Cancer, supports of at most {size}", data, SVC(), support)


def svm(quick: bool, seed: int = 0) -> Workload:
    """RBF-SVM on Breast Cancer, supports of kernel 0.5 and more."""
    X, y, X_test, y_test = ls.datasets.load("breast_cancer", seed=seed)[:4]
    if quick:
        data = (X[:60], y[:60], X_test[:20], y_test[:20])
        few = ls.supports.Kernel(0.5, max_size=12)
        return tabular("SVM", "RBF-SVM, Breast Cancer (quick)", data, SVC(), few, rates="quick")
    return tabular("SVM", "RBF-SVM, Breast Cancer", (X, y, X_test, y_test), SVC(), ls.supports.Kernel(0.5))


def global_halves(workload: Workload, quick: bool) -> list[dict[str, Any]]:
    """Global values from each half of the paper's number of permutations, with their evaluations and seconds; kept."""
    budget = (30 if quick else workload.permutations()) // 2 * workload.n_rows + 2

    def half(seed: int) -> dict[str, Any]:
        few = {"budget": 2 * workload.n_rows + 2}
        seconds, v = timed(workload.value, few, method="global-mc", budget=budget, seed=seed)
        return {"values": v.values, "evaluations": v.cost.draws, "seconds": seconds}

    labels = hashlib.sha256(workload.labels.tobytes()).hexdigest()  # splits have the same title
    folder = folder_of("global", [workload.title, labels], quick)
    return [kept(folder / f"{seed}.json", partial(half, seed)) for seed in (1, 2)]


def global_values(workload: Workload, quick: bool) -> np.ndarray:
    """Global values from the paper's number of permutations."""
    return np.mean([half["values"] for half in global_halves(workload, quick)], axis=0)


def fidelity(local: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """Pearson's and Spearman's correlation."""
    return float(pearsonr(local, reference).statistic), float(spearmanr(local, reference).statistic)


def relative_error(estimate: np.ndarray, reference: np.ndarray) -> float:
    """`‖estimate − reference‖ / ‖reference‖`."""
    return float(np.linalg.norm(estimate - reference) / np.linalg.norm(reference))


def accuracy_at(workload: Workload, values: np.ndarray, share: float) -> float:
    """Accuracy after training on the best-valued share of the rows."""
    best = np.argsort(-values, kind="stable")[: max(1, round(share * len(values)))]
    return workload.accuracies([best])[0]


def best_valued(workload: Workload, v: ls.Valuation, k: int, balance: str | None) -> np.ndarray:
    """The `k` best-valued rows, or of each class its share of them."""
    chosen = ls.tasks.select(v, k, y=workload.labels, balance=balance, errors="draws").index
    return np.sort(v.to_frame().index.get_indexer(chosen))


def flipped(y: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels with a share of them changed to another class, and which."""
    rng, y, classes = np.random.default_rng(seed), y.copy(), len(np.unique(y))
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rng.choice(len(y), round(share * len(y)), replace=False)] = True
    y[wrong] = (y[wrong] + rng.integers(1, classes, wrong.sum())) % classes
    return y, wrong


def arguments(
    doc: str,
    argv: list[str] | None = None,
    names: Iterable[str] = (),
    more: Callable[[argparse.ArgumentParser], None] | None = None,
) -> argparse.Namespace:
    """The command line of an experiment; with `names` of workloads, `--only` takes one (`args.names`: those to run).

    `more` adds what an experiment takes beside it. `args.commit` is that of the sources.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, under two minutes")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for tables and figures")
    if names:
        parser.add_argument("--only", choices=list(names), help="one of the workloads")
    if more:
        more(parser)
    args = parser.parse_args(argv)
    args.names = [args.only] if names and args.only else list(names)
    args.commit = commit()  # now: the sources may be others at the end
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def machine() -> str:
    """What it ran on, in words."""
    words = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    torch = sys.modules.get("torch")
    return f"{words}, {torch.cuda.get_device_name()}" if torch and torch.cuda.is_available() else words


def commit() -> str:
    """The commit of the sources, with a + if they were changed since; empty outside a repository."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        found = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=False)
        return found.stdout.strip() if found.returncode == 0 else ""

    changed = git("status", "--porcelain", "--", "../src", ".")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def made_with(source: str) -> str:
    """Machine, date and the commit of the sources, in words."""
    made = [machine(), f"{datetime.now(UTC):%d %B %Y}", source and f"commit {source}"]
    return f"(Made with {', '.join(filter(None, made))}.)"


def write(
    args: argparse.Namespace,
    name: str,
    title: str,
    about: str,
    tables: dict[str, pd.DataFrame],
    findings: list[str],
    draw: Callable[[Any], None],
    more: dict[str, Callable[[Any], None]] | None = None,
    made: str = "",
) -> None:
    """Write tables (CSV and Markdown) and figures (SVG and PNG) of an experiment.

    The first table goes to `NAME.csv`, each other to `NAME_KEY.csv`; so do the figure and `more` figures.
    `made` says where, when and from what the numbers were made, if not here and now.
    """
    only = getattr(args, "only", None)
    only = " ".join(only) if isinstance(only, list) else only
    command = f"python experiments/{name}.py" + (" --quick" if args.quick else "") + (f" --only {only}" if only else "")
    lines = [f"# {title}", "", f"    {command}", "", fill(f"{about} {made or made_with(args.commit)}", 118), ""]
    for i, (key, table) in enumerate(tables.items()):
        table.to_csv(args.out / (f"{name}.csv" if i == 0 else f"{name}_{key}.csv"), index=False, float_format="%.6g")
        lines += ([f"## {key}", ""] if len(tables) > 1 else []) + [markdown(table), ""]
    for file, caption, picture in [(name, title, draw)] + [(f"{name}_{k}", k, p) for k, p in (more or {}).items()]:
        save_figure(picture, args.out / file)
        lines += [f"![{caption}]({file}.svg)", ""]
    if findings:
        lines += ["## What is seen", ""]
        lines += [fill(point, 118, initial_indent="- ", subsequent_indent="  ") for point in findings] + [""]
    (args.out / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")
    print(f"wrote {args.out / name}.md", file=sys.stderr)


def markdown(table: pd.DataFrame) -> str:
    """A table in Markdown; numbers with three digits, and to the right."""

    def text(cell: Any) -> str:
        if isinstance(cell, float | np.floating):
            return "" if np.isnan(cell) else f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"
        return f"{cell:,}" if isinstance(cell, int | np.integer) and not isinstance(cell, bool) else str(cell)

    numeric = [pd.api.types.is_numeric_dtype(table[name]) for name in table.columns]
    lines = [
        "| " + " | ".join(map(str, table.columns)) + " |",
        "|" + "|".join("---:" if right else "---" for right in numeric) + "|",
    ]
    lines += ["| " + " | ".join(map(text, row)) + " |" for row in table.itertuples(index=False)]
    return "\n".join(lines)


def panels(figure: Any, n: int) -> Any:
    """So many axes in at most two columns; what is left of the last line stays empty."""
    axes = figure.subplots(-(-n // 2), min(n, 2), squeeze=False).ravel()
    for ax in axes[n:]:
        ax.set_axis_off()
    return axes[:n]


def save_figure(draw: Callable[[Any], None], path: Path) -> None:
    """Draw on a new figure and save it as SVG and PNG, the same bytes for the same numbers."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": path.name}):
        figure = Figure(figsize=(8, 5), layout="constrained")
        draw(figure)
        figure.savefig(f"{path}.svg", metadata={"Date": None})
        figure.savefig(f"{path}.png", dpi=110)
