"""The paper's ablation, and on: one column for each mechanism, as the error at equal trainings.

global → locality → subset-centric → reuse → inclusion weights → centring → additive fit. The paper switches on the
first three; the others make this library's sampler. Each method has the same number of trainings, so that the errors
can be compared; trainings to equal error follow from their squares.

    python experiments/ablation.py            # about ten minutes on two cores
    python experiments/ablation.py --quick    # under two minutes
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import localshapley as ls
from common import Workload, arguments, relative_error, svm, tree, write

MECHANISMS = (
    "global",
    "+ locality",
    "+ subset-centric",
    "+ reuse",
    "+ inclusion weights",
    "+ centring",
    "+ additive fit",
)


def main(argv: list[str] | None = None) -> None:
    """Run, and write `ablation.csv`, `.md`, `.svg` and `.png`."""
    args = arguments(__doc__, argv)
    rows = []
    for workload, per_game in (
        ((tree(True), 40), (svm(True), 40)) if args.quick else ((tree_of(14), 60), (svm_of(12), 60))
    ):
        rows += measure(workload, per_game, range(3 if args.quick else 5))
        for row in rows[-len(MECHANISMS) :]:
            print(row, file=sys.stderr)
    table = pd.DataFrame(rows)
    about = (
        "Relative error against exact values (global against a long global run) at equal trainings; mean over seeds. "
        "*times fewer trainings*: squared ratio of the error to that of the line above. *+ locality*: permutations "
        "of each support, a training for each prefix; *+ subset-centric*: each scored subset serves all players of "
        "its game; *+ reuse*: and all games that hold it, by the paper's pivot rule with corrected weights; *+ "
        "inclusion weights*: every draw counts, weighed by the chance that any game drew it; *+ centring*: scores "
        "less the line from v(∅) to v(N); *+ additive fit*: less a fitted surrogate, cross-fitted (this library)."
    )
    points = [
        f"{title}: from {part['error'].iloc[1]:.3g} with locality alone to {part['error'].iloc[-1]:.3g}, "
        f"{(part['error'].iloc[1] / part['error'].iloc[-1]) ** 2:,.0f} times fewer trainings for the same error."
        for title, part in table.groupby("workload", sort=False)
    ]
    write(args, "ablation", "Ablation: what each mechanism brings", about, {"ablation": table}, points,
          lambda figure: draw(figure, table))  # fmt: skip


def tree_of(size: int) -> Workload:
    """Trees on Iris with supports that can be enumerated."""
    from sklearn.tree import DecisionTreeClassifier

    from common import parents_of_leaves, tabular

    data = ls.datasets.load("iris")[:4]
    supports = ls.supports.Given(parents_of_leaves(*data[:3], size, size))
    return tabular("DT", f"trees, Iris, supports of {size}", data, DecisionTreeClassifier(random_state=0), supports)


def svm_of(size: int) -> Workload:
    """RBF-SVM on Breast Cancer with supports that can be enumerated."""
    from sklearn.svm import SVC

    from common import tabular

    data = ls.datasets.load("breast_cancer")[:4]
    support = ls.supports.Kernel(0.5, max_size=size)
    return tabular("SVM", f"RBF-SVM, Breast Cancer, supports of at most {size}", data, SVC(), support)


def measure(workload: Workload, per_game: int, seeds: range) -> list[dict[str, Any]]:
    """Errors of all mechanisms at the same number of trainings."""
    exact = workload.value(method="exact", per_test=True)
    games = Games(exact, workload)
    budget = per_game * games.n_games
    reference = workload.value(method="global-mc", budget=400 * workload.n_rows + 2, seed=99).values
    errors: dict[str, list[float]] = {name: [] for name in MECHANISMS}
    for seed in seeds:
        found = workload.value(method="global-mc", budget=max(budget, 2 * workload.n_rows + 2), seed=seed)
        errors["global"].append(relative_error(found.values, reference))
        errors["+ locality"].append(
            relative_error(workload.value(method="local-mc", budget=budget, seed=seed).values, exact.values)
        )
        for name, estimate in (
            ("+ subset-centric", games.alone),
            ("+ inclusion weights", games.weighted),
            ("+ centring", games.centred),
        ):
            errors[name].append(relative_error(estimate(budget, seed), exact.values))
        errors["+ reuse"].append(
            relative_error(workload.value(method="pivot", budget=budget, seed=seed).values, exact.values)
        )
        errors["+ additive fit"].append(
            relative_error(workload.value(method="sample", budget=budget, seed=seed).values, exact.values)
        )
    rows, before = [], np.nan
    for name in MECHANISMS:
        error = float(np.mean(errors[name]))
        spread = float(np.std(errors[name]) / np.sqrt(len(seeds)))
        rows.append({"workload": workload.title, "mechanism": name, "trainings": budget, "error": error, "±": spread,
                     "times fewer trainings": (before / error) ** 2})  # fmt: skip
        before = error
    return rows


class Games:
    """The games of a workload with all their scores, so that plain estimators can be written in a few lines."""

    def __init__(self, exact: ls.Valuation, workload: Workload) -> None:
        assert exact.per_test is not None
        pattern = exact.per_test
        self.n_rows = workload.n_rows
        self.supports = [
            np.sort(pattern.indices[a:b]) for a, b in zip(pattern.indptr, pattern.indptr[1:], strict=False)
        ]
        self.supports = [s for s in self.supports if len(s) > 1]
        self.n_games = len(self.supports)
        kept = [t for t in range(pattern.shape[0]) if pattern.indptr[t + 1] - pattern.indptr[t] > 1]
        self.known: dict[tuple[int, bytes], float] = {}
        self._score = scorer(workload, np.array(kept))

    def _value(self, game: int, subset: np.ndarray) -> float:
        key = (game, subset.tobytes())
        if key not in self.known:
            self.known[key] = self._score(game, subset)
        return self.known[key]

    def _draw(self, budget: int, seed: int) -> list[tuple[int, np.ndarray]]:
        """The same number of subsets for each game: a size at random, then a subset of it."""
        rng = np.random.default_rng(seed)
        drawn = []
        for game, support in enumerate(self.supports):
            for _ in range(budget // self.n_games):
                k = int(rng.integers(len(support) + 1))
                drawn.append((game, np.sort(rng.permutation(support)[:k])))
        return drawn

    def _estimate(
        self, pairs: list[tuple[int, np.ndarray, float]], scores: Callable[[int, np.ndarray], float]
    ) -> np.ndarray:
        """`Σ w(S) · v(S)` with weights over the chance of a subset; one closed form for every player of a game."""
        values = np.zeros(self.n_rows)
        for game, subset, weight in pairs:
            support, k, n = self.supports[game], len(subset), len(self.supports[game])
            worth = weight * scores(game, subset)
            if k:
                values[subset] += worth / k
            if k < n:
                values[np.setdiff1d(support, subset)] -= worth / (n - k)
        return values

    def alone(self, budget: int, seed: int) -> np.ndarray:
        """Every draw serves the players of its own game; one size of n + 1 is drawn, so it weighs n + 1."""
        each = budget // self.n_games
        pairs = [(g, s, (len(self.supports[g]) + 1) / each) for g, s in self._draw(budget, seed)]
        return self._estimate(pairs, self._value)

    def _included(self, budget: int, seed: int) -> list[tuple[int, np.ndarray, float]]:
        """Each distinct subset once for every game that holds it, over the chance that any game drew it."""
        from math import comb

        each = budget // self.n_games
        distinct = {s.tobytes(): s for _, s in self._draw(budget, seed)}
        sets = [frozenset(s.tolist()) for s in self.supports]
        pairs = []
        for subset in distinct.values():
            holding = [g for g in range(self.n_games) if sets[g].issuperset(subset.tolist())]
            missed, k = 1.0, len(subset)
            for g in holding:
                n = len(self.supports[g])
                missed *= (1 - 1 / ((n + 1) * comb(n, k))) ** each
            pairs += [(g, subset, 1 / ((1 - missed) * comb(len(self.supports[g]), k))) for g in holding]
        return pairs

    def weighted(self, budget: int, seed: int) -> np.ndarray:
        """Inclusion weights."""
        return self._estimate(self._included(budget, seed), self._value)

    def centred(self, budget: int, seed: int) -> np.ndarray:
        """The same for scores less the line from v(∅) to v(N), whose values are known."""
        none = np.empty(0, dtype=self.supports[0].dtype)
        ends = [(self._value(g, none), self._value(g, s)) for g, s in enumerate(self.supports)]

        def rest(game: int, subset: np.ndarray) -> float:
            low, high = ends[game]
            return self._value(game, subset) - low - (high - low) * len(subset) / len(self.supports[game])

        values = self._estimate(self._included(budget, seed), rest)
        for (low, high), support in zip(ends, self.supports, strict=True):
            values[support] += (high - low) / len(support)
        return values


def scorer(workload: Workload, tests: np.ndarray) -> Callable[[int, np.ndarray], float]:
    """Accuracy on one test row after training on some rows, by the library's conventions."""
    from sklearn.base import clone

    X, y, X_test, y_test = workload.data
    n_classes = len(np.unique(y))

    def score(game: int, subset: np.ndarray) -> float:
        t = tests[game]
        if len(subset) == 0:
            return 1 / n_classes
        labels = y[subset]
        if (labels == labels[0]).all():
            return float(labels[0] == y_test[t])
        return float(clone(workload.model).fit(X[subset], labels).predict(X_test[t : t + 1])[0] == y_test[t])

    return score


def draw(figure: Any, table: pd.DataFrame) -> None:
    """Error by mechanism."""
    ax = figure.subplots()
    for title, part in table.groupby("workload", sort=False):
        ax.plot(part["mechanism"], part["error"], marker="o", label=title)
    ax.set(yscale="log", ylabel="relative error at equal trainings")
    ax.tick_params(axis="x", rotation=30)
    ax.legend(frameon=False)


if __name__ == "__main__":
    main(sys.argv[1:])
