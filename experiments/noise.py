"""How well each method finds flipped labels: precision and recall, with KNN-Shapley and others beside it.

python experiments/noise.py            # about ten minutes on two cores
python experiments/noise.py --quick    # under two minutes
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from common import arguments, flipped, panels, write

LINE = ["data", "model", "flipped"]
METHODS = ("suspects", "LSMR-A", "local-mc", "global-mc", "tmc", "complementary", "loo", "KNN-Shapley", "random")


def main(argv: list[str] | None = None) -> None:
    """Run, and write `noise.csv`, `.md`, `.svg` and `.png`."""
    args = arguments(__doc__, argv)
    names = ("breast_cancer",) if args.quick else ("breast_cancer", "digits")
    levels = (0.1,) if args.quick else (0.05, 0.1, 0.2)
    n_rows, n_tests, seeds = (80, 30, range(2)) if args.quick else (300, 150, range(3))
    limit = 5_000 if args.quick else 20_000
    rows, curves = [], {}
    for name in names:
        for model_name, model in (
            ("KNN", KNeighborsClassifier(5)),
            ("tree", DecisionTreeClassifier(random_state=0)),
        ):
            for level in levels:
                found = [scores(name, model, level, n_rows, n_tests, seed, limit) for seed in seeds]
                for method in METHODS:
                    truth = [f["flipped"] for f in found]
                    suspicion = [f[method] for f in found]
                    rows.append(
                        {
                            "data": name,
                            "model": model_name,
                            "flipped": level,
                            "method": method,
                            "average precision": mean(average_precision_score, truth, suspicion),
                            "area under ROC": mean(roc_auc_score, truth, suspicion),
                            "precision at true number": mean(at_true_number, truth, suspicion),
                        }
                    )
                if level == 0.1:
                    curves[f"{name}, {model_name}"] = found[0]
                print(pd.DataFrame(rows[-len(METHODS) :]).to_string(index=False), file=sys.stderr)
    table = pd.DataFrame(rows)
    about = (
        f"Average precision with which flipped labels are found among {n_rows} training rows, with {n_tests} clean "
        f"test rows, mean over {len(seeds)} seeds. Rows are ranked by their value, lowest first; *suspects* is this "
        f"library's `audit.label_errors`. Sampled methods run to a relative error of 0.2, or {limit:,} trainings."
    )
    wide = table.pivot(index=LINE, columns="method", values="average precision")[list(METHODS)]
    points = [
        f"Best on {n} of {len(wide)} lines: {method}." for method, n in wide.idxmax(axis=1).value_counts().items()
    ]
    wide.loc[("mean", "", "")] = wide.mean()
    shown = {"average precision": wide.reset_index().rename_axis(columns=None)}
    write(args, "noise", "Finding flipped labels", about, {"noise": table}, points, lambda figure: draw(figure, curves),
          shown=shown)  # fmt: skip


def mean(score: Any, truth: list[np.ndarray], suspicion: list[np.ndarray]) -> float:
    """Mean of a score over the seeds."""
    return float(np.mean([score(t, s) for t, s in zip(truth, suspicion, strict=True)]))


def at_true_number(truth: np.ndarray, suspicion: np.ndarray) -> float:
    """Share of flipped rows among as many suspects as there are."""
    worst = np.argsort(-suspicion, kind="stable")[: truth.sum()]
    return float(truth[worst].mean())


def scores(
    name: str, model: Any, level: float, n_rows: int, n_tests: int, seed: int, limit: int
) -> dict[str, np.ndarray]:
    """Suspicion of every row by every method, and which labels are flipped."""
    data = ls.datasets.load(name, seed=seed)
    X, (y, is_wrong) = data.X[:n_rows], flipped(data.y[:n_rows], level, seed)
    X_test, y_test = data.X_test[:n_tests], data.y_test[:n_tests]

    def values(**settings: Any) -> ls.Valuation:
        return ls.value(
            X, y, X_test, y_test, model=model, support=ls.supports.Nearest(10), progress=False, seed=seed, **settings
        )

    ours = values(tol=0.1)
    with warnings.catch_warnings():  # that so many labels are suspected: so many are wrong here
        warnings.simplefilter("ignore", ls.LocalShapleyWarning)
        ranked = ls.audit.label_errors(X, y, n=len(y)).table.index
    found = {"flipped": is_wrong, "LSMR-A": -ours.values}
    order = np.empty(len(y))
    order[np.asarray(ranked)] = np.arange(len(y))[::-1]
    found["suspects"] = order
    for method in ("local-mc", "global-mc", "tmc", "complementary"):
        found[method] = -values(method=method, tol=0.2, budget=limit).values
    found["loo"] = -values(method="loo").values
    found["random"] = -values(method="random").values
    found["KNN-Shapley"] = -ls.comparators.knn_shapley(X, y, X_test, y_test, n_neighbors=5).values
    return found


def draw(figure: Any, curves: dict[str, dict[str, np.ndarray]]) -> None:
    """Precision against recall, at 10 % flipped."""
    figure.set_size_inches(9, 3.2 * -(-len(curves) // 2) + 0.5)
    for ax, (title, found) in zip(panels(figure, len(curves)), curves.items(), strict=True):
        for method in METHODS:
            precision, recall, _ = precision_recall_curve(found["flipped"], found[method])
            ax.plot(recall, precision, label=method, linewidth=1)
        ax.set(title=title, xlabel="recall", ylabel="precision")
    figure.axes[0].legend(frameon=False, fontsize=7)


if __name__ == "__main__":
    main(sys.argv[1:])
