"""Shapley values of games by shapiq's estimators, for `estimators_single.py`.

shapiq 1.6 and later need Python 3.12, so give it an environment of its own:

    python3.12 -m venv shapiq-env
    shapiq-env/bin/pip install "shapiq>=1.6" xgboost lightgbm
    python benchmarks/estimators_single.py --shapiq shapiq-env/bin/python

All estimators have shapiq's defaults. ProxySHAP has its correction by residuals out of five folds.
"""

import warnings

import lightgbm  # noqa: F401  without it and XGBoost, two of the estimators would quietly use weaker trees
import numpy as np
import xgboost  # noqa: F401
from asking import Ask, serve
from shapiq.approximator import (
    SVARM,
    KernelSHAP,
    LeverageSHAP,
    OddSHAP,
    PermutationSamplingSV,
    ProxySHAP,
    RegressionMSR,
)

ESTIMATORS = {
    "KernelSHAP": (KernelSHAP, {}),
    "LeverageSHAP": (LeverageSHAP, {}),
    "SVARM": (SVARM, {}),
    "RegressionMSR": (RegressionMSR, {"index": "SV"}),
    "OddSHAP": (OddSHAP, {}),
    "ProxySHAP": (ProxySHAP, {"index": "SV", "max_order": 1, "adjustment": True, "k_folds": 5}),
    "permutations": (PermutationSamplingSV, {}),
}


def estimator(kind: type, settings: dict):
    def estimate(n: int, budget: int, seed: int, ask: Ask) -> np.ndarray:
        found = kind(n=n, random_state=seed, **settings).approximate(budget=budget, game=ask)
        return np.array([found[(player,)] for player in range(n)])

    return estimate


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    serve({name: estimator(*how) for name, how in ESTIMATORS.items()})
