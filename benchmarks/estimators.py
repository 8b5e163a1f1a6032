"""Trainings that other estimators need for the error that `method="sample"` has at `tol=0.1`.

    python benchmarks/estimators.py [--quick] [--only NAME]
    python benchmarks/estimators.py --bound ERROR [ERROR ...]

For each workload: the trainings and the true relative error of "sample" (mean over seeds), and how many times as many
trainings Local-MC and "pivot" need for the same error. These two average independent draws, so that their error falls
with the square root of the trainings: it is measured at a budget of their own and carried over to the same error.

Local-MC draws permutations inside each support and takes marginal differences; the empty coalition and the full
supports are trained once, no prefix is trained twice within a permutation, and equal supports are one game.

Reference values are exact, or, where supports are too large for that, come from a run of 50 times the trainings. Scores
are remembered from run to run, and games played as those of a model that is not compiled: with the settings that take
the fewest trainings.

`--bound` prints what the rough games would take for an error if all but their noise were known: each game draws sizes
with the best chances there are, and weighs what it draws by their inverse.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from scipy.optimize import bisect
from scipy.special import comb
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.models import Coalitions
from localshapley.problem.build import build_problem
from localshapley.question import Question


class Remembering:
    """A trainer that trains no coalition twice in the life of the process."""

    def __init__(self, trainer: object) -> None:
        self.name = "remembering"
        self._trainer = trainer
        self._scores: dict[tuple[bytes, int], float] = {}

    def evaluate(self, coalitions: Coalitions) -> np.ndarray:
        keys = [
            (coalitions.coalition(c).tobytes(), int(t)) for c in range(len(coalitions)) for t in coalitions.tests_of(c)
        ]
        missing = sorted({np.searchsorted(coalitions.test_indptr, i, side="right") - 1 for i, key in enumerate(keys)
                          if key not in self._scores})  # fmt: skip
        if missing:
            new = Coalitions.from_lists(
                [coalitions.coalition(c) for c in missing], [coalitions.tests_of(c) for c in missing]
            )
            scores = iter(self._trainer.evaluate(new))
            for c in range(len(new)):
                for t in new.tests_of(c):
                    self._scores[new.coalition(c).tobytes(), int(t)] = next(scores)
        return np.array([self._scores[key] for key in keys])


@dataclass
class Workload:
    supports: list[np.ndarray]
    trainer: object
    n_players: int
    exact: bool


def of_model(
    data: ls.datasets.Dataset, n_tests: int, model: object, support: object, score: str, exact: bool
) -> Workload:
    problem = build_problem(
        Question.of_rows(
            data.X,
            data.y,
            data.X_test[:n_tests],
            data.y_test[:n_tests],
            model=model,
            support=support,
            score=score,
            n_jobs=2,
        )
    )
    supports = [problem.graph.support(t) for t in range(problem.graph.n_tests)]
    return Workload(supports, Remembering(problem.trainer), problem.graph.n_players, exact)


class Rough:
    """A logistic of the members' strengths, plus as much noise again for each coalition and test row."""

    name = "rough"

    def __init__(self, n_players: int, n_tests: int) -> None:
        rng = np.random.default_rng(7)
        self._words = rng.integers(2**63, size=n_players + n_tests, dtype=np.uint64)
        self._strength = rng.normal(size=(n_tests, n_players))
        self._n_players = n_players

    def evaluate(self, coalitions: Coalitions) -> np.ndarray:
        members = [coalitions.coalition(c) for c in range(len(coalitions))]
        sums = np.array([self._words[m].sum(dtype=np.uint64) for m in members])
        x = np.repeat(sums, np.diff(coalitions.test_indptr)) + self._words[self._n_players + coalitions.tests]
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
        noise = (x >> np.uint64(11)) * 2.0**-53
        signal = [self._strength[coalitions.tests_of(c)][:, m].sum(axis=1) for c, m in enumerate(members)]
        return 1 / (1 + np.exp(-np.concatenate(signal))) + noise


def rough() -> Workload:
    rng = np.random.default_rng(3)
    supports = [rng.choice(60, size=rng.integers(10, 16), replace=False) for _ in range(30)]
    return Workload(supports, Rough(60, 30), 60, True)


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "RBF-SVM, Breast Cancer, supports of up to 12": lambda: of_model(
        ls.datasets.load("breast_cancer"), 40, SVC(C=1.0), ls.supports.Kernel(0.5, max_size=12), "confidence", True
    ),
    "trees, Iris, supports of up to 12": lambda: of_model(
        ls.datasets.load("iris"), 45, DecisionTreeClassifier(random_state=0), ls.supports.Nearest(12), "accuracy", True
    ),
    "weighted KNN, digits, supports of 20": lambda: of_model(
        ls.datasets.load("digits"), 30, KNeighborsClassifier(5, weights="distance"), ls.supports.Nearest(20),
        "confidence", False,
    ),
    "rough random games, supports of 10 to 15": rough,
    "RBF-SVM, Breast Cancer, kernel >= 0.5": lambda: of_model(
        ls.datasets.load("breast_cancer"), 5, SVC(C=1.0), ls.supports.Kernel(0.5), "confidence", False
    ),
}  # fmt: skip


def bound(workload: Workload, error: float) -> float:
    """Trainings of the rough games for a relative error, if nothing but their noise is left to be estimated.

    A subset of size `k` of `n` adds `σ²·n/(k·(n−k)·C(n,k)²)·(1−π)/π` to the variances of all players together; the
    sum is least for chances `π` in proportion to the root of that factor, as far as they are less than 1.
    """
    truth = ls.shapley(workload.supports, workload.trainer, workload.n_players, method="exact").values
    n = np.repeat([len(rows) for rows in workload.supports], [len(rows) - 1 for rows in workload.supports])
    k = np.concatenate([np.arange(1, len(rows)) for rows in workload.supports])
    subsets = comb(n, k)
    each = n / (k * (n - k) * subsets**2) / 12  # the variance of a number between 0 and 1

    def chances(log_rate: float) -> np.ndarray:
        return np.minimum(1.0, np.exp(log_rate) * np.sqrt(each))

    def excess(log_rate: float) -> float:
        pi = chances(log_rate)
        return float(np.sqrt((subsets * each * (1 - pi) / pi).sum()) / np.linalg.norm(truth)) - error

    return float((subsets * chances(bisect(excess, -20.0, 20.0))).sum()) + 1 + len(workload.supports)


def local_mc(workload: Workload, permutations: int, seed: int) -> tuple[np.ndarray, int]:
    """Values by random permutations of each game, and the trainings that they took."""
    rng = np.random.default_rng(seed)
    graph = ls.SupportGraph(workload.supports, workload.n_players)
    evaluate = workload.trainer.evaluate
    nothing = evaluate(Coalitions.from_lists([[]], [range(graph.n_tests)]))
    values = np.zeros(graph.n_players)
    trainings = 1
    for game in range(graph.n_games):
        players, n = graph.game(game), int(graph.sizes[game])
        tests = graph.tests[graph.test_indptr[game] : graph.test_indptr[game + 1]]
        trainings += permutations * (n - 1) + 1
        orders = [rng.permutation(players) for _ in range(permutations)]
        prefixes = [order[: i + 1] for order in orders for i in range(n)]
        scores = evaluate(Coalitions.from_lists(prefixes, [tests] * len(prefixes)))
        worth = scores.reshape(permutations, n, len(tests)).sum(axis=2)
        gains = np.diff(worth, axis=1, prepend=nothing[tests].sum())
        np.add.at(values, np.concatenate(orders), gains.ravel() / permutations)
    return values, trainings


def measure(name: str, quick: bool) -> None:
    workload = WORKLOADS[name]()
    seeds = range(3 if quick else 10)

    def play(**how: object) -> ls.Valuation:
        return ls.shapley(workload.supports, workload.trainer, workload.n_players, progress=False, **how)

    started = perf_counter()
    ours = [play(method="sample", tol=0.1, seed=s) for s in seeds]
    trainings = float(np.mean([v.cost.trainings for v in ours]))
    truth = play(method="exact") if workload.exact else play(
        method="sample", budget=int((10 if quick else 50) * trainings), seed=999
    )  # fmt: skip
    size = float(np.linalg.norm(truth.values))

    def error(values: list[np.ndarray]) -> float:
        return float(np.sqrt(np.mean([np.sum((v - truth.values) ** 2) for v in values]))) / size

    own = error([v.values for v in ours])
    sizes = ls.SupportGraph(workload.supports, workload.n_players).sizes
    each = int((sizes - 1).sum())
    permutations = max(2, int((1 if quick else 2) * trainings) // each)
    mc = [local_mc(workload, permutations, s) for s in seeds]
    pivots = [play(method="pivot", budget=int(2 * trainings), seed=s) for s in seeds]
    ratios = []
    for values, count in (
        ([v for v, _ in mc], float(np.mean([c for _, c in mc]))),
        ([v.values for v in pivots], float(np.mean([v.cost.trainings for v in pivots]))),
    ):
        ratios.append(count * (error(values) / own) ** 2 / trainings)
    print(
        f"| {name} | {sizes.min()}..{sizes.max()} | {trainings:,.0f} | {own:.3f} | "
        f"{ratios[0]:,.1f} | {ratios[1]:,.0f} | "
        f"{'exact' if workload.exact else f'run of {truth.cost.trainings:,}'} | {perf_counter() - started:.0f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer seeds and shorter references")
    parser.add_argument("--only", metavar="NAME", default="", help="workloads whose name has this in it")
    parser.add_argument("--bound", metavar="ERROR", type=float, nargs="+", help="least trainings of the rough games")
    arguments = parser.parse_args()
    if arguments.bound:
        for error in arguments.bound:
            print(f"rough games, error {error:g}: at least {bound(rough(), error):,.0f} trainings")
        return
    print(
        "| workload | players | trainings at tol=0.1 | true error | Local-MC needs × | pivot needs × | reference | s |"
    )
    print("|---|---|---:|---:|---:|---:|---|---:|")
    for name in WORKLOADS:
        if arguments.only in name:
            measure(name, arguments.quick)


if __name__ == "__main__":
    main()
