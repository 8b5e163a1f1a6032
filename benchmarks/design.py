"""What each part of the sampled estimator is good for: its error with the part switched off.

    python benchmarks/design.py

Prints the relative error `‖error‖/‖values‖` (root mean square over seeds) of `method="sample"` at a fixed budget, as it
is and with one part changed, on games with known values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import localshapley as ls
from estimators import WORKLOADS, Rough, Workload
from localshapley.methods import Sample
from localshapley.sampling.tuning import Tuning

OFF = 1e12  # a ridge, or a prior, that leaves nothing of what it holds back
VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "draws allotted without looking at residuals": {"prior_draws": OFF},
    "one round, nothing learnt first": {"least_draws": OFF},
    "no curve over sizes shared by the games": {"pooled_ridge": OFF},
    "no players in the surrogate": {"player_ridge": OFF},
    "no surrogate but a line from v(∅) to v(N)": {"player_ridge": OFF, "pooled_ridge": OFF, "level_ridge": OFF},
    "two folds": {"n_folds": 2},
    "eight folds": {"n_folds": 8},
    "twelve steps of conjugate gradients": {"max_steps": 12},
}


def smooth() -> Workload:
    class Smooth(Rough):
        def evaluate(self, coalitions: ls.models.Coalitions) -> np.ndarray:
            signal = [
                self._strength[coalitions.tests_of(c)][:, coalitions.coalition(c)].sum(axis=1)
                for c in range(len(coalitions))
            ]
            return 1 / (1 + np.exp(-np.concatenate(signal)))

    rng = np.random.default_rng(3)
    return Workload(
        [rng.choice(60, size=rng.integers(8, 14), replace=False) for _ in range(30)], Smooth(60, 30), 60, True
    )


def main() -> None:
    games = {
        "RBF-SVM": (WORKLOADS["RBF-SVM, Breast Cancer, supports of up to 12"](), 1200),
        "trees 0/1": (WORKLOADS["trees, Iris, supports of up to 12"](), 2000),
        "smooth": (smooth(), 1500),
        "rough": (WORKLOADS["rough random games, supports of 10 to 15"](), 3000),
    }
    truth = {
        name: ls.shapley(w.supports, w.trainer, w.n_players, progress=False).values for name, (w, _) in games.items()
    }
    print("| design | " + " | ".join(f"{name}, {budget:,} trainings" for name, (_, budget) in games.items()) + " |")
    print("|---|" + "---:|" * len(games))
    for variant, changes in VARIANTS.items():
        method = Sample(Tuning(**changes))
        errors = []
        for name, (workload, budget) in games.items():
            runs = [
                ls.shapley(
                    workload.supports, workload.trainer, workload.n_players, method=method, budget=budget, seed=s,
                    progress=False,
                ).values
                for s in range(20)
            ]  # fmt: skip
            error = np.sqrt(np.mean([np.sum((v - truth[name]) ** 2) for v in runs]))
            errors.append(f"{error / np.linalg.norm(truth[name]):.3f}")
        print(f"| {variant} | {' | '.join(errors)} |", flush=True)


if __name__ == "__main__":
    main()
