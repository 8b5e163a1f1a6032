"""What acting on suspects is worth: what is measured on the rows that found them, and on others, beside the truth.

    python benchmarks/acting.py [--seeds 20]

Two classes with normal rows in four columns, `distance` standard deviations apart, 300 rows, a share of the labels
flipped; no clean test rows. Prints what dropping the most suspicious fifth of the rows changes in accuracy, in points,
mean over seeds: in truth (the model trained on all rows, scored on 4,000 rows with right labels), by `audit.mending`
and by `audit.worth_mending`, both in five folds with labels as they are; and how often the interval of each does not
hold 0.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

import localshapley as ls

MODELS = {"1 neighbour": KNeighborsClassifier(1), "5 neighbours": KNeighborsClassifier(5)}
SETTINGS = ((0, 0.0), (1, 0.0), (1, 0.2), (3, 0.0), (3, 0.2))
N_ROWS, N_CLEAN, SHARE = 300, 4000, 0.2


def clouds(n: int, distance: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two classes."""
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += distance * y
    return X, y


def trial(model: Any, distance: float, flipped: float, seed: int) -> list[float]:
    """Changes in points (truth, mending, worth_mending), and whether the last two are measurable."""
    rng = np.random.default_rng(seed)
    X, y = clouds(N_ROWS, distance, rng)
    wrong = rng.choice(N_ROWS, int(flipped * N_ROWS), replace=False)
    y[wrong] = 1 - y[wrong]
    X_clean, y_clean = clouds(N_CLEAN, distance, rng)
    found = ls.audit.label_errors(X, y, n=SHARE, progress=False).table
    kept = np.setdiff1d(np.arange(N_ROWS), found.index)
    before, after = (clone(model).fit(X[rows], y[rows]).score(X_clean, y_clean) for rows in (slice(None), kept))
    measured = [
        ls.audit.mending(X, y, found, model=model, cv=5, seed=seed),
        ls.audit.worth_mending(X, y, model=model, cv=5, n=SHARE, seed=seed),
    ]
    intervals = [m.gains["dropped"] for m in measured]
    sure = [100.0 * (low > 0 or high < 0) for _, low, high in intervals]
    return [100 * (after - before), *(100 * gain for gain, _, _ in intervals), *sure]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    n_seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore", ls.LocalShapleyWarning)
    print("| model | distance | flipped | truth | mending | worth_mending | mending is sure | worth_mending is sure |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, model in MODELS.items():
        for distance, flipped in SETTINGS:
            runs = np.array([trial(model, distance, flipped, seed) for seed in range(n_seeds)])
            changes = " | ".join(f"{x:+.1f}" for x in runs[:, :3].mean(axis=0))
            sure = " | ".join(f"{x:.0f} %" for x in runs[:, 3:].mean(axis=0))
            print(f"| {name} | {distance} | {100 * flipped:.0f} % | {changes} | {sure} |", flush=True)


if __name__ == "__main__":
    main()
