"""How often the intervals of values hold what the values would be over a large pool of test rows.

    python benchmarks/intervals.py [--sets 200] [--sizes 20 50 200 1000] [--only NAME]

The values of some training rows to each row of a pool are computed once. Then test sets of 20, 50, 200 and 1,000 rows
are drawn from the pool, with replacement. The value of a training row to a set has an interval of 95 %
(`Valuation.interval`), which should hold the mean over the pool, times the number of test rows. `normal` is the value
plus or minus 1.96 `stderr_tests`: nothing at all for a row that has met no test row. Rows are also counted by the
number of test rows that they are expected to meet, and `largest tenth` are those whose values to the pool differ most:
what is pooled over rows is too little for them. `below` has the rows that are below zero beyond doubt, as a
result and `suspects` count them, and the share of these that the pool has above zero. The last columns have how many
of the ten lowest values are among the true worst ten, what `among_worst(10)` expects of them, and the share of the
sets that hold all ten by its `size`, with the median of that.

In the second table values are sampled, one run for each test set, so that intervals include the error of the draws.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import pairwise

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.coalitions.jackknife_blocks import JackknifeBlocks
from localshapley.valuation.intervals import beyond_doubt

SIZES = (20, 50, 200, 1000)
MET = (0, 1, 4, 16, np.inf)
K = 10
SAMPLED = "sampled trees, made up"
FOREST = ls.models.Fixed(RandomForestClassifier(50, min_samples_leaf=3, random_state=0))
NEIGHBOURS = {"model": KNeighborsClassifier(5), "support": ls.supports.Nearest(10)}


def synthetic(n_rows: int, n_pool: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Two classes with a wide border, and a tenth of the training labels flipped."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows + n_pool, 5))
    y = (X[:, 0] + 0.7 * rng.normal(size=len(X)) > 0).astype(int)
    y[: n_rows // 10] = 1 - y[: n_rows // 10]
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def loaded(name: str, n_rows: int = 300, **settings: int) -> tuple[np.ndarray, ...]:
    """A few rows of a data set to train on, a tenth of them with wrong labels, and all others as the pool."""
    data = ls.datasets.load(name, **settings)
    X, y = np.concatenate([data.X, data.X_test]), np.concatenate([data.y, data.y_test])
    order = np.random.default_rng(0).permutation(len(y))
    X, y, classes = X[order], y[order].copy(), np.unique(y)
    wrong = np.arange(n_rows // 10)
    y[wrong] = classes[(np.searchsorted(classes, y[wrong]) + 1) % len(classes)]
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def pools() -> dict[str, ls.Valuation]:
    """Values of training rows to each row of a pool."""
    digits, adult = loaded("digits"), loaded("adult", n_rows=500, n_train=1000, n_test=3000)
    mnist, made_up = loaded("mnist", n_rows=400, n_train=3000, n_test=2000), synthetic(300, 6000)
    return {
        "KNN, digits": ls.value(*digits, per_test=True, **NEIGHBOURS),
        "forest, digits": ls.value(*digits, per_test=True, model=FOREST),
        "KNN, Adult": ls.value(*adult, per_test=True, **NEIGHBOURS),
        "forest, Adult": ls.value(*adult, per_test=True, model=FOREST),
        "KNN, MNIST": ls.value(*mnist, per_test=True, **NEIGHBOURS),
        "forest, MNIST": ls.value(*mnist, per_test=True, model=FOREST),
        "KNN, made up": ls.value(*made_up, per_test=True, **NEIGHBOURS),
        "KNN, made up, all rows": ls.value(
            *made_up, per_test=True, model=KNeighborsClassifier(5), support=ls.supports.Everything()
        ),
    }


def over_set(v: ls.Valuation, by_test: np.ndarray, chosen: np.ndarray) -> ls.Valuation:
    """What the valuation would be with some rows of the pool as test rows."""
    own, bundles = by_test[chosen], JackknifeBlocks(np.arange(len(chosen)), by_test.shape[1])
    sums = np.zeros((bundles.n, by_test.shape[1]))
    np.add.at(sums, bundles.of_test, own)
    return replace(
        v,
        estimate=replace(v.estimate, values=own.sum(axis=0), spread_tests=bundles.spread(sums[None]), per_test=None),
        counts=replace(v.counts, support_sizes=v.support_sizes[chosen], n_tests=(own != 0).sum(axis=0)),
    )


def coverage(v: ls.Valuation, size: int, n_sets: int, seed: int = 0) -> dict[str, float]:
    """Shares of the intervals that hold the mean over the pool."""
    rng, by_test = np.random.default_rng(seed), v.per_test.toarray()
    truth, expected = size * by_test.mean(axis=0), size * (by_test != 0).mean(axis=0)
    known, worst = expected > 0, set(np.argsort(truth, kind="stable")[:K].tolist())
    held, normal, below = np.zeros((3, len(truth)))
    ranks = []
    for _ in range(n_sets):
        found = over_set(v, by_test, rng.integers(len(by_test), size=size))
        low, high = found.interval()
        held += (low <= truth) & (truth <= high)
        normal += np.abs(found.values - truth) <= 1.96 * found.stderr_tests
        below += beyond_doubt(found)[0]
        ranked = found.among_worst(K)
        right = len(worst & set(ranked.order[:K].tolist()))
        ranks.append((right, ranked.expected, worst <= set(ranked.rows.tolist()), ranked.size))
    out = {"all": held[known].mean() / n_sets, "normal": normal[known].mean() / n_sets}
    for low, high in pairwise(MET):
        some = known & (low <= expected) & (expected < high)
        out[f"{low:g} to {high:g}"] = held[some].mean() / n_sets if some.sum() >= 5 else np.nan
    spread = by_test.var(axis=0)
    out["largest tenth"] = held[spread >= np.quantile(spread, 0.9)].mean() / n_sets
    right, expected_right, held_worst, n_worst = np.array(ranks, dtype=float).T
    return out | {
        "below": below.sum() / n_sets,
        "wrong": below[truth >= 0].sum() / max(below.sum(), 1),
        "right": right.mean(),
        "expected": expected_right.mean(),
        "worst": held_worst.mean(),
        "rows": float(np.median(n_worst)),
    }


def sampled_coverage(size: int, n_sets: int) -> dict[str, float]:
    """The same with values that are sampled for each test set."""
    X, y, X_pool, y_pool = synthetic(100, 1500)
    about = {"model": DecisionTreeClassifier(random_state=0), "support": ls.supports.Nearest(8)}
    by_test = ls.value(X, y, X_pool, y_pool, method="exact", per_test=True, **about).per_test.toarray()
    truth, rng = size * by_test.mean(axis=0), np.random.default_rng(0)
    held, draws, ratio = [], [], []
    for seed in range(n_sets):
        chosen = rng.integers(len(by_test), size=size)
        v = ls.value(X, y, X_pool[chosen], y_pool[chosen], method="sample", tol=0.5, seed=seed, progress=False, **about)
        low, high = v.interval()
        held.append((low <= truth) & (truth <= high))
        low, high = v.interval(errors="draws")
        draws.append((low <= truth) & (truth <= high))
        ratio.append(np.linalg.norm(v.stderr) / np.linalg.norm(v.stderr_tests))
    return {"all": float(np.mean(held)), "draws": float(np.mean(draws)), "ratio": float(np.mean(ratio))}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="numbers of test rows")
    parser.add_argument("--only", metavar="NAME", default="", help="pools whose name has this in it")
    arguments = parser.parse_args()
    n_sets = arguments.sets
    names = [f"{low:g} to {high:g} met" if high < np.inf else f"{low:g} or more" for low, high in pairwise(MET)]
    print("| pool | test rows | interval | normal | " + " | ".join(names) + " | largest tenth | below, wrong |"
          " right of 10 | expected | all 10 held |")  # fmt: skip
    print("|---|" + "---:|" * (len(names) + 8))
    for name, v in pools().items():
        for size in arguments.sizes if arguments.only in name else ():
            out = coverage(v, size, n_sets)
            *shares, below, wrong, right, expected, held, n_rows = out.values()
            cells = [f"{100 * share:.1f} %" if np.isfinite(share) else "–" for share in shares]
            cells += [
                f"{below:.1f}, {100 * wrong:.0f} %",
                f"{right:.1f}",
                f"{expected:.1f}",
                f"{100 * held:.0f} % by {n_rows:.0f}",
            ]
            print(f"| {name} | {size:,} | {' | '.join(cells)} |", flush=True)
    if arguments.only not in SAMPLED:
        return
    print()
    print(f"| {SAMPLED}: test rows | interval | of the draws alone | error of draws / of test rows |")
    print("|---:|---:|---:|---:|")
    for size in [size for size in arguments.sizes if size <= 200]:
        out = sampled_coverage(size, n_sets // 2)
        print(f"| {size} | {100 * out['all']:.1f} % | {100 * out['draws']:.1f} % | {out['ratio']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
