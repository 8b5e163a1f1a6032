"""What each part of the sampled estimator is good for: its error with the part switched off.

    python benchmarks/design.py

Prints the relative error `‖error‖/‖values‖` (root mean square over seeds) of `method="sample"` at a fixed budget, as it
is and with one part changed, on games with known values.
"""

from __future__ import annotations

import numpy as np

import localshapley as ls
from estimators import WORKLOADS, Rough, Workload
from localshapley.estimate import crossfit
from localshapley.methods import sample as sampling

OFF = 1e12  # a ridge, or a prior, that leaves nothing of what it holds back
VARIANTS: dict[str, dict[str, float]] = {
    "as it is": {},
    "draws allotted without looking at residuals": {"PRIOR_DRAWS": OFF},
    "one round, nothing learnt first": {"LEAST_DRAWS": OFF},
    "no curve over sizes shared by the games": {"POOLED_RIDGE": OFF},
    "no players in the surrogate": {"PLAYER_RIDGE": OFF},
    "no surrogate but a line from v(∅) to v(N)": {"PLAYER_RIDGE": OFF, "POOLED_RIDGE": OFF, "LEVEL_RIDGE": OFF},
    "two folds": {"N_FOLDS": 2},
    "eight folds": {"N_FOLDS": 8},
    "twelve steps of conjugate gradients": {"MAX_STEPS": 12},
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
        module_of = {name: sampling if hasattr(sampling, name) else crossfit for name in changes}
        kept = {name: getattr(module_of[name], name) for name in changes}
        for name, value in changes.items():
            setattr(module_of[name], name, value)
        errors = []
        for name, (workload, budget) in games.items():
            runs = [
                ls.shapley(
                    workload.supports, workload.trainer, workload.n_players, method="sample", budget=budget, seed=s,
                    progress=False,
                ).values
                for s in range(20)
            ]  # fmt: skip
            error = np.sqrt(np.mean([np.sum((v - truth[name]) ** 2) for v in runs]))
            errors.append(f"{error / np.linalg.norm(truth[name]):.3f}")
        print(f"| {variant} | {' | '.join(errors)} |", flush=True)
        for name, value in kept.items():
            setattr(module_of[name], name, value)


if __name__ == "__main__":
    main()
