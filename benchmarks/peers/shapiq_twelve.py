"""The twelve-player tree game of `pydvl_twelve.py` with shapiq, exactly. `rivals.py` runs it with DATA.npz."""

import argparse
import time

import numpy as np
from reporting import report
from shapiq import ExactComputer
from sklearn.tree import DecisionTreeClassifier

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    data = np.load(parser.parse_args().data)
    X, y, X_test, y_test = (data[name] for name in ("X", "y", "X_test", "y_test"))
    fits = 0

    def worth(coalitions: np.ndarray) -> np.ndarray:
        """Accuracy of a tree trained on each coalition; 0 for none."""
        global fits
        fits += int(coalitions.any(axis=1).sum())
        return np.array([
            DecisionTreeClassifier(random_state=0).fit(X[rows], y[rows]).score(X_test, y_test) if rows.any() else 0.0
            for rows in coalitions
        ])  # fmt: skip

    started = time.perf_counter()
    found = ExactComputer(worth, n_players=len(y))("SV", order=1)
    seconds = time.perf_counter() - started
    report(("shapiq", "numpy", "scikit-learn"), seconds, [found[(player,)] for player in range(len(y))], fits)
